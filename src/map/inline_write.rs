//! [`InlineMap`], the writing half. Writes that hand back a pair that has no room are in `inline_checked`.

use core::hash::{BuildHasher, Hash};

use bytemuck::Pod;

use super::alone::Fill;
use super::bulk::{self, SharedMap, Target};
use super::retain;
use super::{Checked, Full, InlineMap};
use crate::engine::{self, CapacityError, Inline, NoRoom};
use crate::hash::Digest;
use crate::outcome::{Compute, Occupied, Operation, expect_room};

pub(super) type Spot<'m, K, V> = engine::Spot<'m, Inline<K, V>>;

impl<K: Pod + Hash + Eq, V: Pod, S: BuildHasher> InlineMap<K, V, S> {
    /// Hashes a key, locks its segment and finds it.
    #[inline]
    pub(super) fn spot(&self, key: &K) -> Spot<'_, K, V> {
        self.spot_of(self.digest(key), key)
    }

    /// Locks the segment of a key with this digest, and finds the key.
    #[inline(always)]
    pub(super) fn spot_of(&self, digest: Digest, key: &K) -> Spot<'_, K, V> {
        self.slots.lock_and_find(digest, |(other, _)| other == *key)
    }

    /// Puts a new entry where there is none, and returns its value; hands key and value back if there is no room.
    #[inline(always)]
    pub(super) fn add_at(&self, spot: Spot<'_, K, V>, key: K, value: V) -> Checked<V, K, V> {
        match self.slots.insert(spot, (key, value), |(key, _)| self.digest(&key)) {
            Ok(()) => Ok(value),
            Err(NoRoom) => Err(Full { key, value }),
        }
    }

    /// Inserts a value, and returns the previous value of the key; the key that is in the map stays.
    ///
    /// # Panics
    ///
    /// If the map has a fixed capacity and is full, or cannot grow for lack of memory: see [`InlineMap::checked_insert`]. And,
    /// like all methods that write, in a closure that runs under this map's lock: see [the type](InlineMap#under-a-lock).
    ///
    /// ```
    /// let map = koel::InlineMap::new();
    /// assert_eq!(map.insert(1, 10), None);
    /// assert_eq!(map.insert(1, 11), Some(10));
    /// ```
    #[doc(alias = "upsert_sync")]
    #[inline]
    #[track_caller]
    pub fn insert(&self, key: K, value: V) -> Option<V> {
        expect_room(self.checked_insert(key, value))
    }

    /// Inserts a value unless the key is present, and returns it. For a key that is present, this costs a look-up.
    ///
    /// # Errors
    ///
    /// [`Occupied`] if the key is present: with its value, and the value that was not inserted.
    ///
    /// # Panics
    ///
    /// If there is no room, and in a closure that runs under this map's lock, as [`InlineMap::insert`].
    ///
    /// ```
    /// let map = koel::InlineMap::from([(1, 10)]);
    /// assert_eq!(map.try_insert(2, 20), Ok(20));
    /// let occupied = map.try_insert(1, 11).unwrap_err();
    /// assert_eq!((occupied.current, occupied.not_inserted), (10, 11));
    /// ```
    #[doc(alias = "insert_sync")]
    #[track_caller]
    pub fn try_insert(&self, key: K, value: V) -> Result<V, Occupied<V, V>> {
        expect_room(self.checked_try_insert(key, value))
    }

    /// Inserts the result of `make` unless the key is present, and returns it. The result tells whether the value is new, which
    /// that of [`InlineMap::get_or_insert_with`] does not.
    ///
    /// `make` runs at most once, under the writer lock of the key's segment. For a key that is present, this costs a look-up.
    ///
    /// # Errors
    ///
    /// If the key is present: its value.
    ///
    /// # Panics
    ///
    /// As [`InlineMap::get_or_insert_with`].
    ///
    /// ```
    /// let map = koel::InlineMap::new();
    /// assert_eq!(map.try_insert_with(12, || 144), Ok(144));
    /// assert_eq!(map.try_insert_with(12, || unreachable!()), Err(144));
    /// ```
    #[track_caller]
    pub fn try_insert_with(&self, key: K, make: impl FnOnce() -> V) -> Result<V, V> {
        match expect_room(self.find_or_add(key, make)) {
            (value, true) => Ok(value),
            (value, false) => Err(value),
        }
    }

    /// Returns the value of a key, after inserting `value` if the key was absent.
    ///
    /// # Panics
    ///
    /// If there is no room, as [`InlineMap::insert`].
    ///
    /// ```
    /// let map = koel::InlineMap::new();
    /// assert_eq!((map.get_or_insert(1_u8, 10_u8), map.get_or_insert(1, 20)), (10, 10));
    /// ```
    #[track_caller]
    pub fn get_or_insert(&self, key: K, value: V) -> V {
        self.get_or_insert_with(key, || value)
    }

    /// Returns the value of a key, after inserting the type's default if the key was absent. As with
    /// [`InlineMap::get_or_insert_with`], a key that is present costs a look-up.
    ///
    /// # Panics
    ///
    /// As [`InlineMap::get_or_insert_with`].
    ///
    /// ```
    /// let map: koel::InlineMap<u32, u64> = koel::InlineMap::new();
    /// assert_eq!((map.get_or_insert_default(7), map.get(&7)), (0, Some(0)));
    /// ```
    #[doc(alias = "or_default")]
    #[track_caller]
    pub fn get_or_insert_default(&self, key: K) -> V
    where
        V: Default,
    {
        self.get_or_insert_with(key, V::default)
    }

    /// Returns the value of a key, after inserting the result of `make` if the key was absent.
    ///
    /// `make` runs at most once, under the writer lock of the key's segment: no two threads make a value for one key.
    ///
    /// # Panics
    ///
    /// If there is no room, as [`InlineMap::insert`]; if `make` panics or writes to the same map, which is then as it was.
    ///
    /// ```
    /// let map = koel::InlineMap::new();
    /// assert_eq!(map.get_or_insert_with(12, || 144), 144);
    /// assert_eq!(map.get_or_insert_with(12, || unreachable!()), 144);
    /// ```
    #[doc(alias = "entry_sync")]
    #[doc(alias = "or_insert_with")]
    #[track_caller]
    pub fn get_or_insert_with(&self, key: K, make: impl FnOnce() -> V) -> V {
        expect_room(self.checked_get_or_insert_with(key, make))
    }

    /// Returns the value of a key, after inserting the result of `make`, unless that is an error, if the key was absent.
    ///
    /// `make` runs at most once, under the writer lock of the key's segment, as in [`InlineMap::get_or_insert_with`].
    ///
    /// # Errors
    ///
    /// The error of `make`; the map is as it was.
    ///
    /// # Panics
    ///
    /// As [`InlineMap::get_or_insert_with`].
    ///
    /// ```
    /// let map: koel::InlineMap<u32, u32> = koel::InlineMap::new();
    /// assert!(map.try_get_or_insert_with(1, || "seven".parse()).is_err());
    /// assert_eq!(map.try_get_or_insert_with(1, || "7".parse()), Ok(7));
    /// ```
    #[doc(alias = "or_try_insert_with")]
    #[track_caller]
    pub fn try_get_or_insert_with<E>(&self, key: K, make: impl FnOnce() -> Result<V, E>) -> Result<V, E> {
        expect_room(self.try_find_or_add(key, make)).map(|(value, _)| value)
    }

    /// Replaces the value of a key by the result of `update`, and returns the new value; `None` if the key is absent.
    ///
    /// `update` runs at most once, under the writer lock of the key's segment.
    ///
    /// # Panics
    ///
    /// If `update` panics or writes to the same map, which is then as it was.
    ///
    /// ```
    /// let map = koel::InlineMap::from([(1_u8, 10_u8)]);
    /// assert_eq!((map.update(1, |n| n + 1), map.update(2, |n| n + 1)), (Some(11), None));
    /// ```
    #[doc(alias = "update_sync")]
    #[doc(alias = "alter")]
    #[doc(alias = "get_mut")]
    #[track_caller]
    pub fn update(&self, key: K, update: impl FnOnce(V) -> V) -> Option<V> {
        let mut spot = self.spot(&key);
        let (_, current) = spot.current()?;
        let value = update(current);
        spot.replace(value);
        Some(value)
    }

    /// Replaces the value of a key by the result of `update`, or inserts `value`; returns the new value.
    ///
    /// # Panics
    ///
    /// As [`InlineMap::update`], and as [`InlineMap::insert`] if there is no room.
    ///
    /// ```
    /// let map = koel::InlineMap::new();
    /// for letter in b"hello" {
    ///     map.update_or_insert(*letter, |count| count + 1, 1_u32);
    /// }
    /// assert_eq!((map.get(&b'l'), map.get(&b'h')), (Some(2), Some(1)));
    /// ```
    #[doc(alias = "and_modify")]
    #[track_caller]
    pub fn update_or_insert(&self, key: K, update: impl FnOnce(V) -> V, value: V) -> V {
        expect_room(self.checked_update_or_insert(key, update, value))
    }

    /// Replaces the value of a key by the result of `update`, or inserts the result of `make`; returns the new value. One of
    /// the two runs, once, under the writer lock of the key's segment.
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
        expect_room(self.checked_update_or_insert_with(key, update, make))
    }

    /// Inserts, replaces or removes an entry, as `f` decides when it sees the present value, if there is one.
    ///
    /// `f` runs exactly once, under the writer lock of the key's segment: nobody else writes to the key between what `f` sees
    /// and what it decides. It should be short; it may read the map, but not write to it.
    ///
    /// # Panics
    ///
    /// If `f` panics or writes to the same map; if it asks to remove an absent key; if there is no room, as
    /// [`InlineMap::insert`]. The map is then as it was.
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
    #[doc(alias = "compute_if_present")]
    #[doc(alias = "entry")]
    #[track_caller]
    pub fn compute<T, F>(&self, key: K, f: F) -> Compute<K, V, T>
    where
        F: FnOnce(Option<V>) -> Operation<V, T>,
    {
        expect_room(self.checked_compute(key, f))
    }

    /// Removes a key, and returns the value it had.
    ///
    /// # Panics
    ///
    /// In a closure that runs under this map's lock: see [the type](InlineMap#under-a-lock).
    ///
    /// ```
    /// let map = koel::InlineMap::from([(1_u8, 10_u8)]);
    /// assert_eq!((map.remove(&1), map.remove(&1)), (Some(10), None));
    /// ```
    #[inline]
    pub fn remove(&self, key: &K) -> Option<V> {
        self.remove_entry(key).map(|(_, value)| value)
    }

    /// Removes a key, and returns it, as it was in the map, with the value it had.
    ///
    /// # Panics
    ///
    /// In a closure that runs under this map's lock: see [the type](InlineMap#under-a-lock).
    ///
    /// ```
    /// let map = koel::InlineMap::from([(3_u8, 9_u8)]);
    /// assert_eq!(map.remove_entry(&3), Some((3, 9)));
    /// assert!(map.is_empty());
    /// ```
    #[doc(alias = "remove_sync")]
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
    /// If the condition does not hold: the entry, which stays. `Ok(None)` means that there was none.
    ///
    /// # Panics
    ///
    /// If `condition` panics or writes to the same map, which is then as it was.
    ///
    /// ```
    /// let map = koel::InlineMap::from([(1, 10)]);
    /// assert_eq!(map.remove_if(&1, |_, value| *value > 10), Err((1, 10)));
    /// assert_eq!(map.remove_if(&1, |_, value| *value < 11), Ok(Some((1, 10))));
    /// assert_eq!(map.remove_if(&1, |_, _| true), Ok(None));
    /// ```
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
    /// Sees the entries that a [walk](InlineMap::iter) sees, with no lock held: each entry that is present throughout, others
    /// at most once. Entries that `keep` refuses are removed up to 31 at a time, even if it panics later; until then they are
    /// found, and counted by [`InlineMap::len`]. If an entry has been replaced when it is to be removed, by another value or an
    /// equal key of other bytes, `keep` is asked about the new one, and so on: a closure that replaces each entry that it
    /// refuses does not end. An entry that was removed and came back with the same bytes is removed as well.
    ///
    /// # Panics
    ///
    /// In a closure that runs under this map's lock: see [the type](InlineMap#under-a-lock).
    ///
    /// ```
    /// let map: koel::InlineMap<u32, u32> = (0..10).map(|i| (i, i)).collect();
    /// map.retain(|_, value| value % 2 == 0);
    /// assert_eq!(map.len(), 5);
    /// ```
    #[doc(alias = "retain_sync")]
    pub fn retain(&self, mut keep: impl FnMut(&K, &V) -> bool) {
        retain::retain(self, |(key, value)| keep(&key, &value));
    }

    /// Inserts all pairs, in order. An empty map gets room beforehand for as many pairs as the iterator promises. A map that
    /// has entries does not: call `reserve` before, so that it need not grow on the way.
    ///
    /// With exclusive access to the map, `Extend::extend(&mut map, pairs)` is 1.2 to 2 times as fast: it takes no locks, and
    /// rebuilds an empty map for as many pairs as the iterator promises.
    ///
    /// Up to 32 pairs (one, if they are larger than 4 KiB) are taken before the first of them is inserted, so that their waits
    /// for memory overlap: beyond the caches that is faster than inserting one by one. So where an iterator waits, as a
    /// channel's does, pairs that it has yielded are held back; with [`InlineMap::insert`] they are not. If the iterator
    /// panics, the pairs that it yielded are inserted, as far as there is room. If there is no room, or an insertion panics, up
    /// to 31 pairs that were taken after it are dropped.
    ///
    /// # Panics
    ///
    /// If there is no room, and in a closure that runs under this map's lock, as [`InlineMap::insert`].
    ///
    /// ```
    /// let map = koel::InlineMap::from([(1, 10)]);
    /// map.extend([(1, 11), (2, 20)]);
    /// assert_eq!((map.get(&1), map.get(&2)), (Some(11), Some(20)));
    /// ```
    #[track_caller]
    pub fn extend(&self, pairs: impl IntoIterator<Item = (K, V)>) {
        bulk::extend(self, pairs);
    }

    /// Makes room for `additional` more entries: if they spread evenly, none of them makes the map grow. A map of
    /// fixed capacity stays as it is.
    ///
    /// Looks at each segment, under its lock, unless an earlier call has made as much room: a microsecond for some dozens of
    /// segments.
    ///
    /// # Panics
    ///
    /// If there is no memory for them, and in a closure that runs under this map's lock: see
    /// [the type](InlineMap#under-a-lock).
    ///
    /// ```
    /// let map: koel::InlineMap<u64, u64> = koel::InlineMap::new();
    /// map.reserve(10_000);
    /// assert!(map.capacity() >= 10_000);
    /// ```
    #[track_caller]
    pub fn reserve(&self, additional: usize) {
        bulk::reserve(self, additional);
    }

    /// As [`InlineMap::reserve`], but returns an error if there is no memory for this many entries, or a map may not have so
    /// many: then the map is as it was, except for segments that have grown already. For a map of fixed capacity, which stays
    /// as it is, the answer is always `Ok`.
    ///
    /// # Errors
    ///
    /// [`CapacityError`].
    ///
    /// # Panics
    ///
    /// In a closure that runs under this map's lock, as [`InlineMap::reserve`].
    ///
    /// ```
    /// let map: koel::InlineMap<u64, u64> = koel::InlineMap::new();
    /// assert!(map.try_reserve(10_000).is_ok());
    /// assert!(map.try_reserve(usize::MAX).is_err());
    /// ```
    #[track_caller]
    pub fn try_reserve(&self, additional: usize) -> Result<(), CapacityError> {
        SharedMap::try_reserve(self, additional)
    }

    /// Halves segments that have much more room than entries, as often as needed. A segment that is about half full stays as it
    /// is; a map that is collected from the same entries takes less memory. Lists of colliding keys that are gone are given up
    /// as well, unless as many wait for readers already. The old tables are kept for readers that may still use them, and used
    /// when the map grows again; [`InlineMap::release_unused`] frees them. A map of fixed capacity keeps its slots.
    ///
    /// # Panics
    ///
    /// In a closure that runs under this map's lock: see [the type](InlineMap#under-a-lock).
    ///
    /// ```
    /// let map: koel::InlineMap<u32, u32> = (0..100_000).map(|n| (n, n)).collect();
    /// map.retain(|key, _| *key < 100);
    /// let before = map.capacity();
    /// map.shrink_to_fit();
    /// assert!(map.capacity() < before / 10 && map.len() == 100);
    /// ```
    pub fn shrink_to_fit(&self) {
        // No purge: readers have no guards [G4].
        self.slots.shrink(&|(key, _)| self.digest(&key));
    }

    /// Frees the tables that the map has outgrown or shrunk out of. Exclusive access proves that no reader still uses them.
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

impl<K: Pod + Hash + Eq, V: Pod, S: BuildHasher> Target<K, V> for &InlineMap<K, V, S> {
    #[inline]
    fn prepare(&self, digest: Digest) {
        Fill::prepare(*self, digest);
    }

    #[inline]
    fn insert(&mut self, digest: Digest, key: K, value: V) -> bool {
        self.checked_insert_of(digest, key, value).is_ok()
    }
}

impl<K: Pod + Hash + Eq, V: Pod, S: BuildHasher> SharedMap<K, V> for &InlineMap<K, V, S> {
    fn digest(self, key: &K) -> Digest {
        InlineMap::digest(self, key)
    }

    fn is_empty(self) -> bool {
        InlineMap::is_empty(self)
    }

    fn try_reserve(self, additional: usize) -> Result<(), CapacityError> {
        self.slots.reserve(additional, &|(key, _)| InlineMap::digest(self, &key))
    }
}

impl<K: Pod, V: Pod> Spot<'_, K, V> {
    /// Replaces the value, and returns the entry as it was.
    #[inline]
    pub(super) fn replace(&mut self, value: V) -> Option<(K, V)> {
        let found = self.found?;
        let old = self.writing.locked.item(found);
        self.writing.locked.replace(found, (old.0, value));
        Some(old)
    }

    /// Removes the entry, and returns it.
    #[inline]
    pub(super) fn remove(&mut self) -> Option<(K, V)> {
        let found = self.found.take()?;
        let old = self.writing.locked.item(found);
        self.writing.locked.remove(self.place, found);
        Some(old)
    }
}
