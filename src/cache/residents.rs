//! A locked segment's entries, as the policy sees them.

use super::policy::{Locator, Residents};
use crate::engine::{self, Found, Payload};
use crate::hash::Place;

/// What a cache knows of its entries in addition to where they are.
pub(super) trait Evict<P: Payload> {
    /// The weight of the entry in a slot.
    fn weight(&self, residents: &engine::Residents<'_, P>, slot: Found) -> u64;

    /// Takes the entry out of its slot.
    fn evict(&mut self, residents: &mut engine::Residents<'_, P>, slot: Found);

    /// Whether the entry must not be evicted: it is being replaced.
    #[inline(always)]
    fn stays(&self, _: Found) -> bool {
        false
    }
}

/// For callers that look at slots, and evict none.
pub(super) struct NoEviction;

impl<P: Payload> Evict<P> for NoEviction {
    fn weight(&self, _: &engine::Residents<'_, P>, _: Found) -> u64 {
        unreachable!("none is weighed")
    }

    fn evict(&mut self, _: &mut engine::Residents<'_, P>, _: Found) {
        unreachable!("none is evicted")
    }
}

/// Slots, and what the cache knows of them.
pub(super) struct Entries<'l, P: Payload, T> {
    pub(super) residents: engine::Residents<'l, P>,
    pub(super) victims: T,
}

impl<P: Payload, T: Evict<P>> Residents for Entries<'_, P, T> {
    type Slot = Found;

    #[inline]
    fn find(&self, locator: Locator, mask: u8, value: u8) -> Option<Found> {
        self.residents.find(locator.place(self.residents.buckets()), |mark| mark & mask == value)
    }

    #[inline]
    fn mark(&self, slot: Found) -> u8 {
        self.residents.mark(slot)
    }

    #[inline]
    fn set_mark(&mut self, slot: Found, mark: u8) {
        self.residents.set_mark(slot, mark);
    }

    #[inline]
    fn weight(&self, slot: Found) -> u64 {
        self.victims.weight(&self.residents, slot)
    }

    #[inline(always)]
    fn evict(&mut self, slot: Found) {
        self.victims.evict(&mut self.residents, slot);
    }

    #[inline(always)]
    fn stays(&self, slot: Found) -> bool {
        self.victims.stays(slot)
    }

    #[inline]
    fn buckets(&self) -> u32 {
        self.residents.buckets()
    }

    #[inline]
    fn tags_and_marks(&self, bucket: u32) -> (u32, u32) {
        self.residents.tags_and_marks(bucket)
    }

    #[inline]
    fn in_lane(&self, place: Place, lane: u32) -> Found {
        self.residents.in_lane(place, lane)
    }

    #[inline]
    fn set_marks(&mut self, bucket: u32, marks: u32) {
        self.residents.set_marks(bucket, marks);
    }

    fn slots(&self) -> usize {
        self.residents.slots()
    }

    fn at(&self, index: usize) -> Option<Found> {
        self.residents.at(index)
    }
}
