//! A split [G6]: a segment gives the items of the upper half of its prefixes to a new one, and keeps the others.
//!
//! What stays is not touched, and what goes has the same slot in the new segment: both have as many buckets. Readers find an
//! item that goes in the old segment until the directory leads to the new one, and there from then on; who has asked the
//! directory before, and looks when it has gone, asks again [R4].

use super::buckets::taken_lanes;
use super::directory::{Directory, Writing};
use super::draft::NoRoom;
use super::locked::Locked;
use super::payload::Payload;
use super::stripes;
use crate::hash::{Digest, scale};
use crate::sync::step;

impl<P: Payload> Directory<P> {
    /// Splits a segment that never had overflow; `writing` becomes a lock on the half that covers `prefix`. On an error, or if
    /// `rehash` panics, nothing has changed.
    pub(super) fn split<'a>(
        &'a self,
        writing: &mut Writing<'a, P>,
        prefix: u32,
        grows_early: bool,
        rehash: &dyn Fn(P::Item) -> Digest,
    ) -> Result<(), NoRoom> {
        debug_assert!(!P::MARKED, "marks are not copied");
        let old = &mut writing.locked;
        let (lower, level) = (old.state_ref().index * 2, old.state_ref().level + 1);
        let entries = self.shape.segments << level;
        let draft = self.draft(old.segment().buckets().len(), true)?;
        let mut new = draft.lock(lower + 1, level);
        new.state().grows_early = grows_early;
        // 1 in the upper half. `lower` is even, but the compiler does not know that, and makes no branch of the bit. A `Hash`
        // that contradicts itself may send an item astray, but not us.
        old.copy_to(&mut new, |item| scale(rehash(item).prefix(), entries).wrapping_sub(lower) & 1);
        self.publish(core::slice::from_ref(&new), 1)?;
        draft.done();
        step();
        old.remove_copied(&new);
        let state = old.state();
        (state.index, state.level, state.grows_early) = (lower, level, grows_early);
        if scale(prefix, entries) > lower {
            *old = new;
        }
        Ok(())
    }
}

impl<P: Payload> Locked<'_, P> {
    /// Copies the items of which `leaves` says 1, and not 0, to the same slots of an empty segment with as many buckets.
    fn copy_to(&self, new: &mut Locked<'_, P>, leaves: impl Fn(P::Item) -> u32) {
        let (from, to) = (self.segment().buckets(), new.segment().buckets());
        assert_eq!(from.len(), to.len());
        let mut count = 0;
        // Once for all that is filled here [W3].
        stripes::publish_departures();
        for bucket in 0..from.len() {
            from.fetch_ahead(bucket);
            let tags = from.tags(bucket);
            let mut leaving = 0;
            for lane in taken_lanes(tags) {
                let item = from.item(bucket, lane).expect("a slot is filled while the lock is held");
                // Computed, not asked: every other branch would be predicted wrongly.
                let leaves = leaves(item);
                leaving |= (leaves << 8).wrapping_sub(leaves) << (8 * lane);
                count += leaves as usize;
            }
            to.copy_from(&from, bucket, tags & leaving);
        }
        new.set_len(count);
        // A late reader may have looked into the segment while it was empty [I8].
        new.bump_stripes();
    }

    /// Empties the slots whose items `new` has: by [`Locked::copy_to`], and locked ever since.
    fn remove_copied(&mut self, new: &Locked<'_, P>) {
        let (from, to) = (self.segment().buckets(), new.segment().buckets());
        for bucket in 0..from.len() {
            // They have the same tags there.
            from.clear_these(bucket, to.tags(bucket));
        }
        if !P::NULLABLE {
            // As if each had been removed.
            self.bump_stripes();
        }
        self.set_len(self.len() - new.len());
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use core::ptr::NonNull;

    use super::super::buckets::{SLOTS, tag_at};
    use super::super::payload::{Inline, Pointer};
    use super::super::sizing::{Options, Shape};
    use super::*;

    fn table<P: Payload>() -> Directory<P> {
        let options = Options {
            capacity: 0,
            fixed: false,
            segment_slots: Some(64),
            huge_pages: None,
            home_cells: None,
        };
        Directory::new(Shape::new(options).expect("a shape"), 0).expect("memory")
    }

    fn insert<P: Payload>(table: &Directory<P>, item: P::Item, digest: &impl Fn(P::Item) -> Digest) {
        let spot = table.lock_and_find(digest(item), |_| false);
        assert!(table.insert(spot, item, digest).is_ok());
    }

    /// Slots of a segment: what each tag says, and what is there.
    fn slots<P: Payload>(locked: &Locked<'_, P>) -> Vec<(u8, Option<P::Item>)> {
        let buckets = locked.segment().buckets();
        let slots = (0..buckets.len()).flat_map(|bucket| (0..SLOTS).map(move |lane| (bucket, lane)));
        slots.map(|(bucket, lane)| (tag_at(buckets.tags(bucket), lane), buckets.item(bucket, lane))).collect()
    }

    /// Splits the segment that covers `prefix`, and compares the halves with what it was.
    fn split_one<P: Payload<Item: PartialEq + core::fmt::Debug>>(
        table: &Directory<P>,
        prefix: u32,
        digest: &impl Fn(P::Item) -> Digest,
    ) {
        let mut writing = table.lock(prefix);
        let before = slots(&writing.locked);
        let segment = core::ptr::from_ref(writing.locked.segment());
        let state = writing.locked.state_ref();
        let (lower, level) = (state.index * 2, state.level + 1);
        let begin =
            u32::try_from((u64::from(lower) << 32) >> level).expect("the lower half begins below 2^32");
        let middle = begin + (1 << (32 - level));
        assert!(table.split(&mut writing, begin, true, &|item| digest(item)).is_ok());
        assert!(core::ptr::eq(writing.locked.segment(), segment), "the lower half stays");
        let kept = slots(&writing.locked);
        let is = |locked: &Locked<'_, P>, index| {
            let state = locked.state_ref();
            assert_eq!((state.index, state.level, state.grows_early), (index, level, true));
            assert_eq!(locked.len(), slots(locked).iter().filter(|(tag, _)| *tag != 0).count());
            assert!(locked.len() > 5, "{} of {}", locked.len(), before.len());
        };
        is(&writing.locked, lower);
        drop(writing);
        let upper = table.lock(middle);
        assert!(!core::ptr::eq(upper.locked.segment(), segment));
        is(&upper.locked, lower + 1);
        for (slot, (was, halves)) in before.iter().zip(kept.iter().zip(slots(&upper.locked))).enumerate() {
            let (here, there) = match was {
                (0, _) => (None, None),
                (_, item) if digest(item.expect("taken")).prefix() < middle => (Some(was), None),
                _ => (None, Some(was)),
            };
            for (expected, (tag, item)) in [(here, halves.0), (there, &halves.1)] {
                assert_eq!(*tag, expected.map_or(0, |(tag, _)| *tag), "slot {slot}");
                match expected {
                    Some((_, expected)) => assert_eq!(item, expected, "slot {slot}"),
                    // A pointer that stayed would be followed by whoever sees the next item's tag before that itself [I7].
                    None => assert!(!P::NULLABLE || item.is_none(), "left in slot {slot}"),
                }
            }
        }
    }

    /// A segment with half of the keys is split, and then, with the other half as well, its upper half.
    fn split_twice<P: Payload<Item: PartialEq + core::fmt::Debug>>(
        items: &[P::Item],
        digest: &impl Fn(P::Item) -> Digest,
    ) {
        let table = table::<P>();
        let (first, second) = items.split_at(items.len() / 2);
        first.iter().for_each(|item| insert(&table, *item, digest));
        split_one(&table, 0, digest);
        second.iter().for_each(|item| insert(&table, *item, digest));
        split_one(&table, u32::MAX, digest);
        assert!(items.iter().all(|item| table.find(digest(*item), || (), |found| found == *item).is_some()));
    }

    #[test]
    fn each_item_is_in_the_half_of_its_prefix_and_in_the_slot_where_it_was() {
        let keys: Vec<u64> = (0..80).collect();
        let words: Vec<_> = keys.iter().map(|key| (*key, !key)).collect();
        split_twice::<Inline<u64, u64>>(&words, &|(key, _)| Digest::new(key));
        let large: Vec<_> = keys.iter().map(|key| (*key, [!key; 3])).collect();
        split_twice::<Inline<u64, [u64; 3]>>(&large, &|(key, _)| Digest::new(key));
        let pointers: Vec<_> = keys.iter().map(NonNull::from).collect();
        // SAFETY: into `keys`, which outlives the table's use and is not written to.
        split_twice::<Pointer<u64, ()>>(&pointers, &|item| Digest::new(unsafe { item.read() }));
    }

    #[test]
    fn a_split_for_a_prefix_of_the_upper_half_goes_on_there() {
        let table = table::<Inline<u64, u64>>();
        (0..40).for_each(|key| insert(&table, (key, key), &|(key, _)| Digest::new(key)));
        let mut writing = table.lock(u32::MAX);
        let lower = core::ptr::from_ref(writing.locked.segment());
        assert!(table.split(&mut writing, u32::MAX, false, &|(key, _)| Digest::new(key)).is_ok());
        assert_eq!((writing.locked.state_ref().index, writing.locked.state_ref().level), (1, 1));
        assert!(!core::ptr::eq(writing.locked.segment(), lower));
        let old = table.segments().find(|segment| core::ptr::eq(*segment, lower)).expect("still current");
        drop(Locked::lock(old));
        drop(writing);
        assert!(
            (0..40).all(|key| table.find(Digest::new(key), || (), |item| item.0 == key) == Some((key, key)))
        );
    }
}
