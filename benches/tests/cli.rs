//! The program from outside: exit codes, messages, and the files it writes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn koel_bench(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_koel-bench")).args(args).output().expect("the program starts")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A file in the directory that cargo keeps for this package's tests.
fn file(name: &str, text: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::write(&path, text).expect("the test directory is writable");
    path
}

#[track_caller]
fn fails(args: &[&str], code: i32, needles: &[&str]) {
    let output = koel_bench(args);
    let message = stderr(&output);
    assert_eq!(output.status.code(), Some(code), "{args:?}: {message}");
    for needle in needles {
        assert!(message.contains(needle), "{args:?}: `{needle}` is missing in: {message}");
    }
}

#[test]
fn bad_options_exit_with_2_and_list_what_is_valid() {
    fails(
        &["map", "--preset", "WriteMostly"],
        2,
        &["ReadHeavy", "Exchange", "RapidGrow", "YCSB-A", "YCSB-F", "MemC3"],
    );
    fails(&["map", "--mix", "50/50/1/0"], 2, &["add up to 101", "READ/INSERT/REMOVE/UPDATE"]);
    fails(&["map", "--mix", "half"], 2, &["four whole percentages"]);
    fails(&["map", "--threads", "0"], 2, &["from 1 to 256"]);
    fails(&["map", "--keys", "0"], 2, &["from 1 to"]);
    fails(&["map", "--rounds", "0"], 2, &["from 1 to"]);
    fails(&["map", "--dist", "pareto"], 2, &["uniform, zipf"]);
    fails(&["map", "--maps", "btree"], 2, &["koel-inline", "dashmap"]);
    fails(&["latency", "--threads", "x"], 2, &["from 1 to 256"]);
    fails(&["map", "--trace", "t.csv", "--keys", "1k"], 2, &["--trace and --keys", "which keys there are"]);
    fails(&["map", "--grid", "--keys", "1k"], 2, &["--grid and --keys", "sizes of its own"]);
    fails(&["memory", "--json", "one", "--html", "one"], 2, &["name one file"]);
    fails(&["nonsense"], 2, &["nonsense"]);
}

#[test]
fn bad_traces_exit_with_2_and_name_file_and_line() {
    let malformed = file("malformed.txt", "1\n2\nthree\n");
    let empty = file("empty.csv", "key,size\n");
    fails(&["map", "--trace", "no/such/trace.txt"], 2, &["no/such/trace.txt"]);
    fails(&["map", "--trace", &malformed.display().to_string()], 2, &["malformed.txt:3:", "three"]);
    fails(&["latency", "--trace", &malformed.display().to_string()], 2, &["malformed.txt:3:"]);
    fails(&["map", "--trace", &empty.display().to_string()], 2, &["empty.csv", "no key"]);
}

#[test]
fn a_report_that_cannot_be_written_exits_with_2_before_measuring() {
    fails(&["map", "--json", "no/such/directory/report.json"], 2, &["no/such/directory/report.json"]);
}

#[test]
fn a_trace_is_replayed_and_reported_as_table_json_and_page() {
    let trace = file("replayed.csv", "key,size\n42,512\n7,512\n42,512\n18446744073709551615,1\n");
    let (json, html) = (file("map.json", ""), file("map.html", ""));
    let (trace, json_name, html_name) =
        (trace.display().to_string(), json.display().to_string(), html.display().to_string());
    let output = koel_bench(&[
        "map",
        "--trace",
        &trace,
        "--threads",
        "1,2",
        "--rounds",
        "2",
        "--ops",
        "10k",
        "--seconds",
        "0",
        "--maps",
        "koel,inline,papaya,dashmap",
        "--json",
        &json_name,
        "--html",
        &html_name,
    ]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let table = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(table.contains("trace, get hit: 3 keys, 2 threads, as in the trace"), "{table}");
    assert!(table.contains("trace, mix 95/5/0/0") && table.contains("koel-inline"), "{table}");

    let report: serde_json::Value = serde_json::from_str(&fs::read_to_string(json).unwrap()).unwrap();
    let cells = report["throughput"].as_array().unwrap();
    assert_eq!(cells.len(), 4);
    for row in cells.iter().flat_map(|cell| cell["rows"].as_array().unwrap()) {
        assert_eq!(row["mops"]["samples"].as_array().unwrap().len(), 2);
        assert!(row["mops"]["median"].as_f64().unwrap() > 0.0);
        assert!(row["by_papaya"].as_f64().unwrap() > 0.0);
    }
    let page = fs::read_to_string(html).unwrap();
    assert!(page.starts_with("<!doctype html>") && page.contains("<svg ") && page.contains("trace, get hit"));
    assert!(!page.contains("http://") && !page.contains("https://") && !page.contains("<script"));
}

#[test]
fn presets_and_mixes_run_with_several_distributions() {
    let output = koel_bench(&[
        "map",
        "--preset",
        "readheavy,RAPIDGROW,ycsb-d",
        "--mix",
        "80/10/10/0",
        "--dist",
        "uniform,zipf:0.8",
        "--keys",
        "500",
        "--threads",
        "2",
        "--rounds",
        "1",
        "--ops",
        "2000",
        "--seconds",
        "0",
        "--maps",
        "koel,inline,scc",
    ]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let table = String::from_utf8_lossy(&output.stdout).into_owned();
    for title in [
        "ReadHeavy: 500 keys, 2 threads, uniform",
        "ReadHeavy: 500 keys, 2 threads, zipf:0.8",
        "RapidGrow: 500 keys, 2 threads, uniform",
        "YCSB-D: 500 keys, 2 threads, latest",
        "mix 80/10/10/0",
    ] {
        assert!(table.contains(title), "`{title}` is missing in: {table}");
    }
}

#[test]
fn latency_and_memory_report_every_map() {
    let json = file("latency.json", "");
    let output = koel_bench(&[
        "latency",
        "--keys",
        "5k",
        "--ops",
        "5k",
        "--rounds",
        "2",
        "--threads",
        "2",
        "--json",
        &json.display().to_string(),
    ]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let report: serde_json::Value = serde_json::from_str(&fs::read_to_string(json).unwrap()).unwrap();
    let cells = report["latency"].as_array().unwrap();
    assert_eq!(cells.len(), 3);
    for cell in cells {
        let rows = cell["rows"].as_array().unwrap();
        assert_eq!(rows.len(), 7);
        assert!(rows.iter().all(|row| row["nanos"].as_array().unwrap().len() == 7));
        assert!(rows.iter().all(|row| row["samples"].as_u64().unwrap() > 0));
    }

    let output = koel_bench(&["memory", "--keys", "10k"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let table = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        table.contains("10,000 keys, built with_capacity") && table.contains("10,000 keys, grown from empty")
    );
    assert!(table.contains("RwLock<hashbrown>") && table.contains("memory_usage()"));
}

#[test]
fn memory_counts_what_is_allocated() {
    let json = file("memory.json", "");
    koel_bench(&[
        "memory",
        "--keys",
        "10k",
        "--maps",
        "rwlock,papaya",
        "--json",
        &json.display().to_string(),
    ]);
    let report: serde_json::Value = serde_json::from_str(&fs::read_to_string(json).unwrap()).unwrap();
    let row = |map: usize| &report["memory"][0]["rows"][map];
    // hashbrown: 16,384 buckets of 16 bytes and one; papaya: a table and 16 bytes for each entry, at the least.
    let rwlock = row(1)["requested"].as_f64().unwrap();
    assert!((27.0..29.0).contains(&rwlock), "{rwlock}");
    let papaya = row(0);
    assert!(papaya["requested"].as_f64().unwrap() > 24.0);
    assert!(papaya["allocated"].as_f64().unwrap() > papaya["requested"].as_f64().unwrap());
}
