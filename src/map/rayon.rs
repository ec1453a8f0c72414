//! Parallel iteration and collection. Feature `rayon`.

use core::hash::{BuildHasher, Hash};

use bytemuck::Pod;
use rayon::iter::{FromParallelIterator, IntoParallelIterator, ParallelExtend, ParallelIterator};

use super::{HashMap, InlineMap, Pinned};
use crate::entries::Entry;
use crate::reclaim::Guard;

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
    pub fn par_iter(&self) -> impl ParallelIterator<Item = (K, V)> {
        let slots = &self.slots;
        slots.ranges().into_par_iter().flat_map_iter(move |range| {
            let mut items = Vec::new();
            slots.snapshot_range(range, &mut items);
            items
        })
    }
}

impl<K, V, S> ParallelExtend<(K, V)> for &HashMap<K, V, S>
where
    K: Hash + Eq + Send + Sync,
    V: Send + Sync,
    S: BuildHasher + Sync,
{
    fn par_extend<I: IntoParallelIterator<Item = (K, V)>>(&mut self, pairs: I) {
        let map = *self;
        pairs.into_par_iter().for_each_init(
            || map.pin(),
            |pin, (key, value)| {
                pin.insert(key, value);
            },
        );
    }
}

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

impl<K, V, S> FromParallelIterator<(K, V)> for HashMap<K, V, S>
where
    K: Hash + Eq + Send + Sync,
    V: Send + Sync,
    S: BuildHasher + Default + Sync,
{
    fn from_par_iter<I: IntoParallelIterator<Item = (K, V)>>(pairs: I) -> Self {
        let mut map = Self::default();
        map.par_extend(pairs);
        map
    }
}

impl<K, V, S> ParallelExtend<(K, V)> for &InlineMap<K, V, S>
where
    K: Pod + Hash + Eq + Send + Sync,
    V: Pod + Send + Sync,
    S: BuildHasher + Sync,
{
    fn par_extend<I: IntoParallelIterator<Item = (K, V)>>(&mut self, pairs: I) {
        let map = *self;
        pairs.into_par_iter().for_each(|(key, value)| {
            map.insert(key, value);
        });
    }
}

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

impl<K, V, S> FromParallelIterator<(K, V)> for InlineMap<K, V, S>
where
    K: Pod + Hash + Eq + Send + Sync,
    V: Pod + Send + Sync,
    S: BuildHasher + Default + Sync,
{
    fn from_par_iter<I: IntoParallelIterator<Item = (K, V)>>(pairs: I) -> Self {
        let mut map = Self::default();
        map.par_extend(pairs);
        map
    }
}
