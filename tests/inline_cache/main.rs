//! The inline cache: compared with `Cache`, with which its decisions agree; under threads; loads; panics; and edge cases.
//!
//! `KOEL_SEED` and `KOEL_INLINE_CACHE_STEPS` (requests of each thread, 20,000) make other and longer runs; best with
//! `--release`, and with `RUSTFLAGS="--cfg koel_steps"`.

#[path = "../common/mod.rs"]
mod common;

mod edges;
mod loads;
mod pair;
mod panics;
mod same;
mod threads;

use koel::Policy;

/// All policies.
pub(crate) const POLICIES: [Policy; 3] = [Policy::Adaptive, Policy::Clock, Policy::Local];
