//! [`Cache`]: making one, reading, looking at it as a whole. Writing is in `write`.

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

/// Less weight than this that waits to be freed is never too much: it is taken for bytes, and to ask the collector more often
/// would be dear.
const LIGHT: u64 = 1 << 16;

/// What an entry weighs.
pub(super) type Weigher<K, V> = Box<dyn Fn(&K, &V) -> u64 + Send + Sync>;

/// What slots hold, and what is kept under each segment's lock.
pub(super) type CacheSlots = Slots<Share>;

/// A bounded concurrent cache: what does not fit evicts what is least likely to be asked for again.
///
/// * The bound, of entries or of weight, holds at every moment that a reader can see.
/// * A hit takes no lock; it sets a bit beside the entry's tag, and on an entry that is hit often writes nothing that another
///   thread reads, but where entries have a time to idle: it notes the time then, once in a millisecond, or in a 64th of that,
///   at most. A miss that inserts locks one segment, evicts there, and puts the entry in. A segment is for a thousand entries
///   or two, or for more: there are no more of them than four to eight for each core, and 256.
/// * No thread is ever started: what has expired goes when it is looked up, and a few buckets at a time when others are
///   inserted; [`Cache::purge`] does it at once.
/// * About 24 bytes an entry beside key and value, eight more and what the allocator adds where these own memory. A weigher
///   takes eight more, times take eight, a time without a hit eight more, or sixteen if each entry has its own. A cache by
///   weight, which grows as it fills, takes up to twice as much, and a small one more: 30 bytes from some five thousand entries
///   on, 50 at a thousand, and 10 to 15 KB with one.
/// * What has left is dropped a little later, by further calls of any kind, look-ups and the ends of views among them, on any
///   thread, or by [`Cache::flush`]: [how much may wait, and what a `Drop` must not
///   do](crate::HashMap#when-values-are-dropped). However much `clear`, `retain` or `set_capacity` have taken out on another
///   thread, a call drops some hundred of them, unless it flushes, or was in the way of a flush. With a weigher a write flushes
///   where too much waits: it may be an eighth of the bound, or 65,536 if that is more, and for each thread a sixteenth of that
///   besides, and what its last call has sent away, which may be much where one heavy entry takes the place of many; writes
///   under some map's lock do not count, and while the system has stopped a thread in the midst of a call more may wait. Where
///   values are large, give it a weigher: of caches for a hundred values of a mebibyte eight threads on two busy processors had
///   up to 250 alive with one, and 700 without.
///
/// From MemC3 (Fan, Andersen and Kaminsky, NSDI 2013): the table, and its CLOCK with the recency beside the tag
/// (section 3.4), which is [`Policy::Clock`]. The default policy is [`Policy::Adaptive`]; [`Policy::Local`] reads
/// through 1.1 to 1.4 times as fast and takes 10 bytes less an entry, for some points of the hit ratio.
///
/// Pick something else for plain data of a few words ([`InlineCache`](crate::InlineCache) reads through 1.2 to 1.5 times as
/// fast), and for a map that may not lose entries ([`HashMap`](crate::HashMap)).
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
/// Threads and tasks share it by reference, or in an `Arc`: there is no `clone`.
///
/// # Loading
///
/// | calls that load | whose loader may fail | and all who wait get its error | and wait for so long at most |
/// | --- | --- | --- | --- |
/// | `get_or_insert_with` | `try_get_or_insert_with` | `.._shared` | `.._timeout`, `.._shared_timeout` |
/// | for tasks `get_or_insert_async` | `try_get_or_insert_async` | `.._shared` | |
/// | `get_many_or_insert_with` | `try_get_many_or_insert_with` | `.._shared` | `.._shared_timeout` |
/// | for tasks `get_many_or_insert_async` | `try_get_many_or_insert_async` | `.._shared` | |
///
/// Those for one key take it by reference with `_ref` at the end; or, but for those with a time, they ask with `_if` at the end
/// whether a value that is there is stale. Without a closure, [`Cache::get_or_reserve`] hands out the right to load a key.
///
/// | what is done while a key is being loaded | who waits for it gets | who asks afterwards | what was loaded |
/// | --- | --- | --- | --- |
/// | it is inserted or updated | what was loaded | finds what was inserted | is not kept |
/// | it is removed, or `clear` or `forget_loads` called | what was loaded | loads anew, at once | is not kept |
/// | `compute`, `update` or `remove_if` leave it as it is | what was loaded | loads anew, at once | is not kept |
/// | `try_insert` or `retain` leave it as it is, or it is evicted | what was loaded | waits for it as well | is kept |
///
/// # Under a lock
///
/// Closures of `compute`, of `update` and its kin, and of `remove_if`, the weigher, `expiry` and `idle_expiry`, `Clone` of what
/// `compute` answers with, the [`Clock`](crate::Clock), `Hash` and `Eq` may run while one segment is locked for writing. The
/// closures may look keys up in this cache and in any other map or cache. If a closure writes to it, loads into it, walks over
/// it or asks for its `memory_usage`, it would wait for itself: that panics instead. `Hash`, `Eq`, `Clone` and the clock must
/// do none of these. Writing to other maps and caches can deadlock, as told of [`HashMap`](crate::HashMap#under-a-lock).
/// Removal listeners, loaders, `is_stale` of those that load, and the closure of `retain` run without a lock of the cache.
///
/// A panic of the removal listener goes on to whoever has called the cache, which is whole.
pub struct Cache<K, V, S = RandomState> {
    pub(super) table: Table<K, V, Share>,
    pub(super) hasher: S,
    pub(super) bound: Bound,
    pub(super) policy: Policy,
    pub(super) weigher: Option<Weigher<K, V>>,
    pub(super) time: Option<Time<K, V>>,
    pub(super) listener: Option<Listener<K, V>>,
    /// What is known of each entry.
    pub(super) fields: Fields,
    pub(super) flights: Flights<K, V>,
    pub(super) counters: Counters,
}

/// A panic in user code leaves the cache whole.
impl<K: RefUnwindSafe, V: RefUnwindSafe, S: RefUnwindSafe> RefUnwindSafe for Cache<K, V, S> {}
/// A panic in user code leaves the cache whole.
impl<K: RefUnwindSafe, V: RefUnwindSafe, S: UnwindSafe> UnwindSafe for Cache<K, V, S> {}

impl<K: Hash + Eq, V> Cache<K, V> {
    /// A cache of at most `max_entries` entries, with the default policy.
    ///
    /// # Panics
    ///
    /// Where [`CacheBuilder::try_build`] returns an error, with its message: if so many entries are beyond the limit, or there
    /// is no memory for them.
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
    /// The options of a cache: see [`CacheBuilder`].
    pub fn builder() -> CacheBuilder<K, V> {
        CacheBuilder::new()
    }
}

impl<K, V, S> Cache<K, V, S> {
    /// What is known of an entry beside key and value; as all that takes an entry here, while that lasts under which it was
    /// found: its segment's lock, or a guard.
    #[inline(always)]
    pub(super) fn meta(&self, entry: EntryPointer) -> Meta<'_> {
        // SAFETY: `make` has written it before the entry was published; the callers look at it at once.
        unsafe { Meta::new(Entry::<K, V>::tail(entry), &self.fields) }
    }

    /// What an entry weighs.
    #[inline(always)]
    pub(super) fn weight_of(&self, entry: EntryPointer) -> u64 {
        self.meta(entry).weight()
    }

    /// Now; only a cache whose entries expire asks the clock.
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

    /// Whether this thread may refresh what is due: not where nothing is, nor under this cache's lock, where loads panic.
    #[inline]
    pub(super) fn may_refresh(&self) -> bool {
        self.time.as_ref().is_some_and(|time| time.ahead != 0) && !self.table.directory.is_writing()
    }

    /// Whether an entry has so little time left that its value is to be loaded anew [F8].
    #[inline]
    pub(super) fn is_due(&self, entry: EntryPointer, now: Nanos) -> bool {
        self.time.as_ref().is_some_and(|time| self.meta(entry).is_due(now, time.ahead))
    }

    /// Whether what refreshes an entry may take its place.
    pub(super) fn may_be_refreshed(&self, entry: EntryPointer, now: Nanos) -> bool {
        self.time.as_ref().is_some_and(|time| self.meta(entry).is_near_end(now, time.ahead))
    }

    /// A view whose look-ups return references. It keeps what it has returned alive, and for that long, memory of other
    /// entries that have left.
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

    /// A view that may be sent and shared, and held across an `.await`; to make one costs more than [`Cache::pin`].
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

    /// Drops what has left the cache, evicted, expired, replaced or removed, when every look-up and view that lives now has
    /// ended, by whichever thread ends the last of them. Locks one segment at a time; some microseconds.
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

    /// Enters a guard for a write, after a look at how much waits to be freed.
    #[inline]
    pub(super) fn enter_to_write(&self) -> LocalGuard<'_> {
        self.free_if_heavy();
        self.enter()
    }

    /// Frees what writes have sent away, if it is an eighth of what the cache may hold, and lets others go first if a guard is
    /// in the way: maybe of a thread that the system has stopped in the midst of a call. Or many times the bound would come
    /// meanwhile [B5].
    #[inline]
    pub(super) fn free_if_heavy(&self) {
        if !self.flush_if_heavy() {
            std::thread::yield_now();
        }
    }

    /// The same for who reads, and waits for nobody. False: a guard is in the way.
    #[inline]
    pub(super) fn flush_if_heavy(&self) -> bool {
        // The collector waits for some hundred or more, of which few may be heavy. Not under some map's lock, where only some
        // are freed at a time [C2]: the thread's next write elsewhere does it.
        self.weigher.is_none()
            || reentry::holds_a_lock()
            || !self.counters.takes_leave_of((self.capacity() / 8).max(LIGHT))
            || self.table.collector.flush()
    }

    /// Walks over clones of the entries, in no particular order, leaving no trace.
    ///
    /// Every entry that is present from the beginning of the walk to its end is seen exactly once, whatever is inserted and
    /// evicted meanwhile; others at most once; expired ones not at all, also if another has come in the place of such a one
    /// since the walk met it. Pointers are copied under the lock of one segment at a time, and no lock is held while you look
    /// at the entries: you may write to the cache as you walk. What leaves the cache meanwhile is freed when the walk has
    /// ended: where each step takes long, collect the keys first. Not `Send`: a task that waits on the way walks over a view,
    /// `for (key, value) in &cache.pin_owned()`.
    ///
    /// # Panics
    ///
    /// When the walk goes on in a closure that runs [under this cache's lock](Cache#under-a-lock).
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

    /// How many entries there are; expired ones count until they are found. Never above the bound, unless that is on what a
    /// weigher says: then entries that leave and come meanwhile may both count.
    #[doc(alias = "entry_count")]
    pub fn len(&self) -> usize {
        if self.weigher.is_none() {
            return self.bound.used() as usize;
        }
        // Whoever purges may free tables [G5].
        let _guard = self.enter();
        self.table.directory.len()
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What all entries weigh: their number, if there is no weigher. Never above the bound.
    #[doc(alias = "weighted_size")]
    pub fn weight(&self) -> u64 {
        self.bound.used()
    }

    /// What the entries may weigh: how many there may be, if there is no weigher.
    pub fn capacity(&self) -> u64 {
        self.bound.capacity()
    }

    /// How the cache chooses what to evict.
    pub fn policy(&self) -> Policy {
        self.policy
    }

    /// How long after it was inserted each entry expires, as [`CacheBuilder::time_to_live`](super::CacheBuilder::time_to_live)
    /// says. `None`: there is no such limit for all, but single entries may have one of their own: [`Cache::time_left`] tells
    /// of one. Cost: a read.
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

    /// How long after it was inserted or last hit each entry expires, as
    /// [`CacheBuilder::time_to_idle`](super::CacheBuilder::time_to_idle) says. `None`: there is no such limit for all. Cost: a
    /// read.
    ///
    /// ```
    /// let cache: koel::Cache<u32, u32> = koel::Cache::new(10);
    /// assert_eq!((cache.time_to_live(), cache.time_to_idle()), (None, None));
    /// ```
    pub fn time_to_idle(&self) -> Option<Duration> {
        self.time.as_ref()?.to_idle
    }

    /// The hash function.
    pub fn hasher(&self) -> &S {
        &self.hasher
    }

    /// What the cache has done, and how full it is.
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
        // Of one moment: no more is told to be there than fits.
        let (weight, capacity) = self.bound.used_and_capacity();
        let len = if self.weigher.is_none() { weight as usize } else { self.len() };
        CacheStats { len, weight, capacity, ..self.counters.sums() }
    }

    /// Bytes of the cache itself and of what it has from the allocator: tables, entries, and what it remembers of others. What
    /// keys and values own elsewhere is not in it; nor are the counts of threads, 128 bytes each in blocks of 1, 2, 4 and so
    /// on; nor what loads take, 4 KiB, to which the first ones add some 10 KiB, or more if keys are large; nor what a
    /// [`HashMap`](crate::HashMap::memory_usage) does not count of what has left and waits. Locks one segment after the other.
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
    /// A look-up that counts, and tells the policy.
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

    /// An entry that was found, if it has not expired, or what has come in its place; notes its use.
    #[inline(always)]
    pub(super) fn if_in_time(&self, digest: Digest, found: Option<EntryPointer>) -> Option<EntryPointer> {
        match &self.time {
            None => found,
            Some(time) => self.in_time(time, digest, found?),
        }
    }

    /// Notes the use of an entry that was found, if it has not expired, or of what has come in its place.
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

    /// A clone of the value of a key. Takes no lock, but for the first in a thread, and writes nothing that another thread
    /// reads if the entry was hit often lately. An entry that is found to have expired is taken out, under the lock of its
    /// segment, and the removal listener is told; it is left to others if somebody else has that lock, or in a closure that
    /// runs under the lock of any of koel's maps and caches. So a look-up waits for nobody who writes. Without `Clone`:
    /// [`CacheView::get_ref`].
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

    /// A clone of the value of a key, without a trace: neither the policy nor the counts nor the time to idle are told.
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

    /// Whether there is an entry for a key; without a trace, as [`Cache::peek`].
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

    /// Whether the value of a key is [due to be refreshed](crate::CacheBuilder::refresh_ahead), and nobody does that: a method
    /// that loads would now. For who lets a task or thread call that; if somebody else has been faster it loads nothing. No, if
    /// another is just asking about a key that is being loaded. Leaves no trace, as [`Cache::peek`].
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
