//! Hash functions that are told no seed, and are the same each time that a model or a schedule is run in a process.

use ahash::random_state::{RandomSource, set_random_source};

struct NotRandom;

impl RandomSource for NotRandom {
    fn gen_hasher_seed(&self) -> usize {
        0
    }
}

/// From now on their seeds are the same: in this process, and different in the next.
pub fn same_hashes() {
    // Somebody was faster: with the same.
    let _ = set_random_source(NotRandom);
}
