//! `koel-bench tour`, and `koel-bench` alone: some of everything, in about a minute.

use super::latency::{self, Phase};
use super::tasks::Task;
use super::{chosen, memory, threads, throughput};
use crate::cli::{Output, TourArgs};
use crate::console::Console;
use crate::contestants::Id;
use crate::error::Error;
use crate::report::{
    Cell, LatencyCell, MemoryCell, QUANTILES, Report, duration_in_words, keys_in_words, latency_table,
    memory_table, significant, summary_table, threads_in_words,
};
use crate::workload::{Mix, Workload};

const KEYS: u64 = 950_000;
const ROUNDS: usize = 3;
const OPS: usize = 1_000_000;
const SECONDS: f64 = 0.1;

/// Runs the command.
pub(super) fn run(
    args: &TourArgs,
    console: &Console,
    report: &mut Report,
    output: &mut Output,
) -> Result<(), Error> {
    *output = args.output.create()?;
    console.say(&format!(
        "koel beside five other maps: {}, u64, the same hasher and capacity, {ROUNDS} interleaved rounds;\n\
         every answer is checked. `koel`, `papaya` and `scc::HashIndex` are pinned for each operation; those that are\n\
         named as held keep a pin for several. About a minute.\n",
        keys_in_words(KEYS)
    ));
    let threads: Vec<usize> = threads(&[]).into_iter().filter(|&threads| threads <= 2).collect();
    let mix = Mix { read: 95, insert: 5, remove: 0, update: 0 };
    let tasks = [Task::Hit, Task::Miss, Task::Batch, Task::Mix(Workload::replacing("95/5 get/insert", mix))];
    let settings = throughput::Settings {
        groups: vec![tasks.iter().flat_map(|task| task.specs(KEYS, &threads, &[])).collect()],
        rounds: ROUNDS,
        ops: OPS,
        seconds: SECONDS,
        maps: chosen(&[], |_| true),
        tables: false,
    };
    let measured = throughput::run(&settings, console, report);
    console.say(&summary_table(report));
    measured?;
    let maps = chosen(&[], |id: Id| !id.is_held());
    let settings = latency::Settings {
        phases: vec![Phase::growth()],
        keys: vec![KEYS],
        threads: vec![1],
        rounds: ROUNDS,
        ops: OPS,
        maps: maps.clone(),
        tables: false,
    };
    let measured = latency::measure(&settings, console, report);
    report.latency.iter().for_each(|cell| console.say(&latency_table(cell)));
    measured?;
    let measured = memory::measure(&[KEYS], &maps, console, report);
    report.memory.iter().for_each(|cell| console.say(&memory_table(cell)));
    measured?;
    console.say(&headline(report));
    console.say(NEXT);
    Ok(())
}

const NEXT: &str = "\
Next (after `cargo run --release -p koel-bench --`):
  map                        all basic workloads at two sizes
  map --grid                 the same at three sizes, up to 7,600,000 keys
  map --preset ReadHeavy,Exchange,RapidGrow,YCSB-A --dist zipf:0.99
  map --whole walk,clone     what is done to a whole map at once
  map --trace FILE           the keys of a real trace
  latency                    inserts while growing, lookups, mixes: median to longest
  memory                     bytes per entry
  ... --html FILE --json FILE, --maps koel,inline,papaya, --threads 1,2,4; --help tells the rest";

/// The tour's results in a few lines.
fn headline(report: &Report) -> String {
    let mut lines = vec!["koel in short: Mops, and how much that is of the best other map".to_owned()];
    lines.extend(report.throughput.iter().map(throughput_in_words));
    lines.extend(report.latency.iter().map(tail_in_words));
    lines.extend(report.memory.first().map(bytes_in_words));
    lines.join("\n") + "\n"
}

fn throughput_in_words(cell: &Cell) -> String {
    let told = |id: Id| {
        let row = cell.row(id)?;
        let by = row.by_best_peer.as_ref().map_or(String::new(), |by| format!(" ({:.2}x)", by.median));
        Some(format!("{} {:>4}{by}", id.name(), significant(row.mops.median)))
    };
    let told: Vec<String> = [Id::Koel, Id::KoelInline].into_iter().filter_map(told).collect();
    let best = cell.best_peer().map_or("", |row| row.contestant);
    format!(
        "  {:<16} {:>9}: {}; best: {best}",
        cell.workload,
        threads_in_words(cell.threads),
        told.join(", ")
    )
}

fn tail_in_words(cell: &LatencyCell) -> String {
    let told = cell.rows.iter().filter_map(|row| {
        let at = |name| QUANTILES.iter().position(|(known, _)| *known == name).and_then(|i| row.nanos.get(i));
        let (tail, longest) = (at("p99.99")?.median, at("max")?.median);
        let (tail, longest) = (duration_in_words(tail), duration_in_words(longest));
        Some(format!("\n    {:<17} {tail:>7} / {longest:>7}", row.contestant))
    });
    format!("  {}, p99.99 / max:{}", cell.phase, told.collect::<String>())
}

fn bytes_in_words(cell: &MemoryCell) -> String {
    let told = cell.rows.iter().map(|row| format!("{} {:.0}", row.contestant, row.allocated));
    format!("  bytes per entry, {}:\n    {}", cell.built, told.collect::<Vec<_>>().join(", "))
}
