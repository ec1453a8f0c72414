//! A replica: a table with the segments of another one, and the same items in the same slots.
//!
//! Nothing is hashed and no place is looked for: a segment is copied as it is, under its lock. It is copied into the segment
//! that covers the same prefixes and has as many buckets. Where there is none any more, because the table has grown meanwhile,
//! and where items are in the overflow, the items are handed to the caller, which inserts them one by one.

use super::directory::{Coverage, Directory};
use super::locked::{Locked, LockedAlone};
use super::payload::Payload;
use super::segment::State;
use super::sizing::CapacityError;
use super::stripes;
use super::tags::{SLOTS, tag_at, taken_lanes};

/// A table is copied as it is if at least this share of its slots is taken: two fifths. Segments that have just split have 7
/// items for 16 slots; with fewer items, a table that is made for them takes less than half of the memory.
const FEWEST: (usize, usize) = (2, 5);

impl<P: Payload> Directory<P> {
    /// An empty table whose segments cover what those of this one cover, and have as many buckets. `None` if this table is
    /// mostly empty, or if some of its segments are larger than others: then its items are better inserted into a table that is
    /// made for them.
    ///
    /// # Panics
    ///
    /// If this thread is writing to this table.
    pub(crate) fn empty_replica(&self) -> Option<Result<Self, CapacityError>> {
        let (mut coverage, mut items, mut slots) = (Vec::new(), 0, 0);
        let (mut buckets, mut is_uniform, mut highest) = (0, true, 0);
        self.each_segment(|writing| {
            let state = writing.locked.state_ref();
            let State { index, level, .. } = *state;
            coverage.push(Coverage { index, level });
            highest = highest.max(level);
            let of_this = writing.locked.segment().buckets().len();
            is_uniform &= buckets == 0 || buckets == of_this;
            buckets = of_this;
            items += writing.locked.len();
            slots += writing.locked.slots();
        });
        if !is_uniform || items * FEWEST.1 < slots * FEWEST.0 {
            return None;
        }
        let shape = self.shape.of_replica(items);
        Some(Directory::with_segments(shape, items, buckets, highest, coverage.into_iter()))
    }

    /// Copies the items of `source`, whose [empty replica](Directory::empty_replica) this is. Where slots hold pointers,
    /// `make_own` makes each of them an item of this table, and may use what the front end keeps in the segment. Items that
    /// could not be copied to the same slot are appended to `rest`, as they are in the source, for the caller to insert.
    ///
    /// `make_own` is called without any lock, with items that were in the source since this was called. If it panics, the table
    /// has the items that it owned by then.
    pub(crate) fn replicate(
        &mut self,
        source: &Self,
        rest: &mut Vec<P::Item>,
        mut make_own: impl FnMut(P::Item, &mut P::Keep) -> P::Item,
    ) {
        for segment in self.segments() {
            // SAFETY: `&mut self`.
            let mut ours = unsafe { LockedAlone::alone(segment) };
            let covered = self.prefixes_of(ours.state_ref());
            let (theirs, mut cursor) = source.visit(covered.start).expect("a segment begins there");
            let is_alike = cursor == covered.end
                && theirs.locked.slots() == ours.slots()
                && theirs.locked.segment().has_no_overflow();
            if !is_alike {
                theirs.locked.copy_to(rest);
                drop(theirs);
                while cursor < covered.end {
                    cursor = source.snapshot(cursor, rest).expect("a segment ends by 2^32");
                }
                continue;
            }
            ours.copy_all(&theirs.locked);
            drop(theirs);
            if P::NULLABLE {
                Borrowed::all(ours).replace(&mut make_own);
            }
        }
    }
}

impl<'a, P: Payload> LockedAlone<'a, P> {
    /// Copies all items that are in the buckets of another segment, which has as many, to the same slots of this one, which is
    /// empty.
    fn copy_all(&mut self, other: &Locked<'_, P>) {
        let (from, to) = (other.segment().buckets(), self.segment().buckets());
        assert_eq!(from.len(), to.len());
        // For the slots that are filled here [W3]; nobody reads yet.
        stripes::publish_departures();
        for bucket in 0..from.len() {
            let tags = from.tags(bucket);
            if tags != 0 {
                to.copy_from(&from, bucket, tags);
            }
        }
        self.add_len(other.len());
        self.state().filling_from = other.state_ref().filling_from;
    }
}

/// A segment some of whose slots hold items of another table: those slots are emptied when this is dropped.
struct Borrowed<'a, P: Payload> {
    segment: LockedAlone<'a, P>,
    /// The number of the first such slot. So do all that follow it.
    from: u32,
}

impl<'a, P: Payload> Borrowed<'a, P> {
    /// A segment all of whose items are another table's.
    fn all(segment: LockedAlone<'a, P>) -> Self {
        Borrowed { segment, from: 0 }
    }

    /// Replaces each item by what `own` makes of it.
    fn replace(mut self, own: &mut impl FnMut(P::Item, &mut P::Keep) -> P::Item) {
        let buckets = self.segment.segment().buckets();
        for bucket in 0..buckets.len() {
            buckets.fetch_ahead(bucket);
            for lane in taken_lanes(buckets.tags(bucket)) {
                self.from = bucket * SLOTS + lane;
                let item = buckets.item(bucket, lane).expect("just copied");
                let new = own(item, &mut self.segment.state().keep);
                buckets.replace_alone(bucket, lane, new);
            }
        }
        self.from = buckets.len() * SLOTS;
    }
}

impl<P: Payload> Drop for Borrowed<'_, P> {
    fn drop(&mut self) {
        let buckets = self.segment.segment().buckets();
        let mut emptied = 0;
        for slot in self.from..buckets.len() * SLOTS {
            let (bucket, lane) = (slot / SLOTS, slot % SLOTS);
            if tag_at(buckets.tags(bucket), lane) != 0 {
                buckets.clear(bucket, lane);
                emptied += 1;
            }
        }
        self.segment.set_len(self.segment.len() - emptied);
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use core::ptr::NonNull;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::super::payload::Pointer;
    use super::super::sizing::{Options, Shape};
    use super::*;
    use crate::hash::Digest;

    type Pointers = Directory<Pointer<u64, ()>>;

    fn digest(item: NonNull<u64>) -> Digest {
        // SAFETY: it is one of the items, which live as long as the test.
        Digest::new(unsafe { item.as_ref() }.wrapping_mul(0x9E37_79B9_7F4A_7C15))
    }

    fn filled(items: &[u64]) -> Pointers {
        let options = Options { segment_slots: Some(64), ..Options::default() };
        let table = Directory::new(Shape::new(options).expect("a shape"), 0).expect("memory");
        for item in items.iter().map(NonNull::from) {
            assert!(table.insert(table.lock_and_find(digest(item), |_| false), item, digest).is_ok());
        }
        table
    }

    fn has(table: &Pointers, item: NonNull<u64>, of: NonNull<u64>) -> bool {
        table.find(digest(of), || (), |other| other == item).is_some()
    }

    /// However much it owns by then, nothing of what others own is left.
    #[test]
    fn a_replica_has_what_is_its_own_wherever_that_ends() {
        let items: Vec<u64> = (0..500).collect();
        let source = filled(&items);
        let owned = Box::into_raw(Box::new(7_u64));
        let own = NonNull::new(owned).expect("a box");
        for most in [0, 1, 17, 63, 200, 499, 500] {
            let mut replica = source.empty_replica().expect("more than half full").expect("memory");
            let (mut rest, mut taken) = (Vec::new(), Vec::new());
            let replicate = || {
                replica.replicate(&source, &mut rest, |item, ()| {
                    assert!(taken.len() < most, "as planned");
                    taken.push(item);
                    own
                });
            };
            assert_eq!(catch_unwind(AssertUnwindSafe(replicate)).is_ok(), most == 500);
            assert!(rest.is_empty() && taken.len() == most && replica.len() == most);
            for item in items.iter().map(NonNull::from) {
                assert!(!has(&replica, item, item), "another's");
                assert_eq!(has(&replica, own, item), taken.contains(&item));
            }
            let mut left = 0;
            replica.give_all(&mut |item| left += usize::from(item == own));
            assert_eq!(left, most);
        }
        // SAFETY: from a box, and nobody looks at it any more.
        drop(unsafe { Box::from_raw(owned) });
    }

    #[test]
    fn a_table_of_which_less_than_two_fifths_is_taken_is_made_anew() {
        let items: Vec<u64> = (0..500).collect();
        let table = filled(&items);
        let slots = table.slots();
        let fewest = (slots * 2).div_ceil(5);
        for (gone, item) in items.iter().map(NonNull::from).enumerate() {
            assert_eq!(table.empty_replica().is_some(), items.len() - gone >= fewest, "{gone} of {slots}");
            let mut spot = table.lock_and_find(digest(item), |other| other == item);
            spot.writing.locked.remove(spot.place, spot.found.expect("inserted"));
        }
        assert!(fewest > 200 && table.is_empty());
    }

    #[test]
    fn a_table_of_segments_of_several_sizes_is_made_anew() {
        let items: Vec<u64> = (0..500).collect();
        let table = filled(&items);
        for item in items.iter().map(NonNull::from).filter(|item| digest(*item).prefix() >> 28 == 3) {
            let mut spot = table.lock_and_find(digest(item), |other| other == item);
            spot.writing.locked.remove(spot.place, spot.found.expect("inserted"));
        }
        assert!(table.empty_replica().is_some());
        table.shrink(&digest);
        assert!(table.empty_replica().is_none());
    }
}
