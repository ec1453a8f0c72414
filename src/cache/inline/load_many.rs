//! Values of many keys that are loaded when they are missed, by one call.

use core::any::Any;
use core::convert::{Infallible, identity};
use core::future::Future;
use core::hash::{BuildHasher, Hash};
use core::time::Duration;
use std::sync::Arc;

use bytemuck::Pod;

use super::InlineCache;
use crate::cache::flight::{LoadError, Terms, or_panic};
use crate::cache::load_many::{load_many, load_many_async};

impl<K: Pod + Hash + Eq, V: Pod, S: BuildHasher> InlineCache<K, V, S> {
    /// Gets the values of many keys; those that are missed are loaded by one call: see
    /// [`Cache::get_many_or_insert_with`](crate::Cache::get_many_or_insert_with).
    ///
    /// # Panics
    ///
    /// As that method.
    ///
    /// ```
    /// let cache: koel::InlineCache<u32, u64> = koel::InlineCache::new(100);
    /// cache.insert(2, 4);
    /// let mut squares = [None; 3];
    /// cache.get_many_or_insert_with(&[1, 2, 3], &mut squares, |keys| {
    ///     assert_eq!(keys, [1, 3]);
    ///     keys.into_iter().map(|key| (key, u64::from(key * key)))
    /// });
    /// assert_eq!(squares, [Some(1), Some(4), Some(9)]);
    /// ```
    #[track_caller]
    pub fn get_many_or_insert_with<P: IntoIterator<Item = (K, V)>>(
        &self,
        keys: &[K],
        out: &mut [Option<V>],
        mut load: impl FnMut(Vec<K>) -> P,
    ) {
        or_panic(load_many(self, keys, out, Terms::alone(), |keys| Ok::<P, Infallible>(load(keys))));
    }

    /// Gets the values of many keys, with a loader that may fail: see
    /// [`Cache::try_get_many_or_insert_with`](crate::Cache::try_get_many_or_insert_with).
    ///
    /// # Errors
    ///
    /// As that method.
    ///
    /// # Panics
    ///
    /// As that method.
    ///
    /// ```
    /// let cache: koel::InlineCache<u32, u64> = koel::InlineCache::new(100);
    /// let mut squares = [None; 2];
    /// let failed = cache.try_get_many_or_insert_with(&[1, 2], &mut squares, |_| Err::<[_; 0], _>("too tired"));
    /// assert_eq!(failed, Err(koel::LoadError::Loader("too tired")));
    /// ```
    #[track_caller]
    pub fn try_get_many_or_insert_with<P: IntoIterator<Item = (K, V)>, E>(
        &self,
        keys: &[K],
        out: &mut [Option<V>],
        load: impl FnMut(Vec<K>) -> Result<P, E>,
    ) -> Result<(), LoadError<E>> {
        load_many(self, keys, out, Terms::alone(), load)
    }

    /// The same, with an error that all waiters get: see
    /// [`Cache::try_get_many_or_insert_with_shared`](crate::Cache::try_get_many_or_insert_with_shared).
    ///
    /// # Errors
    ///
    /// As that method.
    ///
    /// # Panics
    ///
    /// As that method.
    ///
    /// ```
    /// let cache: koel::InlineCache<u32, u64> = koel::InlineCache::new(100);
    /// let mut squares = [None; 2];
    /// let fail = |_| Err::<[_; 0], _>("too tired");
    /// let failed = cache.try_get_many_or_insert_with_shared(&[1, 2], &mut squares, fail);
    /// assert_eq!(*failed.unwrap_err().into_loader().unwrap(), "too tired");
    /// ```
    #[track_caller]
    pub fn try_get_many_or_insert_with_shared<P: IntoIterator<Item = (K, V)>, E: Any + Send + Sync>(
        &self,
        keys: &[K],
        out: &mut [Option<V>],
        mut load: impl FnMut(Vec<K>) -> Result<P, E>,
    ) -> Result<(), LoadError<Arc<E>>> {
        // As there: dropped before there is an answer.
        load_many(self, keys, out, Terms::shared(), move |keys| load(keys).map_err(Arc::new))
    }

    /// Like [`InlineCache::try_get_many_or_insert_with_shared`], but waits for other callers' loaders for at most `timeout`
    /// from the beginning of the call. Its own loader runs for as long as it takes.
    ///
    /// # Errors
    ///
    /// Those of [`InlineCache::try_get_many_or_insert_with_shared`], and [`LoadError::TimedOut`]: the values that have come by
    /// then are in `out`.
    ///
    /// # Panics
    ///
    /// As [`InlineCache::try_get_many_or_insert_with`].
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use koel::LoadError;
    ///
    /// let cache: koel::InlineCache<u32, u32> = koel::InlineCache::new(100);
    /// let mut out = [None; 2];
    /// let tens = |keys: Vec<u32>| Ok::<_, ()>(keys.into_iter().map(|key| (key, 10 * key)));
    /// cache.get_or_insert_with(1, || {
    ///     // While this loader runs, another thread asks.
    ///     let ask = || cache.try_get_many_or_insert_with_shared_timeout(&[1, 2], &mut out, Duration::ZERO, tens);
    ///     let answer = std::thread::scope(|scope| scope.spawn(ask).join().unwrap());
    ///     assert_eq!(answer, Err(LoadError::TimedOut));
    ///     10
    /// });
    /// assert_eq!(out, [None, Some(20)]);
    /// ```
    #[track_caller]
    pub fn try_get_many_or_insert_with_shared_timeout<P, E>(
        &self,
        keys: &[K],
        out: &mut [Option<V>],
        timeout: Duration,
        mut load: impl FnMut(Vec<K>) -> Result<P, E>,
    ) -> Result<(), LoadError<Arc<E>>>
    where
        P: IntoIterator<Item = (K, V)>,
        E: Any + Send + Sync,
    {
        let terms = Terms::shared().within(timeout);
        // Moved in, as above.
        load_many(self, keys, out, terms, move |keys| load(keys).map_err(Arc::new))
    }

    /// Gets the values of many keys, for tasks: see
    /// [`Cache::get_many_or_insert_async`](crate::Cache::get_many_or_insert_async).
    ///
    /// # Panics
    ///
    /// As that method.
    ///
    /// ```
    /// let cache: koel::InlineCache<u32, u64> = koel::InlineCache::new(100);
    /// let mut squares = [None; 2];
    /// let load = |keys: Vec<u32>| async { keys.into_iter().map(|key| (key, u64::from(key * key))).collect::<Vec<_>>() };
    /// pollster::block_on(cache.get_many_or_insert_async(&[2, 3], &mut squares, load));
    /// assert_eq!(squares, [Some(4), Some(9)]);
    /// ```
    pub async fn get_many_or_insert_async<P: IntoIterator<Item = (K, V)>, F: Future<Output = P>>(
        &self,
        keys: &[K],
        out: &mut [Option<V>],
        load: impl FnMut(Vec<K>) -> F,
    ) {
        or_panic(load_many_async(self, keys, out, Terms::alone(), load, Ok::<P, Infallible>).await);
    }

    /// Gets the values of many keys, for tasks, with a loader that may fail: see
    /// [`Cache::try_get_many_or_insert_async`](crate::Cache::try_get_many_or_insert_async).
    ///
    /// # Errors
    ///
    /// As that method.
    ///
    /// # Panics
    ///
    /// As that method.
    ///
    /// ```
    /// let cache: koel::InlineCache<u32, u64> = koel::InlineCache::new(100);
    /// let mut squares = [None; 2];
    /// let load = |_| async { Err::<[_; 0], _>("no connection") };
    /// let failed = pollster::block_on(cache.try_get_many_or_insert_async(&[1, 2], &mut squares, load));
    /// assert_eq!(failed, Err(koel::LoadError::Loader("no connection")));
    /// ```
    pub async fn try_get_many_or_insert_async<P, E, F>(
        &self,
        keys: &[K],
        out: &mut [Option<V>],
        load: impl FnMut(Vec<K>) -> F,
    ) -> Result<(), LoadError<E>>
    where
        P: IntoIterator<Item = (K, V)>,
        F: Future<Output = Result<P, E>>,
    {
        load_many_async(self, keys, out, Terms::alone(), load, identity).await
    }

    /// The same, with an error that all waiters get: see
    /// [`Cache::try_get_many_or_insert_async_shared`](crate::Cache::try_get_many_or_insert_async_shared).
    ///
    /// # Errors
    ///
    /// As that method.
    ///
    /// # Panics
    ///
    /// As that method.
    ///
    /// ```
    /// let cache: koel::InlineCache<u32, u64> = koel::InlineCache::new(100);
    /// let mut squares = [None; 2];
    /// let load = |_| async { Err::<[_; 0], _>("no connection") };
    /// let failed = pollster::block_on(cache.try_get_many_or_insert_async_shared(&[1, 2], &mut squares, load));
    /// assert_eq!(*failed.unwrap_err().into_loader().unwrap(), "no connection");
    /// ```
    pub async fn try_get_many_or_insert_async_shared<P, E, F>(
        &self,
        keys: &[K],
        out: &mut [Option<V>],
        load: impl FnMut(Vec<K>) -> F,
    ) -> Result<(), LoadError<Arc<E>>>
    where
        P: IntoIterator<Item = (K, V)>,
        E: Any + Send + Sync,
        F: Future<Output = Result<P, E>>,
    {
        load_many_async(self, keys, out, Terms::shared(), load, |loaded| loaded.map_err(Arc::new)).await
    }
}
