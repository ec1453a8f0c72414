//! Every operation against the oracle, in caches of every kind.

use crate::POLICIES;
use crate::common::{Rng, env_number, seed};
use crate::kind::{Bound, Kind, LIVES};
use crate::run::{Choices, run};

impl Choices for Rng {
    fn below(&mut self, n: u64) -> u64 {
        Rng::below(self, n)
    }
}

fn obeys_the_laws(bound: Bound) {
    let (seed, steps) = (seed(), env_number("KOEL_CACHE_STEPS", 700));
    for capacity in [0, 1, 2, 3, 7, 100, 5000] {
        for (policy, lives) in POLICIES.into_iter().flat_map(|policy| LIVES.map(|lives| (policy, lives))) {
            // Large caches must become full.
            let steps = steps.max(3 * capacity as usize / 2);
            run(Kind { capacity, bound, policy, lives }, steps, Rng::new(seed ^ capacity));
        }
    }
}

#[test]
fn a_cache_of_entries_obeys_the_laws() {
    obeys_the_laws(Bound::Entries);
}

#[test]
fn a_cache_of_ones_obeys_the_laws() {
    obeys_the_laws(Bound::Ones);
}

#[test]
fn a_cache_by_weight_obeys_the_laws() {
    obeys_the_laws(Bound::Weight);
}

#[test]
fn a_cache_by_weight_of_several_segments_obeys_the_laws() {
    obeys_the_laws(Bound::WeightOfMany);
}
