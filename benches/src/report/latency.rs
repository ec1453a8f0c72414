//! The measured latency of maps and caches.

use hdrhistogram::Histogram;
use serde::Serialize;

use super::{Absent, duration_in_words};
use crate::contestants::Id;
use crate::stats::Spread;

/// One kind of timed operation; all contestants.
#[derive(Debug, Serialize)]
pub struct LatencyCell {
    /// What was timed.
    pub phase: String,
    /// Entries.
    pub keys: u64,
    /// Threads.
    pub threads: usize,
    /// The overhead that was subtracted from each time.
    pub overhead_nanos: u64,
    /// The names of the times of a row, in their order: those of [`QUANTILES`].
    pub quantiles: [&'static str; QUANTILES.len()],
    /// The contestants.
    pub rows: Vec<LatencyRow>,
    /// Contestants that are out.
    pub absent: Vec<Absent>,
}

/// One contestant's latency.
#[derive(Debug, Serialize)]
pub struct LatencyRow {
    /// Its name in the tables.
    pub contestant: &'static str,
    /// Whether it is koel.
    pub is_koel: bool,
    /// Lookups, in all rounds, that missed a key while another thread replaced it.
    pub lost_reads: u64,
    /// Operations timed in each round: a quantile requires at least one beyond it.
    pub samples: u64,
    /// Nanoseconds at each of [`QUANTILES`].
    pub nanos: Vec<Spread>,
    /// Its p99.999 divided by papaya's of the same round, if both are known.
    pub by_papaya: Option<Spread>,
}

impl LatencyRow {
    /// The results of the rounds of one contestant; `lost_reads` is the sum over all of them.
    pub fn of<'a>(
        contestant: &'static str,
        is_koel: bool,
        rounds: impl Iterator<Item = &'a Histogram<u64>> + Clone,
        lost_reads: u64,
    ) -> Self {
        let at = |quantile| {
            let nanos = rounds.clone().map(|histogram| histogram.value_at_quantile(quantile) as f64);
            Spread::of(nanos.collect())
        };
        LatencyRow {
            contestant,
            is_koel,
            lost_reads,
            samples: rounds.clone().map(Histogram::len).min().unwrap_or(0),
            nanos: QUANTILES.iter().map(|&(_, quantile)| at(quantile)).collect(),
            by_papaya: None,
        }
    }

    /// The same rows, compared with papaya's, if it is among them.
    pub fn compared(mut rows: Vec<LatencyRow>) -> Vec<LatencyRow> {
        let papaya = rows.iter().find(|row| row.contestant == Id::Papaya.name());
        let papaya = papaya.and_then(|row| row.told(COMPARED)).cloned();
        for row in &mut rows {
            row.by_papaya = row.told(COMPARED).zip(papaya.as_ref()).map(|(mine, papaya)| mine.by(papaya));
        }
        rows
    }

    /// The median of a quantile over the rounds; `None` if a round has too few samples for it.
    pub fn quantile(&self, index: usize) -> Option<f64> {
        self.told(index).map(|spread| spread.median)
    }

    fn told(&self, index: usize) -> Option<&Spread> {
        let (_, quantile) = QUANTILES[index];
        // The longest time needs no sample beyond it; the summand makes up for rounding errors of the product.
        let enough = quantile == 1.0 || self.samples as f64 * (1.0 - quantile) + 1e-6 >= 1.0;
        self.nanos.get(index).filter(|_| enough && self.samples > 0)
    }

    /// The ranges over the rounds of p99.99 and of the longest time; `-` for a quantile that is not known.
    pub fn tail_ranges_in_words(&self) -> [String; 2] {
        [TAIL, QUANTILES.len() - 1].map(|index| {
            let words = |spread: &Spread| {
                format!("{} .. {}", duration_in_words(spread.min), duration_in_words(spread.max))
            };
            self.told(index).map_or("-".to_owned(), words)
        })
    }

    /// The same in words; `-` for `None`.
    pub fn quantile_in_words(&self, index: usize) -> String {
        self.quantile(index).map_or("-".to_owned(), duration_in_words)
    }
}

/// The quantiles of latency that are reported, with their names; the last is the longest time.
pub const QUANTILES: [(&str, f64); 7] = [
    ("p50", 0.5),
    ("p90", 0.9),
    ("p99", 0.99),
    ("p99.9", 0.999),
    ("p99.99", 0.9999),
    ("p99.999", 0.99999),
    ("max", 1.0),
];

/// The index of p99.99 in [`QUANTILES`].
const TAIL: usize = 4;

/// The index of p99.999, by which maps are compared.
const COMPARED: usize = 5;

/// Their names.
pub fn quantile_names() -> [&'static str; QUANTILES.len()] {
    QUANTILES.map(|(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::super::latency_table;
    use super::*;
    use crate::stopwatch::new_histogram;

    #[test]
    fn a_quantile_that_no_sample_is_beyond_is_not_told() {
        let nanos = QUANTILES.iter().map(|_| Spread::of(vec![5.0])).collect();
        let mut row = LatencyRow {
            contestant: "koel",
            is_koel: true,
            lost_reads: 0,
            samples: 1000,
            nanos,
            by_papaya: None,
        };
        let told = |row: &LatencyRow| [0, 3, 4, 6].map(|index| row.quantile_in_words(index));
        assert_eq!(told(&row), ["5 ns", "5 ns", "-", "5 ns"]);
        assert_eq!(row.tail_ranges_in_words(), ["-", "5 ns .. 5 ns"]);
        row.samples = 10_000;
        row.nanos[TAIL] = Spread::of(vec![2_000.0, 1_000.0, 9_000.0]);
        assert_eq!(row.tail_ranges_in_words()[0], "1.00 µs .. 9.00 µs");
        assert_eq!(QUANTILES[TAIL].0, "p99.99");
        row.samples = 1;
        assert_eq!(told(&row), ["-", "-", "-", "5 ns"]);
    }

    #[test]
    fn maps_are_compared_by_a_quantile_that_both_are_asked_often_enough_for() {
        assert_eq!(QUANTILES[COMPARED].0, "p99.999");
        let row = |id: Id, all: [(u64, u64); 2]| {
            let rounds = all.map(|(nanos, samples)| {
                let mut histogram = new_histogram();
                histogram.record_n(1, samples - 2).unwrap();
                histogram.record_n(nanos, 2).unwrap();
                histogram
            });
            LatencyRow::of(id.name(), id.is_koel(), rounds.iter(), 0)
        };
        let many = 150_000;
        let rows = [
            row(Id::Koel, [(300, many), (100, many)]),
            row(Id::KoelInline, [(300, many), (100, many / 2)]),
            row(Id::Papaya, [(600, many), (400, many)]),
        ];
        let rows = LatencyRow::compared(rows.into());
        let ratios = rows[0].by_papaya.as_ref().unwrap();
        assert_eq!((ratios.min, ratios.max), (0.25, 0.5));
        assert_eq!(rows[1].by_papaya, None);
        assert_eq!(rows[2].by_papaya.as_ref().map(|by| by.median), Some(1.0));
        let cell = |rows| LatencyCell {
            phase: String::new(),
            keys: many,
            threads: 1,
            overhead_nanos: 0,
            quantiles: quantile_names(),
            rows,
            absent: Vec::new(),
        };
        let table = latency_table(&cell(rows));
        assert!(table.contains("p99.999 by papaya") && table.contains("0.25 .. 0.50"), "{table}");
        let alone = latency_table(&cell(LatencyRow::compared(vec![row(Id::Koel, [(1, many); 2])])));
        assert!(!alone.contains("by papaya"), "{alone}");
    }
}
