//! Maps that are not linearizable, each with a defect of its own: the checker must catch every one.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::yield_now;

use super::checker::Saw;
use super::history::{Plan, Seen, Subject, run, saw};

/// A defect of a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Defect {
    None,
    /// A look-up misses, now and then.
    MissesKeys,
    /// An insert has no effect, now and then.
    LosesInserts,
    /// A look-up returns the key's previous value, now and then.
    Stale,
    /// A look-up returns half of one value and half of another, now and then.
    Torn,
    /// `compute` reads, releases the lock, and writes.
    ComputeInTwoSteps,
    /// `try_insert` looks the key up, releases the lock, and writes.
    TryInsertInTwoSteps,
    /// An item is removed before it is put in its new place: a displacement without versions.
    AbsentWhileMoved,
    /// A batch of look-ups misses, now and then.
    BatchMisses,
    /// A filter says absent, now and then.
    FilterLies,
}

/// A locked map with a defect.
struct Defective {
    map: Mutex<HashMap<u64, u64>>,
    /// The previous value of each key.
    before: Mutex<HashMap<u64, u64>>,
    defect: Defect,
    steps: AtomicUsize,
}

impl Defective {
    fn new(defect: Defect) -> Self {
        Defective { map: Mutex::default(), before: Mutex::default(), defect, steps: AtomicUsize::new(0) }
    }

    /// Whether to misbehave: one time in a hundred, if the map has this defect.
    fn now_and_then(&self, defect: Defect) -> bool {
        self.defect == defect && self.steps.fetch_add(1, Ordering::Relaxed) % 100 == 99
    }

    fn write(&self, key: u64, value: Option<u64>) -> Option<u64> {
        let mut map = self.map.lock().unwrap();
        let old = match value {
            Some(value) => map.insert(key, value),
            None => map.remove(&key),
        };
        if let Some(old) = old {
            self.before.lock().unwrap().insert(key, old);
        }
        old
    }

    fn read(&self, key: u64) -> Option<u64> {
        self.map.lock().unwrap().get(&key).copied()
    }
}

impl Subject for Defective {
    fn get(&self, key: u64) -> Seen {
        if self.now_and_then(Defect::MissesKeys) {
            return Ok(None);
        }
        if self.now_and_then(Defect::Stale) {
            return Ok(self.before.lock().unwrap().get(&key).copied());
        }
        if self.now_and_then(Defect::Torn) {
            return Err("[1, 2, 1]".to_owned());
        }
        Ok(self.read(key))
    }

    fn get_many(&self, keys: &[u64]) -> Vec<Seen> {
        let miss = self.now_and_then(Defect::BatchMisses);
        keys.iter().map(|key| if miss { Ok(None) } else { Ok(self.read(*key)) }).collect()
    }

    fn contains_key(&self, key: u64) -> bool {
        self.read(key).is_some()
    }

    fn may_contain(&self, key: u64) -> bool {
        !self.now_and_then(Defect::FilterLies) && self.read(key).is_some()
    }

    fn insert(&self, key: u64, value: u64) -> Saw {
        if self.now_and_then(Defect::LosesInserts) {
            return saw(Ok(self.read(key)));
        }
        saw(Ok(self.write(key, Some(value))))
    }

    fn try_insert(&self, key: u64, value: u64) -> Seen {
        if self.defect == Defect::TryInsertInTwoSteps {
            let current = self.read(key);
            yield_now();
            if current.is_none() {
                self.write(key, Some(value));
            }
            return Ok(current);
        }
        let mut map = self.map.lock().unwrap();
        let current = map.get(&key).copied();
        map.entry(key).or_insert(value);
        Ok(current)
    }

    fn remove(&self, key: u64) -> Seen {
        Ok(self.write(key, None))
    }

    fn compute(&self, key: u64, value: u64, remove: bool) -> Seen {
        let new = if remove { None } else { Some(value) };
        if self.defect == Defect::ComputeInTwoSteps {
            let current = self.read(key);
            yield_now();
            if current.is_some() {
                self.write(key, new);
            }
            return Ok(current);
        }
        let mut map = self.map.lock().unwrap();
        let current = map.get(&key).copied();
        match (current, new) {
            (Some(_), Some(value)) => map.insert(key, value),
            (Some(_), None) => map.remove(&key),
            (None, _) => None,
        };
        Ok(current)
    }

    fn update_or_insert(&self, key: u64, value: u64) -> Seen {
        Ok(self.write(key, Some(value)))
    }

    fn disturb(&self, rng: &mut crate::common::Rng, _: usize, step: usize) {
        if self.defect == Defect::AbsentWhileMoved && step % 10 == 0 {
            let key = rng.below(4);
            let item = self.map.lock().unwrap().remove(&key);
            yield_now();
            if let Some(value) = item {
                self.map.lock().unwrap().entry(key).or_insert(value);
            }
        }
    }
}

fn run_with(defect: Defect) -> Result<usize, String> {
    let plan = Plan { threads: 3, operations: 5000, keys: 4, seed: 1 };
    run(&Defective::new(defect), plan).map_err(|broken| broken.to_string())
}

#[test]
fn a_locked_map_without_defects_is_linearizable() {
    let operations = run_with(Defect::None).unwrap_or_else(|broken| panic!("{broken}"));
    assert!(operations > 14_000);
}

#[test]
fn every_defect_is_caught() {
    use Defect::*;
    let defects = [
        MissesKeys,
        LosesInserts,
        Stale,
        Torn,
        ComputeInTwoSteps,
        TryInsertInTwoSteps,
        AbsentWhileMoved,
        BatchMisses,
        FilterLies,
    ];
    for defect in defects {
        // Defects that need two threads to meet may need more than one run.
        let caught = (0..20).find_map(|_| run_with(defect).err());
        assert!(caught.is_some(), "{defect:?} was not caught");
    }
}
