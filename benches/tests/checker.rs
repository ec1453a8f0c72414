//! The checks fail on broken maps, each with a fault of its own, and pass on sound ones.

use std::cell::Cell;
use std::thread;
use std::time::{Duration, Instant};

use clap::ValueEnum;
use koel_bench::contestants::{Contestant, Id, RwLockHashbrown, TextContestant, TextView, View};
use koel_bench::dist::Dist;
use koel_bench::entrant::{Entrant, Runner, TextEntrant, TextRunner, entrant, text_entrant};
use koel_bench::error::CheckError;
use koel_bench::plan::{self, Action, Expect, MixPlan, Prediction};
use koel_bench::stopwatch::Stopwatch;
use koel_bench::trace;
use koel_bench::whole::Whole;
use koel_bench::workload::{Preset, Workload};

const KEYS: u64 = 2_000;
const OPS: usize = 5_000;
const THREADS: usize = 2;

const SOUND: u8 = 0;
const LOSES_KEYS: u8 = 1;
const WRONG_VALUES: u8 = 2;
const STALE_VALUES: u8 = 3;
const KEEPS_REMOVED: u8 = 4;
const FORGETS_UPDATES: u8 = 5;
const MISCOUNTS: u8 = 6;
const INVENTS_KEYS: u8 = 7;
/// As [`LOSES_KEYS`], and admits it.
const MAY_LOSE_KEYS: u8 = 8;
/// As [`SOUND`], but slow to count.
const COUNTS_SLOWLY: u8 = 9;
/// Returns values of the right keys, but of later versions.
const WRONG_VERSIONS: u8 = 10;

/// Returns removed values with another version.
const WRONG_REMOVED: u8 = 11;

/// How long counting takes.
const COUNTING: Duration = Duration::from_millis(500);

thread_local! {
    /// Maps that this thread has made.
    static MADE: Cell<usize> = const { Cell::new(0) };
}

/// A map that is right except for one fault.
struct Faulty<const FAULT: u8>(RwLockHashbrown<u64, u64>);

impl<const FAULT: u8> Contestant for Faulty<FAULT> {
    const NAME: &'static str = "faulty";
    const MAY_MISS_REPLACED: bool = FAULT == MAY_LOSE_KEYS;
    type View<'m> = &'m Self;

    fn with_capacity(capacity: usize) -> Self {
        MADE.set(MADE.get() + 1);
        Faulty(Contestant::with_capacity(capacity))
    }

    fn view(&self) -> &Self {
        self
    }

    fn entries(&self) -> usize {
        if FAULT == COUNTS_SLOWLY {
            thread::sleep(COUNTING);
        }
        self.0.entries() + usize::from(FAULT == MISCOUNTS && self.0.entries() > KEYS as usize / 2)
    }

    fn sum(&self) -> u64 {
        self.0.sum()
    }

    fn duplicate(&self) -> Self {
        Faulty(self.0.duplicate())
    }

    fn retain(&self, keep: impl Fn(u64) -> bool) {
        self.0.retain(keep);
    }

    fn clear(&self) {
        self.0.clear();
    }
}

impl<const FAULT: u8> View for &Faulty<FAULT> {
    fn get(&self, key: u64) -> Option<u64> {
        let found = (&self.0).get(key);
        match FAULT {
            LOSES_KEYS | MAY_LOSE_KEYS if key % 1000 < 5 => None,
            WRONG_VALUES if key % 1000 < 5 => found.map(|value| value ^ (1 << 40)),
            WRONG_VERSIONS if key % 1000 < 5 => found.map(|value| value ^ 1),
            INVENTS_KEYS if key % 1000 < 5 => Some(7),
            _ => found,
        }
    }

    fn insert(&self, key: u64, value: u64) -> Option<u64> {
        match (&self.0).get(key) {
            Some(old) if FAULT == STALE_VALUES && key % 100 < 5 => Some(old),
            _ => (&self.0).insert(key, value),
        }
    }

    fn remove(&self, key: u64) -> Option<u64> {
        if FAULT == KEEPS_REMOVED && key % 100 < 5 {
            return (&self.0).get(key);
        }
        if FAULT == WRONG_REMOVED && key % 100 < 5 {
            return (&self.0).remove(key).map(|value| value ^ 1);
        }
        (&self.0).remove(key)
    }

    fn update(&self, key: u64) -> Option<u64> {
        if FAULT == FORGETS_UPDATES && key % 100 < 5 {
            return (&self.0).get(key).map(|value| value + 1);
        }
        (&self.0).update(key)
    }
}

/// A map of texts in which every hundredth value belongs to another key.
struct FaultyTexts(RwLockHashbrown<String, String>);

impl TextContestant for FaultyTexts {
    const NAME: &'static str = "faulty";
    type View<'m> = &'m Self;

    fn with_capacity(capacity: usize) -> Self {
        FaultyTexts(TextContestant::with_capacity(capacity))
    }

    fn insert_text(&self, key: String, value: String) -> bool {
        let value = if key.ends_with('7') { "data0123456789abcdef".to_owned() } else { value };
        self.0.insert_text(key, value)
    }

    fn view(&self) -> &Self {
        self
    }
}

impl TextView for &FaultyTexts {
    fn read<R>(&self, key: &str, read: impl FnOnce(&str) -> R) -> Option<R> {
        (&self.0).read(key, read)
    }
}

fn preset(preset: Preset, threads: usize) -> MixPlan {
    let workload = preset.workload();
    plan::mixed(&workload, KEYS, workload.dist, threads, OPS, None).unwrap()
}

/// A mix of threads that write the same keys.
fn shared(percentages: &str) -> MixPlan {
    let workload = Workload::shared("shared", percentages.parse().unwrap());
    plan::mixed(&workload, KEYS, workload.dist, THREADS, OPS, None).unwrap()
}

fn mix<const FAULT: u8>(plan: &MixPlan) -> Result<f64, CheckError> {
    Runner::<Faulty<FAULT>>::new().mix(plan, 0.0)
}

fn lookups<const FAULT: u8>(present: bool, batched: bool) -> Result<f64, CheckError> {
    let plan = plan::reads(KEYS, Dist::Uniform, THREADS, OPS, present).unwrap();
    Runner::<Faulty<FAULT>>::new().read(&plan, batched, 0.0)
}

fn whole<const FAULT: u8>(what: Whole) -> Result<f64, CheckError> {
    Runner::<Faulty<FAULT>>::new().whole(what, KEYS, 0.0)
}

#[track_caller]
fn fails(outcome: Result<f64, CheckError>) {
    let failure = outcome.expect_err("the check should have failed").during("a test").to_string();
    assert!(failure.starts_with("check failed: faulty in a test: "), "{failure}");
}

#[test]
fn a_sound_map_passes_every_workload() {
    for &which in Preset::value_variants() {
        for threads in [1, 2, 3] {
            mix::<SOUND>(&preset(which, threads)).unwrap();
        }
    }
    for (present, batched) in [(true, false), (false, false), (true, true), (false, true)] {
        lookups::<SOUND>(present, batched).unwrap();
    }
    Runner::<Faulty<SOUND>>::new().fill(0, KEYS, 0.0).unwrap();
    Runner::<Faulty<SOUND>>::new().extend_from_empty(KEYS, 0.0).unwrap();
    for &what in Whole::value_variants() {
        whole::<SOUND>(what).unwrap();
    }
}

#[test]
fn a_map_that_loses_keys_fails_lookups_and_mixes() {
    fails(lookups::<LOSES_KEYS>(true, false));
    fails(lookups::<LOSES_KEYS>(true, true));
    fails(Runner::<Faulty<LOSES_KEYS>>::new().extend_from_empty(KEYS, 0.0));
    fails(Runner::<Faulty<LOSES_KEYS>>::new().fill(0, KEYS, 0.0));
    fails(Runner::<Faulty<LOSES_KEYS>>::new().footprint(0, KEYS).map(|_| 0.0));
    fails(mix::<LOSES_KEYS>(&preset(Preset::ReadHeavy, THREADS)));
    fails(mix::<LOSES_KEYS>(&preset(Preset::YcsbC, 1)));
    fails(whole::<LOSES_KEYS>(Whole::Clone));
    fails(whole::<LOSES_KEYS>(Whole::Retain));
}

#[test]
fn a_map_known_to_miss_replaced_keys_may_miss_only_those() {
    fails(lookups::<MAY_LOSE_KEYS>(true, false));
    fails(mix::<MAY_LOSE_KEYS>(&preset(Preset::YcsbC, 1)));
    let own = Workload::replacing("own", "50/50/0/0".parse().unwrap());
    let mut plan = plan::mixed(&own, KEYS, own.dist, THREADS, OPS, None).unwrap();
    // Without the reads of a thread's own keys, and without the check of the content, nothing is left that could fail.
    for (ops, predicted) in plan.threads.iter_mut().zip(&mut plan.predicted) {
        ops.retain(|op| op.action == Action::Get && op.expect == Expect::PRESENT);
        *predicted = Prediction::default();
        predicted.certain.hits = ops.len() as u64;
    }
    plan.samples.clear();
    fails(mix::<LOSES_KEYS>(&plan));
    let mut map = Runner::<Faulty<MAY_LOSE_KEYS>>::new();
    map.mix(&plan, 0.0).unwrap();
    assert!(map.take_lost_reads() > 0);
    assert_eq!(map.take_lost_reads(), 0);
}

#[test]
fn a_map_with_wrong_values_fails_lookups_and_mixes() {
    fails(lookups::<WRONG_VALUES>(true, false));
    fails(lookups::<WRONG_VERSIONS>(true, false));
    fails(lookups::<WRONG_VERSIONS>(true, true));
    fails(Runner::<Faulty<WRONG_VERSIONS>>::new().extend_from_empty(KEYS, 0.0));
    fails(mix::<WRONG_VALUES>(&preset(Preset::YcsbC, THREADS)));
    fails(mix::<WRONG_VERSIONS>(&preset(Preset::YcsbC, THREADS)));
    fails(mix::<WRONG_VALUES>(&preset(Preset::YcsbA, 1)));
    fails(whole::<WRONG_VALUES>(Whole::Clone));
}

#[test]
fn a_map_that_invents_keys_fails_misses() {
    fails(lookups::<INVENTS_KEYS>(false, false));
    fails(mix::<INVENTS_KEYS>(&preset(Preset::RapidGrow, THREADS)));
    fails(whole::<INVENTS_KEYS>(Whole::Retain));
}

#[test]
fn a_map_that_drops_replacements_removals_or_updates_fails() {
    fails(mix::<STALE_VALUES>(&preset(Preset::YcsbA, THREADS)));
    fails(mix::<STALE_VALUES>(&preset(Preset::YcsbB, 1)));
    fails(mix::<KEEPS_REMOVED>(&preset(Preset::Exchange, THREADS)));
    fails(mix::<WRONG_REMOVED>(&preset(Preset::Exchange, THREADS)));
    fails(mix::<FORGETS_UPDATES>(&preset(Preset::YcsbF, THREADS)));
}

#[test]
fn a_map_that_drops_what_threads_write_to_the_same_keys_fails() {
    for sound in ["50/50/0/0", "50/0/0/50", "40/30/0/30", "40/25/25/10"] {
        mix::<SOUND>(&shared(sound)).unwrap();
    }
    // Each answer by itself could be right.
    fails(mix::<STALE_VALUES>(&shared("50/50/0/0")));
    fails(mix::<FORGETS_UPDATES>(&shared("50/0/0/50")));
    fails(mix::<FORGETS_UPDATES>(&shared("40/30/0/30")));
    for fault in [mix::<STALE_VALUES>, mix::<FORGETS_UPDATES>, mix::<KEEPS_REMOVED>, mix::<WRONG_REMOVED>] {
        fails(fault(&shared("40/25/25/10")));
    }
    fails(mix::<MISCOUNTS>(&shared("40/30/0/30")));
    fails(mix::<MISCOUNTS>(&shared("40/25/25/10")));
    fails(mix::<WRONG_VALUES>(&shared("40/25/25/10")));
}

#[test]
fn a_map_that_miscounts_fails_after_the_run() {
    fails(mix::<MISCOUNTS>(&preset(Preset::Exchange, THREADS)));
    fails(Runner::<Faulty<MISCOUNTS>>::new().fill(0, KEYS, 0.0));
    fails(Runner::<Faulty<MISCOUNTS>>::new().extend_from_empty(KEYS, 0.0));
}

#[test]
fn a_map_of_texts_with_wrong_values_fails() {
    let plan = plan::texts(KEYS, Dist::Uniform, THREADS, OPS).unwrap();
    TextRunner::<RwLockHashbrown<String, String>>::new().read(&plan, 0.0).unwrap();
    fails(TextRunner::<FaultyTexts>::new().read(&plan, 0.0));
}

#[test]
fn every_contestant_passes_every_preset() {
    let trace = std::sync::Arc::new(trace::parse(&b"5\n6\n5\n9\n6\n"[..], "trace").unwrap());
    let replayed = Workload::replacing("replayed", "60/20/10/10".parse().unwrap());
    let replay = plan::mixed(&replayed, 0, Dist::Uniform, THREADS, OPS, Some(&trace)).unwrap();
    for &id in Id::value_variants() {
        let mut map = entrant(id);
        for &which in Preset::value_variants() {
            map.mix(&preset(which, THREADS), 0.0).unwrap_or_else(|failure| panic!("{which:?}: {failure}"));
        }
        map.mix(&replay, 0.0).unwrap();
        map.mix(&shared("40/25/25/10"), 0.0).unwrap();
        map.read(&plan::replayed_reads(&trace, THREADS, OPS).unwrap(), false, 0.0).unwrap();
        map.read(&plan::reads(KEYS, Dist::Zipf(0.99), THREADS, OPS, true).unwrap(), true, 0.0).unwrap();
        map.fill(0, KEYS, 0.0).unwrap();
        map.extend_from_empty(KEYS, 0.0).unwrap();
        assert!(map.footprint(0, KEYS).is_ok());
    }
}

#[test]
fn every_contestant_but_the_inline_map_holds_texts() {
    let plan = plan::texts(KEYS, Dist::Zipf(0.99), THREADS, OPS).unwrap();
    for &id in Id::value_variants() {
        match text_entrant(id) {
            Some(mut map) => assert!(map.read(&plan, 0.0).unwrap() > 0.0),
            None => assert_eq!(id, Id::KoelInline),
        }
    }
}

#[test]
fn replacing_plans_can_run_again_on_the_same_map() {
    let plan = preset(Preset::YcsbA, THREADS);
    assert_eq!(plan.leaves.as_ref(), Some(&plan.start));
    let mut map = Runner::<Faulty<SOUND>>::new();
    for _ in 0..3 {
        map.mix(&plan, 0.001).unwrap();
    }
    assert_eq!(preset(Preset::Exchange, THREADS).leaves, None);
}

#[test]
fn a_map_is_filled_anew_until_the_time_is_spent() {
    let mut map = Runner::<Faulty<SOUND>>::new();
    for (fills, more) in [(0.0, false), (0.05, true)] {
        MADE.set(0);
        map.fill(0, 100, fills).unwrap();
        map.extend_from_empty(100, fills).unwrap();
        assert_eq!(MADE.get() > 2, more, "{} maps", MADE.get());
    }
}

#[test]
fn to_count_what_was_filled_is_not_in_its_time() {
    let start = Instant::now();
    let per_microsecond = Runner::<Faulty<COUNTS_SLOWLY>>::new().fill(0, KEYS, 0.0).unwrap();
    // However slow the machine is.
    let all_but_counting = start.elapsed() - COUNTING;
    let filling = KEYS as f64 / per_microsecond;
    assert!(
        filling <= all_but_counting.as_micros() as f64 + 1.0,
        "{filling} microseconds of {all_but_counting:?}"
    );
}

#[test]
fn latencies_are_taken_of_every_operation() {
    let plan = preset(Preset::Exchange, THREADS);
    let times = Runner::<Faulty<SOUND>>::new().latencies(&plan, &Stopwatch::calibrated()).unwrap();
    let reads = plan.threads.iter().flatten().filter(|op| op.action == Action::Get).count() as u64;
    assert_eq!((times.reads.len(), times.writes.len()), (reads, plan.ops() - reads));
    let failed = Runner::<Faulty<KEEPS_REMOVED>>::new().latencies(&plan, &Stopwatch::calibrated());
    assert!(failed.is_err());
}
