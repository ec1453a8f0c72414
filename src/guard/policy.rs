//! Filters for the blocks of sorted tables, as in LevelDB: built once from a block's keys, and kept as bytes next to it.

use std::sync::Arc;

use crate::filter::{CuckooFilter, FilterView, Xxh3};

/// Makes a filter of a block's keys, in the form of bytes, and looks keys up in such bytes.
///
/// ```
/// use koel::guard::{BloomPolicy, CuckooPolicy, FilterPolicy};
///
/// let policies: [Box<dyn FilterPolicy>; 2] = [Box::new(BloomPolicy::new(10)), Box::new(CuckooPolicy::new(0.01))];
/// for policy in policies {
///     let mut filter = Vec::new();
///     policy.build(&[b"ada", b"grace"], &mut filter);
///     assert!(policy.may_match(b"ada", &filter) && policy.may_match(b"grace", &filter));
///     assert!(!policy.may_match(b"mary", &filter));
/// }
/// ```
pub trait FilterPolicy: Send + Sync {
    /// Returns the name of the format that `build` writes: another format has another name. It should be stored with the bytes.
    fn name(&self) -> &'static str;

    /// Appends a filter of these keys to `out`. Keys may repeat, and be in any order.
    fn build(&self, keys: &[&[u8]], out: &mut Vec<u8>);

    /// Returns whether a key may be among those that a filter was built from. False is certain. If the bytes are not a filter
    /// of this policy, the result is true for all keys.
    fn may_match(&self, key: &[u8], filter: &[u8]) -> bool;
}

/// A pointer to a policy is a policy.
macro_rules! forwarded {
    ($(#[$docs:meta])* $pointer:ty) => {
        $(#[$docs])*
        impl<P: ?Sized + FilterPolicy> FilterPolicy for $pointer {
            fn name(&self) -> &'static str {
                (**self).name()
            }

            fn build(&self, keys: &[&[u8]], out: &mut Vec<u8>) {
                (**self).build(keys, out);
            }

            fn may_match(&self, key: &[u8], filter: &[u8]) -> bool {
                (**self).may_match(key, filter)
            }
        }
    };
}

forwarded! {
    /// A borrowed policy.
    &P
}
forwarded! {
    /// A policy that is chosen at run time: a `Box<dyn FilterPolicy>`.
    Box<P>
}
forwarded! {
    /// A shared policy, or one that is chosen at run time: an `Arc<dyn FilterPolicy>`.
    Arc<P>
}

/// LevelDB's Bloom filter, byte for byte: its tables can be read and written with it.
///
/// The bytes are this many bits per key, at least 64 in all, then one byte with the number of probes: 0.69 (the natural
/// logarithm of 2) times the bits per key, in 1..=30. Values above 30 in that byte are reserved for other encodings, and match
/// every key. Bits per key are limited to 64: with 30 probes more bits would let no fewer keys pass.
///
/// It is meant for blocks, as LevelDB's: all probes of a key come from one hash of 32 bits. An absent key that has the same
/// hash as a present one passes, however many bits there are per key: with a million keys 0.02% pass for that alone, with ten
/// million 0.2%, with a hundred million 2%. Beyond a few million keys use a [`CuckooPolicy`], or, for look-ups that do not
/// verify a checksum first, a filter that is kept: [`FilterView`], or a [`CuckooFilter`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BloomPolicy {
    bits_per_key: usize,
}

impl BloomPolicy {
    /// Creates a policy with this many bits per key: 10 let about one absent key in a hundred pass.
    #[must_use]
    pub fn new(bits_per_key: usize) -> Self {
        BloomPolicy { bits_per_key: bits_per_key.min(MOST_BITS) }
    }

    fn probes(self) -> u8 {
        ((self.bits_per_key as f64 * 0.69) as usize).clamp(1, 30) as u8
    }
}

/// The most bits per key that are worth their memory.
const MOST_BITS: usize = 64;

/// LevelDB's hash of bytes, which is like MurmurHash, with the seed of its Bloom filters.
fn bloom_hash(key: &[u8]) -> u32 {
    leveldb_hash(key, 0xbc9f_1d34)
}

fn leveldb_hash(bytes: &[u8], seed: u32) -> u32 {
    const M: u32 = 0xc6a4_a793;
    let words = bytes.chunks_exact(4);
    let rest = words.remainder();
    let start = seed ^ (bytes.len() as u32).wrapping_mul(M);
    let hash = words.fold(start, |hash, word| {
        let word = u32::from_le_bytes(*word.first_chunk().expect("four bytes"));
        let mixed = hash.wrapping_add(word).wrapping_mul(M);
        mixed ^ mixed >> 16
    });
    if rest.is_empty() {
        return hash;
    }
    let last = rest.iter().rev().fold(0, |word, byte| word << 8 | u32::from(*byte));
    let mixed = hash.wrapping_add(last).wrapping_mul(M);
    mixed ^ mixed >> 24
}

/// The bits of a key: double hashing, with the second hash a rotation of the first (Kirsch and Mitzenmacher, ESA 2006).
fn probes(key: &[u8], probes: u8, bits: usize) -> impl Iterator<Item = usize> {
    let hash = bloom_hash(key);
    let delta = hash.rotate_right(17);
    (0..u32::from(probes)).map(move |i| hash.wrapping_add(delta.wrapping_mul(i)) as usize % bits)
}

impl FilterPolicy for BloomPolicy {
    fn name(&self) -> &'static str {
        "leveldb.BuiltinBloomFilter2"
    }

    fn build(&self, keys: &[&[u8]], out: &mut Vec<u8>) {
        let bytes = keys.len().saturating_mul(self.bits_per_key).max(64).div_ceil(8);
        let start = out.len();
        out.resize(start + bytes, 0);
        for key in keys {
            for bit in probes(key, self.probes(), bytes * 8) {
                out[start + bit / 8] |= 1 << (bit % 8);
            }
        }
        out.push(self.probes());
    }

    fn may_match(&self, key: &[u8], filter: &[u8]) -> bool {
        let Some((&k, array)) = filter.split_last() else { return true };
        if k > 30 || array.is_empty() {
            return true;
        }
        probes(key, k, array.len() * 8).all(|bit| array[bit / 8] & 1 << (bit % 8) != 0)
    }
}

/// A cuckoo filter: from ten thousand keys on it takes fewer bits per key than a [`BloomPolicy`], at the same rate of 1.3% or
/// less. A block of a thousand keys takes a quarter more than Bloom's at 1%, a twentieth more at 0.1%.
///
/// The bytes are a [`CuckooFilter`]'s, with its header of 64 bytes and a checksum. A look-up verifies the checksum of all bytes
/// first. That is cheap for a block's filter, and damaged bytes match every key. For a whole table, keep a [`FilterView`]
/// instead, which verifies once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CuckooPolicy {
    rate: f64,
}

impl CuckooPolicy {
    /// Creates a policy with this rate of false positives, above 0 and below 1. The lowest rate is 1e-8, which is what
    /// fingerprints of 32 bits can do; rates below it are raised to it.
    ///
    /// # Panics
    ///
    /// If the rate is not above 0 and below 1.
    #[must_use]
    #[track_caller]
    pub fn new(false_positive_rate: f64) -> Self {
        let rate = false_positive_rate;
        assert!(rate > 0.0 && rate < 1.0, "CuckooPolicy: a false-positive rate of {rate}");
        CuckooPolicy { rate: rate.max(MIN_RATE) }
    }
}

/// The lowest rate that fingerprints of 32 bits achieve in any layout.
const MIN_RATE: f64 = 1e-8;
/// Seeds that are tried: more keys may share two buckets than fit if they were chosen for one seed; with the next seed they do
/// not.
const SEEDS: u64 = 4;

impl FilterPolicy for CuckooPolicy {
    fn name(&self) -> &'static str {
        "koel.CuckooFilter1"
    }

    fn build(&self, keys: &[&[u8]], out: &mut Vec<u8>) {
        let filter = (0..SEEDS).find_map(|seed| {
            let hasher = Xxh3::with_seed(seed);
            let builder = CuckooFilter::builder().capacity(keys.len().max(1)).false_positive_rate(self.rate);
            let filter = builder.hasher(hasher).build().ok()?;
            let fits = |key: &&[u8]| {
                let hash = filter.hash_bytes(key);
                filter.insert_unique_hash(hash).is_ok()
            };
            keys.iter().all(fits).then_some(filter)
        });
        // Without a filter no bytes are written: every key matches.
        if let Some(filter) = filter {
            out.extend(filter.to_bytes());
        }
    }

    fn may_match(&self, key: &[u8], filter: &[u8]) -> bool {
        FilterView::from_bytes(filter).map_or(true, |view| view.contains_bytes(key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_leveldbs() {
        let long: Vec<u8> = [
            0x01, 0xc0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x14, 0, 0, 0, 0, 0, 0x04, 0, 0, 0, 0,
            0x14, 0, 0, 0, 0x18, 0x28, 0, 0, 0, 0, 0, 0, 0, 0x02, 0, 0, 0, 0, 0, 0, 0,
        ]
        .to_vec();
        assert_eq!(bloom_hash(b""), 0xbc9f_1d34);
        assert_eq!(bloom_hash(&[0x62]), 0xef13_45c4);
        assert_eq!(bloom_hash(&[0xc3, 0x97]), 0x5b66_3814);
        assert_eq!(bloom_hash(&[0xe2, 0x99, 0xa5]), 0x323c_078f);
        assert_eq!(bloom_hash(&[0xe1, 0x80, 0xb9, 0x32]), 0xed21_633a);
        assert_eq!(leveldb_hash(&long, 0x1234_5678), 0xf333_dabb);
    }
}
