//! What a recorder receives.

use std::collections::BTreeMap;
use std::time::Duration;

use koel::Cache;

use crate::common::recorder::Notes;

#[test]
fn a_recorder_is_told_what_the_stats_are_however_often() {
    let cache: Cache<u64, u64> = Cache::builder().max_weight(10).weigher(|_, value| *value).build();
    (1..=4).for_each(|key| cache.insert(key, 4).unwrap());
    let found = [4, 1, 99].map(|key| cache.get(&key).is_some());
    assert!(found[0] && !found[2]);
    assert_eq!(cache.try_get_or_insert_with(50, || Err("no such key")).ok(), None);
    let mut stats = cache.stats();
    // Loads are short.
    stats.load_time = Duration::from_millis(1250);
    let notes = Notes::new(("cache", "sessions"));
    ::metrics::with_local_recorder(&notes, || {
        stats.report("sessions");
        stats.report("sessions");
    });
    let expected = [
        ("hits_total", stats.hits),
        ("misses_total", stats.misses),
        ("loads_total", stats.loads),
        ("failed_loads_total", stats.failed_loads),
        ("insertions_total", stats.insertions),
        ("evictions_total", stats.evictions),
        ("turned_away_total", stats.turned_away),
        ("expirations_total", stats.expirations),
        ("evicted_weight_total", stats.evicted_weight),
        ("entries", stats.len as u64),
        ("weight", stats.weight),
        ("capacity", stats.capacity),
    ];
    let expected = expected.map(|(name, number)| (name, number as f64));
    let expected = expected.into_iter().chain([("load_seconds_total", 1.25)]);
    let expected: BTreeMap<_, _> =
        expected.map(|(name, number)| (format!("koel_cache_{name}"), number)).collect();
    assert_eq!(*notes.seen.lock().unwrap(), expected);
    // Otherwise names could be reported with each other's numbers.
    assert!((stats.insertions, stats.evictions, stats.evicted_weight, stats.failed_loads) == (4, 2, 8, 1));
}
