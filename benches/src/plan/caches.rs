//! Plans for caches: what threads ask for.

use crate::dist::{Dist, Sampler};
use crate::keys;

/// Requests of each thread before the clock starts.
const WARM_REQUESTS: usize = 100_000;

/// Streams of requests for each number of threads.
const STREAMS: usize = 1 << 24;

/// What is asked of caches.
#[derive(Debug, Clone, Copy)]
pub struct CacheLoad {
    /// What a cache is to hold.
    pub entries: usize,
    /// Different keys that may be asked for.
    pub keys: u64,
    /// How often each is.
    pub dist: Dist,
}

/// What each thread asks for.
#[derive(Debug)]
pub struct CachePlan {
    /// What a cache is to hold.
    pub entries: usize,
    /// The keys that each thread asks for before the clock starts.
    pub warm: Vec<Vec<u64>>,
    /// The keys that each thread asks for then.
    pub threads: Vec<Vec<u64>>,
}

impl CacheLoad {
    /// `ops` requests for each of `threads` threads. Others in every round: a cache that is asked the same again and again
    /// has learnt the answers by heart, and its hit ratio is not the load's.
    pub fn plan(&self, round: usize, threads: usize, ops: usize) -> CachePlan {
        let mut plan = CachePlan { entries: self.entries, warm: Vec::new(), threads: Vec::new() };
        for number in 0..threads {
            // A stream of its own for every round, number of threads and thread.
            let stream = threads * STREAMS + round * threads + number;
            let mut sampler = Sampler::new(self.dist, self.keys, stream, threads);
            let mut draw = |count: usize| (0..count).map(|_| keys::key(sampler.any(self.keys))).collect();
            plan.warm.push(draw(WARM_REQUESTS.min(ops)));
            plan.threads.push(draw(ops));
        }
        plan
    }
}

/// For each of `threads` threads `ops` numbers below `keys`, by `dist`: which of the keys that a cache holds.
pub fn resident(keys: u64, dist: Dist, threads: usize, ops: usize) -> Vec<Vec<u32>> {
    let thread = |number| {
        let mut sampler = Sampler::new(dist, keys, number, threads);
        (0..ops).map(|_| sampler.any(keys) as u32).collect()
    };
    (0..threads).map(thread).collect()
}
