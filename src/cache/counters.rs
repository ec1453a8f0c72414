//! What a cache counts. Hits and misses are counted where each thread has cells of its own, so that a look-up shares no
//! write with another thread.

use core::fmt;
use core::time::Duration;

use super::Cause;
use crate::seats::{PerThread, add};
use crate::sync::{AtomicU64, Ordering};

/// What a cache has done since it was made: from [`Cache::stats`](crate::Cache::stats). Displays as lines of text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CacheStats {
    /// Look-ups that found an entry. `peek` and `contains_key` do not count.
    pub hits: u64,
    /// Look-ups that found none, or one that had expired.
    pub misses: u64,
    /// Values that loaders made.
    pub loads: u64,
    /// Loaders that failed or panicked.
    pub failed_loads: u64,
    /// How long loaders ran, all together.
    pub load_time: Duration,
    /// Entries that were inserted or replaced.
    pub insertions: u64,
    /// Entries that left because the cache was full.
    pub evictions: u64,
    /// Entries that left because their time was over.
    pub expirations: u64,
    /// Weight that left because the cache was full.
    pub evicted_weight: u64,
    /// Entries now.
    pub len: usize,
    /// Weight now; the number of entries if there is no weigher.
    pub weight: u64,
    /// What the weight may be.
    pub capacity: u64,
}

impl CacheStats {
    /// Hits by look-ups, 0 to 1; 0 if there were none.
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
}

impl fmt::Display for CacheStats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let CacheStats { hits, misses, loads, failed_loads, insertions, evictions, expirations, .. } = self;
        writeln!(f, "{hits} hits, {misses} misses: {:.1}% hits", 100.0 * self.hit_ratio())?;
        writeln!(f, "{loads} loads in {:?}, {failed_loads} failed", self.load_time)?;
        writeln!(f, "{insertions} insertions, {evictions} evictions, {expirations} expirations")?;
        write!(f, "{} entries; weight {} of {}", self.len, self.weight, self.capacity)
    }
}

/// The cells of one thread. Only that thread writes them.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Cells {
    hits: AtomicU64,
    misses: AtomicU64,
    insertions: AtomicU64,
    evictions: AtomicU64,
    expirations: AtomicU64,
    evicted_weight: AtomicU64,
    loads: AtomicU64,
    failed_loads: AtomicU64,
    load_ns: AtomicU64,
}

/// All counts of a cache. All are Relaxed: information.
#[derive(Debug)]
pub(super) struct Counters(PerThread<Cells>);

impl Default for Counters {
    fn default() -> Self {
        Counters(PerThread::new())
    }
}

impl Counters {
    #[inline]
    fn cells(&self) -> &Cells {
        self.0.get_for_counts()
    }

    #[inline]
    pub(super) fn looked_up(&self, found: bool) {
        let cells = self.cells();
        add(if found { &cells.hits } else { &cells.misses }, 1);
    }

    #[inline]
    pub(super) fn inserted(&self) {
        add(&self.cells().insertions, 1);
    }

    /// An entry has left.
    #[inline]
    pub(super) fn departed(&self, cause: Cause, weight: u64) {
        match cause {
            Cause::Size => {
                let cells = self.cells();
                add(&cells.evictions, 1);
                add(&cells.evicted_weight, weight);
            }
            Cause::Expired => add(&self.cells().expirations, 1),
            Cause::Explicit | Cause::Replaced => {}
        }
    }

    /// A loader has come to its end.
    pub(super) fn loaded(&self, done: bool, took: Duration) {
        let cells = self.cells();
        add(if done { &cells.loads } else { &cells.failed_loads }, 1);
        add(&cells.load_ns, u64::try_from(took.as_nanos()).unwrap_or(u64::MAX));
    }

    /// The sums over all threads.
    pub(super) fn sums(&self) -> CacheStats {
        let mut stats = CacheStats::default();
        let mut load_ns = 0_u64;
        for cells in self.0.iter() {
            let get = |cell: &AtomicU64| cell.load(Ordering::Relaxed);
            stats.hits += get(&cells.hits);
            stats.misses += get(&cells.misses);
            stats.insertions += get(&cells.insertions);
            stats.evictions += get(&cells.evictions);
            stats.expirations += get(&cells.expirations);
            stats.evicted_weight = stats.evicted_weight.wrapping_add(get(&cells.evicted_weight));
            stats.loads += get(&cells.loads);
            stats.failed_loads += get(&cells.failed_loads);
            load_ns = load_ns.saturating_add(get(&cells.load_ns));
        }
        stats.load_time = Duration::from_nanos(load_ns);
        stats
    }
}
