//! Times single operations with the processor's time stamp counter, and accounts for the cost of that.

use hdrhistogram::Histogram;
use quanta::Clock;

const CALIBRATION_ROUNDS: usize = 100_000;

/// One minute in nanoseconds: longer operations count as one minute.
const LONGEST_NANOS: u64 = 60_000_000_000;

/// Measures nanoseconds, minus the overhead of measuring.
#[derive(Debug)]
pub struct Stopwatch {
    clock: Clock,
    overhead_nanos: u64,
}

impl Stopwatch {
    /// A stopwatch whose overhead is the median time of an empty operation.
    pub fn calibrated() -> Self {
        let mut stopwatch = Stopwatch { clock: Clock::new(), overhead_nanos: 0 };
        let mut nothing: Vec<u64> = (0..CALIBRATION_ROUNDS).map(|_| stopwatch.time(|| ())).collect();
        nothing.sort_unstable();
        stopwatch.overhead_nanos = nothing[CALIBRATION_ROUNDS / 2];
        stopwatch
    }

    /// The overhead that is subtracted from each time.
    pub fn overhead_nanos(&self) -> u64 {
        self.overhead_nanos
    }

    /// The time that `operation` takes.
    #[inline(always)]
    pub fn time(&self, operation: impl FnOnce()) -> u64 {
        let start = self.read();
        operation();
        let end = self.read();
        self.clock.delta_as_nanos(start, end).saturating_sub(self.overhead_nanos)
    }

    #[inline(always)]
    fn read(&self) -> u64 {
        load_fence();
        let now = self.clock.raw();
        load_fence();
        now
    }
}

/// Keeps loads from moving across the reading of the counter.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn load_fence() {
    // SAFETY: needs SSE2, which every x86-64 processor has.
    unsafe { std::arch::x86_64::_mm_lfence() }
}

#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
fn load_fence() {}

/// An empty histogram for nanoseconds, three digits exact.
pub fn new_histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LONGEST_NANOS, 3).expect("the bounds and the precision are in range")
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn times_are_near_the_truth() {
        let stopwatch = Stopwatch::calibrated();
        let wait = Duration::from_millis(2);
        let nanos = stopwatch.time(|| {
            let start = Instant::now();
            while start.elapsed() < wait {}
        });
        assert!((1_900_000..1_000_000_000).contains(&nanos), "{nanos}");
    }
}
