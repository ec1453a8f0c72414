//! [`Cache`]: construction, reads, and operations on the cache as a whole. Writes are in `write`.

use core::fmt;
use core::hash::{BuildHasher, Hash};
use core::panic::{RefUnwindSafe, UnwindSafe};
use core::time::Duration;

use ahash::RandomState;
use equivalent::Equivalent;

use super::bound::Bound;
use super::builder::CacheBuilder;
use super::counters::{CacheStats, Counters};
use super::flight::Flights;
use super::iter::CacheIter;
use super::meta::{Fields, Meta};
use super::policy::Policy;
use super::removal::Listener;
use super::share::Share;
use super::time::{Nanos, Time};
use super::view::{CacheView, CacheViewOwned};
use crate::entries::{Entry, EntryPointer, Slots, Table};
use crate::hash::Digest;
use crate::reclaim::{Guard, LocalGuard};
use crate::reentry;

/// Weight below this that waits to be freed never counts as too much: the weight is taken for bytes, and asking the collector
/// more often would be expensive.
const LIGHT: u64 = 1 << 16;

/// The user's function for the weight of an entry.
pub(super) type Weigher<K, V> = Box<dyn Fn(&K, &V) -> u64 + Send + Sync>;

/// What slots hold, and what is kept under each segment's lock.
pub(super) type CacheSlots = Slots<Share>;

/// A bounded concurrent cache: when it is full, it evicts the entries that are least likely to be asked for again.
///
/// * The bound, of entries or of weight, holds at every moment that a reader can see.
/// * A hit takes no lock. It sets a bit next to the entry's tag, and on an entry that is hit often it writes nothing that
///   another thread reads. The exception is a cache whose entries have a time to idle: there a hit also notes the time, at most
///   once per millisecond, or per 64th of the time to idle if that is shorter. A miss that inserts locks one segment, evicts
///   there, and puts the entry in. A segment is for one or two thousand entries, or for more: there are at most four to eight
///   segments per core, and at most 256.
/// * No thread is ever started. Expired entries are removed when they are looked up, and, a few buckets at a time, when others
///   are inserted; [`Cache::purge`] removes all of them at once.
/// * An entry takes about 24 bytes in addition to key and value; where these own memory, eight more and what the allocator
///   adds. A weigher takes eight more, expiry times take eight, a time to idle eight more, or sixteen if each entry has its
///   own. A cache bounded by weight grows as it fills: it takes 35 to 65 bytes per entry in addition to key and value, from a
///   thousand entries on. With one entry it takes 11 KB, or, if its bound is above 65,536, 19 KB on one core and about 10 KB
///   more for each further core.
/// * Entries that have left the cache are dropped a little later: by further calls of any kind on any thread, including
///   look-ups and the ends of views, or by [`Cache::flush`]. See [how much may wait, and what a `Drop` must not
///   do](crate::HashMap#when-values-are-dropped). However much `clear`, `retain` or `set_capacity` have taken out on another
///   thread, one call drops about a hundred entries, unless it flushes or was in the way of a flush. With a weigher, a write
///   flushes when too much is waiting. What waits may then be an eighth of the bound, or 65,536 if that is more; for each
///   thread, a sixteenth of that in addition; and what the thread's last call has sent away, which may be much where one heavy
///   entry takes the place of many. Writes under a map's lock do not flush, and more may wait while the system has stopped a
///   thread in the middle of a call. Where values are large, give the cache a weigher: in caches for a hundred values of one
///   mebibyte, eight threads on two busy processors had up to 250 values alive with a weigher, and 700 without.
///
/// The table is from MemC3 (Fan, Andersen and Kaminsky, NSDI 2013), and so is its CLOCK with the recency next to the tag
/// (section 3.4), which is [`Policy::Clock`]. The default policy is [`Policy::Adaptive`]. [`Policy::Local`] reads through 1.1
/// to 1.4 times as fast and takes 10 bytes less per entry, at the cost of some points of the hit ratio.
///
/// Use something else for plain data of a few words ([`InlineCache`](crate::InlineCache) reads through 1.2 to 1.5 times as
/// fast), and for a map that must not lose entries ([`HashMap`](crate::HashMap)).
///
/// ```
/// let cache: koel::Cache<String, Vec<u8>> = koel::Cache::builder()
///     .max_weight(1 << 20)
///     .weigher(|name: &String, bytes: &Vec<u8>| (name.len() + bytes.len()) as u64)
///     .build();
/// let page = cache.get_or_insert_with("index".to_string(), || vec![0; 1000]);
/// assert_eq!(page.len(), 1000);
/// assert_eq!(cache.weight(), 1005);
/// ```
///
/// Threads and tasks share a cache by reference or in an `Arc`: there is no `clone`.
///
/// # Loading
///
/// | calls that load | with a loader that may fail | whose error goes to all waiters | with a limit on the wait |
/// | --- | --- | --- | --- |
/// | `get_or_insert_with` | `try_get_or_insert_with` | `.._shared` | `.._timeout`, `.._shared_timeout` |
/// | for tasks: `get_or_insert_async` | `try_get_or_insert_async` | `.._shared` | |
/// | `get_many_or_insert_with` | `try_get_many_or_insert_with` | `.._shared` | `.._shared_timeout` |
/// | for tasks: `get_many_or_insert_async` | `try_get_many_or_insert_async` | `.._shared` | |
///
/// The methods for one key also exist with `_ref` at the end of the name: these take the key by reference. Except those with a
/// timeout, they also exist with `_if` at the end: these ask whether a value that is there is stale. Without a closure,
/// [`Cache::get_or_reserve`] hands out the right to load a key.
///
/// | what happens while a key is being loaded | a caller that waits gets | a caller that asks afterwards | the loaded value |
/// | --- | --- | --- | --- |
/// | it is inserted or updated | the loaded value | finds the inserted value | is not kept |
/// | it is removed, or `clear` or `forget_loads` is called | the loaded value | loads anew, at once | is not kept |
/// | `compute`, `update` or `remove_if` leaves it as it is | the loaded value | loads anew, at once | is not kept |
/// | `try_insert` or `retain` leaves it as it is, or it is evicted | the loaded value | waits for the load as well | is kept |
///
/// # Under a lock
///
/// The following may run while one segment is locked for writing: the closures of `compute`, of `update` and its variants, and
/// of `remove_if`; the weigher, `expiry` and `idle_expiry`; `Clone` of what `compute` returns; the [`Clock`](crate::Clock);
/// `Hash` and `Eq`. The closures may look keys up in this cache and in any other map or cache. A closure that writes to this
/// cache, loads into it, walks over it or asks for its `memory_usage` would wait for itself: it panics instead. `Hash`, `Eq`,
/// `Clone` and the clock must do none of these. Writing to other maps and caches can deadlock, as described at
/// [`HashMap`](crate::HashMap#under-a-lock). Removal listeners, loaders, the `is_stale` of methods that load, and the closure
/// of `retain` run without a lock of the cache.
///
/// A panic in the removal listener goes on to the caller of the cache, which stays whole.
pub struct Cache<K, V, S = RandomState> {
    pub(super) table: Table<K, V, Share>,
    pub(super) hasher: S,
    pub(super) bound: Bound,
    pub(super) policy: Policy,
    pub(super) weigher: Option<Weigher<K, V>>,
    pub(super) time: Option<Time<K, V>>,
    pub(super) listener: Option<Listener<K, V>>,
    /// Which facts about an entry are kept, and where.
    pub(super) fields: Fields,
    pub(super) flights: Flights<K, V>,
    pub(super) counters: Counters,
}

/// A panic in user code leaves the cache whole.
impl<K: RefUnwindSafe, V: RefUnwindSafe, S: RefUnwindSafe> RefUnwindSafe for Cache<K, V, S> {}
/// A panic in user code leaves the cache whole.
impl<K: RefUnwindSafe, V: RefUnwindSafe, S: UnwindSafe> UnwindSafe for Cache<K, V, S> {}

impl<K: Hash + Eq, V> Cache<K, V> {
    /// Creates a cache of at most `max_entries` entries, with the default policy.
    ///
    /// # Panics
    ///
    /// If [`CacheBuilder::try_build`] would return an error, with its message: `max_entries` is beyond the limit, or there is
    /// no memory for that many entries.
    ///
    /// ```
    /// let cache: koel::Cache<u64, String> = koel::Cache::new(2);
    /// for id in 0..3 {
    ///     cache.insert(id, format!("entry {id}")).unwrap();
    /// }
    /// assert_eq!(cache.len(), 2);
    /// assert_eq!(cache.get(&2).as_deref(), Some("entry 2"));
    /// ```
    #[must_use]
    #[track_caller]
    pub fn new(max_entries: usize) -> Self {
        Self::builder().max_entries(max_entries).build()
    }
}

impl<K, V> Cache<K, V> {
    /// Returns the options of a new cache: see [`CacheBuilder`].
    pub fn builder() -> CacheBuilder<K, V> {
        CacheBuilder::new()
    }
}

impl<K, V, S> Cache<K, V, S> {
    /// What is known of an entry in addition to its key and value. As for every function here that takes an entry, what the
    /// entry was found under must still last: its segment's lock, or a guard.
    #[inline(always)]
    pub(super) fn meta(&self, entry: EntryPointer) -> Meta<'_> {
        // SAFETY: `make` has written it before the entry was published; the callers look at it at once.
        unsafe { Meta::new(Entry::<K, V>::tail(entry), &self.fields) }
    }

    /// The weight of an entry.
    #[inline(always)]
    pub(super) fn weight_of(&self, entry: EntryPointer) -> u64 {
        self.meta(entry).weight()
    }

    /// The time now; only a cache whose entries expire asks the clock.
    #[inline(always)]
    pub(super) fn now(&self) -> Nanos {
        self.time.as_ref().map_or(0, Time::now)
    }

    /// Whether an entry must not be returned any more.
    #[inline(always)]
    pub(super) fn has_expired(&self, entry: EntryPointer, now: Nanos) -> bool {
        self.meta(entry).has_expired(now)
    }

    /// Whether an entry may be returned now.
    #[inline]
    pub(super) fn is_alive(&self, entry: EntryPointer) -> bool {
        !self.has_expired(entry, self.now())
    }

    /// Whether this thread may refresh a value that is due: not where values are never due, nor under this cache's lock, where
    /// loads panic.
    #[inline]
    pub(super) fn may_refresh(&self) -> bool {
        self.time.as_ref().is_some_and(|time| time.ahead != 0) && !self.table.directory.is_writing()
    }

    /// Whether an entry has so little time left that its value is to be loaded anew [F8].
    #[inline]
    pub(super) fn is_due(&self, entry: EntryPointer, now: Nanos) -> bool {
        self.time.as_ref().is_some_and(|time| self.meta(entry).is_due(now, time.ahead))
    }

    /// Whether a refreshed value may take the place of an entry.
    pub(super) fn may_be_refreshed(&self, entry: EntryPointer, now: Nanos) -> bool {
        self.time.as_ref().is_some_and(|time| self.meta(entry).is_near_end(now, time.ahead))
    }

    /// Returns a view whose look-ups return references. The view keeps what it has returned alive and, for that long, the
    /// memory of other entries that have left the cache.
    ///
    /// ```
    /// let cache: koel::Cache<u32, String> = koel::Cache::new(10);
    /// cache.insert(1, "one".to_string()).unwrap();
    /// let view = cache.pin();
    /// let one: &String = view.get_ref(&1).unwrap();
    /// cache.remove(&1);
    /// assert_eq!(one, "one");
    /// ```
    pub fn pin(&self) -> CacheView<'_, K, V, S> {
        CacheView::new(self, self.enter())
    }

    /// Returns a view that may be sent and shared, and held across an `.await`. It costs more to make than that of
    /// [`Cache::pin`].
    ///
    /// ```
    /// let cache: koel::Cache<u32, String> = koel::Cache::new(10);
    /// cache.insert(1, "one".to_string()).unwrap();
    /// let view = cache.pin_owned();
    /// std::thread::scope(|scope| {
    ///     scope.spawn(|| assert_eq!(view.get_ref(&1).unwrap(), "one"));
    /// });
    /// ```
    pub fn pin_owned(&self) -> CacheViewOwned<'_, K, V, S> {
        CacheView::new(self, self.table.collector.enter_owned())
    }

    /// Drops the entries that have left the cache (evicted, expired, replaced or removed) as soon as every look-up and view
    /// that exists now has ended, on whichever thread ends the last of them. Locks one segment at a time, and takes some
    /// microseconds.
    ///
    /// # Panics
    ///
    /// In a closure that runs [under this cache's lock](Cache#under-a-lock).
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// let cache = koel::Cache::new(10);
    /// let value = Arc::new("shared");
    /// cache.insert(1, Arc::clone(&value)).unwrap();
    /// cache.remove(&1);
    /// cache.flush();
    /// assert_eq!(Arc::strong_count(&value), 1);
    /// ```
    pub fn flush(&self) {
        self.table.flush(&self.enter());
    }

    #[inline]
    pub(super) fn enter(&self) -> LocalGuard<'_> {
        self.table.collector.enter()
    }

    /// Enters a guard for a write, after checking how much waits to be freed.
    #[inline]
    pub(super) fn enter_to_write(&self) -> LocalGuard<'_> {
        self.free_if_heavy();
        self.enter()
    }

    /// Frees what writes have sent away, if it is an eighth of what the cache may hold. If a guard is in the way, maybe that of
    /// a thread that the system has stopped in the middle of a call, it lets other threads run first: else many times the bound
    /// would arrive meanwhile [B5].
    #[inline]
    pub(super) fn free_if_heavy(&self) {
        if !self.flush_if_heavy() {
            std::thread::yield_now();
        }
    }

    /// The same for readers; it waits for nobody. Returns false if a guard is in the way.
    #[inline]
    pub(super) fn flush_if_heavy(&self) -> bool {
        // The collector waits for about a hundred entries or more, of which a few may be heavy. Not under a map's lock, where
        // only some are freed at a time [C2]: the thread's next write elsewhere does it.
        self.weigher.is_none()
            || reentry::holds_a_lock()
            || !self.counters.takes_leave_of((self.capacity() / 8).max(LIGHT))
            || self.table.collector.flush()
    }

    /// Returns an iterator over clones of the entries, in no particular order. The walk leaves no trace.
    ///
    /// Every entry that is present from the beginning of the walk to its end is seen exactly once, whatever is inserted and
    /// evicted meanwhile; other entries are seen at most once. Expired entries are not seen at all; nor is an entry that has
    /// taken the place of an expired one since the walk met that. Pointers are copied under the lock of one segment at a time,
    /// and no lock is held while you look at the entries: you may write to the cache as you walk. Entries that leave the cache
    /// meanwhile are freed when the walk has ended: where each step takes long, collect the keys first. The iterator is not
    /// `Send`: a task that awaits on the way walks over a view, `for (key, value) in &cache.pin_owned()`.
    ///
    /// # Panics
    ///
    /// If the walk goes on in a closure that runs [under this cache's lock](Cache#under-a-lock).
    ///
    /// ```
    /// let cache: koel::Cache<u32, u32> = koel::Cache::new(10);
    /// cache.insert(1, 2).unwrap();
    /// assert_eq!(cache.iter().collect::<Vec<_>>(), [(1, 2)]);
    /// ```
    pub fn iter(&self) -> CacheIter<'_, K, V, S>
    where
        K: Clone,
        V: Clone,
    {
        CacheIter::new(self)
    }

    /// Returns the number of entries; expired ones count until they are found. Never above the bound, unless the bound is on
    /// what a weigher says: then entries that leave and entries that arrive meanwhile may both count.
    #[doc(alias = "entry_count")]
    pub fn len(&self) -> usize {
        if self.weigher.is_none() {
            return self.bound.used() as usize;
        }
        // A purge on another thread may free tables [G5].
        let _guard = self.enter();
        self.table.directory.len()
    }

    /// Returns whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the weight of all entries: their number, if there is no weigher. Never above the bound.
    #[doc(alias = "weighted_size")]
    pub fn weight(&self) -> u64 {
        self.bound.used()
    }

    /// Returns what the entries may weigh: how many there may be, if there is no weigher.
    pub fn capacity(&self) -> u64 {
        self.bound.capacity()
    }

    /// Returns how the cache chooses what to evict.
    pub fn policy(&self) -> Policy {
        self.policy
    }

    /// Returns how long after its insertion each entry expires, as set by
    /// [`CacheBuilder::time_to_live`](super::CacheBuilder::time_to_live). With `None` there is no such limit for all entries,
    /// but single entries may have one of their own, which [`Cache::time_left`] returns. Cost: a read.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let hour = Duration::from_secs(3600);
    /// let cache: koel::Cache<u32, u32> = koel::Cache::builder().max_entries(10).time_to_live(hour).build();
    /// assert_eq!((cache.time_to_live(), cache.time_to_idle()), (Some(hour), None));
    /// ```
    pub fn time_to_live(&self) -> Option<Duration> {
        self.time.as_ref()?.to_live
    }

    /// Returns how long after its insertion or last hit each entry expires, as set by
    /// [`CacheBuilder::time_to_idle`](super::CacheBuilder::time_to_idle). With `None` there is no such limit for all entries.
    /// Cost: a read.
    ///
    /// ```
    /// let cache: koel::Cache<u32, u32> = koel::Cache::new(10);
    /// assert_eq!((cache.time_to_live(), cache.time_to_idle()), (None, None));
    /// ```
    pub fn time_to_idle(&self) -> Option<Duration> {
        self.time.as_ref()?.to_idle
    }

    /// Returns the hash function.
    pub fn hasher(&self) -> &S {
        &self.hasher
    }

    /// Returns what the cache has done, and how full it is.
    ///
    /// ```
    /// let cache: koel::Cache<u32, u32> = koel::Cache::new(2);
    /// for key in 0..3 {
    ///     cache.insert(key, key).unwrap();
    /// }
    /// let stats = cache.stats();
    /// assert_eq!((stats.insertions, stats.evictions, stats.len), (3, 1, 2));
    /// println!("{stats}");
    /// ```
    pub fn stats(&self) -> CacheStats {
        // Both of one moment: `len` and `weight` never exceed the capacity that is reported with them.
        let (weight, capacity) = self.bound.used_and_capacity();
        let len = if self.weigher.is_none() { weight as usize } else { self.len() };
        CacheStats { len, weight, capacity, ..self.counters.sums() }
    }

    /// Returns the bytes of the cache itself and of what it has from the allocator: tables, entries, and what it remembers of
    /// evicted ones. It does not include what keys and values own elsewhere; nor the counters of threads, 128 bytes each in
    /// blocks of 1, 2, 4 and so on; nor what loads take, 4 KiB, to which the first ones add about 10 KiB, or more if keys are
    /// large; nor the entries that have left and wait, as far as a [`HashMap`](crate::HashMap::memory_usage) does not count
    /// them either. Locks one segment after the other.
    ///
    /// # Panics
    ///
    /// In a closure that runs [under this cache's lock](Cache#under-a-lock).
    pub fn memory_usage(&self) -> usize {
        let mut evictors = 0;
        let _guard = self.enter();
        self.table.directory.each_segment(|writing| {
            evictors += writing.locked.state_ref().keep.evictor.memory_usage();
        });
        size_of::<Self>() + self.table.memory_usage() + evictors
    }
}

impl<K, V, S: BuildHasher> Cache<K, V, S> {
    #[inline]
    pub(super) fn digest<Q: ?Sized + Hash>(&self, key: &Q) -> Digest {
        Digest::of(key, &self.hasher)
    }

    pub(super) fn rehash(&self, entry: EntryPointer) -> Digest
    where
        K: Hash,
    {
        // SAFETY: in the table, under its segment's lock.
        self.digest(unsafe { Entry::<K, V>::deref(entry) }.pair().0)
    }
}

impl<K: Hash + Eq, V, S: BuildHasher> Cache<K, V, S> {
    /// A look-up that is counted, and reported to the policy.
    #[inline(always)]
    pub(super) fn hit<'g, Q: ?Sized + Hash + Equivalent<K>>(
        &self,
        digest: Digest,
        key: &Q,
        guard: &'g impl Guard,
    ) -> Option<&'g Entry<K, V>> {
        // SAFETY: found after the guard was entered.
        self.hit_entry(digest, key, guard).map(|entry| unsafe { Entry::<K, V>::deref(entry) })
    }

    /// The same; the entry is alive for as long as the guard.
    #[inline(always)]
    pub(super) fn hit_entry<Q: ?Sized + Hash + Equivalent<K>>(
        &self,
        digest: Digest,
        key: &Q,
        _: &impl Guard,
    ) -> Option<EntryPointer> {
        // SAFETY: found after the guard was entered.
        let eq = |entry| key.equivalent(unsafe { Entry::<K, V>::deref(entry) }.pair().0);
        let found = self.table.directory.find_and_mark(digest, eq, Policy::touch);
        let found = self.if_in_time(digest, found);
        self.counters.here().looked_up(found.is_some());
        found
    }

    /// The entry that was found, if it has not expired, or the one that has taken its place; notes its use.
    #[inline(always)]
    pub(super) fn if_in_time(&self, digest: Digest, found: Option<EntryPointer>) -> Option<EntryPointer> {
        match &self.time {
            None => found,
            Some(time) => self.in_time(time, digest, found?),
        }
    }

    /// Notes the use of the entry that was found, if it has not expired, or of the one that has taken its place.
    #[inline]
    fn in_time(&self, time: &Time<K, V>, digest: Digest, found: EntryPointer) -> Option<EntryPointer> {
        let now = time.now();
        let entry = if self.has_expired(found, now) { self.renewed(digest, found, now)? } else { found };
        self.meta(entry).note_use(now);
        Some(entry)
    }

    /// A look-up that leaves no trace.
    #[inline]
    pub(super) fn peek_entry<'g, Q: ?Sized + Hash + Equivalent<K>>(
        &self,
        digest: Digest,
        key: &Q,
        guard: &'g impl Guard,
    ) -> Option<&'g Entry<K, V>> {
        // SAFETY: found after the guard was entered.
        self.find_alive(digest, key, guard).map(|(entry, _)| unsafe { Entry::<K, V>::deref(entry) })
    }

    /// An entry that has not expired, and the moment at which it had not; leaves no trace.
    #[inline]
    pub(super) fn find_alive<Q: ?Sized + Hash + Equivalent<K>>(
        &self,
        digest: Digest,
        key: &Q,
        _guard: &impl Guard,
    ) -> Option<(EntryPointer, Nanos)> {
        // SAFETY: found after the guard was entered.
        let eq = |entry| key.equivalent(unsafe { Entry::<K, V>::deref(entry) }.pair().0);
        let mut entry = self.table.directory.find(digest, || (), eq)?;
        let now = self.now();
        if self.has_expired(entry, now) {
            entry = self.find_again(digest, entry).filter(|&again| !self.has_expired(again, now))?;
        }
        Some((entry, now))
    }

    /// Returns a clone of the value of a key. Takes no lock, except the first time in each thread, and writes nothing that
    /// another thread reads if the entry was hit often lately. An entry that is found to have expired is taken out, under the
    /// lock of its segment, and the removal listener is told. That is left to others if another thread has the lock, or in a
    /// closure that runs under the lock of any of koel's maps and caches. So a look-up never waits for a writer. For values
    /// without `Clone`, see [`CacheView::get_ref`].
    ///
    /// # Panics
    ///
    /// If the removal listener panics.
    ///
    /// ```
    /// let cache: koel::Cache<String, u32> = koel::Cache::new(10);
    /// cache.insert("one".to_string(), 1).unwrap();
    /// assert_eq!(cache.get("one"), Some(1));
    /// assert_eq!(cache.get("two"), None);
    /// ```
    #[inline]
    pub fn get<Q>(&self, key: &Q) -> Option<V>
    where
        Q: ?Sized + Hash + Equivalent<K>,
        V: Clone,
    {
        self.get_of(self.digest(key), key)
    }

    /// [`Cache::get`] of a key with this digest.
    #[inline(always)]
    pub(super) fn get_of<Q>(&self, digest: Digest, key: &Q) -> Option<V>
    where
        Q: ?Sized + Hash + Equivalent<K>,
        V: Clone,
    {
        let guard = self.enter();
        self.hit(digest, key, &guard).map(|entry| entry.pair().1.clone())
    }

    /// Returns a clone of the value of a key, without a trace: the policy, the counts and the time to idle are not affected.
    ///
    /// ```
    /// let cache: koel::Cache<u32, u32> = koel::Cache::new(10);
    /// cache.insert(1, 10).unwrap();
    /// assert_eq!((cache.peek(&1), cache.peek(&2)), (Some(10), None));
    /// let stats = cache.stats();
    /// assert_eq!((stats.hits, stats.misses), (0, 0));
    /// ```
    pub fn peek<Q>(&self, key: &Q) -> Option<V>
    where
        Q: ?Sized + Hash + Equivalent<K>,
        V: Clone,
    {
        let guard = self.enter();
        self.peek_entry(self.digest(key), key, &guard).map(|entry| entry.pair().1.clone())
    }

    /// Returns whether there is an entry for a key; without a trace, like [`Cache::peek`].
    ///
    /// ```
    /// let cache: koel::Cache<u32, u32> = koel::Cache::new(10);
    /// cache.insert(1, 10).unwrap();
    /// assert!(cache.contains_key(&1) && !cache.contains_key(&2));
    /// assert_eq!(cache.stats().hits, 0);
    /// ```
    pub fn contains_key<Q: ?Sized + Hash + Equivalent<K>>(&self, key: &Q) -> bool {
        let guard = self.enter();
        self.peek_entry(self.digest(key), key, &guard).is_some()
    }

    /// Returns whether the value of a key is [due to be refreshed](crate::CacheBuilder::refresh_ahead) and nobody is refreshing
    /// it: a method that loads would do so now. It is for callers that let a task or thread make that call; if another caller
    /// has been faster, the call loads nothing. Returns false if another thread is, at this moment, asking about a key that is
    /// being loaded. Leaves no trace, like [`Cache::peek`].
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let clock = koel::ManualClock::new();
    /// let cache: koel::Cache<&str, u32> = koel::Cache::builder()
    ///     .max_entries(10)
    ///     .time_to_live(Duration::from_secs(60))
    ///     .refresh_ahead(Duration::from_secs(10))
    ///     .clock(clock.clone())
    ///     .build();
    /// cache.insert("price", 7).unwrap();
    /// assert!(!cache.needs_refresh("price"));
    /// clock.advance(Duration::from_secs(50));
    /// assert!(cache.needs_refresh("price") && !cache.needs_refresh("weight"));
    /// ```
    pub fn needs_refresh<Q: ?Sized + Hash + Equivalent<K>>(&self, key: &Q) -> bool {
        if !self.may_refresh() {
            return false;
        }
        let (digest, guard) = (self.digest(key), self.enter());
        let found = self.find_alive(digest, key, &guard);
        found.is_some_and(|(entry, now)| self.is_due(entry, now)) && !self.flights.may_be_led(digest, key)
    }
}

impl<K, V, S> fmt::Debug for Cache<K, V, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cache")
            .field("len", &self.len())
            .field("weight", &self.weight())
            .field("capacity", &self.capacity())
            .field("policy", &self.policy)
            .finish_non_exhaustive()
    }
}
