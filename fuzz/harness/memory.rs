//! How much memory something takes at its peak.

use core::cell::Cell;
use std::alloc::{GlobalAlloc, Layout, System};

thread_local!(static NOW: Cell<isize> = const { Cell::new(0) });
thread_local!(static PEAK: Cell<isize> = const { Cell::new(0) });

/// Counts the bytes of each thread.
struct Counting;

fn count(bytes: isize) {
    // Not while the thread is being torn down.
    let _ = NOW.try_with(|now| {
        now.set(now.get() + bytes);
        let _ = PEAK.try_with(|peak| peak.set(peak.get().max(now.get())));
    });
}

// SAFETY: the system's allocator does the work.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: the caller's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: the caller's.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, base: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: the caller's.
        unsafe { System.dealloc(base, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// What `f` returns, and how many bytes more than before this thread had at once.
pub(crate) fn peak_of<T>(f: impl FnOnce() -> T) -> (T, usize) {
    let before = NOW.with(Cell::get);
    PEAK.with(|peak| peak.set(before));
    let result = f();
    (result, (PEAK.with(Cell::get) - before) as usize)
}
