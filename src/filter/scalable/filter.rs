//! [`ScalableCuckooFilter`]: the growing filter.

use core::fmt;
use core::hash::Hash;
use core::panic::{RefUnwindSafe, UnwindSafe};

use super::super::collect::with_room;
use super::super::error::FilterError;
use super::super::hasher::Xxh3;
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

/// A [`CuckooFilter`](crate::CuckooFilter) that grows: tables are added as they are needed, and the false-positive rate of all
/// of them together stays within the requested rate.
///
/// Every method takes `&self`. Look-ups take no lock and never wait, even while the filter grows or is
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
/// A look-up or removal goes from the newest table to the oldest until one has the key. An absent key costs a look at each
/// table. So does an insertion, which counts the key's copies; it then takes a free slot of the newest table, or of an older
/// one, before it displaces others. So the more often the filter had to double, the slower it is, though the waits for large
/// tables overlap: if it has grown two-thousandfold, hits take five to seven times as long, misses eight times and more. Begin
/// with the right [capacity](ScalableFilterBuilder::capacity).
///
/// A table that [`compact`](Self::compact) has given back is freed by the thread that looked at it last, which may do so in a
/// look-up. Fingerprints are one bit wider in each further table, and in the first table they are one bit wider than in a
/// [`CuckooFilter`](crate::CuckooFilter) of the same rate.
///
/// # Union
///
/// There is no `try_union`. A fingerprint can be moved to an older table, which requires fewer of its bits, but not to a newer
/// one: the bits that it would need are gone with the key. So the contents of the other filter's oldest table would have to go
/// into this one's oldest, which is full once the filter has grown; and to append the other's tables to this chain would add up
/// both rates, beyond the requested rate. Insert the keys, or unite filters of [fixed
/// capacity](crate::CuckooFilter::try_union).
///
/// # Keys, duplicates, removing
///
/// As in a [`CuckooFilter`](crate::CuckooFilter#keys); a key may be present
/// [`max_duplicates`](ScalableFilterBuilder::max_duplicates) times. Threads that [`insert`](Self::insert) one key at the same
/// moment may each add one more copy than that. A key that all threads insert by [`insert_unique`](Self::insert_unique) is
/// present once.
pub struct ScalableCuckooFilter<S = Xxh3> {
    pub(super) plan: Plan,
    pub(super) chain: Chain,
    pub(super) max_duplicates: usize,
    /// Bytes that all tables may take before another one is added; `usize::MAX`: without a limit.
    max_memory: AtomicUsize,
    /// Held by a thread that moves fingerprints between tables, or must not see them move.
    pub(super) moving: Mutex<()>,
    /// Turns of threads that insert keys that are not present.
    turns: Turns,
    pub(super) hasher: S,
}

/// A panic in user code leaves the filter whole; the work that `insert_many` and its kin did before it stays done.
impl<S: RefUnwindSafe> RefUnwindSafe for ScalableCuckooFilter<S> {}
/// A panic in user code leaves the filter whole; the work that `insert_many` and its kin did before it stays done.
impl<S: UnwindSafe> UnwindSafe for ScalableCuckooFilter<S> {}

impl ScalableCuckooFilter {
    /// Creates a filter with this false-positive rate. Its first table is made for 3,500 keys. Each further table is twice as
    /// large, and its fingerprints are one bit longer, up to 32 bits. So the lower the rate, the fewer keys there is room for
    /// in all:
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
    /// A key that has no room is refused with [`Full`]. Set the [capacity](ScalableFilterBuilder::capacity) to raise the limit:
    /// at low rates, a first table that is twice as large has room for twice as many keys in all. [`max_keys`](Self::max_keys)
    /// returns this number.
    ///
    /// # Errors
    ///
    /// If the rate is not above 0 and below 1, or lower than is possible.
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

    /// Returns a builder.
    pub fn builder() -> ScalableFilterBuilder {
        ScalableFilterBuilder::default()
    }

    /// Builds a filter of these keys, whose first table is made for their number at this false-positive rate.
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

    /// Builds a filter of the bytes of these keys, as [`ScalableCuckooFilter::from_keys`] does: to be queried by the `_bytes`
    /// forms.
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
    /// Makes a filter of these tables; an error, if there is no memory for its locks.
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

    /// Returns the number of keys: inserted and not removed. Exact while nobody writes or compacts: keys that are moved
    /// meanwhile may be counted twice, or not at all.
    pub fn len(&self) -> usize {
        self.chain.levels().iter().map(|level| level.inner.table.len()).fold(0, usize::saturating_add)
    }

    /// Returns whether there are no keys.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the current number of slots.
    pub fn capacity(&self) -> usize {
        self.chain.levels().iter().map(|level| level.inner.slots()).fold(0, usize::saturating_add)
    }

    /// Returns the number of different keys for which there is room when the filter has all the tables that it can have: as
    /// many as 94% of their slots; in buckets of one, two and eight slots as many as 37 to 40%, 82 to 84% and 97 to 98%,
    /// depending on how large the first table is. Somewhat more may find room, in buckets of one twice as many. Fewer do if
    /// [requested fingerprints](ScalableFilterBuilder::fingerprint_bits) are shorter than six bits. Fewer do also, perhaps half
    /// as many, in a few of a thousand filters with buckets of one that can have only one table, where three keys share both of
    /// their buckets. A [limit](Self::max_memory) on its memory may make the filter full earlier. If the number exceeds what a
    /// `usize` can count, the result is `usize::MAX`.
    ///
    /// The number depends on the rate, as each further table takes one more bit, and a fingerprint has at most 32; and on the
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

    /// Returns the ratio of keys to slots, 0 to 1.
    pub fn load_factor(&self) -> f64 {
        self.len() as f64 / self.capacity() as f64
    }

    /// Returns the number of bytes that the filter's tables have from the allocator. A table that was emptied is given back
    /// when no look-up is left that may see it.
    pub fn memory_usage(&self) -> usize {
        self.chain.levels().iter().map(|level| level.inner.table.memory_usage()).sum()
    }

    /// Returns how often a key may be present: as requested of [the builder](ScalableFilterBuilder::max_duplicates), or as it
    /// has chosen.
    ///
    /// ```
    /// let filter = koel::ScalableCuckooFilter::builder().max_duplicates(2).build()?;
    /// assert_eq!(filter.max_duplicates(), 2);
    /// // The same holds for a filter that comes from bytes.
    /// assert_eq!(koel::ScalableCuckooFilter::from_bytes(&filter.to_bytes())?.max_duplicates(), 2);
    /// # Ok::<(), koel::FilterError>(())
    /// ```
    pub fn max_duplicates(&self) -> usize {
        self.max_duplicates
    }

    /// Returns the most bytes that the tables may take, if there is a [limit](Self::set_max_memory).
    pub fn max_memory(&self) -> Option<usize> {
        // Relaxed: a number to look at.
        let bytes = self.max_memory.load(Ordering::Relaxed);
        (bytes < usize::MAX).then_some(bytes)
    }

    /// Sets the most bytes that the tables may take, as [`ScalableFilterBuilder::max_memory`] does; `None` for no limit. A
    /// filter that has more keeps its tables. A clone has the same limit. The limit is not part of the filter's bytes, so set
    /// it again where they are read.
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
        // Relaxed: a thread that is just adding a table may look before or after.
        self.max_memory.store(bytes.unwrap_or(usize::MAX), Ordering::Relaxed);
    }

    /// Returns the expected probability, as full as the filter is now, that a look-up of an absent key says that it is present,
    /// 0 to 1.
    pub fn false_positive_rate(&self) -> f64 {
        rate_of_any(self.chain.levels().iter().map(|level| level.inner.rate()))
    }

    /// Measures, by `probes` look-ups of random hashes, how often they say that the key is present: 0 to 1. Changes nothing.
    pub fn measure_false_positive_rate(&self, probes: usize) -> f64 {
        measured_rate(probes, |hash| self.contains_hash(hash))
    }

    /// Returns what the filter consists of and how full it is. Locks each segment for a moment.
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

    /// Returns the hash function.
    pub fn hasher(&self) -> &S {
        &self.hasher
    }

    /// Removes all keys, a segment at a time. Tables stay; [`ScalableCuckooFilter::compact`] gives them back. If it is emptying
    /// a segment meanwhile, this call waits for it.
    pub fn clear(&self) {
        // Newest first: keys that a compaction moves meanwhile go to an older table, which comes later [I3].
        self.chain.levels().iter().for_each(|level| level.inner.clear());
    }

    /// As [`ScalableCuckooFilter::insert`], for a key whose hash you have. All 64 bits should be well mixed.
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

    /// Inserts a copy, unless there are this many already; returns whether there were fewer.
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

    /// Inserts a key that has found no room, and adds tables for it, while no other thread does so and no table is being
    /// emptied: a table that takes nothing for the time being is no reason to add another.
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

    /// As [`ScalableCuckooFilter::insert_unique`], for a key whose hash you have.
    ///
    /// # Errors
    ///
    /// As [`ScalableCuckooFilter::insert`].
    pub fn insert_unique_hash(&self, hash: u64) -> Result<bool, Full> {
        self.insert_unique_digest(Digest::new(hash))
    }

    pub(super) fn insert_unique_digest(&self, digest: Digest) -> Result<bool, Full> {
        let is_there = || {
            // A fingerprint that is seen may be there only by chance, and gone when the change of its bucket is complete.
            self.contains_digest(digest) && Places::new(&self.chain.levels(), digest).count_locked() > 0
        };
        if is_there() {
            return Ok(false);
        }
        // Any thread that was inserting the key has done so, and it is looked for once more.
        let _turn = self.turns.lock(digest);
        match self.insert_below(digest, 1) {
            // There was no room, because `insert` has put it there meanwhile.
            Err(_) if is_there() => Ok(false),
            inserted => inserted,
        }
    }

    /// As [`ScalableCuckooFilter::contains`], for a key whose hash you have.
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

    /// As [`ScalableCuckooFilter::remove`], for a key whose hash you have.
    pub fn remove_hash(&self, hash: u64) -> bool {
        self.remove_digest(Digest::new(hash))
    }

    pub(super) fn remove_digest(&self, digest: Digest) -> bool {
        Places::fetched(&self.chain.levels(), digest).remove()
    }

    /// As [`ScalableCuckooFilter::count`], for a key whose hash you have.
    pub fn count_hash(&self, hash: u64) -> usize {
        Places::fetched(&self.chain.levels(), Digest::new(hash)).count()
    }

    /// Gives digests to `fill`, for the oldest table of a filter that nobody else uses; returns the digests that `fill` leaves
    /// over.
    pub(super) fn fill_oldest(
        &mut self,
        digests: Vec<Digest>,
        fill: impl FnOnce(&Inner, Vec<Digest>) -> Result<Vec<Digest>, FilterError>,
    ) -> Result<Vec<Digest>, FilterError> {
        let levels = self.chain.levels();
        let oldest = levels.last().filter(|level| {
            // Two buckets do not hold more copies than a key may have.
            2 * level.inner.layout.format.bucket_slots as usize <= self.max_duplicates
        });
        match oldest {
            Some(level) => fill(&level.inner, digests),
            None => Ok(digests),
        }
    }

    /// Adds a table to these, which are all that there are.
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

impl<S> fmt::Debug for ScalableCuckooFilter<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScalableCuckooFilter")
            .field("plan", &self.plan)
            .field("tables", &self.chain.levels().len())
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}
