//! Parallel iteration and collection. Feature `rayon`.
//!
//! Pairs are hashed and divided by the stretch of the directory that they belong to, and then each stretch is filled by one
//! thread, some pairs ahead of which memory is fetched: no two threads meet at a lock, and what is written to stays in the
//! caches. With one thread, that alone makes up for dividing them, in tables beyond the caches.

use core::hash::{BuildHasher, Hash};
use core::iter::Flatten;
use std::vec;

use bytemuck::Pod;
use rayon::iter::{FromParallelIterator, IntoParallelIterator, ParallelExtend, ParallelIterator};

use super::{HashMap, InlineMap, Pinned};
use crate::entries::Entry;
use crate::hash::Digest;
use crate::outcome::FULL;
use crate::reclaim::Guard;

/// Parts that pairs are divided into, by the top bits of their prefixes: each is a stretch of the directory, filled by one
/// thread. So many that a large map's stretches are not much larger than a second-level cache, and few enough to be written
/// to in turn without missing the TLB.
const PART_BITS: u32 = 8;

/// Pairs with their digests, of one part, in order.
type Part<K, V> = Vec<Vec<(Digest, K, V)>>;

/// All parts.
struct Parts<K, V> {
    parts: Vec<Part<K, V>>,
    len: usize,
}

/// Divides pairs into parts. In each they are in order, as far as the iterator has one.
fn parted<K: Hash + Send, V: Send>(
    pairs: impl IntoParallelIterator<Item = (K, V)>,
    hasher: &(impl BuildHasher + Sync),
) -> Parts<K, V> {
    let empty = || (0..1 << PART_BITS).map(|_| Vec::new()).collect::<Vec<_>>();
    let mut pieces: Vec<Vec<Vec<(Digest, K, V)>>> = pairs
        .into_par_iter()
        .fold(empty, |mut lists, (key, value)| {
            let digest = Digest::of(&key, hasher);
            lists[(digest.prefix() >> (32 - PART_BITS)) as usize].push((digest, key, value));
            lists
        })
        .collect();
    let len = pieces.iter().flatten().map(Vec::len).sum();
    let of_part = |part: usize| pieces.iter_mut().map(|lists| core::mem::take(&mut lists[part])).collect();
    Parts { parts: (0..1 << PART_BITS).map(of_part).collect(), len }
}

impl<K: Send, V: Send> Parts<K, V> {
    /// Inserts the pairs of each part; `insert` says whether all had room. Panics if not.
    fn insert(self, insert: impl Fn(Flatten<vec::IntoIter<Vec<(Digest, K, V)>>>) -> bool + Send + Sync) {
        self.parts.into_par_iter().for_each(|part| assert!(insert(part.into_iter().flatten()), "{FULL}"));
    }
}

impl<K: Send + Sync, V: Send + Sync, S, G: Guard> Pinned<'_, K, V, S, G> {
    /// Walks over all entries on rayon's threads; sees what [`Pinned::iter`] would see. Needs the feature `rayon`.
    ///
    /// ```
    /// use rayon::prelude::*;
    ///
    /// let map: koel::HashMap<u64, u64> = (0..1000).map(|i| (i, i)).collect();
    /// assert_eq!(map.pin().par_iter().map(|(_, value)| value).sum::<u64>(), 499_500);
    /// ```
    pub fn par_iter(&self) -> impl ParallelIterator<Item = (&K, &V)> {
        let table = &self.map.table;
        table.directory.ranges().into_par_iter().flat_map_iter(move |range| {
            let mut entries = Vec::new();
            {
                // Protects this thread's way through the directory.
                let _guard = table.collector.enter();
                table.directory.snapshot_range(range, &mut entries);
            }
            // SAFETY: in the table just now, and so not retired before the view that `self` is was pinned: its guard
            // keeps them alive as long as `self` is borrowed [I6].
            entries.into_iter().map(|entry| unsafe { Entry::deref(entry) }.pair())
        })
    }
}

impl<K: Pod + Send + Sync, V: Pod + Send + Sync, S: Sync> InlineMap<K, V, S> {
    /// Walks over copies of all entries on rayon's threads; sees what [`InlineMap::iter`] would see. Needs the feature
    /// `rayon`.
    ///
    /// ```
    /// use rayon::prelude::*;
    ///
    /// let map: koel::InlineMap<u64, u64> = (0..1000).map(|i| (i, i)).collect();
    /// assert_eq!(map.par_iter().map(|(_, value)| value).sum::<u64>(), 499_500);
    /// ```
    pub fn par_iter(&self) -> impl ParallelIterator<Item = (K, V)> {
        let slots = &self.slots;
        slots.ranges().into_par_iter().flat_map_iter(move |range| {
            let mut items = Vec::new();
            slots.snapshot_range(range, &mut items);
            items
        })
    }
}

/// Inserts all pairs on rayon's threads. Of several values of a key the last stays. All pairs are in memory twice
/// meanwhile, with 8 bytes more for each. Panics as [`HashMap`]'s `extend` does.
///
/// ```
/// use rayon::prelude::*;
///
/// let map: koel::HashMap<u64, u64> = (0..1000_u64).into_par_iter().map(|i| (i, i)).collect();
/// (&map).par_extend((1000..2000_u64).into_par_iter().map(|i| (i, i))); // by reference: others may use it
/// assert_eq!(map.len(), 2000);
/// ```
impl<K, V, S> ParallelExtend<(K, V)> for &HashMap<K, V, S>
where
    K: Hash + Eq + Send + Sync,
    V: Send + Sync,
    S: BuildHasher + Sync,
{
    fn par_extend<I: IntoParallelIterator<Item = (K, V)>>(&mut self, pairs: I) {
        let parts = parted(pairs, &self.hasher);
        if self.is_empty() {
            // As far as there is memory: it grows otherwise.
            let _ = self.pin().try_reserve(parts.len);
        }
        parts.insert(|pairs| self.pin().insert_digested(pairs));
    }
}

/// As `&HashMap` does.
impl<K, V, S> ParallelExtend<(K, V)> for HashMap<K, V, S>
where
    K: Hash + Eq + Send + Sync,
    V: Send + Sync,
    S: BuildHasher + Sync,
{
    fn par_extend<I: IntoParallelIterator<Item = (K, V)>>(&mut self, pairs: I) {
        (&*self).par_extend(pairs);
    }
}

/// A map made for all pairs, which are inserted on rayon's threads. Of several values of a key the last stays. All pairs are in
/// memory twice meanwhile, with 8 bytes more for each. Panics if there is no memory for the map.
impl<K, V, S> FromParallelIterator<(K, V)> for HashMap<K, V, S>
where
    K: Hash + Eq + Send + Sync,
    V: Send + Sync,
    S: BuildHasher + Default + Sync,
{
    fn from_par_iter<I: IntoParallelIterator<Item = (K, V)>>(pairs: I) -> Self {
        let hasher = S::default();
        let parts = parted(pairs, &hasher);
        let map = Self::with_capacity_and_hasher(parts.len, hasher);
        parts.insert(|pairs| map.pin().insert_digested(pairs));
        map
    }
}

/// Inserts all pairs on rayon's threads. Of several values of a key the last stays. All pairs are in memory twice
/// meanwhile, with 8 bytes more for each. Panics as [`InlineMap::extend`] does.
impl<K, V, S> ParallelExtend<(K, V)> for &InlineMap<K, V, S>
where
    K: Pod + Hash + Eq + Send + Sync,
    V: Pod + Send + Sync,
    S: BuildHasher + Sync,
{
    fn par_extend<I: IntoParallelIterator<Item = (K, V)>>(&mut self, pairs: I) {
        let parts = parted(pairs, &self.hasher);
        if self.is_empty() {
            // As far as there is memory: it grows otherwise.
            let _ = self.try_reserve(parts.len);
        }
        parts.insert(|pairs| self.insert_digested(pairs));
    }
}

/// As `&InlineMap` does.
impl<K, V, S> ParallelExtend<(K, V)> for InlineMap<K, V, S>
where
    K: Pod + Hash + Eq + Send + Sync,
    V: Pod + Send + Sync,
    S: BuildHasher + Sync,
{
    fn par_extend<I: IntoParallelIterator<Item = (K, V)>>(&mut self, pairs: I) {
        (&*self).par_extend(pairs);
    }
}

/// A map made for all pairs, which are inserted on rayon's threads. Of several values of a key the last stays. All pairs are in
/// memory twice meanwhile, with 8 bytes more for each. Panics if there is no memory for the map.
impl<K, V, S> FromParallelIterator<(K, V)> for InlineMap<K, V, S>
where
    K: Pod + Hash + Eq + Send + Sync,
    V: Pod + Send + Sync,
    S: BuildHasher + Default + Sync,
{
    fn from_par_iter<I: IntoParallelIterator<Item = (K, V)>>(pairs: I) -> Self {
        let hasher = S::default();
        let parts = parted(pairs, &hasher);
        let map = Self::with_capacity_and_hasher(parts.len, hasher);
        parts.insert(|pairs| map.insert_digested(pairs));
        map
    }
}
