//! The remaining lifetimes of entries in dumps.

use std::time::Duration;

use koel::{Cache, Cause, ManualClock};

use super::{contents, load_all};
use crate::common::seeded;
use crate::{SEVERAL_SEGMENTS, listening};

const SECOND: Duration = Duration::from_secs(1);

pub(super) fn dying(clock: &ManualClock, live: u32, idle: u32) -> Cache<u64, u64> {
    let builder = Cache::builder().max_entries(10).clock(clock.clone());
    builder.time_to_live(SECOND * live).time_to_idle(SECOND * idle).build()
}

#[test]
fn what_was_left_of_a_life_is_left() {
    let clock = ManualClock::new();
    clock.advance(1000 * SECOND);
    let old = dying(&clock, 60, 1000);
    old.insert(1, 1).unwrap();
    clock.advance(20 * SECOND);
    old.insert(2, 2).unwrap();
    clock.advance(10 * SECOND);
    let dump = old.dump();
    // A clock that has just begun.
    let clock = ManualClock::new();
    let (new, longer, shorter) = (dying(&clock, 60, 1000), dying(&clock, 500, 1000), dying(&clock, 5, 1000));
    for cache in [&new, &longer, &shorter] {
        load_all(cache, &dump);
    }
    let alive = |cache: &Cache<u64, u64>| contents(cache).into_keys().collect::<Vec<_>>();
    clock.advance(5 * SECOND);
    assert_eq!((alive(&new), alive(&shorter)), (vec![1, 2], vec![]));
    clock.advance(24 * SECOND);
    assert_eq!((alive(&new), alive(&longer)), (vec![1, 2], vec![1, 2]));
    clock.advance(SECOND);
    assert_eq!((alive(&new), alive(&longer)), (vec![2], vec![2]));
    clock.advance(20 * SECOND);
    assert_eq!((alive(&new), alive(&longer)), (vec![], vec![]));
}

#[test]
fn what_was_idle_has_been_idle() {
    let clock = ManualClock::new();
    let old = dying(&clock, 1000, 30);
    (1..=3).for_each(|key| old.insert(key, key).unwrap());
    clock.advance(20 * SECOND);
    old.get(&2);
    clock.advance(9 * SECOND);
    let dump = old.dump();
    let clock = ManualClock::new();
    let (new, strict) = (dying(&clock, 1000, 30), dying(&clock, 1000, 10));
    // 1 and 3 were idle for 29 seconds, 2 for 9.
    load_all(&new, &dump);
    assert_eq!(strict.load(dump).len(), 2);
    assert!(new.get(&3).is_some());
    clock.advance(SECOND);
    assert_eq!(contents(&new).into_keys().collect::<Vec<_>>(), [2, 3]);
    assert!(strict.is_empty() || contents(&strict).is_empty());
    clock.advance(20 * SECOND);
    assert_eq!(contents(&new).into_keys().collect::<Vec<_>>(), [3]);
}

#[test]
fn expired_entries_are_neither_dumped_nor_in_the_way() {
    let clock = ManualClock::new();
    let cache = dying(&clock, 10, 100);
    cache.insert(1, 1).unwrap();
    let young = cache.dump();
    clock.advance(10 * SECOND);
    assert!(cache.dump().is_empty() && young.len() == 1);
    // Its own expired entry has the key.
    load_all(&cache, &young);
    assert_eq!(cache.get(&1), Some(1));
}

/// No call has come since they expired. If there is room next to them, each is found in the place of its own successor.
#[test]
fn a_cache_full_of_expired_entries_has_room_for_all() {
    for (entries, most) in [(10, 10), (SEVERAL_SEGMENTS, SEVERAL_SEGMENTS), (1500, 4000)] {
        let clock = ManualClock::new();
        let builder = Cache::builder().max_entries(most).hasher(seeded(1)).clock(clock.clone());
        let (builder, told) = listening(builder.time_to_live(SECOND));
        let cache = builder.build();
        (0..entries as u64).for_each(|key| cache.insert(key, key).unwrap());
        told.lock().unwrap().clear();
        let (dump, old) = (cache.dump(), cache.len());
        clock.advance(SECOND);
        load_all(&cache, &dump);
        assert_eq!(contents(&cache).len(), dump.len());
        let told = told.lock().unwrap();
        assert!(told.len() == old && told.iter().all(|&(.., cause)| cause == Cause::Expired));
    }
}

/// If the cache has no limit on idle time, the time of the last use is not noted.
#[test]
fn what_may_be_idle_is_dumped_as_just_used() {
    let clock = ManualClock::new();
    let builder = Cache::builder().max_entries(10).clock(clock.clone());
    let old: Cache<u64, u64> = builder.time_to_live(SECOND * 100).build();
    old.insert(1, 1).unwrap();
    clock.advance(SECOND * 50);
    let new = dying(&clock, 1000, 10);
    load_all(&new, &old.dump());
    clock.advance(SECOND * 9);
    assert_eq!(new.get(&1), Some(1));
    clock.advance(SECOND * 11);
    assert_eq!(new.get(&1), None);
}

/// A dump of entries that expire in 60 and 50 seconds, and have been idle for 10 and 0; and of one that lives forever.
#[test]
fn a_dump_ages_as_its_cache_would_have() {
    let clock = ManualClock::new();
    let old = dying(&clock, 60, 1000);
    old.insert(1, 1).unwrap();
    clock.advance(10 * SECOND);
    old.insert(2, 2).unwrap();
    let dump = old.dump();
    for (seconds, left) in [(0, 2), (49, 2), (50, 1), (59, 1), (60, 0), (u32::MAX, 0)] {
        let mut aged = dump.clone();
        aged.age(seconds / 2 * SECOND);
        aged.age((seconds - seconds / 2) * SECOND);
        assert_eq!(aged.len(), left, "{seconds}");
        // Not a moment earlier or later than in the cache itself.
        let clock = ManualClock::new();
        let new = dying(&clock, 60, 1000);
        load_all(&new, &aged);
        let rest = 60_u32.saturating_sub(seconds);
        clock.advance((rest * SECOND).saturating_sub(Duration::from_nanos(1)));
        assert_eq!(contents(&new).contains_key(&2), left > 0, "{seconds}");
        clock.advance(Duration::from_nanos(1));
        assert!(contents(&new).is_empty(), "{seconds}");
    }
    let mut aged = dump;
    aged.age(9 * SECOND);
    let strict = dying(&ManualClock::new(), 1000, 10);
    assert_eq!((strict.load(aged).len(), contents(&strict).len()), (1, 1), "1 has been idle for 19 seconds");
    let for_ever: Cache<u64, u64> = Cache::new(10);
    for_ever.insert(1, 1).unwrap();
    let mut aged = for_ever.dump();
    aged.age(Duration::MAX);
    aged.age(Duration::MAX);
    load_all(&Cache::new(10), &aged);
    assert_eq!(dying(&ManualClock::new(), 1000, 1000).load(aged).len(), 1, "idle for ever");
}

/// As for an entry inserted with a lifetime that is no longer: here the dump's entry has one, and the cache gives it none.
#[test]
fn what_has_no_longer_to_live_than_it_is_refreshed_ahead_is_not_refreshed() {
    let clock = ManualClock::new();
    for (lives, is_due) in [(5, false), (10, false), (11, true)] {
        let builder = Cache::builder().max_entries(10).clock(clock.clone());
        let cache: Cache<u64, u64> = builder.expiry(|_, _| None).refresh_ahead(10 * SECOND).build();
        let old = dying(&clock, lives, 1000);
        old.insert(1, 1).unwrap();
        load_all(&cache, &old.dump());
        clock.advance(4 * SECOND);
        assert_eq!((cache.peek(&1), cache.needs_refresh(&1)), (Some(1), is_due), "{lives}");
    }
}
