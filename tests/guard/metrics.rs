//! What a recorder receives from a guard.

use std::collections::BTreeMap;

use koel::guard::HashMapStore;

use crate::common::recorder::Notes;
use crate::common::{key, ready};

#[test]
fn a_recorder_is_told_what_the_stats_are_however_often() {
    let guarded = ready(HashMapStore::new());
    (0..1000).for_each(|number| assert!(!guarded.put(&key(number), b"a value").unwrap()));
    (0..3).for_each(|number| assert!(guarded.delete(&key(number)).unwrap()));
    let found = (0..1100).filter(|number| guarded.get(&key(*number)).unwrap().is_some()).count();
    let mut stats = guarded.stats();
    assert_eq!((found, stats.puts, stats.deletes, stats.filter_keys), (997, 1000, 3, 997));
    // With all numbers different: otherwise names could be reported with each other's numbers.
    (stats.passed_absent, stats.unfiltered, stats.cache_hits, stats.remembered_absent) = (11, 12, 13, 14);
    (stats.failed_writes, stats.crowded_stripes, stats.cache_bytes) = (15, 16, 17);
    stats.passed_beside_write = 18;
    (stats.observed_false_positive_rate, stats.expected_false_positive_rate) = (0.5, 0.25);
    let notes = Notes::new(("guard", "users"));
    ::metrics::with_local_recorder(&notes, || {
        stats.report("users");
        stats.report("users");
    });
    let expected = [
        ("blocked_total", stats.blocked as f64),
        ("passed_found_total", stats.passed_found as f64),
        ("passed_absent_total", 11.0),
        ("passed_beside_write_total", 18.0),
        ("unfiltered_total", 12.0),
        ("cache_hits_total", 13.0),
        ("remembered_absent_total", 14.0),
        ("puts_total", 1000.0),
        ("deletes_total", 3.0),
        ("failed_writes_total", 15.0),
        ("filter_keys", 997.0),
        ("filter_bytes", stats.filter_bytes as f64),
        ("crowded_stripes", 16.0),
        ("cache_bytes", 17.0),
        ("observed_false_positive_rate", 0.5),
        ("expected_false_positive_rate", 0.25),
    ];
    let expected: BTreeMap<_, _> =
        expected.into_iter().map(|(name, number)| (format!("koel_guard_{name}"), number)).collect();
    assert_eq!(*notes.seen.lock().unwrap(), expected);
}
