//! Operations on a cache as a whole, segment by segment.

use core::hash::{BuildHasher, Hash};

use super::Cache;
use super::iter::Entries;
use super::write::At;
use crate::entries::Entry;
use crate::reclaim::FirstPanic;

impl<K, V, S> Cache<K, V, S> {
    /// Removes all entries.
    ///
    /// # Panics
    ///
    /// In a closure that runs [under this cache's lock](Cache#under-a-lock), and if the removal listener panics: all entries
    /// are out then, and it has been told of all.
    ///
    /// ```
    /// let cache: koel::Cache<u32, &str> = koel::Cache::new(10);
    /// let old = cache.get_or_insert_with(1, || {
    ///     cache.clear(); // while the value is being loaded: it may be stale
    ///     "old"
    /// });
    /// assert_eq!((old, cache.get(&1)), ("old", None));
    /// ```
    #[doc(alias = "invalidate_all")]
    pub fn clear(&self) {
        self.flights.invalidate_all();
        let (mut cursor, mut told) = (0, FirstPanic::default());
        loop {
            // The listener is told segment by segment.
            let mut out = self.departures(self.enter());
            let Some((mut writing, next)) = self.table.directory.visit(cursor) else { break };
            let now = self.now();
            self.take_out_all(&mut writing.locked, now, &mut out);
            self.settle(&mut writing.locked, &mut out);
            drop(writing);
            told.call(|| drop(out));
            cursor = next;
        }
        told.call(|| self.free_if_heavy());
        told.go_on();
    }

    /// Has the values of all loads and refreshes that are under way discarded: they only go to the callers that wait for them,
    /// and later callers load anew, as after [`Cache::clear`]. Entries that are there stay.
    ///
    /// Where many keys' values have changed in their source, [`retain`](Self::retain) takes out those that are there, but does
    /// not see those that are being loaded. First call this, then `retain`: a value that is loaded by then is seen, and one
    /// that is not is not kept.
    ///
    /// ```
    /// let cache: koel::Cache<(&str, u32), u32> = koel::Cache::new(10);
    /// let old = cache.get_or_insert_with(("ada", 7), || {
    ///     // Meanwhile, on another thread: all of this user's rights have changed.
    ///     cache.forget_loads();
    ///     cache.retain(|(user, _), _| *user != "ada");
    ///     1
    /// });
    /// assert_eq!((old, cache.get(&("ada", 7))), (1, None));
    /// ```
    #[doc(alias = "invalidate")]
    pub fn forget_loads(&self) {
        self.flights.invalidate_all();
    }

    /// Removes all entries that have expired. Otherwise writers do that little by little, and look-ups for the entry that they
    /// find. Gives back the memory of entries that is not in use; tables that have grown stay as they are, with about twelve
    /// bytes for each entry that there was at most. Locks one segment at a time, for a walk over its entries.
    ///
    /// # Panics
    ///
    /// In a closure that runs [under this cache's lock](Cache#under-a-lock), and if the removal listener panics: all that had
    /// expired is out then, and it has been told of all.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let clock = koel::ManualClock::new();
    /// let cache: koel::Cache<u32, u32> =
    ///     koel::Cache::builder().max_entries(10).time_to_live(Duration::from_secs(60)).clock(clock.clone()).build();
    /// cache.insert(1, 1).unwrap();
    /// clock.advance(Duration::from_secs(60));
    /// assert_eq!((cache.get(&2), cache.len()), (None, 1)); // no write or look-up has found the entry
    /// cache.purge();
    /// assert_eq!(cache.len(), 0);
    /// ```
    #[doc(alias = "run_pending_tasks")]
    pub fn purge(&self) {
        let (mut cursor, mut told) = (0, FirstPanic::default());
        loop {
            let mut out = self.departures(self.enter());
            let Some((mut writing, next)) = self.table.directory.visit(cursor) else { break };
            let now = self.now();
            self.sweep(&mut writing.locked, u32::MAX, now, &mut out);
            self.decide(&mut writing.locked, now, &mut out, |evictor, entries| evictor.tidy(entries));
            self.settle(&mut writing.locked, &mut out);
            drop(writing);
            told.call(|| drop(out));
            cursor = next;
        }
        told.call(|| {
            self.flush();
            // Entries that have left are freed now, unless another thread still looks at them: then their memory can be given
            // back.
            self.table.collector.flush();
            self.table.purge(&self.enter());
        });
        told.go_on();
    }
}

impl<K: Hash + Eq, V, S: BuildHasher> Cache<K, V, S> {
    /// Keeps the entries for which `keep` holds and removes the others, and those that have expired, which it does not see.
    ///
    /// Sees each entry that is present throughout, with no lock held; entries that leave the cache meanwhile are freed when it
    /// is over. If an entry is replaced between `keep`'s verdict and its removal, `keep` is called again for the new one. It
    /// does not see a value that is being refreshed, or loaded for a key that is not there; such a value is inserted all the
    /// same, however old it is. [`Cache::forget_loads`], called before, and, for its key, [`Cache::remove`] keep it out.
    ///
    /// # Panics
    ///
    /// If `keep` panics, or the removal listener: entries that were refused before are out, and the others stay. And in a
    /// closure that runs [under this cache's lock](Cache#under-a-lock).
    ///
    /// ```
    /// let cache: koel::Cache<u32, u32> = koel::Cache::new(100);
    /// for i in 0..10 {
    ///     cache.insert(i, i).unwrap();
    /// }
    /// cache.retain(|_, value| value % 2 == 0);
    /// assert_eq!(cache.len(), 5);
    /// ```
    #[doc(alias = "invalidate_entries_if")]
    pub fn retain(&self, mut keep: impl FnMut(&K, &V) -> bool) {
        let view = self.pin();
        let mut walk = Entries::new();
        while let Some(mut entry) = walk.next(|cursor, out| self.table.directory.snapshot(cursor, out)) {
            loop {
                // SAFETY: in the table, under its segment's lock, after the view was pinned, which is there until the end.
                let (key, value) = unsafe { Entry::<K, V>::deref(entry) }.pair();
                let is_alive = self.is_alive(entry);
                if is_alive && keep(key, value) {
                    break;
                }
                let digest = self.digest(key);
                if is_alive {
                    self.flights.invalidate(digest, key);
                }
                let mut out = self.departures(self.enter());
                let At { mut writing, found, .. } = self.at(digest, key);
                let Some(found) = found else { break };
                let (current, now) = (writing.locked.item(found), self.now());
                // An entry that `keep` has seen may have expired since. And an entry that had expired may have been hit by a
                // thread that had read the clock before: then `keep` is asked after all.
                if current == entry && (is_alive || self.has_expired(entry, now)) {
                    self.take_out_asked(&mut writing.locked, found, now, &mut out);
                    self.settle(&mut writing.locked, &mut out);
                    break;
                }
                entry = current;
            }
        }
        drop(view);
        self.free_if_heavy();
    }
}
