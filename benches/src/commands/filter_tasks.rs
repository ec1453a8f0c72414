//! What `koel-bench filter` measures: the workloads, their plans, and koel's aims for them.

use clap::ValueEnum;

use crate::entrant::{FilterEntrant, Making, filter_entrant};
use crate::error::CheckError;
use crate::filters::{Id, Task};
use crate::keys;
use crate::plan::{self, ChurnPlan};
use crate::report::Against;

/// With fewer keys none would stay while others are removed and inserted; the message of [`Task::why_not`] has this number.
const FEWEST_CHURNED: u64 = 16;

/// From this many keys on, filters are far larger than the processor's caches.
const MANY_KEYS: u64 = 4_000_000;

impl Task {
    /// Whether this workload exists for so many keys and threads.
    pub(super) fn exists(self, keys: u64, threads: usize) -> bool {
        match self {
            Task::FillUp => threads == 1,
            Task::Churn => threads > 1 && keys >= FEWEST_CHURNED,
            _ => true,
        }
    }

    /// Why the request for it is in vain, if it exists at none of `sizes` and `threads`.
    pub(super) fn why_not(self, sizes: &[u64], threads: &[usize]) -> Option<&'static str> {
        let exists = |&keys: &u64| threads.iter().any(|&threads| self.exists(keys, threads));
        let needs = match self {
            Task::Churn => "--workloads churn: it takes two threads or more, and 16 keys",
            _ => "--workloads fill-up: it is for one thread, and --threads names others alone",
        };
        (!sizes.iter().any(exists)).then_some(needs)
    }

    /// Why the request for it is in vain, if none of `filters` can take part, with any of `bits` and `threads`.
    pub(super) fn taken_by_none(self, filters: &[Id], bits: &[u32], threads: &[usize]) -> Option<String> {
        let takes = |id: Id, bits: u32| {
            let entrant = filter_entrant(id, bits);
            threads.iter().any(|&threads| self.takes(&*entrant, threads))
        };
        let is_taken = |&id: &Id| bits.iter().any(|&bits| id.takes_bits(bits) && takes(id, bits));
        if filters.iter().any(is_taken) {
            return None;
        }
        let needs = match self {
            Task::Insert => "takes part with so many threads, and koel-fixed is for look-ups alone",
            Task::FillUp => "has a number of slots that stays as it is",
            Task::FromKeys => "has a way of its own to be built of all keys at once",
            Task::Hit | Task::Miss => "can be built",
            Task::Batch => "has a way of its own to look up batches",
            Task::Churn => "can remove keys",
        };
        let name = self.to_possible_value()?.get_name().to_owned();
        Some(format!("--workloads {name}: none of --filters {needs}"))
    }

    /// Whether a filter can take part.
    pub(super) fn takes(self, entrant: &dyn FilterEntrant, threads: usize) -> bool {
        match self {
            Task::Insert => !entrant.lookups_only() && (threads == 1 || entrant.shares_writes()),
            Task::FillUp => entrant.fixed_slots(),
            Task::FromKeys => entrant.at_once(),
            Task::Hit | Task::Miss => true,
            Task::Batch => entrant.batches(),
            Task::Churn => entrant.removes(),
        }
    }

    /// What each filter's figure is compared with, in addition to other filters' figures: in words, and the plan.
    pub(super) fn base(self, keys: u64, threads: usize, ops: usize) -> Option<(String, Plan)> {
        let of = |task: Task, threads| {
            let words = format!("{}, {}", task.name(), crate::report::threads_in_words(threads));
            Some((words, Plan::new(task, keys, threads, ops)))
        };
        match self {
            Task::FromKeys if threads == 1 => {
                Some(("insert one by one".to_owned(), Plan::made(keys, Making::OneByOne)))
            }
            Task::Batch => of(Task::Hit, threads),
            Task::Churn => of(Task::Hit, 1),
            _ if threads > 1 => of(self, 1),
            _ => None,
        }
    }

    /// koel's aims: which of its filters, compared with what, is to be how many times as fast.
    pub(super) fn aims(self, keys: u64, bits: u32, threads: usize) -> Vec<(Id, Against, f64)> {
        match (self, threads) {
            (Task::FillUp, 1) if bits == 8 => vec![(Id::Koel, Against::BestRival, 1.5)],
            (Task::FromKeys, 1) => vec![(Id::Koel, Against::Own, 1.5)],
            (Task::FromKeys | Task::Churn, 2) => vec![(Id::Koel, Against::Own, 1.7)],
            (Task::Hit | Task::Miss, 1) => vec![
                (Id::Koel, Against::BestRival, 3.0),
                (Id::KoelSemiSorted, Against::BestRival, 1.5),
                // Choosing the layout at run time may cost a tenth.
                (Id::Koel, Against::Filter(Id::KoelFixed), 0.9),
            ],
            (Task::Batch, 1) if keys >= MANY_KEYS => vec![(Id::Koel, Against::Own, 1.5)],
            _ => Vec::new(),
        }
    }
}

/// A task with its keys.
pub(super) enum Plan {
    Insert { keys: u64, threads: usize },
    FillUp { keys: u64 },
    Make { keys: Vec<u64>, making: Making },
    Read { lookups: Vec<Vec<u64>>, present: bool, batched: bool },
    Churn(ChurnPlan),
}

impl Plan {
    pub(super) fn new(task: Task, keys: u64, threads: usize, ops: usize) -> Self {
        let present =
            |batched| Plan::Read { lookups: plan::present(keys, threads, ops), present: true, batched };
        match task {
            Task::Insert => Plan::Insert { keys, threads },
            Task::FillUp => Plan::FillUp { keys },
            Task::FromKeys if threads == 1 => Plan::made(keys, Making::AtOnce),
            Task::FromKeys => Plan::made(keys, Making::OnThreads(threads)),
            Task::Hit => present(false),
            Task::Batch => present(true),
            Task::Miss => Plan::Read { lookups: plan::absent(threads, ops), present: false, batched: false },
            Task::Churn => Plan::Churn(plan::churn(keys, threads, ops)),
        }
    }

    fn made(keys: u64, making: Making) -> Self {
        Plan::Make { keys: (0..keys).map(keys::key).collect(), making }
    }

    pub(super) fn run(
        &self,
        entrant: &mut dyn FilterEntrant,
        bits: u32,
        seconds: f64,
    ) -> Result<f64, CheckError> {
        match self {
            Plan::Insert { keys, threads } => entrant.fill(*keys, bits, *threads, seconds),
            Plan::FillUp { keys } => entrant.fill_up(*keys, bits, seconds),
            Plan::Make { keys, making } => entrant.make(keys, bits, *making, seconds),
            Plan::Read { lookups, present, batched } => entrant.read(lookups, *present, *batched, seconds),
            Plan::Churn(plan) => entrant.churn(plan, seconds),
        }
    }
}
