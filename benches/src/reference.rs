//! Exact policies, simulated: what a replay is validated against. One queue for all entries, no concurrency.
//!
//! On a miss, entries leave until the new one fits, and then it comes in. What is larger than the whole cache stays out.

use std::collections::BTreeMap;
use std::convert::Infallible;

use crate::replay::{self, Bound, Request};
use crate::trace::Trace;

/// Who leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exact {
    /// Who came first.
    Fifo,
    /// Who was asked for longest ago.
    Lru,
    /// Who came first, unless it was asked for since it came or was last passed over: one bit, cleared in passing; new
    /// entries come without it (Corbató, 1968).
    Clock,
}

/// A cache in a simulation.
#[derive(Debug)]
struct Simulated {
    policy: Exact,
    capacity: u64,
    used: u64,
    /// Keys by their turn to leave, with their sizes.
    queue: BTreeMap<u64, (u32, u64)>,
    next_turn: u64,
    /// By key: its turn, if it is in the cache; and its bit.
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

    /// Whether it was a hit.
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

    /// Whoever's turn it is leaves, or is passed over.
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

/// Hits that `policy` has in `trace`.
pub fn hits(policy: Exact, trace: &Trace, bound: Bound) -> u64 {
    let mut simulated = Simulated::new(policy, bound.amount(), trace.keys.len());
    let Ok(hits) = replay::hits(trace, bound, |request| Ok::<_, Infallible>(simulated.ask(request)));
    hits
}
