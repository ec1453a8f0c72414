//! Records of guards that are not bound to a thread: a list, as long as there have been such guards at a time.

use crossbeam_utils::CachePadded;

use crate::record::Record;
use crate::sync::Ordering::{Acquire, Relaxed, Release};
use crate::sync::{AtomicBool, AtomicPtr};

/// A record that is lent to one guard after the other.
#[derive(Debug, Default)]
pub(super) struct OwnedRecord {
    pub(super) record: CachePadded<Record>,
    is_lent: AtomicBool,
    next: AtomicPtr<OwnedRecord>,
}

impl OwnedRecord {
    /// The guard has gone that it was lent to.
    pub(super) fn give_back(&self) {
        // Release: pairs with the exchange in `OwnedRecords::lend`.
        self.is_lent.store(false, Release);
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

    /// One that is lent to nobody, for a guard; if there is none a new one, which `prepare` gets first.
    pub(super) fn lend(&self, prepare: impl FnOnce(&Record)) -> &OwnedRecord {
        let lent = self.iter().find(|owned| {
            // Acquire: pairs with the store in `give_back`: the record is as the last guard left it.
            !owned.is_lent.load(Relaxed)
                && owned.is_lent.compare_exchange(false, true, Acquire, Relaxed).is_ok()
        });
        lent.unwrap_or_else(|| self.add(prepare))
    }

    #[cold]
    fn add(&self, prepare: impl FnOnce(&Record)) -> &OwnedRecord {
        let new = OwnedRecord { is_lent: AtomicBool::new(true), ..OwnedRecord::default() };
        prepare(&new.record);
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
