//! Look-ups in a filter during the writes of one writer: the timed loops, and what they count.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::filters::Shared;
use crate::plan::LOOKUPS_PER_CHURN;

/// After this many look-ups a reader checks whether the writer is done.
const LOOKUPS_PER_GLANCE: usize = 64;

/// What readers and the writer saw.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ChurnTally {
    pub(super) operations: u64,
    pub(super) missed: u64,
    /// Removals of present keys that found nothing.
    unremoved: u64,
    /// Insertions that found no room, though a removal had just left some.
    refused: u64,
}

impl ChurnTally {
    pub(super) fn plus(self, other: Self) -> Self {
        ChurnTally {
            operations: self.operations + other.operations,
            missed: self.missed + other.missed,
            unremoved: self.unremoved + other.unremoved,
            refused: self.refused + other.refused,
        }
    }

    pub(super) fn verify(&self) -> Result<(), String> {
        if self.missed + self.unremoved + self.refused == 0 {
            return Ok(());
        }
        Err(format!(
            "beside a writer, in {} operations: {} false negatives, {} keys not there to be removed, {} inserts \
             without room",
            self.operations, self.missed, self.unremoved, self.refused
        ))
    }
}

/// Tells the readers, when it is dropped, that the writer is done: otherwise they would read forever if it panics.
pub(super) struct SetAtEnd<'a>(pub(super) &'a AtomicBool);

impl Drop for SetAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Looks up, over and over, until `done`.
pub(super) fn read_until<S: Shared>(filter: &S, lookups: &[u64], done: &AtomicBool) -> ChurnTally {
    let mut tally = ChurnTally::default();
    while !done.load(Ordering::Relaxed) && !lookups.is_empty() {
        for keys in lookups.chunks(LOOKUPS_PER_GLANCE) {
            tally.missed += keys.iter().map(|&key| u64::from(!filter.contains(key))).sum::<u64>();
            tally.operations += keys.len() as u64;
            if done.load(Ordering::Relaxed) {
                break;
            }
        }
    }
    tally
}

/// Looks up, and after every few look-ups removes a key and inserts it again.
pub(super) fn write_between<S: Shared>(filter: &S, lookups: &[u64], churned: &[u64]) -> ChurnTally {
    let mut tally = ChurnTally::default();
    for (keys, &churned) in lookups.chunks(LOOKUPS_PER_CHURN).zip(churned.iter().cycle()) {
        tally.missed += keys.iter().map(|&key| u64::from(!filter.contains(key))).sum::<u64>();
        tally.unremoved += u64::from(!filter.remove(churned));
        tally.refused += u64::from(filter.insert(churned).is_err());
        tally.operations += keys.len() as u64 + 2;
    }
    tally
}
