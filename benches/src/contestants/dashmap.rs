//! dashmap::DashMap.

use std::hash::Hash;

use dashmap::DashMap;

use super::{Contestant, Hasher, TextContestant, TextView, View, hasher, total};

/// Sharded, a read-write lock for each shard.
#[derive(Debug)]
pub struct Dashmap<K, V>(DashMap<K, V, Hasher>)
where
    K: Eq + Hash;

impl Contestant for Dashmap<u64, u64> {
    const NAME: &'static str = "dashmap";
    type View<'m> = &'m Self;

    fn with_capacity(capacity: usize) -> Self {
        Dashmap(DashMap::with_capacity_and_hasher(capacity, hasher()))
    }

    fn view(&self) -> &Self {
        self
    }

    fn extend(&mut self, pairs: impl Iterator<Item = (u64, u64)>) {
        self.0.extend(pairs);
    }

    fn entries(&self) -> usize {
        self.0.len()
    }

    fn sum(&self) -> u64 {
        total(self.0.iter().map(|entry| (*entry.key(), *entry.value())))
    }

    fn duplicate(&self) -> Self {
        Dashmap(self.0.clone())
    }

    fn retain(&self, keep: impl Fn(u64) -> bool) {
        self.0.retain(|key, _| keep(*key));
    }

    fn clear(&self) {
        self.0.clear();
    }
}

impl View for &Dashmap<u64, u64> {
    #[inline]
    fn get(&self, key: u64) -> Option<u64> {
        self.0.get(&key).map(|entry| *entry)
    }

    #[inline]
    fn insert(&self, key: u64, value: u64) -> Option<u64> {
        self.0.insert(key, value)
    }

    #[inline]
    fn remove(&self, key: u64) -> Option<u64> {
        self.0.remove(&key).map(|(_, value)| value)
    }

    #[inline]
    fn update(&self, key: u64) -> Option<u64> {
        let mut entry = self.0.get_mut(&key)?;
        *entry += 1;
        Some(*entry)
    }
}

impl TextContestant for Dashmap<String, String> {
    const NAME: &'static str = "dashmap";
    type View<'m> = &'m Self;

    fn with_capacity(capacity: usize) -> Self {
        Dashmap(DashMap::with_capacity_and_hasher(capacity, hasher()))
    }

    fn insert_text(&self, key: String, value: String) -> bool {
        self.0.insert(key, value).is_none()
    }

    fn view(&self) -> &Self {
        self
    }
}

impl TextView for &Dashmap<String, String> {
    #[inline]
    fn read<R>(&self, key: &str, read: impl FnOnce(&str) -> R) -> Option<R> {
        self.0.get(key).map(|entry| read(&entry))
    }
}
