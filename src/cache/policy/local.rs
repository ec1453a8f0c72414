//! [`Local`]: the victim is chosen among the newcomer's own slots, as in a set-associative cache.

use super::swept::{Rule, Swept};
use super::{Heat, Newcomer, Residents, mark};
use crate::hash::Place;

/// Takes, of the eight slots where a newcomer may be, one whose item was not hit.
///
/// If all were hit, each loses a hit, and a hand sweeps all slots as in [`Clock`](super::clock::Clock), but takes one hit at a
/// time. The hand also sweeps if one eviction is not enough, because the newcomer weighs more or its slots are empty.
///
/// Each bucket notes the tags of the last two items that were taken from it for a newcomer, and an item that comes back while
/// one of its buckets remembers it begins with a hit. Most times, all that an insertion reads and writes for the policy is on
/// the lines it has just searched: there is no queue, and no slot elsewhere is touched.
pub(super) type Local = Swept<Neighbourly>;

/// The rule of [`Local`].
#[derive(Debug)]
pub(super) enum Neighbourly {}

/// The eight slots of a place, one byte lane each; those of its first bucket are the lower four.
///
/// A note is a tag whose halves are in the upper halves of two marks: each bucket has an older note in its upper two lanes, and
/// a younger one in its lower two. 0 is no tag.
///
/// ```text
///   byte of a mark, lane 0:   note, bits 0 to 3 | the item's mark      lane 1:   note, bits 4 to 7 | the item's mark
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Neighbours {
    tags: u64,
    marks: u64,
}

/// A 1 in each lane.
const ONES: u64 = 0x0101_0101_0101_0101;
/// The halves of marks that hold notes.
const NOTES: u64 = 0xF0 * ONES;
/// A 1 where each note begins.
const PAIRS: u64 = 0x0001_0001_0001_0001;

/// A tag as the note of lanes 0 and 1.
#[inline]
fn note(tag: u8) -> u64 {
    u64::from(tag & 0x0F) << 4 | u64::from(tag & 0xF0) << 8
}

impl Neighbours {
    #[inline]
    fn of<R: Residents>(place: Place, residents: &R) -> Self {
        let (first, second) = (residents.tags_and_marks(place.first), residents.tags_and_marks(place.second));
        let both = |first: u32, second: u32| u64::from(first) | u64::from(second) << 32;
        Neighbours { tags: both(first.0, second.0), marks: both(first.1, second.1) }
    }

    /// Writes the marks of the buckets that have changed.
    #[inline]
    fn store<R: Residents>(self, before: Self, place: Place, residents: &mut R) {
        for (bucket, shift) in [(place.first, 0), (place.second, 32)] {
            let marks = (self.marks >> shift) as u32;
            if marks != (before.marks >> shift) as u32 {
                residents.set_marks(bucket, marks);
            }
        }
    }

    /// Whether a note of either bucket is this tag; if so, the note is crossed out.
    #[inline]
    fn recall(&mut self, tag: u8) -> bool {
        const LOW: u64 = !(PAIRS << 15);
        let differ = (self.marks & NOTES) ^ (note(tag) * PAIRS);
        // A note's top bit becomes 1 unless the whole note is 0; no carry leaves a note.
        let known = (!(((differ & LOW) + LOW) | differ) >> 15) & PAIRS;
        self.marks &= !((known * 0xFFFF) & NOTES);
        known != 0
    }

    /// Notes the tag in a lane for its bucket, which forgets the older of its two.
    #[inline]
    fn remember(&mut self, lane: u32) {
        let (tag, shift) = ((self.tags >> (8 * lane)) as u8, 8 * (lane & 4));
        let bucket = 0xFFFF_FFFF << shift;
        let notes = ((self.marks & NOTES & bucket) << 16 & bucket) | note(tag) << shift;
        self.marks = self.marks & !(NOTES & bucket) | notes;
    }

    /// The lanes of items that were not hit: a 1 in each.
    #[inline]
    fn never_hit(self) -> u64 {
        const LOW: u64 = !(ONES << 7);
        // A byte's top bit becomes 1 unless the whole byte is 0; no carry leaves a byte.
        let taken = (((self.tags & LOW) + LOW) | self.tags) >> 7 & ONES;
        taken & !self.hit()
    }

    /// The lanes with at least a hit.
    #[inline]
    fn hit(self) -> u64 {
        (self.marks | self.marks >> 1) & ONES
    }

    /// The lanes with all the hits that a mark can count.
    #[inline]
    fn hit_twice(self) -> u64 {
        self.marks & self.marks >> 1 & ONES
    }

    /// Takes a hit from each.
    #[inline]
    fn cool(&mut self) {
        self.marks = self.marks & !(ONES * u64::from(mark::HITS)) | self.hit_twice();
    }
}

/// The first of these lanes from `turn` on; there must be one.
#[inline]
fn pick(lanes: u64, turn: u8) -> u32 {
    let turn = u32::from(turn % 8) * 8;
    (lanes.rotate_right(turn).trailing_zeros() + turn) / 8 % 8
}

impl Rule for Neighbourly {
    fn spare(mark: u8) -> Option<u8> {
        (mark::hits(mark) > 0).then(|| mark::less(mark))
    }

    fn mark(heat: Heat) -> u8 {
        heat.local_mark()
    }

    fn heat(mark: u8) -> Heat {
        Heat::new(mark::hits(mark) as u8, true)
    }

    #[inline]
    fn admit<R: Residents>(swept: &mut Local, newcomer: Newcomer, residents: &mut R) -> u8 {
        let place = newcomer.locator.place(residents.buckets());
        let before = Neighbours::of(place, residents);
        let mut now = before;
        let came_back = now.recall(place.tag);
        let evicts = !swept.fits(newcomer.weight);
        let never_hit = now.never_hit();
        if evicts && never_hit != 0 {
            // If there are several, the newcomer's tag selects one: it does not matter which, but it should not always be the
            // same.
            let lane = pick(never_hit, place.tag);
            now.remember(lane);
            now.store(before, place, residents);
            swept.evict(residents.in_lane(place, lane), residents);
        } else {
            if evicts {
                now.cool();
            }
            now.store(before, place, residents);
        }
        if came_back { mark::hit(0) } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The slots that were not hit, found one slot after the other.
    fn plainly_never_hit(neighbours: Neighbours) -> Vec<u32> {
        let (tags, marks) = (neighbours.tags.to_le_bytes(), neighbours.marks.to_le_bytes());
        (0..8)
            .filter(|&lane| tags[lane] != 0 && mark::hits(marks[lane]) == 0)
            .map(|lane| lane as u32)
            .collect()
    }

    /// A lane's tag, more often than not none, and its mark, with bits that may be left from an earlier item of the slot.
    fn lane() -> impl Strategy<Value = (u8, u8)> {
        (prop_oneof![Just(0), Just(1), Just(0x80), any::<u8>()], prop_oneof![0_u8..4, any::<u8>()])
    }

    proptest! {
        #[test]
        fn who_was_not_hit_is_found_and_hits_are_taken(lanes in [(); 8].map(|()| lane()), turn in any::<u8>()) {
            let neighbours = Neighbours {
                tags: u64::from_le_bytes(lanes.map(|lane| lane.0)),
                marks: u64::from_le_bytes(lanes.map(|lane| lane.1)),
            };
            let never_hit = neighbours.never_hit();
            prop_assert_eq!(never_hit & !ONES, 0);
            let expected = plainly_never_hit(neighbours);
            let found: Vec<u32> = (0..8).filter(|lane| never_hit >> (8 * lane) & 1 == 1).collect();
            prop_assert_eq!(&found, &expected);
            if !expected.is_empty() {
                let first = (0..8).map(|step| (u32::from(turn) + step) % 8).find(|lane| expected.contains(lane));
                prop_assert_eq!(Some(pick(never_hit, turn)), first);
            }
            let mut cooled = neighbours;
            cooled.cool();
            prop_assert_eq!(cooled.tags, neighbours.tags);
            for (cooled, lane) in cooled.marks.to_le_bytes().into_iter().zip(lanes) {
                prop_assert_eq!(mark::hits(cooled), mark::hits(lane.1).saturating_sub(1));
                prop_assert_eq!(cooled & !mark::HITS, lane.1 & !mark::HITS);
            }
        }

        /// Compared with two queues of two tags.
        #[test]
        fn buckets_recall_the_last_two_of_theirs(
            events in prop::collection::vec((any::<bool>(), 0_u32..8, 0_usize..11), 1..60), marks in any::<u64>(),
        ) {
            let mut neighbours = Neighbours { tags: 0, marks: marks & !NOTES };
            let mut plain = [[0_u8; 2]; 2];
            for (leaves, lane, tag) in events {
                // Each half of a tag matters: some of these have the same lower half, and some the same upper half.
                let tag = [0x10, 0x20, 0xF0, 0x01, 0x02, 0x0F, 0x11, 0x12, 0x21, 0x22, 0xFF][tag];
                if leaves {
                    neighbours.tags = u64::from(tag) << (8 * lane);
                    neighbours.remember(lane);
                    let bucket = &mut plain[lane as usize / 4];
                    *bucket = [tag, bucket[0]];
                } else {
                    prop_assert_eq!(neighbours.recall(tag), plain.as_flattened().contains(&tag));
                    plain.as_flattened_mut().iter_mut().filter(|note| **note == tag).for_each(|note| *note = 0);
                }
                prop_assert_eq!(neighbours.marks & !NOTES, marks & !NOTES);
            }
        }
    }
}
