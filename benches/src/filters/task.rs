//! The workloads of filters.

use clap::ValueEnum;

use crate::contestants::BATCH;

/// A workload, in the order in which they are measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Task {
    /// Build a filter for the keys, and insert each
    Insert,
    /// Inserts until 95% of the slots are taken
    FillUp,
    /// Build a filter from all keys at once
    FromKeys,
    /// contains of keys that are there
    Hit,
    /// contains of keys that are absent
    Miss,
    /// contains_many of keys that are there
    Batch,
    /// contains on all threads while the first also writes
    Churn,
}

impl Task {
    /// Its name in the tables.
    pub fn name(self) -> String {
        match self {
            Task::Insert => "insert".to_owned(),
            Task::FillUp => "insert to 95%".to_owned(),
            Task::FromKeys => "from_keys".to_owned(),
            Task::Hit => "contains hit".to_owned(),
            Task::Miss => "contains miss".to_owned(),
            Task::Batch => format!("contains_many of {BATCH}"),
            Task::Churn => "contains beside a writer".to_owned(),
        }
    }

    /// Whether it does as many look-ups as are asked for, and not a number that depends on its keys.
    pub fn counts_lookups(self) -> bool {
        match self {
            Task::Insert | Task::FillUp | Task::FromKeys => false,
            Task::Hit | Task::Miss | Task::Batch | Task::Churn => true,
        }
    }

    /// What it does, in words.
    pub fn about(self) -> String {
        match self {
            Task::Insert => "Builds a filter for so many keys and inserts them. Tables of a power of two slots are less full \
                             then than koel's. Filters that need a lock for that take part with one thread."
                .to_owned(),
            Task::FillUp => "Inserts by one thread until 95% of a filter's slots are taken, or until a key finds no room."
                .to_owned(),
            Task::FromKeys => "A filter of all keys at once, on several threads by rayon; beside inserts one by one into a \
                               filter of the same size, or beside one thread."
                .to_owned(),
            Task::Hit => "Look-ups of keys that are there; who gives a false negative is out.".to_owned(),
            Task::Miss => "Look-ups of absent keys; false positives are counted and compared with what is expected."
                .to_owned(),
            Task::Batch => format!("Look-ups of present keys, {BATCH} at a time, where there is such a call."),
            Task::Churn => "Look-ups of present keys on all threads in a full filter, while the first thread also \
                            removes and inserts keys: each is one operation of its 16. Behind a read-write lock where \
                            writing needs one. Filters that cannot remove do not take part."
                .to_owned(),
        }
    }
}
