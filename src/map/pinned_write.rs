//! [`Pinned`], the writing half. The steps of its operations are in `pinned_steps`; operations that hand back a pair that has
//! no room are in `pinned_checked`, those by a reference to a key in `pinned_ref`.

use core::hash::{BuildHasher, Hash};
use core::ptr::NonNull;

use equivalent::Equivalent;

use super::alone::Fill;
use super::bulk::{self, SharedMap, Target};
use super::retain;
use super::{Pinned, Ref};
use crate::engine::CapacityError;
use crate::entries::Entry;
use crate::hash::Digest;
use crate::outcome::{Compute, Occupied, Operation, expect_room};
use crate::reclaim::Guard;

impl<'m, K: Hash + Eq, V, S: BuildHasher, G: Guard> Pinned<'m, K, V, S, G> {
    /// Inserts a value, and returns the previous value of the key. The whole entry is replaced, including the key.
    ///
    /// # Panics
    ///
    /// If the map has a fixed capacity and is full, or cannot grow for lack of memory: see [`Pinned::checked_insert`]. And,
    /// like all methods that write, in a closure that runs under this map's lock: see [`HashMap`](crate::HashMap#under-a-lock).
    ///
    /// ```
    /// let map = koel::HashMap::new();
    /// let pin = map.pin();
    /// assert_eq!(pin.insert("key", 1), None);
    /// assert_eq!(pin.insert("key", 2), Some(&1));
    /// ```
    #[doc(alias = "upsert_sync")]
    #[inline]
    #[track_caller]
    pub fn insert(&self, key: K, value: V) -> Option<&V> {
        expect_room(self.checked_insert(key, value))
    }

    /// Inserts a value unless the key is present, and returns a reference to it. For a key that is present, this costs a
    /// look-up.
    ///
    /// # Errors
    ///
    /// [`Occupied`] if the key is present: with its value, and the value that was not inserted. The key that was passed is
    /// dropped.
    ///
    /// # Panics
    ///
    /// If there is no room, and in a closure that runs under this map's lock, as [`Pinned::insert`].
    ///
    /// ```
    /// let map = koel::HashMap::from([(1, "one")]);
    /// let error = *map.pin().try_insert(1, "eins").unwrap_err().current;
    /// assert_eq!(error, "one");
    /// ```
    #[doc(alias = "insert_sync")]
    #[track_caller]
    pub fn try_insert(&self, key: K, value: V) -> Result<&V, Occupied<&V, V>> {
        expect_room(self.checked_try_insert(key, value))
    }

    /// Inserts the result of `make` unless the key is present, and returns a reference to it. The result tells whether the
    /// value is new, which that of [`Pinned::get_or_insert_with`] does not.
    ///
    /// `make` runs at most once, under the writer lock of the key's segment. For a key that is present, this costs a look-up.
    ///
    /// # Errors
    ///
    /// If the key is present: its value.
    ///
    /// # Panics
    ///
    /// As [`Pinned::get_or_insert_with`].
    ///
    /// ```
    /// let map: koel::HashMap<&str, String> = koel::HashMap::new();
    /// let pin = map.pin();
    /// assert_eq!(pin.try_insert_with("key", || "new".to_string()).map(String::as_str), Ok("new"));
    /// assert!(pin.try_insert_with("key", || unreachable!()).is_err_and(|there| there == "new"));
    /// ```
    #[track_caller]
    pub fn try_insert_with(&self, key: K, make: impl FnOnce() -> V) -> Result<&V, &V> {
        match expect_room(self.find_or_add(key, make)) {
            (entry, true) => Ok(&entry.value),
            (entry, false) => Err(&entry.value),
        }
    }

    /// Returns the value of a key, after inserting `value` if the key was absent.
    ///
    /// # Panics
    ///
    /// If there is no room, as [`Pinned::insert`].
    ///
    /// ```
    /// let map = koel::HashMap::new();
    /// let pin = map.pin();
    /// assert_eq!((pin.get_or_insert("key", 1), pin.get_or_insert("key", 2)), (&1, &1));
    /// ```
    #[track_caller]
    pub fn get_or_insert(&self, key: K, value: V) -> &V {
        self.get_or_insert_with(key, || value)
    }

    /// Returns the value of a key, after inserting the type's default if the key was absent. As with
    /// [`Pinned::get_or_insert_with`], a key that is present costs a look-up.
    ///
    /// # Panics
    ///
    /// As [`Pinned::get_or_insert_with`].
    ///
    /// ```
    /// use std::sync::Mutex;
    ///
    /// let inboxes: koel::HashMap<&str, Mutex<Vec<&str>>> = koel::HashMap::new();
    /// for (to, letter) in [("ada", "on engines"), ("bob", "a bill"), ("ada", "on notes")] {
    ///     inboxes.pin().get_or_insert_default(to).lock().unwrap().push(letter);
    /// }
    /// assert_eq!(*inboxes.pin()["ada"].lock().unwrap(), ["on engines", "on notes"]);
    /// ```
    #[doc(alias = "or_default")]
    #[track_caller]
    pub fn get_or_insert_default(&self, key: K) -> &V
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
    /// If there is no room, as [`Pinned::insert`]; if `make` panics or writes to the same map, which is then as it was.
    ///
    /// ```
    /// let map = koel::HashMap::new();
    /// assert_eq!(*map.pin().get_or_insert_with("key", || 7), 7);
    /// assert_eq!(*map.pin().get_or_insert_with("key", || unreachable!()), 7);
    /// ```
    #[doc(alias = "entry_sync")]
    #[doc(alias = "or_insert_with")]
    #[track_caller]
    pub fn get_or_insert_with(&self, key: K, make: impl FnOnce() -> V) -> &V {
        expect_room(self.checked_get_or_insert_with(key, make))
    }

    /// Returns the value of a key with the view, after inserting the result of `make` if the key was absent: to be kept or to
    /// be returned from the function that has made the pin. The value stays available even if another thread removes it
    /// meanwhile. From a [`pin_owned`](crate::HashMap::pin_owned) it is `Send`.
    ///
    /// `make` runs at most once, as in [`Pinned::get_or_insert_with`]. For a key that is present, this costs a look-up.
    ///
    /// # Panics
    ///
    /// As [`Pinned::get_or_insert_with`].
    ///
    /// ```
    /// use std::ops::Deref;
    /// use std::sync::Mutex;
    ///
    /// use koel::HashMap;
    ///
    /// struct Inboxes(HashMap<u32, Mutex<Vec<String>>>);
    ///
    /// impl Inboxes {
    ///     fn of(&self, user: u32) -> impl Deref<Target = Mutex<Vec<String>>> {
    ///         self.0.pin().into_get_or_insert_with(user, Mutex::default)
    ///     }
    /// }
    ///
    /// let inboxes = Inboxes(HashMap::new());
    /// inboxes.of(7).lock().unwrap().push("hello".to_string());
    /// assert_eq!(*inboxes.of(7).lock().unwrap(), ["hello"]);
    /// ```
    #[track_caller]
    pub fn into_get_or_insert_with(self, key: K, make: impl FnOnce() -> V) -> Ref<'m, K, V, S, G> {
        let (entry, _) = expect_room(self.find_or_add(key, make));
        let entry = NonNull::from(entry);
        // SAFETY: found or inserted by this view.
        unsafe { Ref::new(entry, self) }
    }

    /// Returns the value of a key, after inserting the result of `make`, unless that is an error, if the key was absent.
    ///
    /// `make` runs at most once, under the writer lock of the key's segment, as in [`Pinned::get_or_insert_with`].
    ///
    /// # Errors
    ///
    /// The error of `make`; the map is as it was.
    ///
    /// # Panics
    ///
    /// As [`Pinned::get_or_insert_with`].
    ///
    /// ```
    /// let map: koel::HashMap<&str, u32> = koel::HashMap::new();
    /// assert!(map.pin().try_get_or_insert_with("key", || "seven".parse()).is_err());
    /// assert_eq!(map.pin().try_get_or_insert_with("key", || "7".parse()), Ok(&7));
    /// ```
    #[doc(alias = "or_try_insert_with")]
    #[track_caller]
    pub fn try_get_or_insert_with<E>(&self, key: K, make: impl FnOnce() -> Result<V, E>) -> Result<&V, E> {
        expect_room(self.try_find_or_add(key, make)).map(|(entry, _)| &entry.value)
    }

    /// Replaces the value of a key by the result of `update`, and returns the new value; `None` if the key is absent.
    ///
    /// `update` runs at most once, under the writer lock of the key's segment. The key is owned because a change makes
    /// a new entry, whose key replaces the stored one.
    ///
    /// # Panics
    ///
    /// If `update` panics or writes to the same map, or if there is no memory for the new entry: the map is as it was.
    ///
    /// ```
    /// let map = koel::HashMap::from([("key", 1)]);
    /// assert_eq!(map.pin().update("key", |value| value + 1), Some(&2));
    /// assert_eq!(map.pin().update("other", |value| value + 1), None);
    /// ```
    #[doc(alias = "update_sync")]
    #[doc(alias = "alter")]
    #[doc(alias = "get_mut")]
    #[track_caller]
    pub fn update(&self, key: K, update: impl FnOnce(&V) -> V) -> Option<&V> {
        let spot = self.spot(&key);
        let found = spot.found?;
        Some(expect_room(self.update_found(key, spot, found, update)))
    }

    /// Replaces the value of a key by the result of `update`, or inserts `value`; returns the new value. Either makes a new
    /// entry, with this key.
    ///
    /// # Panics
    ///
    /// As [`Pinned::update`], and as [`Pinned::insert`] if there is no room.
    ///
    /// ```
    /// let map = koel::HashMap::new();
    /// for letter in "hello".chars() {
    ///     map.pin().update_or_insert(letter, |count| count + 1, 1);
    /// }
    /// assert_eq!((map.pin()[&'l'], map.pin()[&'h']), (2, 1));
    /// ```
    #[doc(alias = "and_modify")]
    #[track_caller]
    pub fn update_or_insert(&self, key: K, update: impl FnOnce(&V) -> V, value: V) -> &V {
        expect_room(self.checked_update_or_insert(key, update, value))
    }

    /// Replaces the value of a key by the result of `update`, or inserts the result of `make`; returns the new value. One of
    /// the two runs, once, under the writer lock of the key's segment. Either makes a new entry, with this key. If both
    /// closures would have to own the same thing, as a value that is appended to a list, use a single closure:
    /// [`Pinned::compute`], with a `match`.
    ///
    /// # Panics
    ///
    /// As [`Pinned::update`], and as [`Pinned::insert`] if there is no room.
    ///
    /// ```
    /// let map = koel::HashMap::new();
    /// for word in ["to", "be", "or", "not", "to", "be"] {
    ///     map.pin().update_or_insert_with(word, |count| count + 1, || 1);
    /// }
    /// assert_eq!(map.pin()[&"to"], 2);
    /// ```
    #[track_caller]
    pub fn update_or_insert_with(
        &self,
        key: K,
        update: impl FnOnce(&V) -> V,
        make: impl FnOnce() -> V,
    ) -> &V {
        expect_room(self.checked_update_or_insert_with(key, update, make))
    }

    /// Inserts, replaces or removes an entry, as `f` decides when it sees the present key and value, if there are any.
    ///
    /// `f` runs exactly once, under the writer lock of the key's segment: nobody else writes to the key between what `f` sees
    /// and what it decides. It should be short; it may read the map, but not write to it. An insertion makes a new entry: this
    /// key replaces the stored one. If `f` never aborts, say so in the type: `Operation::<_, ()>::Insert(value)`.
    ///
    /// # Panics
    ///
    /// If `f` panics or writes to the same map; if it asks to remove an absent key; if there is no room, as [`Pinned::insert`].
    /// The map is then as it was.
    ///
    /// ```
    /// use koel::{Compute, HashMap, Operation};
    ///
    /// let map = HashMap::from([("stock", 1_u32)]);
    /// let pin = map.pin();
    /// let take_one = |entry: Option<(&&str, &u32)>| match entry {
    ///     None => Operation::Abort("not on sale"),
    ///     Some((_, 1)) => Operation::Remove,
    ///     Some((_, n)) => Operation::Insert(n - 1),
    /// };
    /// assert_eq!(pin.compute("stock", take_one), Compute::Removed(&"stock", &1));
    /// assert_eq!(pin.compute("stock", take_one), Compute::Aborted("not on sale"));
    /// ```
    #[doc(alias = "compute_if_present")]
    #[doc(alias = "entry")]
    #[track_caller]
    pub fn compute<'p, T, F>(&'p self, key: K, f: F) -> Compute<&'p K, &'p V, T>
    where
        F: FnOnce(Option<(&'p K, &'p V)>) -> Operation<V, T>,
    {
        expect_room(self.checked_compute(key, f))
    }

    /// Removes a key, and returns the value it had.
    ///
    /// # Panics
    ///
    /// In a closure that runs under this map's lock: see [`HashMap`](crate::HashMap#under-a-lock).
    ///
    /// ```
    /// let map = koel::HashMap::from([("one".to_string(), 1)]);
    /// assert_eq!(map.pin().remove("one"), Some(&1));
    /// assert_eq!(map.pin().remove("one"), None);
    /// ```
    #[inline]
    pub fn remove<Q: ?Sized + Hash + Equivalent<K>>(&self, key: &Q) -> Option<&V> {
        self.remove_entry(key).map(|(_, value)| value)
    }

    /// Removes a key, and returns it with the value it had.
    ///
    /// # Panics
    ///
    /// In a closure that runs under this map's lock: see [`HashMap`](crate::HashMap#under-a-lock).
    ///
    /// ```
    /// let map = koel::HashMap::from([("one".to_string(), 1)]);
    /// let pin = map.pin();
    /// assert_eq!(pin.remove_entry("one"), Some((&"one".to_string(), &1)));
    /// assert_eq!(pin.remove_entry("one"), None);
    /// ```
    #[doc(alias = "remove_sync")]
    pub fn remove_entry<Q: ?Sized + Hash + Equivalent<K>>(&self, key: &Q) -> Option<(&K, &V)> {
        let spot = self.spot(key);
        let found = spot.found?;
        Some(self.take_out(spot, found).pair())
    }

    /// Removes a key, and returns its entry with the view, to be kept or to be returned from the function that has made the
    /// pin. The entry is dropped some time after this and all other pins that are older than the removal have ended, and some
    /// more entries are removed.
    ///
    /// # Panics
    ///
    /// In a closure that runs under this map's lock: see [`HashMap`](crate::HashMap#under-a-lock).
    ///
    /// ```
    /// let map = koel::HashMap::from([("one".to_string(), 1)]);
    /// let one = map.pin().into_remove("one").unwrap();
    /// assert_eq!((one.pair(), map.len()), ((&"one".to_string(), &1), 0));
    /// ```
    pub fn into_remove<Q: ?Sized + Hash + Equivalent<K>>(self, key: &Q) -> Option<Ref<'m, K, V, S, G>> {
        let spot = self.spot(key);
        let found = spot.found?;
        let entry = NonNull::from(self.take_out(spot, found));
        // SAFETY: there until now, and so since the view was made or later.
        Some(unsafe { Ref::new(entry, self) })
    }

    /// Inserts a value, as [`Pinned::insert`] does, and returns the entry that was replaced.
    #[track_caller]
    pub(crate) fn insert_entry(&self, key: K, value: V) -> Option<&Entry<K, V>> {
        let spot = self.spot(&key);
        let Some(found) = spot.found else {
            expect_room(self.add_pair(spot, key, value));
            return None;
        };
        Some(expect_room(self.replace_found(spot, found, key, value)).0)
    }

    /// As `insert_entry`, with the view.
    #[track_caller]
    pub(crate) fn into_insert(self, key: K, value: V) -> Option<Ref<'m, K, V, S, G>> {
        let entry = NonNull::from(self.insert_entry(key, value)?);
        // SAFETY: there until now, and so since the view was made or later.
        Some(unsafe { Ref::new(entry, self) })
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
    /// let map = koel::HashMap::from([(1, 1)]);
    /// assert_eq!(map.pin().remove_if(&1, |_, value| *value > 1), Err((&1, &1)));
    /// assert_eq!(map.pin().remove_if(&1, |_, value| *value < 2), Ok(Some((&1, &1))));
    /// ```
    pub fn remove_if<Q, F>(&self, key: &Q, condition: F) -> Result<Option<(&K, &V)>, (&K, &V)>
    where
        Q: ?Sized + Hash + Equivalent<K>,
        F: FnOnce(&K, &V) -> bool,
    {
        let spot = self.spot(key);
        let Some(found) = spot.found else { return Ok(None) };
        let current = self.entry_at(&spot, found);
        if condition(&current.key, &current.value) {
            Ok(Some(self.take_out(spot, found).pair()))
        } else {
            Err(current.pair())
        }
    }

    /// Keeps the entries for which `keep` holds and removes the others.
    ///
    /// Sees the entries that a [walk](Pinned::iter) sees, with no lock held: each entry that is present throughout, others at
    /// most once. Entries that `keep` refuses are removed up to 31 at a time, even if it panics later; until then they are
    /// found, and counted by [`Pinned::len`]. If an entry has been replaced when it is to be removed, `keep` is asked about the
    /// new one, and so on: a closure that replaces each entry that it refuses does not end, and one that counts its refusals
    /// may count too many. If a value was changed in place, as an atomic is, `keep` is not asked again; [`Pinned::remove_if`]
    /// asks under the lock, which a `compute` that makes such changes holds as well. An entry whose key hashes differently by
    /// now, or does not equal itself, is removed as well, but stays if it has been moved meanwhile or collides with many.
    ///
    /// # Panics
    ///
    /// In a closure that runs under this map's lock: see [`HashMap`](crate::HashMap#under-a-lock).
    ///
    /// ```
    /// let map: koel::HashMap<u32, u32> = (0..10).map(|i| (i, i)).collect();
    /// map.pin().retain(|_, value| value % 2 == 0);
    /// assert_eq!(map.len(), 5);
    /// ```
    #[doc(alias = "retain_sync")]
    pub fn retain(&self, mut keep: impl FnMut(&K, &V) -> bool) {
        retain::retain(self, |entry| {
            // SAFETY: in the table since this view was made or later.
            let (key, value) = unsafe { self.entry_behind(entry) }.pair();
            keep(key, value)
        });
    }

    /// Inserts all pairs, in order. An empty map gets room beforehand for as many pairs as the iterator promises. A map that
    /// has entries does not: call `reserve` before, so that it need not grow on the way.
    ///
    /// Up to 32 pairs (one, if they are larger than 4 KiB) are taken before the first of them is inserted, so that their waits
    /// for memory overlap: beyond the caches that is faster than inserting one by one. So where an iterator waits, as a
    /// channel's does, pairs that it has yielded are held back; with [`Pinned::insert`] they are not. If the iterator panics,
    /// the pairs that it yielded are inserted, as far as there is room. If there is no room, or an insertion panics, up to 31
    /// pairs that were taken after it are dropped.
    ///
    /// # Panics
    ///
    /// If there is no room, and in a closure that runs under this map's lock, as [`Pinned::insert`].
    ///
    /// ```
    /// let map = koel::HashMap::from([(1, "one")]);
    /// map.pin().extend([(1, "eins"), (2, "zwei")]);
    /// assert_eq!((map.pin()[&1], map.len()), ("eins", 2));
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
    /// [`HashMap`](crate::HashMap#under-a-lock).
    ///
    /// ```
    /// let map = koel::HashMap::new();
    /// map.pin().reserve(10_000);
    /// let slots = map.capacity();
    /// map.extend((0..10_000).map(|n| (n, n)));
    /// assert_eq!(map.capacity(), slots);
    /// ```
    #[track_caller]
    pub fn reserve(&self, additional: usize) {
        bulk::reserve(self, additional);
    }

    /// As [`Pinned::reserve`], but returns an error if there is no memory for this many entries, or a map may not have so many:
    /// then the map is as it was, except for segments that have grown already. For a map of fixed capacity, which stays as it
    /// is, the answer is always `Ok`.
    ///
    /// # Errors
    ///
    /// [`CapacityError`].
    ///
    /// # Panics
    ///
    /// In a closure that runs under this map's lock, as [`Pinned::reserve`].
    ///
    /// ```
    /// let map: koel::HashMap<u64, u64> = koel::HashMap::new();
    /// let map = map.pin();
    /// assert!(map.try_reserve(10_000).is_ok());
    /// assert!(map.try_reserve(usize::MAX).is_err());
    /// ```
    #[track_caller]
    pub fn try_reserve(&self, additional: usize) -> Result<(), CapacityError> {
        SharedMap::try_reserve(self, additional)
    }

    /// Halves segments that have much more room than entries, as often as needed. A segment that is about half full stays as it
    /// is; a map that is collected from the same entries takes less memory. Also gives back memory that is not in use:
    ///
    /// * tables that were outgrown, and lists of colliding keys that are gone: when no older pin lives, and with many pins at a
    ///   time not before some more entries have been removed;
    /// * of entries, all chunks in which none is left, except the last chunk: of 16 KiB, in large maps of 4 MiB. Where some
    ///   entries are left everywhere, a clone or a collected map takes less;
    /// * [home cells](crate::Builder::home_cells): all at once and for good, and only when none is in use. Where that matters,
    ///   do without home cells.
    ///
    /// A map of fixed capacity keeps its slots, and such lists. [`HashMap::shrink_to_fit`](crate::HashMap::shrink_to_fit) finds
    /// more to give back: memory that this pin keeps alive stays.
    ///
    /// # Panics
    ///
    /// In a closure that runs under this map's lock: see [`HashMap`](crate::HashMap#under-a-lock).
    ///
    /// ```
    /// let map: koel::HashMap<u32, u32> = (0..100_000).map(|n| (n, n)).collect();
    /// map.pin().retain(|key, _| *key < 100);
    /// let before = map.capacity();
    /// map.pin().shrink_to_fit();
    /// assert!(map.capacity() < before / 10 && map.len() == 100);
    /// ```
    pub fn shrink_to_fit(&self) {
        self.directory().shrink(&self.rehash());
        self.map.table.purge(&self.guard);
    }
}

impl<K: Hash + Eq, V, S: BuildHasher, G: Guard> Target<K, V> for &Pinned<'_, K, V, S, G> {
    #[inline]
    fn prepare(&self, digest: Digest) {
        Fill::prepare(self.map, digest);
    }

    #[inline]
    fn insert(&mut self, digest: Digest, key: K, value: V) -> bool {
        self.put_locked::<false>(digest, key, value)
    }
}

impl<K: Hash + Eq, V, S: BuildHasher, G: Guard> SharedMap<K, V> for &Pinned<'_, K, V, S, G> {
    fn digest(self, key: &K) -> Digest {
        self.map.digest(key)
    }

    fn is_empty(self) -> bool {
        Pinned::is_empty(self)
    }

    fn try_reserve(self, additional: usize) -> Result<(), CapacityError> {
        self.directory().reserve(additional, &self.rehash())
    }
}
