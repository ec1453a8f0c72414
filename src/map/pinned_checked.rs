//! [`Pinned`], the writes that hand back a pair that has no room. The methods of the same names without `checked_` call them,
//! and panic in that case. They are always inlined: otherwise a result as large as key and value would be passed through
//! memory.

use core::convert::Infallible;
use core::hash::{BuildHasher, Hash};

use super::pinned_steps::Spot;
use super::{Checked, Full, Pinned};
use crate::entries::Entry;
use crate::hash::Digest;
use crate::outcome::{Compute, NOTHING_TO_REMOVE, Occupied, Operation};
use crate::reclaim::Guard;

/// An entry, and whether it is new; unless the closure that was to make its value returned an error, or there is no room.
pub(super) type FoundOrAdded<'p, K, V, E> = Checked<Result<(&'p Entry<K, V>, bool), E>, K, V>;

impl<K: Hash + Eq, V, S: BuildHasher, G: Guard> Pinned<'_, K, V, S, G> {
    /// Inserts a value and returns the previous value of the key, or hands key and value back if there is no room.
    ///
    /// # Errors
    ///
    /// [`Full`] if the key is absent and the map has a fixed capacity and is full, or if there is no memory for the entry or to
    /// grow. The map is as it was. A map of fixed capacity to which several threads write may report this a few entries early.
    ///
    /// # Panics
    ///
    /// In a closure that runs under this map's lock: see [`HashMap`](crate::HashMap#under-a-lock).
    ///
    /// ```
    /// let map = koel::HashMap::builder().fixed_capacity(2).build();
    /// let pin = map.pin();
    /// let full = (0..9).find_map(|i| pin.checked_insert(i, "value").err()).unwrap();
    /// assert_eq!(full.value, "value");
    /// assert!(!pin.contains_key(&full.key) && map.len() >= 2);
    /// ```
    #[inline(always)]
    pub fn checked_insert(&self, key: K, value: V) -> Result<Option<&V>, Full<K, V>> {
        self.checked_insert_of(self.map.digest(&key), key, value)
    }

    /// [`Pinned::checked_insert`] for a key with this digest.
    #[inline(always)]
    fn checked_insert_of(&self, digest: Digest, key: K, value: V) -> Result<Option<&V>, Full<K, V>> {
        let mut spot = self.spot_of(digest, &key);
        let new = self.make(&mut spot, key, value)?;
        match spot.found {
            Some(found) => Ok(Some(&self.swap_found(spot, found, new).value)),
            None => self.add_at(spot, new).map(|_| None),
        }
    }

    /// Inserts a value. A value that the key has already stays, if `KEEPS`, and is replaced otherwise. Returns whether there
    /// was room.
    #[inline(always)]
    pub(crate) fn put_locked<const KEEPS: bool>(&self, digest: Digest, key: K, value: V) -> bool {
        if KEEPS {
            self.try_find_or_add_of(digest, key, || Ok::<V, Infallible>(value)).is_ok()
        } else {
            self.checked_insert_of(digest, key, value).is_ok()
        }
    }

    /// Inserts a value unless the key is present, as [`Pinned::try_insert`] does, or hands key and value back if there is no
    /// room.
    ///
    /// A key that is present is `Ok`, too: `Ok(Err(occupied))`, so that `?` passes on only the lack of room.
    ///
    /// # Errors
    ///
    /// [`Full`], as [`Pinned::checked_insert`]. A key that is present needs no room.
    ///
    /// # Panics
    ///
    /// In a closure that runs under this map's lock: see [`HashMap`](crate::HashMap#under-a-lock).
    ///
    /// ```
    /// let map = koel::HashMap::builder().fixed_capacity(2).build();
    /// let pin = map.pin();
    /// assert_eq!(pin.checked_try_insert(0, "zero").unwrap(), Ok(&"zero"));
    /// let full = (1..9).find_map(|n| pin.checked_try_insert(n, "more").err()).unwrap();
    /// assert!(full.value == "more" && !pin.contains_key(&full.key));
    /// let occupied = pin.checked_try_insert(0, "null").unwrap().unwrap_err();
    /// assert_eq!((*occupied.current, occupied.not_inserted), ("zero", "null"));
    /// ```
    #[expect(clippy::type_complexity, reason = "as is that of `try_insert`, and an error beside it")]
    #[inline(always)]
    pub fn checked_try_insert(&self, key: K, value: V) -> Result<Result<&V, Occupied<&V, V>>, Full<K, V>> {
        let mut value = Some(value);
        let found = self.find_or_add(key, || value.take().expect("it is made once"))?;
        Ok(match (found, value) {
            ((entry, _), None) => Ok(&entry.value),
            ((entry, _), Some(not_inserted)) => Err(Occupied { current: &entry.value, not_inserted }),
        })
    }

    /// Returns the value of a key, after inserting the result of `make` if the key was absent, as
    /// [`Pinned::get_or_insert_with`] does; or hands back the key and the result of `make`, if there is no room for them.
    ///
    /// `make` runs at most once, under the writer lock of the key's segment; only afterwards is it known whether there is room.
    ///
    /// # Errors
    ///
    /// [`Full`], as [`Pinned::checked_insert`]. A key that is present needs no room.
    ///
    /// # Panics
    ///
    /// If `make` panics or writes to the same map, which is then as it was; and in a closure that runs under this map's lock.
    ///
    /// ```
    /// let map = koel::HashMap::builder().fixed_capacity(2).build();
    /// let pin = map.pin();
    /// let square = |n: u64| pin.checked_get_or_insert_with(n, || n * n);
    /// let full = (0..9).find_map(|n| square(n).err()).unwrap();
    /// assert_eq!((square(1).ok(), full.value), (Some(&1), full.key * full.key));
    /// ```
    #[inline(always)]
    pub fn checked_get_or_insert_with(&self, key: K, make: impl FnOnce() -> V) -> Result<&V, Full<K, V>> {
        self.find_or_add(key, make).map(|(entry, _)| &entry.value)
    }

    /// Finds the entry of a key, after inserting the result of `make` if the key was absent, and says whether it was.
    #[inline(always)]
    pub(crate) fn find_or_add(
        &self,
        key: K,
        make: impl FnOnce() -> V,
    ) -> Checked<(&Entry<K, V>, bool), K, V> {
        let Ok(entry) = self.try_find_or_add(key, || Ok::<V, Infallible>(make()))?;
        Ok(entry)
    }

    /// The same, unless `make` returns an error.
    #[inline(always)]
    pub(super) fn try_find_or_add<E>(
        &self,
        key: K,
        make: impl FnOnce() -> Result<V, E>,
    ) -> FoundOrAdded<'_, K, V, E> {
        let digest = self.map.digest(&key);
        match self.find_entry_of(digest, &key) {
            Some(entry) => Ok(Ok((entry, false))),
            None => self.try_find_or_add_of(digest, key, make),
        }
    }

    /// The same, for a key with this digest, under the lock at once.
    #[inline(always)]
    pub(crate) fn try_find_or_add_of<E>(
        &self,
        digest: Digest,
        key: K,
        make: impl FnOnce() -> Result<V, E>,
    ) -> FoundOrAdded<'_, K, V, E> {
        let spot = self.spot_of(digest, &key);
        match spot.found {
            Some(found) => Ok(Ok((self.entry_at(&spot, found), false))),
            None => match make() {
                Ok(value) => self.add_pair(spot, key, value).map(|new| Ok((new, true))),
                Err(error) => {
                    // Before there is a result that a panic in the key's drop could leak.
                    drop(spot);
                    drop(key);
                    Ok(Err(error))
                }
            },
        }
    }

    /// Replaces the value of a key by the result of `update`, or inserts `value`, as [`Pinned::update_or_insert`] does, and
    /// returns the new value; or hands back the key and the value for which there is no room.
    ///
    /// # Errors
    ///
    /// [`Full`], as [`Pinned::checked_insert`], with `value`. If there is no memory for the entry that is to replace a present
    /// one: with the result of `update`.
    ///
    /// # Panics
    ///
    /// If `update` panics or writes to the same map, which is then as it was; and in a closure that runs under this map's lock.
    ///
    /// ```
    /// let map = koel::HashMap::builder().fixed_capacity(2).build();
    /// let pin = map.pin();
    /// let count = |n| pin.checked_update_or_insert(n, |count| count + 1, 1);
    /// let full = (0..9).find_map(|n| count(n).err()).unwrap();
    /// assert!(full.value == 1 && !pin.contains_key(&full.key));
    /// assert_eq!(count(0), Ok(&2)); // that needs no room
    /// ```
    #[inline(always)]
    pub fn checked_update_or_insert(
        &self,
        key: K,
        update: impl FnOnce(&V) -> V,
        value: V,
    ) -> Result<&V, Full<K, V>> {
        self.checked_update_or_insert_with(key, update, || value)
    }

    /// The same, with a value that `make` returns, as [`Pinned::update_or_insert_with`] does: one of the two runs, once, under
    /// the writer lock of the key's segment; only afterwards is it known whether there is room.
    ///
    /// # Errors
    ///
    /// As [`Pinned::checked_update_or_insert`], with the result of `make`.
    ///
    /// # Panics
    ///
    /// If `update` or `make` panics or writes to the same map, which is then as it was; and in a closure that runs under this
    /// map's lock.
    ///
    /// ```
    /// let map = koel::HashMap::builder().fixed_capacity(2).build();
    /// let pin = map.pin();
    /// let note = |n: u32| pin.checked_update_or_insert_with(n, |old| format!("{old}, again"), || format!("{n}"));
    /// let full = (0..9).find_map(|n| note(n).err()).unwrap();
    /// assert_eq!(full.value, full.key.to_string()); // the value that was made comes back
    /// assert_eq!(note(0).unwrap(), "0, again");
    /// ```
    #[inline(always)]
    pub fn checked_update_or_insert_with(
        &self,
        key: K,
        update: impl FnOnce(&V) -> V,
        make: impl FnOnce() -> V,
    ) -> Result<&V, Full<K, V>> {
        let spot = self.spot(&key);
        // The closure that does not run is dropped before there is a result that a panic in its drop could leak.
        match spot.found {
            Some(found) => {
                let updated = self.update_found(key, spot, found, update);
                drop(make);
                updated
            }
            None => {
                let value = make();
                let added = self.add_pair(spot, key, value);
                drop(update);
                added.map(|new| &new.value)
            }
        }
    }

    /// Inserts, replaces or removes an entry, as `f` decides when it sees the present key and value, if there are any, as
    /// [`Pinned::compute`] does; or hands back the key, and the value that `f` wanted to insert, if there is no room.
    ///
    /// `f` runs exactly once, under the writer lock of the key's segment; only afterwards is it known whether there is room.
    ///
    /// # Errors
    ///
    /// [`Full`], as [`Pinned::checked_insert`]; also if there is no memory for the entry that is to replace another.
    ///
    /// # Panics
    ///
    /// If `f` panics or writes to the same map, or asks to remove an absent key: the map is then as it was. And in a closure
    /// that runs under this map's lock.
    ///
    /// ```
    /// use koel::{Compute, HashMap, Operation};
    ///
    /// let stock = HashMap::builder().fixed_capacity(2).build();
    /// let pin = stock.pin();
    /// let deliver = |item: u32, n: u32| {
    ///     pin.checked_compute(item, |entry| match entry {
    ///         Some((_, 90..)) => Operation::Abort("no more of that"),
    ///         there => Operation::Insert(there.map_or(0, |(_, n)| *n) + n),
    ///     })
    /// };
    /// let full = (0..9).find_map(|item| deliver(item, 50).err()).unwrap();
    /// assert!(full.value == 50 && !pin.contains_key(&full.key));
    /// assert_eq!(deliver(0, 49), Ok(Compute::Updated { old: (&0, &50), new: (&0, &99) }));
    /// assert_eq!(deliver(0, 50), Ok(Compute::Aborted("no more of that")));
    /// ```
    #[track_caller]
    #[inline(always)]
    pub fn checked_compute<'p, T, F>(&'p self, key: K, f: F) -> Result<Compute<&'p K, &'p V, T>, Full<K, V>>
    where
        F: FnOnce(Option<(&'p K, &'p V)>) -> Operation<V, T>,
    {
        let spot = self.spot(&key);
        let current = spot.found.map(|found| self.entry_at(&spot, found).pair());
        let operation = match f(current) {
            Operation::Insert(value) => Operation::Insert((key, value)),
            Operation::Remove => Operation::Remove,
            Operation::Abort(result) => {
                drop(spot);
                drop(key);
                return Ok(Compute::Aborted(result));
            }
        };
        self.carry_out(spot, operation)
    }

    /// Does to a key's entry what was decided under the lock; or hands back, unlocked, the pair for which there is no room.
    #[track_caller]
    #[inline(always)]
    pub(super) fn carry_out<'p, T>(
        &'p self,
        spot: Spot<'_>,
        operation: Operation<(K, V), T>,
    ) -> Checked<Compute<&'p K, &'p V, T>, K, V> {
        match (operation, spot.found) {
            (Operation::Abort(result), _) => Ok(Compute::Aborted(result)),
            (Operation::Insert((key, value)), None) => {
                let (key, value) = self.add_pair(spot, key, value)?.pair();
                Ok(Compute::Inserted(key, value))
            }
            (Operation::Insert((key, value)), Some(found)) => {
                let (old, new) = self.replace_found(spot, found, key, value)?;
                Ok(Compute::Updated { old: old.pair(), new: new.pair() })
            }
            (Operation::Remove, Some(found)) => {
                let (key, value) = self.take_out(spot, found).pair();
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
