//! The options of a filter.

use super::cuckoo::CuckooFilter;
use super::error::FilterError;
use super::hasher::Xxh3;
use super::info::FilterInfo;
use super::inner::Inner;
use super::sizing::Options;

/// The options of a [`CuckooFilter`], from [`CuckooFilter::builder`].
///
/// They are a capacity, and a false-positive rate, a fingerprint width, or both: the width must then suffice for the rate.
/// Options that are not given are chosen for the least memory.
///
/// ```
/// use koel::CuckooFilter;
///
/// // A rate: the layout is chosen. `info()` reports it.
/// let filter = CuckooFilter::builder().capacity(1_000_000).false_positive_rate(0.001).build()?;
/// let info = filter.info();
/// assert!(info.false_positive_rate_when_full <= 0.001);
/// assert!(info.semi_sorted && info.bucket_slots == 4);
///
/// // A layout.
/// let filter = CuckooFilter::builder().capacity(1_000_000).fingerprint_bits(12).bucket_slots(4).build()?;
/// assert_eq!(filter.info().fingerprint_bits, 12);
///
/// // If a filter is impossible, the error says what is possible.
/// let error = CuckooFilter::builder().capacity(1000).false_positive_rate(1.5).build().unwrap_err();
/// assert!(error.to_string().contains("above 0 and below 1"));
/// # Ok::<(), koel::FilterError>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until `build`"]
pub struct FilterBuilder<S = Xxh3> {
    pub(super) options: Options,
    pub(super) hasher: S,
}

impl Default for FilterBuilder {
    fn default() -> Self {
        FilterBuilder { options: Options::default(), hasher: Xxh3::default() }
    }
}

impl FilterBuilder<Xxh3> {
    /// The seed of the hash function; if it is not given, each filter gets a different one.
    ///
    /// Filters can be united only if their seeds are equal.
    ///
    /// ```
    /// let filters = [1, 1].map(|seed| koel::CuckooFilter::builder().capacity(100).seed(seed).build());
    /// let [one, other] = filters.map(Result::unwrap);
    /// assert_eq!(one.hash("ada"), other.hash("ada"));
    /// ```
    pub fn seed(mut self, seed: u64) -> Self {
        self.hasher = Xxh3::with_seed(seed);
        self
    }
}

impl<S> FilterBuilder<S> {
    /// Room for any `keys` different keys: 1 or more. There is no default. More keys may find room, in small filters several
    /// times as many; but the rate is guaranteed only up to this number.
    ///
    /// All fit (one random set of keys in a million may not). From 100,000 on, buckets of four take at most 1 / 0.94 slots for
    /// a key, if fingerprints have eight bits or more; the number of slots is not rounded to a power of two. The fewer bits a
    /// fingerprint has and the fewer slots a bucket has, the more room is needed: no filter has more than a million slots and
    /// 256 for each key. So with 8 bits and buckets of one slot, there is no filter in which more than 3,210 keys fit for sure.
    /// Nor does any filter have more slots than a `usize` can count.
    ///
    /// ```
    /// let filter = koel::CuckooFilter::builder().capacity(10_000).build()?;
    /// assert!(filter.info().capacity_keys >= 10_000);
    /// # Ok::<(), koel::FilterError>(())
    /// ```
    #[doc(alias = "expected_items")]
    pub fn capacity(mut self, keys: usize) -> Self {
        self.options.capacity = keys;
        self
    }

    /// The probability with which a look-up of an absent key may say that it is present, when there are as many keys as the
    /// capacity: above 0 and below 1. It is 0.01 unless this or a width is given.
    ///
    /// ```
    /// let filter = koel::CuckooFilter::builder().false_positive_rate(0.001).from_keys(0..10_000)?;
    /// let measured = filter.measure_false_positive_rate(100_000);
    /// assert!(measured > 0.0 && measured < 0.002, "{measured}");
    /// # Ok::<(), koel::FilterError>(())
    /// ```
    #[doc(alias = "with_false_pos")]
    pub fn false_positive_rate(mut self, rate: f64) -> Self {
        self.options.rate = Some(rate);
        self
    }

    /// Bits of a fingerprint: 2 to 32, in semi-sorted buckets 5 to 32. Without a rate, buckets of four that are not semi-sorted
    /// are used, unless something else is requested.
    ///
    /// ```
    /// let filter = koel::CuckooFilter::builder().capacity(10_000).fingerprint_bits(16).build()?;
    /// assert_eq!(filter.info().fingerprint_bits, 16);
    /// # Ok::<(), koel::FilterError>(())
    /// ```
    pub fn fingerprint_bits(mut self, bits: u32) -> Self {
        self.options.fingerprint_bits = Some(bits);
        self
    }

    /// Slots in a bucket: 1, 2, 4 or 8.
    pub fn bucket_slots(mut self, slots: u32) -> Self {
        self.options.bucket_slots = Some(slots);
        self
    }

    /// Whether buckets of four are semi-sorted: the fingerprints of a bucket are kept sorted by their low four bits. There are
    /// so few different sets of four such numbers that 12 bits identify one, instead of 16 (Fan et al., CoNEXT 2014, section
    /// 5.2). So each fingerprint takes one bit less memory than it has; or in the same memory it has one more bit, and the
    /// filter is wrong half as often. Look-ups are slower, as they decode the buckets.
    ///
    /// ```
    /// let builder = || koel::CuckooFilter::builder().capacity(10_000);
    /// let plain = builder().fingerprint_bits(12).build()?;
    /// let sorted = builder().fingerprint_bits(13).semi_sorted(true).build()?;
    /// assert_eq!(sorted.info().memory_usage, plain.info().memory_usage);
    /// assert!(sorted.info().false_positive_rate_when_full < 0.51 * plain.info().false_positive_rate_when_full);
    /// # Ok::<(), koel::FilterError>(())
    /// ```
    pub fn semi_sorted(mut self, yes: bool) -> Self {
        self.options.semi_sorted = Some(yes);
        self
    }

    /// The hash function, which should spread keys over all 64 bits. Keys with the same hash are a single key to the filter,
    /// however low its rate.
    pub fn hasher<S2>(self, hasher: S2) -> FilterBuilder<S2> {
        FilterBuilder { options: self.options, hasher }
    }

    /// Whether to ask the system for huge pages: fewer TLB misses in filters of many megabytes, at the price of touching memory
    /// 2 MiB at a time. By default they are requested from 4 MiB on; filters that come from bytes, clones, and the tables of
    /// growing filters always follow the default. The list of keys that is made while a filter is built from all of them
    /// follows this option, too. This is advice only, and has an effect only on Linux.
    pub fn huge_pages(mut self, yes: bool) -> Self {
        self.options.huge_pages = Some(yes);
        self
    }

    /// Returns what the filter would be, without allocating memory for it: its layout, its size, its rate. There are no keys,
    /// `len` and `displacements` are 0, and `memory_usage` is the most that the filter would take, which may be some cache
    /// lines more than it does.
    ///
    /// # Errors
    ///
    /// As [`FilterBuilder::build`], except for lack of memory.
    ///
    /// ```
    /// // How much do a hundred million keys take, and how much at a higher false-positive rate?
    /// let bytes = |rate| {
    ///     let builder = koel::CuckooFilter::builder().capacity(100_000_000).false_positive_rate(rate);
    ///     Ok::<_, koel::FilterError>(builder.plan()?.memory_usage)
    /// };
    /// assert!((150_000_000..170_000_000).contains(&bytes(0.001)?));
    /// assert!((105_000_000..125_000_000).contains(&bytes(0.01)?));
    /// # Ok::<(), koel::FilterError>(())
    /// ```
    pub fn plan(&self) -> Result<FilterInfo, FilterError> {
        let shape = self.options.shape()?;
        Ok(FilterInfo::new(&shape, 0, Inner::bytes(&shape), 0))
    }

    /// Builds the filter.
    ///
    /// # Errors
    ///
    /// If a value is out of its range, which the error names; if there is no such filter; if there is no memory for it.
    ///
    /// ```
    /// let error = koel::CuckooFilter::builder().capacity(100).false_positive_rate(0.0).build().unwrap_err();
    /// println!("{error}"); // names the range
    /// ```
    pub fn build(self) -> Result<CuckooFilter<S>, FilterError> {
        let inner = Inner::new(self.options.shape()?, self.options.huge_pages)?;
        Ok(CuckooFilter { inner, hasher: self.hasher })
    }
}
