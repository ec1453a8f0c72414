//! Many keys at once: look-ups and insertions whose waits for memory overlap, and building.

use core::hash::{BuildHasher, Hash};

use super::super::collect::try_collect;
use super::super::error::FilterError;
use super::super::hasher::hash_bytes;
use super::super::inner::{BATCH, digests};
use super::builder::ScalableFilterBuilder;
use super::filter::ScalableCuckooFilter;
use super::places::Places;
use crate::hash::Digest;

impl<S> ScalableCuckooFilter<S> {
    /// [`ScalableCuckooFilter::contains_many`] of keys whose hashes you have.
    ///
    /// # Panics
    ///
    /// If the slices are not of one length.
    #[track_caller]
    pub fn contains_many_hash(&self, hashes: &[u64], found: &mut [bool]) {
        assert_eq!(hashes.len(), found.len(), "contains_many_hash: as many places for answers as hashes");
        self.contains_batches(hashes, found, |hash| Digest::new(*hash));
    }

    /// [`ScalableCuckooFilter::insert_many`] of keys whose hashes you have.
    #[must_use = "not all may have been inserted"]
    pub fn insert_many_hash(&self, hashes: &[u64]) -> usize {
        self.insert_batches(hashes, |hash| Digest::new(*hash))
    }

    /// Table by table, the newest first, as [`ScalableCuckooFilter::contains_hash`]: a key that was not found in one is
    /// looked for in the next.
    fn contains_batches<T>(&self, items: &[T], found: &mut [bool], digest: impl Fn(&T) -> Digest) {
        for (items, found) in items.chunks(BATCH).zip(found.chunks_mut(BATCH)) {
            let digests = digests(items, &digest);
            // The oldest table, alone: its pairs depend on whole fingerprints.
            if let Some(inner) = self.chain.alone() {
                inner.contains_batch(&digests[..items.len()], found);
                continue;
            }
            let levels = self.chain.levels();
            let newest = levels[0].index;
            let places = digests.map(|digest| levels[0].inner.place(digest));
            let all = u32::MAX >> (BATCH - items.len());
            let missing = levels.iter().fold(all, |missing, level| {
                level.inner.contains_missing(|i| level.older(&places[i], newest), missing)
            });
            for (i, found) in found.iter_mut().enumerate() {
                *found = missing >> i & 1 == 0;
            }
        }
    }

    fn insert_batches<T>(&self, items: &[T], digest: impl Fn(&T) -> Digest) -> usize {
        let mut inserted = 0;
        for items in items.chunks(BATCH) {
            let digests = digests(items, &digest);
            let levels = self.chain.levels();
            digests[..items.len()].iter().for_each(|digest| Places::new(&levels, *digest).fetch());
            // Who inserts may flush the chain, which nobody may do with a pin.
            drop(levels);
            for digest in &digests[..items.len()] {
                if self.insert_digest(*digest).is_err() {
                    return inserted;
                }
                inserted += 1;
            }
        }
        inserted
    }
}

impl<S: BuildHasher> ScalableCuckooFilter<S> {
    /// Looks many keys up: `found[i]` becomes what `contains(&keys[i])` would be. Their waits for memory overlap, table by
    /// table.
    ///
    /// # Panics
    ///
    /// If the slices are not of one length.
    ///
    /// ```
    /// let filter = koel::ScalableCuckooFilter::from_keys([1, 2], 1e-6)?;
    /// let mut found = [false; 3];
    /// filter.contains_many(&[1, 2, 3], &mut found);
    /// assert_eq!(found, [true, true, false]);
    /// # Ok::<(), koel::FilterError>(())
    /// ```
    #[track_caller]
    pub fn contains_many<Q: Hash>(&self, keys: &[Q], found: &mut [bool]) {
        assert_eq!(keys.len(), found.len(), "contains_many: as many places for answers as keys");
        self.contains_batches(keys, found, |key| Digest::new(self.hash(key)));
    }

    /// Inserts many keys, in order, up to the first that has no room. How many had: if fewer than there are keys,
    /// `keys[inserted]` is the one that is too many. Their waits for memory overlap.
    #[must_use = "not all may have been inserted"]
    pub fn insert_many<Q: Hash>(&self, keys: &[Q]) -> usize {
        self.insert_batches(keys, |key| Digest::new(self.hash(key)))
    }
}

impl<S: BuildHasher> ScalableFilterBuilder<S> {
    /// Builds a filter of these keys. Its first table is made for their number, or more if it was asked for.
    ///
    /// Faster than inserting them one by one: nobody else sees the filter before it is done. Takes memory meanwhile as
    /// [`CuckooFilter::from_keys`](crate::CuckooFilter::from_keys).
    ///
    /// # Errors
    ///
    /// As [`ScalableFilterBuilder::build`]; [`FilterError::OutOfMemory`] for the list of keys, too; and [`FilterError::Full`]
    /// if a key occurs more often than it may.
    pub fn from_keys<Q: Hash>(
        self,
        keys: impl IntoIterator<Item = Q>,
    ) -> Result<ScalableCuckooFilter<S>, FilterError> {
        let digests = try_collect(keys.into_iter().map(|key| Digest::new(self.hasher.hash_one(&key))))?;
        self.build_of(digests)
    }

    /// Builds a filter of the bytes of these keys, as [`ScalableFilterBuilder::from_keys`]: to be asked by the `_bytes` forms.
    ///
    /// # Errors
    ///
    /// As [`ScalableFilterBuilder::from_keys`].
    pub fn from_keys_bytes<Q: AsRef<[u8]>>(
        self,
        keys: impl IntoIterator<Item = Q>,
    ) -> Result<ScalableCuckooFilter<S>, FilterError> {
        let digest = |key: Q| Digest::new(hash_bytes(&self.hasher, key.as_ref()));
        let digests = try_collect(keys.into_iter().map(digest))?;
        self.build_of(digests)
    }

    fn build_of(mut self, digests: Vec<Digest>) -> Result<ScalableCuckooFilter<S>, FilterError> {
        let all = digests.len();
        self.capacity = self.capacity.max(all);
        let mut filter = self.build()?;
        let left =
            filter.fill_oldest(digests, |inner, mut digests| inner.fill::<Digest>(&mut digests, false))?;
        let more = filter.insert_batches(&left, |digest| *digest);
        let inserted = all - left.len() + more;
        if inserted < all {
            return Err(FilterError::Full { inserted });
        }
        Ok(filter)
    }
}
