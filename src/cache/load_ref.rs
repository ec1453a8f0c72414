//! Values that are loaded when they are missed, by a reference to the key, of which a key is made only then.

use core::any::Any;
use core::convert::{Infallible, identity};
use core::future::Future;
use core::hash::{BuildHasher, Hash};
use core::pin::pin;
use core::time::Duration;
use std::sync::Arc;

use equivalent::Equivalent;

use super::Cache;
use super::flight::{LoadError, Terms, nothing_is_stale, or_panic};
use super::load::{Loader, Lookup, load_lacking, load_lacking_async};
use crate::to_key::ToKey;

/// The value of a key: the cache's, or, if it is missed or due, that of `load_lacking`.
fn load_ref<K: Hash + Eq + Clone, V: Clone, S: BuildHasher, Q, E>(
    cache: &Cache<K, V, S>,
    key: &Q,
    terms: Terms<E>,
    load: impl FnOnce() -> Result<V, E>,
) -> Result<V, LoadError<E>>
where
    Q: ?Sized + Hash + Equivalent<K> + ToKey<K>,
{
    let digest = cache.digest(key);
    match Lookup::new(cache, digest, key, cache.hit_of(digest, key)) {
        Lookup::Value(value) => {
            // Before there is an answer: a finished answer leaks if a drop panics.
            drop(load);
            Ok(value)
        }
        Lookup::Lacks(to_load) => {
            let own_key = to_load.own(key);
            load_lacking(cache, to_load, own_key, terms, nothing_is_stale, load)
        }
    }
}

/// The same for tasks.
async fn load_ref_async<K: Hash + Eq + Clone, V: Clone, S: BuildHasher, Q, E, F: Future>(
    cache: &Cache<K, V, S>,
    key: &Q,
    terms: Terms<E>,
    (mut load, end): Loader<'_, F, impl FnOnce(F::Output) -> Result<V, E>>,
) -> Result<V, LoadError<E>>
where
    Q: ?Sized + Hash + Equivalent<K> + ToKey<K>,
{
    let digest = cache.digest(key);
    let answer = match Lookup::new(cache, digest, key, cache.hit_of(digest, key)) {
        Lookup::Value(value) => Ok(value),
        Lookup::Lacks(to_load) => {
            let own_key = to_load.own(key);
            load_lacking_async(cache, to_load, own_key, terms, nothing_is_stale, (load.as_mut(), end)).await
        }
    };
    load.set(None);
    answer
}

impl<K: Hash + Eq + Clone, V: Clone, S: BuildHasher> Cache<K, V, S> {
    /// Like [`Cache::get_or_insert_with`], but takes a reference, of which a key is made ([`ToKey`]) if it is missed.
    ///
    /// # Panics
    ///
    /// As [`Cache::get_or_insert_with`].
    ///
    /// ```
    /// let cache: koel::Cache<String, usize> = koel::Cache::new(100);
    /// assert_eq!(cache.get_or_insert_with_ref("seven", || 7), 7);
    /// assert_eq!(cache.get_or_insert_with_ref("seven", || unreachable!("it is there")), 7);
    /// ```
    #[doc(alias = "get_with_by_ref")]
    #[track_caller]
    pub fn get_or_insert_with_ref<Q>(&self, key: &Q, load: impl FnOnce() -> V) -> V
    where
        Q: ?Sized + Hash + Equivalent<K> + ToKey<K>,
    {
        or_panic(self.try_get_or_insert_with_ref(key, || Ok::<V, Infallible>(load())))
    }

    /// Like [`Cache::try_get_or_insert_with`], but takes a reference, of which a key is made ([`ToKey`]) if it is missed.
    ///
    /// # Errors
    ///
    /// As [`Cache::try_get_or_insert_with`].
    ///
    /// # Panics
    ///
    /// If the key is missed in a closure that runs [under this cache's lock](Cache#under-a-lock). And if the removal listener
    /// panics: when it is told of the key's old value, which had expired, before anything is loaded; or of entries that left
    /// for the new value, when that is in the cache.
    ///
    /// ```
    /// use koel::LoadError;
    ///
    /// let ports: koel::Cache<String, u16> = koel::Cache::new(100);
    /// let error = ports.try_get_or_insert_with_ref("http", || "eighty".parse()).unwrap_err();
    /// assert!(matches!(error, LoadError::Loader(_)));
    /// assert_eq!(ports.try_get_or_insert_with_ref("http", || "80".parse()), Ok(80));
    /// ```
    pub fn try_get_or_insert_with_ref<Q, E>(
        &self,
        key: &Q,
        load: impl FnOnce() -> Result<V, E>,
    ) -> Result<V, LoadError<E>>
    where
        Q: ?Sized + Hash + Equivalent<K> + ToKey<K>,
    {
        load_ref(self, key, Terms::alone(), load)
    }

    /// Like [`Cache::try_get_or_insert_with_timeout`], but takes a reference, of which a key is made ([`ToKey`]) if it is
    /// missed.
    ///
    /// # Errors
    ///
    /// Those of [`Cache::try_get_or_insert_with`], and [`LoadError::TimedOut`].
    ///
    /// # Panics
    ///
    /// As [`Cache::try_get_or_insert_with_ref`].
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let ports: koel::Cache<String, u16> = koel::Cache::new(100);
    /// let most = Duration::from_millis(200);
    /// assert_eq!(ports.try_get_or_insert_with_timeout_ref("http", most, || "80".parse()), Ok(80));
    /// ```
    pub fn try_get_or_insert_with_timeout_ref<Q, E>(
        &self,
        key: &Q,
        timeout: Duration,
        load: impl FnOnce() -> Result<V, E>,
    ) -> Result<V, LoadError<E>>
    where
        Q: ?Sized + Hash + Equivalent<K> + ToKey<K>,
    {
        load_ref(self, key, Terms::alone().within(timeout), load)
    }

    /// Like [`Cache::try_get_or_insert_with_shared`], but takes a reference, of which a key is made ([`ToKey`]) if it is
    /// missed.
    ///
    /// # Errors
    ///
    /// As [`Cache::try_get_or_insert_with_shared`].
    ///
    /// # Panics
    ///
    /// As [`Cache::try_get_or_insert_with_ref`].
    ///
    /// ```
    /// let ports: koel::Cache<String, u16> = koel::Cache::new(100);
    /// let error = ports.try_get_or_insert_with_shared_ref("http", || "eighty".parse()).unwrap_err();
    /// let error: std::sync::Arc<std::num::ParseIntError> = error.into_loader().unwrap();
    /// assert_eq!(error.to_string(), "invalid digit found in string");
    /// assert_eq!(ports.try_get_or_insert_with_shared_ref("http", || "80".parse()).ok(), Some(80));
    /// ```
    #[doc(alias = "try_get_with_by_ref")]
    pub fn try_get_or_insert_with_shared_ref<Q, E: Any + Send + Sync>(
        &self,
        key: &Q,
        load: impl FnOnce() -> Result<V, E>,
    ) -> Result<V, LoadError<Arc<E>>>
    where
        Q: ?Sized + Hash + Equivalent<K> + ToKey<K>,
    {
        load_ref(self, key, Terms::shared(), || load().map_err(Arc::new))
    }

    /// Like [`Cache::try_get_or_insert_with_shared_timeout`], but takes a reference, of which a key is made ([`ToKey`]) if it
    /// is missed.
    ///
    /// # Errors
    ///
    /// Those of [`Cache::try_get_or_insert_with_shared`], and [`LoadError::TimedOut`].
    ///
    /// # Panics
    ///
    /// As [`Cache::try_get_or_insert_with_ref`].
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use koel::{Cache, LoadError};
    ///
    /// let pages: Cache<String, String> = Cache::new(100);
    /// let page = |path: &str| {
    ///     let read = || std::fs::read_to_string(path);
    ///     match pages.try_get_or_insert_with_shared_timeout_ref(path, Duration::from_millis(200), read) {
    ///         Ok(page) => (200, page),
    ///         Err(LoadError::TimedOut) => (503, "try again".to_string()),
    ///         Err(LoadError::Loader(error)) => (404, error.to_string()), // the loader's own
    ///         Err(error) => (500, error.to_string()),
    ///     }
    /// };
    /// assert_eq!(page("no such file").0, 404);
    /// ```
    pub fn try_get_or_insert_with_shared_timeout_ref<Q, E: Any + Send + Sync>(
        &self,
        key: &Q,
        timeout: Duration,
        load: impl FnOnce() -> Result<V, E>,
    ) -> Result<V, LoadError<Arc<E>>>
    where
        Q: ?Sized + Hash + Equivalent<K> + ToKey<K>,
    {
        load_ref(self, key, Terms::shared().within(timeout), || load().map_err(Arc::new))
    }

    /// Like [`Cache::get_or_insert_async`], but takes a reference, of which a key is made ([`ToKey`]) if it is missed.
    ///
    /// # Panics
    ///
    /// As [`Cache::get_or_insert_async`].
    ///
    /// ```
    /// # pollster::block_on(async {
    /// let cache: koel::Cache<String, usize> = koel::Cache::new(100);
    /// assert_eq!(cache.get_or_insert_async_ref("seven", async { 7 }).await, 7);
    /// # });
    /// ```
    pub async fn get_or_insert_async_ref<Q>(&self, key: &Q, load: impl Future<Output = V>) -> V
    where
        Q: ?Sized + Hash + Equivalent<K> + ToKey<K>,
    {
        let load = (pin!(Some(load)), Ok::<V, Infallible>);
        or_panic(load_ref_async(self, key, Terms::alone(), load).await)
    }

    /// Like [`Cache::try_get_or_insert_async`], but takes a reference, of which a key is made ([`ToKey`]) if it is missed.
    ///
    /// # Errors
    ///
    /// As [`Cache::try_get_or_insert_with`].
    ///
    /// # Panics
    ///
    /// As [`Cache::try_get_or_insert_async`].
    ///
    /// ```
    /// # pollster::block_on(async {
    /// let ports: koel::Cache<String, u16> = koel::Cache::new(100);
    /// let failed = ports.try_get_or_insert_async_ref("http", async { Err("no answer") }).await;
    /// assert_eq!(failed.unwrap_err().into_loader(), Some("no answer"));
    /// assert_eq!(ports.try_get_or_insert_async_ref("http", async { Ok::<_, ()>(80) }).await, Ok(80));
    /// # });
    /// ```
    pub async fn try_get_or_insert_async_ref<Q, E>(
        &self,
        key: &Q,
        load: impl Future<Output = Result<V, E>>,
    ) -> Result<V, LoadError<E>>
    where
        Q: ?Sized + Hash + Equivalent<K> + ToKey<K>,
    {
        load_ref_async(self, key, Terms::alone(), (pin!(Some(load)), identity)).await
    }

    /// Like [`Cache::try_get_or_insert_async_shared`], but takes a reference, of which a key is made ([`ToKey`]) if it is
    /// missed.
    ///
    /// # Errors
    ///
    /// As [`Cache::try_get_or_insert_with_shared`].
    ///
    /// # Panics
    ///
    /// As [`Cache::try_get_or_insert_async`].
    ///
    /// ```
    /// # pollster::block_on(async {
    /// let ports: koel::Cache<String, u16> = koel::Cache::new(100);
    /// let failed = ports.try_get_or_insert_async_shared_ref("http", async { Err("no answer") }).await;
    /// assert_eq!(*failed.unwrap_err().into_loader().unwrap(), "no answer");
    /// # });
    /// ```
    pub async fn try_get_or_insert_async_shared_ref<Q, E: Any + Send + Sync>(
        &self,
        key: &Q,
        load: impl Future<Output = Result<V, E>>,
    ) -> Result<V, LoadError<Arc<E>>>
    where
        Q: ?Sized + Hash + Equivalent<K> + ToKey<K>,
    {
        let load = (pin!(Some(load)), |loaded: Result<V, E>| loaded.map_err(Arc::new));
        load_ref_async(self, key, Terms::shared(), load).await
    }
}
