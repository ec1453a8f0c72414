//! scc::HashMap.

use std::hash::Hash;

use scc::HashMap;

use super::{Contestant, Hasher, TextContestant, TextView, View, hasher};

/// A lock for each bucket of up to 32 entries.
#[derive(Debug)]
pub struct SccHashMap<K, V>(HashMap<K, V, Hasher>)
where
    K: Eq + Hash;

impl Contestant for SccHashMap<u64, u64> {
    const NAME: &'static str = "scc::HashMap";
    type View<'m> = &'m Self;

    fn with_capacity(capacity: usize) -> Self {
        SccHashMap(HashMap::with_capacity_and_hasher(capacity, hasher()))
    }

    fn view(&self) -> &Self {
        self
    }

    fn entries(&self) -> usize {
        self.0.len()
    }

    fn sum(&self) -> u64 {
        let mut sum = 0_u64;
        self.0.iter_sync(|key, value| {
            sum = sum.wrapping_add(*key).wrapping_add(*value);
            true
        });
        sum
    }

    fn duplicate(&self) -> Self {
        SccHashMap(self.0.clone())
    }

    fn retain(&self, keep: impl Fn(u64) -> bool) {
        self.0.retain_sync(|key, _| keep(*key));
    }

    fn clear(&self) {
        self.0.clear_sync();
    }
}

impl View for &SccHashMap<u64, u64> {
    #[inline]
    fn get(&self, key: u64) -> Option<u64> {
        self.0.read_sync(&key, |_, value| *value)
    }

    #[inline]
    fn insert(&self, key: u64, value: u64) -> Option<u64> {
        self.0.upsert_sync(key, value)
    }

    #[inline]
    fn remove(&self, key: u64) -> Option<u64> {
        self.0.remove_sync(&key).map(|(_, value)| value)
    }

    #[inline]
    fn update(&self, key: u64) -> Option<u64> {
        self.0.update_sync(&key, |_, value| {
            *value += 1;
            *value
        })
    }
}

impl TextContestant for SccHashMap<String, String> {
    const NAME: &'static str = "scc::HashMap";
    type View<'m> = &'m Self;

    fn with_capacity(capacity: usize) -> Self {
        SccHashMap(HashMap::with_capacity_and_hasher(capacity, hasher()))
    }

    fn insert_text(&self, key: String, value: String) -> bool {
        self.0.insert_sync(key, value).is_ok()
    }

    fn view(&self) -> &Self {
        self
    }
}

impl TextView for &SccHashMap<String, String> {
    #[inline]
    fn read<R>(&self, key: &str, read: impl FnOnce(&str) -> R) -> Option<R> {
        self.0.read_sync(key, |_, value| read(value))
    }
}
