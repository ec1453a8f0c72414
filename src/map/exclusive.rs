//! Operations on a [`HashMap`] with exclusive access to it: values are changed in place, and entries are taken out whole.
//!
//! `&mut` proves that no view of the map is left, because each view borrows the map, even one that was forgotten. So nobody has
//! a reference to an entry in the table, and nobody can get one before the `&mut` ends [W8].

use core::hash::{BuildHasher, Hash};

use equivalent::Equivalent;

use super::HashMap;
use super::exclusive_iter::{ExtractIf, IterMut, ValuesMut};
use crate::entries::{Entry, EntryPointer, OwnedEntry};
use crate::hash::Digest;

impl<K, V, S> HashMap<K, V, S> {
    /// Walks over all entries, whose values may be changed in place, in no particular order: with exclusive access to the map,
    /// as `for (key, value) in &mut map` does.
    ///
    /// ```
    /// let mut map = koel::HashMap::from([("tea", 3), ("milk", 1)]);
    /// for (name, price) in map.iter_mut() {
    ///     *price += name.len();
    /// }
    /// assert_eq!((map.pin()["tea"], map.pin()["milk"]), (6, 5));
    /// ```
    pub fn iter_mut(&mut self) -> IterMut<'_, K, V> {
        IterMut::new(&self.table)
    }

    /// Walks over all values, which may be changed in place, in no particular order: with exclusive access to the map.
    ///
    /// ```
    /// let mut map = koel::HashMap::from([("tea", 3), ("milk", 1)]);
    /// for price in map.values_mut() {
    ///     *price *= 2;
    /// }
    /// assert_eq!((map.pin()["tea"], map.pin()["milk"]), (6, 2));
    /// ```
    pub fn values_mut(&mut self) -> ValuesMut<'_, K, V> {
        ValuesMut(self.iter_mut())
    }
}

impl<K, V, S: BuildHasher> HashMap<K, V, S> {
    /// Returns the value of a key, to be changed in place: with exclusive access to the map, as before it is shared. It costs a
    /// look-up, and makes no new entry. For a shared map there is [`Pinned::update`](crate::Pinned::update).
    ///
    /// ```
    /// let mut map = koel::HashMap::from([("one".to_string(), vec![1])]);
    /// map.get_mut("one").unwrap().push(1);
    /// assert_eq!(map.pin()["one"], [1, 1]);
    /// assert!(map.get_mut("two").is_none());
    /// ```
    ///
    /// ```compile_fail
    /// let mut map = koel::HashMap::from([(1, 2)]);
    /// let pin = map.pin();
    /// let two = pin.get(&1);
    /// *map.get_mut(&1).unwrap() = 3; // the view still looks at it
    /// println!("{two:?}");
    /// ```
    #[inline]
    pub fn get_mut<Q: ?Sized + Hash + Equivalent<K>>(&mut self, key: &Q) -> Option<&mut V> {
        let table = &self.table;
        let digest = self.digest(key);
        // SAFETY: found in the table, which is ours alone.
        let eq = |entry| key.equivalent(unsafe { &Entry::<K, V>::deref(entry).key });
        let entry = table.directory.find(digest, || table.prefetch_home(digest), eq)?;
        // SAFETY: in the table, which is ours alone as long as `self` is borrowed [W8]; and user code that `eq` called has
        // released its references.
        Some(&mut unsafe { Entry::<K, V>::deref_mut(entry) }.value)
    }

    /// Removes a key, and returns the value it had, by value: with exclusive access to the map. Nothing waits to be dropped.
    /// For a shared map there is [`Pinned::remove`](crate::Pinned::remove), which returns a reference, as others may be looking
    /// at the value; so does [`HashSet::take`](crate::HashSet::take) of a set. To take all entries by value, there is the loop
    /// `for (key, value) in map`, or, for a field, `in std::mem::take(&mut self.map)`. For a map in an `Arc`, `Arc::get_mut`
    /// and `Arc::into_inner` give access, once nobody else has it.
    ///
    /// ```
    /// use std::thread::JoinHandle;
    ///
    /// let mut workers: koel::HashMap<u32, JoinHandle<u32>> = koel::HashMap::new();
    /// workers.extend((0..2).map(|n| (n, std::thread::spawn(move || n * n))));
    /// let worker = workers.take(&1).unwrap();
    /// assert_eq!(worker.join().unwrap(), 1); // which takes the handle by value
    /// assert!(workers.take(&1).is_none() && workers.len() == 1);
    /// ```
    #[doc(alias = "remove")]
    pub fn take<Q: ?Sized + Hash + Equivalent<K>>(&mut self, key: &Q) -> Option<V> {
        let (key, value) = self.take_entry(key)?;
        // Before there is a result that a panic in the key's drop could leak.
        drop(key);
        Some(value)
    }

    /// Removes a key, and returns it with the value it had, both by value, as [`HashMap::take`] does.
    ///
    /// ```
    /// let mut map = koel::HashMap::from([("one".to_string(), "eins".to_string())]);
    /// let (key, value): (String, String) = map.take_entry("one").unwrap();
    /// assert_eq!((key + &value, map.len()), ("oneeins".to_string(), 0));
    /// ```
    #[doc(alias = "remove_entry")]
    pub fn take_entry<Q: ?Sized + Hash + Equivalent<K>>(&mut self, key: &Q) -> Option<(K, V)> {
        // SAFETY: found in the table, which is ours alone.
        let eq = |entry| key.equivalent(unsafe { &Entry::<K, V>::deref(entry).key });
        self.take_found(self.digest(key), eq)
    }

    /// Takes out the entries for which `condition` is true, by value, as the iterator reaches them: with exclusive access to
    /// the map. `condition` may change the values of the entries that stay. Entries that the iterator has not reached when it
    /// is dropped stay. For a shared map there is [`Pinned::retain`](crate::Pinned::retain). An entry whose key's hash differs
    /// by now from the hash at its insertion is not found, and stays.
    ///
    /// ```
    /// let mut map: koel::HashMap<u32, u32> = (0..8).map(|n| (n, n * n)).collect();
    /// let mut odd: Vec<(u32, u32)> = map.extract_if(|_, square| *square % 2 == 1).collect();
    /// odd.sort();
    /// assert_eq!(odd, [(1, 1), (3, 9), (5, 25), (7, 49)]);
    /// assert_eq!(map.len(), 4);
    /// ```
    pub fn extract_if<F: FnMut(&K, &mut V) -> bool>(&mut self, condition: F) -> ExtractIf<'_, K, V, F, S>
    where
        K: Hash,
    {
        ExtractIf::new(self, condition)
    }

    /// Takes out an entry that is in the table; none, if its key's hash differs from the hash at its insertion.
    pub(super) fn extract_entry(&mut self, entry: EntryPointer) -> Option<(K, V)>
    where
        K: Hash,
    {
        // SAFETY: in the table, which is ours alone.
        let digest = self.digest(unsafe { &Entry::<K, V>::deref(entry).key });
        self.take_found(digest, |other| other == entry)
    }

    fn take_found(&mut self, digest: Digest, eq: impl FnMut(EntryPointer) -> bool) -> Option<(K, V)> {
        let mut spot = self.table.directory.lock_and_find(digest, eq);
        let found = spot.found?;
        let entry = spot.writing.locked.item(found);
        spot.writing.locked.remove(spot.place, found);
        drop(spot);
        // SAFETY: the table is ours alone [W8], and the entry was just taken out of it.
        Some(unsafe { OwnedEntry::<K, V>::from_raw(entry) }.into_pair())
    }
}
