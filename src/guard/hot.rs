//! Between the guard and a cache of values: the only file that knows what the cache is.
//!
//! Whoever calls these keeps the coherence rules [D5]: `put` only inside of `Stripes::if_unchanged`, `remove` only by a
//! writer that holds the key's stripe, before its commit.

use super::store::Value;
use crate::cache::Cache;

/// What an entry takes beside the bytes of its key and value: slot, tag, mark and queues, two headers of allocations, and the
/// counts of an `Arc`.
const OVERHEAD: u64 = 80;

/// The hot keys' values, as many as there is room for.
#[derive(Debug)]
pub(super) struct Hot(Option<Cache<Box<[u8]>, Value>>);

impl Hot {
    /// A cache of so many bytes; of none, if 0.
    pub(super) fn new(bytes: u64) -> Self {
        let cache = Cache::<Box<[u8]>, Value>::builder().max_weight(bytes);
        let cache = cache.weigher(|key, value| (key.len() + value.len()) as u64 + OVERHEAD);
        Hot((bytes > 0).then(|| cache.build()))
    }

    /// Whether anything is ever kept: if not, nobody needs to offer it.
    #[inline]
    pub(super) fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// The value of a key that was kept.
    #[inline]
    pub(super) fn get(&self, key: &[u8]) -> Option<Value> {
        self.0.as_ref()?.get(key)
    }

    /// Keeps a value for a while, if it is not too large.
    pub(super) fn put(&self, key: &[u8], value: &Value) {
        if let Some(cache) = &self.0 {
            // Refused if it is larger than all that may be kept: then the store is asked each time.
            let _ = cache.insert(key.into(), value.clone());
        }
    }

    /// Forgets the value of a key.
    pub(super) fn remove(&self, key: &[u8]) {
        if let Some(cache) = &self.0 {
            cache.remove(key);
        }
    }

    /// What is kept, in bytes.
    pub(super) fn weight(&self) -> u64 {
        self.0.as_ref().map_or(0, Cache::weight)
    }
}
