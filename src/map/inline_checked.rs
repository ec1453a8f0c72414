//! [`InlineMap`], the writes that hand back a pair that has no room. The methods of the same names without `checked_` call
//! them, and panic in that case. They are always inlined: otherwise a result as large as key and value would be passed through
//! memory.

use core::convert::Infallible;
use core::hash::{BuildHasher, Hash};

use bytemuck::Pod;

use super::{Checked, Full, InlineMap};
use crate::hash::Digest;
use crate::outcome::{Compute, NOTHING_TO_REMOVE, Occupied, Operation};

impl<K: Pod + Hash + Eq, V: Pod, S: BuildHasher> InlineMap<K, V, S> {
    /// Inserts a value and returns the previous value of the key, or hands key and value back if there is no room.
    ///
    /// # Errors
    ///
    /// [`Full`] if the key is absent and the map has a fixed capacity and is full, or cannot grow for lack of memory. The map
    /// is as it was. A map of fixed capacity to which several threads write may report this a few entries early.
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
    #[inline(always)]
    pub fn checked_insert(&self, key: K, value: V) -> Result<Option<V>, Full<K, V>> {
        self.checked_insert_of(self.digest(&key), key, value)
    }

    /// [`InlineMap::checked_insert`] for a key with this digest.
    #[inline(always)]
    pub(super) fn checked_insert_of(
        &self,
        digest: Digest,
        key: K,
        value: V,
    ) -> Result<Option<V>, Full<K, V>> {
        let mut spot = self.spot_of(digest, &key);
        if spot.found.is_some() {
            return Ok(spot.replace(value).map(|(_, old)| old));
        }
        self.add_at(spot, key, value).map(|_| None)
    }

    /// Inserts a value unless the key is present, as [`InlineMap::try_insert`] does, or hands key and value back if there is no
    /// room.
    ///
    /// A key that is present is `Ok`, too: `Ok(Err(occupied))`, so that `?` passes on only the lack of room.
    ///
    /// # Errors
    ///
    /// [`Full`], as [`InlineMap::checked_insert`]. A key that is present needs no room.
    ///
    /// # Panics
    ///
    /// In a closure that runs under this map's lock: see [the type](InlineMap#under-a-lock).
    ///
    /// ```
    /// let map = koel::InlineMap::builder().fixed_capacity(2).build();
    /// assert_eq!(map.checked_try_insert(0, 1).unwrap(), Ok(1));
    /// let full = (1..9).find_map(|n| map.checked_try_insert(n, 7).err()).unwrap();
    /// assert!(full.value == 7 && !map.contains_key(&full.key));
    /// let occupied = map.checked_try_insert(0, 7).unwrap().unwrap_err();
    /// assert_eq!((occupied.current, occupied.not_inserted), (1, 7));
    /// ```
    #[inline(always)]
    pub fn checked_try_insert(&self, key: K, value: V) -> Result<Result<V, Occupied<V, V>>, Full<K, V>> {
        Ok(match self.find_or_add(key, || value)? {
            (value, true) => Ok(value),
            (current, false) => Err(Occupied { current, not_inserted: value }),
        })
    }

    /// Returns the value of a key, after inserting the result of `make` if the key was absent, as
    /// [`InlineMap::get_or_insert_with`] does; or hands back the key and the result of `make`, if there is no room for them.
    ///
    /// `make` runs at most once, under the writer lock of the key's segment; only afterwards is it known whether there is room.
    ///
    /// # Errors
    ///
    /// [`Full`], as [`InlineMap::checked_insert`]. A key that is present needs no room.
    ///
    /// # Panics
    ///
    /// If `make` panics or writes to the same map, which is then as it was; and in a closure that runs under this map's lock.
    ///
    /// ```
    /// let map = koel::InlineMap::builder().fixed_capacity(2).build();
    /// let square = |n: u64| map.checked_get_or_insert_with(n, || n * n);
    /// let full = (0..9).find_map(|n| square(n).err()).unwrap();
    /// assert_eq!((square(1).ok(), full.value), (Some(1), full.key * full.key));
    /// ```
    #[inline(always)]
    pub fn checked_get_or_insert_with(&self, key: K, make: impl FnOnce() -> V) -> Result<V, Full<K, V>> {
        self.find_or_add(key, make).map(|(value, _)| value)
    }

    /// Returns the value of a key, after inserting the result of `make` if the key was absent, and whether it was.
    #[inline(always)]
    pub(super) fn find_or_add(&self, key: K, make: impl FnOnce() -> V) -> Checked<(V, bool), K, V> {
        let Ok(value) = self.try_find_or_add(key, || Ok::<V, Infallible>(make()))?;
        Ok(value)
    }

    /// The same, unless `make` returns an error.
    #[inline(always)]
    pub(super) fn try_find_or_add<E>(
        &self,
        key: K,
        make: impl FnOnce() -> Result<V, E>,
    ) -> Checked<Result<(V, bool), E>, K, V> {
        let digest = self.digest(&key);
        if let Some((_, value)) = self.get_key_value_of(digest, &key) {
            return Ok(Ok((value, false)));
        }
        let spot = self.spot_of(digest, &key);
        match spot.current() {
            Some((_, current)) => Ok(Ok((current, false))),
            None => match make() {
                Ok(value) => self.add_at(spot, key, value).map(|new| Ok((new, true))),
                Err(error) => Ok(Err(error)),
            },
        }
    }

    /// Replaces the value of a key by the result of `update`, or inserts `value`, as [`InlineMap::update_or_insert`] does, and
    /// returns the new value; or hands back key and `value`, if there is no room for them.
    ///
    /// # Errors
    ///
    /// [`Full`], as [`InlineMap::checked_insert`]. A key that is present needs no room.
    ///
    /// # Panics
    ///
    /// If `update` panics or writes to the same map, which is then as it was; and in a closure that runs under this map's lock.
    ///
    /// ```
    /// let map = koel::InlineMap::builder().fixed_capacity(2).build();
    /// let count = |n| map.checked_update_or_insert(n, |count| count + 1, 1);
    /// let full = (0..9).find_map(|n| count(n).err()).unwrap();
    /// assert!(full.value == 1 && !map.contains_key(&full.key));
    /// assert_eq!(count(0), Ok(2));
    /// ```
    #[inline(always)]
    pub fn checked_update_or_insert(
        &self,
        key: K,
        update: impl FnOnce(V) -> V,
        value: V,
    ) -> Result<V, Full<K, V>> {
        self.checked_update_or_insert_with(key, update, || value)
    }

    /// The same, with a value that `make` returns, as [`InlineMap::update_or_insert_with`] does: one of the two runs, once,
    /// under the writer lock of the key's segment; only afterwards is it known whether there is room.
    ///
    /// # Errors
    ///
    /// As [`InlineMap::checked_update_or_insert`], with the result of `make`.
    ///
    /// # Panics
    ///
    /// If `update` or `make` panics or writes to the same map, which is then as it was; and in a closure that runs under this
    /// map's lock.
    ///
    /// ```
    /// let map: koel::InlineMap<u32, u32> = koel::InlineMap::builder().fixed_capacity(2).build();
    /// let note = |n: u32| map.checked_update_or_insert_with(n, |old| old + 1, || 10 * n);
    /// let full = (0..9).find_map(|n| note(n).err()).unwrap();
    /// assert_eq!(full.value, 10 * full.key); // the value that was made comes back
    /// assert_eq!(note(0), Ok(1));
    /// ```
    #[inline(always)]
    pub fn checked_update_or_insert_with(
        &self,
        key: K,
        update: impl FnOnce(V) -> V,
        make: impl FnOnce() -> V,
    ) -> Result<V, Full<K, V>> {
        let mut spot = self.spot(&key);
        match spot.current() {
            Some((_, current)) => {
                let value = update(current);
                spot.replace(value);
                Ok(value)
            }
            None => self.add_at(spot, key, make()),
        }
    }

    /// Inserts, replaces or removes an entry, as `f` decides when it sees the present value, if there is one, as
    /// [`InlineMap::compute`] does; or hands back the key, and the value that `f` wanted to insert, if there is no room.
    ///
    /// `f` runs exactly once, under the writer lock of the key's segment; only afterwards is it known whether there is room.
    ///
    /// # Errors
    ///
    /// [`Full`], as [`InlineMap::checked_insert`]. A key that is present needs no room.
    ///
    /// # Panics
    ///
    /// If `f` panics or writes to the same map, or asks to remove an absent key: the map is then as it was. And in a closure
    /// that runs under this map's lock.
    ///
    /// ```
    /// use koel::{Compute, InlineMap, Operation};
    ///
    /// let stock = InlineMap::builder().fixed_capacity(2).build();
    /// let deliver = |item: u32, n: u32| {
    ///     stock.checked_compute(item, |there| match there {
    ///         Some(90..) => Operation::Abort("no more of that"),
    ///         _ => Operation::Insert(there.unwrap_or(0) + n),
    ///     })
    /// };
    /// let full = (0..9).find_map(|item| deliver(item, 50).err()).unwrap();
    /// assert!(full.value == 50 && !stock.contains_key(&full.key));
    /// assert_eq!(deliver(0, 49), Ok(Compute::Updated { old: (0, 50), new: (0, 99) }));
    /// assert_eq!(deliver(0, 50), Ok(Compute::Aborted("no more of that")));
    /// ```
    #[track_caller]
    #[inline(always)]
    pub fn checked_compute<T, F>(&self, key: K, f: F) -> Result<Compute<K, V, T>, Full<K, V>>
    where
        F: FnOnce(Option<V>) -> Operation<V, T>,
    {
        let mut spot = self.spot(&key);
        let current = spot.current();
        match (f(current.map(|(_, value)| value)), current) {
            (Operation::Abort(result), _) => Ok(Compute::Aborted(result)),
            (Operation::Insert(value), None) => {
                self.add_at(spot, key, value).map(|value| Compute::Inserted(key, value))
            }
            (Operation::Insert(value), Some(old)) => {
                spot.replace(value);
                Ok(Compute::Updated { old, new: (old.0, value) })
            }
            (Operation::Remove, Some((key, value))) => {
                spot.remove();
                Ok(Compute::Removed(key, value))
            }
            (Operation::Remove, None) => {
                // A panic hook is user code: not under the lock.
                drop(spot);
                panic!("{NOTHING_TO_REMOVE}")
            }
        }
    }
}
