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

use crate::cli::{Cli, Command, Output, default_threads};
use crate::console::Console;
use crate::error::{CheckError, Error, printable};
use crate::origin::Origin;
use crate::report::{self, MachineInfo, Report};
use crate::stop;

/// Runs what the command line asks for.
///
/// # Errors
///
/// A wrong answer of a contestant, bad input, or no room for the output.
pub fn run(cli: &Cli) -> Result<(), Error> {
    let console = Console::new(cli.writes_reports());
    let pages = cli.pages();
    pages.arrange()?;
    let (command, machine) = (command_in_words(), MachineInfo::detect());
    let origin = Origin::of(cli.command.as_ref());
    // Warned of before the run, which may take an hour.
    origin.warning().into_iter().for_each(|warning| console.say(warning));
    let mut report = Report { command, origin, machine, pages, ..Report::default() };
    stop::watch()?;
    let mut output = Output::default();
    let ended = measure(cli, &console, &mut report, &mut output);
    console.finish();
    let ended = with_those_before(ended, console.failures());
    conclude(ended, &console, report, output)
}

/// Reports what was measured, however it ended.
fn conclude(
    ended: Result<(), Error>,
    console: &Console,
    mut report: Report,
    output: Output,
) -> Result<(), Error> {
    report.failures = ended.as_ref().map_or_else(Error::lines, |()| Vec::new());
    if ended.is_err() && report.is_empty() {
        // The report of an earlier run is worth more than an empty one.
        return ended;
    }
    report.machine.conclude();
    console.say(&report.origin_in_words().join("\n"));
    let saved = save(output, console, &report);
    ended.and(saved)?;
    console.all_said()
}

/// Measures, and adds each cell to `report` as it is done: if a later one fails, earlier ones are not lost.
fn measure(cli: &Cli, console: &Console, report: &mut Report, output: &mut Output) -> Result<(), Error> {
    match cli.command.as_ref() {
        None => tour::run(&Default::default(), console, report, output),
        Some(Command::Tour(args)) => tour::run(args, console, report, output),
        Some(Command::Filter(args)) => filter::run(args, console, report, output),
        Some(Command::Map(args)) => map::run(args, console, report, output),
        Some(Command::Cache(args)) => cache::run(args, console, report, output),
        Some(Command::Latency(args)) => latency::run(args, console, report, output),
        Some(Command::Memory(args)) => memory::run(args, console, report, output),
        Some(Command::Guard(args)) => guard::run(args, console, report, output),
    }
}

/// How the run ended, with the checks that failed earlier and did not end it.
fn with_those_before(ended: Result<(), Error>, mut failures: Vec<CheckError>) -> Result<(), Error> {
    match ended {
        Err(Error::Check(last)) => failures.extend(last),
        // Failures are reported, however the run ended.
        Err(Error::Unheard) if !failures.is_empty() => {}
        Err(other) => return Err(other),
        Ok(()) => {}
    }
    if failures.is_empty() { Ok(()) } else { Err(Error::Check(failures)) }
}

fn save(output: Output, console: &Console, report: &Report) -> Result<(), Error> {
    let json = output.json.map_or(Ok(()), |json| {
        let text = serde_json::to_string_pretty(report).map_err(|e| Error::Input(e.to_string()))?;
        console.say(&format!("Wrote {}", json.write(&text)?));
        Ok(())
    });
    // If there is no room for one file, there may be for the other.
    let html = output.html.map_or(Ok(()), |html| {
        console.say(&format!("Wrote {}", html.write(&report::page(report))?));
        Ok(())
    });
    json.and(html)
}

fn command_in_words() -> String {
    // Whatever bytes the arguments have: the command line has accepted them.
    let args = std::env::args_os().skip(1).map(|arg| printable(&arg.to_string_lossy()));
    std::iter::once(format!("koel-bench {}", env!("CARGO_PKG_VERSION")))
        .chain(args)
        .collect::<Vec<_>>()
        .join(" ")
}

/// The contestants that are `named`, in the order of tables; if none are, all that `by_default` accepts.
fn chosen<I: ValueEnum + Copy + PartialEq>(named: &[I], by_default: impl Fn(I) -> bool) -> Vec<I> {
    let takes = |id: &I| if named.is_empty() { by_default(*id) } else { named.contains(id) };
    I::value_variants().iter().copied().filter(takes).collect()
}

/// The numbers of threads that are `named`; if none are, the usual ones.
fn threads(named: &[usize]) -> Vec<usize> {
    if named.is_empty() { default_threads() } else { named.to_vec() }
}

/// The numbers of keys that are `named`; if none are, those of the grid, if that is asked for, or the usual ones.
fn sizes(named: &[u64], grid: Option<&[u64]>, usual: &[u64]) -> Vec<u64> {
    if named.is_empty() { grid.unwrap_or(usual).to_vec() } else { named.to_vec() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::OutputArgs;
    use crate::report::MemoryCell;

    fn wrong(name: &str) -> CheckError {
        CheckError::new(name, "a wrong answer").during("a test")
    }

    #[test]
    fn what_was_measured_before_a_failure_is_reported_with_it() {
        let folder = tempfile::tempdir().unwrap();
        let [json, html] = ["r.json", "r.html"].map(|name| folder.path().join(name));
        let files = OutputArgs { json: Some(json.clone()), html: Some(html.clone()) };
        let console = Console::new(true);
        console.failed(wrong("scc"));
        let ended = with_those_before(Err(wrong("koel").into()), console.failures());
        let report = || {
            let cell = MemoryCell { built: "grown".to_owned(), keys: 7, rows: vec![], absent: vec![] };
            Report { memory: vec![cell], ..Report::default() }
        };
        let told = conclude(ended, &console, report(), files.create().unwrap()).unwrap_err().to_string();
        let lines = ["scc", "koel"].map(|name| format!("check failed: {name} in a test: a wrong answer"));
        assert_eq!(told, lines.join("\n"));
        let saved: serde_json::Value =
            serde_json::from_str(&std::fs::read_to_string(&json).unwrap()).unwrap();
        assert_eq!(
            (&saved["memory"][0]["keys"], &saved["failures"][1]),
            (&7.into(), &lines[1].clone().into())
        );
        assert!(std::fs::read_to_string(&html).unwrap().contains(&lines[1]));
        // A later run without figures leaves the report as it is.
        let nothing =
            conclude(Err(wrong("koel").into()), &console, Report::default(), files.create().unwrap());
        assert!(nothing.is_err());
        assert!(std::fs::read_to_string(&json).unwrap().contains("grown"));
        conclude(Ok(()), &console, report(), files.create().unwrap()).unwrap();
        assert!(!std::fs::read_to_string(&json).unwrap().contains("check failed"));
    }

    #[test]
    fn a_run_without_figures_leaves_no_empty_file() {
        let folder = tempfile::tempdir().unwrap();
        let name = folder.path().join("r.json");
        let files = OutputArgs { json: Some(name.clone()), html: None };
        let ended = conclude(
            Err(Error::Input("bad".to_owned())),
            &Console::new(false),
            Report::default(),
            files.create().unwrap(),
        );
        assert!(ended.is_err() && !name.exists());
    }
}
