//! How much each segment may hold. It is taken from others for an item that is heavier than a segment's share, and where there
//! are few items; it is given back; and it is changed with [`Cache::set_capacity`]. Quota moves with `lending` locked: see
//! `bound`.

use super::bound::Lending;
use super::cache::CacheSlots;
use super::removal::Departures;
use super::share::Share;
use super::time::Nanos;
use super::write::NewEntry;
use super::{Cache, bound};
use crate::engine::{Found, Locked, Writing};
use crate::hash::Digest;
use crate::reclaim::FirstPanic;

/// A segment of fewer items takes what others do not use before it evicts: with this many items, demand differs by a sixteenth
/// from segment to segment. Models have the smallest caches, and would explore in vain what they explore anyhow where items are
/// heavier than a share.
pub(super) const FEW: usize = if cfg!(loom) { 16 } else { 256 };
/// A segment of fewer items also takes what others use: the next to go among so few need not be the next to go among all.
const FEWEST: usize = FEW / 16;
/// One of this many insertions asks the others, unless it is into a segment of fewer than [`FEWEST`] items, because asking
/// takes time. It takes quota for all of them.
const SELDOM: u64 = 8;
/// Lots that are drawn at most, for each segment.
const DRAWS: u32 = 8;

/// What a segment lacks for one more item.
#[derive(Clone, Copy)]
struct Needs {
    segment: u32,
    /// What it takes to hold the item at all.
    needed: u64,
    /// How much it takes of what others use.
    wanted: u64,
    /// How much it takes of what others do not use.
    unused: u64,
}

/// The time while a cache is resized, which waits for one segment after the other. If the clock panics the resizing is
/// completed nevertheless, as if the clock stood still, and the panic goes on afterwards: otherwise quota that was on its way
/// would belong to nobody.
struct Reading<'c, K, V, S> {
    cache: &'c Cache<K, V, S>,
    last: Nanos,
    panic: FirstPanic,
}

impl<K, V, S> Reading<'_, K, V, S> {
    fn now(&mut self) -> Nanos {
        let Reading { cache, last, panic } = self;
        panic.call(|| *last = cache.now());
        *last
    }
}

impl<K, V, S> Cache<K, V, S> {
    /// Sets how much a segment may hold, and evicts what does not fit any more.
    fn set_quota(
        &self,
        lending: &mut Lending,
        locked: &mut Locked<'_, CacheSlots>,
        quota: u64,
        now: Nanos,
        out: &mut Departures<'_, K, V>,
    ) {
        lending.quotas[locked.state_ref().index as usize] = quota;
        self.decide(locked, now, out, |evictor, entries| evictor.set_capacity(quota, entries));
    }

    /// Locks a segment by its index.
    fn segment(&self, index: u32) -> Writing<'_, CacheSlots> {
        let begin = (u64::from(index) << 32).div_ceil(u64::from(self.bound.segments()));
        let Some((writing, _)) = self.table.directory.visit(begin) else {
            unreachable!("no segment {index}")
        };
        debug_assert_eq!(writing.locked.state_ref().index, index);
        writing
    }

    /// Whether a segment that holds this many items never asks others, whatever is inserted.
    #[inline]
    pub(super) fn asks_nobody(&self, len: usize) -> bool {
        self.bound.segments() == 1 || len >= FEW && self.weigher.is_none()
    }

    /// Whether a segment that has to evict for an item, which may replace the one that is found, should ask others first:
    /// because it has few items, or would have to evict many and has not evicted any.
    pub(super) fn should_ask(
        &self,
        locked: &mut Locked<'_, CacheSlots>,
        found: Option<Found>,
        new_entry: &NewEntry,
    ) -> bool {
        let len = locked.len();
        if self.asks_nobody(len) {
            return false;
        }
        let before = found.map_or(0, |found| self.weight_of(locked.item(found)));
        let more = new_entry.facts.weight.saturating_sub(before);
        let share = &mut locked.state().keep;
        if share.evictor.fits(more) {
            return false;
        }
        if share.evictor.would_be_first(more, len) {
            return true;
        }
        if len >= FEW {
            return false;
        }
        share.insertions = share.insertions.wrapping_add(1);
        len < FEWEST || new_entry.heat.is_some() || u64::from(share.insertions) % SELDOM == 0
    }

    /// Takes quota for an item from other segments: first what they do not use; then, for what is still missing, what segments
    /// that are drawn by lot use, which evict for it, unless the policy turns the item away. The policy may do so unless the
    /// item takes the place of one that weighed `before`. Returns the item's segment, locked, so that it does not give back
    /// what it has got before the item is there; returns `None` if even all the quota is not enough.
    ///
    /// A lot may fall on the segment itself: then it has to evict, as far as it can. Quota is never in two segments: it leaves
    /// one under its lock before it is added to another under the lock of that one.
    #[cold]
    pub(super) fn gather(
        &self,
        digest: Digest,
        new_entry: &mut NewEntry,
        before: Option<u64>,
        out: &mut Departures<'_, K, V>,
    ) -> Option<Writing<'_, CacheSlots>> {
        let weight = new_entry.facts.weight;
        let lending = &mut *self.bound.lend();
        if weight > self.bound.capacity() {
            return None;
        }
        let needs = self.needs(digest, new_entry, before.unwrap_or(0));
        let idle = self.others(needs.segment).map(|index| self.bound.idle(lending, index));
        let unused = idle.fold(lending.spare, u64::saturating_add);
        if before.is_none() && unused < needs.wanted {
            let mut writing = self.table.directory.lock(digest.prefix());
            self.begin(new_entry);
            new_entry.is_turned_away = self.turns_away(&mut writing.locked, new_entry, unused, digest, out);
            if new_entry.is_turned_away {
                return Some(writing);
            }
        }
        self.take_unused(lending, needs, out);
        self.take_by_lot(lending, needs, out);
        self.take_needed(lending, needs, out);
        let taken = needs.unused.min(lending.spare);
        self.bound.before_raise();
        let mut writing = self.table.directory.lock(digest.prefix());
        let quota = writing.locked.state_ref().keep.evictor.capacity();
        self.set_quota(lending, &mut writing.locked, quota + taken, self.now(), out);
        lending.spare -= taken;
        Some(writing)
    }

    /// What the segment of a digest lacks for an item that takes the place of one that weighed `before`.
    fn needs(&self, digest: Digest, new_entry: &NewEntry, before: u64) -> Needs {
        let writing = self.table.directory.lock(digest.prefix());
        let (len, state) = (writing.locked.len(), writing.locked.state_ref());
        let evictor = &state.keep.evictor;
        let more = new_entry.facts.weight.saturating_sub(before);
        let needed = new_entry.facts.weight.saturating_sub(evictor.capacity());
        let missing = evictor.weight().saturating_add(more).saturating_sub(evictor.capacity()).max(needed);
        // Nothing is evicted for an entry of a dump, if that can be avoided [L4].
        let is_restored = new_entry.heat.is_some();
        let wanted = if len < FEWEST && !is_restored { missing } else { needed };
        let asks_each_time = len < FEWEST || is_restored;
        let unused = if asks_each_time { missing } else { missing.saturating_mul(SELDOM) };
        Needs { segment: state.index, needed, wanted, unused }
    }

    /// Takes what other segments do not use.
    fn take_unused(&self, lending: &mut Lending, needs: Needs, out: &mut Departures<'_, K, V>) {
        for index in self.others(needs.segment) {
            if lending.spare < needs.unused && self.bound.idle(lending, index) > 0 {
                let lacks = needs.unused - lending.spare;
                self.take_from(lending, index, &|quota, used| lacks.min(quota - used), out);
            }
        }
    }

    /// Takes quota that segments use, drawn by lot; these evict.
    fn take_by_lot(&self, lending: &mut Lending, needs: Needs, out: &mut Departures<'_, K, V>) {
        for _ in 0..DRAWS * self.bound.segments() {
            if lending.spare >= needs.wanted {
                break;
            }
            match self.bound.draw(lending) {
                Some(index) if index != needs.segment => {
                    // Not all at once: the next to go there may be the last that should.
                    let lacks = needs.wanted - lending.spare;
                    self.take_from(lending, index, &|quota, _| lacks.min((quota / 4).max(1)), out);
                }
                Some(_) if lending.spare < needs.needed => {}
                _ => break,
            }
        }
    }

    /// Takes what is needed and could not be had otherwise.
    fn take_needed(&self, lending: &mut Lending, needs: Needs, out: &mut Departures<'_, K, V>) {
        for index in self.others(needs.segment) {
            if lending.spare < needs.needed {
                let lacks = needs.needed - lending.spare;
                self.take_from(lending, index, &|quota, _| lacks.min(quota), out);
            }
        }
    }

    /// All segments but one.
    fn others(&self, segment: u32) -> impl Iterator<Item = u32> + use<K, V, S> {
        (0..self.bound.segments()).filter(move |&index| index != segment)
    }

    /// Takes a part of what a segment may hold, of which it uses some.
    fn take_from(
        &self,
        lending: &mut Lending,
        index: u32,
        part: &dyn Fn(u64, u64) -> u64,
        out: &mut Departures<'_, K, V>,
    ) {
        let mut writing = self.segment(index);
        let evictor = &writing.locked.state_ref().keep.evictor;
        let (quota, used) = (evictor.capacity(), evictor.weight());
        let part = part(quota, used);
        if part > 0 {
            self.set_quota(lending, &mut writing.locked, quota - part, self.now(), out);
            lending.spare += part;
        }
    }

    /// Whether a segment may hold an item of this weight by itself; if not, it settles first.
    pub(super) fn has_quota(
        &self,
        locked: &mut Locked<'_, CacheSlots>,
        weight: u64,
        out: &mut Departures<'_, K, V>,
    ) -> bool {
        if locked.state_ref().keep.evictor.capacity() < weight {
            self.settle(locked, out);
        }
        locked.state_ref().keep.evictor.capacity() >= weight
    }

    /// Gives back what a segment has beyond its share and does not use; or takes what it lacks, as far as that is spare.
    #[inline]
    pub(super) fn settle(&self, locked: &mut Locked<'_, CacheSlots>, out: &mut Departures<'_, K, V>) {
        let state = locked.state();
        if state.keep.evictor.capacity() != state.keep.fair {
            self.settle_with_others(locked, out);
        }
    }

    #[cold]
    fn settle_with_others(&self, locked: &mut Locked<'_, CacheSlots>, out: &mut Departures<'_, K, V>) {
        let is_crowded = locked.len() >= FEW;
        let state = locked.state();
        let fair = state.keep.fair;
        let (quota, used) = (state.keep.evictor.capacity(), state.keep.evictor.weight());
        let Some(mut lending) = self.bound.try_lend() else { return };
        if quota > fair {
            let unused = quota - fair.max(used);
            // A segment of few items keeps a little for the next: others that have few can ask for it.
            if unused > 0 && (is_crowded || unused > fair / 16) {
                self.set_quota(&mut lending, locked, quota - unused, 0, out);
                lending.spare += unused;
            }
        } else if is_crowded || used == quota {
            let taken = lending.spare.min(fair.saturating_sub(quota));
            if taken > 0 {
                self.bound.before_raise();
                self.set_quota(&mut lending, locked, quota + taken, 0, out);
                lending.spare -= taken;
            }
        }
    }

    /// Changes how much the cache may hold: entries, or weight if there is a weigher. Entries that do not fit any more are
    /// evicted, one segment after the other; while this runs, the bound is the larger of both. Where entries are counted, a
    /// smaller bound is taken first, after what is spare, from segments of 256 and more entries that have more than an equal
    /// part. A larger bound leaves borrowed quota where it is; it goes back as the segments fill.
    ///
    /// A cache that is made larger than it was built gets larger tables as it fills, but no more segments: while a table
    /// doubles, its segment is locked, for tens of milliseconds where a cache built for ten entries gets two million. A cache
    /// that is made smaller gives up entries, and keeps its tables. Where the size is to change much, build another cache.
    ///
    /// ```
    /// let cache: koel::Cache<u32, u32> = koel::Cache::new(100);
    /// for i in 0..100 {
    ///     cache.insert(i, i).unwrap();
    /// }
    /// cache.set_capacity(10);
    /// assert_eq!((cache.len(), cache.capacity()), (10, 10));
    /// ```
    ///
    /// # Panics
    ///
    /// In a closure that runs [under this cache's lock](Cache#under-a-lock), and if the removal listener panics, or the clock:
    /// the capacity has been changed then.
    #[doc(alias = "resize")]
    pub fn set_capacity(&self, capacity: u64) {
        // Before anything is locked: another thread may hold `lending`, and wait for the segment that this thread has.
        self.table.directory.assert_not_writing();
        self.change_capacity(capacity);
        // Frees what has left, now that no guard is older.
        self.free_if_heavy();
    }

    fn change_capacity(&self, capacity: u64) {
        let mut out = self.departures(self.enter());
        let lending = &mut *self.bound.lend();
        let mut clock = Reading { cache: self, last: 0, panic: FirstPanic::default() };
        let before = self.bound.capacity();
        let segments = self.bound.segments();
        if capacity == before {
            return;
        }
        if capacity > before {
            self.bound.set_capacity(capacity);
            self.bound.before_raise();
            // Borrowed quota stays where it is.
            self.for_quotas(lending, &mut clock, &mut out, |index, _, share| {
                let fair = bound::share_of(capacity, segments, index);
                share.evictor.capacity() + (fair - core::mem::replace(&mut share.fair, fair))
            });
        } else {
            self.lower(lending, capacity, &mut clock, &mut out);
        }
        clock.panic.go_on();
    }

    /// Makes the bound smaller: first by what is spare, then by what segments do not use beyond their shares, then by what they
    /// do not use at all, and last by what they use beyond their shares, which they evict. So borrowed quota stays where it is
    /// as long as it fits.
    ///
    /// But in segments of many entries, each of weight 1, what is above a segment's share goes first: it would never be given
    /// back.
    fn lower(
        &self,
        lending: &mut Lending,
        capacity: u64,
        clock: &mut Reading<'_, K, V, S>,
        out: &mut Departures<'_, K, V>,
    ) {
        let segments = self.bound.segments();
        let mut surplus = self.bound.capacity() - capacity;
        let taken = surplus.min(lending.spare);
        lending.spare -= taken;
        surplus -= taken;
        // What is left to a segment, given its share and what it uses. The shares sum to the new capacity: they are enough.
        let rounds: [fn(u64, u64) -> u64; 2] = [|fair, used| fair.max(used), |_, used| used];
        for (round, left) in rounds.into_iter().enumerate() {
            self.for_quotas(lending, clock, out, |index, len, share| {
                share.fair = bound::share_of(capacity, segments, index);
                let is_crowded = self.weigher.is_none() && len >= FEW;
                let used = if round == 0 && is_crowded { 0 } else { share.evictor.weight() };
                let quota = share.evictor.capacity();
                let taken = surplus.min(quota.saturating_sub(left(share.fair, used)));
                surplus -= taken;
                quota - taken
            });
        }
        self.lower_used(lending, &mut surplus, clock, out);
        debug_assert_eq!(surplus, 0, "no quota is left that nobody may have");
        self.bound.set_capacity(capacity);
    }

    /// The last round: takes what segments use beyond their shares, and what that leaves unused there. An entry that is heavier
    /// than a share goes whole; if that room were left to the segment, such entries would go from all segments, though some of
    /// them fit. In a segment of many entries that room is little, and stays.
    fn lower_used(
        &self,
        lending: &mut Lending,
        surplus: &mut u64,
        clock: &mut Reading<'_, K, V, S>,
        out: &mut Departures<'_, K, V>,
    ) {
        self.table.directory.each_segment(|mut writing| {
            for takes_unused in [false, true] {
                if takes_unused && writing.locked.len() >= FEW {
                    return;
                }
                let share = &writing.locked.state_ref().keep;
                let quota = share.evictor.capacity();
                let left = if takes_unused { share.evictor.weight() } else { share.fair };
                let taken = quota.saturating_sub(left).min(*surplus);
                if taken > 0 {
                    *surplus -= taken;
                    self.set_quota(lending, &mut writing.locked, quota - taken, clock.now(), out);
                }
            }
        });
    }

    /// Changes the quota of each segment to what `new` makes of its index, its number of entries, and what is kept for it.
    /// Called with `lending` locked.
    fn for_quotas(
        &self,
        lending: &mut Lending,
        clock: &mut Reading<'_, K, V, S>,
        out: &mut Departures<'_, K, V>,
        mut new: impl FnMut(u32, usize, &mut Share) -> u64,
    ) {
        self.table.directory.each_segment(|mut writing| {
            let len = writing.locked.len();
            let state = writing.locked.state();
            let quota = new(state.index, len, &mut state.keep);
            self.set_quota(lending, &mut writing.locked, quota, clock.now(), out);
        });
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use core::time::Duration;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::Arc;

    use crate::cache::{Cache, Clock, Policy};
    use crate::hash::scale;
    use crate::sync::{AtomicUsize, Ordering};

    /// The quota of each segment and what is spare, after a check that they are what they should be.
    fn quotas(cache: &Cache<u64, u64>) -> (Vec<u64>, u64) {
        let lending = cache.bound.lend();
        for (index, quota) in (0..).zip(&lending.quotas) {
            let writing = cache.segment(index);
            assert_eq!(writing.locked.state_ref().keep.evictor.capacity(), *quota);
        }
        assert_eq!(lending.quotas.iter().sum::<u64>() + lending.spare, cache.capacity());
        (lending.quotas.to_vec(), lending.spare)
    }

    /// A clock that shows no time, and panics when it has been read this often.
    struct Stops(Arc<AtomicUsize>);

    impl Clock for Stops {
        fn now(&self) -> Duration {
            // Relaxed: one thread.
            assert_ne!(self.0.fetch_sub(1, Ordering::Relaxed), 1, "the clock has stopped");
            Duration::ZERO
        }
    }

    #[test]
    fn a_clock_that_panics_loses_no_quota() {
        let reads = Arc::new(AtomicUsize::new(usize::MAX));
        for n in 1..40 {
            let builder = Cache::builder().max_weight(4_000).estimated_entries(4096);
            let clock = Stops(Arc::clone(&reads));
            let cache = builder.time_to_live(Duration::from_secs(1)).clock(clock).build();
            (0..5_000).for_each(|key| cache.insert(key, key).unwrap());
            let mut panics = 0;
            for capacity in [1_000, 6_000, 100, 3_000] {
                reads.store(n, Ordering::Relaxed);
                let changed = catch_unwind(AssertUnwindSafe(|| cache.set_capacity(capacity)));
                panics += u32::from(changed.is_err());
                reads.store(usize::MAX, Ordering::Relaxed);
                assert!(cache.capacity() == capacity && cache.weight() <= capacity, "{n}");
                quotas(&cache);
                (0..20_000).for_each(|key| cache.insert(key, key).unwrap());
                assert!(cache.weight() > capacity / 10 * 9, "{n}: {} of {capacity}", cache.weight());
            }
            // How often it is read depends on the number of segments.
            assert!(panics > 0 || n > 1, "never read");
        }
    }

    #[test]
    fn quota_goes_to_who_needs_it_and_back_when_all_have_many() {
        for policy in [Policy::Adaptive, Policy::Clock, Policy::Local] {
            let builder = Cache::builder().max_weight(40_000).estimated_entries(4096).policy(policy);
            let cache = builder.weigher(|_, value| *value).build();
            let fair = 40_000 / u64::from(cache.bound.segments());
            for key in 0..200 {
                cache.insert(key, 3000 + key * 100).unwrap();
                quotas(&cache);
            }
            let (before, _) = quotas(&cache);
            assert!(before.iter().any(|quota| quota.abs_diff(fair) > fair / 2), "{before:?}");
            for key in 1000..100_000 {
                cache.insert(key, 1).unwrap();
            }
            let (after, _) = quotas(&cache);
            assert!(after.iter().all(|quota| quota.abs_diff(fair) <= fair / 64), "{after:?}");
        }
    }

    #[test]
    fn a_lower_capacity_takes_what_is_spare_first_and_no_more_of_it_than_it_has_to() {
        let builder = Cache::builder().max_weight(40_000).estimated_entries(4096);
        let cache = builder.weigher(|_, value| *value).build();
        cache.insert(1, 30_000).unwrap();
        assert!(cache.remove(&1).is_some());
        let (before, spare) = quotas(&cache);
        assert!(spare > 10_000, "{spare} were borrowed and given back");
        cache.set_capacity(39_000);
        assert_eq!(quotas(&cache), (before, spare - 1000));
    }

    /// No segment of many entries gives back what it uses, so it would have more than its share for good.
    #[test]
    fn a_lower_capacity_takes_first_what_is_beyond_the_share_of_who_has_many() {
        let cache: Cache<u64, u64> = Cache::new(4096);
        let segments = cache.bound.segments();
        cache.set_capacity(u64::from(segments) * 250);
        let of_the_first = (0..).filter(|key| scale(cache.digest(key).prefix(), segments) == 0);
        of_the_first.take(300).for_each(|key| cache.insert(key, 0).unwrap());
        assert!(segments > 1 && quotas(&cache).0[0] >= 256, "nothing was borrowed");
        cache.set_capacity(u64::from(segments) * 200);
        assert_eq!(quotas(&cache).0[0], 200);
    }

    #[test]
    fn quotas_sum_to_the_capacity_when_that_changes() {
        let cache: Cache<u64, u64> = Cache::new(10_000);
        for (round, capacity) in [100, 5000, 0, 20_000, 7].into_iter().enumerate() {
            for key in 0..3000 {
                let _ = cache.insert(key * 10 + round as u64, 1);
            }
            cache.set_capacity(capacity);
            quotas(&cache);
            let _ = cache.insert(1_000_000, 1);
            quotas(&cache);
        }
    }
}
