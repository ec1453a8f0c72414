//! moka::sync::Cache: W-TinyLFU behind queues of reads and writes.

use ::moka::sync::Cache as Inner;

use super::Cache;
use crate::contestants::{Hasher, hasher};

/// moka::sync::Cache.
#[derive(Debug)]
pub struct Moka(Inner<u64, u64, Hasher>);

impl Cache for Moka {
    const NAME: &'static str = "moka";
    type Weighted = Self;

    fn of_entries(entries: usize) -> Self {
        Moka(Inner::builder().max_capacity(entries as u64).build_with_hasher(hasher()))
    }

    fn of_bytes(bytes: u64, _: usize) -> Option<Self> {
        let builder = Inner::builder().max_capacity(bytes).weigher(|_, value: &u64| *value as u32);
        Some(Moka(builder.build_with_hasher(hasher())))
    }

    #[inline]
    fn get(&self, key: u64) -> Option<u64> {
        self.0.get(&key)
    }

    #[inline]
    fn get_or_load(&self, key: u64, load: impl FnOnce() -> u64) -> u64 {
        self.0.get_with(key, load)
    }

    #[inline]
    fn insert(&self, key: u64, value: u64) {
        self.0.insert(key, value);
    }

    fn settle(&self) {
        self.0.run_pending_tasks();
    }

    fn held(&self) -> u64 {
        self.0.weighted_size()
    }
}
