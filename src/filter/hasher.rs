//! [`Xxh3`]: the default hash function of filters, the same on every platform and in every version.

use core::fmt;
use core::hash::{BuildHasher, Hasher};

use twox_hash::XxHash3_64;

use crate::sync::SCHEDULED;

/// XXH3 with a 64-bit seed: the default hash function of filters.
///
/// One `write` of bytes gives the result of the reference implementation's `XXH3_64bits_withSeed`. If a key makes several
/// writes, they are chained: each one's hash is the next one's seed. Integers are written as little-endian bytes, `usize` and
/// `isize` as 64 bits.
///
/// ```
/// use std::hash::{BuildHasher, Hasher};
///
/// let xxh3 = koel::Xxh3::with_seed(0);
/// let mut hasher = xxh3.build_hasher();
/// hasher.write(b"");
/// assert_eq!(hasher.finish(), 0x2d06_8005_38d3_94c2);
/// ```
///
/// The seed is not a secret key: XXH3 is not made to withstand an attacker who can see answers. Give a filter a keyed
/// [`BuildHasher`] of your own if its keys come from adversaries.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Xxh3(Seeded);

/// A seed, and the first value that hashing integers derives from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Seeded {
    seed: u64,
    /// The value with which 4 to 8 bytes are combined: part of XXH3's default secret, the seed, and the seed once more with the
    /// bytes of its lower half in reverse order. Computed once, it saves a look-up in a filter 7 of 97 instructions.
    mask: u64,
}

impl Seeded {
    /// Bytes 8 to 15 of the default secret, combined with bytes 16 to 23.
    const SECRET: u64 = 0xC73A_B174_C5EC_D5A2;

    const fn new(seed: u64) -> Self {
        let upper = (seed as u32).swap_bytes() as u64;
        Seeded { seed, mask: Self::SECRET.wrapping_sub(seed ^ upper << 32) }
    }
}

impl Xxh3 {
    /// Makes the hash function with a seed.
    #[must_use]
    pub const fn with_seed(seed: u64) -> Self {
        Xxh3(Seeded::new(seed))
    }

    /// Returns the seed.
    #[must_use]
    pub const fn seed(&self) -> u64 {
        self.0.seed
    }
}

impl fmt::Debug for Xxh3 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Xxh3").field("seed", &self.seed()).finish()
    }
}

/// Returns the hash of bytes, by one write, which the `_bytes` forms of all filters use.
#[inline]
pub(crate) fn hash_bytes(hasher: &impl BuildHasher, key: &[u8]) -> u64 {
    let mut hasher = hasher.build_hasher();
    hasher.write(key);
    hasher.finish()
}

/// A hash function whose filters can be kept as bytes: the bytes describe it well enough to make it again. Derive `Clone`, so
/// that filters have it.
///
/// # The same everywhere
///
/// It must give a key the same hash wherever the bytes are read, on other machines and by later versions of it; otherwise a
/// filter denies keys that it has. When bytes are read, only [`FilterHasher::ID`] and the hash of a few bytes, by one
/// [`write`](Hasher::write), are checked. So write integers the same way everywhere. By default, the methods that [`Hasher`]
/// has for them, [`write_u64`](Hasher::write_u64) and its kin, pass on the bytes as they are in memory, and their order depends
/// on the machine; for a `usize`, so does their number. Override these methods, as here, or let keys be queried by bytes only,
/// in the `_bytes` forms.
///
/// The standard library's `DefaultHasher` and `ahash` may change with each version: do not use them for filters that are kept.
///
/// ```
/// use std::hash::{BuildHasher, Hasher};
///
/// use koel::{CuckooFilter, FilterHasher};
///
/// /// FNV-1a of 64 bits that begins with a seed, and is mixed when it ends.
/// #[derive(Clone)]
/// struct Fnv {
///     seed: u64,
/// }
///
/// struct FnvHasher(u64);
///
/// impl Hasher for FnvHasher {
///     fn write(&mut self, bytes: &[u8]) {
///         for byte in bytes {
///             self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
///         }
///     }
///
///     // Little-endian, and `usize` as 64 bits. The other signed integers end up here, too.
///     fn write_u16(&mut self, number: u16) {
///         self.write(&number.to_le_bytes());
///     }
///     fn write_u32(&mut self, number: u32) {
///         self.write(&number.to_le_bytes());
///     }
///     fn write_u64(&mut self, number: u64) {
///         self.write(&number.to_le_bytes());
///     }
///     fn write_u128(&mut self, number: u128) {
///         self.write(&number.to_le_bytes());
///     }
///     fn write_usize(&mut self, number: usize) {
///         self.write_u64(number as u64);
///     }
///     fn write_isize(&mut self, number: isize) {
///         self.write_i64(number as i64);
///     }
///
///     fn finish(&self) -> u64 {
///         // All bits of the result depend on all of the last bytes: the final mixing of SplitMix64.
///         let mut hash = self.0;
///         hash = (hash ^ hash >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
///         hash = (hash ^ hash >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
///         hash ^ hash >> 31
///     }
/// }
///
/// impl BuildHasher for Fnv {
///     type Hasher = FnvHasher;
///     fn build_hasher(&self) -> FnvHasher {
///         FnvHasher(0xcbf2_9ce4_8422_2325 ^ self.seed)
///     }
/// }
///
/// impl FilterHasher for Fnv {
///     const ID: u32 = 0x0001_0001;
///     fn seed(&self) -> u64 {
///         self.seed
///     }
///     fn from_seed(seed: u64) -> Self {
///         Fnv { seed }
///     }
/// }
///
/// let filter = CuckooFilter::builder().capacity(100).hasher(Fnv { seed: 7 }).build()?;
/// filter.insert("ada")?;
/// filter.insert(&1815_u64)?;
/// let copy = CuckooFilter::<Fnv>::from_bytes_as(&filter.to_bytes())?;
/// assert!(copy.contains("ada") && copy.contains(&1815_u64));
/// // Not with another hash function.
/// assert!(CuckooFilter::from_bytes(&filter.to_bytes()).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait FilterHasher: BuildHasher {
    /// Identifies the hash function. Numbers below 0x1_0000 are for this library: 1 is [`Xxh3`].
    const ID: u32;

    /// Returns the seed that it was made with; 0 if there is none.
    fn seed(&self) -> u64;

    /// Makes the hash function with this seed.
    fn from_seed(seed: u64) -> Self;
}

impl FilterHasher for Xxh3 {
    const ID: u32 = 1;

    fn seed(&self) -> u64 {
        self.0.seed
    }

    fn from_seed(seed: u64) -> Self {
        Xxh3::with_seed(seed)
    }
}

impl Default for Xxh3 {
    /// Makes the hash function with a seed that is different each time.
    fn default() -> Self {
        // Otherwise a schedule would not be the same when it is run again.
        let seed = if SCHEDULED { 0 } else { std::hash::RandomState::new().build_hasher().finish() };
        Xxh3::with_seed(seed)
    }
}

impl BuildHasher for Xxh3 {
    type Hasher = Xxh3Hasher;

    #[inline]
    fn build_hasher(&self) -> Xxh3Hasher {
        Xxh3Hasher(self.0)
    }
}

/// The [`Hasher`] of [`Xxh3`].
#[derive(Clone, Debug)]
pub struct Xxh3Hasher(Seeded);

impl Xxh3Hasher {
    /// One write's hash is the next one's seed.
    #[inline(always)]
    fn chain(&mut self, hash: u64) {
        self.0 = Seeded::new(hash);
    }

    /// `write`, for at most 240 bytes, whose number the compiler knows: the whole function is reduced to a few instructions.
    /// The library's `oneshot_with_seed` hides its constants from the compiler, which saves code where lengths are not known.
    #[inline(always)]
    fn write_short<const N: usize>(&mut self, bytes: &[u8; N]) {
        const { assert!(N <= 240) };
        // This few bytes are hashed with the seed alone, whatever the secret.
        let hash = XxHash3_64::oneshot_with_seed_and_secret(self.0.seed, &[], bytes);
        self.chain(hash.unwrap_or_else(|_| XxHash3_64::oneshot_with_seed(self.0.seed, bytes)));
    }

    /// `write`, for this many bytes, 4 to 8: the first four are the upper half of `halves`, the last four the lower one.
    #[inline(always)]
    fn write_halves(&mut self, halves: u64, bytes: u64) {
        // XXH3_len_4to8_64b, which ends with Pelle Evensen's rrmxmx.
        let mut hash = halves ^ self.0.mask;
        hash ^= hash.rotate_left(49) ^ hash.rotate_left(24);
        hash = hash.wrapping_mul(0x9FB2_1C65_1E98_DF25);
        hash ^= (hash >> 35) + bytes;
        hash = hash.wrapping_mul(0x9FB2_1C65_1E98_DF25);
        self.chain(hash ^ hash >> 28);
    }
}

impl Hasher for Xxh3Hasher {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        self.chain(XxHash3_64::oneshot_with_seed(self.0.seed, bytes));
    }

    #[inline]
    fn write_u8(&mut self, number: u8) {
        self.write_short(&[number]);
    }

    #[inline]
    fn write_u16(&mut self, number: u16) {
        self.write_short(&number.to_le_bytes());
    }

    #[inline]
    fn write_u32(&mut self, number: u32) {
        self.write_halves(u64::from(number) << 32 | u64::from(number), 4);
    }

    #[inline]
    fn write_u64(&mut self, number: u64) {
        self.write_halves(number.rotate_left(32), 8);
    }

    #[inline]
    fn write_u128(&mut self, number: u128) {
        self.write_short(&number.to_le_bytes());
    }

    #[inline]
    fn write_usize(&mut self, number: usize) {
        self.write_u64(number as u64);
    }

    #[inline]
    fn write_i8(&mut self, number: i8) {
        self.write_u8(number as u8);
    }

    #[inline]
    fn write_i16(&mut self, number: i16) {
        self.write_u16(number as u16);
    }

    #[inline]
    fn write_i32(&mut self, number: i32) {
        self.write_u32(number as u32);
    }

    #[inline]
    fn write_i64(&mut self, number: i64) {
        self.write_u64(number as u64);
    }

    #[inline]
    fn write_i128(&mut self, number: i128) {
        self.write_u128(number as u128);
    }

    #[inline]
    fn write_isize(&mut self, number: isize) {
        self.write_u64(number as i64 as u64);
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0.seed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_hash_as_their_little_endian_bytes() {
        for seed in [0, 1, 0x0123_4567_89AB_CDEF, u64::MAX] {
            for number in [0_u128, 1, 0x0102_0304_0506_0708_090A_0B0C_0D0E_0F10, u128::MAX] {
                let hash = |write: &dyn Fn(&mut Xxh3Hasher)| {
                    let mut hasher = Xxh3::with_seed(seed).build_hasher();
                    write(&mut hasher);
                    hasher.finish()
                };
                let bytes = |n: usize| XxHash3_64::oneshot_with_seed(seed, &number.to_le_bytes()[..n]);
                assert_eq!(hash(&|h| h.write_u8(number as u8)), bytes(1));
                assert_eq!(hash(&|h| h.write_u16(number as u16)), bytes(2));
                assert_eq!(hash(&|h| h.write_u32(number as u32)), bytes(4));
                assert_eq!(hash(&|h| h.write_u64(number as u64)), bytes(8));
                assert_eq!(hash(&|h| h.write_u128(number)), bytes(16));
                assert_eq!(hash(&|h| h.write_i64(number as i64)), bytes(8));
                // One write's hash is the next one's seed.
                let first = bytes(8);
                let second = XxHash3_64::oneshot_with_seed(first, &number.to_le_bytes()[..4]);
                let chained = hash(&|h| {
                    h.write_u64(number as u64);
                    h.write_u32(number as u32);
                });
                assert_eq!(chained, second);
            }
        }
    }
}
