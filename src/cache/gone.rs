//! Entries that have left a cache and wait to be reported and retired, whatever their keys and values are.

use core::mem::{ManuallyDrop, take};

use smallvec::SmallVec;

use super::counters::Here;
use super::meta::{Fields, Meta};
use super::removal::Cause;
use super::time::Nanos;
use crate::entries::{EntryPointer, OldEntries, Reserve};

/// Entries that have left, and why.
pub(super) type Told = SmallVec<[(EntryPointer, Cause); 2]>;

/// Entries that have left a cache in one operation: a part of [`Departures`](super::removal::Departures).
pub(super) struct Gone<'c> {
    /// Where the thread counts the departures.
    pub(super) counts: Here<'c>,
    fields: &'c Fields,
    /// Whether entries wait for company, to be retired many at a time [C4].
    gathers: bool,
    /// Both have memory of their own only if they are not empty, and what is in them is taken out in the end: their destructors
    /// would have nothing to do.
    told: ManuallyDrop<Told>,
    /// For caches whose entries wait for company.
    many: ManuallyDrop<Vec<OldEntries>>,
}

impl<'c> Gone<'c> {
    /// Creates the list, with nothing in it.
    ///
    /// # Safety
    ///
    /// The entries that are added are of a cache whose entries have these fields behind them.
    #[inline]
    pub(super) unsafe fn new(counts: Here<'c>, fields: &'c Fields, gathers: bool) -> Self {
        let (told, many) = (ManuallyDrop::new(SmallVec::new()), ManuallyDrop::new(Vec::new()));
        Gone { counts, fields, gathers, told, many }
    }

    /// Whether nothing has left.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.told.is_empty() && self.many.is_empty()
    }

    #[inline(always)]
    fn meta(&self, entry: EntryPointer) -> Meta<'_> {
        // SAFETY: `new`'s; it is looked at at once, under the lock.
        unsafe { self.fields.of(entry) }
    }

    /// The weight of an entry, if that is not the same for all.
    #[inline(always)]
    pub(super) fn weight_of(&self, entry: impl FnOnce() -> EntryPointer) -> u64 {
        // Without looking into the slot, where all weigh the same.
        if self.fields.has_weight() { self.meta(entry()).weight() } else { 1 }
    }

    /// Why an entry leaves: for this cause, unless its time is over.
    #[inline(always)]
    pub(super) fn cause_now(&self, entry: EntryPointer, now: Nanos, cause: Cause) -> Cause {
        if self.meta(entry).has_expired(now) { Cause::Expired } else { cause }
    }

    /// Notes, and counts, that an entry has just left its slot, in the segment that has this reserve.
    ///
    /// # Safety
    ///
    /// Under that segment's lock, and once.
    #[inline(always)]
    pub(super) unsafe fn departed(&mut self, entry: EntryPointer, cause: Cause, reserve: &mut Reserve) {
        self.counts.departed(cause, self.meta(entry).weight());
        // SAFETY: the caller's.
        unsafe { self.add(reserve, entry, cause) };
    }

    /// The same without counting.
    ///
    /// # Safety
    ///
    /// As for [`departed`](Self::departed).
    #[inline]
    pub(super) unsafe fn add(&mut self, reserve: &mut Reserve, entry: EntryPointer, cause: Cause) {
        if self.gathers {
            if reserve.old.add(entry) {
                self.add_many(reserve);
            }
        } else {
            self.told.push((entry, cause));
        }
    }

    /// Takes over the entries that have waited for company, as they are many now. In a function of its own: inlined, it would
    /// have each eviction prepare for a list that is moved.
    #[cold]
    #[inline(never)]
    fn add_many(&mut self, reserve: &mut Reserve) {
        self.many.push(reserve.old.take());
    }

    /// The entries that the listener is to be told of, if there is one.
    pub(super) fn told(&self) -> &[(EntryPointer, Cause)] {
        &self.told
    }

    /// All entries that have left, for the caller to retire.
    pub(super) fn take(&mut self) -> (Told, Vec<OldEntries>) {
        (take(&mut *self.told), take(&mut *self.many))
    }
}
