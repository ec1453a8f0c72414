//! The scripts refuse unknown arguments before they run anything: a misspelt step has not passed.

#![cfg(unix)]

use std::path::Path;
use std::process::Command;

fn command(script: &str) -> Command {
    Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join(script))
}

#[track_caller]
fn refuses(script: &str, args: &[&str], code: i32) {
    refuses_in(&mut command(script), script, args, code);
}

#[track_caller]
fn refuses_in(command: &mut Command, script: &str, args: &[&str], code: i32) {
    let output = command.args(args).output().expect("the script starts");
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{script} {args:?}: {told}");
    assert!(told.starts_with(&format!("{script}: ")), "{script} {args:?}: {told}");
}

#[test]
fn steps_and_targets_are_named_one_by_one() {
    for bad in ["nonsense", "", "lint msrv", "lint "] {
        refuses("tests/all", &["format", bad], 2);
    }
    for bad in ["nonsense", "", "thread memory", " leak"] {
        refuses("tests/long", &["1", "model", bad], 2);
    }
    for bad in ["nonsense", "", "map_ops inline_map_ops"] {
        refuses("fuzz/run", &["1", bad], 2);
    }
}

#[test]
fn numbers_and_kinds_are_what_they_say() {
    for bad in ["0", "-1", "1.5", "model"] {
        refuses("tests/long", &[bad], 2);
    }
    refuses("fuzz/run", &["soon"], 2);
    refuses("tests/machines", &["vax"], 2);
    refuses("tests/sanitizers", &["nonsense"], 2);
    refuses("tests/mutation", &["nonsense"], 1);
}

/// `tests/long` reports that the step was not run, and not that it has failed.
#[test]
fn a_tool_that_is_missing_is_no_failure() {
    for kind in ["thread", "memory"] {
        refuses_in(command("tests/sanitizers").env("KOEL_MIRI", "nonsense"), "tests/sanitizers", &[kind], 77);
    }
}
