//! Loads concurrent with writes, `retain`, `clear` and evictions, in both caches, by threads and by tasks that may be dropped:
//! a value that was evicted or removed does not come back, and after a write no caller gets a value whose load had begun before
//! it. Broken caches must be caught.

use std::cell::Cell;
use std::collections::HashMap;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};
use std::thread::yield_now;

use koel::{Cache, InlineCache, Policy};

use super::checker::{Register, Saw, Wrote};
use super::for_all_plans;
use super::history::{Plan, Recorder, check_all, record_steps, retained};
use crate::common::{Rng, Seeded, seeded};

/// A cache under test. Keys from `FILLERS` on are not recorded.
trait Loads: Sync {
    fn get(&self, key: u64) -> Option<u64>;
    fn insert(&self, key: u64, value: u64);
    fn remove(&self, key: u64) -> Option<u64>;
    /// Returns the value that is there or was loaded; `None` if the loader failed.
    fn load(&self, key: u64, load: impl FnOnce() -> Result<u64, ()>) -> Option<u64>;
    /// The same by a task that is polled `polls` times and then dropped.
    fn load_in_task(&self, key: u64, polls: u64, load: impl Future<Output = Result<u64, ()>>) -> Option<u64>;
    fn retain(&self, keep: impl FnMut(u64, u64) -> bool);
    fn clear(&self);
    /// Changes the capacity, if the cache can.
    fn resize(&self, _capacity: u64) {}
}

const FILLERS: u64 = 1 << 20;

/// What threads record about loads and writes, in ticks of the history's clock.
#[derive(Default)]
struct Told {
    /// When the load of a value began.
    begun: HashMap<u64, u64>,
    /// Key, value, and when it was asked for.
    got: Vec<(u64, u64, u64)>,
    /// Keys that were written to, when the write was called and when it was over.
    written: HashMap<u64, Vec<(u64, u64)>>,
}

impl Told {
    /// Describes a violation, if there is one: a caller that asks after a write must not get a value whose load had begun
    /// before it.
    fn stale(&self) -> Option<String> {
        self.got.iter().find_map(|(key, value, asked)| {
            let begun = self.begun.get(value)?;
            let between = |(called, over): &&(u64, u64)| called > begun && over < asked;
            let write = self.written.get(key)?.iter().find(between)?;
            Some(format!("key {key}: loaded from {begun} on, written to in {write:?}, got at {asked}"))
        })
    }
}

/// The records of one thread.
struct Worker<'t> {
    all: &'t Mutex<Told>,
}

impl Worker<'_> {
    fn tell(&self, tell: impl FnOnce(&mut Told)) {
        tell(&mut self.all.lock().unwrap());
    }

    fn wrote<L>(&self, recorder: &Recorder<'_, L>, key: u64, called: u64) {
        let over = recorder.tick();
        self.tell(|told| told.written.entry(key).or_default().push((called, over)));
    }

    fn got(&self, key: u64, value: Option<u64>, asked: u64) {
        self.tell(|told| told.got.extend(value.map(|value| (key, value, asked))));
    }

    fn load<L: Loads>(&self, recorder: &mut Recorder<'_, L>, rng: &mut Rng, key: u64, value: u64) {
        let (asked, waits, fails) = (recorder.tick(), rng.below(4), rng.one_in(6));
        let (begun, clock) = (Cell::new(None), &*recorder);
        let begin = || begun.set(Some(clock.tick()));
        let outcome = if fails { Err(()) } else { Ok(value) };
        let got = if rng.one_in(3) {
            let load = async {
                begin();
                for _ in 0..waits {
                    pause().await;
                }
                outcome
            };
            recorder.map.load_in_task(key, rng.below(30), load)
        } else {
            let load = || {
                begin();
                (0..waits).for_each(|_| yield_now());
                outcome
            };
            recorder.map.load(key, load)
        };
        if got == Some(value) {
            let begun = begun.get().expect("its own loader has run");
            recorder.note(key, asked, Saw::Nothing, Wrote::IfNone(value));
            self.tell(|told| told.begun.extend([(value, begun)]));
        } else {
            self.got(key, got, asked);
        }
    }

    fn step<L: Loads>(&self, recorder: &mut Recorder<'_, L>, rng: &mut Rng, keys: u64, value: u64) {
        let (cache, key, called) = (recorder.map, rng.below(keys), recorder.tick());
        match rng.below(20) {
            0..5 => {
                let seen = cache.get(key);
                recorder.note(key, called, seen.map_or(Saw::Absent, Saw::Value), Wrote::Nothing);
                self.got(key, seen, called);
            }
            5..12 => self.load(recorder, rng, key, value),
            12..14 => {
                cache.insert(key, value);
                recorder.note(key, called, Saw::Nothing, Wrote::State(Some(value)));
                self.wrote(recorder, key, called);
            }
            14..17 => {
                let seen = cache.remove(key);
                recorder.note(key, called, seen.map_or(Saw::Absent, Saw::Value), Wrote::State(None));
                self.wrote(recorder, key, called);
            }
            17 => recorder.note_all(keys, |cache| retained(keys, 0, |keep| cache.retain(keep))),
            18 if rng.one_in(2) => {
                recorder.note_all(keys, |cache| {
                    cache.clear();
                    vec![(Saw::Nothing, Wrote::State(None)); keys as usize]
                });
                (0..keys).for_each(|key| self.wrote(recorder, key, called));
            }
            19 if rng.one_in(8) => cache.resize(3 + rng.below(10)),
            _ => cache.insert(FILLERS + value % 1000, value),
        }
    }
}

/// Ready when it is polled for the second time.
fn pause() -> impl Future<Output = ()> {
    let mut polls = 0;
    poll_fn(move |context| {
        polls += 1;
        context.waker().wake_by_ref();
        if polls > 1 { Poll::Ready(()) } else { Poll::Pending }
    })
}

/// Polls a task this many times, and drops it.
fn polled<T>(polls: u64, task: impl Future<Output = T>) -> Option<T> {
    let (mut task, mut context) = (pin!(task), Context::from_waker(Waker::noop()));
    (0..polls).find_map(|_| match task.as_mut().poll(&mut context) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => {
            yield_now();
            None
        }
    })
}

/// Runs threads on a cache that is empty and checks what they saw.
fn run<L: Loads>(cache: &L, plan: Plan) -> Result<usize, String> {
    let told = Mutex::new(Told::default());
    let histories = record_steps(cache, plan, vec![None; plan.keys as usize], |thread| {
        let worker = Worker { all: &told };
        move |recorder: &mut Recorder<'_, L>, rng: &mut Rng, number| {
            worker.step(recorder, rng, plan.keys, (thread as u64 + 1) << 40 | number as u64);
        }
    });
    told.into_inner().unwrap().stale().map_or(Ok(()), Err)?;
    check_all(Register::Forgets, &histories).map_err(|broken| broken.to_string())
}

macro_rules! operations_of_koel {
    () => {
        fn get(&self, key: u64) -> Option<u64> {
            self.get(&key)
        }

        fn insert(&self, key: u64, value: u64) {
            let _ = self.insert(key, value);
        }

        fn remove(&self, key: u64) -> Option<u64> {
            self.remove(&key)
        }

        fn load(&self, key: u64, load: impl FnOnce() -> Result<u64, ()>) -> Option<u64> {
            self.try_get_or_insert_with(key, load).ok()
        }

        fn load_in_task(
            &self,
            key: u64,
            polls: u64,
            load: impl Future<Output = Result<u64, ()>>,
        ) -> Option<u64> {
            polled(polls, self.try_get_or_insert_async(key, load))?.ok()
        }

        fn retain(&self, mut keep: impl FnMut(u64, u64) -> bool) {
            self.retain(|key, value| keep(*key, *value));
        }

        fn clear(&self) {
            self.clear();
        }
    };
}

impl Loads for Cache<u64, u64, Seeded> {
    operations_of_koel!();

    fn resize(&self, capacity: u64) {
        self.set_capacity(capacity);
    }
}

impl Loads for InlineCache<u64, u64, Seeded> {
    operations_of_koel!();
}

const POLICIES: [Policy; 3] = [Policy::Adaptive, Policy::Clock, Policy::Local];

#[test]
fn nobody_gets_a_load_from_before_a_write_to_a_cache() {
    for policy in POLICIES {
        for estimated in [6, 5000] {
            for_all_plans("a cache", 1500, |plan| {
                let builder = Cache::builder().max_weight(6).estimated_entries(estimated).policy(policy);
                run(&builder.hasher(seeded(plan.seed)).build(), plan)
            });
        }
    }
}

#[test]
fn nobody_gets_a_load_from_before_a_write_to_an_inline_cache() {
    for policy in POLICIES {
        for_all_plans("an inline cache", 1500, |plan| {
            let builder = InlineCache::builder().max_entries(6).policy(policy);
            run(&builder.hasher(seeded(plan.seed)).build(), plan)
        });
    }
}

/// A defect of a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Defect {
    None,
    /// A loaded value is inserted if there is none, though the key was written to meanwhile.
    PutsStale,
    /// It replaces whatever is there.
    Overwrites,
    /// `clear` does not notify loaders.
    ClearsUnnoticed,
    /// A value that `retain` has removed comes back, now and then.
    RetainResurrects,
}

/// A locked cache in which each caller loads for itself. It has, for each key, the value and how often it was written to.
struct Defective {
    map: Mutex<HashMap<u64, (Option<u64>, u64)>>,
    defect: Defect,
    steps: AtomicU64,
}

impl Defective {
    fn entry(&self, key: u64) -> (Option<u64>, u64) {
        self.map.lock().unwrap().get(&key).copied().unwrap_or_default()
    }

    fn write(&self, key: u64, value: Option<u64>) -> Option<u64> {
        let mut map = self.map.lock().unwrap();
        let (now, writes) = map.entry(key).or_default();
        *writes += 1;
        std::mem::replace(now, value)
    }
}

impl Loads for Defective {
    fn get(&self, key: u64) -> Option<u64> {
        self.entry(key).0
    }

    fn insert(&self, key: u64, value: u64) {
        self.write(key, Some(value));
    }

    fn remove(&self, key: u64) -> Option<u64> {
        self.write(key, None)
    }

    fn load(&self, key: u64, load: impl FnOnce() -> Result<u64, ()>) -> Option<u64> {
        let (found, before) = self.entry(key);
        if found.is_some() {
            return found;
        }
        let value = load().ok()?;
        let mut map = self.map.lock().unwrap();
        let (now, writes) = map.entry(key).or_default();
        let puts = match self.defect {
            Defect::Overwrites => true,
            Defect::PutsStale => now.is_none(),
            _ => now.is_none() && *writes == before,
        };
        if puts {
            *now = Some(value);
        }
        Some(value)
    }

    fn load_in_task(&self, key: u64, _: u64, load: impl Future<Output = Result<u64, ()>>) -> Option<u64> {
        self.load(key, || polled(u64::MAX, load).expect("it comes to its end"))
    }

    fn retain(&self, mut keep: impl FnMut(u64, u64) -> bool) {
        let mut map = self.map.lock().unwrap();
        for (key, (value, writes)) in map.iter_mut() {
            if value.is_some_and(|value| !keep(*key, value)) {
                *writes += 1;
                let stays = self.steps.fetch_add(1, Ordering::Relaxed) % 10 == 9;
                *value = value.filter(|_| stays && self.defect == Defect::RetainResurrects);
            }
        }
    }

    fn clear(&self) {
        let noticed = u64::from(self.defect != Defect::ClearsUnnoticed);
        for (value, writes) in self.map.lock().unwrap().values_mut() {
            (*value, *writes) = (None, *writes + noticed);
        }
    }
}

fn run_with(defect: Defect) -> Result<usize, String> {
    let plan = Plan { threads: 3, operations: 3000, keys: 4, seed: 1 };
    run(&Defective { map: Mutex::default(), defect, steps: AtomicU64::new(0) }, plan)
}

#[test]
fn a_locked_cache_that_loads_without_defects_passes() {
    let operations = run_with(Defect::None).unwrap_or_else(|broken| panic!("{broken}"));
    assert!(operations > 5000, "{operations}");
}

#[test]
fn every_defect_of_loads_is_caught() {
    use Defect::*;
    for defect in [PutsStale, Overwrites, ClearsUnnoticed, RetainResurrects] {
        // The defects need two threads that meet.
        let caught = (0..200).find_map(|_| run_with(defect).err());
        assert!(caught.is_some(), "{defect:?} was not caught");
    }
}
