//! Counts in the form that recorders of the crate `metrics` take: feature `metrics`.

use metrics::{counter, gauge};

/// Sets metrics to what they are now, with one label, so that it does not matter how often this is called.
pub(crate) fn report<const C: usize, const G: usize>(
    (label, name): (&'static str, &str),
    counters: [(&'static str, u64); C],
    gauges: [(&'static str, f64); G],
) {
    for (metric, value) in counters {
        counter!(metric, label => name.to_owned()).absolute(value);
    }
    for (metric, value) in gauges {
        gauge!(metric, label => name.to_owned()).set(value);
    }
}
