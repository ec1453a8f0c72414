//! Caches as trait objects: the operations that a round performs on each, compiled for each.

use hdrhistogram::Histogram;

use super::cache_runner::CacheRunner;
use crate::caches::{Adaptive, Clock, Id, Koel, KoelInline, Local, MiniMoka, Moka, QuickCache, SccHashCache};
use crate::error::CheckError;
use crate::heap::Footprint;
use crate::plan::CachePlan;
use crate::replay::{Bound, Replayed};
use crate::stopwatch::Stopwatch;
use crate::trace::Trace;

/// The result of look-ups that load on a miss.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ReadThrough {
    /// Requests per microsecond, all threads together.
    pub mops: f64,
    /// The fraction of them that were hits.
    pub hit_ratio: f64,
}

/// A cache, for plans to run on; kept from plan to plan.
///
/// Every run checks every value, and checks that a cache that promises a bound keeps it.
pub trait CacheEntrant {
    /// Replays `trace` on an empty cache with `bound`; `None` if there is no such cache.
    ///
    /// # Errors
    ///
    /// A wrong answer.
    fn replay(&self, trace: &Trace, bound: Bound) -> Result<Option<Replayed>, CheckError>;

    /// Makes a full cache and puts the requests of the plan's first thread to it, for [`CacheEntrant::read_through`] and
    /// [`CacheEntrant::inserts`].
    ///
    /// # Errors
    ///
    /// A wrong answer.
    fn fill(&mut self, plan: &CachePlan) -> Result<(), CheckError>;

    /// Puts the plan's requests to the full cache, once, and inserts missing keys; if `loads`, by the cache's own call for
    /// that, which loads them.
    ///
    /// # Errors
    ///
    /// A wrong answer; or if there is no full cache.
    fn read_through(&mut self, plan: &CachePlan, loads: bool) -> Result<ReadThrough, CheckError>;

    /// Looks up keys that the cache holds, until `seconds` have been spent on it; in batches if asked for. Before that, half as
    /// many keys as `entries` are inserted; `threads` has numbers below that. Returns hits per microsecond.
    ///
    /// # Errors
    ///
    /// A wrong answer, or none.
    fn hits(
        &mut self,
        entries: usize,
        threads: &[Vec<u32>],
        batched: bool,
        seconds: f64,
    ) -> Result<f64, CheckError>;

    /// Inserts `count` new keys into the full cache, and times each insert. Returns nanoseconds.
    ///
    /// # Errors
    ///
    /// A wrong answer; or if there is no full cache.
    fn inserts(&mut self, count: usize, stopwatch: &Stopwatch) -> Result<Histogram<u64>, CheckError>;

    /// The memory of a full cache after the requests of the plan's first thread, and how many entries it holds.
    ///
    /// # Errors
    ///
    /// A wrong answer.
    fn footprint(&self, plan: &CachePlan) -> Result<(Footprint, u64), CheckError>;
}

/// The cache of `id`.
pub fn cache_entrant(id: Id) -> Box<dyn CacheEntrant> {
    match id {
        Id::Koel => Box::new(CacheRunner::<Koel<Adaptive>>::new()),
        Id::KoelClock => Box::new(CacheRunner::<Koel<Clock>>::new()),
        Id::KoelLocal => Box::new(CacheRunner::<Koel<Local>>::new()),
        Id::KoelInline => Box::new(CacheRunner::<KoelInline<Adaptive>>::new()),
        Id::KoelInlineLocal => Box::new(CacheRunner::<KoelInline<Local>>::new()),
        Id::QuickCache => Box::new(CacheRunner::<QuickCache>::new()),
        Id::Moka => Box::new(CacheRunner::<Moka>::new()),
        Id::MiniMoka => Box::new(CacheRunner::<MiniMoka>::new()),
        Id::SccHashCache => Box::new(CacheRunner::<SccHashCache>::new()),
    }
}
