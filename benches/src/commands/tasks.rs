//! The cells of a throughput run: which workloads, at which sizes, with how many threads.

use std::sync::Arc;

use crate::cli::WorkloadArgs;
use crate::contestants::BATCH;
use crate::dist::Dist;
use crate::trace::Trace;
use crate::whole::Whole;
use crate::workload::{Inserts, Mix, Workload, Writes};

/// The task that is measured in a cell.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Task {
    /// Lookups that hit.
    Hit,
    /// Lookups that miss.
    Miss,
    /// Lookups in batches that hit.
    Batch,
    /// A mix.
    Mix(Workload),
    /// Growing from empty to all keys.
    Fill,
    /// Filling from empty to all keys, in a map that is built for them.
    FillMade,
    /// The same in one call.
    Extend,
    /// Lookups of texts that hit.
    Texts,
    /// An operation on a whole map.
    Whole(Whole),
}

/// One cell.
#[derive(Debug, Clone)]
pub(super) struct Spec {
    pub(super) task: Task,
    pub(super) keys: u64,
    pub(super) threads: usize,
    pub(super) dist: Dist,
    pub(super) trace: Option<Arc<Trace>>,
}

impl Task {
    /// The basic workloads; those that need all the memory come last.
    pub(super) fn basic(args: &WorkloadArgs) -> Vec<Task> {
        let workload = |name, mix| args.workload(name, mix, Workload::replacing);
        let mix = |name, read| Mix::new(read, 100 - read, 0, 0).map(|mix| Task::Mix(workload(name, mix)));
        let mixes = [mix("95/5 get/insert", 95), mix("50/50 get/insert", 50)];
        let mut tasks = vec![Task::Hit, Task::Miss, Task::Batch];
        tasks.extend(mixes.into_iter().flatten());
        tasks.extend([Task::Fill, Task::FillMade, Task::Extend, Task::Texts]);
        tasks
    }

    /// The presets that are asked for, and the mixes, unless a trace gives the mixes their keys.
    pub(super) fn chosen(args: &WorkloadArgs) -> Vec<Task> {
        let presets = args.preset.iter().map(|preset| preset.workload());
        let mixes = if args.trace.is_none() { args.mix.as_slice() } else { &[] };
        let mixes = mixes.iter().map(|&mix| args.churning(&mix_name(mix), mix));
        presets.chain(mixes).map(Task::Mix).collect()
    }

    /// The tasks on the keys of a trace: lookups, and the mixes that are asked for, or else some writes.
    pub(super) fn replays(args: &WorkloadArgs) -> Vec<Task> {
        let mut mixes = args.mix.clone();
        if mixes.is_empty() {
            mixes.extend(Mix::new(95, 5, 0, 0));
        }
        let replay = |mix| {
            let name = format!("trace, {}", mix_name(mix));
            Task::Mix(args.workload(&name, mix, Workload::replacing))
        };
        std::iter::once(Task::Hit).chain(mixes.into_iter().map(replay)).collect()
    }

    fn name(&self) -> String {
        match self {
            Task::Hit => "get hit".to_owned(),
            Task::Miss => "get miss".to_owned(),
            Task::Batch => format!("get_many of {BATCH}"),
            Task::Mix(workload) => workload.name.clone(),
            Task::Fill => "fill from empty".to_owned(),
            Task::FillMade => "fill, made for it".to_owned(),
            Task::Extend => "extend from empty".to_owned(),
            Task::Texts => "get hit, String keys".to_owned(),
            Task::Whole(what) => what.name().to_owned(),
        }
    }

    /// What the workload does, in words.
    pub(super) fn about(&self) -> String {
        match self {
            Task::Hit => {
                "Lookups of keys that are there; the map is built for its keys and holds them all.".to_owned()
            }
            Task::Miss => {
                "Lookups of absent keys; the map is built for its keys and holds them all.".to_owned()
            }
            Task::Batch => {
                format!(
                    "Lookups of present keys, {BATCH} at a time, with one pin or lock for all; one by one where a map has no \
                     such call."
                )
            }
            Task::Fill => "Inserts by one thread into a map that is built without a capacity.".to_owned(),
            Task::FillMade => "Inserts by one thread into a map that is built for as many.".to_owned(),
            Task::Extend => "All keys in one call, from an iterator that knows how many there are, into a map that is built \
                             without a capacity and that nobody else uses; one by one where a map has no such call."
                .to_owned(),
            Task::Texts => "String to String, 20 bytes each; lookups of keys that are there.".to_owned(),
            Task::Whole(what) => what.about(),
            Task::Mix(workload) => {
                let Mix { read, insert, remove, update } = workload.mix;
                let inserts = if workload.inserts == Inserts::Fresh { "new" } else { "replacing" };
                let writes = match workload.writes {
                    Writes::Own => "each thread writes keys of its own",
                    Writes::Shared => "threads write the same keys",
                };
                format!(
                    "{read}% get, {insert}% insert ({inserts}), {remove}% remove, {update}% update; {writes}; \
                     {}% of the keys are there at the start.",
                    workload.filled_percent
                )
            }
        }
    }

    /// Whether it is done by one thread, and no key is drawn for it.
    fn is_single_threaded(&self) -> bool {
        matches!(self, Task::Fill | Task::FillMade | Task::Extend | Task::Whole(_))
    }

    /// The distributions to run it with if those of `chosen` are asked for.
    fn dists(&self, chosen: &[Dist]) -> Vec<Dist> {
        match self {
            _ if self.is_single_threaded() => vec![Dist::Uniform],
            Task::Mix(workload) if workload.dist == Dist::Latest || chosen.is_empty() => vec![workload.dist],
            _ if chosen.is_empty() => vec![Dist::Uniform],
            _ => chosen.to_vec(),
        }
    }

    /// The cells at one size.
    pub(super) fn specs(&self, keys: u64, threads: &[usize], dists: &[Dist]) -> Vec<Spec> {
        let threads = if self.is_single_threaded() { &[1] } else { threads };
        let mut specs = Vec::new();
        for dist in self.dists(dists) {
            let spec = |&threads| Spec { task: self.clone(), keys, threads, dist, trace: None };
            specs.extend(threads.iter().map(spec));
        }
        specs
    }

    /// The cells that replay `trace`.
    pub(super) fn replay_specs(&self, trace: &Arc<Trace>, threads: &[usize]) -> Vec<Spec> {
        let keys = trace.keys.len() as u64;
        let spec = |&threads| {
            let trace = Some(trace.clone());
            Spec { task: self.clone(), keys, threads, dist: Dist::Uniform, trace }
        };
        threads.iter().map(spec).collect()
    }
}

impl Spec {
    /// The workload's name in the tables.
    pub(super) fn name(&self) -> String {
        match (&self.trace, &self.task) {
            (Some(_), Task::Hit) => "trace, get hit".to_owned(),
            _ => self.task.name(),
        }
    }

    /// What tables say about how keys are drawn.
    pub(super) fn dist_name(&self) -> String {
        if self.trace.is_some() { "as in the trace".to_owned() } else { self.dist.to_string() }
    }
}

fn mix_name(mix: Mix) -> String {
    format!("mix {mix}")
}
