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

/// Another scan, after the one that is running.
#[derive(Debug, Default)]
pub(super) struct Again {
    /// What the one that is running finds is not to be trusted: another must follow.
    pub(super) is_due: bool,
    /// How often it was asked for so far.
    pub(super) asked: u64,
    /// Since it was asked for the store has not moved on to another generation.
    pub(super) is_new_generation_due: bool,
}

pub(super) struct Shared<S, E> {
    pub(super) store: S,
    pub(super) plan: Plan,
    pub(super) expected_keys: Option<u64>,
    pub(super) stripes: Stripes,
    /// What readers ask; nothing: every look-up passes. Replaced while no write is under way [D3], but for being
    /// taken away, which harms nobody.
    pub(super) active: Swapped<Arc<Active>>,
    /// The filter that is being built. As above.
    pub(super) next: Mutex<Option<Arc<Rebuild>>>,
    pub(super) hot: Hot,
    pub(super) counters: Counters,
    /// A scan is running, or about to.
    pub(super) rebuilding: AtomicBool,
    /// Held by who publishes a filter, takes it away, or begins or ends a scan: never while a disk or the store is waited for.
    pub(super) again: Mutex<Again>,
    /// The scan should end.
    pub(super) stop: AtomicBool,
    pub(super) scanned: AtomicU64,
    /// Keys that the scan will see, about.
    pub(super) to_scan: AtomicU64,
    /// Keys that the last filter had that was taken away.
    pub(super) known_keys: AtomicU64,
    /// Why the last scan failed.
    pub(super) failure: Mutex<Option<Error<E>>>,
    /// Writes before a scan that has failed, or for which there was no thread, is tried again; 0, if nobody waits.
    pub(super) patience: AtomicU64,
    /// Writes before one is made for a filter that is crowded out; 0, if it is not yet known to be.
    pub(super) crowded_patience: AtomicU64,
    pub(super) on_progress: Option<OnProgress>,
    /// Why the snapshot was not used.
    pub(super) rejected: Option<SnapshotError>,
    /// Held by who writes a snapshot.
    pub(super) snapshot: Mutex<()>,
    /// Held by who gives a snapshot its name. Taken before `again`.
    pub(super) naming: Mutex<()>,
}

impl<S, E> Shared<S, E> {
    /// The filter that readers ask, also when it is replaced meanwhile.
    pub(super) fn active(&self) -> Option<Arc<Active>> {
        self.active.pin().map(|active| Arc::clone(&active))
    }
}

impl<S, E> fmt::Debug for Shared<S, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guarded").field("plan", &self.plan).finish_non_exhaustive()
    }
}
