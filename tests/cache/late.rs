//! Who waits, for a lock or for a loader, while time goes by: an entry lives from when it is there, what has expired meanwhile
//! leaves for that cause, and what others have put in meanwhile is found.

use std::future::{Future, pending};
use std::pin::pin;
use std::task::{Context, Waker};
use std::time::Duration;

use koel::{Cache, CacheBuilder, Cause, LoadError, ManualClock, Operation};

use crate::listening;

const LIFE: Duration = Duration::from_secs(50);

/// Long enough for a thread to come to where it waits. Where it does not, it comes when the time has passed, and a test says
/// less than it could.
const A_WHILE: Duration = Duration::from_millis(30);

/// A key that is never there.
const HELD: u64 = 1 << 40;

fn living(clock: &ManualClock) -> CacheBuilder<u64, u64> {
    Cache::builder().max_entries(2).time_to_live(LIFE).clock(clock.clone())
}

/// Does something on another thread, which waits for the cache's only lock while so much time goes by.
fn waits_for_the_lock<R: Send>(
    cache: &Cache<u64, u64>,
    (clock, time): (&ManualClock, Duration),
    done: impl FnOnce() -> R + Send,
) -> R {
    std::thread::scope(|scope| {
        let mut done = Some(done);
        let mut waiting = None;
        let held = cache.compute(HELD, |_| {
            waiting = done.take().map(|done| scope.spawn(done));
            std::thread::sleep(A_WHILE);
            clock.advance(time);
            Operation::<u64, ()>::Abort(())
        });
        held.unwrap();
        waiting.expect("the closure has run").join().unwrap()
    })
}

/// Whoever inserts it, and however long he has waited.
#[test]
fn an_entry_lives_from_when_it_is_there() {
    type Insert = fn(&Cache<u64, u64>);
    let inserts: [Insert; 7] = [
        |cache| cache.insert(1, 1).unwrap(),
        |cache| cache.try_insert(1, 1).unwrap().unwrap(),
        |cache| assert_eq!(cache.get_or_insert_with(1, || 1), 1),
        |cache| assert_eq!(cache.get_or_insert_with_if(1, || 1, |_| true), 1),
        |cache| cache.get_many_or_insert_with(&[1], &mut [None], |keys| keys.into_iter().map(|key| (key, 1))),
        |cache| assert_eq!(cache.update_or_insert(1, |_| 2, 1), Ok(1)),
        |cache| assert_eq!(cache.entry(1).or_insert(1), 1),
    ];
    for (number, insert) in inserts.into_iter().enumerate() {
        let clock = ManualClock::new();
        let cache = living(&clock).time_to_idle(LIFE).build();
        waits_for_the_lock(&cache, (&clock, 3 * LIFE), || insert(&cache));
        assert_eq!((cache.time_left(&1), cache.get(&1)), (Some(LIFE), Some(1)), "{number}");
        clock.advance(LIFE);
        assert_eq!(cache.get(&1), None, "{number}");
    }
}

/// The weigher may take its time.
#[test]
fn an_entry_does_not_grow_older_while_it_is_weighed() {
    let clock = ManualClock::new();
    let scales = clock.clone();
    let builder = Cache::builder().max_weight(10).time_to_live(LIFE).clock(clock.clone());
    let cache: Cache<u64, u64> = builder
        .weigher(move |_, _| {
            scales.advance(2 * LIFE);
            1
        })
        .build();
    cache.insert(1, 1).unwrap();
    assert_eq!(cache.time_left(&1), Some(LIFE));
    assert_eq!((cache.get_or_insert_with(2, || 2), cache.time_left(&2)), (2, Some(LIFE)));
}

/// Whoever takes it out, or puts another in its place.
#[test]
fn what_expires_while_somebody_waits_to_take_it_out_has_expired() {
    type Take = fn(&Cache<u64, u64>);
    let takes: [Take; 8] = [
        |cache| cache.clear(),
        |cache| cache.set_capacity(0),
        |cache| cache.insert(1, 2).unwrap(),
        |cache| (3..5).for_each(|key| cache.insert(key, 2).unwrap()),
        |cache| assert_eq!(cache.update(1, |_| 2), Ok(None)),
        |cache| assert_eq!(cache.remove(&1), None),
        |cache| cache.retain(|_, _| false),
        |cache| cache.purge(),
    ];
    for (number, take) in takes.into_iter().enumerate() {
        let clock = ManualClock::new();
        let (builder, told) = listening(living(&clock));
        let cache = builder.build();
        cache.insert(1, 1).unwrap();
        waits_for_the_lock(&cache, (&clock, LIFE), || take(&cache));
        cache.purge();
        assert_eq!(told.lock().unwrap().first(), Some(&(1, 1, Cause::Expired)), "{number}");
        assert_eq!((cache.stats().expirations, cache.stats().evicted_weight), (1, 0), "{number}");
    }
}

/// The value did not come from whom they waited for; but it is there.
#[test]
fn who_has_waited_in_vain_finds_what_others_have_put_in() {
    type Ask = fn(&Cache<u64, u64>) -> Result<u64, LoadError<()>>;
    const PATIENCE: Duration = Duration::from_millis(200);
    let asks: [Ask; 3] = [
        |cache| cache.try_get_or_insert_with_timeout(1, PATIENCE, || Err(())),
        |cache| {
            let answer = cache.try_get_or_insert_with_shared_timeout(1, PATIENCE, || Err(()));
            answer.map_err(|_| LoadError::Loader(()))
        },
        |cache| {
            let mut out = [None; 2];
            let load = |keys: Vec<u64>| Ok::<_, ()>(keys.into_iter().map(|key| (key, 10 * key)));
            let answer = cache.try_get_many_or_insert_with_shared_timeout(&[1, 2], &mut out, PATIENCE, load);
            assert_eq!((answer, out[1]), (Ok(()), Some(20)));
            Ok(out[0].expect("no error, and one that a loader has a value for"))
        },
    ];
    for ask in asks {
        let cache: Cache<u64, u64> = Cache::new(10);
        let mut leader = pin!(cache.get_or_insert_async(1, pending()));
        assert!(leader.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| ask(&cache));
            std::thread::sleep(A_WHILE);
            cache.insert(1, 5).unwrap();
            assert_eq!(waiting.join().unwrap(), Ok(5));
        });
    }
}
