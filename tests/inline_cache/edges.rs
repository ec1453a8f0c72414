//! The smallest and the largest caches, what their options refuse, and how much memory they take.

use std::sync::Arc;

use koel::{Cache, CacheError, InlineCache, Operation, Policy};

use crate::POLICIES;

#[test]
fn a_cache_of_none_keeps_nothing() {
    for policy in POLICIES {
        let cache: InlineCache<u64, u64> = InlineCache::builder().max_entries(0).policy(policy).build();
        assert_eq!((cache.insert(1, 10), cache.insert(1, 11), cache.get(&1)), (None, None, None));
        assert_eq!(cache.get_or_insert_with(1, || 12), 12);
        assert_eq!((cache.len(), cache.capacity(), cache.is_empty()), (0, 0, true));
    }
}

/// A value that writes to a cache when it is dropped, which must not be under that cache's lock.
struct Writes(Arc<InlineCache<u64, u64>>);

impl Writes {
    /// The caller owns this value.
    fn is_kept(&self) -> bool {
        true
    }
}

impl Drop for Writes {
    fn drop(&mut self) {
        self.0.insert(77, 77);
    }
}

#[test]
fn what_a_closure_owns_that_does_not_run_is_not_dropped_under_the_lock() {
    let cache = Arc::new(InlineCache::new(100));
    let own = || Writes(Arc::clone(&cache));
    let check = |what: &str| assert_eq!(cache.remove(&77), Some(77), "{what}");
    let owned = own();
    assert_eq!(cache.remove_if(&1, move |_, _| owned.is_kept()), None);
    check("remove_if");
    let owned = own();
    assert_eq!(cache.update(1, move |n| n + u64::from(owned.is_kept())), None);
    check("update");
    let owned = own();
    assert_eq!(cache.update_or_insert(1, move |n| n + u64::from(owned.is_kept()), 10), 10);
    check("update_or_insert");
    let owned = own();
    assert_eq!(cache.update_or_insert_with(1, |n| n + 1, move || u64::from(owned.is_kept())), 11);
    check("update_or_insert_with");
}

#[test]
fn every_bound_is_kept_and_reached() {
    for policy in POLICIES {
        for capacity in (1..70).chain([1023, 1024, 2047, 2048, 5000]) {
            let cache: InlineCache<u32, u8> =
                InlineCache::builder().max_entries(capacity).policy(policy).build();
            let mut most = 0;
            for key in 0..3 * capacity as u32 {
                cache.insert(key, 0);
                assert!(cache.len() <= capacity);
                most = most.max(cache.len());
            }
            // Not always at the end: if the last one found no path, which is rare, another entry has made way for it.
            assert_eq!((most, cache.capacity()), (capacity, capacity));
            assert!(cache.len() + 1 >= capacity, "{} of {capacity}", cache.len());
        }
    }
}

/// Replacing an entry counts as a use.
#[test]
fn an_entry_that_is_replaced_often_stays() {
    for policy in POLICIES {
        let inline: InlineCache<u64, u64> = InlineCache::builder().max_entries(100).policy(policy).build();
        let cache: Cache<u64, u64> = Cache::builder().max_entries(100).policy(policy).build();
        for n in 0..3000 {
            inline.insert(1 << 20, n);
            inline.compute(2 << 20, |_| Operation::<u64, ()>::Insert(n));
            inline.insert(n, n);
            cache.insert(1 << 20, n).unwrap();
            cache.compute(2 << 20, |_| Operation::<u64, ()>::Insert(n)).unwrap();
            cache.insert(n, n).unwrap();
            for key in [1 << 20, 2 << 20] {
                assert!(inline.contains_key(&key) && cache.contains_key(&key), "{policy:?}, {n}");
            }
        }
        assert_eq!((inline.len(), cache.len()), (100, 100));
    }
}

#[test]
fn options_say_what_is_wrong_with_them() {
    let error = InlineCache::<u8, u8>::builder().try_build().unwrap_err();
    assert_eq!(error, CacheError::NoBound);
    // Exactly the requested capacity, though all segments have the same.
    let said = usize::MAX - 12_345;
    let is_told = |error| matches!(error, CacheError::Capacity(error) if error.requested == said);
    assert!(is_told(InlineCache::<u64, u64>::builder().max_entries(said).try_build().unwrap_err()));
    assert!(is_told(Cache::<u64, u64>::builder().max_entries(said).try_build().unwrap_err()));
}

#[test]
fn an_entry_takes_less_than_18_bytes_beside_key_and_value() {
    for (policy, most) in [(Policy::Adaptive, 18.0), (Policy::Clock, 8.0), (Policy::Local, 8.0)] {
        let cache: InlineCache<u64, u64> = InlineCache::builder().max_entries(100_000).policy(policy).build();
        (0..400_000).for_each(|key| {
            cache.insert(key, key);
        });
        let each = cache.memory_usage() as f64 / cache.len() as f64 - 16.0;
        assert!(each < most, "{policy:?}: {each}");
    }
}

/// Values of any size, also zero.
#[test]
fn values_of_any_size_are_kept() {
    let units = InlineCache::<[u8; 3], ()>::new(10);
    units.insert([1, 2, 3], ());
    assert!(units.contains_key(&[1, 2, 3]) && !units.contains_key(&[3, 2, 1]));
    let large = InlineCache::<u8, [u64; 32]>::new(4);
    (0..100).for_each(|key| {
        large.insert(key, [u64::from(key); 32]);
    });
    assert_eq!(large.len(), 4);
    assert!(large.iter().all(|(key, value)| value == [u64::from(key); 32]));
}

#[test]
fn it_displays_what_it_has_counted() {
    let cache = InlineCache::<u32, u32>::new(2);
    (0..4).for_each(|key| {
        cache.insert(key, key);
    });
    cache.get(&9);
    let stats = cache.stats();
    assert_eq!((stats.insertions, stats.evictions, stats.evicted_weight), (4, 2, 2));
    assert_eq!((stats.len, stats.weight, stats.capacity), (2, 2, 2));
    assert!(stats.to_string().starts_with("0 hits, 1 misses"), "{stats}");
    assert_eq!(format!("{cache:?}"), "InlineCache { len: 2, capacity: 2, policy: Adaptive, .. }");
}
