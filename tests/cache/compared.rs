//! An `Eq` that looks up other keys when it compares keys that are being loaded: it runs under a lock, and so no other user
//! code may run from there.

use std::cell::Cell;
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, LazyLock};
use std::thread;
use std::time::Duration;

use koel::{Cache, LoadError, ManualClock};

thread_local! {
    /// What the next comparison of equal keys does in addition.
    static ON_THE_WAY: Cell<Option<fn()>> = const { Cell::new(None) };
}

#[derive(Clone, Debug)]
struct Key(u64);

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        if self.0 == other.0 {
            if let Some(look) = ON_THE_WAY.take() {
                look();
            }
        }
        self.0 == other.0
    }
}

impl Eq for Key {}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

const LOADED: Key = Key(1);
const EXPIRED: Key = Key(100);
const LIFE: Duration = Duration::from_secs(10);

/// While `LOADED` is being loaded another thread does `first`, and then asks for that key; when the key is compared it does
/// `look`.
fn look_where_it_is_compared<V: Clone + Default + Send + Sync>(
    cache: &'static Cache<Key, V>,
    first: fn(),
    look: fn(),
) {
    cache.get_or_insert_with(LOADED, || {
        let (done, ended) = channel();
        thread::spawn(move || {
            first();
            ON_THE_WAY.set(Some(look));
            let load = || Err::<V, _>("it is being loaded");
            let asked = cache.try_get_or_insert_with_timeout(LOADED, Duration::ZERO, load).map(drop);
            let _ = done.send((asked, ON_THE_WAY.take().is_none()));
        });
        // A panic would wait for the same lock.
        let (asked, has_looked) = ended.recv_timeout(Duration::from_secs(60)).unwrap_or_else(|_| {
            eprintln!("who compares keys waits for himself");
            std::process::abort()
        });
        assert_eq!((asked, has_looked), (Err(LoadError::TimedOut), true));
        V::default()
    });
}

#[test]
fn no_listener_is_told_from_a_comparison() {
    static CLOCK: LazyLock<ManualClock> = LazyLock::new(ManualClock::new);
    static TOLD: AtomicUsize = AtomicUsize::new(0);
    static CACHE: LazyLock<Cache<Key, u64>> = LazyLock::new(|| {
        let builder = Cache::builder().max_entries(100).time_to_live(LIFE).clock(CLOCK.clone());
        let told = |_: &Key, _: &u64, _| {
            TOLD.fetch_add(1, Ordering::Relaxed);
            CACHE.remove(&LOADED);
        };
        builder.on_removal(told).build()
    });
    CACHE.insert(EXPIRED, 1).unwrap();
    CLOCK.advance(LIFE);
    look_where_it_is_compared(
        &CACHE,
        || {},
        || {
            assert_eq!((CACHE.get(&EXPIRED), TOLD.load(Ordering::Relaxed)), (None, 0));
        },
    );
    assert_eq!((CACHE.get(&EXPIRED), CACHE.contains_key(&EXPIRED)), (None, false));
    assert!(TOLD.load(Ordering::Relaxed) > 0, "by who finds it without a lock");
}

/// A value that notes that it is dropped, and writes to its cache.
struct Writes;

static DROPPED: AtomicUsize = AtomicUsize::new(0);
static TIME: LazyLock<ManualClock> = LazyLock::new(ManualClock::new);
static HEAVY: LazyLock<Cache<Key, Option<Arc<Writes>>>> = LazyLock::new(|| {
    let weigh = |_: &Key, value: &Option<_>| if Option::is_some(value) { 1 << 19 } else { 1 };
    let builder = Cache::builder().max_weight(1 << 20).weigher(weigh);
    builder.time_to_live(LIFE).clock(TIME.clone()).build()
});

impl Drop for Writes {
    fn drop(&mut self) {
        HEAVY.remove(&LOADED);
        DROPPED.fetch_add(1, Ordering::Relaxed);
    }
}

/// Heavy entries that have left a cache are freed by any caller, such as one that finds an expired entry.
#[test]
fn nothing_is_dropped_from_a_comparison() {
    HEAVY.insert(EXPIRED, None).unwrap();
    TIME.advance(LIFE);
    let first = || {
        HEAVY.insert(Key(5), Some(Arc::new(Writes))).unwrap();
        HEAVY.remove(&Key(5));
    };
    look_where_it_is_compared(&HEAVY, first, || {
        let before = DROPPED.load(Ordering::Relaxed);
        assert!(HEAVY.get(&EXPIRED).is_none());
        assert_eq!(DROPPED.load(Ordering::Relaxed), before);
    });
    HEAVY.flush();
    assert_eq!(DROPPED.load(Ordering::Relaxed), 1);
}
