//! Plans for caches: the requests of threads.

use crate::dist::{Dist, Sampler};
use crate::keys;

/// How many requests each thread does before the clock starts.
const WARM_REQUESTS: usize = 100_000;

/// How many streams of requests there are for each number of threads.
const STREAMS: usize = 1 << 24;

/// The load of requests on caches.
#[derive(Debug, Clone, Copy)]
pub struct CacheLoad {
    /// The number of entries that a cache is to hold.
    pub entries: usize,
    /// The number of different keys that may be requested.
    pub keys: u64,
    /// How they are drawn.
    pub dist: Dist,
}

/// The requests of each thread.
#[derive(Debug)]
pub struct CachePlan {
    /// The number of entries that a cache is to hold.
    pub entries: usize,
    /// The keys that each thread requests before the clock starts.
    pub warm: Vec<Vec<u64>>,
    /// The keys that each thread requests then.
    pub threads: Vec<Vec<u64>>,
}

impl CacheLoad {
    /// `ops` requests for each of `threads` threads. They differ from round to round: a cache that is asked the same again and
    /// again has learnt the answers by heart, and its hit ratio is not that of the load.
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

/// For each of `threads` threads `ops` numbers below `keys`, drawn by `dist`, which select among the keys that a cache holds.
pub fn resident(keys: u64, dist: Dist, threads: usize, ops: usize) -> Vec<Vec<u32>> {
    let thread = |number| {
        let mut sampler = Sampler::new(dist, keys, number, threads);
        (0..ops).map(|_| sampler.any(keys) as u32).collect()
    };
    (0..threads).map(thread).collect()
}
