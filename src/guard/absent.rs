//! A small cache of keys that the filter takes for present and the store does not hold: false positives that repeat.
//!
//! A key gets in when it is a false positive for the second time, and leaves before a write of it commits [D6]. Each stripe
//! has a few places; they are written under the stripe's lock. Readers compare hashes first, and lock a place only
//! to compare a key that is very likely the one: keys are compared in full, for hashes may collide.

use super::stripes::STRIPES;
use crate::engine::prefetch;
use crate::sync::{AtomicU64, Mutex, Ordering};

/// Places of a stripe.
const WAYS: usize = 4;
/// Longer keys are not remembered: memory is bounded by `STRIPES * WAYS` times this, a megabyte with usual keys.
const MAX_KEY_LEN: usize = 1024;
/// In a tag: the key is in its place. Otherwise its hash was seen once.
const KNOWN: u64 = 1;

#[derive(Debug, Default)]
struct Place {
    /// The key's hash but for the lowest bit; 0 if there is none.
    tag: AtomicU64,
    key: Mutex<Box<[u8]>>,
}

#[derive(Debug)]
pub(super) struct Absent {
    places: Box<[Place]>,
}

impl Absent {
    pub(super) fn new() -> Self {
        Absent { places: (0..STRIPES * WAYS).map(|_| Place::default()).collect() }
    }

    fn place(&self, hash: u64, stripe: usize) -> &Place {
        &self.places[stripe * WAYS + (hash >> 60) as usize % WAYS]
    }

    /// Starts loading what [`Absent::contains`] looks at.
    #[inline]
    pub(super) fn prefetch(&self, hash: u64, stripe: usize) {
        prefetch(self.place(hash, stripe));
    }

    /// Whether the key is surely absent from the store.
    #[inline]
    pub(super) fn contains(&self, hash: u64, stripe: usize, key: &[u8]) -> bool {
        let place = self.place(hash, stripe);
        // Relaxed: a hint; what counts is the second look, under the lock.
        let hit = || place.tag.load(Ordering::Relaxed) == hash | KNOWN;
        if !hit() {
            return false;
        }
        let known = place.key.lock();
        hit() && **known == *key
    }

    /// The filter took an absent key for present. The caller holds the stripe, and no write of the key was over since the
    /// store was asked.
    pub(super) fn note(&self, hash: u64, stripe: usize, key: &[u8]) {
        if key.len() > MAX_KEY_LEN {
            return;
        }
        let place = self.place(hash, stripe);
        let mut known = place.key.lock();
        // Relaxed: stored to under both locks only.
        let again = place.tag.load(Ordering::Relaxed) & !KNOWN == hash & !KNOWN;
        if again {
            *known = key.into();
        }
        // Relaxed: the place's lock publishes the key.
        place.tag.store(if again { hash | KNOWN } else { hash & !KNOWN }, Ordering::Relaxed);
    }

    /// The key is going to be written; the caller holds the stripe.
    pub(super) fn forget(&self, hash: u64, stripe: usize) {
        let place = self.place(hash, stripe);
        // Relaxed: stored to by holders of the stripe only.
        if place.tag.load(Ordering::Relaxed) & !KNOWN == hash & !KNOWN {
            // A reader that is comparing answers for the moment before.
            let _known = place.key.lock();
            place.tag.store(0, Ordering::Relaxed);
        }
    }
}
