//! Callers that wait, for a lock or for a loader, while time goes by: an entry's life begins when it is there, an entry that
//! has expired meanwhile leaves for that cause, and values that others have inserted meanwhile are found.

use std::future::{Future, pending};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Waker};
use std::time::Duration;

use koel::{Cache, CacheBuilder, Cause, Clock, Compute, ManualClock, Operation};

use crate::{listening, weighing_values};

const LIFE: Duration = Duration::from_secs(50);

/// Long enough for a thread to begin to wait. If a thread is slower, it comes when the time has passed, and a test proves less
/// than it could.
const A_WHILE: Duration = Duration::from_millis(30);

/// A key that is never there.
const HELD: u64 = 1 << 40;

fn living(clock: &ManualClock) -> CacheBuilder<u64, u64> {
    Cache::builder().max_entries(2).time_to_live(LIFE).clock(clock.clone())
}

/// Does something on another thread, which waits for the cache's only lock while this much time goes by.
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

/// Whichever call inserts it, and however long it has waited.
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

/// Whichever call removes or replaces it.
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

/// The value did not come from the loader they waited for; but it is there. A waiter that gives up before it is inserted proves
/// nothing.
#[test]
fn who_has_waited_in_vain_finds_what_others_have_put_in() {
    type Ask = fn(&Cache<u64, u64>, Duration) -> Option<u64>;
    let asks: [Ask; 3] = [
        |cache, patience| cache.try_get_or_insert_with_timeout(1, patience, || Err(())).ok(),
        |cache, patience| cache.try_get_or_insert_with_shared_timeout(1, patience, || Err(())).ok(),
        |cache, patience| {
            let mut out = [None; 2];
            let load = |keys: Vec<u64>| Ok::<_, ()>(keys.into_iter().map(|key| (key, 10 * key)));
            let answer = cache.try_get_many_or_insert_with_shared_timeout(&[1, 2], &mut out, patience, load);
            assert_eq!(out[1], Some(20));
            answer.ok().and(out[0])
        },
    ];
    let waits_in_vain = |ask: Ask, patience| {
        let cache: Cache<u64, u64> = Cache::new(10);
        let mut leader = pin!(cache.get_or_insert_async(1, pending()));
        assert!(leader.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| ask(&cache, patience));
            std::thread::sleep(A_WHILE);
            cache.insert(1, 5).unwrap();
            waiting.join().unwrap()
        })
    };
    for ask in asks {
        let found = [200, 2_000, 20_000]
            .into_iter()
            .find_map(|millis| waits_in_vain(ask, Duration::from_millis(millis)));
        assert_eq!(found, Some(5));
    }
}

/// A clock that shows one more hour after this many reads.
#[derive(Clone)]
struct Jumps(ManualClock, Arc<AtomicUsize>);

impl Jumps {
    /// Never: after none of the reads to come.
    const NEVER: usize = usize::MAX;

    fn new() -> Self {
        Jumps(ManualClock::new(), Arc::new(AtomicUsize::new(Jumps::NEVER)))
    }

    fn at(&self, read: usize) {
        self.1.store(read, Ordering::Relaxed);
    }
}

impl Clock for Jumps {
    fn now(&self) -> Duration {
        if self.1.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.0.advance(Duration::from_secs(3600));
            self.at(Jumps::NEVER);
        }
        self.0.now()
    }
}

/// Whenever its time ends: the report to the listener agrees with the answer.
#[test]
fn what_expires_while_others_make_room_for_its_new_value_is_not_updated() {
    let mut answers = [0, 0];
    for read in 1..60 {
        let clock = Jumps::new();
        let (builder, told) = listening(weighing_values(40_000).time_to_live(LIFE).clock(clock.clone()));
        let cache = builder.build();
        cache.insert(1, 10).unwrap();
        clock.at(read);
        let mut asked = Vec::new();
        let done = cache.compute(1, |old| {
            asked.push(old.copied());
            Operation::<u64, ()>::Insert(30_000 + old.copied().unwrap_or(0))
        });
        clock.at(Jumps::NEVER);
        let told = told.lock().unwrap().first().copied();
        match done.unwrap() {
            Compute::Updated { old, new } => {
                assert_eq!((old, new, asked.len()), ((1, 10), (1, 30_010), 1), "{read}");
                assert_eq!(told, Some((1, 10, Cause::Replaced)), "{read}");
                answers[0] += 1;
            }
            Compute::Inserted(key, value) => {
                assert_eq!((key, value, asked.last()), (1, 30_000, Some(&None)), "{read}");
                assert_eq!(told, Some((1, 10, Cause::Expired)), "{read}");
                answers[1] += 1;
            }
            other => panic!("{other:?}"),
        }
    }
    assert!(answers[0] > 0 && answers[1] > 0, "{answers:?}");
}

/// Whenever its time ends before it is inserted.
#[test]
fn what_expires_as_a_dump_is_loaded_is_handed_back() {
    let mut taken = 0;
    for read in 1..20 {
        let clock = Jumps::new();
        let (builder, told) = listening(weighing_values(40_000).time_to_live(LIFE).clock(clock.clone()));
        let cache = builder.build();
        cache.insert(1, 10).unwrap();
        let dump = cache.dump();
        cache.clear();
        clock.at(read);
        let rest = cache.load(dump);
        clock.at(Jumps::NEVER);
        taken += usize::from(rest.is_empty());
        assert_eq!((rest.len(), cache.len()), if rest.is_empty() { (0, 1) } else { (1, 0) });
        assert!(rest.is_empty() == cache.get(&1).is_some(), "{read}");
        assert!(told.lock().unwrap().iter().all(|told| told.2 == Cause::Explicit), "{read}");
    }
    assert!(taken > 0 && taken < 19, "{taken}");
}
