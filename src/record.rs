//! [`Record`]: what a guard says of itself to whoever reclaims memory. [`Records`]: those of one thread, in its seat.

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

/// Which guard lives, if one does. Written by its thread alone, but for `calls`.
#[derive(Debug, Default)]
#[repr(C)]
pub(crate) struct Record {
    /// Whose guard it is, and when it was entered, of several the first: the collector's stamp. 0: there is none.
    pub(crate) stamp: AtomicU64,
    /// What whoever leaves has to do: [`AWAITED`], [`ENDED`], [`INCOMPLETE`], [`POSTPONED`], [`SHARES`], [`LENT`].
    pub(crate) calls: AtomicU64,
}

/// A record of several guards, all of one stamp.
#[derive(Debug, Default)]
#[repr(C)]
pub(crate) struct SharedRecord {
    pub(crate) record: Record,
    /// What each of the guards has in its place. It is none of those that are looked at.
    proxy: Record,
    /// How many they are. The thread's own.
    guards: AtomicU32,
}

/// Somebody waits for the guard to leave, and whoever leaves collects [C5]: the number of the collector for which that is.
pub(crate) const AWAITED: u64 = u64::MAX << 32;
/// The thread has come to its end, and its seat is given back by the last guard that leaves.
pub(crate) const ENDED: u64 = 1;
/// The light barrier of who leaves is to be completed.
pub(crate) const INCOMPLETE: u64 = 2;
/// The thread could not collect when some guard left that was awaited.
pub(crate) const POSTPONED: u64 = 4;
/// The guard is one of several that share a record, for which this one stands.
pub(crate) const SHARES: u64 = 8;
/// The guard has a record of its collector, for which this one stands.
pub(crate) const LENT: u64 = 16;

/// Relaxed, all: the thread's own stores; `calls`, which others set, too, is ordered by the barriers [C5].
impl Record {
    /// Whether there is no guard. Asked by the thread itself.
    #[inline(always)]
    pub(crate) fn is_idle(&self) -> bool {
        self.stamp.load(Ordering::Relaxed) == 0
    }

    /// From now on whoever leaves has this to do.
    pub(crate) fn call(&self, what: u64) {
        debug_assert!(what & AWAITED == 0);
        self.calls.fetch_or(what, Ordering::Relaxed);
    }

    /// From now on whoever leaves collects, as the collector of this number asks for, whoever has asked before.
    pub(crate) fn call_for(&self, number: u32) {
        let called = |calls| Some(calls & !AWAITED | u64::from(number) << 32);
        let _ = self.calls.fetch_update(Ordering::Relaxed, Ordering::Relaxed, called);
    }

    /// Whether a call for the collector of this number stands.
    pub(crate) fn is_called_for(&self, number: u32) -> bool {
        self.calls.load(Ordering::Relaxed) & AWAITED == u64::from(number) << 32
    }

    /// Nobody has to do this any more. What there was to do.
    pub(crate) fn uncall(&self, what: u64) -> u64 {
        self.calls.fetch_and(!what, Ordering::Relaxed)
    }
}

/// Relaxed, all: the thread's own.
impl SharedRecord {
    /// One more guard has it; what that has in its place.
    pub(crate) fn join(&self) -> &Record {
        // Guards that are forgotten count for ever.
        let guards = self.guards.load(Ordering::Relaxed).checked_add(1).expect("too many pins of one thread");
        self.guards.store(guards, Ordering::Relaxed);
        &self.proxy
    }

    /// One of its guards has gone. Whether it was the last.
    pub(crate) fn part(&self) -> bool {
        let guards = self.guards.load(Ordering::Relaxed) - 1;
        self.guards.store(guards, Ordering::Relaxed);
        guards == 0
    }

    /// Whether it is the one that this stands for.
    pub(crate) fn has_proxy(&self, proxy: &Record) -> bool {
        core::ptr::eq(&self.proxy, proxy)
    }
}

/// Records of one thread.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Records {
    own: [Record; OWN],
    /// Null, or those that guards share.
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

    /// The one that is looked at first.
    pub(crate) fn first(&self) -> &Record {
        &self.own[0]
    }

    /// Those of one guard each.
    pub(crate) fn own(&self) -> impl Iterator<Item = &Record> {
        self.own.iter()
    }

    /// Those that guards share.
    pub(crate) fn shared(&self) -> impl Iterator<Item = &SharedRecord> {
        // Acquire: pairs with the store in `add`.
        // SAFETY: null, or leaked there.
        let shared = unsafe { self.shared.load(Ordering::Acquire).as_ref::<'static>() };
        shared.into_iter().flat_map(|shared| shared.iter())
    }

    /// All of them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Record> {
        self.own().chain(self.shared().map(|shared| &shared.record))
    }

    /// Adds the shared records, which are never freed: all who advance look at them. Their first, if there were none. By the
    /// thread itself.
    pub(crate) fn add(&self) -> Option<&SharedRecord> {
        // Relaxed: the thread's own store, or that of whoever had the seat before: it came by the lock of all seats.
        if !self.shared.load(Ordering::Relaxed).is_null() {
            return None;
        }
        let shared: &'static Shared = Box::leak(Box::<Shared>::default());
        // What all of the thread's guards have to do, these have.
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
