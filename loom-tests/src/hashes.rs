//! Hash functions that are given no seed, and are the same each time that a model or a schedule is run in a process.

use ahash::random_state::{RandomSource, set_random_source};

struct NotRandom;

impl RandomSource for NotRandom {
    fn gen_hasher_seed(&self) -> usize {
        0
    }
}

/// Makes their seeds the same from now on, within this process; they differ in the next.
pub fn same_hashes() {
    // Another thread was faster, with the same source.
    let _ = set_random_source(NotRandom);
}
