//! The measurements of caches.

use serde::Serialize;

use super::{Absent, grouped, keys_in_words, threads_in_words};
use crate::caches::Id;
use crate::replay::{Bound, Replayed};
use crate::stats::Spread;

/// A cache that holds more than this many times what was asked for is not compared. A twentieth more is allowed for caches that
/// consist of parts and round up: those of quick_cache hold 32 entries or more, and so at most a 32nd more than asked for.
const TOO_MUCH: f64 = 1.05;

/// Everything that one run measured of caches, except latency.
#[derive(Debug, Default, Serialize)]
pub struct CacheReport {
    /// Hit ratios, by requests and size.
    pub hit_ratios: Vec<HitRatioCell>,
    /// Their means.
    pub means: Vec<HitRatioMeans>,
    /// Throughput, cell by cell.
    pub throughput: Vec<CacheSpeedCell>,
    /// Memory of full caches.
    pub memory: Vec<CacheMemoryRow>,
    /// Contestants that are out there.
    pub absent_from_memory: Vec<Absent>,
    /// The aims of koel's cache.
    pub aims: Vec<CacheAim>,
}

/// One set of requests and one size; all caches that have such a bound.
#[derive(Debug, Serialize)]
pub struct HitRatioCell {
    /// The requests.
    pub requests: String,
    /// How they are generated, or where they come from.
    pub about: String,
    /// How many there are.
    pub count: u64,
    /// How many different keys are among them.
    pub keys: u64,
    /// Whether the bound is on bytes instead of entries.
    pub by_bytes: bool,
    /// How much caches are to hold.
    pub capacity: u64,
    /// Whether it is measured only for curves, and is in no table and no mean.
    pub for_curves: bool,
    /// The caches.
    pub rows: Vec<HitRatioRow>,
    /// Exact policies: names and hit ratios.
    pub exact: Vec<(&'static str, f64)>,
    /// Contestants that are out.
    pub absent: Vec<Absent>,
}

/// One cache's hit ratio.
#[derive(Debug, Clone, Serialize)]
pub struct HitRatioRow {
    /// Its name in the tables.
    pub cache: &'static str,
    /// Whether it is koel.
    pub is_koel: bool,
    /// Hits divided by requests.
    pub hit_ratio: f64,
    /// How much it held at the end.
    pub held: u64,
    /// Whether that is more than a twentieth above what it was to hold: then it is not compared.
    pub holds_too_much: bool,
}

/// Means of hit ratios over all cells of one kind of bound.
#[derive(Debug, Serialize)]
pub struct HitRatioMeans {
    /// Whether the bound is on bytes.
    pub by_bytes: bool,
    /// Cells.
    pub cells: usize,
    /// Caches that are in all of them, and their means.
    pub means: Vec<(&'static str, f64)>,
    /// koel's minus the best rival's, in percentage points, cell by cell.
    pub koel_minus_best: Option<Spread>,
}

/// One workload and number of threads; all caches.
#[derive(Debug, Serialize)]
pub struct CacheSpeedCell {
    /// The workload.
    pub workload: String,
    /// What it does, in words.
    pub about: String,
    /// How many entries caches hold.
    pub entries: u64,
    /// How many different keys may be requested.
    pub keys: u64,
    /// How they are drawn.
    pub dist: String,
    /// Threads.
    pub threads: usize,
    /// The caches.
    pub rows: Vec<CacheSpeedRow>,
    /// Contestants that are out.
    pub absent: Vec<Absent>,
}

/// One cache's throughput. Ratios are those of single rounds, so that a disturbance of a round slows both sides.
#[derive(Debug, Serialize)]
pub struct CacheSpeedRow {
    /// Its name in the tables.
    pub cache: &'static str,
    /// Whether it is koel.
    pub is_koel: bool,
    /// Requests per microsecond, all threads together.
    pub mops: Spread,
    /// Hits divided by requests, in the rounds that were timed.
    pub hit_ratio: Spread,
    /// koel's throughput divided by this cache's.
    pub koel_by_it: Option<Spread>,
    /// koel-inline's throughput divided by this cache's.
    pub inline_by_it: Option<Spread>,
    /// Its throughput divided by its own with one thread.
    pub by_one_thread: Option<Spread>,
}

/// The memory of one cache, full of u64 keys and values.
#[derive(Debug, Serialize)]
pub struct CacheMemoryRow {
    /// Its name in the tables.
    pub cache: &'static str,
    /// Whether it is koel.
    pub is_koel: bool,
    /// How many entries it was to hold.
    pub entries: u64,
    /// How many entries it held.
    pub held: u64,
    /// Bytes per entry held, as requested from the allocator, minus the 16 of key and value.
    pub requested_beyond: f64,
    /// As the allocator rounds it up, with its own header.
    pub allocated_beyond: f64,
    /// As the cache itself reports it, if it does.
    pub own_beyond: Option<f64>,
}

/// An aim of koel, and whether it is reached.
#[derive(Debug, Serialize)]
pub struct CacheAim {
    /// What is compared, in words.
    pub what: String,
    /// What it is compared with.
    pub beside: String,
    /// The unit of the figures.
    pub unit: &'static str,
    /// The figures of single rounds.
    pub value: Spread,
    /// The aim for the figures.
    pub aim: f64,
    /// Whether that is an upper bound instead of a lower one.
    pub at_most: bool,
    /// A further condition, in words, and whether it holds.
    pub and: Option<(String, bool)>,
}

impl HitRatioCell {
    /// A cell without rows yet, for `count` requests with `keys` different keys.
    pub fn new(requests: &str, about: &str, (count, keys): (usize, usize), bound: Bound) -> Self {
        HitRatioCell {
            requests: requests.to_owned(),
            about: about.to_owned(),
            count: count as u64,
            keys: keys as u64,
            by_bytes: matches!(bound, Bound::Bytes(_)),
            capacity: bound.amount(),
            for_curves: false,
            rows: Vec::new(),
            exact: Vec::new(),
            absent: Vec::new(),
        }
    }

    /// The row of a cache, from its replay.
    pub fn row_of(&self, id: Id, replayed: Replayed) -> HitRatioRow {
        HitRatioRow {
            cache: id.name(),
            is_koel: id.is_koel(),
            hit_ratio: replayed.hits as f64 / self.count as f64,
            held: replayed.held,
            holds_too_much: replayed.held as f64 > self.capacity as f64 * TOO_MUCH,
        }
    }

    /// The row of `id`, if it took part.
    pub fn row(&self, id: Id) -> Option<&HitRatioRow> {
        self.rows.iter().find(|row| row.cache == id.name())
    }

    /// The rival with the highest hit ratio; of equals the first.
    pub fn best_rival(&self) -> Option<&HitRatioRow> {
        let rivals = self.rows.iter().filter(|row| !row.is_koel && !row.holds_too_much);
        rivals.rev().max_by(|a, b| a.hit_ratio.total_cmp(&b.hit_ratio))
    }

    /// The hit ratio of `id` minus the best rival's, in percentage points.
    pub fn minus_best(&self, id: Id) -> Option<f64> {
        Some(100.0 * (self.row(id)?.hit_ratio - self.best_rival()?.hit_ratio))
    }

    /// The capacity in words.
    pub fn capacity_in_words(&self) -> String {
        if !self.by_bytes {
            return grouped(self.capacity);
        }
        match self.capacity {
            bytes if bytes >= 1 << 20 => {
                format!("{:.4} MiB", bytes as f64 / f64::from(1 << 20)).replace(".0000", "")
            }
            bytes => format!("{} B", grouped(bytes)),
        }
    }
}

impl HitRatioMeans {
    /// The means over all cells of one kind of bound that are in tables; `None` if there are none.
    pub fn of(cells: &[HitRatioCell], by_bytes: bool) -> Option<Self> {
        let cells: Vec<&HitRatioCell> =
            cells.iter().filter(|cell| cell.by_bytes == by_bytes && !cell.for_curves).collect();
        let first = cells.first()?;
        let mean = |ratios: Option<Vec<f64>>| Some(ratios?.iter().sum::<f64>() / cells.len() as f64);
        let of_cache = |name: &'static str| {
            let rows = cells.iter().map(|cell| cell.rows.iter().find(|row| row.cache == name));
            Some((name, mean(rows.map(|row| row.map(|row| row.hit_ratio)).collect())?))
        };
        let of_exact = |name: &'static str| {
            let exact = cells.iter().map(|cell| cell.exact.iter().find(|exact| exact.0 == name));
            Some((name, mean(exact.map(|exact| exact.map(|exact| exact.1)).collect())?))
        };
        let caches = first.rows.iter().filter_map(|row| of_cache(row.cache));
        let means = caches.chain(first.exact.iter().filter_map(|exact| of_exact(exact.0))).collect();
        let minus: Vec<f64> = cells.iter().filter_map(|cell| cell.minus_best(Id::Koel)).collect();
        let koel_minus_best = (!minus.is_empty()).then(|| Spread::of(minus));
        Some(HitRatioMeans { by_bytes, cells: cells.len(), means, koel_minus_best })
    }

    /// The mean difference between koel and the best rival, in percentage points.
    pub fn mean_minus_best(&self) -> Option<f64> {
        let spread = self.koel_minus_best.as_ref()?;
        Some(spread.samples.iter().sum::<f64>() / spread.samples.len() as f64)
    }
}

impl CacheSpeedCell {
    /// The row of `id`, if it took part.
    pub fn row(&self, id: Id) -> Option<&CacheSpeedRow> {
        self.rows.iter().find(|row| row.cache == id.name())
    }

    /// Workload and conditions in words.
    pub fn title(&self) -> String {
        format!(
            "{}: {} entries, {}, {}, {}",
            self.workload,
            grouped(self.entries),
            keys_in_words(self.keys),
            threads_in_words(self.threads),
            self.dist
        )
    }
}

impl CacheReport {
    /// Whether nothing was measured.
    pub fn is_empty(&self) -> bool {
        self.hit_ratios.is_empty() && self.throughput.is_empty() && self.memory.is_empty()
    }
}

impl CacheAim {
    /// Whether it is reached, at the precision at which it is shown.
    pub fn is_met(&self) -> bool {
        let value = self.value.median;
        let reached = if self.at_most { value <= self.aim + 0.005 } else { value >= self.aim - 0.005 };
        reached && self.and.as_ref().is_none_or(|(_, is_so)| *is_so)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(capacity: u64, hits: &[(Id, u64, u64)]) -> HitRatioCell {
        let mut cell = HitRatioCell::new("r", "", (1000, 100), Bound::Entries(capacity));
        let row = |&(id, hits, held)| cell.row_of(id, Replayed { hits, held });
        cell.rows = hits.iter().map(row).collect();
        cell
    }

    #[test]
    fn who_holds_more_than_asked_is_no_rival() {
        let cell = cell(
            100,
            &[
                (Id::Koel, 500, 100),
                (Id::QuickCache, 480, 103),
                (Id::Moka, 480, 100),
                (Id::SccHashCache, 600, 128),
            ],
        );
        assert_eq!(cell.best_rival().unwrap().cache, "quick_cache");
        assert!((cell.minus_best(Id::Koel).unwrap() - 2.0).abs() < 1e-9);
        assert!(cell.row(Id::SccHashCache).unwrap().holds_too_much);
        assert_eq!(cell.minus_best(Id::KoelClock), None);
    }

    #[test]
    fn means_are_over_cells_of_tables_and_caches_that_are_in_all() {
        let mut cells = vec![
            cell(10, &[(Id::Koel, 500, 10), (Id::Moka, 400, 10), (Id::QuickCache, 100, 10)]),
            cell(10, &[(Id::Koel, 300, 10), (Id::Moka, 400, 10)]),
            cell(10, &[(Id::Koel, 0, 10), (Id::Moka, 900, 10)]),
        ];
        cells[2].for_curves = true;
        let means = HitRatioMeans::of(&cells, false).unwrap();
        assert_eq!((means.cells, means.means.len()), (2, 2));
        assert!((means.means[0].1 - 0.4).abs() < 1e-9 && (means.means[1].1 - 0.4).abs() < 1e-9);
        assert!(means.mean_minus_best().unwrap().abs() < 1e-9);
        assert!(HitRatioMeans::of(&cells, true).is_none());
    }

    #[test]
    fn an_aim_is_met_at_its_end_and_with_what_goes_with_it() {
        let aim = |value, at_most, and| CacheAim {
            what: String::new(),
            beside: String::new(),
            unit: "x",
            value: Spread::of(vec![value]),
            aim: 1.2,
            at_most,
            and,
        };
        assert!(aim(1.2, false, None).is_met() && aim(1.2, true, None).is_met());
        assert!(!aim(1.19, false, None).is_met() && !aim(1.21, true, None).is_met());
        assert!(!aim(2.0, false, Some(("more hits".to_owned(), false))).is_met());
    }
}
