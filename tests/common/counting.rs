//! An allocator that counts. A test that uses the counts makes it the program's: `#[global_allocator] static ALLOCATOR:
//! Counting = Counting;`, or wraps it in one that refuses requests.

use core::cell::Cell;
use std::alloc::{GlobalAlloc, Layout, System};

thread_local! {
    static NOW: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
}

/// Counts the bytes of each thread: those that it allocates minus those that it frees.
pub(crate) struct Counting;

fn count(bytes: isize) {
    // Not while the thread is being torn down.
    let _ = NOW.try_with(|now| {
        now.set(now.get() + bytes);
        let _ = PEAK.try_with(|peak| peak.set(peak.get().max(now.get())));
    });
}

/// Counts an allocation, and returns it.
fn counted(base: *mut u8, layout: Layout) -> *mut u8 {
    if !base.is_null() {
        count(layout.size() as isize);
    }
    base
}

// SAFETY: the system's allocator does the work.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's.
        counted(unsafe { System.alloc(layout) }, layout)
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's.
        counted(unsafe { System.alloc_zeroed(layout) }, layout)
    }

    unsafe fn dealloc(&self, base: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: the caller's.
        unsafe { System.dealloc(base, layout) }
    }
}

/// What this thread has allocated and not freed, in bytes.
pub(crate) fn allocated() -> isize {
    NOW.get()
}

/// Returns what `f` returns, and how many more bytes than before this thread had at its peak.
pub(crate) fn peak_of<T>(f: impl FnOnce() -> T) -> (T, usize) {
    let before = allocated();
    PEAK.set(before);
    let result = f();
    (result, (PEAK.get() - before) as usize)
}

/// Returns what `f` returns, without counting its memory.
pub(crate) fn uncounted<T>(f: impl FnOnce() -> T) -> T {
    let before = allocated();
    let result = f();
    NOW.set(before);
    result
}
