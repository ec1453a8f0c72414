//! Building a filter from all its keys at once.

use core::hash::{BuildHasher, Hash};

use smallvec::SmallVec;

use super::builder::FilterBuilder;
use super::collect::try_collect_all;
use super::cuckoo::CuckooFilter;
use super::error::FilterError;
use super::geometry::WholeDigest;
use super::hasher::hash_bytes;
use super::inner::Inner;
use super::parted::{Parted, Parting};
use super::sizing::{MISFIT, Options, Shape};
use crate::hash::Digest;

/// The probability that is accepted for keys not to fit a table that is one of several to be tried.
const OFTEN: f64 = 0.01;

/// Returns tables in which all keys may come twice, four and eight times, the smallest first: tables that would suffice if a
/// bucket had so many times fewer slots. But a search for a path meets the copies one by one, and ends sooner: so tables twice
/// and four times as large are included, too. To be as sure as with any filter that no more keys share their buckets than fit
/// would take sixty times as much memory, for a million keys that come eight times, and more where fingerprints are short,
/// though many a smaller table suffices.
fn for_copies(options: Options) -> SmallVec<[Shape; 12]> {
    let sizes = [(1, OFTEN), (2, OFTEN), (4, OFTEN), (1, MISFIT)];
    let tables =
        sizes.into_iter().flat_map(|(times, misfit)| [2, 4, 8].map(|copies| (copies, times, misfit)));
    let shape = |(copies, times, misfit)| {
        let larger = Options { capacity: options.capacity.saturating_mul(times), ..options };
        let shape = larger.shape_of_copies(copies, misfit)?;
        Some(Shape { capacity: options.capacity, ..shape })
    };
    let mut shapes: SmallVec<[Shape; 12]> = tables.filter_map(shape).collect();
    // Neither allocates: lack of memory is an error of the tables alone.
    shapes.sort_unstable_by_key(Shape::bytes);
    shapes.dedup();
    shapes
}

impl<S: BuildHasher> FilterBuilder<S> {
    /// Builds a filter of these keys; see [`CuckooFilter::from_keys`]. Its capacity is their number, or more if that was
    /// requested.
    ///
    /// Many repeated keys take more room than the same number of different ones. If they have no room, the filter is rebuilt
    /// until they have: up to 1.4 times as large where keys come twice, three times where they come four times, and mostly
    /// three to seven times where they come as often as a bucket has slots; where a rate of more than 1% is requested, up to
    /// about twenty times. It then has 8 slots per bucket, or 4, if a width is requested and no rate. With short fingerprints,
    /// if they are requested, it takes more.
    ///
    /// # Errors
    ///
    /// As [`FilterBuilder::build`], if a value is out of its range, no such filter is possible, or there is no memory for it or
    /// for the list of keys. [`FilterError::Full`] if a key occurs more often than two buckets have slots; if more than a few
    /// occur more often than one has; or if the requested rate, width or buckets do not suffice for so many copies.
    ///
    /// ```
    /// let builder = koel::CuckooFilter::builder().capacity(1000).fingerprint_bits(16).seed(1);
    /// let filter = builder.from_keys(["ada", "grace"])?; // with room for more
    /// assert_eq!((filter.len(), filter.info().capacity_keys >= 1000), (2, true));
    /// # Ok::<(), koel::FilterError>(())
    /// ```
    pub fn from_keys<Q: Hash>(
        self,
        keys: impl IntoIterator<Item = Q>,
    ) -> Result<CuckooFilter<S>, FilterError> {
        let digests = self.parted(keys.into_iter().map(|key| Digest::new(self.hasher.hash_one(&key))))?;
        self.build_of(digests)
    }

    /// Builds a filter of the bytes of these keys; see [`CuckooFilter::from_keys_bytes`].
    ///
    /// # Errors
    ///
    /// As [`FilterBuilder::from_keys`].
    pub fn from_keys_bytes<Q: AsRef<[u8]>>(
        self,
        keys: impl IntoIterator<Item = Q>,
    ) -> Result<CuckooFilter<S>, FilterError> {
        let digest = |key: Q| Digest::new(hash_bytes(&self.hasher, key.as_ref()));
        let digests = self.parted(keys.into_iter().map(digest))?;
        self.build_of(digests)
    }

    /// Returns the shape of a filter of this many keys, if none comes too often.
    pub(super) fn shape_of(&self, keys: usize) -> Result<Shape, FilterError> {
        // Even without keys there is a filter.
        let capacity = self.options.capacity.max(keys).max(1);
        Options { capacity, ..self.options }.shape()
    }

    /// Takes digests from an iterator: by segment, if they are to be ordered and it says how many there are.
    fn parted(&self, digests: impl Iterator<Item = Digest>) -> Result<Parted, FilterError> {
        let (at_least, huge_pages) = (digests.size_hint().0, self.options.huge_pages);
        let shape = self.shape_of(at_least).ok().filter(Inner::is_filled_by_segment);
        let Some(Shape { geometry, .. }) = shape.filter(|_| at_least > 0) else {
            return Ok(Parted::in_order(try_collect_all(digests, huge_pages)?, huge_pages));
        };
        let mut parting = Parting::new(geometry, at_least, huge_pages);
        for digest in digests {
            parting.push(digest)?;
        }
        parting.finish()
    }

    fn build_of(self, mut digests: Parted) -> Result<CuckooFilter<S>, FilterError> {
        self.filled(&mut digests, |inner, digests| inner.fill::<WholeDigest>(digests))
    }

    /// Builds a filter of these digests. `fill` gives them to a table and returns those that had no room. That many are the
    /// same is not known before it shows, by lack of room: then a table is made in which all might come several times.
    pub(super) fn filled(
        mut self,
        digests: &mut Parted,
        mut fill: impl FnMut(&Inner, &mut Parted) -> Result<Vec<Digest>, FilterError>,
    ) -> Result<CuckooFilter<S>, FilterError> {
        let mut shape = self.shape_of(digests.len())?;
        self.options.capacity = shape.capacity;
        let (mut most, mut inserted) = (0, 0);
        let mut larger = core::iter::once_with(|| for_copies(self.options)).flatten();
        loop {
            if most <= 2 * shape.format.bucket_slots as usize {
                let inner = Inner::new(shape, self.options.huge_pages)?;
                let left = fill(&inner, digests)?;
                let Some(first) = left.first() else {
                    return Ok(CuckooFilter { inner, hasher: self.hasher });
                };
                inserted = inner.table.len();
                most = digests.slices().flatten().filter(|digest| *digest == first).count();
            }
            shape = larger.next().ok_or(FilterError::Full { inserted })?;
        }
    }
}
