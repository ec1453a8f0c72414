//! Loads of a key against writes to it [F5], in both caches: nobody gets what is older than a write that was over, however the
//! key was written to, and whether or not what was written has stayed; and loads against entries of a dump, which are older
//! [L6].
#![cfg(shuttle)]

use std::sync::Arc;
use std::time::Duration;

use koel::{Cache, CacheBuilder, InlineCache, ManualClock, Operation, RandomState};
use shuttle::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use shuttle::thread;
use shuttle_tests::{Identity, explore, pause};

type Entries = Cache<u64, u64, Identity>;
type Inline = InlineCache<u64, u64, Identity>;

const KEY: u64 = 1;

/// How a key is written to.
#[derive(Clone, Copy, Debug)]
enum Write {
    Insert,
    /// Only if the key is absent; an older value that is there is removed.
    TryInsert,
    Remove,
    /// Only if the key is there.
    Update,
    Compute,
    /// As `Compute`; the source changes in the closure.
    Decide,
    /// As `Remove`; the source changes in the condition, if that is called.
    Condition,
    Clear,
}

/// What the tests need of each cache.
trait Loads: Send + Sync + 'static {
    /// A cache for one entry.
    fn new() -> Self;
    fn get(&self) -> Option<u64>;
    fn get_or_insert_with(&self, load: impl FnOnce() -> u64) -> u64;
    fn take(&self) -> Option<u64>;
    /// Changes the source, and then tells the cache.
    fn write(&self, how: Write, value: u64, change: impl Fn());
    /// Has the key's entry evicted.
    fn insert_another(&self, key: u64);
}

macro_rules! loads {
    ($cache:ty, $new:expr, $insert:ident, $is_new:ident, $update:ident) => {
        impl Loads for $cache {
            fn new() -> Self {
                $new
            }

            fn get(&self) -> Option<u64> {
                self.get(&KEY)
            }

            fn get_or_insert_with(&self, load: impl FnOnce() -> u64) -> u64 {
                self.get_or_insert_with(KEY, load)
            }

            fn take(&self) -> Option<u64> {
                self.remove(&KEY)
            }

            fn write(&self, how: Write, value: u64, change: impl Fn()) {
                if !matches!(how, Write::Decide | Write::Condition) {
                    change();
                }
                match how {
                    Write::Insert => $insert(self, KEY, value),
                    Write::TryInsert => {
                        while !$is_new(self, KEY, value) {
                            self.remove(&KEY);
                        }
                    }
                    Write::Remove => drop(self.remove(&KEY)),
                    Write::Update => $update(self, KEY, value),
                    // The value that is there is older.
                    Write::Compute => drop(self.compute(KEY, |there| match there {
                        Some(_) => Operation::Remove,
                        None => Operation::Abort(()),
                    })),
                    Write::Decide => drop(self.compute(KEY, |there| {
                        pause();
                        change();
                        match there {
                            Some(_) => Operation::Remove,
                            None => Operation::Abort(()),
                        }
                    })),
                    Write::Condition => {
                        let condition = |_: &u64, _: &u64| {
                            pause();
                            change();
                            true
                        };
                        if self.remove_if(&KEY, condition).is_none() {
                            change();
                            self.remove(&KEY);
                        }
                    }
                    Write::Clear => self.clear(),
                }
            }

            fn insert_another(&self, key: u64) {
                $insert(self, key, 0);
            }
        }
    };
}

fn insert(cache: &Entries, key: u64, value: u64) {
    cache.insert(key, value).expect("light enough");
}

/// Whether the key was new, and has been inserted.
fn is_new(cache: &Entries, key: u64, value: u64) -> bool {
    cache.try_insert(key, value).expect("light enough").is_ok()
}

fn is_new_inline(cache: &Inline, key: u64, value: u64) -> bool {
    cache.try_insert(key, value).is_ok()
}

fn update(cache: &Entries, key: u64, value: u64) {
    cache.update_ref(&key, |_| value).expect("light enough");
}

fn update_inline(cache: &Inline, key: u64, value: u64) {
    cache.update(key, |_| value);
}

fn insert_inline(cache: &Inline, key: u64, value: u64) {
    cache.insert(key, value);
}

fn entries() -> CacheBuilder<u64, u64, RandomState> {
    Cache::builder().max_weight(1).estimated_entries(1)
}

/// A cache whose values are due as soon as they are there [F8].
fn refreshing() -> Entries {
    const AHEAD: Duration = Duration::from_secs(1);
    // Longer, or the value would never be refreshed, but by no more than the precision of a deadline.
    const LIFE: Duration = AHEAD.saturating_add(Duration::from_nanos(1));
    let builder = entries().expiry(|_, _| Some(LIFE)).refresh_ahead(AHEAD);
    let cache = builder.clock(ManualClock::new()).hasher(Identity::default()).build();
    insert(&cache, KEY, 0);
    assert!(cache.needs_refresh(&KEY));
    cache
}

loads!(Entries, entries().hasher(Identity::default()).build(), insert, is_new, update);
loads!(
    Inline,
    {
        let builder: koel::InlineCacheBuilder<u64, u64, RandomState> = InlineCache::builder();
        builder.max_entries(1).hasher(Identity::default()).build()
    },
    insert_inline,
    is_new_inline,
    update_inline
);

/// The source changes, and then the cache is told.
fn nobody_gets_what_is_older<C: Loads>(how: Write) {
    nobody_gets_what_is_older_from(C::new, how);
}

/// The same, for a cache that `new` makes.
fn nobody_gets_what_is_older_from<C: Loads>(new: fn() -> C, how: Write) {
    const LAST: u64 = 3;
    explore(1000, move || {
        let (cache, source) = (new(), AtomicU64::new(0));
        let load = || {
            let now = source.load(Ordering::SeqCst);
            pause();
            now
        };
        // What has been written to the cache so far.
        let written = AtomicU64::new(0);
        let look = || {
            let least = written.load(Ordering::SeqCst);
            let got = cache.get_or_insert_with(load);
            assert!(got >= least, "{got} after {least} was written");
        };
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| (0..2).for_each(|_| look()));
            }
            scope.spawn(|| (2..6).for_each(|other| cache.insert_another(other)));
            scope.spawn(|| {
                for version in 1..=LAST {
                    cache.write(how, version, || source.store(version, Ordering::SeqCst));
                    written.store(version, Ordering::SeqCst);
                }
            });
        });
        assert!(cache.get().is_none_or(|kept| kept == LAST), "an older one was kept");
    });
}

/// The key is loaded, then cleared, as a listener is told, and asked for again. (An inline cache has no listener.)
#[test]
fn nobody_gets_what_he_has_cleared() {
    explore(1000, || {
        let is_cleared = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&is_cleared);
        let builder = entries().on_removal(move |_, value, _| told.store(*value == 7, Ordering::SeqCst));
        let cache = builder.hasher(Identity::default()).build();
        thread::scope(|scope| {
            scope.spawn(|| assert!((7..=8).contains(&Loads::get_or_insert_with(&cache, || 7))));
            scope.spawn(|| {
                cache.clear();
                let is_cleared = is_cleared.load(Ordering::SeqCst);
                let got = Loads::get_or_insert_with(&cache, || 8);
                assert!(!is_cleared || got == 8, "{got} after it was cleared");
            });
        });
    });
}

/// The entries of a dump are older than what is loaded meanwhile [L6].
#[test]
fn nobody_finds_what_was_dumped_once_he_has_loaded_the_key() {
    explore(1000, || {
        let (old, cache) = (Entries::new(), Entries::new());
        insert(&old, KEY, 0);
        let dump = old.dump();
        thread::scope(|scope| {
            scope.spawn(|| drop(cache.load(dump)));
            scope.spawn(|| {
                cache.take();
                let load = || {
                    pause();
                    1
                };
                let loaded = Loads::get_or_insert_with(&cache, load);
                for _ in 0..3 {
                    assert_eq!(Loads::get(&cache), Some(loaded), "{loaded} was there");
                    pause();
                }
            });
        });
    });
}

#[test]
fn nobody_gets_what_is_older_than_an_insertion() {
    nobody_gets_what_is_older::<Entries>(Write::Insert);
}

#[test]
fn nobody_gets_what_is_older_than_what_was_inserted_as_it_was_absent() {
    nobody_gets_what_is_older::<Entries>(Write::TryInsert);
}

#[test]
fn nobody_gets_what_is_older_than_a_removal() {
    nobody_gets_what_is_older::<Entries>(Write::Remove);
}

#[test]
fn nobody_gets_what_is_older_than_an_update_by_reference() {
    nobody_gets_what_is_older::<Entries>(Write::Update);
}

#[test]
fn nobody_gets_what_is_older_than_what_was_computed() {
    nobody_gets_what_is_older::<Entries>(Write::Compute);
}

#[test]
fn nobody_gets_what_is_older_than_what_was_decided() {
    nobody_gets_what_is_older::<Entries>(Write::Decide);
}

#[test]
fn nobody_gets_what_is_older_than_a_condition() {
    nobody_gets_what_is_older::<Entries>(Write::Condition);
}

#[test]
fn nobody_gets_what_is_older_than_a_condition_of_what_is_refreshed() {
    nobody_gets_what_is_older_from(refreshing, Write::Condition);
}

#[test]
fn nobody_gets_what_is_older_than_a_clearing() {
    nobody_gets_what_is_older::<Entries>(Write::Clear);
}

#[test]
fn nobody_gets_what_is_older_than_an_insertion_of_what_is_refreshed() {
    nobody_gets_what_is_older_from(refreshing, Write::Insert);
}

#[test]
fn nobody_gets_what_is_older_than_a_removal_of_what_is_refreshed() {
    nobody_gets_what_is_older_from(refreshing, Write::Remove);
}

#[test]
fn nobody_gets_what_is_older_than_what_was_computed_of_what_is_refreshed() {
    nobody_gets_what_is_older_from(refreshing, Write::Compute);
}

#[test]
fn nobody_gets_what_is_older_than_what_was_decided_of_what_is_refreshed() {
    nobody_gets_what_is_older_from(refreshing, Write::Decide);
}

#[test]
fn nobody_gets_what_is_older_than_a_clearing_of_what_is_refreshed() {
    nobody_gets_what_is_older_from(refreshing, Write::Clear);
}

#[test]
fn nobody_gets_what_is_older_than_an_insertion_into_an_inline_cache() {
    nobody_gets_what_is_older::<Inline>(Write::Insert);
}

#[test]
fn nobody_gets_what_is_older_than_what_was_inserted_into_an_inline_cache_as_it_was_absent() {
    nobody_gets_what_is_older::<Inline>(Write::TryInsert);
}

#[test]
fn nobody_gets_what_is_older_than_a_removal_from_an_inline_cache() {
    nobody_gets_what_is_older::<Inline>(Write::Remove);
}

#[test]
fn nobody_gets_what_is_older_than_what_was_computed_in_an_inline_cache() {
    nobody_gets_what_is_older::<Inline>(Write::Compute);
}

#[test]
fn nobody_gets_what_is_older_than_what_was_decided_in_an_inline_cache() {
    nobody_gets_what_is_older::<Inline>(Write::Decide);
}

#[test]
fn nobody_gets_what_is_older_than_a_clearing_of_an_inline_cache() {
    nobody_gets_what_is_older::<Inline>(Write::Clear);
}
