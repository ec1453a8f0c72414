//! How long loaders run, timed at a cost that they can afford.

use core::time::Duration;
use std::time::Instant;

use super::coarse;
use super::counters::Counters;

/// A load that takes less is quick: reading the exact time twice would be a twentieth of it, or more.
const QUICK: Duration = Duration::from_micros(1);
/// After this many in a row, those that follow are taken to be quick as well.
const ENOUGH: u64 = 64;
/// Until one takes longer than this, which no tick does.
const LONG: Duration = Duration::from_millis(20);

/// Counts a load, however it ends, and the time that it takes.
///
/// To read the exact time, a processor first finishes the instructions that it has begun: twice, that is a quarter of what a
/// quick load takes altogether. Where a thread's loads are quick they are timed by the system's ticks: then most of them seem
/// to take no time, and once in a while one seems to take a whole tick, so that the sum is right on average, however long each
/// takes. Timing exactly again where a tick has come would count what comes next twice.
pub(super) struct Timer<'c> {
    counts: &'c Counters,
    started: Started,
    /// How many values the loader has made; `None` if it has failed.
    values: Option<u64>,
}

enum Started {
    Exactly(Instant),
    /// By the system's clock as of its last tick.
    AsOf(Duration),
}

impl<'c> Timer<'c> {
    pub(super) fn start(counts: &'c Counters) -> Self {
        if counts.here().quick_loads() < ENOUGH {
            return Timer::exact(counts);
        }
        Timer { counts, started: Started::AsOf(coarse::monotonic()), values: None }
    }

    /// By the exact time: for a load that may end on another thread, about which this thread's other loads say nothing.
    pub(super) fn exact(counts: &'c Counters) -> Self {
        Timer { counts, started: Started::Exactly(Instant::now()), values: None }
    }

    /// The loader has ended; if it has not failed, with this many values.
    pub(super) fn end<T, E>(mut self, loaded: Result<T, E>, values: u64) -> Result<T, E> {
        self.values = loaded.is_ok().then_some(values);
        loaded
    }

    /// The value that was to be loaded has come: one value.
    pub(super) fn succeed(mut self) {
        self.values = Some(1);
    }
}

impl Drop for Timer<'_> {
    #[inline]
    fn drop(&mut self) {
        let (took, was_quick) = match self.started {
            Started::Exactly(started) => {
                let took = started.elapsed();
                (took, took < QUICK)
            }
            Started::AsOf(tick) => {
                // In some kernels it goes back by some nanoseconds.
                let took = coarse::monotonic().saturating_sub(tick);
                (took, took <= LONG)
            }
        };
        self.counts.here().loaded(self.values, took, was_quick);
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use std::thread::sleep;

    use super::*;

    /// How many loads are timed exactly before one is not.
    fn exact_ones(counts: &Counters) -> u64 {
        let mut exact = 0;
        // Each load is over at once.
        while matches!(Timer::start(counts).started, Started::Exactly(_)) {
            exact += 1;
        }
        exact
    }

    #[test]
    #[cfg_attr(miri, ignore = "no load is quick there")]
    fn quick_loads_are_timed_by_ticks_until_one_takes_longer() {
        let counts = Counters::new();
        // Any load may be held up.
        assert!(exact_ones(&counts) >= ENOUGH);
        let before = counts.sums().load_time;
        let timer = Timer::start(&counts);
        sleep(Duration::from_millis(50));
        timer.end(Ok::<_, ()>(()), 1).unwrap();
        assert!(counts.sums().load_time - before > Duration::from_millis(20));
        assert!(exact_ones(&counts) >= ENOUGH);
    }
}
