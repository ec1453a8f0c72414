//! [`InlineMap`]: keys and values in the slots themselves.

use core::fmt;
use core::hash::{BuildHasher, Hash};
use core::marker::PhantomData;
use core::panic::{RefUnwindSafe, UnwindSafe};

use ahash::RandomState;
use bytemuck::Pod;

use super::alone::extend_alone;
use super::builder::sealed::FromShape;
use super::{Builder, InlineDrain, InlineIter, InlineKeys, InlineMapKind, InlineValues};
use crate::engine::{CapacityError, Directory, Inline, Shape, Stats, each_batch};
use crate::hash::Digest;

pub(super) type Slots<K, V> = Directory<Inline<K, V>>;

/// A concurrent hash map for small plain data, held in the slots themselves: reads return copies.
///
/// There is no allocation and no reclamation for an entry, no pin, no pointer to follow. Readers take no lock, write no shared
/// memory and never wait, not even for a writer that the system has suspended in the middle of a write; but a reader that
/// notices that an entry changed while it was reading reads again, and counts that.
///
/// ```
/// let map = koel::InlineMap::new();
/// map.insert(1_u64, 10_u64);
/// assert_eq!(map.get(&1), Some(10));
/// assert_eq!(map.update(1, |value| value + 1), Some(11));
/// ```
///
/// # When to pick something else
///
/// Keys and values must be [`Pod`], types for which all bit patterns are valid: integers, floats, arrays of them of any length,
/// and structs that derive it. Not `bool`, `char`, enums and tuples, and not structs with padding, references or boxes.
/// Anything that owns memory, and anything much larger than a cache line, belongs in a [`HashMap`](crate::HashMap).
///
/// To derive it, depend on `bytemuck` with its feature `derive`; the compiler reports padding:
///
/// ```
/// use bytemuck::{Pod, Zeroable};
///
/// #[derive(Clone, Copy, PartialEq, Debug, Pod, Zeroable)]
/// #[repr(C)]
/// struct Quote {
///     price: f64,
///     size: u32,
///     /// A yes or no: `bool` is not plain data, and without these four bytes there would be padding.
///     halted: u32,
/// }
///
/// let quotes = koel::InlineMap::new();
/// quotes.insert(7_u32, Quote { price: 1.5, size: 100, halted: 0 });
/// assert_eq!(quotes.get(&7).map(|quote| quote.size), Some(100));
/// ```
///
/// # Memory
///
/// A slot is key and value, rounded up to a multiple of eight bytes, and one byte of tag. A map that has grown is between 44%
/// and 88% full, up to 90% after `reserve`; one that was made for its entries by [`InlineMap::with_capacity`], or by `collect`
/// from an iterator that knows how many they are, is about 90% full; a `clone` is mostly as full as its original. Tables that
/// were outgrown are used again for further growth, or freed with the map. A value that is within one 8-byte word of its slot
/// is replaced by a single store; a value that spans more words is replaced after the slot has been copied, for readers that
/// come meanwhile.
///
/// # Under a lock
///
/// The closures of `compute`, `update`, `get_or_insert_with`, `remove_if` and their kin run while one segment is locked for
/// writing. So may `Hash` and `Eq`. Under the lock of one map they may read any map. They panic if they write to the same map
/// or walk over it, and can deadlock if they write to other maps, or walk over them, in no common order: see
/// [`HashMap`](crate::HashMap#under-a-lock).
///
/// # Panics in your code
///
/// A panic in `Hash`, `Eq` or a closure leaves the map as it was before the operation, except that entries that
/// [`InlineMap::retain`] has refused before are removed, and entries that [`InlineMap::extend`] has inserted stay.
pub struct InlineMap<K: Pod, V: Pod, S = RandomState> {
    pub(super) slots: Slots<K, V>,
    pub(super) hasher: S,
    /// Copies of keys and values go to and come from any thread.
    entries: PhantomData<*mut (K, V)>,
}

// SAFETY: the copies go with the map.
unsafe impl<K: Pod + Send, V: Pod + Send, S: Send> Send for InlineMap<K, V, S> {}
// SAFETY: through a shared map, copies are put in by one thread and taken out by another, and keys compared by both.
unsafe impl<K: Pod + Send + Sync, V: Pod + Send + Sync, S: Sync> Sync for InlineMap<K, V, S> {}

/// A panic in user code leaves the map whole.
impl<K: Pod + RefUnwindSafe, V: Pod + RefUnwindSafe, S: RefUnwindSafe> RefUnwindSafe for InlineMap<K, V, S> {}
/// A panic in user code leaves the map whole.
impl<K: Pod + RefUnwindSafe, V: Pod + RefUnwindSafe, S: UnwindSafe> UnwindSafe for InlineMap<K, V, S> {}

impl<K: Pod, V: Pod> InlineMap<K, V> {
    /// Creates an empty map: one bucket.
    ///
    /// # Panics
    ///
    /// If there is no memory for it.
    ///
    /// ```
    /// let map = koel::InlineMap::new();
    /// assert_eq!(map.insert(1_u64, 2.5_f64), None);
    /// assert_eq!(map.get(&1), Some(2.5));
    /// ```
    #[must_use]
    #[track_caller]
    pub fn new() -> Self {
        Self::with_capacity(0)
    }

    /// Creates a map that takes this many `entries` without growing, if their hashes spread evenly.
    ///
    /// # Panics
    ///
    /// Where [`InlineMap::try_with_capacity`] returns an error, with its message.
    ///
    /// ```
    /// let map = koel::InlineMap::with_capacity(1000);
    /// let slots = map.capacity();
    /// map.extend((0..1000_u64).map(|id| (id, id)));
    /// assert_eq!(map.capacity(), slots); // it did not have to grow
    /// ```
    #[must_use]
    #[track_caller]
    pub fn with_capacity(entries: usize) -> Self {
        Self::builder().capacity(entries).build()
    }

    /// Creates a map that takes this many `entries` without growing, if their hashes spread evenly.
    ///
    /// # Errors
    ///
    /// If this many entries are beyond the limit, which the error names, or there is no memory for them.
    ///
    /// ```
    /// let error = koel::InlineMap::<u64, u64>::try_with_capacity(usize::MAX).unwrap_err();
    /// assert_eq!(error.requested, usize::MAX);
    /// println!("{error}"); // names the limit
    /// ```
    pub fn try_with_capacity(entries: usize) -> Result<Self, CapacityError> {
        Self::builder().capacity(entries).try_build()
    }

    /// Returns a builder, for options other than the capacity.
    pub fn builder() -> Builder<InlineMapKind<K, V>, RandomState> {
        Builder::new(RandomState::new())
    }
}

impl<K: Pod, V: Pod, S> InlineMap<K, V, S> {
    /// Creates an empty map with this hash function. What is required of it is described at
    /// [`HashMap::with_hasher`](crate::HashMap::with_hasher).
    ///
    /// # Panics
    ///
    /// If there is no memory for it.
    ///
    /// ```
    /// use std::hash::RandomState;
    ///
    /// // The hash function is part of the type: here it is the standard library's.
    /// let map: koel::InlineMap<u64, u64, RandomState> = koel::InlineMap::with_hasher(RandomState::new());
    /// map.insert(1, 10);
    /// assert_eq!(map.get(&1), Some(10));
    /// ```
    #[must_use]
    #[track_caller]
    pub fn with_hasher(hasher: S) -> Self {
        Self::with_capacity_and_hasher(0, hasher)
    }

    /// Creates a map with room for `entries` and this hash function.
    ///
    /// # Panics
    ///
    /// Where [`InlineMap::try_with_capacity_and_hasher`] returns an error, with its message.
    #[must_use]
    #[track_caller]
    pub fn with_capacity_and_hasher(entries: usize, hasher: S) -> Self {
        Builder::<InlineMapKind<K, V>, S>::new(hasher).capacity(entries).build()
    }

    /// Creates a map with room for `entries` and this hash function.
    ///
    /// # Errors
    ///
    /// As [`InlineMap::try_with_capacity`].
    pub fn try_with_capacity_and_hasher(entries: usize, hasher: S) -> Result<Self, CapacityError> {
        Builder::<InlineMapKind<K, V>, S>::new(hasher).capacity(entries).try_build()
    }

    /// Returns the number of entries: exact while nobody writes to or resizes the map, and never less than the number of
    /// entries that are present throughout. Entries that a split moves meanwhile (half a segment's) may be counted twice. Looks
    /// at every segment.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Returns whether there are no entries: never `true` if an entry is present throughout. Looks at segments up to the first
    /// that has entries.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Returns the number of slots, which is more than the number of entries that fit, except those in [the
    /// overflow](crate::Stats::overflow). A map that has grown by itself fills about 7/8 of its slots before it grows again;
    /// one that was made for its entries, or has a fixed capacity, about 94%. [`reserve`](InlineMap::reserve) makes room for a
    /// number of further entries, and [`checked_insert`](InlineMap::checked_insert) says whether there is room for one.
    pub fn capacity(&self) -> usize {
        self.slots.slots()
    }

    /// Returns the ratio of entries to slots: 0 to 1, and more where many are in [the overflow](crate::Stats::overflow).
    pub fn load_factor(&self) -> f64 {
        self.len() as f64 / self.capacity() as f64
    }

    /// Returns the number of bytes that the map has from the allocator: all tables, counted whole, including those that are
    /// kept for further growth.
    pub fn memory_usage(&self) -> usize {
        self.slots.memory_usage()
    }

    /// Returns statistics about the map's inner workings. Locks one segment after the other.
    ///
    /// # Panics
    ///
    /// In a closure that runs under this map's lock: see [the type](InlineMap#under-a-lock).
    ///
    /// ```
    /// let map: koel::InlineMap<u32, u32> = (0..100_000).map(|n| (n, n)).collect();
    /// let stats = map.stats();
    /// assert!(stats.segments > 1 && stats.failed_searches == 0);
    /// println!("{stats}");
    /// ```
    pub fn stats(&self) -> Stats {
        self.slots.stats()
    }

    /// Returns the hash function.
    pub fn hasher(&self) -> &S {
        &self.hasher
    }

    /// Walks over copies of all entries, in no particular order.
    ///
    /// Every entry that is present from the beginning of the walk to its end is seen exactly once, whatever is
    /// inserted and removed meanwhile and however the map grows; others are seen at most once. Entries are copied
    /// under the lock of one segment at a time, and no lock is held while you look at them.
    ///
    /// # Panics
    ///
    /// When the walk goes on in a closure that runs under this map's lock: see
    /// [the type](InlineMap#under-a-lock).
    ///
    /// ```
    /// let map: koel::InlineMap<u64, u64> = (0..100).map(|i| (i, i * i)).collect();
    /// assert_eq!(map.iter().map(|(_, square)| square).max(), Some(99 * 99));
    /// ```
    #[doc(alias = "iter_sync")]
    pub fn iter(&self) -> InlineIter<'_, K, V> {
        InlineIter::new(&self.slots)
    }

    /// Walks over all keys, as [`InlineMap::iter`] does.
    ///
    /// # Panics
    ///
    /// As [`InlineMap::iter`], in a closure that runs under this map's lock.
    ///
    /// ```
    /// let map = koel::InlineMap::from([(1, 10), (2, 20)]);
    /// assert_eq!(map.keys().sum::<i32>(), 3);
    /// ```
    pub fn keys(&self) -> InlineKeys<'_, K, V> {
        InlineKeys(self.iter())
    }

    /// Walks over all values, as [`InlineMap::iter`] does.
    ///
    /// # Panics
    ///
    /// As [`InlineMap::iter`], in a closure that runs under this map's lock.
    ///
    /// ```
    /// let map = koel::InlineMap::from([(1, 10), (2, 20)]);
    /// assert_eq!(map.values().max(), Some(20));
    /// ```
    pub fn values(&self) -> InlineValues<'_, K, V> {
        InlineValues(self.iter())
    }

    /// The map of these slots.
    pub(super) fn of(slots: Slots<K, V>, hasher: S) -> Self {
        InlineMap { slots, hasher, entries: PhantomData }
    }

    /// Removes all entries, and walks over the removed ones. A segment is emptied when the walk reaches it, or when the
    /// iterator is dropped.
    ///
    /// # Panics
    ///
    /// In a closure that runs under this map's lock, also when the iterator is dropped there, unless the thread is unwinding:
    /// then the entries stay. See [the type](InlineMap#under-a-lock).
    ///
    /// ```
    /// let map = koel::InlineMap::from([(1, 10)]);
    /// assert_eq!(map.drain().collect::<Vec<_>>(), [(1, 10)]);
    /// assert!(map.is_empty());
    /// ```
    pub fn drain(&self) -> InlineDrain<'_, K, V> {
        InlineDrain::new(&self.slots)
    }

    /// Removes all entries, one segment after the other.
    ///
    /// # Panics
    ///
    /// In a closure that runs under this map's lock: see [the type](InlineMap#under-a-lock).
    ///
    /// ```
    /// let map = koel::InlineMap::from([(1_u8, 1_u8), (2, 4)]);
    /// map.clear();
    /// assert!(map.is_empty());
    /// ```
    pub fn clear(&self) {
        // Not by a drain, which copies a segment first.
        self.slots.each_segment(|mut writing| {
            if writing.locked.len() > 0 {
                writing.locked.clear();
            }
        });
    }
}

impl<K: Pod + Hash + Eq, V: Pod, S: BuildHasher> InlineMap<K, V, S> {
    #[inline(always)]
    pub(super) fn digest(&self, key: &K) -> Digest {
        Digest::of(key, &self.hasher)
    }

    /// Returns the value of a key. Two tag words and one slot are read; nothing is written.
    ///
    /// ```
    /// let map = koel::InlineMap::from([(3_u8, 9_u8)]);
    /// assert_eq!((map.get(&3), map.get(&4)), (Some(9), None));
    /// ```
    #[doc(alias = "peek_with")]
    #[doc(alias = "read_sync")]
    #[inline]
    pub fn get(&self, key: &K) -> Option<V> {
        self.get_key_value(key).map(|(_, value)| value)
    }

    /// Returns the key, as it is in the map, and its value.
    ///
    /// ```
    /// let map = koel::InlineMap::from([(3_u8, 9_u8)]);
    /// assert_eq!(map.get_key_value(&3), Some((3, 9)));
    /// ```
    #[doc(alias = "view")]
    #[inline]
    pub fn get_key_value(&self, key: &K) -> Option<(K, V)> {
        self.get_key_value_of(self.digest(key), key)
    }

    /// The same, for a key with this digest.
    #[inline(always)]
    pub(super) fn get_key_value_of(&self, digest: Digest, key: &K) -> Option<(K, V)> {
        self.slots.find(digest, || (), |(other, _)| other == *key)
    }

    /// Returns whether the key is present.
    ///
    /// ```
    /// let map = koel::InlineMap::from([(3_u8, 9_u8)]);
    /// assert!(map.contains_key(&3) && !map.contains_key(&4));
    /// ```
    #[inline]
    pub fn contains_key(&self, key: &K) -> bool {
        self.get_key_value(key).is_some()
    }

    /// Returns whether the key may be present, judged by its 1-byte tag alone: `false` is certain; `true` is wrong for about
    /// one absent key in thirty-two in a full map. Reads two tag words and no slot.
    ///
    /// ```
    /// let map = koel::InlineMap::from([(3_u8, 9_u8)]);
    /// assert!(map.may_contain(&3)); // some absent keys seem to be present
    /// let wrong = (4..=255).filter(|key| map.may_contain(key)).count();
    /// assert!(wrong < 50);
    /// ```
    #[inline]
    pub fn may_contain(&self, key: &K) -> bool {
        self.slots.may_contain(self.digest(key))
    }

    /// Looks up the values of many keys: `out[i]` becomes the value of `keys[i]`.
    ///
    /// Keys are hashed, fetched and compared as a pipeline, so that their waits for memory overlap: in tables larger than the
    /// caches this is several times as fast as an [`InlineMap::get`] for each. Each look-up is independent; together they are
    /// not a snapshot.
    ///
    /// # Panics
    ///
    /// If the slices differ in length.
    ///
    /// ```
    /// let map = koel::InlineMap::from([(1, 10), (2, 20)]);
    /// let mut values = [None; 3];
    /// map.get_many(&[2, 3, 1], &mut values);
    /// assert_eq!(values, [Some(20), None, Some(10)]);
    /// ```
    #[inline]
    #[track_caller]
    pub fn get_many(&self, keys: &[K], out: &mut [Option<V>]) {
        assert_eq!(keys.len(), out.len(), "get_many: as many places for values as keys");
        self.find_many(keys, out, |item| item.map(|(_, value)| value));
    }

    /// Looks up whether many keys are present: `out[i]` becomes the result of `contains_key(&keys[i])`, at the cost of
    /// [`InlineMap::get_many`].
    ///
    /// # Panics
    ///
    /// If the slices differ in length.
    ///
    /// ```
    /// let map = koel::InlineMap::from([(1, 10), (2, 20)]);
    /// let mut present = [false; 3];
    /// map.contains_many(&[2, 3, 1], &mut present);
    /// assert_eq!(present, [true, false, true]);
    /// ```
    #[inline]
    #[track_caller]
    pub fn contains_many(&self, keys: &[K], out: &mut [bool]) {
        assert_eq!(keys.len(), out.len(), "contains_many: as many places for answers as keys");
        self.find_many(keys, out, |item| item.is_some());
    }

    /// Looks up many keys, batch by batch; `out[i]` becomes the answer for `keys[i]`.
    #[inline(always)]
    fn find_many<A>(&self, keys: &[K], out: &mut [A], answer: impl Fn(Option<(K, V)>) -> A) {
        let digest = |key: &K| self.digest(key);
        each_batch(keys, out, digest, |keys, digests, out| {
            let report = |i: usize, item| out[i] = answer(item);
            self.slots.find_batch(digests, |_| (), |i, (key, _)| key == keys[i], report);
        });
    }
}

impl<K: Pod, V: Pod, S> FromShape<S> for InlineMapKind<K, V> {
    type Map = InlineMap<K, V, S>;

    fn from_shape(shape: Shape, requested: usize, hasher: S) -> Result<Self::Map, CapacityError> {
        Ok(InlineMap::of(Directory::new(shape, requested)?, hasher))
    }
}

impl<K: Pod, V: Pod, S: Default> Default for InlineMap<K, V, S> {
    #[track_caller]
    fn default() -> Self {
        Self::with_hasher(S::default())
    }
}

/// Walks over the map. Panics in a closure that runs under this map's lock, as [`InlineMap::iter`].
impl<K: Pod + fmt::Debug, V: Pod + fmt::Debug, S> fmt::Debug for InlineMap<K, V, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

/// Maps are equal if they have the same keys with equal values; nobody should be writing to either meanwhile. Walks over the
/// first: panics in a closure that runs under its lock.
impl<K: Pod + Hash + Eq, V: Pod + PartialEq, S: BuildHasher> PartialEq for InlineMap<K, V, S> {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().all(|(key, value)| other.get(&key) == Some(value))
    }
}

impl<K: Pod + Hash + Eq, V: Pod + Eq, S: BuildHasher> Eq for InlineMap<K, V, S> {}

/// Collects pairs into a map made for as many as the iterator promises. If many of them have the same keys, that is more than
/// the map needs; a map that is collected from it once more takes less memory. Of several values of a key the last stays.
/// Panics if there is no memory for them.
impl<K: Pod + Hash + Eq, V: Pod, S: BuildHasher + Default> FromIterator<(K, V)> for InlineMap<K, V, S> {
    #[track_caller]
    fn from_iter<I: IntoIterator<Item = (K, V)>>(iter: I) -> Self {
        let mut map = Self::default();
        extend_alone(&mut map, iter);
        map
    }
}

/// Takes no locks, as nobody else uses the map. Panics, and treats an iterator that panics, as [`InlineMap::extend`] does. An
/// empty map that grows is rebuilt for as many pairs as the iterator promises, if it has less room.
impl<K: Pod + Hash + Eq, V: Pod, S: BuildHasher> Extend<(K, V)> for InlineMap<K, V, S> {
    #[track_caller]
    fn extend<I: IntoIterator<Item = (K, V)>>(&mut self, iter: I) {
        extend_alone(self, iter);
    }
}

impl<K: Pod + Hash + Eq, V: Pod, S: BuildHasher> Extend<(K, V)> for &InlineMap<K, V, S> {
    #[track_caller]
    fn extend<I: IntoIterator<Item = (K, V)>>(&mut self, iter: I) {
        InlineMap::extend(self, iter);
    }
}

/// Copies the pairs; otherwise as the implementation for owned pairs.
///
/// ```
/// let mut map = koel::InlineMap::from([(1, 10)]);
/// Extend::extend(&mut map, &std::collections::HashMap::from([(2, 20)]));
/// assert_eq!((map.get(&1), map.get(&2)), (Some(10), Some(20)));
/// ```
impl<'a, K: Pod + Hash + Eq, V: Pod, S: BuildHasher> Extend<(&'a K, &'a V)> for InlineMap<K, V, S> {
    #[track_caller]
    fn extend<I: IntoIterator<Item = (&'a K, &'a V)>>(&mut self, iter: I) {
        extend_alone(self, iter.into_iter().map(|(key, value)| (*key, *value)));
    }
}

impl<'a, K: Pod + Hash + Eq, V: Pod, S: BuildHasher> Extend<(&'a K, &'a V)> for &InlineMap<K, V, S> {
    #[track_caller]
    fn extend<I: IntoIterator<Item = (&'a K, &'a V)>>(&mut self, iter: I) {
        InlineMap::extend(self, iter.into_iter().map(|(key, value)| (*key, *value)));
    }
}

impl<'m, K: Pod, V: Pod, S> IntoIterator for &'m InlineMap<K, V, S> {
    type Item = (K, V);
    type IntoIter = InlineIter<'m, K, V>;

    fn into_iter(self) -> InlineIter<'m, K, V> {
        self.iter()
    }
}

/// Copies all entries into a `Vec` first, and frees the map. To walk without that copy, walk over `&map` or
/// [`drain`](InlineMap::drain) it.
impl<K: Pod, V: Pod, S> IntoIterator for InlineMap<K, V, S> {
    type Item = (K, V);
    type IntoIter = std::vec::IntoIter<(K, V)>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter().collect::<Vec<_>>().into_iter()
    }
}

impl<K: Pod + Hash + Eq, V: Pod, const N: usize> From<[(K, V); N]> for InlineMap<K, V> {
    #[track_caller]
    fn from(pairs: [(K, V); N]) -> Self {
        pairs.into_iter().collect()
    }
}
