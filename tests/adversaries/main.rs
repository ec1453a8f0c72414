//! Enemies: keys chosen for their buckets, readers that do not let go, threads without number. What they may cost is
//! bounded, what others have is not touched, and all of it comes back.
//!
//! Constant and other bad hash functions are in `tests/hashers.rs`, bytes of enemies in `tests/filter` and `tests/fuzz`,
//! want of memory in `tests/oom`.

#[path = "../common/mod.rs"]
mod common;

mod collisions;
mod pins;
