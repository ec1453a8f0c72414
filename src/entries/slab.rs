//! Memory for entries: pieces of one size, cut from chunks, which go back when the map is shrunk or dropped, or little by
//! little when half of their pieces have been free for a second [M4]. What lies in the pieces is known to `entry_slab`.
//!
//! An entry of two words takes two words here and four from a general allocator; and entries lie close together, where huge
//! pages can back them. A piece is taken out of a magazine in the segment that the writer has locked [M1] and given back to a
//! place that threads mostly have to themselves [M3], from which the segments' magazines are filled, with as many as fit [M2].
//!
//! A chunk is made of pages; each begins with the address of its slab, so that the slab of a piece can be found from its
//! address.

use core::alloc::Layout;
use core::ptr::NonNull;

use std::sync::Arc;

use crossbeam_utils::CachePadded;

use super::chunks::{Chunks, Pieces};
use super::home_lines::HomeLines;
use super::homes::{Homes, Within};
use super::magazine::{Chain, Due, Magazine, Returned};
use super::page::begin_of;
use super::sorting::{MAGAZINES_A_STEP, PLACES, Sorting};
use super::surplus::Surplus;
use crate::engine::{Meter, Shape, try_box};
use crate::hash::Digest;
use crate::seats;
use crate::sync::{AtomicBool, Mutex, MutexGuard, Ordering};

/// Where pieces come from. Must not move, hence the `Arc`: pages hold its address.
pub(crate) struct Slab {
    /// So many threads can return pieces without meeting.
    returned: [CachePadded<Mutex<Returned>>; PLACES],
    chunks: Mutex<Chunks>,
    /// What is being released, step by step.
    sorting: Mutex<Option<Box<Sorting>>>,
    /// Whether anything is being released. Advice.
    is_releasing: AtomicBool,
    surplus: Mutex<Surplus>,
    meter: Meter,
    huge_pages: bool,
    homes: Homes,
    /// The layout of each piece; or of a box, if entries have boxes.
    layout: Layout,
}

impl Slab {
    /// An empty slab for pieces of this layout, of which so many are expected.
    pub(super) fn new(layout: Layout, shape: &Shape, pieces: usize) -> Arc<Self> {
        let meter = Meter::new();
        let homes = Homes::new(pieces, layout.size(), shape.home_cells, shape.huge_pages, &meter);
        Self::with_homes(layout, shape, homes, meter)
    }

    /// A slab from which no pieces come: it only knows the layout of boxes.
    pub(super) fn for_boxes(layout: Layout, shape: &Shape) -> Arc<Self> {
        Self::with_homes(layout, shape, Homes::none(), Meter::new())
    }

    fn with_homes(layout: Layout, shape: &Shape, homes: Homes, meter: Meter) -> Arc<Self> {
        Arc::new(Slab {
            returned: core::array::from_fn(|_| CachePadded::new(Mutex::new(Returned::default()))),
            chunks: Mutex::new(Chunks::default()),
            sorting: Mutex::new(None),
            is_releasing: AtomicBool::new(false),
            surplus: Mutex::new(Surplus::new()),
            meter,
            huge_pages: shape.huge_pages,
            homes,
            layout,
        })
    }

    /// The layout of each piece, or box.
    #[inline]
    pub(super) fn layout(&self) -> Layout {
        self.layout
    }

    /// Bytes of all chunks and home cells, and of what records which pieces are free.
    pub(super) fn memory_usage(&self) -> usize {
        let lists: usize = self.returned.iter().map(|returned| returned.lock().memory_usage()).sum();
        let chunks = self.sorting.lock().as_ref().map_or(0, |sorting| sorting.memory_usage());
        size_of::<Self>() + self.meter.bytes() + lists + chunks
    }

    /// The pieces that are cut from chunks: after the page's header, which is the slab's address.
    fn pieces(&self) -> Pieces {
        let first = size_of::<NonNull<Self>>().next_multiple_of(self.layout.align());
        Pieces {
            slab: NonNull::from(self).cast(),
            first,
            bytes: self.layout.size(),
            huge_pages: self.huge_pages,
        }
    }

    /// Where entries are at home.
    pub(super) fn home_lines(&self) -> HomeLines {
        self.homes.lines()
    }

    /// Whether there are home cells: [`Slab::allocate`] needs digests then.
    pub(super) fn has_home_cells(&self) -> bool {
        self.homes.has_cells()
    }

    /// A piece, uninitialized; `None` if there is no memory [M1]. Called under the lock of the digest's segment, whose magazine
    /// it is, or when nobody else uses that segment [W7].
    #[inline]
    pub(super) fn allocate(
        &self,
        magazine: &mut Magazine,
        digest: Digest,
        within: Within,
    ) -> Option<NonNull<u8>> {
        if within != Within::Nowhere {
            if let Some(cell) = self.homes.take(digest, within, NonNull::from(self).cast()) {
                return Some(cell);
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
    /// It came from `allocate` of a slab that still lives; what was in it has been moved out or dropped; nobody uses it any
    /// more.
    #[inline]
    pub(super) unsafe fn free(piece: NonNull<u8>) {
        // SAFETY: the caller's.
        let slab = unsafe { Self::of(piece).as_ref() };
        if slab.homes.has(piece) {
            // SAFETY: the caller's.
            unsafe { slab.homes.give(piece) };
        } else {
            let due = slab.returned[shard()].lock().push(piece.cast());
            slab.tend(due);
        }
    }

    /// Gives pieces back, all of one slab, without reading anything of them except the first one's page and the marks of cells.
    ///
    /// # Safety
    ///
    /// As for `free`, of each of them.
    pub(super) unsafe fn free_all(mut pieces: Box<Magazine>) {
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

    /// The slab of a piece.
    ///
    /// # Safety
    ///
    /// As for `free`.
    #[inline]
    unsafe fn of(piece: NonNull<u8>) -> NonNull<Self> {
        // Relaxed: `Chunks::begin_page` has written it before the piece was handed on, by a lock or with an entry's pointer;
        // for cells see `homes`.
        // SAFETY: pieces lie in pages that begin with the address of their slab, which is not null.
        unsafe { NonNull::new_unchecked(begin_of(piece).load(Ordering::Relaxed).cast()) }
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
            magazine.push(unsafe { first.add(i * self.layout.size()) }.cast());
        }
        Some(())
    }

    /// Gives the home cells' memory back if none is in use [M4]. Returns whether it was given back now.
    ///
    /// # Safety
    ///
    /// Threads that allocate hold a lock meanwhile, and `wait` acquires each of these locks.
    pub(super) unsafe fn release_homes(&self, wait: impl FnOnce()) -> bool {
        // SAFETY: the caller's.
        unsafe { self.homes.release(&self.meter, wait) }
    }

    /// Gives chunks of which no piece is in use back to the allocator [M4], and has writers empty those of which few are.
    /// `reserves` has the pieces of the segments.
    ///
    /// Looks at all free pieces twice, a few at a time; does nothing if there is no memory for a list of the chunks.
    pub(super) fn release(&self, reserves: Chain) {
        self.give_back(reserves);
        // A release that has already begun may not know of all pieces that are free now, and must not go on to empty chunks.
        loop {
            let mut sorting = self.sorting.lock();
            let Some(begun) = sorting.as_mut() else { break };
            begun.give_up();
            self.release_some(sorting);
        }
        self.begin_release();
        while self.release_some(self.sorting.lock()) {}
    }

    /// Takes the chunks out, to be sorted. Returns false if that has been done already, or if there is no memory for it.
    fn begin_release(&self) -> bool {
        let mut sorting = self.sorting.lock();
        if let Some(sorting) = sorting.as_mut() {
            // Relaxed: advice.
            if !self.is_releasing.load(Ordering::Relaxed) {
                // It rests: the withheld pieces come back first, if there are any left.
                sorting.give_up();
                // Relaxed: advice.
                self.is_releasing.store(true, Ordering::Relaxed);
            }
            return false;
        }
        let Ok(mut new) = try_box(Sorting::default()) else { return false };
        let Some(chunks) = self.chunks.lock().take() else { return false };
        *new = Sorting::new(chunks);
        *sorting = Some(new);
        // Relaxed: advice.
        self.is_releasing.store(true, Ordering::Relaxed);
        true
    }

    /// Does one step of the release that has begun, whoever began it; false if there is none, or if it waits for pieces that
    /// writers return.
    fn release_some(&self, mut sorting: MutexGuard<'_, Option<Box<Sorting>>>) -> bool {
        let Some(now) = sorting.as_mut() else { return false };
        if now.place().is_some() {
            for _ in 0..MAGAZINES_A_STEP {
                let mut magazine = Magazine::default();
                self.fill_to_count(&mut magazine, now);
                now.count(&mut magazine);
            }
        } else if now.decide() {
            // A step of its own: schedules have a pause before it.
        } else if let Some(used) = now.sort() {
            self.give_back(used);
        } else if let Some(unused) = now.take_unused() {
            drop(sorting);
            // SAFETY: when all were counted, the first time or anew, all pieces ever cut from the chunk were among them, or
            // withheld [M4]; since then `sort` and `fill` have dropped each of them that they met, and none is left. The chunk
            // is not among `chunks`, so nobody cuts more pieces from it, and it is of this meter.
            unsafe { unused.free(&self.meter) };
        } else if now.is_emptying() {
            if now.wants_recount() {
                now.recount();
                return true;
            }
            let mut magazine = Magazine::default();
            // The pieces that were returned last, mostly by this thread, just now.
            self.returned[shard()].lock().fill(&mut magazine);
            let (others, unused) = now.withhold(&mut magazine);
            drop(sorting);
            self.give_back(others);
            if let Some(unused) = unused {
                // SAFETY: all pieces ever cut from it have been counted, or have come here since, and are withheld [M4]: nobody
                // has one.
                unsafe { unused.free(&self.meter) };
            }
            return false;
        } else if now.is_resting() {
            // Relaxed: advice.
            self.is_releasing.store(false, Ordering::Relaxed);
            drop(sorting);
            self.surplus.lock().begin_anew();
            return false;
        } else if let Some(withheld) = now.take_withheld() {
            self.give_back(withheld);
        } else if let Some(ended) = sorting.take() {
            let (mut used, taken) = ended.into_chunks();
            self.chunks.lock().put_back(&mut used, taken);
            // Relaxed: advice.
            self.is_releasing.store(false, Ordering::Relaxed);
            // This comes first: the holder of the next lock may be waiting for this one.
            drop(sorting);
            self.surplus.lock().begin_anew();
        }
        true
    }

    /// Fills a magazine with returned pieces that are to be counted, if there are any left.
    fn fill_to_count(&self, magazine: &mut Magazine, sorting: &mut Sorting) {
        while let Some(place) = sorting.place() {
            if self.returned[place].lock().fill(magazine) {
                return;
            }
            sorting.note_empty(place);
        }
    }

    /// Does what is due when pieces have been returned: they go back to the allocator little by little if half of them are
    /// free.
    #[inline]
    fn tend(&self, due: Due) {
        if due != Due::Nothing {
            self.tend_now(due);
        }
    }

    #[cold]
    fn tend_now(&self, due: Due) {
        // Relaxed: advice.
        if self.is_releasing.load(Ordering::Relaxed) {
            if let Some(sorting) = self.sorting.try_lock() {
                self.release_some(sorting);
            }
        } else if due == Due::Sample {
            let Some(mut surplus) = self.surplus.try_lock() else { return };
            let size = self.layout.size();
            let withheld = || self.withheld().saturating_mul(size);
            if surplus.is_worth_it(self.returned() * size, withheld, self.meter.bytes())
                && self.begin_release()
            {
                surplus.note_release();
            }
        }
    }

    /// How many pieces the places have: those that are free, except for those that segments have at hand and the withheld
    /// ones. Not of one moment, if pieces come and go.
    fn returned(&self) -> usize {
        self.returned.iter().map(|returned| returned.lock().len()).sum()
    }

    /// How many free pieces are withheld [M4].
    fn withheld(&self) -> usize {
        self.sorting.lock().as_ref().map_or(0, |sorting| sorting.withheld())
    }

    /// Returns free pieces, a few at a time.
    fn give_back(&self, mut pieces: Chain) {
        while pieces.len() > 0 {
            let some = pieces.split();
            self.returned[shard()].lock().push_chain(some);
        }
    }
}

impl Drop for Slab {
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

/// The place that this thread returns pieces to.
fn shard() -> usize {
    seats::number() % PLACES
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
