//! A segment: one fixed-capacity MemC3 table, and how to read it.
//!
//! Anybody may read, at any time, without a lock, without a store and without waiting ([R1]..[R4]). Writes are in
//! `locked`, where holding the lock is a type.
//!
//! It has three blocks of memory, each next to blocks of the same kind of other segments:
//!
//! ```text
//! | Write          | tags* slots* stripes* buckets mask flag | stripes |   | tags         |   | slots           |
//!   lock, and what   `Segment`: 32 bytes, read-mostly          8 each        4 per bucket       4 * WORDS words
//!   it guards                                                                                   per bucket
//! ```
//!
//! With four stripes, `Segment` and the stripes are one cache line. At the usual size the tags are one page of 4 KiB. So a miss
//! reads one line of heads, which the caches hold, and two lines of one page. Heads in the pages of their tags would save that
//! page, but would lie 4 KiB apart and fall into one set of the caches.

use core::alloc::Layout;
use core::cell::UnsafeCell;
use core::marker::PhantomData;
use core::ops::Deref;
use core::ptr::NonNull;

use super::buckets::Buckets;
use super::memory::{Block, Meter};
use super::overflow::{Heading, Overflow};
use super::parting;
use super::payload::Payload;
use super::stale::Stale;
use super::stats::Tally;
use super::stripes::{self, Version};
use super::tags::SLOTS;
use super::undo::Undo;
use crate::hash::Place;
use crate::sync::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Mutex, Ordering, Watch, init_zeroed, step};

/// What the holder of a segment's lock may change in addition to the buckets.
///
/// Most frequently written fields first: the lines of the first fields come from the core that held the lock before.
#[repr(C)]
pub(crate) struct State<P: Payload> {
    /// Counts of events in this segment, and in those it came from.
    pub(crate) tally: Tally,
    /// What the front end keeps here.
    pub(crate) keep: P::Keep,
    /// The segment covers the prefixes that a directory of `base << level` entries maps to entry `index`.
    pub(crate) index: u32,
    /// See `index`.
    pub(crate) level: u32,
    /// See [`parting::last_entries`]: computed once, for all insertions.
    pub(super) last_entries: u32,
    /// How many items were in the overflow when it was last determined whether growing parts them [G9].
    pub(super) parted_at: u32,
    /// From so many items on the segment is filling up, and will soon grow [G7]; never, if it grows only when no path is found.
    pub(crate) filling_from: usize,
    /// How many items are in the overflow.
    pub(crate) overflow_len: usize,
    /// What has been copied, if the segment will split soon [G7].
    pub(crate) ahead: Option<Box<Ahead<P>>>,
}

impl<P: Payload> State<P> {
    /// Notes that the segment now covers entry `index` of a directory of `base << level`.
    pub(super) fn covers(&mut self, index: u32, level: u32, base: u32) {
        (self.index, self.level) = (index, level);
        self.last_entries = parting::last_entries::<P>(base, level);
    }
}

/// What a segment has copied ahead of its split [G7].
pub(crate) struct Ahead<P: Payload> {
    /// The segment that is to be the upper half: neither current nor in the pool.
    pub(super) segment: NonNull<Segment<P>>,
    /// The buckets of which it has no up-to-date copy.
    pub(super) stale: Stale,
}

/// One table. Constructed in place; see the diagram above.
// As aligned as the stripes that follow, even where pointers are shorter.
#[repr(C, align(8))]
pub(crate) struct Segment<P: Payload> {
    tags: *const AtomicU32,
    slots: *const P::Word,
    /// The stripes follow us, and we follow `Write`; this pointer may reach all three, which a reference to us may not.
    stripes: *const AtomicU64,
    len: u32,
    stripe_mask: u16,
    /// Whether there may be anything in the overflow.
    overflowed: AtomicBool,
    pub(super) watch: Watch,
}

// With four stripes, this makes one cache line. And what the lock guards begins on the lock's line.
#[cfg(all(target_pointer_width = "64", not(any(loom, shuttle))))]
const _: () = {
    type Some = super::payload::Inline<u64, u64>;
    assert!(size_of::<Segment<Some>>() == 32);
    assert!(align_of::<State<Some>>() == 8 && core::mem::offset_of!(Write<Some>, state) == 8);
};

/// The lock and what only writers touch: kept off the lines that readers need.
#[repr(C, align(64))]
pub(crate) struct Write<P: Payload> {
    /// Items in the buckets and in the overflow. Stored to under the lock, and located next to it.
    pub(crate) len: AtomicUsize,
    pub(crate) state: Mutex<State<P>>,
    /// How often a reader had to read again.
    pub(crate) read_retries: AtomicU64,
    pub(crate) overflow: Overflow<P>,
    pub(super) undo: Undo<P>,
    /// The pool's, while the pool has the segment: guarded by the pool's lock.
    pub(super) links: UnsafeCell<Links<P>>,
    pub(super) memory: Memory,
}

/// A link to a segment in the pool.
pub(super) type Link<P> = Option<NonNull<Segment<P>>>;

/// The links of a segment in the pool to others there.
pub(super) struct Links<P: Payload> {
    /// The next segment of the same size.
    pub(super) same: Link<P>,
    /// In the first segment of a size: the first of the next size.
    pub(super) shelf: Link<P>,
    /// In the first segment of a size: how many there are.
    pub(super) count: usize,
}

/// The memory of a segment.
pub(crate) struct Memory {
    pub(crate) head: Block,
    pub(crate) tags: Block,
    pub(crate) slots: Block,
}

/// The layouts of a segment's memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) head: Layout,
    pub(crate) tags: Layout,
    /// Undo words follow the slots.
    pub(crate) slots: Layout,
    segment_at: usize,
    stripes_at: usize,
    undo_at: usize,
}

impl Plan {
    /// The bytes it takes in all.
    pub(crate) fn bytes(&self) -> usize {
        self.head.size() + self.tags.size() + self.slots.size()
    }
}

// SAFETY: all that is shared is atomics, a mutex and what the pool's lock guards; the raw pointers lead into the
// segment's own memory. Whether an item may be shared or sent is for the front ends to say.
unsafe impl<P: Payload> Send for Segment<P> {}
// SAFETY: as above.
unsafe impl<P: Payload> Sync for Segment<P> {}

/// Leads to a segment, to the stripes after it and to what is before it, without the pointer that a reference has to load
/// first. Directories and locks have these, so that whatever they lead to may reach all of a segment's head.
pub(crate) struct SegmentRef<'d, P: Payload> {
    segment: NonNull<Segment<P>>,
    lives: PhantomData<&'d Segment<P>>,
}

impl<P: Payload> Clone for SegmentRef<'_, P> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<P: Payload> Copy for SegmentRef<'_, P> {}

impl<P: Payload> Deref for SegmentRef<'_, P> {
    type Target = Segment<P>;

    #[inline(always)]
    fn deref(&self) -> &Segment<P> {
        self.segment()
    }
}

impl<'d, P: Payload> SegmentRef<'d, P> {
    /// # Safety
    ///
    /// `segment` came from [`Segment::construct`], and is not freed as long as this lives. (A pointer made from a reference
    /// would not do: it may reach no further than the segment, and so neither the stripes nor what is before it.)
    #[inline(always)]
    pub(super) unsafe fn new(segment: NonNull<Segment<P>>) -> Self {
        SegmentRef { segment, lives: PhantomData }
    }

    /// The segment itself.
    #[inline(always)]
    pub(crate) fn segment(self) -> &'d Segment<P> {
        // SAFETY: not freed (`new`), and never referred to mutably.
        unsafe { self.segment.as_ref() }
    }

    /// The pointer that leads here, as [`Segment::construct`] returned it.
    #[inline]
    pub(super) fn pointer(self) -> NonNull<Segment<P>> {
        self.segment
    }

    /// [`Segment::write`].
    #[inline(always)]
    pub(crate) fn write(self) -> &'d Write<P> {
        // SAFETY: before the segment in one allocation (`construct`).
        unsafe { self.segment.cast::<Write<P>>().sub(1).as_ref() }
    }

    /// The stripe of a bucket pair: of both its buckets, whichever the item is in.
    #[inline(always)]
    pub(crate) fn stripe(self, place: Place) -> &'d AtomicU64 {
        // At most `stripe_mask`, and there are `stripe_mask + 1`.
        let index = ((place.first ^ place.second) & u32::from(self.stripe_mask)) as usize;
        // SAFETY: one of our stripes, which follow the segment in one allocation (`construct`).
        unsafe { self.segment.add(1).cast::<AtomicU64>().add(index).as_ref() }
    }
}

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

impl<T> Probe<T> {
    /// Maps what was found.
    #[inline(always)]
    pub(crate) fn map<U>(self, f: impl FnOnce(T) -> U) -> Probe<U> {
        match self {
            Probe::Hit(item) => Probe::Hit(f(item)),
            Probe::Miss => Probe::Miss,
            Probe::Changed => Probe::Changed,
        }
    }
}

impl<P: Payload> Segment<P> {
    /// The memory of a segment of so many buckets and stripes, a power of two; `None` if there is no such layout.
    pub(crate) fn plan(buckets: u32, stripes: u32) -> Option<Plan> {
        let stripe_array = Layout::array::<AtomicU64>(stripes as usize).ok()?;
        let (head, segment_at) = Layout::new::<Write<P>>().extend(Layout::new::<Self>()).ok()?;
        let (head, stripes_at) = head.extend(stripe_array).ok()?;
        let undo_words = if P::REPLACED_WORDS > 1 { P::WORDS } else { 0 };
        let undo = Layout::array::<P::Word>(undo_words).ok()?;
        let (slots, undo_at) = Buckets::<P>::slots_layout(buckets)?.extend(undo).ok()?;
        Some(Plan {
            head: head.pad_to_align(),
            tags: Buckets::<P>::tags_layout(buckets)?,
            slots: slots.pad_to_align(),
            segment_at,
            stripes_at,
            undo_at,
        })
    }

    /// Constructs an empty segment in zeroed memory of [`Segment::plan`].
    pub(crate) fn construct(memory: Memory, buckets: u32, stripes: u32) -> NonNull<Self> {
        let plan = Self::plan(buckets, stripes).expect("computed when the memory was allocated");
        assert!(stripes.is_power_of_two());
        for (block, layout) in
            [(&memory.head, plan.head), (&memory.tags, plan.tags), (&memory.slots, plan.slots)]
        {
            assert!(layout.size() <= block.size() && block.base().addr().get() % layout.align() == 0);
        }
        // That is where `write` and `SegmentRef::stripe` look.
        assert_eq!(plan.stripes_at, Self::BEFORE_STRIPES);
        assert_eq!(plan.stripes_at - plan.segment_at, size_of::<Self>());
        // SAFETY: the memory is zeroed, large enough and aligned for the plan, ours alone, and lives until `free`.
        unsafe {
            let base = memory.head.base();
            let this = base.add(plan.segment_at).cast::<Self>();
            let stripe_array = base.add(plan.stripes_at).cast::<AtomicU64>().as_ptr();
            init_zeroed(stripe_array, stripes as usize);
            let undo_words = memory.slots.base().add(plan.undo_at).cast::<P::Word>().as_ptr();
            if P::REPLACED_WORDS > 1 {
                init_zeroed(undo_words, P::WORDS);
            }
            let arrays = Buckets::<P>::init(memory.tags.base(), memory.slots.base(), buckets);
            this.write(Segment {
                tags: arrays.first_tag(),
                slots: arrays.slot(0, 0),
                stripes: stripe_array,
                len: buckets,
                stripe_mask: u16::try_from(stripes - 1).expect("at most 65,536 stripes"),
                overflowed: AtomicBool::new(false),
                watch: Watch::default(),
            });
            base.cast::<Write<P>>().write(Write {
                len: AtomicUsize::new(0),
                state: Mutex::new(State {
                    index: 0,
                    level: 0,
                    last_entries: 1,
                    filling_from: usize::MAX,
                    parted_at: 0,
                    overflow_len: 0,
                    ahead: None,
                    tally: Tally::default(),
                    keep: P::Keep::default(),
                }),
                read_retries: AtomicU64::new(0),
                overflow: Overflow::new(),
                undo: Undo::new(undo_words),
                links: UnsafeCell::new(Links { same: None, shelf: None, count: 0 }),
                memory,
            });
            this
        }
    }

    /// The distance from `Write` to the first stripe.
    const BEFORE_STRIPES: usize = size_of::<Write<P>>() + size_of::<Self>();

    /// Frees the segment, its overflow and what it has copied ahead, but not what its items point to.
    ///
    /// # Safety
    ///
    /// `this` came from [`Segment::construct`], and nobody uses it any more.
    pub(crate) unsafe fn free(this: NonNull<Self>, meter: &Meter) {
        // SAFETY: the caller's; moved out before the memory it is in is given back.
        unsafe {
            let write = core::ptr::from_ref(this.as_ref().write()).read();
            let ahead = write.state.lock().ahead.take();
            if let Some(ahead) = ahead {
                // The copy has copied nothing ahead itself.
                Self::free(ahead.segment, meter);
            }
            write.overflow.free(meter);
            write.memory.slots.free(meter);
            write.memory.tags.free(meter);
            write.memory.head.free(meter);
        }
    }

    /// The buckets.
    #[inline(always)]
    pub(crate) fn buckets(&self) -> Buckets<P> {
        // SAFETY: constructed with us, and freed with us.
        unsafe { Buckets::from_raw(self.tags, self.slots, self.len) }
    }

    /// Whether every item is in a bucket.
    #[inline(always)]
    pub(crate) fn has_no_overflow(&self) -> bool {
        // Relaxed: a reader passes the Acquire fence of `unchanged` before it calls this a miss. That pairs with the Release in
        // `withdraw_overflow`: a reader of that store comes after the last item has left, and sees what came before. Nobody
        // stores except the lock's holder.
        !self.overflowed.load(Ordering::Relaxed)
    }

    /// Makes readers look into the overflow from now on. Called before an item is put there; the lock's holder only [I5].
    pub(crate) fn note_overflow(&self) {
        // Relaxed: a reader that has found the item, or was told of it, sees this, which came before its tag, or its block's
        // link [W6]. A reader that does not see it may come before the item.
        self.overflowed.store(true, Ordering::Relaxed);
    }

    /// Makes readers look there no more from now on. Called when the last item has left; the lock's holder only [I5].
    pub(crate) fn withdraw_overflow(&self) {
        // Release: pairs with the load in `has_no_overflow` and the fence after it.
        self.overflowed.store(false, Ordering::Release);
    }

    /// The items that fit no bucket.
    pub(crate) fn overflow(&self) -> &Overflow<P> {
        &self.write().overflow
    }

    /// The lock and the writers' part.
    #[inline(always)]
    pub(crate) fn write(&self) -> &Write<P> {
        // SAFETY: before us and the stripes in the same allocation: see `construct`.
        unsafe { &*self.stripes.byte_sub(Self::BEFORE_STRIPES).cast::<Write<P>>() }
    }

    /// All stripes.
    pub(crate) fn stripes(&self) -> &[AtomicU64] {
        // SAFETY: that many have been made (`construct`).
        unsafe { core::slice::from_raw_parts(self.stripes, self.stripe_mask as usize + 1) }
    }

    /// [R3]: reads both buckets once. A hit is final, and includes the lane it was in; a miss is not final before [R4].
    ///
    /// A null slot behind a matching tag does not end the search [I7]: the tag is set first and cleared last.
    ///
    /// `version` is what [R2] read from `stripe`; it is checked here only for items that can tear, before `eq` sees
    /// them.
    ///
    /// `shown` is called once if a tag shows that the item may be here, before the slot is read.
    #[inline(always)]
    pub(crate) fn pass(
        &self,
        place: Place,
        stripe: &AtomicU64,
        version: Version,
        shown: impl Fn(),
        eq: impl Fn(P::Item) -> bool,
    ) -> Probe<(P::Item, u32)> {
        let buckets = self.buckets();
        // Fetched before the tags say which slot it will be: three quarters of all items are in their first bucket, and its
        // slots are one line, or half of one. Hits in tables beyond the caches gain a third, as two page walks overlap; misses,
        // which need no slot, lose up to a quarter. With the second bucket's line as well, hits gain no more.
        buckets.prefetch_slot(place.first);
        let mut matches = buckets.matches(place);
        if !matches.is_empty() {
            shown();
        }
        // Every path that does not return must skip the match.
        while let Some(lane) = matches.peek_lane() {
            step();
            // SAFETY: a slot of ours.
            match unsafe { self.read_item(buckets.slot_of(place, lane), stripe, version) } {
                Probe::Hit(item) if eq(item) => return Probe::Hit((item, lane)),
                Probe::Changed => return Probe::Changed,
                Probe::Hit(_) | Probe::Miss => matches.skip(),
            }
        }
        Probe::Miss
    }

    /// Loads an item; a `Hit` is known to be whole. `Miss` if the slot is empty, `Changed` if the item may be torn.
    ///
    /// # Safety
    ///
    /// `slot` is one of ours, and `stripe` its stripe.
    #[inline(always)]
    pub(crate) unsafe fn read_item(
        &self,
        slot: *const P::Word,
        stripe: &AtomicU64,
        version: Version,
    ) -> Probe<P::Item> {
        // SAFETY: the caller's.
        let mut item = unsafe { P::load(slot) };
        if !P::NULLABLE {
            if P::REPLACED_WORDS > 1 && version.is_odd() {
                item = self.write().undo.of(slot).or(item);
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

    /// Reads the overflow once, after a miss in the buckets [R4]: as [R2] and [R3], with the overflow's own stripe.
    ///
    /// That stripe validates items that can tear [I7]; a miss does not need it, because nothing in the overflow moves [W6].
    #[cold]
    pub(crate) fn pass_overflow(&self, place: Place, eq: &dyn Fn(P::Item) -> bool) -> Probe<P::Item> {
        let stripe = self.overflow().stripe();
        let version = stripes::begin(stripe);
        for (buckets, bucket, lane) in self.overflow().matching(Heading::of(place)) {
            // SAFETY: a slot of our overflow, and its stripe.
            match unsafe { self.read_item(buckets.slot(bucket, lane), stripe, version) } {
                Probe::Hit(item) if eq(item) => return Probe::Hit(item),
                Probe::Changed => return Probe::Changed,
                Probe::Hit(_) | Probe::Miss => {}
            }
        }
        Probe::Miss
    }

    /// How many items there are.
    #[inline]
    pub(crate) fn items(&self) -> usize {
        // Relaxed: exact for the lock's holder, which alone stores; for others it counts after the fence in `unchanged`.
        self.write().len.load(Ordering::Relaxed)
    }

    /// Sets how many items there are. The lock's holder only [I5].
    #[inline]
    pub(crate) fn set_len(&self, len: usize) {
        // Release: pairs with the Acquire fence in `unchanged`, when items are counted: a reader that sees that some have left
        // for another segment [G6] sees the directory lead there; one that sees none in a segment that is emptied to be built
        // anew sees its stripes bumped.
        self.write().len.store(len, Ordering::Release);
    }

    /// How many slots the buckets have.
    pub(crate) fn slots(&self) -> usize {
        self.buckets().len() as usize * SLOTS as usize
    }

    /// Counts a reader's retry. Not on the common path. This is the only shared memory that a reader may ever write, except
    /// marks [B4].
    #[cold]
    #[inline(never)]
    pub(crate) fn count_retry(&self) {
        // Relaxed: a count, read for information.
        self.write().read_retries.fetch_add(1, Ordering::Relaxed);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::payload::Inline;
    use super::*;

    #[test]
    fn the_usual_segment_has_one_line_of_head_and_one_page_of_tags() {
        let plan = Segment::<Inline<u64, u64>>::plan(1024, 4).unwrap();
        let line = plan.stripes_at - plan.segment_at + 4 * size_of::<AtomicU64>();
        assert!(line == 64 || cfg!(target_pointer_width = "32") && line < 64);
        assert_eq!(plan.segment_at % 64, 0);
        assert_eq!((plan.tags.size(), plan.tags.align()), (4096, 4096));
        assert_eq!(plan.slots.size(), 1024 * 4 * 16, "no undo copy where one store replaces");
    }

    #[test]
    fn an_undo_copy_has_room_behind_the_slots() {
        let plan = Segment::<Inline<u64, [u64; 15]>>::plan(3, 4).unwrap();
        assert_eq!((plan.undo_at, plan.slots.size()), (3 * 4 * 128, 13 * 128));
    }

    /// A writer that is stopped between the two words of a value leaves readers the old value [W2]. There is only one stripe,
    /// so readers of other slots meet the odd version as well.
    #[test]
    fn a_replacement_under_way_shows_the_old_item_in_its_slot_alone() {
        type Wide = Inline<u64, [u64; 2]>;
        let meter = Meter::new();
        let plan = Segment::<Wide>::plan(2, 1).unwrap();
        let [head, tags, slots] =
            [plan.head, plan.tags, plan.slots].map(|layout| Block::allocate(layout, &meter).unwrap());
        let this = Segment::<Wide>::construct(Memory { head, tags, slots }, 2, 1);
        // SAFETY: just constructed; freed at the end.
        let segment = unsafe { this.as_ref() };
        let (buckets, stripe) = (segment.buckets(), &segment.stripes()[0]);
        buckets.fill(0, 0, 1, (1, [1; 2]), 0);
        buckets.fill(0, 1, 2, (2, [2; 2]), 0);
        let read = |lane, version| {
            // SAFETY: a slot of the segment, and its stripe.
            match unsafe { segment.read_item(buckets.slot(0, lane), stripe, version) } {
                Probe::Hit(item) => Some(item),
                Probe::Miss | Probe::Changed => None,
            }
        };
        let undo = &segment.write().undo;
        undo.copy(buckets.slot(0, 0));
        let moving = stripes::Moving::start(stripe);
        // SAFETY: a slot of the segment.
        unsafe { Wide::store(buckets.slot(0, 0), (1, [1, 9]), 0) };
        let version = stripes::begin(stripe);
        assert_eq!((read(0, version), read(1, version)), (Some((1, [1; 2])), Some((2, [2; 2]))));
        // SAFETY: as above.
        unsafe { Wide::store(buckets.slot(0, 0), (1, [9; 2]), 0) };
        drop(moving);
        assert_eq!((read(0, version), read(1, version)), (None, None), "the version is an older one");
        let version = stripes::begin(stripe);
        assert_eq!((read(0, version), read(1, version)), (Some((1, [9; 2])), Some((2, [2; 2]))));
        undo.replace(buckets.slot(0, 1), stripe, (2, [7; 2]));
        assert_eq!(read(1, stripes::begin(stripe)), Some((2, [7; 2])));
        assert!(undo.of(buckets.slot(0, 1)).is_none(), "the copy is withdrawn");
        // SAFETY: ours alone.
        unsafe { Segment::free(this, &meter) };
        assert_eq!(meter.bytes(), 0);
    }
}
