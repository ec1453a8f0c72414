//! Values that are loaded when they are missed, or are stale to the caller: once for all such callers [F9].

use core::any::Any;
use core::convert::{Infallible, identity};
use core::future::Future;
use core::hash::{BuildHasher, Hash};
use core::pin::pin;
use std::sync::Arc;

use super::Cache;
use super::flight::{LoadError, Terms, or_panic};
use super::load::{load_async_if, load_if};

impl<K: Hash + Eq + Clone, V: Clone, S: BuildHasher> Cache<K, V, S> {
    /// Returns the value of a key; if it is missed, or if it is there and `is_stale` holds for it, returns what `load` returns,
    /// which the cache then has in its place.
    ///
    /// For values that become out of date by something other than time: a version that was announced, or a token that a server
    /// has refused. Everything is as for [`Cache::get_or_insert_with`], as if a stale value were missed: of all callers that
    /// find it stale at the same time, one loads the key anew, and the others wait for that load. Where an old value will do
    /// meanwhile, use [`CacheBuilder::refresh_ahead`](crate::CacheBuilder::refresh_ahead).
    ///
    /// A caller gets a value for which its `is_stale` does not hold, or one whose load began after the caller had asked,
    /// whether that is stale to it or not: it is as new as any. So nothing is loaded in a loop, and `|_| true` has a key loaded
    /// anew, whatever is there, together with other callers that want that.
    ///
    /// The old value stays until the new one has come; it also stays if the loader fails or panics, or if the new value is too
    /// heavy for the cache. Other methods find it as before: [`remove`](Cache::remove) it if they must not. A loaded value
    /// takes the place of a value for which `is_stale` holds, or that is due, and of no other.
    ///
    /// `is_stale` runs with no lock held. It is called for the value that is found and, if that is stale, for the value that is
    /// there before the load and after it, and for values that others have loaded. While it is called after the load, nothing
    /// that leaves the cache is freed. A value that it finds stale is counted as a hit.
    ///
    /// # Panics
    ///
    /// As [`Cache::get_or_insert_with`], where a stale value counts as a miss. And if `is_stale` panics: then the cache is as
    /// it was, and if others wait, one of them loads.
    ///
    /// ```
    /// let menus: koel::Cache<&str, (u32, &str)> = koel::Cache::new(100); // each with its version
    /// assert_eq!(menus.get_or_insert_with_if("monday", || (1, "soup"), |menu| menu.0 < 1).1, "soup");
    /// assert_eq!(menus.get_or_insert_with_if("monday", || unreachable!(), |menu| menu.0 < 1).1, "soup");
    /// // The cook has announced version 2.
    /// assert_eq!(menus.get_or_insert_with_if("monday", || (2, "salad"), |menu| menu.0 < 2).1, "salad");
    /// assert_eq!(menus.get("monday"), Some((2, "salad")));
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

    /// Like [`Cache::get_or_insert_with_if`], with a loader that may fail: then the old value stays where it is, and is not
    /// returned.
    ///
    /// # Errors
    ///
    /// As [`Cache::try_get_or_insert_with`].
    ///
    /// # Panics
    ///
    /// As [`Cache::try_get_or_insert_with`], where a stale value counts as a miss; and if `is_stale` panics.
    ///
    /// ```
    /// use koel::{Cache, LoadError};
    ///
    /// let cache: Cache<&str, u32> = Cache::new(100);
    /// cache.insert("version", 1).unwrap();
    /// let failed = cache.try_get_or_insert_with_if("version", || Err("no answer"), |version| *version < 2);
    /// assert_eq!(failed, Err(LoadError::Loader("no answer")));
    /// assert_eq!(cache.get("version"), Some(1));
    /// ```
    pub fn try_get_or_insert_with_if<E>(
        &self,
        key: K,
        load: impl FnOnce() -> Result<V, E>,
        is_stale: impl FnMut(&V) -> bool,
    ) -> Result<V, LoadError<E>> {
        load_if(self, key, Terms::alone(), load, is_stale)
    }

    /// Like [`Cache::try_get_or_insert_with_if`], but if the loader fails, all callers that wait for it on these terms get its
    /// error: see [`Cache::try_get_or_insert_with_shared`].
    ///
    /// # Errors
    ///
    /// As [`Cache::try_get_or_insert_with_shared`].
    ///
    /// # Panics
    ///
    /// As [`Cache::try_get_or_insert_with_if`].
    ///
    /// ```
    /// let cache: koel::Cache<&str, u32> = koel::Cache::new(100);
    /// cache.insert("version", 1).unwrap();
    /// let failed = cache.try_get_or_insert_with_shared_if("version", || Err("no answer"), |version| *version < 2);
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

    /// Like [`Cache::get_or_insert_with_if`], for tasks, with a future for what is missed or stale, as in
    /// [`Cache::get_or_insert_async`].
    ///
    /// # Panics
    ///
    /// As [`Cache::get_or_insert_with_if`].
    ///
    /// ```
    /// # pollster::block_on(async {
    /// let cache: koel::Cache<&str, u32> = koel::Cache::new(100);
    /// cache.insert("version", 1).unwrap();
    /// assert_eq!(cache.get_or_insert_async_if("version", async { 2 }, |version| *version < 2).await, 2);
    /// assert_eq!(cache.get("version"), Some(2));
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

    /// Like [`Cache::try_get_or_insert_with_if`], for tasks: see [`Cache::try_get_or_insert_async`].
    ///
    /// # Errors
    ///
    /// As [`Cache::try_get_or_insert_with`].
    ///
    /// # Panics
    ///
    /// As [`Cache::try_get_or_insert_with_if`].
    ///
    /// ```
    /// use std::time::{Duration, Instant};
    ///
    /// #[derive(Clone)]
    /// struct Token {
    ///     secret: u64,
    ///     until: Instant,
    /// }
    ///
    /// async fn log_in(server: &str) -> Result<Token, &'static str> {
    ///     let until = Instant::now() + Duration::from_secs(600);
    ///     if server.is_empty() { Err("no such server") } else { Ok(Token { secret: 49, until }) }
    /// }
    ///
    /// # pollster::block_on(async {
    /// let tokens: koel::Cache<&str, Token> = koel::Cache::new(100);
    /// let at_least = Duration::from_secs(30); // long enough for what is to be done with the token
    /// let is_stale = |token: &Token| token.until < Instant::now() + at_least;
    /// let token = tokens.try_get_or_insert_async_if("api", log_in("api"), is_stale).await;
    /// assert_eq!(token.unwrap().secret, 49);
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

    /// Like [`Cache::try_get_or_insert_async_if`], but if the loader fails, all callers that wait for it on these terms get its
    /// error: see [`Cache::try_get_or_insert_with_shared`].
    ///
    /// # Errors
    ///
    /// As [`Cache::try_get_or_insert_with_shared`].
    ///
    /// # Panics
    ///
    /// As [`Cache::try_get_or_insert_with_if`].
    ///
    /// ```
    /// # pollster::block_on(async {
    /// let cache: koel::Cache<&str, u32> = koel::Cache::new(100);
    /// cache.insert("version", 1).unwrap();
    /// let load = async { Err("no answer") };
    /// let failed = cache.try_get_or_insert_async_shared_if("version", load, |version| *version < 2).await;
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
