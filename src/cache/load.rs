//! Values that are loaded when they are missed: once for all callers that miss them.

use core::any::Any;
use core::convert::{Infallible, identity};
use core::future::Future;
use core::hash::{BuildHasher, Hash};
use core::pin::{Pin, pin};
use core::time::Duration;
use std::sync::Arc;

use equivalent::Equivalent;

use super::Cache;
use super::counters::Counters;
use super::flight::{Flights, LoadError, Table, Terms, ToLoad, nothing_is_stale, or_panic};
use super::timer::Timer;
use crate::entries::Entry;
use crate::hash::Digest;
use crate::to_key::ToKey;

/// What a load needs of a cache.
pub(super) trait Loading<K, V>: Table<K, V> {
    /// The value of a key, if it is there; counted as a hit or a miss.
    fn hit(&self, digest: Digest, key: &K) -> Option<Hit<V>>;

    /// The values of many keys, if they are there; counted as hits and misses.
    fn hit_all(&self, keys: &[K], out: &mut [Option<V>]);

    /// Whether the value of a key is due, as in [`Hit::is_due`], and nobody is loading it anew.
    fn needs_refresh(&self, _key: &K) -> bool {
        false
    }

    fn flights(&self) -> &Flights<K, V>;

    fn counters(&self) -> &Counters;

    /// Panics if this thread holds a lock of the cache: it might have to wait for a leader that waits for that lock.
    fn assert_not_writing(&self);
}

/// A value that was found.
pub(super) struct Hit<V> {
    pub(super) value: V,
    /// Whether the value is so near its end that it is to be loaded anew [F8], and this thread may do that.
    pub(super) is_due: bool,
}

/// The result of a look-up.
pub(super) enum Lookup<'c, K, V> {
    Value(V),
    Lacks(ToLoad<'c, K, V>),
}

impl<'c, K: Eq + Clone, V> Lookup<'c, K, V> {
    // Inlined, because a hit has nothing else to do.
    #[inline(always)]
    pub(super) fn new<Q>(cache: &'c impl Loading<K, V>, digest: Digest, key: &Q, hit: Option<Hit<V>>) -> Self
    where
        Q: ?Sized + Equivalent<K> + ToKey<K>,
    {
        let Some(Hit { value, is_due }) = hit else {
            return Lookup::Lacks(ToLoad { digest, refreshing: None });
        };
        if is_due { Self::of_due(cache, digest, key, value) } else { Lookup::Value(value) }
    }

    #[cold]
    #[inline(never)]
    fn of_due<Q>(cache: &'c impl Loading<K, V>, digest: Digest, key: &Q, value: V) -> Self
    where
        Q: ?Sized + Equivalent<K> + ToKey<K>,
    {
        match cache.flights().refresh(digest, key) {
            Some(flight) => {
                // Before there is an answer: a finished answer leaks if a drop panics.
                flight.run(|| drop(value));
                Lookup::Lacks(ToLoad { digest, refreshing: Some(flight) })
            }
            None => Lookup::Value(value),
        }
    }
}

/// The value of a key: the cache's, due or not, or, if it is missed, that of `load_lacking`.
pub(super) fn load_missed<K: Eq + Clone, V: Clone, E>(
    cache: &impl Loading<K, V>,
    key: K,
    load: impl FnOnce() -> Result<V, E>,
) -> Result<V, LoadError<E>> {
    let digest = cache.digest_of(&key);
    match cache.hit(digest, &key) {
        Some(Hit { value, .. }) => {
            // As in `load_if`.
            drop((key, load));
            Ok(value)
        }
        None => {
            let to_load = ToLoad { digest, refreshing: None };
            load_lacking(cache, to_load, key, Terms::alone(), nothing_is_stale, load)
        }
    }
}

/// The value of a key: the cache's, or, if it is missed or due, that of `load_lacking`.
#[inline]
pub(super) fn load<K: Eq + Clone, V: Clone, E>(
    cache: &impl Loading<K, V>,
    key: K,
    terms: Terms<E>,
    load: impl FnOnce() -> Result<V, E>,
) -> Result<V, LoadError<E>> {
    load_if(cache, key, terms, load, nothing_is_stale)
}

/// The value of a key: the cache's, if it is not stale to this caller; or, if it is, or is missed or due, that of
/// `load_lacking`.
#[inline]
pub(super) fn load_if<K: Eq + Clone, V: Clone, E>(
    cache: &impl Loading<K, V>,
    key: K,
    terms: Terms<E>,
    load: impl FnOnce() -> Result<V, E>,
    mut is_stale: impl FnMut(&V) -> bool,
) -> Result<V, LoadError<E>> {
    let digest = cache.digest_of(&key);
    let hit = cache.hit(digest, &key).filter(|hit| !is_stale(&hit.value));
    match Lookup::new(cache, digest, &key, hit) {
        Lookup::Value(value) => {
            // Before there is an answer: a finished answer leaks if a drop panics.
            drop((key, load, is_stale));
            Ok(value)
        }
        Lookup::Lacks(to_load) => load_lacking(cache, to_load, key, terms, is_stale, load),
    }
}

/// A loader for tasks, and the function for its result. The loader is pinned: an async function has room twice for what it
/// passes on by value, so each function on the way would double that. The loader is dropped before there is an answer: a
/// finished answer leaks if a drop panics.
pub(super) type Loader<'l, F, T> = (Pin<&'l mut Option<F>>, T);

/// Like `load`, for tasks.
pub(super) fn load_async<K: Eq + Clone, V: Clone, E, F: Future>(
    cache: &impl Loading<K, V>,
    key: K,
    terms: Terms<E>,
    loader: Loader<'_, F, impl FnOnce(F::Output) -> Result<V, E>>,
) -> impl Future<Output = Result<V, LoadError<E>>> {
    load_async_if(cache, key, terms, loader, nothing_is_stale)
}

/// Like `load_if`, for tasks.
pub(super) async fn load_async_if<K: Eq + Clone, V: Clone, E, F: Future>(
    cache: &impl Loading<K, V>,
    key: K,
    terms: Terms<E>,
    (mut load, end): Loader<'_, F, impl FnOnce(F::Output) -> Result<V, E>>,
    mut is_stale: impl FnMut(&V) -> bool,
) -> Result<V, LoadError<E>> {
    let digest = cache.digest_of(&key);
    let hit = cache.hit(digest, &key).filter(|hit| !is_stale(&hit.value));
    let answer = match Lookup::new(cache, digest, &key, hit) {
        Lookup::Value(value) => {
            // As in `load_if`.
            drop(key);
            Ok(value)
        }
        Lookup::Lacks(to_load) => {
            load_lacking_async(cache, to_load, key, terms, &mut is_stale, (load.as_mut(), end)).await
        }
    };
    load.set(None);
    // As in `load_if`.
    drop(is_stale);
    answer
}

/// The value of a key that was missed: from `load`, or from another caller's loader, for which this thread waits. Or of a key
/// that is due: then this thread leads its flight.
pub(super) fn load_lacking<K: Eq + Clone, V: Clone, E>(
    cache: &impl Loading<K, V>,
    to_load: ToLoad<'_, K, V>,
    key: K,
    terms: Terms<E>,
    mut is_stale: impl FnMut(&V) -> bool,
    load: impl FnOnce() -> Result<V, E>,
) -> Result<V, LoadError<E>> {
    let mut load = Some(load);
    let mut once = || load.take().expect("a loader is called once")();
    let answer = load_by_pointers(cache, to_load, key, terms, &mut is_stale, &mut once);
    // Before the answer is returned: a finished answer leaks if a drop panics.
    drop((load, is_stale));
    answer
}

/// The same by pointers: one function for all loaders with errors of one type. Otherwise there would be one per loader of a
/// program, as each has a type of its own.
#[inline(never)]
fn load_by_pointers<K: Eq + Clone, V: Clone, E>(
    cache: &impl Loading<K, V>,
    to_load: ToLoad<'_, K, V>,
    key: K,
    terms: Terms<E>,
    is_stale: &mut dyn FnMut(&V) -> bool,
    load: &mut dyn FnMut() -> Result<V, E>,
) -> Result<V, LoadError<E>> {
    cache.assert_not_writing();
    let timed = || {
        let timer = Timer::start(cache.counters());
        timer.end(load(), 1)
    };
    cache.flights().load(cache, (to_load, key), terms, is_stale, timed)
}

/// The same for tasks. The caller drops the loader.
pub(super) async fn load_lacking_async<K: Eq + Clone, V: Clone, E, F: Future>(
    cache: &impl Loading<K, V>,
    mut to_load: ToLoad<'_, K, V>,
    key: K,
    terms: Terms<E>,
    is_stale: impl FnMut(&V) -> bool,
    (load, end): Loader<'_, F, impl FnOnce(F::Output) -> Result<V, E>>,
) -> Result<V, LoadError<E>> {
    cache.assert_not_writing();
    let load = load.as_pin_mut().expect("it has not been dropped");
    let timed = pin!(async {
        let timer = Timer::start(cache.counters());
        timer.end(end(load.await), 1)
    });
    let answer = cache.flights().load_async(cache, (&mut to_load, &key), terms, is_stale, timed).await;
    // Before there is an answer, as in `load`.
    drop(key);
    answer
}

impl<K: Hash + Eq + Clone, V: Clone, S: BuildHasher> Cache<K, V, S> {
    /// [`Cache::get`], and whether the value that is found is due.
    #[inline(always)]
    pub(super) fn hit_of<Q>(&self, digest: Digest, key: &Q) -> Option<Hit<V>>
    where
        Q: ?Sized + Hash + Equivalent<K>,
    {
        let guard = self.enter();
        let entry = self.hit_entry(digest, key, &guard)?;
        let is_due = self.may_refresh() && self.is_due(entry, self.now());
        // SAFETY: found after the guard was entered.
        let value = unsafe { Entry::<K, V>::deref(entry) }.pair().1.clone();
        Some(Hit { value, is_due })
    }

    /// Returns the value of a key; if it is missed, returns what `load` returns and inserts it, unless it is [turned
    /// away](Cache::insert).
    ///
    /// Of all callers that miss a key at the same time, one runs its loader, with no lock held, and the others wait for its
    /// value. If the loader panics, the panic goes to its own caller, and another caller runs its own loader. The value goes to
    /// those that wait for it but not into the cache if, meanwhile, somebody calls `insert`, `remove`, `remove_if`, `compute`
    /// or one of the updates for the key, whatever comes of it; or `try_insert`, unless that finds a value; or `clear`; or if
    /// `retain` takes the key out; or if the value is too heavy for the cache. A value that is there may be loaded anew before
    /// it expires: [`CacheBuilder::refresh_ahead`](crate::CacheBuilder::refresh_ahead).
    ///
    /// A caller that waits blocks its thread. In a task, use [`Cache::get_or_insert_async`]: if the loader is another task of
    /// the same thread, this method would wait forever.
    ///
    /// # Panics
    ///
    /// If `load` asks for the same key, itself or by way of other keys' loaders, because it would wait for itself; the same
    /// goes for a rayon task that is run while `load` waits for others, see [`LoadError::Recursion`].
    /// [`Cache::try_get_or_insert_with`] returns an error instead. Also if the key is missed in a closure that runs [under this
    /// cache's lock](Cache#under-a-lock). And if the removal listener panics: when it is told of the key's old value, which had
    /// expired, before anything is loaded; or of entries that left for the new value, when that is in the cache.
    ///
    /// ```
    /// let cache: koel::Cache<u32, String> = koel::Cache::new(100);
    /// assert_eq!(cache.get_or_insert_with(7, || "seven".to_string()), "seven");
    /// assert_eq!(cache.get_or_insert_with(7, || unreachable!()), "seven");
    /// ```
    #[doc(alias = "get_with")]
    #[track_caller]
    pub fn get_or_insert_with(&self, key: K, load: impl FnOnce() -> V) -> V {
        or_panic(self.try_get_or_insert_with(key, || Ok::<V, Infallible>(load())))
    }

    /// Returns the value of a key; if it is missed, returns what `load` returns, like [`Cache::get_or_insert_with`].
    ///
    /// A caller that waits blocks its thread. In a task, use [`Cache::try_get_or_insert_async`]: if the loader is another task
    /// of the same thread, this method would wait forever.
    ///
    /// # Errors
    ///
    /// The loader's own error, which only its caller gets: other callers that wait then run their loaders, one at a time,
    /// whereas [`Cache::try_get_or_insert_with_shared`] hands the error to all. Or an error because the call would wait for
    /// itself.
    ///
    /// # Panics
    ///
    /// If the key is missed in a closure that runs [under this cache's lock](Cache#under-a-lock). And if the removal listener
    /// panics: when it is told of the key's old value, which had expired, before anything is loaded; or of entries that left
    /// for the new value, when that is in the cache.
    ///
    /// ```
    /// use koel::{Cache, LoadError};
    ///
    /// let cache: Cache<&str, u16> = Cache::new(100);
    /// let error = cache.try_get_or_insert_with("port", || "http".parse()).unwrap_err();
    /// assert!(matches!(error, LoadError::Loader(_)));
    /// assert_eq!(cache.try_get_or_insert_with("port", || "80".parse()), Ok(80));
    /// ```
    pub fn try_get_or_insert_with<E>(
        &self,
        key: K,
        load: impl FnOnce() -> Result<V, E>,
    ) -> Result<V, LoadError<E>> {
        self::load(self, key, Terms::alone(), load)
    }

    /// Like [`Cache::try_get_or_insert_with`], but if the loader fails, all callers that wait for it by a method with `_shared`
    /// in its name get its error at once, if it is of the type of their own loaders' errors. So a source that takes long to
    /// fail is asked once, and not once more for each waiter.
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
    /// As [`Cache::try_get_or_insert_with`].
    ///
    /// ```
    /// use std::thread;
    /// use std::time::Duration;
    ///
    /// use koel::{Cache, LoadError};
    ///
    /// let pages: Cache<&str, String> = Cache::new(100);
    /// let slow_failure = || {
    ///     thread::sleep(Duration::from_millis(30));
    ///     std::fs::read_to_string("no such file")
    /// };
    /// thread::scope(|scope| {
    ///     for _ in 0..8 {
    ///         scope.spawn(|| {
    ///             let Err(LoadError::Loader(error)) = pages.try_get_or_insert_with_shared("a page", slow_failure)
    ///             else {
    ///                 panic!("there is no such file");
    ///             };
    ///             assert_eq!(error.kind(), std::io::ErrorKind::NotFound); // an `Arc` of it
    ///         });
    ///     }
    /// });
    /// assert!((1..=8).contains(&pages.stats().failed_loads)); // one, if all came while it ran
    /// ```
    #[doc(alias = "optionally_get_with")]
    #[doc(alias = "try_get_with")]
    pub fn try_get_or_insert_with_shared<E: Any + Send + Sync>(
        &self,
        key: K,
        load: impl FnOnce() -> Result<V, E>,
    ) -> Result<V, LoadError<Arc<E>>> {
        self::load(self, key, Terms::shared(), || load().map_err(Arc::new))
    }

    /// Like [`Cache::try_get_or_insert_with`], but waits for another caller's loader for at most `timeout`. The caller's own
    /// loader runs for as long as it takes.
    ///
    /// A caller that waits blocks its thread, for at most that time. In a task, use [`Cache::try_get_or_insert_async`] within
    /// your runtime's timeout.
    ///
    /// # Errors
    ///
    /// Those of [`Cache::try_get_or_insert_with`], and [`LoadError::TimedOut`].
    ///
    /// # Panics
    ///
    /// If the key is missed in a closure that runs [under this cache's lock](Cache#under-a-lock). And if the removal listener
    /// panics: when it is told of the key's old value, which had expired, before anything is loaded; or of entries that left
    /// for the new value, when that is in the cache.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use koel::{Cache, LoadError};
    ///
    /// let cache: Cache<u32, u32> = Cache::new(10);
    /// let ask = || cache.try_get_or_insert_with_timeout(7, Duration::from_millis(1), || Ok::<_, ()>(0));
    /// cache.get_or_insert_with(7, || {
    ///     // While this loader runs, another thread asks.
    ///     let answer = std::thread::scope(|scope| scope.spawn(ask).join().unwrap());
    ///     assert_eq!(answer, Err(LoadError::TimedOut));
    ///     49
    /// });
    /// assert_eq!(ask(), Ok(49));
    /// ```
    #[doc(alias = "get_value_or_guard")]
    pub fn try_get_or_insert_with_timeout<E>(
        &self,
        key: K,
        timeout: Duration,
        load: impl FnOnce() -> Result<V, E>,
    ) -> Result<V, LoadError<E>> {
        self::load(self, key, Terms::alone().within(timeout), load)
    }

    /// Like [`Cache::try_get_or_insert_with_shared`], but waits for another caller's loader for at most `timeout`, like
    /// [`Cache::try_get_or_insert_with_timeout`].
    ///
    /// # Errors
    ///
    /// Those of [`Cache::try_get_or_insert_with_shared`], and [`LoadError::TimedOut`].
    ///
    /// # Panics
    ///
    /// As [`Cache::try_get_or_insert_with`].
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let ports: koel::Cache<u32, u16> = koel::Cache::new(100);
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
        self::load(self, key, Terms::shared().within(timeout), || load().map_err(Arc::new))
    }

    /// Returns the value of a key; if it is missed, returns what the future `load` yields and inserts it, unless it is [turned
    /// away](Cache::insert). For any runtime: it starts no thread, and blocks none.
    ///
    /// It behaves like [`Cache::get_or_insert_with`], among tasks and between tasks and threads. If the future is dropped while
    /// it loads, another waiter loads instead, maybe before all that `load` owns has been dropped; a future that waits can be
    /// dropped at any time. A future that loads and is kept, but no longer polled, holds up the others, threads as well: a
    /// branch of a `select!` on it that asks for the same key waits forever. A future that waits and is woken because it is to
    /// load next holds up those that waited with it, until it is polled or dropped, or a new caller arrives. Drop such a future
    /// first, or give it a task of its own.
    ///
    /// # Panics
    ///
    /// If `load` asks for the same key, itself or by way of other keys' loaders. Also if the key is missed in a closure that
    /// runs [under this cache's lock](Cache#under-a-lock). And if the removal listener panics: when it is told of the key's old
    /// value, which had expired, before anything is loaded; or of entries that left for the new value, when that is in the
    /// cache.
    ///
    /// ```
    /// # pollster::block_on(async {
    /// let cache: koel::Cache<u32, String> = koel::Cache::new(100);
    /// assert_eq!(cache.get_or_insert_async(7, async { "seven".to_string() }).await, "seven");
    /// assert_eq!(cache.get(&7).as_deref(), Some("seven"));
    /// # });
    /// ```
    #[doc(alias = "get_with")]
    pub async fn get_or_insert_async(&self, key: K, load: impl Future<Output = V>) -> V {
        let load = (pin!(Some(load)), Ok::<V, Infallible>);
        or_panic(load_async(self, key, Terms::alone(), load).await)
    }

    /// Returns the value of a key; if it is missed, returns what the future `load` yields, like [`Cache::get_or_insert_async`].
    /// For a time limit, wrap the call in your runtime's timeout.
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
    /// use std::time::Duration;
    ///
    /// # let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    /// # runtime.block_on(async {
    /// let cache: koel::Cache<u32, u32> = koel::Cache::new(10);
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
        load_async(self, key, Terms::alone(), (pin!(Some(load)), identity)).await
    }

    /// Like [`Cache::try_get_or_insert_async`], but if the loader fails, all callers that wait for it on these terms get its
    /// error: see [`Cache::try_get_or_insert_with_shared`].
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
    /// let ports: koel::Cache<&str, u16> = koel::Cache::new(100);
    /// let error = ports.try_get_or_insert_async_shared("http", async { "eighty".parse() }).await.unwrap_err();
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
        load_async(self, key, Terms::shared(), load).await
    }
}
