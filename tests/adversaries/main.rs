//! Enemies: keys chosen for their buckets, readers that do not let go, countless threads. Their cost is bounded, other users'
//! entries are not affected, and all memory is given back.
//!
//! Constant and other bad hash functions are in `tests/hashers.rs`, hostile bytes in `tests/filter` and `tests/fuzz`, lack of
//! memory in `tests/oom`.

#[path = "../common/mod.rs"]
mod common;

mod collisions;
mod pins;
