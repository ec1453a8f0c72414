//! [`Cache`], the writing half.
//!
//! Every operation prepares what calls the user's code, then locks, finds, makes room, commits by one call of the engine
//! and unlocks; only then is anybody told what has left, and memory given up ([`Departures`]). Under the lock nothing of
//! the user's runs but `Eq`, `Hash` and the closures of `compute` and `remove_if`; whatever panics, nothing is half done.

use core::hash::{BuildHasher, Hash};
use core::ptr::NonNull;

use equivalent::Equivalent;

use super::cache::CacheSlots;
use super::policy::{Policy, Residents};
use super::refused::{Refused, Why};
use super::removal::{Cause, Departures};
use super::time::{Meta, NEVER, Nanos};
use super::{Cache, bound};
use crate::engine::{self, Found, Locked, Writing};
use crate::entries::{Entry, OwnedEntry, Reserves};
use crate::hash::{Digest, Place};
use crate::reclaim::LocalGuard;
use crate::sync::AtomicU64;

pub(super) type Slot<K, V> = Found<CacheSlots<K, V>>;
type Segment<'c, K, V> = Writing<'c, CacheSlots<K, V>>;
type Leaving<'c, K, V> = Departures<'c, K, V, LocalGuard<'c>>;

/// Buckets that each write looks through for entries that have expired: so many of them are found by half as many writes
/// as there are buckets, and none has to wait for it.
const SWEPT_BUCKETS: u32 = 2;

/// An entry to come: what is known before anything is locked.
pub(super) struct Draft {
    pub(super) weight: u64,
    pub(super) now: Nanos,
    pub(super) deadline: Nanos,
}

/// A locked segment, and where a key is in it.
pub(super) struct At<'c, K, V> {
    pub(super) writing: Segment<'c, K, V>,
    pub(super) digest: Digest,
    pub(super) found: Option<Slot<K, V>>,
}

impl<K, V, S> Cache<K, V, S> {
    pub(super) fn departures<'c>(&'c self, guard: &'c LocalGuard<'c>) -> Leaving<'c, K, V> {
        Departures::new(guard, self.listener.as_ref())
    }

    /// Takes an entry out of its slot. Frees no quota.
    pub(super) fn take_out(
        &self,
        locked: &mut Locked<'_, CacheSlots<K, V>>,
        found: Slot<K, V>,
        cause: Cause,
        out: &mut Departures<'_, K, V, LocalGuard<'_>>,
    ) {
        let (entry, mark) = (locked.item(found), locked.residents().mark(found));
        let weight = self.weight_of(entry);
        locked.remove(found);
        let share = &mut locked.state().keep;
        share.used -= weight;
        share.queues.removed(mark, weight);
        // SAFETY: just taken out, under the lock.
        unsafe { out.add(share, entry, cause) };
        self.counters.departed(cause, weight);
        self.publish_used(locked);
    }

    /// Tells readers of `weight` and `len` what a segment uses.
    fn publish_used(&self, locked: &mut Locked<'_, CacheSlots<K, V>>) {
        let state = locked.state();
        self.bound.set_used(state.index, state.keep.used);
    }

    /// Makes what a segment uses at most `limit`: by what has expired, then by what the policy gives up.
    pub(super) fn evict(
        &self,
        locked: &mut Locked<'_, CacheSlots<K, V>>,
        limit: u64,
        now: Nanos,
        out: &mut Departures<'_, K, V, LocalGuard<'_>>,
    ) {
        while locked.state_ref().keep.used > limit {
            let Some(victim) = self.victim(locked) else { return };
            let cause = if self.has_expired(locked.item(victim), now) { Cause::Expired } else { Cause::Size };
            self.take_out(locked, victim, cause, out);
        }
    }

    /// Whom the policy gives up.
    fn victim(&self, locked: &mut Locked<'_, CacheSlots<K, V>>) -> Option<Slot<K, V>> {
        let (residents, state) = locked.split();
        let mut residents = Weighed { cache: self, residents };
        let victim = state.keep.queues.victim(&mut residents);
        // Whatever the queues know: the bound holds.
        victim.or_else(|| (0..residents.buckets()).find_map(|bucket| residents.occupied(bucket).next()))
    }

    /// Takes out what has expired in the next few buckets.
    fn sweep(
        &self,
        locked: &mut Locked<'_, CacheSlots<K, V>>,
        buckets: u32,
        now: Nanos,
        out: &mut Departures<'_, K, V, LocalGuard<'_>>,
    ) {
        if self.time.is_none() {
            return;
        }
        let len = locked.segment().buckets().len();
        for _ in 0..buckets.min(len) {
            let bucket = locked.state_ref().keep.next_bucket % len;
            locked.state().keep.next_bucket = bucket + 1;
            for found in locked.residents().occupied(bucket) {
                if self.has_expired(locked.item(found), now) {
                    self.take_out(locked, found, Cause::Expired, out);
                }
            }
        }
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
            (state.index, weight.saturating_sub(state.keep.quota))
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
                let taken = part.min(missing - *spare).min(state.keep.quota);
                state.keep.quota -= taken;
                state.keep.queues.set_capacity(state.keep.quota);
                let limit = state.keep.quota;
                self.evict(&mut writing.locked, limit, now, out);
                *spare += taken;
            }
        }
        let taken = missing.min(*spare);
        self.bound.before_raise();
        let mut writing = directory.lock(digest.prefix());
        let share = &mut writing.locked.state().keep;
        share.quota += taken;
        share.queues.set_capacity(share.quota);
        *spare -= taken;
        true
    }

    /// Gives back what a segment has borrowed and does not use; or takes what it lacks and is spare.
    pub(super) fn settle(&self, locked: &mut Locked<'_, CacheSlots<K, V>>) {
        let state = locked.state();
        let fair = self.bound.share(state.index);
        let share = &mut state.keep;
        if share.quota == fair {
            return;
        }
        let Some(mut spare) = self.bound.try_lend() else { return };
        if share.quota > fair {
            let surplus = share.quota - fair.max(share.used);
            share.quota -= surplus;
            *spare += surplus;
        } else {
            let taken = (*spare).min(fair - share.quota);
            if taken > 0 {
                self.bound.before_raise();
                share.quota += taken;
                *spare -= taken;
            }
        }
        share.queues.set_capacity(share.quota);
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
    pub fn set_capacity(&self, capacity: u64) {
        let guard = self.enter();
        let mut out = self.departures(&guard);
        let now = self.now();
        let mut spare = self.bound.lend();
        let before = self.bound.capacity();
        let segments = self.bound.segments();
        if capacity > before {
            self.bound.set_capacity(capacity);
            self.bound.before_raise();
        } else {
            *spare = 0;
        }
        let fair = |index| bound::share_of(capacity, segments, index);
        self.for_quotas(now, &mut out, |index, quota| {
            if capacity > before {
                // What was borrowed stays so.
                quota + (fair(index) - bound::share_of(before, segments, index))
            } else {
                quota.min(fair(index))
            }
        });
        if capacity < before {
            self.bound.set_capacity(capacity);
            // Who had lent, now that who had borrowed has given back.
            self.bound.before_raise();
            self.for_quotas(now, &mut out, |index, _| fair(index));
        }
    }

    /// Changes the quota of each segment. With `lending` locked.
    fn for_quotas(&self, now: Nanos, out: &mut Leaving<'_, K, V>, new: impl Fn(u32, u64) -> u64) {
        let mut cursor = 0;
        while let Some((mut writing, next)) = self.table.directory.visit(cursor) {
            let state = writing.locked.state();
            let quota = new(state.index, state.keep.quota);
            state.keep.quota = quota;
            state.keep.queues.set_capacity(quota);
            self.evict(&mut writing.locked, quota, now, out);
            cursor = next;
        }
    }

    /// Takes out all entries.
    pub fn clear(&self) {
        let guard = self.enter();
        let mut cursor = 0;
        loop {
            // Told segment by segment.
            let mut out = self.departures(&guard);
            let Some((mut writing, next)) = self.table.directory.visit(cursor) else { return };
            let buckets = writing.locked.segment().buckets().len();
            for bucket in 0..buckets {
                for found in writing.locked.residents().occupied(bucket) {
                    self.take_out(&mut writing.locked, found, Cause::Explicit, &mut out);
                }
            }
            let share = &mut writing.locked.state().keep;
            share.queues.clear();
            self.settle(&mut writing.locked);
            cursor = next;
        }
    }

    /// Takes out all entries that have expired, and gives back memory that is not in use. Otherwise that is done little by
    /// little by whoever writes, and for a single entry by whoever looks it up. Locks one segment at a time, for a walk over
    /// its entries.
    pub fn purge(&self) {
        let guard = self.enter();
        let mut cursor = 0;
        loop {
            let mut out = self.departures(&guard);
            let Some((mut writing, next)) = self.table.directory.visit(cursor) else { break };
            self.sweep(&mut writing.locked, u32::MAX, self.now(), &mut out);
            self.settle(&mut writing.locked);
            cursor = next;
        }
        self.table.flush(&guard);
        self.table.purge(&guard);
    }
}

/// A locked segment's entries, for the policy.
struct Weighed<'l, K, V, S> {
    cache: &'l Cache<K, V, S>,
    residents: engine::Residents<'l, CacheSlots<K, V>>,
}

impl<K, V, S> Residents for Weighed<'_, K, V, S> {
    type Slot = Slot<K, V>;

    fn find(&self, locator: u32, accept: impl Fn(u8) -> bool) -> Option<Slot<K, V>> {
        self.residents.find(Place::located(locator, self.buckets()), accept)
    }

    fn mark(&self, slot: Slot<K, V>) -> u8 {
        self.residents.mark(slot)
    }

    fn set_mark(&mut self, slot: Slot<K, V>, mark: u8) {
        self.residents.set_mark(slot, mark);
    }

    fn weight(&self, slot: Slot<K, V>) -> u64 {
        self.cache.weight_of(self.residents.item(slot))
    }

    fn buckets(&self) -> u32 {
        self.residents.buckets()
    }

    fn occupied(&self, bucket: u32) -> impl Iterator<Item = Slot<K, V>> {
        self.residents.occupied(bucket)
    }
}

impl<K: Hash + Eq, V, S: BuildHasher> Cache<K, V, S> {
    /// Hashes a key, locks its segment and finds it.
    pub(super) fn at<Q: ?Sized + Hash + Equivalent<K>>(&self, digest: Digest, key: &Q) -> At<'_, K, V> {
        // SAFETY: in the table, under the segment's lock.
        let eq = |entry| key.equivalent(unsafe { Entry::deref(entry) }.pair().0);
        let (writing, found) = self.table.directory.lock_and_find(digest, eq);
        At { writing, digest, found }
    }

    /// Asks the user what is to be known of an entry.
    pub(super) fn draft(&self, key: &K, value: &V) -> Draft {
        let now = self.now();
        Draft {
            weight: self.weigher.as_ref().map_or(1, |weigher| weigher(key, value).max(1)),
            now,
            deadline: self.time.as_ref().map_or(NEVER, |time| time.deadline(now, key, value)),
        }
    }

    /// An entry, in memory that belongs to the locked segment.
    fn make(
        &self,
        at: &mut At<'_, K, V>,
        draft: &Draft,
        key: K,
        value: V,
    ) -> Result<OwnedEntry<K, V>, (K, V)> {
        let magazine = &mut at.writing.locked.state().keep.reserve().free;
        let new = OwnedEntry::new(&self.table.slab, magazine, key, value)?;
        if self.has_meta() {
            let meta =
                Meta { weight: draft.weight, deadline: draft.deadline, last_use: AtomicU64::new(draft.now) };
            // SAFETY: entries of this cache have a tail for it, and this one is ours.
            unsafe { Entry::tail::<Meta>(new.pointer()).write(meta) };
        }
        Ok(new)
    }

    /// Locks a key's segment when it has quota for `weight`; `None` if the whole cache has not.
    fn at_with_quota<'c>(
        &'c self,
        digest: Digest,
        key: &K,
        draft: &Draft,
        out: &mut Leaving<'_, K, V>,
    ) -> Option<At<'c, K, V>> {
        loop {
            let mut at = self.at(digest, key);
            if at.writing.locked.state_ref().keep.quota < draft.weight {
                self.settle(&mut at.writing.locked);
            }
            if at.writing.locked.state_ref().keep.quota >= draft.weight {
                return Some(at);
            }
            drop(at);
            if !self.borrow(digest, draft.weight, draft.now, out) {
                return None;
            }
        }
    }

    /// Inserts or replaces an entry.
    ///
    /// # Errors
    ///
    /// If it is heavier than all that the cache may hold, or there is no memory: [`Refused`] hands it back, and the cache
    /// keeps what it has.
    ///
    /// # Panics
    ///
    /// In a closure that runs under this cache's lock (`compute`, `remove_if`, `retain`'s is none), and if the removal
    /// listener panics: then the entry has been inserted all the same.
    ///
    /// ```
    /// let cache: koel::Cache<u32, &str> = koel::Cache::new(10);
    /// cache.insert(1, "one")?;
    /// cache.insert(1, "uno")?;
    /// assert_eq!(cache.get(&1), Some("uno"));
    /// # Ok::<(), koel::Refused<u32, &str>>(())
    /// ```
    pub fn insert(&self, key: K, value: V) -> Result<(), Refused<K, V>> {
        let draft = self.draft(&key, &value);
        let digest = self.digest(&key);
        let guard = self.enter();
        let mut out = self.departures(&guard);
        let Some(at) = self.at_with_quota(digest, &key, &draft, &mut out) else {
            let why = Why::TooHeavy { weight: draft.weight, capacity: self.capacity() };
            return Err(Refused { key, value, why });
        };
        self.put(at, draft, key, value, &mut out).map(|_| ())
    }

    /// Puts an entry where a key is or should be, in a segment that has quota for it.
    pub(super) fn put<'c>(
        &'c self,
        mut at: At<'c, K, V>,
        draft: Draft,
        key: K,
        value: V,
        out: &mut Leaving<'_, K, V>,
    ) -> Result<NonNull<Entry<K, V>>, Refused<K, V>> {
        let new = match self.make(&mut at, &draft, key, value) {
            Ok(new) => new,
            Err((key, value)) => {
                drop(at);
                return Err(Refused { key, value, why: Why::OutOfMemory });
            }
        };
        let entry = new.pointer();
        let At { mut writing, digest, found } = at;
        match found {
            Some(found) => self.replace(&mut writing.locked, found, new, &draft, out),
            None => {
                let quota = writing.locked.state_ref().keep.quota;
                self.sweep(&mut writing.locked, SWEPT_BUCKETS, draft.now, out);
                self.evict(&mut writing.locked, quota - draft.weight, draft.now, out);
                self.add(&mut writing, digest, new, &draft, out);
            }
        }
        self.settle(&mut writing.locked);
        drop(writing);
        self.counters.inserted();
        Ok(entry)
    }

    /// Puts a new entry in the place of an old one, after others have made room for what it weighs more.
    fn replace(
        &self,
        locked: &mut Locked<'_, CacheSlots<K, V>>,
        found: Slot<K, V>,
        new: OwnedEntry<K, V>,
        draft: &Draft,
        out: &mut Leaving<'_, K, V>,
    ) {
        let old = locked.item(found);
        let (before, after) = (self.weight_of(old), draft.weight);
        let cause = if self.has_expired(old, draft.now) { Cause::Expired } else { Cause::Replaced };
        while locked.state_ref().keep.used - before + after > locked.state_ref().keep.quota {
            // The policy may choose the very entry that is replaced: then it is told that it was used.
            let mut residents = locked.residents();
            residents.set_mark(found, self.policy.touch(residents.mark(found)));
            let Some(victim) = self.victim(locked) else { break };
            if locked.item(victim) == old {
                continue;
            }
            let expired = self.has_expired(locked.item(victim), draft.now);
            self.take_out(locked, victim, if expired { Cause::Expired } else { Cause::Size }, out);
        }
        let mark = locked.residents().mark(found);
        locked.replace(found, new.pointer());
        new.publish();
        let share = &mut locked.state().keep;
        share.used = share.used - before + after;
        share.queues.reweighed(mark, before, after);
        // SAFETY: just replaced, under the lock.
        unsafe { out.add(share, old, cause) };
        self.publish_used(locked);
    }

    /// Puts a new entry into a segment that has room for it by its quota; makes the table larger, or evicts who is in its
    /// way, if there is no path.
    fn add<'c>(
        &'c self,
        writing: &mut Segment<'c, K, V>,
        digest: Digest,
        new: OwnedEntry<K, V>,
        draft: &Draft,
        out: &mut Leaving<'_, K, V>,
    ) {
        let locator = digest.locator();
        let mark = writing.locked.state().keep.queues.admit(locator, draft.weight);
        loop {
            let place = Place::new(digest, writing.locked.segment().buckets().len());
            if writing.locked.put(place, new.pointer(), mark, self.table.directory.budget()) {
                break;
            }
            let (len, slots) = (writing.locked.len(), writing.locked.slots());
            let full = len as f64 >= 0.85 * slots as f64;
            if full && self.table.directory.double(writing, digest, &|entry| self.rehash(entry)).is_ok() {
                continue;
            }
            let residents = writing.locked.residents();
            let slots = [place.first, place.second].into_iter().flat_map(|bucket| residents.occupied(bucket));
            let hindrance = slots.min_by_key(|&slot| residents.mark(slot) & Policy::USES);
            let hindrance = hindrance.expect("no path, though a bucket is empty");
            self.take_out(&mut writing.locked, hindrance, Cause::Size, out);
        }
        new.publish();
        writing.locked.state().keep.used += draft.weight;
        self.publish_used(&mut writing.locked);
    }

    /// Takes out an entry that a reader has found expired, if it is still there.
    #[cold]
    pub(super) fn take_out_expired(&self, digest: Digest, entry: NonNull<Entry<K, V>>, now: Nanos) {
        if self.table.directory.is_writing() {
            // Somebody will, and not in a closure under the lock.
            return;
        }
        let guard = self.enter();
        let mut out = self.departures(&guard);
        let (mut writing, found) = self.table.directory.lock_and_find(digest, |other| other == entry);
        if let Some(found) = found {
            if self.has_expired(entry, now) {
                self.take_out(&mut writing.locked, found, Cause::Expired, &mut out);
                self.settle(&mut writing.locked);
            }
        }
    }

    /// Takes an entry out, if `condition` holds for it. With what is left of it.
    fn remove_entry<'g, Q: ?Sized + Hash + Equivalent<K>>(
        &self,
        key: &Q,
        guard: &'g LocalGuard<'_>,
        condition: impl FnOnce(&K, &V) -> bool,
    ) -> Option<&'g Entry<K, V>> {
        let digest = self.digest(key);
        let mut out = self.departures(guard);
        let At { mut writing, found, .. } = self.at(digest, key);
        let found = found?;
        let entry = writing.locked.item(found);
        // SAFETY: in the table, under the lock; what leaves is retired by `out`, after the guard was entered.
        let old = unsafe { Entry::deref(entry) };
        let expired = self.time.is_some() && self.has_expired(entry, self.now());
        if !expired && !condition(old.pair().0, old.pair().1) {
            return None;
        }
        let cause = if expired { Cause::Expired } else { Cause::Explicit };
        self.take_out(&mut writing.locked, found, cause, &mut out);
        self.settle(&mut writing.locked);
        (!expired).then_some(old)
    }

    /// Takes the entry of a key out; a clone of its value.
    ///
    /// ```
    /// let cache: koel::Cache<u32, &str> = koel::Cache::new(10);
    /// cache.insert(1, "one").unwrap();
    /// assert_eq!(cache.remove(&1), Some("one"));
    /// assert_eq!(cache.remove(&1), None);
    /// ```
    pub fn remove<Q>(&self, key: &Q) -> Option<V>
    where
        Q: ?Sized + Hash + Equivalent<K>,
        V: Clone,
    {
        self.remove_if(key, |_, _| true)
    }

    /// Takes the entry of a key out if `condition` holds for it; a clone of its value. `condition` runs under the lock of
    /// the key's segment, at most once.
    ///
    /// # Panics
    ///
    /// If `condition` panics or writes to this cache, which then is as it was.
    pub fn remove_if<Q, F>(&self, key: &Q, condition: F) -> Option<V>
    where
        Q: ?Sized + Hash + Equivalent<K>,
        V: Clone,
        F: FnOnce(&K, &V) -> bool,
    {
        let guard = self.enter();
        self.remove_entry(key, &guard, condition).map(|entry| entry.pair().1.clone())
    }

    /// Keeps the entries for which `keep` holds and takes the others out.
    ///
    /// Sees each entry that is present throughout, with no lock held. If an entry is replaced between `keep`'s verdict and
    /// its removal, `keep` is asked again about the new one.
    pub fn retain(&self, mut keep: impl FnMut(&K, &V) -> bool) {
        let view = self.pin();
        for (key, value) in view.iter() {
            let (mut key, mut value) = (key, value);
            let guard = self.enter();
            while !keep(key, value) {
                let digest = self.digest(key);
                let mut out = self.departures(&guard);
                let At { mut writing, found, .. } = self.at(digest, key);
                let Some(found) = found else { break };
                // SAFETY: in the table, under the lock, after both guards were entered.
                let current = unsafe { Entry::deref(writing.locked.item(found)) }.pair();
                if core::ptr::eq(current.1, value) && core::ptr::eq(current.0, key) {
                    self.take_out(&mut writing.locked, found, Cause::Explicit, &mut out);
                    self.settle(&mut writing.locked);
                    break;
                }
                (key, value) = current;
            }
        }
    }
}
