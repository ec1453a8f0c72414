//! Values that the caller considers stale, and that are reloaded, once; `flight`'s own tests cover waiters.

use std::cell::Cell;
use std::future::pending;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier};
use std::task::{Context, Waker};

use koel::{Cache, Cause, LoadError, ManualClock, Operation};
use pollster::block_on;

use crate::common::{LARGE, Source, catch, large, on_threads, shared_with_who_waits};
use crate::refresh::{AHEAD, LIFE, due};
use crate::{listening, weighing_values};

/// The value that all callers here consider stale.
const OLD: u64 = 7;

fn is_old(value: &u64) -> bool {
    *value == OLD
}

/// A cache whose key 1 has this value.
fn old() -> Cache<u64, u64> {
    let cache = Cache::new(10);
    cache.insert(1, OLD).unwrap();
    cache
}

type Call = fn(&Cache<u64, u64>, &dyn Fn() -> u64) -> u64;

/// All calls that ask whether a value is stale.
const CALLS: [Call; 7] = [
    |cache, load| cache.get_or_insert_with_if(1, load, is_old),
    |cache, load| cache.try_get_or_insert_with_if(1, || Ok::<_, ()>(load()), is_old).unwrap(),
    |cache, load| cache.try_get_or_insert_with_shared_if(1, || Ok::<_, ()>(load()), is_old).unwrap(),
    |cache, load| block_on(cache.get_or_insert_async_if(1, async { load() }, is_old)),
    |cache, load| {
        block_on(cache.try_get_or_insert_async_if(1, async { Ok::<_, ()>(load()) }, is_old)).unwrap()
    },
    |cache, load| {
        block_on(cache.try_get_or_insert_async_shared_if(1, async { Ok::<_, ()>(load()) }, is_old)).unwrap()
    },
    |cache, load| cache.entry(1).or_insert_with_if(load, is_old),
];

#[test]
fn each_call_loads_what_is_missed_or_stale_and_nothing_else() {
    for call in CALLS {
        let cache = Cache::new(10);
        assert_eq!(call(&cache, &|| OLD), OLD);
        assert_eq!(cache.get_or_insert_with(1, || unreachable!()), OLD);
        assert_eq!(call(&cache, &|| 8), 8);
        assert_eq!(call(&cache, &|| unreachable!("it is not stale")), 8);
        let stats = cache.stats();
        assert_eq!((stats.hits, stats.misses, stats.loads, cache.get(&1)), (3, 1, 2, Some(8)));
    }
}

#[test]
fn of_all_who_have_seen_a_stale_value_one_loads() {
    const THREADS: usize = 16;
    for _ in 0..20 {
        let (cache, seen, loads) = (old(), Barrier::new(THREADS), AtomicU64::new(0));
        on_threads(THREADS, |thread| {
            assert_eq!(cache.get(&1), Some(OLD));
            seen.wait();
            let load = || {
                loads.fetch_add(1, Ordering::Relaxed);
                std::thread::yield_now();
                8
            };
            assert_eq!(CALLS[thread % CALLS.len()](&cache, &load), 8);
        });
        assert_eq!((loads.into_inner(), cache.get(&1), cache.stats().loads), (1, Some(8), 1));
    }
}

#[test]
fn who_fails_gets_the_error_and_the_old_value_stays() {
    let cache = old();
    assert_eq!(cache.try_get_or_insert_with_if(1, || Err("no"), is_old), Err(LoadError::Loader("no")));
    let failed = block_on(cache.try_get_or_insert_async_if(1, async { Err("no") }, is_old));
    assert_eq!(failed, Err(LoadError::Loader("no")));
    assert!(catch(|| cache.get_or_insert_with_if(1, || panic!("as planned"), is_old)).is_err());
    assert!(catch(|| cache.get_or_insert_with_if(1, || 8, |_| panic!("as planned"))).is_err());
    let waits = cache.try_get_or_insert_async_shared_if(1, async { Err("its own") }, is_old);
    let shared = shared_with_who_waits(waits, |waits| {
        let load = || {
            waits();
            Err("no")
        };
        cache.try_get_or_insert_with_shared_if(1, load, is_old)
    });
    assert_eq!(shared, Err(LoadError::Loader(Arc::new("no"))));
    assert_eq!((cache.get(&1), cache.stats().failed_loads), (Some(OLD), 4));
    assert_eq!(cache.get_or_insert_with_if(1, || 8, is_old), 8);
}

#[test]
fn a_task_that_is_dropped_leaves_the_old_value() {
    let cache = old();
    {
        let task = pin!(cache.get_or_insert_async_if(1, pending(), is_old));
        assert!(task.poll(&mut Context::from_waker(Waker::noop())).is_pending());
        assert_eq!(cache.get_or_insert_with(1, || unreachable!("there is one")), OLD);
    }
    assert_eq!(cache.get(&1), Some(OLD));
    assert_eq!(cache.get_or_insert_with_if(1, || 8, is_old), 8);
}

/// An old value may expire while the new one is loaded.
#[test]
fn what_is_loaded_anew_has_a_life_of_its_own() {
    let clock = ManualClock::new();
    let builder = Cache::builder().max_entries(10).time_to_live(LIFE).clock(clock.clone());
    let (cache, told) = listening(builder);
    let cache = cache.build();
    cache.insert(1, OLD).unwrap();
    clock.advance(LIFE / 2);
    assert_eq!(cache.get_or_insert_with_if(1, || 8, is_old), 8);
    assert_eq!(cache.time_left(&1), Some(LIFE));
    cache.insert(1, OLD).unwrap();
    let load = || {
        clock.advance(LIFE);
        assert_eq!(cache.get(&1), None);
        9
    };
    assert_eq!(cache.get_or_insert_with_if(1, load, is_old), 9);
    assert_eq!((cache.get(&1), cache.time_left(&1)), (Some(9), Some(LIFE)));
    let told = std::mem::take(&mut *told.lock().unwrap());
    assert_eq!(told, [(1, OLD, Cause::Replaced), (1, 8, Cause::Replaced), (1, OLD, Cause::Expired)]);
}

/// A value that is due and not stale is refreshed; one that is both counts as stale, and a caller that cannot reload it does
/// not get it.
#[test]
fn what_is_due_is_refreshed_unless_it_is_stale() {
    let (cache, _) = due();
    assert_eq!(cache.try_get_or_insert_with_if(1, || Err("no"), |_| false), Ok(OLD));
    assert!(!cache.needs_refresh(&1), "it is put off");
    let (cache, _) = due();
    assert_eq!(cache.try_get_or_insert_with_if(1, || Ok::<_, ()>(8), |_| false), Ok(8));
    let (cache, clock) = due();
    assert_eq!(cache.try_get_or_insert_with_if(1, || Err("no"), is_old), Err(LoadError::Loader("no")));
    assert!(cache.needs_refresh(&1));
    assert_eq!(cache.try_get_or_insert_with_if(1, || Ok::<_, ()>(8), is_old), Ok(8));
    assert_eq!((cache.get(&1), cache.time_left(&1)), (Some(8), Some(LIFE)));
    clock.advance(LIFE - AHEAD);
    assert!(cache.needs_refresh(&1));
}

/// A value that becomes stale while it is refreshed in vain is not returned.
#[test]
fn what_cannot_be_refreshed_and_is_stale_by_now_is_not_returned() {
    let (cache, _) = due();
    let is_over = Cell::new(false);
    let load = || {
        is_over.set(true);
        Err("no")
    };
    let failed = cache.try_get_or_insert_with_if(1, load, |_| is_over.get());
    assert_eq!((failed, cache.get(&1)), (Err(LoadError::Loader("no")), Some(OLD)));
}

#[test]
fn what_is_too_heavy_is_loaded_and_leaves_the_old_value() {
    let cache = weighing_values(10).build();
    cache.insert(1, OLD).unwrap();
    assert_eq!((cache.get_or_insert_with_if(1, || 11, is_old), cache.get(&1)), (11, Some(OLD)));
    assert_eq!((cache.get_or_insert_with_if(1, || 10, is_old), cache.get(&1)), (10, Some(10)));
    assert_eq!(cache.weight(), 10);
}

#[test]
fn what_was_written_meanwhile_is_not_replaced() {
    type Write = fn(&Cache<u64, u64>);
    let writes: [(Write, Option<u64>); 7] = [
        (|cache| cache.insert(1, 9).unwrap(), Some(9)),
        (|cache| cache.insert(1, OLD).unwrap(), Some(OLD)),
        (|cache| assert_eq!(cache.update(1, |old| old + 2).unwrap(), Some(9)), Some(9)),
        (|cache| assert_eq!(cache.remove(&1), Some(OLD)), None),
        (|cache| assert_eq!(cache.remove_if(&1, |_, _| false), None), Some(OLD)),
        (|cache| cache.retain(|_, _| false), None),
        (Cache::clear, None),
    ];
    for (i, (write, kept)) in writes.into_iter().enumerate() {
        let cache = old();
        let load = || {
            write(&cache);
            8
        };
        assert_eq!((cache.get_or_insert_with_if(1, load, is_old), cache.get(&1)), (8, kept), "write {i}");
    }
}

/// The insertion was called before the load began, and so marked nothing, and takes effect when the load has seen the old
/// value.
#[test]
fn an_insertion_on_its_way_is_not_replaced() {
    let (on_its_way, goes_on) = (Arc::new(Barrier::new(2)), Arc::new(Barrier::new(2)));
    let (here, there) = (Arc::clone(&on_its_way), Arc::clone(&goes_on));
    let weigher = move |_: &u64, value: &u64| {
        if *value == 9 {
            here.wait();
            there.wait();
        }
        1
    };
    let cache = Cache::builder().max_weight(10).weigher(weigher).build();
    cache.insert(1, OLD).unwrap();
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| cache.insert(1, 9).unwrap());
        on_its_way.wait();
        let load = || {
            goes_on.wait();
            writer.join().unwrap();
            8
        };
        assert_eq!(cache.get_or_insert_with_if(1, load, is_old), 8);
    });
    assert_eq!(cache.get(&1), Some(9));
}

/// A closure that decides about a key writes to the source as well, after the key was reloaded.
#[test]
fn what_was_read_before_a_closure_has_decided_is_not_kept() {
    type Decision = fn(&Cache<u64, u64>, &dyn Fn());
    let decisions: [(Decision, Option<u64>); 4] = [
        (
            |cache, write| {
                let _ = cache.remove_if(&1, |_, _| {
                    write();
                    true
                });
            },
            None,
        ),
        (
            |cache, write| {
                let _ = cache.remove_if(&1, |_, _| {
                    write();
                    false
                });
            },
            Some(OLD),
        ),
        (
            |cache, write| {
                let _ = cache.compute(1, |_| {
                    write();
                    Operation::<_, ()>::Remove
                });
            },
            None,
        ),
        (
            |cache, write| {
                let _ = cache.compute(1, |_| {
                    write();
                    Operation::<_, ()>::Insert(9)
                });
            },
            Some(9),
        ),
    ];
    for (i, (decide, kept)) in decisions.into_iter().enumerate() {
        let (cache, source) = (old(), Source::new(OLD));
        std::thread::scope(|scope| {
            decide(&cache, &|| {
                scope.spawn(|| assert_eq!(cache.get_or_insert_with_if(1, || source.load(), is_old), OLD));
                source.write(9);
            });
            // Nobody waits for the reader of the old one.
            if kept.is_none() {
                assert_eq!(cache.get_or_insert_with(1, || 9), 9);
                assert_eq!(cache.remove(&1), Some(9));
            }
            source.let_go();
        });
        assert_eq!(cache.get(&1), kept, "decision {i}");
    }
}

/// Under its lock a cache loads nothing, and panics if a value is stale, as it does for a missing one.
#[test]
fn nothing_is_loaded_under_the_lock() {
    let cache = old();
    cache.insert(2, 2).unwrap();
    let load = || unreachable!("under the lock");
    assert_eq!(cache.update(2, |_| cache.get_or_insert_with_if(1, load, |_| false)), Ok(Some(OLD)));
    assert!(catch(|| cache.update(2, |_| cache.get_or_insert_with_if(1, load, is_old))).is_err());
    assert_eq!((cache.get(&1), cache.get(&2)), (Some(OLD), Some(OLD)));
}

#[test]
fn a_future_has_room_for_its_loader_twice_at_most() {
    let cache = old();
    let sizes = [
        size_of_val(&cache.get_or_insert_async_if(1, large(7), is_old)),
        size_of_val(&cache.try_get_or_insert_async_if(1, large(Err("no")), is_old)),
        size_of_val(&cache.try_get_or_insert_async_shared_if(1, large(Err("no")), is_old)),
    ];
    assert!(sizes.iter().all(|&size| size < 3 * LARGE), "{sizes:?}");
}
