//! Entries that have been taken out of a table, gathered so that the reclaimer is called once for all of them [C4].
//!
//! To retire an entry costs more than to replace it: so each segment keeps a list under its lock, and the writer that fills it
//! retires it, unlocked. It has only entries whose drop nobody can observe: plain data that waits longer is memory that waits
//! longer, at most 30 entries per segment.

use core::mem::MaybeUninit;

use super::entry::{Entry, EntryPointer};
use super::magazine::Magazine;
use super::slab::Slab;
use crate::engine::{Keep, try_box};
use crate::reclaim::{Guard, Retire};

/// What a table keeps under the lock of each segment. In this order, what changes with each entry, the count of each list, is
/// side by side: on one line, unless the whole begins at the start of a line.
#[derive(Default)]
#[repr(C)]
pub(crate) struct Reserve {
    /// Memory for further entries.
    pub(crate) free: Magazine,
    /// Entries that have been taken out and are not retired yet.
    pub(crate) old: Gathered,
}

impl Keep for Reserve {}

/// What is kept under the lock of each segment, including a [`Reserve`].
///
/// # Safety
///
/// Whatever else is kept may be sent and shared if keys and values may.
pub(crate) unsafe trait Reserves: Keep {
    /// The reserve.
    fn reserve(&mut self) -> &mut Reserve;
}

// SAFETY: nothing else is kept.
unsafe impl Reserves for Reserve {
    fn reserve(&mut self) -> &mut Reserve {
        self
    }
}

/// The number of plain entries that are retired as one.
pub(crate) const RETIRED_AS_ONE: usize = Magazine::ROOM;

/// Retires entries that have been taken out of a table together.
///
/// # Safety
///
/// They are of a table of such keys and values, which does not lead to them any more; nobody else retires them, and the guard
/// is of their map.
pub(crate) unsafe fn retire_all<K, V>(entries: impl Iterator<Item = EntryPointer>, guard: &impl Guard) {
    if Entry::<K, V>::GATHERS {
        let mut old = Gathered::default();
        for entry in entries {
            if let Some(many) = old.push(entry) {
                // SAFETY: the caller's.
                unsafe { many.retire::<K, V>(guard) };
            }
        }
        // SAFETY: the caller's.
        unsafe { old.take().retire::<K, V>(guard) };
    } else {
        // SAFETY: the caller's.
        entries.for_each(|entry| unsafe { Entry::<K, V>::retire(entry, guard) });
    }
}

/// Entries that the table does not lead to any more, and that wait for others to be retired with. Dropping them loses nothing
/// except their memory, which is freed with the slab.
#[repr(C)]
pub(crate) struct Gathered {
    /// First, next to what comes before and changes as often.
    len: usize,
    entries: [MaybeUninit<EntryPointer>; Magazine::ROOM],
}

impl Default for Gathered {
    fn default() -> Self {
        Gathered { len: 0, entries: [const { MaybeUninit::uninit() }; Magazine::ROOM] }
    }
}

impl Gathered {
    /// Adds an entry that has just been taken out; gives up all entries when there are enough, for the caller to retire.
    #[inline]
    pub(crate) fn push(&mut self, entry: EntryPointer) -> Option<OldEntries> {
        self.add(entry).then(|| self.take())
    }

    /// Adds an entry that has just been taken out. Returns whether there are enough now for the caller to [take](Self::take)
    /// and retire.
    #[inline]
    pub(crate) fn add(&mut self, entry: EntryPointer) -> bool {
        self.entries[self.len].write(entry);
        self.len += 1;
        self.len == self.entries.len()
    }

    /// Gives up all entries.
    #[inline]
    pub(crate) fn take(&mut self) -> OldEntries {
        let mut pieces = Magazine::default();
        for entry in &self.entries[..self.len] {
            // SAFETY: as many have been written.
            pieces.push(unsafe { entry.assume_init() }.cast());
        }
        self.len = 0;
        OldEntries(pieces)
    }
}

/// Entries that are retired as one. When nobody can look at them any more, their pieces are handed on as they are.
#[repr(transparent)]
pub(crate) struct OldEntries(Magazine);

impl OldEntries {
    /// Retires them all.
    ///
    /// # Safety
    ///
    /// The guard is of the entries' map, which is of such keys and values.
    #[cold]
    pub(crate) unsafe fn retire<K, V>(self, guard: &impl Guard) {
        // No list for a single entry.
        if let &[] | &[_] = self.0.pieces() {
            // SAFETY: as below.
            return unsafe { self.retire_each::<K, V>(guard) };
        }
        // Taken out of the table, each once, under its segment's lock, before they were listed: guards entered from now on do
        // not find them, and those that did are older than now [I6], [C4].
        match try_box(self) {
            // SAFETY: as stated above; nothing but `free` ends this box.
            Ok(this) => unsafe { guard.retire(core::ptr::from_mut(Box::leak(this))) },
            // No memory for a list.
            // SAFETY: as above.
            Err(this) => unsafe { this.retire_each::<K, V>(guard) },
        }
    }

    /// Retires each entry individually.
    ///
    /// # Safety
    ///
    /// As [`retire`](Self::retire).
    unsafe fn retire_each<K, V>(&self, guard: &impl Guard) {
        // SAFETY: as stated there.
        self.0.pieces().iter().for_each(|piece| unsafe {
            Entry::<K, V>::retire(piece.cast(), guard);
        });
    }
}

impl Retire for OldEntries {
    unsafe fn free(this: *mut Self) {
        // SAFETY: the caller's; from a box of ours, which has the layout of what it wraps.
        let pieces = unsafe { Box::from_raw(this.cast::<Magazine>()) };
        // SAFETY: the caller's; nothing in them needs to be dropped, and their slab outlives them.
        unsafe { Slab::free_all(pieces) };
    }

    #[cfg(loom)]
    fn condemn(&self) {}
}
