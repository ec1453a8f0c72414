//! Filters: an absent key may seem present, but a key that is there is never reported absent, nor counted too few times, nor
//! does its removal fail, whatever is displaced, moved from table to table, and inserted meanwhile. Broken filters must be
//! caught.
//!
//! Each thread removes only copies that it has inserted itself: so nobody removes what is not there, and keys of one
//! fingerprint, whose copies are interchangeable, do not disturb one another.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::yield_now;

use koel::{CuckooFilter, ScalableCuckooFilter};

use super::checker::{Register, Saw, Wrote, search};
use super::for_all_plans;
use super::history::{Broken, History, Plan, Recorder, check_all, record_steps};
use crate::common::{Rng, env_number, seed};

/// A filter under test. Keys from `FILLERS` on are not recorded.
trait Filter: Sync {
    /// Whether `insert_unique` inserts only a key that is not there even if another thread inserts it by `insert` meanwhile; if
    /// not, the odd keys are inserted by `insert_unique`, and the even ones by `insert`.
    const UNIQUE_BESIDE_INSERT: bool;

    fn contains(&self, key: u64) -> bool;
    fn contains_many(&self, keys: &[u64]) -> Vec<bool>;
    fn count(&self, key: u64) -> u64;
    /// Inserts a key; returns whether there was room.
    fn insert(&self, key: u64) -> bool;
    /// Returns whether the key was inserted.
    fn insert_unique(&self, key: u64) -> bool;
    fn remove(&self, key: u64) -> bool;
    /// Returns for how many keys there was room, in order.
    fn insert_many(&self, keys: &[u64]) -> usize {
        keys.iter().take_while(|key| self.insert(**key)).count()
    }
    fn remove_many(&self, keys: &[u64]) -> Vec<bool> {
        keys.iter().map(|key| self.remove(*key)).collect()
    }
    /// Other operations that happen now and then. Returns whether a thread is to remove all of its fillers.
    fn disturb(&self, _rng: &mut Rng) -> bool {
        false
    }
}

const FILLERS: u64 = 1 << 20;

/// One thread's work.
struct Worker {
    thread: u64,
    /// Copies of each key that it has inserted and not removed.
    mine: Vec<u64>,
    /// Fillers that it has inserted and not removed.
    fillers: Vec<u64>,
    next_filler: u64,
    /// Most fillers.
    most: usize,
}

impl Worker {
    fn step<F: Filter>(&mut self, recorder: &mut Recorder<'_, F>, rng: &mut Rng, keys: u64) {
        let (filter, key) = (recorder.map, rng.below(keys));
        let invoked = recorder.tick();
        let absent = |yes| if yes { Saw::AtMost(0) } else { Saw::Nothing };
        let (unique, counted) = (key % 2 == 1, key % 2 == 0);
        match rng.below(20) {
            0..6 => recorder.note(key, invoked, absent(!filter.contains(key)), Wrote::Nothing),
            6 => {
                let all: Vec<u64> = (0..keys).collect();
                let invoked: Vec<u64> = all.iter().map(|_| recorder.tick()).collect();
                let found = filter.contains_many(&all);
                for ((key, invoked), found) in all.into_iter().zip(invoked).zip(found) {
                    recorder.note(key, invoked, absent(!found), Wrote::Nothing);
                }
            }
            7 | 8 => recorder.note(key, invoked, Saw::AtMost(filter.count(key)), Wrote::Nothing),
            11 => {
                let batch: Vec<u64> =
                    (0..keys).filter(|key| F::UNIQUE_BESIDE_INSERT || key % 2 == 0).collect();
                let invoked: Vec<u64> = batch.iter().map(|_| recorder.tick()).collect();
                let inserted = filter.insert_many(&batch);
                for (key, invoked) in batch.into_iter().zip(invoked).take(inserted) {
                    self.mine[key as usize] += 1;
                    recorder.note(key, invoked, Saw::Nothing, Wrote::More);
                }
            }
            19 => {
                let batch: Vec<u64> = (0..keys).filter(|key| self.mine[*key as usize] > 0).collect();
                let invoked: Vec<u64> = batch.iter().map(|_| recorder.tick()).collect();
                let removed = filter.remove_many(&batch);
                for ((key, invoked), removed) in batch.into_iter().zip(invoked).zip(removed) {
                    self.mine[key as usize] -= 1;
                    let saw = if removed { Saw::Present } else { Saw::AtMost(0) };
                    recorder.note(key, invoked, saw, Wrote::Less);
                }
            }
            9 | 10 if (F::UNIQUE_BESIDE_INSERT || counted) && filter.insert(key) => {
                self.mine[key as usize] += 1;
                recorder.note(key, invoked, Saw::Nothing, Wrote::More);
            }
            12 | 13 if (F::UNIQUE_BESIDE_INSERT || unique) && filter.insert_unique(key) => {
                self.mine[key as usize] += 1;
                recorder.note(key, invoked, Saw::AtMost(0), Wrote::More);
            }
            14.. if self.mine[key as usize] > 0 => {
                self.mine[key as usize] -= 1;
                let saw = if filter.remove(key) { Saw::Present } else { Saw::AtMost(0) };
                recorder.note(key, invoked, saw, Wrote::Less);
            }
            _ => {}
        }
    }

    /// One more filler, if there is room.
    fn fill<F: Filter>(&mut self, filter: &F) -> bool {
        let filler = self.next_filler << 8 | self.thread;
        self.next_filler += 1;
        let has_room = self.fillers.len() < self.most && filter.insert(filler);
        self.fillers.extend(has_room.then_some(filler));
        has_room
    }

    /// Inserts and removes fillers, so that other keys are displaced.
    fn churn<F: Filter>(&mut self, filter: &F, rng: &mut Rng) {
        if !self.fill(filter) && !self.fillers.is_empty() {
            let gone = self.fillers.swap_remove(rng.below(self.fillers.len() as u64) as usize);
            assert!(filter.remove(gone), "a filler is gone");
        }
        if filter.disturb(rng) {
            self.fillers.drain(..).for_each(|gone| assert!(filter.remove(gone), "a filler is gone"));
        }
    }
}

/// Runs threads on a filter and checks what they saw; `fillers` is how many there are at most.
fn run<F: Filter>(filter: &F, plan: Plan, fillers: usize) -> Result<usize, Broken> {
    check_all(Register::Keeps, &record(filter, plan, fillers))
}

/// The history of each key.
fn record<F: Filter>(filter: &F, plan: Plan, fillers: usize) -> Vec<History> {
    let most = fillers / plan.threads;
    record_steps(filter, plan, vec![None; plan.keys as usize], |thread| {
        let thread = thread as u64;
        let mine = vec![0; plan.keys as usize];
        let mut worker = Worker { thread, mine, fillers: Vec::new(), next_filler: FILLERS, most };
        while worker.fill(filter) {}
        move |recorder: &mut Recorder<'_, F>, rng: &mut Rng, _| {
            worker.step(recorder, rng, plan.keys);
            worker.churn(filter, rng);
        }
    })
}

macro_rules! operations_of_koel {
    () => {
        fn contains(&self, key: u64) -> bool {
            self.0.contains(&key)
        }

        fn contains_many(&self, keys: &[u64]) -> Vec<bool> {
            let mut found = vec![false; keys.len()];
            self.0.contains_many(keys, &mut found);
            found
        }

        fn count(&self, key: u64) -> u64 {
            self.0.count(&key) as u64
        }

        fn insert(&self, key: u64) -> bool {
            self.0.insert(&key).is_ok()
        }

        fn insert_unique(&self, key: u64) -> bool {
            self.0.insert_unique(&key) == Ok(true)
        }

        fn remove(&self, key: u64) -> bool {
            self.0.remove(&key)
        }

        fn insert_many(&self, keys: &[u64]) -> usize {
            self.0.insert_many(keys)
        }

        fn remove_many(&self, keys: &[u64]) -> Vec<bool> {
            let mut removed = vec![false; keys.len()];
            self.0.remove_many(keys, &mut removed);
            removed
        }
    };
}

struct Fixed(CuckooFilter);

impl Filter for Fixed {
    const UNIQUE_BESIDE_INSERT: bool = true;
    operations_of_koel!();
}

/// A filter, and how many tables it has given back.
struct Growing(ScalableCuckooFilter, AtomicUsize);

impl Filter for Growing {
    const UNIQUE_BESIDE_INSERT: bool = false;
    operations_of_koel!();

    fn disturb(&self, rng: &mut Rng) -> bool {
        if rng.one_in(500) {
            self.1.fetch_add(self.0.compact(), Ordering::Relaxed);
        }
        rng.one_in(4000)
    }
}

/// At the brim, where every insert displaces: buckets of one word and of several, semi-sorted ones of either kind.
#[test]
fn filter_is_linearizable_in_displacement() {
    for (bits, slots, semi_sorted) in
        [(8, 4, false), (12, 4, false), (20, 8, false), (9, 4, true), (13, 4, true)]
    {
        for_all_plans("a filter", 4000, |plan| {
            let builder = CuckooFilter::builder().fingerprint_bits(bits).bucket_slots(slots);
            let filter = builder.semi_sorted(semi_sorted).capacity(600).seed(plan.seed).build().unwrap();
            let filter = Fixed(filter);
            let checked = run(&filter, plan, filter.0.capacity() - 4 * plan.keys as usize)?;
            assert!(filter.0.info().displacements > 100, "{}", filter.0.info());
            Ok::<_, Broken>(checked)
        });
    }
}

/// Tables are added, and emptied into others.
#[test]
fn filter_is_linearizable_in_growth_and_compaction() {
    for_all_plans("a growing filter", 4000, |plan| {
        let builder = ScalableCuckooFilter::builder().capacity(100).false_positive_rate(0.01);
        let filter = Growing(builder.seed(plan.seed).build().unwrap(), AtomicUsize::new(0));
        // More keys than one table holds, however threads are scheduled.
        (0..5000).for_each(|n| assert!(filter.insert(n << 40 | FILLERS)));
        let checked = run(&filter, plan, 6000)?;
        assert!(filter.1.into_inner() + filter.0.info().tables.len() > 1, "{}", filter.0.info());
        Ok::<_, Broken>(checked)
    });
}

/// Two to four threads, a dozen operations, one key, sixteen buckets: here Wing and Gong's search is the judge.
#[test]
fn filter_is_linearizable_in_short_histories() {
    let (seed, histories, mut displacements) = (seed(), env_number("KOEL_HISTORIES", 9) as u64 * 50, 0);
    for history in 0..histories {
        let threads = 2 + (history % 3) as usize;
        let plan = Plan { threads, operations: 5, keys: 1, seed: (seed + history) & 0xF_FFFF };
        let builder = CuckooFilter::builder().fingerprint_bits([8, 12][history as usize / 3 % 2]);
        let filter = Fixed(builder.capacity(50).seed(plan.seed).build().unwrap());
        for (initial, events) in record(&filter, plan, filter.0.capacity() - 4) {
            assert!(search(Register::Keeps, initial, &events), "{plan:?}: {events:?}");
        }
        displacements += filter.0.info().displacements;
    }
    assert!(displacements > histories, "{displacements} displacements");
}

/// A defect of a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Defect {
    None,
    /// A look-up misses a present key, now and then.
    Misses,
    /// A look-up of a batch does.
    BatchMisses,
    /// An insert has no effect, now and then.
    LosesInserts,
    /// `insert_unique` looks the key up, releases the lock, and inserts.
    UniqueInTwoSteps,
    /// All copies are removed and put back: a displacement without versions.
    AbsentWhileMoved,
    /// A removal removes all copies.
    RemovesAll,
    /// A copy is not counted, now and then.
    CountsTooFew,
}

/// A locked multiset with a defect.
struct Defective {
    copies: Mutex<HashMap<u64, u64>>,
    defect: Defect,
    steps: AtomicUsize,
}

impl Defective {
    /// Whether to misbehave: one time in a hundred, if the filter has this defect.
    fn now_and_then(&self, defect: Defect) -> bool {
        self.defect == defect && self.steps.fetch_add(1, Ordering::Relaxed) % 100 == 99
    }
}

impl Filter for Defective {
    const UNIQUE_BESIDE_INSERT: bool = true;

    fn contains(&self, key: u64) -> bool {
        self.copies.lock().unwrap().contains_key(&key) && !self.now_and_then(Defect::Misses)
    }

    fn contains_many(&self, keys: &[u64]) -> Vec<bool> {
        let miss = self.now_and_then(Defect::BatchMisses);
        keys.iter().map(|key| self.contains(*key) && !(miss && *key == 0)).collect()
    }

    fn count(&self, key: u64) -> u64 {
        let copies = self.copies.lock().unwrap().get(&key).copied().unwrap_or(0);
        copies.saturating_sub(u64::from(self.now_and_then(Defect::CountsTooFew)))
    }

    fn insert(&self, key: u64) -> bool {
        if !self.now_and_then(Defect::LosesInserts) {
            *self.copies.lock().unwrap().entry(key).or_insert(0) += 1;
        }
        true
    }

    fn insert_unique(&self, key: u64) -> bool {
        if self.defect == Defect::UniqueInTwoSteps {
            let is_there = self.contains(key);
            yield_now();
            return !is_there && self.insert(key);
        }
        let mut copies = self.copies.lock().unwrap();
        let is_new = !copies.contains_key(&key);
        copies.entry(key).or_insert(1);
        is_new
    }

    fn remove(&self, key: u64) -> bool {
        let mut copies = self.copies.lock().unwrap();
        let Some(n) = copies.get_mut(&key) else { return false };
        *n -= 1;
        if *n == 0 || self.defect == Defect::RemovesAll {
            copies.remove(&key);
        }
        true
    }

    fn disturb(&self, rng: &mut Rng) -> bool {
        if self.defect == Defect::AbsentWhileMoved && rng.one_in(10) {
            let key = rng.below(4);
            let item = self.copies.lock().unwrap().remove(&key);
            yield_now();
            if let Some(n) = item {
                *self.copies.lock().unwrap().entry(key).or_insert(0) += n;
            }
        }
        false
    }
}

fn run_with(defect: Defect) -> Result<usize, String> {
    let plan = Plan { threads: 3, operations: 5000, keys: 4, seed: 1 };
    let filter = Defective { copies: Mutex::default(), defect, steps: AtomicUsize::new(0) };
    run(&filter, plan, 0).map_err(|broken| broken.to_string())
}

#[test]
fn a_locked_filter_without_defects_is_linearizable() {
    let operations = run_with(Defect::None).unwrap_or_else(|broken| panic!("{broken}"));
    assert!(operations > 10_000, "{operations}");
}

#[test]
fn every_defect_of_a_filter_is_caught() {
    use Defect::*;
    let defects =
        [Misses, BatchMisses, LosesInserts, UniqueInTwoSteps, AbsentWhileMoved, RemovesAll, CountsTooFew];
    for defect in defects {
        // Defects that need two threads to meet may need more than one run.
        let caught = (0..20).find_map(|_| run_with(defect).err());
        assert!(caught.is_some(), "{defect:?} was not caught");
    }
}
