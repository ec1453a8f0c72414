//! What the models in `loom-tests` and the schedules in `shuttle-tests` need in addition to the public interface.

#[cfg(loom)]
pub use crate::cache::LoadOnce;
#[cfg(loom)]
pub use crate::engine::model::CopiedAhead;
#[cfg(loom)]
pub use crate::entries::model::HomeCells;
#[cfg(loom)]
pub use crate::per_thread::model::Counts;
pub use crate::reclaim::model::{Reclaimer, Watched};
#[cfg(loom)]
pub use crate::seats::model::end_thread;
#[cfg(loom)]
pub use crate::sync::stall;

/// First bucket, second bucket and tag of a hash in a table of `buckets`.
pub fn place(hash: u64, buckets: u32) -> (u32, u32, u8) {
    let place = crate::hash::Place::new(crate::hash::Digest::mixed(hash), buckets);
    (place.first, place.second, place.tag)
}

/// First bucket, second bucket and fingerprint of a hash in a filter of one segment of `buckets`.
pub fn filter_place(hash: u64, buckets: u32, fingerprint_bits: u32) -> (u32, u32, u32) {
    crate::filter::model_place(hash, buckets, fingerprint_bits)
}

/// The half of a hash that selects the segment.
pub fn prefix(hash: u64) -> u32 {
    crate::hash::Digest::mixed(hash).prefix()
}
