//! quick_cache::sync::Cache: ideas of S3-FIFO and CLOCK-Pro, with a read-write lock for each shard.

use std::convert::Infallible;
use std::fmt;

use ::quick_cache::sync::{Cache as Inner, DefaultLifecycle};
use ::quick_cache::{UnitWeighter, Weighter};

use super::Cache;
use crate::contestants::{Hasher, hasher};

/// quick_cache::sync::Cache.
pub struct QuickCache<W = UnitWeighter>(Inner<u64, u64, W, Hasher>);

/// An entry takes as many bytes as the low 32 bits of its value say.
#[derive(Debug, Clone, Copy, Default)]
pub struct BySize;

impl Weighter<u64, u64> for BySize {
    fn weight(&self, _: &u64, value: &u64) -> u64 {
        u64::from(*value as u32)
    }
}

impl<W> fmt::Debug for QuickCache<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QuickCache").finish_non_exhaustive()
    }
}

impl<W: Weighter<u64, u64> + Clone + Default + Send + Sync + 'static> Cache for QuickCache<W> {
    const NAME: &'static str = "quick_cache";
    type Weighted = QuickCache<BySize>;

    fn of_entries(entries: usize) -> Self {
        let weighter = W::default();
        QuickCache(Inner::with(entries, entries as u64, weighter, hasher(), DefaultLifecycle::default()))
    }

    fn of_bytes(bytes: u64, entries: usize) -> Option<QuickCache<BySize>> {
        Some(QuickCache(Inner::with(entries, bytes, BySize, hasher(), DefaultLifecycle::default())))
    }

    #[inline]
    fn get(&self, key: u64) -> Option<u64> {
        self.0.get(&key)
    }

    #[inline]
    fn get_or_load(&self, key: u64, load: impl FnOnce() -> u64) -> u64 {
        let loaded = self.0.get_or_insert_with(&key, || Ok::<_, Infallible>(load()));
        loaded.unwrap_or_else(|never| match never {})
    }

    #[inline]
    fn insert(&self, key: u64, value: u64) {
        self.0.insert(key, value);
    }

    fn held(&self) -> u64 {
        self.0.weight()
    }

    fn own_memory_usage(&self) -> Option<usize> {
        Some(self.0.memory_used().total())
    }
}
