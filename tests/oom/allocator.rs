//! An allocator that refuses requests of a thread.

use core::cell::Cell;
use core::ptr::null_mut;
use std::alloc::{GlobalAlloc, Layout};
use std::backtrace::Backtrace;

use crate::common::counting::{Counting, uncounted};

struct Refusing;

/// The state of a thread's refusals.
#[derive(Clone, Copy)]
struct Memory {
    /// How many requests until one is refused; 0: all are granted.
    until: usize,
    /// Whether those after it are refused as well.
    lasting: bool,
    /// Whether one has been refused.
    came: bool,
    /// Requests for fewer bytes are granted, and do not count.
    least: usize,
}

const PLENTY: Memory = Memory { until: 0, lasting: false, came: false, least: 0 };

thread_local!(static MEMORY: Cell<Memory> = const { Cell::new(PLENTY) });

/// Whether this request is refused; if so, reports where it came from.
fn refuses(size: usize) -> bool {
    // Not while the thread is being torn down.
    let memory = MEMORY.try_with(Cell::get).unwrap_or(PLENTY);
    if memory.until == 0 || size < memory.least {
        return false;
    }
    if memory.until > 1 {
        MEMORY.set(Memory { until: memory.until - 1, ..memory });
        return false;
    }
    // Requests of a trace or a panic are granted, and do not belong to the operation.
    MEMORY.set(PLENTY);
    uncounted(|| {
        if std::env::var_os(super::TRACE).is_some() {
            tell_origin();
        }
    });
    let refused = !std::thread::panicking();
    let until = if refused && !memory.lasting { 0 } else { 1 };
    MEMORY.set(Memory { until, came: memory.came || refused, ..memory });
    refused
}

/// Reports in which function of which module memory is requested: the innermost that belongs neither to the allocator nor to a
/// container, such as their functions for any `T`.
fn tell_origin() {
    const CONTAINERS: [&str; 8] = ["core", "alloc", "std", "hashbrown", "smallvec", "oom", "__rustc", "T"];
    let trace = Backtrace::force_capture().to_string();
    if std::env::var_os("KOEL_OOM_TRACE").is_some() {
        eprintln!("{trace}");
    }
    let function = |line: &str| {
        let (number, name) = line.trim_start().split_once(": ")?;
        number.parse::<u32>().ok()?;
        // `<koel::Type as Trait>::function` belongs to `koel`.
        Some(name.trim_start_matches(['<', '&', ' ']).split(['<', ' ', '>']).next()?.to_owned())
    };
    let ours = |name: &String| !CONTAINERS.contains(&name.split("::").next().unwrap_or_default());
    eprintln!("from {}", trace.lines().filter_map(function).find(ours).unwrap_or_default());
}

// SAFETY: another allocator does the work.
unsafe impl GlobalAlloc for Refusing {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's.
        if refuses(layout.size()) { null_mut() } else { unsafe { Counting.alloc(layout) } }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's.
        if refuses(layout.size()) { null_mut() } else { unsafe { Counting.alloc_zeroed(layout) } }
    }

    unsafe fn realloc(&self, base: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller's.
        if refuses(size) { null_mut() } else { unsafe { Counting.realloc(base, layout, size) } }
    }

    unsafe fn dealloc(&self, base: *mut u8, layout: Layout) {
        // SAFETY: the caller's.
        unsafe { Counting.dealloc(base, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Refusing = Refusing;

/// Which requests are refused, counted over calls of [`Plan::run`].
pub(crate) struct Plan {
    n: usize,
    lasting: bool,
    least: usize,
}

impl Plan {
    /// Refuses the n-th request, from 1, and if `lasting` all later ones of the same call; 0: none.
    pub(crate) fn new(n: usize, lasting: bool) -> Self {
        Plan { n, lasting, least: 0 }
    }

    /// Refuses the n-th request for this many bytes or more.
    pub(crate) fn of_large(n: usize, least: usize) -> Self {
        Plan { n, lasting: false, least }
    }

    /// Whether the request has been refused.
    pub(crate) fn is_over(&self) -> bool {
        self.n == 0
    }

    /// Runs `body` without the memory that the plan refuses.
    pub(crate) fn run<T>(&mut self, body: impl FnOnce() -> T) -> T {
        struct Lift<'p>(&'p mut Plan);

        impl Drop for Lift<'_> {
            fn drop(&mut self) {
                let left = MEMORY.replace(PLENTY);
                // A lasting lack of memory ends with this call.
                self.0.n = if left.came { 0 } else { left.until };
            }
        }

        let lift = Lift(self);
        let Plan { n: until, lasting, least } = *lift.0;
        MEMORY.set(Memory { until, lasting, came: false, least });
        body()
    }
}
