//! Loaders that ask for further keys: a load that would wait for itself gets an error.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;

use super::{Cache, Count, until};
use crate::cache::flight::LoadError;

type Loaded = Result<u32, LoadError<()>>;

/// The result of a load, as a loader returns it.
fn pass(loaded: Loaded) -> Result<u32, ()> {
    loaded.map_err(|_| ())
}

#[test]
fn a_loader_that_asks_for_its_own_key_gets_an_error_and_can_go_on() {
    let cache = Cache::new();
    let value = cache.get_or_insert_with(&1, || {
        let inner: Loaded = cache.try_get_or_insert_with(&1, || unreachable!());
        assert_eq!(inner, Err(LoadError::Recursion));
        7
    });
    assert_eq!((value, cache.get(&1), cache.loads()), (7, Some(7), 0));
}

#[test]
fn recursion_panics_where_there_is_no_error_to_return() {
    let cache = Cache::new();
    let inner = || catch_unwind(AssertUnwindSafe(|| cache.get_or_insert_with(&1, || 8)));
    let text = cache.try_get_or_insert_with(&1, || match inner() {
        Ok(value) => Ok(value),
        Err(panic) => Err(*panic.downcast::<String>().expect("a text")),
    });
    let text = text.unwrap_err().into_loader().expect("the loader's error");
    assert!(text.contains("asked the cache for the same key"), "{text}");
    assert_eq!((cache.get(&1), cache.loads()), (None, 0));
}

#[test]
fn other_keys_may_be_asked_for() {
    fn fibonacci(cache: &Cache, n: u32) -> u32 {
        cache.get_or_insert_with(&n, || {
            if n < 2 { n } else { fibonacci(cache, n - 1) + fibonacci(cache, n - 2) }
        })
    }
    let cache = Cache::new();
    assert_eq!(fibonacci(&cache, 40), 102_334_155);
    assert_eq!((cache.get(&39), cache.loads()), (Some(63_245_986), 0));
}

#[test]
fn recursion_through_another_key_or_cache_is_noticed() {
    let (a, b) = (Cache::new(), Cache::new());
    for second in [&a, &b] {
        let mut innermost = None;
        let value = a.get_or_insert_with(&1, || {
            second.get_or_insert_with(&2, || {
                innermost = Some(a.try_get_or_insert_with(&1, || Ok::<_, ()>(0)));
                7
            })
        });
        assert_eq!((innermost, value), (Some(Err(LoadError::Recursion)), 7));
        a.clear();
    }
}

#[test]
fn recursion_is_noticed_in_a_flight_that_is_stale() {
    let cache = Cache::new();
    let value = cache.get_or_insert_with(&1, || {
        cache.remove(&1);
        let inner: Loaded = cache.try_get_or_insert_with(&1, || unreachable!());
        assert_eq!(inner, Err(LoadError::Recursion));
        7
    });
    assert_eq!((value, cache.get(&1), cache.loads()), (7, None, 0));
}

/// `n` threads, each loading a key and asking for the next one's in its loader: one gets an error, the others get values.
fn in_a_circle(n: u32, caches: &[Cache]) {
    let (loading, told) = (Count::default(), Count::default());
    let cache = |key: u32| &caches[key as usize % caches.len()];
    thread::scope(|scope| {
        for key in 0..n {
            let (loading, told, cache) = (&loading, &told, &cache);
            scope.spawn(move || {
                let loaded: Loaded = cache(key).try_get_or_insert_with(&key, || {
                    loading.add();
                    until(|| loading.get() == n as usize);
                    let next = (key + 1) % n;
                    let loaded: Loaded = cache(next).try_get_or_insert_with(&next, || unreachable!());
                    if loaded == Err(LoadError::Recursion) {
                        told.add();
                        return Ok(100);
                    }
                    pass(loaded)
                });
                assert_eq!(loaded, Ok(100));
            });
        }
    });
    assert_eq!((told.get(), caches.iter().map(Cache::loads).sum::<usize>()), (1, 0));
}

#[test]
fn threads_that_would_wait_for_each_other_are_told() {
    for _ in 0..if cfg!(miri) { 2 } else { 50 } {
        in_a_circle(2, &[Cache::new()]);
        in_a_circle(5, &[Cache::new()]);
        in_a_circle(2, &[Cache::new(), Cache::new()]);
        in_a_circle(6, &[Cache::new(), Cache::new(), Cache::new()]);
    }
}

#[test]
fn many_that_wait_for_one_are_no_circle() {
    let (cache, loads) = (Cache::new(), Count::default());
    thread::scope(|scope| {
        for key in 1..=8 {
            let (cache, loads) = (&cache, &loads);
            scope.spawn(move || {
                let value = cache.get_or_insert_with(&key, || {
                    let shared = cache.get_or_insert_with(&0, || {
                        loads.add();
                        until(|| cache.followers(&0) == 7);
                        7
                    });
                    shared + key
                });
                assert_eq!(value, 7 + key);
            });
        }
    });
    assert_eq!((loads.get(), cache.loads()), (1, 0));
}

#[test]
fn tasks_that_ask_for_their_own_key_are_told() {
    let cache = Cache::new();
    let value = pollster::block_on(cache.try_get_or_insert_async(&1, async {
        let between = cache.try_get_or_insert_async(&2, async {
            // Both ways of asking.
            let inner = cache.try_get_or_insert_with(&1, || Ok::<_, ()>(0));
            assert_eq!(inner, Err(LoadError::Recursion));
            cache.try_get_or_insert_async(&1, async { Ok::<_, ()>(0) }).await
        });
        assert_eq!(between.await, Err(LoadError::Loader(LoadError::Recursion)));
        Ok::<_, ()>(7)
    }));
    assert_eq!((value, cache.get(&1), cache.get(&2), cache.loads()), (Ok(7), Some(7), None, 0));
}
