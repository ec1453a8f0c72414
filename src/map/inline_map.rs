//! [`InlineMap`]: keys and values in the slots themselves.

use core::fmt;
use core::hash::{BuildHasher, Hash};
use core::marker::PhantomData;
use core::panic::{RefUnwindSafe, UnwindSafe};

use ahash::RandomState;
use bytemuck::Pod;

use super::builder::sealed::FromShape;
use super::bulk::in_batches;
use super::{Builder, Full, InlineDrain, InlineIter, InlineKeys, InlineMapKind, InlineValues};
use crate::engine::{self, BATCH, CapacityError, Directory, Inline, NoRoom, Shape, Stats};
use crate::hash::Digest;
use crate::outcome::{Compute, FULL, Occupied, Operation};

type Spot<'m, K, V> = engine::Spot<'m, Inline<K, V>>;

pub(super) type Slots<K, V> = Directory<Inline<K, V>>;

/// A concurrent hash map for small plain data, held in the slots themselves: reads return copies.
///
/// No allocation and no reclamation for an entry, no pin, no pointer to follow. Readers take no lock, write no shared
/// memory and never wait, not even for a writer that the system has suspended in the middle of a write; a reader that
/// notices a change under it reads again.
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
/// Keys and values must be [`Pod`], bytes of which any are valid: integers, floats, arrays of them, and structs that
/// derive it. Not `bool`, `char`, enums and tuples, and not structs with padding, references or boxes. Anything that
/// owns memory, and anything much larger than a cache line, belongs into a [`HashMap`](crate::HashMap).
///
/// To derive it, depend on `bytemuck` with its feature `derive`; the compiler says if there is padding:
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
/// A slot is key and value, rounded up to a multiple of eight bytes, and one byte of tag; a map that has grown, also by
/// `collect` and `reserve`, is between 44% and 88% full, one that was made for its entries by [`InlineMap::with_capacity`], or
/// is a `clone`, about 90%. Tables that were grown out of are used again for further growth, or freed with the map. A value
/// that shares its 8-byte words with nothing but its key is replaced by a single store; a longer one takes a copy.
///
/// # Under a lock
///
/// The closures of `compute`, `update`, `get_or_insert_with`, `remove_if` and their kin run while one segment is locked
/// for writing; so may `Hash` and `Eq`. Under the lock of one map they may read any, panic if they write to the same or
/// walk over it, and can deadlock if they write to others in no common order: as told of
/// [`HashMap`](crate::HashMap#under-a-lock).
///
/// # Panics in your code
///
/// A panic in `Hash`, `Eq` or a closure leaves the map as it was before the operation.
pub struct InlineMap<K: Pod, V: Pod, S = RandomState> {
    pub(super) slots: Slots<K, V>,
    pub(super) hasher: S,
    /// Copies of keys and values go to and come from any thread.
    entries: PhantomData<*mut (K, V)>,
}

// SAFETY: the copies go with the map.
unsafe impl<K: Pod + Send, V: Pod + Send, S: Send> Send for InlineMap<K, V, S> {}
// SAFETY: through a shared map, copies are put in by one thread and taken by another, and keys compared by both.
unsafe impl<K: Pod + Send + Sync, V: Pod + Send + Sync, S: Sync> Sync for InlineMap<K, V, S> {}

/// A panic in user code leaves the map as it was.
impl<K: Pod + RefUnwindSafe, V: Pod + RefUnwindSafe, S: RefUnwindSafe> RefUnwindSafe for InlineMap<K, V, S> {}
/// A panic in user code leaves the map as it was.
impl<K: Pod + RefUnwindSafe, V: Pod + RefUnwindSafe, S: UnwindSafe> UnwindSafe for InlineMap<K, V, S> {}

impl<K: Pod, V: Pod> InlineMap<K, V> {
    /// An empty map: one bucket.
    #[must_use]
    pub fn new() -> Self {
        Self::with_capacity(0)
    }

    /// A map with room for `entries`, which grows when it has more.
    ///
    /// # Panics
    ///
    /// Where [`InlineMap::try_with_capacity`] returns an error, with its message.
    #[must_use]
    #[track_caller]
    pub fn with_capacity(entries: usize) -> Self {
        Self::builder().capacity(entries).build()
    }

    /// A map with room for `entries`, which grows when it has more.
    ///
    /// # Errors
    ///
    /// If so many entries are beyond the limit, which the error names, or there is no memory for them.
    pub fn try_with_capacity(entries: usize) -> Result<Self, CapacityError> {
        Self::builder().capacity(entries).try_build()
    }

    /// A builder, for options beyond the capacity.
    pub fn builder() -> Builder<InlineMapKind<K, V>, RandomState> {
        Builder::new(RandomState::new())
    }
}

impl<K: Pod, V: Pod, S> InlineMap<K, V, S> {
    /// An empty map with this hash function. What it should be like is told at
    /// [`HashMap::with_hasher`](crate::HashMap::with_hasher).
    #[must_use]
    pub fn with_hasher(hasher: S) -> Self {
        Self::with_capacity_and_hasher(0, hasher)
    }

    /// A map with room for `entries` and this hash function.
    ///
    /// # Panics
    ///
    /// Where [`InlineMap::try_with_capacity_and_hasher`] returns an error, with its message.
    #[must_use]
    #[track_caller]
    pub fn with_capacity_and_hasher(entries: usize, hasher: S) -> Self {
        Builder::<InlineMapKind<K, V>, S>::new(hasher).capacity(entries).build()
    }

    /// A map with room for `entries` and this hash function.
    ///
    /// # Errors
    ///
    /// As [`InlineMap::try_with_capacity`].
    pub fn try_with_capacity_and_hasher(entries: usize, hasher: S) -> Result<Self, CapacityError> {
        Builder::<InlineMapKind<K, V>, S>::new(hasher).capacity(entries).try_build()
    }

    /// How many entries there are: exact while nobody writes. Looks at every segment.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether there are no entries. Looks at segments up to the first that has some.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// How many slots there are.
    pub fn capacity(&self) -> usize {
        self.slots.slots()
    }

    /// Entries by slots, 0 to 1 (a little more when there is overflow).
    pub fn load_factor(&self) -> f64 {
        self.len() as f64 / self.capacity() as f64
    }

    /// Bytes that the map has from the allocator: all tables, counted whole, those that are kept for further growth
    /// included.
    pub fn memory_usage(&self) -> usize {
        self.slots.memory_usage()
    }

    /// What the map can tell of its inner workings. Locks one segment after the other.
    ///
    /// # Panics
    ///
    /// In a closure that runs under this map's lock: see [the type](InlineMap#under-a-lock).
    pub fn stats(&self) -> Stats {
        self.slots.stats()
    }

    /// The hash function.
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
    /// When the walk begins or goes on in a closure that runs under this map's lock: see
    /// [the type](InlineMap#under-a-lock).
    ///
    /// ```
    /// let map: koel::InlineMap<u64, u64> = (0..100).map(|i| (i, i * i)).collect();
    /// assert_eq!(map.iter().map(|(_, square)| square).max(), Some(99 * 99));
    /// ```
    pub fn iter(&self) -> InlineIter<'_, K, V> {
        InlineIter::new(&self.slots)
    }

    /// Walks over all keys, as [`InlineMap::iter`].
    ///
    /// # Panics
    ///
    /// As [`InlineMap::iter`], in a closure that runs under this map's lock.
    pub fn keys(&self) -> InlineKeys<'_, K, V> {
        InlineKeys::new(self.iter())
    }

    /// Walks over all values, as [`InlineMap::iter`].
    ///
    /// # Panics
    ///
    /// As [`InlineMap::iter`], in a closure that runs under this map's lock.
    pub fn values(&self) -> InlineValues<'_, K, V> {
        InlineValues::new(self.iter())
    }

    /// Removes all entries, and walks over those removed. A segment is emptied when the walk reaches it, or when the
    /// iterator is dropped.
    ///
    /// # Panics
    ///
    /// In a closure that runs under this map's lock: see [the type](InlineMap#under-a-lock).
    pub fn drain(&self) -> InlineDrain<'_, K, V> {
        InlineDrain::new(&self.slots)
    }

    /// Removes all entries, one segment after the other.
    ///
    /// # Panics
    ///
    /// In a closure that runs under this map's lock: see [the type](InlineMap#under-a-lock).
    pub fn clear(&self) {
        drop(self.drain());
    }
}

impl<K: Pod + Hash + Eq, V: Pod, S: BuildHasher> InlineMap<K, V, S> {
    #[inline(always)]
    fn digest(&self, key: &K) -> Digest {
        Digest::new(self.hasher.hash_one(key))
    }

    /// The value of a key. Two tag words and one slot are read; nothing is written.
    #[inline]
    pub fn get(&self, key: &K) -> Option<V> {
        self.get_key_value(key).map(|(_, value)| value)
    }

    /// The key, as it is in the map, and its value.
    #[inline]
    pub fn get_key_value(&self, key: &K) -> Option<(K, V)> {
        self.slots.find(self.digest(key), |(other, _)| other == *key)
    }

    /// Whether the key is present.
    #[inline]
    pub fn contains_key(&self, key: &K) -> bool {
        self.get_key_value(key).is_some()
    }

    /// Whether the key may be present, judged by its 1-byte tag alone: false is certain; true is wrong for about one
    /// absent key in thirty-two in a full map. Reads two tag words and no slot.
    #[inline]
    pub fn may_contain(&self, key: &K) -> bool {
        self.slots.may_contain(self.digest(key))
    }

    /// The values of many keys: `out[i]` becomes that of `keys[i]`.
    ///
    /// Keys are hashed, fetched and compared as a pipeline, so that their waits for memory overlap: in tables larger
    /// than the caches several times as fast as so many [`InlineMap::get`]s. Each look-up is one of its own; together
    /// they are no snapshot.
    ///
    /// # Panics
    ///
    /// If the slices are not of one length.
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
        for (keys, out) in keys.chunks(BATCH).zip(out.chunks_mut(BATCH)) {
            self.find_batch(keys, |i, item| out[i] = item.map(|(_, value)| value));
        }
    }

    /// Whether many keys are present: `out[i]` becomes what `contains_key(&keys[i])` would be, at the price of
    /// [`InlineMap::get_many`].
    ///
    /// # Panics
    ///
    /// If the slices are not of one length.
    #[inline]
    #[track_caller]
    pub fn contains_many(&self, keys: &[K], out: &mut [bool]) {
        assert_eq!(keys.len(), out.len(), "contains_many: as many places for answers as keys");
        for (keys, out) in keys.chunks(BATCH).zip(out.chunks_mut(BATCH)) {
            self.find_batch(keys, |i, item| out[i] = item.is_some());
        }
    }

    #[inline(always)]
    fn find_batch(&self, keys: &[K], report: impl FnMut(usize, Option<(K, V)>)) {
        let mut digests = [Digest::ZERO; BATCH];
        for (digest, key) in digests.iter_mut().zip(keys) {
            *digest = self.digest(key);
        }
        self.slots.find_batch(&digests[..keys.len()], |i, (key, _)| key == keys[i], report);
    }

    /// Hashes a key, locks its segment and finds it.
    #[inline]
    fn spot(&self, key: &K) -> Spot<'_, K, V> {
        self.spot_of(self.digest(key), key)
    }

    /// Locks the segment of a key with this digest, and finds the key.
    #[inline]
    fn spot_of(&self, digest: Digest, key: &K) -> Spot<'_, K, V> {
        self.slots.lock_and_find(digest, |(other, _)| other == *key)
    }

    /// Puts a new entry where none is.
    #[inline]
    fn add(&self, spot: Spot<'_, K, V>, key: K, value: V) -> Result<(), NoRoom> {
        self.slots.insert(spot, (key, value), |(key, _)| self.digest(&key))
    }

    #[track_caller]
    fn must_add(&self, spot: Spot<'_, K, V>, key: K, value: V) -> V {
        match self.add(spot, key, value) {
            Ok(()) => value,
            Err(NoRoom) => panic!("{FULL}"),
        }
    }

    /// Inserts a value, and returns the one that the key had; the key that is there stays.
    ///
    /// # Panics
    ///
    /// If the map has a fixed capacity and is full, or cannot grow for lack of memory: see
    /// [`InlineMap::checked_insert`]. And, like all that writes, in a closure that runs under this map's lock: see
    /// [the type](InlineMap#under-a-lock).
    #[inline]
    #[track_caller]
    pub fn insert(&self, key: K, value: V) -> Option<V> {
        match self.checked_insert(key, value) {
            Ok(old) => old,
            Err(_) => panic!("{FULL}"),
        }
    }

    /// Inserts a value and returns the one that the key had, or hands key and value back if there is no room.
    ///
    /// # Errors
    ///
    /// [`Full`] if the key is absent and the map has a fixed capacity and is full, or cannot grow for lack of memory.
    /// The map is as it was. A map of fixed capacity to which several threads write may say so a few entries early.
    ///
    /// # Panics
    ///
    /// In a closure that runs under this map's lock: see [the type](InlineMap#under-a-lock).
    ///
    /// ```
    /// let map = koel::InlineMap::builder().fixed_capacity(2).build();
    /// let full = (0..9).find_map(|i| map.checked_insert(i, i).err()).unwrap();
    /// assert!(!map.contains_key(&full.key) && map.len() >= 2);
    /// ```
    #[inline]
    pub fn checked_insert(&self, key: K, value: V) -> Result<Option<V>, Full<K, V>> {
        self.checked_insert_of(self.digest(&key), key, value)
    }

    /// [`InlineMap::checked_insert`] of a key with this digest.
    #[inline]
    fn checked_insert_of(&self, digest: Digest, key: K, value: V) -> Result<Option<V>, Full<K, V>> {
        let mut spot = self.spot_of(digest, &key);
        if spot.found.is_some() {
            return Ok(spot.replace(value).map(|(_, old)| old));
        }
        self.add(spot, key, value).map(|()| None).map_err(|NoRoom| Full { key, value })
    }

    /// Inserts a value unless the key is there, and returns it.
    ///
    /// # Errors
    ///
    /// [`Occupied`] if the key is there: with its value, and the one that was not inserted.
    ///
    /// # Panics
    ///
    /// If there is no room, and in a closure that runs under this map's lock, as [`InlineMap::insert`].
    #[track_caller]
    pub fn try_insert(&self, key: K, value: V) -> Result<V, Occupied<V, V>> {
        let spot = self.spot(&key);
        match spot.current() {
            Some((_, current)) => Err(Occupied { current, not_inserted: value }),
            None => Ok(self.must_add(spot, key, value)),
        }
    }

    /// The value of a key, after inserting `value` if it was absent.
    ///
    /// # Panics
    ///
    /// If there is no room, as [`InlineMap::insert`].
    #[track_caller]
    pub fn get_or_insert(&self, key: K, value: V) -> V {
        self.get_or_insert_with(key, || value)
    }

    /// The value of a key, after inserting what `make` returns if it was absent.
    ///
    /// `make` runs at most once, under the writer lock of the key's segment: no two threads make a value for one key.
    ///
    /// # Panics
    ///
    /// If there is no room, as [`InlineMap::insert`]; if `make` panics or writes to the same map, which then is as it
    /// was.
    #[track_caller]
    pub fn get_or_insert_with(&self, key: K, make: impl FnOnce() -> V) -> V {
        if let Some(value) = self.get(&key) {
            return value;
        }
        let spot = self.spot(&key);
        match spot.current() {
            Some((_, current)) => current,
            None => self.must_add(spot, key, make()),
        }
    }

    /// Replaces the value of a key by what `update` makes of it, and returns the new one; `None` if it is absent.
    ///
    /// `update` runs at most once, under the writer lock of the key's segment.
    ///
    /// # Panics
    ///
    /// If `update` panics or writes to the same map, which then is as it was.
    #[track_caller]
    pub fn update(&self, key: K, update: impl FnOnce(V) -> V) -> Option<V> {
        let mut spot = self.spot(&key);
        let (_, current) = spot.current()?;
        let value = update(current);
        spot.replace(value);
        Some(value)
    }

    /// Replaces the value of a key by what `update` makes of it, or inserts `value`; returns the new value.
    ///
    /// # Panics
    ///
    /// As [`InlineMap::update`], and as [`InlineMap::insert`] if there is no room.
    #[track_caller]
    pub fn update_or_insert(&self, key: K, update: impl FnOnce(V) -> V, value: V) -> V {
        self.update_or_insert_with(key, update, || value)
    }

    /// Replaces the value of a key by what `update` makes of it, or inserts what `make` returns; returns the new
    /// value. One of the two runs, once, under the writer lock of the key's segment.
    ///
    /// # Panics
    ///
    /// As [`InlineMap::update`], and as [`InlineMap::insert`] if there is no room.
    ///
    /// ```
    /// let counts = koel::InlineMap::new();
    /// for byte in *b"cuckoo" {
    ///     counts.update_or_insert_with(byte, |n| n + 1, || 1_u64);
    /// }
    /// assert_eq!(counts.get(&b'c'), Some(2));
    /// ```
    #[track_caller]
    pub fn update_or_insert_with(&self, key: K, update: impl FnOnce(V) -> V, make: impl FnOnce() -> V) -> V {
        let mut spot = self.spot(&key);
        match spot.current() {
            Some((_, current)) => {
                let value = update(current);
                spot.replace(value);
                value
            }
            None => self.must_add(spot, key, make()),
        }
    }

    /// Inserts, replaces or removes, as `f` decides upon seeing the value, if there is one.
    ///
    /// `f` runs exactly once, under the writer lock of the key's segment: nobody else writes to the key from what it
    /// sees to what it decides. It should be short; it may read the map, but not write to it.
    ///
    /// # Panics
    ///
    /// If `f` panics or writes to the same map; if it asks to remove an absent key; if there is no room, as
    /// [`InlineMap::insert`]. The map then is as it was.
    ///
    /// ```
    /// use koel::{Compute, InlineMap, Operation};
    ///
    /// let map = InlineMap::from([(1, 10)]);
    /// let result = map.compute(1, |value| match value {
    ///     Some(n) if n > 5 => Operation::Insert(n / 2),
    ///     _ => Operation::Abort("nothing to halve"),
    /// });
    /// assert_eq!(result, Compute::Updated { old: (1, 10), new: (1, 5) });
    /// ```
    #[track_caller]
    pub fn compute<T, F>(&self, key: K, f: F) -> Compute<K, V, T>
    where
        F: FnOnce(Option<V>) -> Operation<V, T>,
    {
        let mut spot = self.spot(&key);
        let current = spot.current();
        match (f(current.map(|(_, value)| value)), current) {
            (Operation::Abort(result), _) => Compute::Aborted(result),
            (Operation::Insert(value), None) => Compute::Inserted(key, self.must_add(spot, key, value)),
            (Operation::Insert(value), Some(old)) => {
                spot.replace(value);
                Compute::Updated { old, new: (old.0, value) }
            }
            (Operation::Remove, Some((key, value))) => {
                spot.remove();
                Compute::Removed(key, value)
            }
            (Operation::Remove, None) => panic!("compute: Operation::Remove for a key that is absent"),
        }
    }

    /// Removes a key, and returns the value it had.
    ///
    /// # Panics
    ///
    /// In a closure that runs under this map's lock: see [the type](InlineMap#under-a-lock).
    #[inline]
    pub fn remove(&self, key: &K) -> Option<V> {
        self.remove_entry(key).map(|(_, value)| value)
    }

    /// Removes a key, and returns it, as it was in the map, with the value it had.
    ///
    /// # Panics
    ///
    /// In a closure that runs under this map's lock: see [the type](InlineMap#under-a-lock).
    #[inline]
    pub fn remove_entry(&self, key: &K) -> Option<(K, V)> {
        self.spot(key).remove()
    }

    /// Removes a key if `condition` holds for its entry.
    ///
    /// `condition` runs at most once, under the writer lock of the key's segment.
    ///
    /// # Errors
    ///
    /// If the condition does not hold: the entry, which stays. `Ok(None)` says that there was none.
    ///
    /// # Panics
    ///
    /// If `condition` panics or writes to the same map, which then is as it was.
    pub fn remove_if<F>(&self, key: &K, condition: F) -> Result<Option<(K, V)>, (K, V)>
    where
        F: FnOnce(&K, &V) -> bool,
    {
        let mut spot = self.spot(key);
        match spot.current() {
            None => Ok(None),
            Some((key, value)) if condition(&key, &value) => Ok(spot.remove()),
            Some(current) => Err(current),
        }
    }

    /// Keeps the entries for which `keep` holds and removes the others.
    ///
    /// Sees each entry that is present throughout, with no lock held. If a value is replaced between `keep`'s verdict
    /// and the removal, `keep` is asked again about the new one.
    ///
    /// # Panics
    ///
    /// In a closure that runs under this map's lock: see [the type](InlineMap#under-a-lock).
    pub fn retain(&self, mut keep: impl FnMut(&K, &V) -> bool) {
        for (key, mut value) in self.iter() {
            while !keep(&key, &value) {
                let mut spot = self.spot(&key);
                let Some((_, current)) = spot.current() else { break };
                if bytemuck::bytes_of(&current) == bytemuck::bytes_of(&value) {
                    spot.remove();
                    break;
                }
                value = current;
            }
        }
    }

    /// Inserts all pairs, in order. Into an empty map, room is made beforehand for as many as the iterator promises; into one
    /// that has entries, `reserve` makes it, and spares this map to grow on the way.
    ///
    /// Up to 32 pairs are taken before the first of them is inserted, so that their waits for memory overlap: beyond the
    /// caches that is faster than inserting one by one. So an iterator that waits, as a channel's does, holds pairs back that
    /// it has yielded; [`InlineMap::insert`] does not. If the iterator panics, those that it yielded are inserted, as far as
    /// there is room. If there is none, or an insertion panics, up to 31 pairs that were taken after it are dropped.
    ///
    /// # Panics
    ///
    /// If there is no room, and in a closure that runs under this map's lock, as [`InlineMap::insert`].
    #[track_caller]
    pub fn extend(&self, pairs: impl IntoIterator<Item = (K, V)>) {
        let pairs = pairs.into_iter();
        let (at_least, _) = pairs.size_hint();
        if at_least > 1 && self.is_empty() {
            // As far as there is memory: a hint is no promise.
            let _ = self.try_reserve(at_least);
        }
        let done = self.insert_digested(pairs.map(|(key, value)| (self.digest(&key), key, value)));
        assert!(done, "{FULL}");
    }

    /// Inserts pairs of which the digests are known, until one has no room. Whether all had.
    pub(super) fn insert_digested(&self, pairs: impl Iterator<Item = (Digest, K, V)>) -> bool {
        in_batches(
            pairs,
            |digest| self.slots.prefetch(digest),
            |digest, key, value| self.checked_insert_of(digest, key, value).is_ok(),
        )
    }

    /// Makes room for `additional` more entries: if they spread evenly, none of them makes the map grow. A map of
    /// fixed capacity stays as it is.
    ///
    /// # Panics
    ///
    /// If there is no memory for them, and in a closure that runs under this map's lock: see
    /// [the type](InlineMap#under-a-lock).
    #[track_caller]
    pub fn reserve(&self, additional: usize) {
        let done = self.try_reserve(additional);
        assert!(done, "no memory for {additional} more entries");
    }

    /// False: there was not memory for all.
    pub(super) fn try_reserve(&self, additional: usize) -> bool {
        self.slots.reserve(additional, &|(key, _)| self.digest(&key))
    }

    /// Makes segments that have much more room than entries smaller, by halves: one that is about half full stays as it is, and
    /// a `clone` takes less memory. What they leave behind is kept for readers that may still be at it, and used when the map
    /// grows again; [`InlineMap::release_unused`] frees it. A map of fixed capacity keeps its slots.
    ///
    /// # Panics
    ///
    /// In a closure that runs under this map's lock: see [the type](InlineMap#under-a-lock).
    pub fn shrink_to_fit(&self) {
        // No purge: readers have no guards [G4].
        self.slots.shrink(&|(key, _)| self.digest(&key));
    }

    /// Frees the tables that the map has grown or shrunk out of. Exclusive access proves that no reader is at them.
    ///
    /// ```
    /// let mut map: koel::InlineMap<u64, u64> = (0..10_000).map(|i| (i, i)).collect();
    /// map.retain(|key, _| *key < 10);
    /// map.shrink_to_fit();
    /// map.release_unused();
    /// assert!(map.memory_usage() < 10_000);
    /// ```
    pub fn release_unused(&mut self) {
        let unused = self.slots.drain_pool();
        // SAFETY: `&mut self`: nobody else uses the map.
        unsafe { unused.free() };
    }
}

impl<K: Pod, V: Pod> Spot<'_, K, V> {
    /// Replaces the value, and returns the entry as it was.
    #[inline]
    fn replace(&mut self, value: V) -> Option<(K, V)> {
        let found = self.found?;
        let old = self.writing.locked.item(found);
        self.writing.locked.replace(found, (old.0, value));
        Some(old)
    }

    /// Removes the entry, and returns it.
    #[inline]
    fn remove(&mut self) -> Option<(K, V)> {
        let found = self.found.take()?;
        let old = self.writing.locked.item(found);
        self.writing.locked.remove(found);
        Some(old)
    }
}

impl<K: Pod, V: Pod, S> FromShape<S> for InlineMapKind<K, V> {
    type Map = InlineMap<K, V, S>;

    fn from_shape(shape: Shape, requested: usize, hasher: S) -> Result<Self::Map, CapacityError> {
        Ok(InlineMap { slots: Directory::new(shape, requested)?, hasher, entries: PhantomData })
    }
}

impl<K: Pod, V: Pod, S: Default> Default for InlineMap<K, V, S> {
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

/// Copies every entry that is present throughout, into a map with the same options and room for as many. Panics if
/// there is no memory for it, and in a closure that runs under this map's lock.
impl<K: Pod + Hash + Eq, V: Pod, S: Clone + BuildHasher> Clone for InlineMap<K, V, S> {
    fn clone(&self) -> Self {
        let copy = self
            .slots
            .shape_of_copy()
            .and_then(|shape| InlineMapKind::from_shape(shape, self.len(), self.hasher.clone()));
        let copy: Self = copy.unwrap_or_else(|error| panic!("{error}"));
        InlineMap::extend(&copy, self.iter());
        copy
    }
}

/// Equal if they have the same keys with equal values; both should be quiet.
impl<K: Pod + Hash + Eq, V: Pod + PartialEq, S: BuildHasher> PartialEq for InlineMap<K, V, S> {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().all(|(key, value)| other.get(&key) == Some(value))
    }
}

impl<K: Pod + Hash + Eq, V: Pod + Eq, S: BuildHasher> Eq for InlineMap<K, V, S> {}

impl<K: Pod + Hash + Eq, V: Pod, S: BuildHasher + Default> FromIterator<(K, V)> for InlineMap<K, V, S> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(iter: I) -> Self {
        let map = Self::default();
        InlineMap::extend(&map, iter);
        map
    }
}

impl<K: Pod + Hash + Eq, V: Pod, S: BuildHasher> Extend<(K, V)> for InlineMap<K, V, S> {
    fn extend<I: IntoIterator<Item = (K, V)>>(&mut self, iter: I) {
        InlineMap::extend(self, iter);
    }
}

impl<K: Pod + Hash + Eq, V: Pod, S: BuildHasher> Extend<(K, V)> for &InlineMap<K, V, S> {
    fn extend<I: IntoIterator<Item = (K, V)>>(&mut self, iter: I) {
        InlineMap::extend(self, iter);
    }
}

impl<'m, K: Pod, V: Pod, S> IntoIterator for &'m InlineMap<K, V, S> {
    type Item = (K, V);
    type IntoIter = InlineIter<'m, K, V>;

    fn into_iter(self) -> InlineIter<'m, K, V> {
        self.iter()
    }
}

impl<K: Pod, V: Pod, S> IntoIterator for InlineMap<K, V, S> {
    type Item = (K, V);
    type IntoIter = std::vec::IntoIter<(K, V)>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter().collect::<Vec<_>>().into_iter()
    }
}

impl<K: Pod + Hash + Eq, V: Pod, const N: usize> From<[(K, V); N]> for InlineMap<K, V> {
    fn from(pairs: [(K, V); N]) -> Self {
        pairs.into_iter().collect()
    }
}
