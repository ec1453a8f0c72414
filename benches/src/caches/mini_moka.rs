//! mini_moka::sync::Cache: W-TinyLFU around dashmap.

use ::mini_moka::sync::{Cache as Inner, ConcurrentCacheExt};

use super::Cache;
use crate::contestants::{Hasher, hasher};

/// mini_moka::sync::Cache.
#[derive(Debug)]
pub struct MiniMoka(Inner<u64, u64, Hasher>);

impl Cache for MiniMoka {
    const NAME: &'static str = "mini-moka";
    type Weighted = Self;

    fn of_entries(entries: usize) -> Self {
        MiniMoka(Inner::builder().max_capacity(entries as u64).build_with_hasher(hasher()))
    }

    fn of_bytes(bytes: u64, _: usize) -> Option<Self> {
        let builder = Inner::builder().max_capacity(bytes).weigher(|_, value: &u64| *value as u32);
        Some(MiniMoka(builder.build_with_hasher(hasher())))
    }

    #[inline]
    fn get(&self, key: u64) -> Option<u64> {
        self.0.get(&key)
    }

    #[inline]
    fn insert(&self, key: u64, value: u64) {
        self.0.insert(key, value);
    }

    fn settle(&self) {
        self.0.sync();
    }

    fn held(&self) -> u64 {
        self.0.weighted_size()
    }
}
