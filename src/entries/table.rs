//! A table's memory: its directory of pointers, its entries, its collector.

use core::marker::PhantomData;
use core::panic::RefUnwindSafe;
use std::sync::Arc;

use super::entry::{Entry, ErasedEntry, OwnedEntry};
use super::entry_slab::EntrySlab;
use super::home_lines::HomeLines;
use super::magazine::Chain;
use super::old::{Reserve, Reserves};
use crate::engine::{CapacityError, Directory, Meter, Pointer, Retired, Shape, try_box};
use crate::hash::Digest;
use crate::reclaim::{Collector, FirstPanic, Guard, Retire};

/// What slots hold: pointers to entries. Under each segment's lock there is at least what stands between entries and the slab.
pub(crate) type Slots<R = Reserve> = Pointer<ErasedEntry, R>;

/// One removed entry per so many slots may wait before barriers stop waiting for their time. For a map of 60 thousand entries
/// that two threads write to, these are some eight thousand, those of a third of a millisecond: twice as many plain entries as
/// may wait in any case, and eight times as many others.
const SLOTS_PER_WAITING: usize = 8;
/// The same in caches of plain entries: an eighth would add a tenth to what an entry takes in addition to key and value, and
/// read-through is no slower without it.
const SLOTS_PER_WAITING_IN_CACHES: usize = 64;
/// Approximate bytes of a table per slot: a pointer and a tag. Tables that are kept for growth count as well.
const BYTES_PER_SLOT: usize = size_of::<usize>() + 1;

/// A directory and the entries it points to.
pub(crate) struct Table<K, V, R: Reserves = Reserve> {
    // Dropped in this order: what is retired is freed before the directory, and all entries before their memory [C3].
    /// The collector of pins of either kind [C1], and of what they keep alive [C2].
    pub(crate) collector: Collector,
    pub(crate) directory: Directory<Slots<R>>,
    pub(crate) slab: EntrySlab<K, V>,
    home_lines: HomeLines,
    /// Entries are shared and dropped by whichever thread reclaims them; and a table of `K` is no table of a subtype.
    entries: PhantomData<*mut Entry<K, V>>,
}

// SAFETY: the entries go with the table.
unsafe impl<K: Send, V: Send, R: Reserves> Send for Table<K, V, R> {}
// SAFETY: through a shared table entries are read by many threads, inserted by one and dropped by another.
unsafe impl<K: Send + Sync, V: Send + Sync, R: Reserves> Sync for Table<K, V, R> {}

/// A panic in user code leaves the table intact, but not necessarily what keys and values hold, of which neither the directory
/// nor walks know.
impl<K: RefUnwindSafe, V: RefUnwindSafe, R: Reserves> RefUnwindSafe for Table<K, V, R> {}

impl<K, V, R: Reserves> Table<K, V, R> {
    /// An empty table, whose entries have `tail` more bytes each. Entries that need no drop are retired in lists, each as one,
    /// if they are `gathered`.
    pub(crate) fn new(
        shape: Shape,
        requested: usize,
        tail: usize,
        gathered: bool,
    ) -> Result<Self, CapacityError> {
        Ok(Self::with_directory(Directory::new(shape, requested)?, requested, tail, gathered))
    }

    /// The same, with these segments.
    fn with_directory(directory: Directory<Slots<R>>, requested: usize, tail: usize, gathered: bool) -> Self {
        let shape = directory.shape();
        let room = room_for_waiting(directory.meter(), Self::bytes_per_waiting(gathered));
        // Lists of entries are retired as one: a few lists are many entries.
        let collector = Collector::new(gathered && Entry::<K, V>::GATHERS, Some(Box::new(room)));
        let slab = EntrySlab::new(&shape, shape.fixed_capacity.unwrap_or(requested), tail);
        let home_lines = slab.untyped().home_lines();
        Table { collector, directory, slab, home_lines, entries: PhantomData }
    }

    /// An empty table of a map.
    pub(crate) fn for_map(shape: Shape, requested: usize) -> Result<Self, CapacityError> {
        Self::new(shape, requested, 0, true)
    }

    /// An empty table of a map, with these segments, which are empty, and with home cells for so many entries if there are to
    /// be any.
    pub(crate) fn for_map_with_directory(directory: Directory<Slots<R>>, at_home: usize) -> Self {
        assert!(directory.is_empty(), "entries of nobody knows which type");
        Self::with_directory(directory, at_home, 0, true)
    }

    /// One retired object per so many bytes of segments may wait before barriers stop waiting for their time.
    fn bytes_per_waiting(gathered: bool) -> usize {
        let gathers = Entry::<K, V>::GATHERS;
        let slots = if R::MARKED && gathers { SLOTS_PER_WAITING_IN_CACHES } else { SLOTS_PER_WAITING };
        let in_one = if gathered { Entry::<K, V>::IN_ONE } else { 1 };
        BYTES_PER_SLOT * slots * in_one
    }

    /// Starts loading the line in which the entry of a key with this digest lies, if it is at home [M5].
    #[inline(always)]
    pub(crate) fn prefetch_home(&self, digest: Digest) {
        if !EntrySlab::<K, V>::BOXED {
            self.home_lines.prefetch(digest);
        }
    }

    /// Bytes from the allocator: the tables and the entries in them.
    pub(crate) fn memory_usage(&self) -> usize {
        let _guard = self.collector.enter();
        self.directory.memory_usage() + self.slab.memory_usage(self.directory.len())
    }

    /// Starts the reclamation of what this thread has retired, and of entries that are gathered under the segments' locks.
    ///
    /// # Panics
    ///
    /// If this thread is writing to the table: what is freed would run others' destructors under its lock.
    pub(crate) fn flush(&self, guard: &impl Guard) {
        self.directory.assert_not_writing();
        if Entry::<K, V>::GATHERS {
            self.retire_old(guard);
        }
        self.collector.flush();
    }

    /// Retires the entries that are gathered under the segments' locks.
    fn retire_old(&self, guard: &impl Guard) {
        self.directory.each_segment(|mut writing| {
            let old = writing.locked.state().keep.reserve().old.take();
            drop(writing);
            // SAFETY: the caller's guard is of our collector.
            unsafe { old.retire::<K, V>(guard) };
        });
    }

    /// Frees segments and roots that are not in use any more, as soon as no late reader can be reading them [G5]; and memory
    /// for entries that is not in use now [M4].
    pub(crate) fn purge(&self, guard: &impl Guard) {
        // If there is no memory to hand them to the reclaimer, they stay in the pool.
        let Ok(old) = try_box(Retired::nothing(self.directory.meter())) else { return };
        let old = Box::leak(old);
        *old = self.directory.drain_pool();
        // SAFETY: out of the pool, and the directory does not lead to them any more; whoever uses this table's directory holds
        // a guard of its collector, and only `free` ends the box.
        unsafe { guard.retire(core::ptr::from_mut(old)) };
        self.collector.flush();
        if EntrySlab::<K, V>::BOXED {
            return;
        }
        let mut reserves = Chain::default();
        self.directory.each_segment(|mut writing| {
            reserves.take_from(&mut writing.locked.state().keep.reserve().free);
        });
        self.slab.untyped().release(reserves);
        let each_lock = || self.directory.each_segment(drop);
        // SAFETY: nobody has the table exclusively, because we use it; so whoever allocates an entry has the lock of a current
        // segment, and the segments that replace that one are locked until they are current.
        if unsafe { self.slab.untyped().release_homes(each_lock) } {
            self.home_lines.withdraw();
        }
    }
}

impl<R: Reserves> Retire for Retired<Slots<R>> {
    unsafe fn free(this: *mut Self) {
        // SAFETY: the caller's; from a box.
        let old = unsafe { Box::from_raw(this) };
        // SAFETY: no guard is left that could lead to them.
        unsafe { (*old).free() };
    }

    #[cfg(loom)]
    fn condemn(&self) {
        self.mark_freed();
    }
}

impl<K, V, R: Reserves> Drop for Table<K, V, R> {
    /// Drops every entry, even if the drop of another panics; the first panic is resumed afterwards. Entries that have no boxes
    /// are freed with the slab.
    fn drop(&mut self) {
        if Entry::<K, V>::GATHERS {
            // Nothing in them needs to be dropped [C4].
            return;
        }
        drop_each(|drop_one| {
            // SAFETY: `&mut self`, which is being dropped: each entry is given once, nobody has a guard, and nobody looks any
            // more.
            self.directory.give_all(&mut |entry| drop_one(unsafe { OwnedEntry::<K, V>::from_raw(entry) }));
        });
    }
}

/// How many retired objects may wait in a table whose segments' bytes the meter counts.
fn room_for_waiting(meter: Arc<Meter>, bytes_per_waiting: usize) -> impl Fn() -> usize {
    move || meter.bytes() / bytes_per_waiting
}

/// Drops each entry that `all` calls its argument with, even if the drop of another panics; the first panic is resumed
/// afterwards, unless the thread is already panicking.
pub(crate) fn drop_each<K, V>(all: impl FnOnce(&mut dyn FnMut(OwnedEntry<K, V>))) {
    let mut panic = FirstPanic::default();
    all(&mut |entry| panic.call(|| drop(entry)));
    panic.go_on();
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn an_eighth_of_the_slots_waits_and_a_64th_of_plain_entries_in_a_cache() {
        /// What lies under the locks of a table that evicts.
        #[derive(Default)]
        struct Marked(Reserve);
        impl crate::engine::Keep for Marked {
            const MARKED: bool = true;
        }
        // SAFETY: as `Reserve`'s.
        unsafe impl Reserves for Marked {
            fn reserve(&mut self) -> &mut Reserve {
                &mut self.0
            }
        }
        let bytes = 64 * 31 * 100 * BYTES_PER_SLOT;
        // In lists of 31, and one by one.
        assert_eq!(bytes / Table::<u64, u64>::bytes_per_waiting(true), 800);
        assert_eq!(bytes / Table::<u64, String>::bytes_per_waiting(true), 800 * 31);
        assert_eq!(bytes / Table::<u64, u64, Marked>::bytes_per_waiting(true), 100);
        assert_eq!(bytes / Table::<u64, u64, Marked>::bytes_per_waiting(false), 100 * 31);
    }
}
