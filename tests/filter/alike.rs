//! Different keys that a growing filter cannot tell apart.

use koel::ScalableCuckooFilter;

use crate::common::seed;

/// Three in a pair of buckets of one slot, and five of two slots, are not rare.
#[test]
fn different_keys_are_not_refused_in_buckets_of_any_size() {
    for slots in [1, 2, 4, 8] {
        for rate in [0.9, 0.01] {
            let builder = || ScalableCuckooFilter::builder().bucket_slots(slots).false_positive_rate(rate);
            let n = 200_000_u64;
            let filter =
                builder().seed(seed()).from_keys(0..n).unwrap_or_else(|error| panic!("{slots}: {error}"));
            (n..2 * n).for_each(|key| filter.insert(&key).unwrap());
            assert!(
                filter.len() as u64 == 2 * n && filter.false_positive_rate() <= rate,
                "{}",
                filter.info()
            );
        }
    }
}
