//! Runs threads from a common start and measures the time from the start to the last finish.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::faults::watched;

/// Holds threads back until all have arrived.
///
/// Threads spin: a wake-up by the kernel would take longer than some of the runs.
#[derive(Debug)]
struct StartLine {
    missing: AtomicUsize,
}

impl StartLine {
    fn new(threads: usize) -> Self {
        StartLine { missing: AtomicUsize::new(threads) }
    }

    fn place(&self) -> Place<'_> {
        Place(self)
    }
}

/// A thread's place at the line. A thread that panics on the way there gives it up: otherwise the others would wait forever.
struct Place<'a>(&'a StartLine);

impl Place<'_> {
    fn wait(self) {
        let line = self.0;
        drop(self);
        let mut spins = 0_u32;
        while line.missing.load(Ordering::Acquire) > 0 {
            spins += 1;
            // There may be more threads than cores.
            if spins.is_multiple_of(64) { thread::yield_now() } else { std::hint::spin_loop() }
        }
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.missing.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Lets each of `threads` threads `warm` up, waits for all, then lets them `run`; both functions get the thread's number.
///
/// Returns the time from the start to the last finish, and what each thread returned. A panic of one of them is resumed here,
/// when all have ended.
pub fn race<R: Send>(
    threads: usize,
    warm: impl Fn(usize) + Sync,
    run: impl Fn(usize) -> R + Sync,
) -> (Duration, Vec<R>) {
    let line = StartLine::new(threads);
    let lane = watched(|number| {
        let place = line.place();
        warm(number);
        place.wait();
        let start = Instant::now();
        let result = run(number);
        (start, Instant::now(), result)
    });
    let lanes: Vec<(Instant, Instant, R)> = thread::scope(|scope| {
        let lane = &lane;
        let handles: Vec<_> = (0..threads).map(|number| scope.spawn(move || lane(number))).collect();
        handles.into_iter().map(|h| h.join().unwrap_or_else(|e| std::panic::resume_unwind(e))).collect()
    });
    let first = lanes.iter().map(|lane| lane.0).min();
    let last = lanes.iter().map(|lane| lane.1).max();
    let elapsed = first.zip(last).map_or(Duration::ZERO, |(first, last)| last - first);
    (elapsed, lanes.into_iter().map(|lane| lane.2).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_runs_from_the_common_start_to_the_last_finish() {
        const WARMING: Duration = Duration::from_millis(500);
        let warmed = parking_lot::Mutex::new(Vec::new());
        let (elapsed, numbers) = race(
            3,
            |_| {
                thread::sleep(WARMING);
                warmed.lock().push(Instant::now());
            },
            |n| {
                thread::sleep(Duration::from_millis(10 * n as u64));
                n
            },
        );
        assert_eq!(numbers, [0, 1, 2]);
        assert!(elapsed >= Duration::from_millis(20), "{elapsed:?}");
        // However long the threads were kept from running.
        let since_the_start = warmed.into_inner().iter().max().expect("three have warmed up").elapsed();
        assert!(elapsed <= since_the_start, "it began before the start: {elapsed:?} of {since_the_start:?}");
    }

    #[test]
    fn who_panics_before_the_start_does_not_keep_the_others_waiting() {
        for panics_at_the_start in [true, false] {
            let panics = |number: usize, is_start: bool| {
                assert!(number != 1 || is_start != panics_at_the_start, "of thread 1");
            };
            let raced = std::panic::catch_unwind(|| race(3, |n| panics(n, true), |n| panics(n, false)));
            let payload = raced.expect_err("a panic goes on");
            assert!(payload.downcast_ref::<&str>().is_some_and(|message| message.contains("of thread 1")));
        }
    }
}
