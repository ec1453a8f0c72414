//! Throughput, memory and latency of caches, and koel's aims for them.

use super::field::Field;
use super::threads;
use crate::caches::Id;
use crate::cli::{CacheArgs, CachePart};
use crate::console::Console;
use crate::contestants::BATCH;
use crate::dist::{DEFAULT_ZIPF_EXPONENT, Dist};
use crate::entrant::{CacheEntrant, ReadThrough, cache_entrant};
use crate::error::Error;
use crate::plan::{self, CacheLoad};
use crate::report::cache::{CacheAim, CacheMemoryRow, CacheReport, CacheSpeedCell, CacheSpeedRow};
use crate::report::cache_table::{cache_memory_table, cache_speed_table};
use crate::report::{
    LatencyCell, LatencyRow, QUANTILES, Report, latency_table, quantile_names, threads_in_words,
};
use crate::stats::Spread;
use crate::stopwatch::Stopwatch;

/// Bytes of a key and its value.
const PAIR_BYTES: f64 = 16.0;

/// The bytes per entry that koel's cache may take in addition to key and value.
const MOST_BYTES: f64 = 24.0;

/// How many times as fast koel is to hit on two threads as on one.
const SCALING: f64 = 1.8;

/// The quantile of latency by which koel is compared.
const COMPARED_QUANTILE: &str = "p99.99";

/// Aims for look-ups that load on a miss: compared with which cache, on how many threads, how many times as fast koel is to be;
/// and whether its hit ratio must be better.
const READ_THROUGH_AIMS: [(Id, usize, f64, bool); 3] =
    [(Id::QuickCache, 1, 1.2, false), (Id::QuickCache, 2, 1.5, false), (Id::SccHashCache, 2, 0.8, true)];

/// The distribution for which these aims were set.
const AIMS_DIST: Dist = Dist::Zipf(DEFAULT_ZIPF_EXPONENT);

/// koel's caches that are compared with others.
const OWN: [Id; 2] = [Id::Koel, Id::KoelInline];

/// koel's caches in look-ups that load on a miss, where the policy is most of what an insertion costs.
const READERS: [Id; 4] = [Id::Koel, Id::KoelLocal, Id::KoelInline, Id::KoelInlineLocal];

/// Look-ups of which some miss.
struct Reads {
    name: &'static str,
    about: &'static str,
    loads: bool,
}

const READS: [Reads; 2] = [
    Reads {
        name: "read through",
        about: "Look-ups in a full cache, others in every round; what is missing is inserted.",
        loads: false,
    },
    Reads {
        name: "load through",
        about: "The same by the call that loads what is missing, once for all who miss it, with a loader that takes no time; \
                looked up and inserted where a cache has no such call.",
        loads: true,
    },
];

/// Look-ups of keys that are there.
struct Hits {
    name: &'static str,
    about: &'static str,
    batched: bool,
}

const HITS: [Hits; 2] = [
    Hits {
        name: "pure hits",
        about: "Look-ups of keys that are there, in a half full cache: as many as half its entries. Who misses is out.",
        batched: false,
    },
    Hits {
        name: "get_many of 32",
        about: "The same look-ups, 32 at a time; one by one where a cache has no such call. Who misses is out.",
        batched: true,
    },
];

/// The name of the second one includes this number.
const _: () = assert!(BATCH == 32);

type Entrant = dyn CacheEntrant;
type Entrants<'c> = Field<'c, Id, Entrant>;

/// Measures what is asked for, and adds it to `report`.
pub(super) fn measure(
    args: &CacheArgs,
    ids: &[Id],
    console: &Console,
    report: &mut Report,
) -> Result<(), Error> {
    let mut entrants = Field::new(console, ids.iter().map(|&id| (id, cache_entrant(id))));
    let load = CacheLoad { entries: args.entries, keys: args.keys, dist: args.dist };
    let bench = Bench { args, console, load };
    let threads = threads(&args.threads);
    console.expect(turns(args, threads.len()) * ids.len());
    if args.measures(CachePart::Throughput) {
        bench.fill(&mut entrants)?;
        for (number, reads) in READS.iter().enumerate() {
            for &threads in &threads {
                bench.read_through(number, reads, threads, &mut entrants, report)?;
            }
        }
        for hits in &HITS {
            for &threads in &threads {
                bench.hits(hits, threads, &mut entrants, report)?;
            }
        }
    }
    if args.measures(CachePart::Memory) {
        bench.memory(&mut entrants, report)?;
    }
    if args.measures(CachePart::Latency) {
        bench.fill(&mut entrants)?;
        bench.latency(&mut entrants, report)?;
    }
    Ok(())
}

/// How many turns each cache has.
fn turns(args: &CacheArgs, threads: usize) -> usize {
    let throughput = 1 + (READS.len() + HITS.len()) * threads * args.rounds;
    let parts =
        [(CachePart::Throughput, throughput), (CachePart::Memory, 1), (CachePart::Latency, args.rounds)];
    parts.into_iter().filter(|&(part, _)| args.measures(part)).map(|(_, turns)| turns).sum()
}

struct Bench<'a> {
    args: &'a CacheArgs,
    console: &'a Console,
    load: CacheLoad,
}

impl Bench<'_> {
    /// Fills all caches, and puts requests to them that are not measured.
    fn fill(&self, entrants: &mut Entrants<'_>) -> Result<(), Error> {
        let plan = self.load.plan(0, 1, self.args.ops);
        entrants.each("filling a cache", |_, entrant| entrant.fill(&plan))?;
        Ok(())
    }

    fn cell(&self, workload: &str, about: &str, keys: u64, threads: usize) -> CacheSpeedCell {
        CacheSpeedCell {
            workload: workload.to_owned(),
            about: about.to_owned(),
            entries: self.args.entries as u64,
            keys,
            dist: self.load.dist.to_string(),
            threads,
            rows: Vec::new(),
            absent: Vec::new(),
        }
    }

    fn read_through(
        &self,
        number: usize,
        reads: &Reads,
        threads: usize,
        entrants: &mut Entrants<'_>,
        report: &mut Report,
    ) -> Result<(), Error> {
        let mut cell = self.cell(reads.name, reads.about, self.args.keys, threads);
        let title = cell.title();
        // Caches were filled by number 0.
        let first = 1 + number * self.args.rounds;
        let plan = |round| self.load.plan(round, threads, self.args.ops);
        let (mut of_round, mut asked) = (0, plan(first));
        let read = |round, _, entrant: &mut Entrant| {
            if round != of_round {
                (of_round, asked) = (round, plan(first + round));
            }
            entrant.read_through(&asked, reads.loads)
        };
        let measured = entrants.race(&title, self.args.rounds, |_| true, read)?;
        cell.rows = compared(measured.iter().map(|(id, rounds)| row(*id, rounds, None)).collect());
        cell.absent = entrants.absent();
        self.console.say(&cache_speed_table(&cell));
        let has_aims = !reads.loads && self.load.dist == AIMS_DIST;
        for &(rival, _, aim, must_hit_more) in
            READ_THROUGH_AIMS.iter().filter(|aim| has_aims && aim.1 == threads)
        {
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
        entrants: &mut Entrants<'_>,
        report: &mut Report,
    ) -> Result<(), Error> {
        let keys = (self.args.entries as u64 / 2).max(1);
        let one = plan::resident(keys, self.load.dist, 1, self.args.ops);
        let all = plan::resident(keys, self.load.dist, threads, self.args.ops);
        let mut cell = self.cell(hits.name, hits.about, keys, threads);
        let title = cell.title();
        let (entries, seconds) = (self.args.entries, self.args.seconds);
        // One thread is measured right before several, in every round.
        let look_up = |_, _, entrant: &mut Entrant| {
            let mut run = |threads: &[Vec<u32>]| entrant.hits(entries, threads, hits.batched, seconds);
            let alone = if threads > 1 { Some(run(&one)?) } else { None };
            Ok((run(&all)?, alone))
        };
        let measured = entrants.race(&title, self.args.rounds, |_| true, look_up)?;
        let rows = measured.iter().map(|(id, rounds)| {
            let hits: Vec<ReadThrough> =
                rounds.iter().map(|&(mops, _)| ReadThrough { mops, hit_ratio: 1.0 }).collect();
            let alone: Option<Vec<f64>> = rounds.iter().map(|&(_, alone)| alone).collect();
            row(*id, &hits, alone.map(Spread::of))
        });
        cell.rows = compared(rows.collect());
        cell.absent = entrants.absent();
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

    fn memory(&self, entrants: &mut Entrants<'_>, report: &mut Report) -> Result<(), Error> {
        let plan = self.load.plan(0, 1, self.args.ops);
        let measured = entrants.each("memory of a full cache", |_, entrant| entrant.footprint(&plan))?;
        for (id, (footprint, held)) in measured {
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
        }
        report.caches.absent_from_memory = entrants.absent();
        self.console.say(&cache_memory_table(&report.caches));
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

    fn latency(&self, entrants: &mut Entrants<'_>, report: &mut Report) -> Result<(), Error> {
        let stopwatch = Stopwatch::calibrated();
        let phase = "insert into a full cache";
        let time = |_, _, entrant: &mut Entrant| entrant.inserts(self.args.ops, &stopwatch);
        let measured = entrants.race(phase, self.args.rounds, |_| true, time)?;
        let cell = LatencyCell {
            phase: phase.to_owned(),
            keys: self.args.entries as u64,
            threads: 1,
            overhead_nanos: stopwatch.overhead_nanos(),
            quantiles: quantile_names(),
            rows: measured
                .iter()
                .map(|(id, rounds)| LatencyRow::of(id.name(), id.is_koel(), rounds.iter(), 0))
                .collect(),
            absent: entrants.absent(),
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

/// Adds the throughput of koel's caches divided by each other cache's.
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

/// What is compared, and for which of koel's caches, unless it is the first.
fn named(own: Id, what: &str) -> String {
    if own == Id::Koel { what.to_owned() } else { format!("{}, {what}", own.name()) }
}

/// `None` if there is nothing to compare.
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

/// `None` if there is nothing to compare.
fn latency_aim(cell: &LatencyCell, own: Id) -> Option<CacheAim> {
    let index = QUANTILES.iter().position(|(name, _)| *name == COMPARED_QUANTILE)?;
    let nanos = |id: Id| {
        let row = cell.rows.iter().find(|row| row.contestant == id.name())?;
        // Too few inserts say nothing about such rare ones.
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
