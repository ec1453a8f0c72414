//! [`AnyMap`] for `InlineMap`: the methods themselves.

use core::fmt::Debug;
use core::hash::{BuildHasher, Hash};

use bytemuck::Pod;
use koel::{CapacityError, Compute, Full, InlineMap, Occupied, Operation, Stats};

use super::any_map::own;
use super::config::try_build;
use super::{AnyMap, Config, Room};

impl<K, V, S> AnyMap for InlineMap<K, V, S>
where
    K: Pod + Eq + Hash + Debug + Send + Sync,
    V: Pod + Debug + Send + Sync,
    S: BuildHasher + Clone + Send + Sync,
{
    type Key = K;
    type Value = V;
    type Hasher = S;
    type Hold<'m>
        = ()
    where
        Self: 'm;

    const NAME: &'static str = "InlineMap";

    fn try_build(config: Config, hasher: S) -> Result<Self, CapacityError> {
        try_build!(InlineMap, config, hasher)
    }

    fn hold(&self) {}

    own! {
        fn len(&self) -> usize;
        fn is_empty(&self) -> bool;
        fn capacity(&self) -> usize;
        fn memory_usage(&self) -> usize;
        fn stats(&self) -> Stats;
        fn get(&self, key: &K) -> Option<V>;
        fn get_key_value(&self, key: &K) -> Option<(K, V)>;
        fn contains_key(&self, key: &K) -> bool;
        fn may_contain(&self, key: &K) -> bool;
        fn insert(&self, key: K, value: V) -> Option<V>;
        fn checked_insert(&self, key: K, value: V) -> Result<Option<V>, Full<K, V>>;
        fn checked_try_insert(&self, key: K, value: V) -> Result<Result<V, Occupied<V, V>>, Full<K, V>>;
        fn checked_get_or_insert_with(&self, key: K, make: impl FnOnce() -> V) -> Result<V, Full<K, V>>;
        fn checked_update_or_insert(&self, key: K, update: impl FnOnce(V) -> V, value: V) -> Result<V, Full<K, V>>;
        fn try_insert(&self, key: K, value: V) -> Result<V, Occupied<V, V>>;
        fn try_insert_with(&self, key: K, make: impl FnOnce() -> V) -> Result<V, V>;
        fn remove(&self, key: &K) -> Option<V>;
        fn remove_entry(&self, key: &K) -> Option<(K, V)>;
        fn remove_if(&self, key: &K, condition: impl FnOnce(&K, &V) -> bool) -> Result<Option<(K, V)>, (K, V)>;
        fn get_or_insert(&self, key: K, value: V) -> V;
        fn get_or_insert_with(&self, key: K, make: impl FnOnce() -> V) -> V;
        fn update(&self, key: K, update: impl FnOnce(V) -> V) -> Option<V>;
        fn update_or_insert(&self, key: K, update: impl FnOnce(V) -> V, value: V) -> V;
        fn update_or_insert_with(&self, key: K, update: impl FnOnce(V) -> V, make: impl FnOnce() -> V) -> V;
        fn retain(&self, keep: impl FnMut(&K, &V) -> bool);
        fn clear(&self);
        fn reserve(&self, additional: usize);
        fn try_reserve(&self, additional: usize) -> Result<(), CapacityError>;
        fn shrink_to_fit(&self);
        fn extend(&self, pairs: Vec<(K, V)>);
    }

    fn get_many(&self, keys: &[K]) -> Vec<Option<V>> {
        let mut values = vec![None; keys.len()];
        self.get_many(keys, &mut values);
        values
    }

    fn contains_many(&self, keys: &[K]) -> Vec<bool> {
        let mut answers = vec![false; keys.len()];
        self.contains_many(keys, &mut answers);
        answers
    }

    fn get_many_ref(&self, _keys: &[&K]) -> Option<Vec<Option<V>>> {
        None
    }

    fn contains_many_ref(&self, _keys: &[&K]) -> Option<Vec<bool>> {
        None
    }

    fn get_or_insert_default(&self, key: K) -> V
    where
        V: Default,
    {
        self.get_or_insert_default(key)
    }

    fn get_or_insert_with_ref(&self, key: &K, make: impl FnOnce() -> V) -> V {
        self.get_or_insert_with(*key, make)
    }

    fn try_get_or_insert_with<E>(&self, key: K, make: impl FnOnce() -> Result<V, E>) -> Result<V, E> {
        self.try_get_or_insert_with(key, make)
    }

    fn checked_compute<T>(
        &self,
        key: K,
        f: impl FnOnce(Option<V>) -> Operation<V, T>,
    ) -> Result<Compute<K, V, T>, Full<K, V>> {
        self.checked_compute(key, f)
    }

    fn compute<T>(&self, key: K, f: impl FnOnce(Option<V>) -> Operation<V, T>) -> Compute<K, V, T> {
        self.compute(key, f)
    }

    fn drain(&self, entries: usize) -> Vec<(K, V)> {
        self.drain().take(entries).collect()
    }

    fn walk(&self, entries: usize, mut f: impl FnMut(K, V)) {
        for (key, value) in self.iter().take(entries) {
            f(key, value);
        }
    }

    fn keys(&self) -> Vec<K> {
        self.keys().collect()
    }

    fn values(&self) -> Vec<V> {
        self.values().collect()
    }

    fn into_entries(self) -> Vec<(K, V)> {
        self.into_iter().collect()
    }

    fn flush(&self) {}

    fn extend_alone(&mut self, pairs: impl IntoIterator<Item = (K, V)>) {
        Extend::extend(self, pairs);
    }

    fn duplicate(&self) -> Self {
        self.clone()
    }
}
