//! The times of a pass's operations.

use std::iter::Sum;

use hdrhistogram::Histogram;

use crate::plan::Action;
use crate::stopwatch::new_histogram;

/// Nanoseconds that single operations took: waiting for writers shows in the reads, waiting for readers in the writes.
#[derive(Debug)]
pub struct Times {
    /// Of look-ups.
    pub reads: Histogram<u64>,
    /// Of inserts, removals and updates.
    pub writes: Histogram<u64>,
}

impl Default for Times {
    fn default() -> Self {
        Times { reads: new_histogram(), writes: new_histogram() }
    }
}

impl Times {
    /// Adds the time of one operation.
    #[inline]
    pub fn record(&mut self, action: Action, nanos: u64) {
        let histogram = if action == Action::Get { &mut self.reads } else { &mut self.writes };
        histogram.saturating_record(nanos);
    }
}

impl Sum for Times {
    fn sum<I: Iterator<Item = Times>>(times: I) -> Times {
        times.fold(Times::default(), |mut all, times| {
            all.reads += times.reads;
            all.writes += times.writes;
            all
        })
    }
}
