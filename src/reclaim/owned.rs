//! Records that a collector lends, to guards that are not bound to a thread and to those whose thread has none left for them: a
//! list. The first few have one guard each, as long as there have been such guards at a time; of more, those of one epoch share
//! one.

use crossbeam_utils::CachePadded;

use crate::record::{LENT, Record};
use crate::sync::Ordering::{AcqRel, Acquire, Relaxed, Release};
use crate::sync::{AtomicPtr, AtomicU64, SCHEDULED};

/// Guards that a collector may have at a time, each with a record of its own; further ones share records. Or each would look
/// at those of all others, and whoever advances would.
const ALONE: usize = if SCHEDULED {
    1
} else if cfg!(test) {
    2
} else {
    16
};
/// In the place of a count: one guard has it to itself; or of a record that is shared, the first guard is being entered, or the
/// last one has gone and what it was called for is done.
const BUSY: u64 = u64::MAX;

/// A record that is lent to one guard after the other; or, if it is shared, to several of one stamp.
#[derive(Debug, Default)]
pub(super) struct OwnedRecord {
    pub(super) record: CachePadded<Record>,
    is_shared: bool,
    /// How many have it, or [`BUSY`].
    guards: AtomicU64,
    /// What a guard of a thread has in its place. It is none of those that are looked at.
    proxy: Record,
    next: AtomicPtr<OwnedRecord>,
}

impl OwnedRecord {
    /// Takes it, if nobody has it.
    fn take(&self) -> bool {
        // Acquire: pairs with the store in `give_back`: the record is as the last guard left it.
        self.guards.load(Relaxed) == 0 && self.guards.compare_exchange(0, BUSY, Acquire, Relaxed).is_ok()
    }

    /// Adds a guard to those that have it, if they are of this stamp: as if one of these, announced before, were shared.
    fn join(&self, now: u64) -> bool {
        let one_more = |guards| {
            // Relaxed: as long as there are guards it is theirs.
            let has_some = guards != 0 && guards != BUSY; // never, if it is not shared
            (has_some && self.record.stamp.load(Relaxed) == now).then(|| guards + 1)
        };
        // Acquire: pairs with the store in `OwnedRecords::lend`.
        self.guards.fetch_update(Acquire, Acquire, one_more).is_ok()
    }

    /// One of the guards has gone. Whether it was the last: it leaves, and gives the record back.
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

    /// What a guard of a thread has in its place.
    pub(super) fn proxy(&self) -> &Record {
        &self.proxy
    }

    /// The last guard has left.
    pub(super) fn give_back(&self) {
        // Release: pairs with the exchange in `take`.
        self.guards.store(0, Release);
    }
}

/// Those of a collector.
#[derive(Debug, Default)]
pub(super) struct OwnedRecords {
    /// The one that was made last; each leads to the one before.
    first: AtomicPtr<OwnedRecord>,
}

impl OwnedRecords {
    /// All that have been made.
    pub(super) fn iter(&self) -> impl Iterator<Item = &OwnedRecord> {
        // Acquire: pairs with the exchange in `add`. In the links Relaxed, as each exchange goes on the release sequence of the
        // one before: who has the last one sees all.
        let mut next = self.first.load(Acquire);
        core::iter::from_fn(move || {
            // SAFETY: records are freed with the list.
            let owned = unsafe { next.as_ref() }?;
            next = owned.next.load(Relaxed);
            Some(owned)
        })
    }

    /// One that nobody has, in which `enter` enters a guard; or, where as many are in use as guards have to themselves, one
    /// whose guards are of the epoch that is `now`. A new one gets `prepare` first.
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
            // Release: pairs with the exchange in `join`: who shares the guard comes after it was announced.
            lent.guards.store(1, Release);
        }
        lent
    }

    /// The one for which this stands.
    pub(super) fn of_proxy(&self, proxy: &Record) -> &OwnedRecord {
        self.iter().find(|owned| core::ptr::eq(&owned.proxy, proxy)).expect("each stays as long as the list")
    }

    #[cold]
    fn add(&self, is_shared: bool, prepare: impl FnOnce(&Record)) -> &OwnedRecord {
        let new = OwnedRecord { is_shared, guards: AtomicU64::new(BUSY), ..OwnedRecord::default() };
        prepare(&new.record);
        new.proxy.call(LENT);
        // The pointer of the box, which is to be one again: a reference would lead to less.
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
