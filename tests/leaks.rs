//! What panics gives back the memory that it had meanwhile.

use core::cell::Cell;
use core::panic::AssertUnwindSafe;
use core::time::Duration;
use std::alloc::{GlobalAlloc, Layout, System};
use std::panic::{catch_unwind, resume_unwind};

use koel::{Cache, ManualClock};

/// Counts the bytes of each thread: what it allocates less what it frees.
struct Counting;

thread_local!(static BYTES: Cell<isize> = const { Cell::new(0) });

fn count(bytes: isize) {
    let _ = BYTES.try_with(|count| count.set(count.get() + bytes));
}

// SAFETY: the system's allocator does the work.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: the caller's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, base: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: the caller's.
        unsafe { System.dealloc(base, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// It is told of what has expired when the room for the dump is looked for.
#[test]
fn a_load_leaks_nothing_if_the_listener_panics() {
    let clock = ManualClock::new();
    let cache: Cache<u64, u64> = Cache::builder()
        .max_entries(10)
        .time_to_live(Duration::from_secs(1))
        .clock(clock.clone())
        .on_removal(|_, _, _| resume_unwind(Box::new("told")))
        .build();
    let from: Cache<u64, u64> = Cache::new(10);
    from.insert(1, 1).unwrap();
    let load = || {
        cache.insert(2, 2).unwrap();
        clock.advance(Duration::from_secs(2));
        let dump = from.dump();
        assert!(catch_unwind(AssertUnwindSafe(|| cache.load(dump))).is_err());
        cache.flush();
    };
    (0..10).for_each(|_| load());
    let before = BYTES.get();
    (0..100).for_each(|_| load());
    let lost = BYTES.get() - before;
    assert!(lost < 1000, "{lost} bytes");
}
