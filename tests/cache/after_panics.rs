//! The effects of operations in which the user's code has panicked.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use koel::{Cache, Cause, ManualClock, Operation};

use crate::SEVERAL_SEGMENTS;
use crate::common::{catch, seeded};

fn full_of_two() -> Cache<u64, u64> {
    let cache = Cache::builder().max_entries(2).on_removal(|_, _: &u64, _| panic!("told")).build();
    cache.insert(1, 1).unwrap();
    cache
}

#[test]
fn what_was_asked_for_is_done_when_the_listener_panics() {
    let panics = |f: &dyn Fn(&Cache<u64, u64>)| {
        let cache = full_of_two();
        assert_eq!(catch(|| f(&cache)), Err("told".to_owned()));
        cache
    };
    assert_eq!(panics(&|cache| cache.insert(1, 2).unwrap()).get(&1), Some(2));
    assert_eq!(panics(&|cache| drop(cache.update(1, |n| n + 1))).get(&1), Some(2));
    let decided = panics(&|cache| drop(cache.compute(1, |_| Operation::<_, ()>::Remove)));
    assert!(decided.is_empty());
    assert!(panics(&|cache| _ = cache.remove(&1)).is_empty());
    let smaller = panics(&|cache| cache.set_capacity(0));
    assert_eq!((smaller.capacity(), smaller.len()), (0, 0));
}

/// Each entry is reported once, and is out.
fn all_go(life: Duration, go: fn(&Cache<u64, u64>, &ManualClock)) {
    let (clock, told) = (ManualClock::new(), Arc::new(AtomicUsize::new(0)));
    let ear = Arc::clone(&told);
    let builder = Cache::builder().max_entries(4 * SEVERAL_SEGMENTS).time_to_live(life).clock(clock.clone());
    let builder = builder.on_removal(move |_, _: &u64, cause| {
        assert_ne!(cause, Cause::Size);
        ear.fetch_add(1, Ordering::Relaxed);
        panic!("told");
    });
    let cache = builder.hasher(seeded(1)).build();
    (0..SEVERAL_SEGMENTS as u64).for_each(|key| cache.insert(key, key).unwrap());
    assert_eq!(catch(|| go(&cache, &clock)), Err("told".to_owned()));
    assert_eq!((cache.len(), told.load(Ordering::Relaxed)), (0, SEVERAL_SEGMENTS));
}

/// The last waiter that has an error drops it when it finds a value instead: that value is dropped, too.
#[test]
fn a_value_that_was_found_does_not_leak_when_an_errors_drop_panics() {
    #[derive(Debug)]
    struct Failure;
    impl Drop for Failure {
        fn drop(&mut self) {
            panic!("the error's drop");
        }
    }
    let cache: Cache<u32, Arc<str>> = Cache::new(10);
    let mut context = Context::from_waker(Waker::noop());
    let mut polls = 0;
    let failing = poll_fn(|_| {
        polls += 1;
        if polls == 1 { Poll::Pending } else { Poll::Ready(Err(Failure)) }
    });
    let mut leader = Box::pin(cache.try_get_or_insert_async_shared(1, failing));
    assert!(leader.as_mut().poll(&mut context).is_pending());
    let never = async { unreachable!("it follows") as Result<Arc<str>, Failure> };
    let mut follower = Box::pin(cache.try_get_or_insert_async_shared(1, never));
    assert!(follower.as_mut().poll(&mut context).is_pending());
    let Poll::Ready(Err(failed)) = leader.as_mut().poll(&mut context) else { panic!("it fails") };
    drop(failed);
    let value: Arc<str> = "a value".into();
    cache.insert(1, Arc::clone(&value)).unwrap();
    let poll = catch(|| drop(follower.as_mut().poll(&mut context)));
    assert_eq!(poll, Err("the error's drop".to_owned()));
    assert_eq!(cache.remove(&1).as_deref(), Some("a value"));
    cache.flush();
    assert_eq!(Arc::strong_count(&value), 1);
}

#[test]
fn all_is_cleared_and_purged_when_the_listener_panics() {
    all_go(Duration::MAX, |cache, _| cache.clear());
    all_go(Duration::from_secs(1), |cache, clock| {
        clock.advance(Duration::from_secs(1));
        cache.purge();
    });
}

/// A value that writes to the cache when it is dropped.
struct Writes<'c>(&'c Cache<u64, u64>);

impl Drop for Writes<'_> {
    fn drop(&mut self) {
        self.0.insert(9, 9).unwrap();
    }
}

#[test]
fn a_condition_that_is_not_asked_is_dropped_unlocked() {
    let cache: Cache<u64, u64> = Cache::new(10);
    let writes = Writes(&cache);
    let condition = move |_: &u64, _: &u64| {
        let owned = &writes;
        unreachable!("{}", owned.0.len())
    };
    assert_eq!(cache.remove_if(&1, condition), None);
    assert_eq!(cache.get(&9), Some(9));
}

#[test]
fn answers_before_a_panic_are_handed_out() {
    let keys: [u64; 40] = std::array::from_fn(|key| key as u64);
    let clock = ManualClock::new();
    let builder = Cache::builder().max_entries(1000).clock(clock.clone());
    let lives = |key: &u64, _: &u64| Some(Duration::from_secs(if *key == 35 { 1 } else { 9 }));
    let cache: Cache<u64, u64> = builder.expiry(lives).on_removal(|_, _, _| panic!("told")).build();
    keys.iter().for_each(|&key| cache.insert(key, key).unwrap());
    clock.advance(Duration::from_secs(2));
    let mut out = [None; 40];
    assert_eq!(catch(|| cache.get_many(&keys, &mut out)), Err("told".to_owned()));
    assert!(out[..35].iter().zip(keys).all(|(found, key)| *found == Some(key)), "{out:?}");
}

/// The cache does not keep the value: there is nothing to look up. The flight was closed when the weigher panicked, as its
/// value might have expired.
#[test]
fn who_comes_after_a_leader_has_panicked_gets_what_the_next_one_loads() {
    let panics = Arc::new(AtomicBool::new(true));
    let in_weigher = Arc::clone(&panics);
    let builder = Cache::builder().max_weight(10).time_to_live(Duration::from_secs(60));
    let cache: Cache<u64, u64> = builder
        .weigher(move |_, value| {
            assert!(!in_weigher.swap(false, Ordering::Relaxed), "weigher");
            *value
        })
        .build();
    let mut context = Context::from_waker(Waker::noop());
    let goes_on = [Cell::new(false), Cell::new(false)];
    let [mut first, mut second] = [(&goes_on[0], 11), (&goes_on[1], 12)].map(|(goes_on, value)| {
        let load = poll_fn(move |_| if goes_on.get() { Poll::Ready(value) } else { Poll::Pending });
        Box::pin(cache.get_or_insert_async(1, load))
    });
    assert!(first.as_mut().poll(&mut context).is_pending());
    assert!(second.as_mut().poll(&mut context).is_pending());
    goes_on[0].set(true);
    assert_eq!(catch(|| _ = first.as_mut().poll(&mut context)), Err("weigher".to_owned()));
    assert!(second.as_mut().poll(&mut context).is_pending());
    let mut third = Box::pin(cache.get_or_insert_async(1, async { 13 }));
    assert!(third.as_mut().poll(&mut context).is_pending());
    goes_on[1].set(true);
    assert_eq!(second.as_mut().poll(&mut context), Poll::Ready(12));
    assert_eq!(third.as_mut().poll(&mut context), Poll::Ready(12));
    assert!(cache.is_empty());
}
