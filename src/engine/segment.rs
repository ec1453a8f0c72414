//! A segment: one fixed-capacity MemC3 table in one allocation, and how to read it.
//!
//! Anybody may read, at any time, without a lock, without a store and without waiting ([R1]..[R4]). Writes are in
//! `locked`, where holding the lock is a type.
//!
//! ```text
//! | tags*  slots*  stripes*  overflow*  buckets  mask  Write... | stripes | undo | tags   | slots            |
//!   header: read-mostly, then, on lines of its own, the lock      8 each           4 per    4 * WORDS words
//!   and what it guards                                                             bucket   per bucket
//! ```

use core::alloc::Layout;
use core::ptr::NonNull;

use crossbeam_utils::CachePadded;

use super::buckets::{Buckets, Matches, SLOTS};
use super::memory::{Block, Meter};
use super::overflow::Overflow;
use super::payload::Payload;
use super::stats::Tally;
use super::stripes::{self, Version};
use crate::hash::Place;
use crate::sync::{AtomicPtr, AtomicU64, AtomicUsize, Mutex, Ordering, init_zeroed, step};

/// What the holder of a segment's lock may change beside the buckets.
pub(crate) struct State<P: Payload> {
    /// The segment covers the prefixes that a directory of `base << level` entries maps to entry `index`.
    pub(crate) index: u32,
    /// See `index`.
    pub(crate) level: u32,
    /// How many items are in the overflow.
    pub(crate) overflow_len: usize,
    /// What happened here, and in the segments this one came from.
    pub(crate) tally: Tally,
    /// What the front end keeps here.
    pub(crate) reserve: P::Reserve,
}

/// One table. Constructed in place; see the diagram above.
#[repr(C)]
pub(crate) struct Segment<P: Payload> {
    buckets: Buckets<P>,
    stripes: *const AtomicU64,
    stripe_mask: u32,
    overflow: Overflow<P>,
    undo: *const Undo<P>,
    write: CachePadded<Write<P>>,
    block: Block,
}

/// The lock and what only writers touch: kept off the lines that readers need.
pub(crate) struct Write<P: Payload> {
    pub(crate) state: Mutex<State<P>>,
    /// Items in the buckets and in the overflow. Stored under the lock.
    pub(crate) len: AtomicUsize,
    /// How often a reader had to read again. On lines of its own: writers have no business with it.
    pub(crate) read_retries: CachePadded<AtomicU64>,
}

/// A copy of the one item that is being replaced in place by more than one store: what readers return meanwhile.
#[repr(C)]
struct Undo<P: Payload> {
    /// The slot it was copied from; null if none is being replaced.
    slot: AtomicPtr<P::Word>,
    /// `P::WORDS` words.
    words: *const P::Word,
}

// SAFETY: all that is shared is atomics and a mutex; the raw pointers lead into the segment's own allocation. Whether
// an item may be shared or sent is for the front ends to say.
unsafe impl<P: Payload> Send for Segment<P> {}
// SAFETY: as above.
unsafe impl<P: Payload> Sync for Segment<P> {}

/// What reading a segment showed.
#[derive(Debug)]
pub(crate) enum Probe<T> {
    /// Found.
    Hit(T),
    /// Not here, unless the segment was replaced meanwhile or the overflow holds it.
    Miss,
    /// Something moved: read again.
    Changed,
}

impl<P: Payload> Segment<P> {
    /// Offsets of stripes, undo words, tags and slots, and the whole layout; `None` if it overflows.
    fn layout(buckets: u32, stripes: u32) -> Option<(Layout, usize, usize, usize, [usize; 2])> {
        let undo_words = if P::REPLACED_WORDS > 1 { P::WORDS } else { 0 };
        let layout = Layout::new::<Self>();
        let (layout, stripes_at) = layout.extend(Layout::array::<AtomicU64>(stripes as usize).ok()?).ok()?;
        let (layout, undo_at) = layout.extend(Layout::new::<Undo<P>>()).ok()?;
        let (layout, words_at) = layout.extend(Layout::array::<P::Word>(undo_words).ok()?).ok()?;
        let (layout, arrays_at) = Buckets::<P>::layout(layout, buckets)?;
        Some((layout.pad_to_align(), stripes_at, undo_at, words_at, arrays_at))
    }

    /// The layout of a segment's memory.
    pub(crate) fn memory_layout(buckets: u32, stripes: u32) -> Option<Layout> {
        Self::layout(buckets, stripes).map(|(layout, ..)| layout)
    }

    /// Constructs an empty segment in a block of memory of [`Segment::memory_layout`]. `stripes` is a power of two.
    pub(crate) fn construct(block: Block, buckets: u32, stripes: u32) -> NonNull<Self> {
        let (layout, stripes_at, undo_at, words_at, arrays_at) =
            Self::layout(buckets, stripes).expect("computed when the block was allocated");
        assert!(stripes.is_power_of_two() && layout.size() <= block.size());
        let base = block.base().as_ptr();
        let this = base.cast::<Self>();
        // SAFETY: the block is zeroed, large enough and aligned for `layout`, ours alone, and lives until `free`.
        unsafe {
            let (stripe_words, undo) =
                (base.add(stripes_at).cast::<AtomicU64>(), base.add(undo_at).cast::<Undo<P>>());
            init_zeroed(stripe_words, stripes as usize);
            let words = base.add(words_at).cast::<P::Word>();
            if P::REPLACED_WORDS > 1 {
                init_zeroed(words, P::WORDS);
            }
            undo.write(Undo { slot: AtomicPtr::new(core::ptr::null_mut()), words });
            this.write(Segment {
                buckets: Buckets::init(base, arrays_at, buckets),
                stripes: stripe_words,
                stripe_mask: stripes - 1,
                overflow: Overflow::new(),
                undo,
                write: CachePadded::new(Write {
                    state: Mutex::new(State {
                        index: 0,
                        level: 0,
                        overflow_len: 0,
                        tally: Tally::default(),
                        reserve: P::Reserve::default(),
                    }),
                    len: AtomicUsize::new(0),
                    read_retries: CachePadded::new(AtomicU64::new(0)),
                }),
                block,
            });
            NonNull::new_unchecked(this)
        }
    }

    /// Frees the segment and its overflow, but not what its items point to.
    ///
    /// # Safety
    ///
    /// `this` came from [`Segment::construct`], and nobody uses it any more.
    pub(crate) unsafe fn free(this: NonNull<Self>, meter: &Meter) {
        // SAFETY: the caller's; the block is moved out before the memory it describes is given back.
        unsafe {
            let segment = this.as_ptr().read();
            let block = segment.block;
            segment.overflow.free(meter);
            block.free(meter);
        }
    }

    /// The buckets.
    #[inline(always)]
    pub(crate) fn buckets(&self) -> &Buckets<P> {
        &self.buckets
    }

    /// The items that fit no bucket.
    #[inline(always)]
    pub(crate) fn overflow(&self) -> &Overflow<P> {
        &self.overflow
    }

    /// The lock and the writers' part.
    #[inline(always)]
    pub(crate) fn write(&self) -> &Write<P> {
        &self.write
    }

    /// The stripe of a bucket pair: of both its buckets, whichever the item is in.
    #[inline(always)]
    pub(crate) fn stripe(&self, place: Place) -> &AtomicU64 {
        let stripe = place.first.min(place.second) & self.stripe_mask;
        // SAFETY: at most `stripe_mask`, and there are `stripe_mask + 1` stripes in our allocation.
        unsafe { &*self.stripes.add(stripe as usize) }
    }

    /// All stripes.
    pub(crate) fn stripes(&self) -> &[AtomicU64] {
        // SAFETY: as in `stripe`.
        unsafe { core::slice::from_raw_parts(self.stripes, self.stripe_mask as usize + 1) }
    }

    /// Starts loading what a look-up of `place` reads first.
    #[inline(always)]
    pub(crate) fn prefetch(&self, place: Place) {
        self.buckets.prefetch_tags(place.first);
        self.buckets.prefetch_tags(place.second);
    }

    /// [R3]: reads both buckets once. A hit is final; a miss is not before [R4].
    ///
    /// `version` is what [R2] read from `stripe`; it is checked here only for items that can tear, before `eq` sees
    /// them.
    #[inline(always)]
    pub(crate) fn pass(
        &self,
        place: Place,
        stripe: &AtomicU64,
        version: Version,
        mut eq: impl FnMut(P::Item) -> bool,
    ) -> Probe<P::Item> {
        // Before the tags say which slot it will be: hits in tables beyond the caches gain a third, as two page walks
        // overlap; misses, which need no slot, lose up to a fifth.
        self.buckets.prefetch_slot(place.first, 0);
        self.buckets.prefetch_slot(place.second, 0);
        let mut matches = self.matches(place);
        while let Some(lane) = matches.next_lane() {
            step();
            match self.read_item(&self.buckets, place.slot(lane), stripe, version) {
                Probe::Hit(item) if eq(item) => return Probe::Hit(item),
                Probe::Changed => return Probe::Changed,
                Probe::Hit(_) | Probe::Miss => {}
            }
        }
        Probe::Miss
    }

    /// The slots of both buckets whose tags match.
    #[inline(always)]
    pub(crate) fn matches(&self, place: Place) -> Matches {
        let first = self.buckets.tags(place.first);
        step();
        let second = self.buckets.tags(place.second);
        Matches::of_pair(first, second, place.tag)
    }

    /// Loads an item that is known to be whole: `Miss` if the slot is empty, `Changed` if it may be torn.
    #[inline(always)]
    pub(crate) fn read_item(
        &self,
        buckets: &Buckets<P>,
        (bucket, lane): (u32, u32),
        stripe: &AtomicU64,
        version: Version,
    ) -> Probe<P::Item> {
        let mut item = buckets.item(bucket, lane);
        if !P::NULLABLE {
            if P::REPLACED_WORDS > 1 && version.is_odd() {
                item = self.undone(buckets.slot(bucket, lane)).or(item);
            }
            step();
            if !stripes::unchanged(stripe, version) {
                return Probe::Changed;
            }
        }
        match item {
            Some(item) => Probe::Hit(item),
            None => Probe::Miss,
        }
    }

    /// The item that was in `slot` before the replacement that is under way, if it is that slot's.
    #[cold]
    fn undone(&self, slot: *const P::Word) -> Option<P::Item> {
        // SAFETY: constructed with the segment.
        let undo = unsafe { &*self.undo };
        // Relaxed: written before the odd version, which was stored with Release and read with Acquire.
        if !core::ptr::eq(undo.slot.load(Ordering::Relaxed), slot) {
            return None;
        }
        // SAFETY: WORDS words, constructed with the segment.
        unsafe { P::load(undo.words) }
    }

    /// Replaces an item that is more than one store long, so that readers find the old one until it is done.
    ///
    /// Call only with the lock held [I5]; the stripe is the one that readers of this slot validate against.
    pub(crate) fn replace_in_steps(&self, slot: *const P::Word, stripe: &AtomicU64, item: P::Item) {
        debug_assert!(P::REPLACED_WORDS > 1);
        // SAFETY: constructed with the segment; WORDS words each.
        let (undo, old) = unsafe { (&*self.undo, P::load(slot)) };
        // Release: pairs with the Acquire fence in `unchanged`: who reads the new copy in an older odd version sees
        // that the version has changed.
        stripes::publish_departures();
        undo.slot.store(slot.cast_mut(), Ordering::Relaxed);
        if let Some(old) = old {
            // SAFETY: as above.
            unsafe { P::store(undo.words, old) };
        }
        // The odd version's Release publishes the copy.
        let moving = stripes::Moving::start(stripe);
        // SAFETY: the caller's slot.
        unsafe { P::store(slot, item) };
        drop(moving);
        // Release: pairs with the Acquire fence in `unchanged`: who finds the copy withdrawn sees the version even.
        stripes::publish_departures();
        undo.slot.store(core::ptr::null_mut(), Ordering::Relaxed);
    }

    /// Reads the overflow once, after a miss in the buckets.
    #[cold]
    pub(crate) fn pass_overflow(&self, place: Place, eq: &mut dyn FnMut(P::Item) -> bool) -> Probe<P::Item> {
        let stripe = self.overflow.stripe();
        let version = stripes::begin(stripe);
        for buckets in self.overflow.blocks() {
            for bucket in 0..buckets.len() {
                let mut matches = Matches::of_one(buckets.tags(bucket), place.tag);
                while let Some(lane) = matches.next_lane() {
                    match self.read_item(&buckets, (bucket, lane), stripe, version) {
                        Probe::Hit(item) if eq(item) => return Probe::Hit(item),
                        Probe::Changed => return Probe::Changed,
                        Probe::Hit(_) | Probe::Miss => {}
                    }
                }
            }
        }
        Probe::Miss
    }

    /// How many slots the buckets have.
    pub(crate) fn slots(&self) -> usize {
        self.buckets.len() as usize * SLOTS as usize
    }

    /// Counts a reader's retry. Not on the common path: the only shared memory a reader may ever write.
    #[cold]
    #[inline(never)]
    pub(crate) fn count_retry(&self) {
        self.write.read_retries.fetch_add(1, Ordering::Relaxed);
    }
}
