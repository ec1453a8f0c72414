//! The cache: laws checked by an oracle, the bound under threads, panics, and former errors.
//!
//! `KOEL_SEED`, `KOEL_CACHE_STEPS` (operations of each law's run, 700) and `KOEL_CACHE_SEEDS` (hash functions of the smallest
//! caches, 60) make other and longer runs. `bound` and `threads` are best run with `--release`, and with
//! `RUSTFLAGS="--cfg koel_steps"`.

#[path = "../common/mod.rs"]
mod common;

mod after_panics;
mod asked;
mod bound;
mod causes;
mod colliding;
mod compared;
mod compute;
mod dump;
mod edges;
mod expired;
mod few;
mod heavy;
mod kind;
mod late;
mod laws;
mod lifetimes;
mod load_if;
mod load_many;
mod load_many_hooks;
mod loads;
#[cfg(feature = "metrics")]
mod metrics;
mod oracle;
mod panics;
mod put_and_cleared;
mod refresh;
mod refresh_failed;
mod refresh_hooks;
mod replaced;
mod reserve;
mod run;
mod second_look;
#[cfg(feature = "serde")]
mod serde;
mod set_time_left;
mod slow_listener;
mod strays;
mod threads;
mod told;
mod try_insert;

use std::sync::{Arc, Mutex};

use koel::{Cache, CacheBuilder, Cause, Policy};

/// All policies.
pub(crate) const POLICIES: [Policy; 3] = [Policy::Adaptive, Policy::Clock, Policy::Local];

pub(crate) use kind::SEVERAL_SEGMENTS;

/// The record of a listener: key, the value's number, cause.
pub(crate) type Told = Arc<Mutex<Vec<(u64, u64, Cause)>>>;

/// Adds a listener that records what it is told.
pub(crate) fn listening<S>(builder: CacheBuilder<u64, u64, S>) -> (CacheBuilder<u64, u64, S>, Told) {
    let told = Told::default();
    let ear = Arc::clone(&told);
    let builder =
        builder.on_removal(move |key, value, cause| ear.lock().unwrap().push((*key, *value, cause)));
    (builder, told)
}

/// A cache of several segments, whose values are their weights.
pub(crate) fn weighing_values(max_weight: u64) -> CacheBuilder<u64, u64> {
    Cache::builder().max_weight(max_weight).estimated_entries(SEVERAL_SEGMENTS).weigher(|_, value| *value)
}
