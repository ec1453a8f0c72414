//! Building a filter on all threads. Feature `rayon`.

use core::hash::{BuildHasher, Hash};

use rayon::iter::{IntoParallelIterator, ParallelExtend, ParallelIterator};

use super::builder::FilterBuilder;
use super::collect::{HUGE_BYTES, with_room_for_all};
use super::cuckoo::CuckooFilter;
use super::error::FilterError;
use super::geometry::{Geometry, ToPlace, WholeDigest};
use super::hasher::hash_bytes;
use super::inner::Inner;
use super::parted::{Parted, Parting};
use super::scalable::{ScalableCuckooFilter, ScalableFilterBuilder};
use crate::hash::Digest;
use crate::sync::Mutex;

/// The number of digests that a thread takes at a time to partition them anew: few compared with those of a segment, as all may
/// belong to the same one.
const PIECE: usize = 512;

/// The partition that one thread fills at a time; when that thread is done with it, another may.
struct Share<'s> {
    parting: Parting,
    idle: &'s Mutex<Vec<Parting>>,
    /// Whether memory was lacking; after that no more digests are wanted.
    has_failed: bool,
    /// The first lack of memory.
    failed: &'s Mutex<Option<FilterError>>,
}

impl Share<'_> {
    #[inline(always)]
    fn push(&mut self, digest: Digest) {
        if !self.parting.push_here(digest) {
            self.push_elsewhere(digest);
        }
    }

    #[cold]
    #[inline(never)]
    fn push_elsewhere(&mut self, digest: Digest) {
        if self.has_failed {
            return;
        }
        if let Err(error) = self.parting.push_elsewhere(digest) {
            self.has_failed = true;
            self.failed.lock().get_or_insert(error);
        }
    }
}

impl Drop for Share<'_> {
    fn drop(&mut self) {
        let parting = self.parting.take();
        self.idle.lock().push(parting);
    }
}

/// Partitions this many digests by segment, each thread's in blocks of its own; an error if there is no memory for them.
fn parted(
    digests: impl ParallelIterator<Item = Digest>,
    geometry: &Geometry,
    len: usize,
    huge_pages: Option<bool>,
) -> Result<Parted, FilterError> {
    let share = len.div_ceil(rayon::current_num_threads());
    // By the number of bytes that all of them take.
    let huge_pages = huge_pages.or(Some(len.saturating_mul(size_of::<Digest>()) >= HUGE_BYTES));
    let (idle, failed) = (Mutex::new(Vec::new()), Mutex::new(None));
    let begin = || {
        let parting = idle.lock().pop().unwrap_or_else(|| Parting::new(*geometry, share, huge_pages));
        Share { parting, idle: &idle, has_failed: failed.lock().is_some(), failed: &failed }
    };
    digests.for_each_init(begin, |share, digest| share.push(digest));
    if let Some(error) = failed.lock().take() {
        return Err(error);
    }
    let mut parted = Parted::in_order(Vec::new(), huge_pages);
    for parting in std::mem::take(&mut *idle.lock()) {
        parted.append(parting.finish()?)?;
    }
    Ok(parted)
}

/// Collects digests in any order; an error if there is no memory for as many as are announced.
fn in_order(
    digests: impl ParallelIterator<Item = Digest>,
    huge_pages: Option<bool>,
) -> Result<Vec<Digest>, FilterError> {
    let mut list = with_room_for_all(digests.opt_len().unwrap_or(0), huge_pages)?;
    list.par_extend(digests);
    Ok(list)
}

/// The same digests, by other segments.
fn parted_anew(digests: &Parted, geometry: &Geometry) -> Result<Parted, FilterError> {
    let all = in_turn(digests).into_par_iter().flat_map_iter(|piece| piece.iter().copied());
    parted(all, geometry, digests.len(), digests.huge_pages())
}

/// Pieces of all digests, one of each segment after the other: whichever part of them a thread gets, it has equally many
/// digests of each segment, as it has equal room for each.
fn in_turn(digests: &Parted) -> Vec<&[Digest]> {
    let mut slices: Vec<_> = digests.slices().map(|slice| slice.chunks(PIECE)).collect();
    let mut pieces = Vec::new();
    while !slices.is_empty() {
        slices.retain_mut(|slice| {
            let piece = slice.next();
            pieces.extend(piece);
            piece.is_some()
        });
    }
    pieces
}

/// Fills a table that nobody else uses: each segment is filled by one thread. Returns the digests that had no room; an error if
/// there is no memory to partition the digests, if that has not been done yet.
fn fill<P: ToPlace + From<Digest>>(inner: &Inner, digests: &mut Parted) -> Result<Vec<Digest>, FilterError> {
    let geometry = inner.table.geometry();
    if !digests.is_for(geometry) {
        *digests = parted_anew(digests, geometry)?;
    }
    let segments = (0..geometry.segments).into_par_iter();
    let digests = &*digests;
    let mut left: Vec<_> =
        segments.flat_map_iter(|segment| inner.fill_segment::<P>(segment, digests)).collect();
    left.append(&mut inner.fill_in_order::<P>(digests.rest())?);
    Ok(left)
}

impl<S: BuildHasher + Sync> FilterBuilder<S> {
    /// As [`FilterBuilder::from_keys`], on rayon's threads: keys are partitioned by segment, and each segment is filled by one
    /// thread. Meanwhile this takes 8 to 12 bytes for each key. It takes up to 22 if the iterator does not know how many there
    /// are; a lack of memory for half of them then ends the process. It takes up to 33 where keys repeat so often that the
    /// filter has to be made larger. A filter of fewer than about 250,000 keys has one segment, so that only the hashing is
    /// parallel.
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
    /// As [`FilterBuilder::from_keys`]; the keys that had room are not reported in order.
    pub fn par_from_keys<Q: Hash>(
        self,
        keys: impl IntoParallelIterator<Item = Q>,
    ) -> Result<CuckooFilter<S>, FilterError> {
        let digests = keys.into_par_iter().map(|key| Digest::new(self.hasher.hash_one(&key)));
        let digests = self.par_parted(digests)?;
        self.par_build_of(digests)
    }

    /// As [`FilterBuilder::from_keys_bytes`], on rayon's threads: see [`FilterBuilder::par_from_keys`].
    ///
    /// # Errors
    ///
    /// As [`FilterBuilder::par_from_keys`].
    pub fn par_from_keys_bytes<Q: AsRef<[u8]>>(
        self,
        keys: impl IntoParallelIterator<Item = Q>,
    ) -> Result<CuckooFilter<S>, FilterError> {
        let digests = keys.into_par_iter().map(|key| Digest::new(hash_bytes(&self.hasher, key.as_ref())));
        let digests = self.par_parted(digests)?;
        self.par_build_of(digests)
    }

    /// By segment, if it is known how many there are.
    fn par_parted(&self, digests: impl ParallelIterator<Item = Digest>) -> Result<Parted, FilterError> {
        let (len, huge_pages) = (digests.opt_len(), self.options.huge_pages);
        let expected = len.and_then(|len| Some((len, self.shape_of(len).ok()?)));
        match expected {
            Some((len, shape)) => parted(digests, &shape.geometry, len, huge_pages),
            None => Ok(Parted::in_order(in_order(digests, huge_pages)?, huge_pages)),
        }
    }

    fn par_build_of(self, mut digests: Parted) -> Result<CuckooFilter<S>, FilterError> {
        self.filled(&mut digests, fill::<WholeDigest>)
    }
}

impl<S: BuildHasher + Sync> ScalableFilterBuilder<S> {
    /// As [`ScalableFilterBuilder::from_keys`], on rayon's threads: see [`FilterBuilder::par_from_keys`], except that it takes
    /// 16 to 22 bytes for each key meanwhile.
    ///
    /// # Errors
    ///
    /// As [`ScalableFilterBuilder::from_keys`]; the keys that had room are not reported in order.
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
        let digests = keys.into_par_iter().map(|key| Digest::new(self.hasher.hash_one(&key)));
        let digests = in_order(digests, None)?;
        self.par_build_of(digests)
    }

    /// As [`ScalableFilterBuilder::from_keys_bytes`], on rayon's threads: see [`FilterBuilder::par_from_keys`].
    ///
    /// # Errors
    ///
    /// As [`ScalableFilterBuilder::par_from_keys`].
    pub fn par_from_keys_bytes<Q: AsRef<[u8]>>(
        self,
        keys: impl IntoParallelIterator<Item = Q>,
    ) -> Result<ScalableCuckooFilter<S>, FilterError> {
        let digests = keys.into_par_iter().map(|key| Digest::new(hash_bytes(&self.hasher, key.as_ref())));
        let digests = in_order(digests, None)?;
        self.par_build_of(digests)
    }

    fn par_build_of(self, digests: Vec<Digest>) -> Result<ScalableCuckooFilter<S>, FilterError> {
        self.filled(digests, fill::<Digest>)
    }
}

impl CuckooFilter {
    /// As [`CuckooFilter::from_keys`], on rayon's threads; see [`FilterBuilder::par_from_keys`]. Needs the feature `rayon`.
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

    /// As [`CuckooFilter::from_keys_bytes`], on rayon's threads. Needs the feature `rayon`.
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
    /// As [`ScalableCuckooFilter::from_keys`], on rayon's threads; see [`FilterBuilder::par_from_keys`]. Needs the feature
    /// `rayon`.
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

    /// As [`ScalableCuckooFilter::from_keys_bytes`], on rayon's threads. Needs the feature `rayon`.
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

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    /// Otherwise half of them would be listed twice: those for which a thread has no room, because its room is for the other
    /// segments.
    #[test]
    fn digests_of_one_segment_after_the_other_are_parted_anew_without_a_long_rest() {
        const LEN: usize = 400_000;
        let mixed = |i: u64| (i ^ i >> 32).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let digest = |i: usize| Digest::new(mixed(mixed(mixed(i as u64))));
        let [few, more] = [7, 16].map(|segments| Geometry::new(segments, 8, 12, 12));
        let all = |parted: &Parted| {
            let mut all: Vec<u64> = parted.slices().flatten().map(|digest| digest.bits()).collect();
            all.sort_unstable();
            all
        };
        for threads in [1, 2, 8, 32] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let digests = (0..LEN).into_par_iter().map(digest);
            let before = pool.install(|| parted(digests, &few, LEN, None)).unwrap();
            let anew = pool.install(|| parted_anew(&before, &more)).unwrap();
            let rest = anew.rest().len();
            assert!(anew.is_for(&more) && rest < LEN / 50, "{rest} in the rest, on {threads} threads");
            assert_eq!(all(&anew), all(&before));
        }
    }

    /// At once, however many digests are still to come.
    #[test]
    fn a_want_of_memory_for_blocks_is_an_error() {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
        let digests = (0..1_000_000_u64).into_par_iter().map(Digest::new);
        // More bytes for each thread than there are addresses.
        let refused = pool.install(|| parted(digests, &Geometry::new(7, 8, 12, 12), usize::MAX, None));
        assert!(refused.is_err());
    }
}
