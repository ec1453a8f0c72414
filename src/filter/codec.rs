//! What every layout of a bucket's fingerprints can do: [`Codec`]. Pure functions, but for the loading and storing.

use core::fmt::Debug;

use super::words::{Shared, Words};

/// How a bucket's fingerprints are laid out in bits. Fingerprint 0 is an empty slot [I7].
pub(crate) trait Codec: Copy {
    /// A bucket's bits, as they were loaded: what is above them means nothing.
    type Bits: Copy + Debug;

    /// A change of one fingerprint changes how the others are written, and a bucket is more than one word: so that
    /// readers may see it torn. See `table`.
    const TEARS: bool;

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

    /// How many slots have the fingerprint; of 0, how many are empty.
    fn count(self, bits: Self::Bits, fingerprint: u32) -> u32;

    /// The fingerprint at a lane.
    fn get(self, bits: Self::Bits, lane: u32) -> u32;

    /// The first empty lane.
    fn free_lane(self, bits: Self::Bits) -> Option<u32>;

    /// With one fingerprint more, if there is an empty slot.
    fn with(self, bits: Self::Bits, fingerprint: u32) -> Option<Self::Bits>;

    /// With one copy of the fingerprint less, if there is one.
    fn without(self, bits: Self::Bits, fingerprint: u32) -> Option<Self::Bits>;

    /// Whether loaded bits mean something: foreign ones may not.
    fn is_valid(self, bits: Self::Bits) -> bool;

    /// The bits as two words, for a copy; only if `TEARS`.
    fn to_words(self, bits: Self::Bits) -> [u64; 2];

    /// The reverse of `to_words`.
    fn of_words(self, words: [u64; 2]) -> Self::Bits;
}
