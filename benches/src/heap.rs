//! A global allocator that can count allocations: for `koel-bench memory`.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use crate::pages;

/// Counting costs writes for which threads would contend: nothing is counted while throughput is measured.
static COUNTING: AtomicBool = AtomicBool::new(false);
static REQUESTED: AtomicI64 = AtomicI64::new(0);
static TAKEN: AtomicI64 = AtomicI64::new(0);

/// The system's allocator, counted between the start and the end of [`measure`].
#[derive(Debug, Clone, Copy, Default)]
pub struct CountingAllocator;

/// Bytes that are allocated and not freed again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Footprint {
    /// As requested.
    pub requested: i64,
    /// As the allocator rounds it up, with its own header.
    pub taken: i64,
    /// As the map itself reports it, if it does.
    pub own: Option<usize>,
}

/// The memory that `build` leaves allocated, if the program runs with a [`CountingAllocator`]. Not for several threads at once.
pub fn measure<T>(build: impl FnOnce() -> T) -> (T, Footprint) {
    REQUESTED.store(0, Ordering::Relaxed);
    TAKEN.store(0, Ordering::Relaxed);
    let counting = Counting::begin();
    let built = build();
    drop(counting);
    let requested = REQUESTED.load(Ordering::Relaxed);
    (built, Footprint { requested, taken: TAKEN.load(Ordering::Relaxed), own: None })
}

/// Counts until it is dropped, also when a panic drops it.
struct Counting;

impl Counting {
    fn begin() -> Self {
        COUNTING.store(true, Ordering::Relaxed);
        Counting
    }
}

impl Drop for Counting {
    fn drop(&mut self) {
        COUNTING.store(false, Ordering::Relaxed);
    }
}

#[cold]
fn count(sign: i64, layout: Layout, pointer: *mut u8) {
    REQUESTED.fetch_add(sign * layout.size() as i64, Ordering::Relaxed);
    TAKEN.fetch_add(sign * taken_bytes(layout, pointer), Ordering::Relaxed);
}

#[cfg(target_os = "linux")]
fn taken_bytes(_: Layout, pointer: *mut u8) -> i64 {
    /// The bytes that malloc keeps in front of each block: 8 in glibc.
    const HEADER_BYTES: i64 = 8;
    // SAFETY: `pointer` comes from the system's allocator, which is malloc on Linux, and is not freed yet.
    let usable = unsafe { libc::malloc_usable_size(pointer.cast()) };
    usable as i64 + HEADER_BYTES
}

/// On other systems: rounded up to 16 bytes, as most allocators do at least.
#[cfg(not(target_os = "linux"))]
fn taken_bytes(layout: Layout, _: *mut u8) -> i64 {
    layout.size().next_multiple_of(16) as i64
}

// SAFETY: every call is passed on to the system's allocator unchanged; counting touches only atomics, and advice to the
// kernel changes nothing in a block.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promises are the system's demands.
        let pointer = unsafe { System.alloc(layout) };
        // SAFETY: nobody has the block yet.
        unsafe { pages::advise_block(pointer, layout.size()) };
        if COUNTING.load(Ordering::Relaxed) && !pointer.is_null() {
            count(1, layout, pointer);
        }
        pointer
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promises are the system's demands.
        let pointer = unsafe { System.alloc_zeroed(layout) };
        // SAFETY: nobody has the block yet.
        unsafe { pages::advise_block(pointer, layout.size()) };
        if COUNTING.load(Ordering::Relaxed) && !pointer.is_null() {
            count(1, layout, pointer);
        }
        pointer
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        if COUNTING.load(Ordering::Relaxed) {
            count(-1, layout, pointer);
        }
        // SAFETY: the caller's promises are the system's demands.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        if !COUNTING.load(Ordering::Relaxed) {
            // SAFETY: the caller's promises are the system's demands.
            let new_pointer = unsafe { System.realloc(pointer, layout, new_size) };
            // SAFETY: nobody has the block yet, and what is in it stays there.
            unsafe { pages::advise_block(new_pointer, new_size) };
            return new_pointer;
        }
        let taken_before = taken_bytes(layout, pointer);
        // SAFETY: the caller's promises are the system's demands.
        let new_pointer = unsafe { System.realloc(pointer, layout, new_size) };
        // SAFETY: nobody has the block yet, and what is in it stays there.
        unsafe { pages::advise_block(new_pointer, new_size) };
        if !new_pointer.is_null() {
            // SAFETY: `realloc` requires that the new size, rounded up to the alignment, fits an isize.
            let new_layout = unsafe { Layout::from_size_align_unchecked(new_size, layout.align()) };
            REQUESTED.fetch_sub(layout.size() as i64, Ordering::Relaxed);
            TAKEN.fetch_sub(taken_before, Ordering::Relaxed);
            count(1, new_layout, new_pointer);
        }
        new_pointer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_counted_any_more_when_what_is_measured_has_panicked() {
        let measured = std::panic::catch_unwind(|| measure(|| panic!("while it is built")));
        assert!(measured.is_err() && !COUNTING.load(Ordering::Relaxed));
    }
}
