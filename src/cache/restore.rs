//! [`Cache::load`]: puts the entries of another cache's dump into the room that there is.

use core::cmp::Reverse;
use core::hash::{BuildHasher, Hash};

use super::dump::{CacheDump, Dumped, Standing};
use super::flight::Landing;
use super::policy::WindowShare;
use super::quota::FEW;
use super::refused::Refused;
use super::removal::Departures;
use super::share::Share;
use super::write::{At, NewEntry};
use super::{Cache, Cause};
use crate::hash::{Digest, scale};

/// Room in a cache, first come, first served.
struct Room {
    segments: Vec<SegmentRoom>,
    total: u64,
}

/// Room in a segment: what is left of its share.
struct SegmentRoom {
    left: u64,
    share: u64,
    entries: usize,
}

impl Room {
    /// Takes room for an entry, if there is any. An entry that is heavier than its segment's share, or that is put into a
    /// segment of few, is going to borrow quota [B2].
    fn take(&mut self, digest: Digest, weight: u64) -> bool {
        let segment = scale(digest.prefix(), self.segments.len() as u32);
        let SegmentRoom { left, share, entries } = &mut self.segments[segment as usize];
        let fits = weight <= self.total && (weight <= *left || weight > *share || *entries < FEW);
        if fits {
            *left = left.saturating_sub(weight);
            *entries += 1;
            self.total -= weight;
        }
        fits
    }
}

/// The facts about an entry of a dump, once this cache has been asked about it.
struct Plan {
    digest: Digest,
    new_entry: NewEntry,
}

// The size that the documentation of `load` states, with an index.
const _: () = assert!(size_of::<Option<Plan>>() + size_of::<usize>() <= 72);

/// The most other keys of its digest with which a key is compared. A repeated key beyond that takes up room, and is handed
/// back.
const MOST_COMPARED: usize = 64;

/// Among entries of one key, of which only a dump from another source has several, leaves a plan to the hottest, and drops the
/// others from the list; otherwise they would take up room. The list is then sorted by digest.
fn pass_over_repeats<K: Eq, V>(
    entries: &[Dumped<K, V>],
    plans: &mut [Option<Plan>],
    listed: &mut Vec<usize>,
) {
    let digest = |plan: &Option<Plan>| plan.as_ref().map(|plan| plan.digest.bits());
    listed.sort_unstable_by_key(|&index| {
        (digest(&plans[index]), Reverse((entries[index].standing.heat, index)))
    });
    // Entries that stay are at the front; of these, those with the same digest begin at `same`.
    let (mut kept, mut same) = (0, 0);
    for at in 0..listed.len() {
        let index = listed[at];
        if kept > same && digest(&plans[listed[same]]) != digest(&plans[index]) {
            same = kept;
        }
        // Few of the keys that share a digest find room: so not all of them are compared with all others.
        let others = listed[same..kept].iter().rev().take(MOST_COMPARED);
        if others.into_iter().any(|&other| entries[other].key == entries[index].key) {
            plans[index] = None;
        } else {
            listed[kept] = index;
            kept += 1;
        }
    }
    listed.truncate(kept);
}

impl<K: Hash + Eq + Clone, V, S: BuildHasher> Cache<K, V, S> {
    /// Puts the entries of a dump into the room that this cache has, and hands back the others.
    ///
    /// * Entries that are in this cache stay: they are newer, and count as younger. An entry of the dump whose key is here, or
    ///   is being loaded, is handed back, as is one that has expired. Nothing is evicted, except for an entry that is heavier
    ///   than a segment's share, or one whose buckets are full of others: it makes others leave, as always. Entries that have
    ///   expired here make room.
    /// * If the dump has several entries of one key, as only a dump from another source can have, the hottest is taken.
    /// * If there is no room for all, the hottest are taken: those that were hit most, and of these, those that were to go
    ///   last. Each segment of 256 entries and more fills its own room, so that even a full cache of the same capacity leaves
    ///   some out if it has another hash function: 1 of 100 where segments hold 1,000 entries each, 1 of 1,000 where they hold
    ///   100,000.
    /// * Each entry gets back its hits, its queue and its place there. A cache with [`Policy::Clock`](super::Policy::Clock) or
    ///   [`Policy::Local`](super::Policy::Local) has no queue. Hits are kept, by `Clock` as a bit that says whether there was
    ///   one; but the hash decides which slot an entry is in, and so how soon it may go.
    /// * [`Policy::Adaptive`](super::Policy::Adaptive) takes over the share of the capacity that its window had, in segments
    ///   that have not evicted yet: the others know better. A dump of a cache with either of the other two policies says
    ///   nothing of that, and its entries go to main. What the policy remembered of keys that had left is lost.
    /// * An entry lives as long as it had to live when it was dumped, but not longer than this cache would let a new one; it
    ///   has been idle as long. The time between dump and load does not count, unless it is added with [`CacheDump::age`]. A
    ///   cache that was built without lifetimes keeps the entry forever. The weigher is called again.
    ///
    /// The dump may be of a cache of any size, policy and hash function. Other threads may read and write meanwhile; a key that
    /// is removed before its turn has come is put in all the same. Entries that are taken count as insertions. While this runs
    /// it takes at most 72 bytes per entry, in addition to the dump and the one that is handed back.
    ///
    /// ```
    /// let cache: koel::Cache<u32, u32> = koel::Cache::new(100);
    /// for i in 0..100 {
    ///     cache.insert(i, i).unwrap();
    /// }
    /// (cache.get(&20), cache.get(&50));
    /// let smaller: koel::Cache<u32, u32> = koel::Cache::new(2);
    /// let rest = smaller.load(cache.dump());
    /// assert_eq!(rest.len(), 98);
    /// assert!(smaller.contains_key(&20) && smaller.contains_key(&50));
    ///
    /// // Room for more of them.
    /// smaller.set_capacity(10);
    /// assert_eq!(smaller.load(rest).len(), 90);
    /// ```
    ///
    /// # Panics
    ///
    /// In a closure that runs [under this cache's lock](Cache#under-a-lock), and if the removal listener panics: then the rest
    /// of the dump is dropped.
    pub fn load(&self, dump: CacheDump<K, V>) -> CacheDump<K, V> {
        self.table.directory.assert_not_writing();
        let CacheDump { window, entries } = dump;
        if let Some(share) = window {
            self.learn(share);
        }
        let plans = self.plan(&entries);
        let mut rest = Vec::new();
        // [L4] The last of each queue first: each is put before those that are there.
        for (entry, plan) in entries.into_iter().zip(plans).rev() {
            let taken = match plan {
                Some(Plan { digest, new_entry }) => self.restore(entry, digest, new_entry),
                None => Err(entry),
            };
            rest.extend(taken.err());
        }
        rest.reverse();
        CacheDump { window, entries: rest }
    }

    /// Passes what another cache's policy had learned to each segment's policy.
    fn learn(&self, share: WindowShare) {
        let _guard = self.enter();
        self.table.directory.each_segment(|mut writing| writing.locked.state().keep.evictor.learn(share));
    }

    /// How much room there is. Expired entries are taken out of segments that do not have enough room for what is wanted of
    /// them.
    fn room(&self, wanted: &[u64]) -> Room {
        let mut out = self.departures(self.enter());
        let mut segments = Vec::new();
        self.table.directory.each_segment(|mut writing| {
            let locked = &mut writing.locked;
            let left = |share: &Share| share.fair.saturating_sub(share.evictor.weight());
            // Quota that a segment of few entries holds may be room for others.
            if locked.len() < FEW || left(&locked.state_ref().keep) < wanted[segments.len()] {
                self.sweep(locked, u32::MAX, self.now(), &mut out);
                self.settle(locked, &mut out);
            }
            let share = &locked.state_ref().keep;
            segments.push(SegmentRoom { left: left(share), share: share.fair, entries: locked.len() });
        });
        // Before there is an answer: a finished answer leaks if the listener panics.
        drop(out);
        Room { segments, total: self.bound.capacity().saturating_sub(self.bound.used()) }
    }

    /// The weight of all these entries, in each segment.
    fn wanted(&self, plans: &[Option<Plan>]) -> Vec<u64> {
        let segments = self.bound.segments();
        let mut wanted = vec![0_u64; segments as usize];
        for plan in plans.iter().flatten() {
            let of_segment = &mut wanted[scale(plan.digest.prefix(), segments) as usize];
            *of_segment = of_segment.saturating_add(plan.new_entry.facts.weight);
        }
        wanted
    }

    /// Chooses the hottest entries for which there is room. `None` for the others, and if the key is here, or the entry has
    /// expired.
    fn plan(&self, entries: &[Dumped<K, V>]) -> Vec<Option<Plan>> {
        let mut plans: Vec<_> = entries.iter().map(|entry| self.ask(entry)).collect();
        let mut hottest: Vec<usize> = (0..entries.len()).filter(|&index| plans[index].is_some()).collect();
        pass_over_repeats(entries, &mut plans, &mut hottest);
        hottest.sort_unstable_by_key(|&index| Reverse((entries[index].standing.heat, index)));
        let mut room = self.room(&self.wanted(&plans));
        for index in hottest {
            plans[index] = plans[index].take().filter(|plan| {
                !self.contains_key(&entries[index].key) && room.take(plan.digest, plan.new_entry.facts.weight)
            });
        }
        plans
    }

    /// Calls the user's functions for the facts about an entry. `None` if it has expired.
    fn ask(&self, entry: &Dumped<K, V>) -> Option<Plan> {
        let Dumped { key, value, standing: Standing { heat, lives, idle } } = entry;
        let mut new_entry = self.new_entry(key, value);
        // The longest that it may live here, if its life begins now: not with its segment locked, unlike an entry that is
        // inserted.
        self.begin(&mut new_entry);
        let (facts, now) = (&mut new_entry.facts, new_entry.now);
        if let (Some(time), &Some(lives)) = (&self.time, lives) {
            facts.deadline = time.sooner(facts.deadline, now, lives);
        }
        facts.last_use = now.saturating_sub(*idle);
        let expired = self.time.is_some() && facts.has_expired(now);
        new_entry.heat = Some(*heat);
        (!expired).then(|| Plan { digest: self.digest(key), new_entry })
    }

    /// Puts an entry in, if its key is not here and there is room. A load of the key that is under way is newer; and each load
    /// that begins later finds the entry that was put in [L6].
    fn restore(&self, entry: Dumped<K, V>, digest: Digest, new_entry: NewEntry) -> Result<(), Dumped<K, V>> {
        let mut out = self.departures(self.enter_to_write());
        let restored = match self.flights.lead(digest, &entry.key) {
            Some(flight) => {
                let restored = self.put_restored(entry, (digest, new_entry), &flight, &mut out);
                flight.call_off();
                restored
            }
            None => Err(entry),
        };
        // Before there is an answer: a finished answer leaks if the listener panics.
        drop(out);
        restored
    }

    fn put_restored(
        &self,
        entry: Dumped<K, V>,
        (digest, mut new_entry): (Digest, NewEntry),
        flight: &Landing<'_, K, V>,
        out: &mut Departures<'_, K, V>,
    ) -> Result<(), Dumped<K, V>> {
        let is_there = |at: &At<'_>, now| {
            at.found.is_some_and(|found| !self.has_expired(at.writing.locked.item(found), now))
        };
        let facts = new_entry.facts;
        let has_expired = |now| self.time.is_some() && facts.has_expired(now);
        let may_put = |at: &At<'_>, now| !is_there(at, now) && !has_expired(now) && !flight.is_stale();
        let Some(mut at) = self.at_with_quota(digest, &entry.key, &mut new_entry, may_put, out) else {
            return Err(entry);
        };
        if is_there(&at, new_entry.now) || has_expired(new_entry.now) {
            return Err(entry);
        }
        if let Some(found) = at.found {
            self.take_out(&mut at.writing.locked, found, Cause::Expired, out);
            at.found = None;
        }
        // Other threads may have been faster; and if the key was written to meanwhile, somebody may be loading it anew.
        if flight.is_stale() || !at.writing.locked.state_ref().keep.evictor.fits(new_entry.facts.weight) {
            return Err(entry);
        }
        let Dumped { key, value, standing } = entry;
        let refused = self.put_at(&mut at, &new_entry, key, value, out).err();
        refused.map_or(Ok(()), |Refused { key, value, .. }| Err(Dumped { key, value, standing }))
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use crate::cache::Cache;

    /// Others have taken the room that was promised: then the entry of the dump goes back, as the entries that are there are
    /// newer [L4].
    #[test]
    fn nobody_goes_for_an_entry_of_a_dump() {
        let cache: Cache<u64, u64> = Cache::new(4096);
        cache.set_capacity(u64::from(cache.bound.segments()) * 10);
        (0..10_000).for_each(|key| cache.insert(key, key).unwrap());
        assert_eq!(cache.len() as u64, cache.capacity());
        let evictions = cache.stats().evictions;
        let old: Cache<u64, u64> = Cache::new(100);
        (20_000..20_100).for_each(|key| old.insert(key, key).unwrap());
        let dump = old.dump();
        assert_eq!(dump.len(), 100);
        for entry in dump.entries {
            let (key, plan) = (entry.key, cache.ask(&entry).unwrap());
            let handed_back = cache.restore(entry, plan.digest, plan.new_entry).unwrap_err();
            assert_eq!((handed_back.key, handed_back.value), (key, key));
        }
        assert_eq!((cache.stats().evictions, cache.len() as u64), (evictions, cache.capacity()));
    }
}
