//! Inserting while nobody else uses a segment: without its lock [W7].
//!
//! A lock is taken and given back by instructions that wait until all that was stored before has arrived where it belongs: so
//! each of many insertions waits for memory by itself, however early that memory was prefetched. Without locks their waits
//! overlap.

use super::directory::Directory;
use super::found::Found;
use super::locked::{Hole, LockedAlone};
use super::payload::Payload;
use crate::hash::{Digest, Place};

/// Where a key is in a segment that nobody else uses, or should be.
pub(crate) struct AloneSpot<'a, P: Payload> {
    segment: LockedAlone<'a, P>,
    place: Place,
    mark: u8,
    budget: usize,
    /// The key's slot, if it is there.
    found: Option<Found>,
}

/// An empty slot for one item, in a segment that nobody else uses.
pub(crate) struct AloneHole<'a, P: Payload> {
    segment: LockedAlone<'a, P>,
    tag: u8,
    mark: u8,
    hole: Hole,
}

impl<P: Payload> Directory<P> {
    /// Finds the item that `eq` accepts.
    ///
    /// # Safety
    ///
    /// As long as the returned value lives, nobody else reads or writes the segment that covers the digest, except to count its
    /// items by `len`, or as a writer that locks it for what it was before, finds that it is not current, and lets go; and
    /// nobody frees segments or roots that were replaced.
    #[inline]
    pub(crate) unsafe fn find_alone(
        &self,
        digest: Digest,
        eq: impl FnMut(P::Item) -> bool,
    ) -> AloneSpot<'_, P> {
        // SAFETY: the caller's.
        let segment = unsafe { LockedAlone::alone(self.locate(digest.prefix())) };
        let place = Place::new(digest, segment.segment().buckets().len());
        let found = segment.find(place, eq);
        let mark = segment.split_bits(digest.prefix());
        AloneSpot { segment, place, mark, budget: self.budget(), found }
    }
}

impl<'a, P: Payload> AloneSpot<'a, P> {
    /// Whether the item is there.
    #[inline]
    pub(crate) fn is_found(&self) -> bool {
        self.found.is_some()
    }

    /// Replaces the item that was found, if any, by what `new` makes of it. Returns whether there was one.
    #[inline]
    pub(crate) fn replace(&mut self, new: impl FnOnce(P::Item) -> P::Item) -> bool {
        let Some(found) = self.found else { return false };
        let item = new(self.segment.item(found));
        self.segment.replace(found, item);
        true
    }

    /// A hole for an item that was not found; others may be displaced for it. `None` if the item was found, or if it takes more
    /// than displacing to make room.
    #[inline]
    pub(crate) fn hole(mut self) -> Option<AloneHole<'a, P>> {
        if self.found.is_some() || self.segment.is_filling_up() {
            return None;
        }
        let failed = self.segment.state().tally.failed_searches;
        let Some(hole) = self.segment.hole_for(self.place, self.budget) else {
            // The insertion with the lock searches again, and counts the failure.
            self.segment.state().tally.failed_searches = failed;
            return None;
        };
        Some(AloneHole { segment: self.segment, tag: self.place.tag, mark: self.mark, hole })
    }
}

impl<P: Payload> AloneHole<'_, P> {
    /// What the front end keeps in the segment.
    #[inline]
    pub(crate) fn keep(&mut self) -> &mut P::Keep {
        &mut self.segment.state().keep
    }

    /// Puts the item there.
    #[inline]
    pub(crate) fn put(mut self, item: P::Item) {
        self.segment.put_into(self.hole, self.tag, item, self.mark);
    }
}
