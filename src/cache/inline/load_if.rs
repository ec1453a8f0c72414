//! Values that are loaded when they are missed, or are stale to the caller: once for all such callers [F9].

use core::any::Any;
use core::convert::{Infallible, identity};
use core::future::Future;
use core::hash::{BuildHasher, Hash};
use core::pin::pin;
use std::sync::Arc;

use bytemuck::Pod;

use super::InlineCache;
use crate::cache::flight::{LoadError, Terms, or_panic};
use crate::cache::load::{load_async_if, load_if};

impl<K: Pod + Hash + Eq, V: Pod, S: BuildHasher> InlineCache<K, V, S> {
    /// Returns the value of a key; if it is missed, or if it is there and `is_stale` holds for it, returns what `load` returns,
    /// which the cache then has in its place. See [`Cache::get_or_insert_with_if`](crate::Cache::get_or_insert_with_if), which
    /// says what it is for, and [`InlineCache::get_or_insert_with`].
    ///
    /// # Panics
    ///
    /// As [`InlineCache::get_or_insert_with`], where a stale value counts as a miss; and if `is_stale` panics.
    ///
    /// ```
    /// let prices: koel::InlineCache<u32, [u32; 2]> = koel::InlineCache::new(100); // with the version of the list
    /// assert_eq!(prices.get_or_insert_with_if(7, || [1, 49], |price| price[0] < 1), [1, 49]);
    /// assert_eq!(prices.get_or_insert_with_if(7, || [2, 50], |price| price[0] < 2), [2, 50]);
    /// assert_eq!(prices.get(&7), Some([2, 50]));
    /// ```
    #[doc(alias = "or_insert_with_if")]
    #[track_caller]
    pub fn get_or_insert_with_if(
        &self,
        key: K,
        load: impl FnOnce() -> V,
        is_stale: impl FnMut(&V) -> bool,
    ) -> V {
        or_panic(load_if(self, key, Terms::alone(), || Ok::<V, Infallible>(load()), is_stale))
    }

    /// Like [`InlineCache::get_or_insert_with_if`], with a loader that may fail: then the old value stays where it is, and is
    /// not returned.
    ///
    /// # Errors
    ///
    /// As [`InlineCache::try_get_or_insert_with`].
    ///
    /// # Panics
    ///
    /// As [`InlineCache::try_get_or_insert_with`], where a stale value counts as a miss; and if `is_stale` panics.
    ///
    /// ```
    /// let cache: koel::InlineCache<u32, u32> = koel::InlineCache::new(100);
    /// cache.insert(7, 1);
    /// assert!(cache.try_get_or_insert_with_if(7, || Err("no answer"), |version| *version < 2).is_err());
    /// assert_eq!(cache.get(&7), Some(1));
    /// ```
    pub fn try_get_or_insert_with_if<E>(
        &self,
        key: K,
        load: impl FnOnce() -> Result<V, E>,
        is_stale: impl FnMut(&V) -> bool,
    ) -> Result<V, LoadError<E>> {
        load_if(self, key, Terms::alone(), load, is_stale)
    }

    /// Like [`InlineCache::try_get_or_insert_with_if`], but if the loader fails, all callers that wait for it on these terms
    /// get its error: see [`InlineCache::try_get_or_insert_with_shared`].
    ///
    /// # Errors
    ///
    /// As [`InlineCache::try_get_or_insert_with_shared`].
    ///
    /// # Panics
    ///
    /// As [`InlineCache::try_get_or_insert_with_if`].
    ///
    /// ```
    /// let cache: koel::InlineCache<u32, u32> = koel::InlineCache::new(100);
    /// cache.insert(7, 1);
    /// let failed = cache.try_get_or_insert_with_shared_if(7, || Err("no answer"), |version| *version < 2);
    /// assert_eq!(*failed.unwrap_err().into_loader().unwrap(), "no answer"); // an `Arc` of it
    /// ```
    pub fn try_get_or_insert_with_shared_if<E: Any + Send + Sync>(
        &self,
        key: K,
        load: impl FnOnce() -> Result<V, E>,
        is_stale: impl FnMut(&V) -> bool,
    ) -> Result<V, LoadError<Arc<E>>> {
        load_if(self, key, Terms::shared(), || load().map_err(Arc::new), is_stale)
    }

    /// Like [`InlineCache::get_or_insert_with_if`], for tasks, with a future for what is missed or stale, as in
    /// [`InlineCache::get_or_insert_async`].
    ///
    /// # Panics
    ///
    /// As [`InlineCache::get_or_insert_with_if`].
    ///
    /// ```
    /// # pollster::block_on(async {
    /// let cache: koel::InlineCache<u32, u32> = koel::InlineCache::new(100);
    /// cache.insert(7, 1);
    /// assert_eq!(cache.get_or_insert_async_if(7, async { 2 }, |version| *version < 2).await, 2);
    /// # });
    /// ```
    pub async fn get_or_insert_async_if(
        &self,
        key: K,
        load: impl Future<Output = V>,
        is_stale: impl FnMut(&V) -> bool,
    ) -> V {
        let load = (pin!(Some(load)), Ok::<V, Infallible>);
        or_panic(load_async_if(self, key, Terms::alone(), load, is_stale).await)
    }

    /// Like [`InlineCache::try_get_or_insert_with_if`], for tasks: see [`InlineCache::try_get_or_insert_async`].
    ///
    /// # Errors
    ///
    /// As [`InlineCache::try_get_or_insert_with`].
    ///
    /// # Panics
    ///
    /// As [`InlineCache::try_get_or_insert_with_if`].
    ///
    /// ```
    /// # pollster::block_on(async {
    /// let cache: koel::InlineCache<u32, u32> = koel::InlineCache::new(100);
    /// cache.insert(7, 1);
    /// let load = async { Ok::<_, ()>(2) };
    /// assert_eq!(cache.try_get_or_insert_async_if(7, load, |version| *version < 2).await, Ok(2));
    /// # });
    /// ```
    pub async fn try_get_or_insert_async_if<E>(
        &self,
        key: K,
        load: impl Future<Output = Result<V, E>>,
        is_stale: impl FnMut(&V) -> bool,
    ) -> Result<V, LoadError<E>> {
        let load = (pin!(Some(load)), identity);
        load_async_if(self, key, Terms::alone(), load, is_stale).await
    }

    /// Like [`InlineCache::try_get_or_insert_async_if`], but if the loader fails, all callers that wait for it on these terms
    /// get its error: see [`InlineCache::try_get_or_insert_with_shared`].
    ///
    /// # Errors
    ///
    /// As [`InlineCache::try_get_or_insert_with_shared`].
    ///
    /// # Panics
    ///
    /// As [`InlineCache::try_get_or_insert_with_if`].
    ///
    /// ```
    /// # pollster::block_on(async {
    /// let cache: koel::InlineCache<u32, u32> = koel::InlineCache::new(100);
    /// cache.insert(7, 1);
    /// let load = async { Err("no answer") };
    /// let failed = cache.try_get_or_insert_async_shared_if(7, load, |version| *version < 2).await;
    /// assert_eq!(*failed.unwrap_err().into_loader().unwrap(), "no answer");
    /// # });
    /// ```
    pub async fn try_get_or_insert_async_shared_if<E: Any + Send + Sync>(
        &self,
        key: K,
        load: impl Future<Output = Result<V, E>>,
        is_stale: impl FnMut(&V) -> bool,
    ) -> Result<V, LoadError<Arc<E>>> {
        let load = (pin!(Some(load)), |loaded: Result<V, E>| loaded.map_err(Arc::new));
        load_async_if(self, key, Terms::shared(), load, is_stale).await
    }
}
