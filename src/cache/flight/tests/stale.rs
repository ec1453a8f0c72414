//! Values that are stale to their callers: one caller loads them anew, while others that find them stale wait [F9].

use core::cell::Cell;
use core::future::{Future, pending, poll_fn};
use core::pin::pin;
use core::task::{Context, Poll};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Barrier;
use std::task::Waker;
use std::thread;

use super::{Cache, Count, until};
use crate::cache::flight::LoadError;

/// The value that the key has at first, and that all callers find stale.
const OLD: u32 = 7;

fn is_old(value: &u32) -> bool {
    *value == OLD
}

fn old() -> Cache {
    let cache = Cache::new();
    cache.insert(1, OLD);
    cache
}

/// A loader that must not run.
fn unreachable() -> Result<u32, ()> {
    unreachable!("somebody else loads")
}

#[test]
fn of_all_who_have_seen_a_stale_value_one_loads() {
    const THREADS: usize = 16;
    let (cache, loads, seen) = (old(), Count::default(), Barrier::new(THREADS));
    let ask = || {
        assert!(cache.get(&1).is_some_and(|value| is_old(&value)));
        seen.wait();
        let load = || {
            loads.add();
            // As many as possible: late callers find the new value.
            thread::yield_now();
            Ok::<_, ()>(8)
        };
        cache.try_get_or_insert_if(&1, load, is_old)
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(ask)).collect();
        threads.into_iter().for_each(|thread| assert_eq!(thread.join().unwrap(), Ok(8)));
    });
    assert_eq!((loads.get(), cache.get(&1), cache.loads()), (1, Some(8), 0));
}

#[test]
fn what_is_not_stale_is_a_hit_and_what_is_missed_is_loaded() {
    let cache = old();
    assert_eq!(cache.try_get_or_insert_if(&1, unreachable, |_| false), Ok(OLD));
    assert_eq!(cache.try_get_or_insert_if(&2, || Ok::<_, ()>(9), is_old), Ok(9));
    assert_eq!(cache.try_get_or_insert_if(&2, unreachable, is_old), Ok(9));
}

/// A caller that does not mind gets the old value, while others wait.
#[test]
fn others_find_the_old_value_meanwhile() {
    let cache = old();
    thread::scope(|scope| {
        let mut follower = None;
        let new = cache.try_get_or_insert_if(
            &1,
            || {
                follower = Some(scope.spawn(|| cache.try_get_or_insert_if(&1, unreachable, is_old)));
                until(|| cache.followers(&1) == 1);
                assert_eq!((cache.get(&1), cache.get_or_insert_with(&1, || 9)), (Some(OLD), OLD));
                Ok::<_, ()>(8)
            },
            is_old,
        );
        assert_eq!((new, follower.unwrap().join().unwrap()), (Ok(8), Ok(8)));
    });
    assert_eq!((cache.get(&1), cache.loads()), (Some(8), 0));
}

#[test]
fn who_fails_gets_the_error_and_the_old_value_stays() {
    let cache = old();
    assert_eq!(cache.try_get_or_insert_if(&1, || Err("no"), is_old), Err(LoadError::Loader("no")));
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        cache.try_get_or_insert_if(&1, || -> Result<u32, ()> { panic!("as planned") }, is_old)
    }));
    assert!(panicked.is_err());
    assert_eq!((cache.get(&1), cache.loads()), (Some(OLD), 0));
    assert_eq!(cache.try_get_or_insert_if(&1, || Ok::<_, ()>(8), is_old), Ok(8));
}

/// One after the other, as for a key that is missed; or all at once, if they share the error.
#[test]
fn who_waits_for_one_who_fails_loads_or_gets_his_error() {
    let cache = old();
    thread::scope(|scope| {
        let mut followers = Vec::new();
        let failed = cache.try_get_or_insert_shared_if(
            &1,
            || {
                let shared = || {
                    let load = || -> Result<u32, &str> { unreachable!("it waits for the error") };
                    cache.try_get_or_insert_shared_if(&1, load, is_old).map_err(|_| ())
                };
                followers.push(scope.spawn(shared));
                until(|| cache.followers(&1) == 1);
                followers.push(
                    scope.spawn(|| Ok(cache.try_get_or_insert_if(&1, || Ok::<_, ()>(8), is_old).unwrap())),
                );
                until(|| cache.followers(&1) == 2);
                Err("no")
            },
            is_old,
        );
        assert_eq!(failed.map_err(|error| *error.into_loader().unwrap()), Err("no"));
        let answers: Vec<_> = followers.into_iter().map(|thread| thread.join().unwrap()).collect();
        // The first caller may look when the other has loaded.
        assert!(matches!(answers[..], [Err(()) | Ok(8), Ok(8)]), "{answers:?}");
    });
    assert_eq!((cache.get(&1), cache.loads()), (Some(8), 0));
}

/// The value is stale to the caller, and so is the one that is loaded.
#[test]
fn what_is_loaded_is_returned_though_it_is_stale() {
    let (cache, loads) = (old(), Count::default());
    let load = || {
        loads.add();
        Ok::<_, ()>(OLD)
    };
    assert_eq!((cache.try_get_or_insert_if(&1, load, |_| true), loads.get()), (Ok(OLD), 1));
    assert_eq!(
        (cache.try_get_or_insert_if(&1, || Ok::<_, ()>(8), |_| true), cache.get(&1)),
        (Ok(8), Some(8))
    );
}

/// The first load may have begun before the callers came, but not the second one.
#[test]
fn who_waits_for_what_is_stale_to_him_waits_for_the_next_one_and_no_more() {
    const FOLLOWERS: usize = 4;
    let (cache, loads) = (old(), Count::default());
    let load = || {
        loads.add();
        until(|| cache.followers(&1) == FOLLOWERS - 1);
        Ok::<_, ()>(101)
    };
    let ask = || cache.try_get_or_insert_if(&1, load, |_| true);
    thread::scope(|scope| {
        let mut followers = Vec::new();
        let first_load = || {
            followers.extend((0..FOLLOWERS).map(|_| scope.spawn(ask)));
            until(|| cache.followers(&1) == FOLLOWERS);
            Ok::<_, ()>(100)
        };
        let first = cache.try_get_or_insert_if(&1, first_load, is_old);
        assert_eq!(first, Ok(100));
        followers.into_iter().for_each(|follower| assert_eq!(follower.join().unwrap(), Ok(101)));
    });
    assert_eq!((loads.get(), cache.get(&1), cache.loads()), (1, Some(101), 0));
}

#[test]
fn what_was_written_meanwhile_is_not_replaced() {
    type Write = fn(&Cache);
    let writes: [(Write, Option<u32>); 6] = [
        (|cache| cache.insert(1, 9), Some(9)),
        // Even if that value is stale as well.
        (|cache| cache.insert(1, OLD), Some(OLD)),
        (|cache| assert_eq!(cache.remove(&1), Some(OLD)), None),
        (|cache| cache.remove_if(&1, |_| false), Some(OLD)),
        (Cache::clear, None),
        // Nobody has asked about that.
        (|cache| cache.evict(&1), Some(8)),
    ];
    for (write, kept) in writes {
        let cache = old();
        let load = || {
            write(&cache);
            Ok::<_, ()>(8)
        };
        let new = cache.try_get_or_insert_if(&1, load, is_old);
        assert_eq!((new, cache.get(&1), cache.loads()), (Ok(8), kept, 0));
    }
}

/// A write to the key makes way for the next caller that finds it stale: the load that runs is too old.
#[test]
fn what_is_stale_after_a_write_is_loaded_by_another() {
    let cache = old();
    let load = || {
        cache.insert(1, OLD);
        let next = || cache.try_get_or_insert_if(&1, || Ok::<_, ()>(10), is_old);
        assert_eq!(thread::scope(|scope| scope.spawn(next).join().unwrap()), Ok(10));
        Ok::<_, ()>(8)
    };
    assert_eq!(
        (cache.try_get_or_insert_if(&1, load, is_old), cache.get(&1), cache.loads()),
        (Ok(8), Some(10), 0)
    );
}

/// `is_stale` panics at each place where it is called: on the value that is found, before the load, and after it.
#[test]
fn who_cannot_say_what_is_stale_leaves_all_as_it_was() {
    for at in 1..=3 {
        let (cache, asked) = (old(), Cell::new(0));
        let is_stale = |_: &u32| {
            asked.set(asked.get() + 1);
            assert!(asked.get() < at, "as planned");
            true
        };
        let panicked =
            catch_unwind(AssertUnwindSafe(|| cache.try_get_or_insert_if(&1, || Ok::<_, ()>(8), is_stale)));
        assert_eq!((panicked.is_err(), asked.get()), (true, at));
        assert_eq!((cache.get(&1), cache.loads()), (Some(OLD), 0));
        assert_eq!(cache.try_get_or_insert_if(&1, || Ok::<_, ()>(9), is_old), Ok(9));
    }
}

/// `is_stale` may ask for the key itself: it gets an error if its caller leads the key's flight by then.
#[test]
fn who_asks_for_the_key_to_say_whether_it_is_stale_is_told() {
    let (cache, told) = (old(), Cell::new(None));
    let mut asked = 0;
    let is_stale = |value: &u32| {
        asked += 1;
        if asked == 2 {
            told.set(Some(cache.try_get_or_insert_if(&1, || Ok::<_, ()>(9), is_old)));
        }
        is_old(value) && asked < 3
    };
    assert_eq!(cache.try_get_or_insert_if(&1, || Ok::<_, ()>(8), is_stale), Ok(8));
    assert_eq!((told.get(), cache.loads()), (Some(Err(LoadError::Recursion)), 0));
}

#[test]
fn a_task_that_is_dropped_leaves_the_old_value_and_the_lead() {
    let cache = old();
    let mut context = Context::from_waker(Waker::noop());
    let mut leader = Box::pin(cache.try_get_or_insert_async_if(&1, pending::<Result<u32, ()>>(), is_old));
    assert!(leader.as_mut().poll(&mut context).is_pending());
    let mut follower = pin!(cache.try_get_or_insert_async_if(&1, async { Ok::<_, ()>(8) }, is_old));
    assert!(follower.as_mut().poll(&mut context).is_pending());
    assert_eq!((cache.loads(), cache.followers(&1), cache.get(&1)), (1, 1, Some(OLD)));
    drop(leader);
    assert_eq!((cache.loads(), cache.get(&1)), (1, Some(OLD)));
    assert_eq!(follower.poll(&mut context), Poll::Ready(Ok(8)));
    assert_eq!((cache.get(&1), cache.loads()), (Some(8), 0));
}

/// The task is dropped and nobody waits, or its loader fails.
#[test]
fn a_task_that_does_not_load_leaves_the_old_value() {
    let cache = old();
    let mut context = Context::from_waker(Waker::noop());
    let mut leader = Box::pin(cache.try_get_or_insert_async_if(&1, pending::<Result<u32, ()>>(), is_old));
    assert!(leader.as_mut().poll(&mut context).is_pending());
    drop(leader);
    assert_eq!((cache.get(&1), cache.loads()), (Some(OLD), 0));
    let fails = pin!(cache.try_get_or_insert_async_if(&1, async { Err("no") }, is_old));
    assert_eq!(fails.poll(&mut context), Poll::Ready(Err(LoadError::Loader("no"))));
    assert_eq!((cache.get(&1), cache.loads()), (Some(OLD), 0));
}

/// A task's second look finds what was put since the task found a stale value.
#[test]
fn who_leads_when_it_has_been_loaded_finds_it() {
    let cache = old();
    let mut context = Context::from_waker(Waker::noop());
    let goes_on = Cell::new(false);
    let load = poll_fn(|_| if goes_on.get() { Poll::Ready(Ok::<_, ()>(8)) } else { Poll::Pending });
    let mut leader = pin!(cache.try_get_or_insert_async_if(&1, load, is_old));
    assert!(leader.as_mut().poll(&mut context).is_pending());
    let mut asked = 0;
    let is_stale = |value: &u32| {
        asked += 1;
        if asked == 1 {
            // Between the first look and the joining.
            goes_on.set(true);
            assert_eq!(leader.as_mut().poll(&mut context), Poll::Ready(Ok(8)));
        }
        is_old(value)
    };
    assert_eq!((cache.try_get_or_insert_if(&1, unreachable, is_stale), asked), (Ok(8), 2));
    assert_eq!(cache.loads(), 0);
}

/// Due to some, and stale to others: a caller that finds the value stale waits for one that refreshes it, and a caller that
/// finds it due waits for nobody.
#[test]
fn who_finds_it_stale_waits_for_who_refreshes_it() {
    let cache = old();
    cache.make_due(&1);
    thread::scope(|scope| {
        let mut follower = None;
        let new = cache.get_or_insert_with(&1, || {
            follower = Some(scope.spawn(|| cache.try_get_or_insert_if(&1, unreachable, is_old)));
            until(|| cache.followers(&1) == 1);
            8
        });
        assert_eq!((new, follower.unwrap().join().unwrap()), (8, Ok(8)));
    });
    let cache = old();
    cache.make_due(&1);
    let load = || {
        assert_eq!(cache.get_or_insert_with(&1, || unreachable!("it is being loaded")), OLD);
        Ok::<_, ()>(8)
    };
    assert_eq!((cache.try_get_or_insert_if(&1, load, is_old), cache.get(&1)), (Ok(8), Some(8)));
}

/// A caller that refreshes the value in vain gets the old one, and a caller that finds that stale loads.
#[test]
fn who_waits_for_one_who_cannot_refresh_it_loads() {
    let cache = old();
    cache.make_due(&1);
    thread::scope(|scope| {
        let mut follower = None;
        let kept = cache.try_get_or_insert_with(&1, || {
            follower = Some(scope.spawn(|| cache.try_get_or_insert_if(&1, || Ok::<_, ()>(8), is_old)));
            until(|| cache.followers(&1) == 1);
            Err("no")
        });
        // The failed caller's last look may find what the other has loaded.
        assert!(matches!(kept, Ok(OLD | 8)), "{kept:?}");
        assert_eq!(follower.unwrap().join().unwrap(), Ok(8));
    });
    assert_eq!((cache.get(&1), cache.loads()), (Some(8), 0));
}
