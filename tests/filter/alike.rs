//! Different keys that a growing filter cannot tell apart.

use koel::{FilterError, ScalableCuckooFilter};

use crate::common::seed;

/// Three such keys in a pair of buckets of one slot, and five in one of two slots, are not rare.
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

/// Together twice as often as one of them.
#[test]
fn keys_that_are_alike_come_too_often_together() {
    let n = 50_000_u64;
    let keys = || (0..8).flat_map(|_| 0..n);
    let builder = || ScalableCuckooFilter::builder().false_positive_rate(0.01).seed(seed());
    let refused = builder().from_keys(keys()).map(|filter| filter.info());
    assert!(matches!(refused, Err(FilterError::Full { .. })), "{refused:?}");
    let filter = builder().max_duplicates(24).from_keys(keys()).unwrap();
    assert_eq!(filter.len() as u64, 8 * n);
    let alike = (0..n).filter(|key| filter.count(key) > 8).count();
    assert!((2..100).contains(&alike), "{alike} of {n}");
}
