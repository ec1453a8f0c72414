//! What is in the slots of a locked segment, as an eviction sees it: [`Residents`].

use core::marker::PhantomData;

use super::buckets::Buckets;
use super::found::Found;
use super::payload::Payload;
use super::segment::SegmentRef;
use super::stripes;
use super::tags::{SLOTS, tag_at, taken_lanes};
use crate::hash::{Place, alternate};
use crate::sync::{AtomicU64, Ordering};

/// A locked segment's slots: their marks and places, and emptying them. Finds nothing in its overflow. The lock is held as long
/// as this lives.
pub(crate) struct Residents<'l, P: Payload> {
    segment: SegmentRef<'l, P>,
    buckets: Buckets<P>,
    lock: PhantomData<&'l mut P>,
}

impl<'l, P: Payload> Residents<'l, P> {
    /// The slots of a segment whose lock is held as long as this lives.
    #[inline]
    pub(super) fn of(segment: SegmentRef<'l, P>) -> Self {
        Residents { segment, buckets: segment.buckets(), lock: PhantomData }
    }

    /// How many buckets there are.
    #[inline]
    pub(crate) fn buckets(&self) -> u32 {
        self.buckets.len()
    }

    /// How many slots they have.
    #[inline]
    pub(crate) fn slots(&self) -> usize {
        self.segment.slots()
    }

    /// Finds a slot of one of the place's buckets by tag and mark.
    #[inline]
    pub(crate) fn find(&self, place: Place, accept: impl Fn(u8) -> bool) -> Option<Found> {
        let mut matches = self.buckets.matches(place);
        while let Some(lane) = matches.next_lane() {
            let (bucket, lane) = place.slot(lane);
            if accept(self.buckets.mark(bucket, lane)) {
                return Some(self.buckets.found(bucket, lane));
            }
        }
        None
    }

    /// Starts loading what `find`, and the removal of what it finds, read and write.
    #[inline]
    pub(crate) fn prefetch(&self, place: Place) {
        for bucket in [place.first, place.second] {
            self.buckets.prefetch_tags(bucket);
            self.buckets.prefetch_slot(bucket);
        }
    }

    /// The occupied slots of a bucket.
    #[inline]
    pub(crate) fn occupied(&self, bucket: u32) -> impl Iterator<Item = Found> + use<P> {
        let buckets = self.buckets;
        taken_lanes(buckets.tags(bucket)).map(move |lane| buckets.found(bucket, lane))
    }

    /// The item in a slot, unless the slot is empty by now. Only for slots that say so themselves.
    #[inline]
    pub(crate) fn item_if_taken(&self, found: Found) -> Option<P::Item> {
        const { assert!(P::NULLABLE) };
        // SAFETY: a slot of a live segment.
        unsafe { P::load(found.slot()) }
    }

    /// The slot that has this number, four for each bucket, if it is taken.
    #[inline]
    pub(crate) fn at(&self, index: usize) -> Option<Found> {
        let (bucket, lane) = ((index / SLOTS as usize) as u32, (index % SLOTS as usize) as u32);
        (tag_at(self.buckets.tags(bucket), lane) != 0).then(|| self.buckets.found(bucket, lane))
    }

    /// The four tags of a bucket, and its four bytes of marks.
    #[inline]
    pub(crate) fn tags_and_marks(&self, bucket: u32) -> (u32, u32) {
        // Relaxed: marks are advice [B4].
        (self.buckets.tags(bucket), self.buckets.marks(bucket).load(Ordering::Relaxed))
    }

    /// Sets a bucket's four bytes of marks. A hit in between may be lost [B4].
    #[inline]
    pub(crate) fn set_marks(&self, bucket: u32, marks: u32) {
        // Relaxed: as in `Buckets::set_mark`.
        self.buckets.marks(bucket).store(marks, Ordering::Relaxed);
    }

    /// The slot in one of a place's eight lanes; it must be taken.
    #[inline]
    pub(crate) fn in_lane(&self, place: Place, lane: u32) -> Found {
        let (bucket, lane) = place.slot(lane);
        self.buckets.found(bucket, lane)
    }

    /// The mark of a slot.
    #[inline]
    pub(crate) fn mark(&self, found: Found) -> u8 {
        let (bucket, lane) = self.buckets.position_of(found);
        self.buckets.mark(bucket, lane)
    }

    /// Sets the mark of a slot.
    #[inline]
    pub(crate) fn set_mark(&self, found: Found, mark: u8) {
        let (bucket, lane) = self.buckets.position_of(found);
        self.buckets.set_mark(bucket, lane, mark);
    }

    /// The item in a slot.
    #[inline]
    pub(crate) fn item(&self, found: Found) -> P::Item {
        item::<P>(found)
    }

    /// Empties a slot.
    ///
    /// `clear`'s Releases pair with the Acquires of [R3]. A reader of an inline item that has seen the tag learns of it from
    /// the stripe: `note_departure` pairs with `begin` [R2], and `publish_departures` in the slot's next `fill` with
    /// `unchanged` [R4].
    #[inline]
    pub(crate) fn remove(&mut self, found: Found) {
        let stripe = if P::NULLABLE { None } else { Some(self.stripe_of(found)) };
        let (bucket, lane) = self.buckets.position_of(found);
        self.buckets.clear(bucket, lane);
        if let Some(stripe) = stripe {
            stripes::note_departure(stripe);
        }
        self.segment.set_len(self.segment.items() - 1);
    }

    /// The stripe that readers of a slot validate against.
    pub(super) fn stripe_of(&self, found: Found) -> &AtomicU64 {
        let (bucket, lane) = self.buckets.position_of(found);
        let tag = tag_at(self.buckets.tags(bucket), lane);
        self.segment.stripe(pair(bucket, tag, self.buckets.len()))
    }
}

/// The item in a slot of a locked segment.
#[inline]
pub(super) fn item<P: Payload>(found: Found) -> P::Item {
    // SAFETY: a slot of a live segment.
    unsafe { P::load(found.slot()) }.expect("a found slot is occupied while the lock is held")
}

/// The pair of an item with `tag` in `bucket`.
#[inline]
pub(super) fn pair(bucket: u32, tag: u8, buckets: u32) -> Place {
    Place { first: bucket, second: alternate(bucket, tag, buckets), tag }
}
