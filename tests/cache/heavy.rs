//! Heavy entries that fit are there, however they came in and whatever was there before them.

use koel::Cache;

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
