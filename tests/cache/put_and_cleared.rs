//! A value that was loaded, inserted, and cleared away before the waiters got it is not for callers that come after that.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};
use std::thread::sleep;
use std::time::Duration;

use koel::Cache;

use crate::SEVERAL_SEGMENTS;
use crate::common::on_threads;
use crate::edges::comes_to_an_end;

/// Two threads that take turns, once it is armed.
struct Meeting {
    is_armed: AtomicBool,
    turns: Barrier,
}

impl Meeting {
    fn new() -> Arc<Self> {
        Arc::new(Meeting { is_armed: AtomicBool::new(false), turns: Barrier::new(2) })
    }

    fn arm(&self) {
        self.is_armed.store(true, Ordering::Relaxed);
    }

    /// Lets the other thread go on, and waits for it.
    fn interrupt(&self) {
        if self.is_armed.swap(false, Ordering::Relaxed) {
            self.turns.wait();
            self.turns.wait();
        }
    }
}

/// A value whose clone may be interrupted.
struct Value(u32, Arc<Meeting>);

impl Clone for Value {
    fn clone(&self) -> Self {
        self.1.interrupt();
        Value(self.0, Arc::clone(&self.1))
    }
}

/// While a cache is being cleared, and its last segments are still to come, a key of the last one is loaded; that segment is
/// cleared after the value was inserted and before the load has ended; and only then another caller asks.
#[test]
fn who_comes_after_a_clearing_does_not_get_what_that_has_taken_out() {
    comes_to_an_end(|| {
        let (in_clone, in_clear) = (Meeting::new(), Meeting::new());
        let told = Arc::clone(&in_clear);
        let builder = Cache::builder().max_weight(1000).estimated_entries(SEVERAL_SEGMENTS);
        let cache: Cache<u64, Value> = builder.on_removal(move |_, _, _| told.interrupt()).build();
        let value = |n| Value(n, Arc::clone(&in_clone));
        (0..100).for_each(|key| assert!(cache.insert(key, value(0)).is_ok()));
        // A walk visits segments in the same order as `clear`.
        let key = cache.iter().last().expect("an entry").0;
        assert!(cache.remove(&key).is_some());
        in_clear.arm();
        let cleared = Barrier::new(2);
        on_threads(3, |thread| match thread {
            0 => {
                cache.clear();
                cleared.wait();
                // Gives the last caller time to wait for the load; if it is late, it loads anyway.
                sleep(Duration::from_millis(50));
                in_clone.turns.wait();
            }
            1 => {
                in_clear.turns.wait();
                let load = || {
                    in_clone.arm();
                    value(1)
                };
                assert_eq!(cache.get_or_insert_with(key, load).0, 1);
            }
            _ => {
                in_clone.turns.wait();
                assert!(cache.contains_key(&key), "it has been put");
                in_clear.turns.wait();
                cleared.wait();
                assert!(!cache.contains_key(&key), "it has been taken out");
                assert_eq!(cache.get_or_insert_with(key, || value(2)).0, 2);
            }
        });
    });
}
