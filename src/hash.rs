//! From a key's hash to its place: prefix, bucket, tag, alternate bucket. Pure functions.
//!
//! One 64-bit hash, mixed well, is cut into independent parts: the high half, the *prefix*, selects the segment; the low half
//! selects the bucket by its top bits, and its lowest byte is the tag. Buckets are selected by multiplication (Lemire, "Fast
//! random integer generation in an interval", 2019), so that any number of buckets will do.

use core::any::TypeId;
use core::hash::{BuildHasher, Hash};
#[cfg(feature = "rayon")]
use core::ops::Range;

/// Where a key belongs, in every table: see [`Place`] for one table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Digest(u64);

impl Digest {
    /// Any digest, to fill an array with.
    pub(crate) const ZERO: Self = Digest(0);

    /// The digest of a key.
    #[inline]
    pub(crate) fn of<S: BuildHasher, Q: ?Sized + Hash>(key: &Q, hasher: &S) -> Self {
        let hash = hasher.hash_one(key);
        if is_final::<S>() { Digest(hash) } else { Digest::mixed(hash) }
    }

    /// Finalizes a hasher's output, however little mixed. The folded multiply alone would turn consecutive numbers into a
    /// lattice, in which those of one segment share a few of its buckets; so high bits are shifted down first (as in
    /// MurmurHash3).
    #[inline]
    pub(crate) fn mixed(hash: u64) -> Self {
        let spread = (hash ^ hash >> 32).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        Digest::new(spread ^ spread >> 29)
    }

    /// Mixes a hash by a folded multiply (as in wyhash and foldhash).
    #[inline]
    pub(crate) fn new(hash: u64) -> Self {
        // Part of the format of filters that are kept as bytes: `version_2_is_what_it_was` tests it. The constant is the
        // fraction of pi made odd: any odd, irregular 64-bit number will do.
        let wide = u128::from(hash) * 0x243F_6A88_85A3_08D3_u128;
        Digest((wide as u64) ^ ((wide >> 64) as u64))
    }

    /// A digest with these bits.
    #[cfg(test)]
    pub(crate) fn from_bits(bits: u64) -> Self {
        Digest(bits)
    }

    /// What finds an item again in its segment, whatever the segment's size: the half that selects its bucket, and its tag.
    #[inline]
    pub(crate) fn locator(self) -> u32 {
        self.0 as u32
    }

    /// The whole digest.
    #[inline]
    pub(crate) fn bits(self) -> u64 {
        self.0
    }

    /// The half that selects the segment; segments cover ranges of it.
    #[inline]
    pub(crate) fn prefix(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// The 1-byte tag, 1..=255: 0 marks an empty slot [I7].
    #[inline]
    pub(crate) fn tag(self) -> u8 {
        // Few segments are so large that these bits select buckets as well: 2^24 buckets.
        // In 32 bits: one instruction less.
        u32::from(self.0 as u8).max(1) as u8
    }

    /// The first bucket of two, among `buckets`.
    #[inline]
    pub(crate) fn bucket(self, buckets: u32) -> u32 {
        scale(self.0 as u32, buckets)
    }
}

/// Whether this hash function is known to spread keys over all 64 bits: to finalize its hashes again would take 2 to 9% of a
/// look-up.
#[inline(always)]
fn is_final<S>() -> bool {
    // The compiler knows the answer. (`TypeId::of` is not for types that may borrow; these do not.)
    let hasher = typeid::of::<S>();
    hasher == TypeId::of::<ahash::RandomState>() || hasher == TypeId::of::<std::hash::RandomState>()
}

/// `fraction / 2^32 * n`: maps a uniform 32-bit number to `0..n`.
#[inline]
pub(crate) fn scale(fraction: u32, n: u32) -> u32 {
    ((u64::from(fraction) * u64::from(n)) >> 32) as u32
}

/// If 2^32 prefixes are shared out among `parts`, in order: those of `prefixes` whose part lies entirely among `prefixes`.
#[cfg(feature = "rayon")]
pub(crate) fn whole_parts(prefixes: Range<u64>, parts: u64) -> Range<u64> {
    let begin = |part: u64| (part << 32).div_ceil(parts);
    let part_of = |prefix: u64| (prefix * parts) >> 32;
    // The first part that begins there or later; the last part that ends there or earlier ends where the next one begins.
    let first = prefixes.start.checked_sub(1).map_or(0, |before| part_of(before) + 1);
    let start = begin(first);
    start..begin(part_of(prefixes.end)).max(start)
}

/// The other bucket of an item: a function of bucket and tag only, and its own inverse [I2].
///
/// The two buckets of an item sum to a number that its tag selects, modulo the number of buckets. MemC3 xors
/// instead, which needs a power of two.
#[inline]
pub(crate) fn alternate(bucket: u32, tag: u8, buckets: u32) -> u32 {
    // Tags are spread over the whole 32-bit range (Knuth's multiplicative constant): sums in one arithmetic progression would
    // cut a table whose buckets are a multiple of 256 into parts that exchange no item.
    mirror(bucket, scale(u32::from(tag).wrapping_mul(0x9E37_79B1), buckets), buckets)
}

/// The bucket that makes `sum` with `bucket`, modulo the number of buckets: its own inverse [I2]. All are below 2^31.
#[inline]
pub(crate) fn mirror(bucket: u32, sum: u32, buckets: u32) -> u32 {
    // If it is below 0, it is the larger number. Without a condition, which the compiler may turn into a branch that is taken
    // at random.
    let other = sum.wrapping_sub(bucket);
    other.min(other.wrapping_add(buckets))
}

/// A key's two buckets and tag in a table of a given size.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    /// The bucket its hash selects.
    pub(crate) first: u32,
    /// That bucket's alternate.
    pub(crate) second: u32,
    /// The tag of its slot.
    pub(crate) tag: u8,
}

impl Place {
    /// The place of `digest` among `buckets`.
    #[inline]
    pub(crate) fn new(digest: Digest, buckets: u32) -> Self {
        let (first, tag) = (digest.bucket(buckets), digest.tag());
        Place { first, second: alternate(first, tag, buckets), tag }
    }

    /// The place of an item with this locator.
    #[inline]
    pub(crate) fn located(locator: u32, buckets: u32) -> Self {
        Self::new(Digest(locator.into()), buckets)
    }

    /// Bucket and lane for a lane, 0..8, of both buckets.
    #[inline(always)]
    pub(crate) fn slot(self, lane: u32) -> (u32, u32) {
        if lane < 4 { (self.first, lane) } else { (self.second, lane - 4) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(feature = "rayon")]
    #[test]
    fn whole_parts_are_those_that_begin_and_end_within() {
        for parts in [1_u64, 2, 3, 17, 258, 1000, 1 << 20] {
            let begins: Vec<u64> = (0..=parts.min(1000)).map(|part| (part << 32).div_ceil(parts)).collect();
            for pair in begins.windows(2) {
                let (begin, end) = (pair[0], pair[1]);
                assert_eq!(whole_parts(begin..end, parts), begin..end);
                assert!(whole_parts(begin + 1..end, parts).is_empty());
                assert!(whole_parts(begin..end - 1, parts).is_empty());
                assert_eq!(whole_parts(begin.saturating_sub(1)..end + 1, parts), begin..end, "of {parts}");
            }
            assert_eq!(whole_parts(0..1 << 32, parts), 0..1 << 32);
        }
        assert_eq!(whole_parts(5..1 << 31, 4), 1 << 30..1 << 31);
    }

    #[test]
    fn alternate_is_its_own_inverse_and_stays_in_range() {
        for buckets in [1, 2, 3, 7, 64, 1000, 1024, u32::MAX >> 2] {
            for tag in 1..=255 {
                for bucket in [0, 1, 2, 3, 500, 999, buckets / 2, buckets - 1] {
                    let bucket = bucket % buckets;
                    let other = alternate(bucket, tag, buckets);
                    assert!(other < buckets);
                    assert_eq!(alternate(other, tag, buckets), bucket, "{bucket} of {buckets}, tag {tag}");
                }
            }
        }
    }

    /// From one bucket, alternates lead to all others, and not all pairs are alike: each of four stripes has its share.
    #[test]
    fn no_part_of_a_table_is_by_itself() {
        for buckets in [256, 512, 1000, 1024, 15_360, 16_384] {
            let mut reached = vec![false; buckets as usize];
            let mut next = vec![0];
            let mut stripes = [0_u32; 4];
            while let Some(bucket) = next.pop() {
                if core::mem::replace(&mut reached[bucket as usize], true) {
                    continue;
                }
                for tag in 1..=255 {
                    let other = alternate(bucket, tag, buckets);
                    stripes[((bucket ^ other) & 3) as usize] += 1;
                    next.push(other);
                }
            }
            assert!(reached.iter().all(|&reached| reached), "{buckets} buckets");
            let fair = buckets * 255 / 4;
            assert!(
                stripes.iter().all(|&n| (fair / 5 * 4..fair / 4 * 5).contains(&n)),
                "{buckets}: {stripes:?}"
            );
        }
    }

    #[test]
    fn tags_are_never_zero_and_uniform_but_for_the_first() {
        let mut seen = [0_u32; 256];
        for key in 0..256_000 {
            seen[usize::from(Digest::new(key).tag())] += 1;
        }
        assert_eq!(seen[0], 0);
        assert!((1600..2400).contains(&seen[1]), "{seen:?}");
        assert!(seen[2..].iter().all(|&n| (800..1200).contains(&n)), "{seen:?}");
    }

    #[test]
    fn the_compiler_knows_whose_hashes_are_final() {
        type Fixed = core::hash::BuildHasherDefault<std::hash::DefaultHasher>;
        assert!(is_final::<ahash::RandomState>() && is_final::<std::hash::RandomState>());
        assert!(!is_final::<Fixed>() && !is_final::<&ahash::RandomState>() && !is_final::<u64>());
    }

    /// Each part of the digests of keys that hardly differ, as far as 256 values can show.
    fn spread_evenly<S: BuildHasher>(hasher: &S) {
        let keys: [fn(u64) -> u64; 4] =
            [|i| i, |i| i << 40, |i| i * 4096, |i| (i & 0xFF) << 56 | (i >> 8) << 3];
        let parts: [fn(Digest) -> u32; 3] =
            [|digest| digest.prefix() >> 24, |digest| digest.bucket(256), |digest| digest.tag().into()];
        for (pattern, key) in keys.iter().enumerate() {
            let mut seen = [[0_u32; 256]; 3];
            for i in 0..256_000 {
                let digest = Digest::of(&key(i), hasher);
                parts.iter().zip(&mut seen).for_each(|(part, seen)| seen[part(digest) as usize] += 1);
            }
            // No tag is 0, and tag 1 has as many more.
            seen[2][0] = seen[2][1] / 2;
            seen[2][1] -= seen[2][0];
            for (part, seen) in seen.iter().enumerate() {
                assert!(
                    seen.iter().all(|&n| (800..1200).contains(&n)),
                    "keys {pattern}, part {part}: {seen:?}"
                );
            }
        }
    }

    #[test]
    fn final_hashes_are_spread_evenly() {
        for seed in 0..20 {
            spread_evenly(&ahash::RandomState::with_seeds(seed, seed, seed, seed));
            spread_evenly(&ahash::RandomState::with_seeds(seed, 1 << seed, !seed, 77));
        }
        spread_evenly(&std::hash::RandomState::new());
    }

    #[test]
    fn sequential_integers_fill_buckets_evenly() {
        let mut seen = [0_u32; 1000];
        for key in 0..1_000_000 {
            seen[Digest::new(key).bucket(1000) as usize] += 1;
        }
        assert!(seen.iter().all(|&n| (800..1200).contains(&n)), "{seen:?}");
    }
}
