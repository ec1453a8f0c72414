//! Which load waits for which, among loads whose loaders wait for other keys: a graph that never has a cycle [F6].
//!
//! One for the process, for loaders of one cache ask another. Only loaders that wait for what *another* thread or task
//! loads come here; a caller who is no loader waits for others, and nobody for it.

use std::collections::{BTreeMap, BTreeSet};

use super::shard::FlightId;
use crate::sync::{Mutex, global};

global! {
    static WAITS: Mutex<Waits> = Mutex::new(Waits { next: 0, edges: BTreeMap::new() });
}

#[derive(Debug)]
struct Waits {
    next: u64,
    /// By the load that waits, and the number of its wait: a future can have several.
    edges: BTreeMap<(FlightId, u64), FlightId>,
}

/// While it lives, some loads wait for one.
#[derive(Debug)]
pub(super) struct Edge {
    from: Vec<FlightId>,
    number: u64,
}

/// All loads of a thread's stack wait for a flight; `None` if it waits for one of them, so that all would for ever.
///
/// Looks and notes under one lock: of the waits that close a circle, the last one sees the others.
pub(super) fn for_flight(from: Vec<FlightId>, to: FlightId) -> Option<Edge> {
    let mut waits = WAITS.lock();
    if waits.reaches(to, &from) {
        return None;
    }
    let number = waits.next;
    waits.next += 1;
    waits.edges.extend(from.iter().map(|&from| ((from, number), to)));
    Some(Edge { from, number })
}

impl Waits {
    /// Whether `start` is one of `goals`, or waits for one, through whatever others.
    fn reaches(&self, start: FlightId, goals: &[FlightId]) -> bool {
        let (mut seen, mut ahead) = (BTreeSet::from([start]), vec![start]);
        while let Some(at) = ahead.pop() {
            if goals.contains(&at) {
                return true;
            }
            let next = self.edges.range((at, 0)..=(at, u64::MAX)).map(|(_, &to)| to);
            ahead.extend(next.filter(|&to| seen.insert(to)));
        }
        false
    }
}

impl Drop for Edge {
    fn drop(&mut self) {
        let mut waits = WAITS.lock();
        for &from in &self.from {
            waits.edges.remove(&(from, self.number));
        }
    }
}
