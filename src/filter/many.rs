//! Many keys at once, for a [`CuckooFilter`].

use core::hash::{BuildHasher, Hash};

use super::batch::{assert_answers, batches};
use super::cuckoo::CuckooFilter;
use crate::engine::{BATCH, digests_of};
use crate::hash::Digest;

impl<S> CuckooFilter<S> {
    /// As [`CuckooFilter::contains_many`], for keys whose hashes you have.
    ///
    /// # Panics
    ///
    /// If the slices differ in length.
    #[inline]
    #[track_caller]
    pub fn contains_many_hash(&self, hashes: &[u64], found: &mut [bool]) {
        assert_answers("contains_many_hash", hashes, found);
        self.contains_batches(hashes, found, |hash| Digest::new(*hash));
    }

    /// As [`CuckooFilter::insert_many`], for keys whose hashes you have.
    #[must_use = "not all may have been inserted"]
    pub fn insert_many_hash(&self, hashes: &[u64]) -> usize {
        self.insert_batches(hashes, |hash| Digest::new(*hash))
    }

    /// As [`CuckooFilter::insert_unique_many`], for keys whose hashes you have.
    ///
    /// # Panics
    ///
    /// If the slices differ in length.
    #[must_use = "not all may have been inserted"]
    #[track_caller]
    pub fn insert_unique_many_hash(&self, hashes: &[u64], inserted: &mut [bool]) -> usize {
        assert_answers("insert_unique_many_hash", hashes, inserted);
        self.insert_unique_batches(hashes, inserted, |hash| Digest::new(*hash))
    }

    /// As [`CuckooFilter::remove_many`], for keys whose hashes you have.
    ///
    /// # Panics
    ///
    /// If the slices differ in length.
    #[track_caller]
    pub fn remove_many_hash(&self, hashes: &[u64], removed: &mut [bool]) {
        assert_answers("remove_many_hash", hashes, removed);
        self.remove_batches(hashes, removed, |hash| Digest::new(*hash));
    }

    #[inline]
    fn contains_batches<T>(&self, items: &[T], found: &mut [bool], digest: impl Fn(&T) -> Digest) {
        for (digests, found) in batches(items, found, digest) {
            self.inner.contains_batch(&digests[..found.len()], found);
        }
    }

    fn insert_batches<T>(&self, items: &[T], digest: impl Fn(&T) -> Digest) -> usize {
        let mut inserted = 0;
        for items in items.chunks(BATCH) {
            let done = self.inner.insert_batch(&digests_of(items, &digest)[..items.len()]);
            inserted += done;
            if done < items.len() {
                break;
            }
        }
        inserted
    }

    fn insert_unique_batches<T>(
        &self,
        items: &[T],
        inserted: &mut [bool],
        digest: impl Fn(&T) -> Digest,
    ) -> usize {
        inserted.fill(false);
        let mut there = 0;
        for (digests, inserted) in batches(items, inserted, digest) {
            let done = self.inner.insert_unique_batch(&digests[..inserted.len()], inserted);
            there += done;
            if done < inserted.len() {
                break;
            }
        }
        there
    }

    fn remove_batches<T>(&self, items: &[T], removed: &mut [bool], digest: impl Fn(&T) -> Digest) {
        for (digests, removed) in batches(items, removed, digest) {
            self.inner.remove_batch(&digests[..removed.len()], removed);
        }
    }
}

impl<S: BuildHasher> CuckooFilter<S> {
    /// Looks many keys up: `found[i]` becomes the result of `contains(&keys[i])`. Their waits for memory overlap.
    ///
    /// # Panics
    ///
    /// If the slices differ in length.
    ///
    /// ```
    /// let filter = koel::CuckooFilter::from_keys([1, 2], 1e-8)?;
    /// let mut found = [false; 3];
    /// filter.contains_many(&[1, 2, 3], &mut found);
    /// assert_eq!(found, [true, true, false]);
    /// # Ok::<(), koel::FilterError>(())
    /// ```
    #[inline]
    #[track_caller]
    pub fn contains_many<Q: Hash>(&self, keys: &[Q], found: &mut [bool]) {
        assert_answers("contains_many", keys, found);
        self.contains_batches(keys, found, |key| Digest::new(self.hash(key)));
    }

    /// Inserts many keys, in order, up to the first that has no room, and returns how many had room: if fewer than there are
    /// keys, `keys[inserted]` is the first key for which there was none. Their waits for memory overlap.
    ///
    /// ```
    /// let filter = koel::CuckooFilter::new(1000, 0.01)?;
    /// let keys: Vec<u64> = (0..100_000).collect();
    /// let inserted = filter.insert_many(&keys);
    /// assert!(inserted >= 1000);
    /// let left = &keys[inserted..];
    /// assert!(filter.insert(&left[0]).is_err(), "the first that has no room");
    /// # Ok::<(), koel::FilterError>(())
    /// ```
    #[must_use = "not all may have been inserted"]
    pub fn insert_many<Q: Hash>(&self, keys: &[Q]) -> usize {
        self.insert_batches(keys, |key| Digest::new(self.hash(key)))
    }

    /// Inserts those of many keys that are not present, in order, up to the first that has no room: as
    /// [`insert_unique`](CuckooFilter::insert_unique) does for each. `inserted[i]` becomes whether `keys[i]` was inserted.
    /// Returns how many keys are now present: if fewer than were given, `keys[there]` is the first key for which there was no
    /// room, and the keys after it were not looked at. Their waits for memory overlap.
    ///
    /// # Panics
    ///
    /// If the slices differ in length.
    ///
    /// ```
    /// // Which of these requests are new?
    /// let seen = koel::CuckooFilter::new(1000, 1e-6)?;
    /// let mut is_new = [false; 3];
    /// assert_eq!(seen.insert_unique_many(&["a", "b", "a"], &mut is_new), 3);
    /// assert_eq!(is_new, [true, true, false]);
    /// # Ok::<(), koel::FilterError>(())
    /// ```
    #[must_use = "not all may have been inserted"]
    #[track_caller]
    pub fn insert_unique_many<Q: Hash>(&self, keys: &[Q], inserted: &mut [bool]) -> usize {
        assert_answers("insert_unique_many", keys, inserted);
        self.insert_unique_batches(keys, inserted, |key| Digest::new(self.hash(key)))
    }

    /// Removes one copy of each of many keys, in order: `removed[i]` becomes the result of `remove(&keys[i])`. Their waits for
    /// memory overlap.
    ///
    /// Only for keys that were inserted: see [`CuckooFilter::remove`].
    ///
    /// # Panics
    ///
    /// If the slices differ in length.
    ///
    /// ```
    /// let filter = koel::CuckooFilter::from_keys([1, 2], 1e-6)?;
    /// let mut removed = [false; 3];
    /// filter.remove_many(&[1, 2, 1], &mut removed);
    /// assert_eq!((removed, filter.len()), ([true, true, false], 0));
    /// # Ok::<(), koel::FilterError>(())
    /// ```
    #[track_caller]
    pub fn remove_many<Q: Hash>(&self, keys: &[Q], removed: &mut [bool]) {
        assert_answers("remove_many", keys, removed);
        self.remove_batches(keys, removed, |key| Digest::new(self.hash(key)));
    }
}

impl<S: BuildHasher> CuckooFilter<S> {
    /// As [`CuckooFilter::contains_many`], for the bytes of keys.
    ///
    /// # Panics
    ///
    /// If the slices differ in length.
    #[inline]
    #[track_caller]
    pub fn contains_many_bytes<Q: AsRef<[u8]>>(&self, keys: &[Q], found: &mut [bool]) {
        assert_answers("contains_many_bytes", keys, found);
        self.contains_batches(keys, found, |key| Digest::new(self.hash_bytes(key.as_ref())));
    }

    /// As [`CuckooFilter::insert_many`], for the bytes of keys.
    ///
    /// ```
    /// let filter = koel::CuckooFilter::new(1000, 1e-6)?;
    /// assert_eq!(filter.insert_many_bytes(&["ada", "grace"]), 2);
    /// let mut found = [false; 2];
    /// filter.contains_many_bytes(&["grace", "bob"], &mut found);
    /// assert_eq!((found, filter.contains_bytes(b"ada")), ([true, false], true));
    /// # Ok::<(), koel::FilterError>(())
    /// ```
    #[must_use = "not all may have been inserted"]
    pub fn insert_many_bytes<Q: AsRef<[u8]>>(&self, keys: &[Q]) -> usize {
        self.insert_batches(keys, |key| Digest::new(self.hash_bytes(key.as_ref())))
    }

    /// As [`CuckooFilter::insert_unique_many`], for the bytes of keys.
    ///
    /// # Panics
    ///
    /// If the slices differ in length.
    #[must_use = "not all may have been inserted"]
    #[track_caller]
    pub fn insert_unique_many_bytes<Q: AsRef<[u8]>>(&self, keys: &[Q], inserted: &mut [bool]) -> usize {
        assert_answers("insert_unique_many_bytes", keys, inserted);
        self.insert_unique_batches(keys, inserted, |key| Digest::new(self.hash_bytes(key.as_ref())))
    }

    /// As [`CuckooFilter::remove_many`], for the bytes of keys.
    ///
    /// # Panics
    ///
    /// If the slices differ in length.
    #[track_caller]
    pub fn remove_many_bytes<Q: AsRef<[u8]>>(&self, keys: &[Q], removed: &mut [bool]) {
        assert_answers("remove_many_bytes", keys, removed);
        self.remove_batches(keys, removed, |key| Digest::new(self.hash_bytes(key.as_ref())));
    }
}
