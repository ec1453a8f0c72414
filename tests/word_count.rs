//! The example `word_count`: its counts, names of files, and where it prints.
//!
//! `cargo test` builds the examples; `cargo test --test word_count` alone does not.

#![cfg(unix)]

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

fn program() -> Command {
    let mut path = std::env::current_exe().expect("this program");
    path.pop();
    path.pop();
    path.push("examples/word_count");
    assert!(path.exists(), "not built: `cargo test --no-run`, without naming a test, builds {path:?}");
    Command::new(path)
}

fn told(output: &Output) -> (Option<i32>, String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn words_are_counted_whatever_the_file_is_called() {
    let folder = tempfile::tempdir().unwrap();
    let file: PathBuf = folder.path().join(OsStr::from_bytes(b"\xFF.txt"));
    if std::fs::write(&file, "one two, two\nthree two three\n").is_ok() {
        let counted = "       3  two\n       2  three\n       1  one\n";
        let output = program().arg(&file).output().unwrap();
        assert_eq!(told(&output), (Some(0), counted.to_owned(), String::new()));
    }
    let (code, _, message) = told(&program().arg(OsStr::from_bytes(b"no/such/\xFF")).output().unwrap());
    assert!(code == Some(2) && message.starts_with("word_count: no/such/"), "{code:?}: {message}");
}

#[test]
fn who_listens_no_longer_is_no_error_and_a_full_disk_is() {
    let readme = concat!(env!("CARGO_MANIFEST_DIR"), "/README.md");
    let mut child = program().arg(readme).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let (code, _, message) = told(&child.wait_with_output().unwrap());
    assert_eq!((code, message.as_str()), (Some(0), ""));
    if cfg!(target_os = "linux") {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let (code, _, message) = told(&program().arg(readme).stdout(full).output().unwrap());
        assert!(code == Some(2) && message.starts_with("word_count: standard output: "), "{message}");
    }
}
