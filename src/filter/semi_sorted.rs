//! Semi-sorted buckets of four: 12 bits for the low nibbles, then the rest of each fingerprint in the nibbles' order.

use super::codec::Codec;
use super::num::Num;
use super::semi_sort::{CODE_BITS, CODES, decode, encode};
use super::words::{Shared, Words};

/// Slots in a bucket.
const SLOTS: u32 = 4;

/// A bucket of at most 64 or 128 bits. `TEARS` unless it is a part of one word.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SemiSorted<N, const TEARS: bool> {
    /// Bits of a fingerprint above its low nibble, 1..=28.
    high_bits: u32,
    /// The lowest bit of every lane of high bits.
    ones: N,
}

impl<N: Num, const TEARS: bool> SemiSorted<N, TEARS> {
    /// Fingerprints of so many bits, 5..=32.
    pub(crate) fn new(fingerprint_bits: u32) -> Self {
        let high_bits = fingerprint_bits - 4;
        let bucket_bits = CODE_BITS + SLOTS * high_bits;
        assert!(high_bits >= 1 && bucket_bits <= N::WIDTH && (TEARS || 64 % bucket_bits == 0));
        let ones = (0..SLOTS).fold(N::ZERO, |ones, lane| ones | N::of(1) << (lane * high_bits));
        SemiSorted { high_bits, ones }
    }

    #[inline(always)]
    fn high_mask(self) -> u32 {
        u32::MAX >> (32 - self.high_bits)
    }

    /// The highest bit of each lane of high bits that are equal to `high`: exactly.
    #[inline(always)]
    fn equal_highs(self, bits: N, high: u32) -> N {
        let tops = self.ones << (self.high_bits - 1);
        let low = tops.minus(self.ones);
        let differ = bits >> CODE_BITS ^ self.ones.times(high);
        !((differ & low).plus(low) | differ) & tops
    }

    /// A bit for each lane that has the fingerprint, given the lanes whose high bits are equal.
    #[inline(always)]
    fn lanes_of(self, bits: N, highs: N, fingerprint: u32) -> u32 {
        const LOW: u32 = 0x7777;
        let differ = u32::from(decode(bits.low())) ^ ((fingerprint & 15) * 0x1111);
        let nibbles = !(((differ & LOW) + LOW) | differ) & 0x8888;
        let lane =
            |i: u32| (highs >> (i * self.high_bits + self.high_bits - 1)).low() & nibbles >> (4 * i + 3) & 1;
        lane(0) | lane(1) << 1 | lane(2) << 2 | lane(3) << 3
    }

    /// The lanes that have the fingerprint.
    #[inline]
    fn matches(self, bits: N, fingerprint: u32) -> u32 {
        self.lanes_of(bits, self.equal_highs(bits, fingerprint >> 4), fingerprint)
    }

    /// All four fingerprints, in the nibbles' order.
    #[inline]
    fn decoded(self, bits: N) -> [u32; 4] {
        let nibbles = u32::from(decode(bits.low()));
        core::array::from_fn(|i| {
            let high = (bits >> (CODE_BITS + i as u32 * self.high_bits)).low() & self.high_mask();
            high << 4 | nibbles >> (4 * i) & 15
        })
    }

    /// The bucket of four fingerprints.
    #[inline]
    fn encoded(self, mut all: [u32; 4]) -> N {
        // A sorting network on the low nibbles.
        for (i, j) in [(0, 1), (2, 3), (0, 2), (1, 3), (1, 2)] {
            if all[i] & 15 > all[j] & 15 {
                all.swap(i, j);
            }
        }
        let nibbles = (0..4).fold(0, |nibbles, i| nibbles | (all[i] as u16 & 15) << (4 * i));
        (0..4).fold(N::of(encode(nibbles)), |bits, i| {
            bits | N::of(all[i] >> 4) << (CODE_BITS + i as u32 * self.high_bits)
        })
    }
}

impl<N: Num, const TEARS: bool> Codec for SemiSorted<N, TEARS> {
    type Bits = N;
    const TEARS: bool = TEARS;

    #[inline(always)]
    fn slots(self) -> u32 {
        SLOTS
    }

    #[inline(always)]
    fn bucket_bits(self) -> u32 {
        CODE_BITS + SLOTS * self.high_bits
    }

    #[inline(always)]
    fn load(self, words: impl Words, bucket: u32) -> N {
        let bit = u64::from(bucket) * u64::from(self.bucket_bits());
        if !TEARS {
            // Never beyond one word: [`SemiSorted::new`] checked it.
            return N::narrow(u128::from(words.word((bit >> 6) as usize) >> (bit & 63)));
        }
        N::load(words, bit)
    }

    #[inline]
    fn store(self, words: Shared, bucket: u32, bits: N) {
        let bit = u64::from(bucket) * u64::from(self.bucket_bits());
        words.store(bit, self.bucket_bits(), bits.wide());
    }

    #[inline(always)]
    fn either_has(self, first: N, second: N, fingerprint: u32) -> bool {
        let high = fingerprint >> 4;
        let (a, b) = (self.equal_highs(first, high), self.equal_highs(second, high));
        // Most absent fingerprints go no further: no lane has their high bits.
        if (a | b) == N::ZERO {
            return false;
        }
        self.lanes_of(first, a, fingerprint) | self.lanes_of(second, b, fingerprint) != 0
    }

    #[inline]
    fn count(self, bits: N, fingerprint: u32) -> u32 {
        self.matches(bits, fingerprint).count_ones()
    }

    #[inline]
    fn get(self, bits: N, lane: u32) -> u32 {
        self.decoded(bits)[lane as usize]
    }

    #[inline]
    fn free_lane(self, bits: N) -> Option<u32> {
        let empty = self.matches(bits, 0);
        (empty != 0).then(|| empty.trailing_zeros())
    }

    #[inline]
    fn with(self, bits: N, fingerprint: u32) -> Option<N> {
        let lane = self.free_lane(bits)?;
        let mut all = self.decoded(bits);
        all[lane as usize] = fingerprint;
        Some(self.encoded(all))
    }

    #[inline]
    fn without(self, bits: N, fingerprint: u32) -> Option<N> {
        let found = self.matches(bits, fingerprint);
        let mut all = self.decoded(bits);
        *all.get_mut(found.trailing_zeros() as usize)? = 0;
        Some(self.encoded(all))
    }

    fn is_valid(self, bits: N) -> bool {
        bits.low() & ((1 << CODE_BITS) - 1) < CODES
    }

    fn to_words(self, bits: N) -> [u64; 2] {
        let wide = bits.wide();
        [wide as u64, (wide >> 64) as u64]
    }

    fn of_words(self, [low, high]: [u64; 2]) -> N {
        N::narrow(u128::from(low) | u128::from(high) << 64)
    }
}
