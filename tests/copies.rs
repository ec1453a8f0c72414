//! The memory that a clone of a filter takes: that of one filter, and no more in the meantime.

mod common;

use common::counting::{Counting, peak_of};
use koel::{CuckooFilter, ScalableCuckooFilter};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Allowance for locks, lists of tables and rounding of allocations.
const BESIDE: usize = 16 << 10;

#[test]
fn a_filter_is_cloned_without_its_bytes_in_between() {
    for semi_sorted in [false, true] {
        let builder = CuckooFilter::builder().fingerprint_bits(13).semi_sorted(semi_sorted);
        let filter = builder.from_keys(0..300_000_u64).unwrap();
        assert!(filter.info().segments > 1);
        let (copy, most) = peak_of(|| filter.clone());
        assert!(most <= filter.memory_usage() + BESIDE, "{most} bytes for {}", filter.memory_usage());
        assert_eq!((copy.to_bytes(), copy.len()), (filter.to_bytes(), 300_000));
    }
}

#[test]
fn a_growing_filter_is_cloned_without_its_bytes_in_between() {
    let filter = ScalableCuckooFilter::new(0.01).unwrap();
    assert!((0..100_000_u64).all(|key| filter.insert(&key).is_ok()));
    assert!(filter.info().tables.len() > 3);
    let (copy, most) = peak_of(|| filter.clone());
    assert!(most <= filter.memory_usage() + BESIDE, "{most} bytes for {}", filter.memory_usage());
    assert_eq!((copy.to_bytes(), copy.len()), (filter.to_bytes(), 100_000));
    copy.insert(&100_000_u64).unwrap();
    assert_eq!((copy.len(), filter.len()), (100_001, 100_000));
}
