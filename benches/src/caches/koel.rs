//! koel::Cache, with its default policy and with MemC3's, and koel::InlineCache.

use ::koel::{Cache as Inner, InlineCache, Policy, Why};

use super::Cache;
use crate::contestants::{Hasher, hasher};

type Numbers = Inner<u64, u64, Hasher>;

/// koel::Cache with its default policy.
#[derive(Debug)]
pub struct Koel(Numbers);

/// koel::Cache with [`Policy::Clock`].
#[derive(Debug)]
pub struct KoelClock(Numbers);

fn of_entries(entries: usize, policy: Policy) -> Numbers {
    Inner::builder().max_entries(entries).policy(policy).hasher(hasher()).build()
}

fn of_bytes(bytes: u64, entries: usize, policy: Policy) -> Numbers {
    Inner::builder()
        .max_weight(bytes)
        .weigher(|_, value: &u64| u64::from(*value as u32))
        .estimated_entries(entries)
        .policy(policy)
        .hasher(hasher())
        .build()
}

#[inline]
fn insert(cache: &Numbers, key: u64, value: u64) {
    if let Err(refused) = cache.insert(key, value) {
        // What is larger than the whole cache is not cached.
        assert!(matches!(refused.why, Why::TooHeavy { .. }), "{refused}");
    }
}

impl Cache for Koel {
    const NAME: &'static str = "koel";
    const STRICT: bool = true;
    type Weighted = Self;

    fn of_entries(entries: usize) -> Self {
        Koel(of_entries(entries, Policy::default()))
    }

    fn of_bytes(bytes: u64, entries: usize) -> Option<Self> {
        Some(Koel(of_bytes(bytes, entries, Policy::default())))
    }

    #[inline]
    fn get(&self, key: u64) -> Option<u64> {
        self.0.get(&key)
    }

    #[inline]
    fn insert(&self, key: u64, value: u64) {
        insert(&self.0, key, value);
    }

    fn held(&self) -> u64 {
        self.0.weight()
    }

    fn own_memory_usage(&self) -> Option<usize> {
        Some(self.0.memory_usage())
    }
}

impl Cache for KoelClock {
    const NAME: &'static str = "koel-clock";
    const STRICT: bool = true;
    type Weighted = Self;

    fn of_entries(entries: usize) -> Self {
        KoelClock(of_entries(entries, Policy::Clock))
    }

    fn of_bytes(bytes: u64, entries: usize) -> Option<Self> {
        Some(KoelClock(of_bytes(bytes, entries, Policy::Clock)))
    }

    #[inline]
    fn get(&self, key: u64) -> Option<u64> {
        self.0.get(&key)
    }

    #[inline]
    fn insert(&self, key: u64, value: u64) {
        insert(&self.0, key, value);
    }

    fn held(&self) -> u64 {
        self.0.weight()
    }

    fn own_memory_usage(&self) -> Option<usize> {
        Some(self.0.memory_usage())
    }
}

/// koel::InlineCache with its default policy.
#[derive(Debug)]
pub struct KoelInline(InlineCache<u64, u64, Hasher>);

impl Cache for KoelInline {
    const NAME: &'static str = "koel-inline";
    const STRICT: bool = true;
    type Weighted = Self;

    fn of_entries(entries: usize) -> Self {
        KoelInline(InlineCache::builder().max_entries(entries).hasher(hasher()).build())
    }

    fn of_bytes(_: u64, _: usize) -> Option<Self> {
        None
    }

    #[inline]
    fn get(&self, key: u64) -> Option<u64> {
        self.0.get(&key)
    }

    #[inline]
    fn insert(&self, key: u64, value: u64) {
        self.0.insert(key, value);
    }

    fn held(&self) -> u64 {
        self.0.len() as u64
    }

    fn own_memory_usage(&self) -> Option<usize> {
        Some(self.0.memory_usage())
    }
}
