//! Values of many keys that are loaded when they are missed: by one call, and each once for all callers that miss it.

use core::any::Any;
use core::convert::{Infallible, identity};
use core::future::Future;
use core::hash::{BuildHasher, Hash};
use core::time::Duration;
use std::sync::Arc;

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

use super::Cache;
use super::counters::Counters;
use super::flight::{LoadError, Missed, Terms, or_panic};
use super::load::Loading;
use super::timer::Timer;

/// The values of many keys: the cache's or, where they are missed, from `load`, or from other callers' loaders, for which this
/// thread waits.
#[track_caller]
pub(super) fn load_many<K: Eq + Clone, V: Clone, E, P: IntoIterator<Item = (K, V)>>(
    cache: &impl Loading<K, V>,
    keys: &[K],
    out: &mut [Option<V>],
    terms: Terms<E>,
    mut load: impl FnMut(Vec<K>) -> Result<P, E>,
) -> Result<(), LoadError<E>> {
    let mut lacking = look_up(cache, keys, out);
    if lacking.missed.is_empty() {
        return Ok(());
    }
    cache.assert_not_writing();
    let timed = |keys| {
        let timer = Timer::start(cache.counters());
        timer.end(load(keys), 0).map(|pairs| counted(cache, pairs))
    };
    let loaded = cache.flights().load_many(cache, &mut lacking.missed, &terms, timed);
    lacking.hand_out(cache, out, loaded.is_err());
    // Before there is an answer: a finished error leaks if a drop panics.
    drop(load);
    loaded
}

/// The same for tasks; `answer` turns what the futures yield into results.
pub(super) async fn load_many_async<K: Eq + Clone, V: Clone, E, P: IntoIterator<Item = (K, V)>, F: Future>(
    cache: &impl Loading<K, V>,
    keys: &[K],
    out: &mut [Option<V>],
    terms: Terms<E>,
    mut load: impl FnMut(Vec<K>) -> F,
    answer: impl Fn(F::Output) -> Result<P, E>,
) -> Result<(), LoadError<E>> {
    let mut lacking = look_up(cache, keys, out);
    if lacking.missed.is_empty() {
        return Ok(());
    }
    cache.assert_not_writing();
    let begin = |keys| {
        let timer = Timer::start(cache.counters());
        (load(keys), timer)
    };
    let end = |timer, loaded| Timer::end(timer, answer(loaded), 0).map(|pairs| counted(cache, pairs));
    let loaded = cache.flights().load_many_async(cache, &mut lacking.missed, &terms, begin, end).await;
    lacking.hand_out(cache, out, loaded.is_err());
    // As there.
    drop(load);
    loaded
}

/// The loaded pairs, each counted when it arrives. Many loaders make what they return only then.
fn counted<K, V>(
    cache: &impl Loading<K, V>,
    pairs: impl IntoIterator<Item = (K, V)>,
) -> impl Iterator<Item = (K, V)> {
    let counts = cache.counters();
    let mut pairs = or_failed(counts, || pairs.into_iter());
    core::iter::from_fn(move || {
        let pair = or_failed(counts, || pairs.next())?;
        counts.here().made();
        Some(pair)
    })
}

/// What `make` returns; if it panics, a load has failed.
fn or_failed<T>(counts: &Counters, make: impl FnOnce() -> T) -> T {
    struct Failing<'c>(&'c Counters);
    impl Drop for Failing<'_> {
        fn drop(&mut self) {
            self.0.here().failed();
        }
    }
    let failing = Failing(counts);
    let made = make();
    core::mem::forget(failing);
    made
}

/// Those of many keys that were missed, or are due.
struct Lacking<'k, K, V> {
    /// Each key once.
    missed: Vec<Missed<'k, K, V>>,
    /// Where each key came first.
    places: Vec<usize>,
    /// Where keys came again, and which keys they are.
    again: Vec<(usize, usize)>,
}

/// Looks up all keys.
#[track_caller]
fn look_up<'k, K: Eq, V: Clone>(
    cache: &impl Loading<K, V>,
    keys: &'k [K],
    out: &mut [Option<V>],
) -> Lacking<'k, K, V> {
    assert_eq!(keys.len(), out.len(), "as many places for values as keys");
    cache.hit_all(keys, out);
    let n = out.iter().filter(|answer| answer.is_none()).count();
    let mut lacking =
        Lacking { missed: Vec::with_capacity(n), places: Vec::with_capacity(n), again: Vec::new() };
    let mut by_key = HashTable::with_capacity(n);
    let lacks = |(place, key): &(usize, &K)| out[*place].is_none() || cache.needs_refresh(key);
    for (place, key) in keys.iter().enumerate().filter(lacks) {
        let digest = cache.digest_of(key);
        let missed = &lacking.missed;
        let is_it = |&which: &usize| missed[which].key == key;
        match by_key.entry(digest.bits(), is_it, |&which| missed[which].digest.bits()) {
            Entry::Occupied(which) => lacking.again.push((place, *which.get())),
            Entry::Vacant(entry) => {
                entry.insert(missed.len());
                lacking.missed.push(Missed { digest, key, value: out[place].clone() });
                lacking.places.push(place);
            }
        }
    }
    lacking
}

impl<K: Eq, V: Clone> Lacking<'_, K, V> {
    /// Puts the values that have come into their places. Looks the other keys up once more, if the call did not wait for all of
    /// them.
    fn hand_out(mut self, cache: &impl Loading<K, V>, out: &mut [Option<V>], looks_again: bool) {
        for missed in self.missed.iter_mut().filter(|missed| looks_again && missed.value.is_none()) {
            missed.value = cache.look_up(missed.digest, missed.key);
        }
        for (place, which) in self.again {
            out[place].clone_from(&self.missed[which].value);
        }
        for (place, missed) in self.places.into_iter().zip(self.missed) {
            out[place] = missed.value;
        }
    }
}

impl<K: Hash + Eq + Clone, V: Clone, S: BuildHasher> Cache<K, V, S> {
    /// Gets the values of many keys. Those that are missed are loaded together, by one call of `load`, as by one query for many
    /// rows; `out[i]` becomes the value of `keys[i]`, or `None` if there is none.
    ///
    /// `load` gets the keys that nobody else is loading, each once, and returns pairs of keys and values in any order: a list,
    /// a map. A key for which it returns nothing has no value, and the cache keeps nothing for it: to keep that, let values be
    /// `Option`s, and return `None` for the key. Pairs of keys that it was not asked for are dropped; if there are several
    /// pairs of one key, the first counts.
    ///
    /// Each key is treated as by [`Cache::get_or_insert_with`]: one caller loads it, by whichever method, and a value that was
    /// written meanwhile is not replaced. The call waits for keys that others are loading when `load` has ended, so that
    /// callers that ask for the same keys in different orders never wait for each other. Waiting blocks the thread: in a task,
    /// use [`Cache::get_many_or_insert_async`]. If some of those loads fail, or have no value, `load` is called again, for all
    /// keys that are known to have none by then. Until all of a call's values are in the cache, or have failed, code that runs
    /// in the middle of that, such as a weigher, a removal listener or a waker, cannot load its other keys.
    ///
    /// Where values are [refreshed ahead](crate::CacheBuilder::refresh_ahead), those that are due are loaded with those that
    /// are missed, and the whole call waits for that; a value for whose key `load` returns nothing stays.
    ///
    /// If all values are there, the call costs what [`Cache::get_many`] does and, where values are refreshed, a second look at
    /// each. Otherwise it costs a few allocations and, for each key that is missed, what a load costs without its loader.
    ///
    /// # Panics
    ///
    /// If the slices differ in length, and as [`Cache::get_or_insert_with`]. If `load` panics, `out` has the values that the
    /// cache had, and nothing else.
    ///
    /// ```
    /// let cache: koel::Cache<u32, String> = koel::Cache::new(100);
    /// cache.insert(2, "two".to_string()).unwrap();
    ///
    /// let mut names = [const { None }; 3];
    /// cache.get_many_or_insert_with(&[1, 2, 3], &mut names, |ids| {
    ///     assert_eq!(ids, [1, 3]);
    ///     [(3, "three".to_string())] // there is no user 1
    /// });
    /// assert_eq!(names, [None, Some("two".to_string()), Some("three".to_string())]);
    /// assert!(cache.contains_key(&3));
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

    /// Gets the values of many keys, with a loader that may fail: see [`Cache::get_many_or_insert_with`].
    ///
    /// # Errors
    ///
    /// The loader's own error, which ends the call: other callers that wait for one of its keys then run their loaders. Or an
    /// error because the call would wait for itself. The values that the cache had, and those that were loaded by then, are in
    /// `out`.
    ///
    /// # Panics
    ///
    /// If the slices differ in length, and as [`Cache::try_get_or_insert_with`].
    ///
    /// ```
    /// use koel::{Cache, LoadError};
    ///
    /// let cache: Cache<&str, u16> = Cache::new(100);
    /// cache.insert("http", 80).unwrap();
    /// let mut ports = [None; 2];
    /// let failed = cache.try_get_many_or_insert_with(&["http", "ssh"], &mut ports, |_| Err::<[_; 0], _>("no file"));
    /// assert_eq!((failed, ports), (Err(LoadError::Loader("no file")), [Some(80), None]));
    ///
    /// let services = |names: Vec<_>| Ok::<_, ()>(names.into_iter().zip([22]));
    /// cache.try_get_many_or_insert_with(&["http", "ssh"], &mut ports, services).unwrap();
    /// assert_eq!(ports, [Some(80), Some(22)]);
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

    /// Like [`Cache::try_get_many_or_insert_with`], but if the loader fails, all callers that wait for one of its keys on these
    /// terms get its error at once, by whichever method: see [`Cache::try_get_or_insert_with_shared`]. So a source that takes
    /// long to fail is asked once, and not once more for each waiter.
    ///
    /// # Errors
    ///
    /// The error of this caller's loader, or of one for which it waited; either ends the call. Or an error because the call
    /// would wait for itself. The values that the cache had, and those that were loaded by then, are in `out`.
    ///
    /// # Panics
    ///
    /// As [`Cache::try_get_many_or_insert_with`].
    ///
    /// ```
    /// let ports: koel::Cache<&str, u16> = koel::Cache::new(100);
    /// let mut out = [None; 2];
    /// let fail = |_| Err::<[_; 0], _>("no file");
    /// let failed = ports.try_get_many_or_insert_with_shared(&["http", "ssh"], &mut out, fail);
    /// assert_eq!(*failed.unwrap_err().into_loader().unwrap(), "no file"); // an `Arc` of it
    /// ```
    #[track_caller]
    pub fn try_get_many_or_insert_with_shared<P: IntoIterator<Item = (K, V)>, E: Any + Send + Sync>(
        &self,
        keys: &[K],
        out: &mut [Option<V>],
        mut load: impl FnMut(Vec<K>) -> Result<P, E>,
    ) -> Result<(), LoadError<Arc<E>>> {
        // Moved in, so that it is dropped before there is an answer.
        load_many(self, keys, out, Terms::shared(), move |keys| load(keys).map_err(Arc::new))
    }

    /// Like [`Cache::try_get_many_or_insert_with_shared`], but waits for other callers' loaders for at most `timeout` from the
    /// beginning of the call. Its own loader runs for as long as it takes.
    ///
    /// # Errors
    ///
    /// Those of [`Cache::try_get_many_or_insert_with_shared`], and [`LoadError::TimedOut`]: the values that have come by then
    /// are in `out`.
    ///
    /// # Panics
    ///
    /// As [`Cache::try_get_many_or_insert_with`].
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use koel::LoadError;
    ///
    /// let cache: koel::Cache<u32, u32> = koel::Cache::new(100);
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

    /// Gets the values of many keys, for tasks: like [`Cache::get_many_or_insert_with`], with a future for the keys that were
    /// missed. For any runtime; dropping the call has the effect of dropping that of [`Cache::get_or_insert_async`].
    ///
    /// # Panics
    ///
    /// As [`Cache::get_many_or_insert_with`].
    ///
    /// ```
    /// let cache: koel::Cache<u32, String> = koel::Cache::new(100);
    /// let mut names = [const { None }; 2];
    /// let load = |ids: Vec<u32>| async { ids.into_iter().map(|id| (id, id.to_string())).collect::<Vec<_>>() };
    /// pollster::block_on(cache.get_many_or_insert_async(&[1, 2], &mut names, load));
    /// assert_eq!(names, [Some("1".to_string()), Some("2".to_string())]);
    /// ```
    pub async fn get_many_or_insert_async<P: IntoIterator<Item = (K, V)>, F: Future<Output = P>>(
        &self,
        keys: &[K],
        out: &mut [Option<V>],
        load: impl FnMut(Vec<K>) -> F,
    ) {
        or_panic(load_many_async(self, keys, out, Terms::alone(), load, Ok::<P, Infallible>).await);
    }

    /// Gets the values of many keys, for tasks, with a loader that may fail: see [`Cache::get_many_or_insert_async`].
    ///
    /// # Errors
    ///
    /// As [`Cache::try_get_many_or_insert_with`].
    ///
    /// # Panics
    ///
    /// If the slices differ in length, and as [`Cache::try_get_or_insert_async`].
    ///
    /// ```
    /// use koel::{Cache, LoadError};
    ///
    /// struct Database;
    ///
    /// impl Database {
    ///     /// `SELECT id, name FROM users WHERE id IN (..)`
    ///     async fn names(&self, ids: Vec<u32>) -> Result<Vec<(u32, String)>, &'static str> {
    ///         if ids.contains(&0) { Err("no such user") } else { Ok(vec![(3, "Ada".into()), (1, "Alan".into())]) }
    ///     }
    /// }
    ///
    /// # pollster::block_on(async {
    /// let (cache, database): (Cache<u32, String>, _) = (Cache::new(100), Database);
    /// let mut names = [const { None }; 3];
    /// cache.try_get_many_or_insert_async(&[1, 2, 3], &mut names, |ids| database.names(ids)).await?;
    /// assert_eq!(names.each_ref().map(Option::as_deref), [Some("Alan"), None, Some("Ada")]);
    ///
    /// let failed = cache.try_get_many_or_insert_async(&[0, 1, 3], &mut names, |ids| database.names(ids)).await;
    /// assert_eq!(failed, Err(LoadError::Loader("no such user")));
    /// # Ok::<_, LoadError<_>>(()) }).unwrap();
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

    /// Like [`Cache::try_get_many_or_insert_async`], but if the loader fails, all callers that wait for one of its keys on
    /// these terms get its error: see [`Cache::try_get_many_or_insert_with_shared`].
    ///
    /// # Errors
    ///
    /// As [`Cache::try_get_many_or_insert_with_shared`].
    ///
    /// # Panics
    ///
    /// As [`Cache::try_get_many_or_insert_async`].
    ///
    /// ```
    /// let names: koel::Cache<u32, String> = koel::Cache::new(100);
    /// let mut out = [None, None];
    /// let load = |_| async { Err::<[_; 0], _>("no connection") };
    /// let failed = pollster::block_on(names.try_get_many_or_insert_async_shared(&[1, 2], &mut out, load));
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
