//! A removal listener that takes long: entries that others evict meanwhile are freed.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, LazyLock, Mutex};
use std::thread::{scope, yield_now};

use koel::{Cache, CacheBuilder, Operation};

/// A value that is counted as long as it exists.
struct Counted {
    all: Arc<()>,
    /// The listener reports that it was called for this value, and waits until it may go on.
    is_slow: bool,
}

/// A different value, for which the listener may be called while it waits.
impl Clone for Counted {
    fn clone(&self) -> Self {
        Counted { all: Arc::clone(&self.all), is_slow: false }
    }
}

/// The key of the value at which the listener waits.
const SLOW: u64 = 7;
const ENTRIES: usize = 100;
const WRITES: u64 = 20_000;

/// A full cache whose listener waits at the value of `SLOW`.
struct Waits {
    cache: Cache<u64, Counted>,
    all: Arc<()>,
    is_told: Receiver<()>,
    go_on: Sender<()>,
    times: Arc<AtomicUsize>,
}

impl Waits {
    fn new(builder: CacheBuilder<u64, Counted>) -> Self {
        let ((told, is_told), (go_on, goes)) = (channel(), channel());
        let (ends, times) = (Mutex::new((told, goes)), Arc::new(AtomicUsize::new(0)));
        let counted = Arc::clone(&times);
        let builder = builder.max_entries(ENTRIES).on_removal(move |_, value: &Counted, _| {
            if value.is_slow {
                counted.fetch_add(1, Ordering::Relaxed);
                let (told, goes) = &*ends.lock().unwrap();
                told.send(()).unwrap();
                goes.recv().unwrap();
            }
        });
        let waits = Waits { cache: builder.build(), all: Arc::new(()), is_told, go_on, times };
        waits.cache.insert(SLOW, Counted { is_slow: true, ..waits.counted() }).unwrap();
        waits
    }

    fn counted(&self) -> Counted {
        Counted { all: Arc::clone(&self.all), is_slow: false }
    }

    fn alive(&self) -> usize {
        Arc::strong_count(&self.all) - 1
    }

    /// While `send_away` has called the listener for `SLOW`, entries replaced by other threads are freed.
    fn others_are_freed(&self, how: &str, send_away: impl FnOnce(&Cache<u64, Counted>) + Send) {
        scope(|scope| {
            let cache = &self.cache;
            scope.spawn(move || send_away(cache));
            self.is_told.recv().unwrap();
            for key in 0..WRITES {
                self.cache.insert(1000 + key, self.counted()).unwrap();
            }
            self.cache.flush();
            let alive = self.alive();
            self.go_on.send(()).unwrap();
            assert!(alive < 20 * ENTRIES, "{how}: {alive} are alive");
        });
        assert_eq!(self.times.swap(0, Ordering::Relaxed), 1, "{how}: told once");
        while self.alive() > 2 * ENTRIES {
            self.cache.flush();
            yield_now();
        }
    }
}

#[test]
fn while_the_listener_is_told_others_entries_are_freed() {
    type Way = fn(&Cache<u64, Counted>);
    let ways: [(&str, Way); 6] = [
        ("remove", |cache| assert!(cache.remove(&SLOW).is_some())),
        ("insert", |cache| {
            let again = cache.peek(&SLOW).unwrap();
            cache.insert(SLOW, again).unwrap();
        }),
        ("update", |cache| assert!(cache.update(SLOW, Counted::clone).is_ok())),
        ("compute", |cache| {
            assert!(cache.compute(SLOW, |_| Operation::<_, ()>::Remove).is_ok());
        }),
        ("clear", |cache| cache.clear()),
        ("load", |cache| {
            let made = cache.peek(&SLOW).unwrap();
            let mut key = 100;
            while cache.contains_key(&SLOW) {
                key += 1;
                cache.get_or_insert_with(key, || made.clone());
            }
        }),
    ];
    for (how, way) in ways {
        Waits::new(Cache::builder()).others_are_freed(how, way);
    }
}

/// It may use the cache under pins of its own, also for longer than its call.
#[test]
fn a_listener_that_leaves_a_pin_behind_does_not_disturb_who_called_it() {
    static OTHER: LazyLock<Cache<u64, u64>> = LazyLock::new(|| Cache::new(10));
    let pins = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&pins);
    let tell = move |_: &u64, _: &String, _| kept.lock().unwrap().push(OTHER.pin_owned());
    let cache = Cache::builder().max_entries(10).on_removal(tell).build();
    for key in 0..1000 {
        cache.insert(key % 20, format!("value {key}")).unwrap();
    }
    let left = 1000 - cache.len();
    assert_eq!(pins.lock().unwrap().len(), left);
    assert!(cache.iter().all(|(_, value)| value.starts_with("value ")));
}
