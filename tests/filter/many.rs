//! Operations on many keys at once are the same as on these keys one by one.

use koel::{CuckooFilter, FilterView, Full, ScalableCuckooFilter};

use crate::common::{Rng, seed};
use crate::{builder, layouts};

/// Either kind of filter, used by hashes.
trait Filter {
    fn insert_unique(&self, hash: u64) -> Result<bool, Full>;
    fn insert_unique_many(&self, hashes: &[u64], inserted: &mut [bool]) -> usize;
    fn remove(&self, hash: u64) -> bool;
    fn remove_many(&self, hashes: &[u64], removed: &mut [bool]);
    fn contains(&self, hash: u64) -> bool;
    fn to_bytes(&self) -> Vec<u8>;
}

macro_rules! is_filter {
    ($type:ty) => {
        impl Filter for $type {
            fn insert_unique(&self, hash: u64) -> Result<bool, Full> {
                self.insert_unique_hash(hash)
            }

            fn insert_unique_many(&self, hashes: &[u64], inserted: &mut [bool]) -> usize {
                self.insert_unique_many_hash(hashes, inserted)
            }

            fn remove(&self, hash: u64) -> bool {
                self.remove_hash(hash)
            }

            fn remove_many(&self, hashes: &[u64], removed: &mut [bool]) {
                self.remove_many_hash(hashes, removed);
            }

            fn contains(&self, hash: u64) -> bool {
                self.contains_hash(hash)
            }

            fn to_bytes(&self) -> Vec<u8> {
                <$type>::to_bytes(self)
            }
        }
    };
}

is_filter!(CuckooFilter);
is_filter!(ScalableCuckooFilter);

/// `at_once` and `one_by_one`, two filters of one kind, get the same hashes, of which about half are there already.
fn check<F: Filter>(at_once: &F, one_by_one: &F, batches: &[usize], hashes: u64, what: &str) {
    let mut rng = Rng::new(seed());
    let mut inserted = 0;
    for &len in batches {
        let batch: Vec<u64> = (0..len).map(|_| rng.below(hashes)).collect();
        let mut are_new = vec![true; len];
        let there = at_once.insert_unique_many(&batch, &mut are_new);
        let expected: Vec<_> = batch.iter().map_while(|hash| one_by_one.insert_unique(*hash).ok()).collect();
        assert_eq!((there, &are_new[..there]), (expected.len(), &expected[..]), "{what}");
        assert!(are_new[there..].iter().all(|is_new| !is_new), "{what}: what was not inserted is new");
        inserted += are_new.iter().filter(|is_new| **is_new).count();
        assert_eq!(at_once.to_bytes(), one_by_one.to_bytes(), "{what}");
        let bytes = at_once.to_bytes();
        let view = FilterView::from_bytes(&bytes).unwrap();
        let mut found = vec![true; len];
        view.contains_many_hash(&batch, &mut found);
        let one_at_a_time: Vec<bool> = batch.iter().map(|hash| view.contains_hash(*hash)).collect();
        assert_eq!(found, one_at_a_time, "{what}");
        assert!(batch.iter().zip(&found).all(|(hash, found)| at_once.contains(*hash) == *found), "{what}");
        let gone: Vec<u64> = (0..len / 2).map(|_| rng.below(hashes)).collect();
        let mut are_gone = vec![true; gone.len()];
        at_once.remove_many(&gone, &mut are_gone);
        let expected: Vec<bool> = gone.iter().map(|hash| one_by_one.remove(*hash)).collect();
        assert_eq!(are_gone, expected, "{what}");
        assert_eq!(at_once.to_bytes(), one_by_one.to_bytes(), "{what}");
    }
    assert!(inserted > 0, "{what}: nothing was tested");
}

#[test]
fn in_every_layout() {
    for layout in layouts() {
        let build = || builder(layout).capacity(100).seed(1).build().unwrap();
        // The last one has no room, most of the time.
        check(&build(), &build(), &[0, 1, 31, 32, 33, 64, 300, 1000], 2000, &format!("{layout:?}"));
    }
}

#[test]
fn in_growing_filters() {
    let build = || ScalableCuckooFilter::builder().capacity(100).false_positive_rate(0.01).seed(1).build();
    check(&build().unwrap(), &build().unwrap(), &[0, 1, 32, 33, 1000, 5000, 20_000], 30_000, "growing");
}

#[test]
fn by_keys_as_by_hashes() {
    let filter = CuckooFilter::builder().capacity(1000).fingerprint_bits(24).seed(seed()).build().unwrap();
    let growing = ScalableCuckooFilter::builder().fingerprint_bits(24).seed(seed()).build().unwrap();
    let keys: Vec<String> = (0..100).map(|n| format!("key {}", n % 60)).collect();
    let (mut first, mut second) = ([false; 100], [false; 100]);
    assert_eq!(filter.insert_unique_many(&keys, &mut first), 100);
    assert_eq!(growing.insert_unique_many(&keys, &mut second), 100);
    let is_new = |n: usize| n < 60;
    assert!((0..100).all(|n| first[n] == is_new(n) && second[n] == is_new(n)));
    assert!(keys.iter().all(|key| filter.contains(key) && growing.contains(key)));
    let bytes = filter.to_bytes();
    let mut found = [false; 100];
    FilterView::from_bytes(&bytes).unwrap().contains_many(&keys, &mut found);
    assert_eq!(found, [true; 100]);
    filter.remove_many(&keys, &mut first);
    growing.remove_many(&keys, &mut second);
    assert!((0..100).all(|n| first[n] == is_new(n) && second[n] == is_new(n)));
    assert!(filter.is_empty() && growing.is_empty());
}

/// The same keys by their bytes, at once and one by one.
#[test]
fn bytes_of_many_at_once_are_those_one_by_one() {
    let keys: Vec<String> = (0..500).map(|key| format!("key {key}")).collect();
    let (fixed, growing) = (CuckooFilter::new(1000, 1e-6).unwrap(), ScalableCuckooFilter::new(1e-6).unwrap());
    assert_eq!((fixed.insert_many_bytes(&keys[..300]), growing.insert_many_bytes(&keys[..300])), (300, 300));
    let mut are_new = [[false; 500]; 2];
    assert_eq!(fixed.insert_unique_many_bytes(&keys[100..400], &mut are_new[0][100..400]), 300);
    assert_eq!(growing.insert_unique_many_bytes(&keys[100..400], &mut are_new[1][100..400]), 300);
    assert!(are_new.iter().all(|new| (0..500).all(|at| new[at] == (300..400).contains(&at))));
    let mut found = [[false; 500]; 3];
    fixed.contains_many_bytes(&keys, &mut found[0]);
    growing.contains_many_bytes(&keys, &mut found[1]);
    FilterView::from_bytes(&fixed.to_bytes()).unwrap().contains_many_bytes(&keys, &mut found[2]);
    for (at, key) in keys.iter().enumerate() {
        assert_eq!(found.map(|found| found[at]), [at < 400; 3]);
        assert_eq!(
            (fixed.contains_bytes(key.as_bytes()), growing.contains_bytes(key.as_bytes())),
            (at < 400, at < 400)
        );
    }
    let mut gone = [[false; 500]; 2];
    fixed.remove_many_bytes(&keys, &mut gone[0]);
    growing.remove_many_bytes(&keys, &mut gone[1]);
    assert_eq!((gone[0], gone[1]), (found[0], found[1]));
    assert_eq!((fixed.len(), growing.len()), (0, 0));
}
