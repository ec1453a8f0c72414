//! What a recorder receives from a map.

use std::collections::BTreeMap;
use std::time::Duration;

use koel::Stats;

use crate::common::recorder::Notes;

#[test]
fn a_recorder_is_told_what_a_maps_stats_are_however_often() {
    let mut stats = Stats::default();
    (stats.displacements, stats.path_lengths, stats.failed_searches) = (1, [2, 3, 4, 5, 6, 7], 8);
    (stats.read_retries, stats.segments, stats.splits, stats.doublings) = (9, 10, 11, 12);
    (stats.overflow, stats.longest_write_pause, stats.waiting) = (13, Duration::from_millis(1500), 16);
    (stats.len, stats.capacity, stats.memory_usage) = (17, 18, 19);
    let notes = Notes::new(("map", "users"));
    ::metrics::with_local_recorder(&notes, || {
        stats.report("users");
        stats.report("users");
    });
    let expected = [
        ("displacements_total", 1.0),
        ("put_at_once_total", 2.0),
        ("put_by_displacing_total", 25.0),
        ("failed_searches_total", 8.0),
        ("read_retries_total", 9.0),
        ("splits_total", 11.0),
        ("doublings_total", 12.0),
        ("entries", 17.0),
        ("slots", 18.0),
        ("bytes", 19.0),
        ("segments", 10.0),
        ("overflow", 13.0),
        ("longest_write_pause_seconds", 1.5),
        ("waiting", 16.0),
    ];
    let expected: BTreeMap<_, _> =
        expected.into_iter().map(|(name, number)| (format!("koel_map_{name}"), number)).collect();
    assert_eq!(*notes.seen.lock().unwrap(), expected);
}
