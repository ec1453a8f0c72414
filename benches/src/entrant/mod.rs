//! Contestants as trait objects: the operations that a round performs on each, compiled for each.

mod cache;
mod cache_runner;
mod churn;
mod clock;
mod filter;
mod filter_runner;
mod runner;
mod text;
mod times;
mod whole;

pub use self::cache::{CacheEntrant, ReadThrough, cache_entrant};
pub use self::cache_runner::CacheRunner;
pub use self::filter::{Built, FilterEntrant, Making, filter_entrant};
pub use self::filter_runner::FilterRunner;
pub use self::runner::Runner;
pub use self::text::{TextEntrant, TextRunner};
pub use self::times::Times;
use crate::contestants::{
    Dashmap, Id, Koel, KoelHeld, KoelInline, Papaya, PapayaHeld, RwLockHashbrown, SccHashIndex,
    SccHashIndexHeld, SccHashMap,
};
use crate::error::CheckError;
use crate::heap::Footprint;
use crate::plan::{MixPlan, ReadPlan};
use crate::stopwatch::Stopwatch;
use crate::whole::Whole;

/// A contestant and its map, for plans to run on; the map is kept from plan to plan while its content fits.
///
/// Every run checks every answer, and fails with the contestant's name if one is wrong.
pub trait Entrant {
    /// How many lookups since the last call missed a key while another thread replaced it; always 0 except for contestants that
    /// are known to do so.
    fn take_lost_reads(&mut self) -> u64;

    /// Frees the map.
    fn release(&mut self);

    /// Runs the lookups until `seconds` have been spent in them; in batches if asked for. Returns operations per microsecond.
    ///
    /// # Errors
    ///
    /// A wrong answer.
    fn read(&mut self, plan: &ReadPlan, batched: bool, seconds: f64) -> Result<f64, CheckError>;

    /// Runs the operations until `seconds` have been spent in them, if the plan can be run again; else once. Returns
    /// operations per microsecond.
    ///
    /// # Errors
    ///
    /// A wrong answer, or a map whose content afterwards is not what it should be.
    fn mix(&mut self, plan: &MixPlan, seconds: f64) -> Result<f64, CheckError>;

    /// Fills a map with room for `capacity` entries with `count` keys, by one thread; then another map, and so on, until
    /// `seconds` have been spent in it. Returns inserts per microsecond.
    ///
    /// # Errors
    ///
    /// A wrong answer.
    fn fill(&mut self, capacity: u64, count: u64, seconds: f64) -> Result<f64, CheckError>;

    /// Fills an empty map with `count` keys in one call, by one thread; then another map, and so on, until `seconds` have been
    /// spent in it. Returns inserts per microsecond.
    ///
    /// # Errors
    ///
    /// A wrong answer to a look-up of any of the keys, or a wrong number of entries.
    fn extend_from_empty(&mut self, count: u64, seconds: f64) -> Result<f64, CheckError>;

    /// Does `what` to a map that is built for `count` keys and holds them all, by one thread, again and again until `seconds`
    /// have been spent in it. Where entries are removed, it is done to a new copy each time; neither making nor dropping the
    /// copy is timed. Returns entries per microsecond, of those that the map has at first.
    ///
    /// # Errors
    ///
    /// A walk that has not seen each entry once, or a copy whose content afterwards is not what it should be.
    fn whole(&mut self, what: Whole, count: u64, seconds: f64) -> Result<f64, CheckError>;

    /// Runs the operations once and times each.
    ///
    /// # Errors
    ///
    /// As [`Entrant::mix`].
    fn latencies(&mut self, plan: &MixPlan, stopwatch: &Stopwatch) -> Result<Times, CheckError>;

    /// The memory of a map that was built with `capacity` and holds `count` keys.
    ///
    /// # Errors
    ///
    /// A wrong answer.
    fn footprint(&mut self, capacity: usize, count: u64) -> Result<Footprint, CheckError>;
}

/// The contestant of `id`, without a map yet.
pub fn entrant(id: Id) -> Box<dyn Entrant> {
    match id {
        Id::Koel => Box::new(Runner::<Koel<u64, u64>>::new()),
        Id::KoelHeld => Box::new(Runner::<KoelHeld<u64, u64>>::new()),
        Id::KoelInline => Box::new(Runner::<KoelInline>::new()),
        Id::Papaya => Box::new(Runner::<Papaya<u64, u64>>::new()),
        Id::PapayaHeld => Box::new(Runner::<PapayaHeld<u64, u64>>::new()),
        Id::Dashmap => Box::new(Runner::<Dashmap<u64, u64>>::new()),
        Id::SccHashMap => Box::new(Runner::<SccHashMap<u64, u64>>::new()),
        Id::SccHashIndex => Box::new(Runner::<SccHashIndex<u64, u64>>::new()),
        Id::SccHashIndexHeld => Box::new(Runner::<SccHashIndexHeld<u64, u64>>::new()),
        Id::Rwlock => Box::new(Runner::<RwLockHashbrown<u64, u64>>::new()),
    }
}

/// The contestant of `id` for texts, unless it cannot hold them.
pub fn text_entrant(id: Id) -> Option<Box<dyn TextEntrant>> {
    Some(match id {
        Id::Koel => Box::new(TextRunner::<Koel<String, String>>::new()),
        Id::KoelHeld => Box::new(TextRunner::<KoelHeld<String, String>>::new()),
        Id::KoelInline => return None,
        Id::Papaya => Box::new(TextRunner::<Papaya<String, String>>::new()),
        Id::PapayaHeld => Box::new(TextRunner::<PapayaHeld<String, String>>::new()),
        Id::Dashmap => Box::new(TextRunner::<Dashmap<String, String>>::new()),
        Id::SccHashMap => Box::new(TextRunner::<SccHashMap<String, String>>::new()),
        Id::SccHashIndex => Box::new(TextRunner::<SccHashIndex<String, String>>::new()),
        Id::SccHashIndexHeld => Box::new(TextRunner::<SccHashIndexHeld<String, String>>::new()),
        Id::Rwlock => Box::new(TextRunner::<RwLockHashbrown<String, String>>::new()),
    })
}
