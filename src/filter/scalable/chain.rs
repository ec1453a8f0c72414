//! The list of tables, which readers follow without a lock.
//!
//! Each list is immutable: growing and compacting replace it. Old lists are reclaimed when no reader is left that may follow
//! them [I6]; tables when no list has them any more. The oldest table stays: it is the last of every list, and as long as it is
//! the only one, there is no list at all, and nothing to pin.

use core::fmt;
use core::ops::Deref;
use std::sync::Arc;

use super::super::geometry::{Older, Place};
use super::super::inner::Inner;
use crate::swapped::{Current, Swapped};
use crate::sync::{Mutex, MutexGuard};

/// The size in bytes of a table from which on its buckets are prefetched before any table is looked at: misses among ten
/// million keys take 290 ns with that, 403 without it, and 300 if only from 2 MiB on.
const FAR_BYTES: usize = 512 << 10;

/// A table of a chain.
#[derive(Clone)]
pub(super) struct Level {
    pub(super) inner: Arc<Inner>,
    /// How often its size was doubled from that of table 0.
    pub(super) index: u32,
    /// Whether it has [`FAR_BYTES`].
    pub(super) is_far: bool,
}

impl Level {
    /// A table that is `2^index` times as large as table 0.
    pub(super) fn new(inner: Inner, index: u32) -> Self {
        Level { is_far: inner.table.memory_usage() >= FAR_BYTES, inner: Arc::new(inner), index }
    }

    /// Returns the place in this table of a key whose place in table `newer`, or in this one, is given.
    #[inline(always)]
    pub(super) fn older<'p>(&self, place: &'p Place, newer: u32) -> Older<'p> {
        Older { newer: place, doublings: newer - self.index }
    }
}

/// The current list.
pub(super) struct Chain {
    /// No older table could take its contents: it is never taken off.
    oldest: Level,
    /// All tables, newest first; empty: the oldest is alone.
    list: Swapped<Vec<Level>>,
    /// Held by a thread that replaces the list, and while a table is being emptied.
    structure: Mutex<()>,
}

/// The current tables, newest first: at least one.
pub(super) enum Levels<'a> {
    Alone(&'a Level),
    Several(Current<'a, Vec<Level>>),
}

impl Deref for Levels<'_> {
    type Target = [Level];

    #[inline]
    fn deref(&self) -> &[Level] {
        match self {
            Levels::Alone(level) => core::slice::from_ref(level),
            Levels::Several(list) => list,
        }
    }
}

impl core::panic::UnwindSafe for Chain {}
impl core::panic::RefUnwindSafe for Chain {}

impl Chain {
    /// Makes a chain of these tables, newest first.
    ///
    /// # Panics
    ///
    /// If there is none.
    pub(super) fn new(levels: Vec<Level>) -> Self {
        let oldest = levels.last().expect("a chain has a table").clone();
        let list = Swapped::new((levels.len() > 1).then_some(levels));
        Chain { oldest, list, structure: Mutex::new(()) }
    }

    /// The tables of the current list.
    #[inline]
    pub(super) fn levels(&self) -> Levels<'_> {
        // Checked first, as there is no need of a pin then.
        let list = if self.list.is_empty() { None } else { self.list.pin() };
        list.map_or(Levels::Alone(&self.oldest), Levels::Several)
    }

    /// Returns the only table, if there is just one: without a pin.
    ///
    /// A reader that looks only there misses nothing. Keys that were inserted into another table before were inserted after
    /// that table had been listed; and keys that have been moved from there were in this table before the list went.
    #[inline(always)]
    pub(super) fn alone(&self) -> Option<&Inner> {
        self.list.is_empty().then_some(&*self.oldest.inner)
    }

    /// Frees lists that were replaced, and tables that are in no list any more, as soon as nobody looks at them. To be called
    /// by a thread that holds neither the right to replace the list nor a pin. No user code runs in it.
    pub(super) fn flush(&self) {
        self.list.flush();
    }

    /// Waits for any thread that is replacing the list, or emptying a table to take it off.
    pub(super) fn lock(&self) -> Restructuring<'_> {
        Restructuring { chain: self, _lock: self.structure.lock() }
    }
}

/// The right to replace the list.
pub(super) struct Restructuring<'a> {
    chain: &'a Chain,
    _lock: MutexGuard<'a, ()>,
}

impl Restructuring<'_> {
    /// Replaces the current list by a list of these tables, the oldest still the last; returns `false` if there is no memory
    /// for it.
    pub(super) fn replace(&self, levels: Vec<Level>) -> bool {
        debug_assert!(levels.last().is_some_and(|last| Arc::ptr_eq(&last.inner, &self.chain.oldest.inner)));
        if levels.len() == 1 {
            self.chain.list.clear();
            return true;
        }
        self.chain.list.replace(levels).is_ok()
    }
}

impl fmt::Debug for Chain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Chain").field("tables", &self.levels().len()).finish_non_exhaustive()
    }
}
