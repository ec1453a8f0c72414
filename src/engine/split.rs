//! A split [G6]: a segment gives the items of the upper half of its prefixes to a new one, and keeps the others.
//!
//! Items that stay are not moved, and items that leave have the same slot in the new segment: both segments have as many
//! buckets. An item's split bits say which half it goes to; or else its hash does, and then all items get new bits [G8].
//! Readers find a leaving item in the old segment until the directory leads to the new one, and there from then on; a reader
//! that asked the directory before, and looks when the item has left, asks again [R4].

use core::ptr::NonNull;

use super::buckets::Buckets;
use super::directory::{Directory, Writing};
use super::draft::{NoRoom, Purpose};
use super::locked::{Locked, SLOTS_PER_COPY_AHEAD};
use super::memory::try_box;
use super::parting::{self, Halves};
use super::payload::Payload;
use super::rehash::Rehash;
use super::residents::pair;
use super::segment::{Ahead, SegmentRef, State};
use super::stale::Stale;
use super::stripes;
use super::tags::{SLOTS, tag_at, taken_lanes};
use crate::hash::scale;
use crate::sync::step;

/// Buckets that are copied ahead with each insertion: enough to have copied all by the time the segment splits.
const AT_A_TIME: usize = SLOTS_PER_COPY_AHEAD / SLOTS as usize;

impl<P: Payload> Directory<P> {
    /// Splits a segment that has no overflow; `writing` becomes a lock on the half that covers `prefix`. On an error, or if
    /// `rehash` panics, nothing has changed except what has been copied ahead, and split bits, which are not read before the
    /// segment has split [G8].
    pub(super) fn split<'a>(
        &'a self,
        writing: &mut Writing<'a, P>,
        prefix: u32,
        grows_early: bool,
        rehash: &dyn Rehash<P>,
    ) -> Result<(), NoRoom> {
        let old = &mut writing.locked;
        self.begin(old)?;
        let mut new = self.copy_leaving(old, usize::MAX, rehash);
        new.grow_early(grows_early);
        // A late reader may have read the segment while it was empty [I8].
        new.bump_stripes();
        self.publish(core::slice::from_ref(&new), 1)?;
        step();
        old.remove_copied(&new);
        let (upper, level) = (new.state_ref().index, new.state_ref().level);
        old.grow_early(grows_early);
        let state = old.state();
        state.ahead = None;
        state.covers(upper - 1, level, self.shape.segments);
        if scale(prefix, self.shape.segments << level) >= upper {
            *old = new;
        }
        Ok(())
    }

    /// Copies some of the items that will leave a segment that will split soon [G7]. If it will not split soon, or there is no
    /// memory, nothing happens.
    #[cold]
    #[inline(never)]
    pub(super) fn copy_ahead(&self, locked: &mut Locked<'_, P>, rehash: &dyn Rehash<P>) {
        let begun = locked.state_ref().ahead.is_some();
        let may = locked.segment().has_no_overflow() && (begun || self.splits(locked));
        if may && self.begin(locked).is_ok() {
            drop(self.copy_leaving(locked, AT_A_TIME, rehash));
        }
    }

    /// Gives the segment, if it has none yet, another segment of as many buckets that is to be its upper half.
    fn begin(&self, old: &mut Locked<'_, P>) -> Result<(), NoRoom> {
        debug_assert!(!P::MARKED, "marks are not copied");
        if old.state_ref().ahead.is_some() {
            return Ok(());
        }
        let (upper, level) = (old.state_ref().index * 2 + 1, old.state_ref().level + 1);
        let buckets = old.segment().buckets().len();
        let stale = Stale::all(buckets).ok_or(NoRoom)?;
        let mut ahead = try_box(Ahead { segment: NonNull::dangling(), stale }).map_err(|_| NoRoom)?;
        let draft = self.draft(buckets, Purpose::Split)?;
        drop(draft.lock(upper, level));
        ahead.segment = draft.done();
        old.state().ahead = Some(ahead);
        Ok(())
    }

    /// Copies the items that will leave the segment from up to `most` of the stale buckets, and locks the copy.
    fn copy_leaving<'a>(
        &self,
        old: &mut Locked<'a, P>,
        most: usize,
        rehash: &dyn Rehash<P>,
    ) -> Locked<'a, P> {
        let State { index, level, .. } = *old.state_ref();
        if let Some(deciding) = parting::deciding::<P>(level) {
            return old.copy_leaving(most, |buckets, bucket| {
                (0..SLOTS).fold(0, |leaving, lane| {
                    leaving | u32::from(buckets.mark(bucket, lane) >> deciding & 1) << (8 * lane)
                })
            });
        }
        let halves = Halves::new::<P>(self.shape.segments, index, level);
        old.copy_leaving(most, |buckets, bucket| rehash.leaving(buckets, bucket, halves))
    }
}

impl<P: Payload> Ahead<P> {
    /// Locks the copy.
    pub(super) fn lock<'a>(&self) -> Locked<'a, P> {
        // SAFETY: neither current nor in the pool, nor retired, so nobody frees it until it is published or put away; from then
        // on the argument in `Draft::lock` holds.
        Locked::lock(unsafe { SegmentRef::new(self.segment) })
    }
}

impl<'a, P: Payload> Locked<'a, P> {
    /// Copies the items that leave a bucket, those for whose lanes `leaving` returns 1, not 0, to the same slots of the segment
    /// that is ahead: from up to `most` of the stale buckets. Returns a lock on the copy. If `leaving` panics, its bucket stays
    /// stale.
    fn copy_leaving(&mut self, most: usize, leaving: impl Fn(&Buckets<P>, u32) -> u32) -> Locked<'a, P> {
        let (from, is_empty) = (self.segment().buckets(), self.len() == 0);
        let ahead = self.state().ahead.as_mut().expect("the caller has begun");
        let mut copy = ahead.lock();
        let to = copy.segment().buckets();
        assert_eq!(from.len(), to.len());
        if is_empty && copy.len() == 0 {
            // `reserve` splits segments that have nothing to copy.
            return copy;
        }
        // Once for all that is filled here [W3], and all whose split bits are replaced.
        stripes::publish_departures();
        ahead.stale.refresh(most, |bucket| {
            let leaving = leaving(&from, bucket);
            if to.tags(bucket) != 0 {
                copy.empty_bucket(bucket);
            }
            to.copy_from(&from, bucket, from.tags(bucket) & (leaving * 0xFF));
            copy.add_len(leaving.count_ones() as usize);
        });
        copy
    }

    /// Empties a bucket, as if each item had been removed, and others are about to come.
    #[cold]
    fn empty_bucket(&mut self, bucket: u32) {
        let buckets = self.segment().buckets();
        let tags = buckets.tags(bucket);
        buckets.clear_these(bucket, tags);
        let mut count = 0;
        for lane in taken_lanes(tags) {
            count += 1;
            if !P::NULLABLE {
                let place = pair(bucket, tag_at(tags, lane), buckets.len());
                stripes::note_departure(self.segment_ref().stripe(place));
            }
        }
        self.set_len(self.len() - count);
        stripes::publish_departures();
    }

    /// Empties the slots whose items `new` has: copied by [`Locked::copy_leaving`], and locked ever since.
    fn remove_copied(&mut self, new: &Locked<'_, P>) {
        if new.len() == 0 {
            // Nothing leaves, so no reader needs to notice anything.
            return;
        }
        let (from, to) = (self.segment().buckets(), new.segment().buckets());
        for bucket in 0..from.len() {
            // The items have the same tags there.
            from.clear_these(bucket, to.tags(bucket));
        }
        if !P::NULLABLE {
            // As if each item had been removed.
            self.bump_stripes();
        }
        self.set_len(self.len() - new.len());
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use core::ptr::{self, NonNull};

    use super::super::path::QUEUE;
    use super::super::payload::{Inline, Pointer};
    use super::super::segment::State;
    use super::super::sizing::{Options, Shape};
    use super::*;
    use crate::hash::{Digest, Place};

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
            assert_eq!((state.index, state.level), (index, level));
            assert!(state.filling_from < usize::MAX, "grows early");
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
                    // A pointer that stayed would be followed by a reader that sees the next item's tag before that item [I7].
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

    /// Copies some buckets ahead and changes some items, in turn, and then splits: the halves do not have what was copied
    /// before it changed.
    fn split_after_changes<P: Payload<Item: PartialEq + core::fmt::Debug>>(
        items: &[P::Item],
        others: &[P::Item],
        digest: &impl Fn(P::Item) -> Digest,
    ) {
        for seed in 0..30_u64 {
            let table = table::<P>();
            let (present, absent) = items.split_at(items.len() * 3 / 4);
            present.iter().for_each(|item| insert(&table, *item, digest));
            let mut writing = table.lock(0);
            let locked = &mut writing.locked;
            assert!(table.begin(locked).is_ok());
            let mut absent = absent.iter();
            for turn in 0..60_u64 {
                let number = Digest::new(seed << 32 | turn).prefix() as usize;
                drop(table.copy_leaving(locked, number % 5, &|item| digest(item)));
                let chosen = number / 5 % present.len();
                let place = |item| Place::new(digest(item), locked.segment().buckets().len());
                let place_of_chosen = place(present[chosen]);
                let found =
                    locked.find(place_of_chosen, |item| [items[chosen], others[chosen]].contains(&item));
                match (number / 500 % 4, found) {
                    (0, Some(found)) => locked.remove(place_of_chosen, found),
                    (1, Some(found)) => locked.replace(found, others[chosen]),
                    (2, _) => {
                        let Some(new) = absent.next() else { continue };
                        let bits = locked.split_bits(digest(*new).prefix());
                        assert!(locked.put(place(*new), *new, bits, QUEUE));
                    }
                    // For an item that is not inserted, though others may have been displaced for it.
                    (3, _) => _ = locked.hole_for(place(items[chosen]), QUEUE),
                    _ => {}
                }
            }
            drop(writing);
            split_one(&table, 0, digest);
        }
    }

    #[test]
    fn what_changes_after_it_has_been_copied_ahead_is_copied_again() {
        let keys: Vec<u64> = (0..60).collect();
        let words = |add: u64| keys.iter().map(|key| (*key, key + add)).collect::<Vec<_>>();
        let digest = |(key, _): (u64, u64)| Digest::new(key);
        split_after_changes::<Inline<u64, u64>>(&words(0), &words(1), &digest);
        let large = |add: u64| keys.iter().map(|key| (*key, [key + add; 3])).collect::<Vec<_>>();
        split_after_changes::<Inline<u64, [u64; 3]>>(&large(0), &large(1), &|(key, _)| Digest::new(key));
        let (pointers, same) = (keys.clone(), keys.clone());
        let [pointers, others] =
            [&pointers, &same].map(|keys| keys.iter().map(NonNull::from).collect::<Vec<_>>());
        // SAFETY: into arrays that outlive the table's use and are not written to.
        let digest = |item: NonNull<u64>| Digest::new(unsafe { item.read() });
        split_after_changes::<Pointer<u64, ()>>(&pointers, &others, &digest);
    }

    /// Fills a table of one segment until the segment has begun to copy ahead.
    fn copied_ahead() -> (Directory<Inline<u64, u64>>, u64) {
        let table = table::<Inline<u64, u64>>();
        let has_begun = |_: &u64| table.lock(0).locked.state_ref().ahead.is_some();
        let keys =
            (0..).inspect(|key| insert(&table, (*key, *key), &|(key, _)| Digest::new(key))).find(has_begun);
        assert_eq!(table.segments().count(), 1);
        (table, keys.expect("it ends") + 1)
    }

    #[test]
    fn a_segment_copies_ahead_before_it_is_seven_eighths_full() {
        let (table, keys) = copied_ahead();
        assert!((50..=56).contains(&keys), "{keys} of 64");
        let digest = |(key, _): (u64, u64)| Digest::new(key);
        (keys..70).for_each(|key| insert(&table, (key, key), &digest));
        assert_eq!((table.segments().count(), table.len()), (2, 70));
        assert!(table.segments().all(|segment| Locked::lock(segment).state_ref().ahead.is_none()));
        assert!(
            (0..70).all(|key| table.find(Digest::new(key), || (), |item| item.0 == key) == Some((key, key)))
        );
    }

    #[test]
    fn an_insertion_that_splits_a_segment_hashes_only_what_has_changed_since_it_was_copied_ahead() {
        let (table, keys) = copied_ahead();
        let calls = core::cell::Cell::new(0);
        let digest = |(key, _): (u64, u64)| {
            calls.set(calls.get() + 1);
            Digest::new(key)
        };
        for key in keys.. {
            calls.set(0);
            insert(&table, (key, key), &digest);
            if table.segments().count() == 2 {
                break;
            }
        }
        assert!(calls.get() < keys / 2, "{} of {keys}", calls.get());
    }

    #[test]
    fn what_has_been_copied_ahead_is_not_there_after_the_segment_was_emptied() {
        let (table, keys) = copied_ahead();
        let digest = |(key, _): (u64, u64)| Digest::new(key);
        let mut removed = Vec::new();
        table.take(0, &mut removed);
        assert_eq!(removed.len() as u64, keys);
        assert!(table.split(&mut table.lock(0), 0, true, &digest).is_ok());
        assert_eq!((table.segments().count(), table.len()), (2, 0));
        let is_empty = |segment| slots(&Locked::lock(segment)).iter().all(|slot| slot.0 == 0);
        assert!(table.segments().all(is_empty));
    }

    #[test]
    fn what_has_been_copied_ahead_in_vain_is_given_back() {
        let digest = |(key, _): (u64, u64)| Digest::new(key);
        // Freed with the table.
        let (table, _) = copied_ahead();
        let meter = table.meter();
        drop(table);
        assert_eq!(meter.bytes(), 0);
        // It goes into the pool when the segment is replaced: by a smaller one, or by two, because it has overflow.
        let (table, keys) = copied_ahead();
        let ahead = |state: &State<_>| ptr::from_ref(state.ahead.as_ref().expect("begun").lock().segment());
        let copy = ahead(table.lock(0).locked.state_ref());
        let mut removed = Vec::new();
        assert!(table.take(0, &mut removed).is_none_or(|next| next == 1 << 32));
        assert_eq!(removed.len() as u64, keys);
        table.shrink(&digest);
        assert_eq!(table.slots(), 4);
        let mut pool = table.pool.lock();
        let both = [(); 2].map(|()| pool.take(16, true).expect("of 64 slots"));
        assert!(both.iter().any(|segment| ptr::eq(segment.as_ptr(), copy)));
        both.into_iter().for_each(|segment| pool.put(segment));
        drop(pool);
        let (table, keys) = copied_ahead();
        let mut writing = table.lock(0);
        let place = Place::new(Digest::new(keys), 16);
        assert!(writing.locked.put_in_overflow(place, (keys, keys), 0, &table.meter));
        drop(writing);
        (keys + 1..70).for_each(|key| insert(&table, (key, key), &digest));
        assert_eq!((table.segments().count(), table.len()), (2, 70));
        assert!(
            (0..70).all(|key| table.find(Digest::new(key), || (), |item| item.0 == key) == Some((key, key)))
        );
        let meter = table.meter();
        drop(table);
        assert_eq!(meter.bytes(), 0);
    }

    #[test]
    fn shrinking_gives_back_what_was_copied_ahead_unless_the_segment_is_about_to_split() {
        let digest = |(key, _): (u64, u64)| Digest::new(key);
        let (table, keys) = copied_ahead();
        table.shrink(&digest);
        assert!(table.lock(0).locked.state_ref().ahead.is_some(), "it is about to split");
        for key in 0..10 {
            let mut spot = table.lock_and_find(Digest::new(key), |item| item.0 == key);
            spot.writing.locked.remove(spot.place, spot.found.expect("put"));
        }
        table.shrink(&digest);
        assert!(table.lock(0).locked.state_ref().ahead.is_none());
        assert_eq!((table.slots(), table.pool.lock().take(16, true).is_some()), (64, true));
        assert!((10..keys).all(|key| table.find(Digest::new(key), || (), |item| item.0 == key).is_some()));
    }

    #[test]
    fn a_hash_that_panics_while_items_are_copied_ahead_leaves_all_as_it_was() {
        let (table, keys) = copied_ahead();
        let digest = |(key, _): (u64, u64)| Digest::new(key);
        let calls = core::cell::Cell::new(0);
        for fuse in 1..100 {
            // Everything that has been copied is stale again.
            let mut writing = table.lock(0);
            let ahead = writing.locked.state().ahead.as_mut().expect("it has begun");
            (0..16).for_each(|bucket| ahead.stale.note(bucket));
            drop(writing);
            let inserted = std::panic::catch_unwind(core::panic::AssertUnwindSafe(|| {
                calls.set(0);
                let spot = table.lock_and_find(Digest::new(keys), |item| item.0 == keys);
                table.insert(spot, (keys, keys), |item| {
                    calls.set(calls.get() + 1);
                    assert!(calls.get() < fuse, "a hash that panics");
                    digest(item)
                })
            }));
            if inserted.is_ok() {
                break;
            }
            assert_eq!(table.len() as u64, keys);
        }
        assert_eq!(calls.get(), keys as usize, "each item was hashed once, in the end");
        (keys + 1..70).for_each(|key| insert(&table, (key, key), &digest));
        assert_eq!((table.segments().count(), table.len()), (2, 70));
        assert!(
            (0..70).all(|key| table.find(Digest::new(key), || (), |item| item.0 == key) == Some((key, key)))
        );
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
        let old =
            table.segments().find(|segment| core::ptr::eq(segment.segment(), lower)).expect("still current");
        drop(Locked::lock(old));
        drop(writing);
        assert!(
            (0..40).all(|key| table.find(Digest::new(key), || (), |item| item.0 == key) == Some((key, key)))
        );
    }

    type Pointers = Pointer<u64, ()>;

    fn mixed(item: NonNull<u64>) -> Digest {
        // SAFETY: the tests' numbers outlive their tables, and nobody writes to them.
        Digest::mixed(unsafe { item.read() })
    }

    /// Each item is in the segment of its prefix, and those of its bits that will still be used are those of the segment's
    /// block.
    fn check_split_bits(table: &Directory<Pointers>) {
        for segment in table.segments() {
            let locked = Locked::lock(segment);
            let asked = parting::deciding::<Pointers>(locked.state_ref().level).is_some();
            let buckets = locked.segment().buckets();
            for (bucket, lane) in
                (0..buckets.len()).flat_map(|bucket| (0..SLOTS).map(move |lane| (bucket, lane)))
            {
                let Some(item) = buckets.item(bucket, lane) else { continue };
                let prefix = mixed(item).prefix();
                assert!(ptr::eq(table.locate(prefix).segment(), locked.segment()));
                assert!(
                    !asked || buckets.mark(bucket, lane) == locked.split_bits(prefix),
                    "{bucket}, {lane}"
                );
            }
        }
    }

    /// Puts the first of two equal numbers if neither is there; else removes the one that is there, or replaces it by the
    /// other.
    fn change(table: &Directory<Pointers>, numbers: &[u64; 2], turn: u64) {
        let [item, other] = [&numbers[0], &numbers[1]].map(NonNull::from);
        let mut spot = table.lock_and_find(mixed(item), |found| [item, other].contains(&found));
        match (spot.found, turn % 8) {
            (Some(found), 0) => spot.writing.locked.remove(spot.place, found),
            (Some(found), _) => spot.writing.locked.replace(found, other),
            (None, _) => assert!(table.insert(spot, item, mixed).is_ok()),
        }
    }

    #[test]
    fn split_bits_are_those_of_the_segment_whatever_was_done_to_it() {
        let numbers: Vec<[u64; 2]> = (0..if cfg!(miri) { 600 } else { 6000 }).map(|key| [key; 2]).collect();
        for seed in 0..3 {
            let table = table::<Pointers>();
            for turn in 0..3 * numbers.len() as u64 {
                let random = Digest::mixed(seed << 32 | turn);
                let chosen = &numbers[scale(random.prefix(), numbers.len() as u32) as usize];
                change(&table, chosen, turn);
                if turn % 1000 == 0 {
                    check_split_bits(&table);
                }
                if turn % 7000 == 6999 {
                    // This makes smaller segments, which double before they split again.
                    table.shrink(&mixed);
                    check_split_bits(&table);
                }
            }
            check_split_bits(&table);
            let levels = table.segments().map(|segment| Locked::lock(segment).state_ref().level);
            assert!(levels.max() > Some(if cfg!(miri) { 2 } else { 6 }));
        }
    }

    /// Otherwise a map of long keys spends half of the time that it takes to fill it on hashing them again.
    #[test]
    fn only_the_last_split_of_a_block_hashes() {
        let (numbers, hashed) = ((0..150).collect::<Vec<u64>>(), core::cell::Cell::new(0));
        let table = table::<Pointers>();
        let counted = |item| {
            hashed.set(hashed.get() + 1);
            mixed(item)
        };
        for number in &numbers {
            let item = NonNull::from(number);
            assert!(table.insert(table.lock_and_find(mixed(item), |_| false), item, counted).is_ok());
        }
        let (level, stats) = (table.root().level, table.stats());
        assert!((1..=<Pointers as Payload>::SPLIT_BITS).contains(&level) && stats.splits > 1, "{level}");
        // Segments of 4, 8, 16 and 32 slots, when there was no path.
        assert!(stats.doublings == 4 && hashed.get() <= 4 + 8 + 16 + 32, "{}", hashed.get());
    }
}
