//! [`Turns`]: of the threads that insert a key unless it is there, one at a time.
//!
//! A key may be put into any of the tables, and a list of them may be replaced meanwhile: no lock of a table is one that all
//! who look for the key and then insert it hold. So they take turns, a few locks for all keys. Who inserts in any case
//! needs no turn, nor does who finds the key.

use crossbeam_utils::CachePadded;

use super::super::collect::try_collect;
use super::super::error::FilterError;
use crate::hash::{Digest, scale};
use crate::sync::{AtomicU64, Mutex, MutexGuard, Ordering};

/// Most locks.
const MOST: usize = 16;
/// Slots of a filter that has another lock: a small one is not to be more locks than fingerprints.
const SLOTS_EACH: usize = 2048;

/// Who comes next, for each of some sets of keys.
pub(super) struct Turns(Box<[CachePadded<Keys>]>);

/// One set of keys.
struct Keys {
    turn: Mutex<()>,
    /// How many have been inserted. Stored by who has the turn.
    inserted: AtomicU64,
}

impl Turns {
    /// For a filter that has so many slots when it is made. An error, if there is no memory for them.
    pub(super) fn new(slots: usize) -> Result<Self, FilterError> {
        let sets = (slots / SLOTS_EACH).clamp(1, MOST);
        let keys = || CachePadded::new(Keys { turn: Mutex::new(()), inserted: AtomicU64::new(0) });
        Ok(Turns(try_collect((0..sets).map(|_| keys()))?.into_boxed_slice()))
    }

    /// Before anybody looks whether a key is there.
    #[inline]
    pub(super) fn look(&self, digest: Digest) -> Look<'_> {
        let keys = &self.0[scale(digest.locator(), self.0.len() as u32) as usize];
        // Acquire: what was inserted by then is seen by who looks from now on. Partner: the store in `tell`.
        Look { keys, inserted: keys.inserted.load(Ordering::Acquire) }
    }
}

/// From when on somebody looks for a key.
pub(super) struct Look<'a> {
    keys: &'a Keys,
    inserted: u64,
}

impl<'a> Look<'a> {
    /// Waits for those who are inserting the key.
    #[inline]
    pub(super) fn turn(self) -> Turn<'a> {
        let lock = self.keys.turn.lock();
        // Relaxed: stored under the lock.
        let others = self.keys.inserted.load(Ordering::Relaxed) != self.inserted;
        Turn { keys: self.keys, others, _lock: lock }
    }
}

/// Nobody else inserts the key now, unless in any case.
pub(super) struct Turn<'a> {
    keys: &'a Keys,
    /// Whether somebody has inserted a key of the set since one was looked for.
    pub(super) others: bool,
    _lock: MutexGuard<'a, ()>,
}

impl Turn<'_> {
    /// Tells that the key has been inserted.
    #[inline]
    pub(super) fn tell(self) {
        // Relaxed: nobody else stores. Wrapped around it would take until others have inserted 2^64 keys.
        let inserted = self.keys.inserted.load(Ordering::Relaxed).wrapping_add(1);
        // Release: partner, the load in `look`.
        self.keys.inserted.store(inserted, Ordering::Release);
    }
}
