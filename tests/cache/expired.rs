//! A reader that finds an expired entry waits for nobody, runs no user code under another map's lock, and does not miss an
//! entry that has replaced it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};
use std::time::Duration;

use koel::{Cache, CacheBuilder, Cause, Clock, HashMap, ManualClock, Operation};

use crate::common::on_threads;
use crate::edges::comes_to_an_end;

/// A cache of one segment whose entries live one second, and its clock.
fn mortal(builder: CacheBuilder<u64, u64>) -> (Cache<u64, u64>, ManualClock) {
    mortal_of(10, builder)
}

/// The same, for this many entries, in as many segments as that takes.
fn mortal_of(entries: usize, builder: CacheBuilder<u64, u64>) -> (Cache<u64, u64>, ManualClock) {
    let clock = ManualClock::new();
    let builder = builder.max_entries(entries).time_to_live(Duration::from_secs(1)).clock(clock.clone());
    (builder.build(), clock)
}

#[test]
fn a_look_up_does_not_wait_for_who_has_the_expired_entrys_segment() {
    comes_to_an_end(|| {
        let (cache, clock) = mortal(Cache::builder());
        cache.insert(1, 1).unwrap();
        clock.advance(Duration::from_secs(1));
        let (locked, looked_up) = (Barrier::new(2), Barrier::new(2));
        on_threads(2, |thread| match thread {
            0 => {
                let decide = |_: Option<&u64>| {
                    locked.wait();
                    looked_up.wait();
                    Operation::<u64, ()>::Abort(())
                };
                cache.compute(2, decide).unwrap();
            }
            _ => {
                locked.wait();
                assert_eq!((cache.get(&1), cache.len()), (None, 1));
                looked_up.wait();
            }
        });
        // The next caller removes it.
        assert_eq!((cache.get(&1), cache.len(), cache.stats().expirations), (None, 0, 1));
    });
}

#[test]
fn closures_that_find_expired_entries_in_one_anothers_caches_do_not_wait_for_each_other() {
    comes_to_an_end(|| {
        let ((a, clock_of_a), (b, clock_of_b)) = (mortal(Cache::builder()), mortal(Cache::builder()));
        for (cache, clock) in [(&a, &clock_of_a), (&b, &clock_of_b)] {
            cache.insert(1, 1).unwrap();
            clock.advance(Duration::from_secs(1));
        }
        let both = Barrier::new(2);
        on_threads(2, |thread| {
            let (mine, other) = if thread == 0 { (&a, &b) } else { (&b, &a) };
            let decide = |_: Option<&u64>| {
                both.wait();
                assert_eq!(other.get(&1), None);
                Operation::<u64, ()>::Abort(())
            };
            mine.compute(2, decide).unwrap();
        });
    });
}

#[test]
fn a_listener_is_not_told_of_expired_entries_under_a_maps_lock() {
    static IS_LOCKED: AtomicBool = AtomicBool::new(false);
    let builder = Cache::builder().on_removal(|_, _, cause| {
        assert_eq!((cause, IS_LOCKED.load(Ordering::Relaxed)), (Cause::Expired, false));
    });
    let (cache, clock) = mortal(builder);
    let map = HashMap::new();
    map.pin().insert(1, 0);
    cache.insert(1, 1).unwrap();
    clock.advance(Duration::from_secs(1));
    map.pin().update(1, |_| {
        IS_LOCKED.store(true, Ordering::Relaxed);
        let found = cache.get(&1).unwrap_or(7);
        IS_LOCKED.store(false, Ordering::Relaxed);
        found
    });
    assert_eq!((map.pin().get(&1), cache.len()), (Some(&7), 1));
    assert_eq!((cache.get(&1), cache.len()), (None, 0));
}

/// A clock that lets another thread go on, once, before it returns the time.
#[derive(Clone)]
struct Interrupted {
    clock: ManualClock,
    asks: Arc<AtomicBool>,
    turns: Arc<Barrier>,
}

impl Clock for Interrupted {
    fn now(&self) -> Duration {
        if self.asks.swap(false, Ordering::Relaxed) {
            self.turns.wait();
            self.turns.wait();
        }
        self.clock.now()
    }
}

/// A key is refreshed before its time is over, and the old entry's time is over before the reader that has found it asks for
/// the time.
#[test]
fn what_has_come_in_place_of_an_entry_that_expires_as_it_is_found_is_not_missed() {
    type LookUp = fn(&Cache<u64, u64>) -> Option<u64>;
    let look_ups: [LookUp; 6] = [
        |cache| cache.get(&1),
        |cache| cache.peek(&1),
        |cache| cache.contains_key(&1).then_some(2),
        |cache| cache.pin().get_ref(&1).copied(),
        |cache| {
            let mut out = [None];
            cache.get_many(&[1], &mut out);
            out[0]
        },
        |cache| Some(cache.get_or_insert_with(1, || 3)),
    ];
    comes_to_an_end(move || {
        for look_up in look_ups {
            let clock = ManualClock::new();
            let (asks, turns) = (Arc::new(AtomicBool::new(false)), Arc::new(Barrier::new(2)));
            let interrupted = Interrupted { clock: clock.clone(), asks, turns };
            let builder = Cache::builder().max_entries(10).time_to_live(Duration::from_secs(10));
            let cache = builder.clock(interrupted.clone()).build();
            cache.insert(1, 1).unwrap();
            clock.advance(Duration::from_secs(9));
            interrupted.asks.store(true, Ordering::Relaxed);
            on_threads(2, |thread| match thread {
                0 => assert_eq!(look_up(&cache), Some(2)),
                _ => {
                    interrupted.turns.wait();
                    cache.insert(1, 2).unwrap();
                    clock.advance(Duration::from_secs(1));
                    interrupted.turns.wait();
                }
            });
            assert_eq!((cache.peek(&1), cache.stats().expirations), (Some(2), 0));
        }
    });
}

#[test]
fn what_has_expired_leaves_with_insertions_however_many_of_them_came_by_nothing_before() {
    let (cache, clock) = mortal_of(4000, Cache::builder());
    for key in (0..2000).cycle().take(20_000) {
        cache.insert(key, key).unwrap();
    }
    clock.advance(Duration::from_secs(1));
    for key in 2000..4000 {
        cache.insert(key, key).unwrap();
    }
    // All, except one or the other that was displaced to a bucket that had already been searched.
    let gone = cache.stats().expirations;
    assert!((1950..=2000).contains(&gone), "{gone}");
}
