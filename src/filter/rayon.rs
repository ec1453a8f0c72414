//! Building a filter on all threads. Feature `rayon`.

use core::hash::{BuildHasher, Hash};

use rayon::iter::{IntoParallelIterator, ParallelIterator};
use rayon::slice::ParallelSlice;

use super::builder::FilterBuilder;
use super::cuckoo::CuckooFilter;
use super::error::FilterError;
use super::inner::Inner;
use super::scalable::{ScalableCuckooFilter, ScalableFilterBuilder};
use crate::hash::Digest;

/// The digests of keys.
fn digests<Q: Hash>(
    keys: impl IntoParallelIterator<Item = Q>,
    hasher: &(impl BuildHasher + Sync),
) -> Vec<Digest> {
    keys.into_par_iter().map(|key| Digest::new(hasher.hash_one(&key))).collect()
}

/// Fills a table that nobody else uses: digests are parted by segment, and each segment is filled by one thread. What had
/// no room.
fn fill(inner: &Inner, digests: &[Digest]) -> Vec<Digest> {
    let geometry = *inner.table.geometry();
    let part = digests.len().div_ceil(rayon::current_num_threads()).max(1);
    // For each part, the digests of each segment.
    let parted: Vec<Vec<Vec<Digest>>> = digests
        .par_chunks(part)
        .map(|digests| {
            let share = digests.len() / geometry.segments as usize;
            let mut lists: Vec<Vec<Digest>> =
                (0..geometry.segments).map(|_| Vec::with_capacity(share + share / 16)).collect();
            for digest in digests {
                lists[geometry.segment(*digest) as usize].push(*digest);
            }
            lists
        })
        .collect();
    (0..geometry.segments)
        .into_par_iter()
        .flat_map_iter(|segment| {
            let mine = parted.iter().flat_map(|lists| &lists[segment as usize]);
            inner.fill_segment(segment, mine.copied())
        })
        .collect()
}

impl<S: BuildHasher + Sync> FilterBuilder<S> {
    /// [`FilterBuilder::from_keys`] on rayon's threads: keys are parted by segment, and each segment is filled by one
    /// thread. Takes 16 bytes for each key meanwhile; a want of memory for them ends the process. A filter of fewer
    /// than some 250,000 keys has one segment, so that only the hashing is shared out.
    ///
    /// ```
    /// let builder = koel::CuckooFilter::builder().false_positive_rate(0.01);
    /// let filter = builder.par_from_keys(0..1_000_000_u64)?;
    /// assert!((0..1_000_000_u64).all(|key| filter.contains(&key)));
    /// # Ok::<(), koel::FilterError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`FilterBuilder::from_keys`]; which keys had room is not said in order.
    pub fn par_from_keys<Q: Hash>(
        mut self,
        keys: impl IntoParallelIterator<Item = Q>,
    ) -> Result<CuckooFilter<S>, FilterError> {
        let digests = digests(keys, &self.hasher);
        self.options.capacity = self.options.capacity.max(digests.len());
        let filter = self.build()?;
        let left = fill(&filter.inner, &digests);
        if left.is_empty() { Ok(filter) } else { Err(FilterError::Full { inserted: filter.len() }) }
    }
}

impl<S: BuildHasher + Sync> ScalableFilterBuilder<S> {
    /// [`ScalableFilterBuilder::from_keys`] on rayon's threads, as [`FilterBuilder::par_from_keys`].
    ///
    /// # Errors
    ///
    /// As [`ScalableFilterBuilder::from_keys`]; which keys had room is not said in order.
    pub fn par_from_keys<Q: Hash>(
        mut self,
        keys: impl IntoParallelIterator<Item = Q>,
    ) -> Result<ScalableCuckooFilter<S>, FilterError> {
        let digests = digests(keys, &self.hasher);
        self.capacity = self.capacity.max(digests.len());
        let mut filter = self.build()?;
        let left = filter.fill_oldest(digests, |inner, digests| Ok(fill(inner, &digests)))?;
        match left.into_iter().try_for_each(|digest| filter.insert_digest(digest)) {
            Ok(()) => Ok(filter),
            Err(_) => Err(FilterError::Full { inserted: filter.len() }),
        }
    }
}
