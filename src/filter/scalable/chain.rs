//! The list of tables, which readers follow without a lock.
//!
//! Each list is immutable: growing and compacting put a new one in its place. Old lists are reclaimed when no reader is
//! left that may follow them [I6]; tables when no list has them any more.

use core::fmt;
use core::ptr::NonNull;
use std::sync::Arc;

use super::super::inner::Inner;
use crate::engine::try_box;
use crate::reclaim::{Collector, Guard, LocalGuard, PROTECTED, Retire};
use crate::sync::{AtomicPtr, Mutex, MutexGuard, Ordering};

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
    list: AtomicPtr<List>,
    /// Held by who replaces the list.
    structure: Mutex<()>,
    collector: Collector,
}

// SAFETY: lists and tables are shared and sent as a whole, and are made of what can be.
unsafe impl Send for Chain {}
// SAFETY: as above.
unsafe impl Sync for Chain {}

impl core::panic::UnwindSafe for Chain {}
impl core::panic::RefUnwindSafe for Chain {}

/// A list that is not reclaimed as long as this lives.
pub(super) struct Pinned<'a> {
    guard: LocalGuard<'a>,
    list: NonNull<List>,
}

impl core::ops::Deref for Pinned<'_> {
    type Target = List;

    #[inline(always)]
    fn deref(&self) -> &List {
        // SAFETY: loaded under the guard, which keeps it alive [I6].
        unsafe { self.list.as_ref() }
    }
}

impl Chain {
    /// A chain of these tables, newest first.
    pub(super) fn new(levels: Vec<Level>) -> Self {
        let collector = Collector::new(false);
        let list = Box::new(List { levels });
        Chain { list: AtomicPtr::new(Box::into_raw(list)), structure: Mutex::new(()), collector }
    }

    /// The current list.
    #[inline]
    pub(super) fn pin(&self) -> Pinned<'_> {
        let guard = self.collector.enter();
        // Acquire, or as strong as the reclaimer asks: pairs with the store in `replace`.
        let list = NonNull::new(self.list.load(PROTECTED)).expect("there is always a list");
        Pinned { guard, list }
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
        let pinned = self.chain.pin();
        let Ok(new) = try_box(List { levels }) else { return false };
        // Release: pairs with the load in `pin`.
        self.chain.list.store(Box::into_raw(new), Ordering::Release);
        // SAFETY: from `Box::into_raw`, unlinked just now, and retired once: by the holder of the lock.
        unsafe { pinned.guard.retire(pinned.list.as_ptr()) };
        true
    }
}

impl Drop for Chain {
    fn drop(&mut self) {
        // Relaxed: `&mut self`.
        let list = self.list.load(Ordering::Relaxed);
        // SAFETY: from `Box::into_raw`, current and so not retired, and nobody uses the chain any more.
        drop(unsafe { Box::from_raw(list) });
    }
}

impl Retire for List {
    unsafe fn free(this: *mut Self) {
        // SAFETY: the caller's; from `Box::into_raw`.
        drop(unsafe { Box::from_raw(this) });
    }

    #[cfg(loom)]
    fn condemn(&self) {}
}

impl fmt::Debug for Chain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Chain").field("tables", &self.pin().levels.len()).finish_non_exhaustive()
    }
}
