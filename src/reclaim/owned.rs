//! The list of records that a collector lends to guards that are not bound to a thread and to those whose thread has none left
//! for them. The first few guards at a time have one record each; of further guards, those of one epoch share a record.

use crossbeam_utils::CachePadded;

use crate::record::{LENT, Record};
use crate::sync::Ordering::{AcqRel, Acquire, Relaxed, Release};
use crate::sync::{AtomicPtr, AtomicU64, SCHEDULED};

/// Guards that a collector may have at a time, each with a record of its own; further ones share records. Otherwise each guard,
/// and every advance, would look at the records of all others.
const ALONE: usize = if SCHEDULED {
    1
} else if cfg!(test) {
    2
} else {
    16
};
/// Instead of a count: one guard has the record to itself; or, of a record that is shared, the first guard is being entered, or
/// the last one has gone and what it was called for is being done.
const BUSY: u64 = u64::MAX;

/// A record that is lent to one guard after the other; or, if it is shared, to several guards of one stamp.
#[derive(Debug, Default)]
pub(super) struct OwnedRecord {
    pub(super) record: CachePadded<Record>,
    is_shared: bool,
    /// How many guards have it, or [`BUSY`].
    guards: AtomicU64,
    /// What a guard of a thread has instead of the record. It is none of the records that advances look at.
    proxy: Record,
    next: AtomicPtr<OwnedRecord>,
}

impl OwnedRecord {
    /// Takes the record, if nobody has it.
    fn take(&self) -> bool {
        // Acquire: pairs with the store in `give_back`: the record is as the last guard left it.
        self.guards.load(Relaxed) == 0 && self.guards.compare_exchange(0, BUSY, Acquire, Relaxed).is_ok()
    }

    /// Adds a guard to those that have the record, if they are of this stamp: as if one of these, announced before, were
    /// shared.
    fn join(&self, now: u64) -> bool {
        let one_more = |guards| {
            // Relaxed: as long as there are guards, the stamp is theirs.
            let has_some = guards != 0 && guards != BUSY; // never, if it is not shared
            (has_some && self.record.stamp.load(Relaxed) == now).then(|| guards + 1)
        };
        // Acquire: pairs with the store in `OwnedRecords::lend`.
        self.guards.fetch_update(Acquire, Acquire, one_more).is_ok()
    }

    /// Notes that one of the guards has gone. Returns whether it was the last, which must leave and give the record back.
    #[inline]
    pub(super) fn part(&self) -> bool {
        if !self.is_shared {
            return true;
        }
        let one_less = |guards| Some(if guards == 1 { BUSY } else { guards - 1 });
        // Release, Acquire: pair with each other: what all of them have read comes before the last one leaves.
        self.guards.fetch_update(AcqRel, Relaxed, one_less) == Ok(1)
    }

    /// The record, if one guard has it to itself.
    pub(super) fn of_one(&self) -> Option<&Record> {
        (!self.is_shared).then_some(&*self.record)
    }

    /// What a guard of a thread has instead of the record.
    pub(super) fn proxy(&self) -> &Record {
        &self.proxy
    }

    /// Gives the record back when the last guard has left.
    pub(super) fn give_back(&self) {
        // Release: pairs with the exchange in `take`.
        self.guards.store(0, Release);
    }
}

/// The records that a collector lends.
#[derive(Debug, Default)]
pub(super) struct OwnedRecords {
    /// The record that was made last; each leads to the one before.
    first: AtomicPtr<OwnedRecord>,
}

impl OwnedRecords {
    /// All records that have been made.
    pub(super) fn iter(&self) -> impl Iterator<Item = &OwnedRecord> {
        // Acquire: pairs with the exchange in `add`. For the links Relaxed is enough, because each exchange continues the
        // release sequence of the one before: a thread that has the last record sees all.
        let mut next = self.first.load(Acquire);
        core::iter::from_fn(move || {
            // SAFETY: records are freed with the list.
            let owned = unsafe { next.as_ref() }?;
            next = owned.next.load(Relaxed);
            Some(owned)
        })
    }

    /// Lends a record that nobody has, in which `enter` enters a guard; or, if as many are in use as guards may have to
    /// themselves, one whose guards are of the epoch that is `now`. A new record gets `prepare` first.
    pub(super) fn lend(
        &self,
        now: u64,
        prepare: impl FnOnce(&Record),
        enter: impl FnOnce(&Record),
    ) -> &OwnedRecord {
        let lent = match self.iter().find(|owned| owned.take()) {
            Some(idle) => idle,
            None => match self.iter().find(|owned| owned.join(now)) {
                Some(shared) => return shared,
                None => self.add(self.iter().count() >= ALONE, prepare),
            },
        };
        enter(&lent.record);
        if lent.is_shared {
            // Release: pairs with the exchange in `join`: a guard that joins comes after the first was announced.
            lent.guards.store(1, Release);
        }
        lent
    }

    /// The record for which this proxy stands.
    pub(super) fn of_proxy(&self, proxy: &Record) -> &OwnedRecord {
        self.iter().find(|owned| core::ptr::eq(&owned.proxy, proxy)).expect("each stays as long as the list")
    }

    #[cold]
    fn add(&self, is_shared: bool, prepare: impl FnOnce(&Record)) -> &OwnedRecord {
        let new = OwnedRecord { is_shared, guards: AtomicU64::new(BUSY), ..OwnedRecord::default() };
        prepare(&new.record);
        new.proxy.call(LENT);
        // The pointer of the box, which is to become one again: a pointer from a reference may reach less.
        let raw = Box::into_raw(Box::new(new));
        // SAFETY: freed with the list.
        let new = unsafe { &*raw };
        let mut first = self.first.load(Relaxed);
        loop {
            // Published by the exchange.
            new.next.store(first, Relaxed);
            // Release: pairs with the loads in `iter`.
            match self.first.compare_exchange(first, raw, Release, Relaxed) {
                Ok(_) => return new,
                Err(other) => first = other,
            }
        }
    }
}

impl Drop for OwnedRecords {
    fn drop(&mut self) {
        let mut next = self.first.load(Relaxed);
        while !next.is_null() {
            // SAFETY: from a box, and nobody looks at it any more.
            let owned = unsafe { Box::from_raw(next) };
            next = owned.next.load(Relaxed);
        }
    }
}
