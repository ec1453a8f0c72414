//! Errors that are shared with waiting callers.

use core::cell::Cell;
use core::future::{Future, poll_fn};
use core::pin::pin;
use core::task::{Context, Poll};
use std::sync::{Arc, Weak};
use std::task::{Wake, Waker};
use std::thread;

use super::{Cache, Count, LoadOnce, until};
use crate::cache::flight::LoadError;
use crate::sync::Mutex;

/// A loader's error; each has a number of its own.
#[derive(Debug)]
struct Failed(usize);

/// Starts `callers` threads that load one key and share their errors; the first waits for `followers` others and then fails.
fn ask_together(
    cache: &Cache,
    loads: &Count,
    callers: usize,
    followers: usize,
) -> Vec<Result<u32, Arc<Failed>>> {
    let ask = || {
        let answer = cache.try_get_or_insert_shared(&1, || {
            let number = loads.add();
            until(|| number > 0 || cache.followers(&1) == followers);
            Err(Failed(number))
        });
        answer.map_err(|error| error.into_loader().expect("its loader's error"))
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..callers).map(|_| scope.spawn(ask)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

/// The same when nobody else loads.
fn load_together(cache: &Cache, loads: &Count, callers: usize, followers: usize) -> Vec<Arc<Failed>> {
    ask_together(cache, loads, callers, followers).into_iter().map(Result::unwrap_err).collect()
}

#[test]
fn all_who_wait_get_one_error() {
    let (cache, loads) = (Cache::new(), Count::default());
    let errors = load_together(&cache, &loads, 8, 7);
    assert!(errors.iter().all(|error| Arc::ptr_eq(error, &errors[0])));
    assert_eq!((errors[0].0, Arc::strong_count(&errors[0]), loads.get(), cache.loads()), (0, 8, 1, 0));
    assert_eq!(cache.get_or_insert_with(&1, || 7), 7, "nothing is remembered");
}

/// A caller whose errors are of another type, or that has not asked for others' errors, loads next.
#[test]
fn who_shares_no_errors_loads_itself() {
    let (cache, loads) = (Cache::new(), Count::default());
    thread::scope(|scope| {
        let sharing = scope.spawn(|| ask_together(&cache, &loads, 2, 3));
        until(|| cache.followers(&1) == 1);
        let other = scope.spawn(|| cache.try_get_or_insert_shared(&1, || Err("another")));
        until(|| cache.followers(&1) == 2);
        let alone = scope.spawn(|| cache.get_or_insert_with(&1, || 7));
        // The leader gets its own error; a follower may come back so late that there is a value.
        let (failed, found): (Vec<_>, Vec<_>) = sharing.join().unwrap().into_iter().partition(Result::is_err);
        assert!(found.iter().all(|found| *found.as_ref().unwrap() == 7));
        let errors: Vec<_> = failed.into_iter().map(Result::unwrap_err).collect();
        assert!(!errors.is_empty() && errors.iter().all(|error| Arc::ptr_eq(error, &errors[0])));
        let other = other.join().unwrap();
        assert!(other == Ok(7) || other == Err(LoadError::Loader(Arc::new("another"))), "{other:?}");
        assert_eq!(alone.join().unwrap(), 7);
    });
    assert_eq!((loads.get(), cache.get(&1), cache.loads()), (1, Some(7), 0));
}

/// A caller that waits for one that does not share its error leads next, and shares its own.
#[test]
fn who_follows_one_that_shares_nothing_loads_itself() {
    let (cache, loads) = (Cache::new(), Count::default());
    thread::scope(|scope| {
        let first = scope.spawn(|| {
            cache.try_get_or_insert_with(&1, || {
                until(|| cache.followers(&1) == 3);
                Err("its own")
            })
        });
        until(|| cache.loads() == 1);
        let errors = load_together(&cache, &loads, 3, 2);
        assert!(errors.iter().all(|error| Arc::ptr_eq(error, &errors[0])));
        assert_eq!(first.join().unwrap(), Err(LoadError::Loader("its own")));
    });
    assert_eq!((loads.get(), cache.loads()), (1, 0));
}

#[test]
fn a_write_while_it_is_loaded_comes_before_the_error() {
    let (cache, loads) = (Cache::new(), Count::default());
    thread::scope(|scope| {
        let leader = scope.spawn(|| {
            cache.try_get_or_insert_shared(&1, || {
                loads.add();
                until(|| cache.followers(&1) == 1);
                cache.insert(1, 7);
                Err("too late")
            })
        });
        until(|| loads.get() == 1);
        let follower = scope.spawn(|| cache.try_get_or_insert_shared(&1, || Err("not called")));
        assert_eq!(leader.join().unwrap(), Err(LoadError::Loader(Arc::new("too late"))));
        assert_eq!(follower.join().unwrap(), Ok(7));
    });
    assert_eq!(cache.loads(), 0);
}

type Told = Poll<Result<u32, LoadError<()>>>;

/// Asks for key 2 whenever it is woken, at once and on that thread; records the answers.
struct AsksAtOnce(Weak<Cache>, Mutex<Vec<Told>>);

impl Wake for AsksAtOnce {
    fn wake(self: Arc<Self>) {
        let cache = self.0.upgrade().expect("the test's");
        let asked = pin!(cache.try_get_or_insert_async(&2, async { Ok(0) }));
        let told = asked.poll(&mut Context::from_waker(Waker::noop()));
        self.1.lock().push(told);
    }
}

/// Key 2 is being loaded, and its loader waits for key 1: code that is woken when the load of key 1 has ended may ask for 2.
#[test]
fn who_is_woken_may_ask_for_what_waits_for_the_flight_that_has_ended() {
    for ended in [Ok(7), Err("no")] {
        let cache = Arc::new(LoadOnce::new());
        let mut context = Context::from_waker(Waker::noop());
        let goes_on = Cell::new(false);
        let load = poll_fn(|_| if goes_on.get() { Poll::Ready(ended) } else { Poll::Pending });
        let mut leader = pin!(cache.try_get_or_insert_shared_async(&1, load));
        assert!(leader.as_mut().poll(&mut context).is_pending());
        let asks = Arc::new(AsksAtOnce(Arc::downgrade(&cache), Mutex::default()));
        let waker = Waker::from(Arc::clone(&asks));
        let follower = pin!(cache.try_get_or_insert_shared_async(&1, async { Err("not called") }));
        assert!(follower.poll(&mut Context::from_waker(&waker)).is_pending());
        let other = pin!(
            cache.try_get_or_insert_async(&2, cache.try_get_or_insert_async(&1, async { Ok::<_, ()>(5) }))
        );
        assert!(other.poll(&mut context).is_pending());
        goes_on.set(true);
        assert!(leader.poll(&mut context).is_ready());
        assert!(matches!(asks.1.lock()[..], [Poll::Pending]), "{ended:?}: {:?}", asks.1.lock());
    }
}

/// Many keys, by either kind of call: each waiting caller gets the error, and what others have loaded stays.
#[test]
fn all_who_wait_for_some_of_many_keys_get_one_error() {
    let (cache, loads) = (Cache::new(), Count::default());
    let fail = |keys: Vec<u32>| {
        assert_eq!((keys, loads.add()), (vec![1, 2], 0));
        until(|| cache.followers(&1) == 2 && cache.followers(&2) == 1);
        Err::<[(u32, u32); 0], _>(Failed(0))
    };
    let unused = |keys: Vec<u32>| {
        // The keys that nobody else is loading.
        assert_eq!(keys, [3]);
        Ok::<_, Failed>([(3, 30)])
    };
    thread::scope(|scope| {
        let leader = scope.spawn(|| cache.try_load_many_shared(&[1, 2], fail).unwrap_err());
        until(|| cache.loads() == 2);
        let many = scope.spawn(|| cache.try_load_many_shared(&[2, 3, 1], unused).unwrap_err());
        let one = || cache.try_get_or_insert_shared(&1, || -> Result<u32, Failed> { unreachable!() });
        let single = scope.spawn(move || one().unwrap_err());
        let errors = [leader, many, single].map(|thread| thread.join().unwrap().into_loader().unwrap());
        assert!(errors.iter().all(|error| Arc::ptr_eq(error, &errors[0])));
    });
    assert_eq!((cache.get(&3), cache.loads(), loads.get()), (Some(30), 0, 1));
    let tens = |keys: Vec<u32>| Ok::<_, Failed>(keys.into_iter().map(|key| (key, 10 * key)));
    assert_eq!(cache.try_load_many_shared(&[1, 2], tens).ok(), Some(vec![Some(10), Some(20)]));
}

/// A caller that shares no errors loads what is left, by one call.
#[test]
fn who_shares_no_errors_loads_many_keys_itself() {
    let cache = Cache::new();
    let fail = |_| {
        until(|| cache.followers(&1) == 1 && cache.followers(&2) == 1);
        Err::<[(u32, u32); 0], _>(Failed(0))
    };
    thread::scope(|scope| {
        let leader = scope.spawn(|| cache.try_load_many_shared(&[1, 2], fail).is_err());
        until(|| cache.loads() == 2);
        let tens = |keys: Vec<u32>| Ok::<_, ()>(keys.into_iter().map(|key| (key, 10 * key)));
        assert_eq!(cache.try_load_many(&[1, 2], tens), Ok(vec![Some(10), Some(20)]));
        assert!(leader.join().unwrap());
    });
    assert_eq!((cache.get(&1), cache.get(&2), cache.loads()), (Some(10), Some(20), 0));
}
