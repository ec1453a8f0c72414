//! [`Cache`]: removal of single entries.

use core::hash::{BuildHasher, Hash};

use equivalent::Equivalent;

use super::Cache;
use super::removal::{Cause, Departures};
use super::write::At;
use crate::entries::{Entry, EntryPointer};

impl<K: Hash + Eq, V, S: BuildHasher> Cache<K, V, S> {
    /// Takes an entry out, if a condition holds for it, or if there is no condition. The entry is then one of those that `out`
    /// has to report; it stays alive until `out` has ended, or for as long as a guard that was entered before. Returns nothing
    /// if it had expired.
    pub(super) fn take_out_if<Q: ?Sized + Hash + Equivalent<K>>(
        &self,
        key: &Q,
        out: &mut Departures<'_, K, V>,
        // Kept to the end, if it is not called: what it owns is the user's, and is not dropped under the lock.
        mut condition: Option<impl FnOnce(&K, &V) -> bool>,
    ) -> Option<EntryPointer> {
        let digest = self.digest(key);
        let At { mut writing, found, .. } = self.at(digest, key);
        // Whatever a condition says, as it may have written to the source. And even if there is no entry: the value that is
        // being loaded may be the one to remove [F5].
        let deciding = self.flights.deciding(digest, key);
        let leaving = found.and_then(|found| {
            let entry = writing.locked.item(found);
            // SAFETY: in the table, under the lock.
            let (own_key, value) = unsafe { Entry::<K, V>::deref(entry) }.pair();
            let expired = !self.is_alive(entry);
            let goes = expired || condition.take().is_none_or(|condition| condition(own_key, value));
            goes.then_some((found, entry, expired))
        });
        deciding.done();
        let (found, entry, expired) = leaving?;
        let cause = if expired { Cause::Expired } else { Cause::Explicit };
        self.take_out(&mut writing.locked, found, cause, out);
        self.settle(&mut writing.locked, out);
        (!expired).then_some(entry)
    }

    /// Removes the entry of a key and returns a clone of its value. For values without `Clone`, see
    /// [`CacheView::remove`](super::CacheView::remove).
    ///
    /// # Panics
    ///
    /// In a closure that runs [under this cache's lock](Cache#under-a-lock), and if the removal listener panics.
    ///
    /// ```
    /// let cache: koel::Cache<u32, &str> = koel::Cache::new(10);
    /// cache.insert(1, "one").unwrap();
    /// assert_eq!(cache.remove(&1), Some("one"));
    /// assert_eq!(cache.remove(&1), None);
    /// ```
    #[doc(alias = "invalidate")]
    #[doc(alias = "pop")]
    pub fn remove<Q>(&self, key: &Q) -> Option<V>
    where
        Q: ?Sized + Hash + Equivalent<K>,
        V: Clone,
    {
        self.remove_with(key, None::<fn(&K, &V) -> bool>)
    }

    /// Removes the entry of a key if `condition` holds for it, and returns a clone of its value. `condition` runs under the
    /// lock of the key's segment, at most once.
    ///
    /// Whatever comes of it, a value that is being loaded for the key meanwhile is not kept: if there is no entry, that value
    /// may be the one to remove, and `condition` may have written to the source of values. So this method is not for callers
    /// that want another value at once, as the load may be that of a caller that has found the same old value: they use
    /// [`Cache::get_or_insert_with_if`].
    ///
    /// # Panics
    ///
    /// If `condition` panics or writes to this cache, which then is as it was; in a closure that runs [under this cache's
    /// lock](Cache#under-a-lock), and if the removal listener panics.
    ///
    /// ```
    /// let cache: koel::Cache<&str, u32> = koel::Cache::new(10);
    /// cache.insert("version", 2).unwrap();
    /// assert_eq!(cache.remove_if("version", |_, version| *version < 2), None);
    /// assert_eq!(cache.remove_if("version", |_, version| *version < 3), Some(2));
    /// ```
    pub fn remove_if<Q, F>(&self, key: &Q, condition: F) -> Option<V>
    where
        Q: ?Sized + Hash + Equivalent<K>,
        V: Clone,
        F: FnOnce(&K, &V) -> bool,
    {
        self.remove_with(key, Some(condition))
    }

    /// The same, with or without a condition.
    fn remove_with<Q>(&self, key: &Q, condition: Option<impl FnOnce(&K, &V) -> bool>) -> Option<V>
    where
        Q: ?Sized + Hash + Equivalent<K>,
        V: Clone,
    {
        let mut out = self.departures(self.enter_to_write());
        let entry = self.take_out_if(key, &mut out, condition)?;
        // SAFETY: `out` has not ended.
        let value = unsafe { Entry::<K, V>::deref(entry) }.pair().1.clone();
        // Before there is an answer: a finished answer leaks if the listener panics.
        out.end();
        Some(value)
    }
}
