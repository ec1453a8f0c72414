//! A bucket's four tags, in one word: which lanes are taken, which is free; and the matching of eight tags at once.

/// Slots in a bucket. Four allow 95% load, two 84%; eight cost a second word of tags to compare (MemC3, table 1).
pub(crate) const SLOTS: u32 = 4;
// A tag word is one `u32`; `Matches` and `Place::slot` count eight lanes for two of them.
const _: () = assert!(SLOTS == 4 && SLOTS as usize == size_of::<u32>());

/// The slots of one or two buckets whose tags match: a bit for each, see [`Matches::next_lane`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Matches(Mask);

#[cfg(all(target_arch = "x86_64", not(miri)))]
use sse2::{BITS_PER_LANE, Mask, equal_tags};
#[cfg(not(all(target_arch = "x86_64", not(miri))))]
use swar::{BITS_PER_LANE, Mask, equal_tags};

/// Comparison by one vector instruction: the fewer instructions wait for the tags to arrive, the more look-ups the processor
/// has under way. Compared with [`swar`], a fifth faster in the caches and a third faster beyond.
#[cfg(all(target_arch = "x86_64", not(miri)))]
mod sse2 {
    use core::arch::x86_64::{
        _mm_cmpeq_epi8, _mm_cvtsi32_si128, _mm_movemask_epi8, _mm_set1_epi32, _mm_unpacklo_epi32,
    };

    pub(super) type Mask = u32;
    pub(super) const BITS_PER_LANE: u32 = 1;

    /// `tag` is not zero: zeros follow the eight tags.
    #[inline(always)]
    pub(super) fn equal_tags(first: u32, second: u32, tag: u8) -> Mask {
        // SAFETY: SSE2 is part of every x86_64, and these work on registers.
        unsafe {
            let first = _mm_cvtsi32_si128(first as i32);
            let both = _mm_unpacklo_epi32(first, _mm_cvtsi32_si128(second as i32));
            // The tag four times by a multiplication, which needs no shuffling.
            let tags = _mm_set1_epi32((u32::from(tag) * 0x0101_0101) as i32);
            let equal = _mm_cmpeq_epi8(both, tags);
            _mm_movemask_epi8(equal) as u32
        }
    }
}

/// The same comparison in a 64-bit register.
#[cfg(any(test, not(all(target_arch = "x86_64", not(miri)))))]
#[cfg_attr(all(target_arch = "x86_64", not(miri)), allow(dead_code, reason = "for the test"))]
mod swar {
    pub(super) type Mask = u64;
    pub(super) const BITS_PER_LANE: u32 = 8;

    #[inline(always)]
    pub(super) fn equal_tags(first: u32, second: u32, tag: u8) -> Mask {
        const LOW: u64 = 0x7F7F_7F7F_7F7F_7F7F;
        let both = u64::from(first) | u64::from(second) << 32;
        let differ = both ^ (0x0101_0101_0101_0101 * u64::from(tag));
        // A byte's top bit becomes 1 unless the whole byte is 0; no carry leaves a byte.
        !(((differ & LOW) + LOW) | differ | LOW)
    }
}

impl Matches {
    /// Compares eight tags, four of each word, with `tag`, which is not 0: exactly.
    #[inline(always)]
    pub(crate) fn of_pair(first: u32, second: u32, tag: u8) -> Self {
        debug_assert!(tag != 0);
        Matches(equal_tags(first, second, tag))
    }

    /// The matches of one bucket.
    #[inline(always)]
    pub(crate) fn of_one(word: u32, tag: u8) -> Self {
        Self::of_pair(word, 0, tag)
    }

    /// Takes the next match: a lane, 0..4 in the first word and 4..8 in the second.
    #[inline(always)]
    pub(crate) fn next_lane(&mut self) -> Option<u32> {
        let lane = self.peek_lane()?;
        self.skip();
        Some(lane)
    }

    /// The next match, without taking it: a look-up that ends with it saves the step to the one after.
    #[inline(always)]
    pub(crate) fn peek_lane(self) -> Option<u32> {
        (self.0 != 0).then(|| self.0.trailing_zeros() / BITS_PER_LANE)
    }

    /// Takes the next match away; there must be one.
    #[inline(always)]
    pub(crate) fn skip(&mut self) {
        debug_assert!(!self.is_empty());
        self.0 &= self.0 - 1;
    }

    /// Whether nothing matched.
    #[inline(always)]
    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// The tag at `lane` of a tag word.
#[inline(always)]
pub(crate) fn tag_at(word: u32, lane: u32) -> u8 {
    (word >> (8 * lane)) as u8
}

/// The first empty lane of a tag word.
#[inline(always)]
pub(crate) fn free_lane(word: u32) -> Option<u32> {
    const LOW: u32 = 0x0101_0101;
    // The lowest byte that is zero borrows from the one above it; higher bytes do not matter.
    let zero = word.wrapping_sub(LOW) & !word & (LOW << 7);
    (zero != 0).then(|| zero.trailing_zeros() / 8)
}

/// The lanes of a tag word that are not empty, in order.
#[inline(always)]
pub(crate) fn taken_lanes(word: u32) -> impl Iterator<Item = u32> {
    const LOW: u32 = 0x7F7F_7F7F;
    // A byte's top bit becomes 1 unless the whole byte is 0; no carry leaves a byte.
    let mut taken = (((word & LOW) + LOW) | word) & !LOW;
    core::iter::from_fn(move || {
        let lane = (taken != 0).then(|| taken.trailing_zeros() / 8);
        taken &= taken.wrapping_sub(1);
        lane
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matching_is_exact_for_every_tag_beside_every_other() {
        for tag in 1..=255_u8 {
            for other in 0..=255_u8 {
                let first = u32::from_le_bytes([other, tag, other, tag]);
                let second = u32::from_le_bytes([tag, other, other, tag]);
                let mut matches = Matches::of_pair(first, second, tag);
                let mut lanes = Vec::new();
                while let Some(lane) = matches.next_lane() {
                    lanes.push(lane);
                }
                let expected: &[u32] = if tag == other { &[0, 1, 2, 3, 4, 5, 6, 7] } else { &[1, 3, 4, 7] };
                assert_eq!(lanes, expected, "tag {tag} beside {other}");
                let portable = swar::equal_tags(first, second, tag);
                assert_eq!(portable & 0x7F7F_7F7F_7F7F_7F7F, 0, "tag {tag} beside {other}");
                let portable: Vec<u32> = (0..8).filter(|lane| portable >> (8 * lane + 7) & 1 == 1).collect();
                assert_eq!(portable, expected, "tag {tag} beside {other}");
            }
        }
    }

    #[test]
    fn free_lane_is_the_first_zero() {
        assert_eq!(free_lane(0), Some(0));
        assert_eq!(free_lane(0x0000_0001), Some(1));
        assert_eq!(free_lane(0x0101_0001), Some(1));
        assert_eq!(free_lane(0x0001_0101), Some(3));
        assert_eq!(free_lane(0x0101_0101), None);
        assert_eq!(free_lane(0x8080_8080), None);
    }
}
