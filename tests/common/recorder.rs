//! A recorder of metrics that notes what it receives, and panics at calls whose effect depends on how often they are made.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use metrics::{
    Counter, CounterFn, Gauge, GaugeFn, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit,
};

/// Name, and number.
pub(crate) type Seen = Arc<Mutex<BTreeMap<String, f64>>>;

/// Notes the value to which each metric was set.
pub(crate) struct Notes {
    /// The only label.
    pub(crate) label: (&'static str, &'static str),
    pub(crate) seen: Seen,
}

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
    /// No notes yet.
    pub(crate) fn new(label: (&'static str, &'static str)) -> Self {
        Notes { label, seen: Seen::default() }
    }

    fn note(&self, key: &Key) -> Arc<Note> {
        let labels: Vec<_> = key.labels().map(|label| (label.key(), label.value())).collect();
        assert_eq!(labels, [self.label]);
        Arc::new(Note(Arc::clone(&self.seen), key.name().to_owned()))
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
