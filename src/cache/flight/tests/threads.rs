//! Threads that load, and wait for others that load.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

use super::{Cache, Count, LONG, LoadOnce, until};
use crate::cache::flight::LoadError;

#[test]
fn the_value_is_loaded_and_kept() {
    let cache = LoadOnce::new();
    assert_eq!(cache.get_or_insert_with(&1, || 10), 10);
    assert_eq!(cache.get_or_insert_with(&1, || panic!("it is there")), 10);
    assert_eq!((cache.get(&1), cache.loads()), (Some(10), 0));
}

#[test]
fn of_many_threads_one_loads() {
    const THREADS: usize = 16;
    for round in 0..50 {
        let (cache, loads, start) = (Cache::new(), Count::default(), Barrier::new(THREADS));
        thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    start.wait();
                    let value = cache.get_or_insert_with(&round, || {
                        loads.add();
                        round + 7
                    });
                    assert_eq!(value, round + 7);
                });
            }
        });
        assert_eq!((loads.get(), cache.loads()), (1, 0));
    }
}

#[test]
fn other_keys_are_loaded_meanwhile() {
    let cache = Cache::new();
    let shared = &cache;
    let value = cache.get_or_insert_with(&0, || {
        thread::scope(|scope| {
            let others =
                (1..200).map(|key| scope.spawn(move || shared.get_or_insert_with(&key, || 1)).join());
            others.map(Result::unwrap).sum()
        })
    });
    assert_eq!((value, cache.loads()), (199, 0));
}

/// Starts a load that fails as `fail` says when six others wait for it; of these, the first two fail as well.
fn one_after_the_other(fail: impl Fn() -> Result<u32, &'static str> + Sync) {
    const WAITING: usize = 6;
    let (cache, loads) = (Cache::new(), Count::default());
    let one = |leads: bool| {
        cache.try_get_or_insert_with(&1, || {
            let before = loads.add();
            assert_eq!(before == 0, leads);
            until(|| cache.followers(&1) == WAITING - before);
            if before < 3 { fail() } else { Ok(7) }
        })
    };
    let results: Vec<_> = thread::scope(|scope| {
        let leader = scope.spawn(|| catch_unwind(AssertUnwindSafe(|| one(true))));
        until(|| loads.get() == 1);
        let others: Vec<_> =
            (0..WAITING).map(|_| scope.spawn(|| catch_unwind(AssertUnwindSafe(|| one(false))))).collect();
        [leader].into_iter().chain(others).map(|thread| thread.join().unwrap()).collect()
    });
    let good = results.iter().filter(|result| matches!(result, Ok(Ok(7)))).count();
    assert_eq!((good, loads.get(), cache.get(&1), cache.loads()), (WAITING - 2, 4, Some(7), 0));
}

#[test]
fn after_an_error_the_next_loads() {
    one_after_the_other(|| Err("no"));
}

#[test]
fn after_a_panic_the_next_loads() {
    // Not `panic!`, which would print.
    one_after_the_other(|| std::panic::resume_unwind(Box::new("no")));
}

#[test]
fn an_error_is_its_callers_and_leaves_nothing_behind() {
    let cache = Cache::new();
    let error = cache.try_get_or_insert_with(&1, || Err("no")).unwrap_err();
    assert_eq!((error, error.into_loader(), cache.loads()), (LoadError::Loader("no"), Some("no"), 0));
    assert_eq!(cache.get_or_insert_with(&1, || 10), 10);
}

#[test]
fn who_waits_too_long_is_told_and_the_load_goes_on() {
    let (cache, waited) = (Cache::new(), Count::default());
    let most = Duration::from_millis(20);
    thread::scope(|scope| {
        let leader = scope.spawn(|| {
            cache.get_or_insert_with(&1, || {
                until(|| waited.get() == 2);
                7
            })
        });
        until(|| cache.loads() == 1);
        for most in [most, Duration::ZERO] {
            let start = Instant::now();
            let result = cache.try_get_or_insert_timeout(&1, most, || Ok::<_, ()>(8));
            assert_eq!(result, Err(LoadError::TimedOut));
            assert!(start.elapsed() >= most);
            waited.add();
        }
        assert_eq!(leader.join().unwrap(), 7);
    });
    assert_eq!((cache.get(&1), cache.loads()), (Some(7), 0));
}

#[test]
fn who_has_time_gets_the_value_and_a_loader_has_all_the_time() {
    let (cache, go) = (Cache::new(), Count::default());
    thread::scope(|scope| {
        let leader = scope.spawn(|| {
            cache.try_get_or_insert_timeout(&1, Duration::ZERO, || {
                until(|| go.get() == 1);
                Ok::<_, ()>(7)
            })
        });
        until(|| cache.loads() == 1);
        let follower = scope.spawn(|| cache.try_get_or_insert_timeout(&1, LONG, || Err("not called")));
        until(|| cache.followers(&1) == 1);
        go.add();
        assert_eq!((leader.join().unwrap(), follower.join().unwrap()), (Ok(7), Ok(7)));
    });
}

#[test]
fn followers_get_a_value_that_the_cache_does_not_keep() {
    let (cache, loads) = (Cache::new(), Count::default());
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let value = cache.get_or_insert_with(&1, || {
                    loads.add();
                    until(|| cache.followers(&1) == 7);
                    cache.refuse();
                    7
                });
                assert_eq!(value, 7);
            });
        }
    });
    assert_eq!((loads.get(), cache.get(&1), cache.loads()), (1, None, 0));
}

/// A value that counts its copies.
struct Counted(Arc<()>);

thread_local!(static CLONES_LEFT: Cell<usize> = const { Cell::new(usize::MAX) });

impl Clone for Counted {
    fn clone(&self) -> Self {
        CLONES_LEFT.with(|left| match left.get() {
            0 => std::panic::resume_unwind(Box::new("no more clones")),
            n => left.set(n - 1),
        });
        Counted(Arc::clone(&self.0))
    }
}

#[test]
fn every_clone_is_dropped() {
    let (cache, value) = (LoadOnce::<u32, Counted>::new(), Arc::new(()));
    let load = || {
        until(|| cache.followers(&1) == 3);
        Counted(Arc::clone(&value))
    };
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| drop(cache.get_or_insert_with(&1, load)));
        }
    });
    assert_eq!(Arc::strong_count(&value), 2);
    cache.evict(&1);
    assert_eq!(Arc::strong_count(&value), 1);
}

/// The leader clones for the cache and for its followers. Whichever clone panics, a follower gets a value.
#[test]
fn a_panic_in_clone_stops_nobody_else() {
    for clones in 0..2 {
        let (cache, value) = (LoadOnce::<u32, Counted>::new(), Arc::new(()));
        let loads = Count::default();
        let get = |key| {
            cache.get_or_insert_with(&key, || {
                if loads.add() == 0 {
                    until(|| cache.followers(&1) == 1);
                }
                Counted(Arc::clone(&value))
            })
        };
        thread::scope(|scope| {
            let leader = scope.spawn(|| {
                CLONES_LEFT.set(clones);
                catch_unwind(AssertUnwindSafe(|| get(1))).is_err()
            });
            until(|| loads.get() == 1);
            let follower = scope.spawn(|| drop(get(1)));
            assert!(leader.join().unwrap());
            follower.join().unwrap();
        });
        assert_eq!((loads.get(), cache.loads()), (2 - clones, 0));
        assert_eq!(Arc::strong_count(&value), 2);
    }
}

thread_local! {
    static ARMED: Cell<bool> = const { Cell::new(false) };
}

/// A key or value whose drop panics once on a thread that has asked for that.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Fragile(u32);

impl Drop for Fragile {
    fn drop(&mut self) {
        assert!(!ARMED.replace(false), "in a drop");
    }
}

#[test]
fn who_sleeps_is_woken_though_the_drop_of_the_key_panics() {
    let (cache, key) = (LoadOnce::<Fragile, u32>::new(), Fragile(1));
    thread::scope(|scope| {
        let leader = scope.spawn(|| {
            let load = || {
                until(|| cache.followers(&key) == 1);
                // So that the other thread sleeps; if it is late, it finds that the flight has ended.
                thread::sleep(Duration::from_millis(20));
                ARMED.set(true);
                7
            };
            catch_unwind(AssertUnwindSafe(|| cache.get_or_insert_with(&key, load))).is_err()
        });
        until(|| cache.loads() == 1);
        let waited = cache.try_get_or_insert_timeout(&key, LONG, || Err("it is being loaded"));
        assert!(matches!(waited, Ok(7)), "{waited:?}");
        assert!(leader.join().unwrap(), "the panic goes on in the leader");
    });
    assert_eq!(cache.loads(), 0);
}

#[test]
fn a_drop_of_the_key_that_panics_after_its_loader_goes_no_further() {
    let (cache, key) = (LoadOnce::<Fragile, u32>::new(), Fragile(1));
    let load = || {
        ARMED.set(true);
        panic!("in the loader")
    };
    let thrown = catch_unwind(AssertUnwindSafe(|| cache.get_or_insert_with(&key, load)));
    assert_eq!(thrown.unwrap_err().downcast_ref(), Some(&"in the loader"));
    assert_eq!((cache.loads(), ARMED.get()), (0, false));
}
