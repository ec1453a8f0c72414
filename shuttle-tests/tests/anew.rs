//! Values that are stale to their callers are loaded anew [F9], in both caches: one of all callers that find a value stale
//! loads it; no caller gets a value that is stale to it and older than its call, or finds anything else in the place of what
//! was written meanwhile.
#![cfg(shuttle)]

use koel::{Cache, InlineCache, LoadError, RandomState};
use shuttle::future::block_on;
use shuttle::sync::atomic::{AtomicU64, Ordering};
use shuttle::thread;
use shuttle_tests::{Identity, explore, pause};

type Entries = Cache<u64, u64, Identity>;
type Inline = InlineCache<u64, u64, Identity>;

const KEY: u64 = 1;

/// What the tests need of each cache.
trait Loads: Send + Sync + 'static {
    /// A cache for so many entries.
    fn new(entries: u64) -> Self;
    fn get(&self) -> Option<u64>;
    fn put(&self, key: u64, value: u64);
    fn take(&self) -> Option<u64>;
    /// The value in the cache, if it is at least `least`; otherwise a thread loads it, or a task does.
    fn at_least(
        &self,
        least: u64,
        as_task: bool,
        load: impl FnOnce() -> Option<u64>,
    ) -> Result<u64, LoadError<()>>;
}

macro_rules! loads {
    ($cache:ty, $new:expr, $put:expr) => {
        impl Loads for $cache {
            fn new(entries: u64) -> Self {
                $new(entries)
            }

            fn get(&self) -> Option<u64> {
                self.get(&KEY)
            }

            fn put(&self, key: u64, value: u64) {
                $put(self, key, value);
            }

            fn take(&self) -> Option<u64> {
                self.remove(&KEY)
            }

            fn at_least(
                &self,
                least: u64,
                as_task: bool,
                load: impl FnOnce() -> Option<u64>,
            ) -> Result<u64, LoadError<()>> {
                let (load, is_stale) = (|| load().ok_or(()), |value: &u64| *value < least);
                if as_task {
                    block_on(self.try_get_or_insert_async_if(KEY, async { load() }, is_stale))
                } else {
                    self.try_get_or_insert_with_if(KEY, load, is_stale)
                }
            }
        }
    };
}

loads!(
    Entries,
    |entries| {
        let builder: koel::CacheBuilder<u64, u64, RandomState> = Cache::builder();
        builder.max_weight(entries).estimated_entries(1).hasher(Identity::default()).build()
    },
    |cache: &Entries, key, value| cache.insert(key, value).expect("light enough")
);
loads!(
    Inline,
    |entries| {
        let builder: koel::InlineCacheBuilder<u64, u64, RandomState> = InlineCache::builder();
        builder.max_entries(entries as usize).hasher(Identity::default()).build()
    },
    |cache: &Inline, key, value| cache.insert(key, value)
);

/// All callers have seen the old value; the loader may fail at first.
fn of_all_who_find_a_value_stale_one_loads_it<C: Loads>(fails: u64) {
    explore(500, move || {
        let (cache, started, failed) = (C::new(4), AtomicU64::new(0), AtomicU64::new(0));
        cache.put(KEY, 1);
        let ask = |as_task| {
            let load = || {
                let number = started.fetch_add(1, Ordering::SeqCst);
                pause();
                (number >= fails).then_some(70 + number)
            };
            match cache.at_least(2, as_task, load) {
                Ok(value) => assert_eq!(value, 70 + fails),
                Err(error) => {
                    assert_eq!(error, LoadError::Loader(()));
                    failed.fetch_add(1, Ordering::SeqCst);
                }
            }
        };
        thread::scope(|scope| {
            for i in 0..5 {
                let ask = &ask;
                scope.spawn(move || ask(i % 2 == 1));
            }
            // A caller that does not mind finds the old value meanwhile.
            scope.spawn(|| assert!(matches!(cache.at_least(0, false, || unreachable!()), Ok(1 | 70..))));
        });
        assert_eq!((started.into_inner(), failed.into_inner()), (fails + 1, fails));
        assert_eq!(cache.get(), Some(70 + fails));
    });
}

/// The source changes, and nobody tells the cache: a caller that asks for what the source had when it asked, or newer, gets
/// that.
fn nobody_gets_what_is_stale_to_him<C: Loads>() {
    explore(1000, || {
        let (cache, source) = (C::new(1), AtomicU64::new(0));
        let look = |as_task| {
            let least = source.load(Ordering::SeqCst);
            let load = || {
                let now = source.load(Ordering::SeqCst);
                pause();
                Some(now)
            };
            let got = cache.at_least(least, as_task, load).unwrap();
            assert!(got >= least, "{got}, and {least} was there");
        };
        thread::scope(|scope| {
            for as_task in [false, true, false] {
                let look = &look;
                scope.spawn(move || (0..2).for_each(|_| look(as_task)));
            }
            scope.spawn(|| {
                cache.put(2, 0);
                cache.take();
            });
            scope.spawn(|| {
                for version in 1..=3 {
                    source.store(version, Ordering::SeqCst);
                    pause();
                }
            });
        });
    });
}

/// A loaded value only takes the place of a stale one: an insertion that marked nothing, because it was called before the load
/// began, stays as well.
fn what_was_inserted_stays<C: Loads>() {
    explore(1000, || {
        let cache = C::new(4);
        cache.put(KEY, 1);
        let load = || {
            pause();
            Some(5)
        };
        thread::scope(|scope| {
            scope.spawn(|| assert!(matches!(cache.at_least(2, false, load), Ok(5 | 9))));
            scope.spawn(|| assert!(matches!(cache.at_least(2, true, load), Ok(5 | 9))));
            scope.spawn(|| {
                cache.put(KEY, 9);
                for _ in 0..3 {
                    assert_eq!(cache.get(), Some(9));
                    pause();
                }
            });
        });
        assert_eq!(cache.get(), Some(9));
    });
}

#[test]
fn of_all_who_find_a_value_of_a_cache_stale_one_loads_it() {
    of_all_who_find_a_value_stale_one_loads_it::<Entries>(0);
}

#[test]
fn of_all_who_find_a_value_of_a_cache_stale_the_next_loads_if_one_fails() {
    of_all_who_find_a_value_stale_one_loads_it::<Entries>(2);
}

#[test]
fn of_all_who_find_a_value_of_an_inline_cache_stale_one_loads_it() {
    of_all_who_find_a_value_stale_one_loads_it::<Inline>(0);
}

#[test]
fn nobody_gets_what_is_stale_to_him_from_a_cache() {
    nobody_gets_what_is_stale_to_him::<Entries>();
}

#[test]
fn nobody_gets_what_is_stale_to_him_from_an_inline_cache() {
    nobody_gets_what_is_stale_to_him::<Inline>();
}

#[test]
fn what_was_inserted_into_a_cache_stays() {
    what_was_inserted_stays::<Entries>();
}

#[test]
fn what_was_inserted_into_an_inline_cache_stays() {
    what_was_inserted_stays::<Inline>();
}
