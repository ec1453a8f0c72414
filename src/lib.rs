//! koel
mod engine;
mod hash;
mod map;
mod reclaim;
mod sync;
pub use engine::{CapacityError, Stats};
pub use map::{
    Builder, Compute, Drain, Full, HashMap, HashMapKind, InlineDrain, InlineIter, InlineKeys, InlineMap,
    InlineMapKind, InlineValues, IntoIter, Iter, Keys, Kind, Occupied, Operation, Pinned, PinnedOwned,
    Values,
};
pub use reclaim::{Guard, LocalGuard, OwnedGuard};

/// What the models in `loom-tests` need beside the public interface.
#[cfg(loom)]
#[doc(hidden)]
pub mod model {
    pub use crate::sync::stall;

    /// First bucket, second bucket and tag of a hash in a table of `buckets`.
    pub fn place(hash: u64, buckets: u32) -> (u32, u32, u8) {
        let place = crate::hash::Place::new(crate::hash::Digest::new(hash), buckets);
        (place.first, place.second, place.tag)
    }

    /// The half of a hash that selects the segment.
    pub fn prefix(hash: u64) -> u32 {
        crate::hash::Digest::new(hash).prefix()
    }
}
