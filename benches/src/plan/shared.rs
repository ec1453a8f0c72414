//! Operations of threads that write the same keys: what each finds is determined only when they run.

use super::world::World;
use super::{Action, Expect, Op, Start};
use crate::dist::Sampler;
use crate::error::Error;
use crate::stop;
use crate::workload::Mix;

/// The versions that inserts write: from 1 on, and so far below the maximum that updates, which add one, do not carry into the
/// rest of a value.
const VERSIONS: std::ops::Range<u32> = 1..1 << 31;

/// Operations, and the position and index of each.
type Written = (Vec<Op>, Vec<(usize, u64)>);

/// Writes down one thread's operations, all on keys drawn at random.
pub(super) struct Sharer<'a> {
    world: &'a mut World,
    start: &'a Start,
    sampler: Sampler,
    thread: usize,
    threads: usize,
}

impl<'a> Sharer<'a> {
    pub(super) fn new(
        world: &'a mut World,
        start: &'a Start,
        sampler: Sampler,
        thread: usize,
        threads: usize,
    ) -> Self {
        Sharer { world, start, sampler, thread, threads }
    }

    /// Writes the operations. The right answers are settled when all threads' writes are known.
    pub(super) fn write(mut self, mix: Mix, ops: usize) -> Result<Written, Error> {
        // No two threads insert the same version, as long as there are enough.
        let mut versions = VERSIONS.skip(self.thread).step_by(self.threads).cycle();
        let (mut written, mut open) = (Vec::with_capacity(ops), Vec::with_capacity(ops));
        for position in 0..ops {
            stop::check()?;
            let action = Action::drawn(mix, self.sampler.below(100));
            let index = self.sampler.any(self.start.filled);
            self.world.share(index, action);
            let inserted = (action == Action::Insert).then(|| versions.next()).flatten();
            let (key, version) = (self.start.keys.key(index), inserted.unwrap_or(0));
            written.push(Op { key, version, action, expect: Expect::OPEN });
            open.push((position, index));
        }
        Ok((written, open))
    }
}
