//! `map`, `latency` and `memory`: their output.

use serde_json::Value;

use super::{file, prints, reports, words};

#[test]
fn a_trace_is_replayed_and_reported_as_table_json_and_page() {
    let trace = file("replayed.csv", "key,size\n42,512\n7,512\n42,512\n18446744073709551615,1\n");
    let options =
        "map --threads 1,2 --rounds 2 --ops 10k --seconds 0 --maps koel,inline,papaya,dashmap --small-pages";
    let (table, report, page) = reports("map", &words(options, &["--trace", &trace]));
    assert!(table.contains("trace, get hit: 3 keys, 2 threads, as in the trace"), "{table}");
    assert!(table.contains("trace, mix 95/5/0/0") && table.contains("koel-inline"), "{table}");
    assert!(table.contains("huge pages: ") && table.contains("no table had huge pages"), "{table}");

    assert!(report["pages"] == "small" && report["machine"]["huge_pages"].is_string());
    let cells = report["throughput"].as_array().unwrap();
    assert_eq!(cells.len(), 4);
    for row in cells.iter().flat_map(|cell| cell["rows"].as_array().unwrap()) {
        assert_eq!(row["mops"]["samples"].as_array().unwrap().len(), 2);
        assert!(row["mops"]["median"].as_f64().unwrap() > 0.0);
        assert!(row["by_papaya"]["median"].as_f64().unwrap() > 0.0);
        assert_eq!(row["by_best_peer"]["samples"].as_array().unwrap().len(), 2);
    }
    assert!(page.starts_with("<!doctype html>") && page.contains("<svg ") && page.contains("trace, get hit"));
    assert!(page.contains("no table had huge pages"));
    assert!(!page.contains("http://") && !page.contains("https://") && !page.contains("<script"));
}

#[test]
fn presets_and_mixes_run_with_several_distributions() {
    let small = "--keys 500 --threads 2 --rounds 1 --ops 2000 --seconds 0 --maps koel,inline,scc";
    let options =
        "map --preset readheavy,RAPIDGROW,ycsb-d --mix 80/10/10/0 --shared-writes --dist uniform,zipf:0.8";
    let table = prints(&words(options, &words(small, &[])));
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
    let table = prints(&words("map --mix 50/50/0/0 --replacing", &words(small, &[])));
    let title = "mix 50/50/0/0, replacing: 500 keys";
    let about = "50% insert (replacing), 0% remove, 0% update; each thread writes keys of its own; 100% of";
    assert!(table.contains(title) && table.contains(about), "{table}");
}

#[test]
fn what_is_done_to_a_whole_map_is_measured_of_every_map() {
    let options = "map --whole walk,CLONE,retain,clear --keys 1k,3 --rounds 2 --seconds 0";
    let (table, report, page) = reports("whole", &words(options, &[]));
    let cells = report["throughput"].as_array().unwrap();
    let told: Vec<_> = cells
        .iter()
        .map(|cell| (cell["workload"].as_str().unwrap(), cell["keys"].as_u64().unwrap()))
        .collect();
    for (told, keys) in told.chunks(4).zip([1_000, 3]) {
        assert_eq!(told, ["walk", "clone", "retain half", "clear"].map(|name| (name, keys)));
    }
    for row in cells.iter().flat_map(|cell| cell["rows"].as_array().unwrap()) {
        assert!(row["mops"]["median"].as_f64().unwrap() > 0.0);
        assert!(row["by_best_peer"]["median"].as_f64().unwrap() > 0.0);
    }
    assert!(cells.iter().all(|cell| cell["rows"].as_array().unwrap().len() == 10 && cell["threads"] == 1));
    assert!(table.contains("retain half: 1,000 keys, 1 thread"), "{table}");
    for text in [table, page] {
        assert!(text.contains("Millions of entries a second"), "{text}");
    }
    let small = "--keys 500 --threads 2 --rounds 1 --ops 2000 --seconds 0 --maps koel,inline,scc";
    let table = prints(&words("map --preset exchange --whole clear", &words(small, &[])));
    assert!(table.contains("clear: 500 keys, 1 thread, "), "{table}");
    assert!(table.contains("Exchange: 500 keys, 2 threads, ") && !table.contains("get hit"), "{table}");
}

#[test]
fn latency_and_memory_report_every_map() {
    let options = "latency --shared-writes --keys 5k --ops 5k --rounds 2 --threads 2";
    let (_, report, _) = reports("latency", &words(options, &[]));
    let cells = report["latency"].as_array().unwrap();
    let phases: Vec<_> = cells.iter().map(|cell| cell["phase"].as_str().unwrap()).collect();
    let mixed = "of mixed 50/20/20/10, shared writes, uniform";
    let both = [format!("reads {mixed}"), format!("writes {mixed}")];
    assert_eq!(phases, ["insert while growing", "get, uniform", &both[0], &both[1]]);
    let samples = |cell: &Value| cell["rows"][0]["samples"].as_u64().unwrap();
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

    let table = prints(&words("memory --keys 10k", &[]));
    assert!(
        table.contains("10,000 keys, built with_capacity") && table.contains("10,000 keys, grown from empty")
    );
    assert!(table.contains("RwLock<hashbrown>") && table.contains("memory_usage()"));
}

#[test]
fn memory_counts_what_is_allocated() {
    let options = "memory --keys 10k,10k,50,50 --maps rwlock,papaya,scc-hash-index";
    let (_, report, _) = reports("memory", &words(options, &[]));
    let row = |map: usize| &report["memory"][0]["rows"][map];
    // hashbrown: 16,384 buckets of 16 bytes plus one; papaya: at least a table and 16 bytes for each entry.
    let rwlock = row(2)["requested"].as_f64().unwrap();
    assert!((27.0..29.0).contains(&rwlock), "{rwlock}");
    let papaya = row(0);
    assert!(papaya["requested"].as_f64().unwrap() > 24.0);
    assert!(papaya["allocated"].as_f64().unwrap() > papaya["requested"].as_f64().unwrap());
    // Memory that a kind of map allocates once for all of a thread's maps is not counted for the first.
    for (first, second) in [(0, 2), (4, 6)] {
        let of = |cell: usize| report["memory"][cell]["rows"][1]["requested"].as_f64().unwrap();
        assert_eq!(of(first), of(second), "scc::HashIndex: {}", report["memory"]);
    }
}
