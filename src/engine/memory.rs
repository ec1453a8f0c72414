//! Blocks of zeroed memory for segments, counted to the byte.
//!
//! A block is an allocation of its own, or a piece of one that many segments share so that huge pages can back it. The owner of
//! a block frees it exactly once.

use core::alloc::Layout;
use core::ptr::NonNull;
use std::alloc::{alloc, alloc_zeroed, dealloc};

use crate::sync::{AtomicUsize, Ordering};

/// Counts the bytes that a map has from the allocator.
#[derive(Debug)]
pub(crate) struct Meter(AtomicUsize);

impl Meter {
    /// A meter that has counted nothing yet.
    pub(crate) fn new() -> Self {
        Meter::of(0)
    }

    /// A meter that has counted so many bytes.
    pub(crate) fn of(bytes: usize) -> Self {
        Meter(AtomicUsize::new(bytes))
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

    /// Allocates memory, not initialized and not touched yet; `None` if there is none.
    pub(crate) fn allocate_uninit(&self, layout: Layout) -> Option<NonNull<u8>> {
        assert!(layout.size() > 0);
        // SAFETY: not of size zero.
        let base = NonNull::new(unsafe { alloc(layout) })?;
        // Relaxed: a count.
        self.0.fetch_add(layout.size(), Ordering::Relaxed);
        Some(base)
    }

    /// The same, and asks the system to use huge pages for it.
    pub(crate) fn allocate_huge(&self, layout: Layout) -> Option<NonNull<u8>> {
        let base = self.allocate_uninit(layout)?;
        // Before it is touched: small pages that are in use stay small.
        advise_huge_pages(base, layout.size());
        Some(base)
    }

    /// Whether the allocator has so much memory at once. Allocates it and gives it back, without touching it.
    pub(crate) fn has(layout: Layout) -> bool {
        assert!(layout.size() > 0);
        // SAFETY: not of size zero.
        let Some(base) = NonNull::new(unsafe { alloc(layout) }) else { return false };
        // Otherwise the compiler would see that the memory is not used, and omit the allocation.
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

/// Puts a value into a box; hands it back if there is no memory.
pub(crate) fn try_box<T>(value: T) -> Result<Box<T>, T> {
    let layout = Layout::new::<T>();
    if layout.size() == 0 {
        return Ok(Box::new(value));
    }
    // SAFETY: not of size zero.
    let Some(base) = NonNull::new(unsafe { alloc(layout) }) else { return Err(value) };
    let base = base.cast::<T>();
    // SAFETY: memory for a value, ours.
    unsafe { base.write(value) };
    // SAFETY: from the global allocator with the value's layout, as a box wants it, and initialized.
    Ok(unsafe { Box::from_raw(base.as_ptr()) })
}

/// What the allocator gave and must get back.
#[derive(Clone, Copy, Debug)]
struct Allocation {
    base: NonNull<u8>,
    layout: Layout,
}

/// One allocation that several blocks share; freed with the last of them.
#[derive(Debug)]
struct Shared {
    allocation: Allocation,
    blocks: AtomicUsize,
}

/// Where a block's memory comes from.
#[derive(Debug)]
enum Origin {
    Own(Allocation),
    Shared(NonNull<Shared>),
}

/// Memory for one segment.
#[derive(Debug)]
pub(crate) struct Block {
    base: NonNull<u8>,
    layout: Layout,
    origin: Origin,
}

/// The length of a huge page, and the alignment at which one may begin.
#[cfg(all(target_os = "linux", not(any(loom, miri))))]
const HUGE_PAGE: usize = 2 << 20;
/// The alignment that every allocator has anyway. Up to here zeroed memory is `calloc`'s, whose fresh pages nobody has touched;
/// beyond, the standard library writes the zeros itself, and a large map would be resident before it is used.
const LAZY_ALIGN: usize = 2 * size_of::<usize>();

impl Allocation {
    /// Zeroed memory, aligned by hand: see `LAZY_ALIGN`.
    fn zeroed(layout: Layout, meter: &Meter) -> Option<(Self, NonNull<u8>)> {
        let excess = layout.align().saturating_sub(LAZY_ALIGN);
        let size = layout.size().checked_add(excess)?;
        let whole = Layout::from_size_align(size, layout.align().min(LAZY_ALIGN)).ok()?;
        let start = meter.allocate(whole)?;
        let skipped = start.addr().get().wrapping_neg() % layout.align();
        debug_assert!(skipped <= excess);
        // SAFETY: to the next multiple of the alignment, at most `excess` from a multiple of the smaller one.
        let base = unsafe { start.add(skipped) };
        Some((Allocation { base: start, layout: whole }, base))
    }
}

impl Block {
    /// A block of its own.
    pub(crate) fn allocate(layout: Layout, meter: &Meter) -> Option<Self> {
        let (allocation, base) = Allocation::zeroed(layout, meter)?;
        Some(Block { base, layout, origin: Origin::Own(allocation) })
    }

    /// `count` blocks in one allocation, the last one first; if requested, the system is asked to use huge pages.
    pub(crate) fn allocate_shared(
        layout: Layout,
        count: usize,
        huge: bool,
        meter: &Meter,
    ) -> Option<Vec<Self>> {
        let stride = layout.pad_to_align().size();
        let whole = Layout::from_size_align(stride.checked_mul(count)?, layout.align()).ok()?;
        let mut pieces = Vec::new();
        pieces.try_reserve_exact(count).ok()?;
        let (allocation, base) = Allocation::zeroed(whole, meter)?;
        let shared = match try_box(Shared { allocation, blocks: AtomicUsize::new(count) }) {
            Ok(shared) => NonNull::from(Box::leak(shared)),
            Err(Shared { allocation: Allocation { base, layout }, .. }) => {
                // SAFETY: just allocated, and nobody knows it.
                unsafe { meter.free(base, layout) };
                return None;
            }
        };
        if huge {
            advise_huge_pages(base, whole.size());
        }
        let piece = |i| {
            // SAFETY: i < count: within the allocation.
            let base = unsafe { base.add(i * stride) };
            Block { base, layout, origin: Origin::Shared(shared) }
        };
        pieces.extend((0..count).rev().map(piece));
        Some(pieces)
    }

    /// Its layout.
    pub(crate) fn layout(&self) -> Layout {
        self.layout
    }

    /// Where it begins.
    pub(crate) fn base(&self) -> NonNull<u8> {
        self.base
    }

    /// How long it is, in bytes.
    pub(crate) fn size(&self) -> usize {
        self.layout.size()
    }

    /// Whether it was cut from an allocation of several.
    pub(super) fn is_shared(&self) -> bool {
        matches!(self.origin, Origin::Shared(_))
    }

    /// Whether both were cut from one allocation.
    pub(super) fn lies_beside(&self, other: &Block) -> bool {
        matches!((&self.origin, &other.origin), (Origin::Shared(mine), Origin::Shared(its)) if mine == its)
    }

    /// Whether at most `blocks` blocks are left of the allocation that this one was cut from.
    pub(super) fn is_one_of(&self, blocks: usize) -> bool {
        match self.origin {
            Origin::Own(_) => true,
            // Relaxed: a count. It may include blocks that are freed meanwhile.
            // SAFETY: the allocation lives until its last block is freed, and this one is not.
            Origin::Shared(shared) => unsafe { shared.as_ref() }.blocks.load(Ordering::Relaxed) <= blocks,
        }
    }

    /// Gives the memory back.
    ///
    /// # Safety
    ///
    /// Nobody uses the memory any more; `meter` is the one it was allocated with.
    pub(crate) unsafe fn free(self, meter: &Meter) {
        let Allocation { base, layout } = match self.origin {
            Origin::Own(allocation) => allocation,
            Origin::Shared(shared) => {
                // AcqRel: the last sharer to let go sees that all the others are done with their pieces.
                // SAFETY: the allocation lives until its last block is freed.
                if unsafe { shared.as_ref() }.blocks.fetch_sub(1, Ordering::AcqRel) > 1 {
                    return;
                }
                // SAFETY: from `Box::leak`, and nobody else is left.
                unsafe { Box::from_raw(shared.as_ptr()) }.allocation
            }
        };
        // SAFETY: allocated with this meter and this layout, and the last block in it is gone.
        unsafe { meter.free(base, layout) };
    }
}

/// Asks for huge pages. This is advice: a system that ignores it changes nothing, and Miri, which has no such call, is not
/// asked.
#[cfg(all(target_os = "linux", not(any(loom, miri))))]
pub(crate) fn advise_huge_pages(base: NonNull<u8>, size: usize) {
    const MADV_HUGEPAGE: i32 = 14;
    // The standard library links the C library on Linux; `madvise(2)`.
    unsafe extern "C" {
        fn madvise(addr: *mut core::ffi::c_void, length: usize, advice: i32) -> i32;
    }
    // Only the huge pages that lie entirely in the range.
    let skipped = base.addr().get().wrapping_neg() % HUGE_PAGE;
    let length = size.saturating_sub(skipped) / HUGE_PAGE * HUGE_PAGE;
    if length > 0 {
        // SAFETY: the range is in our own allocation, page-aligned, and this advice does not change its content.
        let _ = unsafe { madvise(base.as_ptr().add(skipped).cast(), length, MADV_HUGEPAGE) };
    }
}

#[cfg(not(all(target_os = "linux", not(any(loom, miri)))))]
pub(crate) fn advise_huge_pages(_: NonNull<u8>, _: usize) {}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_aligned_and_zeroed_and_counted_to_the_byte() {
        let meter = Meter::new();
        for align in (0..=12).map(|shift| 1 << shift) {
            for size in [1, 15, 128, 5000] {
                let layout = Layout::from_size_align(size, align).unwrap();
                let block = Block::allocate(layout, &meter).unwrap();
                assert_eq!((block.base().addr().get() % align, block.size()), (0, size));
                assert!((size..size + align).contains(&meter.bytes()), "{} for {layout:?}", meter.bytes());
                for i in 0..size {
                    // SAFETY: within the block; written to so that the next one finds it dirty.
                    unsafe {
                        assert_eq!(block.base().add(i).read(), 0);
                        block.base().add(i).write(0xFF);
                    }
                }
                // SAFETY: ours, and not used any more.
                unsafe { block.free(&meter) };
                assert_eq!(meter.bytes(), 0);
            }
        }
    }

    #[test]
    fn a_box_holds_what_it_was_given_of_any_size() {
        assert_eq!(try_box([7_u64; 100]).map(|value| *value), Ok([7; 100]));
        assert_eq!(try_box(()).map(|value| *value), Ok(()));
    }

    #[test]
    fn what_blocks_share_is_freed_with_the_last_of_its_blocks() {
        let meter = Meter::new();
        let layout = Layout::from_size_align(1000, 64).unwrap();
        let blocks = Block::allocate_shared(layout, 3, true, &meter).unwrap();
        assert!((3 * 1024..3 * 1024 + 64).contains(&meter.bytes()));
        for block in blocks {
            assert!(meter.bytes() > 0 && block.base().addr().get() % 64 == 0);
            // SAFETY: ours, and not used any more.
            unsafe { block.free(&meter) };
        }
        assert_eq!(meter.bytes(), 0);
    }
}
