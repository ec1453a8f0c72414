//! Filters while fingerprints are displaced, come and go, and tables are added and emptied [R2]..[R4], [W5], [G1]: a key that
//! is in the filter is never denied, and in the end as many are in it as were put.
#![cfg(shuttle)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64 as Count, Ordering as Plainly};

use koel::{CuckooFilter, FilterBuilder, ScalableCuckooFilter, ScalableFilterBuilder};
use shuttle::sync::atomic::{AtomicUsize, Ordering};
use shuttle::thread;
use shuttle_tests::explore;

/// Fingerprint bits, and whether buckets are semi-sorted: buckets of one word, of two, and buckets that are written as a whole.
type Layout = (u32, bool);
const ONE_WORD: Layout = (16, false);
const TWO_WORDS: Layout = (12, false);
const TEARING: Layout = (13, true);

/// Keys that are in the filter throughout, which has 32 slots.
const HELD: usize = 26;

fn hash(i: u64) -> u64 {
    // Well mixed (SplitMix64's finalizer, Steele et al., OOPSLA 2014).
    let x = i.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let x = (x ^ x >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let x = (x ^ x >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ x >> 31
}

fn filter((bits, semi_sorted): Layout) -> CuckooFilter {
    let builder: FilterBuilder = CuckooFilter::builder();
    let builder = builder.capacity(9).fingerprint_bits(bits).bucket_slots(4).semi_sorted(semi_sorted).seed(1);
    let filter = builder.build().unwrap();
    assert_eq!(filter.capacity(), 32, "{}", filter.info());
    filter
}

/// Puts keys and takes some out again. Returns how many are in the filter at the end.
fn come_and_go(filter: &CuckooFilter, mine: std::ops::Range<u64>) -> usize {
    let mut left = 0;
    for i in mine.clone() {
        let hash = hash(i);
        // There may be no room: the other threads' keys come and go as well.
        if filter.insert_hash(hash).is_ok() {
            assert!(filter.contains_hash(hash), "a thread sees what it has put");
            if i + 1 < mine.end {
                assert!(filter.remove_hash(hash));
            } else {
                left = 1;
            }
        }
    }
    left
}

fn read(filter: &CuckooFilter, held: &[u64], stride: usize) {
    for round in 0..2 {
        for hash in held.iter().skip(round).step_by(stride) {
            assert!(filter.contains_hash(*hash), "denied");
            assert!(filter.count_hash(*hash) >= 1, "not counted");
        }
        let mut found = vec![false; held.len()];
        filter.contains_many_hash(held, &mut found);
        assert!(found.into_iter().all(|found| found), "denied in a batch");
    }
}

fn keys_that_are_in_are_never_denied(layout: Layout) {
    let displaced = Arc::new(Count::new(0));
    let sum = Arc::clone(&displaced);
    explore(150, move || {
        let filter = filter(layout);
        let held: Vec<u64> =
            (0..).map(hash).filter(|hash| filter.insert_hash(*hash).is_ok()).take(HELD).collect();
        let before = filter.info().displacements;
        let left = AtomicUsize::new(0);
        thread::scope(|scope| {
            let (filter, held, left) = (&filter, &held, &left);
            for first in [1000, 2000, 3000] {
                scope.spawn(move || {
                    left.fetch_add(come_and_go(filter, first..first + 5), Ordering::SeqCst);
                });
            }
            for stride in [3, 5] {
                scope.spawn(move || read(filter, held, stride));
            }
        });
        read(&filter, &held, 1);
        assert_eq!(filter.len(), HELD + left.load(Ordering::SeqCst));
        sum.fetch_add(filter.info().displacements - before, Plainly::Relaxed);
    });
    assert!(displaced.load(Plainly::Relaxed) > 0, "nothing was displaced");
}

#[test]
fn keys_are_never_denied_in_buckets_of_one_word() {
    keys_that_are_in_are_never_denied(ONE_WORD);
}

#[test]
fn keys_are_never_denied_in_buckets_of_two_words() {
    keys_that_are_in_are_never_denied(TWO_WORDS);
}

#[test]
fn keys_are_never_denied_in_buckets_that_tear() {
    keys_that_are_in_are_never_denied(TEARING);
}

/// The number of a writer's keys.
const MINE: usize = 6;
/// Keys that are in the filter at first, and are taken out: what is left has room in the older tables.
const LEAVING: std::ops::Range<u64> = 5000..5014;

/// Puts keys, and counts them, and others that it takes out again.
fn grow(filter: &ScalableCuckooFilter, first: u64, put: &AtomicUsize) {
    for i in 0..MINE {
        filter.insert_hash(hash(first + i as u64)).unwrap();
        put.store(i + 1, Ordering::SeqCst);
        let guest = hash(first + 500 + i as u64);
        filter.insert_hash(guest).unwrap();
        assert!(filter.contains_hash(guest) && filter.remove_hash(guest));
    }
}

/// Tables are added while keys come, and emptied into older ones.
fn keys_are_never_denied_in_a_growing_filter(semi_sorted: bool) {
    let counts = Arc::new([const { Count::new(0) }; 2]);
    let sums = Arc::clone(&counts);
    explore(100, move || {
        let builder: ScalableFilterBuilder = ScalableCuckooFilter::builder();
        let builder = builder.capacity(4).false_positive_rate(0.001).semi_sorted(semi_sorted).seed(1);
        let filter = builder.build().unwrap();
        (0..4).chain(LEAVING).for_each(|i| filter.insert_hash(hash(i)).unwrap());
        let first_tables = filter.info().tables.len();
        let writers = [(100, AtomicUsize::new(0)), (200, AtomicUsize::new(0))];
        let given_back = AtomicUsize::new(0);
        thread::scope(|scope| {
            let (filter, writers, given_back) = (&filter, &writers, &given_back);
            for (first, put) in writers {
                scope.spawn(move || grow(filter, *first, put));
            }
            for _ in 0..2 {
                scope.spawn(move || {
                    for _ in 0..4 {
                        assert!((0..4).all(|i| filter.contains_hash(hash(i))), "denied a held one");
                        for (first, put) in writers {
                            let put = put.load(Ordering::SeqCst) as u64;
                            let all = (*first..first + put).map(hash);
                            assert!(all.rev().all(|hash| filter.contains_hash(hash)), "denied");
                        }
                    }
                });
            }
            scope.spawn(move || {
                for i in LEAVING {
                    assert!(filter.contains_hash(hash(i)) && filter.remove_hash(hash(i)));
                    given_back.fetch_add(filter.compact(), Ordering::SeqCst);
                }
            });
        });
        let all = (0..4).chain(100..100 + MINE as u64).chain(200..200 + MINE as u64).map(hash);
        assert!(all.clone().all(|hash| filter.contains_hash(hash)), "denied in the end");
        assert_eq!(filter.len(), 4 + 2 * MINE);
        let given_back = given_back.load(Ordering::SeqCst);
        sums[0].fetch_add((filter.info().tables.len() + given_back - first_tables) as u64, Plainly::Relaxed);
        sums[1].fetch_add(given_back as u64, Plainly::Relaxed);
        assert!(all.clone().all(|hash| filter.remove_hash(hash)) && filter.is_empty());
    });
    assert!(
        counts.iter().all(|count| count.load(Plainly::Relaxed) > 0),
        "tables added, given back: {counts:?}"
    );
}

#[test]
fn keys_are_never_denied_while_tables_come_and_go() {
    keys_are_never_denied_in_a_growing_filter(false);
}

#[test]
fn keys_are_never_denied_while_semi_sorted_tables_come_and_go() {
    keys_are_never_denied_in_a_growing_filter(true);
}
