//! How much a cache may hold, and how its segments share that.
//!
//! Each segment has a quota, which only the holder of its lock changes or uses. The quotas and what is spare sum to the
//! capacity at most, and no segment uses more than its quota. So the cache never holds more than the capacity, although there
//! is no count that all writers share [B1]. A segment takes quota from others when one item needs more than it has, or when it
//! has few items, and gives back what it has above its share as items leave.
//!
//! [B2] Quota moves only with `lending` locked, and never into a segment before it has left another: the lock order is
//! `lending`, then one segment. The holder of a segment's lock may only try `lending`.

use crossbeam_utils::CachePadded;

use crate::sync::{AtomicU64, Mutex, MutexGuard, Ordering, fence, spin_loop, step};

/// The bound of a cache. Units: entries, or what the weigher says.
#[derive(Debug)]
pub(super) struct Bound {
    capacity: AtomicU64,
    lending: Mutex<Lending>,
    /// Counts the moments before a quota rises.
    raises: AtomicU64,
    /// The use of each segment, by its index.
    used: Box<[CachePadded<AtomicU64>]>,
}

/// The state that is locked to move quota.
#[derive(Debug)]
pub(super) struct Lending {
    /// Quota that no segment has.
    pub(super) spare: u64,
    /// The quota of each segment, by its index.
    pub(super) quotas: Box<[u64]>,
    /// The last lot, in 2^-64.
    lot: u64,
}

impl Bound {
    /// A bound shared by this many segments, each of which has [`Bound::share`] as its quota.
    pub(super) fn new(capacity: u64, segments: u32) -> Self {
        Bound {
            capacity: AtomicU64::new(capacity),
            lending: Mutex::new(Lending {
                spare: 0,
                quotas: (0..segments).map(|segment| share_of(capacity, segments, segment)).collect(),
                lot: 0,
            }),
            raises: AtomicU64::new(0),
            used: (0..segments).map(|_| CachePadded::new(AtomicU64::new(0))).collect(),
        }
    }

    /// How much the whole cache may hold.
    pub(super) fn capacity(&self) -> u64 {
        // Acquire: pairs with `set_capacity`.
        self.capacity.load(Ordering::Acquire)
    }

    /// Changes the capacity: to a larger one before quotas rise, to a smaller one after they have fallen. Called with `lending`
    /// locked; the caller changes the quotas.
    pub(super) fn set_capacity(&self, capacity: u64) {
        // Release: pairs with `capacity`: a reader that sees a smaller one sees what was evicted for it.
        self.capacity.store(capacity, Ordering::Release);
    }

    /// The number of segments.
    pub(super) fn segments(&self) -> u32 {
        self.used.len() as u32
    }

    /// The quota of a segment that neither borrows nor lends.
    pub(super) fn share(&self, segment: u32) -> u64 {
        share_of(self.capacity(), self.segments(), segment)
    }

    /// Locks the moving of quota.
    pub(super) fn lend(&self) -> MutexGuard<'_, Lending> {
        self.lending.lock()
    }

    /// [`Bound::lend`], unless another thread is lending; for the holder of a segment's lock.
    pub(super) fn try_lend(&self) -> Option<MutexGuard<'_, Lending>> {
        self.lending.try_lock()
    }

    /// How much of its quota a segment does not use: only information, as the segment's lock is not held.
    pub(super) fn idle(&self, lending: &Lending, segment: u32) -> u64 {
        // Relaxed: a number that may be old.
        let used = self.used[segment as usize].load(Ordering::Relaxed);
        lending.quotas[segment as usize].saturating_sub(used)
    }

    /// Draws lots for a segment, each as likely as its part of the total use. `None` if nothing is used.
    pub(super) fn draw(&self, lending: &mut Lending) -> Option<u32> {
        // Relaxed: numbers that may be old.
        let used = |segment: u32| self.used[segment as usize].load(Ordering::Relaxed);
        let all = (0..self.segments()).map(used).fold(0, u64::saturating_add);
        // Multiples of the golden ratio: far apart, and always the same.
        lending.lot = lending.lot.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut left = (u128::from(lending.lot) * u128::from(all)) >> 64;
        (0..self.segments()).find(|&segment| {
            let used = u128::from(used(segment));
            let is_it = left < used;
            left = left.saturating_sub(used);
            is_it
        })
    }

    /// Call with `lending` locked, after quota has left one segment and before another has it.
    pub(super) fn before_raise(&self) {
        let raises = self.raises.load(Ordering::Relaxed);
        // Release: pairs with the first load in `used`: a sum that starts from here sees what was evicted for the raise.
        self.raises.store(raises + 1, Ordering::Release);
    }

    /// Sets what a segment uses now. Only for the holder of its lock.
    #[inline]
    pub(super) fn set_used(&self, segment: u32, used: u64) {
        let published = &self.used[segment as usize];
        // Relaxed: only the holder stores. A full segment mostly uses what it used before: then the line stays shared, and what
        // was published is within the present quota as well.
        if published.load(Ordering::Relaxed) != used {
            // Release: pairs with the fence in `used`: a reader that sees a raised quota used sees the raise.
            published.store(used, Ordering::Release);
        }
    }

    /// What all segments use: at no moment more than the capacity [B3].
    pub(super) fn used(&self) -> u64 {
        self.used_and_capacity().0
    }

    /// The same, and a capacity that is not exceeded by it.
    ///
    /// Each segment is read within its quota. Between two equal counts of raises no quota rose, so the quotas that were met sum
    /// to no more than those at the first count. Nor do they sum to more than the capacity: it is only read as lower than at
    /// the first count after they have fallen.
    pub(super) fn used_and_capacity(&self) -> (u64, u64) {
        loop {
            // Acquire: pairs with `before_raise`.
            let before = self.raises.load(Ordering::Acquire);
            let capacity = self.capacity();
            // Wrapping: if a raise has come between, the sum may be any number.
            let used = self.used.iter().map(|used| {
                step();
                used.load(Ordering::Relaxed)
            });
            let sum = used.fold(0, u64::wrapping_add);
            // Acquire: pairs with `set_used`.
            fence(Ordering::Acquire);
            if self.raises.load(Ordering::Relaxed) == before {
                return (sum, capacity);
            }
            spin_loop();
        }
    }
}

/// An equal part of `capacity`; the first segments get the remainder.
pub(super) fn share_of(capacity: u64, segments: u32, segment: u32) -> u64 {
    let segments = u64::from(segments);
    capacity / segments + u64::from(u64::from(segment) < capacity % segments)
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn lots_fall_on_segments_as_often_as_what_they_use_is_a_part_of_all() {
        let bound = Bound::new(400, 4);
        let mut lending = bound.lend();
        assert_eq!(bound.draw(&mut lending), None, "nothing is used");
        let used = [30, 0, 150, 120];
        (0..).zip(used).for_each(|(segment, used)| bound.set_used(segment, used));
        let mut drawn = [0_u64; 4];
        (0..3000).for_each(|_| drawn[bound.draw(&mut lending).expect("one") as usize] += 1);
        assert!(drawn.iter().zip(used).all(|(drawn, used)| drawn.abs_diff(10 * used) < 10), "{drawn:?}");
        // What was published may be older than the present quota.
        assert_eq!([0, 1, 2, 3].map(|segment| bound.idle(&lending, segment)), [70, 100, 0, 0]);
    }

    #[test]
    fn shares_sum_to_the_capacity() {
        for capacity in [0, 1, 7, 8, 9, 1000, u64::MAX] {
            let shares = (0..8).map(|segment| share_of(capacity, 8, segment));
            assert_eq!(shares.map(u128::from).sum::<u128>(), u128::from(capacity));
        }
    }
}
