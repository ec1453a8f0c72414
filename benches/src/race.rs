//! Runs threads from a common start and takes the time from the start to the last finish.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Holds threads back until all have come.
///
/// Threads spin: to be woken by the kernel would take longer than some of the runs do.
#[derive(Debug)]
struct StartLine {
    missing: AtomicUsize,
}

impl StartLine {
    fn new(threads: usize) -> Self {
        StartLine { missing: AtomicUsize::new(threads) }
    }

    fn wait(&self) {
        self.missing.fetch_sub(1, Ordering::AcqRel);
        let mut spins = 0_u32;
        while self.missing.load(Ordering::Acquire) > 0 {
            spins += 1;
            // There may be more threads than cores.
            if spins.is_multiple_of(64) { thread::yield_now() } else { std::hint::spin_loop() }
        }
    }
}

/// Lets each of `threads` threads `warm` up, waits for all, then lets them `run`; both get the thread's number.
///
/// Returns the time from the start to the last finish, and what each thread returned.
pub fn race<R: Send>(
    threads: usize,
    warm: impl Fn(usize) + Sync,
    run: impl Fn(usize) -> R + Sync,
) -> (Duration, Vec<R>) {
    let line = StartLine::new(threads);
    let lane = |number| {
        warm(number);
        line.wait();
        let start = Instant::now();
        let result = run(number);
        (start, Instant::now(), result)
    };
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
        let pause = |number: usize| thread::sleep(Duration::from_millis(10 * number as u64));
        let (elapsed, numbers) = race(
            3,
            |_| thread::sleep(WARMING),
            |n| {
                pause(n);
                n
            },
        );
        assert_eq!(numbers, [0, 1, 2]);
        assert!(elapsed >= Duration::from_millis(20), "{elapsed:?}");
        assert!(elapsed < WARMING, "it began before the start: {elapsed:?}");
    }
}
