//! [`PerThread`]: a value for each thread, which others may look at. What the reclaimer knows of each thread, and what
//! a thread counts.
//!
//! Each thread has a *seat*, a number that no other living thread has; seats are few and small, as they are given back when a
//! thread ends. The values of one container lie in blocks of 1, 2, 4, ... of them, so that a seat's value never moves.
//!
//! A seat is not given back while its thread is [bound](bind) to a value: a guard may be dropped by a destructor of another
//! thread-local variable, after this one's. Whoever comes last gives it back.

use core::cell::Cell;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::sync::{AtomicPtr, AtomicU64, Mutex, Ordering, SCHEDULED, global, per_thread, with_mine};

/// Blocks of values: of 2^32 threads, or the few of a test under loom or shuttle, and one that is never there, for
/// threads without a seat.
const BLOCKS: usize = match (cfg!(loom), cfg!(shuttle)) {
    (true, _) => 4,
    (_, true) => 5,
    _ => 33,
};
const NO_BLOCK: usize = BLOCKS - 1;

/// Where a thread's values are.
struct Seat {
    block: Cell<usize>,
    index: Cell<usize>,
    /// How many values this thread is bound to, and one more until its end: at 0 the seat is given back.
    bound: Cell<usize>,
}

per_thread! {
    static SEAT: Seat = Seat::none();
}

per_thread! {
    static END: End = End;
}

/// Seats that are free.
struct Seats {
    /// Those that were given back.
    returned: BinaryHeap<Reverse<usize>>,
    /// All from here on.
    next: usize,
}

global! {
    static SEATS: Mutex<Seats> = Mutex::new(Seats { returned: BinaryHeap::new(), next: 0 });
}

/// Dropped at the end of a thread that has taken a seat.
struct End;

impl Drop for End {
    fn drop(&mut self) {
        // loom's threads have lost their other variables by now.
        if !cfg!(loom) {
            unbind();
        }
    }
}

impl Seat {
    #[cfg(not(shuttle))]
    const fn none() -> Self {
        Seat { block: Cell::new(NO_BLOCK), index: Cell::new(0), bound: Cell::new(0) }
    }

    /// shuttle drops a thread's variables in the order in which they were made: `END` before the seat that it looks at.
    #[cfg(shuttle)]
    fn none() -> Self {
        goes_on();
        Seat { block: Cell::new(NO_BLOCK), index: Cell::new(0), bound: Cell::new(0) }
    }

    fn number(&self) -> usize {
        (1 << self.block.get()) - 1 + self.index.get()
    }
}

/// Gives this thread's seat back.
#[cold]
fn give_back() {
    let number = with_mine(&SEAT, |seat| {
        let number = seat.number();
        seat.block.set(NO_BLOCK);
        number
    });
    SEATS.lock().returned.push(Reverse(number));
}

/// Whether this thread goes on, and will drop its [`End`].
fn goes_on() -> bool {
    END.try_with(|_| ()).is_ok()
}

/// Takes a seat for this thread.
#[cold]
fn take_seat(seat: &Seat) {
    let number = {
        let mut seats = SEATS.lock();
        match seats.returned.pop() {
            Some(Reverse(number)) => number,
            None => {
                seats.next += 1;
                seats.next - 1
            }
        }
    };
    let block = (number + 1).ilog2() as usize;
    assert!(block < NO_BLOCK, "too many threads");
    seat.block.set(block);
    seat.index.set(number + 1 - (1 << block));
    // A thread that is ending already gives it back when it is not bound any more.
    seat.bound.set(usize::from(goes_on()));
}

/// A number of this thread: small, and no other living thread's; or 0, of one that is ending and has no seat.
#[inline]
pub(crate) fn number() -> usize {
    with_mine(&SEAT, |seat| {
        if seat.block.get() == NO_BLOCK {
            if !goes_on() {
                return 0;
            }
            take_seat(seat);
        }
        seat.number()
    })
}

/// Keeps this thread's seat from being given back before as many calls of [`unbind`]. Of a thread that has just asked
/// for its value.
#[inline(always)]
pub(crate) fn bind() {
    with_mine(&SEAT, |seat| {
        debug_assert!(seat.block.get() != NO_BLOCK);
        seat.bound.set(seat.bound.get() + 1);
    });
}

/// Undoes one [`bind`] of this thread.
#[inline(always)]
pub(crate) fn unbind() {
    // The rare case outside, so that the rest is two instructions.
    let is_last = with_mine(&SEAT, |seat| {
        seat.bound.set(seat.bound.get() - 1);
        seat.bound.get() == 0
    });
    if is_last {
        give_back();
    }
}

/// Adds to a count that only this thread writes: no locked instruction.
#[inline]
pub(crate) fn add(count: &AtomicU64, n: u64) {
    // They would be explored in vain.
    if SCHEDULED {
        return;
    }
    // Relaxed, both: information.
    count.store(count.load(Ordering::Relaxed).wrapping_add(n), Ordering::Relaxed);
}

/// A value for each thread that asks for one.
#[derive(Debug)]
pub(crate) struct PerThread<T> {
    /// Null, or so many values: 1, 2, 4, ...
    blocks: [AtomicPtr<T>; BLOCKS],
}

// SAFETY: it owns the values.
unsafe impl<T: Send> Send for PerThread<T> {}
// SAFETY: any thread may look at all values.
unsafe impl<T: Send + Sync> Sync for PerThread<T> {}

impl<T: Default> PerThread<T> {
    pub(crate) fn new() -> Self {
        PerThread { blocks: core::array::from_fn(|_| AtomicPtr::new(core::ptr::null_mut())) }
    }

    /// This thread's value.
    #[inline(always)]
    pub(crate) fn get(&self) -> &T {
        with_mine(&SEAT, |seat| {
            // SAFETY: `NO_BLOCK`, or what `take_seat` asserts to be less.
            let block = unsafe { self.blocks.get_unchecked(seat.block.get()) };
            // Acquire: pairs with the exchange in `make`.
            let values = block.load(Ordering::Acquire);
            if values.is_null() {
                return self.make(seat);
            }
            // SAFETY: a block has a value for each of its seats, and lives as long as we do.
            unsafe { &*values.add(seat.index.get()) }
        })
    }

    /// Makes the block of this thread's value.
    #[cold]
    fn make(&self, seat: &Seat) -> &T {
        if seat.block.get() == NO_BLOCK {
            take_seat(seat);
        }
        let block = &self.blocks[seat.block.get()];
        let values: Box<[T]> = (0..1_usize << seat.block.get()).map(|_| T::default()).collect();
        let new = Box::into_raw(values);
        // Release: pairs with the loads of whoever looks at the values; Acquire: with the exchange of who was faster.
        let at = match block.compare_exchange(
            core::ptr::null_mut(),
            new.cast(),
            Ordering::AcqRel,
            Ordering::Acquire,
        ) {
            Ok(_) => new.cast::<T>(),
            Err(other) => {
                // SAFETY: made above, and nobody knows of it.
                drop(unsafe { Box::from_raw(new) });
                other
            }
        };
        // SAFETY: as in `get`.
        unsafe { &*at.add(seat.index.get()) }
    }

    /// The values of all threads that have asked for one, and of some that have not.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.blocks.iter().enumerate().flat_map(|(block, values)| {
            // Acquire: as in `get`.
            let values = values.load(Ordering::Acquire);
            let len = if values.is_null() { 0 } else { 1_usize << block };
            // SAFETY: as in `get`.
            (0..len).map(move |index| unsafe { &*values.add(index) })
        })
    }
}

impl<T> Drop for PerThread<T> {
    fn drop(&mut self) {
        for (block, values) in self.blocks.iter().enumerate() {
            // Relaxed: `&mut self`.
            let values = values.load(Ordering::Relaxed);
            if !values.is_null() {
                let values = core::ptr::slice_from_raw_parts_mut(values, 1_usize << block);
                // SAFETY: from a box of so many, and nobody uses them any more.
                drop(unsafe { Box::from_raw(values) });
            }
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use std::sync::Barrier;

    use super::*;
    use crate::sync::AtomicUsize;

    #[test]
    fn each_living_thread_has_a_value_of_its_own() {
        const THREADS: usize = 20;
        let values = PerThread::<AtomicUsize>::new();
        let (together, done) = (Barrier::new(THREADS), Barrier::new(THREADS));
        std::thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    together.wait();
                    assert_eq!(values.get().fetch_add(1, Ordering::Relaxed), 0);
                    assert!(core::ptr::eq(values.get(), values.get()));
                    // Nobody leaves a seat to another before all have one.
                    done.wait();
                });
            }
        });
        let sum: usize = values.iter().map(|value| value.load(Ordering::Relaxed)).sum();
        assert_eq!(sum, THREADS);
    }

    #[test]
    fn seats_are_used_again() {
        let highest = (0..200).map(|_| std::thread::spawn(number).join().unwrap()).max();
        assert!(highest < Some(100), "{highest:?}");
    }

    #[test]
    fn a_seat_that_is_bound_is_nobody_elses() {
        let bound = std::thread::spawn(|| {
            let number = number();
            bind();
            number
        });
        let bound = bound.join().unwrap();
        for _ in 0..50 {
            assert_ne!(std::thread::spawn(number).join().unwrap(), bound);
        }
    }

    /// A variable whose destructor runs after that of the seat: it asks for one again.
    #[test]
    fn a_thread_that_ends_has_its_value_to_the_last() {
        static VALUES: std::sync::LazyLock<PerThread<AtomicUsize>> = std::sync::LazyLock::new(PerThread::new);
        struct Late;
        impl Drop for Late {
            fn drop(&mut self) {
                VALUES.get().fetch_add(1, Ordering::Relaxed);
                unbind();
            }
        }
        std::thread_local!(static LATE: Late = const { Late });
        for first in [true, false] {
            let thread = std::thread::spawn(move || {
                let mine = || LATE.with(|_| ());
                if first {
                    mine();
                }
                VALUES.get();
                bind();
                mine();
            });
            thread.join().unwrap();
        }
        assert_eq!(VALUES.iter().map(|value| value.load(Ordering::Relaxed)).sum::<usize>(), 2);
    }

    /// Destructors that come after that of the seat cost none for good.
    #[test]
    fn threads_that_end_late_lose_no_seats() {
        static VALUES: std::sync::LazyLock<PerThread<AtomicUsize>> = std::sync::LazyLock::new(PerThread::new);
        struct Late(Cell<bool>);
        impl Drop for Late {
            fn drop(&mut self) {
                number();
                if self.0.get() {
                    VALUES.get();
                    bind();
                    unbind();
                }
                number();
            }
        }
        std::thread_local!(static LATE: Late = const { Late(Cell::new(false)) });
        let ends_late = |n: usize| {
            std::thread::spawn(move || {
                // Before the seat: dropped after it.
                LATE.with(|late| late.0.set(n % 2 == 0));
                number()
            })
        };
        let highest = (0..200).map(|n| ends_late(n).join().unwrap()).max();
        assert!(highest < Some(100), "{highest:?}");
    }
}
