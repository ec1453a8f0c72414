//! [`CuckooFilter`]: of fixed capacity.

use core::fmt;
use core::hash::{BuildHasher, Hash};

use super::builder::FilterBuilder;
use super::error::FilterError;
use super::geometry::WholeDigest;
use super::hasher::{Xxh3, hash_bytes};
use super::info::FilterInfo;
use super::inner::{Inner, measured_rate};
use crate::full::Full;
use crate::hash::Digest;

/// A set of fingerprints of keys: a look-up says "surely absent" or "probably present". Keys can be removed again.
///
/// Cuckoo filters (Fan, Andersen, Kaminsky and Mitzenmacher, CoNEXT 2014) take less memory than Bloom filters at false-positive
/// rates of 0.5% and below for a million keys and more (at 0.36% as much), and of 0.15% and below for a hundred thousand. A
/// look-up reads two cache lines, hit or miss. This filter is concurrent: every method takes `&self`; look-ups take no lock,
/// write nothing and never wait; and a key that is present is never reported absent, even while others are inserted and the
/// filter moves fingerprints about. Writers take the lock of one segment.
///
/// ```
/// use koel::CuckooFilter;
///
/// let filter = CuckooFilter::builder().capacity(1000).false_positive_rate(0.01).build()?;
/// filter.insert("ada").unwrap();
/// assert!(filter.contains("ada"));
/// assert!(filter.remove("ada"));
/// assert!(!filter.contains("ada"));
/// # Ok::<(), koel::FilterError>(())
/// ```
///
/// # Keys
///
/// A key is anything that is [`Hash`]; or bytes, by the `_bytes` forms; or a 64-bit hash, by the `_hash` forms. With the
/// default [`Xxh3`], bytes have the same hash on every platform and in every version, forever. So have `Hash` keys, provided
/// that their `Hash` makes the same writes. Integers do. `str`, slices of bytes and derived types do as long as Rust does not
/// change how it hashes them, which it does not promise. Slices, arrays and vectors of larger integers do not: Rust writes them
/// as they are in memory, so that the order of bytes differs on big-endian machines, and writes `usize` and `isize` shorter on
/// 32-bit machines. Types matter: `7_u64` and a bare `7`, which is an `i32`, are different keys. Filters that are kept for
/// long, or sent, should be queried by bytes. The three forms of one key are different keys, unless you make them equal by
/// [`CuckooFilter::hash`]; but an integer is equal to its bytes, the lowest first.
///
/// # Duplicates
///
/// A key that is inserted twice is present twice, and must be removed twice. Two buckets hold `2 * bucket_slots` copies; one
/// more is [`Full`]. Where a key may come more than once and is never removed, use
/// [`insert_unique`](CuckooFilter::insert_unique): it leaves out a key that is present. It also leaves out a key that is
/// mistaken for another, as may happen to one new key in a hundred at a rate of 1%. Such a key is found as long as that other
/// one stays, and to remove it would remove the other. So where keys are removed, insert each once, and know from elsewhere
/// which are present.
///
/// ```
/// let seen = koel::CuckooFilter::builder().capacity(1000).false_positive_rate(0.03).seed(1).build()?;
/// assert_eq!(seen.insert_unique("ada"), Ok(true));
/// // A name that the filter mistakes for hers.
/// let other = (0..).map(|n| format!("name {n}")).find(|name| seen.contains(name)).unwrap();
/// assert_eq!(seen.insert_unique(&other), Ok(false)); // it was not inserted
/// assert!(seen.remove("ada") && !seen.contains(&other));
/// # Ok::<(), koel::FilterError>(())
/// ```
///
/// # Removing
///
/// Remove only keys that were inserted. A key that never was may have the fingerprint and the buckets of another key, and
/// removing it would remove the other. A key for which `insert_unique` returned `false` may be such a key.
///
/// # When to pick something else
///
/// Keys that never change, all known beforehand: a xor or binary fuse filter is smaller. Rates of some percent, without
/// removals: a Bloom filter. An unknown number of keys: [`ScalableCuckooFilter`](crate::ScalableCuckooFilter). Keys and answers
/// that must be exact: [`HashMap`](crate::HashMap).
pub struct CuckooFilter<S = Xxh3> {
    pub(super) inner: Inner,
    pub(super) hasher: S,
}

impl CuckooFilter {
    /// Returns a builder.
    pub fn builder() -> FilterBuilder {
        FilterBuilder::default()
    }

    /// Creates a filter in which any `keys` different keys fit, at this false-positive rate.
    ///
    /// # Errors
    ///
    /// As [`FilterBuilder::build`].
    pub fn new(keys: usize, false_positive_rate: f64) -> Result<Self, FilterError> {
        Self::builder().capacity(keys).false_positive_rate(false_positive_rate).build()
    }

    /// Builds a filter of these keys, made for their number at this false-positive rate.
    ///
    /// This is faster than inserting them one by one, because nobody else sees the filter before it is complete. A key that
    /// occurs more than once is inserted that many times. If need be, the filter is made larger, so that up to 8 copies of each
    /// of the keys fit (at rates from 1e-8 on). Meanwhile this takes 8 bytes for each key; up to 24, if the iterator does not
    /// say how many keys there are, or where most come so often that they find no room at first. A filter of 8 MiB or more is
    /// filled segment by segment, not in the order of the keys, if there is memory for that: 8 more bytes for each key if the
    /// iterator does not say how many there are, or keys occur so often that the filter had to be made larger. A filter made of
    /// no keys has room for one.
    ///
    /// ```
    /// let filter = koel::CuckooFilter::from_keys(["ada", "grace"], 0.001)?;
    /// assert!(filter.contains("ada") && filter.contains("grace"));
    /// # Ok::<(), koel::FilterError>(())
    /// ```
    ///
    /// The keys are taken as `Hash` makes them: to query by bytes, use [`CuckooFilter::from_keys_bytes`].
    ///
    /// # Errors
    ///
    /// As [`FilterBuilder::from_keys`].
    pub fn from_keys<Q: Hash>(
        keys: impl IntoIterator<Item = Q>,
        false_positive_rate: f64,
    ) -> Result<Self, FilterError> {
        Self::builder().false_positive_rate(false_positive_rate).from_keys(keys)
    }

    /// Builds a filter of the bytes of these keys, as [`CuckooFilter::from_keys`] does: to be queried by the `_bytes` forms.
    ///
    /// ```
    /// let filter = koel::CuckooFilter::from_keys_bytes(["ada", "grace"], 1e-8)?;
    /// assert!(filter.contains_bytes(b"ada") && !filter.contains("ada"));
    /// # Ok::<(), koel::FilterError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`CuckooFilter::from_keys`].
    pub fn from_keys_bytes<Q: AsRef<[u8]>>(
        keys: impl IntoIterator<Item = Q>,
        false_positive_rate: f64,
    ) -> Result<Self, FilterError> {
        Self::builder().false_positive_rate(false_positive_rate).from_keys_bytes(keys)
    }
}

impl<S> CuckooFilter<S> {
    /// Returns the number of keys: inserted and not removed. Exact while nobody writes. Looks at every segment.
    pub fn len(&self) -> usize {
        self.inner.table.len()
    }

    /// Returns whether there are no keys.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of slots. [`FilterInfo::capacity_keys`] is the number of keys that fit for sure.
    pub fn capacity(&self) -> usize {
        self.inner.slots()
    }

    /// Returns the ratio of keys to slots, 0 to 1.
    pub fn load_factor(&self) -> f64 {
        self.len() as f64 / self.capacity() as f64
    }

    /// Returns the number of bytes that the filter's table has from the allocator.
    pub fn memory_usage(&self) -> usize {
        self.inner.table.memory_usage()
    }

    /// Returns the expected probability, as full as the filter is now, that a look-up of an absent key says that it is present,
    /// 0 to 1 (Fan et al., section 5.1). If all keys were inserted by [`insert_unique`](Self::insert_unique) it is higher, as
    /// no two of them have the same fingerprint in the same pair of buckets: by a twentieth where 0.1 are expected, by a
    /// quarter at 0.4, by half at 0.65.
    pub fn false_positive_rate(&self) -> f64 {
        self.inner.rate()
    }

    /// Measures, by `probes` look-ups of random hashes, how often they say that the key is present: 0 to 1; 0 if there are no
    /// probes. Changes nothing.
    ///
    /// ```
    /// let filter = koel::CuckooFilter::from_keys(0..10_000, 0.01)?;
    /// assert!(filter.false_positive_rate() <= 0.01);
    /// assert!(filter.measure_false_positive_rate(100_000) < 0.015);
    /// # Ok::<(), koel::FilterError>(())
    /// ```
    pub fn measure_false_positive_rate(&self, probes: usize) -> f64 {
        measured_rate(probes, |hash| self.contains_hash(hash))
    }

    /// Returns what the filter consists of and how full it is. Locks each segment for a moment.
    ///
    /// ```
    /// let filter = koel::CuckooFilter::from_keys(0..100_000, 0.001)?;
    /// let info = filter.info();
    /// assert!(info.len == 100_000 && info.bits_per_key() < 14.0);
    /// println!("{info}");
    /// # Ok::<(), koel::FilterError>(())
    /// ```
    pub fn info(&self) -> FilterInfo {
        let (shape, table) = (self.inner.shape(), &self.inner.table);
        FilterInfo::new(&shape, table.len(), table.memory_usage(), table.displacements())
    }

    /// Returns the hash function.
    pub fn hasher(&self) -> &S {
        &self.hasher
    }

    /// Removes all keys, a segment at a time.
    ///
    /// ```
    /// let filter = koel::CuckooFilter::from_keys(["ada"], 0.001)?;
    /// filter.clear();
    /// assert!(filter.is_empty() && !filter.contains("ada"));
    /// # Ok::<(), koel::FilterError>(())
    /// ```
    pub fn clear(&self) {
        self.inner.clear();
    }

    /// As [`CuckooFilter::insert`], for a key whose hash you have. All 64 bits should be well mixed.
    ///
    /// # Errors
    ///
    /// As [`CuckooFilter::insert`].
    ///
    /// ```
    /// use koel::CuckooFilter;
    ///
    /// // One hash is used to query all filters with the same seed.
    /// let build = || CuckooFilter::builder().capacity(100).seed(1).build();
    /// let (monday, tuesday) = (build()?, build()?);
    /// let ada = monday.hash("ada");
    /// tuesday.insert_hash(ada).unwrap();
    /// assert!(!monday.contains_hash(ada) && tuesday.contains_hash(ada));
    /// # Ok::<(), koel::FilterError>(())
    /// ```
    #[inline]
    pub fn insert_hash(&self, hash: u64) -> Result<(), Full> {
        if self.inner.insert(WholeDigest(Digest::new(hash))) { Ok(()) } else { Err(Full::NOTHING) }
    }

    /// As [`CuckooFilter::insert_unique`], for a key whose hash you have.
    ///
    /// # Errors
    ///
    /// As [`CuckooFilter::insert`].
    #[inline]
    pub fn insert_unique_hash(&self, hash: u64) -> Result<bool, Full> {
        self.inner.insert_unique(WholeDigest(Digest::new(hash)))
    }

    /// As [`CuckooFilter::contains`], for a key whose hash you have.
    ///
    /// ```
    /// let filter = koel::CuckooFilter::from_keys(["ada"], 0.001)?;
    /// let hash = filter.hash("ada"); // once, for several queries
    /// assert!(filter.contains_hash(hash) && filter.remove_hash(hash));
    /// # Ok::<(), koel::FilterError>(())
    /// ```
    #[inline]
    pub fn contains_hash(&self, hash: u64) -> bool {
        self.inner.contains(WholeDigest(Digest::new(hash)))
    }

    /// As [`CuckooFilter::remove`], for a key whose hash you have.
    #[inline]
    pub fn remove_hash(&self, hash: u64) -> bool {
        self.inner.remove(WholeDigest(Digest::new(hash)))
    }

    /// As [`CuckooFilter::count`], for a key whose hash you have.
    pub fn count_hash(&self, hash: u64) -> usize {
        self.inner.count(WholeDigest(Digest::new(hash)))
    }
}

impl<S: BuildHasher> CuckooFilter<S> {
    /// Returns the hash of a key, for the `_hash` forms.
    #[inline]
    pub fn hash<Q: Hash + ?Sized>(&self, key: &Q) -> u64 {
        self.hasher.hash_one(key)
    }

    /// Returns the hash of bytes, for the `_hash` forms: that of a single `write`.
    #[inline]
    pub fn hash_bytes(&self, key: &[u8]) -> u64 {
        hash_bytes(&self.hasher, key)
    }

    /// Inserts a key; once more, if it is present.
    ///
    /// # Errors
    ///
    /// [`Full`] if there is no way to make room for the key, or if it is present as often as its two buckets have slots, which
    /// [`CuckooFilter::count`] tells. Nothing was changed. To find that there is no way takes about ten to three hundred
    /// microseconds, as hundreds of buckets are looked at: a caller that goes on inserting into a full filter pays this cost
    /// each time.
    ///
    /// ```
    /// let filter = koel::CuckooFilter::builder().capacity(100).fingerprint_bits(16).build()?;
    /// for copy in 1..=8 {
    ///     filter.insert(&7).unwrap();
    ///     assert_eq!(filter.count(&7), copy);
    /// }
    /// assert!(filter.insert(&7).is_err());
    /// assert_eq!(filter.len(), 8);
    /// # Ok::<(), koel::FilterError>(())
    /// ```
    #[doc(alias = "add")]
    #[inline]
    pub fn insert<Q: Hash + ?Sized>(&self, key: &Q) -> Result<(), Full> {
        self.insert_hash(self.hash(key))
    }

    /// Inserts a key unless it is present, or seems to be, and returns whether it was inserted. Where keys are removed, use
    /// [`insert`](Self::insert): a key that only seemed to be present has not been inserted, and is removed with the key that
    /// it was mistaken for. See [duplicates](CuckooFilter#duplicates).
    ///
    /// # Errors
    ///
    /// As [`CuckooFilter::insert`].
    ///
    /// ```
    /// let filter = koel::CuckooFilter::new(100, 1e-6)?;
    /// assert_eq!(filter.insert_unique("ada"), Ok(true));
    /// assert_eq!(filter.insert_unique("ada"), Ok(false));
    /// # Ok::<(), koel::FilterError>(())
    /// ```
    #[doc(alias = "check_and_set")]
    #[doc(alias = "set")]
    #[doc(alias = "test_and_add")]
    #[inline]
    pub fn insert_unique<Q: Hash + ?Sized>(&self, key: &Q) -> Result<bool, Full> {
        self.insert_unique_hash(self.hash(key))
    }

    /// Returns whether a key is present: `false` is certain; `true` is wrong at the false-positive rate. Never waits.
    ///
    /// ```
    /// let filter = koel::CuckooFilter::from_keys(["ada"], 1e-8)?;
    /// assert!(filter.contains("ada") && !filter.contains("bob"));
    /// # Ok::<(), koel::FilterError>(())
    /// ```
    #[doc(alias = "check")]
    #[inline]
    pub fn contains<Q: Hash + ?Sized>(&self, key: &Q) -> bool {
        self.contains_hash(self.hash(key))
    }

    /// Removes one copy of a key. Returns `false` if it was not present.
    ///
    /// Only for keys that were inserted. If another key has the same fingerprint, the fingerprint that is removed may be that
    /// key's. The other key is then missed, unless this one was inserted.
    ///
    /// ```
    /// let filter = koel::CuckooFilter::from_keys(["ada"], 1e-6)?;
    /// assert!(filter.remove("ada") && !filter.remove("ada"));
    /// # Ok::<(), koel::FilterError>(())
    /// ```
    #[doc(alias = "delete")]
    #[inline]
    pub fn remove<Q: Hash + ?Sized>(&self, key: &Q) -> bool {
        self.remove_hash(self.hash(key))
    }

    /// Returns how often a key was inserted and not removed. The result is too high if other keys have its fingerprint and
    /// buckets; a copy that is just being moved may be counted twice. Never waits.
    ///
    /// ```
    /// let filter = koel::CuckooFilter::from_keys(["ada", "ada"], 1e-8)?;
    /// assert_eq!((filter.count("ada"), filter.count("bob")), (2, 0));
    /// # Ok::<(), koel::FilterError>(())
    /// ```
    pub fn count<Q: Hash + ?Sized>(&self, key: &Q) -> usize {
        self.count_hash(self.hash(key))
    }

    /// Inserts the bytes of a key. See [the type](CuckooFilter#keys).
    ///
    /// # Errors
    ///
    /// As [`CuckooFilter::insert`].
    ///
    /// ```
    /// let filter = koel::CuckooFilter::new(100, 1e-6)?;
    /// filter.insert_bytes(b"ada").unwrap();
    /// assert!(filter.contains_bytes(b"ada"));
    /// assert!(!filter.contains("ada"), "as a `str` it is another key");
    /// # Ok::<(), koel::FilterError>(())
    /// ```
    #[inline]
    pub fn insert_bytes(&self, key: &[u8]) -> Result<(), Full> {
        self.insert_hash(self.hash_bytes(key))
    }

    /// Inserts the bytes of a key, unless they are present, as [`CuckooFilter::insert_unique`] does.
    ///
    /// # Errors
    ///
    /// As [`CuckooFilter::insert`].
    #[inline]
    pub fn insert_unique_bytes(&self, key: &[u8]) -> Result<bool, Full> {
        self.insert_unique_hash(self.hash_bytes(key))
    }

    /// Returns whether the bytes of a key are present.
    #[inline]
    pub fn contains_bytes(&self, key: &[u8]) -> bool {
        self.contains_hash(self.hash_bytes(key))
    }

    /// Removes one copy of the bytes of a key.
    #[inline]
    pub fn remove_bytes(&self, key: &[u8]) -> bool {
        self.remove_hash(self.hash_bytes(key))
    }

    /// Returns how often the bytes of a key were inserted and not removed, as [`CuckooFilter::count`] does.
    pub fn count_bytes(&self, key: &[u8]) -> usize {
        self.count_hash(self.hash_bytes(key))
    }
}

impl<S> fmt::Debug for CuckooFilter<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shape = self.inner.shape();
        f.debug_struct("CuckooFilter")
            .field("format", &shape.format)
            .field("geometry", &shape.geometry)
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}
