//! `Serialize` for counts: feature `serde`.

use super::Stats;
use crate::fields::serialize_fields;

serialize_fields! {
    /// Serializes the fields by their names, and a time as seconds and nanoseconds, as serde does. Needs the feature `serde`.
    ///
    /// ```
    /// let map: koel::HashMap<u32, u32> = koel::HashMap::from([(1, 1)]);
    /// let stats = serde_json::to_value(map.stats())?;
    /// assert_eq!((&stats["path_lengths"][0], &stats["segments"]), (&1.into(), &1.into()));
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    Stats {
        len,
        capacity,
        memory_usage,
        displacements,
        path_lengths,
        failed_searches,
        read_retries,
        segments,
        splits,
        doublings,
        overflow,
        longest_write_pause,
        waiting,
    }
}
