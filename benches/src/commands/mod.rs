//! The commands: what each measures, and in which order.

mod cache;
mod cache_speed;
mod field;
mod filter;
mod filter_tasks;
mod guard;
mod latency;
mod map;
mod memory;
mod tasks;
mod throughput;
mod tour;

use clap::ValueEnum;

use crate::cli::{Cli, Command, Output};
use crate::console::Console;
use crate::contestants::Id;
use crate::error::Error;
use crate::pages;
use crate::report::{self, MachineInfo, Report};

/// Runs what the command line asks for.
///
/// # Errors
///
/// A wrong answer of a contestant, bad input, or no room for what is printed.
pub fn run(cli: &Cli) -> Result<(), Error> {
    let console = Console::new();
    let small_pages = cli.small_pages();
    if small_pages {
        pages::keep_small();
    }
    let (command, machine) = (command_in_words(), MachineInfo::detect());
    let mut report = Report { command, machine, small_pages, ..Report::default() };
    let output = match cli.command.as_ref() {
        None => tour::run(&Default::default(), &console, &mut report),
        Some(Command::Tour(args)) => tour::run(args, &console, &mut report),
        Some(Command::Filter(args)) => filter::run(args, &console, &mut report),
        Some(Command::Map(args)) => map::run(args, &console, &mut report),
        Some(Command::Cache(args)) => cache::run(args, &console, &mut report),
        Some(Command::Latency(args)) => latency::run(args, &console, &mut report),
        Some(Command::Memory(args)) => memory::run(args, &console, &mut report),
        Some(Command::Guard(args)) => guard::run(args, &console, &mut report),
    };
    console.finish();
    let output = output?;
    console.say(&format!("{}; {}", report.machine.in_words(), report.pages_in_words()));
    save(output, &console, &report)?;
    let failures = console.failures();
    if failures.is_empty() { console.all_said() } else { Err(Error::Check(failures)) }
}

fn save(output: Output, console: &Console, report: &Report) -> Result<(), Error> {
    if let Some(json) = output.json {
        let text = serde_json::to_string_pretty(report).map_err(|e| Error::Input(e.to_string()))?;
        console.say(&format!("Wrote {}", json.write(&text)?));
    }
    if let Some(html) = output.html {
        console.say(&format!("Wrote {}", html.write(&report::page(report))?));
    }
    Ok(())
}

fn command_in_words() -> String {
    // Whatever bytes they have: the command line has accepted them.
    let args = std::env::args_os().skip(1).map(|arg| arg.to_string_lossy().into_owned());
    std::iter::once(format!("koel-bench {}", env!("CARGO_PKG_VERSION")))
        .chain(args)
        .collect::<Vec<_>>()
        .join(" ")
}

/// `chosen`, or those of all contestants that `by_default` takes.
fn contestants(chosen: &[Id], by_default: impl Fn(Id) -> bool) -> Vec<Id> {
    if chosen.is_empty() {
        return Id::value_variants().iter().copied().filter(|&id| by_default(id)).collect();
    }
    let in_order = Id::value_variants().iter().copied();
    in_order.filter(|id| chosen.contains(id)).collect()
}
