//! Locks and versions, one of each for all keys of a stripe.
//!
//! A writer holds its stripe's lock from before the commit until the filter agrees with the store [D1]. A reader takes it only
//! to put into the cache what it has read from the store anyway, and only if the lock is free [D5].

use crossbeam_utils::CachePadded;

use super::absent::Absent;
use crate::sync::{AtomicU64, Mutex, MutexGuard, Ordering, SCHEDULED};

/// So many that two random writes rarely meet, and so few that all of them can be taken in some microseconds.
pub(super) const STRIPES: usize = if SCHEDULED { 4 } else { 1024 };

/// The stripe of a key by its hash: part of the format of snapshots, which mark stripes.
#[inline]
pub(super) fn stripe_of(hash: u64) -> usize {
    // Tables and shards use the two ends of a hash; bits 10 to 19 are independent of these.
    (hash >> 10) as usize % STRIPES
}

/// The data that is written under a stripe's lock.
#[derive(Debug, Default)]
struct Stripe {
    lock: Mutex<()>,
    absent: Absent,
}

/// What a look-up reads of a stripe before the store is asked: twice the number of completed writes, plus one if a key is known
/// to be absent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen(u64);

impl Seen {
    const KNOWS: u64 = 1;
    const WRITE: u64 = 2;

    /// Whether any key of the stripe was known to be absent.
    #[inline]
    pub(super) fn knows_absent(self) -> bool {
        self.0 & Seen::KNOWS != 0
    }

    /// Whether no write has completed in between.
    fn is_as_late_as(self, other: Seen) -> bool {
        self.0 / Seen::WRITE == other.0 / Seen::WRITE
    }
}

#[derive(Debug)]
pub(super) struct Stripes {
    /// The [`Seen`] of each stripe, stored to only by holders of its lock. They are side by side, apart from the stripes: 8 KB,
    /// which stay in the processor's caches whatever a store reads.
    seen: Box<[AtomicU64; STRIPES]>,
    all: Box<[CachePadded<Stripe>; STRIPES]>,
}

/// One for each stripe.
fn each<T>(make: impl Fn() -> T) -> Box<[T; STRIPES]> {
    let all: Box<[T]> = (0..STRIPES).map(|_| make()).collect();
    all.try_into().unwrap_or_else(|_| unreachable!("as many as there are stripes"))
}

impl Stripes {
    pub(super) fn new() -> Self {
        Stripes { seen: each(|| AtomicU64::new(0)), all: each(CachePadded::default) }
    }

    /// The stripe as it is now: to be called before the store is read.
    #[inline]
    pub(super) fn look(&self, stripe: usize) -> Seen {
        // Acquire: pairs with the bump in `Writing::drop`; a reader that sees it reads from the store what was committed
        // before.
        Seen(self.seen[stripe].load(Ordering::Acquire))
    }

    /// Whether this key is remembered as absent.
    pub(super) fn is_known_absent(&self, stripe: usize, hash: u64, key: &[u8]) -> bool {
        self.all[stripe].absent.contains(hash, key)
    }

    /// Begins a write: waits for the stripe's other writers.
    pub(super) fn write(&self, stripe: usize) -> Writing<'_> {
        let Stripe { lock, absent } = &*self.all[stripe];
        Writing { seen: &self.seen[stripe], absent, _lock: lock.lock() }
    }

    /// The same; `None` if a write has completed since the stripe was `seen`.
    pub(super) fn write_unless_changed(&self, stripe: usize, seen: Seen) -> Option<Writing<'_>> {
        let (Stripe { lock, absent }, now) = (&*self.all[stripe], &self.seen[stripe]);
        let lock = lock.lock();
        // Relaxed: stored to only by the lock's holder.
        let is_unchanged = Seen(now.load(Ordering::Relaxed)).is_as_late_as(seen);
        // Made only if needed: it counts as a write when it is dropped.
        is_unchanged.then(|| Writing { seen: now, absent, _lock: lock })
    }

    /// Waits for the other writers of several stripes. Each stripe is taken once, in order, so that two callers that take
    /// several cannot wait for each other forever.
    pub(super) fn write_all(&self, mut stripes: Vec<usize>) -> WritingAll<'_> {
        stripes.sort_unstable();
        stripes.dedup();
        let writing = stripes.iter().map(|&stripe| self.write(stripe)).collect();
        WritingAll { stripes, writing }
    }

    /// Runs `f` if no write of the stripe is under way or has completed since it was `seen`; no such write begins while `f`
    /// runs. Returns whether `f` ran. Never waits.
    pub(super) fn if_unchanged(&self, stripe: usize, seen: Seen, f: impl FnOnce()) -> bool {
        let Some(_lock) = self.all[stripe].lock.try_lock() else { return false };
        // Relaxed: stored to only by the lock's holder.
        let is_unchanged = Seen(self.seen[stripe].load(Ordering::Relaxed)).is_as_late_as(seen);
        if is_unchanged {
            f();
        }
        is_unchanged
    }

    /// Notes that the store does not hold a key for which it was asked after the stripe was `seen`. Returns false if a write
    /// may have come between.
    pub(super) fn note_absent(&self, stripe: usize, seen: Seen, hash: u64, key: &[u8]) -> bool {
        self.if_unchanged(stripe, seen, || {
            if self.all[stripe].absent.note(hash, key) {
                // Relaxed: a hint; a reader that misses it asks the store, and one that sees it looks under the keys' lock.
                self.seen[stripe].fetch_or(Seen::KNOWS, Ordering::Relaxed);
            }
        })
    }

    /// Waits until no write is under way; none begins while the result lives.
    pub(super) fn freeze(&self) -> Frozen<'_> {
        // In the same order as in `write_all`.
        Frozen { stripes: self, _locks: self.all.iter().map(|stripe| stripe.lock.lock()).collect() }
    }
}

/// A write to a stripe's keys is under way.
#[derive(Debug)]
pub(super) struct Writing<'a> {
    seen: &'a AtomicU64,
    absent: &'a Absent,
    _lock: MutexGuard<'a, ()>,
}

impl Writing<'_> {
    /// Forgets that this key was absent, as it is about to be written.
    pub(super) fn forget_absent(&self, hash: u64) {
        // Relaxed: stored to only by holders of the stripe. Mostly nothing is known.
        let knows = Seen(self.seen.load(Ordering::Relaxed)).knows_absent();
        if !self.absent.forget(hash) && knows {
            // Relaxed: a hint, as in `note_absent`.
            self.seen.fetch_and(!Seen::KNOWS, Ordering::Relaxed);
        }
    }
}

/// Writes to the keys of several stripes are under way.
#[derive(Debug)]
pub(super) struct WritingAll<'a> {
    /// In order, each once.
    stripes: Vec<usize>,
    /// One for each of these stripes.
    writing: Vec<Writing<'a>>,
}

impl<'a> WritingAll<'a> {
    /// The write to one of these stripes.
    pub(super) fn of(&self, stripe: usize) -> &Writing<'a> {
        &self.writing[self.stripes.partition_point(|&other| other < stripe)]
    }
}

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        // Release: pairs with the load in `look`. Before the lock is released, also when the store panics.
        self.seen.fetch_add(Seen::WRITE, Ordering::Release);
    }
}

/// No write is under way.
#[derive(Debug)]
pub(super) struct Frozen<'a> {
    stripes: &'a Stripes,
    _locks: Vec<MutexGuard<'a, ()>>,
}

impl Frozen<'_> {
    /// Forgets what is known of absent keys; and callers that have asked the store before will not remember its answers.
    pub(super) fn forget(&self) {
        for (seen, stripe) in self.stripes.seen.iter().zip(&*self.stripes.all) {
            // Release: pairs with the load in `look`, as a write's.
            seen.fetch_add(Seen::WRITE, Ordering::Release);
            stripe.absent.clear();
            // Relaxed: a hint, as in `note_absent`.
            seen.fetch_and(!Seen::KNOWS, Ordering::Relaxed);
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    /// If it does not, snapshots need another version.
    #[test]
    fn a_hash_has_the_stripe_that_it_has_in_snapshots() {
        let expected = [
            (0, 0),
            (0x3ff, 0),
            (0x400, 1),
            (0x0123_4567_89ab_cdef, 0x2f3),
            (0xfedc_ba98_7654_3210, 0x10c),
            (0xf_fc00, 1023),
            (u64::MAX, 1023),
            (1 << 20, 0),
        ];
        for (hash, stripe) in expected {
            assert_eq!(stripe_of(hash), stripe, "{hash:#x}");
        }
    }

    #[test]
    fn of_several_stripes_each_is_held_once_and_found() {
        let stripes = Stripes::new();
        let all = stripes.write_all(vec![9, 3, 1023, 9, 3]);
        assert_eq!(all.writing.len(), 3);
        for stripe in [3, 9, 1023] {
            assert!(core::ptr::eq(all.of(stripe).seen, &stripes.seen[stripe]));
            assert!(stripes.all[stripe].lock.try_lock().is_none());
        }
        assert!(stripes.all[4].lock.try_lock().is_some());
    }
}
