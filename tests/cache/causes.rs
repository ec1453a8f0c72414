//! Which cause a listener is told if an entry has left for two causes.

use std::sync::{Arc, Barrier, Mutex};
use std::time::Duration;

use koel::{Cache, Cause, ManualClock};

use crate::common::hashers::Through;
use crate::{POLICIES, listening};

#[test]
fn who_grows_is_replaced_though_it_is_its_old_value_that_makes_room() {
    for policy in POLICIES {
        // The other entry was, or was not, hit often enough to outlive it.
        for (key, hits) in [1, 2].into_iter().flat_map(|key| (0..3).map(move |hits| (key, hits))) {
            let builder = Cache::builder().max_weight(100).weigher(|_, value| *value).policy(policy);
            let (builder, told) = listening(builder.estimated_entries(10));
            let cache = builder.build();
            cache.insert(1, 50).unwrap();
            cache.insert(2, 50).unwrap();
            (0..hits).for_each(|_| assert!(cache.get(&(3 - key)).is_some()));
            cache.insert(key, 100).unwrap();
            let mut told = told.lock().unwrap().clone();
            told.sort_unstable_by_key(|&(other, ..)| other != key);
            assert_eq!(told, [(key, 50, Cause::Replaced), (3 - key, 50, Cause::Size)], "{policy:?}");
            let stats = cache.stats();
            assert_eq!((stats.evictions, stats.evicted_weight), (1, 50), "{policy:?}");
        }
    }
}

/// All keys have the same two buckets.
#[test]
fn who_is_in_the_way_and_has_expired_has_expired() {
    let same: fn(u64) -> u64 = |_| 7;
    for policy in POLICIES {
        let clock = ManualClock::new();
        let builder = Cache::builder().max_entries(1000).policy(policy).hasher(Through(same));
        let (builder, told) = listening(builder.time_to_live(Duration::from_secs(1)).clock(clock.clone()));
        let cache = builder.build();
        (0..8).for_each(|key| cache.insert(key, 0).unwrap());
        clock.advance(Duration::from_secs(1));
        cache.insert(8, 0).unwrap();
        let causes: Vec<_> = told.lock().unwrap().iter().map(|&(.., cause)| cause).collect();
        assert_eq!((causes, cache.stats().evictions), (vec![Cause::Expired], 0), "{policy:?}");
    }
}

/// It was requested, but could not be returned any more.
#[test]
fn who_is_cleared_away_and_has_expired_has_expired() {
    for policy in POLICIES {
        let clock = ManualClock::new();
        let builder = Cache::builder().max_entries(10).policy(policy);
        let (builder, told) = listening(builder.time_to_live(Duration::from_secs(2)).clock(clock.clone()));
        let cache = builder.build();
        cache.insert(1, 1).unwrap();
        clock.advance(Duration::from_secs(1));
        cache.insert(2, 2).unwrap();
        clock.advance(Duration::from_secs(1));
        cache.clear();
        told.lock().unwrap().sort_unstable_by_key(|&(key, ..)| key);
        assert_eq!(*told.lock().unwrap(), [(1, 1, Cause::Expired), (2, 2, Cause::Explicit)], "{policy:?}");
        assert_eq!(cache.stats().expirations, 1);
    }
}

#[test]
fn who_expires_while_it_is_told_to_go_has_expired() {
    let clock = ManualClock::new();
    let (builder, told) = listening(Cache::builder().max_entries(10));
    let cache = builder.time_to_live(Duration::from_secs(1)).clock(clock.clone()).build();
    cache.insert(1, 1).unwrap();
    cache.retain(|_, _| {
        clock.advance(Duration::from_secs(1));
        false
    });
    assert_eq!(*told.lock().unwrap(), [(1, 1, Cause::Expired)]);
    assert_eq!((cache.len(), cache.stats().expirations), (0, 1));
}

/// Its segment had room for the one entry, and asks other segments for room for the other.
#[test]
fn who_has_expired_where_a_heavier_one_comes_has_expired() {
    for policy in POLICIES {
        let clock = ManualClock::new();
        let builder = crate::weighing_values(1 << 20).policy(policy).clock(clock.clone());
        let (builder, told) = listening(builder.time_to_live(Duration::from_secs(60)));
        let cache = builder.build();
        cache.insert(1, 300_000).unwrap();
        clock.advance(Duration::from_secs(60));
        cache.insert(1, 400_000).unwrap();
        assert_eq!(*told.lock().unwrap(), [(1, 300_000, Cause::Expired)], "{policy:?}");
        let stats = cache.stats();
        assert_eq!(
            (cache.get(&1), stats.weight, stats.expirations),
            (Some(400_000), 400_000, 1),
            "{policy:?}"
        );
    }
}

/// No lock is held when the listener is told: meanwhile other threads insert the key again, and remove it.
#[test]
fn of_two_values_of_a_key_either_may_be_told_of_first() {
    let (barrier, told) = (Arc::new(Barrier::new(2)), Arc::<Mutex<Vec<_>>>::default());
    let (meet, tell) = (Arc::clone(&barrier), Arc::clone(&told));
    let cache: Cache<u64, u64> = Cache::builder()
        .max_entries(10)
        .on_removal(move |&key, &value, cause| {
            if value == 10 {
                meet.wait();
                meet.wait();
            }
            tell.lock().unwrap().push((key, value, cause));
        })
        .build();
    cache.insert(1, 10).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| cache.remove(&1));
        barrier.wait();
        assert_eq!(cache.get(&1), None);
        cache.insert(1, 11).unwrap();
        assert_eq!(cache.remove(&1), Some(11));
        cache.insert(1, 12).unwrap();
        barrier.wait();
    });
    assert_eq!(*told.lock().unwrap(), [(1, 11, Cause::Explicit), (1, 10, Cause::Explicit)]);
    assert_eq!(cache.get(&1), Some(12));
}
