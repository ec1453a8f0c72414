//! Runs plans on one contestant's map: the timed loops.

use std::hint::black_box;
use std::time::Instant;

use super::clock::{Clock, last_lookups};
use super::whole::Subject;
use super::{Entrant, Times};
use crate::check::{self, ReadTally, Tally};
use crate::contestants::{BATCH, Contestant, HELD_OPS, View};
use crate::error::CheckError;
use crate::heap::{self, Footprint};
use crate::keys;
use crate::plan::{Keys, MixPlan, Op, ReadPlan, Start};
use crate::race::race;
use crate::stopwatch::Stopwatch;
use crate::whole::Whole;

/// How many keys are looked up in a map that was only filled.
const SAMPLED_KEYS: u64 = 100_000;

/// A contestant's map, and what it holds.
#[derive(Debug)]
pub struct Runner<C> {
    map: Option<C>,
    /// What the map holds, if that is known.
    holds: Option<Start>,
    lost_reads: u64,
}

impl<C: Contestant> Runner<C> {
    /// A runner without a map yet.
    pub fn new() -> Self {
        Runner { map: None, holds: None, lost_reads: 0 }
    }

    /// Makes the map hold `start`; returns whether it had to be built for that.
    fn prepare(&mut self, start: &Start) -> Result<bool, CheckError> {
        if self.holds.as_ref() == Some(start) {
            return Ok(false);
        }
        // The old map is dropped first: two at a time may not fit into memory.
        self.release();
        self.map = Some(fill::<C>(start).checked(start)?);
        self.holds = Some(start.clone());
        Ok(true)
    }

    fn map(&self) -> Result<&C, CheckError> {
        self.map.as_ref().ok_or_else(|| failure::<C>("there is no map".to_owned()))
    }

    /// Checks a run of `plan`, and brings the map back to a state in which the plan can run again, if possible.
    fn conclude(&mut self, plan: &MixPlan, tallies: &[Tally]) -> Result<(), CheckError> {
        self.holds = None;
        let map = self.map()?;
        for (tally, predicted) in tallies.iter().zip(&plan.predicted) {
            tally.verify(predicted).map_err(failure::<C>)?;
        }
        let view = map.view();
        check::content(&view, map.entries(), plan, tallies).map_err(failure::<C>)?;
        if plan.leaves.as_ref() == Some(&plan.start) {
            for &key in &plan.written {
                view.insert(key, keys::value(key, 0));
            }
        }
        drop(view);
        self.lost_reads += tallies.iter().map(Tally::lost_reads).sum::<u64>();
        self.holds.clone_from(&plan.leaves);
        Ok(())
    }
}

impl<C: Contestant> Default for Runner<C> {
    fn default() -> Self {
        Runner::new()
    }
}

impl<C: Contestant> Entrant for Runner<C> {
    fn take_lost_reads(&mut self) -> u64 {
        std::mem::take(&mut self.lost_reads)
    }

    fn release(&mut self) {
        self.holds = None;
        self.map = None;
    }

    fn read(&mut self, plan: &ReadPlan, batched: bool, seconds: f64) -> Result<f64, CheckError> {
        self.prepare(&plan.start)?;
        let map = self.map()?;
        let mut clock = Clock::new(seconds);
        while clock.goes_on() {
            let (elapsed, tallies) = race(
                plan.threads.len(),
                |t| {
                    black_box(lookups(map, clock.warm_part(&plan.threads[t]), batched));
                },
                |t| black_box(lookups(map, &plan.threads[t], batched)),
            );
            for (tally, keys) in tallies.iter().zip(&plan.threads) {
                tally.verify(keys.len(), plan.present).map_err(failure::<C>)?;
            }
            clock.add(elapsed, plan.threads.iter().map(Vec::len).sum::<usize>() as u64);
        }
        Ok(clock.ops_per_microsecond())
    }

    fn mix(&mut self, plan: &MixPlan, seconds: f64) -> Result<f64, CheckError> {
        self.prepare(&plan.start)?;
        let mut clock = Clock::new(seconds);
        while clock.goes_on() {
            let is_cold = self.prepare(&plan.start)? || clock.is_fresh();
            let map = self.map()?;
            let (elapsed, tallies) = race(
                plan.threads.len(),
                // A map that another thread has just made is not in this processor's caches.
                |t| warm_up(map, if is_cold { last_lookups(&plan.threads[t]) } else { &[] }),
                |t| {
                    let mut tally = Tally::new(C::MAY_MISS_REPLACED);
                    for ops in plan.threads[t].chunks(HELD_OPS) {
                        let view = map.view();
                        ops.iter().for_each(|op| tally.perform(&view, op));
                    }
                    black_box(tally)
                },
            );
            clock.add(elapsed, plan.ops());
            self.conclude(plan, &tallies)?;
        }
        Ok(clock.ops_per_microsecond())
    }

    fn fill(&mut self, capacity: u64, count: u64, seconds: f64) -> Result<f64, CheckError> {
        self.release();
        let start = Start { capacity: capacity as usize, filled: count, keys: Keys::Numbered };
        let mut clock = Clock::new(seconds);
        while clock.goes_on() {
            let began = Instant::now();
            let filled = fill::<C>(&start);
            let elapsed = began.elapsed();
            // Some maps visit all their buckets to count entries.
            holds(&filled.checked(&start)?, &start)?;
            clock.add(elapsed, count);
        }
        Ok(clock.ops_per_microsecond())
    }

    fn extend_from_empty(&mut self, count: u64, seconds: f64) -> Result<f64, CheckError> {
        self.release();
        let keys: Vec<u64> = (0..count).map(keys::key).collect();
        let mut clock = Clock::new(seconds);
        while clock.goes_on() {
            let began = Instant::now();
            let mut map = C::with_capacity(0);
            map.extend((0..count).map(|index| {
                let key = keys::key(index);
                (key, keys::value(key, 0))
            }));
            clock.add(began.elapsed(), count);
            if map.entries() as u64 != count {
                let entries = map.entries();
                return Err(failure::<C>(format!("extended by {count} distinct keys, it holds {entries}")));
            }
            finds(&map, &keys, true)?;
        }
        Ok(clock.ops_per_microsecond())
    }

    fn whole(&mut self, what: Whole, count: u64, seconds: f64) -> Result<f64, CheckError> {
        let start = Start::full(count);
        self.prepare(&start)?;
        Subject::new(self.map()?, &start).measure(what, seconds)
    }

    fn latencies(&mut self, plan: &MixPlan, stopwatch: &Stopwatch) -> Result<Times, CheckError> {
        self.prepare(&plan.start)?;
        let map = self.map()?;
        let (_, lanes) = race(
            plan.threads.len(),
            |t| warm_up(map, last_lookups(&plan.threads[t])),
            |t| {
                let mut tally = Tally::new(C::MAY_MISS_REPLACED);
                let mut times = Times::default();
                for ops in plan.threads[t].chunks(HELD_OPS) {
                    let mut view = None;
                    for (number, op) in ops.iter().enumerate() {
                        let nanos = stopwatch.time(|| {
                            tally.perform(view.get_or_insert_with(|| map.view()), op);
                            // Memory that is freed when a pin ends is part of the time of the last operation under it.
                            if number + 1 == ops.len() {
                                view = None;
                            }
                        });
                        times.record(op.action, nanos);
                    }
                }
                (tally, times)
            },
        );
        let (tallies, times): (Vec<_>, Vec<_>) = lanes.into_iter().unzip();
        self.conclude(plan, &tallies)?;
        Ok(times.into_iter().sum())
    }

    fn footprint(&mut self, capacity: usize, count: u64) -> Result<Footprint, CheckError> {
        self.release();
        // Memory that a thread's first map of a kind allocates for all maps does not count for this one.
        let first = Start { capacity: 0, filled: 1, keys: Keys::Numbered };
        fill::<C>(&first).checked(&first)?;
        let start = Start { capacity, filled: count, keys: Keys::Numbered };
        let (map, mut footprint) = heap::measure(|| fill::<C>(&start).checked(&start));
        let map = map?;
        footprint.own = map.own_memory_usage();
        holds(&map, &start)?;
        Ok(footprint)
    }
}

/// A map that was filled, and how many of the keys were there already.
struct Filled<C> {
    map: C,
    replaced: u64,
}

/// A map that is to hold `start`, filled by the calling thread.
fn fill<C: Contestant>(start: &Start) -> Filled<C> {
    let map = C::with_capacity(start.capacity);
    let mut replaced = 0_u64;
    for first in (0..start.filled).step_by(HELD_OPS) {
        let view = map.view();
        for index in first..start.filled.min(first + HELD_OPS as u64) {
            let key = start.keys.key(index);
            replaced += u64::from(view.insert(key, keys::value(key, 0)).is_some());
        }
    }
    Filled { map, replaced }
}

impl<C: Contestant> Filled<C> {
    /// The map, if it holds `start`.
    fn checked(self, start: &Start) -> Result<C, CheckError> {
        let (entries, replaced, filled) = (self.map.entries(), self.replaced, start.filled);
        if replaced > 0 || entries as u64 != filled {
            return Err(failure::<C>(format!(
                "filled with {filled} distinct keys, it replaced {replaced} and holds {entries}"
            )));
        }
        Ok(self.map)
    }
}

/// Checks that a sample of the keys that a map was filled with is in it.
fn holds<C: Contestant>(map: &C, start: &Start) -> Result<(), CheckError> {
    finds(map, &sample(start), true)
}

/// Some of the keys that a map is filled with.
pub(super) fn sample(start: &Start) -> Vec<u64> {
    let step = start.filled.div_ceil(SAMPLED_KEYS).max(1) as usize;
    (0..start.filled).step_by(step).map(|index| start.keys.key(index)).collect()
}

/// Checks that all of `keys` are in a map, with the values that it was filled with; or none of them.
pub(super) fn finds<C: Contestant>(map: &C, keys: &[u64], present: bool) -> Result<(), CheckError> {
    lookups(map, keys, false).verify(keys.len(), present).map_err(failure::<C>)
}

fn lookups<C: Contestant>(map: &C, keys: &[u64], batched: bool) -> ReadTally {
    let mut tally = ReadTally::default();
    if batched {
        for keys in keys.chunks(BATCH) {
            map.view().get_many(keys, |key, got| tally.note(key, got));
        }
    } else {
        for keys in keys.chunks(HELD_OPS) {
            let view = map.view();
            keys.iter().for_each(|&key| tally.note(key, view.get(key)));
        }
    }
    tally
}

/// Looks up the keys of operations.
fn warm_up<C: Contestant>(map: &C, ops: &[Op]) {
    for op in ops {
        black_box(map.view().get(op.key));
    }
}

pub(super) fn failure<C: Contestant>(detail: String) -> CheckError {
    CheckError::new(C::NAME, detail)
}
