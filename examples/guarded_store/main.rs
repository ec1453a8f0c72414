//! Reads a redb database with and without a guard, while a writer puts and deletes, and reports what the guard saved.
//!
//! ```text
//! cargo run --release --example guarded_store -- [--db FILE] [--keys FILE] [--requests FILE] [--seconds N]
//! ```
//!
//! The example asks for no feature: koel's own development dependencies switch `redb` on.

mod args;
mod console;
mod data;
mod measure;
mod report;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::Ordering;

use koel::guard::{Guarded, Progress, RedbStore, SnapshotError, Store};

use args::Args;
use console::STOP;
use measure::{Pass, Subject};
use report::Report;

/// The size of the guard's cache of hot keys and values, in bytes.
const CACHE: u64 = 64 << 20;
/// How many turns each of the two stores gets, alternating.
const TURNS: usize = 2;

/// Why the program ended early.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The input or the environment.
    Input(String),
    /// A wrong answer.
    WrongAnswer(String),
}

impl From<String> for Failure {
    fn from(message: String) -> Self {
        Failure::Input(message)
    }
}

fn main() -> ExitCode {
    let args = match Args::parse() {
        Ok(Some(args)) => args,
        Ok(None) => return ExitCode::SUCCESS,
        Err(message) => return fail(2, &message),
    };
    if let Err(error) = ctrlc::set_handler(|| STOP.store(true, Ordering::Relaxed)) {
        return fail(2, &format!("Ctrl-C cannot be handled: {error}"));
    }
    match run(&args) {
        Ok(()) if STOP.load(Ordering::Relaxed) => {
            eprintln!("stopped; what was written is whole");
            ExitCode::from(130)
        }
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::WrongAnswer(message)) => fail(1, &message),
        Err(Failure::Input(message)) => fail(2, &message),
    }
}

fn fail(code: u8, message: &str) -> ExitCode {
    eprintln!("guarded_store: {message}");
    ExitCode::from(code)
}

fn run(args: &Args) -> Result<(), Failure> {
    // All input is read before anything is written.
    let given = args.keys.as_deref().map(data::read_lines).transpose()?;
    let requests = args.requests.as_deref().map(data::read_lines).transpose()?;
    let temporary = tempfile::tempdir().map_err(|error| format!("no temporary folder: {error}"))?;
    let file = args.db.clone().unwrap_or_else(|| temporary.path().join("guarded_store.redb"));
    let of_file = |error: &dyn core::fmt::Display| format!("{}: {error}", file.display());
    let is_new = !file.exists();
    let store = RedbStore::open(&file).map_err(|error| of_file(&error))?;
    let keys = data::fill(&store, given, is_new).map_err(|error| of_file(&error))?;
    if STOP.load(Ordering::Relaxed) {
        return Ok(());
    }
    if keys.is_empty() {
        return Err(of_file(&"no keys are in it; --keys FILE puts some there").into());
    }
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let asked = if requests.is_some() { "" } else { ", half of their look-ups for absent keys" };
    let plan = data::plan(&keys, requests, threads);
    eprintln!(
        "{} keys; {threads} readers{asked}, and a writer; {TURNS} turns of {} s each",
        keys.len(),
        args.seconds
    );
    let snapshot = args.db.as_ref().map(|file| beside(file));
    let guarded = open(store, keys.len() as u64, snapshot.as_deref())?;
    let report = race(&guarded, &plan, args.seconds)?;
    eprintln!();
    console::print(&report)?;
    let missed = report.verification.as_ref().map_or(0, |verification| verification.false_negatives);
    if missed > 0 {
        return Err(Failure::WrongAnswer(format!(
            "the filter misses {missed} of the keys that were sampled"
        )));
    }
    match snapshot {
        Some(snapshot) if !STOP.load(Ordering::Relaxed) => keep_filter(&guarded, &snapshot),
        _ => Ok(()),
    }
}

/// The file in which the filter of a database is kept: the database's name with `.filter` at its end.
fn beside(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".filter");
    name.into()
}

/// Keeps the filter in a file for the next run, but does not replace a file that is not a filter.
fn keep_filter(guarded: &Guarded<RedbStore>, file: &Path) -> Result<(), Failure> {
    if let Some(SnapshotError::Damaged(why)) = guarded.rejected_snapshot() {
        let message = format!("{}: no filter of a guard ({why}), and so left as it is", file.display());
        return Err(message.into());
    }
    guarded.snapshot(file).map_err(|error| format!("{}: {error}", file.display()))?;
    eprintln!("the filter is in {}: the next run opens with it", file.display());
    Ok(())
}

/// Puts a guard before the store and waits for its filter.
fn open(store: RedbStore, keys: u64, snapshot: Option<&Path>) -> Result<Guarded<RedbStore>, Failure> {
    let bar = console::bar("scanning keys", keys);
    let follow = bar.clone();
    let mut builder = Guarded::builder(store)
        .cache_bytes(CACHE)
        .on_progress(move |progress: Progress| follow.set_position(progress.scanned));
    if let Some(snapshot) = snapshot {
        builder = builder.snapshot(snapshot);
    }
    let guarded = builder.open().map_err(|error| error.to_string())?;
    guarded.wait_until_ready().map_err(|error| error.to_string())?;
    bar.finish_and_clear();
    Ok(guarded)
}

/// Measures the bare store and the guarded one, in turns.
fn race(guarded: &Guarded<RedbStore>, plan: &data::Plan, seconds: f64) -> Result<Report, Failure> {
    let bar = console::bar("reading and writing", (2 * TURNS) as u64);
    let mut report = Report::default();
    for _ in 0..TURNS {
        let before = guarded.stats();
        let pass: Pass = measure::run(&Bare(guarded), plan, seconds)?;
        // The readers of the bare store bypass the guard; its writer does not, or the filter would be wrong.
        assert_eq!(guarded.stats().lookups(), before.lookups());
        report.bare.push(pass);
        bar.inc(1);
        report.guarded.push(measure::run(guarded, plan, seconds)?);
        bar.inc(1);
        if STOP.load(Ordering::Relaxed) {
            break;
        }
    }
    bar.finish_and_clear();
    report.verification = Some(guarded.verify(10_000).map_err(|error| error.to_string())?);
    report.stats = guarded.stats();
    Ok(report)
}

/// Reads around the guard, writes through it.
struct Bare<'a>(&'a Guarded<RedbStore>);

impl Subject for Bare<'_> {
    fn read(&self, key: &[u8]) -> Result<bool, Failure> {
        Ok(self.0.store().get(key).map_err(|error| error.to_string())?.is_some())
    }

    fn write(&self, key: &[u8], value: Option<&[u8]>) -> Result<(), Failure> {
        self.0.write(key, value)
    }
}

impl Subject for Guarded<RedbStore> {
    fn read(&self, key: &[u8]) -> Result<bool, Failure> {
        Ok(self.get(key).map_err(|error| error.to_string())?.is_some())
    }

    fn write(&self, key: &[u8], value: Option<&[u8]>) -> Result<(), Failure> {
        let written = match value {
            Some(value) => self.put(key, value),
            None => self.delete(key),
        };
        written.map_err(|error| error.to_string())?;
        Ok(())
    }
}
