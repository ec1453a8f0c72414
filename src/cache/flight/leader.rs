//! Who loads a key: the value comes through it, or its failure does.

use core::fmt;
use core::mem;
use std::collections::BTreeMap;
use std::task::Waker;

use super::flights::{At, FlightId};
use super::running::{self, Running};

/// Leads a flight: one per flight at a time [F1]. Dropped without having landed (after an error, a panic, or with
/// the future that held it) it leaves the lead to a follower [F4].
pub(crate) struct Flight<'a, K, V> {
    at: At<'a, K, V>,
    landed: bool,
}

impl<'a, K, V> Flight<'a, K, V> {
    pub(super) fn new(at: At<'a, K, V>) -> Self {
        Flight { at, landed: false }
    }

    pub(super) fn id(&self) -> FlightId {
        self.at.id()
    }

    /// Whether the key was written to since the load began, so that the cache must not keep what was loaded [F5].
    ///
    /// To be asked under the lock of the cache's table under which the value is then put: see
    /// [`Flights::invalidate`](super::Flights::invalidate). Takes a shard's lock, which is a leaf.
    pub(crate) fn is_stale(&self) -> bool {
        self.at.with(|entry| entry.is_some_and(|entry| entry.stale))
    }

    /// While the result lives, this thread runs the flight's loader.
    pub(super) fn running(&self) -> Running {
        running::enter(self.id())
    }
}

impl<K, V: Clone> Flight<'_, K, V> {
    /// Ends the flight with a value, which the cache has kept or not. Each follower gets a clone [F3].
    pub(super) fn land(mut self, value: &V) {
        let mut outcome = None;
        let alone = self.at.end_if(|entry| {
            outcome = entry.outcome.clone();
            entry.followers == 0
        });
        if alone.is_some() {
            self.landed = true;
            return;
        }
        // Not under the lock. If it panics, the next leader finds what the cache has kept, or loads.
        if let Some(outcome) = outcome {
            let copy = value.clone();
            assert!(outcome.set(copy).is_ok(), "a flight lands once");
        }
        // Who no longer finds the flight finds the value: the lock orders the one before the other.
        let ended = self.at.end_if(|_| true);
        self.landed = true;
        if let Some(mut entry) = ended {
            wake(mem::take(&mut entry.sleepers));
        }
    }
}

impl<K, V> Drop for Flight<'_, K, V> {
    fn drop(&mut self) {
        if self.landed {
            return;
        }
        let mut next = None;
        let ended = self.at.end_if(|entry| {
            entry.led = false;
            // Followers of a stale flight cannot take over: the key may have another by now. They join that.
            let ends = entry.stale || entry.followers == 0;
            if !ends {
                next = entry.sleepers.pop_first();
            }
            ends
        });
        if let Some((_, waker)) = next {
            waker.wake();
        }
        if let Some(mut entry) = ended {
            wake(mem::take(&mut entry.sleepers));
        }
    }
}

/// Wakes all who slept, in the order in which they came. Not under a lock.
fn wake(sleepers: BTreeMap<u64, Waker>) {
    sleepers.into_values().for_each(Waker::wake);
}

impl<K, V> fmt::Debug for Flight<'_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Flight").field("at", &self.at).finish_non_exhaustive()
    }
}
