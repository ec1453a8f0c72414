//! The model of the map on which a workload is simulated, and the result.

use super::{Action, After, Expect, MixPlan, Op, Prediction, Start};
use crate::keys;
use crate::workload::{Inserts, Workload};

/// How many of the keys that were written are checked after a run, and how many of the others.
const SAMPLES: usize = 20_000;

/// The model of the map: what is in it, index by index.
pub(super) struct World {
    /// The version of the last write; before the first write to an absent key, the version before 0.
    versions: Vec<u32>,
    state: Vec<u8>,
}

const PRESENT: u8 = 1;
/// Some thread inserts or removes the key.
const COMES_OR_GOES: u8 = 2;
/// Some thread writes the key.
const WRITTEN: u8 = 4;

impl World {
    pub(super) fn new(start: &Start, keys: u64, workload: &Workload, threads: usize, ops: usize) -> Self {
        let fresh = if workload.inserts == Inserts::Fresh { (ops + 1) * threads } else { 0 };
        let size = keys as usize + fresh + threads;
        let filled = start.filled as usize;
        let mut versions = vec![u32::MAX; size];
        let mut state = vec![0; size];
        versions[..filled].fill(0);
        state[..filled].fill(PRESENT);
        World { versions, state }
    }

    pub(super) fn is_present(&self, index: u64) -> bool {
        self.state[index as usize] & PRESENT != 0
    }

    /// The version of the last write.
    pub(super) fn version(&self, index: u64) -> u32 {
        self.versions[index as usize]
    }

    /// What the owner of `index` finds there now.
    pub(super) fn expect(&self, index: u64) -> Expect {
        if self.is_present(index) { Expect::EXACT } else { Expect::ABSENT }
    }

    /// Inserts or replaces it, on behalf of its owner; returns what the owner finds.
    pub(super) fn insert(&mut self, index: u64) -> Expect {
        let expect = self.expect(index);
        let came = if expect == Expect::ABSENT { COMES_OR_GOES } else { 0 };
        self.write(index, PRESENT | came);
        expect
    }

    /// Removes it, on behalf of its owner; returns what the owner finds.
    pub(super) fn remove(&mut self, index: u64) -> Expect {
        let expect = self.expect(index);
        if expect == Expect::EXACT {
            let state = &mut self.state[index as usize];
            *state = *state & !PRESENT | COMES_OR_GOES | WRITTEN;
        }
        expect
    }

    /// Updates it, on behalf of its owner; returns what the owner finds.
    pub(super) fn update(&mut self, index: u64) -> Expect {
        let expect = self.expect(index);
        if expect == Expect::EXACT {
            self.write(index, 0);
        }
        expect
    }

    fn write(&mut self, index: u64, more: u8) {
        let version = &mut self.versions[index as usize];
        *version = version.wrapping_add(1);
        self.state[index as usize] |= WRITTEN | more;
    }

    /// Notes what a thread does with a key that others may write as well.
    pub(super) fn share(&mut self, index: u64, action: Action) {
        let state = &mut self.state[index as usize];
        *state |= match action {
            Action::Get => 0,
            Action::Update => WRITTEN,
            Action::Insert if *state & PRESENT != 0 => WRITTEN,
            Action::Insert | Action::Remove => WRITTEN | COMES_OR_GOES,
        };
    }

    /// Determines the answers to operations on keys that other threads write, now that all writes are known. Each thread has a
    /// list of such operations.
    pub(super) fn settle(&self, plan: &mut MixPlan, undecided: &[Vec<(usize, u64)>]) {
        for (ops, undecided) in plan.threads.iter_mut().zip(undecided) {
            for &(position, index) in undecided {
                ops[position].expect = match self.state[index as usize] {
                    state if state & COMES_OR_GOES != 0 => Expect::OPEN,
                    state if state & WRITTEN != 0 => Expect::PRESENT,
                    state if state & PRESENT != 0 => Expect::EXACT,
                    _ => Expect::ABSENT,
                };
            }
        }
    }

    /// Sums up the answers and what the map holds in the end. With `shared`, threads have written the same keys, of a map that
    /// had all.
    pub(super) fn conclude(&self, plan: &mut MixPlan, workload: &Workload, shared: bool) {
        for (predicted, ops) in plan.predicted.iter_mut().zip(&plan.threads) {
            ops.iter().for_each(|op| predicted.add(op));
        }
        let indices = |of_kind: fn(u8) -> bool| -> Vec<usize> {
            (0..self.state.len()).filter(|&index| of_kind(self.state[index])).collect()
        };
        let written = indices(|state| state & WRITTEN != 0);
        let untouched = indices(|state| state & (WRITTEN | PRESENT) == PRESENT);
        let key = |index: usize| plan.start.keys.key(index as u64);
        plan.written = written.iter().map(|&index| key(index)).collect();
        let stays = self.state.iter().all(|state| state & COMES_OR_GOES == 0);
        let mut sampled = vec![&untouched];
        plan.after = if shared {
            let values = plan.written.iter().map(|&key| keys::value(key, 0));
            After::Answered { len: plan.start.filled as usize, sum: values.fold(0, u64::wrapping_add) }
        } else {
            sampled.push(&written);
            let left = written.iter().filter(|&&index| self.is_present(index as u64)).count();
            After::Certain { len: left + untouched.len() }
        };
        for indices in sampled {
            let step = indices.len().div_ceil(SAMPLES).max(1);
            plan.samples.extend(indices.iter().step_by(step).map(|&i| self.sample(&plan.start, i)));
        }
        if stays {
            plan.leaves = Some(plan.start.clone());
        } else if workload.mix.insert == 100 && workload.inserts == Inserts::Fresh {
            let filled = plan.start.filled + plan.ops();
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
        let (certain, open) = (&mut self.certain, &mut self.open);
        let (any, found, absent) = match op.action {
            Action::Get => (&mut open.reads, &mut certain.hits, &mut certain.misses),
            Action::Insert => (&mut open.inserts, &mut certain.replaced, &mut certain.inserted),
            Action::Remove => (&mut open.removes, &mut certain.removed, &mut certain.unremoved),
            Action::Update => (&mut open.updates, &mut certain.updated, &mut certain.unupdated),
        };
        let count = match op.expect {
            Expect::OPEN => any,
            Expect::ABSENT => absent,
            _ => found,
        };
        *count += 1;
    }
}
