//! How long a contestant is timed, and its warm-up before the clock starts.

use std::time::{Duration, Instant};

/// How many lookups each thread does before the clock starts, so that it finds the map, or whatever is measured, in the
/// processor's caches as in a longer run.
const WARM_LOOKUPS: usize = 250_000;

/// No further pass begins when this many times the time for passes has gone by: the work between them, such as making a map of
/// millions of entries, may take much longer than a pass.
const PATIENCE: u32 = 20;

/// Adds up passes until enough time has been spent in them.
#[derive(Debug)]
pub(super) struct Clock {
    began: Instant,
    wanted: Duration,
    spent: Duration,
    ops: u64,
}

impl Clock {
    pub(super) fn new(seconds: f64) -> Self {
        let wanted = Duration::from_secs_f64(seconds);
        Clock { began: Instant::now(), wanted, spent: Duration::ZERO, ops: 0 }
    }

    pub(super) fn is_fresh(&self) -> bool {
        self.ops == 0
    }

    /// The part of a thread's look-ups that is done before the clock starts: before the first pass, the last ones, as if there
    /// had been a pass already.
    pub(super) fn warm_part<'a, T>(&self, lookups: &'a [T]) -> &'a [T] {
        if self.is_fresh() { last_lookups(lookups) } else { &[] }
    }

    pub(super) fn goes_on(&self) -> bool {
        self.is_fresh() || (self.spent < self.wanted && self.began.elapsed() < self.wanted * PATIENCE)
    }

    pub(super) fn add(&mut self, elapsed: Duration, ops: u64) {
        self.spent += elapsed;
        self.ops += ops;
    }

    pub(super) fn ops_per_microsecond(&self) -> f64 {
        self.ops as f64 / micros(self.spent)
    }
}

/// The last look-ups of a thread: if the first ones were done before the clock starts, they would be found in the processor's
/// caches.
pub(super) fn last_lookups<T>(all: &[T]) -> &[T] {
    &all[all.len().saturating_sub(WARM_LOOKUPS)..]
}

fn micros(elapsed: Duration) -> f64 {
    (elapsed.as_secs_f64() * 1e6).max(1e-3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_between_passes_is_waited_for_twenty_times_as_long_at_most() {
        let mut clock = Clock::new(0.001);
        clock.add(Duration::from_micros(1), 1);
        std::thread::sleep(Duration::from_millis(21));
        assert!(!clock.goes_on() && Clock::new(0.001).goes_on());
    }

    #[test]
    fn the_first_pass_is_warmed_by_what_comes_last() {
        let lookups: Vec<usize> = (0..WARM_LOOKUPS * 3).collect();
        let mut clock = Clock::new(1.0);
        assert_eq!(clock.warm_part(&lookups), &lookups[2 * WARM_LOOKUPS..]);
        assert_eq!(clock.warm_part(&lookups[..7]), &lookups[..7]);
        clock.add(Duration::from_millis(1), 1);
        assert!(clock.goes_on() && clock.warm_part(&lookups).is_empty());
    }
}
