//! Writing to a segment: every method needs a [`Locked`], which is the proof of [I5]: the lock, or that nobody else uses the
//! segment [W7].
//!
//! Find, put, replace, remove, each in the order that the invariants ask for. Nothing here calls the user's code except
//! `find`'s comparison, and nothing is half done when that panics. Loads by functions that readers share are stronger than a
//! holder needs: whatever was stored to the segment was stored under its lock.

use core::ops::DerefMut;

use super::buckets::Buckets;
use super::found::Found;
use super::memory::Meter;
use super::overflow::Heading;
use super::parting;
use super::path;
use super::payload::Payload;
use super::residents::{Residents, item, pair};
use super::segment::{Segment, SegmentRef, State};
use super::stripes::{self, Moving};
use super::tags::{SLOTS, free_lane, tag_at};
use crate::hash::Place;
use crate::sync::{Exclusive, MutexGuard, exclusively, step};

/// Items are copied ahead of a segment's split from the moment when one in so many of its slots is left before 7/8 are taken.
/// While these last slots are filled, so many slots must be looked at with each insertion.
pub(super) const SLOTS_PER_COPY_AHEAD: usize = 256;

/// A segment and its lock, or what stands for it.
pub(crate) struct Locked<'a, P: Payload, L = MutexGuard<'a, State<P>>> {
    segment: SegmentRef<'a, P>,
    state: L,
}

/// A segment that nobody else uses, as if it were locked [W7].
pub(super) type LockedAlone<'a, P> = Locked<'a, P, Exclusive<'a, State<P>>>;

/// An empty slot, and how many items were displaced for it.
#[derive(Clone, Copy)]
pub(super) struct Hole {
    bucket: u32,
    lane: u32,
    hops: usize,
}

impl<'a, P: Payload> Locked<'a, P> {
    /// Takes the lock [W1].
    #[inline]
    pub(crate) fn lock(segment: SegmentRef<'a, P>) -> Self {
        Locked { segment, state: segment.write().state.lock() }
    }

    /// The same, unless another thread holds the lock.
    pub(super) fn try_lock(segment: SegmentRef<'a, P>) -> Option<Self> {
        segment.write().state.try_lock().map(|state| Locked { segment, state })
    }
}

impl<'a, P: Payload> LockedAlone<'a, P> {
    /// Proceeds without the lock.
    ///
    /// # Safety
    ///
    /// As long as this lives, nobody else reads or writes the segment, except by atomics outside the state to count its items.
    /// Another thread may only lock it, find that it is not the segment it was looking for, and let go.
    #[inline]
    pub(super) unsafe fn alone(segment: SegmentRef<'a, P>) -> Self {
        // SAFETY: the caller's.
        Locked { segment, state: unsafe { exclusively(&segment.write().state) } }
    }
}

impl<'a, P: Payload, L: DerefMut<Target = State<P>>> Locked<'a, P, L> {
    /// The segment that is locked.
    #[inline]
    pub(crate) fn segment(&self) -> &'a Segment<P> {
        self.segment.segment()
    }

    /// The reference that leads there.
    #[inline]
    pub(super) fn segment_ref(&self) -> SegmentRef<'a, P> {
        self.segment
    }

    /// What the lock guards in addition to the table.
    pub(crate) fn state(&mut self) -> &mut State<P> {
        &mut self.state
    }

    /// What the lock guards in addition to the table, as a shared reference.
    pub(crate) fn state_ref(&self) -> &State<P> {
        &self.state
    }

    /// How many items the segment holds.
    pub(crate) fn len(&self) -> usize {
        self.segment.items()
    }

    /// Split bits for an item of this prefix: the mark that the item gets in a map [G8].
    #[inline(always)]
    pub(super) fn split_bits(&self, prefix: u32) -> u8 {
        parting::split_bits::<P>(prefix, self.state.last_entries)
    }

    /// How many slots the buckets have.
    pub(crate) fn slots(&self) -> usize {
        self.segment.slots()
    }

    /// Finds the slot of the item that `eq` accepts.
    ///
    /// Its loads are Acquire because readers share the code; under the lock Relaxed would do. One pass is enough, and no
    /// version is checked: nothing moves.
    #[inline]
    pub(crate) fn find(&self, place: Place, mut eq: impl FnMut(P::Item) -> bool) -> Option<Found> {
        let buckets = self.segment.buckets();
        let mut matches = buckets.matches(place);
        while let Some(lane) = matches.next_lane() {
            let (bucket, lane) = place.slot(lane);
            if buckets.item(bucket, lane).is_some_and(&mut eq) {
                return Some(buckets.found(bucket, lane));
            }
        }
        if self.segment.has_no_overflow() {
            None
        } else {
            self.find_in_overflow(Heading::of(place), &mut { eq })
        }
    }

    #[cold]
    #[inline(never)]
    fn find_in_overflow(&self, of: Heading, eq: &mut dyn FnMut(P::Item) -> bool) -> Option<Found> {
        let mut matching = self.segment.overflow().matching(of);
        let found =
            matching.find(|(buckets, bucket, lane)| buckets.item(*bucket, *lane).is_some_and(&mut *eq));
        found.map(|(buckets, bucket, lane)| buckets.found(bucket, lane))
    }

    /// The items in the buckets with their marks.
    #[inline]
    pub(crate) fn residents(&self) -> Residents<'_, P> {
        Residents::of(self.segment)
    }

    /// The same, and separately what the lock guards in addition to the table.
    #[inline]
    pub(crate) fn parts(&mut self) -> (Residents<'_, P>, &mut State<P>) {
        (Residents::of(self.segment), &mut self.state)
    }

    /// The item in a slot.
    #[inline]
    pub(crate) fn item(&self, found: Found) -> P::Item {
        item::<P>(found)
    }

    /// Whether a slot is in the overflow.
    #[inline]
    fn is_in_overflow(&self, found: Found) -> bool {
        // Caches have no overflow.
        !P::MARKED && !self.segment.buckets().has(found)
    }

    /// Replaces an item by another with an equal key, in place [W2].
    #[inline]
    pub(crate) fn replace(&mut self, found: Found, item: P::Item) {
        self.note_change(found);
        if P::REPLACED_WORDS > 1 {
            let residents = self.residents();
            let stripe = if self.is_in_overflow(found) {
                self.segment.overflow().stripe()
            } else {
                residents.stripe_of(found)
            };
            self.segment.write().undo.replace(found.slot(), stripe, item);
        } else {
            // One word changes, by one store: readers see the old item or the new one.
            if !P::NULLABLE {
                // Release: pairs with the Acquire fence in `unchanged`: a reader of the new word sees all that came before this
                // write. A pointer's store is Release itself.
                stripes::publish_departures();
            }
            // SAFETY: an occupied slot of a live segment.
            unsafe { P::store(found.slot(), item, P::split_bits(found.slot())) };
        }
    }

    /// Empties the slot of an item that has this place, as [`Residents::remove`] does, even if it is in the overflow.
    #[inline]
    pub(crate) fn remove(&mut self, place: Place, found: Found) {
        if self.is_in_overflow(found) {
            return self.remove_from_overflow(Heading::of(place), found);
        }
        self.note_change(found);
        self.residents().remove(found);
    }

    /// Empties a slot that was found under an earlier lock, if it is in this segment's buckets and holds what `is_same`
    /// accepts. Returns whether it did. An item that has moved, or is in the overflow, stays.
    #[inline]
    pub(super) fn remove_if_there(&mut self, found: Found, is_same: impl FnOnce(P::Item) -> bool) -> bool {
        let buckets = self.segment.buckets();
        if !buckets.has(found) {
            return false;
        }
        let (bucket, lane) = buckets.position_of(found);
        let is_there =
            tag_at(buckets.tags(bucket), lane) != 0 && buckets.item(bucket, lane).is_some_and(is_same);
        if is_there {
            self.note_change_of(bucket);
            self.residents().remove(found);
        }
        is_there
    }

    #[cold]
    fn remove_from_overflow(&mut self, of: Heading, found: Found) {
        let overflow = self.segment.overflow();
        overflow.remove(of, found);
        if !P::NULLABLE {
            stripes::note_departure(overflow.stripe());
        }
        self.state.overflow_len -= 1;
        self.withdraw_mark_if_empty();
        self.set_len(self.len() - 1);
    }

    /// Withdraws the overflow's mark when an item has left, or was not put there after all: if none is left, readers need not
    /// look there any more [R4].
    fn withdraw_mark_if_empty(&self) {
        if self.state.overflow_len == 0 {
            self.segment.withdraw_overflow();
        }
    }

    /// Puts an item whose key is not here into one of its buckets, displacing others if it must [W3]..[W6]. Returns false if
    /// there is no path; then nothing has changed.
    #[inline(always)]
    pub(crate) fn put(&mut self, place: Place, item: P::Item, mark: u8, budget: usize) -> bool {
        let Some(hole) = self.hole_for(place, budget) else { return false };
        self.put_into(hole, place.tag, item, mark);
        true
    }

    /// Puts an item into the hole that has just been made for it.
    #[inline(always)]
    pub(super) fn put_into(&mut self, hole: Hole, tag: u8, item: P::Item, mark: u8) {
        let Hole { bucket, lane, hops } = hole;
        self.state.tally.path_lengths[hops] += 1;
        // This comes first: a reader that sees the item sees it counted.
        self.add_len(1);
        self.note_change_of(bucket);
        self.segment.buckets().fill(bucket, lane, tag, item, mark);
    }

    /// [`Locked::put`] for one of many items, while nobody reads this segment yet: the caller counts them, and reports how many
    /// by [`Locked::add_len`].
    #[inline]
    pub(crate) fn put_uncounted(&mut self, place: Place, item: P::Item, mark: u8, budget: usize) -> bool {
        let Some(Hole { bucket, lane, .. }) = self.hole_for(place, budget) else { return false };
        self.segment.buckets().fill(bucket, lane, place.tag, item, mark);
        true
    }

    /// An empty slot in one of the item's buckets.
    #[inline]
    pub(super) fn hole_for(&mut self, place: Place, budget: usize) -> Option<Hole> {
        let buckets = self.segment.buckets();
        if let Some(lane) = free_lane(buckets.tags(place.first)) {
            Some(Hole { bucket: place.first, lane, hops: 0 })
        } else if let Some(lane) = free_lane(buckets.tags(place.second)) {
            Some(Hole { bucket: place.second, lane, hops: 0 })
        } else {
            self.make_room([place.first, place.second], budget)
        }
    }

    /// Counts so many more items.
    #[inline]
    pub(crate) fn add_len(&mut self, more: usize) {
        self.set_len(self.len() + more);
    }

    /// Searches for a path and moves its items, last first: the hole arrives in one of the two buckets.
    #[cold]
    #[inline(never)]
    fn make_room(&mut self, roots: [u32; 2], budget: usize) -> Option<Hole> {
        let buckets = self.segment.buckets();
        let in_buckets = self.len() - self.state.overflow_len;
        if in_buckets >= self.state.filling_from.saturating_add(self.last_ones()) {
            return None;
        }
        if in_buckets >= self.slots() {
            // No slot is empty: a search would look at hundreds of buckets to find that.
            self.state.tally.failed_searches += 1;
            return None;
        }
        let path: Option<path::Path> = path::search(&buckets, roots, budget);
        // By reference: a copy would have to wait for what was written in parts.
        let Some(path) = &path else {
            self.state.tally.failed_searches += 1;
            return None;
        };
        let hops = path.hops();
        for pair in hops.windows(2).rev() {
            self.displace(pair[0], pair[1]);
        }
        Some(Hole { bucket: hops[0].bucket, lane: hops[0].lane, hops: hops.len() - 1 })
    }

    /// Moves one item to the hole in its other bucket [W5].
    ///
    /// A reader of the tag, or the null, that `clear` stores reads with Acquire and sees what `fill` stored before [I3]. A
    /// reader that has read the target before it was filled, and reads the source after it was cleared, sees the odd version or
    /// a later one: the fence in `Moving::start` pairs with that in `unchanged` [R4], the store in `drop` with `begin` [R2].
    /// The loads here are a holder's: Relaxed would do.
    fn displace(&mut self, from: path::Hop, to: path::Hop) {
        let buckets = self.segment.buckets();
        let tag = tag_at(buckets.tags(from.bucket), from.lane);
        let place = pair(from.bucket, tag, buckets.len());
        debug_assert_eq!(place.second, to.bucket, "an item moves to its alternate [I1]");
        let Some(item) = buckets.item(from.bucket, from.lane) else {
            unreachable!("a path leads over occupied slots");
        };
        let mark = buckets.mark(from.bucket, from.lane);
        // Both are noted: if there is no memory for the newcomer, no other item may come to the bucket that this one leaves.
        self.note_change_of(from.bucket);
        self.note_change_of(to.bucket);
        let _moving = Moving::start(self.segment.stripe(place));
        buckets.fill(to.bucket, to.lane, tag, item, mark);
        step();
        buckets.clear(from.bucket, from.lane);
    }

    /// Notes that the copy of a slot's bucket ahead of a split is stale, unless the slot is in the overflow [G7].
    #[inline]
    fn note_change(&mut self, found: Found) {
        let buckets = self.segment.buckets();
        if !P::MARKED && self.state.ahead.is_some() && buckets.has(found) {
            self.note_change_of(buckets.position_of(found).0);
        }
    }

    /// Notes that the copy of this bucket ahead of a split is stale [G7].
    #[inline]
    fn note_change_of(&mut self, bucket: u32) {
        if P::MARKED {
            // Caches' segments never split.
            return;
        }
        if let Some(ahead) = &mut self.state.ahead {
            ahead.stale.note(bucket);
        }
    }

    /// Whether so few insertions are left before the segment grows that the items that will leave it should be copied [G7].
    #[inline]
    pub(super) fn is_filling_up(&self) -> bool {
        !P::MARKED && self.len() >= self.state.filling_from
    }

    /// How many insertions count as filling up.
    fn last_ones(&self) -> usize {
        self.slots() / SLOTS_PER_COPY_AHEAD + 1
    }

    /// Sets how many items there are.
    pub(super) fn set_len(&self, len: usize) {
        self.segment.set_len(len);
    }
}

impl<'a, P: Payload> Locked<'a, P> {
    /// Puts an item that found no path into the overflow. Returns false if there is no memory; then nothing has changed.
    pub(crate) fn put_in_overflow(&mut self, place: Place, item: P::Item, mark: u8, meter: &Meter) -> bool {
        // First, as in `put_into`. So is the mark: it may have been withdrawn, and a reader that has found the item must see it
        // from then on.
        self.add_len(1);
        self.segment.note_overflow();
        step();
        let (buckets, of) = (self.segment.buckets().len(), Heading::of(place));
        let done = self.segment.overflow().put(buckets, of, item, mark, meter);
        if done {
            self.state.overflow_len += 1;
        } else {
            self.withdraw_mark_if_empty();
            self.set_len(self.len() - 1);
        }
        done
    }

    /// The buckets, and those of the overflow.
    pub(crate) fn arrays(&self) -> impl Iterator<Item = Buckets<P>> + use<'a, P> {
        let segment = self.segment();
        core::iter::once(segment.buckets()).chain(segment.overflow().blocks())
    }

    /// Whether the overflow has more free slots than the buckets have slots, and more than four slots for each of its items:
    /// built anew it would be shorter, because no list has more then, not even one with a single item.
    pub(super) fn has_idle_overflow(&self) -> bool {
        let (overflow, taken) = (self.segment().overflow().slots(), self.state.overflow_len);
        overflow > self.slots() + taken && overflow > 4 * taken
    }

    /// Appends every item.
    pub(super) fn copy_to(&self, out: &mut Vec<P::Item>) {
        if self.len() == 0 {
            return;
        }
        // And room for one more bucket, all of whose lanes are written before it is known how many are taken.
        out.reserve(self.len() + SLOTS as usize);
        for buckets in self.arrays() {
            (0..buckets.len()).for_each(|bucket| buckets.append_items_to(bucket, out));
        }
    }

    /// Appends the slot of every item, in the same order.
    pub(super) fn slots_to(&self, out: &mut Vec<Found>) {
        if self.len() == 0 {
            return;
        }
        out.reserve(self.len() + SLOTS as usize);
        for buckets in self.arrays() {
            (0..buckets.len()).for_each(|bucket| buckets.append_slots_to(bucket, out));
        }
    }

    /// Sets whether the segment is to grow when it is 7/8 full, and not only when no path is found.
    pub(super) fn grow_early(&mut self, early: bool) {
        let full = (self.slots() * 7).div_ceil(8);
        self.state.filling_from = if early { full - self.last_ones() } else { usize::MAX };
    }

    /// Empties every slot, as if each item had been removed.
    pub(crate) fn clear(&mut self) {
        (0..self.segment.buckets().len()).for_each(|bucket| self.note_change_of(bucket));
        self.segment.buckets().clear_all();
        self.segment.overflow().clear();
        // Before the mark is withdrawn: a late reader that no longer sees the mark must read again [I8].
        self.bump_stripes();
        self.state.overflow_len = 0;
        self.withdraw_mark_if_empty();
        self.set_len(0);
    }

    /// Makes every reader of the segment read again: many of its items have left, or it is about to become current again
    /// and late readers must not take what they saw of it before for what is in it now [I8].
    pub(crate) fn bump_stripes(&mut self) {
        self.segment.stripes().iter().for_each(stripes::note_departure);
        stripes::note_departure(self.segment.overflow().stripe());
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use core::ptr::NonNull;

    use super::super::payload::Inline;
    use super::super::supply::Supply;
    use super::*;
    use crate::hash::Digest;
    use crate::sync::Ordering;

    type Words = Inline<u64, u64>;

    /// A segment on its own.
    struct Alone {
        segment: NonNull<Segment<Words>>,
        meter: Meter,
    }

    impl Alone {
        fn of(buckets: u32) -> Self {
            let meter = Meter::new();
            let plan = Segment::<Words>::plan(buckets, 4).expect("a layout");
            let memory = Supply::default().take(&plan, 1, 1, false, &meter).expect("memory");
            Alone { segment: Segment::construct(memory, buckets, 4), meter }
        }

        fn lock(&self) -> Locked<'_, Words> {
            // SAFETY: alive as long as we are.
            Locked::lock(unsafe { SegmentRef::new(self.segment) })
        }

        fn segment(&self) -> &Segment<Words> {
            // SAFETY: alive as long as we are.
            unsafe { self.segment.as_ref() }
        }

        fn versions(&self) -> Vec<u64> {
            let stripes = self.segment().stripes().iter().chain([self.segment().overflow().stripe()]);
            stripes.map(|stripe| stripe.load(Ordering::Relaxed)).collect()
        }

        /// The number of items in all, and of those in the overflow.
        fn items(&self) -> (usize, usize) {
            let locked = self.lock();
            (locked.len(), locked.state_ref().overflow_len)
        }

        fn place(&self, key: u64) -> Place {
            Place::new(Digest::new(key), self.segment().buckets().len())
        }
    }

    impl Drop for Alone {
        fn drop(&mut self) {
            // SAFETY: nobody uses it any more.
            unsafe { Segment::free(self.segment, &self.meter) };
            assert_eq!(self.meter.bytes(), 0);
        }
    }

    #[test]
    fn removal_bumps_the_stripe_of_the_item_s_pair_and_no_other() {
        let alone = Alone::of(64);
        let stripe_of = |place: Place| ((place.first ^ place.second) & 3) as usize;
        for key in 0..50 {
            let place = alone.place(key);
            assert!(alone.lock().put(place, (key, key), 0, 0));
            let mut expected = alone.versions();
            expected[stripe_of(place)] += 2;
            let found = alone.lock().find(place, |item| item.0 == key).expect("just put");
            alone.lock().remove(place, found);
            assert_eq!(alone.versions(), expected, "{key}");
            assert!(alone.lock().find(place, |item| item.0 == key).is_none());
        }
        let place = alone.place(77);
        assert!(alone.lock().put_in_overflow(place, (77, 77), 0, &alone.meter));
        assert_eq!(alone.items(), (1, 1));
        let mut expected = alone.versions();
        expected[4] += 2;
        let found = alone.lock().find(place, |item| item.0 == 77).expect("just put");
        alone.lock().remove(place, found);
        assert_eq!(alone.versions(), expected);
        assert_eq!(alone.items(), (0, 0));
    }

    #[test]
    fn clearing_bumps_every_stripe() {
        let alone = Alone::of(64);
        (0..9).for_each(|key| assert!(alone.lock().put(alone.place(key), (key, key), 0, 0)));
        assert!(alone.lock().put_in_overflow(alone.place(9), (9, 9), 0, &alone.meter));
        let before = alone.versions();
        alone.lock().clear();
        let after = alone.versions();
        assert!(before.len() == 5 && before.iter().zip(after).all(|(before, after)| before + 2 == after));
        assert_eq!(alone.items(), (0, 0));
        assert!((0..10).all(|key| alone.lock().find(alone.place(key), |item| item.0 == key).is_none()));
    }

    /// Misses pay for the overflow as long as there is something in it, and no longer.
    #[test]
    fn the_mark_of_an_overflow_is_there_while_an_item_is() {
        let alone = Alone::of(2);
        let put = |key| alone.lock().put_in_overflow(alone.place(key), (key, key), 0, &alone.meter);
        let remove = |key| {
            let found = alone.lock().find(alone.place(key), |item| item.0 == key).expect("it is there");
            alone.lock().remove(alone.place(key), found);
        };
        let is_marked = || !alone.segment().has_no_overflow();
        assert!(!is_marked());
        for _ in 0..2 {
            assert!(put(1) && put(2) && is_marked());
            remove(1);
            assert!(is_marked(), "one is left");
            remove(2);
            assert!(!is_marked());
        }
        assert!(put(3) && is_marked());
        alone.lock().clear();
        assert!(!is_marked());
    }

    /// Items in the overflow do not make the buckets any fuller.
    #[test]
    fn a_segment_that_grows_early_searches_for_no_path_once_seven_eighths_of_its_slots_are_taken() {
        for round in 0..40 {
            let in_overflow = round % 2 * 12;
            let alone = Alone::of(8);
            alone.lock().grow_early(true);
            for key in 1000..1000 + in_overflow {
                assert!(alone.lock().put_in_overflow(alone.place(key), (key, key), 0, &alone.meter));
            }
            let refused = |key: &u64| !alone.lock().put(alone.place(*key), (*key, 0), 0, path::QUEUE);
            (round * 10_000..).find(refused).expect("it ends");
            let in_buckets = alone.lock().len() - in_overflow as usize;
            assert!((28..=32).contains(&in_buckets), "{in_buckets} of 32");
            let tally = alone.lock().state().tally.clone();
            assert_eq!(tally.failed_searches, 0);
            assert_eq!(tally.path_lengths.iter().sum::<u64>(), in_buckets as u64);
        }
    }

    #[test]
    fn found_slots_are_told_apart() {
        let alone = Alone::of(1);
        for key in 0..3 {
            assert!(alone.lock().put(alone.place(key), (key, key), 0, 0));
        }
        assert!(alone.lock().put_in_overflow(alone.place(3), (3, 3), 0, &alone.meter));
        let find = |key| alone.lock().find(alone.place(key), |item| item.0 == key).expect("put");
        for (key, other) in (0..4).flat_map(|key| (0..4).map(move |other| (key, other))) {
            assert_eq!(find(key) == find(other), key == other, "{key} and {other}");
        }
    }
}
