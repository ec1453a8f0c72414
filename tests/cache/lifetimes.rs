//! How long entries live, and the memory that this takes.

use std::time::Duration;

use koel::{Cache, CacheBuilder, Clock, ManualClock};

const SECOND: Duration = Duration::from_secs(1);

/// A clock that has gone as far as it can.
#[test]
fn what_lives_for_ever_is_there_at_the_end_of_time() {
    let clock = ManualClock::new();
    let cache: Cache<u64, u64> =
        Cache::builder().max_entries(10).expiry(|_, _| None).clock(clock.clone()).build();
    cache.insert(1, 1).unwrap();
    clock.advance(Duration::MAX);
    assert_eq!(cache.get(&1), Some(1));
}

/// Hits in quick succession count as one, but not so few are counted that the entry would expire.
#[test]
fn what_is_hit_again_and_again_is_there_however_short_it_may_be_idle() {
    for idle in [10, 1_000, 100_000, 1_000_000, 50_000_000].map(Duration::from_nanos) {
        let clock = ManualClock::new();
        let builder = Cache::builder().max_entries(10).time_to_idle(idle).clock(clock.clone());
        let cache: Cache<u64, u64> = builder.build();
        cache.insert(1, 1).unwrap();
        for _ in 0..100 {
            clock.advance(idle / 2);
            assert_eq!(cache.get(&1), Some(1), "{idle:?}");
        }
        clock.advance(idle);
        assert_eq!(cache.get(&1), None, "{idle:?}");
    }
}

/// Alone, and together with a time that is the same for all: the shorter counts.
#[test]
fn each_may_be_idle_for_as_long_as_it_says() {
    for all in [None, Some(3 * SECOND)] {
        let clock = ManualClock::new();
        let mut builder = Cache::builder().max_entries(10).clock(clock.clone());
        builder = builder.idle_expiry(|_, seconds| (*seconds > 0).then(|| SECOND * *seconds));
        if let Some(all) = all {
            builder = builder.time_to_idle(all);
        }
        let cache: Cache<u32, u32> = builder.build();
        // 0: the same as for all.
        [0, 2, 4].iter().for_each(|seconds| cache.insert(*seconds, *seconds).unwrap());
        for _ in 0..3 {
            clock.advance(SECOND * 3 / 2);
            assert!([0, 2, 4].iter().all(|key| cache.get(key) == Some(*key)));
        }
        clock.advance(2 * SECOND);
        assert!(cache.peek(&2).is_none() && cache.peek(&0).is_some() && cache.peek(&4).is_some());
        clock.advance(SECOND);
        assert_eq!((cache.peek(&0).is_some(), cache.peek(&4).is_some()), (all.is_none(), all.is_none()));
        clock.advance(SECOND);
        assert_eq!((cache.get(&0).is_some(), cache.get(&4).is_some()), (all.is_none(), false));
    }
}

/// The earliest of deadlines and idle times, for all entries and of its own; and asking does not count as a use.
#[test]
fn what_an_entry_has_left_is_until_the_first_of_its_ends() {
    let seconds = |n: u32| Some(SECOND * n);
    let clock = ManualClock::new();
    let builder = Cache::builder().max_entries(10).clock(clock.clone());
    // Key and value determine how long it lives, and how long it may be idle; 0 is forever.
    let own = |n: u32| (n > 0).then(|| SECOND * n);
    let cache: Cache<u32, u32> =
        builder.expiry(move |key, _| own(*key)).idle_expiry(move |_, value| own(*value)).build();
    for (key, value) in [(0, 0), (10, 0), (10, 4), (10, 20)] {
        cache.insert(key, value).unwrap();
        let (lives, idle) = (own(key).unwrap_or(Duration::MAX), own(value).unwrap_or(Duration::MAX));
        assert_eq!(cache.time_left(&key), Some(lives.min(idle)), "{key} {value}");
    }
    assert_eq!(cache.time_left(&7), None, "it is not there");
    cache.insert(10, 4).unwrap();
    clock.advance(3 * SECOND);
    assert_eq!((cache.time_left(&10), cache.time_left(&10)), (seconds(1), seconds(1)), "asked twice");
    assert_eq!((cache.get(&10), cache.time_left(&10)), (Some(4), seconds(4)));
    clock.advance(3 * SECOND);
    assert_eq!((cache.get(&10), cache.time_left(&10)), (Some(4), seconds(4)));
    clock.advance(2 * SECOND);
    assert_eq!((cache.get(&10), cache.time_left(&10)), (Some(4), seconds(2)), "used or not");
    clock.advance(2 * SECOND - Duration::from_nanos(1));
    assert_eq!(cache.time_left(&10), Some(Duration::from_nanos(1)));
    clock.advance(Duration::from_nanos(1));
    assert_eq!((cache.time_left(&10), cache.time_left(&0)), (None, Some(Duration::MAX)));
    assert_eq!((cache.stats().hits, cache.stats().misses, cache.len()), (3, 0, 2), "no trace");
    clock.advance(Duration::MAX - clock.now());
    assert_eq!(cache.time_left(&0), Some(Duration::MAX));
}

#[test]
fn what_an_entry_has_left_is_told_by_each_cache_as_far_as_it_knows() {
    let clock = ManualClock::new();
    let left_of = |builder: CacheBuilder<u32, u32>| {
        let cache = builder.build();
        cache.insert(1, 9).unwrap();
        clock.advance(SECOND);
        cache.time_left(&1).unwrap()
    };
    // Caches without a clock.
    assert_eq!(left_of(Cache::builder().max_weight(1000)), Duration::MAX);
    assert_eq!(left_of(Cache::builder().max_weight(1000).weigher(|_, _| 7)), Duration::MAX);
    let left = |set: fn(CacheBuilder<u32, u32>) -> CacheBuilder<u32, u32>| {
        left_of(set(Cache::builder().max_weight(1000).clock(clock.clone())))
    };
    assert_eq!(left(|builder| builder.time_to_live(10 * SECOND)), 9 * SECOND);
    assert_eq!(left(|builder| builder.time_to_idle(10 * SECOND)), 9 * SECOND);
    assert_eq!(left(|builder| builder.time_to_live(3 * SECOND).time_to_idle(10 * SECOND)), 2 * SECOND);
    assert_eq!(left(|builder| builder.weigher(|_, _| 7).idle_expiry(|_, n| Some(SECOND * *n))), 8 * SECOND);
    assert_eq!(left(|builder| builder.time_to_live(Duration::MAX)), Duration::MAX);
}

/// After a dump it is as idle as it was, and the new cache determines how long it may be idle.
#[test]
fn what_may_be_idle_for_its_own_time_is_restored_with_the_rest_of_it() {
    let of = |clock: &ManualClock, times: u32| -> Cache<u32, u32> {
        let builder = Cache::builder().max_entries(10).clock(clock.clone());
        builder.idle_expiry(move |_, seconds| Some(SECOND * *seconds * times)).build()
    };
    let clock = ManualClock::new();
    let old = of(&clock, 1);
    [10, 20].iter().for_each(|seconds| old.insert(*seconds, *seconds).unwrap());
    clock.advance(9 * SECOND);
    old.get(&20);
    let (same, longer) = (of(&clock, 1), of(&clock, 2));
    assert!(same.load(old.dump()).is_empty() && longer.load(old.dump()).is_empty());
    clock.advance(SECOND);
    assert_eq!([10, 20].map(|key| same.peek(&key)), [None, Some(20)]);
    clock.advance(10 * SECOND);
    assert_eq!([10, 20].map(|key| longer.peek(&key)), [None, Some(20)]);
    clock.advance(9 * SECOND);
    assert_eq!([10, 20].map(|key| same.peek(&key)), [None, None]);
    assert_eq!(longer.peek(&20), Some(20));
}

/// This many words in addition to the entry: one for each option.
#[test]
fn each_option_takes_its_own_words_of_an_entry() {
    const ENTRIES: u64 = 50_000;
    const HOUR: Duration = Duration::from_secs(3600);
    let bytes = |set: fn(CacheBuilder<u64, u64>) -> CacheBuilder<u64, u64>| {
        let cache = set(Cache::builder().max_weight(ENTRIES).estimated_entries(ENTRIES as usize)).build();
        (0..ENTRIES).for_each(|key| cache.insert(key, key).unwrap());
        cache.memory_usage() as f64 / cache.len() as f64
    };
    let plain = bytes(|builder| builder);
    let words = [
        bytes(|builder| builder.weigher(|_, _| 1)),
        bytes(|builder| builder.time_to_live(HOUR)),
        bytes(|builder| builder.time_to_idle(HOUR)),
        bytes(|builder| builder.idle_expiry(|_, _| None)),
        bytes(|builder| builder.weigher(|_, _| 1).expiry(|_, _| None).idle_expiry(|_, _| None)),
    ]
    .map(|bytes| (bytes - plain) / 8.0);
    for (words, expected) in words.into_iter().zip([1.0, 1.0, 2.0, 3.0, 4.0]) {
        assert!((words - expected).abs() < 0.3, "{words} words instead of {expected}");
    }
}

/// The policy's notes on expired entries go, too.
#[test]
fn what_is_purged_leaves_nothing_in_queues() {
    let clock = ManualClock::new();
    let life = Duration::from_secs(1);
    let builder = Cache::builder().max_weight(u64::MAX).time_to_live(life).clock(clock.clone());
    let cache: Cache<u64, u64> = builder.build();
    (0..100_000).for_each(|key| cache.insert(key, key).expect("it is light"));
    clock.advance(life);
    cache.purge();
    let purged = cache.memory_usage();
    cache.clear();
    assert!(purged <= cache.memory_usage() + 10_000, "{purged} purged, {} cleared", cache.memory_usage());
    // The present entries keep their positions in their queues.
    (0..1000).for_each(|key| cache.insert(key, key).expect("it is light"));
    cache.purge();
    cache.set_capacity(10);
    assert_eq!(cache.len(), 10);
}
