//! The program from outside: exit codes, messages, and the files it writes.

mod cache;
mod faults;
mod filter;
#[cfg(unix)]
mod guard;
mod maps;
mod options;
mod reports;

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

fn koel_bench(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_koel-bench")).args(args).output().expect("the program starts")
}

/// The words between blanks, followed by `others`.
fn words<'a>(line: &'a str, others: &[&'a str]) -> Vec<&'a str> {
    line.split(' ').chain(others.iter().copied()).collect()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Writes a file in the directory that cargo keeps for this package's tests. Returns its name.
fn file(name: &str, text: &str) -> String {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::write(&path, text).expect("the test directory is writable");
    path.display().to_string()
}

/// The program must refuse these arguments, with a message that has these words.
#[track_caller]
fn fails(args: &[&str], needles: &[&str]) {
    let output = koel_bench(args);
    let message = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{args:?}: {message}");
    for needle in needles {
        assert!(message.contains(needle), "{args:?}: `{needle}` is missing in: {message}");
    }
}

/// What the program prints.
#[track_caller]
fn prints(args: &[&str]) -> String {
    let output = koel_bench(args);
    assert_eq!(output.status.code(), Some(0), "{args:?}: {}", stderr(&output));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Runs the program. Returns its output, the numbers of its report and the page, both from files of this name.
#[track_caller]
fn reports(name: &str, args: &[&str]) -> (String, Value, String) {
    let (json, html) = (file(&format!("{name}.json"), ""), file(&format!("{name}.html"), ""));
    let printed = prints(&[args, &["--json", &json, "--html", &html]].concat());
    let numbers = serde_json::from_str(&fs::read_to_string(json).unwrap()).unwrap();
    (printed, numbers, fs::read_to_string(html).unwrap())
}
