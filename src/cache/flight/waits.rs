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
    to: FlightId,
}

/// The flight waits for one of those that would wait for it, so that all would for ever.
#[derive(Debug)]
pub(super) struct Circle;

/// All loads of a thread's stack wait for a flight.
pub(super) fn for_flight(stack: &[FlightId], to: FlightId) -> Result<Edge, Circle> {
    let mut waits = WAITS.lock();
    let number = waits.next;
    waits.next += 1;
    let mut from = Vec::new();
    waits.link(&mut from, number, to, stack)?;
    Ok(Edge { from, number, to })
}

impl Edge {
    /// All loads of this stack wait for it, too.
    pub(super) fn add(&mut self, stack: &[FlightId]) -> Result<(), Circle> {
        if stack.iter().all(|load| self.from.contains(load)) {
            return Ok(());
        }
        WAITS.lock().link(&mut self.from, self.number, self.to, stack)
    }
}

impl Waits {
    /// Looks and notes under one lock: of the waits that close a circle, the last one sees the others.
    fn link(
        &mut self,
        from: &mut Vec<FlightId>,
        number: u64,
        to: FlightId,
        stack: &[FlightId],
    ) -> Result<(), Circle> {
        if self.reaches(to, stack) {
            return Err(Circle);
        }
        let new = stack.iter().filter(|&&load| self.edges.insert((load, number), to).is_none());
        from.extend(new);
        Ok(())
    }

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
