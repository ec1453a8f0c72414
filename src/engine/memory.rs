//! Blocks of zeroed memory for segments, counted to the byte.
//!
//! A block is an allocation of its own, or a piece of a *slab* that many segments share so that huge pages can
//! back it. Whoever owns a block frees it exactly once.

use core::alloc::Layout;
use core::ptr::NonNull;
use std::alloc::{alloc, alloc_zeroed, dealloc};

use crate::sync::{AtomicUsize, Ordering};

/// Counts the bytes that a map has from the allocator.
#[derive(Debug)]
pub(crate) struct Meter(AtomicUsize);

impl Meter {
    /// Nothing allocated yet.
    pub(crate) fn new() -> Self {
        Meter(AtomicUsize::new(0))
    }

    /// Bytes allocated now.
    pub(crate) fn bytes(&self) -> usize {
        // Relaxed: a count, read for information.
        self.0.load(Ordering::Relaxed)
    }

    /// Allocates zeroed memory; `None` if there is none.
    pub(crate) fn allocate(&self, layout: Layout) -> Option<NonNull<u8>> {
        assert!(layout.size() > 0);
        // SAFETY: not of size zero.
        let base = NonNull::new(unsafe { alloc_zeroed(layout) })?;
        // Relaxed: a count.
        self.0.fetch_add(layout.size(), Ordering::Relaxed);
        Some(base)
    }

    /// Allocates zeroed memory and asks the system to use huge pages for it; `None` if there is none.
    pub(crate) fn allocate_huge(&self, layout: Layout) -> Option<NonNull<u8>> {
        assert!(layout.size() > 0);
        // SAFETY: not of size zero.
        let base = NonNull::new(unsafe { alloc(layout) })?;
        // Before it is touched: small pages that are in use stay small.
        advise_huge_pages(base, layout.size());
        // SAFETY: just allocated with this size.
        unsafe { base.write_bytes(0, layout.size()) };
        // Relaxed: a count.
        self.0.fetch_add(layout.size(), Ordering::Relaxed);
        Some(base)
    }

    /// Whether the allocator has so much at once. Asks and gives back, and touches none of it.
    pub(crate) fn has(layout: Layout) -> bool {
        assert!(layout.size() > 0);
        // SAFETY: not of size zero.
        let Some(base) = NonNull::new(unsafe { alloc(layout) }) else { return false };
        // Or the compiler would see that the memory is not used, and not ask for it.
        let base = core::hint::black_box(base);
        // SAFETY: just allocated.
        unsafe { dealloc(base.as_ptr(), layout) };
        true
    }

    /// Gives memory back.
    ///
    /// # Safety
    ///
    /// `base` came from an allocation of this meter with the same layout, and nobody uses it any more.
    pub(crate) unsafe fn free(&self, base: NonNull<u8>, layout: Layout) {
        // SAFETY: the caller's.
        unsafe { dealloc(base.as_ptr(), layout) };
        // Relaxed: a count.
        self.0.fetch_sub(layout.size(), Ordering::Relaxed);
    }
}

/// One allocation that several blocks share; freed with the last of them.
#[derive(Debug)]
struct Slab {
    base: NonNull<u8>,
    layout: Layout,
    blocks: AtomicUsize,
}

/// Memory for one segment.
#[derive(Debug)]
pub(crate) struct Block {
    base: NonNull<u8>,
    layout: Layout,
    slab: Option<NonNull<Slab>>,
}

/// Where a huge page may begin.
const HUGE_PAGE: usize = 2 << 20;

impl Block {
    /// A block of its own.
    pub(crate) fn allocate(layout: Layout, meter: &Meter) -> Option<Self> {
        Some(Block { base: meter.allocate(layout)?, layout, slab: None })
    }

    /// `count` blocks in one allocation, for which the system is asked to use huge pages.
    pub(crate) fn allocate_slab(layout: Layout, count: usize, meter: &Meter) -> Option<Vec<Self>> {
        let stride = layout.pad_to_align().size();
        let size = stride.checked_mul(count)?;
        let whole = Layout::from_size_align(size, HUGE_PAGE.max(layout.align())).ok()?;
        let base = meter.allocate_huge(whole)?;
        let slab = Box::new(Slab { base, layout: whole, blocks: AtomicUsize::new(count) });
        let slab = NonNull::from(Box::leak(slab));
        // SAFETY: i < count: within the allocation.
        let piece = |i| Block { base: unsafe { base.add(i * stride) }, layout, slab: Some(slab) };
        Some((0..count).map(piece).collect())
    }

    /// Where it begins.
    pub(crate) fn base(&self) -> NonNull<u8> {
        self.base
    }

    /// How long it is, in bytes.
    pub(crate) fn size(&self) -> usize {
        self.layout.size()
    }

    /// Gives the memory back.
    ///
    /// # Safety
    ///
    /// Nobody uses the memory any more; `meter` is the one it was allocated with.
    pub(crate) unsafe fn free(self, meter: &Meter) {
        let Some(slab) = self.slab else {
            // SAFETY: the caller's, and `allocate`'s layout.
            return unsafe { meter.free(self.base, self.layout) };
        };
        // AcqRel: the last to let go sees all the others done with their pieces.
        // SAFETY: the slab lives until its last block is freed.
        if unsafe { slab.as_ref() }.blocks.fetch_sub(1, Ordering::AcqRel) == 1 {
            // SAFETY: from `Box::leak`, and nobody else is left.
            let slab = unsafe { Box::from_raw(slab.as_ptr()) };
            // SAFETY: the last block is gone.
            unsafe { meter.free(slab.base, slab.layout) };
        }
    }
}

/// Asks for huge pages. Advice: a system that does not take it changes nothing.
#[cfg(all(target_os = "linux", not(loom)))]
fn advise_huge_pages(base: NonNull<u8>, size: usize) {
    const MADV_HUGEPAGE: i32 = 14;
    // The standard library links the C library on Linux; `madvise(2)`.
    unsafe extern "C" {
        fn madvise(addr: *mut core::ffi::c_void, length: usize, advice: i32) -> i32;
    }
    // SAFETY: the range is our own allocation, page-aligned, and this advice does not change its content.
    let _ = unsafe { madvise(base.as_ptr().cast(), size, MADV_HUGEPAGE) };
}

#[cfg(not(all(target_os = "linux", not(loom))))]
fn advise_huge_pages(_: NonNull<u8>, _: usize) {}
