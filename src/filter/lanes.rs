//! Fingerprints side by side, each in a lane of its own: all lanes of a bucket are compared at once.

use super::codec::{Codec, load_pair};
use super::num::Num;
use super::words::{Shared, Words};
use crate::sync::step;

/// The width and number of the lanes: known to the compiler ([`Static`]) or not ([`Dynamic`]).
pub(crate) trait Widths<N: Num>: Copy {
    /// Bits of a lane, if the compiler knows them.
    const KNOWN: Option<u32>;

    /// Bits of a lane, 1..=32.
    fn lane_bits(self) -> u32;

    /// Lanes in a bucket.
    fn lanes(self) -> u32;

    /// The lowest bit of every lane.
    fn ones(self) -> N;

    /// The highest bit of every lane.
    #[inline(always)]
    fn tops(self) -> N {
        self.ones() << (self.lane_bits() - 1)
    }

    /// A number in every lane.
    #[inline(always)]
    fn spread(self, number: u32) -> N {
        self.ones().times(number)
    }

    /// The highest bit of each lane that is equal to the number: exactly.
    #[inline(always)]
    fn equal(self, lanes: N, number: u32) -> N {
        let low = self.tops().minus(self.ones());
        let differ = lanes ^ self.spread(number);
        // A lane's highest bit becomes 1 unless the whole lane is 0; no carry leaves a lane.
        !((differ & low).plus(low) | differ) & self.tops()
    }
}

/// Widths that the compiler knows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Static<const BITS: u32, const LANES: u32>;

impl<const BITS: u32, const LANES: u32> Static<BITS, LANES> {
    const ONES: u64 = {
        assert!(BITS >= 1 && BITS * LANES <= 64);
        let (mut ones, mut lane) = (0, 0);
        while lane < LANES {
            ones |= 1 << (lane * BITS);
            lane += 1;
        }
        ones
    };
}

impl<const BITS: u32, const LANES: u32> Widths<u64> for Static<BITS, LANES> {
    const KNOWN: Option<u32> = Some(BITS);

    #[inline(always)]
    fn lane_bits(self) -> u32 {
        BITS
    }

    #[inline(always)]
    fn lanes(self) -> u32 {
        LANES
    }

    #[inline(always)]
    fn ones(self) -> u64 {
        Self::ONES
    }
}

/// Any widths.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dynamic<N> {
    bits: u32,
    lanes: u32,
    ones: N,
}

impl<N: Num> Dynamic<N> {
    /// This many lanes of this many bits; together they fit `N`.
    pub(crate) fn new(bits: u32, lanes: u32) -> Self {
        assert!(bits >= 1 && bits * lanes <= N::WIDTH);
        let ones = (0..lanes).fold(N::ZERO, |ones, lane| ones | N::of(1) << (lane * bits));
        Dynamic { bits, lanes, ones }
    }
}

impl<N: Num> Widths<N> for Dynamic<N> {
    const KNOWN: Option<u32> = None;

    #[inline(always)]
    fn lane_bits(self) -> u32 {
        self.bits
    }

    #[inline(always)]
    fn lanes(self) -> u32 {
        self.lanes
    }

    #[inline(always)]
    fn ones(self) -> N {
        self.ones
    }
}

/// A bucket of at most 64 or 128 bits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lanes<W, N> {
    widths: W,
    number: core::marker::PhantomData<N>,
}

impl<W: Widths<N>, N: Num> Lanes<W, N> {
    /// Buckets of these widths.
    pub(crate) fn new(widths: W) -> Self {
        Lanes { widths, number: core::marker::PhantomData }
    }

    #[inline(always)]
    fn lane_mask(self) -> N {
        N::of(u32::MAX >> (32 - self.widths.lane_bits()))
    }

    #[inline(always)]
    fn bit_of(self, mask: N) -> u32 {
        mask.zeros_below() + 1 - self.widths.lane_bits()
    }

    /// Loads at any bit: for a part of a larger bucket.
    #[inline(always)]
    fn load_at(self, words: impl Words, bit: u64) -> N {
        if N::WIDTH == 64 && self.bucket_bits().is_power_of_two() {
            // Never beyond one word.
            return N::narrow(u128::from(words.word((bit >> 6) as usize) >> (bit & 63)));
        }
        N::load(words, bit, self.bucket_bits())
    }
}

/// Counts the marked lanes in this many buckets; `marked` gives the highest bits of those that are. Lanes are added up side by
/// side, until one could overflow, because counting ones takes fifteen instructions where the processor has none for it.
#[inline(always)]
pub(crate) fn count_marked<W: Widths<N>, N: Num>(
    widths: W,
    buckets: u32,
    mut marked: impl FnMut(u32) -> N,
) -> u64 {
    let mask = u32::MAX >> (32 - widths.lane_bits());
    if mask == 1 {
        return (0..buckets).map(|bucket| u64::from(marked(bucket).ones())).sum();
    }
    let (mut all, mut next) = (0, 0);
    while next < buckets {
        let end = next + mask.min(buckets - next);
        let sums =
            (next..end).fold(N::ZERO, |sums, bucket| sums.plus(marked(bucket) >> (widths.lane_bits() - 1)));
        let sum = |lane: u32| u64::from((sums >> (lane * widths.lane_bits())).low() & mask);
        all += (0..widths.lanes()).map(sum).sum::<u64>();
        next = end;
    }
    all
}

/// Loads two buckets of 32 bits, in this order. Side by side they are one register, with the lanes of both.
#[inline(always)]
pub(crate) fn load_halves(words: impl Words, first: u32, second: u32) -> u64 {
    let first = words.half(first as usize);
    step();
    first | words.half(second as usize) << 32
}

impl<W: Widths<N>, N: Num> Codec for Lanes<W, N> {
    type Bits = N;
    const TEARS: bool = false;
    const FINGERPRINT_BITS: Option<u32> = W::KNOWN;

    #[inline(always)]
    fn slots(self) -> u32 {
        self.widths.lanes()
    }

    #[inline(always)]
    fn bucket_bits(self) -> u32 {
        self.widths.lane_bits() * self.widths.lanes()
    }

    #[inline(always)]
    fn load(self, words: impl Words, bucket: u32) -> N {
        self.load_at(words, u64::from(bucket) * u64::from(self.bucket_bits()))
    }

    #[inline]
    fn store(self, words: Shared, bucket: u32, bits: N) {
        let bit = u64::from(bucket) * u64::from(self.bucket_bits());
        words.store(bit, self.bucket_bits(), bits.wide());
    }

    #[inline(always)]
    fn either_has(self, first: N, second: N, fingerprint: u32) -> bool {
        let (ones, pattern) = (self.widths.ones(), self.widths.spread(fingerprint));
        let (first, second) = (first ^ pattern, second ^ pattern);
        // Some lane is 0 if and only if some lane's highest bit comes out as 1 (the lowest such lane is exact). Bits above the
        // lanes borrow from nothing below.
        (first.minus(ones) & !first | second.minus(ones) & !second) & self.widths.tops() != N::ZERO
    }

    #[inline(always)]
    fn pair_has(self, words: impl Words, first: u32, second: u32, fingerprint: u32) -> bool {
        if W::KNOWN.is_none() || self.bucket_bits() != 32 {
            let (first, second) = load_pair(self, words, first, second);
            return self.either_has(first, second, fingerprint);
        }
        let both = load_halves(words, first, second);
        let ones = self.widths.ones().wide() as u64 * 0x1_0000_0001;
        let tops = ones << (self.widths.lane_bits() - 1);
        let differ = both ^ ones.wrapping_mul(u64::from(fingerprint));
        // As in `either_has`.
        differ.wrapping_sub(ones) & !differ & tops != 0
    }

    #[inline]
    fn count(self, bits: N, fingerprint: u32) -> u32 {
        self.widths.equal(bits, fingerprint).ones()
    }

    fn occupied(self, words: impl Words, buckets: u32) -> Option<u64> {
        let bits = self.widths.lane_bits();
        if bits.is_power_of_two() {
            // No lane goes beyond a word.
            let (all, lanes) =
                ((buckets * self.bucket_bits()).div_ceil(64), Dynamic::<u64>::new(bits, 64 / bits));
            let empty = count_marked(lanes, all, |index| lanes.equal(words.word(index as usize), 0));
            return Some(u64::from(all * lanes.lanes) - empty);
        }
        let empty =
            count_marked(self.widths, buckets, |bucket| self.widths.equal(self.load(words, bucket), 0));
        Some(u64::from(buckets) * u64::from(self.slots()) - empty)
    }

    #[inline]
    fn get(self, bits: N, lane: u32) -> u32 {
        (bits >> (lane * self.widths.lane_bits()) & self.lane_mask()).low()
    }

    #[inline]
    fn free_lane(self, bits: N) -> Option<u32> {
        let empty = self.widths.equal(bits, 0);
        (empty != N::ZERO).then(|| empty.zeros_below() / self.widths.lane_bits())
    }

    #[inline]
    fn with(self, bits: N, fingerprint: u32) -> Option<N> {
        let empty = self.widths.equal(bits, 0);
        (empty != N::ZERO).then(|| bits | N::of(fingerprint) << self.bit_of(empty))
    }

    #[inline(always)]
    fn either_with(self, first: N, second: N, fingerprint: u32) -> Option<(bool, N)> {
        // Lanes are filled from the first on: the bucket with the lower hole is the emptier one; after removals, probably. Less
        // one, so that a full bucket, which has no hole, compares as the highest.
        let below_hole = |bits| {
            let empty = self.widths.equal(bits, 0);
            (empty & N::ZERO.minus(empty)).minus(N::of(1))
        };
        let (first_below, second_below) = (below_hole(first), below_hole(second));
        let is_second = second_below < first_below;
        // Without a branch, because it would be taken at random.
        let take_second = N::ZERO.minus(N::of(u32::from(is_second)));
        let blend = |one: N, other: N| one ^ (one ^ other) & take_second;
        let unit = blend(first_below, second_below).plus(N::of(1)) >> (self.widths.lane_bits() - 1);
        (unit != N::ZERO).then(|| (is_second, blend(first, second) | unit.times(fingerprint)))
    }

    #[inline]
    fn without(self, bits: N, fingerprint: u32) -> Option<N> {
        let found = self.widths.equal(bits, fingerprint);
        (found != N::ZERO).then(|| bits & !(self.lane_mask() << self.bit_of(found)))
    }
}

/// A bucket of eight lanes of more than 16 bits: two halves of four.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Halves(Lanes<Dynamic<u128>, u128>);

impl Halves {
    /// Eight lanes of `bits`.
    pub(crate) fn new(bits: u32) -> Self {
        Halves(Lanes::new(Dynamic::new(bits, 4)))
    }
}

impl Codec for Halves {
    type Bits = [u128; 2];
    const TEARS: bool = false;

    #[inline(always)]
    fn slots(self) -> u32 {
        8
    }

    #[inline(always)]
    fn bucket_bits(self) -> u32 {
        2 * self.0.bucket_bits()
    }

    #[inline(always)]
    fn load(self, words: impl Words, bucket: u32) -> [u128; 2] {
        let half = u64::from(self.0.bucket_bits());
        let bit = u64::from(bucket) * 2 * half;
        [self.0.load_at(words, bit), self.0.load_at(words, bit + half)]
    }

    fn store(self, words: Shared, bucket: u32, bits: [u128; 2]) {
        let half = self.0.bucket_bits();
        let bit = u64::from(bucket) * 2 * u64::from(half);
        words.store(bit, half, bits[0]);
        words.store(bit + u64::from(half), half, bits[1]);
    }

    #[inline(always)]
    fn either_has(self, first: [u128; 2], second: [u128; 2], fingerprint: u32) -> bool {
        self.0.either_has(first[0], first[1], fingerprint)
            || self.0.either_has(second[0], second[1], fingerprint)
    }

    fn count(self, bits: [u128; 2], fingerprint: u32) -> u32 {
        self.0.count(bits[0], fingerprint) + self.0.count(bits[1], fingerprint)
    }

    fn occupied(self, words: impl Words, buckets: u32) -> Option<u64> {
        self.0.occupied(words, 2 * buckets)
    }

    fn get(self, bits: [u128; 2], lane: u32) -> u32 {
        self.0.get(bits[lane as usize / 4], lane % 4)
    }

    fn free_lane(self, [low, high]: [u128; 2]) -> Option<u32> {
        self.0.free_lane(low).or_else(|| self.0.free_lane(high).map(|lane| lane + 4))
    }

    fn with(self, [low, high]: [u128; 2], fingerprint: u32) -> Option<[u128; 2]> {
        match self.0.with(low, fingerprint) {
            Some(low) => Some([low, high]),
            None => self.0.with(high, fingerprint).map(|high| [low, high]),
        }
    }

    fn without(self, [low, high]: [u128; 2], fingerprint: u32) -> Option<[u128; 2]> {
        match self.0.without(low, fingerprint) {
            Some(low) => Some([low, high]),
            None => self.0.without(high, fingerprint).map(|high| [low, high]),
        }
    }
}
