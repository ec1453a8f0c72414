//! Which filters may be united; the others are left as they are.

use std::hash::BuildHasher;

use koel::{CuckooFilter, FilterBuilder, FilterError, FilterHasher, Xxh3, Xxh3Hasher};

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

/// One filter of each, with 50 keys.
fn filled(from: u64) -> [CuckooFilter; 7] {
    parameters().map(|builder| {
        let filter: CuckooFilter = builder.build().unwrap();
        (from..from + 50).for_each(|key| filter.insert(&key).unwrap());
        filter
    })
}

#[test]
fn filters_of_unequal_parameters_are_not_united_and_stay_as_they_are() {
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

/// As of sets: keys of both are there once, and one of several copies in the other filter is taken.
#[test]
fn a_union_of_unique_keys_takes_those_that_are_not_there() {
    for (one, other) in filled(0).iter().zip(&filled(50)) {
        (50..60_u64).for_each(|key| other.insert(&key).unwrap());
        let before = one.len();
        let new = one.try_union_unique(other).unwrap();
        assert!((0..100_u64).all(|key| one.contains(&key)), "{}", one.info());
        assert_eq!(one.len(), before + new, "{}", one.info());
        assert!(new <= (0..100_u64).filter(|key| other.contains(key)).count());
        for _ in 0..20 {
            assert_eq!(one.try_union_unique(other).unwrap(), 0, "all are there");
        }
        assert_eq!(one.try_union_unique(one).unwrap(), 0);
    }
}

/// A hash function with a key that is no part of its seed.
struct Keyed(u64);

impl BuildHasher for Keyed {
    type Hasher = Xxh3Hasher;

    fn build_hasher(&self) -> Xxh3Hasher {
        Xxh3::with_seed(self.0).build_hasher()
    }
}

impl FilterHasher for Keyed {
    const ID: u32 = 0x0001_0003;

    fn seed(&self) -> u64 {
        0
    }

    fn from_seed(seed: u64) -> Self {
        Keyed(seed)
    }
}

/// The error tells for how many keys there was room.
#[test]
fn a_union_without_room_for_all_leaves_the_filter_as_it_was() {
    let filled = |from: u64| {
        let filter: CuckooFilter = crate::builder((12, 4, false)).capacity(1000).seed(1).build().unwrap();
        (from..from + 1000).for_each(|key| filter.insert(&key).unwrap());
        filter
    };
    let (one, other) = (filled(0), filled(1000));
    let room = one.capacity() - one.len();
    let error = one.try_union(&other).unwrap_err();
    assert!(
        matches!(error, FilterError::Full { inserted } if (2..=room).contains(&inserted)),
        "{error:?} of {room}"
    );
    assert_eq!((one.len(), other.len()), (1000, 1000));
    assert!((0..1000_u64).all(|key| one.contains(&key)));
    let others = || (1000..2000_u64).filter(|key| one.contains(key)).count();
    let left = others();
    assert!(left < 30, "{left} of the other's keys are left, where two are expected");
    assert!(matches!(one.try_union_unique(&other), Err(FilterError::Full { inserted: 2.. })));
    assert!((0..1000_u64).all(|key| one.contains(&key)));
    assert_eq!((one.len(), others()), (1000, left));
}

#[test]
fn filters_whose_hash_functions_differ_in_more_than_their_seed_are_not_united() {
    let of_key = |key| {
        let filter = CuckooFilter::builder().capacity(100).hasher(Keyed(key)).build().unwrap();
        filter.insert(&key).unwrap();
        filter
    };
    let [one, same, other] = [7, 7, 8].map(of_key);
    one.try_union(&same).unwrap();
    assert_eq!(one.count(&7_u64), 2);
    assert!(matches!(one.try_union(&other), Err(FilterError::Mismatch)));
    assert!(matches!(other.try_union(&one), Err(FilterError::Mismatch)));
    assert_eq!((one.len(), other.len()), (2, 1));
}
