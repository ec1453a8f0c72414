//! The options of an inline cache.

use core::fmt;
use core::hash::{BuildHasher, Hash};
use core::marker::PhantomData;

use ahash::RandomState;
use bytemuck::Pod;

use super::InlineCache;
use crate::cache::CacheError;
use crate::cache::options::segments_for;
use crate::cache::policy::Policy;
use crate::engine::{CapacityError, Shape};

/// The options of an [`InlineCache`], from [`InlineCache::builder`].
///
/// [`max_entries`](Self::max_entries) must be set.
///
/// ```
/// use koel::{InlineCache, Policy};
///
/// let cache: InlineCache<u64, f64> = InlineCache::builder().max_entries(100_000).policy(Policy::Clock).build();
/// assert_eq!(cache.capacity(), 100_000);
/// ```
#[must_use = "a builder does nothing until `build`"]
pub struct InlineCacheBuilder<K: Pod, V: Pod, S = RandomState> {
    max_entries: Option<usize>,
    policy: Policy,
    hasher: S,
    entries: PhantomData<fn() -> (K, V)>,
}

impl<K: Pod, V: Pod> InlineCacheBuilder<K, V> {
    pub(super) fn new() -> Self {
        InlineCacheBuilder {
            max_entries: None,
            policy: Policy::default(),
            hasher: RandomState::new(),
            entries: PhantomData,
        }
    }
}

impl<K: Pod, V: Pod, S> InlineCacheBuilder<K, V, S> {
    /// Bounds the number of entries; with 0, nothing is kept. Up to 2^25 entries are always within the limit.
    ///
    /// In a cache of more than a few thousand entries, each segment has its share, and evicts when that is used up: about one
    /// in a hundred keys that would all fit finds its share full, and the cache ends up a little below the bound.
    ///
    /// ```
    /// let cache: koel::InlineCache<u64, u64> = koel::InlineCache::builder().max_entries(100).build();
    /// assert_eq!(cache.capacity(), 100);
    /// ```
    pub fn max_entries(mut self, entries: usize) -> Self {
        self.max_entries = Some(entries);
        self
    }

    /// Sets the policy of eviction.
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// Sets the hash function; ahash without this. It must be seeded with a secret where users choose the cache's keys.
    #[doc(alias = "build_with_hasher")]
    pub fn hasher<S2>(self, hasher: S2) -> InlineCacheBuilder<K, V, S2> {
        InlineCacheBuilder {
            max_entries: self.max_entries,
            policy: self.policy,
            hasher,
            entries: PhantomData,
        }
    }

    /// Builds the cache.
    ///
    /// # Panics
    ///
    /// If [`InlineCacheBuilder::try_build`] would return an error, with its message.
    #[track_caller]
    pub fn build(self) -> InlineCache<K, V, S>
    where
        K: Hash + Eq,
        S: BuildHasher,
    {
        match self.try_build() {
            Ok(cache) => cache,
            Err(error) => panic!("{error}"),
        }
    }

    /// Builds the cache.
    ///
    /// # Errors
    ///
    /// [`CacheError::NoBound`] without [`max_entries`](Self::max_entries); [`CacheError::Capacity`] if that is beyond the limit
    /// or the available memory.
    ///
    /// ```
    /// use koel::{CacheError, InlineCache};
    ///
    /// let error = InlineCache::<u64, u64>::builder().try_build().unwrap_err();
    /// assert!(matches!(error, CacheError::NoBound));
    /// ```
    pub fn try_build(self) -> Result<InlineCache<K, V, S>, CacheError>
    where
        K: Hash + Eq,
        S: BuildHasher,
    {
        let entries = self.max_entries.ok_or(CacheError::NoBound)?;
        let segments = segments_for(entries);
        // The number that the user gave, not what it comes to in segments.
        let refused = |error: CapacityError| CacheError::Capacity(error.of(entries));
        let shape = Shape::for_cache(segments, entries.div_ceil(segments as usize)).map_err(refused)?;
        InlineCache::from_parts(shape, entries, self.policy, self.hasher).map_err(refused)
    }
}

impl<K: Pod, V: Pod, S> fmt::Debug for InlineCacheBuilder<K, V, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InlineCacheBuilder")
            .field("max_entries", &self.max_entries)
            .field("policy", &self.policy)
            .finish_non_exhaustive()
    }
}
