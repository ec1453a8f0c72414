//! koel::HashMap, pinned for each operation or for several.

use std::hash::Hash;

use koel::{HashMap, Pinned};

use super::{BATCH, Contestant, Hasher, TextContestant, TextView, View, hasher, total};

/// One pin per operation: the usual use.
#[derive(Debug)]
pub struct Koel<K, V>(HashMap<K, V, Hasher>)
where
    K: Eq + Hash;

/// One pin per batch of operations.
#[derive(Debug)]
pub struct KoelHeld<K, V>(HashMap<K, V, Hasher>)
where
    K: Eq + Hash;

fn made_for<K: Eq + Hash, V>(capacity: usize) -> HashMap<K, V, Hasher> {
    HashMap::builder().capacity(capacity).hasher(hasher()).build()
}

impl Contestant for Koel<u64, u64> {
    const NAME: &'static str = "koel";
    type View<'m> = &'m Self;

    fn with_capacity(capacity: usize) -> Self {
        Koel(made_for(capacity))
    }

    fn view(&self) -> &Self {
        self
    }

    fn extend(&mut self, pairs: impl Iterator<Item = (u64, u64)>) {
        // Not the map's own `extend`, which lets other threads use the map meanwhile.
        Extend::extend(&mut self.0, pairs);
    }

    fn entries(&self) -> usize {
        self.0.len()
    }

    fn sum(&self) -> u64 {
        total(self.0.pin().iter().map(|(key, value)| (*key, *value)))
    }

    fn duplicate(&self) -> Self {
        Koel(self.0.clone())
    }

    fn retain(&self, keep: impl Fn(u64) -> bool) {
        self.0.retain(|key, _| keep(*key));
    }

    fn clear(&self) {
        self.0.clear();
    }

    fn own_memory_usage(&self) -> Option<usize> {
        Some(self.0.memory_usage())
    }
}

impl Contestant for KoelHeld<u64, u64> {
    const NAME: &'static str = "koel (held pin)";
    type View<'m> = Pinned<'m, u64, u64, Hasher>;

    fn with_capacity(capacity: usize) -> Self {
        KoelHeld(made_for(capacity))
    }

    fn view(&self) -> Self::View<'_> {
        self.0.pin()
    }

    fn extend(&mut self, pairs: impl Iterator<Item = (u64, u64)>) {
        // Not the map's own `extend`, which lets other threads use the map meanwhile.
        Extend::extend(&mut self.0, pairs);
    }

    fn entries(&self) -> usize {
        self.0.len()
    }

    fn sum(&self) -> u64 {
        total(self.0.pin().iter().map(|(key, value)| (*key, *value)))
    }

    fn duplicate(&self) -> Self {
        KoelHeld(self.0.clone())
    }

    fn retain(&self, keep: impl Fn(u64) -> bool) {
        self.0.retain(|key, _| keep(*key));
    }

    fn clear(&self) {
        self.0.clear();
    }

    fn own_memory_usage(&self) -> Option<usize> {
        Some(self.0.memory_usage())
    }
}

impl View for &Koel<u64, u64> {
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

impl View for Pinned<'_, u64, u64, Hasher> {
    #[inline]
    fn get(&self, key: u64) -> Option<u64> {
        Pinned::get(self, &key).copied()
    }

    #[inline]
    fn insert(&self, key: u64, value: u64) -> Option<u64> {
        Pinned::insert(self, key, value).copied()
    }

    #[inline]
    fn remove(&self, key: u64) -> Option<u64> {
        Pinned::remove(self, &key).copied()
    }

    #[inline]
    fn update(&self, key: u64) -> Option<u64> {
        Pinned::update(self, key, |value| value + 1).copied()
    }

    #[inline]
    fn get_many(&self, keys: &[u64], mut each: impl FnMut(u64, Option<u64>)) {
        let mut out = [None; BATCH];
        let out = &mut out[..keys.len()];
        Pinned::get_many(self, keys, out);
        for (&key, found) in keys.iter().zip(out) {
            each(key, found.copied());
        }
    }
}

impl TextContestant for Koel<String, String> {
    const NAME: &'static str = "koel";
    type View<'m> = &'m Self;

    fn with_capacity(capacity: usize) -> Self {
        Koel(made_for(capacity))
    }

    fn insert_text(&self, key: String, value: String) -> bool {
        self.0.pin().insert(key, value).is_none()
    }

    fn view(&self) -> &Self {
        self
    }
}

impl TextContestant for KoelHeld<String, String> {
    const NAME: &'static str = "koel (held pin)";
    type View<'m> = Pinned<'m, String, String, Hasher>;

    fn with_capacity(capacity: usize) -> Self {
        KoelHeld(made_for(capacity))
    }

    fn insert_text(&self, key: String, value: String) -> bool {
        self.0.pin().insert(key, value).is_none()
    }

    fn view(&self) -> Self::View<'_> {
        self.0.pin()
    }
}

impl TextView for &Koel<String, String> {
    #[inline]
    fn read<R>(&self, key: &str, read: impl FnOnce(&str) -> R) -> Option<R> {
        self.0.pin().read(key, read)
    }
}

impl TextView for Pinned<'_, String, String, Hasher> {
    #[inline]
    fn read<R>(&self, key: &str, read: impl FnOnce(&str) -> R) -> Option<R> {
        self.get(key).map(|value| read(value))
    }
}
