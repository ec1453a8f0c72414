//! Plans that only read, where every lookup hits or every lookup misses.

use std::sync::Arc;

use super::{Keys, Start};
use crate::dist::{Dist, Sampler};
use crate::error::Error;
use crate::keys;
use crate::stop;
use crate::trace::Trace;

/// Lookups by number.
#[derive(Debug, Clone)]
pub struct ReadPlan {
    /// What the map holds.
    pub start: Start,
    /// Each thread's keys.
    pub threads: Vec<Vec<u64>>,
    /// Whether all of them are there, or none.
    pub present: bool,
}

/// Lookups by text.
#[derive(Debug, Clone)]
pub struct TextPlan {
    /// How many texts the map holds, and is built for.
    pub filled: u64,
    /// Each thread's keys, one after the other without a separator; all of them are there.
    pub threads: Vec<String>,
}

/// Lookups in a full map of `count` keys: all of present keys, or all of absent ones.
///
/// # Errors
///
/// Ctrl-C.
pub fn reads(count: u64, dist: Dist, threads: usize, ops: usize, present: bool) -> Result<ReadPlan, Error> {
    let first = if present { 0 } else { keys::FIRST_ABSENT };
    let draw = |thread| {
        let mut sampler = Sampler::new(dist, count, thread, threads);
        drawn(ops, || keys::key(first + sampler.any(count)))
    };
    let threads = (0..threads).map(draw).collect::<Result<_, _>>()?;
    Ok(ReadPlan { start: Start::full(count), threads, present })
}

/// Lookups of a trace's keys, in a map that holds them all.
///
/// # Errors
///
/// Ctrl-C.
pub fn replayed_reads(trace: &Arc<Trace>, threads: usize, ops: usize) -> Result<ReadPlan, Error> {
    let start = Start {
        capacity: trace.keys.len(),
        filled: trace.keys.len() as u64,
        keys: Keys::Listed(trace.clone()),
    };
    let draw = |thread| {
        let mut sampler = Sampler::replay(trace.clone(), thread, threads);
        drawn(ops, || start.keys.key(sampler.any(start.filled)))
    };
    let threads = (0..threads).map(draw).collect::<Result<_, _>>()?;
    Ok(ReadPlan { start, threads, present: true })
}

/// Lookups of present texts in a map that holds `count`.
///
/// # Errors
///
/// Ctrl-C.
pub fn texts(count: u64, dist: Dist, threads: usize, ops: usize) -> Result<TextPlan, Error> {
    let draw = |thread| {
        let mut sampler = Sampler::new(dist, count, thread, threads);
        let mut text = String::with_capacity(ops * keys::TEXT_BYTES);
        for _ in 0..ops {
            stop::check()?;
            text.push_str(&keys::text_key(sampler.any(count)));
        }
        Ok(text)
    };
    let threads = (0..threads).map(draw).collect::<Result<_, Error>>()?;
    Ok(TextPlan { filled: count, threads })
}

/// Draws `ops` keys, unless Ctrl-C ends this.
fn drawn(ops: usize, mut draw: impl FnMut() -> u64) -> Result<Vec<u64>, Error> {
    let mut keys = Vec::with_capacity(ops);
    for _ in 0..ops {
        stop::check()?;
        keys.push(draw());
    }
    Ok(keys)
}
