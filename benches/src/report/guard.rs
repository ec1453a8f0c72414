//! Guarded stores: the measurements and their table.

use serde::Serialize;

use super::columns::Columns;
use super::table::{name_field, number_field, range, ratio};
use super::{grouped, keys_in_words, significant, threads_in_words};
use crate::stats::Spread;

/// One workload on one store, bare and guarded.
#[derive(Debug, Serialize)]
pub struct GuardCell {
    /// The store.
    pub store: &'static str,
    /// The workload.
    pub workload: &'static str,
    /// What the workload does, in words.
    pub about: &'static str,
    /// Keys in the store.
    pub keys: u64,
    /// Threads.
    pub threads: usize,
    /// Rows for the bare store, a filter, a cache, and both.
    pub rows: Vec<GuardRow>,
}

/// One way to guard a store.
#[derive(Debug, Serialize)]
pub struct GuardRow {
    /// Its name in the tables.
    pub entrant: &'static str,
    /// Look-ups per microsecond, all threads together.
    pub mops: Spread,
    /// The same, divided by that of the bare store in the same round.
    pub by_bare: Spread,
    /// The fraction of all look-ups that reached the store.
    pub store_reads: f64,
    /// The fraction of the absent keys for which the filter was asked that it took for present; 0 without a filter.
    pub false_positive_rate: f64,
    /// Bytes of the filter and the cache.
    pub bytes: u64,
}

impl GuardRow {
    /// Whether there is a filter or a cache before the store.
    pub(super) fn is_guarded(&self) -> bool {
        self.entrant != "bare store"
    }

    /// Look-ups that reached the store.
    pub(super) fn reach_in_words(&self) -> String {
        format!("{:.2}%", self.store_reads * 100.0)
    }

    /// Absent keys that the filter took for present.
    pub(super) fn false_positives_in_words(&self) -> String {
        format!("{:.3}%", self.false_positive_rate * 100.0)
    }
}

/// One workload on one store: a line for each entrant.
pub fn guard_table(cell: &GuardCell) -> String {
    let headings =
        ["", "Mops", "min .. max", "by bare", "min .. max", "reach the store", "false positives", "bytes"];
    let mut table = Columns::new(&headings);
    for row in &cell.rows {
        table.add_row(vec![
            name_field(row.entrant, row.is_guarded()),
            number_field(significant(row.mops.median)),
            number_field(range(&row.mops)),
            number_field(ratio(Some(row.by_bare.median))),
            number_field(range(&row.by_bare)),
            number_field(row.reach_in_words()),
            number_field(row.false_positives_in_words()),
            number_field(grouped(row.bytes)),
        ]);
    }
    let GuardCell { store, workload, about, keys, threads, .. } = cell;
    let (keys, threads) = (keys_in_words(*keys), threads_in_words(*threads));
    format!("{store}: {workload}, {keys}, {threads}\n{about}\n{table}\n")
}
