//! Options of `koel-bench guard`.

use std::path::PathBuf;

use clap::Args;

use super::{OutputArgs, values};

/// Options of `guard`.
#[derive(Debug, Args)]
pub struct GuardArgs {
    /// Numbers of keys, with optional suffix k or M
    #[arg(long, value_delimiter = ',', default_value = "1M", value_parser = values::keys, value_name = "N,..")]
    pub keys: Vec<u64>,
    /// Numbers of threads [default: 1, 2, 4, as far as there are cores]
    #[arg(long, value_delimiter = ',', value_parser = values::threads, value_name = "T,..")]
    pub threads: Vec<usize>,
    /// Rounds, in each of which every entrant is measured once
    #[arg(long, default_value = "40", value_parser = values::rounds, value_name = "N")]
    pub rounds: usize,
    /// Seconds of a measurement
    #[arg(long, default_value = "0.1", value_parser = values::seconds, value_name = "S")]
    pub seconds: f64,
    /// Stores to measure [default: all]
    #[arg(long, value_delimiter = ',', value_enum, ignore_case = true, value_name = "STORE,..")]
    pub stores: Vec<StoreId>,
    /// Where the databases are created, and removed again, also after Ctrl-C, SIGTERM and SIGHUP [default: the system's folder
    /// for temporary files]
    #[arg(long, value_name = "FOLDER")]
    pub folder: Option<PathBuf>,
    /// Where reports go.
    #[command(flatten)]
    pub output: OutputArgs,
}

/// A store that the guard can be put before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum StoreId {
    /// A B-tree in a file; each look-up is a transaction of its own.
    Redb,
    /// Log-structured merge trees, with Bloom filters of their own.
    Fjall,
}
