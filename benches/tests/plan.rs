//! Plans predict what a map will answer: they are played on the simplest map there is.

use std::collections::{HashMap, HashSet};

use clap::ValueEnum;
use koel_bench::keys;
use koel_bench::plan::{self, Action, Expect, MixPlan};
use koel_bench::workload::{Mix, Preset, Workload};

const KEYS: u64 = 1_000;
const OPS: usize = 4_000;

fn planned(workload: &Workload, threads: usize) -> MixPlan {
    plan::mixed(workload, KEYS, workload.dist, threads, OPS, None)
}

/// Plays all threads, one after the other: reads of other threads' keys may then be early or late, but no more.
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

#[test]
fn every_preset_is_predicted_to_the_last_value() {
    for preset in Preset::value_variants() {
        for threads in [1, 2, 3] {
            let plan = planned(&preset.workload(), threads);
            let map = play(&plan);
            assert_eq!(map.len(), plan.len_after, "{preset:?}");
            for (key, value) in &plan.samples {
                assert_eq!(map.get(key), value.as_ref(), "{preset:?}");
            }
        }
    }
}

#[test]
fn threads_write_disjoint_keys() {
    for preset in [Preset::Exchange, Preset::RapidGrow, Preset::YcsbA] {
        let plan = planned(&preset.workload(), 3);
        let written: Vec<HashSet<u64>> = plan
            .threads
            .iter()
            .map(|ops| ops.iter().filter(|op| op.action != Action::Get).map(|op| op.key).collect())
            .collect();
        assert!(written.iter().all(|keys| !keys.is_empty()));
        for (a, b) in [(0, 1), (0, 2), (1, 2)] {
            assert!(written[a].is_disjoint(&written[b]), "{preset:?}");
        }
    }
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
    assert!(plan.len_after > 0);
}

#[test]
fn reads_are_exact_alone_and_hits_are_certain_while_nothing_comes_or_goes() {
    let alone = planned(&Preset::ReadHeavy.workload(), 1);
    assert!(alone.threads[0].iter().all(|op| [Expect::EXACT, Expect::ABSENT].contains(&op.expect)));
    assert_eq!(alone.predicted[0].open, 0);
    let together = planned(&Preset::YcsbA.workload(), 2);
    for predicted in &together.predicted {
        assert_eq!((predicted.open, predicted.certain.misses, predicted.certain.inserted), (0, 0, 0));
    }
}

#[test]
fn growth_leaves_exactly_the_numbered_keys() {
    let mix: Mix = "0/100/0/0".parse().unwrap();
    let growth = Workload { filled_percent: 0, reserved: false, ..Workload::churning("growth", mix) };
    let plan = plan::mixed(&growth, KEYS, growth.dist, 4, KEYS as usize / 4, None);
    assert_eq!(plan.len_after as u64, KEYS);
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
