//! Which filters may be united, and that those which may not are left as they are.

use koel::{CuckooFilter, FilterBuilder, FilterError};

/// Each differs from the first in one thing: size, up and down, width, buckets, encoding, seed.
fn parameters() -> [FilterBuilder; 7] {
    let of = |layout, capacity, seed| crate::builder(layout).capacity(capacity).seed(seed);
    [
        of((12, 4, false), 1000, 1),
        of((12, 4, false), 2000, 1),
        of((12, 4, false), 100, 1),
        of((13, 4, false), 1000, 1),
        of((12, 8, false), 1000, 1),
        of((12, 4, true), 1000, 1),
        of((12, 4, false), 1000, 2),
    ]
}

#[test]
fn filters_of_unequal_parameters_are_not_united_and_stay_as_they_are() {
    let filled = |from: u64| {
        parameters().map(|builder| {
            let filter: CuckooFilter = builder.build().unwrap();
            (from..from + 50).for_each(|key| filter.insert(&key).unwrap());
            filter
        })
    };
    let (ones, others) = (filled(0), filled(50));
    for (i, one) in ones.iter().enumerate() {
        for (j, other) in others.iter().enumerate().filter(|(j, _)| *j != i) {
            let before = (one.to_bytes(), other.to_bytes());
            assert!(matches!(one.try_union(other), Err(FilterError::Mismatch)), "{i} and {j}");
            assert_eq!((one.to_bytes(), other.to_bytes()), before, "{i} and {j}");
        }
    }
    for (one, other) in ones.iter().zip(&others) {
        one.try_union(other).unwrap();
        assert!((0..100_u64).all(|key| one.contains(&key)), "{}", one.info());
    }
}
