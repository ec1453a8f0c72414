//! What the schedules in `tests/` share: how they are run, maps of each kind, and values that know whether they have been
//! dropped.
//!
//! Where `loom-tests` goes through every interleaving of two or three threads, these draw some of many threads and whole
//! operations at random, of threads of equal chances and of threads with priorities that change a few times (PCT: Burckhardt
//! et al., A randomized scheduler with probabilistic guarantees of finding bugs, ASPLOS 2010). To shuttle all atomic operations
//! are in one order: what orderings are for is loom's business.
//!
//! `RUSTFLAGS="--cfg shuttle" cargo test --release -p shuttle-tests`; `KOEL_SCHEDULES=100000` draws more of each kind for each
//! test, `KOEL_SEED=7` others; `KOEL_REPLAY` takes the schedule that a failed test has printed, for that test. (Not for the
//! guard's: it has hash functions of which half of the seed is the process's.)
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

/// Changes of priority in a schedule, and one more. Most errors need one or two; with many, threads run for some
/// dozens of steps at a time: so one does all of an operation between two steps of another's, in which it takes part
/// again and again.
const DEPTHS: [usize; 2] = [3, 40];
/// Steps of which no schedule needs as many: threads wait for each other, or for nobody.
const STEPS: usize = 300_000;
/// Bytes of a thread's stack.
const STACK: usize = 1 << 18;

/// Runs a test in so many schedules of each kind, unless it is told how many.
pub fn explore(schedules: usize, test: impl Fn() + Send + Sync + 'static) {
    let test = Arc::new(test);
    same_hashes();
    if let Ok(schedule) = env::var("KOEL_REPLAY") {
        return run(ReplayScheduler::new_from_encoded(&schedule), &test);
    }
    let (schedules, seed) = (number("KOEL_SCHEDULES", schedules as u64) as usize, number("KOEL_SEED", 1));
    assert!(schedules > 0, "KOEL_SCHEDULES=0: nothing would be tested");
    // What is not the same when it is run again cannot be replayed.
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
