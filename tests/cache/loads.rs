//! What a cache loads for callers that miss: once, whichever calls they use; `flight`'s own tests cover waiters.

use std::cell::Cell;
use std::future::{Future, pending, poll_fn};
use std::pin::pin;
use std::sync::mpsc::channel;
use std::sync::{Arc, Barrier, LazyLock};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use koel::{Cache, LoadError, Operation};
use pollster::block_on;

use crate::common::fuse::{Fragile, Site, arm, disarm};
use crate::common::{
    LARGE, Ledger, Source, catch, large, on_threads, panics_beside_a_load, shared_with_who_waits,
};
use crate::weighing_values;

/// Too heavy for a cache that holds 5.
const TOO_HEAVY: u64 = 6;

#[test]
fn tasks_and_threads_get_what_was_loaded_once() {
    let cache: Cache<u64, u64> = Cache::new(10);
    let loads = Cell::new(0);
    let load = |value| {
        loads.set(loads.get() + 1);
        value
    };
    assert_eq!(block_on(cache.get_or_insert_async(1, async { load(10) })), 10);
    assert_eq!(block_on(cache.get_or_insert_async(1, async { load(11) })), 10);
    assert_eq!(block_on(cache.try_get_or_insert_async(1, async { Err::<u64, _>(load(12)) })), Ok(10));
    assert_eq!(cache.get_or_insert_with(1, || load(13)), 10);
    let timed = cache.try_get_or_insert_with_timeout(1, Duration::ZERO, || Err::<u64, _>(load(14)));
    assert_eq!((timed, loads.get()), (Ok(10), 1));
    assert_eq!((cache.stats().loads, cache.stats().failed_loads), (1, 0));
}

#[test]
fn a_failed_load_keeps_nothing_and_is_counted() {
    let cache: Cache<u64, u64> = Cache::new(10);
    assert_eq!(block_on(cache.try_get_or_insert_async(1, async { Err("no") })), Err(LoadError::Loader("no")));
    for timeout in [Duration::ZERO, Duration::MAX] {
        let failed = cache.try_get_or_insert_with_timeout(1, timeout, || Err("no"));
        assert_eq!(failed, Err(LoadError::Loader("no")));
    }
    assert!(!cache.contains_key(&1));
    assert_eq!((cache.stats().loads, cache.stats().failed_loads), (0, 3));
    assert_eq!(block_on(cache.try_get_or_insert_async(1, async { Ok::<_, &str>(7) })), Ok(7));
}

/// The loader does not return before the other caller has given up.
#[test]
fn who_cannot_wait_is_told_so() {
    let cache: Cache<u64, u64> = Cache::new(10);
    let (loading, over) = (Barrier::new(2), Barrier::new(2));
    on_threads(2, |thread| {
        if thread == 0 {
            let loaded = cache.get_or_insert_with(1, || {
                loading.wait();
                over.wait();
                7
            });
            assert_eq!(loaded, 7);
            return;
        }
        loading.wait();
        let soon = Duration::from_millis(1);
        let late = cache.try_get_or_insert_with_timeout(1, soon, || Err::<u64, _>("the other loads"));
        over.wait();
        assert_eq!(late, Err(LoadError::TimedOut));
    });
}

/// However many loaders it waits for: here the key is written to, so that it waits for another loader when the first has
/// failed.
#[test]
fn who_waits_twice_waits_for_so_long_all_the_same() {
    let cache: Cache<u64, u64> = Cache::new(10);
    let mut context = Context::from_waker(Waker::noop());
    let [mut first, mut second] = [0, 1].map(|_| Box::pin(cache.get_or_insert_async(1, pending())));
    assert!(first.as_mut().poll(&mut context).is_pending());
    let waits = || {
        let began = Instant::now();
        let late = cache.try_get_or_insert_with_timeout(1, Duration::from_secs(2), || Ok::<_, ()>(1));
        (late, began.elapsed())
    };
    std::thread::scope(|scope| {
        let waiting = scope.spawn(waits);
        std::thread::sleep(Duration::from_millis(1600));
        cache.remove(&1);
        assert!(second.as_mut().poll(&mut context).is_pending());
        drop(first);
        let (late, waited) = waiting.join().unwrap();
        assert_eq!(late, Err(LoadError::TimedOut));
        // Twice as long would be 3.6 s.
        assert!(waited < Duration::from_millis(3200), "{waited:?}");
    });
}

/// By value, by reference, and for many keys, of which it gets those that have come.
#[test]
fn who_shares_errors_and_cannot_wait_is_told_so() {
    let cache: Cache<u64, u64> = Cache::new(10);
    let no_time = Duration::ZERO;
    let mut context = Context::from_waker(Waker::noop());
    let goes_on = Cell::new(false);
    let load = || poll_fn(|_| if goes_on.get() { Poll::Ready(30) } else { Poll::Pending });
    let mut leaders =
        [Box::pin(cache.get_or_insert_async(1, load())), Box::pin(cache.get_or_insert_async(3, load()))];
    assert!(leaders.iter_mut().all(|leader| leader.as_mut().poll(&mut context).is_pending()));

    let another = || Err::<u64, _>("another loads");
    assert_eq!(cache.try_get_or_insert_with_shared_timeout(1, no_time, another), Err(LoadError::TimedOut));
    assert_eq!(
        cache.try_get_or_insert_with_shared_timeout_ref(&1, no_time, another),
        Err(LoadError::TimedOut)
    );
    let alone = cache.try_get_or_insert_with_timeout_ref(&1, no_time, || Err::<u64, _>("another loads"));
    assert_eq!(alone, Err(LoadError::TimedOut));
    let mut out = [None; 3];
    let load = |keys: Vec<u64>| {
        assert_eq!(keys, [4]);
        goes_on.set(true);
        assert_eq!(leaders[1].as_mut().poll(&mut context), Poll::Ready(30));
        Ok::<_, ()>([(4, 40)])
    };
    let answer = cache.try_get_many_or_insert_with_shared_timeout(&[1, 4, 3], &mut out, no_time, load);
    assert_eq!((answer, out), (Err(LoadError::TimedOut), [None, Some(40), Some(30)]));

    // There must be a leader to wait for.
    drop(leaders);
    let failed = Err(LoadError::Loader(Arc::new("no")));
    assert_eq!(cache.try_get_or_insert_with_shared_timeout(1, no_time, || Err("no")), failed);
    assert_eq!(cache.try_get_or_insert_with_shared_timeout_ref(&1, no_time, || Err("no")), failed);
    assert_eq!(cache.try_get_or_insert_with_shared_timeout_ref(&3, no_time, || Err("no")), Ok(30));
    let failed = cache.try_get_or_insert_with_timeout_ref(&1, no_time, || Err("no"));
    assert_eq!(failed, Err(LoadError::Loader("no")));
}

/// A value that was written while a key was being loaded is newer.
#[test]
fn a_load_gives_way_to_a_write() {
    type Write = fn(&Cache<u64, u64>);
    let writes: [(&str, Write, Option<u64>); 10] = [
        ("insert", |cache| cache.insert(1, 8).unwrap(), Some(8)),
        ("remove", |cache| _ = cache.remove(&1), None),
        ("update", |cache| drop(cache.update(1, |_| 8)), None),
        ("update_ref", |cache| drop(cache.update_ref(&1, |_| 8)), None),
        ("update_or_insert", |cache| drop(cache.update_or_insert(1, |_| 9, 8)), Some(8)),
        ("update_or_insert_ref", |cache| drop(cache.update_or_insert_ref(&1, |_| 9, 8)), Some(8)),
        ("compute", |cache| drop(cache.compute(1, |_| Operation::Abort(()))), None),
        ("compute_ref", |cache| drop(cache.compute_ref(&1, |_| Operation::Abort(()))), None),
        ("clear", |cache| cache.clear(), None),
        ("forget_loads", |cache| cache.forget_loads(), None),
    ];
    for (what, write, after) in writes {
        let cache: Cache<u64, u64> = Cache::new(10);
        let loaded = cache.get_or_insert_with(1, || {
            write(&cache);
            7
        });
        assert_eq!((loaded, cache.get(&1)), (7, after), "{what}");

        let cache: Cache<u64, u64> = Cache::new(10);
        let reservation = cache.get_or_reserve(1).unwrap_err();
        write(&cache);
        assert_eq!((reservation.insert(7), cache.get(&1)), (7, after), "{what}, reserved");
    }
}

/// A closure that decides about a key writes to the source as well, after a loader has read it.
#[test]
fn what_was_read_before_a_closure_has_decided_is_not_kept() {
    let decisions: [fn() -> Operation<u64, ()>; 3] =
        [|| Operation::Abort(()), || Operation::Insert(2), || Operation::Insert(TOO_HEAVY)];
    for decision in decisions {
        let (cache, source): (Cache<u64, u64>, _) = (weighing_values(5).build(), Source::new(1));
        std::thread::scope(|scope| {
            let _ = cache.compute(1, |there| {
                assert_eq!(there, None);
                scope.spawn(|| assert_eq!(cache.get_or_insert_with(1, || source.load()), 1));
                source.write(2);
                decision()
            });
            // As when it is evicted.
            cache.set_capacity(0);
            cache.set_capacity(5);
            source.let_go();
        });
        assert_eq!(cache.get(&1), None, "{:?}", decision());
    }
}

#[test]
fn what_is_too_heavy_is_loaded_and_not_kept() {
    let cache: Cache<u64, u64> = Cache::builder().max_weight(5).weigher(|_, value| *value).build();
    assert_eq!(cache.get_or_insert_with(1, || 6), 6);
    assert_eq!(cache.get(&1), None);
}

/// A caller that waits when the loader fails gets its error, and loads nothing.
#[test]
fn an_error_is_shared_with_who_waits() {
    let cache: Cache<u64, u64> = Cache::new(10);
    let failed =
        shared_with_who_waits(cache.try_get_or_insert_async_shared(1, async { Err("its own") }), |waits| {
            cache.try_get_or_insert_with_shared(1, || {
                waits();
                Err("no")
            })
        });
    assert_eq!((failed, cache.stats().failed_loads), (Err(LoadError::Loader(Arc::new("no"))), 1));
}

/// By a reference as well; and a present key is never cloned.
#[test]
fn an_error_of_a_key_by_reference_is_shared_with_who_waits() {
    let cache: Cache<String, u64> = Cache::new(10);
    let failed = shared_with_who_waits(
        cache.try_get_or_insert_async_shared_ref("key", async { Err("its own") }),
        |waits| {
            cache.try_get_or_insert_with_shared_ref("key", || {
                waits();
                Err("no")
            })
        },
    );
    assert_eq!((failed, cache.stats().failed_loads), (Err(LoadError::Loader(Arc::new("no"))), 1));
    assert_eq!(cache.try_get_or_insert_with_shared_ref("key", || Ok::<_, ()>(7)), Ok(7));
    let there =
        cache.try_get_or_insert_with_shared_ref("key", || -> Result<u64, ()> { unreachable!("it is there") });
    let asked = cache.try_get_or_insert_async_shared_ref("key", async { Err::<u64, _>("it is there") });
    assert_eq!((there, block_on(asked)), (Ok(7), Ok(7)));
    assert_eq!(cache.stats().loads, 1);
}

/// It may be as old as the value that was refused.
#[test]
fn what_is_being_loaded_for_a_key_that_retain_refuses_is_not_kept() {
    let cache: Cache<u64, u64> = Cache::new(10);
    cache.insert(1, 10).unwrap();
    let may_end = Cell::new(false);
    let load = poll_fn(|_| if may_end.get() { Poll::Ready(11) } else { Poll::Pending });
    let mut loading = pin!(cache.get_or_insert_async(1, load));
    let mut context = Context::from_waker(Waker::noop());
    cache.retain(|key, _| {
        // As if it had been evicted, and missed.
        cache.remove(key);
        assert!(loading.as_mut().poll(&mut context).is_pending());
        false
    });
    may_end.set(true);
    assert_eq!(loading.as_mut().poll(&mut context), Poll::Ready(11));
    assert!(!cache.contains_key(&1));
}

/// The last waiter drops the value that the leader has left for it, once it has a clone.
#[test]
fn a_value_is_not_leaked_if_the_drop_of_the_one_it_is_cloned_from_panics() {
    let ledger = Ledger::new();
    let cache: Cache<u64, Fragile> = Cache::new(10);
    let (ledger_of_values, shared) = (&ledger, &cache);
    std::thread::scope(|scope| {
        let wait = || {
            arm(Site::Drop, 0);
            let answer = catch(|| drop(shared.get_or_insert_with(1, || unreachable!("it is being loaded"))));
            assert!(answer.is_err() && disarm());
        };
        shared.get_or_insert_with(1, || {
            scope.spawn(wait);
            // Gives it time to wait; if it is late it drops its own value.
            std::thread::sleep(Duration::from_millis(50));
            Fragile(ledger_of_values.value(7))
        });
    });
    drop(cache);
    ledger.assert_settled("a cache whose loads were waited for");
}

/// Each function that passes a loader on by value has room for it twice: sizes would multiply, and again in each loader that
/// itself loads.
#[test]
fn a_future_has_room_for_its_loader_twice_at_most() {
    let (cache, key): (Cache<u64, u64>, _) = (Cache::new(10), 1);
    let sizes = [
        size_of_val(&cache.get_or_insert_async(key, large(7))),
        size_of_val(&cache.get_or_insert_async_ref(&key, large(7))),
        size_of_val(&cache.try_get_or_insert_async(key, large(Err("no")))),
        size_of_val(&cache.try_get_or_insert_async_ref(&key, large(Err("no")))),
        size_of_val(&cache.try_get_or_insert_async_shared(key, large(Err("no")))),
        size_of_val(&cache.try_get_or_insert_async_shared_ref(&key, large(Err("no")))),
        size_of_val(&cache.entry(key).or_insert_async(large(7))),
        size_of_val(&cache.entry(key).or_try_insert_async(large(Err("no")))),
    ];
    assert!(sizes.iter().all(|&size| size < 3 * LARGE), "{sizes:?}");
}

/// The closure may have written to the source, and the value that is being loaded was read before: whether the load began
/// before the closure, which the loader itself calls here, or while it ran.
#[test]
fn a_closure_that_panics_keeps_out_what_is_being_loaded() {
    type Decides = fn(&Cache<u64, u64>, &dyn Fn() -> bool);
    let ways: [(Decides, Option<u64>); 2] = [
        (|cache, panics| _ = cache.compute(1, |_| Operation::Abort(panics())), None),
        (|cache, panics| _ = cache.remove_if(&1, |_, _| panics()), Some(0)),
    ];
    for ((decides, before), begins_meanwhile) in ways.into_iter().flat_map(|way| [(way, false), (way, true)])
    {
        let cache = &Cache::new(10);
        if before.is_some() {
            cache.insert(1_u64, 0_u64).unwrap();
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

/// Loads a key in the middle of loading it.
struct LoadsAtTheEnd(&'static Cache<u64, u64>);

impl Drop for LoadsAtTheEnd {
    fn drop(&mut self) {
        let inner = |key| self.0.try_get_or_insert_with(key, || Ok::<_, ()>(7));
        let outer = self.0.try_get_or_insert_with(1, || match inner(1) {
            Err(LoadError::Recursion) => Ok(inner(2).expect("another key")),
            _ => Err("not told"),
        });
        assert_eq!(outer, Ok(7));
    }
}

/// Also by what is dropped after the thread's other variables.
#[test]
fn a_thread_that_ends_is_told_that_it_would_wait_for_itself() {
    static CACHE: LazyLock<Cache<u64, u64>> = LazyLock::new(|| Cache::new(10));
    thread_local!(static AT_THE_END: LoadsAtTheEnd = LoadsAtTheEnd(&CACHE));
    let (done, ended) = channel();
    std::thread::spawn(move || {
        let ended = std::thread::spawn(|| {
            AT_THE_END.with(|_| CACHE.get_or_insert_with(7, || 7));
        });
        done.send(ended.join().is_ok()).unwrap();
    });
    assert_eq!(ended.recv_timeout(Duration::from_secs(60)), Ok(true), "it waits for itself");
    assert_eq!((CACHE.get(&1), CACHE.get(&2)), (Some(7), Some(7)));
}
