//! The list of tables, which readers follow without a lock.
//!
//! Each list is immutable: growing and compacting put a new one in its place. Old lists are reclaimed when no reader is
//! left that may follow them [I6]; tables when no list has them any more.

use core::fmt;
use core::ptr::NonNull;
use std::sync::Arc;

use super::super::geometry::{Geometry, MAX_SEGMENTS};
use super::super::inner::Inner;
use super::super::layout::Format;
use super::super::sizing::Shape;
use crate::reclaim::{Collector, Guard, LocalGuard, OwnedPins, PROTECTED, Retire};
use crate::sync::{AtomicPtr, Mutex, MutexGuard, Ordering};

/// Slots in a bucket of all tables.
pub(super) const SLOTS: u32 = 4;
/// The load up to which tables are said to have room.
const LOAD: f64 = 0.94;

/// What all tables of a chain have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    /// Segments of table 0.
    pub(crate) segments: u32,
    /// Buckets in every segment.
    pub(crate) buckets: u32,
    /// Bits of a fingerprint of table 0.
    pub(crate) bits: u32,
}

impl Plan {
    /// The shape of table `index`: with `2^index` times the slots of table 0, and one bit more for each doubling; `None` if
    /// there is none, as fingerprints or segments cannot be more.
    pub(super) fn shape(self, index: u32) -> Option<Shape> {
        let bits = self.bits + index;
        let segments = u64::from(self.segments) << index.min(32);
        if bits > 32 || segments > u64::from(MAX_SEGMENTS) {
            return None;
        }
        let format = Format { fingerprint_bits: bits, bucket_slots: SLOTS, semi_sorted: false };
        let geometry = Geometry::new(segments as u32, self.buckets, bits, self.bits);
        let slots = geometry.all_buckets() * u64::from(SLOTS);
        Some(Shape { format, geometry, capacity: (slots as f64 * LOAD) as usize })
    }
}

/// A table of a chain.
pub(super) struct Level {
    pub(super) inner: Inner,
    /// How often its size is twice that of table 0.
    pub(super) index: u32,
}

/// The tables, newest first.
pub(super) struct List {
    pub(super) levels: Vec<Arc<Level>>,
    pins: Arc<OwnedPins>,
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
    pub(super) fn new(levels: Vec<Arc<Level>>) -> Self {
        let collector = Collector::new(false);
        let list = Box::new(List { levels, pins: collector.owned_pins() });
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
    /// Puts a list of these tables in the place of the current one.
    pub(super) fn replace(&self, levels: Vec<Arc<Level>>) {
        let pinned = self.chain.pin();
        let new = Box::new(List { levels, pins: Arc::clone(&pinned.pins) });
        // Release: pairs with the load in `pin`.
        self.chain.list.store(Box::into_raw(new), Ordering::Release);
        // SAFETY: from `Box::into_raw`, unlinked just now, and retired once: by the holder of the lock.
        unsafe { pinned.guard.retire(pinned.list.as_ptr()) };
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

    unsafe fn owned_pins(this: *mut Self) -> NonNull<OwnedPins> {
        // SAFETY: the caller's; the collector has a reference to them as long as it lives.
        NonNull::from(unsafe { &*(*this).pins })
    }

    #[cfg(loom)]
    fn condemn(&self) {}
}

impl fmt::Debug for Chain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Chain").field("tables", &self.pin().levels.len()).finish_non_exhaustive()
    }
}
