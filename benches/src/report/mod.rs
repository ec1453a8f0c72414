//! The measurements, in the form in which they are printed, drawn and saved.

pub mod cache;
mod cache_chart;
mod cache_html;
pub mod cache_table;
mod chart;
mod columns;
mod curves;
mod destination;
mod filter;
mod filter_html;
mod filter_table;
mod guard;
mod guard_html;
mod html;
mod latency;
mod machine;
mod marks;
mod paper;
mod table;
mod throughput;

use serde::Serialize;

pub use self::destination::{Destination, are_of_one_file};
pub use self::filter::{
    Against, Aim, FilterCell, FilterMeasured, FilterRow, FilterSizeCell, FilterSizeRow, percent,
};
pub use self::filter_table::{
    filter_aims_table, filter_size_table, filter_summary_table, filter_table, paper_table,
};
pub use self::guard::{GuardCell, GuardRow, guard_table};
pub use self::html::page;
pub use self::latency::{LatencyCell, LatencyRow, QUANTILES, quantile_names};
pub use self::machine::{LineReads, MachineInfo};
pub use self::paper::{Curve, Curves, PaperTable, Value};
pub use self::table::{latency_table, memory_table, summary_table, throughput_table};
pub use self::throughput::{Cell, Row};
use crate::error::CheckError;
use crate::origin::Origin;
use crate::pages::Pages;

/// Everything that one run of the program measured.
#[derive(Debug, Default, Serialize)]
pub struct Report {
    /// The command, its version and its options, in words.
    pub command: String,
    /// What was measured, in which versions, and how it was compiled.
    pub origin: Origin,
    /// The machine.
    pub machine: MachineInfo,
    /// Which tables had huge pages.
    pub pages: Pages,
    /// The checks that failed, and any other reason why the run ended before all was measured; empty if there was none.
    pub failures: Vec<String>,
    /// Throughput, cell by cell.
    pub throughput: Vec<Cell>,
    /// Latency, phase by phase.
    pub latency: Vec<LatencyCell>,
    /// Memory, size by size.
    pub memory: Vec<MemoryCell>,
    /// Throughput of filters, cell by cell.
    pub filters: Vec<FilterCell>,
    /// Memory and error rates of filters, size by size and width by width.
    pub filter_sizes: Vec<FilterSizeCell>,
    /// Tables of the literature.
    pub paper: Vec<PaperTable>,
    /// Guarded stores, workload by workload.
    pub guard: Vec<GuardCell>,
    /// Caches.
    pub caches: cache::CacheReport,
}

/// A contestant that is out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Absent {
    /// Its name in the tables.
    pub contestant: String,
    /// The workload in which it went out, as the tables name it.
    pub since: String,
    /// What it did wrong, or could not do.
    pub why: String,
}

/// The memory of maps of one size; all contestants.
#[derive(Debug, Serialize)]
pub struct MemoryCell {
    /// How the map was built.
    pub built: String,
    /// Entries.
    pub keys: u64,
    /// The contestants.
    pub rows: Vec<MemoryRow>,
    /// Contestants that are out.
    pub absent: Vec<Absent>,
}

/// One contestant's bytes per entry.
#[derive(Debug, Serialize)]
pub struct MemoryRow {
    /// Its name in the tables.
    pub contestant: &'static str,
    /// Whether it is koel.
    pub is_koel: bool,
    /// As requested from the allocator.
    pub requested: f64,
    /// As the allocator rounds it up, with its own header.
    pub allocated: f64,
    /// As the map itself reports it, if it does.
    pub own: Option<f64>,
}

impl Absent {
    /// The contestant of `failure`, which is out.
    pub fn of(failure: CheckError) -> Self {
        Absent { contestant: failure.contestant, since: failure.workload, why: failure.detail }
    }

    /// All of it in one line.
    pub fn in_words(&self) -> String {
        format!("{} is out since {}: {}", self.contestant, self.since, self.why)
    }
}

/// The contestants that are out, a line for each.
fn absent_in_words(absent: &[Absent]) -> String {
    absent.iter().map(|absent| absent.in_words() + "\n").collect()
}

impl Report {
    /// All about the measurements except the figures: lines for the machine, the time, the versions and the compiler, and a
    /// warning if one is due.
    pub fn origin_in_words(&self) -> Vec<String> {
        let machine = format!("{}; {}", self.machine.in_words(), self.pages.in_words());
        let warning = self.origin.warning().map(str::to_owned);
        let hour = self.machine.hour_in_words();
        [machine, hour, self.origin.crates_in_words(), self.origin.compiler_in_words()]
            .into_iter()
            .chain(warning)
            .collect()
    }

    /// Whether nothing was measured.
    pub fn is_empty(&self) -> bool {
        let Report { throughput, latency, memory, filters, filter_sizes, paper, guard, caches, .. } = self;
        let maps = throughput.is_empty() && latency.is_empty() && memory.is_empty();
        let others = filters.is_empty() && filter_sizes.is_empty() && paper.is_empty() && guard.is_empty();
        maps && others && caches.is_empty()
    }
}

/// Says that a contestant missed keys, if it did.
pub fn lost_in_words(contestant: &str, lost_reads: u64) -> Option<String> {
    (lost_reads > 0)
        .then(|| format!("{contestant} missed keys that were there, in {} lookups", grouped(lost_reads)))
}

/// `950,000` for 950000.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `1 key`, `950,000 keys`.
pub fn keys_in_words(keys: u64) -> String {
    format!("{} key{}", grouped(keys), if keys == 1 { "" } else { "s" })
}

/// `1 thread`, `2 threads`.
pub fn threads_in_words(threads: usize) -> String {
    format!("{threads} thread{}", if threads == 1 { "" } else { "s" })
}

/// Nanoseconds with the unit that suits them.
pub fn duration_in_words(nanos: f64) -> String {
    let (value, unit) = match nanos {
        n if n < 1e3 => return format!("{n:.0} ns"),
        n if n < 1e6 => (n / 1e3, "µs"),
        n if n < 1e9 => (n / 1e6, "ms"),
        n => (n / 1e9, "s"),
    };
    format!("{} {unit}", significant(value))
}

/// Three significant digits, but no digit before the point is dropped; two below 1, except for very small numbers.
pub fn significant(value: f64) -> String {
    match value {
        v if v >= 99.95 => format!("{v:.0}"),
        v if v >= 9.995 => format!("{v:.1}"),
        v if v >= 0.0995 || v <= 0.0 => format!("{v:.2}"),
        v => format!("{v:.4}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_for_people() {
        assert_eq!(grouped(7), "7");
        assert_eq!(keys_in_words(1), "1 key");
        assert_eq!(keys_in_words(60_000), "60,000 keys");
        assert_eq!(grouped(950_000), "950,000");
        assert_eq!(grouped(7_600_000), "7,600,000");
        assert_eq!(duration_in_words(85.4), "85 ns");
        assert_eq!(duration_in_words(2_450.0), "2.45 µs");
        assert_eq!(duration_in_words(68_100.0), "68.1 µs");
        assert_eq!(duration_in_words(4_000_000.0), "4.00 ms");
        assert_eq!(significant(99.97), "100");
        assert_eq!([0.0, 0.0712, 0.5].map(significant), ["0.00", "0.0712", "0.50"]);
    }
}
