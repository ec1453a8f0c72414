//! Ctrl-C ends the making of plans, which may take as long as running them. A program of its own, as a request to stop cannot
//! be withdrawn.
#![cfg(unix)]

use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use koel_bench::dist::Dist;
use koel_bench::error::Error;
use koel_bench::plan;
use koel_bench::stop;
use koel_bench::trace::Trace;
use koel_bench::workload::{Mix, Workload};

const KEYS: u64 = 100;
const OPS: usize = 1_000;

/// The kinds of plans whose making is not stopped.
fn made() -> Vec<&'static str> {
    let mix: Mix = "50/50/0/0".parse().unwrap();
    let trace = Arc::new(Trace::of(0..KEYS));
    let (own, shared) = (Workload::replacing("own", mix), Workload::shared("shared", mix));
    let mixed = |workload, trace| plan::mixed(workload, KEYS, Dist::Uniform, 2, OPS, trace).map(drop);
    let plans = [
        ("own", mixed(&own, None)),
        ("shared", mixed(&shared, None)),
        ("own of a trace", mixed(&own, Some(&trace))),
        ("shared of a trace", mixed(&shared, Some(&trace))),
        ("reads", plan::reads(KEYS, Dist::Uniform, 2, OPS, true).map(drop)),
        ("reads of a trace", plan::replayed_reads(&trace, 2, OPS).map(drop)),
        ("texts", plan::texts(KEYS, Dist::Uniform, 2, OPS).map(drop)),
    ];
    assert!(plans.iter().all(|(_, plan)| matches!(plan, Ok(()) | Err(Error::Stopped))));
    plans.iter().filter(|(_, plan)| plan.is_ok()).map(|(kind, _)| *kind).collect()
}

#[test]
fn ctrl_c_ends_the_making_of_plans() {
    stop::watch().unwrap();
    assert_eq!(made().len(), 7);
    let kill = format!("kill -INT {}", std::process::id());
    assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
    let start = Instant::now();
    while stop::check().is_ok() && start.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(stop::check().is_err());
    assert!(made().is_empty(), "{:?}", made());
}
