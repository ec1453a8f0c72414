//! The list of tables, which readers follow without a lock.
//!
//! Each list is immutable: growing and compacting put a new one in its place. Old lists are reclaimed when no reader is
//! left that may follow them [I6]; tables when no list has them any more.

use core::fmt;
use std::sync::Arc;

use super::super::inner::Inner;
use crate::swapped::{Pinned, Swapped};
use crate::sync::{Mutex, MutexGuard};

/// A table of a chain.
#[derive(Clone)]
pub(super) struct Level {
    pub(super) inner: Arc<Inner>,
    /// How often its size is twice that of table 0.
    pub(super) index: u32,
}

/// The tables, newest first.
pub(super) struct List {
    pub(super) levels: Vec<Level>,
}

/// The current list.
pub(super) struct Chain {
    /// There is always one.
    list: Swapped<List>,
    /// Held by who replaces the list.
    structure: Mutex<()>,
}

impl core::panic::UnwindSafe for Chain {}
impl core::panic::RefUnwindSafe for Chain {}

impl Chain {
    /// A chain of these tables, newest first.
    pub(super) fn new(levels: Vec<Level>) -> Self {
        Chain { list: Swapped::new(Some(List { levels })), structure: Mutex::new(()) }
    }

    /// The current list.
    #[inline]
    pub(super) fn pin(&self) -> Pinned<'_, List> {
        self.list.pin().expect("there is always a list")
    }

    /// Frees lists that were replaced, and tables that are in no list any more, as soon as nobody looks at them. By who holds
    /// neither the right to replace the list nor a pin. No code of the user's runs in it.
    pub(super) fn flush(&self) {
        self.list.flush();
    }

    /// Waits for whoever is replacing the list.
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
    /// Puts a list of these tables in the place of the current one; false if there is no memory for it.
    pub(super) fn replace(&self, levels: Vec<Level>) -> bool {
        self.chain.list.replace(List { levels }).is_ok()
    }
}

impl fmt::Debug for Chain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Chain").field("tables", &self.pin().levels.len()).finish_non_exhaustive()
    }
}
