//! The options of a cache that are plain data, and what the cache is made of by them: compiled once for all types of caches.

use core::time::Duration;

use super::error::CacheError;
use super::meta::Limits;
use super::policy::Policy;
use crate::engine::{CapacityError, Shape};
use crate::sync::SCHEDULED;

/// Entries that are worth a lock of their own. With fewer in a segment, segments differ too much in their share of the capacity
/// and in the part of the hot entries that they happen to have.
const ENTRIES_A_SEGMENT: usize = if SCHEDULED { 1 } else { 1024 };
/// The same by weight, for when the number of entries is not known.
const WEIGHT_A_SEGMENT: u64 = 1 << 16;
/// The number of entries for which each segment of a cache by weight is made, unless it is estimated: its tables grow.
const FIRST_ENTRIES: usize = 64;

/// Enough segments that threads seldom meet at a lock.
fn most_segments() -> usize {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    (4 * cores).next_power_of_two().min(256)
}

/// How many segments a cache of this many entries has.
pub(super) fn segments_for(entries: usize) -> u32 {
    segments_of((entries / ENTRIES_A_SEGMENT) as u64, most_segments)
}

/// One segment for each part that is worth one, and no more than `most` returns. `most` is not called for a single part: the
/// system reads files to answer.
fn segments_of(parts: u64, most: impl FnOnce() -> usize) -> u32 {
    if parts <= 1 { 1 } else { parts.min(most() as u64) as u32 }
}

/// What a builder was told, except for closures, the clock and the hash function.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Options {
    pub(super) max_entries: Option<usize>,
    pub(super) max_weight: Option<u64>,
    pub(super) estimated_entries: Option<usize>,
    pub(super) policy: Policy,
    pub(super) to_live: Option<Duration>,
    pub(super) to_idle: Option<Duration>,
    pub(super) ahead: Option<Duration>,
}

/// Which of the others it was given.
#[derive(Clone, Copy, Debug)]
pub(super) struct Given {
    pub(super) weigher: bool,
    pub(super) own_life: bool,
    pub(super) own_idle: bool,
    pub(super) clock: bool,
}

/// What the cache is made of.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) capacity: u64,
    pub(super) segments: u32,
    pub(super) shape: Shape,
    /// For how many entries its tables are made.
    pub(super) entries: usize,
    /// If entries expire.
    pub(super) limits: Option<Limits>,
}

impl Options {
    /// Checks the options, and plans the cache.
    pub(super) fn plan(&self, given: Given) -> Result<Plan, CacheError> {
        let capacity = match (self.max_entries, self.max_weight) {
            (Some(entries), None) => entries as u64,
            (None, Some(weight)) => weight,
            (None, None) => return Err(CacheError::NoBound),
            (Some(_), Some(_)) => return Err(CacheError::TwoBounds),
        };
        if given.weigher && self.max_weight.is_none() {
            return Err(CacheError::WeigherUnused);
        }
        let expires = given.own_life || given.own_idle || self.to_live.is_some() || self.to_idle.is_some();
        if given.clock && !expires {
            return Err(CacheError::ClockUnused);
        }
        if self.ahead.is_some() && self.to_live.is_none() && !given.own_life {
            return Err(CacheError::RefreshUnused);
        }
        if let (Some(ahead), Some(life)) = (self.ahead, self.to_live) {
            if ahead >= life {
                return Err(CacheError::RefreshTooEarly { ahead, life });
            }
        }
        let (segments, share) = self.division(capacity);
        let shape = Shape::for_cache(segments, share).map_err(|error| self.refused(error))?;
        let limits = Limits {
            to_idle: self.to_idle,
            has_own_idle: given.own_idle,
            is_refreshed: self.ahead.is_some(),
        };
        let entries = share.saturating_mul(segments as usize);
        Ok(Plan { capacity, segments, shape, entries, limits: expires.then_some(limits) })
    }

    /// The number of segments, and of the entries that each of them is made for.
    fn division(&self, capacity: u64) -> (u32, usize) {
        match (self.max_entries, self.estimated_entries) {
            (Some(entries), _) | (None, Some(entries)) => {
                let segments = segments_for(entries);
                (segments, entries.div_ceil(segments as usize))
            }
            (None, None) => {
                let segments = segments_of(capacity / WEIGHT_A_SEGMENT, most_segments);
                (segments, FIRST_ENTRIES.min(usize::try_from(capacity).unwrap_or(usize::MAX)))
            }
        }
    }

    /// The error of a table that cannot be made: it has the number that the user gave, not what it comes to in segments.
    pub(super) fn refused(&self, error: CapacityError) -> CacheError {
        let said = self.max_entries.or(self.estimated_entries);
        CacheError::Capacity(error.of(said.unwrap_or(error.requested)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_one_segment_does_not_ask_the_system_for_its_cores() {
        let asked = || -> usize { panic!("tens of microseconds for each small cache") };
        assert_eq!([0, 1].map(|parts| segments_of(parts, asked)), [1, 1]);
        assert_eq!([2, 8, 9, u64::MAX].map(|parts| segments_of(parts, || 8)), [2, 8, 8, 8]);
    }
}
