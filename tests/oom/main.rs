//! No memory: every operation that allocates, with its n-th allocation refused, for every n, alone and with all that follow in
//! the same call. It succeeds, or returns its error, or panics as documented; it hands back what it did not take; earlier
//! entries stay; nothing leaks; and with memory again the next one works. In `lasting` the lack of memory outlasts a call.
//!
//! If there is no memory for the reclaimer or a few small boxes, the process ends, as it does for any `Box`. So the operations
//! run in a child, this program again, which is restarted after each such end; the parent checks that the refused request came
//! from a place that [`operations::Case`] allows. `KOEL_OOM_TRACE=1` with `--nocapture` shows where each refusal came from.

#[path = "../common/mod.rs"]
mod common;

mod allocator;
mod alone;
mod checked;
mod filters;
mod lasting;
mod operations;
mod overflow;
mod snapshots;

use std::collections::BTreeSet;
use std::io::Write;
use std::process::Command;

use allocator::Plan;
use common::counting::allocated;
use operations::{Case, Ends, Fails};

const CHILD: &str = "KOEL_OOM_CHILD";
/// If set, a child reports where refused requests come from, which takes long.
const TRACE: &str = "KOEL_OOM_ORIGIN";

/// In the child: an operation, from the n-th allocation on, until it needs no more than n.
#[test]
fn the_child() {
    let Ok(task) = std::env::var(CHILD) else { return };
    let mut task = task.splitn(3, ' ');
    let mut next = || task.next().expect("a number, lasting or not, and a name");
    let (first, lasting): (usize, bool) = (next().parse().unwrap(), next().parse().unwrap());
    let name = next();
    let Case { run, .. } = operations::ALL.iter().find(|case| case.name == name).expect("an operation");
    // Threads allocate what they keep for good.
    (0..2).for_each(|_| run(&mut Plan::new(0, lasting)));
    for n in first.. {
        // Before the process can end: directly to the pipe.
        writeln!(std::io::stderr(), "\nn {n}").expect("a pipe");
        let (mut plan, before) = (Plan::new(n, lasting), allocated());
        run(&mut plan);
        assert_eq!(allocated(), before, "bytes were lost");
        if !plan.is_over() {
            return;
        }
    }
}

/// The outcomes of an operation.
#[derive(Default)]
struct Outcome {
    refusals: usize,
    /// How often it failed as it should.
    failures: usize,
    /// Refusals that ended the process: bytes, and where, if that matters.
    ends: BTreeSet<(usize, String)>,
}

/// Runs an operation in a child. Returns whether it completed, and its output.
fn child(name: &str, lasting: bool, first: usize, trace: bool) -> (bool, String) {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command
        .args(["--exact", "the_child", "--nocapture", "--test-threads=1"])
        .env(CHILD, format!("{first} {lasting} {name}"))
        // Otherwise the standard library would request memory to read it while it reports that there is none.
        .env_remove("RUST_BACKTRACE");
    if trace {
        command.env(TRACE, "1");
    }
    let output = command.output().expect("a child");
    (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
}

/// The rest of the last line that begins with `prefix`.
fn last<'t>(text: &'t str, prefix: &str) -> &'t str {
    let found = text.lines().rev().find_map(|line| line.strip_prefix(prefix));
    found.unwrap_or_else(|| panic!("no \"{prefix}\": {text}"))
}

/// Runs an operation in children until one completes.
fn run(case: &Case, lasting: bool) -> Outcome {
    let (mut first, mut outcome) = (1, Outcome::default());
    loop {
        let (done, text) = child(case.name, lasting, first, false);
        let n: usize = last(&text, "n ").parse().unwrap();
        outcome.failures += text.lines().filter(|line| *line == "failed").count();
        if done {
            outcome.refusals = n - 1;
            return outcome;
        }
        let bytes = last(&text, "memory allocation of ").split(' ').next().unwrap().parse().unwrap();
        let place = match case.ends {
            Ends::In(_) => last(&child(case.name, lasting, n, true).1, "from ").to_owned(),
            Ends::Small(_) => String::new(),
        };
        outcome.ends.insert((bytes, place));
        first = n + 1;
    }
}

#[test]
fn no_operation_breaks_for_want_of_memory() {
    common::on_threads(2, |thread| operations::ALL.iter().skip(thread).step_by(2).for_each(breaks_in_no_way));
}

fn breaks_in_no_way(case: &Case) {
    for lasting in [false, true] {
        let Outcome { refusals, failures, ends } = run(case, lasting);
        let name = case.name;
        eprintln!("{name}, lasting: {lasting}: {refusals} refused, {failures} failures; ends: {ends:?}");
        assert!(refusals > 0, "{name} allocates nothing: it proves nothing");
        let may_fail = match case.fails {
            None => false,
            Some(Fails::AtOnce) => true,
            Some(Fails::AtLast) => lasting,
        };
        assert_eq!(failures > 0, may_fail, "{name}: {failures} failures");
        for (bytes, place) in ends {
            let known = match case.ends {
                Ends::In(modules) => modules.iter().any(|module| place.starts_with(module)),
                Ends::Small(most) => bytes <= most,
            };
            assert!(known, "{name}: no memory for {bytes} bytes ended the process: {place}");
        }
    }
}
