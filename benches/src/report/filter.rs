//! The measurements of filters.

use serde::Serialize;

use super::{Absent, keys_in_words, threads_in_words};
use crate::entrant::Built;
use crate::filters::{Expected, Id};
use crate::stats::Spread;

/// Rates that differ by less than this fraction count as equal.
const RATES_ARE_EQUAL: f64 = 0.05;

/// One workload, size, width and number of threads; all filters that take part.
#[derive(Debug, Serialize)]
pub struct FilterCell {
    /// The workload.
    pub workload: String,
    /// What the workload does, in words.
    pub about: String,
    /// Keys.
    pub keys: u64,
    /// Bits of a slot.
    pub bits: u32,
    /// Threads.
    pub threads: usize,
    /// The base with which [`FilterRow::by_own`] compares each filter, in words: its own figure in another workload.
    pub base: Option<String>,
    /// The filters.
    pub rows: Vec<FilterRow>,
    /// koel's aims here.
    pub aims: Vec<Aim>,
    /// Contestants that are out.
    pub absent: Vec<Absent>,
}

/// One filter's throughput. Ratios are those of single rounds, so that a disturbance of a round slows both sides.
#[derive(Debug, Serialize)]
pub struct FilterRow {
    /// Its name in the tables.
    pub filter: &'static str,
    /// Whether it is koel.
    pub is_koel: bool,
    /// Whether it is another cuckoo or quotient filter.
    pub is_rival: bool,
    /// Operations per microsecond, all threads together.
    pub mops: Spread,
    /// Its measured error rate.
    pub false_positive_rate: Option<f64>,
    /// Lookups, in all rounds, that missed a key while another thread wrote.
    pub lost_reads: u64,
    /// Its throughput divided by the best rival's.
    pub by_best_rival: Option<Spread>,
    /// Its throughput divided by its own in the base workload.
    pub by_own: Option<Spread>,
}

/// An aim of koel, and whether it is reached.
#[derive(Debug, Serialize)]
pub struct Aim {
    /// Which of koel's filters.
    pub filter: &'static str,
    /// What it is compared with.
    pub beside: String,
    /// How many times as fast it is.
    pub ratio: Spread,
    /// How many times as fast it is to be at least.
    pub aim: f64,
}

/// What an aim is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Against {
    /// The fastest other cuckoo or quotient filter.
    BestRival,
    /// The filter itself in the base workload.
    Own,
    /// This filter.
    Filter(Id),
}

/// The measurements of one filter, a figure for each round.
#[derive(Debug)]
pub struct FilterMeasured {
    /// The filter.
    pub id: Id,
    /// Operations per microsecond.
    pub mops: Vec<f64>,
    /// The same in the base workload; empty if there is none.
    pub base: Vec<f64>,
    /// Lookups that missed a key.
    pub lost_reads: u64,
}

/// The memory of filters of one size and width, and their error rates.
#[derive(Debug, Serialize)]
pub struct FilterSizeCell {
    /// Keys.
    pub keys: u64,
    /// Bits of a slot.
    pub bits: u32,
    /// The filters.
    pub rows: Vec<FilterSizeRow>,
    /// Contestants that are out.
    pub absent: Vec<Absent>,
}

/// One filter's size.
#[derive(Debug, Serialize)]
pub struct FilterSizeRow {
    /// Its name in the tables.
    pub filter: &'static str,
    /// Whether it is koel.
    pub is_koel: bool,
    /// Whether it is another cuckoo or quotient filter.
    pub is_rival: bool,
    /// Bits from the allocator, per key.
    pub bits_per_key: f64,
    /// Keys divided by slots.
    pub load: Option<f64>,
    /// The expected error rate, or its upper bound.
    pub expected_rate: f64,
    /// The measured error rate.
    pub measured_rate: f64,
    /// The bits per key that its error rate requires at least, log2(1/rate), divided by those that it takes.
    pub efficiency: f64,
    /// How often it was too small for its keys and had to be rebuilt, twice as large.
    pub attempts: u32,
}

impl FilterCell {
    /// Adds the measurements, compared with the best rival, with each filter's own base, and with the aims.
    pub fn compare(
        &mut self,
        measured: Vec<FilterMeasured>,
        sizes: Option<&FilterSizeCell>,
        aims: &[(Id, Against, f64)],
    ) {
        let rivals = measured.iter().filter(|filter| filter.id.is_rival());
        let rivals = rivals.map(|filter| Spread::of(filter.mops.clone()));
        let best = rivals.max_by(|a, b| a.median.total_cmp(&b.median));
        let row = |FilterMeasured { id, mops, base, lost_reads }: FilterMeasured| {
            let mops = Spread::of(mops);
            FilterRow {
                filter: id.name(),
                is_koel: id.is_koel(),
                is_rival: id.is_rival(),
                false_positive_rate: sizes.and_then(|sizes| sizes.row(id)).map(|row| row.measured_rate),
                lost_reads,
                by_best_rival: best.as_ref().map(|best| mops.by(best)),
                by_own: (!base.is_empty()).then(|| mops.by(&Spread::of(base))),
                mops,
            }
        };
        self.rows = measured.into_iter().map(row).collect();
        self.aims = aims.iter().filter_map(|&(id, against, aim)| self.aim(id, against, aim)).collect();
    }

    /// `None` if there is nothing to compare.
    fn aim(&self, id: Id, against: Against, aim: f64) -> Option<Aim> {
        let row = self.row(id)?;
        let (beside, ratio) = match against {
            Against::BestRival => (self.best_rival()?.filter.to_owned(), row.by_best_rival.clone()?),
            Against::Own => (format!("own {}", self.base.as_ref()?), row.by_own.clone()?),
            Against::Filter(other) => (other.name().to_owned(), row.mops.by(&self.row(other)?.mops)),
        };
        Some(Aim { filter: row.filter, beside, ratio, aim })
    }

    /// The row of `id`, if it took part.
    pub fn row(&self, id: Id) -> Option<&FilterRow> {
        self.rows.iter().find(|row| row.filter == id.name())
    }

    /// The rival with the highest median.
    pub fn best_rival(&self) -> Option<&FilterRow> {
        let rivals = self.rows.iter().filter(|row| row.is_rival);
        rivals.max_by(|a, b| a.mops.median.total_cmp(&b.mops.median))
    }

    /// The heading of the column of [`FilterRow::by_own`].
    pub fn base_in_words(&self) -> Option<String> {
        self.base.as_ref().map(|base| format!("by own {base}"))
    }

    /// Size, width and threads in words.
    pub fn conditions(&self) -> String {
        format!("{}, {} bits, {}", keys_in_words(self.keys), self.bits, threads_in_words(self.threads))
    }

    /// Workload and conditions in words.
    pub fn title(&self) -> String {
        format!("{}: {}", self.workload, self.conditions())
    }
}

impl Aim {
    /// Whether it is reached, at the precision at which it is shown.
    pub fn is_met(&self) -> bool {
        self.ratio.median >= self.aim - 0.005
    }
}

impl FilterSizeCell {
    /// Size and width in words.
    pub fn conditions(&self) -> String {
        format!("{}, {} bits", keys_in_words(self.keys), self.bits)
    }

    /// The row of `id`.
    pub fn row(&self, id: Id) -> Option<&FilterSizeRow> {
        self.rows.iter().find(|row| row.filter == id.name())
    }

    /// Rivals that are wrong more often than koel, and so do less work.
    pub fn looser_rivals(&self) -> Vec<String> {
        let Some(koel) = self.row(Id::Koel) else { return Vec::new() };
        let looser = |row: &&FilterSizeRow| {
            row.is_rival && row.measured_rate > koel.measured_rate * (1.0 + RATES_ARE_EQUAL)
        };
        let told = |row: &FilterSizeRow| format!("{} ({})", row.filter, percent(row.measured_rate));
        self.rows.iter().filter(looser).map(told).collect()
    }
}

impl FilterSizeRow {
    /// The row of `id`.
    pub fn new(id: Id, built: Built) -> Self {
        let expected_rate = match built.expected {
            Expected::About(rate) | Expected::AtMost(rate) => rate,
        };
        let efficiency = match (built.measured, built.bits_per_key) {
            (rate, bits) if rate > 0.0 && bits > 0.0 => -rate.log2() / bits,
            _ => 0.0,
        };
        FilterSizeRow {
            filter: id.name(),
            is_koel: id.is_koel(),
            is_rival: id.is_rival(),
            bits_per_key: built.bits_per_key,
            load: built.load,
            expected_rate,
            measured_rate: built.measured,
            efficiency,
            attempts: built.attempts,
        }
    }
}

/// A rate as a percentage of three digits.
pub fn percent(rate: f64) -> String {
    match 100.0 * rate {
        p if p >= 9.995 || p == 0.0 => format!("{p:.1}%"),
        p if p >= 0.9995 => format!("{p:.2}%"),
        p if p >= 0.09995 => format!("{p:.3}%"),
        p => format!("{p:.2e}%"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(id: Id, mops: [f64; 3], base: &[f64]) -> FilterMeasured {
        FilterMeasured { id, mops: mops.to_vec(), base: base.to_vec(), lost_reads: 0 }
    }

    fn size_row(id: Id, rate: f64) -> FilterSizeRow {
        let built = Built {
            bits_per_key: 8.0,
            load: None,
            expected: Expected::About(rate),
            measured: rate,
            attempts: 0,
        };
        FilterSizeRow::new(id, built)
    }

    #[test]
    fn ratios_are_of_single_rounds_to_the_best_cuckoo_or_quotient_filter_and_to_oneself() {
        let mut cell = FilterCell {
            workload: "hit".to_owned(),
            about: String::new(),
            keys: 10,
            bits: 8,
            threads: 2,
            base: Some("hit, 1 thread".to_owned()),
            rows: Vec::new(),
            aims: Vec::new(),
            absent: Vec::new(),
        };
        let sizes =
            FilterSizeCell { keys: 10, bits: 8, rows: vec![size_row(Id::Koel, 0.03)], absent: vec![] };
        let filters = vec![
            measured(Id::Koel, [20.0, 10.0, 40.0], &[10.0, 10.0, 10.0]),
            measured(Id::Cuckoofilter, [1.0, 1.0, 90.0], &[]),
            // The second round was slow for both.
            measured(Id::Qfilter, [5.0, 2.5, 10.0], &[]),
            measured(Id::Xorf, [50.0, 50.0, 50.0], &[]),
        ];
        let aims = [
            (Id::Koel, Against::BestRival, 4.0),
            (Id::Koel, Against::Own, 2.5),
            (Id::Koel, Against::Filter(Id::Xorf), 0.1),
            (Id::Koel, Against::Filter(Id::KoelFixed), 0.9),
            (Id::KoelSemiSorted, Against::BestRival, 1.5),
        ];
        cell.compare(filters, Some(&sizes), &aims);
        assert_eq!(cell.best_rival().map(|row| row.filter), Some("qfilter"));
        let koel = &cell.rows[0];
        assert_eq!(koel.by_best_rival.as_ref().map(|by| (by.min, by.max)), Some((4.0, 4.0)));
        assert_eq!(koel.by_own.as_ref().map(|by| (by.median, by.max)), Some((2.0, 4.0)));
        assert_eq!((koel.false_positive_rate, cell.rows[3].false_positive_rate), (Some(0.03), None));
        let told: Vec<_> = cell.aims.iter().map(|aim| (aim.beside.as_str(), aim.is_met())).collect();
        assert_eq!(told, [("qfilter", true), ("own hit, 1 thread", false), ("xorf", true)]);
    }

    #[test]
    fn rivals_that_are_wrong_more_often_are_told() {
        let rows = vec![
            size_row(Id::Koel, 0.03),
            size_row(Id::Cuckoofilter, 0.0305),
            size_row(Id::Qfilter, 0.04),
            size_row(Id::Fastbloom, 0.5),
        ];
        let sizes = FilterSizeCell { keys: 10, bits: 8, rows, absent: Vec::new() };
        assert_eq!(sizes.looser_rivals(), ["qfilter (4.00%)"]);
    }

    #[test]
    fn rates_are_percentages_of_three_digits() {
        let told = [0.5, 0.0297, 0.00186, 0.000_116, 0.0].map(percent);
        assert_eq!(told, ["50.0%", "2.97%", "0.186%", "1.16e-2%", "0.0%"]);
    }
}
