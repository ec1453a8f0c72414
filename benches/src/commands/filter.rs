//! `koel-bench filter`: throughput, memory and error rates of filters.

use super::field::Field;
use super::filter_tasks::Plan;
use super::{chosen, sizes, threads};
use crate::cli::{FILTER_GRID_KEYS, FILTER_KEYS, FilterArgs, Output, PAPER_KEYS};
use crate::console::Console;
use crate::entrant::{FilterEntrant, filter_entrant};
use crate::error::Error;
use crate::filters::{Id, Task};
use crate::paper;
use crate::report::{
    FilterCell, FilterMeasured, FilterSizeCell, FilterSizeRow, Report, filter_aims_table, filter_size_table,
    filter_summary_table, filter_table, paper_table,
};

type Entrant = dyn FilterEntrant;
type Entrants<'c> = Field<'c, Id, Entrant>;

/// Runs the command.
pub(super) fn run(
    args: &FilterArgs,
    console: &Console,
    report: &mut Report,
    output: &mut Output,
) -> Result<(), Error> {
    if args.paper {
        return literature(args, console, report, output);
    }
    let threads = threads(&args.threads);
    let sizes = sizes(&args.keys, args.grid.then_some(&FILTER_GRID_KEYS), &FILTER_KEYS);
    let filters = chosen(&args.filters, |_| true);
    let why_not = |task: &Task| {
        let why = task.why_not(&sizes, &threads).map(str::to_owned);
        why.or_else(|| task.taken_by_none(&filters, &args.bits, &threads))
    };
    if let Some(why) = args.workloads.iter().find_map(why_not) {
        return Err(Error::Input(why));
    }
    *output = args.output.create()?;
    let both = sizes.iter().flat_map(|&keys| args.bits.iter().map(move |&bits| (keys, bits)));
    let bench = |(keys, bits)| Bench { args, console, keys, bits, threads: &threads };
    let benches: Vec<Bench<'_>> = both.map(bench).collect();
    console.expect(benches.iter().map(Bench::steps).sum());
    let measured = benches.iter().try_for_each(|bench| bench.run(report));
    console.say(&filter_summary_table(&report.filters));
    console.say(&filter_aims_table(&report.filters));
    measured
}

fn literature(
    args: &FilterArgs,
    console: &Console,
    report: &mut Report,
    output: &mut Output,
) -> Result<(), Error> {
    let keys = args.keys.first().copied().unwrap_or(PAPER_KEYS);
    *output = args.output.create()?;
    paper::reproduce(&paper::Scale { keys, rounds: args.rounds }, console, |table| {
        console.say(&paper_table(&table));
        report.paper.push(table);
    })
}

/// One size and width.
struct Bench<'a> {
    args: &'a FilterArgs,
    console: &'a Console,
    keys: u64,
    bits: u32,
    threads: &'a [usize],
}

impl Bench<'_> {
    fn run(&self, report: &mut Report) -> Result<(), Error> {
        let mut entrants = self.entrants();
        let sizes = self.sizes(&mut entrants)?;
        self.console.say(&filter_size_table(&sizes));
        report.filter_sizes.push(sizes);
        for (task, threads) in self.cells() {
            let cell = self.cell(task, threads, &mut entrants, report.filter_sizes.last())?;
            if !cell.rows.is_empty() || !cell.absent.is_empty() {
                self.console.say(&filter_table(&cell));
                report.filters.push(cell);
            } else if self.args.workloads.contains(&task) {
                self.console.say(&format!("{}: none of the filters takes part\n", cell.title()));
            }
        }
        Ok(())
    }

    /// How many turns a filter has.
    fn steps(&self) -> usize {
        self.filters().count() * (1 + self.cells().len() * self.args.rounds)
    }

    fn cells(&self) -> Vec<(Task, usize)> {
        chosen(&self.args.workloads, |_| true)
            .into_iter()
            .flat_map(|task| self.threads.iter().map(move |&threads| (task, threads)))
            .filter(|(task, threads)| task.exists(self.keys, *threads))
            .collect()
    }

    fn filters(&self) -> impl Iterator<Item = Id> {
        chosen(&self.args.filters, |_| true).into_iter().filter(|id| id.takes_bits(self.bits))
    }

    fn entrants(&self) -> Entrants<'_> {
        Field::new(self.console, self.filters().map(|id| (id, filter_entrant(id, self.bits))))
    }

    /// Builds all filters, and reports how much memory they take and how often they are wrong.
    fn sizes(&self, entrants: &mut Entrants<'_>) -> Result<FilterSizeCell, Error> {
        let (keys, bits) = (self.keys, self.bits);
        let built = entrants.each("memory and error rate", |_, entrant| entrant.build(keys, bits))?;
        let rows = built.into_iter().map(|(id, built)| FilterSizeRow::new(id, built)).collect();
        Ok(FilterSizeCell { keys, bits, rows, absent: entrants.absent() })
    }

    fn cell(
        &self,
        task: Task,
        threads: usize,
        entrants: &mut Entrants<'_>,
        sizes: Option<&FilterSizeCell>,
    ) -> Result<FilterCell, Error> {
        let Bench { keys, bits, .. } = *self;
        let plan = Plan::new(task, keys, threads, self.args.ops);
        let base = task.base(keys, threads, self.args.ops);
        let mut cell = FilterCell {
            workload: task.name(),
            about: task.about(),
            keys,
            bits,
            threads,
            base: base.as_ref().map(|(words, _)| words.clone()),
            rows: Vec::new(),
            aims: Vec::new(),
            absent: Vec::new(),
        };
        // The base that a filter is compared with is measured right before it, in every round.
        let measure = |_, _, entrant: &mut Entrant| {
            let run = |plan: &Plan, entrant: &mut Entrant| plan.run(entrant, bits, self.args.seconds);
            let base = base.as_ref().map(|(_, base)| run(base, entrant)).transpose()?;
            Ok((run(&plan, entrant)?, base))
        };
        let takes = |entrant: &Entrant| task.takes(entrant, threads);
        let measured = entrants.race(&cell.title(), self.args.rounds, takes, measure)?;
        let measured = measured.into_iter().map(|(id, samples)| {
            let (mops, base): (Vec<f64>, Vec<Option<f64>>) = samples.into_iter().unzip();
            let lost_reads = entrants.entrant(id).map_or(0, |entrant| entrant.take_lost_reads());
            FilterMeasured { id, mops, base: base.into_iter().flatten().collect(), lost_reads }
        });
        cell.compare(measured.collect(), sizes, &task.aims(keys, bits, threads));
        cell.absent = entrants.absent();
        Ok(cell)
    }
}
