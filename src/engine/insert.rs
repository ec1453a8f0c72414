//! Inserting: a key that is not there gets a slot, or its segment grows, or it goes to the overflow.

use super::directory::{Directory, Spot, Writing};
use super::draft::NoRoom;
use super::locked::Locked;
use super::payload::Payload;
use super::rehash::Rehash;
use crate::hash::{Digest, Place};

impl<P: Payload> Directory<P> {
    /// Puts an item whose key is not in the table, as the caller has established under this lock; grows the segment if it must.
    /// On an error nothing has changed.
    #[inline]
    pub(crate) fn insert<'a>(
        &'a self,
        spot: Spot<'a, P>,
        item: P::Item,
        rehash: impl Fn(P::Item) -> Digest,
    ) -> Result<(), NoRoom> {
        let Spot { mut writing, digest, place, .. } = spot;
        let mark = writing.locked.split_bits(digest.prefix());
        if !writing.locked.is_filling_up() && writing.locked.put(place, item, mark, self.shape.budget) {
            return Ok(());
        }
        self.insert_growing(&mut writing, digest, item, &rehash)
    }

    /// `writing` becomes a lock on the segment that covers the digest after growth.
    #[cold]
    #[inline(never)]
    fn insert_growing<'a>(
        &'a self,
        writing: &mut Writing<'a, P>,
        digest: Digest,
        item: P::Item,
        rehash: &dyn Rehash<P>,
    ) -> Result<(), NoRoom> {
        let put = |writing: &mut Writing<'a, P>| {
            let place = Place::new(digest, writing.locked.segment().buckets().len());
            let mark = writing.locked.split_bits(digest.prefix());
            writing.locked.put(place, item, mark, self.shape.budget)
        };
        if writing.locked.is_filling_up() {
            // This comes first: if the user's `Hash` panics, nothing has been inserted.
            self.copy_ahead(&mut writing.locked, rehash);
            if put(writing) {
                return Ok(());
            }
        }
        while self.should_grow(&writing.locked) {
            // Nobody has said how many items are to come. Beyond 7/8, paths get long, and displacing costs more than growing.
            let has_grown = self.grow(writing, digest.prefix(), true, rehash).is_ok();
            if !has_grown && !writing.locked.is_filling_up() {
                // All paths have been searched.
                break;
            }
            if !has_grown {
                // For want of memory, free slots are filled, however long the paths.
                writing.locked.grow_early(false);
            }
            if put(writing) {
                return Ok(());
            }
        }
        if self.parts_overflow(&mut writing.locked, rehash)
            && self.grow(writing, digest.prefix(), true, rehash).is_ok()
            && put(writing)
        {
            return Ok(());
        }
        // The cause is colliding keys that growth cannot part, no memory, or bad luck in a map of fixed capacity.
        let room = |capacity: usize| self.allowance.take(|| capacity.saturating_sub(self.len()));
        let has_room = self.shape.fixed_capacity.is_none_or(room);
        let place = Place::new(digest, writing.locked.segment().buckets().len());
        if has_room && writing.locked.put_in_overflow(place, item, 0, &self.meter) {
            Ok(())
        } else {
            Err(NoRoom)
        }
    }

    /// Whether growing will make room: not if so few slots are taken that the keys must be colliding.
    fn should_grow(&self, locked: &Locked<'_, P>) -> bool {
        let in_buckets = locked.len() - locked.state_ref().overflow_len;
        self.shape.fixed_capacity.is_none() && in_buckets * 2 >= locked.slots()
    }

    /// Whether the items in the overflow of a segment with many free slots collide only in the bits that select bucket and tag,
    /// as keys do that were chosen by some bits of their hashes: growing parts those in the end. Asked each time that there are
    /// twice as many as growing has left, and at least a quarter as many as slots [G9].
    fn parts_overflow(&self, locked: &mut Locked<'_, P>, rehash: &dyn Rehash<P>) -> bool {
        let (many, asked) = (locked.state_ref().overflow_len, locked.state_ref().parted_at as usize);
        let least = 16.max(locked.slots() / 4).max(2 * asked);
        if P::MARKED || self.shape.fixed_capacity.is_some() || many < least {
            return false;
        }
        locked.state().parted_at = u32::try_from(many).unwrap_or(u32::MAX);
        let mut digests = Vec::new();
        if digests.try_reserve_exact(many).is_err() {
            return false;
        }
        for buckets in locked.segment().overflow().blocks() {
            for bucket in 0..buckets.len() {
                digests.extend(buckets.items(bucket).map(|(item, _)| rehash.digest(item).bits()));
            }
        }
        // Not if the keys have only a few hashes: those stay together.
        digests.sort_unstable();
        digests.dedup();
        digests.len() * 2 >= many
    }

    /// Buckets that a path search looks at.
    pub(crate) fn budget(&self) -> usize {
        self.shape.budget
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::super::growth::tests::{Words, insert, insert_as, table};
    use super::super::sizing::{Options, Shape};
    use super::*;
    use crate::sync::Ordering;

    #[test]
    fn who_displaces_for_itself_searches_as_far_as_the_shape_says() {
        let shape = Shape::for_cache(1, 100).expect("a shape");
        let table = Directory::<Words>::new(shape, 100).expect("memory");
        assert_eq!(table.budget(), shape.budget);
    }

    #[test]
    fn what_finds_no_path_is_taken_up_to_the_fixed_capacity_and_not_beyond() {
        let table = table(Options { capacity: 20, fixed: true, ..Options::default() });
        let taken = (0..100).take_while(|key| insert_as(&table, *key, |_| Digest::new(3)).is_ok()).count();
        let stats = table.stats();
        assert_eq!((taken, table.len(), stats.overflow), (20, 20, 12));
        assert_eq!(stats.failed_searches, 13, "of the last twelve, and of the one that was refused");
    }

    /// More slots would not part them: half of the eight slots of two buckets are taken when growing stops.
    #[test]
    fn keys_of_one_digest_make_no_large_table() {
        let table = table(Options::default());
        (0..100).for_each(|key| insert_as(&table, key, |_| Digest::new(3)).unwrap());
        assert_eq!((table.slots(), table.len(), table.stats().overflow), (32, 100, 92));
        assert!((0..100).all(|key| table.find(Digest::new(3), || (), |item| item.0 == key).is_some()));
    }

    /// A segment's overflow is then about a quarter of its slots, and not all items that ever came.
    #[test]
    fn keys_that_collide_in_some_bits_are_parted_by_the_others() {
        // The same buckets and tag; the same buckets, of 4,096 and fewer; the same tag.
        for fixed in [0x7654_3210, 0x7654_0000, 0x0000_0010_u64] {
            let mask: u64 = if fixed as u16 == 0 {
                0xFFF0_0000
            } else if fixed < 1 << 8 {
                0xFF
            } else {
                0xFFFF_FFFF
            };
            let mix = |key: u64| (key + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(32);
            let digest = |key| Digest::from_bits(mix(key) & !mask | fixed & mask);
            let table = table(Options::default());
            (0..40_000).for_each(|key| insert_as(&table, key, digest).unwrap());
            table.each_segment(|writing| {
                let (overflow, slots) = (writing.locked.state_ref().overflow_len, writing.locked.slots());
                assert!(overflow <= slots / 2, "{fixed:x}: {overflow} beside {slots} slots");
            });
            assert!(table.slots() <= 8 * 40_000, "{fixed:x}: {} slots", table.slots());
            assert!((0..40_000).all(|key| table.find(digest(key), || (), |item| item.0 == key).is_some()));
        }
    }

    /// Growing would not part them before the root is far too large. They come and go, and reach the same number again and
    /// again.
    #[test]
    fn keys_that_growing_does_not_part_make_no_larger_table_again_and_again() {
        let mix = |key: u64| (key + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 14;
        let digest = |key| Digest::from_bits(mix(key) & !0xFFFF_FFFF | 0x1234);
        for many in [20, 25, 130, 1025, 1033, 2057] {
            let table = table(Options::default());
            (0..many).for_each(|key| insert_as(&table, key, digest).unwrap());
            for key in many..many + 20_000 {
                let mut spot = table.lock_and_find(digest(key - many), |item| item.0 == key - many);
                spot.writing.locked.remove(spot.place, spot.found.expect("it came"));
                drop(spot);
                insert_as(&table, key, digest).unwrap();
            }
            assert!(table.slots() <= 8 * many as usize + 128, "{many}: {} slots", table.slots());
        }
    }

    #[test]
    fn paths_are_as_long_as_what_was_displaced() {
        let table = table(Options { capacity: 2000, fixed: true, ..Options::default() });
        (0..2000).for_each(|key| insert(&table, key).unwrap());
        let stats = table.stats();
        let versions = table.segments().flat_map(|segment| segment.segment().stripes());
        let moves: u64 = versions.map(|stripe| stripe.load(Ordering::Relaxed) / 2).sum();
        assert!(moves > 10 && stats.displacements == moves, "{moves} moves, {stats:?}");
    }
}
