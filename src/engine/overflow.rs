//! The overflow, for items that fit neither of their buckets: lists of blocks of slots, each scanned from end to end.
//!
//! Nine keys with one hash have room for eight at most; growing would not help them, and a bad hash function must not break a
//! map. An item's bucket and tag determine its list, so that keys of one hash are in the way of few others. Slots are filled
//! and cleared like those of any bucket; as a block belongs to no pair, all of them share the overflow's own stripe. The lists
//! are made for the first item, blocks are appended, and neither is removed while the segment lives, so readers need nothing
//! but the pointer. An item stays in the overflow until it is removed or its segment is replaced: none ever moves between
//! bucket and overflow, so a reader may look at one after the other. A mark in the segment says whether anything is in the
//! overflow: without it readers do not look here.

use core::alloc::Layout;
use core::ptr::NonNull;

use super::buckets::Buckets;
use super::found::Found;
use super::memory::{Block, Meter};
use super::payload::Payload;
use super::tags::{Matches, SLOTS, free_lane, tag_at};
use crate::hash::{Place, scale};
use crate::sync::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

/// Buckets of the segment per list, whose head is 16 bytes: half a byte for each of their slots. Four buckets per list were a
/// tenth faster, and took twice that memory.
const BUCKETS_A_LIST: u32 = 8;
/// The number of lists in the largest segments: a mebibyte of heads, which the first item in the overflow waits for.
const MOST_LISTS: u32 = 1 << 16;
/// Buckets in a list's largest block. The first block has one, each further block twice as many as the one before.
const LARGEST_BLOCK: u32 = 1 << 12;

/// Where an item is filed in the overflow: its first bucket and its tag, which together select the list. One word, so that
/// functions that are called often pass it in a register to functions that are called seldom. In a segment of more than 2^24
/// buckets the bucket's top bits are lost: such items share a list, and `Eq` tells them apart.
#[derive(Clone, Copy)]
pub(crate) struct Heading(u32);

impl Heading {
    #[inline(always)]
    pub(crate) fn of(place: Place) -> Self {
        Heading(place.first << 8 | u32::from(place.tag))
    }

    fn tag(self) -> u8 {
        self.0 as u8
    }

    /// The list of this heading. Multiplied as in Fibonacci hashing, so that keys chosen to be alike in bucket or in tag are
    /// spread by the other of the two.
    fn list(self, lists: usize) -> usize {
        scale(self.0.wrapping_mul(0x9E37_79B1), lists as u32) as usize
    }
}

/// One block of slots.
struct Node<P: Payload> {
    buckets: Buckets<P>,
    next: AtomicPtr<Node<P>>,
    block: Block,
}

/// The blocks of one list.
struct List<P: Payload> {
    first: AtomicPtr<Node<P>>,
    /// Items in the blocks. Only the lock's holder loads and stores it.
    taken: AtomicU32,
}

/// The header of all lists, which follow it in memory.
struct Lists<P: Payload> {
    lists: *const List<P>,
    len: u32,
    block: Block,
}

/// Items that no bucket has room for; empty in all but unlucky segments.
pub(crate) struct Overflow<P: Payload> {
    lists: AtomicPtr<Lists<P>>,
    stripe: AtomicU64,
}

impl<P: Payload> Overflow<P> {
    /// No lists.
    pub(crate) fn new() -> Self {
        Overflow { lists: AtomicPtr::new(core::ptr::null_mut()), stripe: AtomicU64::new(0) }
    }

    /// The stripe of every slot in here.
    pub(crate) fn stripe(&self) -> &AtomicU64 {
        &self.stripe
    }

    /// All lists, if there are any.
    fn lists(&self) -> &[List<P>] {
        // Acquire: pairs with the Release in `make_lists`: the lists are seen constructed.
        let lists = self.lists.load(Ordering::Acquire);
        // SAFETY: null, or the lists, `len` of them, which live as long as the segment.
        unsafe {
            lists.as_ref().map_or(&[], |lists| core::slice::from_raw_parts(lists.lists, lists.len as usize))
        }
    }

    /// The list under a heading, if there are any.
    fn list(&self, of: Heading) -> Option<&List<P>> {
        let lists = self.lists();
        lists.get(of.list(lists.len()))
    }

    /// Whether any slot under the heading has its tag.
    #[cold]
    pub(crate) fn may_contain(&self, of: Heading) -> bool {
        self.matching(of).next().is_some()
    }

    /// Block, bucket and lane of every slot under the heading that has its tag, in order; a bucket's tags are loaded when the
    /// walk comes to it [R3].
    pub(crate) fn matching(&self, of: Heading) -> impl Iterator<Item = (Buckets<P>, u32, u32)> {
        self.list(of).into_iter().flat_map(List::buckets).flat_map(move |(block, bucket)| {
            let mut matches = Matches::of_one(block.tags(bucket), of.tag());
            core::iter::from_fn(move || Some((block, bucket, matches.next_lane()?)))
        })
    }

    /// The blocks of all lists.
    pub(crate) fn blocks(&self) -> impl Iterator<Item = Buckets<P>> {
        self.lists().iter().flat_map(List::blocks)
    }

    /// Whether there are no lists: no item has been put here yet, or there was no memory for them.
    pub(super) fn has_no_lists(&self) -> bool {
        self.lists().is_empty()
    }

    /// How many slots the blocks have.
    pub(super) fn slots(&self) -> usize {
        self.blocks().map(slots_of).sum()
    }

    /// Puts an item into an empty slot, in the order of [I7], or into a new block; the segment has so many `buckets`. Returns
    /// false if there is no memory for a block, or for the lists [W6]. The lock's holder only [I5].
    ///
    /// The pair's stripe is left as it is. A change would tell readers that an item has moved between the buckets they read;
    /// this item's key was in neither of them [I1], and no item comes here from a bucket. So a reader that read the buckets
    /// before this, and the overflow before the tag, or the block's link, was stored, has rightly missed the key.
    pub(crate) fn put(&self, buckets: u32, of: Heading, item: P::Item, mark: u8, meter: &Meter) -> bool {
        if self.has_no_lists() && !self.make_lists(buckets, meter) {
            return false;
        }
        self.list(of).is_some_and(|list| list.put(of.tag(), item, mark, meter))
    }

    /// Makes the lists of a segment of so many buckets. Returns false if there is no memory for them.
    fn make_lists(&self, buckets: u32, meter: &Meter) -> bool {
        let Some(lists) = Lists::allocate((buckets / BUCKETS_A_LIST).clamp(1, MOST_LISTS), meter) else {
            return false;
        };
        // Release: pairs with the Acquire load of `lists`: they are seen constructed.
        self.lists.store(lists.as_ptr(), Ordering::Release);
        true
    }

    /// Empties a slot under a heading. The lock's holder only [I5].
    pub(super) fn remove(&self, of: Heading, found: Found) {
        let list = self.list(of).expect("there is a slot of it");
        let block = list.blocks().find(|block| block.has(found)).expect("a slot of the list");
        let (bucket, lane) = block.position_of(found);
        block.clear(bucket, lane);
        list.set_taken(list.taken() - 1);
    }

    /// Empties all slots. The lock's holder only [I5].
    pub(super) fn clear(&self) {
        for list in self.lists() {
            list.blocks().for_each(|block| block.clear_all());
            list.set_taken(0);
        }
    }

    /// Frees the blocks and the lists.
    ///
    /// # Safety
    ///
    /// Nobody uses the segment any more.
    pub(crate) unsafe fn free(&self, meter: &Meter) {
        // SAFETY: the caller's.
        self.lists().iter().for_each(|list| unsafe { list.free(meter) });
        // Relaxed: nobody else uses the segment.
        if let Some(lists) = NonNull::new(self.lists.load(Ordering::Relaxed)) {
            // SAFETY: from `allocate`; moved out before its memory is given back, and never looked at again.
            unsafe { lists.read().block.free(meter) };
        }
    }
}

/// How many slots a block has.
fn slots_of<P: Payload>(block: Buckets<P>) -> usize {
    block.len() as usize * SLOTS as usize
}

impl<P: Payload> Lists<P> {
    /// So many empty lists.
    fn allocate(len: u32, meter: &Meter) -> Option<NonNull<Self>> {
        let (layout, lists_at) =
            Layout::new::<Self>().extend(Layout::array::<List<P>>(len as usize).ok()?).ok()?;
        let block = Block::allocate(layout.pad_to_align(), meter)?;
        let this = block.base().cast::<Self>();
        // SAFETY: zeroed memory of this layout, ours alone, freed by `Overflow::free`.
        unsafe {
            let lists = block.base().add(lists_at).cast::<List<P>>();
            (0..len as usize).for_each(|index| lists.add(index).write(List::new()));
            this.write(Lists { lists: lists.as_ptr(), len, block });
        }
        Some(this)
    }
}

impl<P: Payload> List<P> {
    /// No blocks.
    fn new() -> Self {
        List { first: AtomicPtr::new(core::ptr::null_mut()), taken: AtomicU32::new(0) }
    }

    /// The blocks, first to last.
    fn blocks(&self) -> impl Iterator<Item = Buckets<P>> {
        let mut next = &self.first;
        core::iter::from_fn(move || {
            // Acquire: pairs with the Release in `put_in_new_block`: the block is seen constructed, with its first item.
            let node = next.load(Ordering::Acquire);
            // SAFETY: null, or a block that lives as long as the segment.
            let node = unsafe { node.as_ref() }?;
            next = &node.next;
            Some(node.buckets)
        })
    }

    /// Their buckets, each with its block.
    fn buckets(&self) -> impl Iterator<Item = (Buckets<P>, u32)> {
        self.blocks().flat_map(|block| (0..block.len()).map(move |bucket| (block, bucket)))
    }

    /// How many items there are. The lock's holder only.
    fn taken(&self) -> u32 {
        // Relaxed, here and below: the lock orders it.
        self.taken.load(Ordering::Relaxed)
    }

    fn set_taken(&self, taken: u32) {
        self.taken.store(taken, Ordering::Relaxed);
    }

    /// As [`Overflow::put`].
    fn put(&self, tag: u8, item: P::Item, mark: u8, meter: &Meter) -> bool {
        if let Some((buckets, bucket, lane)) = self.empty_slot() {
            buckets.fill(bucket, lane, tag, item, mark);
        } else if !self.put_in_new_block(tag, item, mark, meter) {
            return false;
        }
        self.set_taken(self.taken() + 1);
        true
    }

    fn put_in_new_block(&self, tag: u8, item: P::Item, mark: u8, meter: &Meter) -> bool {
        let (mut link, mut len) = (&self.first, 1);
        // Relaxed: only the lock's holder stores.
        // SAFETY: null, or a block that lives as long as the segment.
        while let Some(node) = unsafe { link.load(Ordering::Relaxed).as_ref() } {
            (link, len) = (&node.next, LARGEST_BLOCK.min(node.buckets.len() * 2));
        }
        let Some(node) = Node::allocate(len, meter) else { return false };
        // SAFETY: just constructed.
        let buckets = unsafe { node.as_ref() }.buckets;
        buckets.fill(0, 0, tag, item, mark);
        // Release: pairs with the Acquire load of `blocks`: the block is seen constructed, with the item in it.
        link.store(node.as_ptr(), Ordering::Release);
        true
    }

    /// An empty slot; `None` if all are taken. Until an item leaves, the taken slots are the first ones, so the slot after them
    /// is looked at first; only if that is taken as well is the list searched from its beginning. Otherwise n items of one hash
    /// would cost n^2 looks, and so would each copy of them.
    fn empty_slot(&self) -> Option<(Buckets<P>, u32, u32)> {
        let mut ahead = self.taken() as usize;
        let behind = self.blocks().find(|block| {
            let is_here = ahead < slots_of(*block);
            if !is_here {
                ahead -= slots_of(*block);
            }
            is_here
        })?;
        let (bucket, lane) = ((ahead / SLOTS as usize) as u32, ahead as u32 % SLOTS);
        if tag_at(behind.tags(bucket), lane) == 0 {
            return Some((behind, bucket, lane));
        }
        self.buckets().find_map(|(block, bucket)| Some((block, bucket, free_lane(block.tags(bucket))?)))
    }

    /// Frees the blocks.
    ///
    /// # Safety
    ///
    /// Nobody uses the segment any more.
    unsafe fn free(&self, meter: &Meter) {
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
        // SAFETY: zeroed memory of this layout, ours alone, freed by `List::free`.
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
    use crate::hash::Digest;

    /// The overflow of a segment of so many buckets, with items of which only the tag counts: all are in one list.
    struct Alone {
        overflow: Overflow<Inline<u64, u64>>,
        buckets: u32,
        meter: Meter,
    }

    impl Alone {
        fn of(buckets: u32) -> Self {
            Alone { overflow: Overflow::new(), buckets, meter: Meter::new() }
        }

        fn put(&self, of: Heading, key: u64) {
            assert!(self.overflow.put(self.buckets, of, (key, key), 0, &self.meter));
        }

        /// The keys under a heading, in the order in which they are found.
        fn keys(&self, of: Heading) -> Vec<u64> {
            let items = self.overflow.matching(of).map(|(block, bucket, lane)| block.item(bucket, lane));
            items.map(|item| item.expect("an item").0).collect()
        }

        fn remove(&self, of: Heading, key: u64) {
            let mut slots = self.overflow.matching(of).map(|(block, bucket, lane)| block.found(bucket, lane));
            let of_key = self.keys(of).iter().position(|other| *other == key).expect("it is there");
            self.overflow.remove(of, slots.nth(of_key).expect("its slot"));
        }
    }

    impl Drop for Alone {
        fn drop(&mut self) {
            // SAFETY: nobody uses it.
            unsafe { self.overflow.free(&self.meter) };
            assert_eq!(self.meter.bytes(), 0);
        }
    }

    fn of_tag(tag: u8) -> Heading {
        Heading::of(Place { first: 0, second: 0, tag })
    }

    #[test]
    fn each_block_of_a_list_has_twice_the_buckets_of_the_one_before() {
        let alone = Alone::of(4);
        assert!(alone.overflow.has_no_lists());
        (0..4 * (1 + 2 + 4) + 1).for_each(|key| alone.put(of_tag(1 + (key % 7) as u8), key));
        assert!(!alone.overflow.has_no_lists());
        assert_eq!(alone.overflow.blocks().map(|block| block.len()).collect::<Vec<_>>(), [1, 2, 4, 8]);
        assert_eq!(alone.overflow.slots(), 60);
        assert_eq!(alone.keys(of_tag(3)), [2, 9, 16, 23], "in the order in which they came");
    }

    #[test]
    fn a_slot_is_searched_only_where_others_have_left_and_the_one_behind_as_many_is_taken() {
        let (alone, place) = (Alone::of(1), of_tag(1));
        (0..5).for_each(|key| alone.put(place, key));
        [0, 3].into_iter().for_each(|key| alone.remove(place, key));
        // 1, 2, 4 are left: the slot after three items is the one that 3 had.
        alone.put(place, 10);
        assert_eq!(alone.keys(place), [1, 2, 10, 4]);
        alone.put(place, 11);
        assert_eq!(alone.keys(place), [11, 1, 2, 10, 4], "that one is taken");
        (5..12).for_each(|key| alone.put(place, key));
        assert_eq!(alone.overflow.slots(), 12);
        alone.put(place, 12);
        assert_eq!((alone.overflow.slots(), alone.keys(place).last()), (28, Some(&12)), "no slot is empty");
        alone.overflow.clear();
        assert!(alone.keys(place).is_empty());
        alone.put(place, 13);
        assert_eq!((alone.overflow.slots(), alone.keys(place)), (28, vec![13]));
    }

    /// This includes keys that are alike in one part of their hashes.
    #[test]
    fn lists_share_out_keys_that_differ_in_their_buckets_or_in_their_tags() {
        let alone = Alone::of(1024);
        let longest = |places: &dyn Fn(u64) -> Place| {
            alone.overflow.clear();
            let heading = |key| Heading::of(places(key));
            (0..2550).for_each(|key| alone.put(heading(key), key));
            assert!((0..2550).all(|key| alone.keys(heading(key)).contains(&key)));
            let lists = alone.overflow.lists();
            assert_eq!(lists.iter().map(|list| list.taken() as usize).sum::<usize>(), 2550);
            (lists.len(), lists.iter().map(List::taken).max().expect("a list"))
        };
        let digest = |key: u64| Digest::new(key.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let (lists, longest_of_any) = longest(&|key| Place::new(digest(key), 1024));
        assert!(lists == 128 && longest_of_any < 60, "{longest_of_any} in one of {lists}");
        let of_one_tag = longest(&|key| Place { tag: 9, ..Place::new(digest(key), 1024) }).1;
        let of_one_bucket = longest(&|key| Place { first: 9, ..Place::new(digest(key), 1024) }).1;
        assert!(of_one_tag < 90 && of_one_bucket < 90, "{of_one_tag}, {of_one_bucket}");
    }
}
