//! One key at a time, by itself or by its bytes: each method hashes the key and calls the method for hashes, in `filter`.

use core::hash::{BuildHasher, Hash};

use super::super::hasher::hash_bytes;
use super::filter::ScalableCuckooFilter;
use crate::full::Full;

impl<S: BuildHasher> ScalableCuckooFilter<S> {
    /// Returns the hash of a key, for the `_hash` forms.
    #[inline]
    pub fn hash<Q: Hash + ?Sized>(&self, key: &Q) -> u64 {
        self.hasher.hash_one(key)
    }

    /// Returns the hash of bytes, for the `_hash` forms: that of a single `write`.
    #[inline]
    pub fn hash_bytes(&self, key: &[u8]) -> u64 {
        hash_bytes(&self.hasher, key)
    }

    /// Inserts a key; once more, if it is present.
    ///
    /// # Errors
    ///
    /// [`Full`] if the key is present as often as it may be; or if the filter cannot grow, because fingerprints would be wider
    /// than 32 bits or segments more than 65,536, because its tables would take [more memory than they
    /// may](crate::ScalableFilterBuilder::max_memory), or for lack of memory. Nothing was changed.
    ///
    /// ```
    /// let filter = koel::ScalableCuckooFilter::new(0.01)?;
    /// filter.insert("ada")?;
    /// assert!(filter.contains("ada"));
    /// # Ok::<(), koel::FilterError>(())
    /// ```
    #[doc(alias = "add")]
    #[inline]
    pub fn insert<Q: Hash + ?Sized>(&self, key: &Q) -> Result<(), Full> {
        self.insert_hash(self.hash(key))
    }

    /// Inserts a key unless it is present, or seems to be, and returns whether it was inserted: of several threads that do so
    /// for one key at the same moment, one is told that it was. If the key is present, this takes the lock of its segment in
    /// each table. If it is not, this waits for other keys that are just being inserted in the same way: for one in sixteen,
    /// also for one that waits for a compaction.
    ///
    /// Where keys are removed, use [`insert`](Self::insert): a key that only seemed to be present has not been inserted, and is
    /// removed with the key that it was mistaken for. See [duplicates](crate::CuckooFilter#duplicates).
    ///
    /// # Errors
    ///
    /// As [`ScalableCuckooFilter::insert`].
    ///
    /// ```
    /// let filter = koel::ScalableCuckooFilter::new(1e-6)?;
    /// assert_eq!(filter.insert_unique("ada"), Ok(true));
    /// assert_eq!(filter.insert_unique("ada"), Ok(false));
    /// # Ok::<(), koel::FilterError>(())
    /// ```
    #[doc(alias = "check_and_set")]
    #[doc(alias = "insert_if_not_contained")]
    #[doc(alias = "set")]
    #[doc(alias = "test_and_add")]
    #[inline]
    pub fn insert_unique<Q: Hash + ?Sized>(&self, key: &Q) -> Result<bool, Full> {
        self.insert_unique_hash(self.hash(key))
    }

    /// Returns whether a key is present: `false` is certain; `true` is wrong at the false-positive rate. Never waits.
    ///
    /// ```
    /// let filter = koel::ScalableCuckooFilter::from_keys(["ada"], 1e-8)?;
    /// assert!(filter.contains("ada") && !filter.contains("bob"));
    /// # Ok::<(), koel::FilterError>(())
    /// ```
    #[doc(alias = "check")]
    #[inline]
    pub fn contains<Q: Hash + ?Sized>(&self, key: &Q) -> bool {
        self.contains_hash(self.hash(key))
    }

    /// Removes one copy of a key, from the newest table that has it. Returns `false` if it was not present. Only for keys that
    /// were inserted.
    ///
    /// ```
    /// let filter = koel::ScalableCuckooFilter::from_keys(["ada"], 1e-6)?;
    /// assert!(filter.remove("ada") && !filter.remove("ada"));
    /// # Ok::<(), koel::FilterError>(())
    /// ```
    #[doc(alias = "delete")]
    #[inline]
    pub fn remove<Q: Hash + ?Sized>(&self, key: &Q) -> bool {
        self.remove_hash(self.hash(key))
    }

    /// Returns how often a key was inserted and not removed, in all tables. The result is too high if other keys have its
    /// fingerprint and buckets; a copy that an insertion or a compaction is just moving may be counted twice.
    ///
    /// ```
    /// let filter = koel::ScalableCuckooFilter::new(1e-6)?;
    /// filter.insert("ada")?;
    /// filter.insert("ada")?;
    /// assert_eq!((filter.count("ada"), filter.count("bob")), (2, 0));
    /// # Ok::<(), koel::FilterError>(())
    /// ```
    pub fn count<Q: Hash + ?Sized>(&self, key: &Q) -> usize {
        self.count_hash(self.hash(key))
    }

    /// Inserts the bytes of a key.
    ///
    /// # Errors
    ///
    /// As [`ScalableCuckooFilter::insert`].
    #[inline]
    pub fn insert_bytes(&self, key: &[u8]) -> Result<(), Full> {
        self.insert_hash(self.hash_bytes(key))
    }

    /// Inserts the bytes of a key, unless they are present, as [`ScalableCuckooFilter::insert_unique`] does.
    ///
    /// # Errors
    ///
    /// As [`ScalableCuckooFilter::insert`].
    #[inline]
    pub fn insert_unique_bytes(&self, key: &[u8]) -> Result<bool, Full> {
        self.insert_unique_hash(self.hash_bytes(key))
    }

    /// Returns whether the bytes of a key are present.
    #[inline]
    pub fn contains_bytes(&self, key: &[u8]) -> bool {
        self.contains_hash(self.hash_bytes(key))
    }

    /// Removes one copy of the bytes of a key.
    #[inline]
    pub fn remove_bytes(&self, key: &[u8]) -> bool {
        self.remove_hash(self.hash_bytes(key))
    }

    /// Returns how often the bytes of a key were inserted and not removed, as [`ScalableCuckooFilter::count`] does.
    pub fn count_bytes(&self, key: &[u8]) -> usize {
        self.count_hash(self.hash_bytes(key))
    }
}
