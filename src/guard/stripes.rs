//! Locks and versions, one of each for all keys of a stripe.
//!
//! A writer holds its stripe's lock from before the commit until the filter agrees with the store [D1]. A reader takes it
//! only to put into the cache what it had from the store anyway, and only if nobody has it [D5].

use crossbeam_utils::CachePadded;

use super::absent::Absent;
use crate::engine::prefetch;
use crate::sync::{AtomicU64, Mutex, MutexGuard, Ordering, SCHEDULED};

/// So many that two writes at random rarely meet, and all of them are taken in some microseconds.
pub(super) const STRIPES: usize = if SCHEDULED { 4 } else { 1024 };

/// The stripe of a key by its hash.
#[inline]
pub(super) fn stripe_of(hash: u64) -> usize {
    // Bits 10 to 19 say nothing of the order in which tables and shards use a hash's ends.
    (hash >> 10) as usize % STRIPES
}

/// What a look-up that reaches the store reads of it is in one cache line.
#[derive(Debug, Default)]
#[repr(C)]
struct Stripe {
    lock: Mutex<()>,
    /// Writes that are over.
    version: AtomicU64,
    absent: Absent,
}

#[cfg(not(any(loom, shuttle)))]
const _: () = assert!(core::mem::offset_of!(Stripe, absent) + Absent::SEEN <= 64);

#[derive(Debug)]
pub(super) struct Stripes {
    all: Box<[CachePadded<Stripe>]>,
}

impl Stripes {
    pub(super) fn new() -> Self {
        Stripes { all: (0..STRIPES).map(|_| CachePadded::default()).collect() }
    }

    /// Starts loading a stripe.
    #[inline]
    pub(super) fn prefetch(&self, stripe: usize) {
        prefetch(&*self.all[stripe]);
    }

    /// Keys of the stripe that are known not to be there.
    #[inline]
    pub(super) fn absent(&self, stripe: usize) -> &Absent {
        &self.all[stripe].absent
    }

    /// The stripe's version now: to be asked for before the store is read.
    #[inline]
    pub(super) fn version(&self, stripe: usize) -> u64 {
        // Acquire: pairs with the bump in `Writing::drop`; who sees it reads from the store what was committed before.
        self.all[stripe].version.load(Ordering::Acquire)
    }

    /// Waits for the stripe's other writers.
    pub(super) fn write(&self, stripe: usize) -> Writing<'_> {
        let stripe = &*self.all[stripe];
        Writing { version: &stripe.version, _lock: stripe.lock.lock() }
    }

    /// Runs `f` if no write of the stripe is under way or was over since it had this version; no such write begins
    /// while it runs. Never waits.
    pub(super) fn if_unchanged(&self, stripe: usize, version: u64, f: impl FnOnce()) {
        let stripe = &*self.all[stripe];
        if let Some(_lock) = stripe.lock.try_lock() {
            // Relaxed: bumped only by who holds the lock.
            if stripe.version.load(Ordering::Relaxed) == version {
                f();
            }
        }
    }

    /// Waits until no write is under way; none begins as long as the result lives.
    pub(super) fn freeze(&self) -> Frozen<'_> {
        // In one order: those who take several take them all. Writers take one, and wait for nothing more.
        Frozen { stripes: self, _locks: self.all.iter().map(|stripe| stripe.lock.lock()).collect() }
    }
}

/// A write to a stripe's keys is under way.
#[derive(Debug)]
pub(super) struct Writing<'a> {
    version: &'a AtomicU64,
    _lock: MutexGuard<'a, ()>,
}

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        // Release: pairs with the load in `version`. Before the lock is given back, also when the store panics.
        self.version.fetch_add(1, Ordering::Release);
    }
}

/// No write is under way.
#[derive(Debug)]
pub(super) struct Frozen<'a> {
    stripes: &'a Stripes,
    _locks: Vec<MutexGuard<'a, ()>>,
}

impl Frozen<'_> {
    /// What is known of absent keys is forgotten; and who has asked the store before will not remember what it said.
    pub(super) fn forget(&self) {
        for stripe in &self.stripes.all {
            // Release: pairs with the load in `version`, as a write's.
            stripe.version.fetch_add(1, Ordering::Release);
            stripe.absent.clear();
        }
    }
}
