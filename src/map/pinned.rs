//! [`Pinned`]: a map and a guard. Reading and walking are here, writing is in `pinned_write`.

use core::fmt;
use core::hash::{BuildHasher, Hash};
use core::ops::Index;
use core::ptr::NonNull;

use ahash::RandomState;
use equivalent::Equivalent;

use super::{ClonedIter, Drain, HashMap, Iter, IterWith, Keys, Ref, Values};
use crate::engine::{Stats, each_batch};
use crate::entries::{Entry, EntryPointer};
use crate::hash::Digest;
use crate::reclaim::{Guard, LocalGuard, OwnedGuard};

/// A view of a [`HashMap`] that keeps what it returns alive: from [`HashMap::pin`].
///
/// A view is not `Send`, though walks over it are, except draining ones. Any number of views may exist at a time. A
/// [`PinnedOwned`] may move between threads.
///
/// A function that takes either kind of view is generic over the guard:
///
/// ```
/// use koel::{Guard, HashMap, Pinned, RandomState};
///
/// fn total<G: Guard>(prices: &Pinned<'_, String, u32, RandomState, G>, order: &[&str]) -> u32 {
///     order.iter().filter_map(|&name| prices.get(name)).sum()
/// }
///
/// let prices = HashMap::from([("tea".to_string(), 3), ("milk".to_string(), 1)]);
/// assert_eq!(total(&prices.pin(), &["tea", "milk"]), 4);
/// assert_eq!(total(&prices.pin_owned(), &["tea", "cake"]), 3);
/// ```
///
/// ```compile_fail
/// let map = koel::HashMap::from([(1, 2)]);
/// let value = map.pin().get(&1); // the view ends here, and so does the reference
/// println!("{value:?}");
/// ```
///
/// ```compile_fail
/// let map: koel::HashMap<u64, u64> = koel::HashMap::new();
/// let pin = map.pin();
/// std::thread::scope(|scope| {
///     scope.spawn(move || pin.len()); // tied to its thread
/// });
/// ```
pub struct Pinned<'m, K, V, S = RandomState, G = LocalGuard<'m>> {
    pub(super) map: &'m HashMap<K, V, S>,
    pub(super) guard: G,
}

/// A [`Pinned`] that is `Send` and `Sync`, if the map is: from [`HashMap::pin_owned`].
pub type PinnedOwned<'m, K, V, S = RandomState> = Pinned<'m, K, V, S, OwnedGuard<'m>>;

impl<'m, K, V, S, G: Guard> Pinned<'m, K, V, S, G> {
    #[inline]
    pub(super) fn new(map: &'m HashMap<K, V, S>, guard: G) -> Self {
        Pinned { map, guard }
    }

    /// The entry behind a pointer.
    ///
    /// # Safety
    ///
    /// It was in this map's table at some time since this view was made.
    #[inline(always)]
    pub(super) unsafe fn entry_behind(&self, entry: EntryPointer) -> &Entry<K, V> {
        // SAFETY: the caller's: if it was unlinked, after `guard` was entered; and the reference does not outlive `self`.
        unsafe { Entry::<K, V>::deref(entry) }
    }

    /// Returns the map.
    pub fn map(&self) -> &'m HashMap<K, V, S> {
        self.map
    }

    /// Returns the number of entries: exact while nobody writes to or resizes the map, and never less than the number of
    /// entries that are present throughout. Entries that a split moves meanwhile (half a segment's) may be counted twice. Looks
    /// at every segment.
    pub fn len(&self) -> usize {
        self.map.table.directory.len()
    }

    /// Returns whether there are no entries: never `true` if an entry is present throughout. Looks at segments up to the first
    /// that has entries.
    pub fn is_empty(&self) -> bool {
        self.map.table.directory.is_empty()
    }

    /// Returns the number of slots, which is more than the number of entries that fit, except those in [the
    /// overflow](crate::Stats::overflow). A map that has grown by itself fills about 7/8 of its slots before it grows again;
    /// one that was made for its entries, or has a fixed capacity, about 94%. [`reserve`](Pinned::reserve) makes room for a
    /// number of further entries, and [`checked_insert`](Pinned::checked_insert) says whether there is room for one.
    pub fn capacity(&self) -> usize {
        self.map.table.directory.slots()
    }

    /// Returns the ratio of entries to slots: 0 to 1, and more where many are in [the overflow](crate::Stats::overflow).
    pub fn load_factor(&self) -> f64 {
        self.len() as f64 / self.capacity() as f64
    }

    /// Returns the number of bytes that the map has from the allocator; see [`HashMap::memory_usage`].
    pub fn memory_usage(&self) -> usize {
        self.map.memory_usage()
    }

    /// Returns statistics about the map's inner workings. Locks one segment after the other.
    ///
    /// # Panics
    ///
    /// In a closure that runs under this map's lock: see [`HashMap`](HashMap#under-a-lock).
    ///
    /// ```
    /// let map: koel::HashMap<u32, u32> = (0..100_000).map(|n| (n, n)).collect();
    /// let stats = map.pin().stats();
    /// assert!(stats.segments > 1 && stats.failed_searches == 0);
    /// println!("{stats}");
    /// ```
    pub fn stats(&self) -> Stats {
        let table = &self.map.table;
        let memory_usage = self.memory_usage();
        Stats { waiting: table.collector.waiting(), memory_usage, ..table.directory.stats() }
    }

    /// Walks over all entries, in no particular order.
    ///
    /// Every entry that is present from the beginning of the walk to its end is seen exactly once, whatever is
    /// inserted and removed meanwhile and however the map grows; others are seen at most once. Pointers are copied
    /// under the lock of one segment at a time, and no lock is held while you look at them: you may write to the map
    /// as you walk. A replaced value is seen as it was when its segment was reached.
    ///
    /// # Panics
    ///
    /// When the walk goes on in a closure that runs under this map's lock: see [`HashMap`](HashMap#under-a-lock).
    ///
    /// ```
    /// let map = koel::HashMap::from([(1, "one"), (2, "two")]);
    /// let pin = map.pin();
    /// for (key, _) in pin.iter() {
    ///     pin.remove(key);
    /// }
    /// assert!(map.is_empty());
    /// ```
    #[doc(alias = "iter_sync")]
    pub fn iter(&self) -> Iter<'_, K, V> {
        Iter::new(&self.map.table)
    }

    /// Walks over clones of all entries, as [`Pinned::iter`] does, and owns the view: for an iterator that is kept, or returned
    /// from the function that has made the pin. Entries that are removed meanwhile are not dropped before the iterator ends.
    /// From a [`pin_owned`](HashMap::pin_owned) it is `Send`. For entries that cannot or need not be cloned, use
    /// [`Pinned::into_iter_with`].
    ///
    /// # Panics
    ///
    /// As [`Pinned::iter`], in a closure that runs under this map's lock; and if the entries' `clone` panics: the walk may go
    /// on then, with the next entry.
    ///
    /// ```
    /// use koel::HashMap;
    ///
    /// struct Prices(HashMap<String, u32>);
    ///
    /// impl Prices {
    ///     fn below(&self, most: u32) -> impl Iterator<Item = (String, u32)> {
    ///         self.0.pin().into_iter_cloned().filter(move |(_, price)| *price < most)
    ///     }
    /// }
    ///
    /// let prices = Prices(HashMap::from([("tea".to_string(), 3), ("milk".to_string(), 1)]));
    /// assert_eq!(prices.below(2).collect::<Vec<_>>(), [("milk".to_string(), 1)]);
    /// ```
    pub fn into_iter_cloned(self) -> ClonedIter<'m, K, V, S, G>
    where
        K: Clone,
        V: Clone,
    {
        ClonedIter::new(self)
    }

    /// Walks over the results of `f` for each entry, as [`Pinned::iter`] does, and owns the view, as
    /// [`Pinned::into_iter_cloned`] does: for values that cannot be cloned, such as atomics and mutexes, or of which only a
    /// part is needed. Entries that are removed meanwhile are not dropped before the iterator ends. From a
    /// [`pin_owned`](HashMap::pin_owned) it is `Send`, if `f` is.
    ///
    /// `f` runs when the walk reaches the entry, and with no lock held: it may use the map.
    ///
    /// # Panics
    ///
    /// As [`Pinned::iter`], in a closure that runs under this map's lock; and if `f` panics: the walk may go on then, with the
    /// next entry.
    ///
    /// ```
    /// use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
    ///
    /// use koel::HashMap;
    ///
    /// struct Hits(HashMap<String, AtomicU64>);
    ///
    /// impl Hits {
    ///     fn at_least(&self, least: u64) -> impl Iterator<Item = (String, u64)> {
    ///         let counts = self.0.pin().into_iter_with(|page, hits| (page.clone(), hits.load(Relaxed)));
    ///         counts.filter(move |(_, hits)| *hits >= least)
    ///     }
    /// }
    ///
    /// let hits = Hits(HashMap::from([("/".to_string(), 7.into()), ("/about".to_string(), 1.into())]));
    /// assert_eq!(hits.at_least(2).collect::<Vec<_>>(), [("/".to_string(), 7)]);
    /// ```
    pub fn into_iter_with<T, F: FnMut(&K, &V) -> T>(self, f: F) -> IterWith<'m, K, V, F, S, G> {
        IterWith::new(self, f)
    }

    /// Walks over all keys, as [`Pinned::iter`] does.
    ///
    /// # Panics
    ///
    /// As [`Pinned::iter`], in a closure that runs under this map's lock.
    ///
    /// ```
    /// let map = koel::HashMap::from([(1, "one"), (2, "two")]);
    /// assert_eq!(map.pin().keys().sum::<i32>(), 3);
    /// ```
    pub fn keys(&self) -> Keys<'_, K, V> {
        Keys(self.iter())
    }

    /// Walks over all values, as [`Pinned::iter`] does.
    ///
    /// # Panics
    ///
    /// As [`Pinned::iter`], in a closure that runs under this map's lock.
    ///
    /// ```
    /// let map = koel::HashMap::from([(1, "one"), (2, "two")]);
    /// assert!(map.pin().values().all(|name| name.len() == 3));
    /// ```
    pub fn values(&self) -> Values<'_, K, V> {
        Values(self.iter())
    }

    /// Removes all entries, and walks over the removed ones. A segment is emptied when the walk reaches it, or when the
    /// iterator is dropped.
    ///
    /// # Panics
    ///
    /// In a closure that runs under this map's lock, also when the iterator is dropped there, unless the thread is unwinding:
    /// then the entries stay. See [`HashMap`](HashMap#under-a-lock).
    ///
    /// ```
    /// let map = koel::HashMap::from([(1, "one")]);
    /// assert_eq!(map.pin().drain().collect::<Vec<_>>(), [(&1, &"one")]);
    /// assert!(map.is_empty());
    /// ```
    pub fn drain(&self) -> Drain<'_, K, V, G> {
        Drain::new(&self.map.table, &self.guard)
    }

    /// Removes all entries, one segment after the other.
    ///
    /// # Panics
    ///
    /// In a closure that runs under this map's lock: see [`HashMap`](HashMap#under-a-lock).
    ///
    /// ```
    /// let map = koel::HashMap::from([(1, "one"), (2, "two")]);
    /// let pin = map.pin();
    /// let one = pin.get(&1);
    /// pin.clear();
    /// assert_eq!((pin.len(), one), (0, Some(&"one"))); // what was read stays readable
    /// ```
    pub fn clear(&self) {
        drop(self.drain());
    }

    /// Arranges for all removed and replaced entries to be dropped as soon as every pin that lives now has ended, including
    /// this one, by whichever thread ends the last of them. Without a flush [they wait
    /// longer](HashMap#when-values-are-dropped). [`HashMap::flush`] makes a pin of its own and ends it.
    ///
    /// If the last of these pins ends in a closure that runs under the lock of some map, or in a destructor nested deep in
    /// others, its thread drops the entries at the end of its next pin of this map; if it makes none soon, the next flush does,
    /// or later removals.
    ///
    /// A flush does not wait for an entry that another thread is dropping at that moment, nor for the entries after it in the
    /// same batch. Entries that destructors remove meanwhile wait for the next flush: a chain of entries, each of which removes
    /// the next one when it is dropped, needs one flush for each.
    ///
    /// It costs some microseconds, about 50 ns for each segment if entries have no allocation each, and three looks at each
    /// living thread that has had a pin. If pins that live now have not ended, it may also wait for pins that begin before they
    /// have.
    ///
    /// # Panics
    ///
    /// In a closure that runs under this map's lock: see [`HashMap`](HashMap#under-a-lock).
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// let map = koel::HashMap::from([(1, Arc::new("shared"))]);
    /// let pin = map.pin();
    /// let kept = Arc::clone(pin.remove(&1).unwrap());
    /// pin.flush();
    /// assert_eq!(Arc::strong_count(&kept), 2); // this pin may still look at it
    /// drop(pin);
    /// assert_eq!(Arc::strong_count(&kept), 1);
    /// ```
    pub fn flush(&self) {
        self.map.table.flush(&self.guard);
    }
}

impl<'m, K, V, S: BuildHasher, G: Guard> Pinned<'m, K, V, S, G> {
    /// The digest by which a key is looked up.
    #[inline(always)]
    pub(crate) fn digest<Q: ?Sized + Hash>(&self, key: &Q) -> Digest {
        self.map.digest(key)
    }

    #[inline(always)]
    fn find_entry<Q: ?Sized + Hash + Equivalent<K>>(&self, key: &Q) -> Option<&Entry<K, V>> {
        self.find_entry_of(self.map.digest(key), key)
    }

    /// The entry of a key with this digest.
    #[inline(always)]
    pub(crate) fn find_entry_of<Q: ?Sized + Equivalent<K>>(
        &self,
        digest: Digest,
        key: &Q,
    ) -> Option<&Entry<K, V>> {
        let table = &self.map.table;
        let found = table.directory.find(
            digest,
            || table.prefetch_home(digest),
            |entry| {
                // Not by `entry_behind`: the cold path is handed the closure, and if that had a pointer to the view, the view
                // would have to be kept in memory.
                // SAFETY: just found in the table; used under the guard.
                key.equivalent(unsafe { &Entry::<K, V>::deref(entry).key })
            },
        );
        // SAFETY: just found in the table.
        found.map(|entry| unsafe { self.entry_behind(entry) })
    }

    /// Returns the value of a key. Two tag words, one slot and one entry are read; nothing is written.
    ///
    /// ```
    /// use koel::{Equivalent, HashMap};
    ///
    /// /// Finds a `(String, u32)` without making a `String`. Hashes as the key does.
    /// #[derive(Hash)]
    /// struct Place<'a>(&'a str, u32);
    ///
    /// impl Equivalent<(String, u32)> for Place<'_> {
    ///     fn equivalent(&self, key: &(String, u32)) -> bool {
    ///         self.0 == key.0 && self.1 == key.1
    ///     }
    /// }
    ///
    /// let map = HashMap::from([(("elm street".to_string(), 5), "ada")]);
    /// assert_eq!(map.pin().get(&Place("elm street", 5)), Some(&"ada"));
    /// ```
    #[doc(alias = "peek_with")]
    #[doc(alias = "read_sync")]
    #[inline]
    pub fn get<Q: ?Sized + Hash + Equivalent<K>>(&self, key: &Q) -> Option<&V> {
        self.find_entry(key).map(|entry| &entry.value)
    }

    /// Returns the value of a key with the view, to be kept or to be returned from the function that has made the pin. It costs
    /// what [`Pinned::get`] does. From a [`pin_owned`](HashMap::pin_owned) it is `Send`. Entries that are removed meanwhile are
    /// not dropped before it is.
    ///
    /// ```
    /// use std::ops::Deref;
    ///
    /// use koel::HashMap;
    ///
    /// struct Prices(HashMap<String, u32>);
    ///
    /// impl Prices {
    ///     fn of(&self, what: &str) -> Option<impl Deref<Target = u32>> {
    ///         self.0.pin().into_get(what)
    ///     }
    /// }
    ///
    /// let prices = Prices(HashMap::from([("tea".to_string(), 3)]));
    /// assert_eq!(*prices.of("tea").unwrap(), 3);
    /// assert!(prices.of("milk").is_none());
    /// ```
    #[inline]
    pub fn into_get<Q: ?Sized + Hash + Equivalent<K>>(self, key: &Q) -> Option<Ref<'m, K, V, S, G>> {
        let entry = NonNull::from(self.find_entry(key)?);
        // SAFETY: found by this view.
        Some(unsafe { Ref::new(entry, self) })
    }

    /// Returns the key, as it is in the map, and its value.
    ///
    /// ```
    /// let map = koel::HashMap::from([("one".to_string(), 1)]);
    /// let pin = map.pin();
    /// let (key, value) = pin.get_key_value("one").unwrap();
    /// assert_eq!((key.as_str(), *value), ("one", 1));
    /// ```
    #[doc(alias = "view")]
    #[inline]
    pub fn get_key_value<Q: ?Sized + Hash + Equivalent<K>>(&self, key: &Q) -> Option<(&K, &V)> {
        self.find_entry(key).map(Entry::pair)
    }

    /// Returns whether the key is present.
    ///
    /// ```
    /// let map = koel::HashMap::from([("one".to_string(), 1)]);
    /// assert!(map.pin().contains_key("one") && !map.pin().contains_key("two"));
    /// ```
    #[inline]
    pub fn contains_key<Q: ?Sized + Hash + Equivalent<K>>(&self, key: &Q) -> bool {
        self.find_entry(key).is_some()
    }

    /// Returns whether the key may be present, judged by its 1-byte tag alone: `false` is certain; `true` is wrong for about
    /// one absent key in thirty-two in a full map. Reads two tag words and touches no entry.
    ///
    /// ```
    /// let map = koel::HashMap::from([(1, 2)]);
    /// assert!(map.pin().may_contain(&1));
    /// ```
    #[inline]
    pub fn may_contain<Q: ?Sized + Hash + Equivalent<K>>(&self, key: &Q) -> bool {
        self.map.table.directory.may_contain(self.map.digest(key))
    }

    /// Looks up the values of many keys: `out[i]` becomes the value of `keys[i]`.
    ///
    /// Keys are hashed, fetched and compared as a pipeline, so that their waits for memory overlap: in tables larger than the
    /// caches this is several times as fast as a [`Pinned::get`] for each. Each look-up is independent; together they are not a
    /// snapshot. For keys that are borrowed or unsized, see [`Pinned::get_many_ref`].
    ///
    /// # Panics
    ///
    /// If the slices differ in length.
    ///
    /// ```
    /// let map = koel::HashMap::from([(1, "one"), (2, "two")]);
    /// let pin = map.pin();
    /// let mut values = [None; 3];
    /// pin.get_many(&[2, 3, 1], &mut values);
    /// assert_eq!(values, [Some(&"two"), None, Some(&"one")]);
    /// ```
    #[inline]
    #[track_caller]
    pub fn get_many<'p, Q: Hash + Equivalent<K>>(&'p self, keys: &[Q], out: &mut [Option<&'p V>]) {
        assert_eq!(keys.len(), out.len(), "get_many: as many places for values as keys");
        self.find_many(keys, |key| key, out, |entry| entry.map(|entry| &entry.value));
    }

    /// Looks up the values of many keys, given by reference, as [`Pinned::get_many`] does.
    ///
    /// # Panics
    ///
    /// If the slices differ in length.
    ///
    /// ```
    /// let map = koel::HashMap::from([("one".to_string(), 1), ("two".to_string(), 2)]);
    /// let pin = map.pin();
    /// let mut values = [None; 3];
    /// pin.get_many_ref(&["two", "three", "one"], &mut values);
    /// assert_eq!(values, [Some(&2), None, Some(&1)]);
    /// ```
    #[inline]
    #[track_caller]
    pub fn get_many_ref<'p, Q: ?Sized + Hash + Equivalent<K>>(
        &'p self,
        keys: &[&Q],
        out: &mut [Option<&'p V>],
    ) {
        assert_eq!(keys.len(), out.len(), "get_many_ref: as many places for values as keys");
        self.find_many(keys, |key| *key, out, |entry| entry.map(|entry| &entry.value));
    }

    /// Looks up whether many keys are present: `out[i]` becomes the result of `contains_key(&keys[i])`, at the cost of
    /// [`Pinned::get_many`].
    ///
    /// # Panics
    ///
    /// If the slices differ in length.
    ///
    /// ```
    /// let map = koel::HashMap::from([(1, "one"), (2, "two")]);
    /// let mut present = [false; 3];
    /// map.pin().contains_many(&[2, 3, 1], &mut present);
    /// assert_eq!(present, [true, false, true]);
    /// ```
    #[inline]
    #[track_caller]
    pub fn contains_many<Q: Hash + Equivalent<K>>(&self, keys: &[Q], out: &mut [bool]) {
        assert_eq!(keys.len(), out.len(), "contains_many: as many places for answers as keys");
        self.find_many(keys, |key| key, out, |entry| entry.is_some());
    }

    /// Looks up whether many keys, given by reference, are present, as [`Pinned::contains_many`] does.
    ///
    /// # Panics
    ///
    /// If the slices differ in length.
    ///
    /// ```
    /// let map = koel::HashMap::from([("one".to_string(), 1), ("two".to_string(), 2)]);
    /// let mut present = [false; 3];
    /// map.pin().contains_many_ref(&["two", "three", "one"], &mut present);
    /// assert_eq!(present, [true, false, true]);
    /// ```
    #[inline]
    #[track_caller]
    pub fn contains_many_ref<Q: ?Sized + Hash + Equivalent<K>>(&self, keys: &[&Q], out: &mut [bool]) {
        assert_eq!(keys.len(), out.len(), "contains_many_ref: as many places for answers as keys");
        self.find_many(keys, |key| *key, out, |entry| entry.is_some());
    }

    /// Looks up the result of `key` for each of `keys`, batch by batch; `out[i]` becomes the answer for `keys[i]`.
    #[inline(always)]
    fn find_many<'p, T, Q: ?Sized + Hash + Equivalent<K>, A>(
        &'p self,
        keys: &[T],
        key: impl Fn(&T) -> &Q,
        out: &mut [A],
        answer: impl Fn(Option<&'p Entry<K, V>>) -> A,
    ) {
        // SAFETY: the batch finds it in the table.
        let behind = |entry| unsafe { self.entry_behind(entry) };
        let digest = |from: &T| self.map.digest(key(from));
        each_batch(keys, out, digest, |keys, digests, out| {
            self.map.table.directory.find_batch(
                digests,
                |i| self.map.table.prefetch_home(digests[i]),
                |i, entry| key(&keys[i]).equivalent(&behind(entry).key),
                |i, entry| out[i] = answer(entry.map(behind)),
            );
        });
    }
}

/// Walks over the map. Panics in a closure that runs under this map's lock, as [`Pinned::iter`].
impl<K: fmt::Debug, V: fmt::Debug, S, G: Guard> fmt::Debug for Pinned<'_, K, V, S, G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

/// # Panics
///
/// Indexing panics if the key is absent.
impl<K, V, S: BuildHasher, G: Guard, Q: ?Sized + Hash + Equivalent<K>> Index<&Q> for Pinned<'_, K, V, S, G> {
    type Output = V;

    #[inline]
    #[track_caller]
    fn index(&self, key: &Q) -> &V {
        self.get(key).expect("no entry for this key")
    }
}

impl<'p, K, V, S, G: Guard> IntoIterator for &'p Pinned<'_, K, V, S, G> {
    type Item = (&'p K, &'p V);
    type IntoIter = Iter<'p, K, V>;

    fn into_iter(self) -> Iter<'p, K, V> {
        self.iter()
    }
}
