//! fastbloom::BloomFilter and fastbloom::AtomicBloomFilter.

use fastbloom::{AtomicBloomFilter, BloomFilter};
use parking_lot::RwLock;

use super::{BuildShared, Expected, Filter, Full, Shared, Size};

/// With fewer keys than this, many more bits may be set than the formula says.
const MANY: u64 = 1000;

/// How often absent keys pass a filter of this many keys at most: what the formula says; with few keys, also what the bits that
/// they have set imply.
fn at_most(keys: u64, of_many: f64, of_few: f64) -> Expected {
    Expected::AtMost(if keys < MANY { of_many.max(of_few) } else { of_many })
}

/// The chance that this many bits of these words are all set.
fn chance(words: impl Iterator<Item = u64>, bits: usize, hashes: u32) -> f64 {
    let set: u64 = words.map(|word| u64::from(word.count_ones())).sum();
    (set as f64 / bits as f64).powi(hashes as i32)
}

/// A Bloom filter.
#[derive(Debug)]
pub struct FastBloom(BloomFilter<BuildShared>);

/// A Bloom filter that several threads may write at the same time.
#[derive(Debug)]
pub struct FastBloomAtomic(AtomicBloomFilter<BuildShared>);

impl Filter for FastBloom {
    const NAME: &'static str = "fastbloom";
    const REMOVES: bool = false;
    type Shared = RwLock<Self>;

    fn empty(size: Size) -> Result<Self, String> {
        let rate = size.rate().min(0.99);
        Ok(FastBloom(
            BloomFilter::with_false_pos(rate).hasher(BuildShared).expected_items(size.keys as usize),
        ))
    }

    #[inline]
    fn insert(&mut self, key: u64) -> Result<(), Full> {
        self.0.insert(&key);
        Ok(())
    }

    #[inline]
    fn contains(&self, key: u64) -> bool {
        self.0.contains(&key)
    }

    fn expected(&self, keys: u64) -> Expected {
        let of_many = self.0.expected_false_pos(keys as usize);
        at_most(keys, of_many, chance(self.0.iter(), self.0.num_bits(), self.0.num_hashes()))
    }

    fn share(self) -> RwLock<Self> {
        RwLock::new(self)
    }
}

impl Filter for FastBloomAtomic {
    const NAME: &'static str = "fastbloom-atomic";
    const SHARED_WRITES: bool = true;
    const REMOVES: bool = false;
    type Shared = Self;

    fn empty(size: Size) -> Result<Self, String> {
        let rate = size.rate().min(0.99);
        Ok(FastBloomAtomic(
            AtomicBloomFilter::with_false_pos(rate).hasher(BuildShared).expected_items(size.keys as usize),
        ))
    }

    #[inline]
    fn insert(&mut self, key: u64) -> Result<(), Full> {
        Shared::insert(self, key)
    }

    #[inline]
    fn contains(&self, key: u64) -> bool {
        self.0.contains(&key)
    }

    fn expected(&self, keys: u64) -> Expected {
        let of_many = self.0.expected_false_pos(keys as usize);
        at_most(keys, of_many, chance(self.0.iter(), self.0.num_bits(), self.0.num_hashes()))
    }

    fn share(self) -> Self {
        self
    }
}

impl Shared for FastBloomAtomic {
    type Filter = Self;

    #[inline]
    fn insert(&self, key: u64) -> Result<(), Full> {
        self.0.insert(&key);
        Ok(())
    }

    #[inline]
    fn contains(&self, key: u64) -> bool {
        self.0.contains(&key)
    }

    fn into_inner(self) -> Self {
        self
    }
}
