//! A small cache of keys that the filter takes for present and the store does not hold: repeated false positives.
//!
//! A key is admitted when it is a false positive for the second time, and is removed before a write of it commits [D6]. Each
//! stripe has one such cache, written under the stripe's lock. Readers compare hashes first, and lock the keys only when a hash
//! matches. Keys are then compared in full, because hashes may collide.

use crate::sync::{AtomicU64, Mutex, Ordering};

/// Places in a stripe.
const WAYS: usize = 4;
/// Longer keys are not remembered, so that memory is bounded by `WAYS` times this per stripe; with usual keys it is a megabyte
/// in all.
const MAX_KEY_LEN: usize = 1024;
/// Set in a tag if the key itself is in its place; otherwise its hash was seen once.
const KNOWN: u64 = 1;

/// A stripe's places.
#[derive(Debug, Default)]
pub(super) struct Absent {
    /// The hash of each key, except its lowest bit; 0 if there is no key.
    tags: [AtomicU64; WAYS],
    keys: Mutex<[Box<[u8]>; WAYS]>,
}

/// The place of a key in its stripe.
fn way_of(hash: u64) -> usize {
    (hash >> 60) as usize % WAYS
}

impl Absent {
    /// Whether this key is remembered as absent.
    #[inline]
    pub(super) fn contains(&self, hash: u64, key: &[u8]) -> bool {
        let way = way_of(hash);
        // Relaxed: a hint; the second look, under the lock, decides.
        let hit = || self.tags[way].load(Ordering::Relaxed) == hash | KNOWN;
        if !hit() {
            return false;
        }
        let keys = self.keys.lock();
        hit() && *keys[way] == *key
    }

    /// Notes that the filter took an absent key for present. The caller holds the stripe, and no write of the key has completed
    /// since the store was asked. Returns whether the key is remembered now.
    pub(super) fn note(&self, hash: u64, key: &[u8]) -> bool {
        if key.len() > MAX_KEY_LEN {
            return false;
        }
        let way = way_of(hash);
        let (tag, mut keys) = (&self.tags[way], self.keys.lock());
        // Relaxed: stored to only under both locks.
        let again = tag.load(Ordering::Relaxed) & !KNOWN == hash & !KNOWN;
        if again {
            keys[way] = key.into();
        }
        // Relaxed: the keys' lock publishes the key.
        tag.store(if again { hash | KNOWN } else { hash & !KNOWN }, Ordering::Relaxed);
        again
    }

    /// Forgets all keys; the caller holds the stripe.
    pub(super) fn clear(&self) {
        let _keys = self.keys.lock();
        // Relaxed: as in `forget`.
        self.tags.iter().for_each(|tag| tag.store(0, Ordering::Relaxed));
    }

    /// Forgets a key that is about to be written; the caller holds the stripe. Returns whether other keys are remembered.
    pub(super) fn forget(&self, hash: u64) -> bool {
        let tag = &self.tags[way_of(hash)];
        // Relaxed: stored to only by holders of the stripe.
        if tag.load(Ordering::Relaxed) & !KNOWN == hash & !KNOWN {
            // A reader that is comparing keys now answers for the moment before.
            let _keys = self.keys.lock();
            tag.store(0, Ordering::Relaxed);
        }
        self.tags.iter().any(|tag| tag.load(Ordering::Relaxed) & KNOWN != 0)
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_not_taken_for_another_of_its_hash() {
        let (absent, hash) = (Absent::default(), 0x1234_5678_9ABC_DEF0);
        assert!(!absent.note(hash, b"ada") && !absent.contains(hash, b"ada"));
        assert!(absent.note(hash, b"ada") && absent.contains(hash, b"ada"));
        assert!(!absent.contains(hash, b"grace"));
        assert!(absent.note(hash, b"grace") && absent.contains(hash, b"grace"));
        assert!(!absent.contains(hash, b"ada"), "in its place");
        assert!(!absent.forget(hash) && !absent.contains(hash, b"grace"));
    }
}
