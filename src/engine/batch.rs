//! Many look-ups at once: each stage starts loading what the next one needs, for all keys, before any waits for it.
//!
//! A single look-up of a large table waits for memory two or three times; here the waits of a batch overlap. What is
//! found needs no more validation than in [`Directory::find`], to which every unclear case falls back.

use core::mem::MaybeUninit;

use super::buckets::Matches;
use super::directory::{Directory, Located};
use super::payload::Payload;
use super::prefetch::prefetch;
use super::segment::Probe;
use super::stripes::{self, Version};
use crate::hash::{Digest, Place};

/// Keys in flight: more than the line-fill buffers of today's cores, few enough for their state to stay in L1.
pub(crate) const BATCH: usize = 32;

/// A look-up under way.
struct Pending<'a, P: Payload> {
    at: Located<'a, P>,
    place: Place,
    version: Version,
    matches: Matches,
}

impl<P: Payload> Directory<P> {
    /// Finds up to `BATCH` items: `eq(i, item)` says whether the item is `digests[i]`'s; `report(i, item)` gets each
    /// result, in order.
    #[inline]
    pub(crate) fn find_batch(
        &self,
        digests: &[Digest],
        eq: impl Fn(usize, P::Item) -> bool + Copy,
        mut report: impl FnMut(usize, Option<P::Item>),
    ) {
        assert!(digests.len() <= BATCH);
        let mut pending = [const { MaybeUninit::<Pending<'_, P>>::uninit() }; BATCH];
        let mut first = [const { None }; BATCH];
        for (digest, slot) in digests.iter().zip(&mut pending) {
            let at = self.locate(digest.prefix());
            let place = Place::new(*digest, at.segment.buckets().len());
            at.segment.prefetch(place);
            let matches = Matches::NONE;
            slot.write(Pending { at, place, version: Version::UNREAD, matches });
        }
        // SAFETY: as many as there are digests have just been written.
        let pending = unsafe {
            core::slice::from_raw_parts_mut(pending.as_mut_ptr().cast::<Pending<'_, P>>(), digests.len())
        };
        for key in &mut *pending {
            let segment = key.at.segment;
            key.version = stripes::begin(segment.stripe(key.place));
            key.matches = segment.buckets().matches(key.place);
            if let Some(slot) = key.first_match() {
                prefetch(slot);
            }
        }
        for (key, first) in pending.iter().zip(&mut first) {
            if let Some(at) = key.first_match() {
                let segment = key.at.segment;
                let stripe = segment.stripe(key.place);
                // SAFETY: a slot of the segment.
                let read = unsafe { segment.read_item(at, stripe, key.version) };
                if let Probe::Hit(item) = read {
                    P::prefetch(item);
                    *first = Some(item);
                }
            }
        }
        for (i, (key, first)) in pending.iter().zip(first).enumerate() {
            let found = match first {
                Some(item) if eq(i, item) => Some(item),
                None if key.matches.is_empty()
                    && self.is_settled(&key.at, key.at.segment.stripe(key.place), key.version) =>
                {
                    None
                }
                _ => self.find(digests[i], move |item| eq(i, item)),
            };
            report(i, found);
        }
    }
}

impl<P: Payload> Pending<'_, P> {
    /// The slot of the first match.
    #[inline(always)]
    fn first_match(&self) -> Option<*const P::Word> {
        { self.matches }.next_lane().map(|lane| self.at.segment.buckets().slot_of(self.place, lane))
    }
}
