//! Operations that decide with the entry in hand, by a reference to its key: the new entry gets a clone of the key that is
//! there, or a key that is made of the reference. Both are made with no lock held.

use core::hash::{BuildHasher, Hash};

use equivalent::Equivalent;

use super::Cache;
use super::refused::Refused;
use crate::hash::Digest;
use crate::outcome::{Compute, Operation};
use crate::to_key::ToKey;

impl<K: Hash + Eq + Clone, V: Clone, S: BuildHasher> Cache<K, V, S> {
    /// Like [`Cache::compute`], but takes a reference: the new entry has a clone of the key that is there, or a key that is
    /// made of the reference ([`ToKey`]). Whatever is decided, that key is made before.
    ///
    /// # Errors
    ///
    /// As [`Cache::compute`], with the key that was made.
    ///
    /// # Panics
    ///
    /// As [`Cache::compute`].
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use koel::{Cache, Operation};
    ///
    /// let cache: Cache<Arc<str>, u32> = Cache::new(10);
    /// for _ in 0..3 {
    ///     cache.compute_ref("hits", |n| Operation::<_, ()>::Insert(n.map_or(1, |n| n + 1)))?;
    /// }
    /// assert_eq!(cache.get("hits"), Some(3));
    /// # Ok::<(), koel::Refused<Arc<str>, u32>>(())
    /// ```
    #[doc(alias = "entry_by_ref")]
    #[track_caller]
    pub fn compute_ref<Q, T>(
        &self,
        key: &Q,
        decide: impl FnMut(Option<&V>) -> Operation<V, T>,
    ) -> Result<Compute<K, V, T>, Refused<K, V>>
    where
        Q: ?Sized + Hash + Equivalent<K> + ToKey<K>,
    {
        let digest = self.digest(key);
        self.compute_of(digest, self.own_key(digest, key), decide)
    }

    /// Like [`Cache::update`], but takes a reference: the new entry has a clone of the key that is there.
    ///
    /// # Errors
    ///
    /// As [`Cache::update`], with that clone.
    ///
    /// # Panics
    ///
    /// As [`Cache::compute`].
    ///
    /// ```
    /// let cache: koel::Cache<String, u32> = koel::Cache::new(10);
    /// cache.insert("visits".to_string(), 1)?;
    /// assert_eq!(cache.update_ref("visits", |n| n + 1)?, Some(2));
    /// assert_eq!(cache.update_ref("other", |n| n + 1)?, None);
    /// # Ok::<(), koel::Refused<String, u32>>(())
    /// ```
    #[doc(alias = "alter")]
    #[doc(alias = "get_mut")]
    #[track_caller]
    pub fn update_ref<Q>(&self, key: &Q, update: impl FnMut(&V) -> V) -> Result<Option<V>, Refused<K, V>>
    where
        Q: ?Sized + Hash + Equivalent<K>,
    {
        let digest = self.digest(key);
        loop {
            if let Some(own_key) = self.stored_key(digest, key) {
                return self.update_of(digest, own_key, update);
            }
            let at = self.at(digest, key);
            if !at.found.is_some_and(|found| self.is_alive(at.writing.locked.item(found))) {
                // Like an operation that decides to leave the key as it is: what is being loaded may be older than the call
                // [F5].
                self.flights.invalidate(digest, key);
                drop(at);
                // Before there is an answer, as in `compute`.
                drop(update);
                return Ok(None);
            }
        }
    }

    /// Like [`Cache::update_or_insert`], but takes a reference: see [`Cache::update_or_insert_with_ref`].
    ///
    /// # Errors
    ///
    /// As [`Cache::update_or_insert_with_ref`].
    ///
    /// # Panics
    ///
    /// As [`Cache::compute`].
    ///
    /// ```
    /// let visits: koel::Cache<String, u32> = koel::Cache::new(1000);
    /// for page in ["/", "/about", "/"] {
    ///     visits.update_or_insert_ref(page, |n| n + 1, 1)?;
    /// }
    /// assert_eq!(visits.get("/"), Some(2));
    /// # Ok::<(), koel::Refused<String, u32>>(())
    /// ```
    #[doc(alias = "and_modify")]
    #[track_caller]
    pub fn update_or_insert_ref<Q>(
        &self,
        key: &Q,
        update: impl FnMut(&V) -> V,
        value: V,
    ) -> Result<V, Refused<K, V>>
    where
        Q: ?Sized + Hash + Equivalent<K> + ToKey<K>,
    {
        let done = self.update_or_insert_with_ref(key, update, || value.clone());
        // As in `compute`.
        drop(value);
        done
    }

    /// Like [`Cache::update_or_insert_with`], but takes a reference: the new entry has a clone of the key that is there, or a
    /// key that is made of the reference ([`ToKey`]).
    ///
    /// # Errors
    ///
    /// As [`Cache::update_or_insert_with`], with the key that was made.
    ///
    /// # Panics
    ///
    /// As [`Cache::compute`].
    ///
    /// ```
    /// let lists: koel::Cache<String, Vec<u32>> = koel::Cache::new(1000);
    /// for (word, line) in [("koel", 1), ("cuckoo", 1), ("koel", 7)] {
    ///     lists.update_or_insert_with_ref(word, |lines| [&lines[..], &[line]].concat(), || vec![line])?;
    /// }
    /// assert_eq!(lists.get("koel"), Some(vec![1, 7]));
    /// # Ok::<(), koel::Refused<String, Vec<u32>>>(())
    /// ```
    #[track_caller]
    pub fn update_or_insert_with_ref<Q>(
        &self,
        key: &Q,
        update: impl FnMut(&V) -> V,
        make: impl FnMut() -> V,
    ) -> Result<V, Refused<K, V>>
    where
        Q: ?Sized + Hash + Equivalent<K> + ToKey<K>,
    {
        let digest = self.digest(key);
        self.update_or_insert_of(digest, self.own_key(digest, key), update, make)
    }

    /// A key for an entry that replaces another, or is new.
    fn own_key<Q>(&self, digest: Digest, key: &Q) -> K
    where
        Q: ?Sized + Hash + Equivalent<K> + ToKey<K>,
    {
        self.stored_key(digest, key).unwrap_or_else(|| key.to_key())
    }

    /// A clone of the key that is there.
    fn stored_key<Q: ?Sized + Hash + Equivalent<K>>(&self, digest: Digest, key: &Q) -> Option<K> {
        let guard = self.enter();
        self.peek_entry(digest, key, &guard).map(|entry| entry.pair().0.clone())
    }
}
