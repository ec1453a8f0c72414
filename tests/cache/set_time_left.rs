//! The time that an entry has left, set by its user: longer, shorter, forever, none.

use std::cell::Cell;
use std::sync::mpsc;
use std::time::Duration;

use koel::{Cache, CacheBuilder, Cause, ManualClock, Operation};

use crate::common::catch;

const SECOND: Duration = Duration::from_secs(1);

/// A key that cannot be cloned, as nothing is cloned here.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Key(u32);

#[test]
fn the_same_entry_lives_longer_or_shorter_and_nobody_is_told() {
    let (clock, (told, events)) = (ManualClock::new(), mpsc::channel());
    let cache: Cache<Key, Key> = Cache::builder()
        .max_entries(10)
        .time_to_live(10 * SECOND)
        .clock(clock.clone())
        .on_removal(move |key: &Key, _: &Key, cause| told.send((key.0, cause)).unwrap())
        .build();
    (1..4).for_each(|n| cache.insert(Key(n), Key(n)).unwrap());
    let before = cache.stats();
    clock.advance(9 * SECOND);
    assert!(cache.set_time_left(&Key(1), 20 * SECOND));
    assert!(cache.set_time_left(&Key(2), Duration::MAX));
    assert_eq!(
        [1, 2, 3, 4].map(|n| cache.time_left(&Key(n)).map(|left| left.min(99 * SECOND).as_secs())),
        [Some(20), Some(99), Some(1), None]
    );
    assert!(!cache.set_time_left(&Key(4), SECOND), "it is not there");
    clock.advance(SECOND);
    assert!(!cache.set_time_left(&Key(3), SECOND), "it has expired");
    assert_eq!((cache.stats().insertions, cache.stats().hits), (before.insertions, before.hits));
    assert!(events.try_iter().next().is_none(), "nothing has left yet, nor been replaced");
    clock.advance(18 * SECOND);
    assert!(cache.contains_key(&Key(1)) && cache.set_time_left(&Key(2), SECOND));
    clock.advance(SECOND);
    assert!(!cache.contains_key(&Key(1)) && !cache.contains_key(&Key(2)));
    cache.insert(Key(5), Key(5)).unwrap();
    assert!(cache.set_time_left(&Key(5), Duration::ZERO) && !cache.contains_key(&Key(5)));
    cache.purge();
    let mut gone: Vec<_> = events.try_iter().collect();
    gone.sort_by_key(|(key, _)| *key);
    assert_eq!(gone, [1, 2, 3, 5].map(|key| (key, Cause::Expired)));
}

#[test]
fn it_is_a_use_and_what_may_not_be_idle_still_may_not() {
    let clock = ManualClock::new();
    let builder = Cache::builder().max_entries(10).clock(clock.clone());
    let cache: Cache<u32, u32> = builder.time_to_live(10 * SECOND).time_to_idle(4 * SECOND).build();
    cache.insert(1, 1).unwrap();
    clock.advance(3 * SECOND);
    assert!(cache.set_time_left(&1, 20 * SECOND));
    assert_eq!(cache.time_left(&1), Some(4 * SECOND));
    clock.advance(3 * SECOND);
    assert!(cache.set_time_left(&1, SECOND));
    assert_eq!(cache.time_left(&1), Some(SECOND));
    clock.advance(SECOND);
    assert!(!cache.set_time_left(&1, SECOND) && cache.get(&1).is_none());
}

#[test]
fn a_value_is_refreshed_by_its_new_time() {
    let clock = ManualClock::new();
    let builder = Cache::builder().max_entries(10).time_to_live(10 * SECOND).clock(clock.clone());
    let cache: Cache<u32, u32> = builder.refresh_ahead(3 * SECOND).build();
    cache.insert(1, 1).unwrap();
    clock.advance(8 * SECOND);
    assert!(cache.needs_refresh(&1));
    // The value of a refresh under way is too late: the entry is not due any more.
    let refresh = || {
        assert!(cache.set_time_left(&1, 10 * SECOND));
        2
    };
    cache.get_or_insert_with(1, refresh);
    assert_eq!((cache.get(&1), cache.needs_refresh(&1)), (Some(1), false));
    clock.advance(8 * SECOND);
    // It is in time, if the value has less.
    let refresh = || {
        assert!(cache.set_time_left(&1, SECOND) && !cache.needs_refresh(&1));
        1
    };
    cache.get_or_insert_with(1, refresh);
    assert_eq!(cache.time_left(&1), Some(10 * SECOND));
    clock.advance(7 * SECOND);
    // A refresh that failed is tried again, once the entry has more time.
    assert_eq!(cache.try_get_or_insert_with(1, || Err(7)), Ok(1));
    assert!(!cache.needs_refresh(&1));
    assert!(cache.set_time_left(&1, 4 * SECOND) && !cache.needs_refresh(&1));
    clock.advance(SECOND);
    assert!(cache.needs_refresh(&1));
    // As for an entry whose whole lifetime is no longer than that.
    assert!(cache.set_time_left(&1, 3 * SECOND) && !cache.needs_refresh(&1));
    clock.advance(2 * SECOND);
    assert!(!cache.needs_refresh(&1) && cache.set_time_left(&1, Duration::MAX) && !cache.needs_refresh(&1));
    assert_eq!(cache.time_left(&1), Some(Duration::MAX));
    assert_eq!(cache.get_or_insert_with(1, || unreachable!("it lives for ever")), 1);
}

#[test]
fn where_entries_have_no_time_it_says_so() {
    let set = |cache: &Cache<u32, u32>| catch(|| cache.set_time_left(&1, SECOND));
    let cache = Cache::new(10);
    cache.insert(1, 1).unwrap();
    assert!(set(&cache).unwrap_err().contains("`CacheBuilder::expiry`"));
    type Options = fn(CacheBuilder<u32, u32>) -> CacheBuilder<u32, u32>;
    let ways: [Options; 3] = [
        |builder| builder.expiry(|_, _| None),
        |builder| builder.idle_expiry(|_, _| None),
        |builder| builder.time_to_idle(9 * SECOND),
    ];
    for build in ways {
        let clock = ManualClock::new();
        let cache = build(Cache::builder().max_entries(10).clock(clock.clone())).build();
        cache.insert(1, 1).unwrap();
        assert_eq!(set(&cache), Ok(true));
        clock.advance(SECOND);
        assert_eq!((set(&cache), cache.get(&1)), (Ok(false), None));
    }
}

#[test]
fn under_the_lock_it_panics_as_every_write_does() {
    let cache: Cache<u32, u32> = Cache::builder().max_entries(10).time_to_live(SECOND).build();
    cache.insert(1, 1).unwrap();
    let asked = Cell::new(false);
    let decide = |_: Option<&u32>| {
        asked.set(true);
        Operation::<u32, bool>::Abort(cache.set_time_left(&1, SECOND))
    };
    assert!(catch(|| cache.compute(1, decide)).is_err() && asked.get());
    assert_eq!(cache.get(&1), Some(1));
}
