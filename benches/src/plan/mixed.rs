//! Plans that mix reads and writes: the workload is played out on a model of the map, thread by thread.

use std::sync::Arc;

use super::{Action, Expect, Keys, MixPlan, Op, Prediction, Start};
use crate::dist::{Dist, Sampler};
use crate::keys;
use crate::trace::Trace;
use crate::workload::{Inserts, Mix, Workload};

/// How many keys of those that were written are looked at after a run, and of those that were not.
const SAMPLES: usize = 20_000;

/// Writes down `ops` operations for each of `threads` threads.
///
/// `trace` gives the keys and takes the place of `keys` and `dist`; inserts must then be [`Inserts::Drawn`].
///
/// # Panics
///
/// If a trace is to give fresh keys.
pub fn mixed(
    workload: &Workload,
    keys: u64,
    dist: Dist,
    threads: usize,
    ops: usize,
    trace: Option<&Arc<Trace>>,
) -> MixPlan {
    assert!(trace.is_none() || workload.inserts == Inserts::Drawn, "a trace has no fresh keys");
    let (keys, key_table) = match trace {
        Some(trace) => (trace.keys.len() as u64, Keys::Listed(trace.clone())),
        None => (keys, Keys::Numbered),
    };
    let start = Start {
        capacity: if workload.reserved { keys as usize } else { 0 },
        filled: keys * workload.filled_percent / 100,
        keys: key_table,
    };
    let mut world = World::new(&start, keys, workload, threads, ops);
    let mut plan = MixPlan {
        threads: Vec::with_capacity(threads),
        predicted: vec![Prediction::default(); threads],
        len_after: 0,
        samples: Vec::new(),
        restore: Vec::new(),
        leaves: None,
        start,
    };
    let mut foreign_reads = Vec::with_capacity(threads);
    for thread in 0..threads {
        let sampler = match trace {
            Some(trace) => Sampler::replay(trace.clone(), thread, threads),
            None => Sampler::new(dist, keys, thread, threads),
        };
        let mut author = Author::new(&mut world, &plan.start, sampler, thread, threads);
        author.write(workload.mix, workload.inserts, ops);
        plan.threads.push(author.ops);
        foreign_reads.push(author.foreign_reads);
    }
    world.settle(&mut plan, &foreign_reads);
    world.conclude(&mut plan, workload, threads, ops);
    plan
}

/// The model of the map: what is in it, index by index.
struct World {
    /// The version of the last write; before the first write to an absent key, the one before 0.
    versions: Vec<u32>,
    state: Vec<u8>,
}

const PRESENT: u8 = 1;
/// Some thread inserts or removes the key.
const COMES_OR_GOES: u8 = 2;
/// Some thread writes the key.
const WRITTEN: u8 = 4;

impl World {
    fn new(start: &Start, keys: u64, workload: &Workload, threads: usize, ops: usize) -> Self {
        let fresh = if workload.inserts == Inserts::Fresh { (ops + 1) * threads } else { 0 };
        let size = keys as usize + fresh + threads;
        let filled = start.filled as usize;
        let mut versions = vec![u32::MAX; size];
        let mut state = vec![0; size];
        versions[..filled].fill(0);
        state[..filled].fill(PRESENT);
        World { versions, state }
    }

    fn is_present(&self, index: u64) -> bool {
        self.state[index as usize] & PRESENT != 0
    }

    /// What the owner of `index` finds there now.
    fn expect(&self, index: u64) -> Expect {
        if self.is_present(index) { Expect::EXACT } else { Expect::ABSENT }
    }

    /// Decides the reads of other threads' keys, now that everybody's writes are known.
    fn settle(&self, plan: &mut MixPlan, foreign_reads: &[Vec<(usize, u64)>]) {
        for (ops, foreign) in plan.threads.iter_mut().zip(foreign_reads) {
            for &(position, index) in foreign {
                ops[position].expect = match self.state[index as usize] {
                    state if state & COMES_OR_GOES != 0 => Expect::OPEN,
                    state if state & PRESENT != 0 => Expect::PRESENT,
                    _ => Expect::ABSENT,
                };
            }
        }
    }

    /// Sums up the answers and what the map holds in the end.
    fn conclude(&self, plan: &mut MixPlan, workload: &Workload, threads: usize, ops: usize) {
        for (predicted, ops) in plan.predicted.iter_mut().zip(&plan.threads) {
            ops.iter().for_each(|op| predicted.add(op));
        }
        plan.len_after = self.state.iter().filter(|&&state| state & PRESENT != 0).count();
        let indices = |of_kind: fn(u8) -> bool| -> Vec<usize> {
            (0..self.state.len()).filter(|&index| of_kind(self.state[index])).collect()
        };
        let written = indices(|state| state & WRITTEN != 0);
        let untouched = indices(|state| state & (WRITTEN | PRESENT) == PRESENT);
        for indices in [&written, &untouched] {
            let step = indices.len().div_ceil(SAMPLES).max(1);
            plan.samples.extend(indices.iter().step_by(step).map(|&i| self.sample(&plan.start, i)));
        }
        if self.state.iter().all(|state| state & COMES_OR_GOES == 0) {
            plan.restore = written.iter().map(|&i| plan.start.keys.key(i as u64)).collect();
            plan.leaves = Some(plan.start.clone());
        } else if workload.mix.insert == 100 && workload.inserts == Inserts::Fresh {
            let filled = plan.start.filled + (threads * ops) as u64;
            plan.leaves = Some(Start { filled, ..plan.start.clone() });
        }
    }

    fn sample(&self, start: &Start, index: usize) -> (u64, Option<u64>) {
        let key = start.keys.key(index as u64);
        let value = self.is_present(index as u64).then(|| keys::value(key, self.versions[index]));
        (key, value)
    }
}

impl Prediction {
    fn add(&mut self, op: &Op) {
        let absent = op.expect == Expect::ABSENT;
        let counts = &mut self.certain;
        let count = match op.action {
            Action::Get if op.expect == Expect::OPEN => &mut self.open,
            Action::Get if absent => &mut counts.misses,
            Action::Get => &mut counts.hits,
            Action::Insert if absent => &mut counts.inserted,
            Action::Insert => &mut counts.replaced,
            Action::Remove if absent => &mut counts.unremoved,
            Action::Remove => &mut counts.removed,
            Action::Update if absent => &mut counts.unupdated,
            Action::Update => &mut counts.updated,
        };
        *count += 1;
    }
}

/// Writes one thread's operations while playing them out on the model.
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
    /// Positions of reads of other threads' keys, with the index that is read.
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

    fn write(&mut self, mix: Mix, inserts: Inserts, ops: usize) {
        self.ops.reserve_exact(ops);
        if inserts == Inserts::Fresh {
            self.live.extend((self.thread..self.start.filled).step_by(self.threads as usize));
        }
        for _ in 0..ops {
            let choice = self.sampler.below(100) as u32;
            if choice < mix.read {
                self.get();
            } else if choice < mix.read + mix.insert {
                self.insert(inserts);
            } else if choice < mix.read + mix.insert + mix.remove {
                self.remove();
            } else {
                self.update();
            }
        }
    }

    /// Indices below this one are, or were, in the map, as far as this thread can tell.
    fn limit(&self) -> u64 {
        self.start.filled + self.threads * self.fresh
    }

    fn push(&mut self, index: u64, action: Action, expect: Expect) {
        let (key, version) = (self.start.keys.key(index), self.world.versions[index as usize]);
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
        let expect = self.world.expect(index);
        let version = &mut self.world.versions[index as usize];
        *version = version.wrapping_add(1);
        let state = &mut self.world.state[index as usize];
        *state |= PRESENT | WRITTEN | if expect == Expect::ABSENT { COMES_OR_GOES } else { 0 };
        self.push(index, Action::Insert, expect);
    }

    fn fresh_index(&mut self) -> u64 {
        let first = (self.thread + self.threads - self.start.filled % self.threads) % self.threads;
        let index = self.limit() + first;
        self.fresh += 1;
        self.live.push(index);
        index
    }

    /// Removes any key of its own that is there; so the keys asked for most are not gone first. Replays take what
    /// the trace gives.
    fn remove(&mut self) {
        let index = if self.live.is_empty() {
            self.sampler.owned(self.limit())
        } else {
            let position = self.sampler.below(self.live.len());
            Some(self.live.swap_remove(position))
        };
        let Some(index) = index else { return self.get() };
        let expect = self.world.expect(index);
        if expect == Expect::EXACT {
            self.world.state[index as usize] &= !PRESENT;
            self.world.state[index as usize] |= COMES_OR_GOES | WRITTEN;
        }
        self.push(index, Action::Remove, expect);
    }

    /// Updates a drawn key of its own, or if that is gone, any that is there.
    fn update(&mut self) {
        let Some(mut index) = self.sampler.owned(self.limit()) else { return self.get() };
        if !self.world.is_present(index) && !self.live.is_empty() {
            index = self.live[self.sampler.below(self.live.len())];
        }
        let expect = self.world.expect(index);
        if expect == Expect::EXACT {
            let version = &mut self.world.versions[index as usize];
            *version = version.wrapping_add(1);
            self.world.state[index as usize] |= WRITTEN;
        }
        self.push(index, Action::Update, expect);
    }
}
