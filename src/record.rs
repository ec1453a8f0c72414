//! [`Record`]: what a guard says of itself to whoever reclaims memory. [`Records`]: those of one thread, in its seat.

use crossbeam_utils::CachePadded;

use crate::sync::{AtomicPtr, AtomicU32, AtomicU64, Ordering, SCHEDULED};

/// Guards of different collectors that a thread may have without more memory.
const RECORDS: usize = if SCHEDULED { 2 } else { 4 };

/// What a thread, or an owned guard, says of one collector's guards. Written by that thread alone, but for `calls`; the epoch
/// last when a guard is entered, and first when it leaves: see `reclaim`.
#[derive(Debug, Default)]
#[repr(C)]
pub(crate) struct Record {
    /// When its guard was entered, the first of those that live; 0: it has none.
    pub(crate) epoch: AtomicU64,
    /// The collector of that guard, by its number, which is nobody else's; of the last one, if it has none.
    pub(crate) collector: AtomicU64,
    /// Guards of the same collector that live, beside one.
    nested: AtomicU32,
    /// What whoever leaves has to do: [`AWAITED`], [`ENDED`], [`INCOMPLETE`], [`POSTPONED`].
    pub(crate) calls: AtomicU32,
}

/// Somebody waits for the guard to leave, and whoever leaves collects [C5].
pub(crate) const AWAITED: u32 = 1;
/// The thread has come to its end, and its seat is given back by the last guard that leaves.
pub(crate) const ENDED: u32 = 2;
/// The light barrier of who leaves is to be completed.
pub(crate) const INCOMPLETE: u32 = 4;
/// The thread could not collect when some guard left that was awaited.
pub(crate) const POSTPONED: u32 = 8;

/// Relaxed, all: the thread's own stores; `calls`, which others set, too, is ordered by the barriers [C5].
impl Record {
    /// Whether there is no guard. Asked by the thread itself.
    #[inline(always)]
    pub(crate) fn is_idle(&self) -> bool {
        self.epoch.load(Ordering::Relaxed) == 0
    }

    /// Whether more guards than one live. Which of them goes first does not matter.
    #[inline(always)]
    pub(crate) fn is_nested(&self) -> bool {
        self.nested.load(Ordering::Relaxed) != 0
    }

    #[cold]
    pub(crate) fn nest(&self) {
        // Guards that are forgotten count for ever.
        let nested = self.nested.load(Ordering::Relaxed).checked_add(1).expect("too many pins of one thread");
        self.nested.store(nested, Ordering::Relaxed);
    }

    #[cold]
    pub(crate) fn unnest(&self) {
        self.nested.store(self.nested.load(Ordering::Relaxed) - 1, Ordering::Relaxed);
    }

    /// From now on whoever leaves has this to do.
    pub(crate) fn call(&self, what: u32) {
        self.calls.fetch_or(what, Ordering::Relaxed);
    }

    /// Nobody has to do this any more. What there was to do.
    pub(crate) fn uncall(&self, what: u32) -> u32 {
        self.calls.fetch_and(!what, Ordering::Relaxed)
    }
}

/// Records of one thread: some, and more where it once had guards of more collectors at a time.
#[derive(Debug, Default)]
#[repr(C)]
pub(crate) struct Records {
    here: [Record; RECORDS],
    /// Null, or those that come after.
    more: AtomicPtr<Records>,
}

#[cfg(all(target_pointer_width = "64", not(any(loom, shuttle))))]
const _: () = assert!(size_of::<Records>() <= 128 && size_of::<Record>() == 24);

impl Records {
    /// The one that is looked at first.
    pub(crate) fn first(&'static self) -> &'static Record {
        &self.here[0]
    }

    /// All of them.
    pub(crate) fn iter(&'static self) -> impl Iterator<Item = &'static Record> {
        let next = |records: &&'static Records| {
            // Acquire: pairs with the store in `add`.
            // SAFETY: null, or leaked there.
            unsafe { records.more.load(Ordering::Acquire).as_ref() }
        };
        core::iter::successors(Some(self), next).flat_map(|records| &records.here)
    }

    /// Adds a record, which is never freed: a thread has no more than it once had guards at a time. By the thread itself.
    pub(crate) fn add(&'static self) -> &'static Record {
        let mut last = self;
        // SAFETY: as in `iter`. Acquire: the thread's own stores, or those of whoever had the seat before.
        while let Some(more) = unsafe { last.more.load(Ordering::Acquire).as_ref() } {
            last = more;
        }
        let more: &'static Records = Box::leak(Box::<CachePadded<Records>>::default());
        // What all of the thread's guards have to do, these have.
        let calls = self.first().calls.load(Ordering::Relaxed) & (ENDED | POSTPONED);
        more.here.iter().for_each(|record| record.call(calls));
        // Release: pairs with the load in `iter`.
        last.more.store(core::ptr::from_ref(more).cast_mut(), Ordering::Release);
        more.first()
    }
}
