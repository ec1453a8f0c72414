//! What is done to a cache as a whole, segment by segment.

use core::hash::{BuildHasher, Hash};

use super::Cache;
use super::iter::Entries;
use super::write::At;
use crate::entries::Entry;
use crate::reclaim::FirstPanic;

impl<K, V, S> Cache<K, V, S> {
    /// Takes out all entries.
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
            // Told segment by segment.
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

    /// From now on what is being loaded, or refreshed, is not kept: the values go to those who wait for them, and whoever asks
    /// later loads anew, as after [`Cache::clear`], but what is there stays.
    ///
    /// Where many keys' values have changed in their source, [`retain`](Self::retain) takes out what is there, but does not see
    /// what is being loaded. First call this, then `retain`: what is loaded by then is seen, and what is not is not kept.
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

    /// Takes out all entries that have expired. Otherwise that is done little by little by whoever writes, and for a single
    /// entry by whoever looks it up. Gives back the memory of entries that is not in use; tables that have grown stay as they
    /// are, some twelve bytes for each entry that there was at most. Locks one segment at a time, for a walk over its entries.
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
    /// assert_eq!((cache.get(&2), cache.len()), (None, 1)); // nobody has come by
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
            // What has left is freed now, unless somebody else looks at it: its memory can be given back then.
            self.table.collector.flush();
            self.table.purge(&self.enter());
        });
        told.go_on();
    }
}

impl<K: Hash + Eq, V, S: BuildHasher> Cache<K, V, S> {
    /// Keeps the entries for which `keep` holds and takes the others out, and those that have expired, which it does not see.
    ///
    /// Sees each entry that is present throughout, with no lock held; what leaves the cache meanwhile is freed when it is over.
    /// If an entry is replaced between `keep`'s verdict and its removal, `keep` is asked again about the new one. What is being
    /// loaded for a key that is not there, or refreshed, it does not see, and that may come in all the same, as old as it may
    /// be: [`Cache::forget_loads`], called before, and, for its key, [`Cache::remove`] keep it out.
    ///
    /// # Panics
    ///
    /// If `keep` panics, or the removal listener: what has been refused before is out, and the others stay. And in a closure
    /// that runs [under this cache's lock](Cache#under-a-lock).
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
                // What `keep` has seen may have expired since; and what had expired may have been hit by somebody who had read
                // the clock before: then `keep` is asked after all.
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
