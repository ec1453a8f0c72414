//! The place of a key: segment, bucket, fingerprint, alternate bucket. Pure functions.
//!
//! ```text
//! digest                    / 2^64 * segments = segment, rest unused
//! digest, bytes reversed    / 2^64 * buckets  = bucket, rest / 2^64 * 2^bits = fingerprint
//! ```
//!
//! A digest is a fraction, and so are its bytes in reverse order: the part that selects the segment comes last there, where it
//! has no weight. When a fraction is multiplied by a number of buckets, the integer part is a bucket and the rest is a fraction
//! again, from which the fingerprint is taken: whatever the number of buckets, fingerprints are as evenly spread within one
//! bucket as they are among all. If 16 bits for the bucket and 32 for the fingerprint were cut out of the digest side by side,
//! they would be independent only with 2^16 buckets: 6% more false positives with two thirds as many (measured).
//!
//! Neither bucket nor fingerprint depends on the segments, and all are taken from the top, so that geometries nest: if two
//! tables have the same number of buckets in a segment, and one has `2^k` times the segments and wider fingerprints, the bucket
//! is the same in both, and the segment and fingerprint in the smaller table follow from those in the larger. In this way a
//! growing filter moves fingerprints from table to table, and computes a key's place once for all tables ([`Older`]).

use crate::hash::{Digest, mirror, scale};

/// The largest number of segments.
pub(crate) const MAX_SEGMENTS: u32 = 1 << 16;
/// The largest number of buckets in a segment.
pub(crate) const MAX_BUCKETS: u32 = 1 << 16;

/// How the slots of a table are arranged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Geometry {
    /// Segments, 1..=2^16.
    pub(crate) segments: u32,
    /// Buckets in each, 2..=2^16: even, so that no bucket is its own alternate.
    pub(crate) buckets: u32,
    /// Bits of a fingerprint, 2..=32.
    pub(crate) fingerprint_bits: u32,
    /// Upper bits of a fingerprint that select the alternate: all, unless the table is one of a growing filter.
    pub(crate) alternate_bits: u32,
    /// 2^`fingerprint_bits`, 2^`alternate_bits`: multiplication is cheaper than a shift by a number of bits that the compiler
    /// does not know.
    values: u64,
    upper_values: u64,
}

/// A key's place in a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    /// Its segment.
    pub(crate) segment: u32,
    /// The bucket that its hash selects.
    pub(crate) first: u32,
    /// That bucket's alternate.
    pub(crate) second: u32,
    /// Not 0.
    pub(crate) fingerprint: u32,
}

/// A value that has a place in a table: a place, or a digest, from which it is computed in the code of one layout, so that the
/// compiler may know the bits.
pub(crate) trait ToPlace: Copy {
    /// The place, in tables of this geometry, whose fingerprints have this many bits, if the compiler knows.
    fn place(self, geometry: &Geometry, bits: Option<u32>) -> Place;
}

/// A digest, in a table whose alternates are selected by whole fingerprints.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WholeDigest(pub(crate) Digest);

impl From<Digest> for WholeDigest {
    #[inline(always)]
    fn from(digest: Digest) -> Self {
        WholeDigest(digest)
    }
}

impl ToPlace for Place {
    #[inline(always)]
    fn place(self, _: &Geometry, _: Option<u32>) -> Place {
        self
    }
}

impl ToPlace for Digest {
    #[inline(always)]
    fn place(self, geometry: &Geometry, _: Option<u32>) -> Place {
        geometry.place(self)
    }
}

impl ToPlace for WholeDigest {
    #[inline(always)]
    fn place(self, geometry: &Geometry, bits: Option<u32>) -> Place {
        geometry.whole_place(self.0, bits)
    }
}

/// A place in a table of a growing filter, for an older one: with `2^-doublings` times the segments, and fingerprints that
/// are `doublings` bits shorter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Older<'a> {
    /// The place in a table that is `2^doublings` times as large.
    pub(super) newer: &'a Place,
    pub(super) doublings: u32,
}

/// By reference: otherwise a place is written field by field and then copied as a whole, and the copy has to wait for it (a
/// miss in five tables took 58 ns instead of 35).
impl ToPlace for &Older<'_> {
    #[inline(always)]
    fn place(self, geometry: &Geometry, _: Option<u32>) -> Place {
        let Place { segment, first, second, fingerprint } = *self.newer;
        let fingerprint = shorter(fingerprint, self.doublings);
        debug_assert_eq!(geometry.alternate(first, fingerprint), second, "the pair stays");
        Place { segment: segment >> self.doublings, first, second, fingerprint }
    }
}

/// A fingerprint without its lowest `bits`, where 0 becomes 1.
#[inline(always)]
fn shorter(fingerprint: u32, bits: u32) -> u32 {
    not_zero(fingerprint >> bits)
}

/// The bucket of a digest, and the fraction of a bucket that is left, in 2^-32.
#[inline(always)]
fn split(digest: Digest, buckets: u32) -> (u32, u32) {
    let product = u128::from(digest.bits().swap_bytes()) * u128::from(buckets);
    ((product >> 64) as u32, (product >> 32) as u32)
}

/// The upper bits of a 32-bit fraction; `values` is 2 to the power of their number.
#[inline(always)]
fn upper_part(fraction: u32, values: u64) -> u32 {
    ((u64::from(fraction) * values) >> 32) as u32
}

/// Returns 1 for 0. By an addition, because the compiler may turn a maximum into a branch.
#[inline(always)]
fn not_zero(number: u32) -> u32 {
    number + u32::from(number == 0)
}

impl Place {
    /// The number that selects the stripe of the pair: the same for both of its buckets, and different for most pairs of one
    /// bucket.
    #[inline(always)]
    pub(crate) fn pair(&self) -> u32 {
        pair(self.first, self.second)
    }
}

/// [`Place::pair`] of two buckets. One is odd and the other even: the lowest bit says nothing.
#[inline(always)]
pub(crate) fn pair(one: u32, other: u32) -> u32 {
    (one ^ other) >> 1
}

impl Geometry {
    /// This many segments of this many buckets.
    pub(crate) fn new(segments: u32, buckets: u32, fingerprint_bits: u32, alternate_bits: u32) -> Self {
        assert!((1..=MAX_SEGMENTS).contains(&segments));
        assert!((2..=MAX_BUCKETS).contains(&buckets) && buckets % 2 == 0);
        assert!(2 <= alternate_bits && alternate_bits <= fingerprint_bits && fingerprint_bits <= 32);
        Geometry {
            segments,
            buckets,
            fingerprint_bits,
            alternate_bits,
            values: 1 << fingerprint_bits,
            upper_values: 1 << alternate_bits,
        }
    }

    /// Whether alternates are selected by whole fingerprints: in all tables except those of growing filters.
    pub(crate) fn is_whole(&self) -> bool {
        self.alternate_bits == self.fingerprint_bits
    }

    /// The segment of a digest.
    #[inline(always)]
    pub(crate) fn segment(&self, digest: Digest) -> u32 {
        ((u128::from(digest.bits()) * u128::from(self.segments)) >> 64) as u32
    }

    /// The place of a digest.
    #[inline(always)]
    pub(crate) fn place(&self, digest: Digest) -> Place {
        self.place_by(digest, self.upper_values)
    }

    /// The place of a digest in a table whose alternates are selected by whole fingerprints: a few instructions fewer, and
    /// still fewer if the compiler knows a fingerprint's `bits`.
    #[inline(always)]
    fn whole_place(&self, digest: Digest, bits: Option<u32>) -> Place {
        debug_assert!(self.is_whole() && bits.is_none_or(|bits| bits == self.fingerprint_bits));
        let Some(bits) = bits else { return self.place_by(digest, self.values) };
        let (first, fraction) = split(digest, self.buckets);
        let fingerprint = not_zero(fraction >> (32 - bits));
        Place { segment: self.segment(digest), first, second: self.mirrored(first, fingerprint), fingerprint }
    }

    /// The place of a digest; `upper_values` is 2 to the power of the number of its fingerprint's upper bits that select the
    /// alternate.
    #[inline(always)]
    fn place_by(&self, digest: Digest, upper_values: u64) -> Place {
        let (first, fraction) = split(digest, self.buckets);
        Place {
            segment: self.segment(digest),
            first,
            second: self.mirrored(first, not_zero(upper_part(fraction, upper_values))),
            fingerprint: not_zero(upper_part(fraction, self.values)),
        }
    }

    /// The other bucket of a fingerprint: its own inverse [I2].
    #[inline(always)]
    pub(crate) fn alternate(&self, bucket: u32, fingerprint: u32) -> u32 {
        self.mirrored(bucket, shorter(fingerprint, self.fingerprint_bits - self.alternate_bits))
    }

    /// The two buckets have an odd sum, modulo an even number of buckets: they are never the same.
    #[inline(always)]
    fn mirrored(&self, bucket: u32, upper: u32) -> u32 {
        // Multiplied by 2^64 over the golden ratio (Knuth's multiplicative constant), with both halves of the product: the
        // upper half alone is nearly in arithmetic progression, paths come back to where they began, and tables of 8-bit
        // fingerprints fill to 95%, of 6-bit ones to 92%, instead of 97%.
        let product = u64::from(upper).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let mixed = (product >> 32) as u32 ^ product as u32;
        // The number of buckets is even: the odd number is below it, too.
        let sum = scale(mixed, self.buckets) | 1;
        mirror(bucket, sum, self.buckets)
    }

    /// All buckets.
    pub(crate) fn all_buckets(&self) -> u64 {
        u64::from(self.segments) * u64::from(self.buckets)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn geometry(segments: u32, buckets: u32, bits: u32) -> Geometry {
        Geometry::new(segments, buckets, bits, bits)
    }

    #[test]
    fn alternate_is_its_own_inverse_and_another_bucket() {
        for buckets in [2, 4, 6, 100, 1000, 65_534, 65_536] {
            for bits in [2, 3, 8, 13, 32] {
                let geometry = geometry(1, buckets, bits);
                for key in 0..2000 {
                    let place = geometry.place(Digest::new(key));
                    assert!(place.first < buckets && place.second < buckets && place.first != place.second);
                    assert_eq!(geometry.alternate(place.second, place.fingerprint), place.first);
                    assert!(place.fingerprint != 0 && u64::from(place.fingerprint) < 1 << bits);
                }
            }
        }
    }

    #[test]
    fn places_reach_beyond_two_to_the_32_slots() {
        let geometry = geometry(MAX_SEGMENTS, MAX_BUCKETS, 32);
        assert_eq!(geometry.all_buckets(), 1 << 32);
        let mut quarters = [0; 4];
        for key in 0..40_000 {
            let place = geometry.place(Digest::new(key));
            let bucket = u64::from(place.segment) * u64::from(geometry.buckets) + u64::from(place.first);
            quarters[(bucket >> 30) as usize] += 1;
        }
        assert!(quarters.iter().all(|&n| (9_000..11_000).contains(&n)), "{quarters:?}");
    }

    #[test]
    fn geometries_nest() {
        let small = geometry(3, 1000, 9);
        for doublings in 0..5 {
            let large = Geometry::new(small.segments << doublings, 1000, 9 + doublings, 9);
            for key in 0..5000 {
                let (a, b) = (small.place(Digest::new(key)), large.place(Digest::new(key)));
                assert_eq!(small.whole_place(Digest::new(key), None), a);
                assert_eq!(small.whole_place(Digest::new(key), Some(9)), a);
                assert_eq!((&Older { newer: &b, doublings }).place(&small, None), a);
            }
        }
    }

    /// Even with nearly 2^16 segments: the part that selects them has no weight in the part that selects buckets.
    #[test]
    fn digests_of_one_segment_fill_its_buckets_evenly() {
        const KEYS: u64 = 256_000;
        for segments in [1, 3, 1000, 40_000, MAX_SEGMENTS] {
            let (geometry, width) = (geometry(segments, 256, 8), (1_u128 << 64) / u128::from(segments));
            for segment in [0, segments / 2, segments - 1] {
                let (mut buckets, mut fingerprints) = (vec![0; 256], vec![0; 256]);
                for key in 0..KEYS {
                    let within = (width * u128::from(Digest::new(key).bits())) >> 64;
                    let start = (u128::from(segment) << 64).div_ceil(u128::from(segments));
                    let place = geometry.place(Digest::from_bits((start + within) as u64));
                    if place.segment == segment {
                        buckets[place.first as usize] += 1;
                        fingerprints[place.fingerprint as usize] += 1;
                    }
                }
                // 0 becomes 1.
                let even = |seen: &[u64]| seen.iter().all(|n| (800..1200).contains(n));
                assert!(even(&buckets), "{segments}, {segment}: {buckets:?}");
                assert!(even(&fingerprints[2..]), "{segments}, {segment}: {fingerprints:?}");
            }
        }
    }

    #[test]
    fn digests_fill_segments_and_buckets_evenly() {
        let geometry = geometry(10, 100, 8);
        let mut seen = vec![0; 1000];
        for key in 0..1_000_000 {
            let place = geometry.place(Digest::new(key));
            seen[place.segment as usize * 100 + place.first as usize] += 1;
        }
        assert!(seen.iter().all(|&n| (800..1200).contains(&n)), "{seen:?}");
    }
}
