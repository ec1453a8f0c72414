//! `try_insert`: inserts unless the key is there.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex, OnceLock};
use std::thread::scope;
use std::time::Duration;

use koel::{Cache, Cause, Clock, InlineCache, ManualClock, Occupied, Policy, Why};

use crate::{listening, weighing_values};

#[test]
fn of_many_who_insert_a_key_one_is_told_that_it_is_new() {
    const THREADS: usize = 4;
    let (cache, inline) = (Cache::new(1000), InlineCache::new(1000));
    let (new, barrier) = (AtomicUsize::new(0), Barrier::new(THREADS));
    let counts = |is_new| new.fetch_add(usize::from(is_new), Ordering::Relaxed);
    scope(|scope| {
        for thread in 0..THREADS {
            let (cache, inline, barrier, counts) = (&cache, &inline, &barrier, &counts);
            scope.spawn(move || {
                for key in 0..500_u64 {
                    barrier.wait();
                    match cache.try_insert(key, thread).unwrap() {
                        Ok(()) => counts(true),
                        Err(Occupied { current, not_inserted }) => {
                            assert_eq!((Some(current), not_inserted), (cache.peek(&key), thread));
                            0
                        }
                    };
                    counts(inline.try_insert(key, thread).is_ok());
                }
            });
        }
    });
    assert_eq!((new.into_inner(), cache.len(), inline.len()), (1000, 500, 500));
}

#[test]
fn what_has_expired_is_not_there() {
    let clock = ManualClock::new();
    let builder = Cache::builder().max_entries(10).time_to_live(Duration::from_secs(60)).clock(clock.clone());
    let (builder, told) = listening(builder);
    let cache = builder.build();
    assert_eq!(cache.try_insert(1, 10), Ok(Ok(())));
    assert_eq!(cache.try_insert(1, 11), Ok(Err(Occupied { current: 10, not_inserted: 11 })));
    clock.advance(Duration::from_secs(60));
    assert_eq!(cache.try_insert(1, 12), Ok(Ok(())));
    assert_eq!((cache.get(&1), cache.time_left(&1)), (Some(12), Some(Duration::from_secs(60))));
    assert_eq!(*told.lock().unwrap(), [(1, 10, Cause::Expired)]);
}

/// Other segments are asked for room only if the entry is inserted.
#[test]
fn what_is_too_heavy_is_handed_back_and_what_is_there_sends_nobody_away() {
    let cache = weighing_values(100).build();
    let refused = cache.try_insert(1, 101).unwrap_err();
    assert_eq!(
        (refused.key, refused.value, refused.why),
        (1, 101, Why::TooHeavy { weight: 101, capacity: 100 })
    );
    assert_eq!(cache.try_insert(1, 60), Ok(Ok(())));
    assert_eq!(cache.try_insert(2, 40), Ok(Ok(())));
    // Also if the entry that was not inserted would not fit.
    for heavy in [50, 100, 101] {
        assert_eq!(cache.try_insert(1, heavy), Ok(Err(Occupied { current: 60, not_inserted: heavy })));
    }
    assert_eq!((cache.len(), cache.weight(), cache.stats().evictions), (2, 100, 0));
    assert_eq!(cache.try_insert(3, 100), Ok(Ok(())));
    assert!(cache.weight() <= 100);
}

/// Finding an entry counts neither as a hit nor as a use.
#[test]
fn it_leaves_no_trace() {
    let clock = ManualClock::new();
    let idle = Duration::from_secs(60);
    let cache = Cache::builder().max_entries(10).time_to_idle(idle).clock(clock.clone()).build();
    cache.insert(1, 10).unwrap();
    clock.advance(idle / 2);
    assert!(cache.try_insert(1, 11).unwrap().is_err());
    assert_eq!((cache.time_left(&1), cache.stats().hits, cache.stats().misses), (Some(idle / 2), 0, 0));
}

/// A caller that is loading the key gets its own value, and the inserted one stays.
#[test]
fn it_waits_for_no_loader_and_stays() {
    let cache = Cache::new(10);
    let loaded = cache.get_or_insert_with(1, || {
        assert_eq!(cache.try_insert(1, "inserted"), Ok(Ok(())));
        "loaded"
    });
    assert_eq!((loaded, cache.get(&1)), ("loaded", Some("inserted")));
    let inline = InlineCache::new(10);
    let loaded = inline.get_or_insert_with(1, || {
        assert_eq!(inline.try_insert(1, b'i'), Ok(()));
        b'l'
    });
    assert_eq!((loaded, inline.get(&1)), (b'l', Some(b'i')));
    assert_eq!(inline.try_insert(1, b'x'), Err(Occupied { current: b'i', not_inserted: b'x' }));
}

/// A value that is loaded meanwhile is older, and does not replace the inserted one when that has left.
#[test]
fn what_was_inserted_and_evicted_while_it_was_loaded_is_not_there() {
    let cache: Cache<u32, &str> = Cache::builder().max_entries(10).policy(Policy::Clock).build();
    let loaded = cache.get_or_insert_with(1, || {
        assert_eq!(cache.try_insert(1, "inserted"), Ok(Ok(())));
        (2..100).for_each(|key| cache.insert(key, "another").unwrap());
        assert_eq!(cache.peek(&1), None);
        "loaded"
    });
    assert_eq!((loaded, cache.get(&1)), ("loaded", None));
    let inline: InlineCache<u32, u8> = InlineCache::builder().max_entries(10).policy(Policy::Clock).build();
    let loaded = inline.get_or_insert_with(1, || {
        assert_eq!(inline.try_insert(1, b'i'), Ok(()));
        (2..100).for_each(|key| _ = inline.insert(key, b'a'));
        assert_eq!(inline.peek(&1), None);
        b'l'
    });
    assert_eq!((loaded, inline.get(&1)), (b'l', None));
}

/// It keeps nothing, and reports that the key was not there.
#[test]
fn an_inline_cache_for_nothing_takes_all() {
    let nothing = InlineCache::new(0);
    assert_eq!(
        (nothing.try_insert(1_u64, 1_u64), nothing.try_insert(1, 2), nothing.len()),
        (Ok(()), Ok(()), 0)
    );
}

/// A clock that returns the given readings, and then always the same one.
#[derive(Clone, Default)]
struct Told(Arc<Mutex<VecDeque<Duration>>>);

impl Told {
    fn next(&self, seconds: &[u64]) {
        self.0.lock().unwrap().extend(seconds.iter().copied().map(Duration::from_secs));
    }
}

impl Clock for Told {
    fn now(&self) -> Duration {
        self.0.lock().unwrap().pop_front().unwrap_or_default()
    }
}

/// Another thread inserts the key after it was looked up, and its time ends just then: a heavier entry must not take its place
/// without having been given room.
#[test]
fn an_entry_whose_time_ends_meanwhile_is_there_or_not() {
    let clock = Told::default();
    let cache: Arc<OnceLock<Cache<u64, u64>>> = Arc::default();
    let (all, ticks) = (Arc::clone(&cache), clock.clone());
    let weigher = move |key: &u64, weight: &u64| {
        if *weight == 101 {
            all.get().unwrap().insert(*key, 60).unwrap();
            ticks.next(&[59, 60, 60]);
        }
        *weight
    };
    let builder = Cache::builder().max_weight(100).weigher(weigher);
    let built = builder.time_to_live(Duration::from_secs(60)).clock(clock).build();
    assert!(cache.set(built).is_ok());
    let answer = cache.get().unwrap().try_insert(1, 101);
    assert_eq!(answer, Ok(Err(Occupied { current: 60, not_inserted: 101 })));
}

/// For `retain`: its closure is asked also about an entry that a clock which goes back has shown as expired.
#[test]
fn what_is_used_before_it_is_taken_out_stays() {
    let clock = Told::default();
    let (builder, told) = listening(Cache::builder().max_entries(10));
    let cache = builder.time_to_idle(Duration::from_secs(60)).clock(clock.clone()).build();
    cache.insert(1, 10).unwrap();
    clock.next(&[60]);
    let mut asked = 0;
    cache.retain(|_, _| {
        asked += 1;
        true
    });
    assert_eq!((asked, cache.peek(&1), told.lock().unwrap().len()), (1, Some(10), 0));
}
