//! Buckets: tag words in one array, slots in another.
//!
//! Anyone may read; only the holder of the segment's lock fills and clears [I5]. This file keeps [I7]: while a
//! slot's tag is 0 the slot is empty. Which of the two is written first depends on which one readers trust:
//!
//! * a nullable slot (a pointer) is the truth and the tag a hint: tag, then slot when filling; slot, then tag when clearing. A
//!   stale tag leads a reader to a null slot or to a live entry, never to one not yet inserted.
//! * otherwise the tag is the truth: words, then tag when filling; the tag alone when clearing.

use core::alloc::Layout;
use core::mem::MaybeUninit;
use core::ptr::NonNull;

use super::found::Found;
use super::payload::Payload;
use super::stripes;
use super::tags::{Matches, SLOTS, tag_at, taken_lanes};
use crate::hash::Place;
use crate::prefetch::prefetch;
use crate::sync::{AtomicU32, Ordering, init_zeroed, step};

/// The half of a mark's byte that moves with the item. The other half belongs to the bucket and stays: an eviction may note
/// something there.
pub(crate) const MARK: u8 = 0x0F;

/// How many buckets ahead entries are prefetched.
const PREFETCH_DISTANCE: u32 = 4;

/// Arrays of tag words and slots that somebody else allocated: a segment, or a block of overflow.
pub(crate) struct Buckets<P: Payload> {
    /// A word of four tags for each bucket; where slots are marked, a word of four marks follows each.
    tags: *const AtomicU32,
    /// `SLOTS * P::WORDS` words for each bucket.
    slots: *const P::Word,
    /// How many buckets; never changes.
    len: u32,
}

impl<P: Payload> Clone for Buckets<P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P: Payload> Copy for Buckets<P> {}

impl<P: Payload> Buckets<P> {
    /// Words for each bucket in the array of tags.
    const TAG_WORDS: usize = if P::MARKED { 2 } else { 1 };

    /// The layout of the tag words of `len` buckets: in no more pages than need be.
    pub(crate) fn tags_layout(len: u32) -> Option<Layout> {
        const PAGE: usize = 4096;
        let tags = Layout::array::<AtomicU32>((len as usize).checked_mul(Self::TAG_WORDS)?).ok()?;
        tags.align_to(tags.size().checked_next_power_of_two()?.min(PAGE)).ok()
    }

    /// The layout of the slots of `len` buckets: those of one bucket share a cache line if they fit it.
    pub(crate) fn slots_layout(len: u32) -> Option<Layout> {
        let words = (len as usize).checked_mul(SLOTS as usize)?.checked_mul(P::WORDS)?;
        Layout::array::<P::Word>(words).ok()?.align_to(64).ok()
    }

    /// Constructs empty buckets.
    ///
    /// # Safety
    ///
    /// `tags` and `slots` point to zeroed memory of the layouts for `len`; it stays allocated as long as the result or
    /// a copy of it is used.
    pub(crate) unsafe fn init(tags: NonNull<u8>, slots: NonNull<u8>, len: u32) -> Self {
        let (tags, slots) = (tags.cast::<AtomicU32>().as_ptr(), slots.cast::<P::Word>().as_ptr());
        // SAFETY: the caller's.
        unsafe {
            init_zeroed(tags, len as usize * Self::TAG_WORDS);
            init_zeroed(slots, len as usize * SLOTS as usize * P::WORDS);
        }
        Buckets { tags, slots, len }
    }

    /// Buckets that exist already.
    ///
    /// # Safety
    ///
    /// `tags` and `slots` are those of [`Buckets::init`] for as many.
    #[inline(always)]
    pub(super) unsafe fn from_raw(tags: *const AtomicU32, slots: *const P::Word, len: u32) -> Self {
        Buckets { tags, slots, len }
    }

    /// Where the tags begin.
    #[inline(always)]
    pub(super) fn first_tag(&self) -> *const AtomicU32 {
        self.tags
    }

    /// How many buckets there are.
    #[inline(always)]
    pub(crate) fn len(&self) -> u32 {
        self.len
    }

    /// The four tags of a bucket [R3].
    #[inline(always)]
    pub(crate) fn tags(&self, bucket: u32) -> u32 {
        // Acquire: pairs with the Release of `fill` (an inline item's words) and of `clear` (a displaced item's
        // target is filled before its source is cleared [I3]). The lock's holder loads here, too, where Relaxed would
        // do: the lock orders all that its earlier holders stored.
        self.tag_word(bucket).load(Ordering::Acquire)
    }

    /// The slots of both buckets whose tags match.
    #[inline(always)]
    pub(crate) fn matches(&self, place: Place) -> Matches {
        let first = self.tags(place.first);
        step();
        Matches::of_pair(first, self.tags(place.second), place.tag)
    }

    #[inline(always)]
    fn tag_word(&self, bucket: u32) -> &AtomicU32 {
        debug_assert!(bucket < self.len);
        // SAFETY: `Place` and `alternate` only yield buckets below the length they are given, which is ours, and
        // the memory lives as long as we are used (`init`).
        unsafe { &*self.tags.add(bucket as usize * Self::TAG_WORDS) }
    }

    /// The four marks of a bucket, and its own halves of their bytes.
    #[inline(always)]
    pub(crate) fn marks(&self, bucket: u32) -> &AtomicU32 {
        assert!(P::MARKED);
        debug_assert!(bucket < self.len);
        // SAFETY: as in `tag_word`; and where slots are marked the word after it is one of marks (`init`).
        unsafe { &*self.tags.add(bucket as usize * Self::TAG_WORDS + 1) }
    }

    /// Sets the mark of a slot [B4]. The lock's holder only: of readers' changes to the bucket's marks, one may be lost.
    #[inline]
    pub(crate) fn set_mark(&self, bucket: u32, lane: u32, mark: u8) {
        let word = self.marks(bucket);
        // Relaxed, both: a mark is advice to evictions. Readers change what they find by compare and exchange, so that none
        // brings back the mark of an item that has left.
        debug_assert!(mark & !MARK == 0);
        let marks = word.load(Ordering::Relaxed) & !(u32::from(MARK) << (8 * lane));
        word.store(marks | u32::from(mark) << (8 * lane), Ordering::Relaxed);
    }

    /// Changes the mark of a slot to what `change` makes of its byte, whose other half, the bucket's, it leaves alone. Any
    /// thread may call this: see `set_mark`.
    #[inline(always)]
    pub(crate) fn change_mark(&self, bucket: u32, lane: u32, change: impl FnOnce(u8) -> u8) {
        let word = self.marks(bucket);
        let marks = word.load(Ordering::Relaxed);
        let old = tag_at(marks, lane);
        let new = change(old);
        if new != old {
            let changed = marks ^ u32::from(old ^ new) << (8 * lane);
            // Relaxed: as in `set_mark`. The same bits in the mark of another item, which has come to the slot meanwhile, only
            // mark that. The change is lost if another mark of the bucket changes at the same moment: it is advice.
            let _ = word.compare_exchange(marks, changed, Ordering::Relaxed, Ordering::Relaxed);
        }
    }

    /// The mark of a slot, which moves with the item. In a map these are split bits [G8], for the lock's holder only.
    #[inline]
    pub(crate) fn mark(&self, bucket: u32, lane: u32) -> u8 {
        if P::MARKED {
            // Relaxed: advice.
            tag_at(self.marks(bucket).load(Ordering::Relaxed), lane) & MARK
        } else {
            // SAFETY: as in `item`.
            unsafe { P::split_bits(self.slot(bucket, lane)) }
        }
    }

    /// Replaces the split bits of an item [G8]. The lock's holder only, which has called `publish_departures` before.
    #[inline]
    pub(super) fn set_split_bits(&self, bucket: u32, lane: u32, split_bits: u8) {
        // SAFETY: as in `item`.
        unsafe { P::set_split_bits(self.slot(bucket, lane), split_bits) };
    }

    /// Where a slot's words are.
    #[inline(always)]
    pub(crate) fn slot(&self, bucket: u32, lane: u32) -> *const P::Word {
        debug_assert!(bucket < self.len && lane < SLOTS);
        self.slots.wrapping_add((bucket as usize * SLOTS as usize + lane as usize) * P::WORDS)
    }

    /// Names one of our slots.
    #[inline(always)]
    pub(super) fn found(&self, bucket: u32, lane: u32) -> Found {
        // SAFETY: within our arrays (`slot` asserts it), which are not null (`init`).
        unsafe { Found::at(self.slot(bucket, lane)) }
    }

    /// Which of our slots this would be.
    #[inline(always)]
    fn index_of(&self, found: Found) -> usize {
        found.slot::<P::Word>().addr().wrapping_sub(self.slots.addr()) / (size_of::<P::Word>() * P::WORDS)
    }

    /// Whether a slot is one of ours.
    #[inline(always)]
    pub(super) fn has(&self, found: Found) -> bool {
        self.index_of(found) < self.len as usize * SLOTS as usize
    }

    /// Bucket and lane of a slot of ours.
    #[inline(always)]
    pub(super) fn position_of(&self, found: Found) -> (u32, u32) {
        debug_assert!(self.has(found));
        let index = self.index_of(found);
        ((index / SLOTS as usize) as u32, index as u32 % SLOTS)
    }

    /// Where the words of a slot of either bucket are, by its lane in [`Buckets::matches`].
    #[inline(always)]
    pub(crate) fn slot_of(&self, place: Place, lane: u32) -> *const P::Word {
        debug_assert!(lane < 2 * SLOTS);
        // Both are computed while the tags are on their way; then only a selection is left.
        let first = self.slot(place.first, 0);
        let second = self.slot(place.second, 0).wrapping_sub(SLOTS as usize * P::WORDS);
        let bucket = if lane < SLOTS { first } else { second };
        bucket.wrapping_add(lane as usize * P::WORDS)
    }

    /// The same by arithmetic: where the slot is only prefetched and not read at once, the compiler turns the selection into an
    /// unpredictable branch. Where it is read at once, the selection costs less.
    #[inline(always)]
    pub(crate) fn computed_slot_of(&self, place: Place, lane: u32) -> *const P::Word {
        debug_assert!(lane < 2 * SLOTS);
        let words = SLOTS as usize * P::WORDS;
        // From slot 0 of the first bucket to where slot 0 would be if the second bucket's lanes began there.
        let distance = (i64::from(place.second) - i64::from(place.first) - 1) as usize;
        let skipped = distance.wrapping_mul(words) & ((lane / SLOTS) as usize).wrapping_neg();
        self.slots.wrapping_add(place.first as usize * words + lane as usize * P::WORDS).wrapping_add(skipped)
    }

    /// What a slot holds; it may be torn, unless the lock is held.
    #[inline(always)]
    pub(crate) fn item(&self, bucket: u32, lane: u32) -> Option<P::Item> {
        // SAFETY: a slot within our arrays (`slot` asserts it), alive as long as we are used.
        unsafe { P::load(self.slot(bucket, lane)) }
    }

    /// Starts loading the tags of a bucket.
    #[inline(always)]
    pub(crate) fn prefetch_tags(&self, bucket: u32) {
        prefetch(self.tags.wrapping_add(bucket as usize * Self::TAG_WORDS));
    }

    /// Starts loading a bucket's first slot.
    #[inline(always)]
    pub(crate) fn prefetch_slot(&self, bucket: u32) {
        prefetch(self.slot(bucket, 0));
    }

    /// Puts an item into an empty slot [W3]. The lock's holder only [I5].
    #[inline]
    pub(crate) fn fill(&self, bucket: u32, lane: u32, tag: u8, item: P::Item, mark: u8) {
        if P::MARKED {
            // First: a reader that finds the item finds its mark or a later one.
            self.set_mark(bucket, lane, mark);
        }
        let split_bits = if P::MARKED { 0 } else { mark };
        let word = self.tag_word(bucket);
        // Relaxed: only the lock's holder stores.
        let tags = word.load(Ordering::Relaxed);
        debug_assert!(tag != 0 && tag_at(tags, lane) == 0, "a slot filled twice [I7]");
        let tags = tags | u32::from(tag) << (8 * lane);
        if P::NULLABLE {
            // Release, though the tag alone shows nothing: the word may also say that another lane was cleared, and a reader
            // that learns that from this store must see that item's target filled [I3] and its version even.
            word.store(tags, Ordering::Release);
            step();
            // SAFETY: as in `item`.
            unsafe { P::store(self.slot(bucket, lane), item, split_bits) };
        } else {
            stripes::publish_departures();
            // SAFETY: as in `item`.
            unsafe { P::store(self.slot(bucket, lane), item, split_bits) };
            step();
            // Release: pairs with the Acquire of `tags`: who sees the tag sees the words.
            word.store(tags, Ordering::Release);
        }
    }

    /// Empties a slot. The lock's holder only [I5]. Unless the payload is nullable, the caller bumps the item's
    /// stripe before anything else is filled.
    #[inline]
    pub(crate) fn clear(&self, bucket: u32, lane: u32) {
        let word = self.tag_word(bucket);
        // Relaxed: only the lock's holder stores.
        let tags = word.load(Ordering::Relaxed);
        debug_assert!(tag_at(tags, lane) != 0, "an empty slot cleared [I7]");
        // SAFETY: as in `item`.
        unsafe { P::clear(self.slot(bucket, lane)) };
        step();
        // Release: pairs with the Acquire of `tags`: a reader that sees a source cleared sees the target filled [I3].
        word.store(tags & !(0xFF << (8 * lane)), Ordering::Release);
    }

    /// The items of a bucket and their marks. The lock's holder only: nothing moves.
    pub(crate) fn items(&self, bucket: u32) -> impl Iterator<Item = (P::Item, u8)> {
        let buckets = *self;
        taken_lanes(self.tags(bucket))
            .filter_map(move |lane| Some((buckets.item(bucket, lane)?, buckets.mark(bucket, lane))))
    }

    /// Appends the items of a bucket. The lock's holder only: nothing moves.
    #[inline]
    pub(super) fn append_items_to(&self, bucket: u32, out: &mut Vec<P::Item>) {
        // SAFETY: as in `item`; a taken slot has an item while the lock is held [I7], and so it is written.
        unsafe {
            self.append(bucket, out, |is_taken, lane, to| {
                P::copy_out_if(is_taken, self.slot(bucket, lane), to);
            });
        }
    }

    /// Appends the slots of these items, in the same order.
    #[inline]
    pub(super) fn append_slots_to(&self, bucket: u32, out: &mut Vec<Found>) {
        // SAFETY: each is written.
        unsafe { self.append(bucket, out, |_, lane, to| _ = to.write(self.found(bucket, lane))) };
    }

    /// Appends what `copy` writes for each lane that is taken. It is called for the other lanes as well, and what it writes for
    /// them is overwritten by the next: a branch for each lane would often be mispredicted.
    ///
    /// # Safety
    ///
    /// If its first argument is true, `copy` initializes its last.
    #[inline(always)]
    unsafe fn append<T>(&self, bucket: u32, out: &mut Vec<T>, copy: impl Fn(bool, u32, &mut MaybeUninit<T>)) {
        let tags = self.tags(bucket);
        if tags == 0 {
            return;
        }
        out.reserve(SLOTS as usize);
        let (len, mut appended) = (out.len(), 0);
        let room = out.as_mut_ptr().wrapping_add(len).cast::<MaybeUninit<T>>();
        for lane in 0..SLOTS {
            let is_taken = tag_at(tags, lane) != 0;
            // SAFETY: there is room for as many as the bucket has lanes.
            copy(is_taken, lane, unsafe { &mut *room.add(appended) });
            appended += usize::from(is_taken);
        }
        // SAFETY: that many have been written: the caller's.
        unsafe { out.set_len(len + appended) };
    }

    /// Starts loading what the items some buckets later point to.
    #[inline]
    pub(super) fn fetch_ahead(&self, bucket: u32) {
        if P::NULLABLE && bucket + PREFETCH_DISTANCE < self.len {
            self.items(bucket + PREFETCH_DISTANCE).for_each(|(item, _)| P::prefetch(item));
        }
    }

    /// Copies the items that `tags` selects from a bucket of other buckets to the same slots of our bucket, which is empty:
    /// like [`Buckets::fill`] with each, except that the caller calls `publish_departures` once before. The holder of both
    /// locks only.
    #[inline]
    pub(super) fn copy_from(&self, other: &Self, bucket: u32, tags: u32) {
        debug_assert_eq!(self.tags(bucket), 0, "a slot filled twice [I7]");
        if P::NULLABLE {
            self.set_tags(bucket, tags);
            step();
        }
        for lane in 0..SLOTS {
            // SAFETY: as in `item`, both.
            unsafe { P::copy_if(tag_at(tags, lane) != 0, other.slot(bucket, lane), self.slot(bucket, lane)) };
        }
        if !P::NULLABLE {
            step();
            self.set_tags(bucket, tags);
        }
    }

    /// Replaces an item by one that takes its place entirely: tag and split bits stay. Nobody else reads or writes.
    #[inline]
    pub(super) fn replace_alone(&self, bucket: u32, lane: u32, item: P::Item) {
        let slot = self.slot(bucket, lane);
        // SAFETY: as in `item`; and what items point to is aligned.
        unsafe { P::store(slot, item, P::split_bits(slot)) };
    }

    /// Empties the slots of a bucket in whose lanes `tags`, which has their tags, is not 0: like [`Buckets::clear`] of each.
    #[inline]
    pub(super) fn clear_these(&self, bucket: u32, tags: u32) {
        if P::NULLABLE {
            for lane in 0..SLOTS {
                // SAFETY: as in `item`.
                unsafe { P::clear_if(tag_at(tags, lane) != 0, self.slot(bucket, lane)) };
            }
        }
        step();
        self.set_tags(bucket, self.tags(bucket) ^ tags);
    }

    /// Replaces the four tags of a bucket. The caller orders this and its changes of the slots as [I7] asks.
    #[inline]
    fn set_tags(&self, bucket: u32, tags: u32) {
        // Release: as in `fill` and `clear`.
        self.tag_word(bucket).store(tags, Ordering::Release);
    }

    /// Empties every slot; like [`Buckets::clear`] for each.
    pub(crate) fn clear_all(&self) {
        for bucket in 0..self.len {
            let tags = self.tags(bucket);
            if tags != 0 {
                self.clear_these(bucket, tags);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Slots that are marked.
    #[derive(Default)]
    struct Marked;

    impl super::super::payload::Keep for Marked {
        const MARKED: bool = true;
    }

    /// Between what a reader has seen of a bucket's marks and its change of one, the lock's holder sets another.
    #[test]
    fn readers_change_no_mark_but_the_one_they_mean() {
        let (mut tags, mut slots) = ([0_u64; 4], [0_u64; 64]);
        let (tags, slots) = (NonNull::from(&mut tags).cast(), NonNull::from(&mut slots).cast());
        // SAFETY: zeroed, enough for three buckets, and used by nobody else.
        let buckets: Buckets<super::super::payload::Pointer<u8, Marked>> =
            unsafe { Buckets::init(tags, slots, 3) };
        buckets.change_mark(1, 0, |mark| mark | 1);
        assert_eq!(buckets.mark(1, 0), 1);
        buckets.change_mark(1, 0, |mark| {
            buckets.set_mark(1, 2, 9);
            mark | 2
        });
        assert_eq!(buckets.mark(1, 2), 9, "brought back the mark of another slot");
        // The same slot, which has another item now, in another queue.
        buckets.change_mark(1, 0, |mark| {
            buckets.set_mark(1, 0, 4);
            mark | 2
        });
        assert_eq!(buckets.mark(1, 0), 4, "brought back the mark of another item");
        assert_eq!([0, 1, 2, 3].map(|lane| buckets.mark(1, lane)), [4, 0, 9, 0]);
        // Bits can be cleared as they can be set.
        buckets.change_mark(1, 2, |mark| mark ^ 0b11);
        assert_eq!([0, 1, 2, 3].map(|lane| buckets.mark(1, lane)), [4, 0, 9 ^ 0b11, 0]);
    }

    /// Two arrays that lie side by side.
    fn positions_of<P: Payload>() {
        let (mut tags, mut slots) = ([0_u64; 16], vec![0_u64; 2 * 3 * 4 * P::WORDS]);
        let slots = [0, 12 * P::WORDS].map(|at| NonNull::from(&mut slots[at]).cast());
        // SAFETY: zeroed, enough for three buckets, and used by nobody else; nobody asks for tags.
        let [ours, others] =
            slots.map(|slots| unsafe { Buckets::<P>::init(NonNull::from(&mut tags).cast(), slots, 3) });
        for (bucket, lane) in (0..3).flat_map(|bucket| (0..4).map(move |lane| (bucket, lane))) {
            assert_eq!(ours.position_of(ours.found(bucket, lane)), (bucket, lane));
            assert_eq!(others.position_of(others.found(bucket, lane)), (bucket, lane));
            assert!(!ours.has(others.found(bucket, lane)) && !others.has(ours.found(bucket, lane)));
        }
    }

    #[test]
    fn where_a_slot_is_follows_from_its_address() {
        use super::super::payload::{Inline, Pointer};
        positions_of::<Pointer<u8, ()>>();
        positions_of::<Inline<u64, u64>>();
        positions_of::<Inline<u64, [u64; 4]>>();
        positions_of::<Inline<u64, [u64; 6]>>();
        positions_of::<Inline<(), ()>>();
    }
}
