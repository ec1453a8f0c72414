//! Operations of threads that write the same keys: what each finds there is decided when they run.

use super::world::World;
use super::{Action, Expect, Op, Start};
use crate::dist::Sampler;
use crate::workload::Mix;

/// Versions that no other thread writes, as long as there are no more than 2^31: updates, which add one, then leave the rest of
/// a value as it is.
#[derive(Debug)]
pub(super) struct Versions {
    next: u64,
    threads: u64,
}

impl Versions {
    /// Those of `thread` of `threads`; none is that of the start.
    pub(super) fn new(thread: usize, threads: usize) -> Self {
        Versions { next: thread as u64 + 1, threads: threads as u64 }
    }

    fn next(&mut self) -> u32 {
        let version = self.next & (u64::from(u32::MAX) >> 1);
        self.next += self.threads;
        version as u32
    }
}

/// One thread's operations, all on keys that are drawn as they come, and the index of each beside its position: what is right
/// is to be settled when all threads' writes are known.
pub(super) fn write(
    world: &mut World,
    start: &Start,
    sampler: &mut Sampler,
    mix: Mix,
    mut versions: Versions,
    ops: usize,
) -> (Vec<Op>, Vec<(usize, u64)>) {
    let operation = |position| {
        let action = Action::drawn(mix, sampler.below(100));
        let index = sampler.any(start.filled);
        world.share(index, action);
        let version = if action == Action::Insert { versions.next() } else { 0 };
        (Op { key: start.keys.key(index), version, action, expect: Expect::OPEN }, (position, index))
    };
    (0..ops).map(operation).unzip()
}
