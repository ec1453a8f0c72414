//! What look-ups, writes and the scan share.

use core::fmt;
use std::sync::Arc;

use super::error::{Error, SnapshotError};
use super::filter::{Active, Plan};
use super::hot::Hot;
use super::rebuild::{Progress, Rebuild};
use super::stats::Counters;
use super::stripes::Stripes;
use crate::swapped::Swapped;
use crate::sync::{AtomicBool, AtomicU64, Mutex};

pub(super) type OnProgress = Box<dyn Fn(Progress) + Send + Sync>;

/// Requests for another scan, after the one that is running.
#[derive(Debug, Default)]
pub(super) struct Again {
    /// The filter of the running scan is not to be trusted: another must follow.
    pub(super) is_due: bool,
    /// How often another scan was asked for so far.
    pub(super) asked: u64,
    /// The store has not moved on to another generation since a scan was asked for.
    pub(super) is_new_generation_due: bool,
}

pub(super) struct Shared<S, E> {
    pub(super) store: S,
    pub(super) plan: Plan,
    pub(super) expected_keys: Option<u64>,
    pub(super) stripes: Stripes,
    /// The filter that readers ask; if there is none, every look-up passes. It is replaced only while no write is under way
    /// [D3]; taking it away is safe at any time.
    pub(super) active: Swapped<Arc<Active>>,
    /// The filter that is being built. Replaced as above.
    pub(super) next: Mutex<Option<Arc<Rebuild>>>,
    pub(super) hot: Hot,
    pub(super) counters: Counters,
    /// A scan is running, or about to run.
    pub(super) rebuilding: AtomicBool,
    /// Held by a thread that publishes a filter, takes it away, or begins or ends a scan: never while it waits for a disk or
    /// the store.
    pub(super) again: Mutex<Again>,
    /// The scan should end.
    pub(super) stop: AtomicBool,
    pub(super) scanned: AtomicU64,
    /// About how many keys the scan will see.
    pub(super) to_scan: AtomicU64,
    /// How many keys the last discarded filter had.
    pub(super) known_keys: AtomicU64,
    /// Why the last scan failed.
    pub(super) failure: Mutex<Option<Error<E>>>,
    /// Writes left before a scan that has failed, or for which there was no thread, is tried again; 0 if none is to be tried
    /// again.
    pub(super) patience: AtomicU64,
    /// Writes left before a scan for a filter that is crowded out; 0 if it is not yet known to be.
    pub(super) crowded_patience: AtomicU64,
    pub(super) on_progress: Option<OnProgress>,
    /// Why the snapshot was not used.
    pub(super) rejected: Option<SnapshotError>,
    /// Held by a thread that writes a snapshot.
    pub(super) snapshot: Mutex<()>,
    /// Held by a thread that gives a snapshot its name. Taken before `again`.
    pub(super) naming: Mutex<()>,
}

impl<S, E> Shared<S, E> {
    /// The filter that readers ask; it stays valid if it is replaced meanwhile.
    pub(super) fn active(&self) -> Option<Arc<Active>> {
        self.active.pin().map(|active| Arc::clone(&active))
    }
}

impl<S, E> fmt::Debug for Shared<S, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guarded").field("plan", &self.plan).finish_non_exhaustive()
    }
}
