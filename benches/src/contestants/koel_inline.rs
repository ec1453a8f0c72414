//! koel::InlineMap.

use koel::InlineMap;

use super::{BATCH, Contestant, Hasher, View, hasher, total};

/// The map whose entries lie in its slots; nothing is pinned.
#[derive(Debug)]
pub struct KoelInline(InlineMap<u64, u64, Hasher>);

impl Contestant for KoelInline {
    const NAME: &'static str = "koel-inline";
    type View<'m> = &'m Self;

    fn with_capacity(capacity: usize) -> Self {
        KoelInline(InlineMap::builder().capacity(capacity).hasher(hasher()).build())
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
        total(self.0.iter())
    }

    fn duplicate(&self) -> Self {
        KoelInline(self.0.clone())
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

impl View for &KoelInline {
    #[inline]
    fn get(&self, key: u64) -> Option<u64> {
        self.0.get(&key)
    }

    #[inline]
    fn insert(&self, key: u64, value: u64) -> Option<u64> {
        self.0.insert(key, value)
    }

    #[inline]
    fn remove(&self, key: u64) -> Option<u64> {
        self.0.remove(&key)
    }

    #[inline]
    fn update(&self, key: u64) -> Option<u64> {
        self.0.update(key, |value| value + 1)
    }

    #[inline]
    fn get_many(&self, keys: &[u64], mut each: impl FnMut(u64, Option<u64>)) {
        let mut out = [None; BATCH];
        let out = &mut out[..keys.len()];
        self.0.get_many(keys, out);
        for (&key, found) in keys.iter().zip(out) {
            each(key, *found);
        }
    }
}
