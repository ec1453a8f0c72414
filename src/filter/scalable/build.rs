//! Building a growing filter from all its keys at once.

use core::hash::{BuildHasher, Hash};

use super::super::collect::try_collect_all;
use super::super::error::FilterError;
use super::super::hasher::hash_bytes;
use super::super::inner::Inner;
use super::super::parted::Parted;
use super::builder::ScalableFilterBuilder;
use super::filter::ScalableCuckooFilter;
use crate::hash::Digest;

impl<S: BuildHasher> ScalableFilterBuilder<S> {
    /// Builds a filter of these keys. Its first table is made for their number, or for more if that was requested.
    ///
    /// This is faster than inserting them one by one, because nobody else sees the filter before it is complete, unless a key
    /// may occur less often than two buckets have slots. Meanwhile it takes 8 bytes for each key, up to 24, if the iterator
    /// does not say how many there are; and 8 more, if the first table is of 8 MiB or more and there is memory for them.
    ///
    /// # Errors
    ///
    /// As [`ScalableFilterBuilder::build`]; [`FilterError::OutOfMemory`] for the list of keys, too; and [`FilterError::Full`]
    /// if a key occurs more often than it [may](ScalableFilterBuilder::max_duplicates), by itself or together with others that
    /// the filter cannot tell from it. At a rate of 0.01, two of ten thousand keys usually are alike in this way, and if each
    /// occurs as often as it may, both together occur too often. In that case, allow three times as many copies. Also if keys
    /// that have no room in the first table need another one, and there can be none: as [`ScalableCuckooFilter::insert`].
    pub fn from_keys<Q: Hash>(
        self,
        keys: impl IntoIterator<Item = Q>,
    ) -> Result<ScalableCuckooFilter<S>, FilterError> {
        let digest = |key: Q| Digest::new(self.hasher.hash_one(&key));
        let digests = try_collect_all(keys.into_iter().map(digest), None)?;
        self.build_of(digests)
    }

    /// Builds a filter of the bytes of these keys, as [`ScalableFilterBuilder::from_keys`] does: to be queried by the `_bytes`
    /// forms.
    ///
    /// # Errors
    ///
    /// As [`ScalableFilterBuilder::from_keys`].
    pub fn from_keys_bytes<Q: AsRef<[u8]>>(
        self,
        keys: impl IntoIterator<Item = Q>,
    ) -> Result<ScalableCuckooFilter<S>, FilterError> {
        let digest = |key: Q| Digest::new(hash_bytes(&self.hasher, key.as_ref()));
        let digests = try_collect_all(keys.into_iter().map(digest), None)?;
        self.build_of(digests)
    }

    fn build_of(self, digests: Vec<Digest>) -> Result<ScalableCuckooFilter<S>, FilterError> {
        self.filled(digests, |inner, digests| inner.fill::<Digest>(digests))
    }

    /// Builds a filter of these digests. `fill` gives them to the first table and returns those that had no room.
    pub(crate) fn filled(
        mut self,
        digests: Vec<Digest>,
        fill: impl FnOnce(&Inner, &mut Parted) -> Result<Vec<Digest>, FilterError>,
    ) -> Result<ScalableCuckooFilter<S>, FilterError> {
        // Even without digests there is a filter.
        self.capacity = self.capacity.max(digests.len()).max(1);
        let mut filter = self.build()?;
        let in_order = |digests| Parted::in_order(digests, None);
        let left = filter.fill_oldest(digests, |inner, digests| fill(inner, &mut in_order(digests)))?;
        if filter.insert_batches(&left, |digest| *digest) < left.len() {
            return Err(FilterError::Full { inserted: filter.len() });
        }
        Ok(filter)
    }
}
