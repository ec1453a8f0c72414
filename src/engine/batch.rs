//! Many look-ups at once: each stage starts loading what the next one needs, for all keys, before any waits for it.
//!
//! A single look-up of a large table waits for memory two or three times; here the waits of a batch overlap. There are few
//! stages, because each ends by waiting for its last line: the tags of both buckets, which a single look-up reads as well, are
//! one stage.
//!
//! For each key this is [R1], [R2], [R3] and [R4] for even versions, in that order; only other keys' steps come between. So a
//! hit needs no more validation than in [`Directory::find`], to which every unclear case falls back. A tag whose slot is null
//! is such a case: a tag is set before its slot is filled and cleared after the slot was emptied [I7], and the key may be in a
//! later slot.

use core::mem::MaybeUninit;

use super::directory::Directory;
use super::found::Found;
use super::payload::Payload;
use super::segment::{Probe, Segment, SegmentRef};
use super::stripes::{self, Version};
use crate::hash::{Digest, Place};
use crate::prefetch::prefetch;
use crate::sync::{AtomicU64, step};

/// Keys in flight: more than the line-fill buffers of today's cores, few enough for their state to stay in L1.
pub(crate) const BATCH: usize = 32;

/// Calls `each` with keys, their digests and the places of their answers, up to [`BATCH`] at a time.
#[inline(always)]
pub(crate) fn each_batch<T, A>(
    keys: &[T],
    answers: &mut [A],
    digest: impl Fn(&T) -> Digest,
    mut each: impl FnMut(&[T], &[Digest], &mut [A]),
) {
    for (keys, answers) in keys.chunks(BATCH).zip(answers.chunks_mut(BATCH)) {
        each(keys, &digests_of(keys, &digest)[..keys.len()], answers);
    }
}

/// The digests of up to [`BATCH`] keys; the remaining elements stand for no key.
#[inline(always)]
pub(crate) fn digests_of<T>(keys: &[T], digest: impl Fn(&T) -> Digest) -> [Digest; BATCH] {
    let mut digests = [Digest::ZERO; BATCH];
    for (place, key) in digests.iter_mut().zip(keys) {
        *place = digest(key);
    }
    digests
}

/// A look-up under way, with what the tags have shown so far.
struct Pending<'a, P: Payload> {
    segment: SegmentRef<'a, P>,
    stripe: &'a AtomicU64,
    version: Version,
    /// Where the first matching tag is; null, if neither bucket shows one.
    slot: *const P::Word,
}

impl<P: Payload> Directory<P> {
    /// Finds up to `BATCH` items: `eq(i, item)` says whether the item is `digests[i]`'s; `report(i, item)` gets each
    /// result, in order. `shown(i)` is called if a tag shows that the item may be there: to start loading what `eq` will read.
    #[inline]
    pub(crate) fn find_batch(
        &self,
        digests: &[Digest],
        shown: impl Fn(usize),
        eq: impl Fn(usize, P::Item) -> bool + Copy,
        report: impl FnMut(usize, Option<P::Item>),
    ) {
        self.find_batch_and(digests, shown, eq, |_, _, _| (), report);
    }

    /// Finds up to `BATCH` items, as [`Directory::find_batch`], and changes their marks, as [`Directory::find_and_mark`].
    #[inline]
    pub(crate) fn find_batch_and_mark(
        &self,
        digests: &[Digest],
        eq: impl Fn(usize, P::Item) -> bool + Copy,
        change: impl Fn(u8) -> u8 + Copy,
        report: impl FnMut(usize, Option<P::Item>),
    ) {
        let mark = |segment: &Segment<P>, bucket, lane| segment.buckets().change_mark(bucket, lane, change);
        self.find_batch_and(digests, |_| (), eq, mark, report);
    }

    /// `find_batch`, which calls `found` with segment, bucket and lane of each item: it may have left meanwhile.
    #[inline(always)]
    fn find_batch_and(
        &self,
        digests: &[Digest],
        shown: impl Fn(usize),
        eq: impl Fn(usize, P::Item) -> bool + Copy,
        found: impl Fn(&Segment<P>, u32, u32) + Copy,
        mut report: impl FnMut(usize, Option<P::Item>),
    ) {
        assert!(digests.len() <= BATCH);
        let mut located = [const { MaybeUninit::<(SegmentRef<'_, P>, Place)>::uninit() }; BATCH];
        let root = self.root();
        for (digest, located) in digests.iter().zip(&mut located) {
            let segment = Self::locate_from(root, digest.prefix());
            let place = Place::new(*digest, segment.buckets().len());
            segment.buckets().prefetch_tags(place.first);
            segment.buckets().prefetch_tags(place.second);
            located.write((segment, place));
        }
        let mut pending = [const { MaybeUninit::<Pending<'_, P>>::uninit() }; BATCH];
        for (i, (located, key)) in located[..digests.len()].iter().zip(&mut pending).enumerate() {
            // SAFETY: written above, one for each digest.
            let (segment, place) = unsafe { located.assume_init_read() };
            let key = key.write(Pending::new(segment, place));
            if !key.slot.is_null() {
                shown(i);
            }
        }
        // SAFETY: as many as there are digests have just been written.
        let pending =
            unsafe { core::slice::from_raw_parts(pending.as_ptr().cast::<Pending<'_, P>>(), digests.len()) };
        let mut settle = |i: usize, item: Option<P::Item>| match item.filter(|&item| eq(i, item)) {
            Some(item) => {
                pending[i].found(found);
                report(i, Some(item));
            }
            None if self.is_absent(digests[i], &pending[i]) => report(i, None),
            // The tag matched another key, or something moved, or there is overflow.
            None => {
                self.count_if_changed(digests[i], &pending[i]);
                report(i, self.find_and(digests[i], || (), move |item| eq(i, item), found));
            }
        };
        if !P::NULLABLE {
            pending.iter().enumerate().for_each(|(i, key)| settle(i, key.read()));
            return;
        }
        let mut items = [None; BATCH];
        for (key, item) in pending.iter().zip(&mut items) {
            *item = key.read();
            if let &mut Some(item) = item {
                P::prefetch(item);
            }
        }
        (0..pending.len()).for_each(|i| settle(i, items[i]));
    }

    /// [R4]: whether a key is absent. Only if neither bucket showed its tag: a matching tag whose slot is null or another key's
    /// settles nothing, because only the first match of both buckets was read. An odd version is left to `find`.
    #[inline(always)]
    fn is_absent(&self, digest: Digest, key: &Pending<'_, P>) -> bool {
        key.slot.is_null() && self.is_settled(digest, &key.segment, key.stripe, key.version)
    }

    /// Counts a retry if something has changed: not every key that falls back does so for that reason. Not on the common path.
    #[cold]
    #[inline(never)]
    fn count_if_changed(&self, digest: Digest, key: &Pending<'_, P>) {
        if self.has_changed(digest, key.segment, key.version) {
            // As in `find_carefully`: in the segment that is read again.
            self.locate(digest.prefix()).count_retry();
        }
    }
}

impl<'a, P: Payload> Pending<'a, P> {
    /// [R2], and the tags of [R3]; the slot is then on its way.
    #[inline(always)]
    fn new(segment: SegmentRef<'a, P>, place: Place) -> Self {
        let (buckets, stripe) = (segment.buckets(), segment.stripe(place));
        let version = stripes::begin(stripe);
        step();
        let lane = buckets.matches(place).peek_lane();
        let slot = buckets.computed_slot_of(place, lane.unwrap_or(0));
        let slot = if lane.is_some() { slot } else { core::ptr::null() };
        prefetch(slot);
        Pending { segment, stripe, version, slot }
    }

    /// Reports where the item was that [`Pending::read`] has found.
    #[inline(always)]
    fn found(&self, found: impl Fn(&Segment<P>, u32, u32)) {
        let buckets = self.segment.buckets();
        // SAFETY: something was read from it, so that it is not null.
        let (bucket, lane) = buckets.position_of(unsafe { Found::at(self.slot) });
        found(&self.segment, bucket, lane);
    }

    /// [R3] of the slot. What is found is whole, and not yet compared.
    #[inline(always)]
    fn read(&self) -> Option<P::Item> {
        if self.slot.is_null() {
            return None;
        }
        // SAFETY: a slot of the segment and its stripe.
        match unsafe { self.segment.read_item(self.slot, self.stripe, self.version) } {
            Probe::Hit(item) => Some(item),
            Probe::Miss | Probe::Changed => None,
        }
    }
}
