//! [`HashMap`]: the whole map; the operations on its entries are on [`Pinned`](super::Pinned).

use core::fmt;
use core::hash::{BuildHasher, Hash};
use core::panic::{RefUnwindSafe, UnwindSafe};

use ahash::RandomState;

use super::alone::extend_alone;
use super::builder::sealed::FromShape;
use super::{Builder, HashMapKind, IntoIter, Pinned, PinnedOwned};
use crate::engine::{CapacityError, Shape, Stats};
use crate::entries::Table;
use crate::hash::Digest;

/// A concurrent hash map whose entries are behind pointers: reads return references. All operations on its entries, `get`,
/// `insert`, `iter`, `compute` and the rest, are on [`Pinned`], the view that [`HashMap::pin`] makes.
///
/// Readers take no lock and never wait, not even for a writer that the system has suspended in the middle of moving an entry.
/// They write no shared memory, except a count when an entry moved under them and they have to read again. Writers lock one
/// segment of a few thousand slots. References that a view returns live as long as the view.
///
/// Look-ups are lock-free, not wait-free: a look-up begins again only if a writer has completed a move meanwhile. Apart from
/// look-ups, two things may take a lock for a moment: a thread's first pin of any map, and the end of a pin for which a `flush`
/// or many removed entries wait: it then frees what is due, running destructors as well.
///
/// ```
/// let map = koel::HashMap::new();
/// let pin = map.pin();
/// pin.insert("koel", 1);
/// assert_eq!(pin.get("koel"), Some(&1));
/// assert_eq!(pin.remove("koel"), Some(&1));
/// ```
///
/// # When to pick something else
///
/// Keys and values that are small plain data are faster and smaller in an [`InlineMap`](crate::InlineMap). A map that one
/// thread uses at a time is better off as a `std::collections::HashMap`. For values that are changed in place under a lock, use
/// a `dashmap`; here a change makes a new entry. For a set, use a [`HashSet`](crate::HashSet).
///
/// # Coming from other maps
///
/// There is no `map.get`: write `map.pin().get(&k)`, and `for (k, v) in &map.pin()`. (The compiler does not say so. For
/// `map.get` it says "no method named `get` found for struct `koel::HashMap`"; for `for (k, v) in &map` it suggests that you
/// remove the `&`, which would consume the map; for `map.iter()`, `map.values()` and `map.entry(k)` it suggests `iter_mut`,
/// `values_mut` and `take_entry`.) There is no `entry`, and [`get_mut`](HashMap::get_mut), [`iter_mut`](HashMap::iter_mut),
/// [`take`](HashMap::take) and [`extract_if`](HashMap::extract_if) require exclusive access to the map. On a shared map,
/// [`update`](Pinned::update), [`update_or_insert_with`](Pinned::update_or_insert_with) and [`compute`](Pinned::compute) make a
/// new entry out of the old one. They take an owned key, because the new entry needs one: it replaces the key that was stored.
/// The variants with `_ref` at the end take a reference, and clone the key that was stored. A value that changes often is
/// cheaper as an atomic that is changed in place. That takes no lock: a change that coincides with the removal or replacement
/// of its entry is lost with the entry, even if a closure of `remove_if` or `compute` has just looked at the value.
///
/// ```
/// use std::sync::atomic::{AtomicU64, Ordering};
///
/// let hits: koel::HashMap<String, AtomicU64> = koel::HashMap::new();
/// hits.pin().insert("home".to_string(), AtomicU64::new(0));
/// if let Some(count) = hits.pin().get("home") {
///     count.fetch_add(1, Ordering::Relaxed);
/// }
/// for (page, count) in &hits.pin() {
///     assert_eq!((page.as_str(), count.load(Ordering::Relaxed)), ("home", 1));
/// }
/// ```
///
/// # Memory
///
/// Nine bytes for each slot, and key and value for each entry; 2 KB for the map itself, wherever it is stored. With [home
/// cells](crate::Builder::home_cells): key and value and a quarter more for each entry that the map is made for, from the
/// start. If hashes are spread evenly, a map that has grown is between 44% and 88% full, up to 90% after `reserve`; one that
/// was made for its entries by [`HashMap::with_capacity`], or by `collect` from an iterator that knows how many they are, is
/// about 90% full; a `clone` is mostly as full as its original. The map cuts plain entries from chunks of memory of its own.
/// Chunks that have become free, and tables that were outgrown, are kept for further entries and growth until
/// [`Pinned::shrink_to_fit`]. But where half of the entries' memory, and at least a megabyte, was free for a second, as after a
/// pin that was held for long, writers give it back, a little with every 31 entries that are freed. Entries never move: a chunk
/// in which few are left goes when they have been replaced or removed. A map that was large gives little of its memory back in
/// this way, as each segment keeps up to 31 pieces at hand, and most chunks have one of these: shrink such a map. Home cells
/// are freed all together, when no entry is left in any. An entry that replaces another and finds no free cell at its home gets
/// other memory, so that once most entries have been replaced, many of them have such memory.
///
/// Entries whose keys or values own memory (have a `Drop`, as a `String` does) have an allocation each, of eight bytes more. If
/// an entry is made right after that memory was allocated, the two are adjacent, and a look-up that goes on to a key's text
/// waits once, not twice. If that memory was allocated long before, as a shared `Arc` may be, there is little to gain.
///
/// Where the allocator has no memory, `checked_insert` and its kin say so; see
/// [when allocation fails](crate#when-allocation-fails).
///
/// # When values are dropped
///
/// A removed or replaced entry, key and value, is dropped later: not before every pin that is older than the removal has ended,
/// and then together with others, in batches. So the entries that were removed last wait until more are removed,
/// [`HashMap::flush`] is called, or the map is dropped. A pin that is held for long holds up all that is removed meanwhile:
/// [`Stats::waiting`] counts those entries. Of the entries that other threads have removed, a call or a pin that ends drops a
/// few hundred and leaves the rest to others, however many there are, unless it flushes, held up a flush, or was held while it
/// removed many entries itself.
///
/// So the removal of a `Sender` or of a lock's guard does not close or unlock it. Call `flush` after the removal; or keep a
/// resource that must be released at once (a lock, a file, a gigabyte) in a `Mutex<Option<_>>` or an `Arc`, and take it out of
/// that yourself. With exclusive access to the map, [`take`](HashMap::take) hands the value out at once.
///
/// The `Drop` of a key or value may run at the end of *any* call or pin of the map, look-ups included, on any thread that uses
/// it. So it must not take a lock, or borrow a `RefCell`, that some thread holds while it uses the map: that thread would wait
/// for itself forever, or a panic would keep the `Drop` from doing its work. Nor may it rely on which thread it runs on. A
/// `Drop` that needs a lock should send the remains of the value over a channel to a thread that takes the lock.
///
/// ```
/// use std::sync::{Mutex, mpsc};
///
/// /// Returns its number to the free numbers, but not by itself.
/// struct Lease(u32, mpsc::Sender<u32>);
///
/// impl Drop for Lease {
///     fn drop(&mut self) {
///         let _ = self.1.send(self.0); // `free.lock()` might wait for this very thread
///     }
/// }
///
/// let free = Mutex::new(vec![1, 2]);
/// let (back, given_back) = mpsc::channel();
/// let leases = koel::HashMap::new();
/// {
///     let mut free = free.lock().unwrap();
///     leases.pin().insert("ada", Lease(free.pop().unwrap(), back)); // may drop what was removed before
/// }
/// leases.pin().remove("ada");
/// leases.flush();
/// free.lock().unwrap().extend(given_back.try_iter());
/// assert_eq!(free.into_inner().unwrap(), [1, 2]);
/// ```
///
/// Without older pins, this many may wait:
///
/// | entries of | number that may wait |
/// | --- | --- |
/// | a map, or a [`Cache`](crate::Cache) whose entries own memory | some hundreds per thread; an eighth of the slots, if more |
/// | a `Cache` whose entries own none | some hundreds per thread; a 64th of the slots, if more |
/// | a `Cache` with a weigher | the same, but at most an eighth of the bound, a 128th per thread, and each thread's last call |
///
/// The slots of tables that are kept for growth count as well; a bound below half a million counts as half a million. A batch
/// is 32 removals of one thread. It is dropped three or more batches later: the faster the thread removes and the longer the
/// machine takes to interrupt threads, the more batches later. The memory of entries that need no drop waits for some more
/// removals in the same part of the map. If a thread has removed thousands of entries under another map's lock, by `clear`,
/// say, and has not come back to the map, they are dropped as others remove, one for each.
///
/// Each call has a pin while it runs. Where more threads run than there are processors, the system stops some of them in the
/// middle of a call, for milliseconds or longer, and entries that others remove meanwhile wait as well. A thread that writes to
/// a cache with a weigher lets others go first when an eighth of the bound cannot be dropped yet.
///
/// # Under a lock
///
/// The closures of `compute`, `update`, `get_or_insert_with`, `remove_if` and their kin run while one segment is locked for
/// writing. So may `Hash` and `Eq`, and, where an entry is changed by reference (`update_ref` and its kin), `Clone` and
/// [`ToKey`](crate::ToKey) of its key. They may read this map and any other. If they wrote to the same map, walked over it or
/// asked for its `stats`, they would wait for themselves: that panics instead. (`get_or_insert`, `try_insert` and their kin,
/// and a set's `insert`, only look up a key that is present, and do not panic then.) A `flush` panics as well, because it would
/// run the destructors of other entries there. If they write to *another* map or walk over it, its locks are taken while this
/// one's is held, and you have to keep to one order: a closure on map A that does so to B in one thread and a closure on B that
/// does so to A in another wait for each other forever. Such a write to B, under A's lock, may also drop entries that were
/// removed from B before, so the destructors of B's values must not write to A. A write under the locks of sixteen maps panics.
///
/// Nor should a closure wait for rayon, in `join` or in any parallel iterator: rayon's threads run other tasks while they wait,
/// and a task that writes to the same map then runs under the closure's lock, and panics.
///
/// # Panics in your code
///
/// A panic in `Hash`, `Eq`, `Clone` or a closure leaves the map as it was before the operation, except that entries that
/// [`Pinned::retain`] has refused before are removed, and entries that [`Pinned::extend`] has inserted stay. A panic in the
/// `Drop` of an entry that was removed or replaced is reported by the panic hook and goes no further: such entries are dropped
/// later, by whichever operation of whichever thread finds that nobody looks at them any more. When the map itself is dropped,
/// all entries are dropped, and the first panic is resumed afterwards.
///
/// # Source
///
/// MemC3 (Fan, Andersen and Kaminsky, NSDI 2013, section 3), with the breadth-first path search of Li et al. (EuroSys
/// 2014, section 4.3.2) and a directory of segments for growth.
pub struct HashMap<K, V, S = RandomState> {
    pub(super) table: Table<K, V>,
    pub(super) hasher: S,
}

/// A panic in user code leaves the map whole.
impl<K: RefUnwindSafe, V: RefUnwindSafe, S: RefUnwindSafe> RefUnwindSafe for HashMap<K, V, S> {}
/// A panic in user code leaves the map whole.
impl<K: RefUnwindSafe, V: RefUnwindSafe, S: UnwindSafe> UnwindSafe for HashMap<K, V, S> {}

impl<K, V> HashMap<K, V> {
    /// Creates an empty map: one bucket, no entries.
    ///
    /// # Panics
    ///
    /// If there is no memory for it.
    ///
    /// ```
    /// let map = koel::HashMap::new();
    /// assert_eq!(map.pin().insert("one", 1), None);
    /// assert_eq!(map.len(), 1);
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
    /// Where [`HashMap::try_with_capacity`] returns an error, with its message.
    ///
    /// ```
    /// let map = koel::HashMap::with_capacity(1000);
    /// let slots = map.capacity();
    /// map.extend((0..1000).map(|id| (id, "name")));
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
    /// let error = koel::HashMap::<u64, u64>::try_with_capacity(usize::MAX).unwrap_err();
    /// assert_eq!(error.requested, usize::MAX);
    /// ```
    pub fn try_with_capacity(entries: usize) -> Result<Self, CapacityError> {
        Self::builder().capacity(entries).try_build()
    }

    /// Returns a builder, for options other than the capacity.
    pub fn builder() -> Builder<HashMapKind<K, V>, RandomState> {
        Builder::new(RandomState::new())
    }
}

impl<K, V, S> HashMap<K, V, S> {
    /// Creates an empty map with this hash function.
    ///
    /// The function should be keyed at random if others choose the map's keys. Different keys should have different hashes: of
    /// the keys that share all 64 bits, four to eight find a slot, and the others go to a list that is searched one by one. So
    /// where a `Hash` implementation leaves out parts of the keys, the time of an operation grows with the number of keys that
    /// hash alike. How well the bits are mixed matters less: koel mixes them once more, so that even the identity on integers
    /// will do. Only hashes of `ahash` and of the standard library's `RandomState` are taken as they are. If keys were
    /// distributed among maps by some bits of these hashes, as by `hash % 256`, all keys of a map have those bits in common;
    /// the map then takes about twice the memory, or, where its capacity is fixed, is two to four times as slow. Distribute
    /// keys by another hash.
    ///
    /// Maps with the same hash function have their entries in the same order, unless the function is keyed anew for each map,
    /// as `RandomState` is. So the entries of the first part of a walk over one map belong in a few segments of another: where
    /// the other's [capacity is fixed](Builder::fixed_capacity), half of them end up in such lists.
    ///
    /// # Panics
    ///
    /// If there is no memory for it.
    ///
    /// ```
    /// use std::hash::RandomState;
    ///
    /// // The hash function is part of the type: here it is the standard library's.
    /// let map: koel::HashMap<&str, u32, RandomState> = koel::HashMap::with_hasher(RandomState::new());
    /// map.pin().insert("key", 1);
    /// assert_eq!(map.pin().get("key"), Some(&1));
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
    /// Where [`HashMap::try_with_capacity_and_hasher`] returns an error, with its message.
    #[must_use]
    #[track_caller]
    pub fn with_capacity_and_hasher(entries: usize, hasher: S) -> Self {
        Builder::<HashMapKind<K, V>, S>::new(hasher).capacity(entries).build()
    }

    /// Creates a map with room for `entries` and this hash function.
    ///
    /// # Errors
    ///
    /// As [`HashMap::try_with_capacity`].
    pub fn try_with_capacity_and_hasher(entries: usize, hasher: S) -> Result<Self, CapacityError> {
        Builder::<HashMapKind<K, V>, S>::new(hasher).capacity(entries).try_build()
    }

    /// Returns a view of the map for this thread, which has the operations on entries.
    ///
    /// While the view lives, nothing that it has returned is freed. It costs some nanoseconds, once for as many operations as
    /// you like. It is not `Send`: see [`HashMap::pin_owned`]. Let it go out of scope like a lock's guard.
    ///
    /// ```
    /// let map = koel::HashMap::from([(1, "one"), (2, "two")]);
    /// let pin = map.pin(); // once for both
    /// assert_eq!((pin.get(&1), pin.get(&2)), (Some(&"one"), Some(&"two")));
    /// ```
    #[doc(alias = "get")]
    #[doc(alias = "guard")]
    #[doc(alias = "insert")]
    #[doc(alias = "remove")]
    #[inline]
    pub fn pin(&self) -> Pinned<'_, K, V, S> {
        Pinned::new(self, self.table.collector.enter())
    }

    /// Returns a view of the map that may move between threads, for instance with a future across an `.await`. It costs some
    /// tens of nanoseconds more than [`HashMap::pin`], and writes to memory that threads share, so that many threads that do
    /// nothing else slow each other down: where nothing is held across an `.await`, use [`HashMap::pin`].
    ///
    /// The view borrows the map: a thread or task that outlives this function takes an `Arc` of the map with it and makes the
    /// pin there.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// let map = Arc::new(koel::HashMap::from([(1, "one")]));
    /// let theirs = Arc::clone(&map);
    /// let task = std::thread::spawn(move || {
    ///     let pin = theirs.pin_owned(); // may be held across an `.await`: it is `Send`
    ///     pin.get(&1).copied()
    /// });
    /// assert_eq!(task.join().unwrap(), Some("one"));
    ///
    /// // Handed from thread to thread while the map is borrowed:
    /// let pin = map.pin_owned();
    /// std::thread::scope(|scope| {
    ///     scope.spawn(move || assert_eq!(pin.get(&1), Some(&"one")));
    /// });
    /// ```
    #[doc(alias = "owned_guard")]
    pub fn pin_owned(&self) -> PinnedOwned<'_, K, V, S> {
        Pinned::new(self, self.table.collector.enter_owned())
    }

    /// Returns the number of entries: exact while nobody writes to or resizes the map, and never less than the number of
    /// entries that are present throughout. Entries that a split moves meanwhile (half a segment's) may be counted twice. Looks
    /// at every segment.
    pub fn len(&self) -> usize {
        self.pin().len()
    }

    /// Returns whether there are no entries: never `true` if an entry is present throughout. Looks at segments up to the first
    /// that has entries.
    pub fn is_empty(&self) -> bool {
        self.pin().is_empty()
    }

    /// Returns the number of slots, which is more than the number of entries that fit, except those in [the
    /// overflow](crate::Stats::overflow). A map that has grown by itself fills about 7/8 of its slots before it grows again;
    /// one that was made for its entries, or has a fixed capacity, about 94%. [`reserve`](HashMap::reserve) makes room for a
    /// number of further entries, and [`checked_insert`](Pinned::checked_insert) says whether there is room for one.
    pub fn capacity(&self) -> usize {
        self.pin().capacity()
    }

    /// Returns the ratio of entries to slots: 0 to 1, and more where many are in [the overflow](crate::Stats::overflow).
    pub fn load_factor(&self) -> f64 {
        self.pin().load_factor()
    }

    /// Returns the number of bytes that the map has from the allocator: tables, including those kept for further growth, and
    /// entries; but not memory that keys and values own elsewhere.
    ///
    /// Plain entries are cut from chunks, which are counted whole, including free memory in them and entries that were removed
    /// and not yet freed. Entries that own memory, or have more than 512 bytes, have an allocation each, and count as long as
    /// they are in the map; the allocator's overhead for each does not count.
    ///
    /// Not counted are: the reclaimer's lists, about 3 KB for each of up to eight threads that remove, more while more entries
    /// wait; 256 bytes for each owned pin, for as many as there have been at a time, but at most about sixteen; entries with an
    /// allocation each that were removed and wait; and memory that each thread has once for all maps: 128 bytes, and 256 more
    /// if it has more than six pins at a time.
    ///
    /// ```
    /// let small = koel::HashMap::<u64, u64>::with_capacity(1_000);
    /// let large = koel::HashMap::<u64, u64>::with_capacity(1_000_000);
    /// assert!(large.memory_usage() > 100 * small.memory_usage());
    /// ```
    pub fn memory_usage(&self) -> usize {
        self.table.memory_usage()
    }

    /// Returns statistics about the map's inner workings. Locks one segment after the other.
    ///
    /// # Panics
    ///
    /// In a closure that runs under this map's lock: see [the type](HashMap#under-a-lock).
    ///
    /// ```
    /// let map: koel::HashMap<u64, u64> = (0..100_000).map(|i| (i, i)).collect();
    /// let stats = map.stats();
    /// assert!(stats.segments > 1);
    /// assert!(stats.path_lengths[0] > 50_000, "most new keys find an empty slot at once");
    /// println!("{stats}");
    /// ```
    pub fn stats(&self) -> Stats {
        self.pin().stats()
    }

    /// Returns the hash function.
    pub fn hasher(&self) -> &S {
        &self.hasher
    }

    /// Removes all entries, one segment after the other.
    ///
    /// # Panics
    ///
    /// In a closure that runs under this map's lock: see [the type](HashMap#under-a-lock).
    ///
    /// ```
    /// let map = koel::HashMap::from([(1, "one")]);
    /// let pin = map.pin();
    /// let one = pin.get(&1);
    /// map.clear();
    /// assert_eq!((map.len(), one), (0, Some(&"one"))); // the pin keeps it
    /// ```
    pub fn clear(&self) {
        self.pin().clear();
    }

    /// Drops all removed and replaced entries, as far as no older pin lives: see [`Pinned::flush`], and [when values are
    /// dropped](HashMap#when-values-are-dropped) without it.
    ///
    /// # Panics
    ///
    /// In a closure that runs under this map's lock: see [the type](HashMap#under-a-lock).
    ///
    /// ```
    /// use std::sync::mpsc;
    ///
    /// let (sender, receiver) = mpsc::channel::<()>();
    /// let map = koel::HashMap::from([("sender", sender)]);
    /// map.pin().remove("sender");
    /// assert_eq!(receiver.try_recv(), Err(mpsc::TryRecvError::Empty)); // not dropped yet
    /// map.flush();
    /// assert_eq!(receiver.try_recv(), Err(mpsc::TryRecvError::Disconnected));
    /// ```
    pub fn flush(&self) {
        self.pin().flush();
    }
}

impl<K: Hash + Eq, V, S: BuildHasher> HashMap<K, V, S> {
    /// Makes room for `additional` more entries, as [`Pinned::reserve`] does.
    ///
    /// # Panics
    ///
    /// If there is no memory for them, and in a closure that runs under this map's lock: see
    /// [the type](HashMap#under-a-lock).
    ///
    /// ```
    /// let map: koel::HashMap<u64, u64> = koel::HashMap::new();
    /// map.reserve(10_000);
    /// assert!(map.capacity() >= 10_000);
    /// ```
    #[track_caller]
    pub fn reserve(&self, additional: usize) {
        self.pin().reserve(additional);
    }

    /// As [`HashMap::reserve`], but returns an error if there is no room to be had, as [`Pinned::try_reserve`] does.
    ///
    /// # Errors
    ///
    /// [`CapacityError`].
    ///
    /// # Panics
    ///
    /// In a closure that runs under this map's lock: see [the type](HashMap#under-a-lock).
    ///
    /// ```
    /// let map: koel::HashMap<u64, u64> = koel::HashMap::new();
    /// assert!(map.try_reserve(10_000).is_ok() && map.capacity() >= 10_000);
    /// assert!(map.try_reserve(usize::MAX).is_err());
    /// ```
    #[track_caller]
    pub fn try_reserve(&self, additional: usize) -> Result<(), CapacityError> {
        self.pin().try_reserve(additional)
    }

    /// Inserts all pairs, as [`Pinned::extend`] does. With exclusive access to the map, `Extend::extend(&mut map, pairs)` takes
    /// no locks, and rebuilds an empty map for as many pairs as the iterator promises.
    ///
    /// # Panics
    ///
    /// If there is no room, and in a closure that runs under this map's lock: see [the type](HashMap#under-a-lock).
    ///
    /// ```
    /// let map: koel::HashMap<u64, u64> = (0..100).map(|n| (n, n * n)).collect();
    /// map.extend((100..200).map(|n| (n, n * n)));
    /// assert_eq!(map.len(), 200);
    /// ```
    #[track_caller]
    pub fn extend(&self, pairs: impl IntoIterator<Item = (K, V)>) {
        self.pin().extend(pairs);
    }

    /// Keeps the entries for which `keep` holds and removes the others, as [`Pinned::retain`] does.
    ///
    /// # Panics
    ///
    /// In a closure that runs under this map's lock: see [the type](HashMap#under-a-lock).
    ///
    /// ```
    /// let map: koel::HashMap<u32, u32> = (0..10).map(|i| (i, i)).collect();
    /// map.retain(|_, value| value % 2 == 0);
    /// assert_eq!(map.len(), 5);
    /// ```
    pub fn retain(&self, keep: impl FnMut(&K, &V) -> bool) {
        self.pin().retain(keep);
    }

    /// Gives back memory, as [`Pinned::shrink_to_fit`] does.
    ///
    /// # Panics
    ///
    /// In a closure that runs under this map's lock: see [the type](HashMap#under-a-lock).
    ///
    /// ```
    /// let map: koel::HashMap<u64, u64> = (0..100_000).map(|i| (i, i)).collect();
    /// map.pin().retain(|key, _| *key < 10);
    /// let before = map.memory_usage();
    /// map.shrink_to_fit();
    /// assert!(map.memory_usage() < before / 10);
    /// ```
    pub fn shrink_to_fit(&self) {
        // Freed when these pins end, and so before the next one looks for memory that is free.
        self.flush();
        self.pin().shrink_to_fit();
    }
}

impl<K, V, S: BuildHasher> HashMap<K, V, S> {
    /// The place at which a key belongs.
    #[inline]
    pub(super) fn digest<Q: ?Sized + Hash>(&self, key: &Q) -> Digest {
        Digest::of(key, &self.hasher)
    }
}

impl<K, V, S> FromShape<S> for HashMapKind<K, V> {
    type Map = HashMap<K, V, S>;

    fn from_shape(shape: Shape, requested: usize, hasher: S) -> Result<Self::Map, CapacityError> {
        Ok(HashMap { table: Table::for_map(shape, requested)?, hasher })
    }
}

impl<K, V, S: Default> Default for HashMap<K, V, S> {
    #[track_caller]
    fn default() -> Self {
        Self::with_hasher(S::default())
    }
}

/// Walks over the map. Panics in a closure that runs under this map's lock: see [the type](HashMap#under-a-lock).
impl<K: fmt::Debug, V: fmt::Debug, S> fmt::Debug for HashMap<K, V, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.pin().fmt(f)
    }
}

/// Maps are equal if they have the same keys with equal values; nobody should be writing to either meanwhile. Walks over the
/// first: panics in a closure that runs under its lock.
impl<K: Hash + Eq, V: PartialEq, S: BuildHasher> PartialEq for HashMap<K, V, S> {
    fn eq(&self, other: &Self) -> bool {
        let (mine, theirs) = (self.pin(), other.pin());
        mine.len() == theirs.len() && mine.iter().all(|(key, value)| theirs.get(key) == Some(value))
    }
}

impl<K: Hash + Eq, V: Eq, S: BuildHasher> Eq for HashMap<K, V, S> {}

/// Collects pairs into a map made for as many as the iterator promises. If many of them have the same keys, that is more than
/// the map needs; a map that is collected from it once more takes less memory. Of equal keys the last stays, with its value.
/// Panics if there is no memory for them.
impl<K: Hash + Eq, V, S: BuildHasher + Default> FromIterator<(K, V)> for HashMap<K, V, S> {
    #[track_caller]
    fn from_iter<I: IntoIterator<Item = (K, V)>>(iter: I) -> Self {
        let mut map = Self::default();
        extend_alone(&mut map, iter);
        map
    }
}

/// Takes no locks, as nobody else uses the map. Panics, and treats an iterator that panics, as [`Pinned::extend`] does. An
/// empty map that grows is rebuilt for as many pairs as the iterator promises, if it has less room.
///
/// ```
/// let mut map: koel::HashMap<u64, u64> = koel::HashMap::new();
/// Extend::extend(&mut map, (0..1000).map(|n| (n, n * n))); // `map.extend` is for maps that others use as well
/// assert!(map.len() == 1000 && map.capacity() < 1200);
/// ```
impl<K: Hash + Eq, V, S: BuildHasher> Extend<(K, V)> for HashMap<K, V, S> {
    #[track_caller]
    fn extend<I: IntoIterator<Item = (K, V)>>(&mut self, iter: I) {
        extend_alone(self, iter);
    }
}

impl<K: Hash + Eq, V, S: BuildHasher> Extend<(K, V)> for &HashMap<K, V, S> {
    #[track_caller]
    fn extend<I: IntoIterator<Item = (K, V)>>(&mut self, iter: I) {
        self.pin().extend(iter);
    }
}

/// Copies the pairs; otherwise as the one for owned pairs. From another map: `Extend::extend(&mut map, &other.pin())`.
///
/// ```
/// let mut map = koel::HashMap::from([(1, "one")]);
/// Extend::extend(&mut map, &std::collections::HashMap::from([(2, "two")]));
/// assert_eq!((map.pin()[&1], map.pin()[&2]), ("one", "two"));
/// ```
impl<'a, K: Hash + Eq + Copy + 'a, V: Copy + 'a, S: BuildHasher> Extend<(&'a K, &'a V)> for HashMap<K, V, S> {
    #[track_caller]
    fn extend<I: IntoIterator<Item = (&'a K, &'a V)>>(&mut self, iter: I) {
        extend_alone(self, iter.into_iter().map(|(key, value)| (*key, *value)));
    }
}

impl<'a, K: Hash + Eq + Copy + 'a, V: Copy + 'a, S: BuildHasher> Extend<(&'a K, &'a V)>
    for &HashMap<K, V, S>
{
    #[track_caller]
    fn extend<I: IntoIterator<Item = (&'a K, &'a V)>>(&mut self, iter: I) {
        self.pin().extend(iter.into_iter().map(|(key, value)| (*key, *value)));
    }
}

impl<K, V, S> IntoIterator for HashMap<K, V, S> {
    type Item = (K, V);
    type IntoIter = IntoIter<K, V>;

    fn into_iter(self) -> IntoIter<K, V> {
        IntoIter::new(self.table)
    }
}

impl<K: Hash + Eq, V, const N: usize> From<[(K, V); N]> for HashMap<K, V> {
    #[track_caller]
    fn from(pairs: [(K, V); N]) -> Self {
        pairs.into_iter().collect()
    }
}
