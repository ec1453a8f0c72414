//! Replays requests on a cache, inserts on each miss, and counts hits. Simulated caches go through the same loop.

use crate::caches::Cache;
use crate::error::CheckError;
use crate::keys;
use crate::trace::Trace;

/// Caches that put work off do it after a miss, and after this many hits in a row: their policies should know all earlier
/// requests before they decide.
const HITS_UNTIL_SETTLED: u32 = 32;

/// The bound of a cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// This many entries.
    Entries(u64),
    /// This many bytes, by the sizes in the trace.
    Bytes(u64),
}

/// One request of a trace.
#[derive(Debug, Clone, Copy)]
pub struct Request {
    /// The index of the key among the trace's keys.
    pub index: u32,
    /// The key.
    pub key: u64,
    /// How much of the bound it takes.
    pub size: u32,
}

/// The result of a replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Replayed {
    /// Requests that were hits.
    pub hits: u64,
    /// How much the cache held at the end, in the unit of its bound.
    pub held: u64,
}

impl Bound {
    /// The amount in the bound's own unit.
    pub fn amount(self) -> u64 {
        match self {
            Bound::Entries(amount) | Bound::Bytes(amount) => amount,
        }
    }

    /// For how many entries of `trace` there may be room: by the mean size, if the bound is on bytes; at most as many as there
    /// are keys.
    pub fn entries(self, trace: &Trace) -> usize {
        match self {
            Bound::Entries(entries) => entries as usize,
            Bound::Bytes(bytes) => {
                let keys = trace.keys.len() as u128;
                (u128::from(bytes) * keys / trace.bytes().max(1)).min(keys).max(1) as usize
            }
        }
    }
}

impl Trace {
    /// The total size of all keys.
    pub fn bytes(&self) -> u128 {
        self.sizes.iter().map(|&size| u128::from(size)).sum()
    }

    /// The size of key number `index` by `bound`; at least 1. Sizes of 4 GiB and more count as one byte less than 4 GiB.
    fn size(&self, index: u32, bound: Bound) -> u32 {
        match bound {
            Bound::Entries(_) => 1,
            Bound::Bytes(_) => self.sizes[index as usize].clamp(1, u64::from(u32::MAX)) as u32,
        }
    }
}

/// Passes each request to `ask`, which returns whether it was a hit, and counts the hits.
///
/// # Errors
///
/// The first error of `ask`.
pub fn hits<X>(
    trace: &Trace,
    bound: Bound,
    mut ask: impl FnMut(Request) -> Result<bool, X>,
) -> Result<u64, X> {
    let mut hits = 0;
    for &index in &trace.requests {
        let request = Request { index, key: trace.keys[index as usize], size: trace.size(index, bound) };
        hits += u64::from(ask(request)?);
    }
    Ok(hits)
}

/// Replays `trace` on an empty cache with `bound`; `None` if there is no such cache.
///
/// # Errors
///
/// A value that belongs to another key; a cache that holds more than it promised.
pub fn replay<C: Cache>(trace: &Trace, bound: Bound) -> Result<Option<Replayed>, CheckError> {
    match bound {
        Bound::Entries(entries) => replay_on(&C::of_entries(entries as usize), trace, bound).map(Some),
        Bound::Bytes(bytes) => match C::of_bytes(bytes, bound.entries(trace)) {
            Some(cache) => replay_on(&cache, trace, bound).map(Some),
            None => Ok(None),
        },
    }
}

fn replay_on<C: Cache>(cache: &C, trace: &Trace, bound: Bound) -> Result<Replayed, CheckError> {
    let failure = |detail: String| CheckError::new(C::NAME, detail);
    let mut hits_in_a_row = 0;
    let hits = hits(trace, bound, |Request { key, size, .. }| {
        let value = keys::value(key, size);
        let got = cache.get(key);
        match got {
            Some(got) if got != value => {
                return Err(failure(format!("key {key:#x} has the value {got:#x} in place of {value:#x}")));
            }
            Some(_) => hits_in_a_row += 1,
            None => cache.insert(key, value),
        }
        if got.is_none() || hits_in_a_row == HITS_UNTIL_SETTLED {
            cache.settle();
            hits_in_a_row = 0;
        }
        if C::STRICT && got.is_none() && cache.held() > bound.amount() {
            return Err(failure(format!(
                "it holds {}, and is to hold {} at most",
                cache.held(),
                bound.amount()
            )));
        }
        Ok(got.is_some())
    })?;
    cache.settle();
    Ok(Replayed { hits, held: cache.held() })
}
