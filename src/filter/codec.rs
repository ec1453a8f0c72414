//! The operations of every layout of a bucket's fingerprints: [`Codec`]. Pure functions, except for loading and storing.

use core::fmt::Debug;

use super::words::{Shared, Words};
use crate::sync::step;

/// How a bucket's fingerprints are laid out in bits. Fingerprint 0 is an empty slot [I7].
pub(crate) trait Codec: Copy {
    /// A bucket's bits, as they were loaded: the bits above them mean nothing.
    type Bits: Copy + Debug;

    /// Whether a change of one fingerprint changes how the others are encoded, and a bucket is more than one word, so that
    /// readers may see it torn. See `table`.
    const TEARS: bool;

    /// Bits of a fingerprint, if the compiler knows them.
    const FINGERPRINT_BITS: Option<u32> = None;

    /// Slots in a bucket.
    fn slots(self) -> u32;

    /// Bits of a bucket.
    fn bucket_bits(self) -> u32;

    /// Loads a bucket.
    fn load(self, words: impl Words, bucket: u32) -> Self::Bits;

    /// Stores a bucket. The lock's holder only [I5].
    fn store(self, words: Shared, bucket: u32, bits: Self::Bits);

    /// Whether one of two buckets has the fingerprint.
    fn either_has(self, first: Self::Bits, second: Self::Bits, fingerprint: u32) -> bool;

    /// `either_has` for a pair of buckets, one of which is odd, the other even, loaded as by [`load_pair`]. Where they tear, a
    /// bucket that is just being changed may seem to have a fingerprint that it has not, or not to have one that it has.
    #[inline(always)]
    fn pair_has(self, words: impl Words, first: u32, second: u32, fingerprint: u32) -> bool {
        let (first, second) = load_pair(self, words, first, second);
        self.either_has(first, second, fingerprint)
    }

    /// How many slots have the fingerprint; for 0, how many are empty.
    fn count(self, bits: Self::Bits, fingerprint: u32) -> u32;

    /// How many slots are occupied in a segment of this many buckets, after which its last word is 0; `None` if the bits of one
    /// are invalid.
    fn occupied(self, words: impl Words, buckets: u32) -> Option<u64>;

    /// The fingerprint in a lane.
    fn get(self, bits: Self::Bits, lane: u32) -> u32;

    /// The first empty lane.
    fn free_lane(self, bits: Self::Bits) -> Option<u32>;

    /// The bits with one more fingerprint, if there is an empty slot.
    fn with(self, bits: Self::Bits, fingerprint: u32) -> Option<Self::Bits>;

    /// One of two buckets with one more fingerprint, and whether it is the second; if one has an empty slot. The bucket is the
    /// first that has one; layouts that can tell cheaply which is the emptier choose that one.
    #[inline(always)]
    fn either_with(
        self,
        first: Self::Bits,
        second: Self::Bits,
        fingerprint: u32,
    ) -> Option<(bool, Self::Bits)> {
        let with_first = self.with(first, fingerprint).map(|bits| (false, bits));
        with_first.or_else(|| self.with(second, fingerprint).map(|bits| (true, bits)))
    }

    /// The bits with one copy of the fingerprint fewer, if there is one.
    fn without(self, bits: Self::Bits, fingerprint: u32) -> Option<Self::Bits>;

    /// Whether loaded bits are valid: foreign ones may not be.
    fn is_valid(self, _: Self::Bits) -> bool {
        true
    }

    /// The bits as two words, for a copy; only if `TEARS`.
    fn to_words(self, _: Self::Bits) -> [u64; 2] {
        unreachable!("nobody copies what does not tear")
    }

    /// The reverse of `to_words`.
    fn of_words(self, _: [u64; 2]) -> Self::Bits {
        unreachable!("nobody copies what does not tear")
    }
}

/// Loads two buckets, in this order.
#[inline(always)]
pub(crate) fn load_pair<C: Codec>(
    codec: C,
    words: impl Words,
    first: u32,
    second: u32,
) -> (C::Bits, C::Bits) {
    let first = codec.load(words, first);
    step();
    (first, codec.load(words, second))
}
