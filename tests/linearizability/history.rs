//! Recording: threads do random operations on a few keys and note when, and what they saw.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use super::checker::{Event, Register, Saw, Violation, Wrote, check};
use crate::common::{Rng, on_threads};

/// What was read: a value, none, or garbage.
pub(crate) type Seen = Result<Option<u64>, String>;

/// A map from `u64` whose values stand for numbers.
pub(crate) trait Subject: Sync {
    /// Whether keys may leave by themselves.
    const REGISTER: Register = Register::Keeps;

    fn get(&self, key: u64) -> Seen;
    fn get_many(&self, keys: &[u64]) -> Vec<Seen>;
    fn contains_key(&self, key: u64) -> bool;
    fn may_contain(&self, key: u64) -> bool;
    /// Returns what it found, if it looked.
    fn insert(&self, key: u64, value: u64) -> Saw;
    /// Returns the value that it found, instead of which it inserted nothing.
    fn try_insert(&self, key: u64, value: u64) -> Seen;
    fn remove(&self, key: u64) -> Seen;
    /// Replaces the value that it saw by `value`, or removes it if `remove`; does nothing if there is none.
    fn compute(&self, key: u64, value: u64, remove: bool) -> Seen;
    /// Replaces the value that it saw by `value`, or inserts it.
    fn update_or_insert(&self, key: u64, value: u64) -> Seen;
    /// Other operations of a thread between two recorded ones.
    fn disturb(&self, _rng: &mut Rng, _thread: usize, _step: usize) {}
}

/// The parameters of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) threads: usize,
    /// Operations of each thread.
    pub(crate) operations: usize,
    /// Keys 0..keys are operated on.
    pub(crate) keys: u64,
    pub(crate) seed: u64,
}

/// Key and event.
type Note = (u64, Event);

/// A history that no order explains.
#[derive(Debug)]
pub(crate) struct Broken {
    key: u64,
    violation: Violation,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "key {}: nothing explains the last of these:", self.key)?;
        for Event { invoked, returned, saw, wrote } in &self.violation.around {
            write!(f, "  {invoked}..{returned} saw {saw:?}")?;
            match wrote {
                Wrote::Nothing => writeln!(f)?,
                Wrote::State(None) => writeln!(f, ", removed it")?,
                Wrote::State(Some(value)) => writeln!(f, ", left {value}")?,
                Wrote::IfNone(value) => writeln!(f, ", left {value} where there was none")?,
                Wrote::Without(value) => writeln!(f, ", removed {value} if that was there")?,
                Wrote::More => writeln!(f, ", added a copy")?,
                Wrote::Less => writeln!(f, ", took a copy")?,
            }
        }
        Ok(())
    }
}

/// One thread's recording.
pub(crate) struct Recorder<'a, S> {
    pub(crate) map: &'a S,
    clock: &'a AtomicU64,
    notes: Vec<Note>,
}

impl<S> Recorder<'_, S> {
    pub(crate) fn tick(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::SeqCst)
    }

    pub(crate) fn note(&mut self, key: u64, invoked: u64, saw: Saw, wrote: Wrote) {
        // No two notes may have the same tick: each return of a step gets one of its own.
        let returned = self.tick();
        self.notes.push((key, Event { invoked, returned, saw, wrote }));
    }

    /// Notes an operation on all keys, which takes effect for each at a moment of its own.
    pub(crate) fn note_all(&mut self, keys: u64, act: impl FnOnce(&S) -> Each) {
        let invoked: Vec<u64> = (0..keys).map(|_| self.tick()).collect();
        let each = act(self.map);
        for ((key, invoked), (saw, wrote)) in (0..).zip(invoked).zip(each) {
            self.note(key, invoked, saw, wrote);
        }
    }
}

impl<S: Subject> Recorder<'_, S> {
    /// Does an operation that sees the whole state and leaves `wrote(what it saw)`, if it writes.
    fn step(
        &mut self,
        key: u64,
        act: impl FnOnce(&S) -> Seen,
        wrote: impl FnOnce(Option<u64>) -> Option<Option<u64>>,
    ) {
        let invoked = self.tick();
        let seen = act(self.map);
        let wrote = wrote(seen.clone().unwrap_or(None)).map_or(Wrote::Nothing, Wrote::State);
        self.note(key, invoked, saw(seen), wrote);
    }

    fn random_step(&mut self, rng: &mut Rng, keys: u64, value: u64) {
        let key = rng.below(keys);
        match rng.below(20) {
            0..4 => self.step(key, |map| map.get(key), |_| None),
            4 => self.note_all(keys, |map| {
                let seen = map.get_many(&(0..keys).collect::<Vec<_>>());
                seen.into_iter().map(|seen| (saw(seen), Wrote::Nothing)).collect()
            }),
            5 => {
                let invoked = self.tick();
                let saw = if self.map.contains_key(key) { Saw::Present } else { Saw::Absent };
                self.note(key, invoked, saw, Wrote::Nothing);
            }
            6 => {
                let invoked = self.tick();
                if !self.map.may_contain(key) {
                    self.note(key, invoked, Saw::Absent, Wrote::Nothing);
                }
            }
            7..10 => {
                let invoked = self.tick();
                let saw = self.map.insert(key, value);
                self.note(key, invoked, saw, Wrote::State(Some(value)));
            }
            10..12 => {
                self.step(key, |map| map.try_insert(key, value), |old| old.is_none().then_some(Some(value)))
            }
            12..15 => self.step(key, |map| map.remove(key), |_| Some(None)),
            15..18 => {
                let remove = rng.one_in(4);
                let new = if remove { None } else { Some(value) };
                self.step(key, |map| map.compute(key, value, remove), |old| old.map(|_| new));
            }
            _ => self.step(key, |map| map.update_or_insert(key, value), |_| Some(Some(value))),
        }
    }
}

/// For each key, what was seen of it and done to it.
pub(crate) type Each = Vec<(Saw, Wrote)>;

/// Makes `retain` keep two values of three. If the closure refused a key when it was last asked about it, `retain` removed the
/// value that the closure had seen, or found none.
pub(crate) fn retained(
    keys: u64,
    refused: u64,
    retain: impl FnOnce(&mut dyn FnMut(u64, u64) -> bool),
) -> Each {
    let mut each = vec![(Saw::Absent, Wrote::Nothing); keys as usize];
    retain(&mut |key, value| {
        let keeps = value % 3 != refused;
        if let Some(last) = each.get_mut(key as usize) {
            *last = match keeps {
                true => (Saw::Value(value), Wrote::Nothing),
                false => (Saw::Nothing, Wrote::Without(value)),
            };
        }
        keeps
    });
    each
}

pub(crate) fn saw(seen: Seen) -> Saw {
    match seen {
        Ok(Some(value)) => Saw::Value(value),
        Ok(None) => Saw::Absent,
        Err(garbage) => Saw::Garbage(garbage),
    }
}

/// Runs threads on a map and checks what they saw; returns the number of operations. Values are never written twice.
pub(crate) fn run<S: Subject>(map: &S, plan: Plan) -> Result<usize, Broken> {
    check_all(S::REGISTER, &record(map, plan))
}

/// Checks the history of each key; returns the number of operations.
pub(crate) fn check_all(register: Register, histories: &[History]) -> Result<usize, Broken> {
    for (key, (initial, events)) in (0..).zip(histories) {
        check(register, *initial, events).map_err(|violation| Broken { key, violation })?;
    }
    Ok(histories.iter().map(|(_, events)| events.len()).sum())
}

/// The initial state and the events of a key.
pub(crate) type History = (Option<u64>, Vec<Event>);

/// The history of each key.
pub(crate) fn record<S: Subject>(map: &S, plan: Plan) -> Vec<History> {
    let initial = (0..plan.keys).map(|key| map.get(key).expect("quiet")).collect();
    record_steps(map, plan, initial, |thread| {
        move |recorder: &mut Recorder<'_, S>, rng: &mut Rng, step| {
            // Never 0, and different for each step of all runs on one map.
            let value = plan.seed << 44 | (thread as u64 + 1) << 40 | step as u64;
            recorder.random_step(rng, plan.keys, value);
            map.disturb(rng, thread, step);
        }
    })
}

/// The history of each key, of which these are the initial states: `worker(thread)` makes what a thread does in each step.
pub(crate) fn record_steps<S: Sync, W: FnMut(&mut Recorder<'_, S>, &mut Rng, usize)>(
    map: &S,
    plan: Plan,
    initial: Vec<Option<u64>>,
    worker: impl Fn(usize) -> W + Sync,
) -> Vec<History> {
    let clock = AtomicU64::new(0);
    let notes = on_threads(plan.threads, |thread| {
        let mut rng = Rng::new(plan.seed ^ (thread as u64) << 32);
        let mut recorder = Recorder { map, clock: &clock, notes: Vec::with_capacity(plan.operations * 2) };
        let mut work = worker(thread);
        (0..plan.operations).for_each(|step| work(&mut recorder, &mut rng, step));
        recorder.notes
    });
    let mut histories: Vec<History> = initial.into_iter().map(|state| (state, Vec::new())).collect();
    for (key, event) in notes.into_iter().flatten() {
        histories[key as usize].1.push(event);
    }
    histories
}
