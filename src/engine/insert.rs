//! Inserting: a key that is not there gets a slot, or its segment grows, or it goes to the overflow.

use super::directory::{Directory, Spot, Writing};
use super::draft::NoRoom;
use super::locked::Locked;
use super::payload::Payload;
use crate::hash::{Digest, Place};

impl<P: Payload> Directory<P> {
    /// Puts an item whose key is not in the table, as the caller has found under this lock; grows if it must. On an
    /// error nothing has changed.
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
        rehash: &impl Fn(P::Item) -> Digest,
    ) -> Result<(), NoRoom> {
        let put = |writing: &mut Writing<'a, P>| {
            let place = Place::new(digest, writing.locked.segment().buckets().len());
            let mark = writing.locked.split_bits(digest.prefix());
            writing.locked.put(place, item, mark, self.shape.budget)
        };
        if writing.locked.is_filling_up() {
            // First: if the user's `Hash` panics, nothing has been inserted.
            self.copy_ahead(&mut writing.locked, rehash);
            if put(writing) {
                return Ok(());
            }
        }
        while self.should_grow(&writing.locked) {
            // Nobody has said how many are to come. Beyond 7/8 paths get long, and displacing costs more than growing.
            let has_grown = self.grow(writing, digest.prefix(), true, rehash).is_ok();
            if !has_grown && !writing.locked.is_filling_up() {
                // All paths have been searched.
                break;
            }
            if !has_grown {
                // For want of memory what is free is filled, however long the paths.
                writing.locked.grow_early(false);
            }
            if put(writing) {
                return Ok(());
            }
        }
        // Colliding keys that growth cannot part, no memory, or bad luck in a map of fixed capacity.
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

    /// More slots would not part them: half of two buckets' eight are taken when it stops.
    #[test]
    fn keys_of_one_digest_make_no_large_table() {
        let table = table(Options::default());
        (0..100).for_each(|key| insert_as(&table, key, |_| Digest::new(3)).unwrap());
        assert_eq!((table.slots(), table.len(), table.stats().overflow), (32, 100, 92));
        assert!((0..100).all(|key| table.find(Digest::new(3), || (), |item| item.0 == key).is_some()));
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
