//! Plans predict what a map will answer: here they are run on the simplest possible map.

use std::collections::{HashMap, HashSet};

use clap::ValueEnum;
use koel_bench::keys;
use koel_bench::plan::{self, Action, After, Expect, MixPlan, Open};
use koel_bench::workload::{Mix, Preset, Workload};

const KEYS: u64 = 1_000;
const OPS: usize = 4_000;

fn planned(workload: &Workload, threads: usize) -> MixPlan {
    plan::mixed(workload, KEYS, workload.dist, threads, OPS, None).unwrap()
}

/// Runs all threads, one after the other: reads of other threads' keys may then be early or late, but not otherwise wrong.
fn play(plan: &MixPlan) -> HashMap<u64, u64> {
    let mut map: HashMap<u64, u64> = (0..plan.start.filled)
        .map(|index| {
            let key = plan.start.keys.key(index);
            (key, keys::value(key, 0))
        })
        .collect();
    for op in plan.threads.iter().flatten() {
        let answer = match op.action {
            Action::Get => map.get(&op.key).copied(),
            Action::Insert => map.insert(op.key, keys::value(op.key, op.version)).map(|value| value + 1),
            Action::Remove => map.remove(&op.key).map(|_| keys::value(op.key, op.version)),
            Action::Update => map.get_mut(&op.key).map(|value| {
                *value += 1;
                *value
            }),
        };
        assert!(op.expect.admits(op.key, op.version, answer), "{op:?} got {answer:x?}");
    }
    map
}

/// A mix of threads that write the same keys.
fn shared(mix: &str) -> Workload {
    Workload::shared("shared", mix.parse().unwrap())
}

fn len_after(plan: &MixPlan) -> usize {
    match plan.after {
        After::Certain { len } | After::Answered { len, .. } => len,
    }
}

#[test]
fn every_preset_is_predicted_to_the_last_value() {
    for preset in Preset::value_variants() {
        for threads in [1, 2, 3] {
            let plan = planned(&preset.workload(), threads);
            let map = play(&plan);
            assert_eq!(map.len(), len_after(&plan), "{preset:?}");
            for (key, value) in &plan.samples {
                assert_eq!(map.get(key), value.as_ref(), "{preset:?}");
            }
        }
    }
}

#[test]
fn threads_write_disjoint_keys() {
    let replacing = Workload::replacing("replacing", "50/50/0/0".parse().unwrap());
    for workload in [Preset::Exchange.workload(), Preset::RapidGrow.workload(), replacing] {
        let plan = planned(&workload, 3);
        let written: Vec<HashSet<u64>> = plan
            .threads
            .iter()
            .map(|ops| ops.iter().filter(|op| op.action != Action::Get).map(|op| op.key).collect())
            .collect();
        assert!(written.iter().all(|keys| !keys.is_empty()));
        for (a, b) in [(0, 1), (0, 2), (1, 2)] {
            assert!(written[a].is_disjoint(&written[b]), "{}", workload.name);
        }
    }
}

#[test]
fn threads_that_share_keys_write_the_same_ones_with_values_of_their_own() {
    let plan = planned(&shared("50/50/0/0"), 3);
    let writes = |thread: usize| plan.threads[thread].iter().filter(|op| op.action == Action::Insert);
    let keys = |thread| writes(thread).map(|op| op.key).collect::<HashSet<u64>>();
    assert!(keys(0).intersection(&keys(1)).count() > keys(2).len() / 2);
    assert!((0..3).flat_map(writes).all(|op| op.expect == Expect::PRESENT && op.version > 0));
    let versions: HashSet<u32> = (0..3).flat_map(writes).map(|op| op.version).collect();
    assert_eq!(versions.len(), (0..3).flat_map(writes).count());
    assert_eq!(plan.leaves.as_ref(), Some(&plan.start));
    let written: HashSet<u64> = plan.written.iter().copied().collect();
    assert_eq!((0..3).flat_map(keys).collect::<HashSet<u64>>(), written);
    // Nobody shares with one thread.
    let alone = planned(&shared("50/50/0/0"), 1);
    assert_eq!(alone.after, After::Certain { len: KEYS as usize });
    assert!(alone.threads[0].iter().all(|op| op.expect == Expect::EXACT));
}

#[test]
fn what_some_thread_removes_may_be_there_for_all() {
    let plan = planned(&shared("40/25/25/10"), 2);
    assert_eq!(plan.leaves, None);
    let removed: HashSet<u64> =
        plan.threads.iter().flatten().filter(|op| op.action == Action::Remove).map(|op| op.key).collect();
    for op in plan.threads.iter().flatten() {
        assert_eq!(op.expect == Expect::OPEN, removed.contains(&op.key), "{op:?}");
    }
    for predicted in &plan.predicted {
        assert!(predicted.open.reads > 0 && predicted.open.inserts > 0 && predicted.open.updates > 0);
        assert!(predicted.open.removes > 0 && predicted.certain.removed == 0);
    }
    assert!(matches!(plan.after, After::Answered { len, .. } if len == KEYS as usize));
}

#[test]
fn mixes_come_out_in_their_proportions_and_mostly_do_something() {
    let plan = planned(&Preset::Exchange.workload(), 2);
    for (ops, predicted) in plan.threads.iter().zip(&plan.predicted) {
        let share = |action| ops.iter().filter(|op| op.action == action).count() * 100 / ops.len();
        assert!((8..=12).contains(&share(Action::Get)));
        assert!((37..=43).contains(&share(Action::Insert)));
        assert!((37..=43).contains(&share(Action::Remove)));
        assert!(predicted.certain.removed > 20 * predicted.certain.unremoved);
        assert!(predicted.certain.inserted > 0 && predicted.certain.replaced == 0);
    }
    assert!(len_after(&plan) > 0);
}

#[test]
fn reads_are_exact_alone_and_hits_are_certain_while_nothing_comes_or_goes() {
    let alone = planned(&Preset::ReadHeavy.workload(), 1);
    assert!(alone.threads[0].iter().all(|op| [Expect::EXACT, Expect::ABSENT].contains(&op.expect)));
    assert_eq!(alone.predicted[0].open, Open::default());
    for workload in [Preset::YcsbA.workload(), Workload::replacing("own", "50/50/0/0".parse().unwrap())] {
        for predicted in &planned(&workload, 2).predicted {
            let certain = predicted.certain;
            assert_eq!((predicted.open, certain.misses, certain.inserted), (Open::default(), 0, 0));
        }
    }
}

#[test]
fn growth_leaves_exactly_the_numbered_keys() {
    let mix: Mix = "0/100/0/0".parse().unwrap();
    let growth = Workload { filled_percent: 0, reserved: false, ..Workload::churning("growth", mix) };
    let plan = plan::mixed(&growth, KEYS, growth.dist, 4, KEYS as usize / 4, None).unwrap();
    assert_eq!(plan.after, After::Certain { len: KEYS as usize });
    assert_eq!(plan.leaves.as_ref().map(|start| start.filled), Some(KEYS));
    let map = play(&plan);
    assert!((0..KEYS).all(|i| map.get(&keys::key(i)) == Some(&keys::value(keys::key(i), 0))));
}

#[test]
fn wrong_answers_are_not_admitted() {
    let (key, value) = (keys::key(3), keys::value(keys::key(3), 5));
    let admits = |expect: Expect, got| expect.admits(key, 5, got);
    assert!(admits(Expect::EXACT, Some(value)));
    assert!(!admits(Expect::EXACT, Some(value + 1)) && !admits(Expect::EXACT, None));
    assert!(admits(Expect::PRESENT, Some(value + 1)));
    assert!(!admits(Expect::PRESENT, Some(value ^ (1 << 33))) && !admits(Expect::PRESENT, None));
    assert!(admits(Expect::ABSENT, None) && !admits(Expect::ABSENT, Some(value)));
    assert!(admits(Expect::OPEN, None) && admits(Expect::OPEN, Some(value + 9)));
    assert!(!admits(Expect::OPEN, Some(!value)));
}
