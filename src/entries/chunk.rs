//! [`Chunk`]: memory that a slab has from the allocator, with the knowledge that a [`Sorting`](super::sorting::Sorting) has of
//! its pieces.

use core::alloc::Layout;
use core::ptr::NonNull;

use super::magazine::Free;
use crate::engine::Meter;

/// What a sorting does with a chunk.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Fate {
    /// The chunk stays, and its free pieces are given away.
    Kept,
    /// Its free pieces are withheld, until all of its pieces are free.
    Emptied,
    /// The chunk was freed.
    Freed,
}

/// Memory from the allocator, and how many pieces have been cut from it.
#[derive(Debug)]
pub(super) struct Chunk {
    pub(super) base: NonNull<u8>,
    pub(super) layout: Layout,
    pub(super) pieces: usize,
    /// How many of them are known to be free.
    pub(super) free: usize,
    pub(super) fate: Fate,
    /// Free pieces that are withheld, each linked to the next.
    withheld: Option<NonNull<Free>>,
}

impl Chunk {
    /// A chunk from which nothing has been cut.
    pub(super) fn new(base: NonNull<u8>, layout: Layout) -> Self {
        Chunk { base, layout, pieces: 0, free: 0, fate: Fate::Kept, withheld: None }
    }

    /// Forgets what an earlier sorting knew.
    pub(super) fn begin_anew(&mut self) {
        debug_assert!(self.withheld.is_none() && self.fate != Fate::Freed);
        (self.free, self.fate) = (0, Fate::Kept);
    }

    /// How many pieces are in use, as far as is known.
    pub(super) fn used(&self) -> usize {
        self.pieces - self.free
    }

    /// Whether no piece is in use.
    pub(super) fn is_unused(&self) -> bool {
        self.free == self.pieces
    }

    /// Whether a piece lies in the chunk.
    pub(super) fn has(&self, piece: NonNull<Free>) -> bool {
        piece.addr().get().wrapping_sub(self.base.addr().get()) < self.layout.size()
    }

    /// Withholds a free piece of the chunk.
    pub(super) fn withhold(&mut self, piece: NonNull<Free>) {
        Free::link(piece, &mut self.withheld);
    }

    /// Takes a withheld piece out.
    pub(super) fn pop_withheld(&mut self) -> Option<NonNull<Free>> {
        Free::unlink(&mut self.withheld)
    }

    /// Takes the chunk out, for the caller to free. What remains only says that it was freed.
    pub(super) fn take(&mut self) -> Chunk {
        debug_assert!(self.is_unused());
        (self.withheld, self.fate) = (None, Fate::Freed);
        Chunk { pieces: self.pieces, ..Chunk::new(self.base, self.layout) }
    }

    /// Gives the chunk back to the allocator.
    ///
    /// # Safety
    ///
    /// Nobody uses its pieces any more; `meter` is the one it was allocated with.
    pub(super) unsafe fn free(self, meter: &Meter) {
        // SAFETY: the caller's.
        unsafe { meter.free(self.base, self.layout) };
    }
}
