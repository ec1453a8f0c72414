//! `koel-bench filter`: throughput, memory and error rates of filters.

use clap::ValueEnum;

use super::filter_tasks::Plan;
use crate::cli::{FILTER_GRID_KEYS, FILTER_KEYS, FilterArgs, Output, PAPER_KEYS, default_threads};
use crate::console::Console;
use crate::entrant::{FilterEntrant, filter_entrant};
use crate::error::Error;
use crate::filters::{Id, Task};
use crate::paper;
use crate::report::{
    FilterCell, FilterMeasured, FilterSizeCell, FilterSizeRow, Report, filter_aims_table, filter_size_table,
    filter_summary_table, filter_table, paper_table,
};
use crate::rounds::interleaved;

type Entrants = Vec<(Id, Box<dyn FilterEntrant>)>;

/// Runs the command.
pub(super) fn run(args: &FilterArgs, console: &Console, report: &mut Report) -> Result<Output, Error> {
    if args.paper {
        return literature(args, console, report);
    }
    let threads = if args.threads.is_empty() { default_threads() } else { args.threads.clone() };
    let sizes = match (args.keys.is_empty(), args.grid) {
        (false, _) => args.keys.clone(),
        (true, true) => FILTER_GRID_KEYS.to_vec(),
        (true, false) => FILTER_KEYS.to_vec(),
    };
    if let Some(why) = args.workloads.iter().find_map(|task| task.why_not(&sizes, &threads)) {
        return Err(Error::Input(why.to_owned()));
    }
    let output = args.output.create()?;
    for &keys in &sizes {
        for &bits in &args.bits {
            Bench { args, console, keys, bits, threads: &threads }.run(report)?;
        }
    }
    console.say(&filter_summary_table(&report.filters));
    console.say(&filter_aims_table(&report.filters));
    Ok(output)
}

fn literature(args: &FilterArgs, console: &Console, report: &mut Report) -> Result<Output, Error> {
    let keys = args.keys.first().copied().unwrap_or(PAPER_KEYS);
    let output = args.output.create()?;
    paper::reproduce(&paper::Scale { keys, rounds: args.rounds }, console, |table| {
        console.say(&paper_table(&table));
        report.paper.push(table);
    })?;
    Ok(output)
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
        let chosen = |task: &&Task| self.args.workloads.is_empty() || self.args.workloads.contains(task);
        let cells: Vec<(Task, usize)> = Task::value_variants()
            .iter()
            .filter(chosen)
            .flat_map(|&task| self.threads.iter().map(move |&threads| (task, threads)))
            .filter(|(task, threads)| task.exists(self.keys, *threads))
            .collect();
        self.console.expect(entrants.len() * (1 + cells.len() * self.args.rounds));
        let sizes = self.sizes(&mut entrants)?;
        self.console.say(&filter_size_table(&sizes));
        for (task, threads) in cells {
            let (mut taking, resting): (Entrants, Entrants) =
                entrants.into_iter().partition(|(_, entrant)| task.takes(entrant.as_ref(), threads));
            (0..resting.len() * self.args.rounds).for_each(|_| self.console.done());
            if !taking.is_empty() {
                let cell = self.cell(task, threads, &mut taking, &sizes)?;
                self.console.say(&filter_table(&cell));
                report.filters.push(cell);
            }
            taking.extend(resting);
            taking.sort_by_key(|(id, _)| *id as usize);
            entrants = taking;
        }
        report.filter_sizes.push(sizes);
        Ok(())
    }

    fn entrants(&self) -> Entrants {
        let in_order = Id::value_variants().iter().copied();
        let chosen = |id: &Id| self.args.filters.is_empty() || self.args.filters.contains(id);
        in_order
            .filter(chosen)
            .filter(|id| id.takes_bits(self.bits))
            .map(|id| (id, filter_entrant(id, self.bits)))
            .collect()
    }

    /// Builds all filters, and tells what they take and how often they are wrong.
    fn sizes(&self, entrants: &mut Entrants) -> Result<FilterSizeCell, Error> {
        let (keys, bits) = (self.keys, self.bits);
        let mut rows = Vec::with_capacity(entrants.len());
        for (id, entrant) in entrants {
            self.console.begin("build", id.name());
            let built =
                entrant.build(keys, bits).map_err(|failure| failure.during("memory and error rate"))?;
            rows.push(FilterSizeRow::new(*id, built));
            self.console.done();
        }
        Ok(FilterSizeCell { keys, bits, rows })
    }

    fn cell(
        &self,
        task: Task,
        threads: usize,
        entrants: &mut Entrants,
        sizes: &FilterSizeCell,
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
        };
        let title = cell.title();
        // What a filter is compared with is measured right before it, in every round.
        let samples = interleaved(entrants, self.args.rounds, |(id, entrant)| {
            self.console.begin(&title, id.name());
            let run = |plan: &Plan, entrant: &mut dyn FilterEntrant| {
                plan.run(entrant, bits, self.args.seconds).map_err(|failure| failure.during(&title))
            };
            let base = base.as_ref().map(|(_, base)| run(base, entrant.as_mut())).transpose()?;
            let mops = run(&plan, entrant.as_mut())?;
            self.console.done();
            Ok::<_, Error>((mops, base))
        })?;
        let measured = entrants.iter_mut().zip(samples).map(|((id, entrant), samples)| {
            let (mops, base): (Vec<f64>, Vec<Option<f64>>) = samples.into_iter().unzip();
            let lost_reads = entrant.take_lost_reads();
            FilterMeasured { id: *id, mops, base: base.into_iter().flatten().collect(), lost_reads }
        });
        cell.compare(measured.collect(), sizes, &task.aims(keys, bits, threads));
        Ok(cell)
    }
}
