//! No memory: every operation that allocates, with its n-th allocation refused, for every n. It succeeds, or returns its
//! error, or panics as documented; it hands back what it did not take; what was there is there; and with memory again
//! the next one works.
//!
//! Where small bookkeeping has no memory, the standard library ends the process, as it does for any `Box`. So the
//! operations run in a child, this program again, which is started anew after each such end; the parent demands that
//! what was refused was small: see `BOOKKEEPING`. `KOEL_OOM_TRACE=1` with `--nocapture` shows where each came from.

#[path = "../common/mod.rs"]
mod common;

mod allocator;
mod operations;

use std::io::Write;
use std::process::Command;

/// The most bytes whose want may end the process: lists of segments and tables, boxes of the reclaimer. Tables, entries
/// and filters are more, or asked for by calls that may fail.
const BOOKKEEPING: usize = 20_000;
const CHILD: &str = "KOEL_OOM_CHILD";

/// In the child: the operation `name`, from the n-th allocation on, until it needs no more than n.
#[test]
fn the_child() {
    let Ok(task) = std::env::var(CHILD) else { return };
    let (name, first) = task.rsplit_once(' ').expect("a name and a number");
    let (_, run) = operations::ALL.iter().find(|(other, _)| *other == name).expect("an operation");
    for n in first.parse::<usize>().expect("a number").. {
        // Before it can end: straight to the pipe.
        let mut out = std::io::stderr();
        writeln!(out, "\nn {n}").expect("a pipe");
        if !run(n) {
            return;
        }
    }
}

/// What became of an operation.
struct Outcome {
    refusals: usize,
    /// Bytes of the refused requests that ended the process.
    fatal: Vec<usize>,
}

/// Runs an operation in children until one comes to its end.
fn run(name: &str) -> Outcome {
    let program = std::env::current_exe().expect("this program");
    let (mut first, mut fatal) = (1, Vec::new());
    loop {
        let output = Command::new(&program)
            .args(["--exact", "the_child", "--nocapture", "--test-threads=1"])
            .env(CHILD, format!("{name} {first}"))
            .output()
            .expect("a child");
        let text = String::from_utf8_lossy(&output.stderr);
        let last = text.lines().rev().find_map(|line| line.strip_prefix("n ")?.parse::<usize>().ok());
        let last = last.unwrap_or_else(|| panic!("{name} did not begin: {text}"));
        if output.status.success() {
            return Outcome { refusals: last - 1, fatal };
        }
        let refused =
            |line: &str| line.strip_prefix("memory allocation of ")?.split(' ').next()?.parse().ok();
        let bytes: Option<usize> = text.lines().rev().find_map(refused);
        let shown = text.rsplit("\nn ").next().unwrap_or_default();
        let bytes = bytes.unwrap_or_else(|| panic!("{name}, allocation {last}: {shown}"));
        if std::env::var_os("KOEL_OOM_TRACE").is_some() {
            eprintln!("{name}, allocation {shown}");
        }
        fatal.push(bytes);
        first = last + 1;
    }
}

#[test]
fn no_operation_breaks_for_want_of_memory() {
    for (name, _) in operations::ALL {
        let Outcome { refusals, fatal } = run(name);
        eprintln!("{name}: {refusals} allocations refused, {} ended the process: {fatal:?}", fatal.len());
        assert!(refusals > 0, "{name} allocates nothing: it proves nothing");
        assert!(fatal.len() < refusals, "{name}: nothing could be refused");
        assert!(fatal.iter().all(|bytes| *bytes <= BOOKKEEPING), "{name}: {fatal:?} bytes were no error");
    }
}
