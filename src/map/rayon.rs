//! Parallel iteration and collection. Feature `rayon`.
//!
//! Pairs are hashed and divided by the stretch of the directory that they belong to, and then each stretch is filled by one
//! thread, some pairs ahead of which memory is fetched: no two threads meet at a lock, and what is written to stays in the
//! caches. With one thread, that alone makes up for dividing them, in tables beyond the caches. Where nobody else uses the map,
//! segments that lie in one stretch as a whole are filled without their locks.

use core::hash::{BuildHasher, Hash};
use core::iter::Flatten;
use core::ops::Range;
use std::vec;

use bytemuck::Pod;
use rayon::iter::{FromParallelIterator, IntoParallelIterator, ParallelExtend, ParallelIterator};

use super::bulk::{Target, in_batches};
use super::{HashMap, InlineMap, Pinned};
use crate::entries::{Entry, Within};
use crate::hash::{Digest, scale};
use crate::outcome::FULL;
use crate::reclaim::Guard;

/// Most lists that pairs are divided into, by the top bits of their prefixes: each is a stretch of the directory. So many that
/// a large map's stretches are not much larger than a second-level cache, and few enough to be written to in turn without
/// missing the TLB.
const MOST_LISTS: usize = 256;
/// Pairs of a list, where fewer lists will do.
const PAIRS_PER_LIST: usize = 4096;
/// Segments of the stretch that one thread fills where nobody else uses the map: those at its ends are shared with others.
const SEGMENTS_PER_PART: usize = 4;

/// Pairs with their digests, of some lists, one after another; each in order.
type Part<K, V> = Flatten<vec::IntoIter<Vec<(Digest, K, V)>>>;

/// Pairs with their digests, divided into a power of two of lists. In each they are in order, as far as the iterator has one.
struct Divided<K, V> {
    /// As many lists in each piece.
    pieces: Vec<Vec<Vec<(Digest, K, V)>>>,
    lists: usize,
    len: usize,
}

/// Hashes the keys of all pairs and divides them.
fn divided<K: Hash + Send, V: Send>(
    pairs: impl IntoParallelIterator<Item = (K, V)>,
    hasher: &(impl BuildHasher + Sync),
) -> Divided<K, V> {
    let pairs = pairs.into_par_iter();
    let lists = pairs.opt_len().map_or(MOST_LISTS, |len| (len / PAIRS_PER_LIST).next_power_of_two());
    let lists = lists.min(MOST_LISTS);
    let empty = || (0..lists).map(|_| Vec::new()).collect::<Vec<_>>();
    let push = |mut piece: Vec<Vec<_>>, (key, value): (K, V)| {
        let digest = Digest::of(&key, hasher);
        piece[scale(digest.prefix(), lists as u32) as usize].push((digest, key, value));
        piece
    };
    let pieces: Vec<Vec<Vec<_>>> = pairs.fold(empty, push).collect();
    let len = pieces.iter().flatten().map(Vec::len).sum();
    Divided { pieces, lists, len }
}

impl<K: Send, V: Send> Divided<K, V> {
    /// Inserts all pairs, those of as many neighbouring lists at a time as make `parts` of them; fewer lists than that are a
    /// part each. `insert` gets the pairs of a part and the prefixes that it covers, and says whether all had room. Panics
    /// if not.
    fn insert(mut self, parts: usize, insert: impl Fn(Part<K, V>, Range<u64>) -> bool + Send + Sync) {
        let parts = parts.min(self.lists);
        let (side_by_side, width) = (self.lists / parts, (1 << 32) / parts as u64);
        let pieces = &mut self.pieces;
        let of_part = |part: usize| {
            let mut lists = Vec::with_capacity(side_by_side * pieces.len());
            for list in part * side_by_side..(part + 1) * side_by_side {
                lists.extend(pieces.iter_mut().map(|piece| core::mem::take(&mut piece[list])));
            }
            (lists, part as u64 * width..(part as u64 + 1) * width)
        };
        let parts: Vec<_> = (0..parts).map(of_part).collect();
        parts.into_par_iter().for_each(|(lists, prefixes)| {
            assert!(insert(lists.into_iter().flatten(), prefixes), "{FULL}");
        });
    }
}

/// How many parts a table is filled in that nobody else uses, of so many segments.
fn parts_alone(segments: u32) -> usize {
    (segments as usize / SEGMENTS_PER_PART).max(1).next_power_of_two()
}

/// A map that other threads fill as well, but nobody else uses; some prefixes are ours alone.
struct Stretch<'m, M> {
    map: &'m M,
    alone: Range<u64>,
}

impl<M> Stretch<'_, M> {
    fn is_alone(&self, digest: Digest) -> bool {
        self.alone.contains(&digest.prefix().into())
    }
}

impl<K: Hash + Eq, V, S: BuildHasher> Target<K, V> for Stretch<'_, HashMap<K, V, S>> {
    #[inline]
    fn prepare(&self, digest: Digest) {
        self.map.prepare(digest);
    }

    #[inline]
    fn insert(&mut self, digest: Digest, key: K, value: V) -> bool {
        if self.is_alone(digest) {
            // SAFETY: so `par_extend` has it.
            unsafe { self.map.insert_alone(digest, Within::PageAlone, key, value) }
        } else {
            self.map.pin().checked_insert_of(digest, key, value).is_ok()
        }
    }
}

impl<K: Pod + Hash + Eq, V: Pod, S: BuildHasher> Target<K, V> for Stretch<'_, InlineMap<K, V, S>> {
    #[inline]
    fn prepare(&self, digest: Digest) {
        self.map.slots.prefetch(digest);
    }

    #[inline]
    fn insert(&mut self, digest: Digest, key: K, value: V) -> bool {
        if self.is_alone(digest) {
            // SAFETY: so `par_extend` has it.
            unsafe { self.map.insert_alone(digest, key, value) }
        } else {
            self.map.checked_insert_of(digest, key, value).is_ok()
        }
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
        let pairs = divided(pairs, &self.hasher);
        if self.is_empty() {
            // As far as there is memory: it grows otherwise.
            let _ = self.pin().try_reserve(pairs.len);
        }
        pairs.insert(MOST_LISTS, |pairs, _| self.pin().insert_digested(pairs));
    }
}

/// As `&HashMap` does, and faster, as nobody else uses the map.
impl<K, V, S> ParallelExtend<(K, V)> for HashMap<K, V, S>
where
    K: Hash + Eq + Send + Sync,
    V: Send + Sync,
    S: BuildHasher + Sync,
{
    fn par_extend<I: IntoParallelIterator<Item = (K, V)>>(&mut self, pairs: I) {
        let pairs = divided(pairs, &self.hasher);
        self.renew(pairs.len);
        let map = &*self;
        pairs.insert(parts_alone(map.table.directory.first_segments()), |pairs, prefixes| {
            let whole = map.table.directory.whole_segments(prefixes);
            in_batches(pairs, |_, pair| pair, Stretch { map, alone: map.table.slab.whole_pages(whole) })
        });
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
        let mut map = Self::default();
        map.par_extend(pairs);
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
        let pairs = divided(pairs, &self.hasher);
        if self.is_empty() {
            // As far as there is memory: it grows otherwise.
            let _ = self.try_reserve(pairs.len);
        }
        pairs.insert(MOST_LISTS, |pairs, _| self.insert_digested(pairs));
    }
}

/// As `&InlineMap` does, and faster, as nobody else uses the map.
impl<K, V, S> ParallelExtend<(K, V)> for InlineMap<K, V, S>
where
    K: Pod + Hash + Eq + Send + Sync,
    V: Pod + Send + Sync,
    S: BuildHasher + Sync,
{
    fn par_extend<I: IntoParallelIterator<Item = (K, V)>>(&mut self, pairs: I) {
        let pairs = divided(pairs, &self.hasher);
        self.renew(pairs.len);
        let map = &*self;
        pairs.insert(parts_alone(map.slots.first_segments()), |pairs, prefixes| {
            in_batches(pairs, |_, pair| pair, Stretch { map, alone: map.slots.whole_segments(prefixes) })
        });
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
        let mut map = Self::default();
        map.par_extend(pairs);
        map
    }
}
