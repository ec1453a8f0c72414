//! `koel-bench latency`: the time of single operations.

use std::sync::Arc;

use hdrhistogram::Histogram;

use super::chosen;
use super::field::Field;
use super::tasks::Task;
use crate::cli::{LatencyArgs, Output, WorkloadArgs};
use crate::console::Console;
use crate::contestants::Id;
use crate::dist::Dist;
use crate::entrant::{Times, entrant};
use crate::error::Error;
use crate::plan::{self, MixPlan};
use crate::report::{LatencyCell, LatencyRow, Report, latency_table, quantile_names};
use crate::stopwatch::Stopwatch;
use crate::trace::{self, Trace};
use crate::workload::{Inserts, Mix, Workload};

/// Which of the times a table shows.
type Of = fn(&Times) -> &Histogram<u64>;

const READS: &str = "reads";
const KINDS: [(&str, Of); 2] = [(READS, |times| &times.reads), ("writes", |times| &times.writes)];

/// A kind of operations that is timed at one size and number of threads.
#[derive(Debug)]
pub(super) struct Phase {
    pub(super) workload: Workload,
    pub(super) dist: Dist,
    pub(super) trace: Option<Arc<Trace>>,
}

/// The settings of a latency run.
#[derive(Debug)]
pub(super) struct Settings {
    pub(super) phases: Vec<Phase>,
    pub(super) keys: Vec<u64>,
    pub(super) threads: Vec<usize>,
    pub(super) rounds: usize,
    pub(super) ops: usize,
    pub(super) maps: Vec<Id>,
    /// Whether a table is printed for every cell.
    pub(super) tables: bool,
}

/// Runs the command.
pub(super) fn run(
    args: &LatencyArgs,
    console: &Console,
    report: &mut Report,
    output: &mut Output,
) -> Result<(), Error> {
    let mut phases = vec![Phase::growth(), Phase::lookups(Dist::Uniform)];
    phases.extend(chosen_phases(&args.workloads)?);
    *output = args.output.create()?;
    let settings = Settings {
        phases,
        keys: args.keys.clone(),
        threads: args.threads.clone(),
        rounds: args.rounds,
        ops: args.ops,
        maps: chosen(&args.maps, |id| !id.is_held()),
        tables: true,
    };
    measure(&settings, console, report)
}

/// The phases after growth and lookups: those that are asked for, with mixes on the trace if there is one; by default half
/// lookups, half writes.
fn chosen_phases(args: &WorkloadArgs) -> Result<Vec<Phase>, Error> {
    let mut workloads: Vec<Workload> = args.preset.iter().map(|preset| preset.workload()).collect();
    if args.trace.is_none() {
        workloads.extend(args.mix.iter().map(|&mix| args.churning(&format!("mix {mix}"), mix)));
    }
    if workloads.is_empty() && args.trace.is_none() {
        let mix = Mix::new(50, 20, 20, 10);
        workloads.extend(mix.map(|mix| args.churning(&format!("mixed {mix}"), mix)));
    }
    let mut phases = Vec::new();
    for workload in workloads {
        let own = [workload.dist];
        let dists =
            if args.dist.is_empty() || workload.dist == Dist::Latest { &own } else { args.dist.as_slice() };
        phases.extend(dists.iter().map(|&dist| Phase { workload: workload.clone(), dist, trace: None }));
    }
    if let Some(path) = &args.trace {
        let trace = Some(Arc::new(trace::read(path)?));
        let replays = Task::replays(args).into_iter().filter_map(|task| match task {
            Task::Mix(workload) => Some(workload),
            _ => None,
        });
        phases.extend(replays.map(|workload| Phase { workload, dist: Dist::Uniform, trace: trace.clone() }));
    }
    Ok(phases)
}

impl Phase {
    /// Inserts into a map built without a capacity.
    pub(super) fn growth() -> Self {
        let mix = Mix { read: 0, insert: 100, remove: 0, update: 0 };
        let workload = Workload {
            inserts: Inserts::Fresh,
            filled_percent: 0,
            reserved: false,
            ops_percent: Some(100),
            ..Workload::replacing("insert while growing", mix)
        };
        Phase { workload, dist: Dist::Uniform, trace: None }
    }

    /// Lookups of keys that are there.
    pub(super) fn lookups(dist: Dist) -> Self {
        let mix = Mix { read: 100, insert: 0, remove: 0, update: 0 };
        Phase { workload: Workload { reserved: false, ..Workload::replacing("get", mix) }, dist, trace: None }
    }

    /// Its name in the tables.
    fn name(&self) -> String {
        let name = &self.workload.name;
        if self.trace.is_some() || self.workload.mix.insert == 100 {
            name.clone()
        } else {
            format!("{name}, {}", self.dist)
        }
    }

    /// A table for look-ups and one for writes, where there are any: its name and its rows. For each contestant, `measured` has
    /// the times of each round, and how many look-ups missed keys.
    fn tables(&self, measured: &[(Id, Vec<Times>, u64)]) -> Vec<(String, Vec<LatencyRow>)> {
        let is_measured =
            |of: Of| measured.iter().flat_map(|(_, rounds, _)| rounds).any(|times| !of(times).is_empty());
        let kinds: Vec<_> = KINDS.into_iter().filter(|&(_, of)| is_measured(of)).collect();
        let table = |&(kind, of): &(&str, Of)| {
            let row = |(id, rounds, lost): &(Id, Vec<Times>, u64)| {
                let lost = if kind == READS { *lost } else { 0 };
                LatencyRow::of(id.name(), id.is_koel(), rounds.iter().map(of), lost)
            };
            let name = if kinds.len() > 1 { format!("{kind} of {}", self.name()) } else { self.name() };
            (name, LatencyRow::compared(measured.iter().map(row).collect()))
        };
        kinds.iter().map(table).collect()
    }

    fn plan(&self, keys: u64, threads: usize, ops: usize) -> Result<MixPlan, Error> {
        // All threads together grow the map to `keys` exactly.
        let keys = keys.next_multiple_of(threads as u64);
        let ops = self.workload.ops(keys, threads, ops);
        plan::mixed(&self.workload, keys, self.dist, threads, ops, self.trace.as_ref())
    }
}

/// Measures all phases and adds them to `report`.
pub(super) fn measure(settings: &Settings, console: &Console, report: &mut Report) -> Result<(), Error> {
    let stopwatch = Stopwatch::calibrated();
    let cells = settings.keys.len() * settings.threads.len() * settings.phases.len();
    console.expect(cells * settings.rounds * settings.maps.len());
    for &keys in &settings.keys {
        for &threads in &settings.threads {
            let mut entrants = Field::new(console, settings.maps.iter().map(|&id| (id, entrant(id))));
            for phase in &settings.phases {
                let plan = phase.plan(keys, threads, settings.ops)?;
                let measured = entrants.race(
                    &phase.name(),
                    settings.rounds,
                    |_| true,
                    |_, _, entrant| entrant.latencies(&plan, &stopwatch),
                )?;
                let mut lost_reads = |id| entrants.entrant(id).map_or(0, |entrant| entrant.take_lost_reads());
                let measured: Vec<_> =
                    measured.into_iter().map(|(id, rounds)| (id, rounds, lost_reads(id))).collect();
                for (name, rows) in phase.tables(&measured) {
                    let cell = LatencyCell {
                        phase: name,
                        keys: phase.trace.as_ref().map_or(keys, |trace| trace.keys.len() as u64),
                        threads,
                        overhead_nanos: stopwatch.overhead_nanos(),
                        quantiles: quantile_names(),
                        rows,
                        absent: entrants.absent(),
                    };
                    if settings.tables {
                        console.say(&latency_table(&cell));
                    }
                    report.latency.push(cell);
                }
            }
        }
    }
    Ok(())
}
