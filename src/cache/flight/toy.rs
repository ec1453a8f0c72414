//! The smallest cache that loads once, with which the tests and the models run the flights.
//!
//! It does what a cache has to do, in the simplest way: a map behind one lock, and no bound.

use core::any::Any;
use core::convert::Infallible;
use core::future::Future;
use core::hash::{BuildHasher, BuildHasherDefault, Hash};
use core::pin::pin;
use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::sync::Arc;
use std::time::Duration;

use super::{Flights, Held, Landing, LoadError, Missed, Table, Terms, ToLoad, nothing_is_stale, or_panic};
use crate::hash::Digest;
use crate::sync::Mutex;

type Hasher = BuildHasherDefault<DefaultHasher>;

/// A cache without a bound.
#[derive(Debug)]
pub struct LoadOnce<K, V> {
    flights: Flights<K, V>,
    map: Mutex<HashMap<K, Kept<V>, Hasher>>,
    /// Whether it keeps no loaded value any more, as if all were too heavy.
    refuses: Mutex<bool>,
}

/// A value that the cache keeps.
#[derive(Clone, Debug)]
struct Kept<V> {
    value: V,
    /// Whether it is near its end [F8].
    is_due: bool,
    /// Whether it is nevertheless not to be loaded anew for a while.
    is_put_off: bool,
}

impl<V> Kept<V> {
    fn fresh(value: V) -> Self {
        Kept { value, is_due: false, is_put_off: false }
    }

    /// Whether it is to be loaded anew.
    fn needs_refresh(&self) -> bool {
        self.is_due && !self.is_put_off
    }
}

impl<K, V> Default for LoadOnce<K, V> {
    fn default() -> Self {
        LoadOnce { flights: Flights::new(), map: Mutex::new(HashMap::default()), refuses: Mutex::new(false) }
    }
}

impl<K: Hash + Eq + Clone, V: Clone> LoadOnce<K, V> {
    /// An empty cache.
    pub fn new() -> Self {
        LoadOnce::default()
    }

    fn digest(key: &K) -> Digest {
        Digest::new(Hasher::default().hash_one(key))
    }

    /// The value of a key.
    pub fn get(&self, key: &K) -> Option<V> {
        self.map.lock().get(key).map(|kept| kept.value.clone())
    }

    /// Sets the value of a key.
    pub fn insert(&self, key: K, value: V) {
        self.flights.invalidate(Self::digest(&key), &key);
        let _old = self.map.lock().insert(key, Kept::fresh(value));
    }

    /// Removes a key, and returns its value.
    pub fn remove(&self, key: &K) -> Option<V> {
        self.flights.invalidate(Self::digest(key), key);
        self.map.lock().remove(key).map(|kept| kept.value)
    }

    /// Removes a key if the condition holds for its value.
    pub fn remove_if(&self, key: &K, condition: impl FnOnce(&V) -> bool) {
        let mut map = self.map.lock();
        let deciding = self.flights.deciding(Self::digest(key), key);
        let goes = map.get(key).is_some_and(|kept| condition(&kept.value));
        deciding.done();
        let _old = if goes { map.remove(key) } else { None };
    }

    /// Makes the value of a key, if it has one, due to be loaded anew.
    pub fn make_due(&self, key: &K) {
        let mut map = self.map.lock();
        map.get_mut(key).into_iter().for_each(|kept| (kept.is_due, kept.is_put_off) = (true, false));
    }

    /// Removes all keys.
    pub fn clear(&self) {
        self.flights.invalidate_all();
        let _old = core::mem::take(&mut *self.map.lock());
    }

    /// Removes a key, not because its value is out of date.
    pub fn evict(&self, key: &K) {
        let _old = self.map.lock().remove(key);
    }

    /// The value, loaded if need be; recursion panics.
    pub fn get_or_insert_with(&self, key: &K, load: impl FnOnce() -> V) -> V {
        or_panic(self.try_get_or_insert_with(key, || Ok::<_, Infallible>(load())))
    }

    /// The value, loaded if need be.
    pub fn try_get_or_insert_with<E>(
        &self,
        key: &K,
        load: impl FnOnce() -> Result<V, E>,
    ) -> Result<V, LoadError<E>> {
        match self.look(key) {
            Ok(value) => Ok(value),
            Err(to_load) => {
                self.flights.load(self, (to_load, key.clone()), Terms::alone(), nothing_is_stale, load)
            }
        }
    }

    /// The value, loaded if absent, or if it is stale to this caller.
    pub fn try_get_or_insert_if<E>(
        &self,
        key: &K,
        load: impl FnOnce() -> Result<V, E>,
        mut is_stale: impl FnMut(&V) -> bool,
    ) -> Result<V, LoadError<E>> {
        match self.get(key).filter(|value| !is_stale(value)) {
            Some(value) => Ok(value),
            None => {
                let terms = Terms::alone();
                self.flights.load(self, (Self::lacking(key), key.clone()), terms, is_stale, load)
            }
        }
    }

    /// The same for tasks.
    pub async fn try_get_or_insert_async_if<E>(
        &self,
        key: &K,
        load: impl Future<Output = Result<V, E>>,
        mut is_stale: impl FnMut(&V) -> bool,
    ) -> Result<V, LoadError<E>> {
        match self.get(key).filter(|value| !is_stale(value)) {
            Some(value) => Ok(value),
            None => {
                self.flights
                    .load_async(self, (&mut Self::lacking(key), key), Terms::alone(), is_stale, load)
                    .await
            }
        }
    }

    /// The same; waiting callers get the loader's error.
    pub fn try_get_or_insert_shared_if<E: Any + Send + Sync>(
        &self,
        key: &K,
        load: impl FnOnce() -> Result<V, E>,
        mut is_stale: impl FnMut(&V) -> bool,
    ) -> Result<V, LoadError<Arc<E>>> {
        match self.get(key).filter(|value| !is_stale(value)) {
            Some(value) => Ok(value),
            None => {
                let (terms, load) = (Terms::shared(), || load().map_err(Arc::new));
                self.flights.load(self, (Self::lacking(key), key.clone()), terms, is_stale, load)
            }
        }
    }

    /// The same, waiting for another caller for at most the given time.
    pub fn try_get_or_insert_timeout<E>(
        &self,
        key: &K,
        most: Duration,
        load: impl FnOnce() -> Result<V, E>,
    ) -> Result<V, LoadError<E>> {
        let terms = Terms::alone().within(most);
        match self.get(key) {
            Some(value) => Ok(value),
            None => self.flights.load(self, (Self::lacking(key), key.clone()), terms, nothing_is_stale, load),
        }
    }

    /// The value, loaded if need be; waiting callers get the loader's error.
    pub fn try_get_or_insert_shared<E: Any + Send + Sync>(
        &self,
        key: &K,
        load: impl FnOnce() -> Result<V, E>,
    ) -> Result<V, LoadError<Arc<E>>> {
        match self.get(key) {
            Some(value) => Ok(value),
            None => {
                let (terms, load) = (Terms::shared(), || load().map_err(Arc::new));
                self.flights.load(self, (Self::lacking(key), key.clone()), terms, nothing_is_stale, load)
            }
        }
    }

    /// The value, loaded if need be.
    pub async fn try_get_or_insert_async<E>(
        &self,
        key: &K,
        load: impl Future<Output = Result<V, E>>,
    ) -> Result<V, LoadError<E>> {
        let load = pin!(load);
        match self.look(key) {
            Ok(value) => Ok(value),
            Err(mut to_load) => {
                self.flights
                    .load_async(self, (&mut to_load, key), Terms::alone(), nothing_is_stale, load)
                    .await
            }
        }
    }

    /// The value; or this caller gets the lead, and `load` says what it does with it: puts a value, or leaves the load to
    /// others.
    pub fn reserve(
        &self,
        key: &K,
        load: impl FnOnce() -> Option<V>,
    ) -> Result<Option<V>, LoadError<Infallible>> {
        if let Some(value) = self.get(key) {
            return Ok(Some(value));
        }
        let digest = Self::digest(key);
        match self.flights.reserve(self, digest, key, Terms::alone())? {
            Ok(value) => Ok(Some(value)),
            Err(flight) => {
                let held = Held::new(&flight);
                let loaded = load();
                drop(held);
                let keep =
                    |value| self.keep(digest, key.clone(), value, Landing::new(flight), nothing_is_stale).0;
                Ok(loaded.map(keep))
            }
        }
    }

    /// The value of a key; or the key is to be loaded, and if its value is due, by this caller.
    fn look(&self, key: &K) -> Result<V, ToLoad<'_, K, V>> {
        let kept = self.map.lock().get(key).cloned().ok_or(Self::lacking(key))?;
        let flight = kept.needs_refresh().then(|| self.flights.refresh(Self::digest(key), key)).flatten();
        match flight {
            Some(_) => Err(ToLoad { refreshing: flight, ..Self::lacking(key) }),
            None => Ok(kept.value),
        }
    }

    /// A missed key.
    fn lacking<'f>(key: &K) -> ToLoad<'f, K, V> {
        ToLoad { digest: Self::digest(key), refreshing: None }
    }

    /// The value, loaded if need be; waiting callers get the loader's error.
    pub async fn try_get_or_insert_shared_async<E: Any + Send + Sync>(
        &self,
        key: &K,
        load: impl Future<Output = Result<V, E>>,
    ) -> Result<V, LoadError<Arc<E>>> {
        match self.get(key) {
            Some(value) => Ok(value),
            None => {
                let (terms, load) = (Terms::shared(), async { load.await.map_err(Arc::new) });
                self.flights
                    .load_async(self, (&mut Self::lacking(key), key), terms, nothing_is_stale, load)
                    .await
            }
        }
    }

    /// The values of keys that the cache does not have, or whose values are due, each of which occurs once: loaded together.
    pub fn try_load_many<E, P: IntoIterator<Item = (K, V)>>(
        &self,
        keys: &[K],
        load: impl FnMut(Vec<K>) -> Result<P, E>,
    ) -> Result<Vec<Option<V>>, LoadError<E>> {
        let mut missed = self.missed(keys);
        self.flights.load_many(self, &mut missed, &Terms::alone(), load)?;
        Ok(missed.into_iter().map(|missed| missed.value).collect())
    }

    /// The same; waiting callers get the loader's error.
    pub fn try_load_many_shared<E: Any + Send + Sync, P: IntoIterator<Item = (K, V)>>(
        &self,
        keys: &[K],
        mut load: impl FnMut(Vec<K>) -> Result<P, E>,
    ) -> Result<Vec<Option<V>>, LoadError<Arc<E>>> {
        let mut missed = self.missed(keys);
        let load = |keys| load(keys).map_err(Arc::new);
        self.flights.load_many(self, &mut missed, &Terms::shared(), load)?;
        Ok(missed.into_iter().map(|missed| missed.value).collect())
    }

    /// The same for tasks.
    pub async fn try_load_many_async<E, P: IntoIterator<Item = (K, V)>, F>(
        &self,
        keys: &[K],
        mut load: impl FnMut(Vec<K>) -> F,
    ) -> Result<Vec<Option<V>>, LoadError<E>>
    where
        F: Future<Output = Result<P, E>>,
    {
        let mut missed = self.missed(keys);
        let load = |keys| (load(keys), ());
        self.flights.load_many_async(self, &mut missed, &Terms::alone(), load, |(), loaded| loaded).await?;
        Ok(missed.into_iter().map(|missed| missed.value).collect())
    }

    fn missed<'k>(&self, keys: &'k [K]) -> Vec<Missed<'k, K, V>> {
        let due =
            |key| self.map.lock().get(key).filter(|kept| kept.needs_refresh()).map(|kept| kept.value.clone());
        keys.iter().map(|key| Missed { digest: Self::digest(key), key, value: due(key) }).collect()
    }

    /// Makes the cache keep nothing that is loaded from now on.
    pub fn refuse(&self) {
        *self.refuses.lock() = true;
    }

    /// How many callers wait for a load of this key that may be kept.
    pub fn followers(&self, key: &K) -> usize {
        self.flights.followers(Self::digest(key), key)
    }

    /// How many keys are being loaded.
    pub fn loads(&self) -> usize {
        self.flights.len()
    }
}

impl<K: Hash + Eq + Clone, V: Clone> Table<K, V> for LoadOnce<K, V> {
    fn digest_of(&self, key: &K) -> Digest {
        Self::digest(key)
    }

    fn look_up(&self, _: Digest, key: &K) -> Option<V> {
        self.get(key)
    }

    fn look_up_fresh(&self, _: Digest, key: &K) -> Option<V> {
        self.map.lock().get(key).filter(|kept| !kept.needs_refresh()).map(|kept| kept.value.clone())
    }

    fn put_off(&self, _: Digest, key: &K) {
        self.map.lock().get_mut(key).into_iter().for_each(|kept| kept.is_put_off = true);
    }

    fn keep(
        &self,
        _: Digest,
        key: K,
        value: V,
        mut landing: Landing<'_, K, V>,
        mut is_stale: impl FnMut(&V) -> bool,
    ) -> (V, bool) {
        let refuses = *self.refuses.lock();
        let mut map = self.map.lock();
        // Under the lock, which no real cache does.
        let mut goes = |kept: &Kept<V>| match landing.replaces() {
            true => is_stale(&kept.value),
            false => landing.refreshes() && kept.is_due,
        };
        let may_keep = !refuses && map.get(&key).is_none_or(&mut goes);
        let mut is_put = false;
        if may_keep && landing.may_put() {
            map.insert(key, Kept::fresh(value.clone()));
            landing.has_put();
            is_put = true;
        }
        drop(map);
        landing.land(&value);
        (value, is_put)
    }
}
