//! Single flight under threads and tasks [F1]..[F7]: of all callers that miss a key one loads it, a caller that fails is
//! followed by another, nobody sleeps forever (shuttle reports threads that do), and nobody gets what is older than a write.
#![cfg(shuttle)]

use std::cell::{Cell, RefCell};
use std::future::{Future, pending};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use koel::{LoadError, RandomState};
use shuttle::future::block_on;
use shuttle::sync::atomic::{AtomicU64, Ordering};
use shuttle::thread;
use shuttle_tests::{Identity, explore, pause};

type Cache = koel::Cache<u64, u64, Identity>;
type Builder = koel::CacheBuilder<u64, u64, RandomState>;

const KEY: u64 = 1;

fn cache() -> Cache {
    let builder: Builder = koel::Cache::builder();
    builder.max_weight(4).estimated_entries(1).hasher(Identity::default()).build()
}

/// Loaders of one key.
#[derive(Default)]
struct Loaders {
    running: AtomicU64,
    started: AtomicU64,
}

/// A loader that runs.
struct Loader<'a>(&'a Loaders);

impl Loaders {
    /// Starts the next loader; returns it and its number. There must be no other until it is dropped.
    fn start(&self) -> (Loader<'_>, u64) {
        assert_eq!(self.running.fetch_add(1, Ordering::SeqCst), 0, "two load at once");
        (Loader(self), self.started.fetch_add(1, Ordering::SeqCst))
    }
}

impl Drop for Loader<'_> {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::SeqCst);
    }
}

#[test]
fn of_all_who_miss_a_key_one_loads_it() {
    explore(500, || {
        let (cache, loaders) = (cache(), Loaders::default());
        let load = || {
            let (_loader, number) = loaders.start();
            pause();
            70 + number
        };
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| assert_eq!(cache.get_or_insert_with(KEY, load), 70));
            }
            for _ in 0..2 {
                scope.spawn(|| assert_eq!(block_on(cache.get_or_insert_async(KEY, async { load() })), 70));
            }
        });
        assert_eq!((loaders.started.load(Ordering::SeqCst), cache.get(&KEY)), (1, Some(70)));
    });
}

/// Loaders that fail in one of two ways: by an error, or by a panic.
fn who_waits_for_one_that_fails_loads(panics: bool) {
    const FAIL: u64 = 2;
    explore(500, move || {
        let (cache, loaders, failed) = (cache(), Loaders::default(), AtomicU64::new(0));
        let load = || {
            let (_loader, number) = loaders.start();
            pause();
            match number {
                0..FAIL if panics => resume_unwind(Box::new("in a loader")),
                0..FAIL => Err("in a loader"),
                number => Ok(number),
            }
        };
        let ask = |as_task: bool| {
            let got = catch_unwind(AssertUnwindSafe(|| match as_task {
                true => block_on(cache.try_get_or_insert_async(KEY, async { load() })),
                false => cache.try_get_or_insert_with(KEY, load),
            }));
            match got {
                Ok(Ok(value)) => assert_eq!(value, FAIL),
                Ok(Err(error)) => {
                    assert!(!panics && matches!(error, LoadError::Loader(_)));
                    failed.fetch_add(1, Ordering::SeqCst);
                }
                Err(_) => {
                    assert!(panics, "a panic that no loader threw");
                    failed.fetch_add(1, Ordering::SeqCst);
                }
            }
        };
        thread::scope(|scope| {
            for i in 0..5 {
                let ask = &ask;
                scope.spawn(move || ask(i % 2 == 1));
            }
        });
        assert_eq!(failed.load(Ordering::SeqCst), FAIL);
        assert_eq!((loaders.started.load(Ordering::SeqCst), cache.get(&KEY)), (FAIL + 1, Some(FAIL)));
    });
}

#[test]
fn who_waits_for_one_that_fails_loads_itself() {
    who_waits_for_one_that_fails_loads(false);
}

#[test]
fn who_waits_for_one_that_panics_loads_itself() {
    who_waits_for_one_that_fails_loads(true);
}

/// From a load that was over when it came, a caller gets at most the value.
#[test]
fn an_error_is_shared_with_who_waits_and_not_remembered() {
    const FAIL: u64 = 2;
    explore(500, || {
        let (cache, loaders, over) = (cache(), Loaders::default(), AtomicU64::new(0));
        let ask = |as_task: bool| {
            let (over_before, mut own) = (over.load(Ordering::SeqCst), None);
            let mut load = || {
                let (_loader, number) = loaders.start();
                own = Some(number);
                pause();
                if number < FAIL { Err(number) } else { Ok(number) }
            };
            let got = match as_task {
                true => block_on(cache.try_get_or_insert_async_shared(KEY, async { load() })),
                false => cache.try_get_or_insert_with_shared(KEY, load),
            };
            match got {
                Ok(value) => assert_eq!(value, FAIL),
                Err(error) => {
                    let number = *error.into_loader().expect("its loader's error");
                    assert!((over_before..FAIL).contains(&number), "{number} of a load that was over");
                    assert!(own.is_none_or(|own| own == number));
                }
            }
            if own.is_some() {
                over.fetch_add(1, Ordering::SeqCst);
            }
        };
        thread::scope(|scope| {
            for i in 0..5 {
                let ask = &ask;
                scope.spawn(move || ask(i % 2 == 1));
            }
        });
        let started = loaders.started.load(Ordering::SeqCst);
        assert!((1..=FAIL + 1).contains(&started));
        assert_eq!(cache.get(&KEY), (started > FAIL).then_some(FAIL));
    });
}

/// Tasks that are dropped while they load, or wait.
#[test]
fn who_waits_for_one_that_is_dropped_loads_itself() {
    explore(700, || {
        let (cache, loaders) = (cache(), Loaders::default());
        let give_up = || {
            // It counts as loading until its task is about to be dropped: the next may lead before it is dropped.
            let loading = RefCell::new(None);
            let never = async {
                loading.replace(Some(loaders.start()));
                pending::<u64>().await
            };
            let mut task = pin!(cache.get_or_insert_async(KEY, never));
            for _ in 0..2 {
                match task.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                    Poll::Ready(value) => return assert_eq!(value, 70),
                    Poll::Pending => pause(),
                }
            }
            drop(loading.take());
        };
        let load = || {
            let _loader = loaders.start();
            pause();
            70
        };
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(give_up);
            }
            for _ in 0..2 {
                scope.spawn(|| assert_eq!(cache.get_or_insert_with(KEY, load), 70));
            }
            scope.spawn(|| assert_eq!(block_on(cache.get_or_insert_async(KEY, async { load() })), 70));
        });
        assert_eq!(cache.get(&KEY), Some(70));
    });
}

/// The source changes, and then the cache is told, by a removal or by the new value.
#[test]
fn nobody_gets_what_is_older_than_a_write_that_was_over() {
    explore(500, || {
        let (cache, source) = (cache(), AtomicU64::new(0));
        let load = || {
            let now = source.load(Ordering::SeqCst);
            pause();
            now
        };
        // What has been written to the cache so far.
        let written = AtomicU64::new(0);
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for _ in 0..2 {
                        let least = written.load(Ordering::SeqCst);
                        let got = cache.get_or_insert_with(KEY, load);
                        assert!(got >= least, "{got} after {least} was written");
                    }
                });
            }
            scope.spawn(|| {
                for version in 1..=4 {
                    source.store(version, Ordering::SeqCst);
                    if version % 2 == 0 {
                        cache.insert(KEY, version).expect("light enough");
                    } else {
                        cache.remove(&KEY);
                    }
                    written.store(version, Ordering::SeqCst);
                }
            });
        });
        assert!(cache.get(&KEY).is_none_or(|kept| kept == 4), "an older one was kept");
    });
}

/// Callers ask for the same keys in three orders, a thread and two tasks; the first load of one key fails, or none does.
fn of_many_keys_each_is_loaded_once(fails: bool) {
    const KEYS: u64 = 3;
    explore(400, move || {
        let cache = cache();
        let loaders: [Loaders; KEYS as usize] = Default::default();
        let failed = AtomicU64::new(0);
        let load = |keys: Vec<u64>| {
            let started: Vec<_> = keys.iter().map(|&key| loaders[key as usize].start()).collect();
            pause();
            let fails =
                fails && keys.iter().zip(&started).any(|(&key, &(_, number))| (key, number) == (KEY, 0));
            failed.fetch_add(fails.into(), Ordering::SeqCst);
            if fails { Err(()) } else { Ok(keys.into_iter().map(|key| (key, 70 + key))) }
        };
        thread::scope(|scope| {
            for caller in 0..KEYS {
                let (cache, load) = (&cache, &load);
                scope.spawn(move || {
                    let keys = [0, 1, 2].map(|i| (caller + i * (1 + caller % 2)) % KEYS);
                    let mut out = [None; KEYS as usize];
                    let loaded = match caller {
                        0 => cache.try_get_many_or_insert_with(&keys, &mut out, load),
                        _ => block_on(
                            cache.try_get_many_or_insert_async(&keys, &mut out, async |keys| load(keys)),
                        ),
                    };
                    match loaded {
                        Ok(()) => assert_eq!(out, keys.map(|key| Some(70 + key))),
                        Err(error) => assert_eq!(error, LoadError::Loader(())),
                    }
                });
            }
        });
        assert_eq!(failed.load(Ordering::SeqCst), fails.into());
        for (key, loaders) in (0..).zip(&loaders) {
            let started = loaders.started.load(Ordering::SeqCst);
            assert!(started == 1 || fails && started == 2, "{key} was loaded {started} times");
            assert_eq!(cache.get(&key), Some(70 + key));
        }
    });
}

#[test]
fn of_many_keys_that_several_miss_each_is_loaded_once() {
    of_many_keys_each_is_loaded_once(false);
}

#[test]
fn of_many_keys_those_that_could_not_be_loaded_are_loaded_again() {
    of_many_keys_each_is_loaded_once(true);
}

/// Each key's loader asks for the next key: one of them gets an error, and all end.
#[test]
fn loaders_that_would_wait_for_each_other_are_told() {
    const KEYS: u64 = 3;
    explore(400, || {
        let cache = cache();
        let told = AtomicU64::new(0);
        thread::scope(|scope| {
            for key in 0..KEYS {
                let (cache, told) = (&cache, &told);
                scope.spawn(move || {
                    let recursion = Cell::new(false);
                    let next = || -> Result<u64, ()> {
                        pause();
                        match cache.try_get_or_insert_with((key + 1) % KEYS, || Ok::<u64, ()>(70)) {
                            Ok(value) => Ok(value),
                            Err(error) => {
                                recursion.set(matches!(error, LoadError::Recursion));
                                Err(())
                            }
                        }
                    };
                    let got = cache.try_get_or_insert_with(key, next);
                    assert!(got == Ok(70) || recursion.get(), "{got:?}");
                    told.fetch_add(u64::from(got.is_err()), Ordering::SeqCst);
                });
            }
        });
        assert!(told.load(Ordering::SeqCst) < KEYS, "all were told");
    });
}
