//! Operations on a whole map take effect for each key at some moment: walks, copies, drains, `retain`, `clear` and `extend`,
//! concurrent with one another and with writes of single keys, in maps that grow and shrink. Broken maps must be caught.

use std::collections::HashMap as Entries;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::yield_now;

use koel::{HashMap, InlineMap};

use super::checker::{Register, Saw, Wrote};
use super::history::{Broken, Each, Plan, Recorder, Subject, check_all, record_steps, retained};
use super::{Coded, Disturbance, Koel, for_all_plans};
use crate::common::{AnyMap, Rng, Seeded, growing_configs};

type Pairs = Vec<(u64, u64)>;

/// A map under test.
trait Whole: Sync {
    fn contains_many(&self, keys: &[u64]) -> Vec<bool>;
    /// Returns the previous value.
    fn insert(&self, key: u64, value: u64) -> Option<u64>;
    /// Removes an odd value; returns the previous value.
    fn remove_odd(&self, key: u64) -> Option<u64>;
    fn extend(&self, pairs: Pairs);
    fn walk(&self) -> Pairs;
    fn copy(&self) -> Pairs;
    /// Takes this many entries of a drain and drops it.
    fn drain(&self, entries: usize) -> Pairs;
    fn retain(&self, keep: impl FnMut(u64, u64) -> bool);
    fn clear(&self);
    fn disturb(&self, _rng: &mut Rng) {}
}

/// What was seen of each key in `pairs`, and what was done to it.
fn each(keys: u64, pairs: Pairs, wrote: Wrote) -> Each {
    let mut each = vec![(Saw::Absent, wrote); keys as usize];
    for (key, value) in pairs.into_iter().filter(|(key, _)| *key < keys) {
        let saw = &mut each[key as usize].0;
        assert_eq!(*saw, Saw::Absent, "{key} was seen twice");
        *saw = Saw::Value(value);
    }
    each
}

/// Takes some entries of a drain: the others that it removes are not seen.
fn drain_some<W: Whole>(map: &W, keys: u64, entries: usize) -> Each {
    let mut each = each(keys, map.drain(entries), Wrote::State(None));
    each.iter_mut().filter(|(saw, _)| *saw == Saw::Absent).for_each(|(saw, _)| *saw = Saw::Nothing);
    each
}

fn step<W: Whole>(recorder: &mut Recorder<'_, W>, rng: &mut Rng, keys: u64, value: u64) {
    let (map, key) = (recorder.map, rng.below(keys));
    match rng.below(24) {
        0..2 => recorder.note_all(keys, |map| {
            let saw = |there| if there { Saw::Present } else { Saw::Absent };
            let there = map.contains_many(&(0..keys).collect::<Vec<_>>());
            there.into_iter().map(|there| (saw(there), Wrote::Nothing)).collect()
        }),
        2..8 => {
            let invoked = recorder.tick();
            let saw = map.insert(key, value).map_or(Saw::Absent, Saw::Value);
            recorder.note(key, invoked, saw, Wrote::State(Some(value)));
        }
        8..12 => {
            let invoked = recorder.tick();
            let old = map.remove_odd(key);
            let removed = old.is_some_and(|old| old % 2 == 1);
            let wrote = if removed { Wrote::State(None) } else { Wrote::Nothing };
            recorder.note(key, invoked, old.map_or(Saw::Absent, Saw::Value), wrote);
        }
        12..14 => recorder.note_all(keys, |map| {
            let new: Vec<bool> = (0..keys).map(|_| rng.one_in(2)).collect();
            map.extend((0..keys).filter(|key| new[*key as usize]).map(|key| (key, value)).collect());
            let wrote = |new| if new { Wrote::State(Some(value)) } else { Wrote::Nothing };
            new.into_iter().map(|new| (Saw::Nothing, wrote(new))).collect()
        }),
        14..17 => recorder.note_all(keys, |map| each(keys, map.walk(), Wrote::Nothing)),
        17 => recorder.note_all(keys, |map| each(keys, map.copy(), Wrote::Nothing)),
        18 => recorder.note_all(keys, |map| each(keys, map.drain(usize::MAX), Wrote::State(None))),
        19 if rng.one_in(2) => recorder.note_all(keys, |map| drain_some(map, keys, 2)),
        20..23 => recorder.note_all(keys, |map| retained(keys, value % 3, |keep| map.retain(keep))),
        23 if rng.one_in(2) => recorder.note_all(keys, |map| {
            map.clear();
            vec![(Saw::Nothing, Wrote::State(None)); keys as usize]
        }),
        _ => {}
    }
}

/// Runs threads on a map that is empty and checks what they saw.
fn run<W: Whole>(map: &W, plan: Plan) -> Result<usize, Broken> {
    let histories = record_steps(map, plan, vec![None; plan.keys as usize], |thread| {
        move |recorder: &mut Recorder<'_, W>, rng: &mut Rng, number| {
            let value = (thread as u64 + 1) << 40 | number as u64;
            step(recorder, rng, plan.keys, value);
            map.disturb(rng);
        }
    });
    check_all(Register::Keeps, &histories)
}

fn decoded<V: Coded>(pairs: Vec<(u64, V)>) -> Pairs {
    pairs.into_iter().map(|(key, value)| (key, value.decode().unwrap())).collect()
}

impl<M: AnyMap<Key = u64, Value: Coded, Hasher = Seeded>> Whole for Koel<M> {
    fn contains_many(&self, keys: &[u64]) -> Vec<bool> {
        self.map.contains_many(keys)
    }

    fn insert(&self, key: u64, value: u64) -> Option<u64> {
        self.map.insert(key, M::Value::encode(value)).map(|old| old.decode().unwrap())
    }

    fn remove_odd(&self, key: u64) -> Option<u64> {
        let is_odd = |value: &M::Value| value.decode().unwrap() % 2 == 1;
        let old = match self.map.remove_if(&key, |_, value| is_odd(value)) {
            Ok(removed) => removed.inspect(|(_, value)| assert!(is_odd(value), "an even one was removed")),
            Err(kept) => Some(kept).inspect(|(_, value)| assert!(!is_odd(value), "an odd one was kept")),
        };
        old.map(|(_, value)| value.decode().unwrap())
    }

    fn extend(&self, pairs: Pairs) {
        self.map.extend(pairs.into_iter().map(|(key, value)| (key, M::Value::encode(value))).collect());
    }

    fn walk(&self) -> Pairs {
        decoded(self.map.entries())
    }

    fn copy(&self) -> Pairs {
        decoded(self.map.duplicate().into_entries())
    }

    fn drain(&self, entries: usize) -> Pairs {
        decoded(self.map.drain(entries))
    }

    fn retain(&self, mut keep: impl FnMut(u64, u64) -> bool) {
        self.map.retain(|key, value| keep(*key, value.decode().unwrap()));
    }

    fn clear(&self) {
        self.map.clear();
    }

    fn disturb(&self, rng: &mut Rng) {
        (0..4).for_each(|step| Subject::disturb(self, rng, 0, step));
    }
}

fn is_linearizable<M: AnyMap<Key = u64, Value: Coded, Hasher = Seeded>>() {
    for config in growing_configs() {
        for_all_plans(M::NAME, 1000, |plan| {
            run(&Koel::<M>::new(config, plan.seed, Disturbance::GrowAndShrink), plan)
        });
    }
}

#[test]
fn what_is_done_to_a_whole_hash_map_is_linearizable() {
    is_linearizable::<HashMap<u64, u64, Seeded>>();
}

#[test]
fn what_is_done_to_a_whole_inline_map_is_linearizable() {
    is_linearizable::<InlineMap<u64, u64, Seeded>>();
}

#[test]
fn what_is_done_to_a_whole_inline_map_of_long_values_is_linearizable() {
    is_linearizable::<InlineMap<u64, [u64; 3], Seeded>>();
}

/// A defect of a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Defect {
    None,
    /// A walk leaves an entry out, now and then.
    WalkMisses,
    /// An entry that a drain yields stays, now and then.
    DrainKeeps,
    /// A drain that is dropped keeps the entries that it has not yielded.
    DroppedDrainKeeps,
    /// `retain` removes a key's value, whichever it is by then.
    RetainInTwoSteps,
    /// `retain` forgets to remove, now and then.
    RetainKeeps,
    /// `clear` leaves an entry, now and then.
    ClearKeeps,
    /// A pair gets lost, now and then.
    ExtendLoses,
}

/// A locked map with a defect.
struct Defective {
    map: Mutex<Entries<u64, u64>>,
    defect: Defect,
    steps: AtomicUsize,
}

impl Defective {
    fn has(&self, defect: Defect) -> bool {
        self.defect == defect
    }

    /// Whether to misbehave: one time in ten, if the map has this defect.
    fn now_and_then(&self, defect: Defect) -> bool {
        self.has(defect) && self.steps.fetch_add(1, Ordering::Relaxed) % 10 == 9
    }
}

impl Whole for Defective {
    fn contains_many(&self, keys: &[u64]) -> Vec<bool> {
        let map = self.map.lock().unwrap();
        keys.iter().map(|key| map.contains_key(key)).collect()
    }

    fn insert(&self, key: u64, value: u64) -> Option<u64> {
        self.map.lock().unwrap().insert(key, value)
    }

    fn remove_odd(&self, key: u64) -> Option<u64> {
        let mut map = self.map.lock().unwrap();
        map.get(&key).copied().inspect(|old| {
            if old % 2 == 1 {
                map.remove(&key);
            }
        })
    }

    fn extend(&self, pairs: Pairs) {
        let lost = usize::from(self.now_and_then(Defect::ExtendLoses));
        self.map.lock().unwrap().extend(pairs.into_iter().skip(lost));
    }

    fn walk(&self) -> Pairs {
        let missed = usize::from(self.now_and_then(Defect::WalkMisses));
        self.copy().into_iter().skip(missed).collect()
    }

    fn copy(&self) -> Pairs {
        self.map.lock().unwrap().iter().map(|(key, value)| (*key, *value)).collect()
    }

    fn drain(&self, entries: usize) -> Pairs {
        let mut map = self.map.lock().unwrap();
        let drained: Pairs = map.drain().collect();
        if self.now_and_then(Defect::DrainKeeps) {
            map.extend(drained.first().copied());
        }
        if self.has(Defect::DroppedDrainKeeps) {
            map.extend(drained.iter().skip(entries).copied());
        }
        drained.into_iter().take(entries).collect()
    }

    fn retain(&self, mut keep: impl FnMut(u64, u64) -> bool) {
        if self.has(Defect::RetainInTwoSteps) {
            let refused: Pairs = self.copy().into_iter().filter(|(key, value)| !keep(*key, *value)).collect();
            yield_now();
            let mut map = self.map.lock().unwrap();
            return map.retain(|key, _| !refused.iter().any(|(refused, _)| refused == key));
        }
        let keeps_all = self.now_and_then(Defect::RetainKeeps);
        self.map.lock().unwrap().retain(|key, value| keep(*key, *value) || keeps_all);
    }

    fn clear(&self) {
        let kept = usize::from(self.now_and_then(Defect::ClearKeeps));
        let mut map = self.map.lock().unwrap();
        *map = map.drain().take(kept).collect();
    }
}

fn run_with(defect: Defect) -> Result<usize, String> {
    let plan = Plan { threads: 3, operations: 2000, keys: 4, seed: 1 };
    let map = Defective { map: Mutex::default(), defect, steps: AtomicUsize::new(0) };
    run(&map, plan).map_err(|broken| broken.to_string())
}

#[test]
fn a_whole_locked_map_without_defects_is_linearizable() {
    let operations = run_with(Defect::None).unwrap_or_else(|broken| panic!("{broken}"));
    assert!(operations > 10_000, "{operations}");
}

#[test]
fn every_defect_of_what_is_done_to_a_whole_map_is_caught() {
    use Defect::*;
    let defects =
        [WalkMisses, DrainKeeps, DroppedDrainKeeps, RetainInTwoSteps, RetainKeeps, ClearKeeps, ExtendLoses];
    for defect in defects {
        // A defect that needs two threads to meet may need more than one run.
        let caught = (0..20).find_map(|_| run_with(defect).err());
        assert!(caught.is_some(), "{defect:?} was not caught");
    }
}
