//! Values that are loaded when they are missed: once for all callers that miss them.

use core::any::Any;
use core::convert::{Infallible, identity};
use core::future::Future;
use core::hash::{BuildHasher, Hash};
use core::pin::pin;
use core::time::Duration;
use std::sync::Arc;

use bytemuck::{Pod, bytes_of};

use super::InlineCache;
use crate::cache::counters::Counters;
use crate::cache::flight::{Flights, Landing, LoadError, Table, Terms, or_panic};
use crate::cache::load::{self, Hit, Loading};
use crate::hash::Digest;

impl<K: Pod + Hash + Eq, V: Pod, S: BuildHasher> InlineCache<K, V, S> {
    /// Returns the value of a key; if it is missed, returns what `load` returns and inserts it.
    ///
    /// Of all callers that miss a key at the same time, one runs its loader, with no lock held, and the others wait for its
    /// value. If the loader panics, the panic goes to its own caller, and another caller runs its own loader. The value goes to
    /// those that wait for it but not into the cache if, meanwhile, somebody calls `insert`, `remove`, `remove_if`, `compute`
    /// or one of the updates for the key, whatever comes of it; or `try_insert`, unless that finds a value; or `clear`; or if
    /// `retain` takes the key out.
    ///
    /// A caller that waits blocks its thread. In a task, use [`InlineCache::get_or_insert_async`]: if the loader is another
    /// task of the same thread, this method would wait forever.
    ///
    /// A loader that takes less than about 100 ns is better run outside, by the caller that misses: [`InlineCache::get`], then
    /// [`InlineCache::insert`].
    ///
    /// # Panics
    ///
    /// If `load` asks for the same key, itself or by way of other keys' loaders, because it would wait for itself; the same
    /// goes for a rayon task that is run while `load` waits for others, see [`LoadError::Recursion`].
    /// [`InlineCache::try_get_or_insert_with`] returns an error instead. And if the key is missed in a closure that runs [under
    /// this cache's lock](InlineCache#under-a-lock).
    ///
    /// ```
    /// let cache = koel::InlineCache::new(100);
    /// assert_eq!(cache.get_or_insert_with(7_u32, || 49_u32), 49);
    /// assert_eq!(cache.get_or_insert_with(7, || unreachable!()), 49);
    /// ```
    #[doc(alias = "get_with")]
    #[track_caller]
    pub fn get_or_insert_with(&self, key: K, load: impl FnOnce() -> V) -> V {
        or_panic(self.try_get_or_insert_with(key, || Ok::<V, Infallible>(load())))
    }

    /// Returns the value of a key; if it is missed, returns what `load` returns, like [`InlineCache::get_or_insert_with`].
    ///
    /// A caller that waits blocks its thread. In a task, use [`InlineCache::try_get_or_insert_async`]: if the loader is another
    /// task of the same thread, this method would wait forever.
    ///
    /// # Errors
    ///
    /// The loader's own error, which only its caller gets: other callers that wait then run their loaders, one at a time,
    /// whereas [`InlineCache::try_get_or_insert_with_shared`] hands the error to all. Or an error because the call would wait
    /// for itself.
    ///
    /// # Panics
    ///
    /// If the key is missed in a closure that runs [under this cache's lock](InlineCache#under-a-lock).
    ///
    /// ```
    /// use koel::{InlineCache, LoadError};
    ///
    /// let cache = InlineCache::new(100);
    /// let error = cache.try_get_or_insert_with(1_u32, || "http".parse::<u16>()).unwrap_err();
    /// assert!(matches!(error, LoadError::Loader(_)));
    /// assert_eq!(cache.try_get_or_insert_with(1, || "80".parse()), Ok(80));
    /// ```
    pub fn try_get_or_insert_with<E>(
        &self,
        key: K,
        load: impl FnOnce() -> Result<V, E>,
    ) -> Result<V, LoadError<E>> {
        load::load(self, key, Terms::alone(), load)
    }

    /// Like [`InlineCache::try_get_or_insert_with`], but if the loader fails, all callers that wait for it by a method with
    /// `_shared` in its name get its error at once, if it is of the type of their own loaders' errors. So a source that takes
    /// long to fail is asked once, and not once more for each waiter.
    ///
    /// The failure is not remembered: later callers try again. Callers that wait by methods without `_shared`, or with errors
    /// of another type, do not get the error: one of them loads next. Nobody else gets it if the key was written to meanwhile:
    /// those that wait then look the key up.
    ///
    /// # Errors
    ///
    /// The error of this caller's loader, or of the one for which it waited. Or an error because the call would wait for
    /// itself.
    ///
    /// # Panics
    ///
    /// As [`InlineCache::try_get_or_insert_with`].
    ///
    /// ```
    /// use koel::{InlineCache, LoadError};
    ///
    /// let sizes: InlineCache<u32, u64> = InlineCache::new(100);
    /// let size = || Ok::<_, std::io::Error>(std::fs::metadata("no such file")?.len());
    /// let Err(LoadError::Loader(error)) = sizes.try_get_or_insert_with_shared(1, size) else { panic!() };
    /// assert_eq!(error.kind(), std::io::ErrorKind::NotFound); // an `Arc` of it
    /// ```
    #[doc(alias = "optionally_get_with")]
    #[doc(alias = "try_get_with")]
    pub fn try_get_or_insert_with_shared<E: Any + Send + Sync>(
        &self,
        key: K,
        load: impl FnOnce() -> Result<V, E>,
    ) -> Result<V, LoadError<Arc<E>>> {
        load::load(self, key, Terms::shared(), || load().map_err(Arc::new))
    }

    /// Like [`InlineCache::try_get_or_insert_with`], but waits for another caller's loader for at most `timeout`. The caller's
    /// own loader runs for as long as it takes.
    ///
    /// A caller that waits blocks its thread, for at most that time. In a task, use [`InlineCache::try_get_or_insert_async`]
    /// within your runtime's timeout.
    ///
    /// # Errors
    ///
    /// Those of [`InlineCache::try_get_or_insert_with`], and [`LoadError::TimedOut`].
    ///
    /// # Panics
    ///
    /// If the key is missed in a closure that runs [under this cache's lock](InlineCache#under-a-lock).
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use koel::{InlineCache, LoadError};
    ///
    /// let cache: InlineCache<u32, u32> = InlineCache::new(10);
    /// let ask = || cache.try_get_or_insert_with_timeout(7, Duration::from_millis(1), || Ok::<_, ()>(0));
    /// cache.get_or_insert_with(7, || {
    ///     // While this loader runs, another thread asks.
    ///     let answer = std::thread::scope(|scope| scope.spawn(ask).join().unwrap());
    ///     assert_eq!(answer, Err(LoadError::TimedOut));
    ///     49
    /// });
    /// assert_eq!(ask(), Ok(49));
    /// ```
    pub fn try_get_or_insert_with_timeout<E>(
        &self,
        key: K,
        timeout: Duration,
        load: impl FnOnce() -> Result<V, E>,
    ) -> Result<V, LoadError<E>> {
        load::load(self, key, Terms::alone().within(timeout), load)
    }

    /// Like [`InlineCache::try_get_or_insert_with_shared`], but waits for another caller's loader for at most `timeout`, like
    /// [`InlineCache::try_get_or_insert_with_timeout`].
    ///
    /// # Errors
    ///
    /// Those of [`InlineCache::try_get_or_insert_with_shared`], and [`LoadError::TimedOut`].
    ///
    /// # Panics
    ///
    /// As [`InlineCache::try_get_or_insert_with`].
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let ports: koel::InlineCache<u32, u16> = koel::InlineCache::new(100);
    /// let soon = Duration::from_millis(200);
    /// let failed = ports.try_get_or_insert_with_shared_timeout(1, soon, || Err("no answer"));
    /// assert_eq!(*failed.unwrap_err().into_loader().unwrap(), "no answer"); // an `Arc` of it
    /// assert_eq!(ports.try_get_or_insert_with_shared_timeout(1, soon, || Ok::<_, ()>(80)), Ok(80));
    /// ```
    pub fn try_get_or_insert_with_shared_timeout<E: Any + Send + Sync>(
        &self,
        key: K,
        timeout: Duration,
        load: impl FnOnce() -> Result<V, E>,
    ) -> Result<V, LoadError<Arc<E>>> {
        load::load(self, key, Terms::shared().within(timeout), || load().map_err(Arc::new))
    }

    /// Returns the value of a key; if it is missed, returns what the future `load` yields and inserts it. For any runtime: it
    /// starts no thread, and blocks none.
    ///
    /// It behaves like [`InlineCache::get_or_insert_with`], among tasks and between tasks and threads. If the future is dropped
    /// while it loads, another waiter loads instead; a future that waits can be dropped at any time. A future that loads and is
    /// kept, but no longer polled, holds up the others, as described at [`Cache`](crate::Cache::get_or_insert_async).
    ///
    /// # Panics
    ///
    /// If `load` asks for the same key, itself or by way of other keys' loaders. And if the key is missed in a closure that
    /// runs [under this cache's lock](InlineCache#under-a-lock).
    ///
    /// ```
    /// # pollster::block_on(async {
    /// let cache = koel::InlineCache::new(100);
    /// assert_eq!(cache.get_or_insert_async(7_u32, async { 49_u32 }).await, 49);
    /// assert_eq!(cache.get(&7), Some(49));
    /// # });
    /// ```
    #[doc(alias = "get_with")]
    pub async fn get_or_insert_async(&self, key: K, load: impl Future<Output = V>) -> V {
        let load = (pin!(Some(load)), Ok::<V, Infallible>);
        or_panic(load::load_async(self, key, Terms::alone(), load).await)
    }

    /// Returns the value of a key; if it is missed, returns what the future `load` yields, like
    /// [`InlineCache::get_or_insert_async`]. For a time limit, wrap the call in your runtime's timeout.
    ///
    /// # Errors
    ///
    /// As [`InlineCache::try_get_or_insert_with`].
    ///
    /// # Panics
    ///
    /// If the key is missed in a closure that runs [under this cache's lock](InlineCache#under-a-lock).
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// # let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    /// # runtime.block_on(async {
    /// let cache: koel::InlineCache<u32, u32> = koel::InlineCache::new(10);
    /// let never = cache.try_get_or_insert_async(7, std::future::pending::<Result<u32, ()>>());
    /// assert!(tokio::time::timeout(Duration::from_millis(1), never).await.is_err());
    /// assert_eq!(cache.try_get_or_insert_async(7, async { Ok::<_, ()>(49) }).await, Ok(49));
    /// # });
    /// ```
    pub async fn try_get_or_insert_async<E>(
        &self,
        key: K,
        load: impl Future<Output = Result<V, E>>,
    ) -> Result<V, LoadError<E>> {
        load::load_async(self, key, Terms::alone(), (pin!(Some(load)), identity)).await
    }

    /// Like [`InlineCache::try_get_or_insert_async`], but if the loader fails, all callers that wait for it on these terms get
    /// its error: see [`InlineCache::try_get_or_insert_with_shared`].
    ///
    /// # Errors
    ///
    /// As [`InlineCache::try_get_or_insert_with_shared`].
    ///
    /// # Panics
    ///
    /// As [`InlineCache::try_get_or_insert_async`].
    ///
    /// ```
    /// # pollster::block_on(async {
    /// let ports: koel::InlineCache<u32, u16> = koel::InlineCache::new(100);
    /// let error = ports.try_get_or_insert_async_shared(1, async { "eighty".parse() }).await.unwrap_err();
    /// let error: std::sync::Arc<std::num::ParseIntError> = error.into_loader().unwrap();
    /// assert_eq!(error.to_string(), "invalid digit found in string");
    /// # });
    /// ```
    #[doc(alias = "try_get_with")]
    pub async fn try_get_or_insert_async_shared<E: Any + Send + Sync>(
        &self,
        key: K,
        load: impl Future<Output = Result<V, E>>,
    ) -> Result<V, LoadError<Arc<E>>> {
        let load = (pin!(Some(load)), |loaded: Result<V, E>| loaded.map_err(Arc::new));
        load::load_async(self, key, Terms::shared(), load).await
    }
}

impl<K: Pod + Hash + Eq, V: Pod, S: BuildHasher> Table<K, V> for InlineCache<K, V, S> {
    fn digest_of(&self, key: &K) -> Digest {
        self.digest(key)
    }

    fn look_up(&self, digest: Digest, key: &K) -> Option<V> {
        self.peek_of(digest, key)
    }

    fn keep(
        &self,
        digest: Digest,
        key: K,
        value: V,
        mut landing: Landing<'_, K, V>,
        mut is_stale: impl FnMut(&V) -> bool,
    ) -> (V, bool) {
        let stale =
            if landing.replaces() { self.peek_of(digest, &key).filter(|old| is_stale(old)) } else { None };
        let mut at = self.at(digest, &key);
        let is_there = at.found.is_some_and(|found| {
            // A value of the same bytes is as stale as the one that was found, whoever has put it there.
            let old = &at.writing.locked.item(found).1;
            stale.as_ref().is_none_or(|stale| bytes_of(stale) != bytes_of(old))
        });
        let puts = !is_there && landing.may_put();
        if puts {
            self.put_at(&mut at, key, value);
            landing.has_put();
        }
        drop(at);
        landing.land(&value);
        (value, puts)
    }
}

impl<K: Pod + Hash + Eq, V: Pod, S: BuildHasher> Loading<K, V> for InlineCache<K, V, S> {
    #[inline(always)]
    fn hit(&self, digest: Digest, key: &K) -> Option<Hit<V>> {
        self.get_of(digest, key).map(|value| Hit { value, is_due: false })
    }

    fn hit_all(&self, keys: &[K], out: &mut [Option<V>]) {
        self.get_many(keys, out);
    }

    fn flights(&self) -> &Flights<K, V> {
        &self.flights
    }

    fn counters(&self) -> &Counters {
        &self.counters
    }

    fn assert_not_writing(&self) {
        self.directory.assert_not_writing();
    }
}
