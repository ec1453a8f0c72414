//! Options that choose workloads.

use std::path::PathBuf;

use clap::Args;

use crate::dist::Dist;
use crate::workload::{Mix, Preset, Workload, Writes};

/// Options that choose workloads.
#[derive(Debug, Args, Default)]
pub struct WorkloadArgs {
    /// Named mixes of operations
    #[arg(long, value_delimiter = ',', value_enum, ignore_case = true, value_name = "NAME,..")]
    pub preset: Vec<Preset>,
    /// Percentages READ/INSERT/REMOVE/UPDATE that add up to 100, as in 98/1/1/0; with --trace, of its keys
    #[arg(long, value_delimiter = ',', value_name = "READ/INSERT/REMOVE/UPDATE,..")]
    pub mix: Vec<Mix>,
    /// How keys are drawn: uniform, zipf or zipf:EXPONENT [default: uniform; YCSB presets have their own]
    #[arg(long, value_delimiter = ',', value_name = "DIST,..")]
    pub dist: Vec<Dist>,
    /// For --mix: the map begins with all keys, and inserts, removals and updates draw theirs as reads do; otherwise it begins
    /// three quarters full, inserts bring new keys, and removals take any key that is there
    #[arg(long)]
    pub replacing: bool,
    /// Threads write the same keys, instead of keys of their own; for --mix, with --replacing. YCSB-A, -B, -F and MemC3 do so
    /// anyway; the other presets, which insert new keys, do not
    #[arg(long)]
    pub shared_writes: bool,
    /// Replay the keys of a trace: one unsigned integer per line, or CSV with a header that names a column `key`. Each thread
    /// begins at a place of its own and wraps around. Without --mix: look-ups, and 95/5/0/0; inserts replace
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
}

impl WorkloadArgs {
    /// Whether no workload is chosen.
    pub fn is_empty(&self) -> bool {
        self.preset.is_empty() && self.mix.is_empty() && self.trace.is_none()
    }

    /// The workload of a mix: that of `own`, in which threads write keys of their own, unless they are to write the same keys.
    pub fn workload(&self, name: &str, mix: Mix, own: fn(&str, Mix) -> Workload) -> Workload {
        if self.shared_writes {
            Workload::shared(&format!("{name}, shared writes"), mix)
        } else {
            own(name, mix)
        }
    }

    /// The workload of a mix whose inserts bring new keys, unless something else is asked for.
    pub fn churning(&self, name: &str, mix: Mix) -> Workload {
        if self.replacing && !self.shared_writes {
            Workload::replacing(&format!("{name}, replacing"), mix)
        } else {
            self.workload(name, mix, Workload::churning)
        }
    }

    /// Why keys cannot be shared with these numbers of threads.
    pub(super) fn shares_with_nobody(&self, threads: &[usize]) -> Option<&'static str> {
        // If none are given, several threads are used, as far as there are cores.
        let is_alone = !threads.is_empty() && threads.iter().all(|&threads| threads == 1);
        (self.shared_writes && is_alone).then_some(
            "--shared-writes and one thread: there is nobody to share keys with; ask for more by --threads",
        )
    }

    /// Why two of the options exclude each other.
    pub(super) fn conflict(&self) -> Option<&'static str> {
        let from_trace = self.trace.is_some();
        let presets_alone = self.mix.is_empty() && !from_trace && !self.preset.is_empty();
        let all_share = self.preset.iter().all(|preset| preset.workload().writes == Writes::Shared);
        if self.shared_writes && presets_alone && !all_share {
            Some(
                "--preset and --shared-writes: of the presets, YCSB-A, -B, -F and MemC3 share their keys, and the others, which \
                 insert new ones, cannot; what can is --mix, --trace and the basic workloads",
            )
        } else if self.replacing && (self.mix.is_empty() || from_trace) {
            Some("--replacing without a --mix that it could be for: all else says itself what it inserts")
        } else if self.dist.is_empty() {
            None
        } else if from_trace && self.preset.is_empty() {
            Some("--trace and --dist: keys are replayed as they stand in the trace, and not drawn")
        } else {
            let fixed = |preset: &Preset| preset.workload().dist == Dist::Latest;
            let drawn = self.preset.is_empty() || !self.preset.iter().all(fixed);
            let ignored = !drawn && (from_trace || self.mix.is_empty());
            ignored
                .then_some("--preset YCSB-D and --dist: it reads the latest keys, however others are drawn")
        }
    }
}
