//! Runs plans on one cache: the timed loops.

use std::hint::black_box;

use hdrhistogram::Histogram;

use super::cache::{CacheEntrant, ReadThrough};
use super::clock::Clock;
use crate::caches::Cache;
use crate::contestants::BATCH;
use crate::error::CheckError;
use crate::heap::{self, Footprint};
use crate::keys;
use crate::plan::CachePlan;
use crate::race::race;
use crate::replay::{self, Bound, Replayed};
use crate::stopwatch::{Stopwatch, new_histogram};
use crate::trace::Trace;

/// A cache is filled with this many times as many keys as it is to hold: then caches that hold entries in parts are full in all
/// parts, and caches that remember evicted keys remember as many as they ever do.
const FILLINGS: u64 = 3;

/// A cache, in the states that plans require.
#[derive(Debug)]
pub struct CacheRunner<C> {
    /// A full cache, and how many entries it is for.
    full: Option<(C, usize)>,
    /// A half-full cache.
    half: Option<Half<C>>,
    /// How many keys were inserted to fill it or to be timed: none occurs twice.
    fresh: u64,
}

#[derive(Debug)]
struct Half<C> {
    cache: C,
    entries: usize,
    /// The keys that are in it.
    keys: Vec<u64>,
}

/// What a thread saw.
#[derive(Debug, Default, Clone, Copy)]
struct Tally {
    hits: u64,
    wrong: u64,
}

impl<C: Cache> CacheRunner<C> {
    /// A runner without a cache yet.
    pub fn new() -> Self {
        CacheRunner { full: None, half: None, fresh: 0 }
    }

    fn full(&self) -> Result<(&C, usize), CheckError> {
        let full = self.full.as_ref().map(|(cache, entries)| (cache, *entries));
        full.ok_or_else(|| failure::<C>("there is no full cache".to_owned()))
    }

    /// A cache that holds half of what it may hold, and these keys.
    fn half(&mut self, entries: usize) -> Result<&Half<C>, CheckError> {
        if self.half.as_ref().is_none_or(|half| half.entries != entries) {
            let cache = C::of_entries(entries);
            let all = (0..(entries as u64 / 2).max(1)).map(keys::key);
            all.clone().for_each(|key| cache.insert(key, keys::value(key, 0)));
            cache.settle();
            // A cache of small sets evicts from sets that are full before the whole cache is.
            let keys = all.filter(|&key| cache.get(key).is_some()).collect();
            self.half = Some(Half { cache, entries, keys });
        }
        let half = self.half.as_ref().filter(|half| !half.keys.is_empty());
        half.ok_or_else(|| failure::<C>("it holds none of the keys that were inserted".to_owned()))
    }
}

impl<C: Cache> Default for CacheRunner<C> {
    fn default() -> Self {
        CacheRunner::new()
    }
}

impl<C: Cache> CacheEntrant for CacheRunner<C> {
    fn replay(&self, trace: &Trace, bound: Bound) -> Result<Option<Replayed>, CheckError> {
        replay::replay::<C>(trace, bound)
    }

    fn fill(&mut self, plan: &CachePlan) -> Result<(), CheckError> {
        // The old one is dropped first: the new one takes over its memory.
        self.full = None;
        self.full = Some((filled::<C>(plan, &mut self.fresh)?, plan.entries));
        Ok(())
    }

    fn read_through(&mut self, plan: &CachePlan, loads: bool) -> Result<ReadThrough, CheckError> {
        let (cache, entries) = self.full()?;
        let run = |keys: &[u64]| if loads { load(cache, keys) } else { ask(cache, keys) };
        let (elapsed, tallies) = race(
            plan.threads.len(),
            |t| {
                black_box(run(&plan.warm[t]));
            },
            |t| black_box(run(&plan.threads[t])),
        );
        let requests = plan.threads.iter().map(Vec::len).sum::<usize>() as u64;
        let hits = conclude(cache, &tallies, entries)?;
        let mut clock = Clock::new(0.0);
        clock.add(elapsed, requests);
        Ok(ReadThrough { mops: clock.ops_per_microsecond(), hit_ratio: hits as f64 / requests.max(1) as f64 })
    }

    fn hits(
        &mut self,
        entries: usize,
        threads: &[Vec<u32>],
        batched: bool,
        seconds: f64,
    ) -> Result<f64, CheckError> {
        let Half { cache, keys, .. } = self.half(entries)?;
        let key = |number: &u32| keys[*number as usize % keys.len()];
        let threads: Vec<Vec<u64>> =
            threads.iter().map(|numbers| numbers.iter().map(key).collect()).collect();
        let mut clock = Clock::new(seconds);
        while clock.goes_on() {
            let (elapsed, tallies) = race(
                threads.len(),
                |t| {
                    black_box(look_up(cache, clock.warm_part(&threads[t]), batched));
                },
                |t| black_box(look_up(cache, &threads[t], batched)),
            );
            let asked = threads.iter().map(Vec::len).sum::<usize>() as u64;
            clock.add(elapsed, asked);
            let hits = conclude(cache, &tallies, entries)?;
            if hits != asked {
                return Err(failure::<C>(format!(
                    "{} of {asked} look-ups missed entries that it held",
                    asked - hits
                )));
            }
        }
        Ok(clock.ops_per_microsecond())
    }

    fn inserts(&mut self, count: usize, stopwatch: &Stopwatch) -> Result<Histogram<u64>, CheckError> {
        let first = self.fresh;
        self.fresh += count as u64;
        let (cache, entries) = self.full()?;
        let mut histogram = new_histogram();
        for key in (first..).take(count).map(fresh_key) {
            let value = keys::value(key, 0);
            histogram.saturating_record(stopwatch.time(|| cache.insert(key, value)));
        }
        // Each of these keys that is still there has its value.
        let inserted: Vec<u64> = (first..).take(count).map(fresh_key).collect();
        conclude(cache, &[look_up(cache, &inserted, false)], entries)?;
        Ok(histogram)
    }

    fn footprint(&self, plan: &CachePlan) -> Result<(Footprint, u64), CheckError> {
        let mut fresh = self.fresh;
        let (cache, mut footprint) = heap::measure(|| filled::<C>(plan, &mut fresh));
        let cache = cache?;
        footprint.own = cache.own_memory_usage();
        Ok((footprint, cache.held()))
    }
}

/// A full cache for the plan's entries, after the requests of its first thread.
fn filled<C: Cache>(plan: &CachePlan, fresh: &mut u64) -> Result<C, CheckError> {
    let cache = C::of_entries(plan.entries);
    for _ in 0..plan.entries as u64 * FILLINGS {
        let key = fresh_key(*fresh);
        *fresh += 1;
        cache.insert(key, keys::value(key, 0));
    }
    cache.settle();
    conclude(&cache, &[ask(&cache, &plan.threads[0])], plan.entries)?;
    Ok(cache)
}

/// A key that no plan asks for.
fn fresh_key(number: u64) -> u64 {
    keys::key(keys::FIRST_ABSENT + number)
}

/// Looks keys up, and inserts those that are missing.
#[inline]
fn ask<C: Cache>(cache: &C, keys: &[u64]) -> Tally {
    let mut tally = Tally::default();
    for &key in keys {
        let value = keys::value(key, 0);
        match cache.get(key) {
            Some(got) => {
                tally.hits += 1;
                tally.wrong += u64::from(got != value);
            }
            None => cache.insert(key, value),
        }
    }
    tally
}

/// The same, by the cache's own call for that.
#[inline]
fn load<C: Cache>(cache: &C, keys: &[u64]) -> Tally {
    let mut tally = Tally::default();
    for &key in keys {
        let (value, mut is_hit) = (keys::value(key, 0), true);
        let got = cache.get_or_load(key, || {
            is_hit = false;
            value
        });
        tally.hits += u64::from(is_hit);
        tally.wrong += u64::from(got != value);
    }
    tally
}

/// Looks keys up, and inserts nothing.
#[inline]
fn look_up<C: Cache>(cache: &C, keys: &[u64], batched: bool) -> Tally {
    let mut tally = Tally::default();
    if batched {
        for keys in keys.chunks(BATCH) {
            cache.get_many(keys, |key, got| tally.note(key, got));
        }
    } else {
        keys.iter().for_each(|&key| tally.note(key, cache.get(key)));
    }
    tally
}

impl Tally {
    #[inline]
    fn note(&mut self, key: u64, got: Option<u64>) {
        if let Some(got) = got {
            self.hits += 1;
            self.wrong += u64::from(got != keys::value(key, 0));
        }
    }
}

/// The hits of all threads, if nothing was wrong.
fn conclude<C: Cache>(cache: &C, tallies: &[Tally], entries: usize) -> Result<u64, CheckError> {
    cache.settle();
    let (hits, wrong) = tallies.iter().fold((0, 0), |sum, tally| (sum.0 + tally.hits, sum.1 + tally.wrong));
    if wrong > 0 {
        return Err(failure::<C>(format!("{wrong} of {hits} hits had a value that is not their key's")));
    }
    let held = cache.held();
    if C::STRICT && held > entries as u64 {
        return Err(failure::<C>(format!("it holds {held}, and is to hold {entries} at most")));
    }
    Ok(hits)
}

fn failure<C: Cache>(detail: String) -> CheckError {
    CheckError::new(C::NAME, detail)
}
