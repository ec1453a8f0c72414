//! The filters that are compared: one small file for each, behind one trait.
//!
//! As with the maps, the timed loops are generic over the trait and compiled for each filter. All hash with the same function
//! and seed, koel's default, wherever they let their user choose: so only the filters differ.

mod atomic_cuckoo;
mod cuckoofilter;
mod fastbloom;
mod koel;
mod koel_fixed;
mod qfilter;
mod scalable_cuckoo;
mod task;
mod xorf;

use std::hash::{BuildHasher, Hasher};

use ::koel::{Xxh3, Xxh3Hasher};
use clap::ValueEnum;
use parking_lot::RwLock;

pub use self::atomic_cuckoo::AtomicCuckoo;
pub use self::cuckoofilter::RustCuckooFilter;
pub use self::fastbloom::{FastBloom, FastBloomAtomic};
pub use self::koel::{KoelCuckoo, KoelGrown, KoelScalable, KoelSemiSorted};
pub use self::koel_fixed::KoelFixed;
pub use self::qfilter::Quotient;
pub use self::scalable_cuckoo::RustScalableCuckoo;
pub use self::task::Task;
pub use self::xorf::BinaryFuse;

/// How full tables are to be: as full as those of Fan et al. (CoNEXT 2014, section 5.1, b = 4).
pub const FULL: f64 = 0.95;

/// How many keys a filter that is to grow is built for: koel's default.
const FIRST_KEYS: usize = 3500;

/// Slots of a bucket, in every cuckoo filter here.
pub const BUCKET_SLOTS: u32 = 4;

/// The seed of the hasher that all filters get.
pub(crate) const SEED: u64 = 0x6B6F_656C;

/// Makes the hasher that all filters get: XXH3, with the same seed in every run.
#[derive(Debug, Clone, Copy, Default)]
pub struct BuildShared;

/// The hasher that all filters get.
#[derive(Debug, Clone)]
pub struct SharedHasher(Xxh3Hasher);

impl BuildHasher for BuildShared {
    type Hasher = SharedHasher;

    #[inline]
    fn build_hasher(&self) -> SharedHasher {
        SharedHasher::default()
    }
}

impl Default for SharedHasher {
    #[inline]
    fn default() -> Self {
        SharedHasher(Xxh3::with_seed(SEED).build_hasher())
    }
}

/// Forwards every method: XXH3 of an integer is faster than that of its bytes.
impl Hasher for SharedHasher {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        self.0.write(bytes);
    }

    #[inline]
    fn write_u8(&mut self, number: u8) {
        self.0.write_u8(number);
    }

    #[inline]
    fn write_u64(&mut self, number: u64) {
        self.0.write_u64(number);
    }

    #[inline]
    fn write_usize(&mut self, number: usize) {
        self.0.write_usize(number);
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0.finish()
    }
}

/// The size that a filter is built for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    /// Keys that it is to hold.
    pub keys: u64,
    /// Bits of a slot: of a fingerprint, unless buckets are semi-sorted. Filters that are built for an error rate get
    /// [`Size::rate`].
    pub bits: u32,
    /// How often a smaller filter has turned out too small.
    pub attempt: u32,
}

impl Size {
    /// The number of keys, doubled for each attempt: the size for filters that round to powers of two.
    pub fn doubled(&self) -> usize {
        (self.keys as usize) << self.attempt
    }

    /// The error rate of a cuckoo filter that has buckets of four and fingerprints of `bits` bits and is 95% full.
    pub fn rate(&self) -> f64 {
        slot_rate(FULL, self.bits)
    }
}

/// The chance that one of two buckets of four, filled to `load`, has a given fingerprint (Fan et al., section 5.1).
pub fn slot_rate(load: f64, bits: u32) -> f64 {
    2.0 * f64::from(BUCKET_SLOTS) * load / 2_f64.powi(bits as i32)
}

/// There was no room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Full;

/// How far an observed error rate may be from the expected one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Expected {
    /// About this rate.
    About(f64),
    /// This rate or less: a bound that the filter promises, or a formula that rounds up.
    AtMost(f64),
}

/// A filter of numbers.
pub trait Filter: Send + Sync + Sized + 'static {
    /// Its name in the tables.
    const NAME: &'static str;

    /// Whether several threads may insert at the same time without a lock around the filter.
    const SHARED_WRITES: bool = false;

    /// Whether keys can be removed.
    const REMOVES: bool = true;

    /// Whether it has slots whose number does not change as it fills.
    const FIXED_SLOTS: bool = false;

    /// Whether it looks batches up otherwise than one by one.
    const BATCHES: bool = false;

    /// Whether [`Filter::at_once`] builds it otherwise than key by key.
    const AT_ONCE: bool = false;

    /// Whether look-ups are all that is to be measured.
    const LOOKUPS_ONLY: bool = false;

    /// Whether a reader may miss a key that is there while another thread writes. That is a fault, but one that is reported and
    /// does not end the run: such misses are counted, and tables say how many there were.
    const MAY_MISS: bool = false;

    /// How threads share it: the filter itself, or a lock around it.
    type Shared: Shared<Filter = Self>;

    /// An empty filter.
    ///
    /// # Errors
    ///
    /// If no such filter can be made.
    fn empty(size: Size) -> Result<Self, String>;

    /// A filter of the keys, inserted one by one unless it has to know all beforehand.
    ///
    /// # Errors
    ///
    /// What is wrong, or `Ok(Err(Full))` if they did not fit.
    fn filled(size: Size, keys: impl Iterator<Item = u64> + Clone) -> Result<Result<Self, Full>, String> {
        let mut filter = Self::empty(size)?;
        for key in keys {
            if filter.insert(key).is_err() {
                return Ok(Err(Full));
            }
        }
        Ok(Ok(filter))
    }

    /// A filter built from all the keys at once; on the threads of the current rayon pool, if asked for. Never called unless
    /// [`Filter::AT_ONCE`].
    ///
    /// # Errors
    ///
    /// What is wrong.
    fn at_once(_: Size, _: &[u64], _parallel: bool) -> Result<Self, String> {
        Err("it is not built at once".to_owned())
    }

    /// Inserts a key.
    ///
    /// # Errors
    ///
    /// If there is no room.
    fn insert(&mut self, key: u64) -> Result<(), Full>;

    /// Removes a key; returns whether it was there. Never called unless [`Filter::REMOVES`].
    fn remove(&mut self, _: u64) -> bool {
        unreachable!("who removes nothing is not asked to")
    }

    /// Whether the filter takes a key for present.
    fn contains(&self, key: u64) -> bool;

    /// Looks up as many keys as there are places for answers; by default one by one.
    #[inline]
    fn contains_many(&self, keys: &[u64], found: &mut [bool]) {
        for (key, found) in keys.iter().zip(found) {
            *found = self.contains(*key);
        }
    }

    /// How many keys it has, if it counts them.
    fn entries(&self) -> Option<u64> {
        None
    }

    /// Keys divided by slots, if it has slots.
    fn load(&self) -> Option<f64> {
        None
    }

    /// The expected error rate with `keys` keys.
    fn expected(&self, keys: u64) -> Expected;

    /// Lets threads share it.
    fn share(self) -> Self::Shared;
}

/// How many slots an empty filter of [`Filter::FIXED_SLOTS`] has, computed from the load after a first key.
pub fn slots_by_first_key<F: Filter>(filter: &mut F, key: u64) -> usize {
    let inserted = filter.insert(key).is_ok();
    let load = filter.load().filter(|load| inserted && *load > 0.0);
    load.map_or(0, |load| (1.0 / load).round() as usize)
}

/// A filter that one thread writes while others read.
pub trait Shared: Send + Sync {
    /// What is shared.
    type Filter;

    /// Inserts a key.
    ///
    /// # Errors
    ///
    /// If there is no room.
    fn insert(&self, key: u64) -> Result<(), Full>;

    /// Removes a key; returns whether it was there. Never called unless [`Filter::REMOVES`].
    fn remove(&self, _: u64) -> bool {
        unreachable!("who removes nothing is not asked to")
    }

    /// Whether the filter takes a key for present.
    fn contains(&self, key: u64) -> bool;

    /// The filter back.
    fn into_inner(self) -> Self::Filter;
}

impl<F: Filter> Shared for RwLock<F> {
    type Filter = F;

    #[inline]
    fn insert(&self, key: u64) -> Result<(), Full> {
        self.write().insert(key)
    }

    #[inline]
    fn remove(&self, key: u64) -> bool {
        self.write().remove(key)
    }

    #[inline]
    fn contains(&self, key: u64) -> bool {
        self.read().contains(key)
    }

    fn into_inner(self) -> F {
        RwLock::into_inner(self)
    }
}

/// The filters by name, in the order in which tables list them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Id {
    /// koel::CuckooFilter, buckets of four
    Koel,
    /// koel::CuckooFilter, semi-sorted buckets: fingerprints that are one bit longer in the same memory
    KoelSemiSorted,
    /// koel::ScalableCuckooFilter, built for its keys
    KoelScalable,
    /// koel::ScalableCuckooFilter, starting with room for 3,500 keys: it has grown with its keys
    KoelGrown,
    /// A copy of koel's look-up, compiled for one layout of 8, 12 or 16 bits: shows what choosing layouts at run time costs
    KoelFixed,
    /// atomic_cuckoo_filter::CuckooFilter; at 12 bits it takes 16, as it has no 12
    AtomicCuckooFilter,
    /// cuckoofilter::CuckooFilter; 8 bits only
    Cuckoofilter,
    /// scalable_cuckoo_filter::ScalableCuckooFilter
    ScalableCuckooFilter,
    /// scalable_cuckoo_filter::ScalableCuckooFilter, starting as small as koel-grown; nothing is removed from it
    ScalableCuckooFilterGrown,
    /// qfilter::Filter, a quotient filter
    Qfilter,
    /// fastbloom::BloomFilter
    Fastbloom,
    /// fastbloom::AtomicBloomFilter
    FastbloomAtomic,
    /// xorf::BinaryFuse8 or 16: cannot change
    Xorf,
}

impl Id {
    /// Its name in the tables.
    pub fn name(self) -> &'static str {
        match self {
            Id::Koel => KoelCuckoo::NAME,
            Id::KoelSemiSorted => KoelSemiSorted::NAME,
            Id::KoelScalable => KoelScalable::NAME,
            Id::KoelGrown => KoelGrown::NAME,
            Id::KoelFixed => KoelFixed::<8>::NAME,
            Id::AtomicCuckooFilter => AtomicCuckoo::NAME,
            Id::Cuckoofilter => RustCuckooFilter::NAME,
            Id::ScalableCuckooFilter => RustScalableCuckoo::<false>::NAME,
            Id::ScalableCuckooFilterGrown => RustScalableCuckoo::<true>::NAME,
            Id::Qfilter => Quotient::NAME,
            Id::Fastbloom => FastBloom::NAME,
            Id::FastbloomAtomic => FastBloomAtomic::NAME,
            Id::Xorf => BinaryFuse::NAME,
        }
    }

    /// Whether it is koel.
    pub fn is_koel(self) -> bool {
        matches!(self, Id::Koel | Id::KoelSemiSorted | Id::KoelScalable | Id::KoelGrown | Id::KoelFixed)
    }

    /// Whether it is a rival that koel is measured against: another cuckoo or quotient filter. Bloom filters cannot remove,
    /// binary fuse filters cannot even insert; and one that has grown is shown only for comparison with koel-grown.
    pub fn is_rival(self) -> bool {
        matches!(self, Id::AtomicCuckooFilter | Id::Cuckoofilter | Id::ScalableCuckooFilter | Id::Qfilter)
    }

    /// Whether it can have slots of this many bits, or their error rate.
    pub fn takes_bits(self, bits: u32) -> bool {
        match self {
            Id::Cuckoofilter => bits == 8,
            Id::KoelFixed => [8, 12, 16].contains(&bits),
            // It halves the rate for each table, and has at most 32 bits.
            Id::KoelScalable => bits <= 28,
            // One more bit for each table, at most 32: 3,500 keys doubled fifteen times are 110 million.
            Id::KoelGrown => bits <= 16,
            _ => true,
        }
    }
}
