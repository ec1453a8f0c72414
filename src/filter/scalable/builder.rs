//! The options of a growing filter.

use super::super::error::FilterError;
use super::super::geometry::{MAX_BUCKETS, MAX_SEGMENTS};
use super::super::hasher::Xxh3;
use super::super::info::TableInfo;
use super::super::inner::Inner;
use super::super::layout::Format;
use super::super::plan::Plan;
use super::super::sizing::{DEFAULT_RATE, Shape, check, full_rate, load_limit};
use super::chain::{Chain, Level};
use super::filter::ScalableCuckooFilter;
use super::info::ScalableInfo;
use super::turns::Turns;
use crate::sync::SCHEDULED;

/// The smallest number of buckets in a segment: smaller segments fill unevenly, and a lock would be large compared with them.
/// Models look at each.
const MIN_BUCKETS: u64 = if SCHEDULED { 2 } else { 1024 };
/// The smallest number of bits in a fingerprint, unless fewer are requested: with fewer, tables do not fill.
const MIN_BITS: u32 = 6;
/// The largest number of keys to begin with, where buckets have enough slots.
const MAX_CAPACITY: usize = {
    let memory = usize::MAX as u64 / 16;
    (if memory < 1 << 33 { memory } else { 1 << 33 }) as usize
};

/// The largest number of keys to begin with, in buckets of this many slots.
fn most_keys(bucket_slots: u32) -> usize {
    let slots = u64::from(MAX_SEGMENTS) * u64::from(MAX_BUCKETS) * u64::from(bucket_slots);
    MAX_CAPACITY.min((slots as f64 * load_limit(bucket_slots, f64::INFINITY)) as usize)
}

/// How often a key may be present if nothing is requested, in buckets of fewer than eight slots. The number of slots in two
/// buckets would be too low for buckets of one or two slots: among a million different keys some are alike, and one in ten
/// thousand at high rates.
const LEAST_COPIES: usize = 8;

/// The number of keys to begin with, if nothing is requested.
const DEFAULT_CAPACITY: usize = 3500;

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
    pub(super) capacity: usize,
    rate: Option<f64>,
    fingerprint_bits: Option<u32>,
    bucket_slots: u32,
    semi_sorted: bool,
    max_duplicates: Option<usize>,
    max_memory: Option<usize>,
    pub(crate) hasher: S,
}

impl Default for ScalableFilterBuilder {
    fn default() -> Self {
        ScalableFilterBuilder {
            capacity: DEFAULT_CAPACITY,
            rate: None,
            fingerprint_bits: None,
            bucket_slots: 4,
            semi_sorted: false,
            max_duplicates: None,
            max_memory: None,
            hasher: Xxh3::default(),
        }
    }
}

impl ScalableFilterBuilder<Xxh3> {
    /// The seed of the hash function; if it is not given, each filter gets a different one.
    ///
    /// ```
    /// let filters = [1, 1].map(|seed| koel::ScalableCuckooFilter::builder().seed(seed).build());
    /// let [one, other] = filters.map(Result::unwrap);
    /// assert_eq!(one.hash("ada"), other.hash("ada"));
    /// ```
    pub fn seed(mut self, seed: u64) -> Self {
        self.hasher = Xxh3::with_seed(seed);
        self
    }
}

impl<S> ScalableFilterBuilder<S> {
    /// The number of keys that the first table is made for; each further one is twice as large. It is 3,500 if it is not given.
    /// A table has at least 1,024 buckets: 4,096 slots, unless buckets of another size are requested. And it has at most 65,536
    /// segments of 65,536 buckets: if the first table has one segment, as with up to 246,000 keys in buckets of four, the
    /// largest is 65,536 times as large. It is smaller if the first table's fingerprints have more than 16 bits, as at rates
    /// below about 2e-4: each table's have one more bit, up to 32. In buckets of one slot, a few of so many keys may find no
    /// room in the first table; with short fingerprints in a large table this is certain. In buckets of two slots with
    /// fingerprints of six bits it happens in one of ten tables that are large. The filter then grows.
    ///
    /// ```
    /// // Made for all keys, it does not grow.
    /// let filter = koel::ScalableCuckooFilter::builder().capacity(50_000).build()?;
    /// assert!((0..50_000).all(|key| filter.insert(&key).is_ok()));
    /// assert_eq!(filter.info().tables.len(), 1);
    /// # Ok::<(), koel::FilterError>(())
    /// ```
    #[doc(alias = "expected_items")]
    pub fn capacity(mut self, keys: usize) -> Self {
        self.capacity = keys;
        self
    }

    /// The probability with which a look-up of an absent key may say that it is present, over all tables, however many there
    /// will be: above 0 and below 1. It is 0.01 unless this or a width is given.
    ///
    /// The first table has half of it, and each further table half of what the one before has. Fingerprints have at most 32
    /// bits, so that a filter with a low rate has few tables, and room for few keys unless its first table is large: at the
    /// default capacity for 2 million at a rate of 1e-6, for 119 thousand at 1e-7, and for 11 thousand at 1e-8 ([the
    /// list](ScalableCuckooFilter::new)).
    ///
    /// ```
    /// let filter = koel::ScalableCuckooFilter::builder().false_positive_rate(0.001).build()?;
    /// assert!((0..50_000).all(|key| filter.insert(&key).is_ok()));
    /// assert!(filter.info().tables.len() > 1); // it has grown
    /// assert!(filter.false_positive_rate() <= 0.001); // and keeps it
    /// # Ok::<(), koel::FilterError>(())
    /// ```
    #[doc(alias = "with_false_pos")]
    pub fn false_positive_rate(mut self, rate: f64) -> Self {
        self.rate = Some(rate);
        self
    }

    /// Bits of a fingerprint in the first table, 2 to 32, in semi-sorted buckets 5 to 32; each further table has one more bit.
    /// If it is not given, the least that the rate allows, and at least six: tables with shorter fingerprints do not fill. With
    /// 32 there is no further table. With 2, in buckets of four with 3, and of eight with 4, no rate below 1 can be guaranteed:
    /// do not request one.
    ///
    /// ```
    /// let filter = koel::ScalableCuckooFilter::builder().fingerprint_bits(12).build()?;
    /// assert!((0..10_000).all(|key| filter.insert(&key).is_ok()));
    /// let bits: Vec<u32> = filter.info().tables.iter().map(|table| table.fingerprint_bits).collect();
    /// assert_eq!(bits, [12, 13]);
    /// # Ok::<(), koel::FilterError>(())
    /// ```
    pub fn fingerprint_bits(mut self, bits: u32) -> Self {
        self.fingerprint_bits = Some(bits);
        self
    }

    /// Slots in a bucket: 1, 2, 4 or 8. It is 4 if it is not given: the best of both memory and speed.
    pub fn bucket_slots(mut self, slots: u32) -> Self {
        self.bucket_slots = slots;
        self
    }

    /// Whether buckets of four are [semi-sorted](crate::FilterBuilder::semi_sorted), which saves one bit for each fingerprint
    /// and makes look-ups slower. By default they are not.
    ///
    /// ```
    /// let size_of = |sorted| koel::ScalableCuckooFilter::builder().semi_sorted(sorted).build().unwrap().memory_usage();
    /// assert!(size_of(true) < size_of(false));
    /// ```
    pub fn semi_sorted(mut self, yes: bool) -> Self {
        self.semi_sorted = yes;
        self
    }

    /// How often a key may be present, at least once. If it is not given: 8 times, in buckets of eight 16 times. One more copy
    /// is [`Full`](crate::Full). More copies than two buckets have slots (8 in buckets of four) make the filter grow for a
    /// single key: each further set of that many copies takes one more table, twice as large as the last. Keys that the filter
    /// cannot tell apart count as copies. With 1 it refuses as many different keys as its false-positive rate says; with 2, in
    /// buckets of one and at a rate of 0.01, one in a million or two; with 8 practically none, unless each is present several
    /// times.
    ///
    /// ```
    /// let filter = koel::ScalableCuckooFilter::builder().max_duplicates(2).false_positive_rate(1e-6).build()?;
    /// assert!(filter.insert("ada").is_ok() && filter.insert("ada").is_ok());
    /// assert!(filter.insert("ada").is_err());
    /// # Ok::<(), koel::FilterError>(())
    /// ```
    pub fn max_duplicates(mut self, copies: usize) -> Self {
        self.max_duplicates = Some(copies.max(1));
        self
    }

    /// The number of bytes that its tables may take ([`memory_usage`](ScalableCuckooFilter::memory_usage)); the first table is
    /// made in any case. A filter that would take more with one more table fills those that it has, to about 95%, less in
    /// buckets of one or two slots or with fingerprints that are shorter than six bits, and is then [`Full`](crate::Full).
    /// There is no limit if it is not given; see [`set_max_memory`](ScalableCuckooFilter::set_max_memory).
    ///
    /// ```
    /// let filter = koel::ScalableCuckooFilter::builder().max_memory(100_000).build()?;
    /// let inserted = (0_usize..).take_while(|key| filter.insert(key).is_ok()).count();
    /// assert!(inserted > 20_000 && filter.memory_usage() <= 100_000);
    /// assert!((0..inserted).all(|key| filter.contains(&key)));
    /// # Ok::<(), koel::FilterError>(())
    /// ```
    pub fn max_memory(mut self, bytes: usize) -> Self {
        self.max_memory = Some(bytes);
        self
    }

    /// The hash function, which should spread keys over all 64 bits. Keys with the same hash are a single key to the filter,
    /// however low its rate.
    pub fn hasher<S2>(self, hasher: S2) -> ScalableFilterBuilder<S2> {
        ScalableFilterBuilder {
            capacity: self.capacity,
            rate: self.rate,
            fingerprint_bits: self.fingerprint_bits,
            bucket_slots: self.bucket_slots,
            semi_sorted: self.semi_sorted,
            max_duplicates: self.max_duplicates,
            max_memory: self.max_memory,
            hasher,
        }
    }

    /// Returns what the filter would be, without allocating memory for it: its first table, and for how many keys there would
    /// be room in all. There are no keys, `len` and `displacements` are 0, and `memory_usage` is the most that the table would
    /// take, which may be some cache lines more than it does.
    ///
    /// # Errors
    ///
    /// As [`ScalableFilterBuilder::build`], except for lack of memory.
    ///
    /// ```
    /// let plan = koel::ScalableCuckooFilter::builder().capacity(1_000_000).false_positive_rate(1e-7).plan()?;
    /// assert_eq!((plan.tables.len(), plan.tables[0].fingerprint_bits), (1, 28));
    /// assert!(plan.max_keys > 30_000_000);
    /// # Ok::<(), koel::FilterError>(())
    /// ```
    pub fn plan(&self) -> Result<ScalableInfo, FilterError> {
        let (plan, first) = self.first()?;
        Ok(ScalableInfo {
            tables: vec![TableInfo::new(&first, 0, Inner::bytes(&first), 0)],
            max_keys: plan.max_keys(),
            max_duplicates: self.copies(),
        })
    }

    /// Builds the filter.
    ///
    /// # Errors
    ///
    /// If a value is out of its range, which the error names; if there is no memory for it.
    pub fn build(self) -> Result<ScalableCuckooFilter<S>, FilterError> {
        let (plan, first) = self.first()?;
        let level = Level::new(Inner::new(first, None)?, 0);
        let copies = self.copies();
        let chain = Chain::new(vec![level]);
        let filter = ScalableCuckooFilter::with_chain(Turns::new()?, plan, chain, copies, self.hasher);
        filter.set_max_memory(self.max_memory);
        Ok(filter)
    }

    /// How often a key may be present.
    fn copies(&self) -> usize {
        self.max_duplicates.unwrap_or((2 * self.bucket_slots as usize).max(LEAST_COPIES))
    }

    /// The properties common to all tables, and the first table.
    fn first(&self) -> Result<(Plan, Shape), FilterError> {
        let format = self.format()?;
        let limit = most_keys(self.bucket_slots);
        if self.capacity == 0 || self.capacity > limit {
            return Err(FilterError::Capacity { requested: self.capacity, limit });
        }
        let load = load_limit(self.bucket_slots, f64::INFINITY);
        let buckets = (self.capacity as f64 / load / f64::from(self.bucket_slots)).ceil() as u64;
        let segments = buckets.div_ceil(u64::from(MAX_BUCKETS)).max(1);
        let in_each =
            buckets.div_ceil(segments).next_multiple_of(2).clamp(MIN_BUCKETS, u64::from(MAX_BUCKETS));
        let mut plan = Plan { segments: segments as u32, buckets: in_each as u32, format };
        loop {
            let first = plan.shape(0).ok_or(FilterError::Capacity { requested: self.capacity, limit })?;
            if first.capacity >= self.capacity || plan.buckets >= MAX_BUCKETS {
                return Ok((plan, first));
            }
            // Small segments cannot be filled that far.
            plan.buckets += 2;
        }
    }

    /// The format of the first table.
    fn format(&self) -> Result<Format, FilterError> {
        let (bucket_slots, semi_sorted) = (self.bucket_slots, self.semi_sorted);
        check(self.rate, self.fingerprint_bits, Some(bucket_slots), semi_sorted)?;
        let of_bits = |fingerprint_bits| Format { fingerprint_bits, bucket_slots, semi_sorted };
        // Even a table that is full to the last slot has at most half the rate.
        let rate_of = |bits| 2.0 * full_rate(of_bits(bits));
        let rate = match self.fingerprint_bits {
            Some(_) => self.rate.unwrap_or(f64::INFINITY),
            None => self.rate.unwrap_or(DEFAULT_RATE),
        };
        let mut bits = self.fingerprint_bits.map_or(MIN_BITS..=32, |bits| bits..=bits);
        let widest = *bits.end();
        let bits = bits.find(|bits| rate_of(*bits) <= rate);
        bits.map(of_bits).ok_or_else(|| {
            let limit = rate_of(widest);
            if limit < 1.0 {
                return FilterError::RateTooLow { requested: rate, limit };
            }
            // With so few bits, no rate at all can be guaranteed.
            match (widest..=32).find(|bits| rate_of(*bits) <= rate) {
                Some(least) => FilterError::FingerprintBits { requested: widest, least },
                None => FilterError::RateTooLow { requested: rate, limit: rate_of(32) },
            }
        })
    }
}
