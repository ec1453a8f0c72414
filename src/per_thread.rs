//! [`PerThread`]: a value for each thread, which others may look at; used for the counts of threads.

use crate::seats::{self, BLOCKS};
use crate::sync::{AtomicPtr, AtomicU64, Ordering, SCHEDULED};

/// Adds to a count that only this thread writes, without a locked instruction.
#[inline]
pub(crate) fn add(count: &AtomicU64, n: u64) {
    // Counts would be explored in vain.
    if SCHEDULED {
        return;
    }
    // Relaxed, both: information.
    count.store(count.load(Ordering::Relaxed).wrapping_add(n), Ordering::Relaxed);
}

/// A value for each thread that asks for one.
#[derive(Debug)]
pub(crate) struct PerThread<T> {
    /// Each is null, or leads to 1, 2, 4, ... values.
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

    /// This thread's value; for a thread that is ending and has no seat, that of the first seat: both threads may count there
    /// at once, and one count may be lost.
    #[inline(always)]
    pub(crate) fn get(&self) -> &T {
        let (block, index) = seats::place();
        // SAFETY: always less than `BLOCKS`.
        let block = unsafe { self.blocks.get_unchecked(block) };
        // Acquire: pairs with the exchange in `make_block`.
        let values = block.load(Ordering::Acquire);
        if values.is_null() {
            return self.make();
        }
        // SAFETY: a block has a value for each of its seats, and lives as long as we do.
        unsafe { &*values.add(index) }
    }

    /// Makes the block of this thread's value.
    #[cold]
    fn make(&self) -> &T {
        let (block, index) = seats::take_place();
        self.make_block(block, index)
    }

    /// Makes a block, unless it exists, and finds a value in it.
    fn make_block(&self, number: usize, index: usize) -> &T {
        let block = &self.blocks[number];
        let values: Box<[T]> = (0..1_usize << number).map(|_| T::default()).collect();
        let new = Box::into_raw(values);
        // Release: pairs with the loads of threads that look at the values; Acquire: with the exchange of a thread that was
        // faster.
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
        unsafe { &*at.add(index) }
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

/// What models need in addition: the caches count nothing in models.
#[cfg(loom)]
pub(crate) mod model {
    use super::{AtomicU64, Ordering, PerThread};

    /// A count for each thread.
    #[derive(Debug)]
    pub struct Counts(PerThread<AtomicU64>);

    impl Counts {
        /// Counts that are all 0.
        #[expect(clippy::new_without_default, reason = "the container has none either")]
        pub fn new() -> Self {
            Counts(PerThread::new())
        }

        /// Adds to this thread's count.
        pub fn add(&self, n: u64) {
            // Relaxed: a count.
            self.0.get().fetch_add(n, Ordering::Relaxed);
        }

        /// The sum of all threads' counts.
        pub fn sum(&self) -> u64 {
            // Relaxed: a count.
            self.0.iter().map(|count| count.load(Ordering::Relaxed)).sum()
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
                    // No thread leaves a seat to another before all have one.
                    done.wait();
                });
            }
        });
        let sum: usize = values.iter().map(|value| value.load(Ordering::Relaxed)).sum();
        assert_eq!(sum, THREADS);
    }
}
