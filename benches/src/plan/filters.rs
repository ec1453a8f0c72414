//! Plans for filters: look-ups of distinct absent keys, and look-ups during the writes of one writer.

use crate::dist::{Dist, Sampler};
use crate::keys;

/// Look-ups of present keys on every thread; the first thread also writes.
#[derive(Debug, Clone)]
pub struct ChurnPlan {
    /// Keys in the filter.
    pub keys: u64,
    /// Each thread's look-ups, of keys that nobody writes.
    pub threads: Vec<Vec<u64>>,
    /// Keys that the writer removes and inserts again, in turn.
    pub churned: Vec<u64>,
}

/// Look-ups between two writes of the writer. With the removal and the insertion that follow they make up 16.
pub const LOOKUPS_PER_CHURN: usize = 14;

/// Each thread's absent keys, each of them once: an error rate is measured over different keys.
pub fn absent(threads: usize, ops: usize) -> Vec<Vec<u64>> {
    let of_thread = |thread| {
        let first = keys::FIRST_ABSENT + (thread * ops) as u64;
        (first..first + ops as u64).map(keys::key).collect()
    };
    (0..threads).map(of_thread).collect()
}

/// Each thread's present keys of a filter that holds the first `count`.
pub fn present(count: u64, threads: usize, ops: usize) -> Vec<Vec<u64>> {
    let draw = |thread| {
        let mut sampler = Sampler::new(Dist::Uniform, count, thread, threads);
        (0..ops).map(|_| keys::key(sampler.any(count))).collect()
    };
    (0..threads).map(draw).collect()
}

/// Look-ups in a filter of `count` keys, a 16th of which the first thread removes and inserts again in turn.
pub fn churn(count: u64, threads: usize, ops: usize) -> ChurnPlan {
    let churned = (count / 16).max(1);
    let held = count - churned;
    // In a filter of one key no key stays.
    let lookups = if held == 0 { vec![Vec::new(); threads] } else { present(held, threads, ops) };
    ChurnPlan { keys: count, threads: lookups, churned: (held..count).map(keys::key).collect() }
}
