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
