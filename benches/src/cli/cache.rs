//! Options of `koel-bench cache`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::{OutputArgs, PagesArgs, values};
use crate::caches::Id;
use crate::dist::{DEFAULT_ZIPF_EXPONENT, Dist};

/// The sizes of caches by default, in percent of the keys.
pub const CACHE_SIZES: [f64; 3] = [0.1, 1.0, 10.0];

/// Sizes in between, for curves.
pub const CURVE_SIZES: [f64; 5] = [0.2, 0.5, 2.0, 5.0, 20.0];

/// What `cache` can measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CachePart {
    /// Hit ratios, by size of the cache
    HitRatio,
    /// Look-ups that load on a miss, and pure hits, one by one and in batches
    Throughput,
    /// Bytes in addition to key and value
    Memory,
    /// Time of single inserts into a full cache
    Latency,
}

/// Options that only some parts use.
const FOR_PARTS: [(&str, &[CachePart]); 9] = [
    ("entries", &[CachePart::Throughput, CachePart::Memory, CachePart::Latency]),
    ("keys", &[CachePart::Throughput, CachePart::Memory, CachePart::Latency]),
    ("dist", &[CachePart::Throughput, CachePart::Memory, CachePart::Latency]),
    ("ops", &[CachePart::Throughput, CachePart::Memory, CachePart::Latency]),
    ("rounds", &[CachePart::Throughput, CachePart::Latency]),
    ("threads", &[CachePart::Throughput]),
    ("seconds", &[CachePart::Throughput]),
    ("small_pages", &[CachePart::Throughput, CachePart::Latency]),
    ("huge_pages", &[CachePart::Throughput, CachePart::Latency]),
];

/// Options of `cache`.
#[derive(Debug, Args)]
pub struct CacheArgs {
    /// What to measure [default: all; with --trace: hit-ratio]
    #[arg(long, value_delimiter = ',', value_enum, ignore_case = true, value_name = "PART,..")]
    pub part: Vec<CachePart>,
    /// Replay traces: one unsigned integer per line, or CSV with a header that names a column `key`; if there is a column
    /// `size` as well, caches that are bounded by bytes are replayed, too
    #[arg(long, value_delimiter = ',', value_name = "FILE,..")]
    pub trace: Vec<PathBuf>,
    /// Measure hit ratios on generated requests, too; without --trace this is always done
    #[arg(long, requires = "trace")]
    pub generated: bool,
    /// Sizes of caches, in percent of the different keys that are requested, or of their bytes in all [default: 0.1,1,10; with
    /// --html also sizes in between, for curves]
    #[arg(long, value_delimiter = ',', value_parser = values::percent, value_name = "PERCENT,..")]
    pub sizes: Vec<f64>,
    /// Sizes of caches that are bounded by bytes, in MiB [default: as --sizes]
    #[arg(long, value_delimiter = ',', value_parser = values::mebibytes, value_name = "MIB,..", requires = "trace")]
    pub mib: Vec<u64>,
    /// Generated requests of each kind, for a tenth as many keys
    #[arg(long, default_value = "1M", value_parser = values::ops, value_name = "N")]
    pub requests: usize,
    /// Entries of the caches whose throughput, memory and latency are measured
    #[arg(long, default_value = "100k", value_parser = values::entries, value_name = "N")]
    pub entries: usize,
    /// Different keys that may be requested then
    #[arg(long, default_value = "1M", value_parser = values::keys, value_name = "N")]
    pub keys: u64,
    /// How they are drawn: uniform, zipf or zipf:EXPONENT
    #[arg(long, default_value_t = Dist::Zipf(DEFAULT_ZIPF_EXPONENT), value_name = "DIST")]
    pub dist: Dist,
    /// Numbers of threads [default: 1, 2, 4, as far as there are cores]
    #[arg(long, value_delimiter = ',', value_parser = values::threads, value_name = "T,..")]
    pub threads: Vec<usize>,
    /// Rounds, in each of which every cache is measured once
    #[arg(long, default_value = "5", value_parser = values::rounds, value_name = "N")]
    pub rounds: usize,
    /// Requests of each thread in a round, and inserts that are timed in one
    #[arg(long, default_value = "2M", value_parser = values::ops, value_name = "N")]
    pub ops: usize,
    /// A round of pure hits repeats its look-ups until they have taken this long; rounds that load on a miss continue with
    /// other requests
    #[arg(long, default_value = "0.2", value_parser = values::seconds, value_name = "S")]
    pub seconds: f64,
    /// Caches to measure [default: all]
    #[arg(long, value_delimiter = ',', value_enum, ignore_case = true, value_name = "CACHE,..")]
    pub caches: Vec<Id>,
    /// Which tables have huge pages.
    #[command(flatten)]
    pub pages: PagesArgs,
    /// Where reports go.
    #[command(flatten)]
    pub output: OutputArgs,
}

impl CacheArgs {
    /// Whether this part is measured.
    pub fn measures(&self, part: CachePart) -> bool {
        match (self.part.is_empty(), self.trace.is_empty()) {
            (false, _) => self.part.contains(&part),
            (true, true) => true,
            (true, false) => part == CachePart::HitRatio,
        }
    }

    /// Why two of the options that are `given` exclude each other.
    pub(super) fn conflict(&self, given: &dyn Fn(&str) -> bool) -> Option<String> {
        let replays = self.measures(CachePart::HitRatio);
        if !self.trace.is_empty() && !replays {
            return Some(
                "--trace without --part hit-ratio: traces are replayed for hit ratios alone".to_owned(),
            );
        }
        if !self.sizes.is_empty() && !replays {
            return Some(
                "--sizes without --part hit-ratio: what else is measured holds --entries".to_owned(),
            );
        }
        let generates = replays && (self.trace.is_empty() || self.generated);
        if given("requests") && !generates {
            let why = "--requests: none are generated without --part hit-ratio, nor beside --trace without --generated";
            return Some(why.to_owned());
        }
        let idle = |(_, parts): &&(&str, &[CachePart])| !parts.iter().any(|&part| self.measures(part));
        let (option, parts) = FOR_PARTS.iter().filter(|(option, _)| given(option)).find(idle)?;
        let names: Vec<_> = parts.iter().filter_map(CachePart::to_possible_value).collect();
        let names: Vec<&str> = names.iter().map(|name| name.get_name()).collect();
        let option = option.replace('_', "-");
        Some(format!("--{option}: it is for --part {}, and nothing of that is measured", names.join(" or ")))
    }
}
