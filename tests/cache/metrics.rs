//! What a recorder is told.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ::metrics::{
    Counter, CounterFn, Gauge, GaugeFn, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit,
};
use koel::Cache;

/// Name with label, and number.
type Seen = Arc<Mutex<BTreeMap<String, f64>>>;

/// Writes down what each metric was set to.
#[derive(Default)]
struct Notes(Seen);

struct Note(Seen, String);

impl Note {
    fn set_to(&self, number: f64) {
        self.0.lock().unwrap().insert(self.1.clone(), number);
    }
}

impl CounterFn for Note {
    fn increment(&self, _: u64) {
        panic!("{} would depend on how often it is reported", self.1);
    }

    fn absolute(&self, value: u64) {
        self.set_to(value as f64);
    }
}

impl GaugeFn for Note {
    fn increment(&self, _: f64) {
        panic!("{} would depend on how often it is reported", self.1);
    }

    fn decrement(&self, by: f64) {
        GaugeFn::increment(self, -by);
    }

    fn set(&self, value: f64) {
        self.set_to(value);
    }
}

impl Notes {
    fn note(&self, key: &Key) -> Arc<Note> {
        let labels: Vec<_> = key.labels().map(|label| (label.key(), label.value())).collect();
        assert_eq!(labels, [("cache", "sessions")]);
        Arc::new(Note(Arc::clone(&self.0), key.name().to_owned()))
    }
}

impl Recorder for Notes {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.note(key))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(self.note(key))
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        panic!("{} is no histogram", key.name());
    }
}

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
    let notes = Notes::default();
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
    assert_eq!(*notes.0.lock().unwrap(), expected);
    // Else names could be told with each other's numbers.
    assert!((stats.insertions, stats.evictions, stats.evicted_weight, stats.failed_loads) == (4, 2, 8, 1));
}
