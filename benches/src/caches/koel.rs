//! koel::Cache and koel::InlineCache, with each of their policies.

use core::fmt::Debug;
use core::marker::PhantomData;

use ::koel::{Cache as Inner, InlineCache, Policy, Why};

use super::Cache;
use crate::contestants::{BATCH, Hasher, hasher};

/// A policy, and the names in tables of the caches that have it.
pub trait Named: Debug + Send + Sync + 'static {
    /// The policy.
    const POLICY: Policy;
    /// The name of a `Cache` with it.
    const ENTRIES: &'static str;
    /// The name of an `InlineCache` with it.
    const INLINE: &'static str;
}

/// The default policy.
#[derive(Debug)]
pub struct Adaptive;

impl Named for Adaptive {
    const POLICY: Policy = Policy::Adaptive;
    const ENTRIES: &'static str = "koel";
    const INLINE: &'static str = "koel-inline";
}

/// MemC3's policy.
#[derive(Debug)]
pub struct Clock;

impl Named for Clock {
    const POLICY: Policy = Policy::Clock;
    const ENTRIES: &'static str = "koel-clock";
    const INLINE: &'static str = "koel-inline-clock";
}

/// The cheapest policy.
#[derive(Debug)]
pub struct Local;

impl Named for Local {
    const POLICY: Policy = Policy::Local;
    const ENTRIES: &'static str = "koel-local";
    const INLINE: &'static str = "koel-inline-local";
}

/// koel::Cache.
#[derive(Debug)]
pub struct Koel<P>(Inner<u64, u64, Hasher>, PhantomData<P>);

impl<P: Named> Cache for Koel<P> {
    const NAME: &'static str = P::ENTRIES;
    const STRICT: bool = true;
    type Weighted = Self;

    fn of_entries(entries: usize) -> Self {
        Koel(Inner::builder().max_entries(entries).policy(P::POLICY).hasher(hasher()).build(), PhantomData)
    }

    fn of_bytes(bytes: u64, entries: usize) -> Option<Self> {
        let builder = Inner::builder().max_weight(bytes).weigher(|_, value: &u64| u64::from(*value as u32));
        let cache = builder.estimated_entries(entries).policy(P::POLICY).hasher(hasher()).build();
        Some(Koel(cache, PhantomData))
    }

    #[inline]
    fn get(&self, key: u64) -> Option<u64> {
        self.0.get(&key)
    }

    #[inline]
    fn get_many(&self, keys: &[u64], mut each: impl FnMut(u64, Option<u64>)) {
        let mut out = [None; BATCH];
        let out = &mut out[..keys.len()];
        self.0.get_many(keys, out);
        keys.iter().zip(out).for_each(|(&key, found)| each(key, *found));
    }

    #[inline]
    fn get_or_load(&self, key: u64, load: impl FnOnce() -> u64) -> u64 {
        self.0.get_or_insert_with(key, load)
    }

    #[inline]
    fn insert(&self, key: u64, value: u64) {
        if let Err(refused) = self.0.insert(key, value) {
            // An entry that is larger than the whole cache is not cached.
            assert!(matches!(refused.why, Why::TooHeavy { .. }), "{refused}");
        }
    }

    fn held(&self) -> u64 {
        self.0.weight()
    }

    fn own_memory_usage(&self) -> Option<usize> {
        Some(self.0.memory_usage())
    }
}

/// koel::InlineCache.
#[derive(Debug)]
pub struct KoelInline<P>(InlineCache<u64, u64, Hasher>, PhantomData<P>);

impl<P: Named> Cache for KoelInline<P> {
    const NAME: &'static str = P::INLINE;
    const STRICT: bool = true;
    type Weighted = Self;

    fn of_entries(entries: usize) -> Self {
        let builder = InlineCache::builder().max_entries(entries).policy(P::POLICY);
        KoelInline(builder.hasher(hasher()).build(), PhantomData)
    }

    fn of_bytes(_: u64, _: usize) -> Option<Self> {
        None
    }

    #[inline]
    fn get(&self, key: u64) -> Option<u64> {
        self.0.get(&key)
    }

    #[inline]
    fn get_many(&self, keys: &[u64], mut each: impl FnMut(u64, Option<u64>)) {
        let mut out = [None; BATCH];
        let out = &mut out[..keys.len()];
        self.0.get_many(keys, out);
        keys.iter().zip(out).for_each(|(&key, found)| each(key, *found));
    }

    #[inline]
    fn get_or_load(&self, key: u64, load: impl FnOnce() -> u64) -> u64 {
        self.0.get_or_insert_with(key, load)
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
