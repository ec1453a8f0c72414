//! Parallel iteration and collection. Feature `rayon`.
//!
//! Pairs are hashed and divided into lists by the stretch of the directory that they belong to. Then each stretch is filled by
//! one thread, and memory is fetched some pairs ahead: no two threads meet at a lock, and the memory that is written to stays
//! in the caches. Even with one thread, that makes up for the division, in tables larger than the caches. Where nobody else
//! uses the map, segments that are entirely within one stretch are filled without their locks [W7].

use core::fmt;
use core::hash::{BuildHasher, Hash};
use core::iter::Flatten;
use core::ops::Range;
use std::vec;

use bytemuck::Pod;
use rayon::iter::plumbing::UnindexedConsumer;
use rayon::iter::{FromParallelIterator, IntoParallelIterator, ParallelExtend, ParallelIterator};

use super::alone::{Fill, Ours};
use super::bulk::{Target, in_batches};
use super::inline_map::Slots;
use super::{HashMap, InlineMap, Pinned};
use crate::entries::{Entry, Table};
use crate::hash::{Digest, scale};
use crate::outcome::FULL;
use crate::reclaim::Guard;

/// The largest number of lists that pairs are divided into, by the top bits of their prefixes. There are so many that a large
/// map's stretches are not much larger than a second-level cache, and so few that they can be written to in turn without
/// missing the TLB.
const MOST_LISTS: usize = 256;
/// The smallest number of pairs in a list, if the total is known.
const PAIRS_PER_LIST: usize = 4096;
/// The smallest number of segments that one thread fills where nobody else uses the map: those at the ends are shared with
/// others.
const SEGMENTS_PER_PART: u32 = 4;

/// Pairs with their digests, from some lists, one list after another; each list in order.
type Pairs<K, V> = Flatten<vec::IntoIter<Vec<(Digest, K, V)>>>;

/// Pairs with their digests, divided into lists. In each they are in order, as far as the iterator has one.
struct Divided<K, V> {
    /// For each thread that divided pairs its lists, the same number for each.
    shares: Vec<Vec<Vec<(Digest, K, V)>>>,
    /// A power of two.
    lists: usize,
    len: usize,
}

/// Hashes the keys of all pairs and divides them.
fn divided<K: Send, V: Send>(
    pairs: impl IntoParallelIterator<Item = (K, V)>,
    digest: impl Fn(&K) -> Digest + Sync,
) -> Divided<K, V> {
    let pairs = pairs.into_par_iter();
    let lists = pairs.opt_len().map_or(MOST_LISTS, |len| power_of_two(len / PAIRS_PER_LIST).min(MOST_LISTS));
    let empty = || (0..lists).map(|_| Vec::new()).collect::<Vec<_>>();
    let push = |mut share: Vec<Vec<_>>, (key, value): (K, V)| {
        let digest = digest(&key);
        let list = &mut share[scale(digest.prefix(), lists as u32) as usize];
        if let Err(error) = list.try_reserve(1) {
            // Not a reason for the process to end; several threads may panic here, and each reports it.
            panic!("{error}");
        }
        list.push((digest, key, value));
        share
    };
    let shares: Vec<Vec<Vec<_>>> = pairs.fold(empty, push).collect();
    let len = shares.iter().flatten().map(Vec::len).sum();
    Divided { shares, lists, len }
}

/// The largest power of two that is not larger; 1 for 0.
fn power_of_two(n: usize) -> usize {
    1 << n.max(1).ilog2()
}

impl<K: Send, V: Send> Divided<K, V> {
    /// Inserts all pairs, in `parts` parts (a power of two), each of as many neighbouring lists as that takes; if there are
    /// fewer lists than `parts`, each list is a part. `insert` gets the pairs of a part and the prefixes that it covers, and
    /// returns whether all had room. Panics if not.
    fn insert(mut self, parts: usize, insert: impl Fn(Pairs<K, V>, Range<u64>) -> bool + Send + Sync) {
        let parts = parts.min(self.lists);
        let (side_by_side, width) = (self.lists / parts, (1 << 32) / parts as u64);
        let shares = &mut self.shares;
        let of_part = |part: usize| {
            let mut lists = Vec::with_capacity(side_by_side * shares.len());
            for list in part * side_by_side..(part + 1) * side_by_side {
                lists.extend(shares.iter_mut().map(|share| core::mem::take(&mut share[list])));
            }
            (lists, part as u64 * width..(part as u64 + 1) * width)
        };
        let parts: Vec<_> = (0..parts).map(of_part).collect();
        parts.into_par_iter().for_each(|(lists, prefixes)| {
            assert!(insert(lists.into_iter().flatten(), prefixes), "{FULL}");
        });
    }
}

/// Inserts all pairs into a map, or a set, that nobody else uses.
pub(crate) fn par_extend_alone<K: Send, V: Send>(
    map: &mut (impl Fill<K, V> + Sync),
    pairs: impl IntoParallelIterator<Item = (K, V)>,
) {
    let pairs = divided(pairs, |key| map.digest_of(key));
    map.remake_for(pairs.len);
    let map = &*map;
    // A map that grew from few segments is filled with locks, by all threads.
    let parts = match map.directory().first_segments() / SEGMENTS_PER_PART {
        0 | 1 => MOST_LISTS,
        parts => power_of_two(parts as usize),
    };
    pairs.insert(parts, |pairs, prefixes| {
        insert_part(pairs, Part { map, alone: map.directory().whole_segments(prefixes) })
    });
}

/// Inserts all pairs of one part.
pub(crate) fn insert_part<K, V>(pairs: Pairs<K, V>, target: impl Target<K, V>) -> bool {
    in_batches(pairs, |_, pair| pair, target)
}

/// The part of a map that one thread fills; nobody uses the map except threads that fill other parts.
struct Part<'m, M> {
    map: &'m M,
    /// Prefixes of this part whose segments cover no prefix of another part.
    alone: Range<u64>,
}

impl<K, V, M: Fill<K, V>> Target<K, V> for Part<'_, M> {
    #[inline]
    fn prepare(&self, digest: Digest) {
        self.map.prepare(digest);
    }

    #[inline]
    fn insert(&mut self, digest: Digest, key: K, value: V) -> bool {
        if self.alone.contains(&digest.prefix().into()) {
            // SAFETY: `par_extend_alone` has borrowed the map mutably. Parts have no prefix in common, so that the segment,
            // which covers no prefix of another part, is used by us alone, except that another part may count the map's
            // entries; and nobody shrinks the map.
            unsafe { self.map.insert_alone(Ours::Segment, digest, key, value) }
        } else {
            self.map.insert_locked(digest, key, value)
        }
    }
}

impl<K: Send + Sync, V: Send + Sync, S, G: Guard> Pinned<'_, K, V, S, G> {
    /// Walks over all entries on rayon's threads; sees the entries that [`Pinned::iter`] would see. Needs the feature `rayon`.
    ///
    /// # Panics
    ///
    /// In a closure that runs under this map's lock, also when the walk begins there: see [`HashMap`](HashMap#under-a-lock).
    ///
    /// ```
    /// use rayon::prelude::*;
    ///
    /// let map: koel::HashMap<u64, u64> = (0..1000).map(|i| (i, i)).collect();
    /// assert_eq!(map.pin().par_iter().map(|(_, value)| value).sum::<u64>(), 499_500);
    /// ```
    pub fn par_iter(&self) -> ParIter<'_, K, V> {
        // Here as well as when the walk begins, because that may be on one of rayon's threads.
        self.map.table.directory.assert_not_writing();
        ParIter { table: &self.map.table }
    }
}

/// Parallel iterator over a map's entries: from [`Pinned::par_iter`]. Needs the feature `rayon`.
#[must_use = "iterators are lazy and do nothing unless consumed"]
pub struct ParIter<'p, K, V> {
    table: &'p Table<K, V>,
}

impl<'p, K: Send + Sync, V: Send + Sync> ParallelIterator for ParIter<'p, K, V> {
    type Item = (&'p K, &'p V);

    fn drive_unindexed<C: UnindexedConsumer<Self::Item>>(self, consumer: C) -> C::Result {
        let table = self.table;
        // By this thread, which must not be writing: the threads that walk are not, and would wait for it.
        let walk = table.directory.ranges().into_par_iter().flat_map_iter(move |range| {
            let mut entries = Vec::new();
            {
                // Protects this thread's way through the directory.
                let _guard = table.collector.enter();
                table.directory.snapshot_range(range, &mut entries);
            }
            // SAFETY: in the table just now, and so not retired before the view that `'p` borrows was pinned: its guard keeps
            // them alive as long as the view is borrowed [I6].
            entries.into_iter().map(|entry| unsafe { Entry::<K, V>::deref(entry) }.pair())
        });
        walk.drive_unindexed(consumer)
    }
}

impl<K, V> fmt::Debug for ParIter<'_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ParIter").finish_non_exhaustive()
    }
}

/// As [`Pinned::par_iter`]. Needs the feature `rayon`.
impl<'p, K: Send + Sync, V: Send + Sync, S, G: Guard> IntoParallelIterator for &'p Pinned<'_, K, V, S, G> {
    type Item = (&'p K, &'p V);
    type Iter = ParIter<'p, K, V>;

    fn into_par_iter(self) -> ParIter<'p, K, V> {
        self.par_iter()
    }
}

/// Moves the entries into a `Vec` first. Needs the feature `rayon`.
///
/// ```
/// use rayon::prelude::*;
///
/// let map = koel::HashMap::from([(1, "one".to_string()), (2, "two".to_string())]);
/// let names: Vec<String> = map.into_par_iter().map(|(_, name)| name).collect(); // moved, not cloned
/// assert_eq!(names.len(), 2);
/// ```
impl<K: Send, V: Send, S> IntoParallelIterator for HashMap<K, V, S> {
    type Item = (K, V);
    type Iter = rayon::vec::IntoIter<(K, V)>;

    fn into_par_iter(self) -> Self::Iter {
        self.into_iter().collect::<Vec<_>>().into_par_iter()
    }
}

impl<K: Pod + Send + Sync, V: Pod + Send + Sync, S: Sync> InlineMap<K, V, S> {
    /// Walks over copies of all entries on rayon's threads; sees the entries that [`InlineMap::iter`] would see. Needs the
    /// feature `rayon`.
    ///
    /// # Panics
    ///
    /// In a closure that runs under this map's lock, also when the walk begins there: see [the type](InlineMap#under-a-lock).
    ///
    /// ```
    /// use rayon::prelude::*;
    ///
    /// let map: koel::InlineMap<u64, u64> = (0..1000).map(|i| (i, i)).collect();
    /// assert_eq!(map.par_iter().map(|(_, value)| value).sum::<u64>(), 499_500);
    /// ```
    pub fn par_iter(&self) -> InlineParIter<'_, K, V> {
        // As above.
        self.slots.assert_not_writing();
        InlineParIter { slots: &self.slots }
    }
}

/// Parallel iterator over copies of a map's entries: from [`InlineMap::par_iter`]. Needs the feature `rayon`.
#[must_use = "iterators are lazy and do nothing unless consumed"]
pub struct InlineParIter<'m, K: Pod, V: Pod> {
    slots: &'m Slots<K, V>,
}

impl<K: Pod + Send + Sync, V: Pod + Send + Sync> ParallelIterator for InlineParIter<'_, K, V> {
    type Item = (K, V);

    fn drive_unindexed<C: UnindexedConsumer<(K, V)>>(self, consumer: C) -> C::Result {
        let slots = self.slots;
        // By this thread, as above.
        let walk = slots.ranges().into_par_iter().flat_map_iter(move |range| {
            let mut items = Vec::new();
            slots.snapshot_range(range, &mut items);
            items
        });
        walk.drive_unindexed(consumer)
    }
}

impl<K: Pod, V: Pod> fmt::Debug for InlineParIter<'_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InlineParIter").finish_non_exhaustive()
    }
}

/// As [`InlineMap::par_iter`]. Needs the feature `rayon`.
impl<'m, K: Pod + Send + Sync, V: Pod + Send + Sync, S: Sync> IntoParallelIterator
    for &'m InlineMap<K, V, S>
{
    type Item = (K, V);
    type Iter = InlineParIter<'m, K, V>;

    fn into_par_iter(self) -> InlineParIter<'m, K, V> {
        self.par_iter()
    }
}

/// Copies all entries into a `Vec` first, and frees the map. Needs the feature `rayon`.
impl<K: Pod + Send, V: Pod + Send, S> IntoParallelIterator for InlineMap<K, V, S> {
    type Item = (K, V);
    type Iter = rayon::vec::IntoIter<(K, V)>;

    fn into_par_iter(self) -> Self::Iter {
        self.into_iter().collect::<Vec<_>>().into_par_iter()
    }
}

/// Inserts all pairs on rayon's threads. Of several values of a key the last stays. Meanwhile all pairs are in memory twice,
/// with 8 more bytes for each. Panics as [`HashMap`]'s `extend` does; if the iterator panics, or hashing one of its keys does,
/// none has been inserted. (When the map grows, keys are hashed once more.)
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
        self.par_insert(pairs, |pin, pairs| insert_part(pairs, &pin));
    }
}

impl<K, V, S> HashMap<K, V, S>
where
    K: Hash + Eq + Send + Sync,
    V: Send + Sync,
    S: BuildHasher + Sync,
{
    /// Inserts all pairs on rayon's threads, while others may use the map. `insert` gets the pairs of each part, with a view,
    /// and returns whether all had room. Panics if not.
    pub(crate) fn par_insert(
        &self,
        pairs: impl IntoParallelIterator<Item = (K, V)>,
        insert: impl Fn(Pinned<'_, K, V, S>, Pairs<K, V>) -> bool + Send + Sync,
    ) {
        // Checked here, because other threads insert: they are not writing, and would wait for this one.
        self.table.directory.assert_not_writing();
        let pairs = divided(pairs, |key| self.digest(key));
        if self.is_empty() {
            // As far as there is memory: it grows otherwise.
            let _ = self.pin().try_reserve(pairs.len);
        }
        pairs.insert(MOST_LISTS, |pairs, _| insert(self.pin(), pairs));
    }
}

/// As `&HashMap` does, but mostly without locks, as nobody else uses the map; and an empty map is rebuilt for as many pairs as
/// there are.
impl<K, V, S> ParallelExtend<(K, V)> for HashMap<K, V, S>
where
    K: Hash + Eq + Send + Sync,
    V: Send + Sync,
    S: BuildHasher + Sync,
{
    fn par_extend<I: IntoParallelIterator<Item = (K, V)>>(&mut self, pairs: I) {
        par_extend_alone(self, pairs);
    }
}

/// Makes a map for all pairs and inserts them on rayon's threads. Of several values of a key the last stays. Meanwhile all
/// pairs are in memory twice, with 8 more bytes for each. Panics if there is no memory for the map.
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

/// Inserts all pairs on rayon's threads. Of several values of a key the last stays. Meanwhile all pairs are in memory twice,
/// with 8 more bytes for each. Panics as [`InlineMap::extend`] does; if the iterator panics, or hashing one of its keys does,
/// none has been inserted. (When the map grows, keys are hashed once more.)
impl<K, V, S> ParallelExtend<(K, V)> for &InlineMap<K, V, S>
where
    K: Pod + Hash + Eq + Send + Sync,
    V: Pod + Send + Sync,
    S: BuildHasher + Sync,
{
    fn par_extend<I: IntoParallelIterator<Item = (K, V)>>(&mut self, pairs: I) {
        // Checked here, because other threads insert: they are not writing, and would wait for this one.
        self.slots.assert_not_writing();
        let pairs = divided(pairs, |key| self.digest(key));
        if self.is_empty() {
            // As far as there is memory: it grows otherwise.
            let _ = self.try_reserve(pairs.len);
        }
        pairs.insert(MOST_LISTS, |pairs, _| insert_part(pairs, *self));
    }
}

/// As `&InlineMap` does, but mostly without locks, as nobody else uses the map; and an empty map is rebuilt for as many pairs
/// as there are.
impl<K, V, S> ParallelExtend<(K, V)> for InlineMap<K, V, S>
where
    K: Pod + Hash + Eq + Send + Sync,
    V: Pod + Send + Sync,
    S: BuildHasher + Sync,
{
    fn par_extend<I: IntoParallelIterator<Item = (K, V)>>(&mut self, pairs: I) {
        par_extend_alone(self, pairs);
    }
}

/// Makes a map for all pairs and inserts them on rayon's threads. Of several values of a key the last stays. Meanwhile all
/// pairs are in memory twice, with 8 more bytes for each. Panics if there is no memory for the map.
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
