//! [`Record`]: what a guard announces to threads that reclaim memory. [`Records`]: those of one thread, in its seat.

use crossbeam_utils::CachePadded;

use crate::sync::{AtomicPtr, AtomicU32, AtomicU64, Ordering, SCHEDULED};

/// Guards that a thread may have at a time, each with a record of its own; further ones share records.
const OWN: usize = if SCHEDULED { 2 } else { 6 };
/// Shared records of a thread, each for guards of one collector and epoch; a further guard is lent a record by its collector.
const SHARED: usize = if SCHEDULED {
    1
} else if cfg!(test) {
    2
} else {
    6
};

/// Which guard lives, if one does. Written by its thread alone, except `calls`; a record that a collector lends, by the thread
/// that has the guard, or by the last of those that share it.
#[derive(Debug, Default)]
#[repr(C)]
pub(crate) struct Record {
    /// The stamp of the collector: whose guard it is, and when it was entered, or, if there are several, the first. 0: there is
    /// none.
    pub(crate) stamp: AtomicU64,
    /// What a leaving guard has to do: [`AWAITED`], [`ENDED`], [`INCOMPLETE`], [`POSTPONED`], [`SHARES`], [`LENT`].
    pub(crate) calls: AtomicU64,
}

/// A record of several guards, all of one stamp.
#[derive(Debug, Default)]
#[repr(C)]
pub(crate) struct SharedRecord {
    pub(crate) record: Record,
    /// What each of the guards has instead of the record. It is none of the records that advances look at.
    proxy: Record,
    /// How many guards there are. The thread's own.
    guards: AtomicU32,
}

/// Another thread waits for the guard to leave, and the leaving guard collects [C5]: the number of the collector to collect
/// for, and the [`Extent`].
pub(crate) const AWAITED: u64 = NUMBER | FLUSHED | POSSIBLE | SEALS;
const NUMBER: u64 = u64::MAX << 32;
/// The leaving guard has to free [`Extent::All`].
const FLUSHED: u64 = 32;
/// The leaving guard has to free [`Extent::Possible`].
const POSSIBLE: u64 = 128;
/// The number of bags that were filled under the guard and have to wait for it: a count, up to all of these bits.
const SEALS: u64 = 63 * SEAL;
const SEAL: u64 = 1 << 8;
/// The thread has ended, and its seat is given back by the last guard that leaves.
pub(crate) const ENDED: u64 = 1;
/// The light barrier of the leaving guard is to be completed.
pub(crate) const INCOMPLETE: u64 = 2;
/// The thread could not collect when an awaited guard left.
pub(crate) const POSTPONED: u64 = 4;
/// The guard is one of several that share a record, for which this one stands.
pub(crate) const SHARES: u64 = 8;
/// The guard has a record of its collector, for which this one stands.
pub(crate) const LENT: u64 = 16;

/// How much of what waits is freed by a thread that follows a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Extent {
    /// A share. The rest is left to threads whose guards leave later.
    Share,
    /// All that it can. If another guard is in the way of something, that guard frees a share of it: it was under this guard
    /// that much was sent away.
    Possible,
    /// All that was flushed, or the guards that are in the way do so, and a share of the rest.
    All,
}

impl Extent {
    /// The bits of a call that ask for this extent.
    fn bits(self) -> u64 {
        match self {
            Extent::Share => 0,
            Extent::Possible => POSSIBLE,
            Extent::All => FLUSHED,
        }
    }

    /// What is asked of guards that are in the way of this extent.
    pub(crate) fn of_others(self) -> Extent {
        if self == Extent::All { self } else { Extent::Share }
    }

    /// What these calls ask for, if they say that a guard is awaited.
    pub(crate) fn asked_for(calls: u64) -> Option<Extent> {
        match calls {
            _ if calls & NUMBER == 0 => None,
            _ if calls & FLUSHED != 0 => Some(Extent::All),
            _ if calls & POSSIBLE != 0 => Some(Extent::Possible),
            _ => Some(Extent::Share),
        }
    }
}

/// Relaxed, all: the thread's own stores; `calls`, which others set as well, is ordered by the barriers [C5].
impl Record {
    /// Whether there is no guard. Called by the thread itself.
    #[inline(always)]
    pub(crate) fn is_idle(&self) -> bool {
        self.stamp.load(Ordering::Relaxed) == 0
    }

    /// Makes the leaving guard do `what` from now on.
    pub(crate) fn call(&self, what: u64) {
        debug_assert!(what & NUMBER == 0);
        self.calls.fetch_or(what, Ordering::Relaxed);
    }

    /// Makes the leaving guard collect from now on for the collector of this number, whichever has asked before; it frees
    /// `extent`, or as much as any call has asked for.
    pub(crate) fn call_for(&self, number: u32, extent: Extent) {
        let called = |calls| Some(calls & !NUMBER | u64::from(number) << 32 | extent.bits());
        let _ = self.calls.fetch_update(Ordering::Relaxed, Ordering::Relaxed, called);
    }

    /// The same, by a thread that fills a bag under the guard itself, which is in the way. If that happens 64 times, the guard
    /// is one that is held for long: then [`Extent::Possible`].
    pub(crate) fn call_itself_for(&self, number: u32) {
        let counted = |calls| Some(if calls & SEALS == SEALS { calls } else { calls + SEAL });
        // Never refused.
        let before = self.calls.fetch_update(Ordering::Relaxed, Ordering::Relaxed, counted);
        let is_much = before.is_ok_and(|calls| calls & SEALS == SEALS);
        self.call_for(number, if is_much { Extent::Possible } else { Extent::Share });
    }

    /// Whether a call for the collector of this number stands, to free as much or more.
    pub(crate) fn is_called_for(&self, number: u32, extent: Extent) -> bool {
        let calls = self.calls.load(Ordering::Relaxed);
        calls & NUMBER == u64::from(number) << 32 && Extent::asked_for(calls) >= Some(extent)
    }

    /// Notes that `what` need not be done any more. Returns what there was to do.
    pub(crate) fn uncall(&self, what: u64) -> u64 {
        self.calls.fetch_and(!what, Ordering::Relaxed)
    }
}

/// Relaxed, all: the thread's own.
impl SharedRecord {
    /// Adds a guard to the record. Returns what the guard has instead of the record.
    pub(crate) fn join(&self) -> &Record {
        // Forgotten guards count forever.
        let guards = self.guards.load(Ordering::Relaxed).checked_add(1).expect("too many pins of one thread");
        self.guards.store(guards, Ordering::Relaxed);
        &self.proxy
    }

    /// Notes that one of its guards has gone. Returns whether it was the last.
    pub(crate) fn part(&self) -> bool {
        let guards = self.guards.load(Ordering::Relaxed) - 1;
        self.guards.store(guards, Ordering::Relaxed);
        guards == 0
    }

    /// Whether this is the record that `proxy` stands for.
    pub(crate) fn has_proxy(&self, proxy: &Record) -> bool {
        core::ptr::eq(&self.proxy, proxy)
    }
}

/// Records of one thread.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Records {
    own: [Record; OWN],
    /// Null, or the records that guards share.
    shared: AtomicPtr<Shared>,
}

/// Records that guards share.
type Shared = CachePadded<[SharedRecord; SHARED]>;

#[cfg(all(target_pointer_width = "64", not(any(loom, shuttle))))]
const _: () = assert!(size_of::<Records>() == 104 && size_of::<Shared>() <= 256);

impl Records {
    pub(crate) fn new() -> Self {
        Records { own: Default::default(), shared: AtomicPtr::new(core::ptr::null_mut()) }
    }

    /// The record that is looked at first.
    pub(crate) fn first(&self) -> &Record {
        &self.own[0]
    }

    /// The records of one guard each.
    pub(crate) fn own(&self) -> impl Iterator<Item = &Record> {
        self.own.iter()
    }

    /// The records that guards share.
    pub(crate) fn shared(&self) -> impl Iterator<Item = &SharedRecord> {
        // Acquire: pairs with the store in `add`.
        // SAFETY: null, or leaked there.
        let shared = unsafe { self.shared.load(Ordering::Acquire).as_ref::<'static>() };
        shared.into_iter().flat_map(|shared| shared.iter())
    }

    /// All records.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Record> {
        self.own().chain(self.shared().map(|shared| &shared.record))
    }

    /// Adds the shared records, which are never freed, because every advance looks at them. Returns the first, if there were
    /// none before. Called by the thread itself.
    pub(crate) fn add(&self) -> Option<&SharedRecord> {
        // Relaxed: the thread's own store, or that of whoever had the seat before: it came by the lock of all seats.
        if !self.shared.load(Ordering::Relaxed).is_null() {
            return None;
        }
        let shared: &'static Shared = Box::leak(Box::<Shared>::default());
        // Whatever all of the thread's guards have to do, these have to do as well.
        let calls = self.first().calls.load(Ordering::Relaxed) & (ENDED | POSTPONED);
        for shared in shared.iter() {
            shared.record.call(calls);
            shared.proxy.call(SHARES);
        }
        // Release: pairs with the load in `shared`.
        self.shared.store(core::ptr::from_ref(shared).cast_mut(), Ordering::Release);
        shared.first()
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn a_call_stands_for_as_much_as_anybody_has_asked_for() {
        let record = Record::default();
        record.call_for(7, Extent::Share);
        assert!(record.is_called_for(7, Extent::Share) && !record.is_called_for(7, Extent::All));
        assert!(!record.is_called_for(8, Extent::Share));
        record.call_for(7, Extent::All);
        record.call_for(7, Extent::Share);
        assert!(record.is_called_for(7, Extent::Share) && record.is_called_for(7, Extent::All));
        // Another collector's call overwrites it, and the guard may be ours all the same.
        record.call_for(8, Extent::Share);
        assert!(!record.is_called_for(7, Extent::Share));
        record.call(ENDED);
        let calls = record.uncall(AWAITED);
        assert_eq!((Extent::asked_for(calls), calls & ENDED), (Some(Extent::All), ENDED));
        assert_eq!(record.calls.load(Ordering::Relaxed), ENDED);
    }

    #[test]
    fn a_guard_is_in_its_own_way_for_long_after_many_bags() {
        let record = Record::default();
        let asked_for = |record: &Record| Extent::asked_for(record.calls.load(Ordering::Relaxed));
        for _ in 0..2 {
            for _ in 0..63 {
                record.call_itself_for(7);
                assert_eq!(asked_for(&record), Some(Extent::Share));
            }
            for _ in 0..100 {
                record.call_itself_for(7);
                assert_eq!(asked_for(&record), Some(Extent::Possible));
            }
            assert_eq!(record.calls.load(Ordering::Relaxed) & !AWAITED, 0);
            assert!(record.is_called_for(7, Extent::Possible));
            // The life of the next guard.
            record.uncall(AWAITED);
            assert_eq!(asked_for(&record), None);
        }
        assert_eq!(Extent::Possible.of_others(), Extent::Share);
        assert_eq!(Extent::All.of_others(), Extent::All);
    }
}
