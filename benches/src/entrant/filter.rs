//! Filters as trait objects: the operations that a round performs on each, compiled for each.

use super::filter_runner::FilterRunner;
use crate::error::CheckError;
use crate::filters::{
    AtomicCuckoo, BinaryFuse, Expected, FastBloom, FastBloomAtomic, Id, KoelCuckoo, KoelFixed, KoelGrown,
    KoelScalable, KoelSemiSorted, Quotient, RustCuckooFilter, RustScalableCuckoo,
};
use crate::plan::ChurnPlan;

/// The properties of a filter that holds its keys.
#[derive(Debug, Clone, Copy)]
pub struct Built {
    /// Bits that it has from the allocator, per key; 0 unless the program counts allocations.
    pub bits_per_key: f64,
    /// Keys divided by slots.
    pub load: Option<f64>,
    /// The expected error rate.
    pub expected: Expected,
    /// The measured error rate.
    pub measured: f64,
    /// How often it was too small and had to be rebuilt.
    pub attempts: u32,
}

/// How a filter is built from keys that are known beforehand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Making {
    /// One insert for each.
    OneByOne,
    /// From all of them at once, by one thread.
    AtOnce,
    /// From all of them at once, by this many threads.
    OnThreads(usize),
}

/// A filter, for plans to run on; kept from plan to plan.
///
/// Every run checks its answers, and fails with the filter's name if there is a false negative, or if there are more
/// false positives than the filter's parameters explain.
pub trait FilterEntrant {
    /// Whether several threads may insert at the same time.
    fn shares_writes(&self) -> bool;

    /// Whether it has slots whose number does not change as it fills.
    fn fixed_slots(&self) -> bool;

    /// Whether keys can be removed.
    fn removes(&self) -> bool;

    /// Whether batches are looked up otherwise than one by one.
    fn batches(&self) -> bool;

    /// Whether it can be built from all keys at once otherwise than key by key.
    fn at_once(&self) -> bool;

    /// Whether look-ups are all that is to be measured.
    fn lookups_only(&self) -> bool;

    /// How many lookups since the last call missed a key while another thread wrote; always 0 except for filters that are known
    /// to do so.
    fn take_lost_reads(&mut self) -> u64;

    /// Builds the filter and measures its properties.
    ///
    /// # Errors
    ///
    /// If it cannot be built, or gives a wrong answer.
    fn build(&mut self, keys: u64, bits: u32) -> Result<Built, CheckError>;

    /// Builds the filter again and again until `seconds` have been spent on it; on several threads, if
    /// [`FilterEntrant::shares_writes`]. Returns inserts per microsecond.
    ///
    /// # Errors
    ///
    /// As [`FilterEntrant::build`].
    fn fill(&mut self, keys: u64, bits: u32, threads: usize, seconds: f64) -> Result<f64, CheckError>;

    /// Inserts into an empty filter, built for this many keys, until 95% of its slots are taken or a key finds no room; again
    /// and again until `seconds` have been spent on it. The previous filter stays. Returns inserts per microsecond.
    ///
    /// # Errors
    ///
    /// As [`FilterEntrant::build`].
    fn fill_up(&self, keys: u64, bits: u32, seconds: f64) -> Result<f64, CheckError>;

    /// Builds a filter of the capacity that it promises, again and again until `seconds` have been spent on it; the previous
    /// filter stays. Returns keys per microsecond.
    ///
    /// # Errors
    ///
    /// As [`FilterEntrant::build`].
    fn make(&self, keys: &[u64], bits: u32, making: Making, seconds: f64) -> Result<f64, CheckError>;

    /// Looks each thread's keys up until `seconds` have been spent on it: all are present, or all are absent. Returns
    /// operations per microsecond.
    ///
    /// # Errors
    ///
    /// A wrong answer.
    fn read(
        &mut self,
        lookups: &[Vec<u64>],
        present: bool,
        batched: bool,
        seconds: f64,
    ) -> Result<f64, CheckError>;

    /// Looks up on all threads while the first writes, until `seconds` have been spent on it. Returns operations per
    /// microsecond.
    ///
    /// # Errors
    ///
    /// A wrong answer.
    fn churn(&mut self, plan: &ChurnPlan, seconds: f64) -> Result<f64, CheckError>;
}

/// The filter of `id`, not yet built, for slots of this many bits.
///
/// # Panics
///
/// Unless [`Id::takes_bits`].
pub fn filter_entrant(id: Id, bits: u32) -> Box<dyn FilterEntrant> {
    assert!(id.takes_bits(bits), "{} does not take {bits} bits", id.name());
    match (id, bits) {
        (Id::KoelFixed, 8) => return Box::new(FilterRunner::<KoelFixed<8>>::new()),
        (Id::KoelFixed, 12) => return Box::new(FilterRunner::<KoelFixed<12>>::new()),
        _ => (),
    }
    match id {
        Id::KoelFixed => Box::new(FilterRunner::<KoelFixed<16>>::new()),
        Id::Koel => Box::new(FilterRunner::<KoelCuckoo>::new()),
        Id::KoelSemiSorted => Box::new(FilterRunner::<KoelSemiSorted>::new()),
        Id::KoelScalable => Box::new(FilterRunner::<KoelScalable>::new()),
        Id::KoelGrown => Box::new(FilterRunner::<KoelGrown>::new()),
        Id::AtomicCuckooFilter => Box::new(FilterRunner::<AtomicCuckoo>::new()),
        Id::Cuckoofilter => Box::new(FilterRunner::<RustCuckooFilter>::new()),
        Id::ScalableCuckooFilter => Box::new(FilterRunner::<RustScalableCuckoo<false>>::new()),
        Id::ScalableCuckooFilterGrown => Box::new(FilterRunner::<RustScalableCuckoo<true>>::new()),
        Id::Qfilter => Box::new(FilterRunner::<Quotient>::new()),
        Id::Fastbloom => Box::new(FilterRunner::<FastBloom>::new()),
        Id::FastbloomAtomic => Box::new(FilterRunner::<FastBloomAtomic>::new()),
        Id::Xorf => Box::new(FilterRunner::<BinaryFuse>::new()),
    }
}
