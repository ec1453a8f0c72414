//! Files that reports are written to.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::{fails, file, prints, stderr};

#[test]
fn a_report_that_cannot_be_written_exits_with_2_before_measuring() {
    fails(&["map", "--json", "no/such/directory/report.json"], &["no/such/directory/report.json"]);
}

#[test]
fn a_run_that_fails_leaves_the_report_that_was_there() {
    let name = &file("earlier.json", "an earlier run's");
    fails(&["guard", "--folder", "no/such/directory", "--json", name], &["no/such/directory"]);
    fails(&["memory", "--json", name, "--html", "no/such/directory/r.html"], &["no/such/directory"]);
    assert_eq!(fs::read_to_string(name).unwrap(), "an earlier run's");
    fs::write(name, "x".repeat(100_000)).unwrap();
    prints(&["memory", "--keys", "100", "--maps", "koel", "--json", name]);
    serde_json::from_str::<Value>(&fs::read_to_string(name).unwrap()).unwrap();
}

#[test]
#[cfg(target_os = "linux")]
fn tables_that_cannot_be_printed_exit_with_2_and_the_report_is_written() {
    let full = || fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let json = file("unprinted.json", "");
    let mut command = Command::new(env!("CARGO_BIN_EXE_koel-bench"));
    command.args(["memory", "--keys", "100", "--maps", "koel", "--json", &json]);
    let output = command.stdout(full()).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("koel-bench: standard output: "), "{}", stderr(&output));
    serde_json::from_str::<Value>(&fs::read_to_string(&json).unwrap()).unwrap();
    // A report for which there is no room does not affect the other one.
    let html = file("unprinted.html", "");
    let args = ["memory", "--keys", "100", "--maps", "koel", "--json", "/dev/full", "--html", &html];
    fails(&args, &["/dev/full: "]);
    assert!(fs::read_to_string(&html).unwrap().starts_with("<!doctype html>"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_koel-bench"));
    let unheard = command.args(["map", "--trace", "no/such/trace.txt"]).stderr(full()).status();
    assert_eq!(unheard.unwrap().code(), Some(2));
}

#[test]
#[cfg(target_os = "linux")]
fn a_report_in_the_file_that_tables_are_printed_to_comes_after_them() {
    let printed = file("printed.txt", "");
    let mut command = Command::new(env!("CARGO_BIN_EXE_koel-bench"));
    command.args(["memory", "--keys", "100", "--maps", "koel", "--json", "/dev/stdout"]);
    let output = command.stdout(fs::File::create(&printed).unwrap()).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let text = fs::read_to_string(&printed).unwrap();
    let (tables, report) = text.split_once("\n{\n").expect("a report after something else");
    assert!(tables.contains("koel"), "{tables}");
    let report = report.strip_suffix("Wrote /dev/stdout\n").expect("nothing between or after");
    serde_json::from_str::<Value>(&format!("{{{report}")).unwrap();
}

#[test]
#[cfg(target_os = "linux")]
fn a_report_that_has_no_room_leaves_what_was_there() {
    let (json, html) = (file("roomless.json", "an earlier run's"), file("roomless.html", ""));
    fs::remove_file(&html).unwrap();
    // Then no file grows beyond 1 KiB, and an attempt fails with an error, not a signal.
    let script = "trap '' XFSZ; ulimit -f 2; exec \"$0\" memory --keys 100 --json \"$1\" --html \"$2\"";
    let mut command = Command::new("sh");
    command.args(["-c", script, env!("CARGO_BIN_EXE_koel-bench")]).args([&json, &html]);
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("roomless.json: "), "{}", stderr(&output));
    assert_eq!(fs::read_to_string(&json).unwrap(), "an earlier run's");
    assert!(!Path::new(&html).exists(), "a part of the page is left");
}
