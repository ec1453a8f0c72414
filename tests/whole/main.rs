//! Operations on a map as a whole.

mod clones;
#[path = "../common/mod.rs"]
mod common;
mod filling;
mod retaining;
