//! Heavy entries that fit are there, however they came in and whatever was there before them.

use koel::Cache;

use crate::common::{Seeded, seed, seeded};
use crate::weighing_values;

/// A cache of four segments, with other hash functions each time.
fn of_four(max_weight: u64, round: u64) -> Cache<u64, u64, Seeded> {
    weighing_values(max_weight).hasher(seeded(seed() + round)).build()
}

/// To replace an entry is to use it, and who was let in once is not asked what it is worth again.
#[test]
fn an_entry_that_grows_is_not_turned_away() {
    for after in [1001, 1010, 1500] {
        let builder = Cache::builder().max_weight(2000).estimated_entries(10);
        let cache = builder.weigher(|_, weight: &u64| *weight).build();
        cache.insert(7000, 1000).unwrap();
        (0..1000).for_each(|key| cache.insert(key, 1).unwrap());
        (0..1000).for_each(|key| assert_eq!(cache.get(&key), Some(1)));
        cache.insert(7000, after).unwrap();
        assert_eq!(cache.get(&7000), Some(after));
        assert_eq!(cache.stats().turned_away, 0);
    }
}

#[test]
fn a_cache_made_a_little_smaller_keeps_what_fits() {
    for round in 0..5 {
        let cache = of_four(1000, round);
        cache.insert(1, 900).unwrap();
        for capacity in [999, 950, 900] {
            cache.set_capacity(capacity);
            assert_eq!((cache.get(&1), cache.capacity()), (Some(900), capacity));
        }
        cache.set_capacity(899);
        assert_eq!((cache.get(&1), cache.weight()), (None, 0));
        // All of it can be used.
        cache.insert(2, 899).unwrap();
        let cache = of_four(1000, round);
        (0..20).for_each(|key| cache.insert(key, 45).unwrap());
        cache.set_capacity(900);
        assert_eq!(cache.len(), 20);
        cache.set_capacity(890);
        assert!(cache.len() < 20 && cache.weight() <= 890);
    }
}
