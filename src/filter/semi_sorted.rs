//! Semi-sorted buckets of four: 12 bits for the low nibbles, then the rest of each fingerprint in the nibbles' order.

use core::marker::PhantomData;

use super::codec::{Codec, load_pair};
use super::lanes::{Widths, count_marked, load_halves};
use super::num::Num;
use super::semi_sort::{CODE_BITS, CODES, decode, encode, equal_nibbles, less_nibbles, spread_nibbles};
use super::words::{Shared, Words};

/// Slots in a bucket.
const SLOTS: u32 = 4;

/// The number of high bits from which on few lanes have those of a fingerprint by chance: an eighth of the pairs of buckets has
/// such a lane.
const TELLING_HIGH_BITS: u32 = 6;

/// The largest number of bits of a lane, which has a fingerprint's bits above its low nibble.
const MOST_HIGH_BITS: usize = 28;

/// For each of the sixteen sets of four lanes (bit i: lane i), the highest bit of every lane that is in it.
type LaneSets = [u128; 16];

/// [`LaneSets`] of lanes of 1, 2, .. bits.
static LANE_SETS: [LaneSets; MOST_HIGH_BITS] = {
    let mut all = [[0; 16]; MOST_HIGH_BITS];
    let mut bits = 1;
    while bits <= MOST_HIGH_BITS {
        let mut set = 0;
        while set < 16 {
            let mut lane = 0;
            while lane < SLOTS as usize {
                if set >> lane & 1 == 1 {
                    all[bits - 1][set] |= 1 << ((lane + 1) * bits - 1);
                }
                lane += 1;
            }
            set += 1;
        }
        bits += 1;
    }
    all
};

/// Bits of a low nibble.
pub(crate) const LOW_BITS: u32 = 4;

/// A bucket of at most 64 or 128 bits. `TEARS` unless it is part of one word.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SemiSorted<W, N, const TEARS: bool> {
    /// The widths of lanes for a fingerprint's bits above its low nibble, 1..=28 each.
    highs: W,
    sets: &'static LaneSets,
    number: PhantomData<N>,
}

impl<W: Widths<N>, N: Num, const TEARS: bool> SemiSorted<W, N, TEARS> {
    /// Buckets with such lanes for the high bits.
    #[inline(always)]
    pub(crate) fn new(highs: W) -> Self {
        let bucket_bits = CODE_BITS + SLOTS * highs.lane_bits();
        assert!(highs.lanes() == SLOTS && bucket_bits <= N::WIDTH && (TEARS || 64 % bucket_bits == 0));
        SemiSorted { highs, sets: &LANE_SETS[highs.lane_bits() as usize - 1], number: PhantomData }
    }

    #[inline(always)]
    fn high_bits(self) -> u32 {
        self.highs.lane_bits()
    }

    #[inline(always)]
    fn high_mask(self) -> u32 {
        u32::MAX >> (32 - self.high_bits())
    }

    /// The highest bit of each lane of a set.
    #[inline(always)]
    fn tops_of(self, set: usize) -> N {
        // Where the compiler knows the widths, it knows the address, too.
        let sets = W::KNOWN.map_or(self.sets, |bits| &LANE_SETS[bits as usize - 1]);
        N::narrow(sets[set])
    }

    /// The highest bit of each lane of high bits that is equal to `high`: exactly.
    #[inline(always)]
    fn equal_highs(self, bits: N, high: u32) -> N {
        self.highs.equal(bits >> CODE_BITS, high)
    }

    /// The highest bit of each lane whose low nibble is `nibble`, in two buckets.
    #[inline(always)]
    fn equal_lows(self, buckets: [N; 2], nibble: u32) -> [N; 2] {
        let nibbles = buckets.map(|bits| decode(bits.low()));
        equal_nibbles(nibbles, nibble).map(|set| self.tops_of(set))
    }

    /// The highest bit of each lane that has the fingerprint.
    #[inline(always)]
    fn matches(self, bits: N, fingerprint: u32) -> N {
        self.equal_highs(bits, fingerprint >> LOW_BITS) & self.equal_lows([bits; 2], fingerprint & 15)[0]
    }

    /// The first lane that has the fingerprint.
    #[inline]
    fn find(self, bits: N, fingerprint: u32) -> Option<u32> {
        let found = self.matches(bits, fingerprint);
        (found != N::ZERO).then(|| found.zeros_below() / self.high_bits())
    }

    /// The bits of a bucket: four nibbles in ascending order, and the high bits in the same order.
    #[inline(always)]
    fn joined(nibbles: u64, highs: N) -> N {
        N::of(encode(nibbles as u16)) | highs << CODE_BITS
    }
}

/// Ones in the lanes before lane `i`.
#[inline(always)]
fn before<N: Num>(i: u32, lane_bits: u32) -> N {
    (N::of(1) << (i * lane_bits)).minus(N::of(1))
}

/// Lanes without the one at `from`, with another one at `to`, which is not before it: the lanes between move down.
#[inline(always)]
fn replaced<N: Num>(lanes: N, lane_bits: u32, from: u32, to: u32, lane: u32) -> N {
    let kept = before::<N>(from, lane_bits) | !before::<N>(to + 1, lane_bits);
    let moved = before::<N>(to, lane_bits) & !before::<N>(from, lane_bits);
    lanes & kept | lanes >> lane_bits & moved | N::of(lane) << (to * lane_bits)
}

/// Lanes without the one at `from`, with zeros at the first: the lanes before move up.
#[inline(always)]
fn removed<N: Num>(lanes: N, lane_bits: u32, from: u32) -> N {
    (lanes & before(from, lane_bits)) << lane_bits | lanes & !before::<N>(from + 1, lane_bits)
}

impl<W: Widths<N>, N: Num, const TEARS: bool> Codec for SemiSorted<W, N, TEARS> {
    type Bits = N;
    const TEARS: bool = TEARS;
    const FINGERPRINT_BITS: Option<u32> = match W::KNOWN {
        Some(high_bits) => Some(high_bits + LOW_BITS),
        None => None,
    };

    #[inline(always)]
    fn slots(self) -> u32 {
        SLOTS
    }

    #[inline(always)]
    fn bucket_bits(self) -> u32 {
        CODE_BITS + SLOTS * self.high_bits()
    }

    #[inline(always)]
    fn load(self, words: impl Words, bucket: u32) -> N {
        let bit = u64::from(bucket) * u64::from(self.bucket_bits());
        if !TEARS {
            // Never beyond one word: [`SemiSorted::new`] checked it.
            return N::narrow(u128::from(words.word((bit >> 6) as usize) >> (bit & 63)));
        }
        N::load(words, bit, self.bucket_bits())
    }

    #[inline]
    fn store(self, words: Shared, bucket: u32, bits: N) {
        let bit = u64::from(bucket) * u64::from(self.bucket_bits());
        words.store(bit, self.bucket_bits(), bits.wide());
    }

    #[inline(always)]
    fn either_has(self, first: N, second: N, fingerprint: u32) -> bool {
        let (high, low) = (fingerprint >> LOW_BITS, fingerprint & 15);
        if self.high_bits() < TELLING_HIGH_BITS {
            let [c, d] = self.equal_lows([first, second], low);
            return (self.equal_highs(first, high) & c | self.equal_highs(second, high) & d) != N::ZERO;
        }
        // In two buckets, the lanes with the high bits, of which only the lowest is exact.
        let (ones, tops, pattern) = (self.highs.ones(), self.highs.tops(), self.highs.spread(high));
        let (a, b) = (first >> CODE_BITS ^ pattern, second >> CODE_BITS ^ pattern);
        let (a, b) = (a.minus(ones) & !a & tops, b.minus(ones) & !b & tops);
        // Most absent fingerprints go no further: no lane has their high bits.
        if (a | b) == N::ZERO {
            return false;
        }
        // And most that are present need one nibble: the first lane with their high bits is theirs. Which bucket has that lane
        // is chosen without a branch, because it would be taken at random.
        let take_second = N::ZERO.minus(N::of(u32::from(a == N::ZERO)));
        let blend = |one: N, other: N| one ^ (one ^ other) & take_second;
        let lane = blend(a, b).zeros_below() / self.high_bits();
        u32::from(decode(blend(first, second).low())) >> (4 * lane) & 15 == low
            || (self.matches(first, fingerprint) | self.matches(second, fingerprint)) != N::ZERO
    }

    #[inline(always)]
    fn pair_has(self, words: impl Words, first: u32, second: u32, fingerprint: u32) -> bool {
        if W::KNOWN != Some(5) {
            let (first, second) = load_pair(self, words, first, second);
            return self.either_has(first, second, fingerprint);
        }
        // Two buckets to a word, whose lanes include a nibble's five bits, too: side by side, in one register.
        let both = load_halves(words, first, second);
        let lows = |bits: u64| u64::from(spread_nibbles(bits as u32));
        let nibbles = lows(both) | lows(both >> 32) << 32;
        let ones = (self.highs.ones().wide() as u64 * 0x1_0000_0001) << CODE_BITS;
        let spread = |part: u32| ones.wrapping_mul(u64::from(part));
        let differ = both ^ spread(fingerprint >> LOW_BITS) | nibbles ^ spread(fingerprint & 15);
        // Some lane is 0 if and only if some lane's highest bit comes out as 1. The codes below the lanes borrow from nothing.
        differ.wrapping_sub(ones) & !differ & ones << (self.high_bits() - 1) != 0
    }

    #[inline]
    fn count(self, bits: N, fingerprint: u32) -> u32 {
        self.matches(bits, fingerprint).ones()
    }

    fn occupied(self, words: impl Words, buckets: u32) -> Option<u64> {
        let mut valid = true;
        let empty = count_marked(self.highs, buckets, |bucket| {
            let bits = self.load(words, bucket);
            valid &= self.is_valid(bits);
            self.matches(bits, 0)
        });
        valid.then(|| u64::from(buckets * SLOTS) - empty)
    }

    #[inline]
    fn get(self, bits: N, lane: u32) -> u32 {
        let high = (bits >> (CODE_BITS + lane * self.high_bits())).low() & self.high_mask();
        high << LOW_BITS | u32::from(decode(bits.low())) >> (4 * lane) & 15
    }

    #[inline]
    fn free_lane(self, bits: N) -> Option<u32> {
        self.find(bits, 0)
    }

    #[inline]
    fn with(self, bits: N, fingerprint: u32) -> Option<N> {
        let from = self.free_lane(bits)?;
        let (high, low) = (fingerprint >> LOW_BITS, fingerprint & 15);
        let nibbles = decode(bits.low());
        // After all nibbles that are less, one of which may be that of the empty slot, which goes; but not before that slot:
        // the lanes there are 0.
        let to = less_nibbles(nibbles, low).max(from + 1) - 1;
        let nibbles = replaced(u64::from(nibbles), 4, from, to, low);
        Some(Self::joined(nibbles, replaced(bits >> CODE_BITS, self.high_bits(), from, to, high)))
    }

    #[inline]
    fn without(self, bits: N, fingerprint: u32) -> Option<N> {
        let from = self.find(bits, fingerprint)?;
        let nibbles = removed(u64::from(decode(bits.low())), 4, from);
        Some(Self::joined(nibbles, removed(bits >> CODE_BITS, self.high_bits(), from)))
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

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn lane_sets_are_the_highest_bits_of_lanes() {
        for bits in 1..=MOST_HIGH_BITS {
            for (set, tops) in LANE_SETS[bits - 1].iter().enumerate() {
                let lanes = (0..4).filter(|lane| set >> lane & 1 == 1);
                assert_eq!(*tops, lanes.map(|lane| 1_u128 << (lane * bits + bits - 1)).sum());
            }
        }
    }
}
