//! The cost of ending a pin is included in measurements.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use koel_bench::contestants::{Contestant, HELD_OPS, RwLockHashbrown, View};
use koel_bench::entrant::{Entrant, Runner};
use koel_bench::plan;
use koel_bench::stopwatch::Stopwatch;
use koel_bench::workload::Preset;

/// The number of pins that were taken.
static PINS: AtomicUsize = AtomicUsize::new(0);

/// How long it takes to end one.
const UNPINNING: Duration = Duration::from_millis(2);

/// A map whose pins take long to end, as if the memory they kept alive were freed then.
struct Unpinning(RwLockHashbrown<u64, u64>);

/// Its pin.
struct SlowPin<'m>(&'m RwLockHashbrown<u64, u64>);

impl Contestant for Unpinning {
    const NAME: &'static str = "unpinning";
    type View<'m> = SlowPin<'m>;

    fn with_capacity(capacity: usize) -> Self {
        Unpinning(Contestant::with_capacity(capacity))
    }

    fn view(&self) -> SlowPin<'_> {
        PINS.fetch_add(1, Ordering::Relaxed);
        SlowPin(&self.0)
    }

    fn entries(&self) -> usize {
        self.0.entries()
    }

    fn sum(&self) -> u64 {
        self.0.sum()
    }

    fn duplicate(&self) -> Self {
        Unpinning(self.0.duplicate())
    }

    fn retain(&self, keep: impl Fn(u64) -> bool) {
        self.0.retain(keep);
    }

    fn clear(&self) {
        self.0.clear();
    }
}

impl Drop for SlowPin<'_> {
    fn drop(&mut self) {
        thread::sleep(UNPINNING);
    }
}

impl View for SlowPin<'_> {
    fn get(&self, key: u64) -> Option<u64> {
        self.0.get(key)
    }

    fn insert(&self, key: u64, value: u64) -> Option<u64> {
        self.0.insert(key, value)
    }

    fn remove(&self, key: u64) -> Option<u64> {
        self.0.remove(key)
    }

    fn update(&self, key: u64) -> Option<u64> {
        self.0.update(key)
    }
}

#[test]
fn the_end_of_a_held_pin_is_in_the_time_of_the_last_operation_under_it() {
    const OPS: usize = 2 * HELD_OPS;
    let workload = Preset::YcsbC.workload();
    let plan = plan::mixed(&workload, 100, workload.dist, 1, OPS, None).unwrap();
    let latencies = |runner: &mut Runner<Unpinning>| {
        let before = PINS.load(Ordering::Relaxed);
        let times = runner.latencies(&plan, &Stopwatch::calibrated()).unwrap();
        (times.reads, PINS.load(Ordering::Relaxed) - before)
    };
    let mut runner = Runner::new();
    latencies(&mut runner);
    // The map has been made by now. Warming up takes a pin for each operation, the check of the content one.
    let (histogram, pins) = latencies(&mut runner);
    assert_eq!(pins, OPS + 2 + 1);
    // The histogram is exact to three digits.
    assert!(histogram.max() >= UNPINNING.as_nanos() as u64 / 1000 * 999, "{}", histogram.max());
}
