//! A union of filters that fails takes out what it has put in, and nothing else, whatever others do meanwhile.
#![cfg(shuttle)]

use koel::{CuckooFilter, FilterError};
use shuttle::thread;
use shuttle_tests::explore;

/// Copies of a key that fill both of its buckets.
const MOST: usize = 8;

fn filter() -> CuckooFilter {
    CuckooFilter::builder().capacity(9).fingerprint_bits(16).bucket_slots(4).seed(1).build().unwrap()
}

/// A filter for a key that is put first, and for one of which another filter has as many copies as fit.
struct Scene {
    filter: CuckooFilter,
    other: CuckooFilter,
    key: u64,
    many: u64,
}

impl Scene {
    fn new() -> Self {
        let many = 1 << 63;
        let scene = |key| {
            let (filter, other) = (filter(), filter());
            (0..MOST).for_each(|_| filter.insert_hash(many).unwrap());
            [key, many].iter().for_each(|hash| other.insert_hash(*hash).unwrap());
            Scene { filter, other, key, many }
        };
        let key_first = |scene: &Scene| {
            matches!(scene.filter.try_union(&scene.other), Err(FilterError::Full { inserted: 1 }))
        };
        let all = (1..).map(|i: u64| scene(i.wrapping_mul(0x9E37_79B9_7F4A_7C15)));
        let scene = { all }.find(key_first).expect("of some key the buckets come first");
        assert!(scene.filter.len() == MOST && !scene.filter.contains_hash(scene.key));
        scene
    }
}

/// A thread that is told that a key is there, and so does not insert it, finds it in the end.
#[test]
fn a_key_that_is_said_to_be_there_is_there_when_a_union_has_failed() {
    explore(300, || {
        let Scene { filter, other, key, .. } = &Scene::new();
        thread::scope(|scope| {
            scope.spawn(|| filter.try_union(other).unwrap_err());
            scope.spawn(|| {
                filter.insert_unique_hash(*key).unwrap();
                assert!(filter.contains_hash(*key), "denied");
            });
        });
        assert_eq!((filter.count_hash(*key), filter.len()), (1, MOST + 1), "denied in the end");
    });
}

/// A thread that clears a filter and fills it anew loses nothing of that.
#[test]
fn what_was_put_after_all_was_removed_is_there_when_a_union_has_failed() {
    explore(300, || {
        let Scene { filter, other, key, many } = &Scene::new();
        thread::scope(|scope| {
            scope.spawn(|| filter.try_union(other).is_ok());
            scope.spawn(|| {
                filter.clear();
                filter.insert_hash(*key).unwrap();
                while filter.insert_hash(*many).is_ok() {}
            });
        });
        assert!(filter.contains_hash(*key), "denied");
        assert_eq!(filter.count_hash(*many), MOST);
    });
}

/// Neither waits for the other's end while holding a lock that the other waits for.
#[test]
fn filters_that_are_united_with_each_other_or_with_themselves_have_the_keys_of_both() {
    explore(300, || {
        let (one, other) = (&filter(), &filter());
        one.insert_hash(1).unwrap();
        other.insert_hash(1 << 63).unwrap();
        thread::scope(|scope| {
            for (to, from) in [(one, other), (other, one), (one, one)] {
                scope.spawn(|| to.try_union(from).unwrap());
            }
        });
        assert!([one, other].iter().all(|filter| filter.contains_hash(1) && filter.contains_hash(1 << 63)));
    });
}
