//! What each thread will do, written down before the clock starts: operations with the answers they must get.
//!
//! A plan is made once and run by every contestant. If threads write only keys of their own, each key's value is known at every
//! moment, and so is the content at the end. If threads write the same keys, the values that they write and those that the
//! answers say were replaced must balance with the content at the end.

mod caches;
mod filters;
mod mixed;
mod reads;
mod shared;
mod world;

use std::sync::Arc;

pub use self::caches::{CacheLoad, CachePlan, resident};
pub use self::filters::{ChurnPlan, LOOKUPS_PER_CHURN, absent, churn, present};
pub use self::mixed::mixed;
pub use self::reads::{ReadPlan, TextPlan, reads, replayed_reads, texts};
use crate::keys;
use crate::trace::Trace;
use crate::workload::Mix;

/// What a map holds before a plan is run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Start {
    /// The capacity the map is built with.
    pub capacity: usize,
    /// How many keys it holds: those of indices `0..filled`, all of version 0.
    pub filled: u64,
    /// The keys that indices stand for.
    pub keys: Keys,
}

impl Start {
    /// A map built for `count` numbered keys that holds them.
    pub fn full(count: u64) -> Self {
        Start { capacity: count as usize, filled: count, keys: Keys::Numbered }
    }
}

/// Which key an index stands for.
#[derive(Debug, Clone)]
pub enum Keys {
    /// [`keys::key`].
    Numbered,
    /// The distinct keys of a trace.
    Listed(Arc<Trace>),
}

impl Keys {
    /// The key of `index`.
    #[inline]
    pub fn key(&self, index: u64) -> u64 {
        match self {
            Keys::Numbered => keys::key(index),
            Keys::Listed(trace) => trace.keys[index as usize],
        }
    }
}

impl PartialEq for Keys {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Keys::Numbered, Keys::Numbered) => true,
            (Keys::Listed(mine), Keys::Listed(theirs)) => Arc::ptr_eq(mine, theirs),
            _ => false,
        }
    }
}

impl Eq for Keys {}

/// An operation on a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Look it up.
    Get,
    /// Insert the value of the operation's version, or replace by it.
    Insert,
    /// Remove it.
    Remove,
    /// Add one to its version, in place.
    Update,
}

impl Action {
    /// The action of an operation of `mix` for which `choice` was drawn, out of 100.
    fn drawn(mix: Mix, choice: usize) -> Self {
        let (read, insert, remove) = (mix.read as usize, mix.insert as usize, mix.remove as usize);
        match choice {
            _ if choice < read => Action::Get,
            _ if choice < read + insert => Action::Insert,
            _ if choice < read + insert + remove => Action::Remove,
            _ => Action::Update,
        }
    }
}

/// Which answers are right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expect(u8);

impl Expect {
    const SOME: u8 = 1;
    const NONE: u8 = 2;
    const VERSION: u8 = 4;

    /// The key is absent.
    pub const ABSENT: Expect = Expect(Self::NONE);
    /// The key is there, with one certain version.
    pub const EXACT: Expect = Expect(Self::SOME | Self::VERSION);
    /// The key is there, with a version that another thread determines concurrently.
    pub const PRESENT: Expect = Expect(Self::SOME);
    /// Another thread inserts or removes it concurrently; if there is a value, it belongs to the key.
    pub const OPEN: Expect = Expect(Self::SOME | Self::NONE);

    /// Whether `got` is a right answer for `key` at `version`.
    #[inline]
    pub fn admits(self, key: u64, version: u32, got: Option<u64>) -> bool {
        match got {
            Some(value) => {
                // Without a branch: whether a key is another thread's is random, and a branch would be mispredicted.
                let ignored_bits = if self.0 & Self::VERSION == 0 { 32 } else { 0 };
                let difference = value ^ keys::value(key, version);
                (difference >> ignored_bits == 0) & (self.0 & Self::SOME != 0)
            }
            None => self.0 & Self::NONE != 0,
        }
    }
}

/// One operation and the answer that it must get.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Op {
    /// The key.
    pub key: u64,
    /// The version that is read or written.
    pub version: u32,
    /// The action.
    pub action: Action,
    /// The answers that are right.
    pub expect: Expect,
}

/// How often each kind of answer came, or has to come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Lookups that found the key.
    pub hits: u64,
    /// Lookups that did not find it.
    pub misses: u64,
    /// Inserts of a key that was absent.
    pub inserted: u64,
    /// Inserts that replaced.
    pub replaced: u64,
    /// Removals of a key that was there.
    pub removed: u64,
    /// Removals of a key that was absent.
    pub unremoved: u64,
    /// Updates of a key that was there.
    pub updated: u64,
    /// Updates of a key that was absent.
    pub unupdated: u64,
}

/// How many operations may or may not find their keys.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Open {
    /// Lookups.
    pub reads: u64,
    /// Inserts.
    pub inserts: u64,
    /// Removals.
    pub removes: u64,
    /// Updates.
    pub updates: u64,
}

/// What one thread's answers must add up to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Prediction {
    /// Answers that are certain.
    pub certain: Counts,
    /// Operations that may or may not find their keys.
    pub open: Open,
}

/// What the map holds after the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum After {
    /// A certain number of entries, whatever the threads' order was.
    Certain {
        /// Entries.
        len: usize,
    },
    /// What the answers say, as threads write the same keys; before the run, the map held this.
    Answered {
        /// Entries, among them all that are written.
        len: usize,
        /// The sum of the values of those that are written, modulo 2^64.
        sum: u64,
    },
}

/// The operations of every thread and their result.
#[derive(Debug, Clone)]
pub struct MixPlan {
    /// What the map holds before the run.
    pub start: Start,
    /// Each thread's operations.
    pub threads: Vec<Vec<Op>>,
    /// The totals of each thread.
    pub predicted: Vec<Prediction>,
    /// What the map holds after the run.
    pub after: After,
    /// Some keys and their values after the run, of those for which these are certain.
    pub samples: Vec<(u64, Option<u64>)>,
    /// The keys that some thread writes.
    pub written: Vec<u64>,
    /// What the map holds after the run, if that can be the start of another: a different start, or, when `written` have been
    /// set back to version 0, the same.
    pub leaves: Option<Start>,
}

impl MixPlan {
    /// Operations of all threads together.
    pub fn ops(&self) -> u64 {
        self.threads.iter().map(|ops| ops.len() as u64).sum()
    }
}
