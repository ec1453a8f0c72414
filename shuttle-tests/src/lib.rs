//! What the schedules in `tests/` share: how they are run, maps of each kind, and values that know whether they have been
//! dropped.
//!
//! While `loom-tests` goes through every interleaving of two or three threads, these schedules draw interleavings of many
//! threads and whole operations at random, with threads of equal chances and with threads whose priorities change a few times
//! (PCT: Burckhardt et al., A randomized scheduler with probabilistic guarantees of finding bugs, ASPLOS 2010). For shuttle all
//! atomic operations are in one order: memory orderings are loom's business.
//!
//! `RUSTFLAGS="--cfg shuttle" cargo test --release -p shuttle-tests`; `KOEL_SCHEDULES=100000` draws more schedules of each kind
//! for each test, `KOEL_SEED=7` draws others; `KOEL_REPLAY` takes the schedule that a failed test has printed, for that test.
//! (Not for the guard's tests: half of the seed of the guard's hash functions is the process's.)
#![cfg(shuttle)]

use std::env;
use std::sync::Arc;

use shuttle::scheduler::{
    PctScheduler, RandomScheduler, ReplayScheduler, Scheduler, UncontrolledNondeterminismCheckScheduler,
};
use shuttle::{Config, MaxSteps, Runner};

#[path = "../../loom-tests/src/failed.rs"]
mod failed;
#[path = "../../loom-tests/src/hashes.rs"]
mod hashes;
#[path = "../../loom-tests/src/identity.rs"]
mod identity;
mod ledger;
mod maps;

pub use failed::Failed;
pub use hashes::same_hashes;
pub use identity::Identity;
pub use ledger::{Ledger, Value};
pub use maps::{Inline, Map, Owned, Plain, Shape};

/// Changes of priority in a schedule, plus one. Most errors need one or two; with many, threads run for some dozens of steps at
/// a time: so one thread performs a whole operation between two steps of another's, in which it takes part again and again.
const DEPTHS: [usize; 2] = [3, 40];
/// More steps than any schedule needs: beyond that, threads are waiting for each other, or for nobody.
const STEPS: usize = 300_000;
/// Bytes of a thread's stack.
const STACK: usize = 1 << 18;

/// Runs a test in so many schedules of each kind, unless the environment says how many.
pub fn explore(schedules: usize, test: impl Fn() + Send + Sync + 'static) {
    let test = Arc::new(test);
    same_hashes();
    if let Ok(schedule) = env::var("KOEL_REPLAY") {
        return run(ReplayScheduler::new_from_encoded(&schedule), &test);
    }
    let (schedules, seed) = (number("KOEL_SCHEDULES", schedules as u64) as usize, number("KOEL_SEED", 1));
    assert!(schedules > 0, "KOEL_SCHEDULES=0: nothing would be tested");
    // A test that does not behave the same when it is run again cannot be replayed.
    let twice = RandomScheduler::new_from_seed(seed, 3);
    run(UncontrolledNondeterminismCheckScheduler::new(twice), &test);
    run(RandomScheduler::new_from_seed(seed, schedules), &test);
    for depth in DEPTHS {
        run(PctScheduler::new_from_seed(seed, depth, schedules), &test);
    }
}

fn number(name: &str, default: u64) -> u64 {
    env::var(name).map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name}={text}: a number")))
}

fn run(scheduler: impl Scheduler + 'static, test: &Arc<impl Fn() + Send + Sync + 'static>) {
    let mut config = Config::new();
    config.stack_size = STACK;
    config.max_steps = MaxSteps::FailAfter(STEPS);
    config.silence_warnings = true;
    let test = Arc::clone(test);
    Runner::new(scheduler, config).run(move || test());
}

/// Lets other threads go first.
pub fn pause() {
    shuttle::thread::yield_now();
}
