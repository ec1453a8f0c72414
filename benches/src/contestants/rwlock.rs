//! hashbrown::HashMap behind one parking_lot::RwLock.

use std::hash::Hash;

use hashbrown::HashMap;
use parking_lot::RwLock;

use super::{Contestant, Hasher, TextContestant, TextView, View, hasher, total};

/// One lock around a map that is not concurrent.
#[derive(Debug)]
pub struct RwLockHashbrown<K, V>(RwLock<HashMap<K, V, Hasher>>)
where
    K: Eq + Hash;

impl Contestant for RwLockHashbrown<u64, u64> {
    const NAME: &'static str = "RwLock<hashbrown>";
    type View<'m> = &'m Self;

    fn with_capacity(capacity: usize) -> Self {
        RwLockHashbrown(RwLock::new(HashMap::with_capacity_and_hasher(capacity, hasher())))
    }

    fn view(&self) -> &Self {
        self
    }

    fn extend(&mut self, pairs: impl Iterator<Item = (u64, u64)>) {
        self.0.write().extend(pairs);
    }

    fn entries(&self) -> usize {
        self.0.read().len()
    }

    fn sum(&self) -> u64 {
        total(self.0.read().iter().map(|(key, value)| (*key, *value)))
    }

    fn duplicate(&self) -> Self {
        RwLockHashbrown(RwLock::new(self.0.read().clone()))
    }

    fn retain(&self, keep: impl Fn(u64) -> bool) {
        self.0.write().retain(|key, _| keep(*key));
    }

    fn clear(&self) {
        self.0.write().clear();
    }
}

impl View for &RwLockHashbrown<u64, u64> {
    #[inline]
    fn get(&self, key: u64) -> Option<u64> {
        self.0.read().get(&key).copied()
    }

    #[inline]
    fn insert(&self, key: u64, value: u64) -> Option<u64> {
        self.0.write().insert(key, value)
    }

    #[inline]
    fn remove(&self, key: u64) -> Option<u64> {
        self.0.write().remove(&key)
    }

    #[inline]
    fn update(&self, key: u64) -> Option<u64> {
        let mut map = self.0.write();
        let value = map.get_mut(&key)?;
        *value += 1;
        Some(*value)
    }

    #[inline]
    fn get_many(&self, keys: &[u64], mut each: impl FnMut(u64, Option<u64>)) {
        let map = self.0.read();
        for &key in keys {
            each(key, map.get(&key).copied());
        }
    }
}

impl TextContestant for RwLockHashbrown<String, String> {
    const NAME: &'static str = "RwLock<hashbrown>";
    type View<'m> = &'m Self;

    fn with_capacity(capacity: usize) -> Self {
        RwLockHashbrown(RwLock::new(HashMap::with_capacity_and_hasher(capacity, hasher())))
    }

    fn insert_text(&self, key: String, value: String) -> bool {
        self.0.write().insert(key, value).is_none()
    }

    fn view(&self) -> &Self {
        self
    }
}

impl TextView for &RwLockHashbrown<String, String> {
    #[inline]
    fn read<R>(&self, key: &str, read: impl FnOnce(&str) -> R) -> Option<R> {
        self.0.read().get(key).map(|value| read(value))
    }
}
