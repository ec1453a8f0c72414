//! What a cache loads for callers that miss: once, whichever calls they use; `flight`'s own tests cover waiters.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier};
use std::time::Duration;

use koel::{InlineCache, LoadError, Operation};
use pollster::block_on;

use crate::common::{LARGE, Source, large, on_threads, panics_beside_a_load, shared_with_who_waits};

#[test]
fn all_who_miss_at_once_share_one_load() {
    for _ in 0..50 {
        let cache = InlineCache::<u64, u64>::new(10);
        let (loads, together) = (AtomicU64::new(0), Barrier::new(4));
        on_threads(4, |thread| {
            together.wait();
            let load = || {
                loads.fetch_add(1, Ordering::Relaxed);
                std::thread::yield_now();
                7
            };
            let seen = match thread {
                0 => block_on(cache.get_or_insert_async(1, async { load() })),
                _ => cache.get_or_insert_with(1, load),
            };
            assert_eq!(seen, 7);
        });
        assert_eq!((loads.into_inner(), cache.get(&1)), (1, Some(7)));
        assert_eq!(cache.stats().loads, 1);
    }
}

#[test]
fn a_failed_load_keeps_nothing_and_is_counted() {
    let cache = InlineCache::<u64, u64>::new(10);
    assert_eq!(block_on(cache.try_get_or_insert_async(1, async { Err("no") })), Err(LoadError::Loader("no")));
    for timeout in [Duration::ZERO, Duration::MAX] {
        let failed = cache.try_get_or_insert_with_timeout(1, timeout, || Err("no"));
        assert_eq!(failed, Err(LoadError::Loader("no")));
    }
    assert!(!cache.contains_key(&1));
    assert_eq!((cache.stats().loads, cache.stats().failed_loads), (0, 3));
    assert_eq!(cache.try_get_or_insert_with(1, || Ok::<_, &str>(7)), Ok(7));
}

#[test]
fn a_loader_that_asks_for_its_own_key_is_told_so() {
    let cache = InlineCache::<u64, u64>::new(10);
    let answer = cache.try_get_or_insert_with(1, || cache.try_get_or_insert_with(1, || Ok::<_, ()>(7)));
    assert_eq!(answer, Err(LoadError::Loader(LoadError::Recursion)));
    assert_eq!(cache.get_or_insert_with(1, || 8), 8);
}

/// A value that was written while a key was being loaded is newer.
#[test]
fn a_load_gives_way_to_a_write() {
    let cache = InlineCache::<u64, u64>::new(10);
    let load = |key, write: &dyn Fn()| {
        let loaded = cache.get_or_insert_with(key, || {
            write();
            7
        });
        assert_eq!(loaded, 7);
        cache.get(&key)
    };
    assert_eq!(
        load(1, &|| {
            cache.insert(1, 8);
        }),
        Some(8)
    );
    assert_eq!(
        load(2, &|| {
            cache.remove(&2);
        }),
        None
    );
    assert_eq!(load(3, &|| cache.clear()), None);
    cache.insert(9, 9);
    assert_eq!(load(3, &|| cache.forget_loads()), None);
    assert_eq!(cache.get(&9), Some(9));
    let nine = |_| koel::Operation::<_, ()>::Insert(9);
    assert_eq!(
        load(4, &|| {
            cache.compute(4, nine);
        }),
        Some(9)
    );
    assert_eq!(load(5, &|| ()), Some(7));
}

/// A closure that decides about a key writes to the source as well, after a loader has read it.
#[test]
fn what_was_read_before_a_closure_has_decided_is_not_kept() {
    for decision in [Operation::Abort(()), Operation::Insert(2)] {
        let (cache, source) = (InlineCache::<u64, u64>::new(1), Source::new(1));
        std::thread::scope(|scope| {
            cache.compute(1, |there| {
                assert_eq!(there, None);
                scope.spawn(|| assert_eq!(cache.get_or_insert_with(1, || source.load()), 1));
                source.write(2);
                decision
            });
            // It has the only place now.
            cache.insert(2, 2);
            source.let_go();
        });
        assert_eq!(cache.get(&1), None, "{decision:?}");
    }
}

#[test]
fn of_all_who_find_a_value_stale_one_loads_it_anew() {
    for _ in 0..50 {
        let cache = InlineCache::<u64, u64>::new(10);
        cache.insert(1, 7);
        let (loads, seen) = (AtomicU64::new(0), Barrier::new(6));
        on_threads(6, |thread| {
            let is_stale = |value: &u64| *value == 7;
            assert_eq!(cache.get(&1), Some(7));
            seen.wait();
            let load = || {
                loads.fetch_add(1, Ordering::Relaxed);
                std::thread::yield_now();
                8
            };
            let try_load = || Ok::<_, ()>(load());
            let got = match thread {
                0 => cache.get_or_insert_with_if(1, load, is_stale),
                1 => cache.try_get_or_insert_with_if(1, try_load, is_stale).unwrap(),
                2 => cache.try_get_or_insert_with_shared_if(1, try_load, is_stale).unwrap(),
                3 => block_on(cache.get_or_insert_async_if(1, async { load() }, is_stale)),
                4 => block_on(cache.try_get_or_insert_async_if(1, async { try_load() }, is_stale)).unwrap(),
                _ => block_on(cache.try_get_or_insert_async_shared_if(1, async { try_load() }, is_stale))
                    .unwrap(),
            };
            assert_eq!(got, 8);
        });
        assert_eq!((loads.into_inner(), cache.get(&1), cache.len()), (1, Some(8), 1));
    }
}

/// A reloaded value replaces the stale one, but no value that was written meanwhile.
#[test]
fn what_is_loaded_anew_gives_way_to_a_write() {
    type Write = fn(&InlineCache<u64, u64>);
    let writes: [(Write, Option<u64>); 7] = [
        (|_| {}, Some(8)),
        (|cache| assert_eq!(cache.insert(1, 9), Some(7)), Some(9)),
        (|cache| assert_eq!(cache.insert(1, 7), Some(7)), Some(7)),
        (|cache| assert_eq!(cache.update(1, |old| old + 2), Some(9)), Some(9)),
        (|cache| assert_eq!(cache.remove(&1), Some(7)), None),
        (|cache| assert_eq!(cache.remove_if(&1, |_, _| false), None), Some(7)),
        (InlineCache::clear, None),
    ];
    for (i, (write, kept)) in writes.into_iter().enumerate() {
        let cache = InlineCache::<u64, u64>::new(10);
        cache.insert(1, 7);
        let load = || {
            write(&cache);
            8
        };
        let loaded = cache.get_or_insert_with_if(1, load, |old| *old == 7);
        assert_eq!((loaded, cache.get(&1)), (8, kept), "write {i}");
    }
}

/// As for a missing key; but here there is a value all the time, or there was one.
#[test]
fn what_was_loaded_anew_before_a_closure_has_decided_is_not_kept() {
    for goes in [false, true] {
        for removes in [false, true] {
            let (cache, source) = (InlineCache::<u64, u64>::new(10), Source::new(7));
            cache.insert(1, 7);
            std::thread::scope(|scope| {
                let write = || {
                    let load = || source.load();
                    let cache = &cache;
                    scope.spawn(move || assert_eq!(cache.get_or_insert_with_if(1, load, |old| *old == 7), 7));
                    source.write(9);
                };
                if removes {
                    cache.remove_if(&1, |_, _| {
                        write();
                        goes
                    });
                } else {
                    cache.compute(1, |_| {
                        write();
                        if goes { Operation::<_, ()>::Remove } else { Operation::Insert(9) }
                    });
                }
                if goes {
                    // Nobody waits for the reader of the old one.
                    assert_eq!(cache.get_or_insert_with(1, || 9), 9);
                    cache.remove(&1);
                }
                source.let_go();
            });
            let kept = if removes { Some(7) } else { Some(9) };
            assert_eq!(cache.get(&1), kept.filter(|_| !goes));
        }
    }
}

/// A caller that waits when the loader fails gets its error, and loads nothing.
#[test]
fn an_error_is_shared_with_who_waits() {
    let cache: InlineCache<u64, u64> = InlineCache::new(10);
    let failed =
        shared_with_who_waits(cache.try_get_or_insert_async_shared(1, async { Err("its own") }), |waits| {
            cache.try_get_or_insert_with_shared(1, || {
                waits();
                Err("no")
            })
        });
    assert_eq!((failed, cache.stats().failed_loads), (Err(LoadError::Loader(Arc::new("no"))), 1));
}

#[test]
fn a_future_has_room_for_its_loader_twice_at_most() {
    let cache = InlineCache::<u64, u64>::new(10);
    let sizes = [
        size_of_val(&cache.get_or_insert_async(1, large(7))),
        size_of_val(&cache.try_get_or_insert_async(1, large(Err("no")))),
        size_of_val(&cache.try_get_or_insert_async_shared(1, large(Err("no")))),
    ];
    assert!(sizes.iter().all(|&size| size < 3 * LARGE), "{sizes:?}");
}

/// The closure may have written to the source, and the value that is being loaded was read before: whether the load began
/// before the closure, which the loader itself calls here, or while it ran.
#[test]
fn a_closure_that_panics_keeps_out_what_is_being_loaded() {
    type Decides = fn(&InlineCache<u64, u64>, &dyn Fn() -> bool);
    let ways: [(Decides, Option<u64>); 2] = [
        (|cache, panics| _ = cache.compute(1, |_| Operation::Abort(panics())), None),
        (|cache, panics| _ = cache.remove_if(&1, |_, _| panics()), Some(0)),
    ];
    for ((decides, before), begins_meanwhile) in ways.into_iter().flat_map(|way| [(way, false), (way, true)])
    {
        let cache = &InlineCache::new(10);
        if before.is_some() {
            cache.insert(1_u64, 0_u64);
        }
        let load = |during: &dyn Fn()| {
            let load = || {
                during();
                1
            };
            assert_eq!(cache.get_or_insert_with_if(1, load, |value| *value == 0), 1);
        };
        panics_beside_a_load(begins_meanwhile, load, |panics| decides(cache, panics));
        assert_eq!(cache.get(&1), before);
    }
}
