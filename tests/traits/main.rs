//! The traits that maps and their parts implement, and those that they must not implement.

mod auto;
#[path = "../common/mod.rs"]
mod common;
mod errors;
#[cfg(feature = "metrics")]
mod metrics;
#[cfg(feature = "rayon")]
mod rayon;
#[cfg(feature = "serde")]
mod serde;
mod to_key;
mod values;
