//! Home cells: memory for entries in places that their keys select.
//!
//! A look-up waits for the tags, then for the slot that they show, then for the entry behind it. So a map that is made for many
//! entries has cells for them side by side, and the digest of a key says which are its *home*: those of one cache line. A new
//! entry is put there if one of them is free, else where most are free in the same page, and else wherever the slab has a
//! piece. A look-up that finds a key's tag starts loading its home at once, while it waits for the slot [M5]. That is a hint:
//! an entry is reached through its slot, wherever it lies, and displacing the slot's item does not move the entry.
//!
//! There are more cells than entries: a replaced entry keeps its cell until no reader is left, and meanwhile its successor
//! wants another cell of the same line. If none is free, the successor takes one of the slab's pieces, which have been in use
//! lately: a cell elsewhere is far from the caches, and nobody looks for the entry there. So the other cells of the page stay
//! free for entries that are at home there. A slab has at most one region of cells, which is freed as a whole when all are free
//! [M4].

use core::alloc::Layout;
use core::ptr::NonNull;

use super::home_lines::{HomeLines, page_of};
#[cfg(any(loom, test))]
use super::page::Begin;
use super::page::{PAGE, begin_of};
use crate::engine::{Block, Meter, advise_huge_pages};
use crate::hash::{Digest, scale};
use crate::sync::{AtomicBool, AtomicU64, Mutex, Ordering, Watch, init_zeroed, step};

/// Cells for each entry that the map is made for. With 1.25, 87% of new entries of two words are at home; with 1.03 it would be
/// three quarters, with 1.4 90%.
const CELLS_PER_ENTRY: f64 = 1.25;
/// Below so many bytes there are no cells by default: there is no long wait for what the processor's caches hold, and a cell
/// costs one atomic operation to take and another to give back.
const FEWEST_BYTES: usize = 8 << 20;
/// Nor are there cells by default if fewer than this fit a line: larger ones cost a fifth to a third more memory of the whole
/// map, not a seventh.
const FEWEST_SIDE_BY_SIDE: usize = 4;
/// Bytes of a cache line.
const LINE: usize = 64;
/// The bit of a word of marks that says that its page begins with the slab's address; the cell it stands for, the first of
/// 64, is not used.
const BEGUN: u64 = 1;

/// How far from its home a new entry may take a cell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Within {
    /// No cell at all: there are no home cells, or none is wanted.
    Nowhere,
    /// Only at its home: the entry takes the place of another, see above.
    Home,
    /// Anywhere in its page: otherwise a map made for so many entries would need memory for more.
    Page,
    /// The same, and nobody else uses the map, nor gives back what was in it [W7].
    PageAlone,
}

/// One region of cells, or none.
#[derive(Debug)]
pub(super) struct Homes {
    base: NonNull<u8>,
    /// One bit per cell, set while that is taken; some words per page.
    marks: NonNull<AtomicU64>,
    /// 0: there are no homes.
    pages: u32,
    /// Cells in each page, including those that are not used.
    cells: u32,
    /// Bytes of a cell.
    piece: u32,
    /// Cells that begin in one cache line: a power of two.
    side_by_side: u32,
    /// That many one bits.
    group: u64,
    /// Set when nobody takes a cell any more: none was in use, or there never were any.
    closed: AtomicBool,
    /// The memory, until it is freed. Whoever closes holds the lock.
    memory: Mutex<Option<Memory>>,
    marks_watch: Watch,
}

// SAFETY: the cells and their marks go with the homes; marks are atomic, and a cell belongs to whoever took it.
unsafe impl Send for Homes {}
// SAFETY: as above.
unsafe impl Sync for Homes {}

/// What the allocator gave.
#[derive(Debug)]
struct Memory {
    region: Block,
    marks: Block,
}

impl Homes {
    /// No homes.
    pub(super) fn none() -> Self {
        Homes {
            base: NonNull::dangling(),
            marks: NonNull::dangling(),
            pages: 0,
            cells: 0,
            piece: 0,
            side_by_side: 1,
            group: 1,
            closed: AtomicBool::new(true),
            memory: Mutex::new(None),
            marks_watch: Watch::default(),
        }
    }

    /// Homes for so many entries of `piece` bytes, a multiple of their alignment; if `wanted` does not say whether there are to
    /// be any, only if the entries are many. There are none if there is no memory.
    pub(super) fn new(
        entries: usize,
        piece: usize,
        wanted: Option<bool>,
        huge_pages: bool,
        meter: &Meter,
    ) -> Self {
        debug_assert!(piece >= size_of::<usize>() && PAGE / piece > 1);
        let bytes = entries as f64 * CELLS_PER_ENTRY * piece as f64;
        if !wanted.unwrap_or(bytes >= FEWEST_BYTES as f64 && LINE / piece >= FEWEST_SIDE_BY_SIDE) {
            return Self::none();
        }
        Self::allocate(bytes, piece, huge_pages, meter).unwrap_or_else(Self::none)
    }

    fn allocate(bytes: f64, piece: usize, huge_pages: bool, meter: &Meter) -> Option<Self> {
        let cells = PAGE / piece;
        // 8, 4, 2 or 1, as pieces are whole words.
        let side_by_side = (LINE / piece).max(1) as u32;
        debug_assert!(side_by_side.is_power_of_two());
        let usable = cells - cells.div_ceil(64);
        let pages = (bytes / (usable * piece) as f64).ceil();
        let layout = Layout::from_size_align((pages as usize).checked_mul(PAGE)?, PAGE).ok()?;
        let pages = u32::try_from(pages as usize).ok().filter(|&pages| pages > 0)?;
        let words = pages as usize * cells.div_ceil(64);
        let marks = Block::allocate(Layout::array::<AtomicU64>(words).ok()?, meter)?;
        // Zeroed without being touched: what pages begin with is shared before it is stored for the first time.
        let Some(region) = Block::allocate(layout, meter) else {
            // SAFETY: just allocated, and nobody knows it.
            unsafe { marks.free(meter) };
            return None;
        };
        let base = region.base();
        if huge_pages {
            advise_huge_pages(base, layout.size());
        }
        let first_mark = marks.base().cast::<AtomicU64>();
        // SAFETY: zeroed memory for that many, ours.
        unsafe { init_zeroed(first_mark.as_ptr(), words) };
        #[cfg(loom)]
        for page in 0..pages as usize {
            // SAFETY: our own memory.
            unsafe { base.add(page * PAGE).cast::<Begin>().write(Begin::new(core::ptr::null_mut())) };
        }
        Some(Homes {
            base,
            marks: first_mark,
            pages,
            cells: cells as u32,
            piece: piece as u32,
            side_by_side,
            group: (1 << side_by_side) - 1,
            closed: AtomicBool::new(false),
            memory: Mutex::new(Some(Memory { region, marks })),
            marks_watch: Watch::default(),
        })
    }

    /// Words of marks per page.
    fn words(&self) -> u32 {
        self.cells.div_ceil(64)
    }

    /// The page and the cell that a digest selects.
    #[inline(always)]
    fn home(&self, digest: Digest) -> (u32, u32) {
        let (page, rest) = page_of(digest, self.pages);
        (page, scale(rest, self.cells))
    }

    /// Where homes are.
    pub(super) fn lines(&self) -> HomeLines {
        HomeLines::new(self.base.as_ptr(), self.pages, self.cells * self.piece)
    }

    /// Takes a free cell at a digest's home, or, if none is free there and `within` permits, elsewhere in that page; `None` if
    /// there is none. The slab has this address. Called under the lock of the digest's segment, or when nobody else uses that
    /// segment [W7].
    #[inline]
    pub(super) fn take(&self, digest: Digest, within: Within, slab: NonNull<()>) -> Option<NonNull<u8>> {
        // Relaxed: whoever frees the region has held the lock of every segment since it was closed [M4].
        if self.closed.load(Ordering::Relaxed) { None } else { self.take_near(digest, within, slab) }
    }

    #[inline(never)]
    fn take_near(&self, digest: Digest, within: Within, slab: NonNull<()>) -> Option<NonNull<u8>> {
        let (page, cell) = self.home(digest);
        let home = self.group << ((cell % 64) & !(self.side_by_side - 1));
        let word = cell / 64;
        let alone = within == Within::PageAlone;
        let at_home = self.take_of(page, word, slab, alone, |free| free & home);
        if at_home.is_some() || within == Within::Home {
            return at_home;
        }
        self.take_abroad(page, word, slab, alone)
    }

    /// Takes a free cell of a page, of those that a word of marks stands for, or the next word, and so on; in a line with at
    /// least as many free cells as any other of these: there it is missed least by entries that are at home.
    fn take_abroad(&self, page: u32, word: u32, slab: NonNull<()>, alone: bool) -> Option<NonNull<u8>> {
        let mut words = (word..self.words()).chain(0..word);
        words.find_map(|word| self.take_of(page, word, slab, alone, |free| self.roomiest_line(free)))
    }

    /// The free cells of the first line that has the most free cells, among those that one word of marks stands for.
    #[inline]
    fn roomiest_line(&self, free: u64) -> u64 {
        // How many are free in each line, side by side: the first steps of counting a word's bits.
        let mut counts = free;
        if self.side_by_side >= 2 {
            counts -= counts >> 1 & 0x5555_5555_5555_5555;
        }
        if self.side_by_side >= 4 {
            counts = (counts & 0x3333_3333_3333_3333) + (counts >> 2 & 0x3333_3333_3333_3333);
        }
        if self.side_by_side >= 8 {
            counts = (counts + (counts >> 4)) & 0x0F0F_0F0F_0F0F_0F0F;
        }
        // A one in each line. Where `room` cells are free, the sum has the bit of `side_by_side`; it is less than twice that.
        let ones = !0 / self.group;
        let with_room = |room| {
            let sums = counts + u64::from(self.side_by_side - room) * ones;
            let roomy = sums & (u64::from(self.side_by_side) * ones);
            (roomy != 0).then(|| roomy.trailing_zeros() & !(self.side_by_side - 1))
        };
        let first = (1..=self.side_by_side).rev().find_map(with_room);
        first.map_or(0, |first| free & self.group << first)
    }

    /// Takes the first of the cells that `choose` selects from the free ones that one word of marks stands for.
    #[inline]
    fn take_of(
        &self,
        page: u32,
        word: u32,
        slab: NonNull<()>,
        alone: bool,
        choose: impl Fn(u64) -> u64,
    ) -> Option<NonNull<u8>> {
        let mark = self.mark(page, word);
        loop {
            // Relaxed: what counts is what the exchange finds.
            let taken = mark.load(Ordering::Relaxed);
            let chosen = choose(!taken & self.usable(word));
            if chosen == 0 {
                return None;
            }
            let bit = chosen.trailing_zeros();
            // SAFETY: within the region.
            let begin = unsafe { self.base.add(page as usize * PAGE) };
            if taken & BEGUN == 0 {
                // Relaxed: whoever looks for the slab has an entry of this page, and whoever took its cell has stored this, or
                // has learned below that it was stored.
                // SAFETY: the page's first cell, aligned for a pointer, was zeroed, and is not given to anybody.
                unsafe { begin_of(begin) }.store(slab.as_ptr(), Ordering::Relaxed);
            }
            if alone {
                // Relaxed: nobody else looks. A store is not waited for, unlike an exchange.
                mark.store(taken | 1 << bit | BEGUN, Ordering::Relaxed);
            } else {
                step();
                // Acquire: pairs with the Release in `give`: whoever had the cell is done with it. Release, and Acquire:
                // whoever finds the page begun sees its begin.
                let before = mark.fetch_or(1 << bit | BEGUN, Ordering::AcqRel);
                if before >> bit & 1 == 1 {
                    continue;
                }
            }
            // SAFETY: within the page: a cell.
            return Some(unsafe { begin.add(((word * 64 + bit) * self.piece) as usize) });
        }
    }

    /// Whether there are, or once were, any cells.
    #[inline]
    pub(super) fn has_cells(&self) -> bool {
        self.pages > 0
    }

    /// Whether a piece of the slab, which is in use, is a cell of ours.
    #[inline]
    pub(super) fn has(&self, piece: NonNull<u8>) -> bool {
        // Relaxed: a piece of another chunk lies there only if our memory was freed before that was allocated, and whoever has
        // the piece comes after both.
        let offset = piece.addr().get().wrapping_sub(self.base.addr().get());
        offset < self.pages as usize * PAGE && !self.closed.load(Ordering::Relaxed)
    }

    /// Gives a cell back.
    ///
    /// # Safety
    ///
    /// It came from `take`, and whoever calls had it.
    #[inline]
    pub(super) unsafe fn give(&self, cell: NonNull<u8>) {
        let offset = cell.addr().get() - self.base.addr().get();
        let (page, cell) = ((offset / PAGE) as u32, (offset % PAGE) as u32 / self.piece);
        // Release: pairs with the Acquire in `take_of`, and with `close`'s.
        let before = self.mark(page, cell / 64).fetch_and(!(1 << (cell % 64)), Ordering::Release);
        debug_assert!(before >> (cell % 64) & 1 == 1, "a free cell was given back");
    }

    /// Gives the memory back if no cell is in use: takes all cells for good, has `wait` wait for threads that have not seen
    /// that, and frees the memory [M4]. Returns whether that was done now.
    ///
    /// # Safety
    ///
    /// Threads that take cells hold a lock meanwhile, and `wait` acquires each of these locks.
    pub(super) unsafe fn release(&self, meter: &Meter, wait: impl FnOnce()) -> bool {
        let closed = self.close();
        if closed {
            wait();
            // SAFETY: closed; whoever takes a cell holds a lock that `wait` has held before, and has seen that the region is
            // closed: Relaxed.
            unsafe { self.free(meter) };
        }
        closed
    }

    /// Takes all cells for good if none is in use: then nobody has one, and nobody will get one.
    fn close(&self) -> bool {
        // Held to the end: if several threads close at the same time, the others wait, and touch no marks after these have been
        // freed.
        let _memory = self.memory.lock();
        // Relaxed: stored under this lock.
        if self.closed.load(Ordering::Relaxed) {
            return false;
        }
        let words = || (0..self.pages).flat_map(|page| (0..self.words()).map(move |word| (page, word)));
        // Relaxed: what counts is what the exchanges find.
        let in_use = |(page, word)| self.mark(page, word).load(Ordering::Relaxed) & self.usable(word) != 0;
        if words().any(in_use) {
            return false;
        }
        step();
        for (done, (page, word)) in words().enumerate() {
            let all = self.usable(word) | BEGUN;
            let mark = self.mark(page, word);
            // Acquire: pairs with the Release in `give`.
            let take = |from| mark.compare_exchange(from, all, Ordering::Acquire, Ordering::Relaxed).is_ok();
            if !take(0) && !take(BEGUN) {
                for (page, word) in words().take(done) {
                    step();
                    // Release: as in `give`; and a thread that saw the page begun before, and finds it free again, sees its
                    // begin. BEGUN is cleared as well: the next thread that takes a cell says again whose the page is.
                    self.mark(page, word).store(0, Ordering::Release);
                }
                return false;
            }
            step();
        }
        // Relaxed: see `take`.
        self.closed.store(true, Ordering::Relaxed);
        true
    }

    /// Gives the memory back.
    ///
    /// # Safety
    ///
    /// Nobody has a cell, and nobody is about to take one.
    pub(super) unsafe fn free(&self, meter: &Meter) {
        if let Some(Memory { region, marks }) = self.memory.lock().take() {
            #[cfg(any(loom, shuttle))]
            self.marks_watch.free();
            // SAFETY: the caller's: nobody uses it.
            unsafe {
                region.free(meter);
                marks.free(meter);
            }
        }
    }

    /// The marks of up to 64 cells.
    #[inline(always)]
    fn mark(&self, page: u32, word: u32) -> &AtomicU64 {
        debug_assert!(page < self.pages && word < self.words());
        self.marks_watch.read();
        // SAFETY: that many have been made, and they live as long as somebody may take or give a cell; whoever closes holds the
        // lock of the memory, and has seen under it that they are not closed.
        unsafe { self.marks.add(page as usize * self.words() as usize + word as usize).as_ref() }
    }

    /// The cells that exist among those of a word.
    #[inline(always)]
    fn usable(&self, word: u32) -> u64 {
        let cells = self.cells - word * 64;
        let there = if cells >= 64 { !0 } else { (1 << cells) - 1 };
        there & !BEGUN
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
