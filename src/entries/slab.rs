//! Memory for entries: pieces of one size, cut from chunks, which go back when the map is shrunk or dropped, or little by
//! little where most of their pieces have been free for a second [M4]; or a box each.
//!
//! An entry of two words takes two words here and four from a general allocator; and entries lie close together,
//! where huge pages can back them. A piece is taken out of a magazine in the segment that the writer has locked [M1] and
//! given back to a place that threads mostly have to themselves [M3], from where the segments' magazines are filled, with
//! as many as fit [M2].
//!
//! That is for plain entries. Where key or value own memory the allocator has just been asked for that, and what it gives next
//! lies beside it, in the same page and often in the next line. So such an entry gets a box, and who goes on from it to its
//! text waits once, not twice.
//!
//! A chunk is made of pages; each begins with the address of its slab, so that a piece finds its way home by itself.

use core::alloc::Layout;
use core::marker::PhantomData;
use core::mem::{MaybeUninit, needs_drop};
use core::ptr::NonNull;

use std::sync::Arc;

use crossbeam_utils::CachePadded;

use super::chunks::{Chunks, Pieces};
use super::home_lines::HomeLines;
use super::homes::{Homes, Within};
use super::magazine::{Chain, Due, Free, Magazine, Returned};
use super::page::begin_of;
use super::sorting::{MAGAZINES_A_STEP, PLACES, Sorting};
use super::surplus::Surplus;
use crate::engine::{Meter, Shape, try_box};
use crate::hash::Digest;
use crate::seats;
use crate::sync::{AtomicBool, AtomicU64, Mutex, MutexGuard, Ordering};

/// What tails are aligned to: words.
const TAIL_ALIGN: usize = align_of::<AtomicU64>();
/// Larger entries get a box each.
const LARGEST_PIECE: usize = 512;

/// Where the pieces for entries of type `T` come from. Must not move, hence the `Arc`: pages know its address.
pub(crate) struct Slab<T> {
    /// As many threads return without meeting.
    returned: [CachePadded<Mutex<Returned>>; PLACES],
    chunks: Mutex<Chunks>,
    /// What is being released, step by step.
    sorting: Mutex<Option<Box<Sorting>>>,
    /// Whether anything is. Advice.
    is_releasing: AtomicBool,
    surplus: Mutex<Surplus>,
    meter: Meter,
    huge_pages: bool,
    homes: Homes,
    /// Bytes behind each entry, for what a front end keeps there.
    tail: usize,
    pieces: PhantomData<fn() -> T>,
}

impl<T> Slab<T> {
    /// Whether each entry has a box: if it owns memory, so as to lie beside it, or is large, or oddly aligned. Under loom all
    /// do: models want addresses that are not used again.
    pub(crate) const BOXED: bool =
        cfg!(loom) || needs_drop::<T>() || size_of::<T>() > LARGEST_PIECE || align_of::<T>() > 64;
    /// Where the tail begins.
    const TAIL_AT: usize = {
        let size = if Self::BOXED { size_of::<Boxed<T>>() } else { size_of::<T>() };
        size.next_multiple_of(TAIL_ALIGN)
    };
    /// Pieces begin after the page's header, the slab's address.
    const FIRST: usize = size_of::<NonNull<Self>>().next_multiple_of(Self::ALIGN);
    /// Of pieces: they hold an entry or a link.
    const ALIGN: usize = {
        let align = if align_of::<T>() > align_of::<Free>() { align_of::<T>() } else { align_of::<Free>() };
        if align > TAIL_ALIGN { align } else { TAIL_ALIGN }
    };

    /// An empty slab for entries with tails of so many bytes, a few words; `entries` are to come.
    pub(crate) fn new(shape: &Shape, entries: usize, tail: usize) -> Arc<Self> {
        let meter = Meter::new();
        let homes = match Self::BOXED {
            true => Homes::none(),
            false => Homes::new(entries, Self::piece_with(tail), shape.home_cells, shape.huge_pages, &meter),
        };
        Arc::new(Slab {
            returned: core::array::from_fn(|_| CachePadded::new(Mutex::new(Returned::default()))),
            chunks: Mutex::new(Chunks::default()),
            sorting: Mutex::new(None),
            is_releasing: AtomicBool::new(false),
            surplus: Mutex::new(Surplus::new()),
            meter,
            huge_pages: shape.huge_pages,
            homes,
            tail,
            pieces: PhantomData,
        })
    }

    /// Bytes of all chunks and home cells and of what tells which pieces are free, or of `len` boxes.
    pub(crate) fn memory_usage(&self, len: usize) -> usize {
        if Self::BOXED {
            size_of::<Self>() + len * self.boxed().size()
        } else {
            let lists: usize = self.returned.iter().map(|returned| returned.lock().memory_usage()).sum();
            size_of::<Self>() + self.meter.bytes() + lists
        }
    }

    /// Bytes of a piece: it holds an entry and its tail, or a link.
    fn piece(&self) -> usize {
        Self::piece_with(self.tail)
    }

    /// Bytes of a piece with a tail of so many.
    fn piece_with(tail: usize) -> usize {
        let entry = if tail > 0 { Self::TAIL_AT + tail } else { size_of::<T>() };
        entry.max(size_of::<Free>()).next_multiple_of(Self::ALIGN)
    }

    /// What is cut from chunks.
    fn pieces(&self) -> Pieces {
        let slab = NonNull::from(self).cast();
        Pieces { slab, first: Self::FIRST, bytes: self.piece(), huge_pages: self.huge_pages }
    }

    /// The layout of an entry with a box of its own.
    fn boxed(&self) -> Layout {
        let size = if self.tail > 0 { Self::TAIL_AT + self.tail } else { size_of::<Boxed<T>>() };
        let align = align_of::<Boxed<T>>().max(TAIL_ALIGN);
        Layout::from_size_align(size, align).expect("an entry and a few words").pad_to_align()
    }

    /// The tail of an entry, which has as many bytes as the slab was told, maybe none: uninitialized until somebody writes it,
    /// aligned for words.
    ///
    /// # Safety
    ///
    /// `entry` came from `allocate`, and is not freed.
    #[inline(always)]
    pub(crate) unsafe fn tail(entry: NonNull<T>) -> NonNull<AtomicU64> {
        // SAFETY: the caller's: within the piece or the box, or, if there is no tail, right behind it at the most: either is as
        // long as an entry that is followed by padding to `TAIL_ALIGN`.
        unsafe { entry.byte_add(Self::TAIL_AT).cast() }
    }

    /// Where entries are at home.
    pub(super) fn home_lines(&self) -> HomeLines {
        self.homes.lines()
    }

    /// Whether there are home cells: [`Slab::allocate`] needs digests then.
    pub(crate) fn has_home_cells(&self) -> bool {
        self.homes.has_cells()
    }

    /// Memory for an entry, uninitialized; `None` if there is none [M1]. Under the lock of the digest's segment, whose
    /// magazine it is, or where nobody else uses that [W7].
    #[inline]
    pub(crate) fn allocate(
        &self,
        magazine: &mut Magazine,
        digest: Digest,
        within: Within,
    ) -> Option<NonNull<T>> {
        if Self::BOXED {
            return self.allocate_box();
        }
        if within != Within::Nowhere {
            if let Some(cell) = self.homes.take(digest, within, NonNull::from(self).cast()) {
                return Some(cell.cast());
            }
        }
        if let Some(piece) = magazine.pop() {
            return Some(piece.cast());
        }
        self.refill(magazine)?;
        magazine.pop().map(NonNull::cast)
    }

    /// Gives a piece back [M3].
    ///
    /// # Safety
    ///
    /// `entry` came from `allocate` of a slab of the same type that still lives; what was in it has been moved out or
    /// dropped; nobody uses it any more.
    #[inline]
    pub(crate) unsafe fn free(entry: NonNull<T>) {
        if Self::BOXED {
            // SAFETY: the caller's.
            let layout = unsafe { Self::of(entry).as_ref() }.boxed();
            // SAFETY: from `allocate_box`, of this layout.
            return unsafe { std::alloc::dealloc(entry.as_ptr().cast(), layout) };
        }
        // SAFETY: the caller's.
        let slab = unsafe { Self::of(entry).as_ref() };
        if slab.homes.has(entry.cast()) {
            // SAFETY: the caller's.
            unsafe { slab.homes.give(entry.cast()) };
        } else {
            let due = slab.returned[shard()].lock().push(entry.cast());
            slab.tend(due);
        }
    }

    /// Gives pieces back, all of one slab, without a look at them but the first one's page, and at the marks of cells.
    ///
    /// # Safety
    ///
    /// As for `free`, of each of them; entries have no boxes.
    pub(crate) unsafe fn free_all(mut pieces: Box<Magazine>) {
        let Some(first) = pieces.pieces().first() else { return };
        // SAFETY: the caller's.
        let slab = unsafe { Self::of(first.cast()).as_ref() };
        if slab.homes.has_cells() {
            pieces.retain(|piece| {
                let is_cell = slab.homes.has(piece.cast());
                if is_cell {
                    // SAFETY: the caller's.
                    unsafe { slab.homes.give(piece.cast()) };
                }
                !is_cell
            });
        }
        if !pieces.pieces().is_empty() {
            let due = slab.returned[shard()].lock().push_all(pieces);
            slab.tend(due);
        }
    }

    /// The slab of an entry.
    ///
    /// # Safety
    ///
    /// As for `free`.
    unsafe fn of(entry: NonNull<T>) -> NonNull<Self> {
        // SAFETY: pieces lie in pages that begin with the address of their slab, boxes end with it.
        unsafe {
            if Self::BOXED {
                (*entry.as_ptr().cast::<Boxed<T>>()).slab.cast()
            } else {
                // Not null: see `begin_page`, and `homes`.
                NonNull::new_unchecked(begin_of(entry.cast()).load(Ordering::Relaxed).cast())
            }
        }
    }

    /// Where the address of the slab is in an entry's box; null, if it has none. It is read when the entry is freed.
    ///
    /// # Safety
    ///
    /// `entry` came from `allocate`, and is not freed.
    pub(crate) unsafe fn link(entry: NonNull<T>) -> *mut *mut () {
        if !Self::BOXED {
            return core::ptr::null_mut();
        }
        // SAFETY: the caller's: in a box.
        unsafe { (&raw mut (*entry.as_ptr().cast::<Boxed<T>>()).slab).cast() }
    }

    /// A box, its entry uninitialized; `None` if there is no memory for it.
    fn allocate_box(&self) -> Option<NonNull<T>> {
        // SAFETY: not of no bytes: it has the slab's address.
        let boxed = NonNull::new(unsafe { std::alloc::alloc(self.boxed()) })?.cast::<Boxed<T>>();
        // SAFETY: memory for a box, ours.
        unsafe {
            boxed.write(Boxed { entry: MaybeUninit::uninit(), slab: NonNull::from(self).cast() });
        }
        Some(boxed.cast())
    }

    /// Fills an empty magazine: with what this thread returned, or the rest of a chunk, or what others returned, or what is
    /// being sorted, or from a new chunk [M2].
    #[cold]
    fn refill(&self, magazine: &mut Magazine) -> Option<()> {
        let mine = shard();
        if self.returned[mine].lock().fill(magazine) {
            return Some(());
        }
        let mut chunks = self.chunks.lock();
        if !chunks.has_rest() {
            drop(chunks);
            for i in 1..PLACES {
                if self.returned[(mine + i) % PLACES].lock().fill(magazine) {
                    return Some(());
                }
            }
            if self.sorting.lock().as_mut().is_some_and(|sorting| sorting.fill(magazine)) {
                return Some(());
            }
            chunks = self.chunks.lock();
        }
        let (first, n) = chunks.cut(self.pieces(), &self.meter)?;
        // Unlocked: the pages are touched for the first time.
        drop(chunks);
        for i in (0..n).rev() {
            // SAFETY: one of the pieces that are ours now.
            magazine.push(unsafe { first.add(i * self.piece()) }.cast());
        }
        Some(())
    }

    /// Gives the home cells' memory back if none is in use [M4]; whether it was given back now.
    ///
    /// # Safety
    ///
    /// Who allocates holds a lock meanwhile, and `wait` has each of these locks.
    pub(crate) unsafe fn release_homes(&self, wait: impl FnOnce()) -> bool {
        // SAFETY: the caller's.
        unsafe { self.homes.release(&self.meter, wait) }
    }

    /// Gives chunks back to the allocator of which no piece is in use [M4]. `reserves` is what the segments had.
    ///
    /// Looks at all free pieces twice, at some at a time; nothing is done if there is no memory for a list of the chunks.
    pub(crate) fn release(&self, reserves: Chain) {
        self.give_back(reserves);
        // What has been begun already may not know of all that is free now.
        while self.release_some(self.sorting.lock()) {}
        self.begin_release();
        while self.release_some(self.sorting.lock()) {}
    }

    /// Takes the chunks out, to be sorted. False: that has been done already, or there is no memory for it.
    fn begin_release(&self) -> bool {
        let mut sorting = self.sorting.lock();
        if sorting.is_some() {
            return false;
        }
        let Ok(mut new) = try_box(Sorting::default()) else { return false };
        let Some(chunks) = self.chunks.lock().take() else { return false };
        // As many as there are now: what others return meanwhile may stay.
        *new = Sorting::new(chunks, core::array::from_fn(|place| self.returned[place].lock().magazines()));
        *sorting = Some(new);
        // Relaxed: advice.
        self.is_releasing.store(true, Ordering::Relaxed);
        true
    }

    /// Does a step of what has been begun, whoever did that; false if there is none.
    fn release_some(&self, mut sorting: MutexGuard<'_, Option<Box<Sorting>>>) -> bool {
        let Some(now) = sorting.as_mut() else { return false };
        if let Some(place) = now.place() {
            let mut magazine = Magazine::default();
            for _ in 0..MAGAZINES_A_STEP {
                let has_some = self.returned[place].lock().fill(&mut magazine);
                now.count(&mut magazine);
                now.note_counted(place, has_some);
                if !has_some {
                    break;
                }
            }
        } else if now.decide() {
            // A step by itself: schedules have a pause before it.
        } else if let Some(used) = now.sort() {
            self.give_back(used);
        } else if let Some(unused) = now.take_unused() {
            drop(sorting);
            // SAFETY: when it was decided all pieces ever cut from it were counted [M4]; since then `sort` and `fill` have
            // dropped each of them that they met, and none is left. It is not among the chunks, so that nobody cuts more, and
            // is of this meter.
            unsafe { unused.free(&self.meter) };
        } else if let Some(ended) = sorting.take() {
            let (mut used, taken) = ended.into_chunks();
            self.chunks.lock().put_back(&mut used, taken);
            // Relaxed: advice.
            self.is_releasing.store(false, Ordering::Relaxed);
            // First: who has the next lock may wait for this one.
            drop(sorting);
            // While pieces were taken out few were there, which says nothing of how many are used.
            self.surplus.lock().begin_anew();
            self.take_fewest();
        }
        true
    }

    /// Does what is to be done when pieces have been returned: they come back to the allocator little by little, where many
    /// more are free than in use.
    fn tend(&self, due: Due) {
        if due == Due::Nothing {
            return;
        }
        // Relaxed: advice.
        if self.is_releasing.load(Ordering::Relaxed) {
            if let Some(sorting) = self.sorting.try_lock() {
                self.release_some(sorting);
            }
        } else if due == Due::Look {
            let Some(mut surplus) = self.surplus.try_lock() else { return };
            let idle = || self.take_fewest().saturating_mul(self.piece());
            if surplus.is_worth_it(idle, self.meter.bytes()) && self.begin_release() {
                surplus.note_release();
            }
        }
    }

    /// How few pieces have been free at any time since this was last asked, but for those that segments have at hand.
    fn take_fewest(&self) -> usize {
        self.returned.iter().map(|returned| returned.lock().take_fewest()).sum()
    }

    /// Returns free pieces, some at a time.
    fn give_back(&self, mut pieces: Chain) {
        while pieces.len() > 0 {
            let some = pieces.split();
            self.returned[shard()].lock().push_chain(some);
        }
    }
}

impl<T> Drop for Slab<T> {
    fn drop(&mut self) {
        // SAFETY: as below.
        unsafe { self.homes.free(&self.meter) };
        let unfinished = self.sorting.lock().take();
        let mut chunks = self.chunks.lock();
        if let Some(unfinished) = unfinished {
            let (mut left, taken) = unfinished.into_chunks();
            chunks.put_back(&mut left, taken);
        }
        // SAFETY: the map that used them is gone, and its entries with it.
        unsafe { chunks.free(&self.meter) };
    }
}

/// An entry that has no piece; its tail follows.
#[repr(C)]
struct Boxed<T> {
    entry: MaybeUninit<T>,
    /// A `Slab<T>`.
    slab: NonNull<()>,
}

/// Where this thread returns pieces to.
fn shard() -> usize {
    seats::number() % PLACES
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use std::collections::HashSet;

    use super::*;

    type Pair = (u64, u64);

    fn allocate(slab: &Slab<Pair>, magazine: &mut Magazine, n: usize) -> Vec<NonNull<Pair>> {
        (0..n).map(|_| slab.allocate(magazine, Digest::ZERO, Within::Page).expect("memory")).collect()
    }

    fn free(pieces: impl IntoIterator<Item = NonNull<Pair>>) {
        // SAFETY: of the slab, without anything in them, and nobody else's.
        pieces.into_iter().for_each(|piece| unsafe { Slab::free(piece) });
    }

    /// Else each release would leave as much memory behind as is used while it lasts.
    #[test]
    fn who_allocates_during_a_release_takes_what_is_free() {
        let slab = Slab::<Pair>::new(&Shape::for_cache(1, 100).expect("small"), 0, 0);
        let mut magazine = Magazine::default();
        // A whole magazine more: the last chunk's rest, which is not sorted, is used up.
        let all = allocate(&slab, &mut magazine, 20_000);
        let rest = core::iter::repeat_with(|| {
            slab.allocate(&mut magazine, Digest::ZERO, Within::Page).expect("memory")
        });
        let before = slab.meter.bytes();
        let rest: Vec<_> = rest.take_while(|_| slab.meter.bytes() == before).collect();
        let before = slab.meter.bytes();
        let kept: Vec<_> = all.iter().copied().step_by(7000).collect();
        free(all.iter().copied().filter(|piece| !kept.contains(piece)));
        slab.begin_release();
        let step = || slab.release_some(slab.sorting.lock());
        while slab.sorting.lock().as_ref().expect("it has begun").place().is_some() {
            step();
        }
        let mut during = allocate(&slab, &mut magazine, 10_000);
        assert_eq!(slab.meter.bytes(), before, "new chunks, though pieces are free");
        while step() {}
        let after = slab.meter.bytes();
        assert!(after < before * 2 / 3 && after > before / 3, "of {before} bytes {after} are left");
        during.extend(allocate(&slab, &mut magazine, 20_000));
        during.extend(kept.iter().copied());
        let apart: HashSet<_> = during.iter().chain(&rest).collect();
        assert_eq!(apart.len(), during.len() + rest.len(), "one piece twice");
        free(during.into_iter().chain(rest));
        slab.release(Chain::default());
        assert!(slab.meter.bytes() < before / 10, "{} bytes are left", slab.meter.bytes());
    }

    /// What the segments had is not lost then.
    #[test]
    fn who_finds_another_s_release_brings_it_to_its_end_and_does_his() {
        let slab = Slab::<Pair>::new(&Shape::for_cache(1, 100).expect("small"), 0, 0);
        let mut reserves = Chain::default();
        let all = allocate(&slab, &mut Magazine::default(), 20_000);
        all.into_iter().for_each(|piece| reserves.push(piece.cast()));
        let before = slab.meter.bytes();
        slab.begin_release();
        slab.release(reserves);
        assert!(slab.meter.bytes() < before / 10, "{} bytes are left of {before}", slab.meter.bytes());
        assert!(!slab.release_some(slab.sorting.lock()));
    }

    /// Also alone, as entries with a listener are.
    #[test]
    fn what_is_idle_for_long_goes_little_by_little_while_others_come_and_go() {
        for alone in [false, true] {
            let slab = Slab::<Pair>::new(&Shape::for_cache(1, 100).expect("small"), 0, 0);
            let mut magazine = Magazine::default();
            let all = allocate(&slab, &mut magazine, 200_000);
            let (kept, others) = all.split_at(100);
            free(others.iter().copied());
            let (before, mut turns) = (slab.meter.bytes(), 0);
            while slab.meter.bytes() > before / 4 {
                slab.surplus.lock().age();
                let some = allocate(&slab, &mut magazine, 100);
                if alone {
                    free(some);
                } else {
                    for some in some.chunks(20) {
                        let mut magazine = Box::new(Magazine::default());
                        some.iter().for_each(|piece| magazine.push(piece.cast()));
                        // SAFETY: of the slab, without anything in them, and nobody else's.
                        unsafe { Slab::<Pair>::free_all(magazine) };
                    }
                }
                turns += 1;
                assert!(turns < 10_000, "{} bytes of {before} are left", slab.meter.bytes());
            }
            assert!(turns > 50, "all at once");
            free(kept.iter().copied());
        }
    }
}
