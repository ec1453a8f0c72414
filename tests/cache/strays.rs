//! Entries to which no queue would lead any more.

use koel::Cache;

use crate::POLICIES;
use crate::common::{seed, seeded};

const CAPACITY: u64 = 300;

/// While the table is small many keys have one place there, and the notes on removed keys lead to others.
#[test]
fn whatever_is_not_asked_for_leaves_though_others_were_removed_before_the_table_grew() {
    for policy in POLICIES {
        // After some of these numbers the notes on removed keys, or most of them, have just been dropped.
        for (gone, round) in (70..78).flat_map(|gone| (0..2).map(move |round| (gone, round))) {
            let builder = Cache::builder().max_weight(CAPACITY).weigher(|_: &u64, _: &u64| 1);
            let builder = builder.estimated_entries(10).policy(policy);
            let cache = builder.hasher(seeded(seed() + 100 * round + gone)).build();
            (0..40).for_each(|key| cache.insert(key, key).unwrap());
            for key in 40..40 + gone {
                cache.insert(key, key).unwrap();
                assert!(cache.remove(&key).is_some());
            }
            for key in 200..30 * CAPACITY {
                cache.insert(key, key).unwrap();
                assert!((0..2).all(|_| cache.peek(&key).is_none() || cache.get(&key).is_some()));
            }
            let left: Vec<u64> = cache.iter().map(|(key, _)| key).filter(|&key| key < 200).collect();
            assert!(left.is_empty(), "{policy:?}, {gone}: {left:?} are older than 29 times the capacity");
        }
    }
}
