//! The options of a growing filter.

use std::sync::Arc;

use super::super::error::FilterError;
use super::super::geometry::MAX_BUCKETS;
use super::super::hasher::Xxh3;
use super::super::inner::Inner;
use super::super::layout::Format;
use super::super::sizing::rate_at;
use super::chain::{Chain, Level, Plan, SLOTS};
use super::filter::ScalableCuckooFilter;

/// Fewest buckets of a segment: smaller ones fill unevenly, and a lock would be much beside them.
const MIN_BUCKETS: u64 = 1024;
/// Keys to begin with, if nothing is asked for.
const DEFAULT_CAPACITY: usize = 3500;
/// The rate, if none is asked for.
const DEFAULT_RATE: f64 = 0.01;

/// The options of a [`ScalableCuckooFilter`], from [`ScalableCuckooFilter::builder`].
///
/// ```
/// use koel::ScalableCuckooFilter;
///
/// let filter = ScalableCuckooFilter::builder().capacity(10_000).false_positive_rate(0.001).build()?;
/// assert!((0..100_000).all(|key| filter.insert(&key).is_ok()));
/// assert!(filter.false_positive_rate() <= 0.001);
/// # Ok::<(), koel::FilterError>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until `build`"]
pub struct ScalableFilterBuilder<S = Xxh3> {
    capacity: usize,
    rate: f64,
    max_duplicates: usize,
    hasher: S,
}

impl Default for ScalableFilterBuilder {
    fn default() -> Self {
        ScalableFilterBuilder {
            capacity: DEFAULT_CAPACITY,
            rate: DEFAULT_RATE,
            max_duplicates: 2 * SLOTS as usize,
            hasher: Xxh3::default(),
        }
    }
}

impl ScalableFilterBuilder<Xxh3> {
    /// The seed of the hash function; a different one each time, if it is not given.
    pub fn seed(mut self, seed: u64) -> Self {
        self.hasher = Xxh3::with_seed(seed);
        self
    }
}

impl<S> ScalableFilterBuilder<S> {
    /// Keys that the first table is made for; each further one is twice as large. 3,500 if it is not given. The filter grows
    /// to some 65,000 times as much at the most.
    pub fn capacity(mut self, keys: usize) -> Self {
        self.capacity = keys;
        self
    }

    /// How often a look-up of an absent key may say that it is present, over all tables and however many there come to be:
    /// above 0 and below 1. 0.01 if it is not given.
    ///
    /// The first table has half of it, and each further one half of what the one before has.
    pub fn false_positive_rate(mut self, rate: f64) -> Self {
        self.rate = rate;
        self
    }

    /// How often a key may be there: 8 if it is not given. One copy more is [`Full`](crate::Full). Without an end to it,
    /// one key that is inserted again and again would make the filter grow.
    pub fn max_duplicates(mut self, copies: usize) -> Self {
        self.max_duplicates = copies.max(1);
        self
    }

    /// The hash function.
    pub fn hasher<S2>(self, hasher: S2) -> ScalableFilterBuilder<S2> {
        let ScalableFilterBuilder { capacity, rate, max_duplicates, .. } = self;
        ScalableFilterBuilder { capacity, rate, max_duplicates, hasher }
    }

    /// Builds the filter.
    ///
    /// # Errors
    ///
    /// If a value is out of its range, which the error names; if there is no memory for it.
    pub fn build(self) -> Result<ScalableCuckooFilter<S>, FilterError> {
        let plan = self.plan()?;
        let shape = plan.shape(0).ok_or(FilterError::Capacity {
            requested: self.capacity,
            limit: (1 << 33).min(usize::MAX as u64 / 16) as usize,
        })?;
        let level = Level { inner: Inner::new(shape, false)?, index: 0 };
        Ok(ScalableCuckooFilter::with_chain(
            plan,
            Chain::new(vec![Arc::new(level)]),
            self.max_duplicates,
            self.hasher,
        ))
    }

    fn plan(&self) -> Result<Plan, FilterError> {
        let limit = (1 << 33).min(usize::MAX as u64 / 16) as usize;
        if !(self.rate > 0.0 && self.rate < 1.0) {
            return Err(FilterError::Rate { requested: self.rate });
        }
        if self.capacity == 0 || self.capacity > limit {
            return Err(FilterError::Capacity { requested: self.capacity, limit });
        }
        // Even a table that is full to the last slot has half the rate at the most.
        let rate_of =
            |bits| rate_at(Format { fingerprint_bits: bits, bucket_slots: SLOTS, semi_sorted: false }, 1.0);
        // With fewer than six bits, tables do not fill.
        let bits = (6..=32)
            .find(|bits| rate_of(*bits) <= self.rate / 2.0)
            .ok_or(FilterError::RateTooLow { requested: self.rate, limit: 2.0 * rate_of(32) })?;
        let buckets = (self.capacity as f64 / 0.94 / f64::from(SLOTS)).ceil() as u64;
        let segments = buckets.div_ceil(u64::from(MAX_BUCKETS)).max(1);
        let in_each =
            buckets.div_ceil(segments).next_multiple_of(2).clamp(MIN_BUCKETS, u64::from(MAX_BUCKETS));
        Ok(Plan { segments: segments as u32, buckets: in_each as u32, bits })
    }
}
