//! Home cells for models: in maps under loom each entry has a box, so home cells are put to work on their own.

use core::ptr::NonNull;

use super::homes::{Homes, Within};
use super::page::begin_of;
use crate::engine::Meter;
use crate::hash::Digest;
use crate::sync::{Mutex, Ordering};

/// Two pages of seven cells.
#[derive(Debug)]
pub struct HomeCells {
    homes: Homes,
    meter: Meter,
    /// What the segments' locks are to a map.
    segments: [Mutex<()>; 2],
}

impl HomeCells {
    /// How many cells there are in a page.
    pub const CELLS: usize = 7;
    const PIECE: usize = 512;
    const SLAB: NonNull<()> = NonNull::dangling();

    /// Home cells that are all free.
    #[expect(clippy::new_without_default, reason = "the homes have none either")]
    pub fn new() -> Self {
        let meter = Meter::new();
        let homes = Homes::new(Self::CELLS + 1, Self::PIECE, Some(true), false, &meter);
        HomeCells { homes, meter, segments: Default::default() }
    }

    /// Takes a cell of one of the pages under the lock of one of the segments; fails the model if its page does not say whose
    /// it is.
    pub fn take(&self, segment: usize, page: u32) -> Option<NonNull<u8>> {
        // Prefixes select pages as they do segments.
        let digest =
            (0..).map(Digest::new).find(|digest| digest.prefix() >> 31 == page).expect("there are more");
        let lock = self.segments[segment].lock();
        let cell = self.homes.take(digest, Within::Page, Self::SLAB)?;
        drop(lock);
        // SAFETY: of a page.
        assert_eq!(unsafe { begin_of(cell) }.load(Ordering::Relaxed), Self::SLAB.as_ptr());
        Some(cell)
    }

    /// Gives a cell back.
    ///
    /// # Safety
    ///
    /// The caller has taken it.
    pub unsafe fn give(&self, cell: NonNull<u8>) {
        // SAFETY: the caller's.
        unsafe { self.homes.give(cell) };
    }

    /// Gives the memory back if no cell is in use. Returns whether it did so.
    pub fn release(&self) -> bool {
        let each_lock = || self.segments.iter().for_each(|segment| drop(segment.lock()));
        // SAFETY: whoever takes a cell has one of these locks.
        unsafe { self.homes.release(&self.meter, each_lock) }
    }
}

impl Drop for HomeCells {
    fn drop(&mut self) {
        // SAFETY: nobody else is left.
        unsafe { self.homes.free(&self.meter) };
    }
}
