//! Export to whatever recorder the `metrics` crate has: feature `metrics`.

use super::Stats;
use crate::export::report;

impl Stats {
    /// Reports everything to the recorder that is installed, labelled `map = name`. Counters are set to what they are now, so
    /// that it does not matter how often this is called; call it when your exporter is about to be read.
    ///
    /// Counters never fall: give a map that is made anew another name, or its counts are not visible until they exceed those of
    /// the previous map.
    ///
    /// Counters: `koel_map_displacements_total`, `koel_map_put_at_once_total` and `koel_map_put_by_displacing_total`, of new
    /// keys that found an empty slot and of those for which one was made, `koel_map_failed_searches_total`,
    /// `koel_map_read_retries_total`, `koel_map_splits_total`, `koel_map_doublings_total`. Gauges: `koel_map_entries`,
    /// `koel_map_slots`, `koel_map_bytes`, `koel_map_segments`, `koel_map_overflow`, `koel_map_longest_write_pause_seconds`,
    /// `koel_map_waiting`.
    ///
    /// ```
    /// let map: koel::HashMap<u32, u32> = koel::HashMap::new();
    /// map.stats().report("users");
    /// ```
    pub fn report(&self, name: &str) {
        let [at_once, moved @ ..] = &self.path_lengths;
        let counters = [
            ("koel_map_displacements_total", self.displacements),
            ("koel_map_put_at_once_total", *at_once),
            ("koel_map_put_by_displacing_total", moved.iter().sum()),
            ("koel_map_failed_searches_total", self.failed_searches),
            ("koel_map_read_retries_total", self.read_retries),
            ("koel_map_splits_total", self.splits),
            ("koel_map_doublings_total", self.doublings),
        ];
        let gauges = [
            ("koel_map_entries", self.len as f64),
            ("koel_map_slots", self.capacity as f64),
            ("koel_map_bytes", self.memory_usage as f64),
            ("koel_map_segments", self.segments as f64),
            ("koel_map_overflow", self.overflow as f64),
            ("koel_map_longest_write_pause_seconds", self.longest_write_pause.as_secs_f64()),
            ("koel_map_waiting", self.waiting as f64),
        ];
        report(("map", name), counters, gauges);
    }
}
