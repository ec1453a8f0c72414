//! scc::HashIndex, with a guard for each operation or for several.
//!
//! A replaced value goes to another slot of the bucket, and the old one is marked removed: a reader may look at the new slot
//! before that and at the old one after it, and miss a key that was there all the time.

use std::hash::Hash;

use scc::hash_index::Entry;
use scc::{Guard, HashIndex};

use super::{Contestant, Hasher, TextContestant, TextView, View, hasher, total};

/// Reads take no lock; a replaced value is a new entry in the bucket. A guard for each operation.
#[derive(Debug)]
pub struct SccHashIndex<K, V>(HashIndex<K, V, Hasher>)
where
    K: Eq + Hash;

/// A guard for several operations.
#[derive(Debug)]
pub struct SccHashIndexHeld<K, V>(SccHashIndex<K, V>)
where
    K: Eq + Hash;

/// An index, and a guard under which it is read.
#[derive(Debug)]
pub struct Guarded<'m, K, V>
where
    K: Eq + Hash,
{
    index: &'m SccHashIndex<K, V>,
    guard: Guard,
}

impl Contestant for SccHashIndexHeld<u64, u64> {
    const NAME: &'static str = "scc::HashIndex (held)";
    const MAY_MISS_REPLACED: bool = true;
    type View<'m> = Guarded<'m, u64, u64>;

    fn with_capacity(capacity: usize) -> Self {
        SccHashIndexHeld(Contestant::with_capacity(capacity))
    }

    fn view(&self) -> Self::View<'_> {
        Guarded { index: &self.0, guard: Guard::new() }
    }

    fn entries(&self) -> usize {
        self.0.entries()
    }

    fn sum(&self) -> u64 {
        self.0.sum()
    }

    fn duplicate(&self) -> Self {
        SccHashIndexHeld(self.0.duplicate())
    }

    fn retain(&self, keep: impl Fn(u64) -> bool) {
        self.0.retain(keep);
    }

    fn clear(&self) {
        self.0.clear();
    }
}

/// Writes take guards of their own.
impl View for Guarded<'_, u64, u64> {
    #[inline]
    fn get(&self, key: u64) -> Option<u64> {
        self.index.0.peek(&key, &self.guard).copied()
    }

    #[inline]
    fn insert(&self, key: u64, value: u64) -> Option<u64> {
        View::insert(&self.index, key, value)
    }

    #[inline]
    fn remove(&self, key: u64) -> Option<u64> {
        View::remove(&self.index, key)
    }

    #[inline]
    fn update(&self, key: u64) -> Option<u64> {
        View::update(&self.index, key)
    }
}

impl Contestant for SccHashIndex<u64, u64> {
    const NAME: &'static str = "scc::HashIndex";
    const MAY_MISS_REPLACED: bool = true;
    type View<'m> = &'m Self;

    fn with_capacity(capacity: usize) -> Self {
        SccHashIndex(HashIndex::with_capacity_and_hasher(capacity, hasher()))
    }

    fn view(&self) -> &Self {
        self
    }

    fn entries(&self) -> usize {
        self.0.len()
    }

    fn sum(&self) -> u64 {
        total(self.0.iter(&Guard::new()).map(|(key, value)| (*key, *value)))
    }

    fn duplicate(&self) -> Self {
        SccHashIndex(self.0.clone())
    }

    fn retain(&self, keep: impl Fn(u64) -> bool) {
        self.0.retain_sync(|key, _| keep(*key));
    }

    fn clear(&self) {
        self.0.clear_sync();
    }
}

impl View for &SccHashIndex<u64, u64> {
    #[inline]
    fn get(&self, key: u64) -> Option<u64> {
        self.0.peek_with(&key, |_, value| *value)
    }

    #[inline]
    fn insert(&self, key: u64, value: u64) -> Option<u64> {
        match self.0.entry_sync(key) {
            Entry::Occupied(mut entry) => {
                let old = *entry.get();
                entry.update(value);
                Some(old)
            }
            Entry::Vacant(entry) => {
                entry.insert_entry(value);
                None
            }
        }
    }

    #[inline]
    fn remove(&self, key: u64) -> Option<u64> {
        // Its removal passes the value only to a condition.
        let mut removed = None;
        self.0.remove_if_sync(&key, |value| {
            removed = Some(*value);
            true
        });
        removed
    }

    #[inline]
    fn update(&self, key: u64) -> Option<u64> {
        let mut entry = self.0.get_sync(&key)?;
        let new = *entry.get() + 1;
        entry.update(new);
        Some(new)
    }

    #[inline]
    fn get_many(&self, keys: &[u64], each: impl FnMut(u64, Option<u64>)) {
        View::get_many(&Guarded { index: self, guard: Guard::new() }, keys, each);
    }
}

impl TextContestant for SccHashIndex<String, String> {
    const NAME: &'static str = "scc::HashIndex";
    type View<'m> = &'m Self;

    fn with_capacity(capacity: usize) -> Self {
        SccHashIndex(HashIndex::with_capacity_and_hasher(capacity, hasher()))
    }

    fn insert_text(&self, key: String, value: String) -> bool {
        self.0.insert_sync(key, value).is_ok()
    }

    fn view(&self) -> &Self {
        self
    }
}

impl TextView for &SccHashIndex<String, String> {
    #[inline]
    fn read<R>(&self, key: &str, read: impl FnOnce(&str) -> R) -> Option<R> {
        self.0.peek_with(key, |_, value| read(value))
    }
}

impl TextContestant for SccHashIndexHeld<String, String> {
    const NAME: &'static str = "scc::HashIndex (held)";
    type View<'m> = Guarded<'m, String, String>;

    fn with_capacity(capacity: usize) -> Self {
        SccHashIndexHeld(TextContestant::with_capacity(capacity))
    }

    fn insert_text(&self, key: String, value: String) -> bool {
        self.0.insert_text(key, value)
    }

    fn view(&self) -> Self::View<'_> {
        Guarded { index: &self.0, guard: Guard::new() }
    }
}

impl TextView for Guarded<'_, String, String> {
    #[inline]
    fn read<R>(&self, key: &str, read: impl FnOnce(&str) -> R) -> Option<R> {
        self.index.0.peek(key, &self.guard).map(|value| read(value))
    }
}
