//! The smallest cache that loads once: what the tests and the models run the flights with.
//!
//! It does what a cache has to do, and shows it: a map behind one lock, and no bound.

use core::any::Any;
use core::convert::Infallible;
use core::future::Future;
use core::hash::{BuildHasher, BuildHasherDefault, Hash};
use std::collections::HashMap;
use std::collections::hash_map::{DefaultHasher, Entry};
use std::sync::Arc;
use std::time::Duration;

use super::{Flights, Landing, LoadError, Missed, Table, Terms, or_panic};
use crate::hash::Digest;
use crate::sync::Mutex;

type Hasher = BuildHasherDefault<DefaultHasher>;

/// A cache without a bound.
#[derive(Debug)]
pub struct LoadOnce<K, V> {
    flights: Flights<K, V>,
    map: Mutex<HashMap<K, V, Hasher>>,
    /// It keeps nothing any more that is loaded, as if it were too heavy.
    refuses: Mutex<bool>,
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
        self.map.lock().get(key).cloned()
    }

    /// Sets the value of a key.
    pub fn insert(&self, key: K, value: V) {
        self.flights.invalidate(Self::digest(&key), &key);
        let _old = self.map.lock().insert(key, value);
    }

    /// Removes a key, and hands its value out.
    pub fn remove(&self, key: &K) -> Option<V> {
        self.flights.invalidate(Self::digest(key), key);
        self.map.lock().remove(key)
    }

    /// Removes all keys.
    pub fn clear(&self) {
        self.flights.invalidate_all();
        let _old = core::mem::take(&mut *self.map.lock());
    }

    /// Removes a key, but not because it is out of date.
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
        match self.get(key) {
            Some(value) => Ok(value),
            None => self.flights.load(self, Self::digest(key), key.clone(), Terms::alone(), load),
        }
    }

    /// The same, waiting for another caller for so long at most.
    pub fn try_get_or_insert_timeout<E>(
        &self,
        key: &K,
        most: Duration,
        load: impl FnOnce() -> Result<V, E>,
    ) -> Result<V, LoadError<E>> {
        let terms = Terms::alone().within(most);
        match self.get(key) {
            Some(value) => Ok(value),
            None => self.flights.load(self, Self::digest(key), key.clone(), terms, load),
        }
    }

    /// The value, loaded if need be; who waits gets the loader's error.
    pub fn try_get_or_insert_shared<E: Any + Send + Sync>(
        &self,
        key: &K,
        load: impl FnOnce() -> Result<V, E>,
    ) -> Result<V, LoadError<Arc<E>>> {
        match self.get(key) {
            Some(value) => Ok(value),
            None => {
                let load = || load().map_err(Arc::new);
                self.flights.load(self, Self::digest(key), key.clone(), Terms::shared(), load)
            }
        }
    }

    /// The value, loaded if need be.
    pub async fn try_get_or_insert_async<E>(
        &self,
        key: &K,
        load: impl Future<Output = Result<V, E>>,
    ) -> Result<V, LoadError<E>> {
        match self.get(key) {
            Some(value) => Ok(value),
            None => self.flights.load_async(self, Self::digest(key), key, Terms::alone(), load).await,
        }
    }

    /// The value, loaded if need be; who waits gets the loader's error.
    pub async fn try_get_or_insert_shared_async<E: Any + Send + Sync>(
        &self,
        key: &K,
        load: impl Future<Output = Result<V, E>>,
    ) -> Result<V, LoadError<Arc<E>>> {
        match self.get(key) {
            Some(value) => Ok(value),
            None => {
                let load = async { load.await.map_err(Arc::new) };
                self.flights.load_async(self, Self::digest(key), key, Terms::shared(), load).await
            }
        }
    }

    /// The values of keys that it does not have, each of which comes once: loaded together.
    pub fn try_load_many<E, P: IntoIterator<Item = (K, V)>>(
        &self,
        keys: &[K],
        load: impl FnMut(Vec<K>) -> Result<P, E>,
    ) -> Result<Vec<Option<V>>, LoadError<E>> {
        let mut missed = Self::missed(keys);
        self.flights.load_many(self, &mut missed, load)?;
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
        let mut missed = Self::missed(keys);
        let load = |keys| (load(keys), ());
        self.flights.load_many_async(self, &mut missed, load, |(), loaded| loaded).await?;
        Ok(missed.into_iter().map(|missed| missed.value).collect())
    }

    fn missed(keys: &[K]) -> Vec<Missed<'_, K, V>> {
        keys.iter().map(|key| Missed { digest: Self::digest(key), key, value: None }).collect()
    }

    /// Does not keep what is loaded from now on.
    pub fn refuse(&self) {
        *self.refuses.lock() = true;
    }

    /// How many wait for a key that may be kept.
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

    fn keep(&self, _: Digest, key: K, value: V, landing: Landing<'_, K, V>) -> V {
        let refuses = *self.refuses.lock();
        let mut map = self.map.lock();
        if !refuses {
            if let Entry::Vacant(place) = map.entry(key) {
                if !landing.is_stale_at_close() {
                    place.insert(value.clone());
                }
            }
        }
        drop(map);
        landing.land(&value);
        value
    }
}
