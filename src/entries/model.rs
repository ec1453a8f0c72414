//! Home cells as models see them: in maps under loom each entry has a box, so these are put to work by themselves.

use core::ptr::NonNull;

use super::homes::{Homes, begin_of};
use crate::engine::Meter;
use crate::hash::Digest;
use crate::sync::Ordering;

/// A page of seven cells.
#[derive(Debug)]
pub struct HomeCells {
    homes: Homes,
    meter: Meter,
}

impl HomeCells {
    /// How many there are.
    pub const CELLS: usize = 7;
    const PIECE: usize = 512;
    const SLAB: NonNull<()> = NonNull::dangling();

    /// All free.
    #[expect(clippy::new_without_default, reason = "the homes have none either")]
    pub fn new() -> Self {
        let meter = Meter::new();
        HomeCells { homes: Homes::new(1, Self::PIECE, Some(true), false, &meter), meter }
    }

    /// Takes a cell; fails the model if its page does not tell whose it is.
    pub fn take(&self, hash: u64) -> Option<NonNull<u8>> {
        let cell = self.homes.take(Digest::new(hash), Self::SLAB)?;
        // SAFETY: of a page.
        assert_eq!(unsafe { begin_of(cell) }.load(Ordering::Relaxed), Self::SLAB.as_ptr());
        Some(cell)
    }

    /// Gives one back.
    ///
    /// # Safety
    ///
    /// The caller has taken it.
    pub unsafe fn give(&self, cell: NonNull<u8>) {
        // SAFETY: the caller's.
        unsafe { self.homes.give(cell) };
    }

    /// Takes all for good if none is in use.
    pub fn close(&self) -> bool {
        self.homes.close()
    }
}

impl Drop for HomeCells {
    fn drop(&mut self) {
        // SAFETY: nobody else is left.
        unsafe { self.homes.free(&self.meter) };
    }
}
