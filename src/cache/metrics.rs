//! Export to the recorder that is installed for the `metrics` crate: feature `metrics`.

use super::CacheStats;
use crate::export::report;

impl CacheStats {
    /// Reports everything to the recorder that is installed, labelled `cache = name`. Counters are set to their present values,
    /// so it does not matter how often this is called; call it when your exporter is about to be read.
    ///
    /// Counters never fall: give a cache that is built anew another name, or its counts are not seen until they exceed those of
    /// the one before.
    ///
    /// Counters: `koel_cache_hits_total`, `koel_cache_misses_total`, `koel_cache_loads_total`, `koel_cache_failed_loads_total`,
    /// `koel_cache_insertions_total`, `koel_cache_evictions_total`, `koel_cache_turned_away_total`,
    /// `koel_cache_expirations_total`, `koel_cache_evicted_weight_total`. Gauges: `koel_cache_entries`, `koel_cache_weight`,
    /// `koel_cache_capacity`; and `koel_cache_load_seconds_total`, which only rises, but has fractions, which counters cannot
    /// have.
    ///
    /// ```
    /// let cache: koel::Cache<u32, u32> = koel::Cache::new(10);
    /// cache.stats().report("sessions");
    /// ```
    pub fn report(&self, name: &str) {
        let counters = [
            ("koel_cache_hits_total", self.hits),
            ("koel_cache_misses_total", self.misses),
            ("koel_cache_loads_total", self.loads),
            ("koel_cache_failed_loads_total", self.failed_loads),
            ("koel_cache_insertions_total", self.insertions),
            ("koel_cache_evictions_total", self.evictions),
            ("koel_cache_turned_away_total", self.turned_away),
            ("koel_cache_expirations_total", self.expirations),
            ("koel_cache_evicted_weight_total", self.evicted_weight),
        ];
        let gauges = [
            ("koel_cache_load_seconds_total", self.load_time.as_secs_f64()),
            ("koel_cache_entries", self.len as f64),
            ("koel_cache_weight", self.weight as f64),
            ("koel_cache_capacity", self.capacity as f64),
        ];
        report(("cache", name), counters, gauges);
    }
}
