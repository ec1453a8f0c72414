//! Inserting while nobody else uses a segment: without its lock [W7].
//!
//! A lock is taken and given back by instructions that wait until all that was stored before has arrived where it belongs: so
//! of many insertions each waits for memory by itself, however early that was asked for. Without locks their waits overlap.

#[cfg(feature = "rayon")]
use core::ops::Range;

use super::directory::Directory;
use super::found::Found;
use super::locked::{Owned, Room};
use super::payload::Payload;
use crate::hash::{Digest, Place};

/// Where a key is in a segment that nobody else uses, or should be.
pub(crate) struct SoleSpot<'a, P: Payload> {
    owned: Owned<'a, P>,
    place: Place,
    budget: usize,
    /// The key's slot, if it is there.
    found: Option<Found>,
}

/// An empty slot for one item.
pub(crate) struct SoleRoom<'a, P: Payload> {
    owned: Owned<'a, P>,
    tag: u8,
    room: Room,
}

impl<P: Payload> Directory<P> {
    /// Finds the item that `eq` accepts.
    ///
    /// # Safety
    ///
    /// As long as what is returned lives, nobody else uses the segment that covers the digest.
    #[inline]
    pub(crate) unsafe fn find_alone(
        &self,
        digest: Digest,
        eq: impl FnMut(P::Item) -> bool,
    ) -> SoleSpot<'_, P> {
        let segment = self.locate(digest.prefix());
        // SAFETY: the caller's.
        let owned = unsafe { Owned::own(segment) };
        let place = Place::new(digest, segment.buckets().len());
        let found = owned.find(place, eq);
        SoleSpot { owned, place, budget: self.budget(), found }
    }

    /// Segments that the table began with.
    #[cfg(feature = "rayon")]
    pub(crate) fn first_segments(&self) -> u32 {
        self.shape.segments
    }

    /// The prefixes among these whose segments cover no others, however they will split.
    #[cfg(feature = "rayon")]
    pub(crate) fn whole_segments(&self, prefixes: Range<u64>) -> Range<u64> {
        whole(prefixes, self.shape.segments.into())
    }
}

/// Of 2^32 prefixes that are shared out among `parts`, in order: those of `prefixes` whose part has no others.
#[cfg(feature = "rayon")]
pub(crate) fn whole(prefixes: Range<u64>, parts: u64) -> Range<u64> {
    let begin = |part: u64| (part << 32).div_ceil(parts);
    let part_of = |prefix: u64| (prefix * parts) >> 32;
    // The first that begins there or later; the last that ends there or earlier ends where the one after it begins.
    let first = prefixes.start.checked_sub(1).map_or(0, |before| part_of(before) + 1);
    let start = begin(first);
    start..begin(part_of(prefixes.end)).max(start)
}

impl<'a, P: Payload> SoleSpot<'a, P> {
    /// Replaces the item that was found, if any was, by what `new` makes of it. Whether any was.
    #[inline]
    pub(crate) fn replace(&mut self, new: impl FnOnce(P::Item) -> P::Item) -> bool {
        let Some(found) = self.found else { return false };
        let item = new(self.owned.item(found));
        self.owned.replace(found, item);
        true
    }

    /// Room for an item that was not found, for which others may be displaced; `None` if it was, or if it takes more than that.
    #[inline]
    pub(crate) fn room(mut self) -> Option<SoleRoom<'a, P>> {
        if self.found.is_some() || self.owned.is_filling_up() {
            return None;
        }
        let room = self.owned.room_for(self.place, self.budget)?;
        Some(SoleRoom { owned: self.owned, tag: self.place.tag, room })
    }
}

impl<P: Payload> SoleRoom<'_, P> {
    /// What the front end keeps in the segment.
    #[inline]
    pub(crate) fn keep(&mut self) -> &mut P::Keep {
        &mut self.owned.state().keep
    }

    /// Puts the item there.
    #[inline]
    pub(crate) fn put(mut self, item: P::Item) {
        self.owned.put_into(self.room, self.tag, item, 0);
    }
}

#[cfg(all(test, feature = "rayon", not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn whole_parts_are_those_that_begin_and_end_within() {
        for parts in [1_u64, 2, 3, 17, 258, 1000, 1 << 20] {
            let begins: Vec<u64> = (0..=parts.min(1000)).map(|part| (part << 32).div_ceil(parts)).collect();
            for pair in begins.windows(2) {
                let (begin, end) = (pair[0], pair[1]);
                assert_eq!(whole(begin..end, parts), begin..end);
                assert!(whole(begin + 1..end, parts).is_empty() && whole(begin..end - 1, parts).is_empty());
                assert_eq!(whole(begin.saturating_sub(1)..end + 1, parts), begin..end, "of {parts}");
            }
            assert_eq!(whole(0..1 << 32, parts), 0..1 << 32);
        }
        assert_eq!(whole(5..1 << 31, 4), 1 << 30..1 << 31);
    }
}
