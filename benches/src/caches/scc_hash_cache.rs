//! scc::HashCache: LRU within each bucket of 32. Its bound is rounded up to a power of two, and is at least 64.

use ::scc::HashCache;

use super::Cache;
use crate::contestants::{Hasher, hasher};

/// scc::HashCache.
#[derive(Debug)]
pub struct SccHashCache(HashCache<u64, u64, Hasher>);

impl Cache for SccHashCache {
    const NAME: &'static str = "scc::HashCache";
    type Weighted = Self;

    fn of_entries(entries: usize) -> Self {
        SccHashCache(HashCache::with_capacity_and_hasher(entries, entries, hasher()))
    }

    fn of_bytes(_: u64, _: usize) -> Option<Self> {
        None
    }

    /// By `get_sync`: `read_sync` does not update the bucket's LRU list, so that the cache would evict what is asked for most.
    #[inline]
    fn get(&self, key: u64) -> Option<u64> {
        self.0.get_sync(&key).map(|entry| *entry.get())
    }

    #[inline]
    fn insert(&self, key: u64, value: u64) {
        // The entry that is evicted for it, or the pair if the key is there already, is not needed.
        let _ = self.0.put_sync(key, value);
    }

    /// Looks the key up first: a hit through `entry_sync` does not update the bucket's LRU list either. What `entry_sync`
    /// inserts is loaded under the bucket's lock, once for all callers that miss it.
    #[inline]
    fn get_or_load(&self, key: u64, load: impl FnOnce() -> u64) -> u64 {
        self.get(key).unwrap_or_else(|| *self.0.entry_sync(key).or_put_with(load).1.get())
    }

    fn held(&self) -> u64 {
        self.0.len() as u64
    }
}
