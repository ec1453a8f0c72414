//! What is done to a [`HashMap`] by who has it to himself: values are changed in place, and entries are taken out whole.
//!
//! `&mut` proves that no view of the map is left: each borrows the map, also one that was forgotten. So nobody has a reference
//! to an entry in the table, and none comes to have one before the `&mut` ends [W8].

use core::fmt;
use core::hash::{BuildHasher, Hash};
use core::iter::FusedIterator;
use core::marker::PhantomData;
use core::ptr::NonNull;

use equivalent::Equivalent;

use super::HashMap;
use crate::engine::{Directory, Walk};
use crate::entries::{Entry, OwnedEntry, Slots};

impl<K, V, S> HashMap<K, V, S> {
    /// Walks over all values, to be changed in place, in no particular order: with the map to yourself.
    ///
    /// ```
    /// let mut map = koel::HashMap::from([("tea", 3), ("milk", 1)]);
    /// for price in map.values_mut() {
    ///     *price *= 2;
    /// }
    /// assert_eq!((map.pin()["tea"], map.pin()["milk"]), (6, 2));
    /// ```
    #[doc(alias = "iter_mut")]
    pub fn values_mut(&mut self) -> ValuesMut<'_, K, V> {
        let directory = &self.table.directory;
        ValuesMut { left: directory.len(), directory, walk: Walk::new(), values: PhantomData }
    }
}

impl<K, V, S: BuildHasher> HashMap<K, V, S> {
    /// The value of a key, to be changed in place: with the map to yourself, as before it is shared. It costs a look-up, and
    /// makes no new entry. Who shares the map has [`Pinned::update`](crate::Pinned::update).
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
        let eq = |entry| key.equivalent(unsafe { &Entry::deref(entry).key });
        let entry = table.directory.find(digest, || table.prefetch_home(digest), eq)?;
        // SAFETY: in the table, which is ours alone as long as `self` is borrowed [W8]; and who was called by `eq` has let go.
        Some(&mut unsafe { Entry::deref_mut(entry) }.value)
    }

    /// Removes a key, and returns the value it had, by value: with the map to yourself. Nothing waits to be dropped. Who shares
    /// the map has [`Pinned::remove`](crate::Pinned::remove), which returns a reference, as others may be looking; as does
    /// [`HashSet::take`](crate::HashSet::take) of a set. All entries by value: `for (key, value) in map`, or, of a field,
    /// `in std::mem::take(&mut self.map)`. Of a map in an `Arc`, `Arc::get_mut` and `Arc::into_inner` lead to it, once nobody
    /// else has it.
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

    /// Removes a key, and returns it with the value it had, both by value, as [`HashMap::take`].
    ///
    /// ```
    /// let mut map = koel::HashMap::from([("one".to_string(), "eins".to_string())]);
    /// let (key, value): (String, String) = map.take_entry("one").unwrap();
    /// assert_eq!((key + &value, map.len()), ("oneeins".to_string(), 0));
    /// ```
    #[doc(alias = "remove_entry")]
    pub fn take_entry<Q: ?Sized + Hash + Equivalent<K>>(&mut self, key: &Q) -> Option<(K, V)> {
        // SAFETY: found in the table, which is ours alone.
        let eq = |entry| key.equivalent(unsafe { &Entry::deref(entry).key });
        let mut spot = self.table.directory.lock_and_find(self.digest(key), eq);
        let found = spot.found?;
        let entry = spot.writing.locked.item(found);
        spot.writing.locked.remove(found);
        drop(spot);
        // SAFETY: the table is ours alone [W8], and the entry was just taken out of it.
        Some(unsafe { OwnedEntry::from_raw(entry) }.into_pair())
    }
}

/// Iterator over a map's values, to be changed in place: from [`HashMap::values_mut`].
#[must_use = "iterators are lazy and do nothing unless consumed"]
pub struct ValuesMut<'m, K, V> {
    directory: &'m Directory<Slots<K, V>>,
    walk: Walk<NonNull<Entry<K, V>>>,
    left: usize,
    /// The map is ours alone.
    values: PhantomData<&'m mut V>,
}

// SAFETY: it is what a `&mut` of the map is, which may be sent if keys and values may.
unsafe impl<K: Send, V: Send> Send for ValuesMut<'_, K, V> {}
// SAFETY: a shared iterator gives access to nothing.
unsafe impl<K: Sync, V: Sync> Sync for ValuesMut<'_, K, V> {}

impl<'m, K, V> Iterator for ValuesMut<'m, K, V> {
    type Item = &'m mut V;

    #[inline]
    fn next(&mut self) -> Option<&'m mut V> {
        let entry = self.walk.next(|cursor, out| self.directory.snapshot(cursor, out))?;
        self.left -= 1;
        // SAFETY: in the table, which is ours alone for `'m` [W8]; and as it stays as it is, no entry comes twice.
        Some(&mut unsafe { Entry::deref_mut(entry) }.value)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl<K, V> ExactSizeIterator for ValuesMut<'_, K, V> {}
impl<K, V> FusedIterator for ValuesMut<'_, K, V> {}

impl<K, V> fmt::Debug for ValuesMut<'_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ValuesMut").finish_non_exhaustive()
    }
}
