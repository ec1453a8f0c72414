//! Where a key belongs: segment, bucket, fingerprint, alternate bucket. Pure functions.
//!
//! Three parts of one 64-bit digest, which do not overlap as long as there are at most 2^16 segments of at most 2^16
//! buckets:
//!
//! ```text
//!  63            48 47            32 31                              0
//! +----------------+----------------+---------------------------------+
//! |    segment     |     bucket     |           fingerprint           |
//! +----------------+----------------+---------------------------------+
//! ```
//!
//! All three are taken from the top of their part, so that geometries nest: of two tables with equally many buckets in
//! a segment, one of which has `2^k` times the segments and wider fingerprints, the segment and fingerprint in the
//! smaller follow from those in the larger. A growing filter moves fingerprints from table to table by it.

use crate::hash::{Digest, mirror, scale};

/// Most segments.
pub(crate) const MAX_SEGMENTS: u32 = 1 << 16;
/// Most buckets in a segment.
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

/// The upper bits of a fingerprint, 0 being made 1, as it is in the fingerprints of so many bits.
#[inline(always)]
pub(crate) fn upper_bits(fingerprint: u32, bits: u32, upper: u32) -> u32 {
    (fingerprint >> (bits - upper)).max(1)
}

impl Geometry {
    /// The place of a digest.
    #[inline(always)]
    pub(crate) fn place(&self, digest: Digest) -> Place {
        let bits = digest.bits();
        let fingerprint = upper_bits(bits as u32, 32, self.fingerprint_bits);
        let first = scale((bits >> 16) as u32, self.buckets);
        Place {
            segment: scale((bits >> 32) as u32, self.segments),
            first,
            second: self.alternate(first, fingerprint),
            fingerprint,
        }
    }

    /// The other bucket of a fingerprint: its own inverse [I2]. The two make an odd sum, of an even number of buckets:
    /// they are never the same.
    #[inline(always)]
    pub(crate) fn alternate(&self, bucket: u32, fingerprint: u32) -> u32 {
        let upper = upper_bits(fingerprint, self.fingerprint_bits, self.alternate_bits);
        // Mixed twice (Knuth's multiplicative constant, then one of MurmurHash3's): after one multiplication the sums are
        // nearly in arithmetic progression, paths come back to where they began, and tables of 8-bit fingerprints fill
        // to 95%, of 6-bit ones to 92%, instead of 97%.
        let mixed = upper.wrapping_mul(0x9E37_79B1);
        let mixed = (mixed ^ mixed >> 15).wrapping_mul(0x85EB_CA6B);
        let sum = 2 * scale(mixed, self.buckets / 2) + 1;
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
        Geometry { segments, buckets, fingerprint_bits: bits, alternate_bits: bits }
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
            let large = Geometry {
                segments: small.segments << doublings,
                fingerprint_bits: 9 + 2 * doublings,
                ..small
            };
            for key in 0..5000 {
                let (a, b) = (small.place(Digest::new(key)), large.place(Digest::new(key)));
                assert_eq!((a.segment, a.first, a.second), (b.segment >> doublings, b.first, b.second));
                assert_eq!(upper_bits(b.fingerprint, large.fingerprint_bits, 9), a.fingerprint);
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
