//! Buckets: tag words in one array, slots in another, and the matching of eight tags at once.
//!
//! Anyone may read; only the holder of the segment's lock fills and clears [I5]. This file keeps [I7]: while a
//! slot's tag is 0 the slot is empty. Which of the two is written first depends on which one readers trust:
//!
//! * a nullable slot (a pointer) is the truth and the tag a hint: tag, then slot on the way in; slot, then tag on
//!   the way out. A stale tag leads a reader to a null slot or to a live entry, never to one not yet inserted.
//! * otherwise the tag is the truth: words, then tag on the way in; the tag alone on the way out.

use core::alloc::Layout;

use super::payload::Payload;
use super::prefetch::prefetch;
use super::stripes;
use crate::sync::{AtomicU32, Ordering, init_zeroed, step};

/// Slots in a bucket. Four: 95% load; two: 84%; eight cost a second word of tags to compare (MemC3, table 1).
pub(crate) const SLOTS: u32 = 4;

/// The slots of one or two buckets whose tag matches: one bit, at the top of its byte, for each.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Matches(u64);

impl Matches {
    /// Nothing matches.
    pub(crate) const NONE: Self = Matches(0);

    /// Compares eight tags, four of each word, with `tag`: exactly, with no false match above a true one.
    #[inline(always)]
    pub(crate) fn of_pair(first: u32, second: u32, tag: u8) -> Self {
        const LOW: u64 = 0x7F7F_7F7F_7F7F_7F7F;
        let both = u64::from(first) | u64::from(second) << 32;
        let differ = both ^ (0x0101_0101_0101_0101 * u64::from(tag));
        // A byte's top bit becomes 1 unless the whole byte is 0; no carry leaves a byte.
        Matches(!(((differ & LOW) + LOW) | differ | LOW))
    }

    /// The matches of one bucket.
    #[inline(always)]
    pub(crate) fn of_one(word: u32, tag: u8) -> Self {
        Matches(Self::of_pair(word, 0, tag).0 & 0xFFFF_FFFF)
    }

    /// Takes the next match: a lane, 0..4 in the first word and 4..8 in the second.
    #[inline(always)]
    pub(crate) fn next_lane(&mut self) -> Option<u32> {
        if self.0 == 0 {
            return None;
        }
        let lane = self.0.trailing_zeros() / 8;
        self.0 &= self.0 - 1;
        Some(lane)
    }

    /// Whether nothing matched.
    #[inline(always)]
    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// The tag at `lane` of a tag word.
#[inline(always)]
pub(crate) fn tag_at(word: u32, lane: u32) -> u8 {
    (word >> (8 * lane)) as u8
}

/// The first empty lane of a tag word.
#[inline(always)]
pub(crate) fn free_lane(word: u32) -> Option<u32> {
    Matches::of_one(word, 0).next_lane()
}

/// Arrays of tag words and slots that somebody else allocated: a segment, or a block of overflow.
pub(crate) struct Buckets<P: Payload> {
    /// A word of four tags for each bucket.
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
    /// Appends the arrays to an allocation's layout; their offsets go to [`Buckets::init`].
    pub(crate) fn layout(head: Layout, len: u32) -> Option<(Layout, [usize; 2])> {
        let tags = Layout::array::<AtomicU32>(len as usize).ok()?.align_to(64).ok()?;
        let words = (len as usize).checked_mul(SLOTS as usize)?.checked_mul(P::WORDS)?;
        let slots = Layout::array::<P::Word>(words).ok()?.align_to(64).ok()?;
        let (layout, tags_at) = head.extend(tags).ok()?;
        let (layout, slots_at) = layout.extend(slots).ok()?;
        Some((layout, [tags_at, slots_at]))
    }

    /// Constructs empty buckets.
    ///
    /// # Safety
    ///
    /// `base` points to zeroed memory of the layout that [`Buckets::layout`] gave together with the offsets for
    /// `len`; it stays allocated as long as the result or a copy of it is used.
    pub(crate) unsafe fn init(base: *mut u8, [tags_at, slots_at]: [usize; 2], len: u32) -> Self {
        // SAFETY: offsets within the allocation, aligned by `layout`, and as many words as it has room for.
        unsafe {
            let tags = base.add(tags_at).cast::<AtomicU32>();
            let slots = base.add(slots_at).cast::<P::Word>();
            init_zeroed(tags, len as usize);
            init_zeroed(slots, len as usize * SLOTS as usize * P::WORDS);
            Buckets { tags, slots, len }
        }
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
        // target is filled before its source is cleared [I3]).
        self.tag_word(bucket).load(Ordering::Acquire)
    }

    #[inline(always)]
    fn tag_word(&self, bucket: u32) -> &AtomicU32 {
        debug_assert!(bucket < self.len);
        // SAFETY: `Place` and `alternate` only yield buckets below the length they are given, which is ours, and
        // the memory lives as long as we are used (`init`).
        unsafe { &*self.tags.add(bucket as usize) }
    }

    /// Where a slot's words are.
    #[inline(always)]
    pub(crate) fn slot(&self, bucket: u32, lane: u32) -> *const P::Word {
        debug_assert!(bucket < self.len && lane < SLOTS);
        self.slots.wrapping_add((bucket as usize * SLOTS as usize + lane as usize) * P::WORDS)
    }

    /// What a slot holds: maybe torn, unless the lock is held.
    #[inline(always)]
    pub(crate) fn item(&self, bucket: u32, lane: u32) -> Option<P::Item> {
        // SAFETY: a slot within our arrays (`slot` asserts it), alive as long as we are used.
        unsafe { P::load(self.slot(bucket, lane)) }
    }

    /// Starts loading the tags of a bucket.
    #[inline(always)]
    pub(crate) fn prefetch_tags(&self, bucket: u32) {
        prefetch(self.tags.wrapping_add(bucket as usize));
    }

    /// Starts loading a slot.
    #[inline(always)]
    pub(crate) fn prefetch_slot(&self, bucket: u32, lane: u32) {
        prefetch(self.slot(bucket, lane));
    }

    /// Puts an item into an empty slot [W3]. The lock's holder only [I5].
    #[inline]
    pub(crate) fn fill(&self, bucket: u32, lane: u32, tag: u8, item: P::Item) {
        let word = self.tag_word(bucket);
        // Relaxed: only the lock's holder stores.
        let tags = word.load(Ordering::Relaxed);
        debug_assert!(tag != 0 && tag_at(tags, lane) == 0, "a slot filled twice [I7]");
        let tags = tags | u32::from(tag) << (8 * lane);
        if P::NULLABLE {
            // Release, though the tag alone shows nothing: the word may also say that another lane was cleared,
            // and who learns that from this store must see that item's target filled [I3] and its version even.
            word.store(tags, Ordering::Release);
            step();
            // SAFETY: as in `item`.
            unsafe { P::store(self.slot(bucket, lane), item) };
        } else {
            stripes::publish_departures();
            // SAFETY: as in `item`.
            unsafe { P::store(self.slot(bucket, lane), item) };
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
        // Release: pairs with the Acquire of `tags`: who sees a source cleared sees the target filled [I3].
        word.store(tags & !(0xFF << (8 * lane)), Ordering::Release);
    }

    /// Calls `f` with bucket, lane and item of every occupied slot. The lock's holder only: nothing moves.
    pub(crate) fn for_each(&self, mut f: impl FnMut(u32, u32, P::Item)) {
        for bucket in 0..self.len {
            let tags = self.tags(bucket);
            for lane in 0..SLOTS {
                if tag_at(tags, lane) != 0 {
                    if let Some(item) = self.item(bucket, lane) {
                        f(bucket, lane, item);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matching_is_exact_for_every_tag_beside_every_other() {
        for tag in 0..=255_u8 {
            for other in 0..=255_u8 {
                let first = u32::from_le_bytes([other, tag, other, tag]);
                let second = u32::from_le_bytes([tag, other, other, tag]);
                let mut matches = Matches::of_pair(first, second, tag);
                let mut lanes = Vec::new();
                while let Some(lane) = matches.next_lane() {
                    lanes.push(lane);
                }
                let expected: &[u32] = if tag == other { &[0, 1, 2, 3, 4, 5, 6, 7] } else { &[1, 3, 4, 7] };
                assert_eq!(lanes, expected, "tag {tag} beside {other}");
            }
        }
    }

    #[test]
    fn free_lane_is_the_first_zero() {
        assert_eq!(free_lane(0), Some(0));
        assert_eq!(free_lane(0x0000_0001), Some(1));
        assert_eq!(free_lane(0x0101_0001), Some(1));
        assert_eq!(free_lane(0x0001_0101), Some(3));
        assert_eq!(free_lane(0x0101_0101), None);
        assert_eq!(free_lane(0x8080_8080), None);
    }
}
