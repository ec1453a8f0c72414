//! `koel-bench map`: throughput.

use std::sync::Arc;

use super::tasks::{Spec, Task};
use super::throughput::{self, Settings};
use super::{chosen, sizes, threads};
use crate::cli::{DEFAULT_KEYS, GRID_KEYS, MapArgs, Output};
use crate::console::Console;
use crate::error::Error;
use crate::report::{Report, summary_table};
use crate::trace;

/// Runs the command.
pub(super) fn run(
    args: &MapArgs,
    console: &Console,
    report: &mut Report,
    output: &mut Output,
) -> Result<(), Error> {
    let groups = groups(args)?;
    *output = args.output.create()?;
    let settings = Settings {
        groups,
        rounds: args.rounds,
        ops: args.ops,
        seconds: args.seconds,
        maps: chosen(&args.maps, |_| true),
        tables: true,
    };
    let measured = throughput::run(&settings, console, report);
    console.say(&summary_table(report));
    measured
}

/// A group for each size, and one for the trace.
fn groups(args: &MapArgs) -> Result<Vec<Vec<Spec>>, Error> {
    let workloads = &args.workloads;
    let threads = threads(&args.threads);
    let mut groups = Vec::new();
    // Writes come last: maps whose entries have all been replaced behave differently.
    let mut tasks: Vec<Task> = args.whole.iter().copied().map(Task::Whole).collect();
    let nothing_chosen = tasks.is_empty() && workloads.is_empty();
    if args.grid || nothing_chosen {
        tasks.extend(Task::basic(workloads));
    }
    tasks.extend(Task::chosen(workloads));
    if !tasks.is_empty() {
        for keys in sizes(&args.keys, args.grid.then_some(&GRID_KEYS), &DEFAULT_KEYS) {
            groups.push(tasks.iter().flat_map(|task| task.specs(keys, &threads, &workloads.dist)).collect());
        }
    }
    if let Some(path) = &workloads.trace {
        let trace = Arc::new(trace::read(path)?);
        let tasks = Task::replays(workloads);
        groups.push(tasks.iter().flat_map(|task| task.replay_specs(&trace, &threads)).collect());
    }
    Ok(groups)
}
