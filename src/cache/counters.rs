//! What a cache counts: each thread has cells of its own, so that a look-up shares no write with another thread.

use core::fmt;
use core::time::Duration;

use crossbeam_utils::CachePadded;

use super::Cause;
use crate::per_thread::{PerThread, add};
use crate::sync::{AtomicU64, Ordering, SCHEDULED};

/// What a cache has done since it was made: from [`Cache::stats`](crate::Cache::stats) and
/// [`InlineCache::stats`](crate::InlineCache::stats). Displays as lines of text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CacheStats {
    /// Look-ups that found an entry. `peek` and `contains_key` do not count.
    pub hits: u64,
    /// Look-ups that found no entry, or one that had expired. A caller that waits for another to load the key has missed it as
    /// well; and a caller that asks by `get` first, and after a miss by `get_or_insert_with` or its variants, has missed twice.
    pub misses: u64,
    /// Values that loaders made, that came for reserved keys, that were given to an entry's `or_insert`, or that `or_default`
    /// made.
    pub loads: u64,
    /// Loaders that failed, panicked, or were dropped before they ended, as futures may be; reservations that were dropped.
    pub failed_loads: u64,
    /// How long loaders ran and keys were reserved, in total. A loader of many keys counts once for all of them, until it
    /// returns; time that an iterator takes later to make values is not counted. After 64 loads in a row of one thread that
    /// took less than a microsecond each, those that follow are timed by the system's ticks of 1 to 10 milliseconds, on Linux,
    /// until one takes more than 20: their sum is right on average.
    pub load_time: Duration,
    /// Entries that were inserted or replaced.
    pub insertions: u64,
    /// Entries that left because the cache was full, or was made smaller, or, seldom, because another entry had no other slot.
    pub evictions: u64,
    /// Of the evictions, the entries that were too heavy for what would have had to leave for them, and so left at once: see
    /// [`Cache::insert`](crate::Cache::insert). Many of them suggest that the cache is too small for what is asked for.
    pub turned_away: u64,
    /// Entries that left because their time was over.
    pub expirations: u64,
    /// Weight that left because the cache was full, or was made smaller.
    pub evicted_weight: u64,
    /// The number of entries now.
    pub len: usize,
    /// The weight now; the number of entries if there is no weigher.
    pub weight: u64,
    /// The bound of the weight.
    pub capacity: u64,
}

impl CacheStats {
    /// The fraction of look-ups that hit, 0 to 1; 0 if there were none.
    ///
    /// ```
    /// let cache: koel::Cache<u32, u32> = koel::Cache::new(10);
    /// cache.insert(1, 1).unwrap();
    /// (cache.get(&1), cache.get(&2));
    /// let stats = cache.stats();
    /// assert_eq!(stats.hit_ratio(), 0.5);
    /// assert!(stats.to_string().starts_with("1 hits, 1 misses: 50.0% hits"));
    /// ```
    pub fn hit_ratio(&self) -> f64 {
        let all = self.hits + self.misses;
        if all == 0 { 0.0 } else { self.hits as f64 / all as f64 }
    }

    /// What was counted since an earlier look at the same cache; entries, weight and capacity are those of this one.
    ///
    /// ```
    /// let cache: koel::Cache<u32, u32> = koel::Cache::new(10);
    /// assert_eq!(cache.get(&1), None);
    /// let earlier = cache.stats();
    /// cache.insert(1, 1).unwrap();
    /// cache.get(&1);
    /// let lately = cache.stats().since(&earlier);
    /// assert_eq!((lately.hits, lately.misses, lately.len), (1, 0, 1));
    /// ```
    #[must_use]
    pub fn since(&self, earlier: &CacheStats) -> CacheStats {
        let less = |count: fn(&CacheStats) -> u64| count(self).saturating_sub(count(earlier));
        CacheStats {
            hits: less(|stats| stats.hits),
            misses: less(|stats| stats.misses),
            loads: less(|stats| stats.loads),
            failed_loads: less(|stats| stats.failed_loads),
            load_time: self.load_time.saturating_sub(earlier.load_time),
            insertions: less(|stats| stats.insertions),
            evictions: less(|stats| stats.evictions),
            turned_away: less(|stats| stats.turned_away),
            expirations: less(|stats| stats.expirations),
            evicted_weight: less(|stats| stats.evicted_weight),
            len: self.len,
            weight: self.weight,
            capacity: self.capacity,
        }
    }
}

impl fmt::Display for CacheStats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let CacheStats { hits, misses, loads, failed_loads, .. } = self;
        let CacheStats { insertions, evictions, turned_away, expirations, .. } = self;
        writeln!(f, "{hits} hits, {misses} misses: {:.1}% hits", 100.0 * self.hit_ratio())?;
        writeln!(f, "{loads} loads, and {failed_loads} that failed, in {:?}", self.load_time)?;
        writeln!(
            f,
            "{insertions} insertions, {evictions} evictions ({turned_away} turned away), {expirations} expirations"
        )?;
        write!(f, "{} entries; weight {} of {}", self.len, self.weight, self.capacity)
    }
}

/// What is counted, for each thread by itself. All are Relaxed: information.
#[derive(Clone, Copy)]
pub(super) enum Count {
    Hits,
    Misses,
    Insertions,
    Evictions,
    TurnedAway,
    Expirations,
    EvictedWeight,
    Loads,
    FailedLoads,
    LoadNs,
    /// How many loads in a row were [quick](super::timer), up to now.
    QuickLoads,
    /// Weight that left for other causes.
    OtherWeight,
    /// How much of all the weight that left the thread has added to the common count.
    Told,
}

const COUNTS: usize = Count::Told as usize + 1;
/// A thread adds what it has sent away to the common count when that is this small a part of what may wait.
const TOLD_BY: u64 = 16;

/// A thread's part of [`Counters`]. `None` in models and schedules: they count nothing, because exploring that would be
/// useless.
#[derive(Clone, Copy)]
pub(super) struct Here<'c>(Option<&'c [AtomicU64; COUNTS]>);

/// What a cache counts.
#[derive(Debug)]
pub(super) struct Counters {
    threads: PerThread<CachePadded<[AtomicU64; COUNTS]>>,
    /// The weight that threads have added, and that nobody has begun to free.
    waits: CachePadded<AtomicU64>,
}

impl Counters {
    pub(super) fn new() -> Self {
        Counters { threads: PerThread::new(), waits: CachePadded::new(AtomicU64::new(0)) }
    }

    /// The counters of the calling thread.
    #[inline(always)]
    pub(super) fn here(&self) -> Here<'_> {
        Here((!SCHEDULED).then(|| &**self.threads.get()))
    }

    /// Whether this much weight has left through all threads together since one of them was last told so. For each other
    /// thread, less than a 16th as much may be missing.
    #[inline]
    pub(super) fn takes_leave_of(&self, weight: u64) -> bool {
        let Here(Some(counts)) = self.here() else { return false };
        let [evicted, others, told] = [Count::EvictedWeight, Count::OtherWeight, Count::Told]
            .map(|which| counts[which as usize].load(Ordering::Relaxed));
        let more = evicted.wrapping_add(others).wrapping_sub(told);
        if more < weight / TOLD_BY {
            return false;
        }
        add(&counts[Count::Told as usize], more);
        self.is_much(more, weight)
    }

    /// Whether what waits, with this much more, reaches that weight.
    #[cold]
    fn is_much(&self, more: u64, weight: u64) -> bool {
        // Relaxed, all: numbers. Of the threads that find it too much at the same time one takes it: the one that has added
        // last.
        let waits = self.waits.fetch_add(more, Ordering::Relaxed).wrapping_add(more);
        waits >= weight && self.waits.compare_exchange(waits, 0, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// The sums over all threads.
    pub(super) fn sums(&self) -> CacheStats {
        let sum = |count: Count| {
            let counts = self.threads.iter().map(|counts| counts[count as usize].load(Ordering::Relaxed));
            counts.fold(0, u64::wrapping_add)
        };
        CacheStats {
            hits: sum(Count::Hits),
            misses: sum(Count::Misses),
            loads: sum(Count::Loads),
            failed_loads: sum(Count::FailedLoads),
            load_time: Duration::from_nanos(sum(Count::LoadNs)),
            insertions: sum(Count::Insertions),
            evictions: sum(Count::Evictions),
            turned_away: sum(Count::TurnedAway),
            expirations: sum(Count::Expirations),
            evicted_weight: sum(Count::EvictedWeight),
            ..CacheStats::default()
        }
    }
}

impl Here<'_> {
    #[inline(always)]
    fn count(&self, which: Count, n: u64) {
        if let Some(counts) = self.0 {
            add(&counts[which as usize], n);
        }
    }

    /// Counts a look-up that has ended.
    #[inline(always)]
    pub(super) fn looked_up(&self, found: bool) {
        // A branch, because it is predicted: with a store to an address that depended on what was found, later loads would wait
        // for it. Misses are counted separately: as look-ups less hits they could fall for a moment.
        if found {
            self.count(Count::Hits, 1);
        } else {
            self.count(Count::Misses, 1);
        }
    }

    /// Counts an entry that was inserted or replaced.
    #[inline]
    pub(super) fn inserted(&self) {
        self.count(Count::Insertions, 1);
    }

    /// Counts an entry that was evicted; its weight is counted separately.
    #[inline]
    pub(super) fn evicted(&self) {
        self.count(Count::Evictions, 1);
    }

    /// Counts an entry that was turned away; that it left is counted separately.
    pub(super) fn turned_away(&self) {
        self.count(Count::TurnedAway, 1);
    }

    /// Counts an entry that has left.
    #[inline]
    pub(super) fn departed(&self, cause: Cause, weight: u64) {
        if cause == Cause::Size {
            self.evicted();
            return self.count(Count::EvictedWeight, weight);
        }
        if cause == Cause::Expired {
            self.count(Count::Expirations, 1);
        }
        self.count(Count::OtherWeight, weight);
    }

    /// Counts one value of a loader of many values.
    pub(super) fn made(&self) {
        self.count(Count::Loads, 1);
    }

    /// Counts a loader that has ended, with this many values, or that has failed.
    pub(super) fn loaded(&self, values: Option<u64>, took: Duration, was_quick: bool) {
        match values {
            Some(values) => self.count(Count::Loads, values),
            None => self.failed(),
        }
        self.count(Count::LoadNs, u64::try_from(took.as_nanos()).unwrap_or(u64::MAX));
        if let Some(counts) = self.0 {
            let quick = if was_quick { self.quick_loads().saturating_add(1) } else { 0 };
            counts[Count::QuickLoads as usize].store(quick, Ordering::Relaxed);
        }
    }

    /// Counts a load that has failed; the time that it took is counted separately.
    pub(super) fn failed(&self) {
        self.count(Count::FailedLoads, 1);
    }

    /// How many loads in a row were quick, up to now.
    pub(super) fn quick_loads(&self) -> u64 {
        self.0.map_or(0, |counts| counts[Count::QuickLoads as usize].load(Ordering::Relaxed))
    }
}
