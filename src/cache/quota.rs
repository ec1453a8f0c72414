//! How much each segment may hold: borrowed for what is heavier than a segment's share, given back, and changed with
//! [`Cache::set_capacity`]. Quota is handed round with `lending` locked: see `bound`.

use super::cache::CacheSlots;
use super::removal::Departures;
use super::time::Nanos;
use super::write::Leaving;
use super::{Cache, bound};
use crate::engine::Locked;
use crate::hash::Digest;
use crate::reclaim::LocalGuard;

impl<K, V, S> Cache<K, V, S> {
    /// Sets how much a segment may hold, and evicts what does not fit any more.
    fn set_quota(
        &self,
        locked: &mut Locked<'_, CacheSlots<K, V>>,
        quota: u64,
        now: Nanos,
        out: &mut Departures<'_, K, V, LocalGuard<'_>>,
    ) {
        self.decide(locked, now, out, |evictor, entries| evictor.set_capacity(quota, entries));
    }

    /// Takes quota for one item from segments that have it, evicting there. False: even all of it is not enough.
    ///
    /// Quota is never in two segments: it leaves one under its lock before it is added to another under that one's.
    #[cold]
    pub(super) fn borrow(
        &self,
        digest: Digest,
        weight: u64,
        now: Nanos,
        out: &mut Departures<'_, K, V, LocalGuard<'_>>,
    ) -> bool {
        let mut spare = self.bound.lend();
        if weight > self.bound.capacity() {
            return false;
        }
        let directory = &self.table.directory;
        let (mine, missing) = {
            let writing = directory.lock(digest.prefix());
            let state = writing.locked.state_ref();
            (state.index, weight.saturating_sub(state.keep.evictor.capacity()))
        };
        // From each the same, as long as they have it; then what they have.
        let others = u64::from(self.bound.segments() - 1).max(1);
        for part in [missing.div_ceil(others), u64::MAX] {
            let mut cursor = 0;
            while *spare < missing {
                let Some((mut writing, next)) = directory.visit(cursor) else { break };
                cursor = next;
                let state = writing.locked.state();
                if state.index == mine {
                    continue;
                }
                let quota = state.keep.evictor.capacity();
                let taken = part.min(missing - *spare).min(quota);
                self.set_quota(&mut writing.locked, quota - taken, now, out);
                *spare += taken;
            }
        }
        let taken = missing.min(*spare);
        self.bound.before_raise();
        let mut writing = directory.lock(digest.prefix());
        let quota = writing.locked.state().keep.evictor.capacity();
        self.set_quota(&mut writing.locked, quota + taken, now, out);
        *spare -= taken;
        true
    }

    /// Gives back what a segment has borrowed and does not use; or takes what it lacks and is spare.
    #[inline]
    pub(super) fn settle(&self, locked: &mut Locked<'_, CacheSlots<K, V>>, out: &mut Leaving<'_, K, V>) {
        let state = locked.state();
        if state.keep.evictor.capacity() != state.keep.fair {
            self.settle_with_others(locked, out);
        }
    }

    #[cold]
    fn settle_with_others(&self, locked: &mut Locked<'_, CacheSlots<K, V>>, out: &mut Leaving<'_, K, V>) {
        let state = locked.state();
        let fair = state.keep.fair;
        let (quota, used) = (state.keep.evictor.capacity(), state.keep.evictor.weight());
        let Some(mut spare) = self.bound.try_lend() else { return };
        if quota > fair {
            let surplus = quota - fair.max(used);
            self.set_quota(locked, quota - surplus, 0, out);
            *spare += surplus;
        } else {
            let taken = (*spare).min(fair.saturating_sub(quota));
            if taken > 0 {
                self.bound.before_raise();
                self.set_quota(locked, quota + taken, 0, out);
                *spare -= taken;
            }
        }
    }

    /// Changes how much the cache may hold: entries, or weight if there is a weigher. Evicts what does not fit any more,
    /// one segment after the other; while it runs, the bound is the larger of both.
    ///
    /// A cache that is made larger than it was built gets larger tables as it fills.
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
    /// In a closure that runs under this cache's lock, and if the removal listener panics: the capacity has been changed then.
    pub fn set_capacity(&self, capacity: u64) {
        // Before anything is locked: somebody else may hold `lending`, and wait for the segment that this thread has.
        self.table.directory.assert_not_writing();
        let guard = self.enter();
        let mut out = self.departures(&guard);
        let now = self.now();
        let mut spare = self.bound.lend();
        let before = self.bound.capacity();
        let segments = self.bound.segments();
        if capacity == before {
            return;
        }
        if capacity > before {
            self.bound.set_capacity(capacity);
            self.bound.before_raise();
        } else {
            *spare = 0;
        }
        let share = |index| bound::share_of(capacity, segments, index);
        self.for_quotas(now, &mut out, |index, fair, quota| {
            // What was borrowed stays so, if there is more; what is lent comes back after it, if there is less.
            let quota =
                if capacity > before { quota + (share(index) - *fair) } else { quota.min(share(index)) };
            *fair = share(index);
            quota
        });
        if capacity < before {
            self.bound.set_capacity(capacity);
            // Who had lent, now that who had borrowed has given back.
            self.bound.before_raise();
            self.for_quotas(now, &mut out, |_, fair, _| *fair);
        }
    }

    /// Changes the quota of each segment: to what `new` makes of its index, its fair quota, and the one it has. With `lending`
    /// locked.
    fn for_quotas(&self, now: Nanos, out: &mut Leaving<'_, K, V>, new: impl Fn(u32, &mut u64, u64) -> u64) {
        let mut cursor = 0;
        while let Some((mut writing, next)) = self.table.directory.visit(cursor) {
            let state = writing.locked.state();
            let quota = new(state.index, &mut state.keep.fair, state.keep.evictor.capacity());
            self.set_quota(&mut writing.locked, quota, now, out);
            cursor = next;
        }
    }
}
