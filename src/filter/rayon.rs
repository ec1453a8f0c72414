//! Building a filter on all threads. Feature `rayon`.

use core::hash::{BuildHasher, Hash};

use rayon::iter::{IntoParallelIterator, ParallelExtend, ParallelIterator};
use rayon::slice::ParallelSlice;

use super::builder::FilterBuilder;
use super::collect::with_room_for_all;
use super::cuckoo::CuckooFilter;
use super::error::FilterError;
use super::geometry::{ToPlace, WholeDigest};
use super::hasher::hash_bytes;
use super::inner::Inner;
use super::parted::parted;
use super::scalable::{ScalableCuckooFilter, ScalableFilterBuilder};
use crate::hash::Digest;

/// The digests of keys, by the hash that each has; an error if there is no memory for as many as are announced.
fn digests<Q>(
    keys: impl IntoParallelIterator<Item = Q>,
    hash: impl Fn(Q) -> u64 + Sync + Send,
    huge_pages: Option<bool>,
) -> Result<Vec<Digest>, FilterError> {
    let digests = keys.into_par_iter().map(|key| Digest::new(hash(key)));
    let mut list = with_room_for_all(digests.opt_len().unwrap_or(0), huge_pages)?;
    list.par_extend(digests);
    Ok(list)
}

/// Fills a table that nobody else uses: digests are parted by segment, and each segment is filled by one thread. What had
/// no room; an error if there is no memory to part them.
fn fill<P: ToPlace + From<Digest>>(
    inner: &Inner,
    digests: &[Digest],
    gives_up: bool,
) -> Result<Vec<Digest>, FilterError> {
    let geometry = inner.table.geometry();
    let share = digests.len().div_ceil(rayon::current_num_threads()).max(1);
    let shares = digests.par_chunks(share).map(|digests| parted(digests, geometry));
    let shares: Vec<_> = shares.collect::<Result<_, _>>()?;
    let fill_segment = |segment: u32| {
        let of_segment = move |(parted, ends): &'_ (Vec<Digest>, Vec<usize>)| {
            let begin = segment.checked_sub(1).map_or(0, |before| ends[before as usize]);
            inner.fill_segment::<P>(segment, &parted[begin..ends[segment as usize]], gives_up)
        };
        shares.iter().flat_map(of_segment)
    };
    Ok((0..geometry.segments).into_par_iter().flat_map_iter(fill_segment).collect())
}

impl<S: BuildHasher + Sync> FilterBuilder<S> {
    /// [`FilterBuilder::from_keys`] on rayon's threads: keys are parted by segment, and each segment is filled by one
    /// thread. Takes 16 bytes for each key meanwhile; a want of memory for half of them ends the process, if the iterator does
    /// not know how many there are. A filter of fewer than some 250,000 keys has one segment, so that only the hashing is
    /// shared out.
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
        self,
        keys: impl IntoParallelIterator<Item = Q>,
    ) -> Result<CuckooFilter<S>, FilterError> {
        let digests = digests(keys, |key| self.hasher.hash_one(&key), self.options.huge_pages)?;
        self.par_build_of(digests)
    }

    /// [`FilterBuilder::from_keys_bytes`] on rayon's threads, as [`FilterBuilder::par_from_keys`].
    ///
    /// # Errors
    ///
    /// As [`FilterBuilder::par_from_keys`].
    pub fn par_from_keys_bytes<Q: AsRef<[u8]>>(
        self,
        keys: impl IntoParallelIterator<Item = Q>,
    ) -> Result<CuckooFilter<S>, FilterError> {
        let digests = digests(keys, |key| hash_bytes(&self.hasher, key.as_ref()), self.options.huge_pages)?;
        self.par_build_of(digests)
    }

    fn par_build_of(self, mut digests: Vec<Digest>) -> Result<CuckooFilter<S>, FilterError> {
        self.filled(&mut digests, |inner, digests| fill::<WholeDigest>(inner, digests, true))
    }
}

impl<S: BuildHasher + Sync> ScalableFilterBuilder<S> {
    /// [`ScalableFilterBuilder::from_keys`] on rayon's threads, as [`FilterBuilder::par_from_keys`].
    ///
    /// # Errors
    ///
    /// As [`ScalableFilterBuilder::from_keys`]; which keys had room is not said in order.
    ///
    /// ```
    /// let filter = koel::ScalableCuckooFilter::builder().par_from_keys(0..100_000_u64)?;
    /// assert!((0..100_000_u64).all(|key| filter.contains(&key)));
    /// filter.insert(&100_000_u64).unwrap();
    /// # Ok::<(), koel::FilterError>(())
    /// ```
    pub fn par_from_keys<Q: Hash>(
        self,
        keys: impl IntoParallelIterator<Item = Q>,
    ) -> Result<ScalableCuckooFilter<S>, FilterError> {
        let digests = digests(keys, |key| self.hasher.hash_one(&key), None)?;
        self.par_build_of(digests)
    }

    /// [`ScalableFilterBuilder::from_keys_bytes`] on rayon's threads, as [`FilterBuilder::par_from_keys`].
    ///
    /// # Errors
    ///
    /// As [`ScalableFilterBuilder::par_from_keys`].
    pub fn par_from_keys_bytes<Q: AsRef<[u8]>>(
        self,
        keys: impl IntoParallelIterator<Item = Q>,
    ) -> Result<ScalableCuckooFilter<S>, FilterError> {
        let digests = digests(keys, |key| hash_bytes(&self.hasher, key.as_ref()), None)?;
        self.par_build_of(digests)
    }

    fn par_build_of(mut self, digests: Vec<Digest>) -> Result<ScalableCuckooFilter<S>, FilterError> {
        self.capacity = self.capacity.max(digests.len()).max(1);
        let mut filter = self.build()?;
        let left = filter.fill_oldest(digests, |inner, digests| fill::<Digest>(inner, &digests, false))?;
        match left.into_iter().try_for_each(|digest| filter.insert_digest(digest)) {
            Ok(()) => Ok(filter),
            Err(_) => Err(FilterError::Full { inserted: filter.len() }),
        }
    }
}

impl CuckooFilter {
    /// [`CuckooFilter::from_keys`] on rayon's threads; see [`FilterBuilder::par_from_keys`]. Needs the feature `rayon`.
    ///
    /// # Errors
    ///
    /// As [`FilterBuilder::par_from_keys`].
    ///
    /// ```
    /// let filter = koel::CuckooFilter::par_from_keys(0..100_000_u64, 0.01)?;
    /// assert!((0..100_000_u64).all(|key| filter.contains(&key)));
    /// # Ok::<(), koel::FilterError>(())
    /// ```
    pub fn par_from_keys<Q: Hash>(
        keys: impl IntoParallelIterator<Item = Q>,
        false_positive_rate: f64,
    ) -> Result<Self, FilterError> {
        Self::builder().false_positive_rate(false_positive_rate).par_from_keys(keys)
    }

    /// [`CuckooFilter::from_keys_bytes`] on rayon's threads. Needs the feature `rayon`.
    ///
    /// # Errors
    ///
    /// As [`FilterBuilder::par_from_keys`].
    ///
    /// ```
    /// let filter = koel::CuckooFilter::par_from_keys_bytes(["ada", "grace"], 1e-6)?;
    /// assert!(filter.contains_bytes(b"ada"));
    /// # Ok::<(), koel::FilterError>(())
    /// ```
    pub fn par_from_keys_bytes<Q: AsRef<[u8]>>(
        keys: impl IntoParallelIterator<Item = Q>,
        false_positive_rate: f64,
    ) -> Result<Self, FilterError> {
        Self::builder().false_positive_rate(false_positive_rate).par_from_keys_bytes(keys)
    }
}

impl ScalableCuckooFilter {
    /// [`ScalableCuckooFilter::from_keys`] on rayon's threads; see [`FilterBuilder::par_from_keys`]. Needs the feature `rayon`.
    ///
    /// # Errors
    ///
    /// As [`ScalableFilterBuilder::par_from_keys`].
    ///
    /// ```
    /// let filter = koel::ScalableCuckooFilter::par_from_keys(0..100_000_u64, 0.01)?;
    /// assert!((0..100_000_u64).all(|key| filter.contains(&key)));
    /// # Ok::<(), koel::FilterError>(())
    /// ```
    pub fn par_from_keys<Q: Hash>(
        keys: impl IntoParallelIterator<Item = Q>,
        false_positive_rate: f64,
    ) -> Result<Self, FilterError> {
        Self::builder().false_positive_rate(false_positive_rate).par_from_keys(keys)
    }

    /// [`ScalableCuckooFilter::from_keys_bytes`] on rayon's threads. Needs the feature `rayon`.
    ///
    /// # Errors
    ///
    /// As [`ScalableFilterBuilder::par_from_keys`].
    ///
    /// ```
    /// let filter = koel::ScalableCuckooFilter::par_from_keys_bytes(["ada", "grace"], 1e-6)?;
    /// assert!(filter.contains_bytes(b"ada"));
    /// # Ok::<(), koel::FilterError>(())
    /// ```
    pub fn par_from_keys_bytes<Q: AsRef<[u8]>>(
        keys: impl IntoParallelIterator<Item = Q>,
        false_positive_rate: f64,
    ) -> Result<Self, FilterError> {
        Self::builder().false_positive_rate(false_positive_rate).par_from_keys_bytes(keys)
    }
}
