//! When there are so many free pieces that they should go back to the allocator [M4].

use std::time::{Duration, Instant};

/// How long they must have been free: a thread that was stopped while holding a guard makes them become many, and if that
/// happens all the time, the memory it held up will be used again.
const IDLE_FOR: Duration = Duration::from_secs(1);
/// Fewer bytes are not worth a release.
const LEAST_BYTES: usize = 1 << 20;

/// When the last look was, how much was idle then, and how much would be worth a release next time.
#[derive(Debug)]
pub(super) struct Surplus {
    looked: Instant,
    idle_bytes: usize,
    least_bytes: usize,
}

impl Surplus {
    pub(super) fn new() -> Self {
        Surplus { looked: Instant::now(), idle_bytes: 0, least_bytes: LEAST_BYTES }
    }

    /// Whether to release what is free, of so many bytes in all: if half of these, and at least `least_bytes`, have been idle
    /// since the last look. `idle` returns how many have been; it is called once a second at most.
    pub(super) fn is_worth_it(&mut self, idle: impl FnOnce() -> usize, bytes: usize) -> bool {
        let now = Instant::now();
        if now.duration_since(self.looked) < IDLE_FOR {
            return false;
        }
        (self.looked, self.idle_bytes) = (now, idle());
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

    /// Notes that a release has ended: what has been free until now does not count.
    pub(super) fn begin_anew(&mut self) {
        self.looked = Instant::now();
    }

    /// Makes less worth a release.
    #[cfg(test)]
    pub(super) fn note_worth(&mut self) {
        self.least_bytes = 1;
    }

    /// Moves the last look into the past by the time that pieces must be idle.
    #[cfg(test)]
    pub(super) fn age(&mut self) {
        self.looked -= IDLE_FOR;
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn half_that_is_idle_for_a_while_and_a_megabyte_is_worth_it_and_then_twice_as_much() {
        let mut surplus = Surplus::new();
        assert!(!surplus.is_worth_it(|| unreachable!("nobody has looked for long"), 0));
        let mut ask = |idle, bytes| {
            surplus.age();
            let is_worth_it = surplus.is_worth_it(|| idle, bytes);
            if is_worth_it {
                surplus.note_release();
            }
            is_worth_it
        };
        let bytes = 100 << 20;
        assert!(!ask(LEAST_BYTES - 1, LEAST_BYTES) && ask(LEAST_BYTES, LEAST_BYTES));
        // What was idle has gone.
        assert!(!ask(0, bytes) && !ask(bytes / 2 - 1, bytes) && ask(bytes * 4 / 5, bytes));
        // It has not.
        for _ in 0..3 {
            assert!(!ask(bytes * 4 / 5, bytes));
        }
        assert!(ask(bytes * 8 / 5, 2 * bytes));
        assert!(!ask(0, bytes));
        // There was no memory to begin the release.
        for _ in 0..3 {
            surplus.age();
            assert!(surplus.is_worth_it(|| bytes, bytes));
        }
    }
}
