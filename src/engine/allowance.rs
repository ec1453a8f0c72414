//! How many items a table of fixed capacity may put into the overflow: [`Allowance`].
//!
//! As long as the table has fewer items than it promises to hold, an item that finds no path goes there. To know how many it
//! has means looking at all segments, and where these are smallest, one item in six finds no path. So one count serves many
//! items.

use crate::sync::{AtomicUsize, Ordering};

/// A count of all items is good for one part in this many of the room that it finds.
const PART: usize = 64;

/// How many items may go to the overflow before all are counted again.
#[derive(Debug)]
pub(super) struct Allowance(AtomicUsize);

impl Allowance {
    /// None: the next one needs a count of all items.
    pub(super) fn none() -> Self {
        Allowance(AtomicUsize::new(0))
    }

    /// The capacity is about to change.
    pub(super) fn withdraw(&mut self) {
        *self = Allowance::none();
    }

    /// Whether there is room for one more item. `count` says for how many there is room; it is called only if that is not
    /// known.
    pub(super) fn take(&self, count: impl FnOnce() -> usize) -> bool {
        // Relaxed, here and below: a number, and what it allows may be a few too many.
        let taken = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        if taken.is_ok() {
            return true;
        }
        let room = count();
        self.0.store(room / PART, Ordering::Relaxed);
        room > 0
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    /// Takes one after the other until there is no room. Returns how many were taken, and how often all were counted.
    fn fill(allowance: &Allowance, room: usize) -> (usize, usize) {
        let (mut taken, mut counts) = (0, 0);
        while allowance.take(|| {
            counts += 1;
            room - taken
        }) {
            taken += 1;
        }
        (taken, counts)
    }

    #[test]
    fn all_are_counted_some_hundred_times_while_a_table_fills_and_none_is_refused_early() {
        for (room, most) in [(0, 1), (1, 2), (20, 21), (1000, 300), (1_000_000, 800)] {
            let allowance = Allowance::none();
            for room in [room, room / 2, 0] {
                let (taken, counts) = fill(&allowance, room);
                assert_eq!(taken, room);
                assert!(counts <= most, "{counts} counts for {room}");
            }
        }
    }

    #[test]
    fn what_was_allowed_is_withdrawn() {
        let mut allowance = Allowance::none();
        assert!(allowance.take(|| 64) && allowance.take(|| unreachable!("there is one")));
        assert!(allowance.take(|| 64));
        allowance.withdraw();
        assert!(!allowance.take(|| 0));
    }
}
