//! Growth: a segment is replaced by a larger one, or split; the root doubles when a split needs it.
//!
//! A replacement is built aside under its own lock from the old segment's items, published entry by entry, and the old segment,
//! never written again while anyone could take it for current [I8], goes to the pool. Only writers of that one segment wait,
//! for the copying of one segment at most. A panic in the user's `Hash`, or a lack of memory, leaves the old segment as it was.
//! A split leaves the half that stays where it is: see `split`.

use std::time::Instant;

use smallvec::SmallVec;

use super::directory::{Directory, Writing};
use super::draft::{Draft, NoRoom, Purpose};
use super::locked::Locked;
use super::payload::Payload;
use super::rehash::Rehash;
use super::sizing::{MAX_BUCKETS, MAX_SEGMENTS};
use crate::hash::{Digest, Place, scale};
use crate::sync::Ordering;

/// Bytes up to which a root may have any number of entries per segment. To double such a root takes some hundred microseconds.
const SMALL_ROOT: usize = 1 << 19;

/// What replaces a segment: `count` segments of `buckets` each.
#[derive(Clone, Copy)]
pub(super) struct Replacement {
    pub(super) buckets: u32,
    /// 1: in place of the old one; 2: half its prefixes each.
    pub(super) count: u32,
    /// See `Locked::grow_early`.
    pub(super) grows_early: bool,
}

/// Whether a root of so many entries may double, in a table of so many segments and bytes. Not if it would have more than eight
/// entries per segment, as it would if keys that share their prefix went on splitting their segment, and would be large as
/// well: more than [`SMALL_ROOT`], or an eighth of the memory. Small roots have more entries where keys come in the order of
/// their digests, as from a walk over a map with the same hash function.
fn may_double(len: u32, segments: usize, bytes: usize) -> bool {
    let doubled = 2 * len as usize;
    let size = doubled * size_of::<usize>();
    doubled <= 8 * segments || size <= SMALL_ROOT.min(bytes / 8)
}

impl<P: Payload> Directory<P> {
    /// Replaces a segment by one of twice the slots, if it need not be split: `writing` becomes a lock on the new segment.
    pub(crate) fn double<'a>(
        &'a self,
        writing: &mut Writing<'a, P>,
        digest: Digest,
        rehash: &dyn Rehash<P>,
    ) -> Result<(), NoRoom> {
        let buckets = writing.locked.segment().buckets().len();
        if u64::from(buckets) * 2 > u64::from(self.shape.split_buckets) {
            return Err(NoRoom);
        }
        self.grow(writing, digest.prefix(), false, rehash)
    }

    /// Replaces the segment by a larger one, or splits it: twice the slots in all. `writing` becomes a lock on the segment that
    /// covers `prefix` then.
    pub(super) fn grow<'a>(
        &'a self,
        writing: &mut Writing<'a, P>,
        prefix: u32,
        grows_early: bool,
        rehash: &dyn Rehash<P>,
    ) -> Result<(), NoRoom> {
        self.grow_by(2, writing, prefix, grows_early, rehash)
    }

    /// As [`Directory::grow`]; a segment that does not split becomes `times` as large, a power of two.
    pub(super) fn grow_by<'a>(
        &'a self,
        times: u64,
        writing: &mut Writing<'a, P>,
        prefix: u32,
        grows_early: bool,
        rehash: &dyn Rehash<P>,
    ) -> Result<(), NoRoom> {
        let segment = writing.locked.segment();
        let buckets = segment.buckets().len();
        let splits = self.splits(&writing.locked);
        let larger = u64::from(buckets) * times;
        if !splits && larger > MAX_BUCKETS {
            return Err(NoRoom);
        }
        let started = Instant::now();
        if splits && segment.has_no_overflow() {
            self.split(writing, prefix, grows_early, rehash)?;
        } else {
            let (buckets, count) = if splits { (buckets, 2) } else { (larger as u32, 1) };
            self.rebuild(writing, Replacement { buckets, count, grows_early }, prefix, rehash)?;
        }
        let pause = u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX);
        // Relaxed: information, like all counts.
        self.counts.longest_pause_ns.fetch_max(pause, Ordering::Relaxed);
        let count = if splits { &self.counts.splits } else { &self.counts.doublings };
        count.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Whether the segment splits when it grows, rather than doubling. Segments with marks are a cache's, and do not grow that
    /// far.
    pub(super) fn splits(&self, locked: &Locked<'_, P>) -> bool {
        !P::MARKED
            && u64::from(locked.segment().buckets().len()) * 2 > u64::from(self.shape.split_buckets)
            && self.may_split(locked.state_ref().level)
    }

    /// Whether a segment of `level` may split: not if the root would have to double but [may not](may_double).
    fn may_split(&self, level: u32) -> bool {
        let root = self.root();
        level < root.level
            || may_double(root.len, self.pool.lock().live, self.meter.bytes())
                && u64::from(root.len) < MAX_SEGMENTS
    }

    /// Builds what `replacement` says from the locked segment, publishes it, and moves `writing` to the new segment that
    /// covers `prefix`.
    pub(super) fn rebuild<'a>(
        &'a self,
        writing: &mut Writing<'a, P>,
        replacement: Replacement,
        prefix: u32,
        rehash: &dyn Rehash<P>,
    ) -> Result<(), NoRoom> {
        let old = &mut writing.locked;
        let (index, level) = (old.state_ref().index, old.state_ref().level);
        let (first, level) = if replacement.count == 2 { (index * 2, level + 1) } else { (index, level) };
        let purpose = match replacement {
            Replacement { count: 2, .. } => Purpose::Split,
            Replacement { buckets, .. } if buckets > old.segment().buckets().len() => Purpose::Doubling,
            Replacement { .. } => Purpose::Shrinking,
        };
        let drafts = (0..replacement.count).map(|_| self.draft(replacement.buckets, purpose));
        let drafts = drafts.collect::<Result<SmallVec<[_; 2]>, _>>()?;
        let lock = |(draft, index): (&Draft<'a, P>, u32)| draft.lock(index, level);
        let mut new: SmallVec<[Locked<'a, P>; 2]> = drafts.iter().zip(first..).map(lock).collect();
        let entries = self.shape.segments << level;
        self.copy(old, &mut new, |digest| scale(digest.prefix(), entries).wrapping_sub(first), rehash)?;
        let parted_at = old.state_ref().parted_at;
        for locked in &mut new {
            locked.grow_early(replacement.grows_early);
            // If growing has not parted the items, it is not tried again before there are twice as many.
            let state = locked.state();
            state.parted_at = parted_at.min(u32::try_from(state.overflow_len).unwrap_or(u32::MAX));
        }
        self.publish(&new, new.len() - 1)?;
        for draft in drafts {
            draft.done();
        }

        let tally = core::mem::take(&mut old.state().tally);
        new[0].state().tally.add(&tally);
        new[0].state().keep = core::mem::take(&mut old.state().keep);
        // Relaxed: a count. Retries that late readers of the old segment add from here on are reported when that segment is
        // used again.
        let retries = old.segment().write().read_retries.swap(0, Ordering::Relaxed);
        new[0].segment().write().read_retries.fetch_add(retries, Ordering::Relaxed);
        let mine = new.swap_remove((scale(prefix, entries) - first) as usize);
        let ahead = old.state().ahead.take();
        let old = old.segment_ref().pointer();
        // The old lock is released here, that of the other half with `new`.
        writing.locked = mine;
        let mut pool = self.pool.lock();
        pool.put(old);
        if let Some(ahead) = ahead {
            pool.put(ahead.segment);
        }
        Ok(())
    }

    /// Copies each item to the segment whose index `select` returns.
    fn copy(
        &self,
        old: &Locked<'_, P>,
        new: &mut [Locked<'_, P>],
        select: impl Fn(Digest) -> u32,
        rehash: &dyn Rehash<P>,
    ) -> Result<(), NoRoom> {
        let (last, len) = (new.len() - 1, new[0].segment().buckets().len());
        // A `Hash` that contradicts itself may send the item astray, but not us.
        let select = |digest| (select(digest) as usize).min(last);
        let mut counts = [0; 2];
        for buckets in old.arrays() {
            for bucket in 0..buckets.len() {
                buckets.fetch_ahead(bucket);
                for (item, mark) in buckets.items(bucket) {
                    let digest = rehash.digest(item);
                    let (target, place) = (select(digest), Place::new(digest, len));
                    let locked = &mut new[target];
                    let mark = if P::MARKED { mark } else { locked.split_bits(digest.prefix()) };
                    if locked.put_uncounted(place, item, mark, self.shape.budget) {
                        counts[target] += 1;
                    } else if P::MARKED || !locked.put_in_overflow(place, item, mark, &self.meter) {
                        // A cache gives up growing instead: evictions do not see what is in the overflow.
                        return Err(NoRoom);
                    }
                }
            }
        }
        for (locked, count) in new.iter_mut().zip(counts) {
            locked.add_len(count);
            // Copying is not inserting, and a search that fails here does not count as a failed one.
            locked.state().tally = Default::default();
            // A late reader may have read the segment while it was empty.
            locked.bump_stripes();
        }
        Ok(())
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
pub(super) mod tests {
    use super::super::payload::Inline;
    use super::super::segment::Segment;
    use super::super::sizing::{Options, Shape};
    use super::*;

    pub(crate) type Words = Inline<u64, u64>;

    pub(crate) fn table(options: Options) -> Directory<Words> {
        Directory::new(Shape::new(options).expect("a shape"), options.capacity).expect("memory")
    }

    pub(crate) fn segments_of(slots: usize) -> Options {
        Options { capacity: 0, fixed: false, segment_slots: Some(slots), huge_pages: None, home_cells: None }
    }

    pub(crate) fn rehash((key, _): (u64, u64)) -> Digest {
        Digest::new(key)
    }

    pub(crate) fn insert_as(
        table: &Directory<Words>,
        key: u64,
        digest: impl Fn(u64) -> Digest,
    ) -> Result<(), NoRoom> {
        let spot = table.lock_and_find(digest(key), |item| item.0 == key);
        assert!(spot.found.is_none());
        table.insert(spot, (key, !key), |item| digest(item.0))
    }

    pub(crate) fn insert(table: &Directory<Words>, key: u64) -> Result<(), NoRoom> {
        insert_as(table, key, Digest::new)
    }

    #[test]
    fn a_segment_doubles_as_far_as_segments_go_and_then_says_so() {
        for (slots, expected) in [(8, &[1, 2][..]), (16, &[1, 2, 4]), (40, &[1, 2, 4, 8])] {
            let table = table(segments_of(slots));
            let digest = Digest::new(7);
            let mut writing = table.lock(digest.prefix());
            let mut sizes = Vec::new();
            loop {
                sizes.push(writing.locked.segment().buckets().len());
                if table.double(&mut writing, digest, &rehash).is_err() {
                    break;
                }
            }
            assert_eq!(sizes, expected);
            drop(writing);
            let stats = table.stats();
            assert_eq!((stats.doublings as usize, stats.splits), (expected.len() - 1, 0));
        }
    }

    #[test]
    fn a_root_that_is_large_has_eight_entries_a_segment_and_a_small_one_any_number() {
        assert!(may_double(32, 8, 0) && !may_double(32, 7, 0), "as few entries a segment");
        let size = 64 * size_of::<usize>();
        assert!(may_double(32, 1, 8 * size) && !may_double(32, 1, 8 * size - 1), "an eighth of the memory");
        let most = (SMALL_ROOT / size_of::<usize>() / 2) as u32;
        assert!(
            may_double(most, 1, usize::MAX) && !may_double(most + 1, 1, usize::MAX),
            "small, whatever else"
        );
    }

    /// Keys whose prefixes begin alike would go on splitting one segment, and the root would double each time.
    #[test]
    fn a_root_has_eight_entries_for_each_segment_or_takes_an_eighth_of_the_memory() {
        let table = table(segments_of(16));
        let alike = (0_u64..).filter(|key| Digest::new(*key).prefix() >> 21 == 5).take(600);
        let keys: Vec<u64> = alike.collect();
        for (i, key) in keys.iter().enumerate() {
            insert(&table, *key).unwrap();
            let segments = table.segments().count();
            assert_eq!(table.pool.lock().live, segments);
            let len = table.root().len as usize;
            let is_small = len * size_of::<usize>() <= table.meter.bytes() / 8;
            assert!(len <= 8 * segments || is_small, "{len} for {segments}, {i} keys");
        }
        assert!(table.memory_usage() > table.meter.bytes(), "the list of roots that were replaced");
        // Then that one segment doubles instead.
        assert!(table.stats().doublings > 0 && table.segments().count() < 20);
        assert!(table.slots() > 600 && table.len() == 600);
        for key in keys {
            assert_eq!(table.find(Digest::new(key), || (), |item| item.0 == key), Some((key, !key)));
        }
        let large = || table.segments().filter(|segment| segment.buckets().len() > 4).count();
        let before = large();
        // Segments that are of a lower level than the directory split as ever.
        (0..60)
            .filter(|key| Digest::new(*key).prefix() >> 21 != 5)
            .for_each(|key| insert(&table, key).unwrap());
        assert_eq!(large(), before, "those whose keys are alike");
    }

    /// A split cuts at once what further splits will take; a doubling takes only what it needs.
    #[test]
    fn a_doubling_takes_memory_for_one_segment_and_a_split_for_sixteen_heads() {
        let table = table(segments_of(16));
        let size = |buckets| {
            let plan = Segment::<Words>::plan(buckets, table.shape.stripes_for(buckets)).unwrap();
            // Memory that is aligned by hand takes more bytes.
            (plan.head.size() + plan.tags.size() + 64, plan.slots.size() + 64)
        };
        let digest = Digest::new(7);
        let mut writing = table.lock(digest.prefix());
        for buckets in [2, 4] {
            let before = table.meter.bytes();
            table.double(&mut writing, digest, &rehash).unwrap();
            let (head, slots) = size(buckets);
            assert!(table.meter.bytes() - before <= head + slots, "{buckets} buckets");
        }
        let before = table.meter.bytes();
        table.grow(&mut writing, digest.prefix(), false, &rehash).unwrap();
        let (head, slots) = size(4);
        let taken = table.meter.bytes() - before;
        assert!((8 * head..16 * head + 2 * slots + 256).contains(&taken), "{taken} bytes for a split");
    }

    #[test]
    fn a_segment_that_was_not_finished_is_used_again_or_freed() {
        let table = table(segments_of(16));
        let meter = table.meter();
        (0..4).for_each(|key| insert(&table, key).unwrap());
        let digest = Digest::new(0);
        let mut before = None;
        for _ in 0..3 {
            let grown = std::panic::catch_unwind(core::panic::AssertUnwindSafe(|| {
                let mut writing = table.lock(digest.prefix());
                table.grow(&mut writing, digest.prefix(), false, &|_| panic!("a hash that panics"))
            }));
            assert!(grown.is_err() && table.len() == 4);
            assert_eq!(*before.get_or_insert(meter.bytes()), meter.bytes(), "the same segment each time");
        }
        assert!((0..4).all(|key| table.find(Digest::new(key), || (), |item| item.0 == key).is_some()));
        drop(table);
        assert_eq!(meter.bytes(), 0);
    }

    /// Colliding keys are inserted first; the half that has none of them has no overflow afterwards.
    #[test]
    fn a_segment_with_overflow_splits_into_halves_that_have_their_own() {
        let table = table(segments_of(64));
        (0..12).for_each(|key| insert_as(&table, key, |_| Digest::new(3)).unwrap());
        let digest = |key| if key < 12 { Digest::new(3) } else { Digest::new(key) };
        let mut keys = 12;
        while table.stats().splits == 0 {
            insert_as(&table, keys, digest).unwrap();
            keys += 1;
        }
        let overflowed: Vec<bool> = table.segments().map(|segment| !segment.has_no_overflow()).collect();
        let half = (Digest::new(3).prefix() >> 31) as usize;
        assert_eq!((overflowed.len(), overflowed[half], overflowed[1 - half]), (2, true, false));
        assert!(
            (0..keys).all(|key| table.find(digest(key), || (), |item| item.0 == key) == Some((key, !key)))
        );
        assert_eq!((table.len() as u64, table.stats().overflow), (keys, 4));
    }

    #[test]
    fn what_is_told_of_inserts_outlives_growth() {
        let table = table(segments_of(64));
        let mut failed = 0;
        for key in 0..5000 {
            insert(&table, key).unwrap();
            if key % 10 == 0 {
                let now = table.stats().failed_searches;
                assert!(now >= failed, "{failed} became {now} at {key}");
                failed = now;
            }
        }
        assert!(failed > 0);
        let stats = table.stats();
        let in_overflow = stats.overflow as u64;
        assert_eq!(stats.path_lengths.iter().sum::<u64>() + in_overflow, 5000);
        assert!(
            stats.splits > 100 && stats.doublings == 4 && stats.segments as u64 == stats.splits + 1,
            "{stats:?}"
        );
        let weighted: u64 = stats.path_lengths.iter().zip(0..).map(|(count, hops)| count * hops).sum();
        assert_eq!(stats.displacements, weighted);
        assert!(stats.longest_write_pause > core::time::Duration::ZERO);
    }
}
