//! How often a collector passes heavy barriers.
//!
//! A heavy barrier interrupts every processor that runs one of this process's threads: it takes a third of a microsecond for a
//! single thread, but about ten for two threads of a virtual machine, and as much again for the one that is interrupted. The
//! actual duration is measured each time, and after a barrier none is due for a multiple of it: collecting takes a bounded part
//! of the time, unless too much waits for it, and where a barrier takes little time, what was retired is freed soon.

use std::time::Instant;

use crate::sync::Ordering::Relaxed;
use crate::sync::{AtomicU64, SCHEDULED};

/// After a barrier, none is due for this many times as long as it took.
pub(super) const REST: u64 = 32;
/// Nanoseconds that a collector rests at most: a barrier may have been held up by something else.
pub(super) const LONGEST: u64 = 10_000_000;
/// Nanoseconds for which no other thread is told that a barrier is due, unless the barrier is passed before.
const TURN: u64 = 100_000;

/// When the next heavy barrier is due.
#[derive(Debug)]
pub(super) struct Pace {
    /// The time from which `due` is counted.
    start: Instant,
    /// When the next barrier is due, in nanoseconds.
    due: AtomicU64,
    /// How many times as long as a barrier the collector rests.
    times: u64,
    /// Nanoseconds that the collector rests at most.
    longest: u64,
}

impl Pace {
    /// A pace at which a barrier is due now, and after each there is a rest of so many times its length, at most so many
    /// nanoseconds.
    pub(super) fn new(times: u64, longest: u64) -> Self {
        Pace { start: Instant::now(), due: AtomicU64::new(0), times, longest }
    }

    /// Whether the rest after the last barrier is over, and no other thread has been told so. Always true in models: they have
    /// no time.
    pub(super) fn is_due(&self) -> bool {
        SCHEDULED || self.is_due_at(self.now())
    }

    /// Passes a barrier.
    pub(super) fn pass<T>(&self, barrier: impl FnOnce() -> T) -> T {
        if SCHEDULED {
            return barrier();
        }
        let before = self.now();
        let passed = barrier();
        self.rest(before, self.now());
        passed
    }

    /// The time in nanoseconds; saturates after some centuries.
    fn now(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn is_due_at(&self, now: u64) -> bool {
        // Relaxed, both, and all the others here: advice.
        let due = self.due.load(Relaxed);
        due <= now && self.due.compare_exchange(due, now.saturating_add(TURN), Relaxed, Relaxed).is_ok()
    }

    fn rest(&self, before: u64, after: u64) {
        // A clock that steps back stands still here, as the standard library guarantees.
        let took = after.saturating_sub(before);
        let rest = took.saturating_mul(self.times).min(self.longest);
        self.due.store(after.saturating_add(rest), Relaxed);
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn after_a_barrier_there_is_a_rest_of_so_many_times_its_length() {
        let pace = Pace::new(7, LONGEST);
        pace.rest(1_000, 1_010);
        assert!(!pace.is_due_at(1_079) && pace.is_due_at(1_080));
        pace.rest(10, LONGEST);
        assert!(!pace.is_due_at(2 * LONGEST - 1) && pace.is_due_at(2 * LONGEST), "it was held up");
        pace.rest(10, 5);
        assert!(pace.is_due_at(5), "the clock stepped back");
        let pace = Pace::new(u64::MAX, LONGEST);
        pace.rest(0, 2);
        assert!(!pace.is_due_at(2) && pace.is_due_at(2 + LONGEST), "saturates");
    }

    #[test]
    fn one_is_told_and_others_when_that_one_has_passed_or_has_had_its_time() {
        let pace = Pace::new(REST, LONGEST);
        assert!(pace.is_due_at(2) && !pace.is_due_at(1 + TURN));
        assert!(pace.is_due_at(2 + TURN), "nothing came of it");
        pace.rest(3, 3);
        assert!(pace.is_due_at(3));
    }

    #[test]
    fn a_barrier_is_passed_and_what_it_says_passed_on() {
        let pace = Pace::new(0, LONGEST);
        assert!(pace.is_due() && pace.pass(|| true) && pace.is_due());
        assert!(!pace.pass(|| false));
    }
}
