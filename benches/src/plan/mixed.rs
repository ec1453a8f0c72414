//! Plans that mix reads and writes: the workload is simulated on a model of the map, thread by thread.

use std::sync::Arc;

use super::shared::Sharer;
use super::world::World;
use super::{Action, After, Expect, Keys, MixPlan, Op, Prediction, Start};
use crate::dist::{Dist, Sampler};
use crate::error::Error;
use crate::stop;
use crate::trace::Trace;
use crate::workload::{Inserts, Mix, Workload, Writes};

/// Writes down `ops` operations for each of `threads` threads.
///
/// If given, `trace` determines the keys in place of `keys` and `dist`; inserts must then be [`Inserts::Drawn`], as they must
/// where threads write the same keys.
///
/// # Errors
///
/// Ctrl-C.
///
/// # Panics
///
/// If fresh keys are to come from a trace, or to be shared by threads, or if threads are to share a map that does not have all
/// keys.
pub fn mixed(
    workload: &Workload,
    keys: u64,
    dist: Dist,
    threads: usize,
    ops: usize,
    trace: Option<&Arc<Trace>>,
) -> Result<MixPlan, Error> {
    let fresh = workload.inserts == Inserts::Fresh;
    assert!(trace.is_none() || !fresh, "a trace has no fresh keys");
    let is_full = workload.filled_percent == 100;
    assert!(
        workload.writes == Writes::Own || is_full && !fresh,
        "fresh keys, and absent ones, are one thread's"
    );
    let (keys, key_table) = match trace {
        Some(trace) => (trace.keys.len() as u64, Keys::Listed(trace.clone())),
        None => (keys, Keys::Numbered),
    };
    let start = Start {
        capacity: if workload.reserved { keys as usize } else { 0 },
        filled: keys * workload.filled_percent / 100,
        keys: key_table,
    };
    // A single thread owns all keys.
    let shared = workload.writes == Writes::Shared && threads > 1;
    let mut world = World::new(&start, keys, workload, threads, ops);
    let mut plan = MixPlan {
        threads: Vec::with_capacity(threads),
        predicted: vec![Prediction::default(); threads],
        after: After::Certain { len: 0 },
        samples: Vec::new(),
        written: Vec::new(),
        leaves: None,
        start,
    };
    let mut undecided = Vec::with_capacity(threads);
    for thread in 0..threads {
        let sampler = match trace {
            Some(trace) => Sampler::replay(trace.clone(), thread, threads),
            None => Sampler::new(dist, keys, thread, threads),
        };
        let (written, open) = if shared {
            Sharer::new(&mut world, &plan.start, sampler, thread, threads).write(workload.mix, ops)?
        } else {
            let mut author = Author::new(&mut world, &plan.start, sampler, thread, threads);
            author.write(workload.mix, workload.inserts, ops)?;
            (author.ops, author.foreign_reads)
        };
        plan.threads.push(written);
        undecided.push(open);
    }
    world.settle(&mut plan, &undecided);
    world.conclude(&mut plan, workload, shared);
    Ok(plan)
}

/// Writes down one thread's operations while simulating them on the model.
struct Author<'a> {
    world: &'a mut World,
    start: &'a Start,
    sampler: Sampler,
    thread: u64,
    threads: u64,
    /// How many fresh keys this thread has inserted.
    fresh: u64,
    /// The keys it owns that are in the map; kept for mixes whose inserts are fresh.
    live: Vec<u64>,
    ops: Vec<Op>,
    /// The positions of reads of other threads' keys, with the index that is read.
    foreign_reads: Vec<(usize, u64)>,
}

impl<'a> Author<'a> {
    fn new(world: &'a mut World, start: &'a Start, sampler: Sampler, thread: usize, threads: usize) -> Self {
        let (thread, threads) = (thread as u64, threads as u64);
        Author {
            world,
            start,
            sampler,
            thread,
            threads,
            fresh: 0,
            live: Vec::new(),
            ops: Vec::new(),
            foreign_reads: Vec::new(),
        }
    }

    fn write(&mut self, mix: Mix, inserts: Inserts, ops: usize) -> Result<(), Error> {
        self.ops.reserve_exact(ops);
        if inserts == Inserts::Fresh {
            self.live.extend((self.thread..self.start.filled).step_by(self.threads as usize));
        }
        for _ in 0..ops {
            stop::check()?;
            match Action::drawn(mix, self.sampler.below(100)) {
                Action::Get => self.get(),
                Action::Insert => self.insert(inserts),
                Action::Remove => self.remove(),
                Action::Update => self.update(),
            }
        }
        Ok(())
    }

    /// Indices below this one are, or were, in the map, as far as this thread can tell.
    fn limit(&self) -> u64 {
        self.start.filled + self.threads * self.fresh
    }

    fn push(&mut self, index: u64, action: Action, expect: Expect) {
        let (key, version) = (self.start.keys.key(index), self.world.version(index));
        self.ops.push(Op { key, version, action, expect });
    }

    fn get(&mut self) {
        let index = self.sampler.any(self.limit());
        if index % self.threads == self.thread {
            self.push(index, Action::Get, self.world.expect(index));
        } else {
            self.foreign_reads.push((self.ops.len(), index));
            self.push(index, Action::Get, Expect::OPEN);
        }
    }

    fn insert(&mut self, inserts: Inserts) {
        let index = match inserts {
            Inserts::Fresh => Some(self.fresh_index()),
            Inserts::Drawn => self.sampler.owned(self.limit()),
        };
        let Some(index) = index else { return self.get() };
        let expect = self.world.insert(index);
        self.push(index, Action::Insert, expect);
    }

    fn fresh_index(&mut self) -> u64 {
        let first = (self.thread + self.threads - self.start.filled % self.threads) % self.threads;
        let index = self.limit() + first;
        self.fresh += 1;
        self.live.push(index);
        index
    }

    /// Removes any key of its own that is there, so that the keys requested most are not removed first. Replays take the next
    /// key of the trace.
    fn remove(&mut self) {
        let index = if self.live.is_empty() {
            self.sampler.owned(self.limit())
        } else {
            let position = self.sampler.below(self.live.len());
            Some(self.live.swap_remove(position))
        };
        let Some(index) = index else { return self.get() };
        let expect = self.world.remove(index);
        self.push(index, Action::Remove, expect);
    }

    /// Updates a drawn key of its own, or, if that is gone, any key that is there.
    fn update(&mut self) {
        let Some(mut index) = self.sampler.owned(self.limit()) else { return self.get() };
        if !self.world.is_present(index) && !self.live.is_empty() {
            index = self.live[self.sampler.below(self.live.len())];
        }
        let expect = self.world.update(index);
        self.push(index, Action::Update, expect);
    }
}
