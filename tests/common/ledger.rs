//! Counts drops: every value that is made is dropped exactly once.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// The record of all values made with it.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    /// For each value made, how often it was dropped.
    drops: Mutex<Vec<u32>>,
    alive: AtomicUsize,
}

impl Ledger {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Ledger::default())
    }

    /// A value to be counted.
    pub(crate) fn value(self: &Arc<Self>, n: u64) -> Counted {
        let mut drops = self.drops.lock().unwrap();
        drops.push(0);
        self.alive.fetch_add(1, Ordering::SeqCst);
        Counted { n, id: drops.len() - 1, ledger: Arc::clone(self) }
    }

    /// How many values were made and not dropped.
    pub(crate) fn alive(&self) -> usize {
        self.alive.load(Ordering::SeqCst)
    }

    /// How many values were made.
    pub(crate) fn made(&self) -> usize {
        self.drops.lock().unwrap().len()
    }

    /// # Panics
    ///
    /// If a value was dropped twice.
    pub(crate) fn assert_none_dropped_twice(&self, what: &str) {
        assert!(self.drops.lock().unwrap().iter().all(|times| *times <= 1), "{what}: dropped twice");
    }

    /// # Panics
    ///
    /// If a value is still alive, or was dropped twice.
    pub(crate) fn assert_settled(&self, what: &str) {
        let drops = self.drops.lock().unwrap();
        let wrong: Vec<_> = drops.iter().enumerate().filter(|(_, n)| **n != 1).take(10).collect();
        assert!(
            wrong.is_empty(),
            "{what}: of {} values, (value, drops) is wrong for {wrong:?}...",
            drops.len()
        );
    }
}

/// A value whose drop is counted; equal and hashed by its number.
#[derive(Debug)]
pub(crate) struct Counted {
    pub(crate) n: u64,
    id: usize,
    ledger: Arc<Ledger>,
}

impl Clone for Counted {
    fn clone(&self) -> Self {
        self.ledger.value(self.n)
    }
}

impl PartialEq for Counted {
    fn eq(&self, other: &Self) -> bool {
        self.n == other.n
    }
}

impl Eq for Counted {}

impl core::hash::Hash for Counted {
    fn hash<H: core::hash::Hasher>(&self, state: &mut H) {
        self.n.hash(state);
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        // Not `unwrap`: this may run in an unwind.
        if let Ok(mut drops) = self.ledger.drops.lock() {
            drops[self.id] += 1;
        }
        self.ledger.alive.fetch_sub(1, Ordering::SeqCst);
    }
}
