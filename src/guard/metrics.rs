//! Export to the recorder that is installed for the `metrics` crate: feature `metrics`.

use super::Stats;
use crate::export::report;

impl Stats {
    /// Reports everything to the recorder that is installed, labelled `guard = name`. Counters are set to their current values,
    /// so that it does not matter how often this is called; call it when your exporter is about to be read.
    ///
    /// Counters never fall: give a guard that replaces another a new name, or its counts are not seen until they exceed those
    /// of its predecessor.
    ///
    /// Counters: `koel_guard_blocked_total`, `koel_guard_passed_found_total`, `koel_guard_passed_absent_total`,
    /// `koel_guard_passed_beside_write_total`, `koel_guard_unfiltered_total`, `koel_guard_cache_hits_total`,
    /// `koel_guard_remembered_absent_total`, `koel_guard_puts_total`, `koel_guard_deletes_total`,
    /// `koel_guard_failed_writes_total`. Gauges: `koel_guard_filter_keys`, `koel_guard_filter_bytes`,
    /// `koel_guard_crowded_stripes`, `koel_guard_cache_bytes`, `koel_guard_observed_false_positive_rate`,
    /// `koel_guard_expected_false_positive_rate`.
    ///
    /// ```
    /// use koel::guard::{Guarded, HashMapStore};
    ///
    /// let guarded = Guarded::open(HashMapStore::new())?;
    /// guarded.stats().report("users");
    /// # Ok::<(), koel::guard::Error<std::convert::Infallible>>(())
    /// ```
    pub fn report(&self, name: &str) {
        let counters = [
            ("koel_guard_blocked_total", self.blocked),
            ("koel_guard_passed_found_total", self.passed_found),
            ("koel_guard_passed_absent_total", self.passed_absent),
            ("koel_guard_passed_beside_write_total", self.passed_beside_write),
            ("koel_guard_unfiltered_total", self.unfiltered),
            ("koel_guard_cache_hits_total", self.cache_hits),
            ("koel_guard_remembered_absent_total", self.remembered_absent),
            ("koel_guard_puts_total", self.puts),
            ("koel_guard_deletes_total", self.deletes),
            ("koel_guard_failed_writes_total", self.failed_writes),
        ];
        let gauges = [
            ("koel_guard_filter_keys", self.filter_keys as f64),
            ("koel_guard_filter_bytes", self.filter_bytes as f64),
            ("koel_guard_crowded_stripes", self.crowded_stripes as f64),
            ("koel_guard_cache_bytes", self.cache_bytes as f64),
            ("koel_guard_observed_false_positive_rate", self.observed_false_positive_rate),
            ("koel_guard_expected_false_positive_rate", self.expected_false_positive_rate),
        ];
        report(("guard", name), counters, gauges);
    }
}
