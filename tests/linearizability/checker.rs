//! Is there an order of a key's operations that explains what they saw, in which each takes effect between its call and its
//! return?
//!
//! Linearizability is local (Herlihy and Wing, TOPLAS 1990, theorem 1), and so each key is checked by itself: a
//! register that holds a value or none. Two algorithms, checked against each other: the search of Wing and Gong (JPDC
//! 1993) with Lowe's memoization for short histories, and just-in-time linearization (Lowe, CPE 2017, section 4) for
//! long ones.
//!
//! The register of a cache may forget its value at any moment, for good: then it is as if the value had been removed. The
//! register of a filter is the number of copies of the key, as a value, and none for no copy.

use std::collections::HashSet;

/// What an operation saw of its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Saw {
    Value(u64),
    Present,
    Absent,
    /// No more copies than this.
    AtMost(u64),
    /// It did not look, or could not be sure.
    Nothing,
    /// Something that was never written.
    Garbage(String),
}

/// What an operation left behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wrote {
    Nothing,
    /// A value, or none.
    State(Option<u64>),
    /// A value, where there was none.
    IfNone(u64),
    /// None in place of this value; no change if that is not there.
    Without(u64),
    /// One more copy.
    More,
    /// One copy less.
    Less,
}

impl Wrote {
    pub(crate) fn applied_to(self, state: Option<u64>) -> Option<u64> {
        match self {
            Wrote::Nothing => state,
            Wrote::State(new) => new,
            Wrote::IfNone(new) => state.or(Some(new)),
            Wrote::Without(value) => state.filter(|state| *state != value),
            Wrote::More => Some(state.unwrap_or(0) + 1),
            Wrote::Less => state.and_then(|copies| copies.checked_sub(1)).filter(|copies| *copies > 0),
        }
    }
}

/// One operation on one key. `invoked < returned`, on one clock for all threads.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    pub(crate) invoked: u64,
    pub(crate) returned: u64,
    pub(crate) saw: Saw,
    pub(crate) wrote: Wrote,
}

impl Event {
    /// The state after this operation took effect in `state`; `None` if it cannot have.
    fn after(&self, state: Option<u64>) -> Option<Option<u64>> {
        let explained = match (&self.saw, state) {
            (Saw::Value(seen), Some(value)) => *seen == value,
            (Saw::Nothing, _) => true,
            (Saw::Present, state) => state.is_some(),
            (Saw::Absent, state) => state.is_none(),
            (Saw::AtMost(copies), state) => state.unwrap_or(0) <= *copies,
            (Saw::Value(_), None) | (Saw::Garbage(_), _) => false,
        };
        explained.then(|| self.wrote.applied_to(state))
    }
}

/// The kind of register that a key is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Register {
    /// Keeps what is written.
    Keeps,
    /// May lose what is written at any moment.
    Forgets,
}

impl Register {
    /// The state that may follow without an operation.
    fn later(self, state: Option<u64>) -> Option<Option<u64>> {
        (self == Register::Forgets && state.is_some()).then_some(None)
    }
}

/// No order explains the history.
#[derive(Debug)]
pub(crate) struct Violation {
    /// An event that cannot be explained, and what happened around it.
    pub(crate) around: Vec<Event>,
}

/// Wing and Gong's search: up to 64 events, in any order.
pub(crate) fn search(register: Register, initial: Option<u64>, events: &[Event]) -> bool {
    assert!(events.len() <= 64);
    let all = u64::MAX.checked_shl(events.len() as u32).map_or(u64::MAX, |rest| !rest);
    let mut seen = HashSet::new();
    let mut open = vec![(0_u64, initial)];
    while let Some((done, state)) = open.pop() {
        if done == all {
            return true;
        }
        open.extend(register.later(state).map(|state| (done, state)).filter(|&next| seen.insert(next)));
        let waiting = || events.iter().enumerate().filter(|(i, _)| done >> i & 1 == 0);
        let first_return = waiting().map(|(_, event)| event.returned).min().unwrap_or(u64::MAX);
        for (i, event) in waiting().filter(|(_, event)| event.invoked < first_return) {
            if let Some(state) = event.after(state) {
                let next = (done | 1 << i, state);
                if seen.insert(next) {
                    open.push(next);
                }
            }
        }
    }
    false
}

/// A possible course so far: which of the operations under way have taken effect, and the state.
type Possibility = (u64, Option<u64>);

/// Just-in-time linearization: any number of events, at most 64 of them at a time.
pub(crate) fn check(register: Register, initial: Option<u64>, events: &[Event]) -> Result<(), Violation> {
    // Calls and returns in the order of the clock, which yields each number once.
    let mut timeline: Vec<(u64, usize)> =
        events.iter().enumerate().flat_map(|(i, event)| [(event.invoked, i), (event.returned, i)]).collect();
    timeline.sort_unstable();
    let mut under_way: Vec<Option<usize>> = Vec::new();
    let mut places = vec![usize::MAX; events.len()];
    let mut possible: HashSet<Possibility> = HashSet::from([(0, initial)]);
    for (time, i) in timeline {
        if time == events[i].invoked {
            let free = under_way.iter().position(Option::is_none).unwrap_or(under_way.len());
            assert!(free < 64, "more than 64 operations at a time");
            under_way.resize(under_way.len().max(free + 1), None);
            under_way[free] = Some(i);
            places[i] = free;
        } else {
            possible = at_return(register, events, &under_way, places[i], &possible);
            under_way[places[i]] = None;
            if possible.is_empty() {
                return Err(Violation { around: around(events, i) });
            }
        }
    }
    Ok(())
}

/// The possibilities in which the operation at `place`, which returns now, has taken effect.
fn at_return(
    register: Register,
    events: &[Event],
    under_way: &[Option<usize>],
    place: usize,
    possible: &HashSet<Possibility>,
) -> HashSet<Possibility> {
    let mut remaining = HashSet::new();
    let mut seen = possible.clone();
    let mut open: Vec<Possibility> = possible.iter().copied().collect();
    while let Some((done, state)) = open.pop() {
        open.extend(register.later(state).map(|state| (done, state)).filter(|&next| seen.insert(next)));
        if done >> place & 1 == 1 {
            remaining.insert((done & !(1 << place), state));
            continue;
        }
        for (i, event) in under_way.iter().enumerate().filter(|(i, _)| done >> i & 1 == 0) {
            if let Some(state) = event.and_then(|event| events[event].after(state)) {
                let next = (done | 1 << i, state);
                if seen.insert(next) {
                    open.push(next);
                }
            }
        }
    }
    remaining
}

/// The event, and those just before it and concurrent with it.
fn around(events: &[Event], at: usize) -> Vec<Event> {
    let at = &events[at];
    let mut before: Vec<Event> = events.iter().filter(|event| event.invoked < at.returned).cloned().collect();
    before.sort_by_key(|event| event.returned);
    before.split_off(before.len().saturating_sub(12))
}
