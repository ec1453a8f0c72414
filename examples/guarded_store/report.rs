//! The final table.

use std::fmt;

use comfy_table::{CellAlignment, Table, presets};
use koel::guard::{Stats, Verification};

use crate::measure::Pass;

/// All that was measured.
#[derive(Debug, Default)]
pub(crate) struct Report {
    pub(crate) bare: Vec<Pass>,
    pub(crate) guarded: Vec<Pass>,
    pub(crate) stats: Stats,
    pub(crate) verification: Option<Verification>,
}

fn sum(passes: &[Pass]) -> Pass {
    let add = |a: Pass, b: &Pass| Pass {
        lookups: a.lookups + b.lookups,
        writes: a.writes + b.writes,
        seconds: a.seconds + b.seconds,
    };
    passes.iter().fold(Pass::default(), add)
}

fn per_second(count: u64, seconds: f64) -> f64 {
    count as f64 / seconds.max(1e-9)
}

fn thousands(number: f64) -> String {
    let digits = format!("{number:.0}");
    let groups: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().filter_map(|group| std::str::from_utf8(group).ok()).collect();
    groups.join(",")
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (bare, guarded, stats) = (sum(&self.bare), sum(&self.guarded), &self.stats);
        let (before, after) =
            (per_second(bare.lookups, bare.seconds), per_second(guarded.lookups, guarded.seconds));
        let lookups = stats.lookups().max(1) as f64;
        let reads = |share: f64| format!("{:.1}%", share * 100.0);
        let saved = (stats.lookups() - stats.store_reads()) as f64 / lookups;
        let writes = |pass: Pass| thousands(per_second(pass.writes, pass.seconds));
        let mut table = Table::new();
        table.load_preset(presets::ASCII_MARKDOWN);
        table.set_header(["", "bare store", "guarded"]);
        table.add_row(["look-ups a second", &thousands(before), &thousands(after)]);
        table.add_row(["times the bare store", "1.0", &format!("{:.1}", after / before.max(1.0))]);
        table.add_row(["look-ups that reached the store", "100.0%", &reads(1.0 - saved)]);
        table.add_row(["saved by the filter", "", &reads(stats.blocked as f64 / lookups)]);
        table.add_row(["saved by the cache", "", &reads(stats.cache_hits as f64 / lookups)]);
        table.add_row([
            "saved as known false positives",
            "",
            &reads(stats.remembered_absent as f64 / lookups),
        ]);
        let rate = |rate: f64| format!("{:.3}%", rate * 100.0);
        table.add_row(["false positives, observed", "", &rate(stats.observed_false_positive_rate)]);
        table.add_row(["false positives, expected", "", &rate(stats.expected_false_positive_rate)]);
        table.add_row(["writes a second", &writes(bare), &writes(guarded)]);
        table.add_row(["keys in the filter", "", &thousands(stats.filter_keys as f64)]);
        table.add_row(["memory of the filter, bytes", "", &thousands(stats.filter_bytes as f64)]);
        table.add_row(["memory of the cache, bytes", "", &thousands(stats.cache_bytes as f64)]);
        if let Some(Verification { checked, false_negatives, .. }) = &self.verification {
            table.add_row(["keys that were sampled; missed", "", &format!("{checked}; {false_negatives}")]);
        }
        for column in 1..3 {
            if let Some(column) = table.column_mut(column) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        write!(f, "{table}\nOf every answer it was checked whether the key is there.")
    }
}
