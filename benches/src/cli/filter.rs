//! Options of `koel-bench filter`.

use clap::Args;

use super::{OutputArgs, PagesArgs, values};
use crate::filters::{Id, Task};

/// The sizes that `filter` measures by default.
pub const FILTER_KEYS: [u64; 1] = [950_000];

/// The sizes of `filter --grid`; the last far exceeds the caches.
pub const FILTER_GRID_KEYS: [u64; 2] = [950_000, 7_600_000];

/// The number of keys of the filters of `filter --paper`.
pub const PAPER_KEYS: u64 = 1_000_000;

/// Options of `filter`.
#[derive(Debug, Args)]
pub struct FilterArgs {
    /// Reproduce the tables of the literature instead: load factors, bits per key, error rates, inserts against load, Bloom
    /// filters, collisions of hash functions; next to the published figures
    #[arg(long, conflicts_with_all = ["grid", "bits", "threads", "ops", "seconds", "workloads", "filters", "small_pages", "huge_pages"])]
    pub paper: bool,
    /// Measure at 950,000 and 7,600,000 keys
    #[arg(long)]
    pub grid: bool,
    /// Numbers of keys, with optional suffix k or M [default: 950k; with --paper 1M, and only one]
    #[arg(long, value_delimiter = ',', value_parser = values::keys, value_name = "N,..")]
    pub keys: Vec<u64>,
    /// Bits of a slot: 5 to 31. Semi-sorted buckets have fingerprints that are one bit longer in the same memory; other kinds
    /// of filters are built for the error rate of a cuckoo filter with fingerprints of as many bits
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "8,12,16",
        value_parser = values::bits,
        value_name = "BITS,.."
    )]
    pub bits: Vec<u32>,
    /// Numbers of threads [default: 1, 2, 4, as far as there are cores]
    #[arg(long, value_delimiter = ',', value_parser = values::threads, value_name = "T,..")]
    pub threads: Vec<usize>,
    /// Rounds, in each of which every filter is measured once
    #[arg(long, default_value = "5", value_parser = values::rounds, value_name = "N")]
    pub rounds: usize,
    /// Look-ups of each thread in one pass
    #[arg(long, default_value = "1M", value_parser = values::ops, value_name = "N")]
    pub ops: usize,
    /// A round repeats passes and fillings until they have taken this long
    #[arg(long, default_value = "0.1", value_parser = values::seconds, value_name = "S")]
    pub seconds: f64,
    /// What to measure [default: all]
    #[arg(long, value_delimiter = ',', value_enum, ignore_case = true, value_name = "WORKLOAD,..")]
    pub workloads: Vec<Task>,
    /// Filters to measure [default: all]
    #[arg(long, value_delimiter = ',', value_enum, ignore_case = true, value_name = "FILTER,..")]
    pub filters: Vec<Id>,
    /// Which tables have huge pages.
    #[command(flatten)]
    pub pages: PagesArgs,
    /// Where reports go.
    #[command(flatten)]
    pub output: OutputArgs,
}

impl FilterArgs {
    /// Why two of the options that are `given` exclude each other.
    pub(super) fn conflict(&self, given: &dyn Fn(&str) -> bool) -> Option<String> {
        if self.grid && !self.keys.is_empty() {
            return Some(
                "--grid and --keys: the grid has sizes of its own; without --grid the same runs at --keys"
                    .to_owned(),
            );
        }
        if self.paper && self.keys.len() > 1 {
            return Some("--paper takes one number of keys, as in --keys 1M".to_owned());
        }
        let looks_up = self.workloads.is_empty() || self.workloads.iter().any(|task| task.counts_lookups());
        if given("ops") && !looks_up {
            let why =
                "--ops: it is for the workloads hit, miss, batch and churn, and none of these is measured";
            return Some(why.to_owned());
        }
        let taken = |bits: u32| self.filters.is_empty() || self.filters.iter().any(|id| id.takes_bits(bits));
        let bits = self.bits.iter().find(|bits| !taken(**bits))?;
        Some(format!("--bits {bits}: none of --filters has so many"))
    }
}
