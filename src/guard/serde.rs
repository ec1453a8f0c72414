//! `Serialize` for the reports of a guard. Feature `serde`.

use serde::ser::{Serialize, Serializer};

use super::rebuild::{Phase, Progress};
use super::stats::Stats;
use super::verify::Verification;
use crate::fields::serialize_fields;

serialize_fields! {
    /// Serializes the fields under their names. Needs the feature `serde`.
    ///
    /// ```
    /// use koel::guard::{Guarded, HashMapStore};
    ///
    /// let guarded = Guarded::open(HashMapStore::new())?;
    /// guarded.put(b"ada", b"1815")?;
    /// let stats = serde_json::to_value(guarded.stats())?;
    /// assert_eq!((&stats["puts"], &stats["deletes"]), (&1.into(), &0.into()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    Stats {
        blocked,
        passed_found,
        passed_absent,
        passed_beside_write,
        unfiltered,
        cache_hits,
        remembered_absent,
        puts,
        deletes,
        failed_writes,
        observed_false_positive_rate,
        expected_false_positive_rate,
        filter_keys,
        filter_bytes,
        crowded_stripes,
        cache_bytes,
    }
}

serialize_fields! {
    /// Serializes the fields under their names. Needs the feature `serde`.
    ///
    /// ```
    /// use koel::guard::{Guarded, HashMapStore};
    ///
    /// let guarded = Guarded::open(HashMapStore::new())?;
    /// guarded.wait_until_ready()?;
    /// assert_eq!(serde_json::to_value(guarded.progress())?["phase"], "ready");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    Progress { phase, scanned, expected }
}

serialize_fields! {
    /// Serializes the fields under their names. Needs the feature `serde`.
    Verification { checked, false_negatives }
}

/// Serializes the name, in lower case. Needs the feature `serde`.
impl Serialize for Phase {
    fn serialize<Z: Serializer>(&self, serializer: Z) -> Result<Z::Ok, Z::Error> {
        serializer.serialize_str(match self {
            Phase::Ready => "ready",
            Phase::Rebuilding => "rebuilding",
            Phase::Unfiltered => "unfiltered",
        })
    }
}
