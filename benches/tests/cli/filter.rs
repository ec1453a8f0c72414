//! `filter`: its output.

use super::{prints, reports, words};

#[test]
fn filters_are_reported_as_table_json_and_page() {
    let options = "filter --keys 20k --bits 8,12 --threads 1,2 --rounds 2 --ops 10k --seconds 0 --filters";
    let filters = "koel,koel-semi-sorted,koel-fixed,cuckoofilter,qfilter,xorf";
    let (table, report, page) = reports("filter", &words(options, &[filters]));
    for part in [
        "Memory and error rate: 20,000 keys, 8 bits",
        "insert to 95%: 20,000 keys, 8 bits, 1 thread",
        "by own contains hit, 2 threads",
        "Aims",
        "own from_keys, 1 thread",
    ] {
        assert!(table.contains(part), "`{part}` is missing in: {table}");
    }

    let cells = report["filters"].as_array().unwrap();
    // Seven workloads with one and two threads, except two that have only one of these.
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
    // 8 bits for each slot, 95% of which are taken, and some overhead.
    let bits_per_key = sizes[0]["rows"][0]["bits_per_key"].as_f64().unwrap();
    assert!((8.0 / 0.96..12.0).contains(&bits_per_key), "{bits_per_key}");

    assert!(page.starts_with("<!doctype html>") && page.contains("<svg ") && page.contains("<h3>Aims</h3>"));
    assert!(!page.contains("http://") && !page.contains("https://") && !page.contains("<script"));
}

#[test]
fn a_workload_that_was_asked_for_and_that_nobody_takes_part_in_is_told() {
    let options = "filter --keys 1k --rounds 1 --seconds 0 --bits 8 --threads 1,2 --filters qfilter";
    let told = "insert: 1,000 keys, 8 bits, 2 threads: none of the filters takes part";
    let table = prints(&words(options, &["--workloads", "insert"]));
    assert!(table.contains("insert: 1,000 keys, 8 bits, 1 thread\n") && table.contains(told), "{table}");
    assert!(!prints(&words(options, &["--ops", "100"])).contains(told), "all were, that there are");
}

#[test]
fn tables_of_the_literature_are_reproduced_with_charts() {
    let (_, report, page) = reports("paper", &words("filter --paper --keys 3k --rounds 1", &[]));
    let tables = report["paper"].as_array().unwrap();
    let rows: Vec<usize> = tables.iter().map(|table| table["rows"].as_array().unwrap().len()).collect();
    // Bucket sizes, rates, fingerprint bits, bands of load, sizes of Bloom filters, hash functions and chance.
    assert_eq!(rows, [4, 11, 17, 19, 3, 12]);
    for table in tables {
        let columns = table["headings"].as_array().unwrap().len();
        assert!(table["rows"].as_array().unwrap().iter().all(|row| row.as_array().unwrap().len() == columns));
    }
    // Four slots: 95% is published, and no less is measured.
    assert_eq!(tables[0]["rows"][2][1].as_f64(), Some(0.95));
    assert!(tables[0]["rows"][2][4].as_f64().unwrap() > 0.95);
    assert_eq!(tables[5]["headings"][2], "40,000 numeric ids");
    assert_eq!(tables[5]["headings"][3], "45,402 account names");
    for title in ["Load factor against bucket size", "Collisions of hash functions", "stroke-dasharray"] {
        assert!(page.contains(title), "`{title}` is missing");
    }
}
