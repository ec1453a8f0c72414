//! Many keys at once: look-ups and insertions whose waits for memory overlap.

use core::hash::{BuildHasher, Hash};

use super::super::batch::{all_missing, assert_answers, batches, tell_found};
use super::super::geometry::Place;
use super::filter::ScalableCuckooFilter;
use super::places::Places;
use crate::engine::{BATCH, digests_of};
use crate::hash::Digest;

impl<S> ScalableCuckooFilter<S> {
    /// As [`ScalableCuckooFilter::contains_many`], for keys whose hashes you have.
    ///
    /// # Panics
    ///
    /// If the slices differ in length.
    #[track_caller]
    pub fn contains_many_hash(&self, hashes: &[u64], found: &mut [bool]) {
        assert_answers("contains_many_hash", hashes, found);
        self.contains_batches(hashes, found, |hash| Digest::new(*hash));
    }

    /// As [`ScalableCuckooFilter::insert_many`], for keys whose hashes you have.
    #[must_use = "not all may have been inserted"]
    pub fn insert_many_hash(&self, hashes: &[u64]) -> usize {
        self.insert_batches(hashes, |hash| Digest::new(*hash))
    }

    /// As [`ScalableCuckooFilter::insert_unique_many`], for keys whose hashes you have.
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

    /// As [`ScalableCuckooFilter::remove_many`], for keys whose hashes you have.
    ///
    /// # Panics
    ///
    /// If the slices differ in length.
    #[track_caller]
    pub fn remove_many_hash(&self, hashes: &[u64], removed: &mut [bool]) {
        assert_answers("remove_many_hash", hashes, removed);
        self.remove_batches(hashes, removed, |hash| Digest::new(*hash));
    }

    /// Table by table, the newest first, as [`ScalableCuckooFilter::contains_hash`]: a key that was not found in one is
    /// looked for in the next.
    fn contains_batches<T>(&self, items: &[T], found: &mut [bool], digest: impl Fn(&T) -> Digest) {
        for (digests, found) in batches(items, found, digest) {
            // The oldest table, alone: its pairs depend on whole fingerprints.
            if let Some(inner) = self.chain.alone() {
                inner.contains_batch(&digests[..found.len()], found);
                continue;
            }
            let levels = self.chain.levels();
            let newest = levels[0].index;
            let mut places = [Place::default(); BATCH];
            for (place, digest) in places.iter_mut().zip(&digests[..found.len()]) {
                *place = levels[0].inner.place(*digest);
            }
            let missing = levels.iter().fold(all_missing(found), |missing, level| {
                level.inner.contains_missing(|i| level.older(&places[i], newest), missing)
            });
            tell_found(missing, found);
        }
    }

    pub(super) fn insert_batches<T>(&self, items: &[T], digest: impl Fn(&T) -> Digest) -> usize {
        let mut inserted = 0;
        for items in items.chunks(BATCH) {
            let digests = &digests_of(items, &digest)[..items.len()];
            self.fetch(digests);
            for digest in digests {
                if self.insert_digest(*digest).is_err() {
                    return inserted;
                }
                inserted += 1;
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
            self.fetch(&digests[..inserted.len()]);
            for (inserted, digest) in inserted.iter_mut().zip(digests) {
                match self.insert_unique_digest(digest) {
                    Ok(is_new) => *inserted = is_new,
                    Err(_) => return there,
                }
                there += 1;
            }
        }
        there
    }

    fn remove_batches<T>(&self, items: &[T], removed: &mut [bool], digest: impl Fn(&T) -> Digest) {
        for (digests, removed) in batches(items, removed, digest) {
            let digests = &digests[..removed.len()];
            self.fetch(digests);
            for (removed, digest) in removed.iter_mut().zip(digests) {
                *removed = self.remove_digest(*digest);
            }
        }
    }

    /// Starts loading the memory that is read in large tables. The pin ends with this: a thread that inserts may flush the
    /// chain, which no thread may do while it has a pin.
    fn fetch(&self, digests: &[Digest]) {
        let levels = self.chain.levels();
        digests.iter().for_each(|digest| Places::new(&levels, *digest).fetch());
    }
}

impl<S: BuildHasher> ScalableCuckooFilter<S> {
    /// Looks many keys up: `found[i]` becomes the result of `contains(&keys[i])`. Their waits for memory overlap, table by
    /// table.
    ///
    /// # Panics
    ///
    /// If the slices differ in length.
    ///
    /// ```
    /// let filter = koel::ScalableCuckooFilter::from_keys([1, 2], 1e-8)?;
    /// let mut found = [false; 3];
    /// filter.contains_many(&[1, 2, 3], &mut found);
    /// assert_eq!(found, [true, true, false]);
    /// # Ok::<(), koel::FilterError>(())
    /// ```
    #[track_caller]
    pub fn contains_many<Q: Hash>(&self, keys: &[Q], found: &mut [bool]) {
        assert_answers("contains_many", keys, found);
        self.contains_batches(keys, found, |key| Digest::new(self.hash(key)));
    }

    /// Inserts many keys, in order, up to the first that has no room, and returns how many had room: if fewer than there are
    /// keys, `keys[inserted]` is the first key for which there was none. Their waits for memory overlap.
    ///
    /// ```
    /// let filter = koel::ScalableCuckooFilter::new(0.01)?;
    /// let keys: Vec<u64> = (0..10_000).collect();
    /// assert_eq!(filter.insert_many(&keys), keys.len());
    /// assert!(keys.iter().all(|key| filter.contains(key)));
    /// # Ok::<(), koel::FilterError>(())
    /// ```
    #[must_use = "not all may have been inserted"]
    pub fn insert_many<Q: Hash>(&self, keys: &[Q]) -> usize {
        self.insert_batches(keys, |key| Digest::new(self.hash(key)))
    }

    /// Inserts those of many keys that are not present, in order, up to the first that has no room: as
    /// [`insert_unique`](ScalableCuckooFilter::insert_unique) does for each. `inserted[i]` becomes whether `keys[i]` was
    /// inserted. Returns how many keys are now present: if fewer than were given, `keys[there]` is the first key for which
    /// there was no room, and the keys after it were not looked at. Their waits for memory overlap.
    ///
    /// # Panics
    ///
    /// If the slices differ in length.
    ///
    /// ```
    /// let seen = koel::ScalableCuckooFilter::new(1e-6)?;
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
    /// Only for keys that were inserted: see [`ScalableCuckooFilter::remove`].
    ///
    /// # Panics
    ///
    /// If the slices differ in length.
    ///
    /// ```
    /// let filter = koel::ScalableCuckooFilter::from_keys([1, 2], 1e-6)?;
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

impl<S: BuildHasher> ScalableCuckooFilter<S> {
    /// As [`ScalableCuckooFilter::contains_many`], for the bytes of keys.
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

    /// As [`ScalableCuckooFilter::insert_many`], for the bytes of keys.
    ///
    /// ```
    /// let filter = koel::ScalableCuckooFilter::new(1e-6)?;
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

    /// As [`ScalableCuckooFilter::insert_unique_many`], for the bytes of keys.
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

    /// As [`ScalableCuckooFilter::remove_many`], for the bytes of keys.
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
