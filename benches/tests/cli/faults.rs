//! How a run ends when rivals fail, and when it is stopped.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// With few keys in few bits this rival grows, and then its removals are wrong: they fail an assertion of its own in debug
/// builds, or remove other keys. Whatever it does, koel's figures are reported.
#[test]
fn a_rival_that_panics_or_is_wrong_does_not_end_the_run() {
    let json = Path::new(env!("CARGO_TARGET_TMPDIR")).join("faults.json");
    let output = Command::new(env!("CARGO_BIN_EXE_koel-bench"))
        .args(["filter", "--keys", "1k", "--bits", "6", "--filters", "koel,scalable-cuckoo-filter"])
        .args([
            "--workloads",
            "churn",
            "--threads",
            "2,3",
            "--rounds",
            "3",
            "--ops",
            "100k",
            "--seconds",
            "0",
        ])
        .arg("--json")
        .arg(&json)
        .output()
        .expect("the program starts");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    let report: Value = serde_json::from_str(&fs::read_to_string(json).unwrap()).unwrap();
    let cells = report["filters"].as_array().unwrap();
    assert_eq!(cells.len(), 2, "{told}");
    let of = |cell: &Value, list: &str, name: &str, filter: &str| {
        cell[list].as_array().unwrap().iter().any(|row| row[name] == filter)
    };
    let mut is_out = false;
    for cell in cells {
        assert!(of(cell, "rows", "filter", "koel"), "{cell}");
        let rival_is_out = of(cell, "absent", "contestant", "scalable_cuckoo_filter");
        assert_ne!(of(cell, "rows", "filter", "scalable_cuckoo_filter"), rival_is_out, "{cell}");
        assert!(rival_is_out || !is_out, "who is out stays out");
        is_out = rival_is_out;
    }
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(printed.contains("scalable_cuckoo_filter is out since contains beside a writer"), is_out);
    // A wrong answer is reported at the end, and a panic is not a wrong answer.
    let is_wrong = told.contains("check failed: scalable_cuckoo_filter in contains beside a writer");
    assert_eq!(output.status.code(), Some(i32::from(is_wrong)), "{told}");
    assert!(is_out || !is_wrong, "{told}");
}

#[test]
#[cfg(unix)]
fn what_was_measured_before_ctrl_c_is_reported() {
    use std::io::{BufRead, BufReader};
    use std::process::Stdio;

    let json = Path::new(env!("CARGO_TARGET_TMPDIR")).join("stopped.json");
    let mut command = Command::new(env!("CARGO_BIN_EXE_koel-bench"));
    command.args(["latency", "--keys", "100,2M", "--ops", "100", "--rounds", "2", "--maps", "koel,papaya"]);
    command.arg("--json").arg(&json).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program starts");
    let mut printed = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    assert!(printed.any(|line| line.starts_with("insert while growing: 100 keys")), "the first table");
    let id = child.id();
    assert!(Command::new("sh").args(["-c", &format!("kill -INT {id}")]).status().unwrap().success());
    let printed: Vec<String> = printed.collect();
    let output = child.wait_with_output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(130), "{told}");
    assert!(
        told.contains("stops after this measurement") && told.contains("stopped before all was measured"),
        "{told}"
    );
    assert!(printed.iter().any(|line| line.starts_with("Wrote ")), "{printed:?}");
    let report: Value = serde_json::from_str(&fs::read_to_string(json).unwrap()).unwrap();
    let cells = report["latency"].as_array().unwrap().len();
    assert!(
        (1..6).contains(&cells) && report["failures"][0] == "stopped before all was measured",
        "{cells} cells"
    );
}

#[test]
#[cfg(unix)]
fn a_run_that_nobody_reads_ends_without_a_word() {
    use std::io::{BufRead, BufReader};
    use std::process::Stdio;

    let mut command = Command::new(env!("CARGO_BIN_EXE_koel-bench"));
    command.args(["map", "--mix", "100/0/0/0", "--keys", "1k,2k,3k", "--threads", "1", "--rounds", "1"]);
    command.args(["--maps", "koel,papaya", "--ops", "1k"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let mut printed = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    assert!(printed.any(|line| line.starts_with("mix 100/0/0/0: 1,000 keys")), "the first table");
    drop(printed);
    let output = child.wait_with_output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    // The warning of a debug build is on standard output.
    assert_eq!((output.status.code(), told.as_str()), (Some(0), ""));
}
