//! Reserving room and giving it back: what is done to all segments, one after the other, when a caller asks for it.

use super::directory::{Directory, Writing};
use super::growth::Replacement;
use super::locked::Locked;
use super::payload::Payload;
use super::pool::Retired;
use super::rehash::Rehash;
use super::segment::Segment;
use super::sizing::{CapacityError, MAX_CAPACITY, Shape};

impl<P: Payload> Directory<P> {
    /// Grows segments until `additional` more items will find room without growing, if they spread evenly; all segments are
    /// filled as far as paths lead from then on. The error reports the number of all items together.
    pub(crate) fn reserve(&self, additional: usize, rehash: &dyn Rehash<P>) -> Result<(), CapacityError> {
        // Also where nothing will be locked.
        self.assert_not_writing();
        if self.shape.fixed_capacity.is_some() {
            return Ok(());
        }
        let total = self.len().saturating_add(additional);
        let error =
            CapacityError { requested: total, limit: MAX_CAPACITY, out_of_memory: total <= MAX_CAPACITY };
        if total > MAX_CAPACITY {
            return Err(error);
        }
        let buckets = Shape::buckets_for(total);
        let shrinks = {
            let pool = self.pool.lock();
            if buckets <= pool.reserved_buckets {
                return Ok(());
            }
            pool.shrinks
        };
        self.bytes_for(buckets).and_then(Self::probe).ok_or(error)?;
        // Each segment grows once, and then all again. If one were grown to its final size before the next, the directory would
        // soon have eight entries for each segment, and segments that should split would then double.
        loop {
            let (mut cursor, mut least) = (0, u64::MAX);
            while let Some((mut writing, next)) = self.visit(cursor) {
                let had = self.buckets_if_all_were_as(&writing);
                if had < buckets {
                    let times = self.times_before_it_splits(&writing, buckets.div_ceil(had));
                    self.grow_by(times, &mut writing, cursor as u32, false, rehash).map_err(|_| error)?;
                }
                writing.locked.grow_early(false);
                (least, cursor) = (least.min(had), next);
            }
            if least >= buckets {
                let mut pool = self.pool.lock();
                // Otherwise another thread is shrinking, or has shrunk after this call looked.
                if pool.shrinks == shrinks {
                    pool.reserved_buckets = pool.reserved_buckets.max(least);
                }
                return Ok(());
            }
        }
    }

    /// The factor by which a segment grows at once that is to have `wanted` times its buckets: a power of two, as far as it
    /// need not split. If it doubled step by step, each intermediate size of every segment would go to the pool, and together
    /// these are as large as the final segments.
    fn times_before_it_splits(&self, writing: &Writing<'_, P>, wanted: u64) -> u64 {
        let now = u64::from(writing.locked.segment().buckets().len());
        let most = (u64::from(self.shape.split_buckets) / now).max(2);
        wanted.next_power_of_two().min(1 << most.ilog2())
    }

    /// How many buckets there would be if the whole table had as many, in proportion, as this segment has.
    fn buckets_if_all_were_as(&self, writing: &Writing<'_, P>) -> u64 {
        u64::from(writing.locked.segment().buckets().len())
            * self.segments_at(writing.locked.state_ref().level)
    }

    /// How many bytes it takes, in addition to the current segments, to grow segments until there are so many buckets: each
    /// doubles until it splits, and then their number doubles. It takes less where the pool has some, and more where segments
    /// of a few slots may not split. `None` if it is more than there can be.
    fn bytes_for(&self, buckets: u64) -> Option<usize> {
        let (mut bytes, mut entries) = (Some(0_usize), 0_u64);
        self.each_segment(|writing| {
            let has = self.buckets_if_all_were_as(&writing);
            if has >= buckets {
                return;
            }
            let now = u64::from(writing.locked.segment().buckets().len());
            let will_be = now * buckets.div_ceil(has).next_power_of_two();
            let mut add = |of_each: u64, segments: u64| {
                let plan = Segment::<P>::plan(of_each as u32, self.shape.stripes_for(of_each as u32));
                let new = plan.and_then(|plan| plan.bytes().checked_mul(usize::try_from(segments).ok()?));
                bytes = bytes.and_then(|bytes| bytes.checked_add(new?));
            };
            // The old segment stays for threads that may still be reading it.
            let mut of_one = now;
            while of_one < will_be && of_one * 2 <= u64::from(self.shape.split_buckets) {
                of_one *= 2;
            }
            if of_one > now {
                add(of_one, 1);
            }
            // Of the segments that come from splits, one stays where it was.
            let count = will_be / of_one;
            add(of_one, count - 1);
            entries = entries.max(self.segments_at(writing.locked.state_ref().level).saturating_mul(count));
        });
        let root = usize::try_from(entries).ok()?.checked_mul(2 * size_of::<usize>())?;
        bytes?.checked_add(root)
    }

    /// Makes segments fill as far as paths lead before they grow: the caller has said how many items are to come.
    pub(crate) fn expect_items(&mut self) {
        for segment in self.segments() {
            Locked::lock(segment).grow_early(false);
        }
    }

    /// Replaces every segment that is much too large for its items by a smaller one; and every one whose overflow is much too
    /// large by one without, unless as many segments with an overflow wait to be freed as there are current ones. Also gives
    /// back what was copied ahead of splits that are not due any more.
    pub(crate) fn shrink(&self, rehash: &dyn Rehash<P>) {
        // Also where nothing will be locked.
        self.assert_not_writing();
        if self.shape.fixed_capacity.is_some() {
            return;
        }
        // Before and after: a caller that reserves meanwhile sees one of the two.
        self.pool.lock().forget_reserved();
        let _after = Forgetting(self);
        self.each_segment(|mut writing| {
            // Powers of two: segments that double again then have such sizes as well, and the pool keeps few sizes.
            let wanted = Shape::buckets_for(writing.locked.len()).next_power_of_two();
            let now = writing.locked.segment().buckets().len();
            let buckets = wanted.min(u64::from(now)) as u32;
            let has_idle_overflow = writing.locked.has_idle_overflow();
            if buckets < now || has_idle_overflow && self.pool.lock().may_lack_overflow(buckets) {
                let smaller = Replacement { buckets, count: 1, grows_early: false };
                let prefix = self.prefixes(&writing).start as u32;
                // If there is no memory to get smaller, the segment stays as it is.
                let _ = self.rebuild(&mut writing, smaller, prefix, rehash);
            }
            if !writing.locked.is_filling_up() {
                let ahead = writing.locked.state().ahead.take();
                ahead.into_iter().for_each(|ahead| self.pool.lock().put(ahead.segment));
            }
        });
    }

    /// Takes everything that is not current out of the pool, for the caller to free when no late reader is left.
    pub(crate) fn drain_pool(&self) -> Retired<P> {
        Retired { pool: self.pool.lock().drain(), meter: self.meter() }
    }
}

/// Forgets what has been reserved when it is dropped, even by a panic in the user's `Hash`.
struct Forgetting<'d, P: Payload>(&'d Directory<P>);

impl<P: Payload> Drop for Forgetting<'_, P> {
    fn drop(&mut self) {
        self.0.pool.lock().forget_reserved();
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::super::growth::tests::{Words, insert, insert_as, rehash, segments_of, table};
    use super::super::sizing::Options;
    use super::*;
    use crate::hash::{Digest, Place};
    use crate::sync::Ordering;

    #[test]
    fn reserving_makes_the_room_that_was_asked_for_and_less_than_twice_of_it() {
        for (present, additional) in [(0, 10), (0, 1000), (300, 300), (1000, 5)] {
            let table = table(segments_of(64));
            (0..present).for_each(|key| insert(&table, key).unwrap());
            let before = table.slots();
            table.reserve(additional, &rehash).unwrap();
            let needed = Shape::buckets_for(present as usize + additional) as usize * 4;
            let slots = table.slots();
            assert!(
                slots >= needed && slots <= before.max(2 * needed),
                "{slots} slots of {needed}, {before} before"
            );
            assert!(
                (0..present).all(|key| table.find(Digest::new(key), || (), |item| item.0 == key).is_some())
            );
        }
        let table = table(Options::default());
        for additional in [MAX_CAPACITY + 1, usize::MAX] {
            let error = table.reserve(additional, &rehash).unwrap_err();
            assert_eq!((error.requested, error.out_of_memory), (additional, false));
        }
        assert_eq!(table.slots(), 4, "refused before anything has grown");
    }

    /// Otherwise it would take all memory that there is before it is refused.
    #[test]
    fn what_reserving_will_take_is_known_beforehand() {
        for (present, additional) in
            [(0, 1000), (0, 100_000), (700, 2000), (20_000, 20_000), (20_000, 130_000)]
        {
            for slots in [64, 4096] {
                let table = table(segments_of(slots));
                (0..present).for_each(|key| insert(&table, key).unwrap());
                let before = table.meter.bytes();
                let buckets = Shape::buckets_for(present as usize + additional);
                let expected = table.bytes_for(buckets).expect("there is memory");
                table.reserve(additional, &rehash).unwrap();
                let taken = table.meter.bytes() - before;
                assert!(
                    taken <= expected + expected / 5 + 10_000 && expected <= taken + taken / 5 + 10_000,
                    "{present} and {additional} more, {slots} slots a segment: {taken} taken, {expected} expected"
                );
            }
        }
    }

    #[test]
    fn what_has_been_reserved_is_not_looked_for_again_unless_it_was_given_back() {
        let table = table(segments_of(64));
        table.reserve(10_000, &rehash).unwrap();
        let slots = table.slots();
        // With a segment locked: a call that looks at all segments would wait for it.
        let writing = table.lock_and_find(Digest::new(1), |_| false);
        std::thread::scope(|scope| {
            let (done, ended) = std::sync::mpsc::channel();
            let table = &table;
            scope.spawn(move || done.send(table.reserve(9_000, &rehash)));
            let is_at_once = ended.recv_timeout(std::time::Duration::from_secs(60)).is_ok();
            drop(writing);
            assert!(is_at_once, "it waits for a segment");
        });
        let shrinks = table.pool.lock().shrinks;
        table.shrink(&rehash);
        assert!(table.slots() < slots / 2);
        // SAFETY: nobody else uses the table.
        unsafe { table.drain_pool().free() };
        // Otherwise a caller that reserves meanwhile would mistake it for the time before.
        assert!(table.pool.lock().shrinks > shrinks);
        table.reserve(10_000, &rehash).unwrap();
        assert!(table.slots() >= 10_000);
    }

    /// All segments have had an overflow, and the items that stay need all of their slots, so that each segment could take the
    /// place of the next.
    #[test]
    fn shrinking_hands_no_overflow_on_to_another_segment() {
        let table = table(segments_of(64));
        let digest = |key: u64| Digest::new(key.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        (0..1000).for_each(|key| insert_as(&table, key, digest).unwrap());
        let overflows = || {
            let mut segments = (0, 0);
            table.each_segment(|writing| {
                segments.0 += 1;
                segments.1 += usize::from(writing.locked.segment().overflow().slots() > 0);
            });
            segments
        };
        for key in 1000..5000 {
            let mut spot = table.lock_and_find(digest(key), |_| false);
            let place = Place::new(digest(key), spot.writing.locked.segment().buckets().len());
            assert!(spot.writing.locked.put_in_overflow(place, (key, key), 0, &table.meter));
        }
        for key in 1000..5000 {
            let mut spot = table.lock_and_find(digest(key), |item| item.0 == key);
            spot.writing.locked.remove(spot.place, spot.found.expect("put"));
        }
        let (segments, with_overflow) = overflows();
        assert!(segments > 8 && with_overflow == segments, "{with_overflow} of {segments}");
        table.shrink(&|item: (u64, u64)| digest(item.0));
        assert_eq!(overflows(), (segments, 0));
        // SAFETY: nobody else uses the table.
        unsafe { table.drain_pool().free() };
        let is_there = |key| table.find(digest(key), || (), |item| item.0 == key).is_some();
        assert!((0..5000).all(|key| is_there(key) == (key < 1000)));
    }

    /// Of ten thousand keys that share one digest, next to others that do not, most have been removed.
    #[test]
    fn shrinking_frees_an_overflow_that_is_much_too_large_for_what_is_in_it() {
        for stay in [0, 2000] {
            let table = table(Options::default());
            let digest = |key| if key < 10_000 { Digest::new(3) } else { Digest::new(key) };
            (0..10_018).for_each(|key| insert_as(&table, key, digest).unwrap());
            let find = |table: &Directory<Words>, key| table.find(digest(key), || (), |item| item.0 == key);
            for key in stay..10_000 {
                let mut spot = table.lock_and_find(digest(key), |item| item.0 == key);
                spot.writing.locked.remove(spot.place, spot.found.expect("put"));
            }
            let slots = table.slots();
            let bytes = || {
                table.shrink(&|item: (u64, u64)| digest(item.0));
                // SAFETY: nobody else uses the table.
                unsafe { table.drain_pool().free() };
                table.meter.bytes() as u64
            };
            let shrunk = bytes();
            // Slots take 17 bytes each, and at most one in four is taken; and the first blocks are short.
            assert!(shrunk < 2500 + 4 * 17 * stay, "{shrunk} bytes for {stay}");
            assert_eq!(bytes(), shrunk, "once is enough");
            let (slots_now, overflow) = (table.slots(), table.stats().overflow as u64);
            assert!(
                slots_now == slots && (stay..stay + 18).contains(&(overflow + 8)),
                "{slots_now}, {overflow}"
            );
            assert!((0..10_018).all(|key| find(&table, key).is_some() == (key < stay || key >= 10_000)));
        }
    }

    /// Nobody frees what was replaced, as in a map whose readers have no guards.
    #[test]
    fn shrinking_again_and_again_takes_no_more_memory_where_collisions_come_and_go() {
        let table = table(Options::default());
        let digest = |key| if key < 1000 { Digest::new(3) } else { Digest::new(key) };
        let remove = |key| {
            let mut spot = table.lock_and_find(digest(key), |item| item.0 == key);
            spot.writing.locked.remove(spot.place, spot.found.expect("put"));
        };
        // Both buckets of the colliding keys are full, and the segment is not half full: so they do not make it grow.
        (0..8).chain(1000..1007).for_each(|key| insert_as(&table, key, digest).unwrap());
        table.shrink(&|item: (u64, u64)| digest(item.0));
        let bytes: Vec<_> = (0..30)
            .map(|_| {
                (8..1000).for_each(|key| insert_as(&table, key, digest).unwrap());
                (8..1000).for_each(remove);
                table.shrink(&|item: (u64, u64)| digest(item.0));
                table.meter.bytes()
            })
            .collect();
        assert!(bytes[29] <= bytes[9], "{bytes:?}");
        // And it does nothing in vain.
        table.shrink(&|_| unreachable!("nothing is to be had by it"));
    }

    #[test]
    fn shrinking_leaves_each_segment_the_power_of_two_that_its_items_need() {
        let table = table(segments_of(64));
        (0..2000).for_each(|key| insert(&table, key).unwrap());
        table.each_segment(|mut writing| {
            let digests: Vec<_> = (0..2000).map(Digest::new).collect();
            for (key, digest) in digests.iter().enumerate() {
                let place = Place::new(*digest, writing.locked.segment().buckets().len());
                if key % 5 != 0 {
                    let found = writing.locked.find(place, |item| item.0 == key as u64);
                    found.into_iter().for_each(|found| writing.locked.remove(place, found));
                }
            }
        });
        assert_eq!(table.len(), 400);
        table.shrink(&rehash);
        table.each_segment(|writing| {
            let (len, buckets) = (writing.locked.len(), writing.locked.segment().buckets().len());
            assert_eq!(u64::from(buckets), Shape::buckets_for(len).next_power_of_two(), "for {len}");
        });
        assert!((0..2000).all(|key| {
            table.find(Digest::new(key), || (), |item| item.0 == key).is_some() == (key % 5 == 0)
        }));
    }

    /// Each split takes one of the sixteen blocks that were cut.
    #[test]
    fn memory_for_further_segments_is_found_again_when_the_pool_was_drained() {
        let bytes = |drains: bool| {
            let table = table(segments_of(64));
            for key in 0..3000 {
                let before = table.segments().count();
                insert(&table, key).unwrap();
                if drains && table.segments().count() > before {
                    // SAFETY: nobody else uses the table.
                    unsafe { table.drain_pool().free() };
                }
            }
            table.meter.bytes()
        };
        let (kept, drained) = (bytes(false), bytes(true));
        assert!(drained <= kept, "{kept} bytes became {drained}");
    }

    /// The tags are given back: small segments have none of that size. Heads are all of one size, and some of them are in use.
    #[test]
    fn memory_for_further_segments_is_given_back_when_nothing_current_lies_beside_it() {
        let table = table(segments_of(1024));
        (0..8000).for_each(|key| insert(&table, key).unwrap());
        table.each_segment(|mut writing| writing.locked.clear());
        table.shrink(&rehash);
        // SAFETY: nobody else uses the table.
        unsafe { table.drain_pool().free() };
        let (segments, bytes) = (table.segments().count(), table.meter.bytes());
        assert!(segments > 8 && bytes < 20_000, "{bytes} bytes for {segments} segments");
    }

    #[test]
    fn who_takes_all_items_writes_to_no_segment_that_has_none() {
        let table = table(segments_of(64));
        let take_all = || {
            let (mut cursor, mut items) = (0, Vec::new());
            while let Some(next) = table.take(cursor, &mut items) {
                cursor = next;
            }
            items.len()
        };
        let versions = || -> Vec<u64> {
            let stripes = table.segments().flat_map(|segment| segment.segment().stripes());
            stripes.map(|stripe| stripe.load(Ordering::Relaxed)).collect()
        };
        (0..1000).for_each(|key| insert(&table, key).unwrap());
        assert_eq!(take_all(), 1000);
        let before = versions();
        assert_eq!((take_all(), versions()), (0, before));
        insert(&table, 7).unwrap();
        assert_eq!((take_all(), table.len()), (1, 0));
    }
}
