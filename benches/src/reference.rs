//! Exact policies, simulated: replays are validated against them. One queue for all entries, no concurrency.
//!
//! On a miss, entries are evicted until the new one fits, and then it is inserted. An entry that is larger than the whole cache
//! is not inserted.

use std::collections::BTreeMap;
use std::convert::Infallible;

use crate::replay::{self, Bound, Request};
use crate::trace::Trace;

/// Which entry is evicted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exact {
    /// The entry that was inserted first.
    Fifo,
    /// The entry that was requested longest ago.
    Lru,
    /// The entry that was inserted first, unless it was requested since it was inserted or last passed over: one bit, cleared
    /// in passing; new entries begin without it (Corbató, 1968).
    Clock,
}

/// A cache in a simulation.
#[derive(Debug)]
struct Simulated {
    policy: Exact,
    capacity: u64,
    used: u64,
    /// Keys by their turn to be evicted, with their sizes.
    queue: BTreeMap<u64, (u32, u64)>,
    next_turn: u64,
    /// For each key, its turn, if it is in the cache; and its bit.
    turns: Vec<Option<u64>>,
    marks: Vec<bool>,
}

impl Simulated {
    fn new(policy: Exact, capacity: u64, keys: usize) -> Self {
        Simulated {
            policy,
            capacity,
            used: 0,
            queue: BTreeMap::new(),
            next_turn: 0,
            turns: vec![None; keys],
            marks: vec![false; keys],
        }
    }

    /// Performs a request. Returns whether it was a hit.
    fn ask(&mut self, Request { index, size, .. }: Request) -> bool {
        if let Some(turn) = self.turns[index as usize] {
            self.touch(index, turn);
            return true;
        }
        let size = u64::from(size);
        if size <= self.capacity {
            while self.used + size > self.capacity {
                self.step();
            }
            self.used += size;
            self.marks[index as usize] = false;
            self.append(index, size);
        }
        false
    }

    fn touch(&mut self, index: u32, turn: u64) {
        match self.policy {
            Exact::Fifo => {}
            Exact::Clock => self.marks[index as usize] = true,
            Exact::Lru => {
                if let Some((index, size)) = self.queue.remove(&turn) {
                    self.append(index, size);
                }
            }
        }
    }

    fn append(&mut self, index: u32, size: u64) {
        self.queue.insert(self.next_turn, (index, size));
        self.turns[index as usize] = Some(self.next_turn);
        self.next_turn += 1;
    }

    /// Evicts the entry whose turn it is, or passes over it.
    fn step(&mut self) {
        let Some((_, (index, size))) = self.queue.pop_first() else { return };
        if std::mem::take(&mut self.marks[index as usize]) {
            self.append(index, size);
        } else {
            self.turns[index as usize] = None;
            self.used -= size;
        }
    }
}

/// The number of hits of `policy` in `trace`.
pub fn hits(policy: Exact, trace: &Trace, bound: Bound) -> u64 {
    let mut simulated = Simulated::new(policy, bound.amount(), trace.keys.len());
    let Ok(hits) = replay::hits(trace, bound, |request| Ok::<_, Infallible>(simulated.ask(request)));
    hits
}
