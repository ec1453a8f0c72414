//! Entries that have been taken out of a table, gathered so that the reclaimer is bothered once for all of them [C4].
//!
//! To retire an entry costs more than to replace it: so each segment keeps a list under its lock, and whoever fills it
//! retires it, unlocked. Only of entries that nobody can see dropped: plain data that waits longer is memory that waits
//! longer, at most 30 entries a segment.

use core::mem::{MaybeUninit, needs_drop};
use core::ptr::NonNull;

use super::magazine::{Magazine, REFILL};
use super::table::{Entry, EntrySlab};
use crate::engine::{Keep, try_box};
use crate::reclaim::{Guard, Retire};

/// Entries that are retired as one, and whose pieces go back as one list.
const MANY: usize = 31;
const _: () = assert!(MANY <= REFILL);

/// What a table keeps under the lock of each segment. In order: what changes with each entry comes first.
#[repr(C)]
pub(crate) struct Reserve<K, V> {
    /// Memory for further entries.
    pub(crate) free: Magazine,
    /// Entries that have been taken out and are not retired yet.
    pub(crate) old: OldEntries<K, V>,
}

impl<K, V> Default for Reserve<K, V> {
    fn default() -> Self {
        Reserve { free: Magazine::default(), old: OldEntries::default() }
    }
}

impl<K, V> Keep for Reserve<K, V> {}

/// What is kept under the lock of each segment, a [`Reserve`] among it.
///
/// # Safety
///
/// What else is kept may be sent and shared with keys and values that may.
pub(crate) unsafe trait Reserves<K, V>: Keep {
    /// The reserve.
    fn reserve(&mut self) -> &mut Reserve<K, V>;
}

// SAFETY: it is all there is.
unsafe impl<K, V> Reserves<K, V> for Reserve<K, V> {
    fn reserve(&mut self) -> &mut Reserve<K, V> {
        self
    }
}

/// Retires entries that have been taken out of a table together.
///
/// # Safety
///
/// The table does not lead to them any more, nobody else retires them, and the guard is of their map.
pub(crate) unsafe fn retire_all<K, V>(entries: &[NonNull<Entry<K, V>>], guard: &impl Guard) {
    if OldEntries::<K, V>::GATHERS {
        let mut old = OldEntries::default();
        for &entry in entries {
            if let Some(many) = old.push(entry) {
                // SAFETY: the caller's.
                unsafe { many.retire(guard) };
            }
        }
        // SAFETY: the caller's.
        unsafe { old.retire(guard) };
    } else {
        // SAFETY: the caller's.
        entries.iter().for_each(|entry| unsafe { guard.retire(entry.as_ptr()) });
    }
}

/// Entries that the table does not lead to any more. Their memory goes with the slab; dropping the list loses nothing
/// else.
#[repr(C)]
pub(crate) struct OldEntries<K, V> {
    /// First, to be in the line of what else changes with each entry.
    len: usize,
    entries: [MaybeUninit<NonNull<Entry<K, V>>>; MANY],
}

impl<K, V> Default for OldEntries<K, V> {
    fn default() -> Self {
        OldEntries { len: 0, entries: [const { MaybeUninit::uninit() }; MANY] }
    }
}

impl<K, V> OldEntries<K, V> {
    /// Whether entries of this type are gathered: those that need no drop, and have no box of their own.
    pub(crate) const GATHERS: bool = !needs_drop::<K>() && !needs_drop::<V>() && !EntrySlab::<K, V>::BOXED;

    /// Adds an entry that has just been taken out; gives up all when they are many, for the caller to retire.
    #[inline]
    pub(crate) fn push(&mut self, entry: NonNull<Entry<K, V>>) -> Option<Self> {
        debug_assert!(Self::GATHERS);
        self.entries[self.len].write(entry);
        self.len += 1;
        (self.len == MANY).then(|| core::mem::take(self))
    }

    /// Retires them all.
    ///
    /// # Safety
    ///
    /// The guard is of the entries' map.
    #[cold]
    pub(crate) unsafe fn retire(self, guard: &impl Guard) {
        if self.len == 0 {
            return;
        }
        // Taken out of the table, once, under the lock that this list was taken from: guards entered
        // from now on do not find them, and those that did are older than now [I6], [C4].
        match try_box(self) {
            // SAFETY: as said above; `free` is this box's only end.
            Ok(this) => unsafe { guard.retire(core::ptr::from_mut(Box::leak(this))) },
            // No memory for a list: each by itself.
            // SAFETY: as above.
            Err(this) => this.entries().iter().for_each(|entry| unsafe { guard.retire(entry.as_ptr()) }),
        }
    }

    fn entries(&self) -> &[NonNull<Entry<K, V>>] {
        // SAFETY: as many have been written.
        unsafe { core::slice::from_raw_parts(self.entries.as_ptr().cast(), self.len) }
    }
}

impl<K, V> Retire for OldEntries<K, V> {
    unsafe fn free(this: *mut Self) {
        // SAFETY: the caller's; from a box.
        let this = unsafe { Box::from_raw(this) };
        // SAFETY: the caller's; nothing in them needs to be dropped, and their slab outlives them.
        unsafe { EntrySlab::free_all(this.entries()) };
    }

    #[cfg(loom)]
    fn condemn(&self) {}
}
