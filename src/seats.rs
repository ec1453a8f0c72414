//! [`PerThread`]: a value for each thread, which others may look at. What the reclaimer knows of each thread, and what
//! a thread counts.
//!
//! Each thread has a *seat*, a number that no other living thread has; seats are few and small, as they are given back when a
//! thread ends. The values of one container lie in blocks of 1, 2, 4, ... of them, so that a seat's value never moves.
//!
//! A seat is not given back while its thread is [bound](Seat::bind) to a value: a guard may be dropped by a
//! destructor of another thread-local variable, after this one's. Whoever comes last gives it back. It says itself
//! how often it is bound, as on some systems a thread that is ending loses its variables one after the other, and
//! gets new ones if it asks again.

use core::cell::Cell;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crossbeam_utils::CachePadded;

use crate::sync::{AtomicPtr, AtomicU64, Mutex, Ordering, SCHEDULED, global, per_thread, with_mine};

/// Blocks of values: of 2^32 threads, or the few of a test under loom or shuttle, and one that is never there, for
/// threads without a seat.
const BLOCKS: usize = match (cfg!(loom), cfg!(shuttle)) {
    (true, _) => 4,
    (_, true) => 5,
    _ => 33,
};
const NO_BLOCK: usize = BLOCKS - 1;

/// A place for a thread: made once, and given from one to the next.
#[derive(Debug)]
pub(crate) struct Seat {
    number: usize,
    /// How many values its thread is bound to, and one more until that thread's end: at 0 it is given back.
    bound: Cell<usize>,
}

// SAFETY: `bound` is the thread's that has the seat; seats change hands under the lock of `SEATS`.
unsafe impl Sync for Seat {}

/// Which seat this thread has, and where its values are.
struct Mine {
    block: Cell<usize>,
    index: Cell<usize>,
    seat: Cell<Option<&'static Seat>>,
}

per_thread! {
    static MINE: Mine = Mine { block: Cell::new(NO_BLOCK), index: Cell::new(0), seat: Cell::new(None) };
}

per_thread! {
    static END: End = End { seat: Cell::new(None) };
}

struct Seats {
    all: Vec<&'static Seat>,
    /// Those that were given back.
    returned: BinaryHeap<Reverse<usize>>,
}

global! {
    static SEATS: Mutex<Seats> = Mutex::new(Seats { all: Vec::new(), returned: BinaryHeap::new() });
}

/// Dropped at the end of a thread that has taken a seat.
struct End {
    seat: Cell<Option<&'static Seat>>,
}

impl Drop for End {
    fn drop(&mut self) {
        // loom's threads have lost their other variables by now.
        if let (Some(seat), false) = (self.seat.get(), cfg!(loom)) {
            seat.unbind();
        }
    }
}

impl Seat {
    /// It is not given back before as many calls of [`Seat::unbind`].
    #[inline(always)]
    pub(crate) fn bind(&self) {
        self.bound.set(self.bound.get() + 1);
    }

    /// Undoes one [`Seat::bind`].
    #[inline(always)]
    pub(crate) fn unbind(&self) {
        let bound = self.bound.get() - 1;
        self.bound.set(bound);
        if bound == 0 {
            self.give_back();
        }
    }

    #[cold]
    fn give_back(&self) {
        // This thread may have lost its variables since, and have another seat now.
        let _ = MINE.try_with(|mine| {
            if mine.seat.get().is_some_and(|seat| core::ptr::eq(seat, self)) {
                mine.block.set(NO_BLOCK);
                mine.seat.set(None);
            }
        });
        SEATS.lock().returned.push(Reverse(self.number));
    }
}

/// Whether this thread goes on, and will drop its [`End`].
fn goes_on() -> bool {
    END.try_with(|_| ()).is_ok()
}

/// Takes a seat for this thread.
#[cold]
fn take_seat(mine: &Mine) -> &'static Seat {
    let seat = {
        let mut seats = SEATS.lock();
        match seats.returned.pop() {
            Some(Reverse(number)) => seats.all[number],
            None => {
                let seat = Seat { number: seats.all.len(), bound: Cell::new(0) };
                // Alone in its cache lines: each pin writes to it, and its neighbours may be other threads'.
                let seat: &Seat = Box::leak(Box::new(CachePadded::new(seat)));
                seats.all.push(seat);
                seat
            }
        }
    };
    let block = (seat.number + 1).ilog2() as usize;
    assert!(block < NO_BLOCK, "too many threads");
    mine.block.set(block);
    mine.index.set(seat.number + 1 - (1 << block));
    mine.seat.set(Some(seat));
    // A thread that is ending gives it back when it is not bound any more: `END` is gone, or has the seat that was lost.
    let until_the_end = END.try_with(|end| {
        let is_first = end.seat.get().is_none();
        if is_first {
            end.seat.set(Some(seat));
        }
        is_first
    });
    seat.bound.set(usize::from(until_the_end.unwrap_or(false)));
    seat
}

/// A number of this thread: small, and no other living thread's; or 0, of one that is ending and has no seat.
#[inline]
pub(crate) fn number() -> usize {
    with_mine(&MINE, |mine| match mine.seat.get() {
        Some(seat) => seat.number,
        None if goes_on() => take_seat(mine).number,
        None => 0,
    })
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

    /// This thread's value, and its seat: whoever keeps the value binds that.
    #[inline(always)]
    pub(crate) fn get(&self) -> (&T, &'static Seat) {
        with_mine(&MINE, |mine| {
            let value = self.find(mine).unwrap_or_else(|| self.make(mine));
            // SAFETY: the value is in a block, and so the thread has a seat: `take_seat` sets both, `give_back` unsets both.
            (value, unsafe { mine.seat.get().unwrap_unchecked() })
        })
    }

    /// The same; and for a thread that is ending and has no seat, the first one's: it takes none that it might not give
    /// back. Both may count there at once, and one count be lost.
    #[inline(always)]
    pub(crate) fn get_for_counts(&self) -> &T {
        with_mine(&MINE, |mine| self.find(mine).unwrap_or_else(|| self.make_for_counts(mine)))
    }

    #[inline(always)]
    fn find(&self, mine: &Mine) -> Option<&T> {
        // SAFETY: `NO_BLOCK`, or what `take_seat` asserts to be less.
        let block = unsafe { self.blocks.get_unchecked(mine.block.get()) };
        // Acquire: pairs with the exchange in `make_block`.
        let values = block.load(Ordering::Acquire);
        // SAFETY: a block has a value for each of its seats, and lives as long as we do.
        (!values.is_null()).then(|| unsafe { &*values.add(mine.index.get()) })
    }

    /// Makes the block of this thread's value.
    #[cold]
    fn make(&self, mine: &Mine) -> &T {
        if mine.seat.get().is_none() {
            take_seat(mine);
        }
        self.make_block(mine.block.get(), mine.index.get())
    }

    #[cold]
    fn make_for_counts(&self, mine: &Mine) -> &T {
        if mine.seat.get().is_none() && !goes_on() { self.make_block(0, 0) } else { self.make(mine) }
    }

    /// Makes a block, unless it is there, and finds a value in it.
    fn make_block(&self, number: usize, index: usize) -> &T {
        let block = &self.blocks[number];
        let values: Box<[T]> = (0..1_usize << number).map(|_| T::default()).collect();
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
        // SAFETY: as in `find`.
        unsafe { &*at.add(index) }
    }

    /// The values of all threads that have asked for one, and of some that have not.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.blocks.iter().enumerate().flat_map(|(block, values)| {
            // Acquire: as in `find`.
            let values = values.load(Ordering::Acquire);
            let len = if values.is_null() { 0 } else { 1_usize << block };
            // SAFETY: as in `find`.
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
                    assert_eq!(values.get().0.fetch_add(1, Ordering::Relaxed), 0);
                    assert!(core::ptr::eq(values.get().0, values.get().0));
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
            PerThread::<AtomicUsize>::new().get().1.bind();
            number()
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
                let (value, seat) = VALUES.get();
                value.fetch_add(1, Ordering::Relaxed);
                seat.unbind();
            }
        }
        std::thread_local!(static LATE: Late = const { Late });
        for first in [true, false] {
            let thread = std::thread::spawn(move || {
                let touch = || LATE.with(|_| ());
                if first {
                    touch();
                }
                VALUES.get().1.bind();
                touch();
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
                VALUES.get_for_counts();
                if self.0.get() {
                    let (_, seat) = VALUES.get();
                    seat.bind();
                    seat.unbind();
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
