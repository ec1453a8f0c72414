//! When free pieces are so many that they should go back to the allocator [M4].

use std::time::{Duration, Instant};

/// How long they must have been free: a thread that was stopped with a guard in hand lets them become many, and what it held up
/// will be used again if that happens all the time.
const WHILE: Duration = Duration::from_secs(1);
/// Fewer bytes are not worth it.
const LEAST: usize = 1 << 20;

/// When somebody has looked, what was idle, and what would be worth it next time.
#[derive(Debug)]
pub(super) struct Surplus {
    looked: Instant,
    idle: usize,
    least: usize,
}

impl Surplus {
    pub(super) fn new() -> Self {
        Surplus { looked: Instant::now(), idle: 0, least: LEAST }
    }

    /// Whether to release what is free, of so many bytes in all: if three quarters of them were idle all the time since
    /// somebody looked, and twice as much as when that was last done in vain. `idle` says how many were, and is asked seldom.
    pub(super) fn is_worth_it(&mut self, idle: impl FnOnce() -> usize, bytes: usize) -> bool {
        let now = Instant::now();
        if now.duration_since(self.looked) < WHILE {
            return false;
        }
        (self.looked, self.idle) = (now, idle());
        let is_worth_it = self.idle >= self.least && self.idle / 3 >= bytes / 4;
        if !is_worth_it {
            self.least = LEAST.max(self.least.min(self.idle.saturating_mul(2)));
        }
        is_worth_it
    }

    /// It has been begun. In vain, if as much is idle the next time: the chunks are in use, each for a few.
    pub(super) fn note_release(&mut self) {
        self.least = self.idle.saturating_mul(2);
    }

    /// So long ago.
    #[cfg(test)]
    pub(super) fn age(&mut self) {
        self.looked -= WHILE;
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn three_quarters_of_a_megabyte_and_more_that_are_idle_for_a_while_are_worth_it_and_twice_as_much_after_that()
     {
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
        assert!(!ask(LEAST - 1, LEAST) && ask(LEAST, LEAST));
        // What was idle has gone.
        assert!(!ask(0, bytes) && !ask(bytes / 2, bytes) && ask(bytes * 4 / 5, bytes));
        // It has not.
        for _ in 0..3 {
            assert!(!ask(bytes * 4 / 5, bytes));
        }
        assert!(ask(bytes * 8 / 5, 2 * bytes));
        assert!(!ask(0, bytes));
        // There was no memory to begin it.
        for _ in 0..3 {
            surplus.age();
            assert!(surplus.is_worth_it(|| bytes, bytes));
        }
    }
}
