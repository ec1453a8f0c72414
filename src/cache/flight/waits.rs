//! Which load waits for which, among loads whose loaders wait for other keys: a graph that never has a cycle [F6].
//!
//! There is one graph for the process, because loaders of one cache may ask another. Only loaders, and callers that have
//! reserved a key, come here, if they wait for what *another* thread or task loads; any other caller waits for others, and
//! nobody waits for it.

use std::collections::{BTreeMap, BTreeSet};

use super::shard::FlightId;
use crate::sync::{AtomicUsize, Mutex, Ordering, global};

global! {
    static WAITS: Mutex<Waits> = Mutex::new(Waits { next: 0, edges: BTreeMap::new() });
}

global! {
    /// How many edges there are, so that a caller that reserves keys and waits for none takes no process-wide lock.
    static EDGES: AtomicUsize = AtomicUsize::new(0);
}

#[derive(Debug)]
struct Waits {
    next: u64,
    /// Keyed by the load that waits and the number of its wait: a future can have several.
    edges: BTreeMap<(FlightId, u64), FlightId>,
}

/// While this lives, some loads wait for one.
#[derive(Debug)]
pub(super) struct Edge {
    from: Vec<FlightId>,
    number: u64,
}

/// Notes that all loads of a thread's stack wait for a flight; `None` if the flight waits for one of them, so that all would
/// wait forever.
///
/// Looks and notes under one lock: of the waits that form a circle, the last one sees the others.
pub(super) fn for_flight(from: Vec<FlightId>, to: FlightId) -> Option<Edge> {
    let mut waits = WAITS.lock();
    if waits.reaches(to, &from) {
        return None;
    }
    let number = waits.next;
    waits.next += 1;
    waits.edges.extend(from.iter().map(|&from| ((from, number), to)));
    waits.counted();
    Some(Edge { from, number })
}

/// Forgets what this load waits for, even if a wait has begun. Called by the thread on which the load ran: what it waits for
/// was noted there.
pub(super) fn forget(from: FlightId) {
    // Relaxed: its partner is this thread's own store in `counted`, because edges from this load were noted here; no older
    // value is read.
    if EDGES.load(Ordering::Relaxed) == 0 {
        return;
    }
    let mut waits = WAITS.lock();
    let edges: Vec<_> = waits.edges.range((from, 0)..=(from, u64::MAX)).map(|(&edge, _)| edge).collect();
    for edge in edges {
        waits.edges.remove(&edge);
    }
    waits.counted();
}

impl Waits {
    fn counted(&self) {
        // Relaxed: under the lock, so in the order of the changes; read by `forget`.
        EDGES.store(self.edges.len(), Ordering::Relaxed);
    }

    /// Whether `start` is one of `goals`, or waits for one, directly or through others.
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
        waits.counted();
    }
}
