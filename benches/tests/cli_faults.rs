//! What rivals do wrong, and what becomes of the run.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// With few keys in few bits this rival grows, and its removals are wrong then: they fail an assertion of its own in debug
/// builds, or take other keys away. Whatever it does, koel's figures are there.
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
    // A wrong answer is told in the end, and a panic is none.
    let is_wrong = told.contains("check failed: scalable_cuckoo_filter in contains beside a writer");
    assert_eq!(output.status.code(), Some(i32::from(is_wrong)), "{told}");
    assert!(is_out || !is_wrong, "{told}");
}
