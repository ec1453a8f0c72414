//! [`AnyMap`] for `HashMap`: pins for each operation, and clones what it returns.

use core::fmt::Debug;
use core::hash::{BuildHasher, Hash};

use koel::{CapacityError, Compute, Full, HashMap, Occupied, Operation, Pinned, Stats};

use super::any_map::own;
use super::config::try_build;
use super::{AnyMap, Config, Room};

fn cloned<K: Clone, V: Clone>((key, value): (&K, &V)) -> (K, V) {
    (key.clone(), value.clone())
}

fn owned<V: Clone>(Occupied { current, not_inserted }: Occupied<&V, V>) -> Occupied<V, V> {
    Occupied { current: current.clone(), not_inserted }
}

fn computed<K: Clone, V: Clone, T>(done: Compute<&K, &V, T>) -> Compute<K, V, T> {
    match done {
        Compute::Inserted(key, value) => Compute::Inserted(key.clone(), value.clone()),
        Compute::Updated { old, new } => Compute::Updated { old: cloned(old), new: cloned(new) },
        Compute::Removed(key, value) => Compute::Removed(key.clone(), value.clone()),
        Compute::Aborted(result) => Compute::Aborted(result),
    }
}

impl<K, V, S> AnyMap for HashMap<K, V, S>
where
    K: Clone + Eq + Hash + Debug + Send + Sync,
    V: Clone + Debug + Send + Sync,
    S: BuildHasher + Clone + Send + Sync,
{
    type Key = K;
    type Value = V;
    type Hasher = S;
    type Hold<'m>
        = Pinned<'m, K, V, S>
    where
        Self: 'm;

    const NAME: &'static str = "HashMap";

    fn try_build(config: Config, hasher: S) -> Result<Self, CapacityError> {
        try_build!(HashMap, config, hasher)
    }

    fn hold(&self) -> Pinned<'_, K, V, S> {
        self.pin()
    }

    own! {
        fn len(&self) -> usize;
        fn is_empty(&self) -> bool;
        fn capacity(&self) -> usize;
        fn memory_usage(&self) -> usize;
        fn stats(&self) -> Stats;
        fn retain(&self, keep: impl FnMut(&K, &V) -> bool);
        fn clear(&self);
        fn reserve(&self, additional: usize);
        fn try_reserve(&self, additional: usize) -> Result<(), CapacityError>;
        fn shrink_to_fit(&self);
        fn flush(&self);
        fn extend(&self, pairs: Vec<(K, V)>);
    }

    fn get(&self, key: &K) -> Option<V> {
        self.pin().get(key).cloned()
    }

    fn get_key_value(&self, key: &K) -> Option<(K, V)> {
        self.pin().get_key_value(key).map(cloned)
    }

    fn contains_key(&self, key: &K) -> bool {
        self.pin().contains_key(key)
    }

    fn may_contain(&self, key: &K) -> bool {
        self.pin().may_contain(key)
    }

    fn get_many(&self, keys: &[K]) -> Vec<Option<V>> {
        let pin = self.pin();
        let mut values = vec![None; keys.len()];
        pin.get_many(keys, &mut values);
        values.into_iter().map(|value| value.cloned()).collect()
    }

    fn contains_many(&self, keys: &[K]) -> Vec<bool> {
        let mut answers = vec![false; keys.len()];
        self.pin().contains_many(keys, &mut answers);
        answers
    }

    fn get_many_ref(&self, keys: &[&K]) -> Option<Vec<Option<V>>> {
        let pin = self.pin_owned();
        let mut values = vec![None; keys.len()];
        pin.get_many_ref(keys, &mut values);
        Some(values.into_iter().map(|value| value.cloned()).collect())
    }

    fn contains_many_ref(&self, keys: &[&K]) -> Option<Vec<bool>> {
        let mut answers = vec![false; keys.len()];
        self.pin_owned().contains_many_ref(keys, &mut answers);
        Some(answers)
    }

    fn insert(&self, key: K, value: V) -> Option<V> {
        self.pin().insert(key, value).cloned()
    }

    fn checked_insert(&self, key: K, value: V) -> Result<Option<V>, Full<K, V>> {
        self.pin().checked_insert(key, value).map(|old| old.cloned())
    }

    fn checked_try_insert(&self, key: K, value: V) -> Result<Result<V, Occupied<V, V>>, Full<K, V>> {
        self.pin().checked_try_insert(key, value).map(|done| done.cloned().map_err(owned))
    }

    fn checked_get_or_insert_with(&self, key: K, make: impl FnOnce() -> V) -> Result<V, Full<K, V>> {
        self.pin().checked_get_or_insert_with(key, make).cloned()
    }

    fn checked_update_or_insert(
        &self,
        key: K,
        update: impl FnOnce(V) -> V,
        value: V,
    ) -> Result<V, Full<K, V>> {
        self.pin().checked_update_or_insert(key, |value| update(value.clone()), value).cloned()
    }

    fn checked_compute<T>(
        &self,
        key: K,
        f: impl FnOnce(Option<V>) -> Operation<V, T>,
    ) -> Result<Compute<K, V, T>, Full<K, V>> {
        self.pin().checked_compute(key, |entry| f(entry.map(|(_, value)| value.clone()))).map(computed)
    }

    fn try_insert(&self, key: K, value: V) -> Result<V, Occupied<V, V>> {
        self.pin().try_insert(key, value).cloned().map_err(owned)
    }

    fn try_insert_with(&self, key: K, make: impl FnOnce() -> V) -> Result<V, V> {
        self.pin().try_insert_with(key, make).cloned().map_err(V::clone)
    }

    fn remove(&self, key: &K) -> Option<V> {
        self.pin().remove(key).cloned()
    }

    fn remove_entry(&self, key: &K) -> Option<(K, V)> {
        self.pin().remove_entry(key).map(cloned)
    }

    fn remove_if(&self, key: &K, condition: impl FnOnce(&K, &V) -> bool) -> Result<Option<(K, V)>, (K, V)> {
        self.pin().remove_if(key, condition).map(|old| old.map(cloned)).map_err(cloned)
    }

    fn get_or_insert(&self, key: K, value: V) -> V {
        self.pin().get_or_insert(key, value).clone()
    }

    fn get_or_insert_default(&self, key: K) -> V
    where
        V: Default,
    {
        self.pin().get_or_insert_default(key).clone()
    }

    fn get_or_insert_with_ref(&self, key: &K, make: impl FnOnce() -> V) -> V {
        self.pin().get_or_insert_with_ref(key, make).clone()
    }

    fn try_get_or_insert_with<E>(&self, key: K, make: impl FnOnce() -> Result<V, E>) -> Result<V, E> {
        self.pin().try_get_or_insert_with(key, make).cloned()
    }

    fn get_or_insert_with(&self, key: K, make: impl FnOnce() -> V) -> V {
        self.pin().get_or_insert_with(key, make).clone()
    }

    fn update(&self, key: K, update: impl FnOnce(V) -> V) -> Option<V> {
        self.pin().update(key, |value| update(value.clone())).cloned()
    }

    fn update_or_insert(&self, key: K, update: impl FnOnce(V) -> V, value: V) -> V {
        self.pin().update_or_insert(key, |value| update(value.clone()), value).clone()
    }

    fn update_or_insert_with(&self, key: K, update: impl FnOnce(V) -> V, make: impl FnOnce() -> V) -> V {
        self.pin().update_or_insert_with(key, |value| update(value.clone()), make).clone()
    }

    fn compute<T>(&self, key: K, f: impl FnOnce(Option<V>) -> Operation<V, T>) -> Compute<K, V, T> {
        computed(self.pin().compute(key, |entry| f(entry.map(|(_, value)| value.clone()))))
    }

    fn drain(&self, entries: usize) -> Vec<(K, V)> {
        self.pin().drain().take(entries).map(cloned).collect()
    }

    fn walk(&self, entries: usize, mut f: impl FnMut(K, V)) {
        for (key, value) in self.pin().iter().take(entries) {
            f(key.clone(), value.clone());
        }
    }

    fn keys(&self) -> Vec<K> {
        self.pin().keys().cloned().collect()
    }

    fn values(&self) -> Vec<V> {
        self.pin().values().cloned().collect()
    }

    fn into_entries(self) -> Vec<(K, V)> {
        self.into_iter().collect()
    }

    fn extend_alone(&mut self, pairs: impl IntoIterator<Item = (K, V)>) {
        Extend::extend(self, pairs);
    }

    fn duplicate(&self) -> Self {
        self.clone()
    }
}
