//! Keys whose own code uses the cache, or panics, while their values are refreshed: no caller waits for itself.

use std::cell::Cell;
use std::hash::{Hash, Hasher};
use std::sync::OnceLock;
use std::thread;
use std::time::Duration;

use koel::{Cache, LoadError, ManualClock};

use crate::common::catch;

const LIFE: Duration = Duration::from_secs(60);
const AHEAD: Duration = Duration::from_secs(10);

thread_local! {
    /// How many more clones of keys are ordinary; the next one asks for the key, when its value has expired.
    static CLONES: Cell<Option<u32>> = const { Cell::new(None) };
    /// The next comparison panics.
    static EQ_PANICS: Cell<bool> = const { Cell::new(false) };
    /// Whether a drop writes to its key.
    static DROP_WRITES: Cell<bool> = const { Cell::new(false) };
}

#[derive(Debug)]
struct Key(u64);

/// A cache that keys can reach, and its clock.
fn shared() -> &'static (Cache<Key, u64>, ManualClock) {
    static SHARED: OnceLock<(Cache<Key, u64>, ManualClock)> = OnceLock::new();
    SHARED.get_or_init(|| {
        let clock = ManualClock::new();
        let builder = Cache::builder().max_entries(100).time_to_live(LIFE).refresh_ahead(AHEAD);
        (builder.clock(clock.clone()).build(), clock)
    })
}

impl Clone for Key {
    fn clone(&self) -> Self {
        match CLONES.get() {
            Some(0) => {
                CLONES.set(None);
                let (cache, clock) = shared();
                clock.advance(AHEAD);
                // It is absent now, and may be loaded by the code that clones it.
                let asked = cache.try_get_or_insert_with(Key(self.0), || Ok::<_, ()>(5));
                assert!(matches!(asked, Ok(5) | Err(LoadError::Recursion)), "{asked:?}");
            }
            more => CLONES.set(more.map(|n| n - 1)),
        }
        Key(self.0)
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        assert!(!EQ_PANICS.take(), "as planned");
        self.0 == other.0
    }
}

impl Eq for Key {}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl Drop for Key {
    fn drop(&mut self) {
        if DROP_WRITES.take() {
            shared().0.remove(&Key(self.0));
        }
    }
}

/// One after the other, as they share a cache.
#[test]
fn a_key_may_ask_for_itself_and_panic() {
    let (cache, clock) = shared();
    for clones in 0..2 {
        cache.insert(Key(1), 7).unwrap();
        clock.advance(LIFE - AHEAD);
        CLONES.set(Some(clones));
        let got = cache.get_or_insert_with_ref(&Key(1), || 8);
        assert!(matches!(got, 5 | 8), "clone {clones}: {got}");
        assert_eq!(CLONES.get(), None, "clone {clones} was made");
        cache.clear();
    }

    // A key that is compared under a lock is dropped when the lock is released.
    let got = cache.get_or_insert_with(Key(1), || {
        let other = thread::spawn(|| {
            EQ_PANICS.set(true); // with the one that is being loaded
            let compared = catch(|| {
                DROP_WRITES.set(true);
                cache.get_or_insert_with(Key(1), || unreachable!())
            });
            (compared.unwrap_err(), DROP_WRITES.get())
        });
        assert_eq!(other.join().unwrap(), ("as planned".to_string(), false));
        8
    });
    assert_eq!(got, 8);
}
