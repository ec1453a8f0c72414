//! Segments and roots that have been replaced.
//!
//! They stay what they are, because late readers may still be at them, until they are used again [G1] or, under guards,
//! freed [G5]. The pool's lock is also that of the directory's entries [G2].

use core::ptr::NonNull;
use std::sync::Arc;

use super::memory::Meter;
use super::payload::Payload;
use super::root::{Root, free_root};
use super::segment::Segment;
use super::supply::Supply;

/// Segments and roots that are not current: kept for late readers [G3], and used again where the size fits.
pub(super) struct Pool<P: Payload> {
    shelves: Vec<Shelf<P>>,
    pub(super) roots: Vec<NonNull<Root<P>>>,
    /// How many segments are current.
    pub(super) live: usize,
    /// Memory for further segments.
    pub(super) supply: Supply,
}

/// Segments of one size; there are few sizes.
struct Shelf<P: Payload> {
    buckets: u32,
    segments: Vec<NonNull<Segment<P>>>,
}

impl<P: Payload> Default for Pool<P> {
    fn default() -> Self {
        Pool::of_live(0)
    }
}

// SAFETY: pointers to things that may themselves be sent and shared.
unsafe impl<P: Payload> Send for Pool<P> {}

impl<P: Payload> Pool<P> {
    /// An empty pool beside so many segments that are current.
    pub(super) fn of_live(live: usize) -> Self {
        Pool { shelves: Vec::new(), roots: Vec::new(), live, supply: Supply::default() }
    }

    /// Puts a segment that is not current away.
    pub(super) fn put(&mut self, segment: NonNull<Segment<P>>) {
        // SAFETY: pooled segments are alive, and so is this one.
        let buckets = unsafe { segment.as_ref() }.buckets().len();
        match self.shelves.iter_mut().find(|shelf| shelf.buckets == buckets) {
            Some(shelf) => shelf.segments.push(segment),
            None => self.shelves.push(Shelf { buckets, segments: vec![segment] }),
        }
    }

    /// Takes a segment of so many buckets out.
    pub(super) fn take(&mut self, buckets: u32) -> Option<NonNull<Segment<P>>> {
        self.shelves.iter_mut().find(|shelf| shelf.buckets == buckets)?.segments.pop()
    }

    /// Bytes of the pool's own lists.
    pub(super) fn memory_usage(&self) -> usize {
        let segments: usize = self.shelves.iter().map(|shelf| shelf.segments.capacity()).sum();
        let lists = (segments + self.roots.capacity()) * size_of::<usize>();
        lists + self.shelves.capacity() * size_of::<Shelf<P>>() + self.supply.memory_usage()
    }

    /// Frees all it holds.
    ///
    /// # Safety
    ///
    /// Nobody uses any of it any more.
    pub(super) unsafe fn free(self, meter: &Meter) {
        for segment in self.shelves.into_iter().flat_map(|shelf| shelf.segments) {
            // SAFETY: the caller's; the pool has each segment once.
            unsafe { Segment::free(segment, meter) };
        }
        for root in self.roots {
            // SAFETY: as above.
            unsafe { free_root(root, meter) };
        }
        // SAFETY: as above.
        unsafe { self.supply.free(meter) };
    }
}

/// Segments and roots on their way to be freed.
pub(crate) struct Retired<P: Payload> {
    pub(super) pool: Pool<P>,
    pub(super) meter: Arc<Meter>,
}

impl<P: Payload> Retired<P> {
    /// Frees them.
    ///
    /// # Safety
    ///
    /// Nobody uses them any more.
    pub(crate) unsafe fn free(self) {
        // SAFETY: the caller's; the meter is the one they were allocated with.
        unsafe { self.pool.free(&self.meter) };
    }
}
