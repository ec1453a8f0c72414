//! Adapts a cache of values to the guard: the only file that knows what the cache is.
//!
//! The callers keep the coherence rules [D5]: `put` is called only inside `Stripes::if_unchanged`, and `remove` only by a
//! writer that holds the key's stripe, before its commit.

use super::store::Value;
use crate::cache::Cache;
use crate::sync::{AtomicBool, AtomicU32, Ordering};

/// What an entry takes in addition to the bytes of its key and value: slot, tag, mark and queues, two headers of allocations,
/// and the counts of an `Arc`.
const OVERHEAD: u64 = 80;

/// Bytes of the cache per remembered key that was asked for once: about what a small entry takes.
const BYTES_PER_SEEN: u64 = 128;
/// One key in this many checks whether the cache is full.
const LOOKS: u64 = 64;

/// The hot keys' values, as many as there is room for.
///
/// Once the cache is full, a key gets in when it is asked for a second time within about as many keys as there is room for (the
/// "cache-on-second-hit rule" of Maggs and Sitaraman, Algorithmic nuggets in content delivery, 2015): where keys are asked for
/// once, or all equally often, most look-ups are spared an insertion that would be of no use.
#[derive(Debug)]
pub(super) struct Hot {
    cache: Option<Cache<Box<[u8]>, Value>>,
    /// Keys asked for lately: 32 bits of the hash of each, in a place that other bits of the hash select. The length is a power
    /// of two.
    seen: Box<[AtomicU32]>,
    is_full: AtomicBool,
}

impl Hot {
    /// A cache of this many bytes; none if 0.
    pub(super) fn new(bytes: u64) -> Self {
        let cache = Cache::<Box<[u8]>, Value>::builder().max_weight(bytes);
        let cache = cache.weigher(|key, value| (key.len() + value.len()) as u64 + OVERHEAD);
        let seen = usize::try_from(bytes / BYTES_PER_SEEN).map_or(1, |seen| seen.clamp(1, 1 << 24));
        Hot {
            cache: (bytes > 0).then(|| cache.build()),
            seen: (0..seen.next_power_of_two()).map(|_| AtomicU32::new(0)).collect(),
            is_full: AtomicBool::new(false),
        }
    }

    /// Whether a value that was read from the store is worth keeping, by its key's hash.
    #[inline]
    pub(super) fn wants(&self, hash: u64) -> bool {
        let Some(cache) = &self.cache else { return false };
        // Relaxed, all of these: only advice.
        if hash >> 58 == hash % LOOKS {
            self.is_full.store(cache.weight() >= cache.capacity() / 8 * 7, Ordering::Relaxed);
        }
        if !self.is_full.load(Ordering::Relaxed) {
            return true;
        }
        let (seen, key) = (&self.seen[hash as usize & (self.seen.len() - 1)], (hash >> 32) as u32);
        let again = seen.load(Ordering::Relaxed) == key;
        if !again {
            seen.store(key, Ordering::Relaxed);
        }
        again
    }

    /// The value of a key, if it is in the cache.
    #[inline]
    pub(super) fn get(&self, key: &[u8]) -> Option<Value> {
        self.cache.as_ref()?.get(key)
    }

    /// Whether the value of a key is in the cache; this does not count as a use.
    pub(super) fn contains_key(&self, key: &[u8]) -> bool {
        self.cache.as_ref().is_some_and(|cache| cache.contains_key(key))
    }

    /// Puts a value into the cache, if it is not too large.
    pub(super) fn put(&self, key: &[u8], value: &Value) {
        if let Some(cache) = &self.cache {
            // It is refused if it is larger than the whole cache: then the store is asked each time.
            let _ = cache.insert(key.into(), value.clone());
        }
    }

    /// Forgets the value of a key.
    pub(super) fn remove(&self, key: &[u8]) {
        if let Some(cache) = &self.cache {
            cache.remove(key);
        }
    }

    /// Forgets all values.
    pub(super) fn clear(&self) {
        if let Some(cache) = &self.cache {
            cache.clear();
        }
    }

    /// The contents of the cache, in bytes, with `OVERHEAD` for each entry.
    pub(super) fn weight(&self) -> u64 {
        self.cache.as_ref().map_or(0, Cache::weight)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    /// One of the hashes for which [`Hot::wants`] checks whether the cache is full.
    const LOOKING: u64 = 0;
    const ONE: u64 = 5 << 32 | 1;
    const ANOTHER: u64 = 6 << 32 | 1;

    fn full() -> Hot {
        let hot = Hot::new(1 << 16);
        let value: Value = Arc::from([0; 1000]);
        (0..200_u32).for_each(|key| hot.put(&key.to_be_bytes(), &value));
        hot.wants(LOOKING);
        hot
    }

    #[test]
    fn a_cache_with_room_wants_every_key() {
        let hot = Hot::new(1 << 16);
        assert!(hot.wants(LOOKING) && hot.wants(ONE) && hot.wants(ANOTHER));
    }

    #[test]
    fn a_full_cache_wants_a_key_that_comes_back() {
        let hot = full();
        assert!(!hot.wants(ONE));
        assert!(hot.wants(ONE) && hot.wants(ONE));
        assert!(!hot.wants(ANOTHER), "the same place, another key");
        assert!(!hot.wants(ONE), "forgotten for the other one");
    }

    #[test]
    fn a_cache_that_has_room_again_wants_every_key() {
        let hot = full();
        (0..200_u32).for_each(|key| hot.remove(&key.to_be_bytes()));
        hot.wants(LOOKING);
        assert!(hot.wants(ONE));
    }

    /// As the documentation of `cache_bytes` says.
    #[test]
    fn what_is_remembered_takes_a_thirtieth_to_a_sixteenth_and_64_mib_at_most() {
        let taken = |bytes| size_of_val(&*Hot::new(bytes).seen) as u64;
        for bytes in [1000, 10_000, 1 << 20, (1 << 20) + 5000, 1_500_000, 10_000_000, 1 << 31] {
            let taken = taken(bytes);
            assert!((bytes / 33..=bytes / 16).contains(&taken), "{taken} of {bytes}");
        }
        assert_eq!([1 << 40, u64::MAX].map(taken), [64 << 20; 2]);
    }

    #[test]
    fn no_cache_wants_nothing() {
        let hot = Hot::new(0);
        assert!(!hot.wants(LOOKING) && !hot.wants(ONE) && !hot.wants(ONE));
    }
}
