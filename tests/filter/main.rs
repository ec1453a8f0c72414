//! The filters: every layout, sizes, bytes, and threads.

#[path = "../common/mod.rs"]
mod common;

mod alike;
mod bytes;
mod capacity;
mod churn;
mod files;
mod format;
mod hash_functions;
mod hostile;
mod info;
mod laws;
mod many;
mod max_keys;
mod max_memory;
mod owned_view;
mod readers;
mod refused;
mod scalable;
mod scalable_bytes;
mod scalable_keys;
mod stress;
mod unions;

use koel::{CuckooFilter, FilterBuilder};

/// Every layout: fingerprint bits, bucket slots, semi-sorted.
pub(crate) fn layouts() -> impl Iterator<Item = (u32, u32, bool)> {
    let plain = (2..=32).flat_map(|bits| [1, 2, 4, 8].map(|slots| (bits, slots, false)));
    plain.chain((5..=32).map(|bits| (bits, 4, true)))
}

/// A builder with the options of a layout.
pub(crate) fn builder((bits, slots, semi_sorted): (u32, u32, bool)) -> FilterBuilder {
    CuckooFilter::builder().fingerprint_bits(bits).bucket_slots(slots).semi_sorted(semi_sorted)
}
