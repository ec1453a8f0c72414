//! What fits neither of its buckets: a list of blocks of slots, scanned from end to end.
//!
//! Nine keys with one hash have room for eight at most; growing would not help them, and a bad hash function must not break
//! a map. Slots are filled and cleared like those of any bucket; as a block belongs to no pair, all of them share
//! the overflow's own stripe. Blocks are appended and never removed while the segment lives, so readers need
//! nothing but the pointer. An item stays in the overflow until it is removed or its segment is replaced: none ever
//! moves between bucket and overflow, so a reader may look at one after the other. Whether anything is in here is told by a
//! mark in the segment: without it readers do not come here.

use core::alloc::Layout;
use core::ptr::NonNull;

use super::buckets::Buckets;
use super::memory::{Block, Meter};
use super::payload::Payload;
use super::tags::{Matches, SLOTS, free_lane, tag_at};
use crate::sync::{AtomicPtr, AtomicU64, Ordering};

/// Buckets in the first block; each further one has twice as many.
const FIRST_BLOCK: u32 = 4;
/// Slots in it.
pub(super) const FIRST_SLOTS: usize = FIRST_BLOCK as usize * SLOTS as usize;
/// Buckets in the largest block.
const LARGEST_BLOCK: u32 = 1 << 12;

/// One block of slots.
struct Node<P: Payload> {
    buckets: Buckets<P>,
    next: AtomicPtr<Node<P>>,
    block: Block,
}

/// The list; empty in all but unlucky segments.
pub(crate) struct Overflow<P: Payload> {
    first: AtomicPtr<Node<P>>,
    stripe: AtomicU64,
}

impl<P: Payload> Overflow<P> {
    /// No blocks.
    pub(crate) fn new() -> Self {
        Overflow { first: AtomicPtr::new(core::ptr::null_mut()), stripe: AtomicU64::new(0) }
    }

    /// The stripe of every slot in here.
    pub(crate) fn stripe(&self) -> &AtomicU64 {
        &self.stripe
    }

    /// Whether some slot has this tag.
    #[cold]
    pub(crate) fn may_contain(&self, tag: u8) -> bool {
        self.matching(tag).next().is_some()
    }

    /// Block, bucket and lane of every slot that has this tag, in order; a bucket's tags are loaded when the walk comes
    /// to it [R3].
    pub(crate) fn matching(&self, tag: u8) -> impl Iterator<Item = (Buckets<P>, u32, u32)> {
        let buckets = self.blocks().flat_map(|block| (0..block.len()).map(move |bucket| (block, bucket)));
        buckets.flat_map(move |(block, bucket)| {
            let mut matches = Matches::of_one(block.tags(bucket), tag);
            core::iter::from_fn(move || Some((block, bucket, matches.next_lane()?)))
        })
    }

    /// The blocks, first to last.
    pub(crate) fn blocks(&self) -> impl Iterator<Item = Buckets<P>> {
        let mut next = &self.first;
        core::iter::from_fn(move || {
            // Acquire: pairs with the Release in `put`: the block is seen constructed.
            let node = next.load(Ordering::Acquire);
            // SAFETY: null, or a block that lives as long as the segment.
            let node = unsafe { node.as_ref() }?;
            next = &node.next;
            Some(node.buckets)
        })
    }

    /// How many slots the blocks have.
    pub(super) fn slots(&self) -> usize {
        self.blocks().map(|block| block.len() as usize * SLOTS as usize).sum()
    }

    /// Puts an item into an empty slot, in the order of [I7], or in a new block; `taken` are how many have one. False if there
    /// is no memory for a block [W6]. The lock's holder only [I5].
    ///
    /// The pair's stripe is left as it is. It would tell readers that an item has moved between the buckets they read;
    /// this one's key was in none of them [I1], and no item comes here from a bucket. So a reader that was there before
    /// this and here before the tag, or the block's link, has missed it in time.
    pub(crate) fn put(&self, taken: usize, tag: u8, item: P::Item, mark: u8, meter: &Meter) -> bool {
        if let Some((buckets, bucket, lane)) = self.empty_slot(taken) {
            buckets.fill(bucket, lane, tag, item, mark);
            return true;
        }
        let last_len = self.blocks().last().map_or(FIRST_BLOCK / 2, |block| block.len());
        let Some(node) = Node::allocate((last_len * 2).min(LARGEST_BLOCK), meter) else { return false };
        // SAFETY: just constructed.
        let buckets = unsafe { node.as_ref() }.buckets;
        buckets.fill(0, 0, tag, item, mark);
        let mut link = &self.first;
        // Relaxed: only the lock's holder stores.
        // SAFETY: null, or a block that lives as long as the segment.
        while let Some(node) = unsafe { link.load(Ordering::Relaxed).as_ref() } {
            link = &node.next;
        }
        // Release: pairs with the Acquire load of `blocks`: the block is seen constructed, with the item in it.
        link.store(node.as_ptr(), Ordering::Release);
        true
    }

    /// An empty slot, where so many are taken: the one behind as many, which are all as long as none has left, or else the
    /// first. `None`: all are taken.
    ///
    /// Searched from the first on, each would cost as much as there are, and a copy of all their square.
    fn empty_slot(&self, taken: usize) -> Option<(Buckets<P>, u32, u32)> {
        let (mut ahead, slots) = (taken, |block: &Buckets<P>| block.len() as usize * SLOTS as usize);
        let behind = self.blocks().find(|block| {
            let is_here = ahead < slots(block);
            if !is_here {
                ahead -= slots(block);
            }
            is_here
        })?;
        let (bucket, lane) = ((ahead / SLOTS as usize) as u32, ahead as u32 % SLOTS);
        if tag_at(behind.tags(bucket), lane) == 0 {
            return Some((behind, bucket, lane));
        }
        let mut buckets = self.blocks().flat_map(|block| (0..block.len()).map(move |bucket| (block, bucket)));
        buckets.find_map(|(block, bucket)| Some((block, bucket, free_lane(block.tags(bucket))?)))
    }

    /// Frees the blocks.
    ///
    /// # Safety
    ///
    /// Nobody uses the segment any more.
    pub(crate) unsafe fn free(&self, meter: &Meter) {
        // Relaxed, here and below: nobody else uses the segment.
        let mut next = self.first.load(Ordering::Relaxed);
        while let Some(node) = NonNull::new(next) {
            // SAFETY: from `allocate`; moved out before its memory is given back, and never looked at again.
            unsafe {
                let node = node.as_ptr().read();
                next = node.next.load(Ordering::Relaxed);
                node.block.free(meter);
            }
        }
    }
}

impl<P: Payload> Node<P> {
    /// An empty block of `len` buckets.
    fn allocate(len: u32, meter: &Meter) -> Option<NonNull<Self>> {
        let (layout, tags_at) = Layout::new::<Self>().extend(Buckets::<P>::tags_layout(len)?).ok()?;
        let (layout, slots_at) = layout.extend(Buckets::<P>::slots_layout(len)?).ok()?;
        let block = Block::allocate(layout.pad_to_align(), meter)?;
        let (this, base) = (block.base().cast::<Self>(), block.base());
        // SAFETY: zeroed memory of this layout, ours alone, freed by `Overflow::free`.
        unsafe {
            let buckets = Buckets::init(base.add(tags_at), base.add(slots_at), len);
            this.write(Node { buckets, next: AtomicPtr::new(core::ptr::null_mut()), block });
        }
        Some(this)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::payload::Inline;
    use super::*;

    #[test]
    fn each_block_has_twice_the_buckets_of_the_one_before() {
        let (meter, overflow) = (Meter::new(), Overflow::<Inline<u64, u64>>::new());
        for key in 0..4 * (4 + 8 + 16) + 1 {
            assert!(overflow.put(key as usize, 1 + (key % 7) as u8, (key, key), 0, &meter));
        }
        assert_eq!(overflow.blocks().map(|block| block.len()).collect::<Vec<_>>(), [4, 8, 16, 32]);
        assert_eq!(overflow.slots(), 240);
        let of_tag: Vec<_> = overflow.matching(3).collect();
        assert_eq!(of_tag.len(), 16);
        let keys = of_tag.iter().map(|(block, bucket, lane)| block.item(*bucket, *lane).expect("an item").0);
        assert!(keys.eq((0..113).filter(|key| key % 7 == 2)), "in the order in which they came");
        // SAFETY: nobody uses it.
        unsafe { overflow.free(&meter) };
        assert_eq!(meter.bytes(), 0);
    }

    #[test]
    fn a_slot_is_searched_only_where_others_have_left_and_the_one_behind_as_many_is_taken() {
        let (meter, overflow) = (Meter::new(), Overflow::<Inline<u64, u64>>::new());
        let put = |key: u64, taken| assert!(overflow.put(taken, 1, (key, key), 0, &meter));
        let clear = |slot: u32| overflow.blocks().next().expect("a block").clear(slot / SLOTS, slot % SLOTS);
        let keys = || {
            let items = overflow.matching(1).map(|(block, bucket, lane)| block.item(bucket, lane));
            items.map(|item| item.expect("an item").0).collect::<Vec<_>>()
        };
        (0..5).for_each(|key| put(key, key as usize));
        [0, 3].into_iter().for_each(clear);
        // 1, 2, 4 are left: the slot behind as many is the one that 3 had.
        put(10, 3);
        assert_eq!(keys(), [1, 2, 10, 4]);
        put(11, 4);
        assert_eq!(keys(), [11, 1, 2, 10, 4], "that one is taken");
        (5..16).for_each(|key| put(key, key as usize));
        assert_eq!(overflow.slots(), 16);
        put(16, 16);
        assert_eq!((overflow.slots(), keys().last()), (48, Some(&16)), "no slot is empty");
        // SAFETY: nobody uses it.
        unsafe { overflow.free(&meter) };
        assert_eq!(meter.bytes(), 0);
    }
}
