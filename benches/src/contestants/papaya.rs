//! papaya::HashMap, pinned for each operation or for several.

use std::hash::Hash;

use papaya::{HashMap, HashMapRef, LocalGuard};

use super::{Contestant, Hasher, TextContestant, TextView, View, hasher, total};

type Pinned<'m, K, V> = HashMapRef<'m, K, V, Hasher, LocalGuard<'m>>;

/// One pin per operation: the usual use.
#[derive(Debug)]
pub struct Papaya<K, V>(HashMap<K, V, Hasher>)
where
    K: Eq + Hash;

/// One pin per batch of operations.
#[derive(Debug)]
pub struct PapayaHeld<K, V>(HashMap<K, V, Hasher>)
where
    K: Eq + Hash;

impl Contestant for Papaya<u64, u64> {
    const NAME: &'static str = "papaya";
    type View<'m> = &'m Self;

    fn with_capacity(capacity: usize) -> Self {
        Papaya(HashMap::with_capacity_and_hasher(capacity, hasher()))
    }

    fn view(&self) -> &Self {
        self
    }

    fn extend(&mut self, pairs: impl Iterator<Item = (u64, u64)>) {
        (&self.0).extend(pairs);
    }

    fn entries(&self) -> usize {
        self.0.len()
    }

    fn sum(&self) -> u64 {
        total(self.0.pin().iter().map(|(key, value)| (*key, *value)))
    }

    fn duplicate(&self) -> Self {
        Papaya(self.0.clone())
    }

    fn retain(&self, keep: impl Fn(u64) -> bool) {
        self.0.pin().retain(|key, _| keep(*key));
    }

    fn clear(&self) {
        self.0.pin().clear();
    }
}

impl Contestant for PapayaHeld<u64, u64> {
    const NAME: &'static str = "papaya (held pin)";
    type View<'m> = Pinned<'m, u64, u64>;

    fn with_capacity(capacity: usize) -> Self {
        PapayaHeld(HashMap::with_capacity_and_hasher(capacity, hasher()))
    }

    fn view(&self) -> Self::View<'_> {
        self.0.pin()
    }

    fn extend(&mut self, pairs: impl Iterator<Item = (u64, u64)>) {
        (&self.0).extend(pairs);
    }

    fn entries(&self) -> usize {
        self.0.len()
    }

    fn sum(&self) -> u64 {
        total(self.0.pin().iter().map(|(key, value)| (*key, *value)))
    }

    fn duplicate(&self) -> Self {
        PapayaHeld(self.0.clone())
    }

    fn retain(&self, keep: impl Fn(u64) -> bool) {
        self.0.pin().retain(|key, _| keep(*key));
    }

    fn clear(&self) {
        self.0.pin().clear();
    }
}

impl View for &Papaya<u64, u64> {
    #[inline]
    fn get(&self, key: u64) -> Option<u64> {
        View::get(&self.0.pin(), key)
    }

    #[inline]
    fn insert(&self, key: u64, value: u64) -> Option<u64> {
        View::insert(&self.0.pin(), key, value)
    }

    #[inline]
    fn remove(&self, key: u64) -> Option<u64> {
        View::remove(&self.0.pin(), key)
    }

    #[inline]
    fn update(&self, key: u64) -> Option<u64> {
        View::update(&self.0.pin(), key)
    }

    #[inline]
    fn get_many(&self, keys: &[u64], each: impl FnMut(u64, Option<u64>)) {
        View::get_many(&self.0.pin(), keys, each);
    }
}

impl View for Pinned<'_, u64, u64> {
    #[inline]
    fn get(&self, key: u64) -> Option<u64> {
        HashMapRef::get(self, &key).copied()
    }

    #[inline]
    fn insert(&self, key: u64, value: u64) -> Option<u64> {
        HashMapRef::insert(self, key, value).copied()
    }

    #[inline]
    fn remove(&self, key: u64) -> Option<u64> {
        HashMapRef::remove(self, &key).copied()
    }

    #[inline]
    fn update(&self, key: u64) -> Option<u64> {
        HashMapRef::update(self, key, |value| value + 1).copied()
    }
}

impl TextContestant for Papaya<String, String> {
    const NAME: &'static str = "papaya";
    type View<'m> = &'m Self;

    fn with_capacity(capacity: usize) -> Self {
        Papaya(HashMap::with_capacity_and_hasher(capacity, hasher()))
    }

    fn insert_text(&self, key: String, value: String) -> bool {
        self.0.pin().insert(key, value).is_none()
    }

    fn view(&self) -> &Self {
        self
    }
}

impl TextContestant for PapayaHeld<String, String> {
    const NAME: &'static str = "papaya (held pin)";
    type View<'m> = Pinned<'m, String, String>;

    fn with_capacity(capacity: usize) -> Self {
        PapayaHeld(HashMap::with_capacity_and_hasher(capacity, hasher()))
    }

    fn insert_text(&self, key: String, value: String) -> bool {
        self.0.pin().insert(key, value).is_none()
    }

    fn view(&self) -> Self::View<'_> {
        self.0.pin()
    }
}

impl TextView for &Papaya<String, String> {
    #[inline]
    fn read<R>(&self, key: &str, read: impl FnOnce(&str) -> R) -> Option<R> {
        self.0.pin().read(key, read)
    }
}

impl TextView for Pinned<'_, String, String> {
    #[inline]
    fn read<R>(&self, key: &str, read: impl FnOnce(&str) -> R) -> Option<R> {
        self.get(key).map(|value| read(value))
    }
}
