//! Split bits [G8]: which half an item will go to when its segment splits, kept in its slot, so that most splits neither hash
//! it again nor read what a pointer leads to.
//!
//! A segment of level `l` covers an entry of a directory of `base << l`, and splits by the lowest bit of the entry that its
//! items' prefixes have in one of `base << (l + 1)`. Levels come in blocks of one more than there are split bits: those of an
//! item are the lowest bits of its entry at the last level of its segment's block. So they decide all splits except the one
//! from that level to the next block, which hashes each item and gives it the bits of that block.

use super::payload::Payload;
use crate::hash::scale;

/// How many levels a block has.
const fn block<P: Payload>() -> u32 {
    P::SPLIT_BITS + 1
}

/// Entries of the directory at the last level of a segment's block: where split bits come from.
pub(super) fn last_entries<P: Payload>(base: u32, level: u32) -> u32 {
    // Fewer than twice `MAX_SEGMENTS`, shifted by 3 at most: fewer than 2^32.
    base << (level - level % block::<P>() + P::SPLIT_BITS)
}

/// The split bits of an item with this prefix.
#[inline(always)]
pub(super) fn split_bits<P: Payload>(prefix: u32, last_entries: u32) -> u8 {
    scale(prefix, last_entries) as u8 & P::SPLIT_MASK
}

/// Which of the split bits is 1 for items that go to the upper half when a segment of `level` splits; `None` if no bit says so.
pub(super) fn deciding<P: Payload>(level: u32) -> Option<u32> {
    (P::SPLIT_BITS - level % block::<P>()).checked_sub(1)
}

/// The halves of a segment that splits when no split bit says which of them an item goes to.
#[derive(Clone, Copy)]
pub(crate) struct Halves {
    /// The lower half covers this entry of a directory of `entries`, the upper one the next.
    lower: u32,
    entries: u32,
    /// See [`last_entries`].
    last_entries: u32,
}

impl Halves {
    /// The halves of the segment of entry `index` in a directory of `base << level`.
    pub(super) fn new<P: Payload>(base: u32, index: u32, level: u32) -> Self {
        let last_entries = last_entries::<P>(base, level + 1);
        Halves { lower: index * 2, entries: base << (level + 1), last_entries }
    }

    /// 1 if an item with this prefix goes to the upper half, 0 if to the lower one. `lower` is even, but the compiler does not
    /// know that, and so does not turn the bit into a branch, every other of which would be mispredicted. A `Hash` that
    /// contradicts itself may send an item astray, but not us.
    #[inline(always)]
    pub(super) fn is_upper(self, prefix: u32) -> u32 {
        scale(prefix, self.entries).wrapping_sub(self.lower) & 1
    }

    /// The split bits of such an item in either half.
    #[inline(always)]
    pub(super) fn split_bits<P: Payload>(self, prefix: u32) -> u8 {
        split_bits::<P>(prefix, self.last_entries)
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::super::payload::{Inline, MOST_SPLIT_BITS, Pointer};
    use super::*;
    use crate::hash::Digest;

    type Pointers = Pointer<u64, ()>;

    /// Split bits of pointers to such a number, which is aligned to fewer bytes on some targets.
    const BITS: u32 = <Pointers as Payload>::SPLIT_BITS;

    #[test]
    fn split_bits_are_those_of_an_aligned_address() {
        #[repr(align(64))]
        struct Line;
        assert_eq!(<Pointer<u8, ()> as Payload>::SPLIT_BITS, 0);
        assert_eq!(<Pointer<u16, ()> as Payload>::SPLIT_BITS, 1);
        assert_eq!(<Pointer<Line, ()> as Payload>::SPLIT_BITS, MOST_SPLIT_BITS);
        assert_eq!(<Inline<u64, u64> as Payload>::SPLIT_BITS, 0);
        assert_eq!(BITS, align_of::<u64>().trailing_zeros());
        assert_eq!(<Pointers as Payload>::SPLIT_MASK, (1 << BITS) - 1);
    }

    fn decide_what_prefixes_do<P: Payload>() {
        for base in [1, 2, 3, 7, 16, 1000, 12_345_678] {
            for level in (0..).take_while(|level| u64::from(base) << (level + 1) <= 1 << 28) {
                let last = last_entries::<P>(base, level);
                let hashed = level % (P::SPLIT_BITS + 1) == P::SPLIT_BITS;
                assert_eq!(deciding::<P>(level).is_none(), hashed, "{base} << {level}");
                let Some(deciding) = deciding::<P>(level) else { continue };
                for number in 0..100 {
                    let prefix = Digest::mixed(number).prefix();
                    let upper = scale(prefix, base << (level + 1)) & 1;
                    assert_eq!(u32::from(split_bits::<P>(prefix, last)) >> deciding & 1, upper);
                }
            }
        }
    }

    #[test]
    fn split_bits_say_what_a_split_would_find_by_hashing() {
        decide_what_prefixes_do::<Pointers>();
        decide_what_prefixes_do::<Pointer<u16, ()>>();
        decide_what_prefixes_do::<Inline<u64, u64>>();
    }
}
