//! [`Cache`], as loads see it: what they look up, and how they keep the values that they have loaded [F3], [F5].

use core::hash::{BuildHasher, Hash};

use super::Cache;
use super::counters::Counters;
use super::flight::{Flights, Landing, Table, put_off};
use super::load::{Hit, Loading};
use super::write::At;
use crate::entries::{Entry, EntryPointer};
use crate::hash::Digest;

impl<K: Hash + Eq + Clone, V: Clone, S: BuildHasher> Cache<K, V, S> {
    /// The entry of a key, if it has not expired, and if `holds` is true of its value.
    fn find_if(&self, digest: Digest, key: &K, mut holds: impl FnMut(&V) -> bool) -> Option<EntryPointer> {
        let guard = self.enter();
        let (entry, _) = self.find_alive(digest, key, &guard)?;
        // SAFETY: found after the guard was entered.
        holds(unsafe { Entry::<K, V>::deref(entry) }.pair().1).then_some(entry)
    }
}

impl<K: Hash + Eq + Clone, V: Clone, S: BuildHasher> Table<K, V> for Cache<K, V, S> {
    fn digest_of(&self, key: &K) -> Digest {
        self.digest(key)
    }

    fn look_up(&self, digest: Digest, key: &K) -> Option<V> {
        let guard = self.enter();
        self.peek_entry(digest, key, &guard).map(|entry| entry.pair().1.clone())
    }

    fn look_up_fresh(&self, digest: Digest, key: &K) -> Option<V> {
        let guard = self.enter();
        let (entry, now) = self.find_alive(digest, key, &guard)?;
        // SAFETY: found after the guard was entered.
        (!self.is_due(entry, now)).then(|| unsafe { Entry::<K, V>::deref(entry) }.pair().1.clone())
    }

    fn put_off(&self, digest: Digest, key: &K) {
        let guard = self.enter();
        let found = self.find_alive(digest, key, &guard).filter(|&(entry, now)| self.is_due(entry, now));
        if let (Some(time), Some((entry, now))) = (&self.time, found) {
            self.meta(entry).put_off(now, time.ahead);
        }
    }

    fn keep(
        &self,
        digest: Digest,
        key: K,
        value: V,
        landing: Landing<'_, K, V>,
        is_stale: impl FnMut(&V) -> bool,
    ) -> (V, bool) {
        if self.time.is_some() {
            // Before the clock is read, with its segment locked: a caller that joins later may do so when the value has
            // expired.
            landing.close();
        }
        let mut new_entry = self.new_entry(&key, &value);
        let mut out = self.departures(self.enter());
        // Declared after `out`, and so dropped before it if the user's code panics: in that case, too, the flight ends before
        // the listener is told.
        let mut landing = landing;
        let stale = if landing.replaces() { self.find_if(digest, &key, is_stale) } else { None };
        let is_there = |at: &At<'_>, now| {
            at.found.map(|found| at.writing.locked.item(found)).is_some_and(|entry| {
                // By address: the guard of `out` was entered before `stale` was found, so no other entry can be at that address
                // yet.
                let goes = Some(entry) == stale || landing.refreshes() && self.may_be_refreshed(entry, now);
                !self.has_expired(entry, now) && !goes
            })
        };
        // Not closed before it has quota: if there is none, callers that join meanwhile still get the value.
        let may_put = |at: &At<'_>, now| !is_there(at, now) && !landing.is_stale();
        let at = self.at_with_quota(digest, &key, &mut new_entry, may_put, &mut out);
        let mut is_refused = at.is_none();
        let (value, left) = match at.filter(|at| !is_there(at, new_entry.now) && landing.may_put()) {
            Some(mut at) => {
                let put = self.put_at(&mut at, &new_entry, key, value, &mut out);
                match &put {
                    // A value that is turned away is not in the cache: code that asks for the key while the value is cloned is
                    // told of recursion [F6].
                    Ok(_) if self.weigher.is_some() => landing.close(),
                    Ok(_) => landing.has_put(),
                    Err(_) => {}
                }
                drop(at);
                match put {
                    // SAFETY: in the table after the guard of `out` was entered, or turned away, and `out` has not ended.
                    Ok(entry) => (unsafe { Entry::<K, V>::deref(entry) }.pair().1.clone(), None),
                    Err(refused) => {
                        is_refused = true;
                        (refused.value, Some(refused.key))
                    }
                }
            }
            None => (value, Some(key)),
        };
        if let Some(key) = left.as_ref().filter(|_| is_refused) {
            put_off(self, digest, key, &landing);
        }
        // Before the listener is told of the entries that have left: it may ask for this key, and nobody else waits for it.
        landing.land(&value);
        let is_put = left.is_none();
        // Before there is an answer: a finished answer leaks if a drop panics, or the listener does.
        drop(left);
        drop(out);
        // Not at the beginning, as elsewhere: so nobody waits for destructors of other entries, which may ask for this key.
        self.free_if_heavy();
        (value, is_put)
    }
}

impl<K: Hash + Eq + Clone, V: Clone, S: BuildHasher> Loading<K, V> for Cache<K, V, S> {
    #[inline(always)]
    fn hit(&self, digest: Digest, key: &K) -> Option<Hit<V>> {
        self.hit_of(digest, key)
    }

    fn hit_all(&self, keys: &[K], out: &mut [Option<V>]) {
        self.get_many(keys, out);
    }

    fn needs_refresh(&self, key: &K) -> bool {
        self.needs_refresh(key)
    }

    fn flights(&self) -> &Flights<K, V> {
        &self.flights
    }

    fn counters(&self) -> &Counters {
        &self.counters
    }

    fn assert_not_writing(&self) {
        self.table.directory.assert_not_writing();
    }
}
