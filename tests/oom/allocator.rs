//! The system's allocator, which refuses one request of a thread.

use core::cell::Cell;
use std::alloc::{GlobalAlloc, Layout, System};

struct Refusing;

// How many requests of this thread are still granted before one is refused; 0: all are.
thread_local!(static UNTIL: Cell<usize> = const { Cell::new(0) });

/// Whether this request is the one.
fn refuses() -> bool {
    // Not while the thread is being torn down.
    let one = UNTIL.try_with(|until| until.replace(until.get().saturating_sub(1)) == 1).unwrap_or(false);
    if one && std::env::var_os("KOEL_OOM_TRACE").is_some() {
        eprintln!("{}", std::backtrace::Backtrace::force_capture());
    }
    one
}

// SAFETY: the system's allocator does the work.
unsafe impl GlobalAlloc for Refusing {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if refuses() {
            return core::ptr::null_mut();
        }
        // SAFETY: the caller's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if refuses() {
            return core::ptr::null_mut();
        }
        // SAFETY: the caller's.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, base: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if refuses() {
            return core::ptr::null_mut();
        }
        // SAFETY: the caller's.
        unsafe { System.realloc(base, layout, size) }
    }

    unsafe fn dealloc(&self, base: *mut u8, layout: Layout) {
        // SAFETY: the caller's.
        unsafe { System.dealloc(base, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Refusing = Refusing;

/// Runs `body` with its n-th allocation refused, those of before counted in `n`: 0 once it has been.
pub(crate) fn refusing<T>(n: &mut usize, body: impl FnOnce() -> T) -> T {
    struct Lift<'n>(&'n mut usize);

    impl Drop for Lift<'_> {
        fn drop(&mut self) {
            *self.0 = UNTIL.replace(0);
        }
    }

    let lift = Lift(n);
    UNTIL.set(*lift.0);
    body()
}
