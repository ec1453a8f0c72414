//! When there are so many free pieces that they should go back to the allocator [M4].

use std::time::{Duration, Instant};

/// How long they must have been free: a thread that was stopped while holding a guard makes them become many, and if that
/// happens all the time, the memory it held up will be used again.
const IDLE_FOR: Duration = Duration::from_secs(1);
/// Fewer bytes are not worth a release.
const LEAST_BYTES: usize = 1 << 20;

/// How much has been free since the last look, and how much would be worth a release next time.
#[derive(Debug)]
pub(super) struct Surplus {
    /// When the last look was, or the first sample, and the fewest bytes that were free at any sample since; `None` before the
    /// first one.
    since: Option<(Instant, usize)>,
    /// As of the last look.
    idle_bytes: usize,
    least_bytes: usize,
}

impl Surplus {
    pub(super) fn new() -> Self {
        Surplus { since: None, idle_bytes: 0, least_bytes: LEAST_BYTES }
    }

    /// Takes a sample: how many bytes are free now, of so many in all. Returns whether to release them: once a second at most,
    /// if half of all bytes, and at least `least_bytes`, were free at each sample since the last look. What `withheld` returns
    /// is free as well; it is called at the looks only.
    pub(super) fn is_worth_it(
        &mut self,
        free: usize,
        withheld: impl FnOnce() -> usize,
        bytes: usize,
    ) -> bool {
        let now = Instant::now();
        let Some((looked, fewest)) = self.since else {
            self.since = Some((now, free));
            return false;
        };
        let fewest = fewest.min(free);
        if now.duration_since(looked) < IDLE_FOR {
            self.since = Some((looked, fewest));
            return false;
        }
        self.since = Some((now, free));
        self.idle_bytes = fewest.saturating_add(withheld());
        let is_worth_it = self.idle_bytes >= self.least_bytes && self.idle_bytes >= bytes / 2;
        if !is_worth_it {
            // If less is idle than when a release was in vain, twice that amount is worth another.
            self.least_bytes = LEAST_BYTES.max(self.least_bytes.min(self.idle_bytes.saturating_mul(2)));
        }
        is_worth_it
    }

    /// Notes that a release has begun. It was in vain if as much is idle the next time: the chunks are in use, each for a few
    /// pieces.
    pub(super) fn note_release(&mut self) {
        self.least_bytes = self.idle_bytes.saturating_mul(2);
    }

    /// Notes that a release has ended: while it took pieces out, few were there, which says nothing about how many are used.
    pub(super) fn begin_anew(&mut self) {
        self.since = None;
    }

    /// Makes less worth a release.
    #[cfg(test)]
    pub(super) fn note_worth(&mut self) {
        self.least_bytes = 1;
    }

    /// Moves the last look into the past by the time that pieces must be idle.
    #[cfg(test)]
    pub(super) fn age(&mut self) {
        self.since = self.since.map(|(looked, fewest)| (looked - IDLE_FOR, fewest));
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    const BYTES: usize = 100 << 20;

    #[test]
    fn half_that_is_idle_for_a_while_and_a_megabyte_is_worth_it_and_then_twice_as_much() {
        let mut surplus = Surplus::new();
        let mut ask = |free, bytes| {
            surplus.begin_anew();
            for _ in 0..2 {
                let withheld = || unreachable!("it has not been free for long");
                assert!(!surplus.is_worth_it(usize::MAX, withheld, bytes));
            }
            surplus.age();
            // Wherever it is.
            let is_worth_it = surplus.is_worth_it(free / 3, || free - free / 3, bytes);
            if is_worth_it {
                surplus.note_release();
            }
            is_worth_it
        };
        assert!(!ask(LEAST_BYTES - 1, LEAST_BYTES) && ask(LEAST_BYTES, LEAST_BYTES));
        // What was idle has gone.
        assert!(!ask(0, BYTES) && !ask(BYTES / 2 - 1, BYTES) && ask(BYTES * 4 / 5, BYTES));
        // It has not.
        for _ in 0..3 {
            assert!(!ask(BYTES * 4 / 5, BYTES));
        }
        assert!(ask(BYTES * 8 / 5, 2 * BYTES));
        assert!(!ask(0, BYTES));
        // There was no memory to begin the release.
        for _ in 0..3 {
            surplus.begin_anew();
            assert!(!surplus.is_worth_it(BYTES, || 0, BYTES));
            surplus.age();
            assert!(surplus.is_worth_it(BYTES, || 0, BYTES));
        }
    }

    #[test]
    fn what_was_in_use_at_any_sample_since_the_last_look_is_not_idle() {
        let mut surplus = Surplus::new();
        let mut look = |samples: &[usize]| {
            let (last, others) = samples.split_last().expect("one at least");
            assert!(others.iter().all(|&free| !surplus.is_worth_it(free, || BYTES, BYTES)));
            surplus.age();
            surplus.is_worth_it(*last, || 0, BYTES)
        };
        assert!(!look(&[BYTES]), "the first sample is of one moment");
        assert!(look(&[BYTES; 3]));
        assert!(!look(&[BYTES, 0, BYTES]) && !look(&[BYTES, BYTES, 0]));
        assert!(!look(&[BYTES]), "nothing was free at the last look");
        assert!(look(&[BYTES]));
        assert!(!look(&[0]));
        surplus.begin_anew();
        surplus.age();
        assert!(!surplus.is_worth_it(BYTES, || 0, BYTES), "while it is released, nothing is free");
    }
}
