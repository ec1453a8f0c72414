//! Operations on a cache: those of `tests/cache`, chosen by the input.

#[path = "../../tests/cache/kind.rs"]
mod kind;
#[path = "../../tests/cache/oracle.rs"]
mod oracle;
#[path = "../../tests/cache/run.rs"]
mod run;

use koel::Policy;

use super::input::Input;
use kind::{Bound, Kind, LIVES};
use run::Choices;

/// Inputs that would take long teach nothing new.
const STEPS: usize = 150;

impl Choices for Input<'_> {
    fn below(&mut self, n: u64) -> u64 {
        match n {
            0..=0x100 => u64::from(self.byte()) % n,
            0x101..=0x1_0000 => u64::from(self.number()) % n,
            _ => self.word() % n,
        }
    }

    fn go_on(&self) -> bool {
        !self.is_empty()
    }
}

/// The first bytes select the kind of cache, the others what is done to it.
pub(crate) fn cache_ops(data: &[u8]) {
    const BOUNDS: [Bound; 4] = [Bound::Entries, Bound::Ones, Bound::Weight, Bound::WeightOfMany];
    let mut input = Input::new(data);
    let mut choose = |from: usize| usize::from(input.byte()) % from;
    let capacity = [0, 1, 2, 3, 7, 20, 100, 4000][choose(8)];
    let policy = [Policy::Adaptive, Policy::Clock, Policy::Local][choose(3)];
    let (bound, lives) = (BOUNDS[choose(4)], LIVES[choose(4)]);
    run::run(Kind { capacity, bound, policy, lives }, STEPS, input);
}
