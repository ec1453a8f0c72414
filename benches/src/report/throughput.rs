//! The measured throughput of maps.

use serde::Serialize;

use super::{Absent, keys_in_words, threads_in_words};
use crate::contestants::Id;
use crate::stats::Spread;

/// One workload, size, distribution and number of threads; all contestants.
#[derive(Debug, Serialize)]
pub struct Cell {
    /// The workload.
    pub workload: String,
    /// What the workload does, in words.
    pub about: String,
    /// Entries.
    pub keys: u64,
    /// Threads.
    pub threads: usize,
    /// How keys were drawn.
    pub dist: String,
    /// Random cache lines that the same number of threads read per microsecond.
    pub line_reads: Option<f64>,
    /// The contestants.
    pub rows: Vec<Row>,
    /// Contestants that are out.
    pub absent: Vec<Absent>,
}

/// One contestant's throughput.
#[derive(Debug, Serialize)]
pub struct Row {
    /// Its name in the tables.
    pub contestant: &'static str,
    /// Whether it is koel.
    pub is_koel: bool,
    /// Whether it holds a pin for several operations.
    pub is_held: bool,
    /// Operations per microsecond, all threads together.
    pub mops: Spread,
    /// Lookups, in all rounds, that missed a key while another thread replaced it.
    pub lost_reads: u64,
    /// The same, divided by the best peer's in the same round; if it holds its pin, divided by that of the best of all that
    /// hold one or need none.
    pub by_best_peer: Option<Spread>,
    /// The same, divided by papaya's in the same round; if it holds its pin, divided by that of papaya holding one.
    pub by_papaya: Option<Spread>,
}

impl Cell {
    /// The rows of `measured`, compared.
    pub fn rows(measured: Vec<(Id, Spread)>) -> Vec<Row> {
        let of = |id: Id| measured.iter().find(|(other, _)| *other == id).map(|(_, mops)| mops);
        let best = |takes: fn(Id) -> bool| {
            let peers = measured.iter().filter(|(id, _)| !id.is_koel() && takes(*id)).map(|(_, mops)| mops);
            peers.max_by(|a, b| a.median.total_cmp(&b.median))
        };
        let (best_peer, best_held) = (best(|id| !id.is_held()), best(|_| true));
        let (papaya, papaya_held) = (of(Id::Papaya), of(Id::PapayaHeld));
        let compare = |(id, mops): &(Id, Spread)| {
            let (best_peer, papaya) =
                if id.is_held() { (best_held, papaya_held) } else { (best_peer, papaya) };
            Row {
                contestant: id.name(),
                is_koel: id.is_koel(),
                is_held: id.is_held(),
                lost_reads: 0,
                by_best_peer: best_peer.map(|peer| mops.by(peer)),
                by_papaya: papaya.map(|papaya| mops.by(papaya)),
                mops: mops.clone(),
            }
        };
        measured.iter().map(compare).collect()
    }

    /// The row of `id`, if it took part.
    pub fn row(&self, id: Id) -> Option<&Row> {
        self.rows.iter().find(|row| row.contestant == id.name())
    }

    /// The peer with the highest median.
    pub fn best_peer(&self) -> Option<&Row> {
        let peers = self.rows.iter().filter(|row| !row.is_koel && !row.is_held);
        peers.max_by(|a, b| a.mops.median.total_cmp(&b.mops.median))
    }

    /// Size, threads and distribution in words.
    pub fn conditions(&self) -> String {
        format!("{}, {}, {}", keys_in_words(self.keys), threads_in_words(self.threads), self.dist)
    }

    /// Workload and conditions in words.
    pub fn title(&self) -> String {
        format!("{}: {}", self.workload, self.conditions())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_peer_is_not_koel_and_holds_a_pin_only_beside_who_does() {
        let at = |mops| Spread::of(vec![mops]);
        let rows = Cell::rows(vec![
            (Id::Koel, at(30.0)),
            (Id::KoelHeld, at(40.0)),
            (Id::Papaya, at(10.0)),
            (Id::PapayaHeld, at(50.0)),
            (Id::Dashmap, at(20.0)),
        ]);
        let ratios: Vec<_> =
            rows.iter().map(|row| (row.by_best_peer.clone(), row.by_papaya.clone())).collect();
        assert_eq!(ratios[0], (Some(at(1.5)), Some(at(3.0))));
        assert_eq!(ratios[1], (Some(at(0.8)), Some(at(0.8))));
        assert_eq!(ratios[3], (Some(at(1.0)), Some(at(1.0))));
        // The best one, whichever contestant holds its pin.
        let rows = Cell::rows(vec![(Id::KoelHeld, at(40.0)), (Id::SccHashIndexHeld, at(80.0))]);
        assert_eq!(rows[0].by_best_peer, Some(at(0.5)));
        let alone = Cell::rows(vec![(Id::Koel, at(30.0))]);
        assert_eq!((&alone[0].by_best_peer, &alone[0].by_papaya), (&None, &None));
    }

    #[test]
    fn a_ratio_is_the_median_of_those_of_single_rounds() {
        // By the medians alone it would be 0.25.
        let rows = Cell::rows(vec![
            (Id::Koel, Spread::of(vec![2.0, 10.0, 1.0])),
            (Id::Papaya, Spread::of(vec![8.0, 20.0, 0.5])),
        ]);
        let by = rows[0].by_best_peer.as_ref().unwrap();
        assert_eq!((by.median, by.min, by.max), (0.5, 0.25, 2.0));
        assert_eq!(rows[0].by_papaya.as_ref(), Some(by));
    }
}
