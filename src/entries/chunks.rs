//! [`Chunks`]: the memory that a slab has from the allocator, and what has not been cut from it yet.

use core::alloc::Layout;
use core::ptr::NonNull;

use super::chunk::Chunk;
use super::magazine::Magazine;
use super::page::{Begin, PAGE};
use crate::engine::Meter;

/// Pages in every chunk but the first, which is one page.
const CHUNK: usize = 4;
/// Pages in a chunk with some huge pages in it. It does not begin with one: to align a huge page, allocators waste up to as
/// much again.
const HUGE_CHUNK: usize = 1024;
/// Bytes at a chunk's end that are not requested: room for the allocator's own header, so that aligned chunks can lie one after
/// the other.
const SLACK: usize = 64;
/// The pieces that a slab cuts from its chunks.
#[derive(Clone, Copy)]
pub(super) struct Pieces {
    /// The slab's address, with which pages begin.
    pub(super) slab: NonNull<()>,
    /// Where the first piece begins in its page: after that address.
    pub(super) first: usize,
    /// The size of each piece.
    pub(super) bytes: usize,
    /// Whether chunks are to be made of huge pages.
    pub(super) huge_pages: bool,
}

/// The rest of a page that has been begun.
struct Uncut {
    /// The first piece, if there is any.
    next: NonNull<u8>,
    /// How many there are.
    pieces: usize,
}

impl Default for Uncut {
    fn default() -> Self {
        Uncut { next: NonNull::dangling(), pieces: 0 }
    }
}

/// All chunks; the last one may have a page that is cut in part, and pages that are still whole.
#[derive(Default)]
pub(super) struct Chunks {
    all: Vec<Chunk>,
    uncut: Uncut,
    whole_pages: usize,
    /// How many chunks have been taken out: there is always room in `all` for them to come back.
    away: usize,
}

// SAFETY: the chunks go with the slab.
unsafe impl Send for Chunks {}

impl Chunks {
    /// Whether pieces can be cut without a new chunk.
    pub(super) fn has_rest(&self) -> bool {
        self.uncut.pieces > 0 || self.whole_pages > 0
    }

    /// Cuts up to a magazine of pieces off a page, of a new chunk if nothing is left of the last. Returns where they begin, and
    /// how many they are. Nobody else has them.
    pub(super) fn cut(&mut self, of: Pieces, meter: &Meter) -> Option<(NonNull<u8>, usize)> {
        if self.uncut.pieces == 0 {
            self.begin_page(of, meter)?;
        }
        let uncut = &mut self.uncut;
        let (first, n) = (uncut.next, uncut.pieces.min(Magazine::ROOM));
        // SAFETY: that many pieces are left in the page. Aligned: `first` and `bytes` are multiples of the alignment.
        uncut.next = unsafe { first.add(n * of.bytes) };
        uncut.pieces -= n;
        self.all.last_mut()?.pieces += n;
        Some((first, n))
    }

    /// Begins a page, of a new chunk if the last has no whole page left.
    fn begin_page(&mut self, of: Pieces, meter: &Meter) -> Option<()> {
        if self.whole_pages == 0 {
            let pages = match self.all.len() {
                0 => 1,
                _ if of.huge_pages => HUGE_CHUNK,
                _ => CHUNK,
            };
            let layout = Layout::from_size_align(PAGE * pages - SLACK, PAGE).ok()?;
            let room = self.away + 1;
            self.all.try_reserve(room).ok()?;
            let base = if pages == HUGE_CHUNK {
                meter.allocate_huge(layout)?
            } else {
                meter.allocate_uninit(layout)?
            };
            self.all.push(Chunk::new(base, layout));
            self.whole_pages = pages;
        }
        let rest = self.whole_pages * PAGE;
        self.whole_pages -= 1;
        let chunk = self.all.last()?;
        let start = chunk.layout.size().next_multiple_of(PAGE) - rest;
        let len = PAGE.min(chunk.layout.size() - start);
        // SAFETY: within the chunk.
        let page = unsafe { chunk.base.add(start) };
        // SAFETY: the page is ours alone, and aligned for an address.
        unsafe { page.cast::<Begin>().write(Begin::new(of.slab.as_ptr())) };
        // SAFETY: within the page: `first` is a few words.
        let next = unsafe { page.add(of.first) };
        self.uncut = Uncut { next, pieces: (len - of.first) / of.bytes };
        // The largest entry and its tail are a fraction of a page.
        debug_assert!(self.uncut.pieces > 0);
        Some(())
    }

    /// Takes out all chunks, except the last if pieces can still be cut from it. `None` if there is no memory for a list.
    pub(super) fn take(&mut self) -> Option<Vec<Chunk>> {
        let mut taken = Vec::new();
        // Room for the chunk that stays, and for all to come back.
        taken.try_reserve_exact(self.all.len() + self.away).ok()?;
        core::mem::swap(&mut self.all, &mut taken);
        if self.has_rest() {
            self.all.extend(taken.pop());
        }
        self.away += taken.len();
        Some(taken)
    }

    /// Puts back the chunks that are left of the `taken` ones that were taken out.
    pub(super) fn put_back(&mut self, left: &mut Vec<Chunk>, taken: usize) {
        debug_assert!(self.all.capacity() - self.all.len() >= taken);
        self.away -= taken;
        // These come first: it is the last chunk that may have whole pages.
        let new = self.all.len();
        self.all.append(left);
        self.all.rotate_left(new);
    }

    /// Gives all chunks back to the allocator.
    ///
    /// # Safety
    ///
    /// Nobody uses their pieces any more; `meter` is that of each `cut`.
    pub(super) unsafe fn free(&mut self, meter: &Meter) {
        for chunk in self.all.drain(..) {
            // SAFETY: the caller's.
            unsafe { chunk.free(meter) };
        }
    }
}
