//! Measures throughput, cell by cell.

use super::field::Field;
use super::tasks::{Spec, Task};
use crate::console::Console;
use crate::contestants::Id;
use crate::entrant::{Entrant, TextEntrant, entrant, text_entrant};
use crate::error::{CheckError, Error};
use crate::machine::Machine;
use crate::plan;
use crate::report::{Cell, LineReads, Report, throughput_table};
use crate::stats::Spread;

/// The array whose lines are read for the machine's limit: half a gigabyte.
const MACHINE_LOG2_BYTES: u32 = 29;
const MACHINE_LINES: usize = 4_000_000;
const MACHINE_ROUNDS: usize = 3;

/// What a throughput run measures, and for how long.
#[derive(Debug)]
pub(super) struct Settings {
    /// Groups of cells; within a group, maps are kept from cell to cell.
    pub(super) groups: Vec<Vec<Spec>>,
    pub(super) rounds: usize,
    /// Operations of each thread in a pass.
    pub(super) ops: usize,
    /// Seconds of passes in a round.
    pub(super) seconds: f64,
    pub(super) maps: Vec<Id>,
    /// Whether a table is printed for every cell.
    pub(super) tables: bool,
}

/// Measures the machine, then all cells, and adds them to `report`.
pub(super) fn run(settings: &Settings, console: &Console, report: &mut Report) -> Result<(), Error> {
    let texts = settings.maps.iter().filter(|&&id| id != Id::KoelInline).count();
    for spec in settings.groups.iter().flatten() {
        let maps = if spec.task == Task::Texts { texts } else { settings.maps.len() };
        console.expect(maps * settings.rounds);
    }
    measure_machine(settings, console, report);
    for group in &settings.groups {
        let mut numbers = Field::new(console, settings.maps.iter().map(|&id| (id, entrant(id))));
        let texts = settings.maps.iter().filter_map(|&id| Some((id, text_entrant(id)?)));
        let mut texts = Field::new(console, texts);
        for spec in group {
            let line_reads = report.machine.line_reads.iter().find(|limit| limit.threads == spec.threads);
            let mut cell = Cell {
                workload: spec.name(),
                about: spec.task.about(),
                keys: spec.keys,
                threads: spec.threads,
                dist: spec.dist_name(),
                line_reads: line_reads.map(|limit| limit.per_microsecond),
                rows: Vec::new(),
                absent: Vec::new(),
            };
            let bench = Bench { settings, spec, title: cell.title() };
            if spec.task == Task::Texts {
                numbers.entrants().for_each(|entrant| entrant.release());
                cell.rows = Cell::rows(bench.texts(&mut texts)?);
                cell.absent = texts.absent();
            } else {
                cell.rows = Cell::rows(bench.numbers(&mut numbers)?);
                cell.absent = numbers.absent();
            }
            for row in &mut cell.rows {
                let id = settings.maps.iter().find(|id| id.name() == row.contestant);
                let entrant = id.and_then(|&id| numbers.entrant(id));
                row.lost_reads = entrant.map_or(0, |entrant| entrant.take_lost_reads());
            }
            if settings.tables {
                console.say(&throughput_table(&cell));
            }
            report.throughput.push(cell);
        }
    }
    Ok(())
}

fn measure_machine(settings: &Settings, console: &Console, report: &mut Report) {
    console.begin("machine", "random cache lines");
    let machine = Machine::new(MACHINE_LOG2_BYTES);
    for spec in settings.groups.iter().flatten() {
        if report.machine.line_reads.iter().any(|limit| limit.threads == spec.threads) {
            continue;
        }
        let rates = (0..MACHINE_ROUNDS)
            .map(|_| machine.line_reads_per_microsecond(spec.threads, MACHINE_LINES))
            .collect();
        let per_microsecond = Spread::of(rates).median;
        report.machine.line_reads.push(LineReads { threads: spec.threads, per_microsecond });
    }
}

/// One cell being measured.
struct Bench<'a> {
    settings: &'a Settings,
    spec: &'a Spec,
    title: String,
}

impl Bench<'_> {
    fn numbers(&self, entrants: &mut Field<'_, Id, dyn Entrant>) -> Result<Vec<(Id, Spread)>, Error> {
        let Spec { keys, threads, dist, ref trace, .. } = *self.spec;
        let (ops, seconds) = (self.settings.ops, self.settings.seconds);
        match &self.spec.task {
            Task::Mix(workload) => {
                let ops = workload.ops(keys, threads, ops);
                let plan = plan::mixed(workload, keys, dist, threads, ops, trace.as_ref())?;
                self.rounds(entrants, |entrant| entrant.mix(&plan, seconds))
            }
            Task::Fill => self.rounds(entrants, |entrant| entrant.fill(0, keys, seconds)),
            Task::FillMade => self.rounds(entrants, |entrant| entrant.fill(keys, keys, seconds)),
            &Task::Whole(what) => self.rounds(entrants, |entrant| entrant.whole(what, keys, seconds)),
            Task::Extend => self.rounds(entrants, |entrant| entrant.extend_from_empty(keys, seconds)),
            task => {
                let plan = match trace {
                    Some(trace) => plan::replayed_reads(trace, threads, ops)?,
                    None => plan::reads(keys, dist, threads, ops, *task != Task::Miss)?,
                };
                self.rounds(entrants, |entrant| entrant.read(&plan, *task == Task::Batch, seconds))
            }
        }
    }

    fn texts(&self, entrants: &mut Field<'_, Id, dyn TextEntrant>) -> Result<Vec<(Id, Spread)>, Error> {
        let Spec { keys, threads, dist, .. } = *self.spec;
        let plan = plan::texts(keys, dist, threads, self.settings.ops)?;
        self.rounds(entrants, |entrant| entrant.read(&plan, self.settings.seconds))
    }

    fn rounds<E: ?Sized>(
        &self,
        entrants: &mut Field<'_, Id, E>,
        mut measure: impl FnMut(&mut E) -> Result<f64, CheckError>,
    ) -> Result<Vec<(Id, Spread)>, Error> {
        let measure = |_, _, entrant: &mut E| measure(entrant);
        let measured = entrants.race(&self.title, self.settings.rounds, |_| true, measure)?;
        Ok(measured.into_iter().map(|(id, samples)| (id, Spread::of(samples))).collect())
    }
}
