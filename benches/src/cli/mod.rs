//! The command line.

mod cache;
mod filter;
mod guard;
mod map;
mod output;
mod pages;
mod values;
mod workloads;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};

pub use self::cache::{CACHE_SIZES, CURVE_SIZES, CacheArgs, CachePart};
pub use self::filter::{FILTER_GRID_KEYS, FILTER_KEYS, FilterArgs, PAPER_KEYS};
pub use self::guard::{GuardArgs, StoreId};
pub use self::map::{DEFAULT_KEYS, GRID_KEYS, MapArgs};
pub use self::output::{Output, OutputArgs};
pub use self::pages::PagesArgs;
pub use self::workloads::WorkloadArgs;
use crate::contestants::Id;
use crate::pages::Pages;

/// Compares koel with other concurrent hash maps, filters and caches, and checks every answer.
///
/// Without a command it gives a tour of about a minute.
#[derive(Debug, Parser)]
#[command(
    name = "koel-bench",
    version,
    after_help = "Who panics, refuses or gives a wrong answer is out, and tables say so; a wrong answer of koel's ends the run. \
                  What was measured before is reported in any case.\n\n\
                  Exit codes: 0 done, or nobody reads and no report is written; 1 a map, a filter, a cache or a guard gave a wrong answer; 2 bad input; 130 stopped by \
                  Ctrl-C, SIGTERM or SIGHUP."
)]
pub struct Cli {
    /// What to measure.
    #[command(subcommand)]
    pub command: Option<Command>,
}

impl Cli {
    /// Parses the program's own command line. An invalid one ends the program, with a message and exit code 2.
    pub fn of_program() -> Self {
        Self::checked(std::env::args_os()).unwrap_or_else(|error| error.exit())
    }

    /// Parses a command line, and refuses combinations of options of which one would be ignored.
    fn checked<T: Into<OsString> + Clone>(args: impl IntoIterator<Item = T>) -> Result<Self, clap::Error> {
        // Negative numbers are values out of range, not unknown options.
        let mut command = Self::command().mut_subcommands(|command| command.allow_negative_numbers(true));
        let matches = command.try_get_matches_from_mut(args)?;
        let cli = Self::from_arg_matches(&matches).map_err(|error| error.format(&mut command))?;
        let asked = matches.subcommand();
        let given = |option: &str| {
            asked.is_some_and(|(_, of)| of.value_source(option) == Some(ValueSource::CommandLine))
        };
        let Some(why) = cli.conflict(&given) else { return Ok(cli) };
        // With the usage of the command that was given.
        let name = matches.subcommand_name().unwrap_or_default();
        let command = match command.find_subcommand_mut(name) {
            Some(found) => found,
            None => &mut Self::command(),
        };
        Err(command.error(ErrorKind::ArgumentConflict, why))
    }

    /// Whether reports are asked for.
    pub fn writes_reports(&self) -> bool {
        let output = self.command.as_ref().map(|command| command.shared().0);
        output.is_some_and(|output| output.json.is_some() || output.html.is_some())
    }

    /// Which tables have huge pages.
    pub fn pages(&self) -> Pages {
        let pages = self.command.as_ref().and_then(|command| command.shared().1);
        pages.map_or(Pages::AsAsked, PagesArgs::chosen)
    }

    /// Why two of the options that are `given` exclude each other.
    fn conflict(&self, given: &dyn Fn(&str) -> bool) -> Option<String> {
        let told = |why: Option<&str>| why.map(str::to_owned);
        let command = self.command.as_ref()?;
        let (traces, own): (&[PathBuf], _) = match command {
            Command::Map(args) => (args.workloads.trace.as_slice(), told(args.conflict(given))),
            Command::Filter(args) => (&[], args.conflict(given)),
            Command::Cache(args) => (&args.trace, args.conflict(given)),
            Command::Latency(args) => (args.workloads.trace.as_slice(), told(args.conflict())),
            Command::Tour(_) | Command::Memory(_) | Command::Guard(_) => (&[], None),
        };
        told(command.shared().0.conflict(traces)).or(own)
    }
}

/// What to measure.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// A tour of about a minute: some of everything (the default)
    Tour(TourArgs),
    /// Throughput of look-ups, writes, mixes, and operations on whole maps
    Map(MapArgs),
    /// Cuckoo filters compared with other filters; with --paper, the tables of the literature
    Filter(FilterArgs),
    /// Caches compared with other caches: hit ratios, then throughput, memory and latency
    Cache(CacheArgs),
    /// Time of single operations, from the median to the longest
    Latency(LatencyArgs),
    /// Bytes per entry
    Memory(MemoryArgs),
    /// Look-ups in redb and fjall, bare and behind a filter, a cache, and both
    Guard(GuardArgs),
}

impl Command {
    /// Where reports go, and which tables have huge pages, if that can be chosen.
    fn shared(&self) -> (&OutputArgs, Option<&PagesArgs>) {
        match self {
            Command::Tour(args) => (&args.output, Some(&args.pages)),
            Command::Map(args) => (&args.output, Some(&args.pages)),
            Command::Filter(args) => (&args.output, Some(&args.pages)),
            Command::Cache(args) => (&args.output, Some(&args.pages)),
            Command::Latency(args) => (&args.output, Some(&args.pages)),
            Command::Memory(args) => (&args.output, None),
            Command::Guard(args) => (&args.output, None),
        }
    }
}

/// Options of `tour`.
#[derive(Debug, Args, Default)]
pub struct TourArgs {
    /// Which tables have huge pages.
    #[command(flatten)]
    pub pages: PagesArgs,
    /// Where reports go.
    #[command(flatten)]
    pub output: OutputArgs,
}

/// Options of `latency`.
#[derive(Debug, Args)]
pub struct LatencyArgs {
    /// What to run after growth and look-ups.
    #[command(flatten)]
    pub workloads: WorkloadArgs,
    /// Numbers of keys, with optional suffix k or M
    #[arg(long, value_delimiter = ',', default_value = "2M", value_parser = values::keys, value_name = "N,..")]
    pub keys: Vec<u64>,
    /// Numbers of threads
    #[arg(long, value_delimiter = ',', default_value = "1", value_parser = values::threads, value_name = "T,..")]
    pub threads: Vec<usize>,
    /// Rounds, in each of which every map is measured once
    #[arg(long, default_value = "3", value_parser = values::rounds, value_name = "N")]
    pub rounds: usize,
    /// Operations of each thread, for look-ups and mixes
    #[arg(long, default_value = "2M", value_parser = values::ops, value_name = "N")]
    pub ops: usize,
    /// Maps to measure [default: all, with a pin per operation]
    #[arg(long, value_delimiter = ',', value_enum, ignore_case = true, value_name = "MAP,..")]
    pub maps: Vec<Id>,
    /// Which tables have huge pages.
    #[command(flatten)]
    pub pages: PagesArgs,
    /// Where reports go.
    #[command(flatten)]
    pub output: OutputArgs,
}

impl LatencyArgs {
    /// Why two of the options exclude each other.
    fn conflict(&self) -> Option<&'static str> {
        self.workloads.conflict().or(self.workloads.shares_with_nobody(&self.threads))
    }
}

/// Options of `memory`.
#[derive(Debug, Args)]
pub struct MemoryArgs {
    /// Numbers of keys, with optional suffix k or M
    #[arg(long, value_delimiter = ',', default_value = "60k,950k", value_parser = values::keys, value_name = "N,..")]
    pub keys: Vec<u64>,
    /// Maps to measure [default: all, with a pin per operation]
    #[arg(long, value_delimiter = ',', value_enum, ignore_case = true, value_name = "MAP,..")]
    pub maps: Vec<Id>,
    /// Where reports go.
    #[command(flatten)]
    pub output: OutputArgs,
}

/// The numbers of threads to measure if none are given.
pub fn default_threads() -> Vec<usize> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    [1, 2, 4].into_iter().filter(|&threads| threads == 1 || threads <= cores).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dist::Dist;
    use crate::workload::Preset;

    #[test]
    fn the_definition_is_consistent() {
        Cli::command().debug_assert();
    }

    fn error(args: &[&str]) -> String {
        let args = std::iter::once("koel-bench").chain(args.iter().copied());
        Cli::checked(args).unwrap_err().to_string()
    }

    #[test]
    fn errors_list_what_is_valid() {
        let preset = error(&["map", "--preset", "Nonsense"]);
        assert!(preset.contains("ReadHeavy") && preset.contains("YCSB-F"), "{preset}");
        let maps = error(&["map", "--maps", "koel,std"]);
        assert!(maps.contains("koel-inline") && maps.contains("papaya"), "{maps}");
        assert!(error(&["map", "--mix", "50/50"]).contains("READ/INSERT/REMOVE/UPDATE"));
        assert!(error(&["map", "--threads", "1,0"]).contains("from 1 to 256"));
        assert!(error(&["map", "--dist", "normal"]).contains("uniform, zipf"));
        assert!(error(&["filters"]).contains("unrecognized subcommand"));
        let filters = error(&["filter", "--filters", "koel,bloom"]);
        assert!(filters.contains("koel-semi-sorted") && filters.contains("qfilter"), "{filters}");
        let workloads = error(&["filter", "--workloads", "hit,read"]);
        assert!(workloads.contains("fill-up") && workloads.contains("churn"), "{workloads}");
        assert!(error(&["filter", "--bits", "8,4"]).contains("from 5 to 31"));
        assert!(error(&["filter", "--paper", "--bits", "8"]).contains("cannot be used with"));
        assert!(error(&["filter", "--paper", "--keys", "1k,2k"]).contains("takes one number of keys"));
        let none = error(&["filter", "--filters", "koel-fixed,cuckoofilter", "--bits", "8,9"]);
        assert!(none.contains("--bits 9: none of --filters"), "{none}");
    }

    #[test]
    fn options_that_would_be_ignored_are_refused() {
        assert!(error(&["map", "--trace", "t", "--keys", "1k"]).contains("the trace says which keys"));
        for command in ["map", "latency"] {
            let dist = error(&[command, "--trace", "t", "--mix", "50/50/0/0", "--dist", "zipf"]);
            assert!(dist.contains("as they stand in the trace"), "{dist}");
        }
        for command in ["map", "latency"] {
            let shared = error(&[command, "--preset", "ycsb-a,ycsb-d", "--shared-writes"]);
            assert!(shared.contains("YCSB-A, -B, -F and MemC3 share"), "{shared}");
            let all_share = ["koel-bench", command, "--preset", "ycsb-a,memc3", "--shared-writes"];
            assert!(Cli::checked(all_share.into_iter().chain(["--threads", "2"])).is_ok());
            for nothing_to_replace in [&["--preset", "ycsb-d"][..], &["--mix", "50/50/0/0", "--trace", "t"]] {
                let args: Vec<&str> =
                    [command, "--replacing"].iter().chain(nothing_to_replace).copied().collect();
                assert!(error(&args).contains("--replacing without a --mix"));
            }
            let args = ["koel-bench", command, "--shared-writes", "--mix", "50/50/0/0", "--threads"];
            let with = |more| args.iter().copied().chain(more);
            assert!(Cli::checked(with(["1,2", "--preset", "ycsb-d"])).is_ok());
            let alone = Cli::checked(with(["1", "--preset", "ycsb-d"])).unwrap_err().to_string();
            assert!(alone.contains("nobody to share"), "{alone}");
        }
        for (command, output) in [("map", "--json"), ("latency", "--html"), ("cache", "--json")] {
            assert!(error(&[command, "--trace", "./t", output, "t"]).contains("overwrite the trace"));
        }
        for command in ["map", "latency"] {
            let dist = error(&[command, "--preset", "ycsb-d", "--dist", "zipf"]);
            assert!(dist.contains("reads the latest keys"), "{dist}");
            for drawn in [&["--mix", "50/50/0/0"][..], &["--preset", "ycsb-a"]] {
                let args = ["koel-bench", command, "--preset", "ycsb-d", "--dist", "zipf"];
                assert!(Cli::checked(args.iter().chain(drawn)).is_ok());
            }
        }
        assert!(
            Cli::checked(["koel-bench", "map", "--grid", "--preset", "ycsb-d", "--dist", "zipf"]).is_ok()
        );
        assert!(error(&["map", "--grid", "--keys", "1k"]).contains("sizes of its own"));
        assert!(error(&["filter", "--grid", "--keys", "1k"]).contains("sizes of its own"));
        assert!(error(&["map", "--grid", "--trace", "t"]).contains("run one, then the other"));
        let grows = error(&["map", "--preset", "RapidGrow", "--ops", "7"]);
        assert!(grows.contains("--preset RapidGrow and --ops"), "{grows}");
        for others in [&["--preset", "exchange"][..], &["--mix", "98/1/1/0"], &["--trace", "t"], &["--grid"]]
        {
            let args = ["koel-bench", "map", "--preset", "RapidGrow", "--ops", "7"];
            assert!(Cli::checked(args.iter().chain(others)).is_ok(), "{others:?}");
        }
        assert!(Cli::checked(["koel-bench", "latency", "--preset", "RapidGrow", "--ops", "7"]).is_ok());
        for workloads in ["insert", "fill-up", "from-keys", "insert,fill-up,from-keys"] {
            let ops = error(&["filter", "--workloads", workloads, "--ops", "5"]);
            assert!(ops.contains("--ops: it is for the workloads hit"), "{ops}");
            assert!(Cli::checked(["koel-bench", "filter", "--workloads", workloads]).is_ok());
        }
        for workloads in ["hit", "miss", "batch", "churn", "insert,hit"] {
            assert!(Cli::checked(["koel-bench", "filter", "--workloads", workloads, "--ops", "5"]).is_ok());
        }
        for command in ["tour", "map", "filter", "cache", "guard", "latency", "memory"] {
            assert!(error(&[command, "--json", "r", "--html", "./r"]).contains("name one file"));
        }
        let args =
            ["koel-bench", "map", "--trace", "t", "--preset", "Exchange", "--keys", "1k", "--dist", "zipf"];
        assert!(Cli::checked(args).is_ok(), "the preset has keys of its own");
    }

    #[test]
    fn lists_are_separated_by_commas() {
        let cli = Cli::parse_from([
            "koel-bench",
            "map",
            "--keys",
            "60k,1M",
            "--threads",
            "1,2",
            "--preset",
            "readheavy,ycsb-a",
            "--maps",
            "koel,inline,papaya",
            "--dist",
            "uniform,zipf:1.1",
            "--mix",
            "90/5/5/0",
        ]);
        let Some(Command::Map(args)) = cli.command else { panic!("expected `map`") };
        assert_eq!(args.keys, [60_000, 1_000_000]);
        assert_eq!(args.threads, [1, 2]);
        assert_eq!(args.workloads.preset, [Preset::ReadHeavy, Preset::YcsbA]);
        assert_eq!(args.maps, [Id::Koel, Id::KoelInline, Id::Papaya]);
        assert_eq!(args.workloads.dist, [Dist::Uniform, Dist::Zipf(1.1)]);
    }
}
