//! [`ScalableCuckooFilter`]: grows.

use core::fmt;
use core::hash::{BuildHasher, Hash};
use core::panic::{RefUnwindSafe, UnwindSafe};

use super::super::collect::with_room;
use super::super::error::FilterError;
use super::super::hasher::{Xxh3, hash_bytes};
use super::super::info::TableInfo;
use super::super::inner::{Inner, measured_rate};
use super::super::plan::Plan;
use super::super::sizing::rate_of_any;
use super::builder::ScalableFilterBuilder;
use super::chain::{Chain, Level, Restructuring};
use super::info::ScalableInfo;
use super::places::Places;
use super::turns::Turns;
use crate::full::Full;
use crate::hash::Digest;
use crate::sync::{AtomicUsize, Mutex, Ordering};

/// A [`CuckooFilter`](crate::CuckooFilter) that grows: tables are added as they are needed, and the false-positive rate of
/// all together stays within what was asked for.
///
/// Every method takes `&self`. Look-ups take no lock and never wait, also while the filter grows or is
/// [compacted](ScalableCuckooFilter::compact); a key that is present is never reported absent.
///
/// ```
/// use koel::ScalableCuckooFilter;
///
/// let filter = ScalableCuckooFilter::new(0.001)?;
/// for key in 0..100_000 {
///     filter.insert(&key).unwrap();
/// }
/// assert!((0..100_000).all(|key| filter.contains(&key)));
/// assert!(filter.false_positive_rate() <= 0.001);
///
/// // Most are removed, and the tables emptied into fewer.
/// (5_000..100_000).for_each(|key| assert!(filter.remove(&key)));
/// let before = filter.memory_usage();
/// filter.compact();
/// assert!(filter.memory_usage() < before && (0..5_000).all(|key| filter.contains(&key)));
/// # Ok::<(), koel::FilterError>(())
/// ```
///
/// # Cost
///
/// A look-up or removal goes from the newest table to the oldest until one has the key. An absent key costs a look at each,
/// and so does an insertion, which counts the key's copies; it then takes a free slot of the newest table, or of an older
/// one, before it displaces others. So the more often the filter had to double, the slower, though the waits for large tables
/// overlap: grown to two thousand times as much, hits take five to seven times as long, misses eight times and more. Begin
/// with the right [capacity](ScalableFilterBuilder::capacity).
///
/// A table that [`compact`](Self::compact) has given back is freed by whoever looked at it last, which may be a look-up.
/// Fingerprints are one bit wider in each further table, and the first has as much of a bit more than a
/// [`CuckooFilter`](crate::CuckooFilter) of the same rate.
///
/// # Union
///
/// There is no `try_union`. A fingerprint can be moved to an older table, which asks for fewer of its bits, and not to a newer
/// one: the bits that it would need went with the key. So what the other filter's oldest table holds would have to go into
/// this one's oldest, which is full once the filter has grown; and to hang the other's tables into this chain would add
/// up both rates, beyond what was asked for. Insert the keys, or unite filters of
/// [fixed capacity](crate::CuckooFilter::try_union).
///
/// # Keys, duplicates, removing
///
/// As in a [`CuckooFilter`](crate::CuckooFilter#keys); a key may be there
/// [`max_duplicates`](ScalableFilterBuilder::max_duplicates) times. Threads that [`insert`](Self::insert) one key at the same
/// moment may each put one copy more than that. A key that all threads insert by [`insert_unique`](Self::insert_unique) is
/// there once.
pub struct ScalableCuckooFilter<S = Xxh3> {
    pub(super) plan: Plan,
    pub(super) chain: Chain,
    pub(super) max_duplicates: usize,
    /// Bytes that all tables may take before one more is added; `usize::MAX`: without a limit.
    max_memory: AtomicUsize,
    /// Held by who moves fingerprints between tables, or must not see them move.
    pub(super) moving: Mutex<()>,
    /// Of who inserts what is not there.
    turns: Turns,
    pub(super) hasher: S,
}

/// A panic in user code leaves the filter whole; what `insert_many` and its kin did before it stays done.
impl<S: RefUnwindSafe> RefUnwindSafe for ScalableCuckooFilter<S> {}
/// A panic in user code leaves the filter whole; what `insert_many` and its kin did before it stays done.
impl<S: UnwindSafe> UnwindSafe for ScalableCuckooFilter<S> {}

impl ScalableCuckooFilter {
    /// A filter of this false-positive rate. Its first table is made for 3,500 keys. Each further one is twice as large, and
    /// its fingerprints are one bit longer, 32 bits at the most. So the lower the rate, the fewer keys there is room for in
    /// all:
    ///
    /// | rate | most keys |
    /// | --- | --- |
    /// | 1e-3 and more | 504,900,000 |
    /// | 1e-4 | 126,200,000 |
    /// | 1e-5 | 15,770,000 |
    /// | 1e-6 | 1,968,000 |
    /// | 1e-7 | 119,400 |
    /// | 1e-8 | 11,550 |
    ///
    /// What has no room any more is [`Full`]. Say the [capacity](ScalableFilterBuilder::capacity) to raise it: at low rates,
    /// twice as large a first table has room for twice as many keys in all. [`max_keys`](Self::max_keys) says for how many.
    ///
    /// # Errors
    ///
    /// If the rate is not above 0 and below 1, or lower than can be.
    ///
    /// ```
    /// let filter = koel::ScalableCuckooFilter::new(0.01)?;
    /// for key in 0..50_000 {
    ///     filter.insert(&key)?;
    /// }
    /// assert!(filter.measure_false_positive_rate(100_000) < 0.01);
    /// # Ok::<(), koel::FilterError>(())
    /// ```
    pub fn new(false_positive_rate: f64) -> Result<Self, FilterError> {
        Self::builder().false_positive_rate(false_positive_rate).build()
    }

    /// A builder.
    pub fn builder() -> ScalableFilterBuilder {
        ScalableFilterBuilder::default()
    }

    /// A filter of these keys, whose first table is made for their number at this false-positive rate.
    ///
    /// ```
    /// let filter = koel::ScalableCuckooFilter::from_keys(["ada", "grace"], 0.001)?;
    /// assert!(filter.contains("ada") && filter.contains("grace"));
    /// # Ok::<(), koel::FilterError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`ScalableFilterBuilder::from_keys`].
    pub fn from_keys<Q: Hash>(
        keys: impl IntoIterator<Item = Q>,
        false_positive_rate: f64,
    ) -> Result<Self, FilterError> {
        Self::builder().false_positive_rate(false_positive_rate).from_keys(keys)
    }

    /// A filter of the bytes of these keys, as [`ScalableCuckooFilter::from_keys`]: to be asked by the `_bytes` forms.
    ///
    /// ```
    /// let filter = koel::ScalableCuckooFilter::from_keys_bytes(["ada", "grace"], 1e-8)?;
    /// assert!(filter.contains_bytes(b"ada") && !filter.contains("ada"));
    /// # Ok::<(), koel::FilterError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`ScalableFilterBuilder::from_keys`].
    pub fn from_keys_bytes<Q: AsRef<[u8]>>(
        keys: impl IntoIterator<Item = Q>,
        false_positive_rate: f64,
    ) -> Result<Self, FilterError> {
        Self::builder().false_positive_rate(false_positive_rate).from_keys_bytes(keys)
    }
}

impl<S> ScalableCuckooFilter<S> {
    /// A filter of these tables; an error, if there is no memory for its locks.
    pub(super) fn with_chain(
        turns: Turns,
        plan: Plan,
        chain: Chain,
        max_duplicates: usize,
        hasher: S,
    ) -> Self {
        let max_memory = AtomicUsize::new(usize::MAX);
        ScalableCuckooFilter {
            plan,
            chain,
            max_duplicates,
            max_memory,
            moving: Mutex::new(()),
            turns,
            hasher,
        }
    }

    /// How many keys there are: inserted and not removed. Exact while nobody writes or compacts: what is moved meanwhile may
    /// count twice, or not at all.
    pub fn len(&self) -> usize {
        self.chain.levels().iter().map(|level| level.inner.table.len()).fold(0, usize::saturating_add)
    }

    /// Whether there are no keys.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many slots there are now.
    pub fn capacity(&self) -> usize {
        self.chain.levels().iter().map(|level| level.inner.slots()).fold(0, usize::saturating_add)
    }

    /// For how many different keys there is room when it has all tables that it can have: as many as 94% of their slots, in
    /// buckets of one, two and eight slots 37 to 40, 82 to 84 and 97 to 98%, by how large the first table is. Some more may
    /// find room, in buckets of one twice as many; less do, if [asked-for
    /// fingerprints](ScalableFilterBuilder::fingerprint_bits) are shorter than six bits, and in a few of a thousand filters
    /// with buckets of one that can have one table only, where three keys share both of theirs: perhaps half as many. A
    /// [limit](Self::max_memory) of its memory may make it full earlier. More than a `usize` counts are `usize::MAX`.
    ///
    /// It depends on the rate, as each further table takes one bit more, and a fingerprint has 32 at the most; and on the
    /// [capacity](ScalableFilterBuilder::capacity) of the first table. [`new`](ScalableCuckooFilter::new) has a list.
    ///
    /// ```
    /// let of = |keys| koel::ScalableCuckooFilter::builder().capacity(keys).false_positive_rate(1e-8).build();
    /// assert_eq!(of(3500)?.max_keys(), 11_556); // a table with fingerprints of 31 bits, and one with 32
    /// assert!(of(1_000_000)?.max_keys() > 3_000_000);
    /// # Ok::<(), koel::FilterError>(())
    /// ```
    pub fn max_keys(&self) -> usize {
        self.plan.max_keys()
    }

    /// Keys by slots, 0 to 1.
    pub fn load_factor(&self) -> f64 {
        self.len() as f64 / self.capacity() as f64
    }

    /// Bytes that the filter's tables have from the allocator. A table that was emptied is given back when no look-up is
    /// left that may see it.
    pub fn memory_usage(&self) -> usize {
        self.chain.levels().iter().map(|level| level.inner.table.memory_usage()).sum()
    }

    /// How often a key may be there: what [the builder](ScalableFilterBuilder::max_duplicates) was asked for, or has chosen.
    ///
    /// ```
    /// let filter = koel::ScalableCuckooFilter::builder().max_duplicates(2).build()?;
    /// assert_eq!(filter.max_duplicates(), 2);
    /// // Of a filter that comes from bytes as well.
    /// assert_eq!(koel::ScalableCuckooFilter::from_bytes(&filter.to_bytes())?.max_duplicates(), 2);
    /// # Ok::<(), koel::FilterError>(())
    /// ```
    pub fn max_duplicates(&self) -> usize {
        self.max_duplicates
    }

    /// The most bytes that its tables may take, if there is a [limit](Self::set_max_memory).
    pub fn max_memory(&self) -> Option<usize> {
        // Relaxed: a number to look at.
        let bytes = self.max_memory.load(Ordering::Relaxed);
        (bytes < usize::MAX).then_some(bytes)
    }

    /// Sets the most bytes that its tables may take, as [`ScalableFilterBuilder::max_memory`]; `None` for no limit. A filter
    /// that has more keeps what it has. A clone has the same limit; it is no part of the filter's bytes, so set it again where
    /// they are read.
    ///
    /// ```
    /// let filter = koel::ScalableCuckooFilter::new(0.01)?;
    /// filter.set_max_memory(Some(100_000));
    /// let inserted = (0_usize..).take_while(|key| filter.insert(key).is_ok()).count();
    /// assert!(filter.memory_usage() <= 100_000 && filter.load_factor() > 0.9);
    /// filter.set_max_memory(None);
    /// assert!(filter.insert(&inserted).is_ok());
    /// # Ok::<(), koel::FilterError>(())
    /// ```
    pub fn set_max_memory(&self, bytes: Option<usize>) {
        // Relaxed: who is just adding a table may look before or after.
        self.max_memory.store(bytes.unwrap_or(usize::MAX), Ordering::Relaxed);
    }

    /// How often a look-up of an absent key is expected to say that it is present, as full as the filter is now, 0 to 1.
    pub fn false_positive_rate(&self) -> f64 {
        rate_of_any(self.chain.levels().iter().map(|level| level.inner.rate()))
    }

    /// How often look-ups of random hashes did say so, of `probes`: 0 to 1. Changes nothing.
    pub fn measure_false_positive_rate(&self, probes: usize) -> f64 {
        measured_rate(probes, |hash| self.contains_hash(hash))
    }

    /// What the filter is made of and how full it is. Locks each segment for a moment.
    ///
    /// ```
    /// let filter = koel::ScalableCuckooFilter::from_keys(0..20_000, 0.001)?;
    /// assert!((20_000..100_000).all(|key| filter.insert(&key).is_ok()));
    /// let tables = filter.info().tables;
    /// assert!(tables.len() > 1 && tables[1].slots > tables[0].slots, "each is larger than the one before");
    /// println!("{}", filter.info());
    /// # Ok::<(), koel::FilterError>(())
    /// ```
    pub fn info(&self) -> ScalableInfo {
        let levels = self.chain.levels();
        let tables = levels.iter().rev().map(|level| {
            let table = &level.inner.table;
            TableInfo::new(&level.inner.shape(), table.len(), table.memory_usage(), table.displacements())
        });
        ScalableInfo {
            tables: tables.collect(),
            max_keys: self.max_keys(),
            max_duplicates: self.max_duplicates,
        }
    }

    /// Slots of the first table.
    pub(crate) fn first_slots(&self) -> usize {
        self.chain.levels().last().map_or(0, |level| level.inner.slots())
    }

    /// The hash function.
    pub fn hasher(&self) -> &S {
        &self.hasher
    }

    /// Removes all keys, a segment at a time. Tables stay; [`ScalableCuckooFilter::compact`] gives them back, and where it is
    /// emptying a segment meanwhile, that is waited for.
    pub fn clear(&self) {
        // Newest first: what a compaction moves meanwhile goes to an older table, which comes later [I3].
        self.chain.levels().iter().for_each(|level| level.inner.clear());
    }

    /// [`ScalableCuckooFilter::insert`] of a key whose hash you have. All 64 bits should be well mixed.
    ///
    /// # Errors
    ///
    /// As [`ScalableCuckooFilter::insert`].
    pub fn insert_hash(&self, hash: u64) -> Result<(), Full> {
        self.insert_digest(Digest::new(hash))
    }

    pub(super) fn insert_digest(&self, digest: Digest) -> Result<(), Full> {
        if self.insert_below(digest, self.max_duplicates)? { Ok(()) } else { Err(Full::NOTHING) }
    }

    /// Inserts a copy, unless there are so many; whether there were fewer.
    #[inline(always)]
    fn insert_below(&self, digest: Digest, most: usize) -> Result<bool, Full> {
        let levels = self.chain.levels();
        let places = Places::fetched(&levels, digest);
        if places.count() >= most && places.count_locked() >= most {
            return Ok(false);
        }
        if places.insert() {
            return Ok(true);
        }
        drop(levels);
        let inserted = self.insert_growing(digest);
        self.chain.flush();
        inserted.map(|()| true)
    }

    /// Inserts what has found no room, and adds tables for it, while nobody else does and no table is being emptied: one that
    /// takes nothing for the time being is no reason to add another.
    #[cold]
    fn insert_growing(&self, digest: Digest) -> Result<(), Full> {
        let restructuring = self.chain.lock();
        loop {
            let levels = self.chain.levels();
            let places = Places::new(&levels, digest);
            if places.insert() {
                return Ok(());
            }
            if let Err(full) = self.grow(&restructuring, &levels) {
                return if places.insert_displacing_older() { Ok(()) } else { Err(full) };
            }
        }
    }

    /// [`ScalableCuckooFilter::insert_unique`] of a key whose hash you have.
    ///
    /// # Errors
    ///
    /// As [`ScalableCuckooFilter::insert`].
    pub fn insert_unique_hash(&self, hash: u64) -> Result<bool, Full> {
        self.insert_unique_digest(Digest::new(hash))
    }

    pub(super) fn insert_unique_digest(&self, digest: Digest) -> Result<bool, Full> {
        let is_there = || {
            // What is seen may be there by chance, and gone when that has been changed.
            self.contains_digest(digest) && Places::new(&self.chain.levels(), digest).count_locked() > 0
        };
        if is_there() {
            return Ok(false);
        }
        // Whoever was inserting it has done so, and it is looked for once more.
        let _turn = self.turns.lock(digest);
        match self.insert_below(digest, 1) {
            // There was no room, as `insert` has put it there meanwhile.
            Err(_) if is_there() => Ok(false),
            inserted => inserted,
        }
    }

    /// [`ScalableCuckooFilter::contains`] of a key whose hash you have.
    #[inline]
    pub fn contains_hash(&self, hash: u64) -> bool {
        self.contains_digest(Digest::new(hash))
    }

    #[inline]
    fn contains_digest(&self, digest: Digest) -> bool {
        match self.chain.alone() {
            Some(inner) => inner.contains(digest),
            None => self.any_contains(digest),
        }
    }

    /// `contains_hash`, in a filter that has grown.
    #[inline(never)]
    fn any_contains(&self, digest: Digest) -> bool {
        Places::fetched(&self.chain.levels(), digest).contains()
    }

    /// [`ScalableCuckooFilter::remove`] of a key whose hash you have.
    pub fn remove_hash(&self, hash: u64) -> bool {
        self.remove_digest(Digest::new(hash))
    }

    pub(super) fn remove_digest(&self, digest: Digest) -> bool {
        Places::fetched(&self.chain.levels(), digest).remove()
    }

    /// [`ScalableCuckooFilter::count`] of a key whose hash you have.
    pub fn count_hash(&self, hash: u64) -> usize {
        Places::fetched(&self.chain.levels(), Digest::new(hash)).count()
    }

    /// Gives digests to `fill`, for the oldest table of a filter that nobody else uses; what `fill` leaves over.
    pub(super) fn fill_oldest(
        &mut self,
        digests: Vec<Digest>,
        fill: impl FnOnce(&Inner, Vec<Digest>) -> Result<Vec<Digest>, FilterError>,
    ) -> Result<Vec<Digest>, FilterError> {
        let levels = self.chain.levels();
        let oldest = levels.last().filter(|level| {
            // As many copies as two buckets hold are no more than a key may have.
            2 * level.inner.layout.format.bucket_slots as usize <= self.max_duplicates
        });
        match oldest {
            Some(level) => fill(&level.inner, digests),
            None => Ok(digests),
        }
    }

    /// Adds a table to these, which are all there are.
    fn grow(&self, restructuring: &Restructuring<'_>, levels: &[Level]) -> Result<(), Full> {
        let index = levels[0].index + 1;
        let shape = self.plan.shape(index).ok_or(Full::NOTHING)?;
        let bytes: usize = levels.iter().map(|level| level.inner.table.memory_usage()).sum();
        if bytes.saturating_add(Inner::bytes(&shape)) > self.max_memory().unwrap_or(usize::MAX) {
            return Err(Full::NOTHING);
        }
        let inner = Inner::new(shape, None).map_err(|_| Full::NOTHING)?;
        let mut longer = with_room(levels.len() + 1).map_err(|_| Full::NOTHING)?;
        longer.push(Level::new(inner, index));
        longer.extend_from_slice(levels);
        if restructuring.replace(longer) { Ok(()) } else { Err(Full::NOTHING) }
    }
}

impl<S: BuildHasher> ScalableCuckooFilter<S> {
    /// The hash of a key, for the `_hash` forms.
    #[inline]
    pub fn hash<Q: Hash + ?Sized>(&self, key: &Q) -> u64 {
        self.hasher.hash_one(key)
    }

    /// The hash of bytes, for the `_hash` forms: that of a single `write`.
    #[inline]
    pub fn hash_bytes(&self, key: &[u8]) -> u64 {
        hash_bytes(&self.hasher, key)
    }

    /// Inserts a key; once more, if it is there.
    ///
    /// # Errors
    ///
    /// [`Full`] if it is there as often as it may be; if the filter cannot grow, because fingerprints would be wider than
    /// 32 bits or segments more than 65,536, because its tables would take [more memory than they
    /// may](ScalableFilterBuilder::max_memory), or for lack of memory. Nothing was changed.
    ///
    /// ```
    /// let filter = koel::ScalableCuckooFilter::new(0.01)?;
    /// filter.insert("ada")?;
    /// assert!(filter.contains("ada"));
    /// # Ok::<(), koel::FilterError>(())
    /// ```
    #[doc(alias = "add")]
    #[inline]
    pub fn insert<Q: Hash + ?Sized>(&self, key: &Q) -> Result<(), Full> {
        self.insert_hash(self.hash(key))
    }

    /// Inserts a key unless it is there, or seems to be. Whether it was inserted: of several threads that do so for one key
    /// at the same moment one is told that it was. Takes the lock of the key's segment, in each table if it is there, and
    /// if not waits for other keys that are just being inserted so: one in sixteen, also for one that waits for a compaction.
    ///
    /// Where keys are removed, take [`insert`](Self::insert): one that only seemed to be there is not in, and goes with the key
    /// that it was taken for. See [duplicates](crate::CuckooFilter#duplicates).
    ///
    /// # Errors
    ///
    /// As [`ScalableCuckooFilter::insert`].
    ///
    /// ```
    /// let filter = koel::ScalableCuckooFilter::new(1e-6)?;
    /// assert_eq!(filter.insert_unique("ada"), Ok(true));
    /// assert_eq!(filter.insert_unique("ada"), Ok(false));
    /// # Ok::<(), koel::FilterError>(())
    /// ```
    #[doc(alias = "check_and_set")]
    #[doc(alias = "insert_if_not_contained")]
    #[doc(alias = "set")]
    #[doc(alias = "test_and_add")]
    #[inline]
    pub fn insert_unique<Q: Hash + ?Sized>(&self, key: &Q) -> Result<bool, Full> {
        self.insert_unique_hash(self.hash(key))
    }

    /// Whether a key is there: false is certain; true is wrong at the false-positive rate. Never waits.
    ///
    /// ```
    /// let filter = koel::ScalableCuckooFilter::from_keys(["ada"], 1e-8)?;
    /// assert!(filter.contains("ada") && !filter.contains("bob"));
    /// # Ok::<(), koel::FilterError>(())
    /// ```
    #[doc(alias = "check")]
    #[inline]
    pub fn contains<Q: Hash + ?Sized>(&self, key: &Q) -> bool {
        self.contains_hash(self.hash(key))
    }

    /// Removes one copy of a key, from the newest table that has it. False: it was not there. Only for keys that were
    /// inserted.
    ///
    /// ```
    /// let filter = koel::ScalableCuckooFilter::from_keys(["ada"], 1e-6)?;
    /// assert!(filter.remove("ada") && !filter.remove("ada"));
    /// # Ok::<(), koel::FilterError>(())
    /// ```
    #[doc(alias = "delete")]
    #[inline]
    pub fn remove<Q: Hash + ?Sized>(&self, key: &Q) -> bool {
        self.remove_hash(self.hash(key))
    }

    /// How often a key was inserted and not removed, in all tables. Too many, if other keys have its fingerprint and buckets; a
    /// copy that an insertion or a compaction is just moving may count twice.
    ///
    /// ```
    /// let filter = koel::ScalableCuckooFilter::new(1e-6)?;
    /// filter.insert("ada")?;
    /// filter.insert("ada")?;
    /// assert_eq!((filter.count("ada"), filter.count("bob")), (2, 0));
    /// # Ok::<(), koel::FilterError>(())
    /// ```
    pub fn count<Q: Hash + ?Sized>(&self, key: &Q) -> usize {
        self.count_hash(self.hash(key))
    }

    /// Inserts the bytes of a key.
    ///
    /// # Errors
    ///
    /// As [`ScalableCuckooFilter::insert`].
    #[inline]
    pub fn insert_bytes(&self, key: &[u8]) -> Result<(), Full> {
        self.insert_hash(self.hash_bytes(key))
    }

    /// Inserts the bytes of a key, unless they are there. As [`ScalableCuckooFilter::insert_unique`].
    ///
    /// # Errors
    ///
    /// As [`ScalableCuckooFilter::insert`].
    #[inline]
    pub fn insert_unique_bytes(&self, key: &[u8]) -> Result<bool, Full> {
        self.insert_unique_hash(self.hash_bytes(key))
    }

    /// Whether the bytes of a key are there.
    #[inline]
    pub fn contains_bytes(&self, key: &[u8]) -> bool {
        self.contains_hash(self.hash_bytes(key))
    }

    /// Removes one copy of the bytes of a key.
    #[inline]
    pub fn remove_bytes(&self, key: &[u8]) -> bool {
        self.remove_hash(self.hash_bytes(key))
    }

    /// How often the bytes of a key were inserted and not removed. As [`ScalableCuckooFilter::count`].
    pub fn count_bytes(&self, key: &[u8]) -> usize {
        self.count_hash(self.hash_bytes(key))
    }
}

impl<S> fmt::Debug for ScalableCuckooFilter<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScalableCuckooFilter")
            .field("plan", &self.plan)
            .field("tables", &self.chain.levels().len())
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}
