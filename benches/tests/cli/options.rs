//! Invalid options are refused by name.

use std::process::Command;

use super::{fails, file};

#[test]
fn bad_options_exit_with_2_and_list_what_is_valid() {
    fails(
        &["map", "--preset", "WriteMostly"],
        &["ReadHeavy", "Exchange", "RapidGrow", "YCSB-A", "YCSB-F", "MemC3"],
    );
    fails(&["map", "--mix", "50/50/1/0"], &["add up to 101", "READ/INSERT/REMOVE/UPDATE"]);
    fails(&["map", "--mix", "half"], &["four whole percentages"]);
    fails(&["map", "--threads", "0"], &["from 1 to 256"]);
    fails(&["map", "--keys", "0"], &["from 1 to"]);
    fails(&["map", "--rounds", "0"], &["from 1 to"]);
    fails(&["map", "--dist", "pareto"], &["uniform, zipf"]);
    fails(&["map", "--maps", "btree"], &["koel-inline", "dashmap"]);
    fails(&["map", "--whole", "walk,drain"], &["drain", "walk, clone, retain, clear"]);
    fails(&["map", "--whole", "clone", "--ops", "1k"], &["--whole and --ops"]);
    fails(&["map", "--whole", "clone", "--threads", "2"], &["--whole and --threads", "one thread"]);
    fails(&["latency", "--whole", "clone"], &["unexpected argument '--whole'"]);
    fails(&["latency", "--threads", "x"], &["from 1 to 256"]);
    fails(&["map", "--trace", "t.csv", "--keys", "1k"], &["--trace and --keys", "which keys there are"]);
    fails(&["map", "--grid", "--keys", "1k"], &["--grid and --keys", "sizes of its own"]);
    fails(&["memory", "--json", "one", "--html", "one"], &["name one file"]);
    fails(&["filter", "--filters", "bloom"], &["koel-semi-sorted", "qfilter", "fastbloom-atomic"]);
    fails(&["filter", "--bits", "4"], &["from 5 to 31"]);
    fails(&["filter", "--grid", "--keys", "1k"], &["--grid and --keys", "sizes of its own"]);
    fails(&["filter", "--paper", "--keys", "1k,2k"], &["one number of keys"]);
    fails(&["filter", "--filters", "cuckoofilter", "--bits", "12"], &["--bits 12", "none of --filters"]);
    fails(&["filter", "--workloads", "churn", "--threads", "1"], &["--workloads churn", "two threads"]);
    fails(&["filter", "--workloads", "hit,churn", "--keys", "15"], &["--workloads churn", "16 keys"]);
    fails(&["filter", "--workloads", "fill-up", "--threads", "2"], &["--workloads fill-up", "one thread"]);
    for (workload, filters, threads, why) in [
        ("churn", "xorf,fastbloom", "2", "can remove keys"),
        ("from-keys", "qfilter", "1,2", "built of all keys at once"),
        ("fill-up", "xorf", "1", "slots"),
        ("batch", "qfilter,xorf", "1", "look up batches"),
        ("insert", "qfilter,koel-fixed", "2", "with so many threads"),
        ("hit,insert", "koel-fixed", "1", "for look-ups alone"),
    ] {
        let args = ["filter", "--workloads", workload, "--filters", filters, "--threads", threads];
        let named = format!("--workloads {}: none of --filters", workload.trim_start_matches("hit,"));
        fails(&args, &[&named, why]);
    }
    fails(&["filter", "--html", "no/such/directory/r.html"], &["no/such/directory/r.html"]);
    fails(&["nonsense"], &["nonsense"]);
}

#[test]
fn bad_traces_exit_with_2_and_name_file_and_line() {
    let malformed = file("malformed.txt", "1\n2\nthree\n");
    let empty = file("empty.csv", "key,size\n");
    fails(&["map", "--trace", "no/such/trace.txt"], &["no/such/trace.txt"]);
    fails(&["map", "--trace", &malformed], &["malformed.txt:3:", "three"]);
    fails(&["latency", "--trace", &malformed], &["malformed.txt:3:"]);
    fails(&["map", "--trace", &empty], &["empty.csv", "no key"]);
}

#[test]
#[cfg(unix)]
fn names_of_files_need_not_be_utf_8() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let no_such_trace = OsStr::from_bytes(b"no/such/\xFF");
    let mut command = Command::new(env!("CARGO_BIN_EXE_koel-bench"));
    let output = command.args(["map", "--trace"]).arg(no_such_trace).output();
    assert_eq!(output.unwrap().status.code(), Some(2));
}
