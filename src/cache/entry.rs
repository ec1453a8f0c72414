//! [`CacheEntry`]: a key of a cache, and what to do if it is missed.

use core::convert::{Infallible, identity};
use core::fmt;
use core::future::Future;
use core::hash::{BuildHasher, Hash};
use core::pin::pin;

use ahash::RandomState;

use super::flight::{LoadError, Terms, or_panic};
use super::{Cache, Refused, load};
use crate::outcome::{Compute, Operation};

/// A key of a cache, present or not, from [`Cache::entry`]. It offers the cache's operations for the key under other names.
///
/// It is not a place in the cache, and nothing is locked while it lives: each method decides anew, at one moment.
#[must_use = "an entry does nothing by itself"]
pub struct CacheEntry<'c, K, V, S = RandomState> {
    cache: &'c Cache<K, V, S>,
    key: K,
}

impl<K, V, S> Cache<K, V, S> {
    /// Returns the entry of a key, for which one may then load a value or [`compute`](CacheEntry::compute) one.
    ///
    /// ```
    /// let cache: koel::Cache<&str, u32> = koel::Cache::new(100);
    /// assert_eq!(cache.entry("ada").or_insert(36), 36);
    /// assert_eq!(cache.entry("ada").or_insert_with(|| unreachable!("it is there")), 36);
    /// ```
    pub fn entry(&self, key: K) -> CacheEntry<'_, K, V, S> {
        CacheEntry { cache: self, key }
    }
}

impl<K, V, S> CacheEntry<'_, K, V, S> {
    /// Returns the key.
    pub fn key(&self) -> &K {
        &self.key
    }

    /// Gives the key back.
    pub fn into_key(self) -> K {
        self.key
    }
}

impl<K: Hash + Eq + Clone, V: Clone, S: BuildHasher> CacheEntry<'_, K, V, S> {
    /// Returns the key's value, or this one, which the cache then has: like [`Cache::get_or_insert_with`], but refreshes
    /// nothing.
    ///
    /// # Panics
    ///
    /// As [`Cache::get_or_insert_with`].
    #[track_caller]
    pub fn or_insert(self, value: V) -> V {
        or_panic(load::load_missed(self.cache, self.key, || Ok::<V, Infallible>(value)))
    }

    /// Returns the key's value, or what `load` returns: [`Cache::get_or_insert_with`].
    ///
    /// # Panics
    ///
    /// As [`Cache::get_or_insert_with`].
    #[track_caller]
    pub fn or_insert_with(self, load: impl FnOnce() -> V) -> V {
        self.cache.get_or_insert_with(self.key, load)
    }

    /// Returns the key's value; if there is none, or if `is_stale` holds for it, returns what `load` returns:
    /// [`Cache::get_or_insert_with_if`].
    ///
    /// # Panics
    ///
    /// As [`Cache::get_or_insert_with_if`].
    ///
    /// ```
    /// let cache: koel::Cache<&str, u32> = koel::Cache::new(100);
    /// cache.insert("version", 1).unwrap();
    /// assert_eq!(cache.entry("version").or_insert_with_if(|| 2, |version| *version < 2), 2);
    /// ```
    #[track_caller]
    pub fn or_insert_with_if(self, load: impl FnOnce() -> V, is_stale: impl FnMut(&V) -> bool) -> V {
        self.cache.get_or_insert_with_if(self.key, load, is_stale)
    }

    /// Returns the key's value, or the type's default: see [`CacheEntry::or_insert`].
    ///
    /// # Panics
    ///
    /// As [`Cache::get_or_insert_with`].
    ///
    /// ```
    /// let lists: koel::Cache<u32, Vec<u32>> = koel::Cache::new(100);
    /// assert!(lists.entry(7).or_default().is_empty() && lists.contains_key(&7));
    /// ```
    #[track_caller]
    pub fn or_default(self) -> V
    where
        V: Default,
    {
        or_panic(load::load_missed(self.cache, self.key, || Ok::<V, Infallible>(V::default())))
    }

    /// Returns the key's value, or what `load` returns: [`Cache::try_get_or_insert_with`].
    ///
    /// # Errors
    ///
    /// As [`Cache::try_get_or_insert_with`].
    ///
    /// # Panics
    ///
    /// As [`Cache::try_get_or_insert_with`].
    ///
    /// ```
    /// let ports: koel::Cache<&str, u16> = koel::Cache::new(100);
    /// assert!(ports.entry("http").or_try_insert_with(|| "eighty".parse()).is_err());
    /// assert_eq!(ports.entry("http").or_try_insert_with(|| "80".parse()), Ok(80));
    /// ```
    pub fn or_try_insert_with<E>(self, load: impl FnOnce() -> Result<V, E>) -> Result<V, LoadError<E>> {
        self.cache.try_get_or_insert_with(self.key, load)
    }

    /// Returns the key's value, or what the future `load` yields: [`Cache::get_or_insert_async`].
    ///
    /// # Panics
    ///
    /// As [`Cache::get_or_insert_async`].
    ///
    /// ```
    /// # pollster::block_on(async {
    /// let cache: koel::Cache<u32, u32> = koel::Cache::new(100);
    /// assert_eq!(cache.entry(7).or_insert_async(async { 49 }).await, 49);
    /// # });
    /// ```
    pub async fn or_insert_async(self, load: impl Future<Output = V>) -> V {
        let load = (pin!(Some(load)), Ok::<V, Infallible>);
        or_panic(load::load_async(self.cache, self.key, Terms::alone(), load).await)
    }

    /// Returns the key's value, or what the future `load` yields: [`Cache::try_get_or_insert_async`].
    ///
    /// # Errors
    ///
    /// As [`Cache::try_get_or_insert_async`].
    ///
    /// # Panics
    ///
    /// As [`Cache::try_get_or_insert_async`].
    ///
    /// ```
    /// # pollster::block_on(async {
    /// let ports: koel::Cache<&str, u16> = koel::Cache::new(100);
    /// assert!(ports.entry("http").or_try_insert_async(async { "eighty".parse() }).await.is_err());
    /// assert_eq!(ports.entry("http").or_try_insert_async(async { "80".parse() }).await, Ok(80));
    /// # });
    /// ```
    pub async fn or_try_insert_async<E>(
        self,
        load: impl Future<Output = Result<V, E>>,
    ) -> Result<V, LoadError<E>> {
        load::load_async(self.cache, self.key, Terms::alone(), (pin!(Some(load)), identity)).await
    }

    /// Decides what becomes of the key's value: [`Cache::compute`].
    ///
    /// # Errors
    ///
    /// As [`Cache::compute`].
    ///
    /// # Panics
    ///
    /// As [`Cache::compute`].
    ///
    /// ```
    /// use koel::Operation;
    ///
    /// let cache: koel::Cache<&str, u32> = koel::Cache::new(10);
    /// let count = |n: Option<&u32>| Operation::<_, ()>::Insert(n.map_or(1, |n| n + 1));
    /// cache.entry("hits").compute(count)?;
    /// cache.entry("hits").compute(count)?;
    /// assert_eq!(cache.get("hits"), Some(2));
    /// # Ok::<(), koel::Refused<&str, u32>>(())
    /// ```
    #[doc(alias = "and_compute_with")]
    #[track_caller]
    pub fn compute<T>(
        self,
        decide: impl FnMut(Option<&V>) -> Operation<V, T>,
    ) -> Result<Compute<K, V, T>, Refused<K, V>> {
        self.cache.compute(self.key, decide)
    }
}

impl<K: fmt::Debug, V, S> fmt::Debug for CacheEntry<'_, K, V, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CacheEntry").field(&self.key).finish()
    }
}
