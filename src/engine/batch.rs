//! Many look-ups at once: each stage starts loading what the next one needs, for all keys, before any waits for it.
//!
//! A single look-up of a large table waits for memory two or three times; here the waits of a batch overlap, and what
//! limits it is how many lines it fetches. So the second bucket's tags are fetched only for keys whose tag the first
//! does not show: a quarter of those that are present.
//!
//! For each key this is [R1], [R2], [R3] one bucket after the other, and [R4] for even versions, in that order; only
//! other keys' steps come between. So what is found needs no more validation than in [`Directory::find`], to which
//! every unclear case falls back. A tag whose slot is null is one: it is set before the slot is filled and cleared
//! after it was emptied [I7], and the key may be behind it.

use core::mem::MaybeUninit;

use super::buckets::Matches;
use super::directory::Directory;
use super::payload::Payload;
use super::prefetch::prefetch;
use super::segment::{Probe, Segment};
use super::stripes::{self, Version};
use crate::hash::{Digest, Place};
use crate::sync::{AtomicU32, step};

/// Keys in flight: more than the line-fill buffers of today's cores, few enough for their state to stay in L1. One bit
/// each in [`Keys`].
pub(crate) const BATCH: usize = 32;

/// A look-up under way.
struct Pending<'a, P: Payload> {
    segment: &'a Segment<P>,
    place: Place,
    version: Version,
    /// Where the first matching tag is; not for keys without one.
    slot: *const P::Word,
}

/// Some of the keys of a batch.
#[derive(Clone, Copy)]
struct Keys(u32);

impl Keys {
    const NONE: Self = Keys(0);

    #[inline(always)]
    fn add_if(&mut self, i: usize, yes: bool) {
        self.0 |= u32::from(yes) << i;
    }

    #[inline(always)]
    fn has(self, i: usize) -> bool {
        self.0 >> i & 1 == 1
    }
}

impl Iterator for Keys {
    type Item = usize;

    #[inline(always)]
    fn next(&mut self) -> Option<usize> {
        if self.0 == 0 {
            return None;
        }
        let i = self.0.trailing_zeros();
        self.0 &= self.0 - 1;
        Some(i as usize)
    }
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
        for (digest, key) in digests.iter().zip(&mut pending) {
            let segment = self.locate(digest.prefix());
            let place = Place::new(*digest, segment.buckets().len());
            segment.buckets().prefetch_tags(place.first);
            key.write(Pending { segment, place, version: Version::UNREAD, slot: core::ptr::null() });
        }
        // SAFETY: as many as there are digests have just been written.
        let pending = unsafe {
            core::slice::from_raw_parts_mut(pending.as_mut_ptr().cast::<Pending<'_, P>>(), digests.len())
        };
        let (mut in_first, mut not_in_first) = (Keys::NONE, Keys::NONE);
        for (i, key) in pending.iter_mut().enumerate() {
            // [R2], before either bucket's tags.
            key.version = stripes::begin(key.segment.stripe(key.place));
            step();
            let second = key.segment.buckets().first_tag().wrapping_add(key.place.second as usize);
            let found = key.matches(key.place.first, second);
            in_first.add_if(i, found);
            not_in_first.add_if(i, !found);
        }
        let mut items = [const { MaybeUninit::<P::Item>::uninit() }; BATCH];
        let mut read = Keys::NONE;
        for i in in_first {
            if let Probe::Hit(item) = pending[i].read() {
                items[i].write(item);
                read.add_if(i, true);
            }
        }
        let mut in_second = Keys::NONE;
        for i in not_in_first {
            step();
            let key = &mut pending[i];
            let found = key.matches(key.place.second, core::ptr::from_ref(key.segment).cast());
            in_second.add_if(i, found);
        }
        for i in in_second {
            if let Probe::Hit(item) = pending[i].read() {
                items[i].write(item);
                read.add_if(i, true);
            }
        }
        for (i, key) in pending.iter().enumerate() {
            let found = if read.has(i) {
                // SAFETY: written when it was noted as read.
                Some(unsafe { items[i].assume_init() }).filter(|&item| eq(i, item))
            } else {
                None
            };
            let no_tag = !in_first.has(i) && !in_second.has(i);
            match found {
                Some(item) => report(i, Some(item)),
                // [R4]. A tag whose slot is null or another key's settles nothing: only the first of its bucket was
                // read, and of two buckets perhaps one.
                None if no_tag && self.is_absent(digests[i], key) => report(i, None),
                // A tag that lied, or something moved, or there is overflow.
                None => {
                    self.count_if_changed(digests[i], key);
                    report(i, self.find(digests[i], || (), move |item| eq(i, item)));
                }
            }
        }
    }

    /// [R4]: whether a key whose tag neither bucket showed is absent. An odd version is left to `find`.
    #[inline(always)]
    fn is_absent(&self, digest: Digest, key: &Pending<'_, P>) -> bool {
        self.is_settled(digest, key.segment, key.segment.stripe(key.place), key.version)
    }

    /// Counts a retry if something has changed: not every key falls back for that. Not on the common path.
    #[cold]
    #[inline(never)]
    fn count_if_changed(&self, digest: Digest, key: &Pending<'_, P>) {
        if self.has_changed(digest, key.segment, key.version) {
            // As in `find_carefully`: in the segment that is read again.
            self.locate(digest.prefix()).count_retry();
        }
    }
}

impl<P: Payload> Pending<'_, P> {
    /// Whether the bucket shows the tag; its slot is then on its way, and otherwise the line at `instead`.
    ///
    /// Without a branch: which bucket a key is in is random, and a wrong guess would wait for the tags.
    #[inline(always)]
    fn matches(&mut self, bucket: u32, instead: *const AtomicU32) -> bool {
        const { assert!(!P::MARKED, "the tags of two buckets are not side by side") };
        let buckets = self.segment.buckets();
        let lane = Matches::of_one(buckets.tags(bucket), self.place.tag).peek_lane();
        self.slot = buckets.slot(bucket, lane.unwrap_or(0));
        prefetch(if lane.is_some() { self.slot.cast() } else { instead });
        lane.is_some()
    }

    /// [R3] of one slot; what the item points to is then on its way. A hit is whole, and not yet compared.
    #[inline(always)]
    fn read(&self) -> Probe<P::Item> {
        let stripe = self.segment.stripe(self.place);
        // SAFETY: a slot of the segment and its stripe, from `matches`.
        let read = unsafe { self.segment.read_item(self.slot, stripe, self.version) };
        if let Probe::Hit(item) = read {
            P::prefetch(item);
        }
        read
    }
}
