//! A caller that misses a key may reserve it, and load it outside of any closure: others wait for it as for a loader.

use std::cell::{Cell, RefCell};
use std::future::{Future, pending, poll_fn};
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Barrier, LazyLock};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use koel::{Cache, LoadError, ManualClock, Operation, Reservation};
use pollster::block_on;

use crate::common::{catch, on_threads};
use crate::weighing_values;

const NO_TIME: Duration = Duration::ZERO;

/// Polls a future once.
fn poll<T>(task: impl Future<Output = T> + Unpin) -> Poll<T> {
    pin!(task).poll(&mut Context::from_waker(Waker::noop()))
}

/// No matter whether a thread or a task reserves it, by value or by reference.
#[test]
fn who_waits_gets_what_is_inserted() {
    type Reserves = fn(&Cache<String, u64>) -> Result<u64, koel::DetachedReservation<'_, String, u64>>;
    let ways: [Reserves; 6] = [
        |cache| block_on(cache.get_or_reserve_async("a".to_string())),
        |cache| block_on(cache.get_or_reserve_async_ref("a")),
        |cache| cache.get_or_reserve("a".to_string()).map_err(|reservation| reservation.detach()),
        |cache| cache.get_or_reserve_ref("a").map_err(|reservation| reservation.detach()),
        |cache| {
            let reserved =
                cache.try_get_or_reserve_timeout("a".to_string(), NO_TIME).expect("nobody loads it");
            reserved.map_err(|reservation| reservation.detach())
        },
        |cache| {
            let reserved = cache.try_get_or_reserve_timeout_ref("a", NO_TIME).expect("nobody loads it");
            reserved.map_err(|reservation| reservation.detach())
        },
    ];
    for reserves in ways {
        let cache: Cache<String, u64> = Cache::new(10);
        let reservation = reserves(&cache).unwrap_err();
        assert_eq!(reservation.key(), "a");
        let mut waits = pin!(cache.get_or_insert_async_ref("a", pending()));
        let mut reserves_later = pin!(cache.get_or_reserve_async("a".to_string()));
        assert!(poll(waits.as_mut()).is_pending() && poll(reserves_later.as_mut()).is_pending());
        let late = cache.try_get_or_reserve_timeout_ref("a", NO_TIME);
        assert_eq!(late.err(), Some(LoadError::TimedOut));
        assert_eq!(reservation.insert(7), 7);
        assert_eq!(poll(waits), Poll::Ready(7));
        assert!(matches!(poll(reserves_later), Poll::Ready(Ok(7))));
        assert_eq!((reserves(&cache).unwrap(), cache.get("a")), (7, Some(7)));
        let stats = cache.stats();
        assert_eq!((stats.loads, stats.failed_loads), (1, 0));
    }
}

/// The table in the documentation of `Cache`, row by row.
#[test]
fn what_is_done_while_a_key_is_being_loaded_is_told_by_a_table() {
    type Does = fn(&Cache<u64, u64>);
    // And what a caller that asks afterwards gets: the value is found, or loaded by that caller; or it waits.
    let rows: [(&[Does], Option<u64>); 4] = [
        (
            &[
                |cache| cache.insert(1, 8).unwrap(),
                |cache| drop(cache.update_or_insert(1, |_| unreachable!(), 8)),
                |cache| drop(cache.compute(1, |_| Operation::<_, ()>::Insert(8))),
                |cache| cache.try_insert(1, 8).unwrap().unwrap(),
            ],
            Some(8),
        ),
        (
            &[
                |cache| assert_eq!(cache.remove(&1), None),
                |cache| cache.clear(),
                |cache| cache.forget_loads(),
            ],
            Some(9),
        ),
        (
            &[
                |cache| drop(cache.compute(1, |_| Operation::Abort(()))),
                |cache| drop(cache.update(1, |_| unreachable!())),
                |cache| assert_eq!(cache.remove_if(&1, |_, _| unreachable!()), None),
            ],
            Some(9),
        ),
        (&[|cache| cache.retain(|_, _| false), |cache| cache.set_capacity(0)], None),
    ];
    for (row, (ways, afterwards)) in rows.into_iter().enumerate() {
        for (way, does) in ways.iter().enumerate() {
            let what = format!("way {way} of row {row}");
            let cache: Cache<u64, u64> = Cache::new(10);
            let reservation = cache.get_or_reserve(1).unwrap_err().detach();
            let mut waits = pin!(cache.get_or_insert_async(1, pending()));
            assert!(poll(waits.as_mut()).is_pending());
            does(&cache);
            cache.set_capacity(10);
            let mut asks = pin!(cache.get_or_insert_async(1, async { 9 }));
            let asked = poll(asks.as_mut());
            assert_eq!(asked, afterwards.map_or(Poll::Pending, Poll::Ready), "{what}");
            let inserted = reservation.try_insert(7);
            assert_eq!(inserted, if afterwards.is_none() { Ok(7) } else { Err(7) }, "{what}");
            assert_eq!(poll(waits), Poll::Ready(7), "{what}");
            if afterwards.is_none() {
                assert_eq!(poll(asks), Poll::Ready(7), "{what}");
            }
            assert_eq!(cache.get(&1), afterwards.or(Some(7)), "{what}");
        }
    }
}

/// No matter whether the reservation is given up or lost in a panic, and whether the next caller has a loader or reserves the
/// key in turn.
#[test]
fn a_key_that_is_reserved_in_vain_is_the_next_ones() {
    for panics in [false, true] {
        let cache: Cache<u64, u64> = Cache::new(10);
        let reservation = cache.get_or_reserve(1).unwrap_err().detach();
        let mut second = pin!(cache.get_or_reserve_async(1));
        let mut third = pin!(cache.get_or_insert_async(1, async { 8 }));
        assert!(poll(second.as_mut()).is_pending() && poll(third.as_mut()).is_pending());
        let lost = catch(|| {
            let _reservation = reservation;
            assert!(!panics, "the source has failed");
        });
        assert_eq!(lost.is_err(), panics);
        let Poll::Ready(Err(reservation)) = poll(second) else { panic!("it was not left to the second") };
        assert!(poll(third.as_mut()).is_pending());
        drop(reservation);
        assert_eq!(poll(third), Poll::Ready(8));
        let stats = cache.stats();
        assert_eq!((stats.loads, stats.failed_loads), (1, 2));
    }
}

#[test]
fn of_many_threads_one_reserves_a_key() {
    const THREADS: usize = 4;
    for key in 0..200 {
        let cache: Cache<u64, usize> = Cache::new(10);
        let start = Barrier::new(THREADS);
        on_threads(THREADS, |thread| {
            start.wait();
            let found = match thread % 2 {
                0 => cache.get_or_reserve(key).unwrap_or_else(|reservation| reservation.insert(thread)),
                _ => cache.get_or_insert_with(key, || thread),
            };
            assert_eq!(cache.get(&key), Some(found));
        });
        assert_eq!(cache.stats().loads, 1);
    }
}

#[test]
fn who_has_reserved_a_key_and_asks_for_it_is_told() {
    let cache: Cache<u64, u64> = Cache::new(10);
    let other: Cache<u64, u64> = Cache::new(10);
    let reservation = cache.get_or_reserve(1).unwrap_err();
    let load = |cache: &Cache<u64, u64>| cache.try_get_or_insert_with(1, || Ok::<_, ()>(8));
    assert_eq!(load(&cache), Err(LoadError::Recursion));
    assert_eq!(other.try_get_or_insert_with(2, || load(&cache).map_err(|error| error.into_loader())), {
        Err(LoadError::Loader(None))
    });
    assert_eq!(cache.try_get_or_reserve_timeout(1, Duration::MAX).err(), Some(LoadError::Recursion));
    let message = catch(|| _ = cache.get_or_reserve(1)).unwrap_err();
    assert!(message.contains("would wait for itself"), "{message}");
    // Other keys are loaded meanwhile, and this one is written to.
    assert_eq!(cache.get_or_insert_with(2, || 9), 9);
    let second = cache.get_or_reserve(3).unwrap_err();
    assert_eq!((reservation.insert(7), load(&cache), second.insert(10)), (7, Ok(7), 10));
    cache.remove(&1);
    assert_eq!(load(&cache), Ok(8));
}

/// Each thread has a key that the other asks for: the one that asks last gets an error, and the other gets its value.
#[test]
fn of_threads_that_would_wait_for_each_others_keys_one_is_told() {
    let cache: Cache<usize, usize> = Cache::new(10);
    let (reserved, told) = (Barrier::new(2), AtomicUsize::new(0));
    on_threads(2, |thread| {
        let reservation = cache.get_or_reserve(thread).unwrap_err();
        reserved.wait();
        match cache.try_get_or_reserve_timeout(1 - thread, Duration::MAX) {
            Ok(found) => assert_eq!(found.unwrap(), 11 - thread),
            Err(error) => {
                assert_eq!(error, LoadError::Recursion);
                told.fetch_add(1, Ordering::Relaxed);
            }
        }
        assert_eq!(reservation.insert(10 + thread), 10 + thread);
    });
    assert_eq!(told.into_inner(), 1);
}

/// No thread is known to hold it.
#[test]
fn a_detached_reservation_is_sent_and_nobodys() {
    let cache: Cache<u64, u64> = Cache::new(10);
    let reservation = cache.get_or_reserve(1).unwrap_err().detach();
    assert_eq!(cache.try_get_or_reserve_timeout(1, NO_TIME).err(), Some(LoadError::TimedOut));
    std::thread::scope(|scope| {
        scope.spawn(|| reservation.insert(7));
        assert_eq!(cache.get_or_reserve(1).unwrap(), 7);
    });
}

/// It is as if it had not been loaded.
#[test]
fn what_is_too_heavy_is_returned_and_not_kept() {
    let cache = weighing_values(5).build();
    assert_eq!(cache.get_or_reserve(1).unwrap_err().insert(6), 6);
    assert_eq!(cache.get_or_reserve(1).unwrap_err().try_insert(6), Err(6));
    assert_eq!((cache.get(&1), cache.get_or_reserve(1).unwrap_err().try_insert(5)), (None, Ok(5)));
}

/// Neither call waits there, nor is anything inserted: the key is free afterwards.
#[test]
fn under_the_caches_lock_nothing_is_reserved_or_inserted() {
    let cache: Cache<u64, u64> = Cache::new(10);
    let reservation = Cell::new(Some(cache.get_or_reserve(1).unwrap_err()));
    let under_lock = |does: &dyn Fn()| {
        let mut told = None;
        let _ = cache.compute(2, |_| {
            told = Some(catch(does));
            Operation::Abort(())
        });
        told.expect("it was called").unwrap_err()
    };
    let asks: [&dyn Fn(); 2] =
        [&|| _ = cache.get_or_reserve(3), &|| _ = block_on(cache.get_or_reserve_async(3))];
    for ask in asks {
        let message = under_lock(ask);
        assert!(message.contains("lock"), "{message}");
    }
    let message = under_lock(&|| _ = reservation.take().map(|reservation| reservation.insert(7)));
    assert!(message.contains("lock"), "{message}");
    assert_eq!((cache.stats().loads, cache.stats().failed_loads), (0, 1));
    assert_eq!(cache.get_or_insert_with(1, || 8), 8);
}

/// The load had begun before the insertion, and does not end in time: the waiter finds the inserted value when its time is up.
#[test]
fn who_has_no_time_left_looks_once_more() {
    let cache: &Cache<u64, u64> = &Cache::new(10);
    let reservation = cache.get_or_reserve(1).unwrap_err().detach();
    std::thread::scope(|scope| {
        let until = Duration::from_millis(200);
        let waits = scope.spawn(move || cache.try_get_or_reserve_timeout(1, until).map(Result::ok));
        std::thread::sleep(Duration::from_millis(50));
        cache.insert(1, 8).unwrap();
        assert_eq!(waits.join().unwrap(), Ok(Some(8)));
    });
    assert_eq!((reservation.insert(7), cache.get(&1)), (7, Some(8)));
}

/// A call that loads refreshes it; one that reserves finds it until it has expired.
#[test]
fn what_is_due_is_found() {
    let clock = ManualClock::new();
    let cache: Cache<u64, u64> = Cache::builder()
        .max_entries(10)
        .time_to_live(Duration::from_secs(10))
        .refresh_ahead(Duration::from_secs(5))
        .clock(clock.clone())
        .build();
    cache.insert(1, 7).unwrap();
    clock.advance(Duration::from_secs(6));
    assert!(cache.needs_refresh(&1));
    assert_eq!((cache.get_or_reserve(1).unwrap(), cache.get_or_reserve_ref(&1).unwrap()), (7, 7));
    assert_eq!(block_on(cache.get_or_reserve_async(1)).unwrap(), 7);
    clock.advance(Duration::from_secs(4));
    let reservation = cache.get_or_reserve(1).unwrap_err();
    assert_eq!((reservation.insert(8), cache.get(&1)), (8, Some(8)));
}

/// A reserved key cannot be passed on to a task that no longer waits.
#[test]
fn a_task_that_is_dropped_leaves_a_reserved_key_to_the_next() {
    let cache: Cache<u64, u64> = Cache::new(10);
    let reservation = cache.get_or_reserve(1).unwrap_err().detach();
    let mut second = Box::pin(cache.get_or_reserve_async(1));
    let mut third = pin!(cache.get_or_reserve_async(1));
    assert!(poll(second.as_mut()).is_pending() && poll(third.as_mut()).is_pending());
    drop(reservation);
    drop(second);
    let Poll::Ready(Err(reservation)) = poll(third) else { panic!("it was not left to the third") };
    assert_eq!((reservation.insert(7), cache.get(&1)), (7, Some(7)));
}

/// A loader that asks for a key of its own gets an error, also if it loads several keys, and if a key was reserved meanwhile
/// and is held for longer, or for a shorter time, than the loader runs.
#[test]
fn a_reservation_that_outlives_a_loader_of_many_hides_no_load() {
    let cache: Cache<u64, u64> = Cache::new(10);
    let asks = |key| cache.try_get_or_reserve_timeout(key, Duration::ZERO).map(|_| ());
    let kept = Cell::new(None);
    let mut out = [None; 2];
    block_on(cache.get_many_or_insert_async(&[1, 2], &mut out, |keys| {
        let (cache, kept) = (&cache, &kept);
        async move {
            kept.set(Some(cache.get_or_reserve(9).unwrap_err()));
            let other = cache.get_or_reserve(8).unwrap_err();
            yield_now().await;
            other.insert(80);
            assert_eq!([1, 2, 9].map(asks), [Err(LoadError::Recursion); 3]);
            keys.into_iter().map(|key| (key, key * 10)).collect::<Vec<_>>()
        }
    }));
    assert_eq!((out, asks(9)), ([Some(10), Some(20)], Err(LoadError::Recursion)));
    let loaded = cache.get_or_insert_with(3, || {
        assert_eq!(kept.take().expect("it is kept").insert(90), 90);
        assert_eq!(asks(3), Err(LoadError::Recursion));
        30
    });
    assert_eq!((loaded, asks(3), cache.len()), (30, Ok(()), 5));
}

/// A future that is pending once.
async fn yield_now() {
    let mut is_second = false;
    poll_fn(|context| {
        context.waker().wake_by_ref();
        if std::mem::replace(&mut is_second, true) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}

/// A key is cloned when its flight is joined: here that ends a reservation while many are being joined.
#[test]
fn a_reservation_that_ends_while_many_keys_are_joined_leaves_no_load_behind() {
    thread_local!(static ENDS: RefCell<Option<Reservation<'static, Ending, u64>>> = const { RefCell::new(None) });
    #[derive(Debug, PartialEq, Eq, Hash)]
    struct Ending(u64);
    impl Clone for Ending {
        fn clone(&self) -> Self {
            drop(ENDS.take());
            Ending(self.0)
        }
    }
    static CACHE: LazyLock<Cache<Ending, u64>> = LazyLock::new(|| Cache::new(10));
    let reserved = CACHE.get_or_reserve(Ending(9)).unwrap_err();
    ENDS.set(Some(reserved));
    let mut out = [None; 2];
    let keys = [Ending(1), Ending(2)];
    let mut loading = Box::pin(CACHE.get_many_or_insert_async(&keys, &mut out, |_| pending::<Vec<_>>()));
    assert!(poll(loading.as_mut()).is_pending() && ENDS.take().is_none());
    let asks = |key| CACHE.try_get_or_reserve_timeout(Ending(key), NO_TIME).map(|_| ());
    // The flight of a future that nobody polls.
    assert_eq!([1, 9].map(asks), [Err(LoadError::TimedOut), Ok(())]);
}

/// A wait that was begun and given up does not count for the next caller.
#[test]
fn who_loads_a_key_that_was_given_away_waits_for_nothing_that_was_asked_for_before() {
    for is_dropped in [false, true] {
        let cache: Cache<u64, u64> = Cache::new(10);
        let first = cache.get_or_reserve(1).unwrap_err();
        let second = block_on(cache.get_or_reserve_async(2)).unwrap_err();
        let mut waits = pin!(cache.get_or_insert_async(2, pending()));
        assert!(poll(waits.as_mut()).is_pending());
        // To a caller that does not wait for the second.
        let mut next = pin!(cache.get_or_reserve_async(1));
        let first = if is_dropped {
            std::thread::scope(|scope| scope.spawn(|| assert!(poll(next.as_mut()).is_pending())).join())
                .unwrap();
            drop(first);
            let Poll::Ready(Err(first)) = poll(next) else { panic!("it was not left to the next") };
            first
        } else {
            first.detach()
        };
        // And the holder of the second one would now wait for the first.
        drop(second);
        let _second = cache.get_or_reserve(2).unwrap_err();
        assert_eq!(cache.try_get_or_reserve_timeout(1, NO_TIME).err(), Some(LoadError::TimedOut));
        assert_eq!(first.insert(10), 10);
    }
}
