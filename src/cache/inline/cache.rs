//! [`InlineCache`]: construction, reads, and operations on the cache as a whole. Writes are in `write`.

use core::fmt;
use core::hash::{BuildHasher, Hash};
use core::marker::PhantomData;
use core::panic::{RefUnwindSafe, UnwindSafe};

use ahash::RandomState;
use bytemuck::Pod;

use super::{InlineCacheBuilder, InlineCacheIter};
use crate::cache::bound;
use crate::cache::counters::{CacheStats, Counters};
use crate::cache::flight::Flights;
use crate::cache::policy::{Evictor, Policy};
use crate::cache::room::Kept;
use crate::engine::{CapacityError, Directory, Inline, Keep, Shape, each_batch};
use crate::hash::Digest;

/// What is kept under the lock of each segment.
#[derive(Default)]
pub(super) struct InlineShare {
    /// The entries to evict next, and the quota: it never changes, and all quotas sum to the capacity [B1].
    pub(super) evictor: Evictor,
    /// See [`Kept::patience`].
    patience: usize,
}

impl Keep for InlineShare {
    const MARKED: bool = true;
}

impl Kept for InlineShare {
    #[inline]
    fn evictor(&self) -> &Evictor {
        &self.evictor
    }

    fn evictor_mut(&mut self) -> &mut Evictor {
        &mut self.evictor
    }

    fn patience(&mut self) -> &mut usize {
        &mut self.patience
    }
}

pub(super) type InlineSlots<K, V> = Inline<K, V, InlineShare>;

/// A bounded concurrent cache for small plain data, held in the slots themselves: look-ups return copies.
///
/// It is a [`Cache`](crate::Cache) without what plain data does not need: no memory to allocate for an entry, nothing to keep
/// alive for readers, and no pointer to follow. Its hits, and its reads through, are 1.2 to 1.5 times as fast. Operations that
/// cannot be refused here return no `Result`.
///
/// * The bound, of entries, holds at every moment that a reader can see. It cannot be changed.
/// * A hit takes no lock and waits for nobody. It sets a bit next to the entry's tag, and on an entry that is hit often it
///   writes nothing that another thread reads. A miss that inserts locks one segment, evicts there, and puts the entry in. A
///   segment is for one or two thousand entries, or for more: there are at most four to eight segments per core, and at most
///   256.
/// * Of all callers that miss a key at the same time, one loads it: [`InlineCache::get_or_insert_with`], for threads and for
///   tasks.
/// * Its table is allocated when it is built, for all of its entries: 3 bytes for each in addition to key and value, and a
///   quarter of all these, as a fifth of the slots stays empty. [`Policy::Adaptive`] takes 10 more bytes for each entry as it
///   fills: in all 17 bytes in addition to key and value where these are of eight bytes each, and 7 with the other policies.
///
/// ```
/// let squares = koel::InlineCache::new(1000);
/// assert_eq!(squares.get_or_insert_with(12_u64, || 12 * 12), 144_u64);
/// assert_eq!(squares.get(&12), Some(144));
/// ```
///
/// # When to pick something else
///
/// Keys and values must be [`Pod`], like those of [`InlineMap`](crate::InlineMap#when-to-pick-something-else), whose page shows
/// how to derive it. Use [`Cache`](crate::Cache) for anything else and for values much larger than a cache line; for a bound on
/// weight, or one that changes; for entries that expire, a removal listener, look-ups by reference, a dump; and for a cache
/// that may never fill, as its entries take memory only when they are inserted.
///
/// # Under a lock
///
/// The closures of `compute`, of `update` and its variants, and of `remove_if`, and `Hash` and `Eq`, may run while one segment
/// is locked for writing. They may look keys up in this cache. A closure that writes to the cache, loads into it, walks over it
/// or asks for its `memory_usage` would wait for itself: it panics instead. `Hash` and `Eq` must do none of these. Writing to
/// other maps and caches can deadlock, as described at [`HashMap`](crate::HashMap#under-a-lock). Loaders and the closure of
/// `retain` run without a lock.
///
/// # Panics in your code
///
/// A panic in `Hash`, `Eq` or a closure leaves the cache whole: as it was before the operation, or with entries evicted for one
/// that was to be inserted.
pub struct InlineCache<K: Pod, V: Pod, S = RandomState> {
    pub(super) directory: Directory<InlineSlots<K, V>>,
    pub(super) hasher: S,
    capacity: usize,
    policy: Policy,
    pub(super) counters: Counters,
    pub(super) flights: Flights<K, V>,
    /// Copies of keys and values go to and come from any thread.
    entries: PhantomData<*mut (K, V)>,
}

// SAFETY: the copies go with the cache; of its parts each may be sent where they may, as `parts_are_shared` asserts.
unsafe impl<K: Pod + Send, V: Pod + Send, S: Send> Send for InlineCache<K, V, S> {}
// SAFETY: through a shared cache, copies are put in by one thread and taken by another, and keys compared by both; its parts
// may be shared, as above.
unsafe impl<K: Pod + Send + Sync, V: Pod + Send + Sync, S: Sync> Sync for InlineCache<K, V, S> {}

const _: () = {
    fn shared<T: Send + Sync>() {}
    #[allow(dead_code, reason = "that it compiles is all; not every compiler finds it dead")]
    fn parts_are_shared<K: Pod + Send + Sync, V: Pod + Send + Sync>() {
        shared::<Directory<InlineSlots<K, V>>>();
        shared::<Flights<K, V>>();
        shared::<Counters>();
    }
};

/// A panic in user code leaves the cache whole.
impl<K: Pod + RefUnwindSafe, V: Pod + RefUnwindSafe, S: RefUnwindSafe> RefUnwindSafe
    for InlineCache<K, V, S>
{
}
/// A panic in user code leaves the cache whole.
impl<K: Pod + RefUnwindSafe, V: Pod + RefUnwindSafe, S: UnwindSafe> UnwindSafe for InlineCache<K, V, S> {}

impl<K: Pod + Hash + Eq, V: Pod> InlineCache<K, V> {
    /// Creates a cache of at most `max_entries` entries, with the default policy; see [`InlineCacheBuilder::max_entries`].
    ///
    /// # Panics
    ///
    /// If [`InlineCacheBuilder::try_build`] would return an error, with its message.
    ///
    /// ```
    /// let cache = koel::InlineCache::new(2);
    /// for id in 0..3_u32 {
    ///     cache.insert(id, f64::from(id));
    /// }
    /// assert_eq!((cache.len(), cache.get(&2)), (2, Some(2.0)));
    /// ```
    #[must_use]
    #[track_caller]
    pub fn new(max_entries: usize) -> Self {
        Self::builder().max_entries(max_entries).build()
    }
}

impl<K: Pod, V: Pod> InlineCache<K, V> {
    /// Returns the options of a new cache: see [`InlineCacheBuilder`].
    pub fn builder() -> InlineCacheBuilder<K, V> {
        InlineCacheBuilder::new()
    }
}

impl<K: Pod, V: Pod, S> InlineCache<K, V, S> {
    pub(super) fn from_parts(
        shape: Shape,
        capacity: usize,
        policy: Policy,
        hasher: S,
    ) -> Result<Self, CapacityError> {
        let directory = Directory::<InlineSlots<K, V>>::new(shape, capacity)?;
        directory.each_segment(|mut writing| {
            let state = writing.locked.state();
            let quota = bound::share_of(capacity as u64, shape.segments, state.index);
            state.keep.evictor = Evictor::new(policy, quota);
        });
        let (counters, flights) = (Counters::new(), Flights::new());
        Ok(InlineCache { directory, hasher, capacity, policy, counters, flights, entries: PhantomData })
    }

    /// Returns an iterator over copies of the entries, in no particular order. The walk leaves no trace.
    ///
    /// Every entry that is present from the beginning of the walk to its end is seen exactly once, whatever is inserted and
    /// evicted meanwhile; others at most once. Entries are copied under the lock of one segment at a time, and no lock is held
    /// while you look at them: you may write to the cache as you walk.
    ///
    /// # Panics
    ///
    /// If the walk goes on in a closure that runs [under this cache's lock](InlineCache#under-a-lock).
    ///
    /// ```
    /// let cache = koel::InlineCache::new(10);
    /// cache.insert(1_u32, 2_u32);
    /// assert_eq!(cache.iter().collect::<Vec<_>>(), [(1, 2)]);
    /// ```
    pub fn iter(&self) -> InlineCacheIter<'_, K, V> {
        InlineCacheIter::new(&self.directory)
    }

    /// Returns the number of entries: never above the bound, and exact while nobody writes. Looks at every segment.
    pub fn len(&self) -> usize {
        // No segment has more than its share [B1].
        self.directory.len()
    }

    /// Returns whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.directory.is_empty()
    }

    /// Returns the most entries that there may be.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Returns how the cache chooses what to evict.
    pub fn policy(&self) -> Policy {
        self.policy
    }

    /// Returns the hash function.
    pub fn hasher(&self) -> &S {
        &self.hasher
    }

    /// Returns what the cache has done, and how full it is. Each entry weighs 1.
    ///
    /// ```
    /// let cache: koel::InlineCache<u64, u64> = koel::InlineCache::new(10);
    /// cache.insert(1, 10);
    /// (cache.get(&1), cache.get(&2));
    /// let stats = cache.stats();
    /// assert_eq!((stats.hits, stats.misses), (1, 1));
    /// ```
    pub fn stats(&self) -> CacheStats {
        let len = self.len();
        let sums = self.counters.sums();
        CacheStats {
            evicted_weight: sums.evictions,
            len,
            weight: len as u64,
            capacity: self.capacity as u64,
            ..sums
        }
    }

    /// Returns the bytes of the cache itself and of what it has from the allocator: tables, and what it remembers of entries
    /// that have left. It does not include the counters of threads, 128 bytes each in blocks of 1, 2, 4 and so on, nor what
    /// loads take, 4 KiB, to which the first ones add about 10 KiB, or more if keys are large. Locks one segment after the
    /// other.
    ///
    /// # Panics
    ///
    /// In a closure that runs [under this cache's lock](InlineCache#under-a-lock).
    pub fn memory_usage(&self) -> usize {
        let mut evictors = 0;
        self.directory.each_segment(|writing| {
            evictors += writing.locked.state_ref().keep.evictor.memory_usage();
        });
        size_of::<Self>() + self.directory.memory_usage() + evictors
    }
}

impl<K: Pod + Hash + Eq, V: Pod, S: BuildHasher> InlineCache<K, V, S> {
    #[inline(always)]
    pub(super) fn digest(&self, key: &K) -> Digest {
        Digest::of(key, &self.hasher)
    }

    /// Returns the value of a key. Takes no lock, waits for nobody, and writes nothing that another thread reads if the entry
    /// was hit often lately. There are two exceptions: a thread's first look-up here allocates its counters, and its first in
    /// any of koel's tables takes a lock for a moment.
    ///
    /// ```
    /// let cache = koel::InlineCache::new(10);
    /// cache.insert(1_u32, [0.5_f32; 4]);
    /// assert_eq!(cache.get(&1), Some([0.5; 4]));
    /// assert_eq!(cache.get(&2), None);
    /// ```
    #[inline]
    pub fn get(&self, key: &K) -> Option<V> {
        self.get_of(self.digest(key), key)
    }

    /// [`InlineCache::get`] of a key with this digest.
    #[inline(always)]
    pub(super) fn get_of(&self, digest: Digest, key: &K) -> Option<V> {
        let found = self.directory.find_and_mark(digest, |(other, _)| other == *key, Policy::touch);
        self.counters.here().looked_up(found.is_some());
        found.map(|(_, value)| value)
    }

    /// Gets the values of many keys: `out[i]` becomes what `get(&keys[i])` would return, and counts as such.
    ///
    /// Keys are hashed, fetched and compared as a pipeline, so that their waits for memory overlap: in caches larger than the
    /// processor's, this is several times as fast as the same number of [`InlineCache::get`]s. Each look-up is independent;
    /// together they are no snapshot.
    ///
    /// # Panics
    ///
    /// If the slices differ in length.
    ///
    /// ```
    /// let cache: koel::InlineCache<u32, u32> = koel::InlineCache::new(10);
    /// cache.insert(1, 10);
    /// cache.insert(2, 20);
    /// let mut values = [None; 3];
    /// cache.get_many(&[2, 3, 1], &mut values);
    /// assert_eq!(values, [Some(20), None, Some(10)]);
    /// assert_eq!((cache.stats().hits, cache.stats().misses), (2, 1));
    /// ```
    #[inline]
    #[track_caller]
    pub fn get_many(&self, keys: &[K], out: &mut [Option<V>]) {
        assert_eq!(keys.len(), out.len(), "get_many: as many places for values as keys");
        let counts = self.counters.here();
        let digest = |key: &K| self.digest(key);
        each_batch(keys, out, digest, |keys, digests, out| {
            self.directory.find_batch_and_mark(
                digests,
                |i, (key, _)| key == keys[i],
                Policy::touch,
                |i, found| {
                    counts.looked_up(found.is_some());
                    out[i] = found.map(|(_, value)| value);
                },
            );
        });
    }

    /// Returns the value of a key, without a trace: the policy and the counts are not affected.
    ///
    /// ```
    /// let cache: koel::InlineCache<u64, u64> = koel::InlineCache::new(10);
    /// cache.insert(1, 10);
    /// assert_eq!((cache.peek(&1), cache.stats().hits), (Some(10), 0));
    /// ```
    pub fn peek(&self, key: &K) -> Option<V> {
        self.peek_of(self.digest(key), key)
    }

    /// [`InlineCache::peek`] of a key with this digest.
    #[inline]
    pub(super) fn peek_of(&self, digest: Digest, key: &K) -> Option<V> {
        self.directory.find(digest, || (), |(other, _)| other == *key).map(|(_, value)| value)
    }

    /// Returns whether there is an entry for a key; without a trace, like [`InlineCache::peek`].
    pub fn contains_key(&self, key: &K) -> bool {
        self.peek(key).is_some()
    }
}

impl<'c, K: Pod, V: Pod, S> IntoIterator for &'c InlineCache<K, V, S> {
    type Item = (K, V);
    type IntoIter = InlineCacheIter<'c, K, V>;

    fn into_iter(self) -> InlineCacheIter<'c, K, V> {
        self.iter()
    }
}

impl<K: Pod, V: Pod, S> fmt::Debug for InlineCache<K, V, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InlineCache")
            .field("len", &self.len())
            .field("capacity", &self.capacity)
            .field("policy", &self.policy)
            .finish_non_exhaustive()
    }
}
