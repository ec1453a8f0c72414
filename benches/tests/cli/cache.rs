//! `koel-bench cache` from outside: exit codes, messages, and the files it writes.

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::{fails, file, reports};

#[test]
fn bad_options_exit_with_2_and_say_what_is_valid() {
    fails(&["cache", "--caches", "koel,lru"], &["koel-clock", "quick-cache", "scc-hash-cache"]);
    fails(&["cache", "--part", "speed"], &["hit-ratio", "throughput", "memory", "latency"]);
    fails(&["cache", "--sizes", "0"], &["above 0, up to 100"]);
    fails(&["cache", "--sizes", "NaN"], &["above 0, up to 100"]);
    fails(&["cache", "--entries", "1"], &["from 2 to"]);
    fails(&["cache", "--dist", "latest"], &["uniform, zipf, zipf:EXPONENT"]);
    fails(&["cache", "--dist", "uniform", "--part", "hit-ratio"], &["--dist", "--part throughput"]);
    fails(&["cache", "--generated"], &["--trace"]);
    fails(&["cache", "--mib", "128"], &["--trace"]);
    fails(&["cache", "--trace", "t", "--part", "memory"], &["replayed for hit ratios"]);
    fails(&["cache", "--sizes", "1", "--part", "latency"], &["--sizes without --part hit-ratio"]);
    fails(&["cache", "--requests", "1k", "--trace", "t"], &["--requests", "--generated"]);
    fails(&["cache", "--requests", "1k", "--part", "memory"], &["--requests", "hit-ratio"]);
    for option in ["--entries", "--keys", "--ops", "--rounds", "--threads"] {
        fails(&["cache", "--trace", "t", option, "10"], &[option, "throughput"]);
    }
    fails(&["cache", "--part", "memory,latency", "--threads", "2"], &["--threads", "--part throughput"]);
    fails(&["cache", "--json", "r", "--html", "./r"], &["name one file"]);
    fails(&["cache", "--html", "no/such/directory/r.html"], &["no/such/directory/r.html"]);
}

#[test]
fn bad_traces_exit_with_2_and_name_file_and_line() {
    let (sizes, plain) = (file("sizes.csv", "key,size\n1,2\n1\n"), file("plain.txt", "1\n2\n1\n"));
    fails(&["cache", "--trace", "no/such/trace.txt"], &["no/such/trace.txt"]);
    fails(&["cache", "--trace", &sizes], &["sizes.csv:3:", "expected a size in column 2"]);
    fails(&["cache", "--trace", &plain, "--mib", "1"], &["none of the traces has a column `size`"]);
    let weightless = file("weightless.csv", "key,size\n1,0\n2,0\n");
    for traces in [weightless.clone(), format!("{plain},{weightless}")] {
        fails(&["cache", "--trace", &traces, "--mib", "1"], &["--mib: all sizes in the traces are 0"]);
    }
}

#[test]
fn a_trace_with_sizes_is_replayed_by_entries_and_by_bytes() {
    // 200 keys of 10 kB, again and again, each requested twice in a row.
    let lines: String = (0..4_000).map(|i| format!("{},10000\n", i / 2 % 200)).collect();
    let trace = file("sized.csv", &format!("key,size\n{lines}"));
    let args = ["cache", "--trace", &trace, "--sizes", "10,100", "--mib", "1,2"];
    let (printed, numbers, page) = reports("traced", &args);
    for part in ["caches bounded by entries", "caches bounded by bytes", "1 MiB", "exact CLOCK", "of 2 lines"]
    {
        assert!(printed.contains(part), "`{part}` is missing in: {printed}");
    }
    let cells = numbers["caches"]["hit_ratios"].as_array().unwrap();
    let shape: Vec<(bool, u64)> =
        cells.iter().map(|cell| (cell["by_bytes"] == true, cell["capacity"].as_u64().unwrap())).collect();
    assert_eq!(shape, [(false, 20), (false, 200), (true, 1 << 20), (true, 2 << 20)]);
    for cell in cells {
        let by_bytes = cell["by_bytes"] == true;
        let rows = cell["rows"].as_array().unwrap();
        assert_eq!(rows.len(), if by_bytes { 6 } else { 9 });
        let koel = &rows[0];
        assert_eq!((koel["cache"].as_str(), &koel["holds_too_much"]), (Some("koel"), &Value::Bool(false)));
        // Every second request is for the previous key.
        assert!(koel["hit_ratio"].as_f64().unwrap() >= 0.5, "{koel}");
        for exact in cell["exact"].as_array().unwrap() {
            let all_fit = cell["capacity"] == 2 << 20 || cell["capacity"] == 200;
            assert_eq!(exact[1].as_f64(), Some(if all_fit { 0.95 } else { 0.5 }), "{exact}");
        }
    }
    assert!(numbers["caches"]["throughput"].as_array().unwrap().is_empty());
    assert!(page.contains("<polyline") && page.contains("sized, by bytes"));
}

#[test]
fn traces_of_one_name_have_curves_of_their_own() {
    let traces = ["one", "two"].map(|folder| {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(folder);
        fs::create_dir_all(path).expect("the test directory is writable");
        file(&format!("{folder}/namesake.txt"), if folder == "one" { "1\n2\n1\n" } else { "1\n2\n3\n" })
    });
    let args = ["cache", "--trace", &traces.join(","), "--caches", "koel"];
    let (printed, numbers, page) = reports("namesakes", &args);
    assert!(printed.contains("namesake ") && printed.contains("namesake (2)"), "{printed}");
    let cells = numbers["caches"]["hit_ratios"].as_array().unwrap();
    assert!(cells.iter().any(|cell| cell["requests"] == "namesake (2)" && cell["about"] == *traces[1]));
    assert_eq!(page.matches("<figure>").count(), 2);
}

/// A file may have any name, and tables and pages show it to their readers.
#[test]
#[cfg(unix)]
fn what_a_terminal_would_obey_in_a_trace_s_name_is_told_in_letters() {
    let trace = file("ev\x1B[31mil<script>\r.txt", "1\n2\n1\n");
    let (printed, numbers, page) = reports("evil", &["cache", "--trace", &trace, "--caches", "koel"]);
    assert!(printed.contains(r"ev\u{1b}[31mil<script>\r "), "{printed}");
    assert!(page.contains(r"ev\u{1b}[31mil&lt;script&gt;\r"), "{page}");
    let cell = &numbers["caches"]["hit_ratios"][0];
    assert_eq!(cell["requests"], r"ev\u{1b}[31mil<script>\r");
    assert!(cell["about"].as_str().unwrap().ends_with(r"\u{1b}[31mil<script>\r.txt"), "{cell}");
    let malformed = file("ev\x1B[31mil.csv", "one\n");
    let report = format!("{}/no/such/\x1B[31m.json", env!("CARGO_TARGET_TMPDIR"));
    for args in [["map", "--trace", &malformed], ["memory", "--json", &report]] {
        let output = super::koel_bench(&args);
        assert_eq!(output.status.code(), Some(2));
        let told = super::stderr(&output);
        assert!(told.contains(r"\u{1b}[31m") && !told.contains('\x1B'), "{told}");
    }
    for text in [printed, page] {
        let is_line_end = |character: char| character == '\n';
        assert!(
            !text.contains(|character: char| character.is_control() && !is_line_end(character)),
            "{text}"
        );
        assert!(!text.contains("<script") || !text.starts_with('<'), "{text}");
    }
}

#[test]
fn generated_requests_have_curves_and_means() {
    let args = ["cache", "--part", "hit-ratio", "--requests", "20k", "--caches", "koel,quick,moka"];
    let (printed, numbers, page) = reports("generated", &args);
    assert!(printed.contains("zipf + one-timers") && printed.contains("koel - best"), "{printed}");
    let cells = numbers["caches"]["hit_ratios"].as_array().unwrap();
    let (curves, tables): (Vec<&Value>, Vec<&Value>) =
        cells.iter().partition(|cell| cell["for_curves"] == true);
    // Nine kinds at three sizes, and three by bytes.
    assert_eq!(tables.len(), 27 + 9);
    assert!(curves.len() > 27 + 9);
    let by_bytes = numbers["caches"]["means"].as_array().unwrap().iter().map(|means| &means["cells"]);
    assert_eq!(by_bytes.collect::<Vec<_>>(), [27, 9]);
    let means = &numbers["caches"]["means"][0];
    assert_eq!(means["koel_minus_best"]["samples"].as_array().unwrap().len(), 27);
    let names: Vec<&str> =
        means["means"].as_array().unwrap().iter().map(|mean| mean[0].as_str().unwrap()).collect();
    assert_eq!(names, ["koel", "quick_cache", "moka", "exact LRU"]);
    assert_eq!(page.matches("<figure>").count(), 12);
    assert!(page.starts_with("<!doctype html>") && !page.contains("<script") && !page.contains("https://"));
}

#[test]
fn speed_is_reported_with_hit_ratios_and_aims() {
    let small = ["--entries", "1k", "--keys", "10k", "--ops", "20k", "--rounds", "2", "--seconds", "0"];
    let parts = ["cache", "--part", "throughput,memory,latency", "--threads", "1,2", "--small-pages"];
    let (printed, numbers, page) = reports("speed", &[&parts[..], &small].concat());
    for part in [
        "read through: 1,000 entries, 10,000 keys, 2 threads, zipf:0.99",
        "load through: 1,000 entries, 10,000 keys, 1 thread, zipf:0.99",
        "pure hits",
        "get_many of 32",
        "Memory of full caches",
        "Aims",
        "no table had huge pages",
    ] {
        assert!(printed.contains(part), "`{part}` is missing in: {printed}");
    }
    let cells = numbers["caches"]["throughput"].as_array().unwrap();
    assert_eq!(cells.len(), 8);
    for cell in cells {
        for row in cell["rows"].as_array().unwrap() {
            assert_eq!(row["mops"]["samples"].as_array().unwrap().len(), 2);
            let hit_ratio = row["hit_ratio"]["median"].as_f64().unwrap();
            let pure = !cell["workload"].as_str().unwrap().ends_with("through");
            assert!(if pure { hit_ratio == 1.0 } else { (0.3..0.9).contains(&hit_ratio) }, "{row}");
            assert_eq!(row["koel_by_it"].is_null(), row["cache"] == "koel");
            assert_eq!(row["inline_by_it"].is_null(), row["cache"] == "koel-inline");
            assert_eq!(row["by_one_thread"].is_null(), !pure || cell["threads"] == 1);
        }
    }
    let memory = numbers["caches"]["memory"].as_array().unwrap();
    assert!(memory.iter().all(|row| row["allocated_beyond"].as_f64() >= row["requested_beyond"].as_f64()));
    assert!(memory.iter().all(|row| row["requested_beyond"].as_f64().unwrap() > 0.0));
    assert_eq!(numbers["latency"][0]["rows"].as_array().unwrap().len(), 9);
    let aims = numbers["caches"]["aims"].as_array().unwrap();
    let kinds: Vec<(&str, &str, f64)> = aims
        .iter()
        .map(|aim| {
            (aim["what"].as_str().unwrap(), aim["beside"].as_str().unwrap(), aim["aim"].as_f64().unwrap())
        })
        .collect();
    let expected = [
        ("read through, 1 thread", "quick_cache", 1.2),
        ("read through, 2 threads", "quick_cache", 1.5),
        ("read through, 2 threads", "scc::HashCache", 0.8),
        ("pure hits, 2 threads", "own 1 thread", 1.8),
        ("bytes per entry beyond key and value", "", 24.0),
        ("insert into a full cache, p99.99", "quick_cache", 1.0),
    ];
    // The aims of one cache after the other; caches without the default policy have only those for look-ups that load on a
    // miss.
    let expected = expected.iter().flat_map(|&(what, beside, aim)| {
        let own: &[&str] = if what.starts_with("read through") {
            &["", "koel-local, ", "koel-inline, ", "koel-inline-local, "]
        } else {
            &["", "koel-inline, "]
        };
        own.iter().map(move |own| (format!("{own}{what}"), beside, aim))
    });
    let kinds = kinds.iter().map(|&(what, beside, aim)| (what.to_owned(), beside, aim));
    assert_eq!(kinds.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
    assert!(page.contains("<h2>Throughput of caches</h2>") && page.contains("<h3>Aims</h3>"));
}

/// If keys are equally popular, a cache of a tenth of them has a tenth of the requested keys; aims were not set for that.
#[test]
fn keys_are_drawn_as_it_is_asked_for() {
    let small = ["--entries", "1k", "--keys", "10k", "--ops", "20k", "--rounds", "2", "--seconds", "0"];
    let uniform =
        ["cache", "--part", "throughput", "--threads", "1", "--dist", "uniform", "--caches", "koel,quick"];
    let (printed, numbers, _) = reports("uniform", &[&uniform[..], &small].concat());
    assert!(printed.contains("read through: 1,000 entries, 10,000 keys, 1 thread, uniform"), "{printed}");
    let cells = numbers["caches"]["throughput"].as_array().unwrap();
    for cell in cells.iter().filter(|cell| cell["workload"].as_str().unwrap().ends_with("through")) {
        assert_eq!(cell["dist"], "uniform");
        for row in cell["rows"].as_array().unwrap() {
            let hit_ratio = row["hit_ratio"]["median"].as_f64().unwrap();
            assert!((0.07..0.13).contains(&hit_ratio), "{row}");
        }
    }
    assert!(numbers["caches"]["aims"].as_array().unwrap().is_empty());
}
