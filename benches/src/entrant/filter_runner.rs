//! Runs plans on one filter: the timed loops.

use std::hint::black_box;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use super::churn::{ChurnTally, SetAtEnd, read_until, write_between};
use super::clock::Clock;
use super::filter::{Built, FilterEntrant, Making};
use crate::check;
use crate::contestants::BATCH;
use crate::error::CheckError;
use crate::filters::{FULL, Filter, Full, Shared, Size, slots_by_first_key};
use crate::heap;
use crate::keys;
use crate::plan::{self, ChurnPlan};
use crate::race::race;

/// How often a filter that is too small is rebuilt, twice as large.
const MAX_ATTEMPTS: u32 = 4;

/// How many keys are looked up after each filling.
const SAMPLED_KEYS: u64 = 100_000;

/// A filter and what it was built for.
#[derive(Debug)]
pub struct FilterRunner<F> {
    filter: Option<F>,
    size: Size,
    lost_reads: u64,
}

impl<F: Filter> FilterRunner<F> {
    /// A runner without a filter yet.
    pub fn new() -> Self {
        FilterRunner { filter: None, size: Size { keys: 0, bits: 0, attempt: 0 }, lost_reads: 0 }
    }

    /// Builds the filter by `fill`, larger each time the keys do not fit, and checks that they are in it.
    fn fitting<T>(
        &mut self,
        keys: u64,
        bits: u32,
        mut fill: impl FnMut(Size) -> Result<Result<(F, T), Full>, String>,
    ) -> Result<T, CheckError> {
        self.filter = None;
        if (self.size.keys, self.size.bits) != (keys, bits) {
            self.size = Size { keys, bits, attempt: 0 };
        }
        loop {
            if let Ok((filter, result)) = fill(self.size).map_err(refusal::<F>)? {
                holds(&filter, keys, SAMPLED_KEYS).map_err(failure::<F>)?;
                self.filter = Some(filter);
                return Ok(result);
            }
            self.size.attempt += 1;
            if self.size.attempt > MAX_ATTEMPTS {
                return Err(refusal::<F>(format!("{keys} keys do not fit, however large it is built")));
            }
        }
    }

    fn filter(&self) -> Result<&F, CheckError> {
        self.filter.as_ref().ok_or_else(|| failure::<F>("there is no filter".to_owned()))
    }
}

impl<F: Filter> Default for FilterRunner<F> {
    fn default() -> Self {
        FilterRunner::new()
    }
}

impl<F: Filter> FilterEntrant for FilterRunner<F> {
    fn shares_writes(&self) -> bool {
        F::SHARED_WRITES
    }

    fn fixed_slots(&self) -> bool {
        F::FIXED_SLOTS
    }

    fn removes(&self) -> bool {
        F::REMOVES
    }

    fn batches(&self) -> bool {
        F::BATCHES
    }

    fn at_once(&self) -> bool {
        F::AT_ONCE
    }

    fn lookups_only(&self) -> bool {
        F::LOOKUPS_ONLY
    }

    fn take_lost_reads(&mut self) -> u64 {
        std::mem::take(&mut self.lost_reads)
    }

    fn build(&mut self, keys: u64, bits: u32) -> Result<Built, CheckError> {
        let footprint = self.fitting(keys, bits, |size| {
            let (filled, footprint) = heap::measure(|| F::filled(size, (0..keys).map(keys::key)));
            Ok(filled?.map(|filter| (filter, footprint)))
        })?;
        let filter = self.filter()?;
        holds(filter, keys, keys).map_err(failure::<F>)?;
        let probes = plan::absent(1, (keys as usize * 4).clamp(100_000, 2_000_000));
        let found = probes[0].iter().filter(|&&key| filter.contains(key)).count() as u64;
        let expected = filter.expected(keys);
        check::false_positives(found, probes[0].len() as u64, expected).map_err(failure::<F>)?;
        Ok(Built {
            bits_per_key: footprint.requested as f64 * 8.0 / keys as f64,
            load: filter.load(),
            expected,
            measured: found as f64 / probes[0].len() as f64,
            attempts: self.size.attempt,
        })
    }

    fn fill(&mut self, keys: u64, bits: u32, threads: usize, seconds: f64) -> Result<f64, CheckError> {
        let mut clock = Clock::new(seconds);
        while clock.goes_on() {
            let elapsed = self.fitting(keys, bits, |size| {
                if threads == 1 {
                    let start = Instant::now();
                    let filled = F::filled(size, (0..keys).map(keys::key))?;
                    let elapsed = start.elapsed();
                    return Ok(filled.map(|filter| (filter, elapsed)));
                }
                filled_by_threads(size, threads)
            })?;
            clock.add(elapsed, keys);
        }
        Ok(clock.ops_per_microsecond())
    }

    fn fill_up(&self, keys: u64, bits: u32, seconds: f64) -> Result<f64, CheckError> {
        let mut clock = Clock::new(seconds);
        while clock.goes_on() {
            let mut filter = F::empty(Size { keys, bits, attempt: 0 }).map_err(refusal::<F>)?;
            let slots = slots_by_first_key(&mut filter, keys::key(0));
            let wanted = (slots as f64 * FULL) as u64;
            let start = Instant::now();
            let refused = (1..wanted).find(|&index| filter.insert(keys::key(index)).is_err());
            // The first key is excluded, as it was not timed.
            let tried = refused.unwrap_or(wanted.saturating_sub(1));
            clock.add(start.elapsed(), tried.max(1));
            // A refused key may have displaced another one, as cuckoofilter documents.
            if refused.is_none() {
                holds(&filter, wanted, SAMPLED_KEYS).map_err(failure::<F>)?;
            }
        }
        Ok(clock.ops_per_microsecond())
    }

    fn make(&self, keys: &[u64], bits: u32, making: Making, seconds: f64) -> Result<f64, CheckError> {
        let count = keys.len() as u64;
        // So large that all keys are certain to fit.
        let size = Size { keys: count, bits, attempt: 1 };
        // If no such filter can be made, nothing is wrong.
        drop(F::empty(size).map_err(refusal::<F>)?);
        let threads = if let Making::OnThreads(threads) = making { threads } else { 1 };
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        let pool = pool.map_err(|error| failure::<F>(error.to_string()))?;
        let mut clock = Clock::new(seconds);
        while clock.goes_on() {
            let start = Instant::now();
            let made = match making {
                Making::OneByOne => F::filled(size, keys.iter().copied()),
                Making::AtOnce => F::at_once(size, keys, false).map(Ok),
                Making::OnThreads(_) => pool.install(|| F::at_once(size, keys, true)).map(Ok),
            };
            let elapsed = start.elapsed();
            let filter = made
                .and_then(|made| made.map_err(|Full| "no room within its capacity".to_owned()))
                .map_err(failure::<F>)?;
            holds(&filter, count, SAMPLED_KEYS).map_err(failure::<F>)?;
            clock.add(elapsed, count);
        }
        Ok(clock.ops_per_microsecond())
    }

    fn read(
        &mut self,
        lookups: &[Vec<u64>],
        present: bool,
        batched: bool,
        seconds: f64,
    ) -> Result<f64, CheckError> {
        let filter = self.filter()?;
        let all = lookups.iter().map(Vec::len).sum::<usize>() as u64;
        let mut clock = Clock::new(seconds);
        while clock.goes_on() {
            let (elapsed, found) = race(
                lookups.len(),
                |t| {
                    black_box(found(filter, clock.warm_part(&lookups[t]), batched));
                },
                |t| black_box(found(filter, &lookups[t], batched)),
            );
            let found = found.iter().sum();
            let right = if present {
                check::no_false_negatives(found, all)
            } else {
                check::false_positives(found, all, filter.expected(self.size.keys))
            };
            right.map_err(failure::<F>)?;
            clock.add(elapsed, all);
        }
        Ok(clock.ops_per_microsecond())
    }

    fn churn(&mut self, plan: &ChurnPlan, seconds: f64) -> Result<f64, CheckError> {
        let shared = self.filter.take().ok_or_else(|| failure::<F>("there is no filter".to_owned()))?.share();
        let mut clock = Clock::new(seconds);
        let mut tally = ChurnTally::default();
        while clock.goes_on() {
            let done = AtomicBool::new(false);
            let (elapsed, tallies) = race(
                plan.threads.len(),
                |t| {
                    clock.warm_part(&plan.threads[t]).iter().for_each(|&key| {
                        black_box(shared.contains(key));
                    });
                },
                |t| {
                    let lookups = &plan.threads[t];
                    if t > 0 {
                        return read_until(&shared, lookups, &done);
                    }
                    let _end = SetAtEnd(&done);
                    write_between(&shared, lookups, &plan.churned)
                },
            );
            let pass = tallies.into_iter().fold(ChurnTally::default(), ChurnTally::plus);
            clock.add(elapsed, pass.operations);
            tally = tally.plus(pass);
        }
        let filter = self.filter.insert(shared.into_inner());
        if F::MAY_MISS {
            self.lost_reads += std::mem::take(&mut tally.missed);
        }
        let whole = tally.verify().and_then(|()| holds(filter, plan.keys, plan.keys));
        whole.map_err(failure::<F>)?;
        Ok(clock.ops_per_microsecond())
    }
}

/// A filter of the keys, of which each thread has inserted its share, and how long that took. This includes building an empty
/// filter, as it does for one thread.
fn filled_by_threads<F: Filter>(size: Size, threads: usize) -> Result<Result<(F, Duration), Full>, String> {
    let start = Instant::now();
    let filter = F::empty(size)?.share();
    let built = start.elapsed();
    let (elapsed, results) = race(
        threads,
        |_| (),
        |thread| {
            let share = |thread: usize| size.keys * thread as u64 / threads as u64;
            (share(thread)..share(thread + 1)).try_for_each(|i| filter.insert(keys::key(i)))
        },
    );
    let filter = filter.into_inner();
    Ok(results.into_iter().collect::<Result<(), Full>>().map(|()| (filter, built + elapsed)))
}

/// How many of the keys the filter takes for present.
fn found<F: Filter>(filter: &F, keys: &[u64], batched: bool) -> u64 {
    if !batched {
        return keys.iter().map(|&key| u64::from(filter.contains(key))).sum();
    }
    let mut found = [false; BATCH];
    keys.chunks(BATCH)
        .map(|keys| {
            let found = &mut found[..keys.len()];
            filter.contains_many(keys, found);
            found.iter().map(|&found| u64::from(found)).sum::<u64>()
        })
        .sum()
}

/// Checks that a filter has as many keys as it should, if it counts them, and all keys of a sample of this many or a few more.
fn holds<F: Filter>(filter: &F, keys: u64, sample: u64) -> Result<(), String> {
    if let Some(len) = filter.entries().filter(|len| *len != keys) {
        return Err(format!("it says it holds {len} keys of {keys}"));
    }
    let step = (keys / sample.max(1)).max(1) as usize;
    let sample = || (0..keys).step_by(step).map(keys::key);
    let found = sample().filter(|&key| filter.contains(key)).count() as u64;
    check::no_false_negatives(found, sample().count() as u64)
}

fn refusal<F: Filter>(why: String) -> CheckError {
    CheckError::refusal(F::NAME, why)
}

fn failure<F: Filter>(detail: String) -> CheckError {
    CheckError::new(F::NAME, detail)
}
