//! Options of `koel-bench map`.

use clap::Args;

use super::{OutputArgs, PagesArgs, WorkloadArgs, values};
use crate::contestants::Id;
use crate::whole::Whole;
use crate::workload::Preset;

/// The sizes that `map` measures by default: one inside the caches, one around their size.
pub const DEFAULT_KEYS: [u64; 2] = [60_000, 950_000];

/// The sizes of `map --grid`; the last far exceeds the caches.
pub const GRID_KEYS: [u64; 3] = [60_000, 950_000, 7_600_000];

/// Options of `map`.
#[derive(Debug, Args)]
pub struct MapArgs {
    /// What to run instead of the basic workloads.
    #[command(flatten)]
    pub workloads: WorkloadArgs,
    /// Operations on a whole map, by one thread, in place of the basic workloads
    #[arg(long, value_delimiter = ',', value_enum, ignore_case = true, value_name = "WHAT,..")]
    pub whole: Vec<Whole>,
    /// Run the basic workloads (gets, mixes of gets and inserts, batches, filling, texts) at 60,000, 950,000 and
    /// 7,600,000 keys; takes about a quarter of an hour and 10 GB
    #[arg(long)]
    pub grid: bool,
    /// Numbers of keys, with optional suffix k or M [default: 60k,950k]
    #[arg(long, value_delimiter = ',', value_parser = values::keys, value_name = "N,..")]
    pub keys: Vec<u64>,
    /// Numbers of threads [default: 1, 2, 4, as far as there are cores]
    #[arg(long, value_delimiter = ',', value_parser = values::threads, value_name = "T,..")]
    pub threads: Vec<usize>,
    /// Rounds, in each of which every map is measured once
    #[arg(long, default_value = "5", value_parser = values::rounds, value_name = "N")]
    pub rounds: usize,
    /// Operations of each thread in one pass
    #[arg(long, default_value = "1M", value_parser = values::ops, value_name = "N")]
    pub ops: usize,
    /// A round repeats passes and fillings until they have taken this long, or the round twenty times as long: a map that no
    /// longer holds what a pass begins with is rebuilt in between, and that is not timed
    #[arg(long, default_value = "0.1", value_parser = values::seconds, value_name = "S")]
    pub seconds: f64,
    /// Maps to measure [default: all]
    #[arg(long, value_delimiter = ',', value_enum, ignore_case = true, value_name = "MAP,..")]
    pub maps: Vec<Id>,
    /// Which tables have huge pages.
    #[command(flatten)]
    pub pages: PagesArgs,
    /// Where reports go.
    #[command(flatten)]
    pub output: OutputArgs,
}

impl MapArgs {
    /// Why two of the options that are `given` exclude each other.
    pub(super) fn conflict(&self, given: &dyn Fn(&str) -> bool) -> Option<&'static str> {
        let WorkloadArgs { preset, trace, mix, .. } = &self.workloads;
        // With a trace, presets still have sizes and distributions, and operations on whole maps have sizes; mixes get their
        // keys from the trace.
        let trace_alone = trace.is_some() && preset.is_empty() && self.whole.is_empty();
        let presets_alone = !preset.is_empty() && mix.is_empty() && trace.is_none() && !self.grid;
        let says_itself = |preset: &Preset| preset.workload().ops_percent.is_some();
        if self.grid && !self.keys.is_empty() {
            Some("--grid and --keys: the grid has sizes of its own; without --grid the same runs at --keys")
        } else if self.grid && trace.is_some() {
            Some(
                "--grid and --trace: the grid draws its keys at its own sizes, a trace brings them; run one, then the other",
            )
        } else if trace_alone && !self.keys.is_empty() {
            Some("--trace and --keys: the trace says which keys there are, and how many")
        } else if given("ops") && presets_alone && preset.iter().all(says_itself) {
            Some(
                "--preset RapidGrow and --ops: it does as many operations as the map takes to grow to its keys",
            )
        } else {
            // The grid's basic workloads draw their keys.
            let own = self.workloads.conflict().filter(|_| !self.grid);
            own.or(self.ignored_by_whole(given)).or(self.workloads.shares_with_nobody(&self.threads))
        }
    }

    /// Why operations on whole maps, if nothing else is asked for, would ignore one of the options that are `given`.
    fn ignored_by_whole(&self, given: &dyn Fn(&str) -> bool) -> Option<&'static str> {
        if self.whole.is_empty() || self.grid || !self.workloads.is_empty() {
            None
        } else if given("ops") {
            Some("--whole and --ops: a pass does it once, to all entries")
        } else if given("dist") {
            Some("--whole and --dist: it is done to all keys, and none is drawn")
        } else if self.workloads.shared_writes {
            Some("--whole and --shared-writes: one thread does it, and nobody writes beside it")
        } else if self.threads.iter().any(|&threads| threads != 1) {
            Some("--whole and --threads: one thread does it; how many there are is for other workloads")
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Cli, Command};
    use super::*;

    fn parsed(options: &str) -> Result<MapArgs, String> {
        let args = ["koel-bench", "map"].into_iter().chain(options.split(' '));
        match Cli::checked(args).map_err(|error| error.to_string())?.command {
            Some(Command::Map(args)) => Ok(args),
            other => Err(format!("{other:?}")),
        }
    }

    #[test]
    fn what_is_done_to_whole_maps_is_a_list_in_any_case() {
        let args = parsed("--whole walk,CLONE,Retain --whole clear --keys 60k --threads 1").unwrap();
        assert_eq!(args.whole, [Whole::Walk, Whole::Clone, Whole::Retain, Whole::Clear]);
        let unknown = parsed("--whole walk,drain").unwrap_err();
        assert!(unknown.contains("'drain'") && unknown.contains("walk, clone, retain, clear"), "{unknown}");
        assert!(parsed("--whole").is_err());
    }

    #[test]
    fn what_whole_maps_would_ignore_is_refused_unless_others_do_not() {
        for (option, why) in [
            ("--ops 1k", "--whole and --ops"),
            ("--dist zipf", "--whole and --dist"),
            ("--threads 2", "--whole and --threads"),
            ("--threads 1,2", "--whole and --threads"),
            ("--shared-writes", "--whole and --shared-writes"),
            ("--shared-writes --threads 1", "--whole and --shared-writes"),
            ("--replacing", "--replacing without a --mix"),
        ] {
            let refused = parsed(&format!("--whole clone {option}")).unwrap_err();
            assert!(refused.contains(why), "{option}: {refused}");
        }
        for others in ["--preset memc3", "--mix 98/1/1/0", "--grid"] {
            for option in ["--ops 1k", "--dist zipf", "--threads 1,2", "--shared-writes --threads 2"] {
                parsed(&format!("--whole clone {others} {option}")).unwrap();
            }
        }
        parsed("--whole clone --trace t --ops 1k --threads 2 --keys 1k").unwrap();
        let drawn = parsed("--whole clone --trace t --dist zipf").unwrap_err();
        assert!(drawn.contains("--trace and --dist"), "{drawn}");
        let grows = parsed("--whole clone --preset RapidGrow --ops 7").unwrap_err();
        assert!(grows.contains("--preset RapidGrow and --ops"), "{grows}");
    }
}
