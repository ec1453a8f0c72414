//! Throughput, memory and latency of caches, and what koel is to reach in them.

use hdrhistogram::Histogram;

use crate::caches::Id;
use crate::cli::{CacheArgs, CachePart, default_threads};
use crate::console::Console;
use crate::contestants::BATCH;
use crate::dist::{DEFAULT_ZIPF_EXPONENT, Dist};
use crate::entrant::{CacheEntrant, ReadThrough, cache_entrant};
use crate::error::{CheckError, Error};
use crate::plan::{self, CacheLoad};
use crate::report::cache::{CacheAim, CacheMemoryRow, CacheReport, CacheSpeedCell, CacheSpeedRow};
use crate::report::cache_table::{cache_memory_table, cache_speed_table};
use crate::report::{LatencyCell, LatencyRow, QUANTILES, Report, latency_table, threads_in_words};
use crate::rounds::interleaved;
use crate::stats::Spread;
use crate::stopwatch::Stopwatch;

/// Bytes of a key and its value.
const PAIR_BYTES: f64 = 16.0;

/// What koel's cache may take beyond key and value.
const MOST_BYTES: f64 = 24.0;

/// How many times as fast koel is to hit on two threads as on one.
const SCALING: f64 = 1.8;

/// The quantile of latency that koel is compared by.
const COMPARED_QUANTILE: &str = "p99.99";

/// How many times as fast koel is to read through: beside whom, on how many threads; and whether its hit ratio must be
/// better.
const READ_THROUGH_AIMS: [(Id, usize, f64, bool); 3] =
    [(Id::QuickCache, 1, 1.2, false), (Id::QuickCache, 2, 1.5, false), (Id::SccHashCache, 2, 0.8, true)];

/// koel's caches that are compared with others.
const OWN: [Id; 2] = [Id::Koel, Id::KoelInline];

/// Those of them that read through, where the policy is most of what an insertion costs.
const READERS: [Id; 4] = [Id::Koel, Id::KoelLocal, Id::KoelInline, Id::KoelInlineLocal];

/// Look-ups of keys that are there.
struct Hits {
    name: &'static str,
    about: &'static str,
    batched: bool,
}

const HITS: [Hits; 2] = [
    Hits {
        name: "pure hits",
        about: "Look-ups by Zipf with exponent 0.99 of keys that are there, in a half full cache: as many as half its entries. \
                A miss ends the run.",
        batched: false,
    },
    Hits {
        name: "get_many of 32",
        about: "The same look-ups, 32 at a time; one by one where a cache has no such call. A miss ends the run.",
        batched: true,
    },
];

/// The name of the second tells how many.
const _: () = assert!(BATCH == 32);

type Entrants = Vec<(Id, Box<dyn CacheEntrant>)>;

/// Measures what is asked for, and adds it to `report`.
pub(super) fn measure(
    args: &CacheArgs,
    ids: &[Id],
    console: &Console,
    report: &mut Report,
) -> Result<(), Error> {
    let mut entrants: Entrants = ids.iter().map(|&id| (id, cache_entrant(id))).collect();
    let load = CacheLoad { entries: args.entries, keys: args.keys, dist: Dist::Zipf(DEFAULT_ZIPF_EXPONENT) };
    let bench = Bench { args, console, load };
    if args.measures(CachePart::Throughput) {
        let threads = if args.threads.is_empty() { default_threads() } else { args.threads.clone() };
        console.expect((1 + HITS.len()) * threads.len() * args.rounds * ids.len());
        bench.fill(&mut entrants)?;
        for &threads in &threads {
            bench.read_through(threads, &mut entrants, report)?;
        }
        for hits in &HITS {
            for &threads in &threads {
                bench.hits(hits, threads, &mut entrants, report)?;
            }
        }
    }
    if args.measures(CachePart::Memory) {
        bench.memory(&entrants, report)?;
    }
    if args.measures(CachePart::Latency) {
        bench.fill(&mut entrants)?;
        bench.latency(&mut entrants, report)?;
    }
    Ok(())
}

struct Bench<'a> {
    args: &'a CacheArgs,
    console: &'a Console,
    load: CacheLoad,
}

impl Bench<'_> {
    /// Fills all caches, and lets them read through what is not measured.
    fn fill(&self, entrants: &mut Entrants) -> Result<(), Error> {
        let plan = self.load.plan(0, 1, self.args.ops);
        self.console.expect(entrants.len());
        for (id, entrant) in entrants {
            self.console.begin("fill", id.name());
            entrant.fill(&plan).map_err(|failure| failure.during("filling a cache"))?;
            self.console.done();
        }
        Ok(())
    }

    fn cell(&self, workload: &str, about: &str, keys: u64, threads: usize) -> CacheSpeedCell {
        CacheSpeedCell {
            workload: workload.to_owned(),
            about: about.to_owned(),
            entries: self.args.entries as u64,
            keys,
            threads,
            rows: Vec::new(),
        }
    }

    fn read_through(
        &self,
        threads: usize,
        entrants: &mut Entrants,
        report: &mut Report,
    ) -> Result<(), Error> {
        let mut cell = self.cell(
            "read through",
            "Look-ups by Zipf with exponent 0.99 in a full cache, others in every round; what is missing is inserted.",
            self.args.keys,
            threads,
        );
        let title = cell.title();
        // Number 0 is what caches were filled by.
        let plan = |round| self.load.plan(round, threads, self.args.ops);
        let (mut turns, caches, mut asked) = (0, entrants.len(), plan(1));
        let samples = interleaved(entrants, self.args.rounds, |(id, entrant)| {
            self.console.begin(&title, id.name());
            if turns > 0 && turns % caches == 0 {
                asked = plan(1 + turns / caches);
            }
            turns += 1;
            let read = entrant.read_through(&asked);
            self.console.done();
            read.map_err(|failure| failure.during(&title))
        })?;
        let rows = entrants.iter().zip(&samples).map(|((id, _), rounds)| row(*id, rounds, None));
        cell.rows = compared(rows.collect());
        self.console.say(&cache_speed_table(&cell));
        for &(rival, _, aim, must_hit_more) in READ_THROUGH_AIMS.iter().filter(|aim| aim.1 == threads) {
            let aims = READERS.map(|own| read_through_aim(&cell, own, rival, aim, must_hit_more));
            report.caches.aims.extend(aims.into_iter().flatten());
        }
        report.caches.throughput.push(cell);
        Ok(())
    }

    fn hits(
        &self,
        hits: &Hits,
        threads: usize,
        entrants: &mut Entrants,
        report: &mut Report,
    ) -> Result<(), Error> {
        let keys = (self.args.entries as u64 / 2).max(1);
        let one = plan::resident(keys, self.load.dist, 1, self.args.ops);
        let all = plan::resident(keys, self.load.dist, threads, self.args.ops);
        let mut cell = self.cell(hits.name, hits.about, keys, threads);
        let title = cell.title();
        let (entries, seconds) = (self.args.entries, self.args.seconds);
        // One thread is measured right before several, in every round.
        let samples = interleaved(entrants, self.args.rounds, |(id, entrant)| {
            self.console.begin(&title, id.name());
            let mut run = |threads: &[Vec<u32>]| entrant.hits(entries, threads, hits.batched, seconds);
            let alone = if threads > 1 { Some(run(&one)) } else { None };
            let together = run(&all);
            self.console.done();
            let named = |mops: Result<f64, _>| mops.map_err(|failure: CheckError| failure.during(&title));
            Ok::<_, Error>((named(together)?, alone.map(named).transpose()?))
        })?;
        let rows = entrants.iter().zip(&samples).map(|((id, _), rounds)| {
            let hits: Vec<ReadThrough> =
                rounds.iter().map(|&(mops, _)| ReadThrough { mops, hit_ratio: 1.0 }).collect();
            let alone: Option<Vec<f64>> = rounds.iter().map(|&(_, alone)| alone).collect();
            row(*id, &hits, alone.map(Spread::of))
        });
        cell.rows = compared(rows.collect());
        self.console.say(&cache_speed_table(&cell));
        report.caches.aims.extend(OWN.into_iter().filter(|_| threads == 2 && !hits.batched).filter_map(
            |own| {
                Some(CacheAim {
                    what: named(own, &format!("{}, 2 threads", hits.name)),
                    beside: "own 1 thread".to_owned(),
                    unit: "x",
                    value: cell.row(own)?.by_one_thread.clone()?,
                    aim: SCALING,
                    at_most: false,
                    and: None,
                })
            },
        ));
        report.caches.throughput.push(cell);
        Ok(())
    }

    fn memory(&self, entrants: &Entrants, report: &mut Report) -> Result<(), Error> {
        let plan = self.load.plan(0, 1, self.args.ops);
        self.console.expect(entrants.len());
        for (id, entrant) in entrants {
            self.console.begin("memory", id.name());
            let (footprint, held) =
                entrant.footprint(&plan).map_err(|failure| failure.during("memory of a full cache"))?;
            let beyond = |bytes: f64| bytes / held.max(1) as f64 - PAIR_BYTES;
            report.caches.memory.push(CacheMemoryRow {
                cache: id.name(),
                is_koel: id.is_koel(),
                entries: plan.entries as u64,
                held,
                requested_beyond: beyond(footprint.requested as f64),
                allocated_beyond: beyond(footprint.taken as f64),
                own_beyond: footprint.own.map(|bytes| beyond(bytes as f64)),
            });
            self.console.done();
        }
        self.console.say(&cache_memory_table(&report.caches.memory));
        let CacheReport { memory, aims, .. } = &mut report.caches;
        aims.extend(OWN.into_iter().filter_map(|own| {
            let row = memory.iter().find(|row| row.cache == own.name())?;
            Some(CacheAim {
                what: named(own, "bytes per entry beyond key and value"),
                beside: String::new(),
                unit: " B",
                value: Spread::of(vec![row.allocated_beyond]),
                aim: MOST_BYTES,
                at_most: true,
                and: None,
            })
        }));
        Ok(())
    }

    fn latency(&self, entrants: &mut Entrants, report: &mut Report) -> Result<(), Error> {
        let stopwatch = Stopwatch::calibrated();
        let phase = "insert into a full cache";
        self.console.expect(entrants.len() * self.args.rounds);
        let rounds = interleaved(entrants, self.args.rounds, |(id, entrant)| {
            self.console.begin(phase, id.name());
            let histogram = entrant.inserts(self.args.ops, &stopwatch);
            self.console.done();
            histogram.map_err(|failure| failure.during(phase))
        })?;
        let cell = LatencyCell {
            phase: phase.to_owned(),
            keys: self.args.entries as u64,
            threads: 1,
            overhead_nanos: stopwatch.overhead_nanos(),
            rows: entrants.iter().zip(&rounds).map(|((id, _), rounds)| latency_row(*id, rounds)).collect(),
        };
        self.console.say(&latency_table(&cell));
        report.caches.aims.extend(OWN.into_iter().filter_map(|own| latency_aim(&cell, own)));
        report.latency.push(cell);
        Ok(())
    }
}

fn row(id: Id, rounds: &[ReadThrough], alone: Option<Spread>) -> CacheSpeedRow {
    let mops = Spread::of(rounds.iter().map(|round| round.mops).collect());
    CacheSpeedRow {
        cache: id.name(),
        is_koel: id.is_koel(),
        hit_ratio: Spread::of(rounds.iter().map(|round| round.hit_ratio).collect()),
        koel_by_it: None,
        inline_by_it: None,
        by_one_thread: alone.map(|alone| mops.by(&alone)),
        mops,
    }
}

/// Adds the throughput of koel's caches by each other cache's.
fn compared(mut rows: Vec<CacheSpeedRow>) -> Vec<CacheSpeedRow> {
    let [koel, inline] =
        OWN.map(|own| rows.iter().find(|row| row.cache == own.name()).map(|row| row.mops.clone()));
    let by = |own: &Option<Spread>, id: Id, row: &CacheSpeedRow| {
        own.as_ref().filter(|_| row.cache != id.name()).map(|own| own.by(&row.mops))
    };
    for row in &mut rows {
        row.koel_by_it = by(&koel, Id::Koel, row);
        row.inline_by_it = by(&inline, Id::KoelInline, row);
    }
    rows
}

/// What is compared, and of which of koel's caches, if it is not the first.
fn named(own: Id, what: &str) -> String {
    if own == Id::Koel { what.to_owned() } else { format!("{}, {what}", own.name()) }
}

/// None, if there is nothing to compare.
fn read_through_aim(
    cell: &CacheSpeedCell,
    own: Id,
    rival: Id,
    aim: f64,
    must_hit_more: bool,
) -> Option<CacheAim> {
    let (koel, rival) = (cell.row(own)?, cell.row(rival)?);
    let (mine, its) = (koel.hit_ratio.median, rival.hit_ratio.median);
    let words = format!("hit ratio {:.2}%, beside {:.2}%", 100.0 * mine, 100.0 * its);
    Some(CacheAim {
        what: named(own, &format!("{}, {}", cell.workload, threads_in_words(cell.threads))),
        beside: rival.cache.to_owned(),
        unit: "x",
        value: koel.mops.by(&rival.mops),
        aim,
        at_most: false,
        and: Some((words, !must_hit_more || mine > its)),
    })
}

fn latency_row(id: Id, rounds: &[Histogram<u64>]) -> LatencyRow {
    let at = |quantile| {
        let nanos = rounds.iter().map(|histogram| histogram.value_at_quantile(quantile) as f64);
        Spread::of(nanos.collect())
    };
    LatencyRow {
        contestant: id.name(),
        is_koel: id.is_koel(),
        lost_reads: 0,
        samples: rounds.iter().map(Histogram::len).min().unwrap_or(0),
        nanos: QUANTILES.iter().map(|&(_, quantile)| at(quantile)).collect(),
    }
}

/// None, if there is nothing to compare.
fn latency_aim(cell: &LatencyCell, own: Id) -> Option<CacheAim> {
    let index = QUANTILES.iter().position(|(name, _)| *name == COMPARED_QUANTILE)?;
    let nanos = |id: Id| {
        let row = cell.rows.iter().find(|row| row.contestant == id.name())?;
        // Too few inserts tell nothing of so rare ones.
        (row.quantile_in_words(index) != "-").then(|| row.nanos[index].clone())
    };
    Some(CacheAim {
        what: named(own, &format!("insert into a full cache, {COMPARED_QUANTILE}")),
        beside: Id::QuickCache.name().to_owned(),
        unit: "x",
        value: nanos(own)?.by(&nanos(Id::QuickCache)?),
        aim: 1.0,
        at_most: true,
        and: None,
    })
}
