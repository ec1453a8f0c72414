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
    fails(&["filter", "--filters", "bloom"], 2, &["koel-semi-sorted", "qfilter", "fastbloom-atomic"]);
    fails(&["filter", "--bits", "4"], 2, &["from 5 to 31"]);
    fails(&["filter", "--grid", "--keys", "1k"], 2, &["--grid and --keys", "sizes of its own"]);
    fails(&["filter", "--paper", "--keys", "1k,2k"], 2, &["one number of keys"]);
    fails(&["filter", "--filters", "cuckoofilter", "--bits", "12"], 2, &["--bits 12", "none of --filters"]);
    fails(&["filter", "--workloads", "churn", "--threads", "1"], 2, &["--workloads churn", "two threads"]);
    fails(&["filter", "--workloads", "hit,churn", "--keys", "15"], 2, &["--workloads churn", "16 keys"]);
    fails(&["filter", "--workloads", "fill-up", "--threads", "2"], 2, &["--workloads fill-up", "one thread"]);
    fails(&["filter", "--html", "no/such/directory/r.html"], 2, &["no/such/directory/r.html"]);
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
fn a_run_that_fails_leaves_the_report_that_was_there() {
    let json = file("earlier.json", "an earlier run's");
    let name = json.display().to_string();
    fails(&["guard", "--folder", "no/such/directory", "--json", &name], 2, &["no/such/directory"]);
    fails(&["memory", "--json", &name, "--html", "no/such/directory/r.html"], 2, &["no/such/directory"]);
    assert_eq!(fs::read_to_string(&json).unwrap(), "an earlier run's");
    fs::write(&json, "x".repeat(100_000)).unwrap();
    assert!(koel_bench(&["memory", "--keys", "100", "--maps", "koel", "--json", &name]).status.success());
    serde_json::from_str::<serde_json::Value>(&fs::read_to_string(&json).unwrap()).unwrap();
}

#[test]
#[cfg(target_os = "linux")]
fn tables_that_cannot_be_printed_exit_with_2_and_the_report_is_written() {
    let full = || fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let json = file("unprinted.json", "");
    let mut command = Command::new(env!("CARGO_BIN_EXE_koel-bench"));
    command.args(["memory", "--keys", "100", "--maps", "koel", "--json", &json.display().to_string()]);
    let output = command.stdout(full()).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("koel-bench: standard output: "), "{}", stderr(&output));
    serde_json::from_str::<serde_json::Value>(&fs::read_to_string(&json).unwrap()).unwrap();
    // A report that has no room leaves the other one.
    let html = file("unprinted.html", "");
    let html_name = html.display().to_string();
    let args = ["memory", "--keys", "100", "--maps", "koel", "--json", "/dev/full", "--html", &html_name];
    fails(&args, 2, &["/dev/full: "]);
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
    serde_json::from_str::<serde_json::Value>(&format!("{{{report}")).unwrap();
}

#[test]
#[cfg(target_os = "linux")]
fn a_report_that_has_no_room_leaves_what_was_there() {
    let (json, html) = (file("roomless.json", "an earlier run's"), file("roomless.html", ""));
    fs::remove_file(&html).unwrap();
    // No file grows beyond 1 KiB then, and who tries is told so by an error, not by a signal.
    let script = "trap '' XFSZ; ulimit -f 2; exec \"$0\" memory --keys 100 --json \"$1\" --html \"$2\"";
    let mut command = Command::new("sh");
    command.args(["-c", script, env!("CARGO_BIN_EXE_koel-bench")]).args([&json, &html]);
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("roomless.json: "), "{}", stderr(&output));
    assert_eq!(fs::read_to_string(&json).unwrap(), "an earlier run's");
    assert!(!html.exists(), "a part of the page is left");
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
        "--small-pages",
        "--json",
        &json_name,
        "--html",
        &html_name,
    ]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let table = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(table.contains("trace, get hit: 3 keys, 2 threads, as in the trace"), "{table}");
    assert!(table.contains("trace, mix 95/5/0/0") && table.contains("koel-inline"), "{table}");
    assert!(table.contains("huge pages: ") && table.contains("no table had huge pages"), "{table}");

    let report: serde_json::Value = serde_json::from_str(&fs::read_to_string(json).unwrap()).unwrap();
    assert!(report["pages"] == "small" && report["machine"]["huge_pages"].is_string());
    let cells = report["throughput"].as_array().unwrap();
    assert_eq!(cells.len(), 4);
    for row in cells.iter().flat_map(|cell| cell["rows"].as_array().unwrap()) {
        assert_eq!(row["mops"]["samples"].as_array().unwrap().len(), 2);
        assert!(row["mops"]["median"].as_f64().unwrap() > 0.0);
        assert!(row["by_papaya"]["median"].as_f64().unwrap() > 0.0);
        assert_eq!(row["by_best_peer"]["samples"].as_array().unwrap().len(), 2);
    }
    let page = fs::read_to_string(html).unwrap();
    assert!(page.starts_with("<!doctype html>") && page.contains("<svg ") && page.contains("trace, get hit"));
    assert!(page.contains("no table had huge pages"));
    assert!(!page.contains("http://") && !page.contains("https://") && !page.contains("<script"));
}

#[test]
#[cfg(unix)]
fn names_of_files_need_not_be_utf_8() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let no_such_trace = OsStr::from_bytes(b"no/such/\xFF");
    let program =
        Command::new(env!("CARGO_BIN_EXE_koel-bench")).arg("map").arg("--trace").arg(no_such_trace).output();
    assert_eq!(program.unwrap().status.code(), Some(2));
}

#[test]
fn presets_and_mixes_run_with_several_distributions() {
    let output = koel_bench(&[
        "map",
        "--preset",
        "readheavy,RAPIDGROW,ycsb-d",
        "--mix",
        "80/10/10/0",
        "--shared-writes",
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
        "mix 80/10/10/0, shared writes: 500 keys",
        "80% get, 10% insert (replacing), 10% remove, 0% update; threads write the same keys; 100% of",
        "98% get, 1% insert (new), 1% remove, 0% update; each thread writes keys of its own; 75% of",
    ] {
        assert!(table.contains(title), "`{title}` is missing in: {table}");
    }
    let own =
        ["map", "--mix", "50/50/0/0", "--replacing", "--keys", "500", "--threads", "2", "--rounds", "1"];
    let output = koel_bench(&[&own[..], &["--ops", "2000", "--seconds", "0", "--maps", "koel"]].concat());
    let table = String::from_utf8_lossy(&output.stdout).into_owned();
    let title = "mix 50/50/0/0, replacing: 500 keys";
    let about = "50% insert (replacing), 0% remove, 0% update; each thread writes keys of its own; 100% of";
    assert!(table.contains(title) && table.contains(about), "{table}");
}

#[test]
fn latency_and_memory_report_every_map() {
    let json = file("latency.json", "");
    let output = koel_bench(&[
        "latency",
        "--shared-writes",
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
    let phases: Vec<_> = cells.iter().map(|cell| cell["phase"].as_str().unwrap()).collect();
    let mixed = "of mixed 50/20/20/10, shared writes, uniform";
    let both = [format!("reads {mixed}"), format!("writes {mixed}")];
    assert_eq!(phases, ["insert while growing", "get, uniform", &both[0], &both[1]]);
    let samples = |cell: &serde_json::Value| cell["rows"][0]["samples"].as_u64().unwrap();
    assert_eq!(
        (samples(&cells[0]), samples(&cells[1]), samples(&cells[2]) + samples(&cells[3])),
        (5_000, 10_000, 10_000)
    );
    for cell in cells {
        assert_eq!((&cell["quantiles"][4], &cell["quantiles"][6]), (&"p99.99".into(), &"max".into()));
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
        "10k,10k,50,50",
        "--maps",
        "rwlock,papaya,scc-hash-index",
        "--json",
        &json.display().to_string(),
    ]);
    let report: serde_json::Value = serde_json::from_str(&fs::read_to_string(json).unwrap()).unwrap();
    let row = |map: usize| &report["memory"][0]["rows"][map];
    // hashbrown: 16,384 buckets of 16 bytes and one; papaya: a table and 16 bytes for each entry, at the least.
    let rwlock = row(2)["requested"].as_f64().unwrap();
    assert!((27.0..29.0).contains(&rwlock), "{rwlock}");
    let papaya = row(0);
    assert!(papaya["requested"].as_f64().unwrap() > 24.0);
    assert!(papaya["allocated"].as_f64().unwrap() > papaya["requested"].as_f64().unwrap());
    // What a kind of map takes once for all of a thread's is no part of the first.
    for (first, second) in [(0, 2), (4, 6)] {
        let of = |cell: usize| report["memory"][cell]["rows"][1]["requested"].as_f64().unwrap();
        assert_eq!(of(first), of(second), "scc::HashIndex: {}", report["memory"]);
    }
}

#[test]
fn filters_are_reported_as_table_json_and_page() {
    let (json, html) = (file("filter.json", ""), file("filter.html", ""));
    let (json_name, html_name) = (json.display().to_string(), html.display().to_string());
    let output = koel_bench(&[
        "filter",
        "--keys",
        "20k",
        "--bits",
        "8,12",
        "--threads",
        "1,2",
        "--rounds",
        "2",
        "--ops",
        "10k",
        "--seconds",
        "0",
        "--filters",
        "koel,koel-semi-sorted,koel-fixed,cuckoofilter,qfilter,xorf",
        "--json",
        &json_name,
        "--html",
        &html_name,
    ]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let table = String::from_utf8_lossy(&output.stdout).into_owned();
    for part in [
        "Memory and error rate: 20,000 keys, 8 bits",
        "insert to 95%: 20,000 keys, 8 bits, 1 thread",
        "by own contains hit, 2 threads",
        "Aims",
        "own from_keys, 1 thread",
    ] {
        assert!(table.contains(part), "`{part}` is missing in: {table}");
    }

    let report: serde_json::Value = serde_json::from_str(&fs::read_to_string(json).unwrap()).unwrap();
    let cells = report["filters"].as_array().unwrap();
    // Seven workloads with one and two threads, but for the two that have only one of these.
    assert_eq!(cells.len(), 2 * 12);
    for row in cells.iter().flat_map(|cell| cell["rows"].as_array().unwrap()) {
        assert_eq!(row["mops"]["samples"].as_array().unwrap().len(), 2);
        assert!(row["mops"]["median"].as_f64().unwrap() > 0.0 && row["lost_reads"] == 0);
    }
    let aims = cells.iter().flat_map(|cell| cell["aims"].as_array().unwrap());
    assert!(aims.clone().count() >= 2 * 6 && aims.clone().any(|aim| aim["beside"] == "koel-fixed"));
    assert!(aims.clone().all(|aim| aim["ratio"]["samples"].as_array().unwrap().len() == 2));
    let sizes = report["filter_sizes"].as_array().unwrap();
    let names = |bits: usize| -> Vec<&str> {
        sizes[bits]["rows"].as_array().unwrap().iter().map(|row| row["filter"].as_str().unwrap()).collect()
    };
    assert_eq!(names(0), ["koel", "koel-semi-sorted", "koel-fixed", "cuckoofilter", "qfilter", "xorf"]);
    assert_eq!(names(1), ["koel", "koel-semi-sorted", "koel-fixed", "qfilter", "xorf"]);
    // 8 bits of each slot, 95% of which are taken, and what is beside them.
    let bits_per_key = sizes[0]["rows"][0]["bits_per_key"].as_f64().unwrap();
    assert!((8.0 / 0.96..12.0).contains(&bits_per_key), "{bits_per_key}");

    let page = fs::read_to_string(html).unwrap();
    assert!(page.starts_with("<!doctype html>") && page.contains("<svg ") && page.contains("<h3>Aims</h3>"));
    assert!(!page.contains("http://") && !page.contains("https://") && !page.contains("<script"));
}

#[test]
fn tables_of_the_literature_are_reproduced_with_charts() {
    let (json, html) = (file("paper.json", ""), file("paper.html", ""));
    let (json_name, html_name) = (json.display().to_string(), html.display().to_string());
    let args =
        ["filter", "--paper", "--keys", "3k", "--rounds", "1", "--json", &json_name, "--html", &html_name];
    let output = koel_bench(&args);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let report: serde_json::Value = serde_json::from_str(&fs::read_to_string(json).unwrap()).unwrap();
    let tables = report["paper"].as_array().unwrap();
    let rows: Vec<usize> = tables.iter().map(|table| table["rows"].as_array().unwrap().len()).collect();
    // Bucket sizes, rates, fingerprint bits, bands of load, sizes of Bloom filters, hash functions and chance.
    assert_eq!(rows, [4, 11, 17, 19, 3, 12]);
    for table in tables {
        let columns = table["headings"].as_array().unwrap().len();
        assert!(table["rows"].as_array().unwrap().iter().all(|row| row.as_array().unwrap().len() == columns));
    }
    // Four slots: 95% is published, and no less comes out.
    assert_eq!(tables[0]["rows"][2][1].as_f64(), Some(0.95));
    assert!(tables[0]["rows"][2][4].as_f64().unwrap() > 0.95);
    assert_eq!(tables[5]["headings"][2], "40,000 numeric ids");
    assert_eq!(tables[5]["headings"][3], "45,402 account names");
    let page = fs::read_to_string(html).unwrap();
    for title in ["Load factor against bucket size", "Collisions of hash functions", "stroke-dasharray"] {
        assert!(page.contains(title), "`{title}` is missing");
    }
}
