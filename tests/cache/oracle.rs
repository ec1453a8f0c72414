//! What a cache must hold, by the operations on it and its reports to the listener.
//!
//! A cache may evict any entry, but reports it: every entry that was inserted is in the cache or has been reported, once, and
//! with the right cause. So the oracle knows exactly what is there.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use koel::{CacheStats, Cause};

/// A value: its number is unique, the rest is what the weigher and the expiry function are to return.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Item {
    /// In a box, so that access to freed memory is noticed.
    pub(crate) number: Box<u64>,
    pub(crate) weight: u64,
    pub(crate) lives: Option<Duration>,
}

impl Item {
    /// How long it may go without a hit.
    pub(crate) fn idle(&self) -> Option<Duration> {
        self.lives.map(|lives| lives / 2)
    }
}

/// The record of the listener: key, number, cause.
pub(crate) type Told = Arc<Mutex<Vec<(u64, u64, Cause)>>>;

/// How entries expire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lives {
    pub(crate) to_live: Option<Duration>,
    pub(crate) to_idle: Option<Duration>,
    /// Whether there are expiry functions: one returns the item's time, the other [half of it](Item::idle).
    pub(crate) own: bool,
}

impl Lives {
    pub(crate) const FOR_EVER: Lives = Lives { to_live: None, to_idle: None, own: false };

    pub(crate) fn expire(self) -> bool {
        self != Self::FOR_EVER
    }
}

/// An entry that is in the cache.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    number: u64,
    weight: u64,
    deadline: Option<Duration>,
    last_use: Duration,
    idle: Option<Duration>,
}

/// What an operation may have done to entries other than its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    /// It looked one up.
    Look,
    /// It removed some.
    Remove,
    /// It removed all.
    Clear,
    /// It inserted one.
    Insert,
    /// It changed the capacity.
    Resize,
}

pub(crate) struct Oracle {
    held: BTreeMap<u64, Held>,
    lives: Lives,
    /// Whether values have weights of their own.
    weighed: bool,
    pub(crate) now: Duration,
    pub(crate) capacity: u64,
    pub(crate) stats: CacheStats,
    /// The weight of the last entry that left for its size.
    pub(crate) last_evicted: u64,
}

impl Oracle {
    pub(crate) fn new(lives: Lives, weighed: bool, capacity: u64) -> Self {
        let (held, now, stats) = (BTreeMap::new(), Duration::ZERO, CacheStats::default());
        Oracle { held, lives, weighed, now, capacity, stats, last_evicted: 0 }
    }

    pub(crate) fn weight_of(&self, item: &Item) -> u64 {
        if self.weighed { item.weight.max(1) } else { 1 }
    }

    fn has_expired(&self, held: &Held) -> bool {
        held.deadline.is_some_and(|deadline| self.now >= deadline)
            || held.idle.is_some_and(|idle| self.now >= held.last_use + idle)
    }

    /// The number of a key's value, if it may be returned.
    pub(crate) fn number(&self, key: u64) -> Option<u64> {
        self.held.get(&key).filter(|held| !self.has_expired(held)).map(|held| held.number)
    }

    /// All that may be returned.
    pub(crate) fn alive(&self) -> Vec<(u64, u64)> {
        let alive = self.held.iter().filter(|(_, held)| !self.has_expired(held));
        alive.map(|(key, held)| (*key, held.number)).collect()
    }

    /// All that may be returned, and what is known of them.
    pub(crate) fn alive_entries(&self) -> BTreeMap<u64, Held> {
        let alive = self.held.iter().filter(|(_, held)| !self.has_expired(held));
        alive.map(|(key, held)| (*key, held.clone())).collect()
    }

    /// Entries were put back as they had been, and entries that left for them are to be reported.
    pub(crate) fn restore(&mut self, entries: BTreeMap<u64, Held>) {
        self.stats.insertions += entries.len() as u64;
        self.held.extend(entries);
    }

    /// How many entries have expired and not been reported.
    pub(crate) fn expired(&self) -> usize {
        self.held.len() - self.alive().len()
    }

    pub(crate) fn len(&self) -> usize {
        self.held.len()
    }

    pub(crate) fn weight(&self) -> u64 {
        self.held.values().map(|held| held.weight).sum()
    }

    /// The weight of a key's entry, if there is one.
    pub(crate) fn held_weight(&self, key: u64) -> u64 {
        self.held.get(&key).map_or(0, |held| held.weight)
    }

    /// A key was looked up in a way that counts as a use. The result must be what is here.
    pub(crate) fn hit(&mut self, key: u64, seen: Option<u64>) {
        let expected = self.number(key);
        assert_eq!(seen, expected, "look-up of {key}");
        match expected {
            Some(_) => self.stats.hits += 1,
            None => self.stats.misses += 1,
        }
        let now = self.now;
        if let Some(held) = self.held.get_mut(&key).filter(|_| expected.is_some()) {
            held.last_use = now;
        }
    }

    /// An item was inserted, and entries that left for it have been taken account of.
    pub(crate) fn insert(&mut self, key: u64, item: &Item) {
        let shorter =
            |own: Option<Duration>, all| [own.filter(|_| self.lives.own), all].into_iter().flatten().min();
        let deadline = shorter(item.lives, self.lives.to_live).map(|lives| self.now + lives);
        let idle = shorter(item.idle(), self.lives.to_idle);
        let held =
            Held { number: *item.number, weight: self.weight_of(item), deadline, last_use: self.now, idle };
        assert!(self.held.insert(key, held).is_none(), "{key} was replaced and nobody was told");
        self.stats.insertions += 1;
    }

    /// An item was inserted, and not kept.
    pub(crate) fn turned_away(&mut self, item: &Item) {
        self.stats.insertions += 1;
        self.stats.evictions += 1;
        self.stats.evicted_weight += self.weight_of(item);
    }

    /// Takes account of entries that have left; `own` is the key of an insertion.
    pub(crate) fn told(&mut self, told: &Told, act: Act, own: Option<u64>) {
        for (key, number, cause) in told.lock().unwrap().drain(..) {
            let held = self.held.remove(&key).unwrap_or_else(|| panic!("told of {key}, which is not there"));
            assert_eq!(number, held.number, "told of {key} with another value");
            let expected: &[Cause] = match act {
                _ if self.has_expired(&held) => &[Cause::Expired],
                Act::Look => &[],
                Act::Remove | Act::Clear => &[Cause::Explicit],
                // An entry that grows may itself have to leave.
                Act::Insert if own == Some(key) => &[Cause::Replaced, Cause::Size],
                Act::Insert | Act::Resize => &[Cause::Size],
            };
            assert!(expected.contains(&cause), "{key}: {cause} by {act:?}, should be {expected:?}");
            match cause {
                Cause::Expired => self.stats.expirations += 1,
                Cause::Size => {
                    self.stats.evictions += 1;
                    self.stats.evicted_weight += held.weight;
                    self.last_evicted = held.weight;
                }
                _ => {}
            }
        }
    }
}
