//! [`FilterView`]: a filter in bytes that stay where they are.

use core::fmt;
use core::hash::Hash;

use super::batch::{all_missing, assert_answers, batches, ones, tell_found};
use super::codec::Codec;
use super::collect::{try_collect, with_room};
use super::error::{BytesError, FilterError};
use super::format::{ChainHeader, HEADER_LEN, Header, SegmentBytes, all_read};
use super::geometry::Place;
use super::hasher::{FilterHasher, Xxh3, hash_bytes};
use super::layout::{Layout, Task};
use super::plan::Lineage;
use super::sizing::{Shape, rate_at, rate_of_any};
use super::words::Bytes;
use crate::engine::{BATCH, prefetch};
use crate::hash::Digest;

/// A filter of either kind that is looked up in its bytes, without a copy: of a file that is mapped into memory, or a
/// part of a larger one. At any address: nothing needs to be aligned. It borrows the bytes: what is kept with them, in a struct
/// or an `Arc`, is a [`FilterViewOwned`](crate::FilterViewOwned).
///
/// ```
/// use koel::{CuckooFilter, FilterView, ScalableCuckooFilter};
///
/// let bytes = CuckooFilter::from_keys(["ada", "grace"], 1e-8)?.to_bytes();
/// let view = FilterView::from_bytes(&bytes)?;
/// assert!(view.contains("ada") && !view.contains("mary"));
/// assert_eq!(view.len(), 2);
///
/// let bytes = ScalableCuckooFilter::from_keys(["ada", "grace"], 0.001)?.to_bytes();
/// assert!(FilterView::from_bytes(&bytes)?.contains("grace"));
/// # Ok::<(), koel::FilterError>(())
/// ```
#[derive(Clone)]
pub struct FilterView<'a, S = Xxh3> {
    /// The newest first; one, unless the filter is a growing one.
    pub(super) tables: Vec<Table<'a>>,
    pub(super) hasher: S,
}

/// One table in its bytes.
#[derive(Clone, Copy)]
pub(super) struct Table<'a> {
    shape: Shape,
    layout: Layout,
    segments: &'a [u8],
    segment_len: usize,
    len: usize,
}

impl<'a> Table<'a> {
    /// The table that these bytes begin with, and the bytes after it.
    fn parse(header: &Header, bytes: &'a [u8]) -> Result<(Self, &'a [u8]), BytesError> {
        let (expected, found) = (header.filter_len(), bytes.len() as u64);
        if expected > found {
            return Err(BytesError::Length { expected, found });
        }
        let (table, rest) = bytes.split_at(expected as usize);
        let (segments, segment_len) = (&table[HEADER_LEN..], header.segment_len());
        let mut len = 0;
        for (segment, bytes) in (0..).zip(segments.chunks_exact(segment_len)) {
            len += header.read_segment(segment, bytes)?.len;
        }
        let (shape, layout) = (header.shape, Layout::new(header.shape.format));
        Ok((Table { shape, layout, segments, segment_len, len }, rest))
    }

    #[inline]
    fn locate(&self, digest: Digest) -> (Place, Bytes<'a>) {
        let place = self.shape.geometry.place(digest);
        let at = place.segment as usize * self.segment_len;
        (place, SegmentBytes::of_checked(&self.segments[at..at + self.segment_len]).words)
    }

    /// Its segments' bytes.
    pub(super) fn segments(&self) -> &'a [u8] {
        self.segments
    }

    /// The same table, whose segments are these.
    #[inline]
    pub(super) fn with_segments<'b>(&self, segments: &'b [u8]) -> Table<'b> {
        let Table { shape, layout, segment_len, len, .. } = *self;
        Table { shape, layout, segments, segment_len, len }
    }

    /// How many keys there are.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    #[inline]
    pub(super) fn contains(&self, digest: Digest) -> bool {
        let (place, words) = self.locate(digest);
        self.layout.run(Contains { words, place })
    }

    /// Looks up those of a batch that are `missing`, a bit for each: which still are.
    fn contains_missing(&self, digests: &[Digest; BATCH], missing: u32) -> u32 {
        let mut located = [(Place::default(), Bytes(&[])); BATCH];
        for i in ones(missing) {
            located[i] = self.locate(digests[i]);
            let (place, words) = located[i];
            [place.first, place.second].iter().for_each(|bucket| {
                prefetch(words.address(u64::from(*bucket) * u64::from(self.shape.format.bucket_bits())));
            });
        }
        ones(missing).fold(missing, |missing, i| {
            let (place, words) = located[i];
            missing & !(u32::from(self.layout.run(Contains { words, place })) << i)
        })
    }

    fn count(&self, digest: Digest) -> usize {
        let (place, words) = self.locate(digest);
        self.layout.run(Count { words, place }) as usize
    }

    fn rate(&self) -> f64 {
        rate_at(self.shape.format, self.len as f64 / self.shape.slots() as f64)
    }
}

impl<'a> FilterView<'a> {
    /// The filter in these bytes: what [`CuckooFilter::to_bytes`](crate::CuckooFilter::to_bytes) or
    /// [`ScalableCuckooFilter::to_bytes`](crate::ScalableCuckooFilter::to_bytes) gave. Reads all of them once. With
    /// another hash function than the default one take [`from_bytes_as`](Self::from_bytes_as).
    ///
    /// # Errors
    ///
    /// As [`CuckooFilter::from_bytes`](crate::CuckooFilter::from_bytes).
    ///
    /// ```
    /// use koel::{CuckooFilter, FilterView};
    ///
    /// // A filter in the middle of a file.
    /// let filter = CuckooFilter::from_keys(["ada", "grace"], 0.001)?.to_bytes();
    /// let file = [b"before", &filter[..], b"after"].concat();
    /// let view = FilterView::from_bytes(&file[6..][..filter.len()])?;
    /// assert!(view.contains("ada"));
    /// assert!(FilterView::from_bytes(&file[6..]).is_err(), "where it ends must be known");
    /// # Ok::<(), koel::FilterError>(())
    /// ```
    pub fn from_bytes(bytes: &'a [u8]) -> Result<Self, FilterError> {
        Self::from_bytes_as(bytes)
    }
}

impl<'a, S: FilterHasher> FilterView<'a, S> {
    /// [`from_bytes`](FilterView::from_bytes), of a filter with this hash function.
    ///
    /// # Errors
    ///
    /// As [`CuckooFilter::from_bytes`](crate::CuckooFilter::from_bytes).
    pub fn from_bytes_as(bytes: &'a [u8]) -> Result<Self, FilterError> {
        if ChainHeader::is_at(bytes) {
            return Self::from_chain(bytes);
        }
        let header = Header::parse(bytes)?;
        if !header.shape.geometry.is_whole() {
            return Err(BytesError::Layout.into());
        }
        let hasher = header.hasher()?;
        let (table, rest) = Table::parse(&header, bytes)?;
        all_read(bytes, rest)?;
        Ok(FilterView { tables: try_collect(core::iter::once(table))?, hasher })
    }

    /// All tables of a growing filter.
    fn from_chain(bytes: &'a [u8]) -> Result<Self, FilterError> {
        let chain = ChainHeader::parse(bytes)?;
        let mut rest = &bytes[HEADER_LEN..];
        let newest = Header::parse(rest)?;
        let hasher = newest.hasher()?;
        let (mut tables, mut lineage) = (with_room(chain.tables as usize)?, Lineage::default());
        for to_come in (0..chain.tables as usize).rev() {
            let header = Header::parse(rest)?;
            if !header.has_hasher_of(&newest) {
                return Err(BytesError::Hasher.into());
            }
            lineage.meet(&header.shape, to_come)?;
            let table;
            (table, rest) = Table::parse(&header, rest)?;
            tables.push(table);
        }
        all_read(bytes, rest)?;
        Ok(FilterView { tables, hasher })
    }

    /// The hash of a key, for the `_hash` forms.
    #[inline]
    pub fn hash<Q: Hash + ?Sized>(&self, key: &Q) -> u64 {
        self.hasher.hash_one(key)
    }

    /// The hash of bytes, for the `_hash` forms.
    #[inline]
    pub fn hash_bytes(&self, key: &[u8]) -> u64 {
        hash_bytes(&self.hasher, key)
    }

    /// Whether a key is there: false is certain; true is wrong at the false-positive rate.
    #[inline]
    pub fn contains<Q: Hash + ?Sized>(&self, key: &Q) -> bool {
        self.contains_hash(self.hash(key))
    }

    /// Whether the bytes of a key are there.
    ///
    /// ```
    /// let bytes = koel::CuckooFilter::from_keys_bytes(["ada"], 0.001)?.to_bytes();
    /// let view = koel::FilterView::from_bytes(&bytes)?; // no copy
    /// assert!(view.contains_bytes(b"ada"));
    /// # Ok::<(), koel::FilterError>(())
    /// ```
    #[inline]
    pub fn contains_bytes(&self, key: &[u8]) -> bool {
        self.contains_hash(self.hash_bytes(key))
    }

    /// Looks many keys up: `found[i]` becomes what `contains(&keys[i])` would be. Their waits for memory overlap, not those for
    /// a file that is mapped.
    ///
    /// # Panics
    ///
    /// If the slices are not of one length.
    ///
    /// ```
    /// let bytes = koel::CuckooFilter::from_keys([1, 2], 1e-8)?.to_bytes();
    /// let mut found = [false; 3];
    /// koel::FilterView::from_bytes(&bytes)?.contains_many(&[1, 2, 3], &mut found);
    /// assert_eq!(found, [true, true, false]);
    /// # Ok::<(), koel::FilterError>(())
    /// ```
    #[track_caller]
    pub fn contains_many<Q: Hash>(&self, keys: &[Q], found: &mut [bool]) {
        assert_answers("contains_many", keys, found);
        self.contains_batches(keys, found, |key| Digest::new(self.hash(key)));
    }

    /// How often a key was inserted and not removed.
    ///
    /// ```
    /// let filter = koel::CuckooFilter::new(100, 1e-6)?;
    /// filter.insert("ada")?;
    /// filter.insert("ada")?;
    /// let bytes = filter.to_bytes();
    /// let view = koel::FilterView::from_bytes(&bytes)?;
    /// assert_eq!((view.count("ada"), view.count("bob")), (2, 0));
    /// # Ok::<(), koel::FilterError>(())
    /// ```
    pub fn count<Q: Hash + ?Sized>(&self, key: &Q) -> usize {
        self.count_hash(self.hash(key))
    }

    /// How often the bytes of a key were inserted and not removed.
    pub fn count_bytes(&self, key: &[u8]) -> usize {
        self.count_hash(self.hash_bytes(key))
    }
}

impl<'a, S> FilterView<'a, S> {
    /// `contains` of a key whose hash you have.
    #[inline]
    pub fn contains_hash(&self, hash: u64) -> bool {
        let digest = Digest::new(hash);
        self.tables.iter().any(|table| table.contains(digest))
    }

    /// `contains_many` of keys whose hashes you have.
    ///
    /// # Panics
    ///
    /// If the slices are not of one length.
    #[track_caller]
    pub fn contains_many_hash(&self, hashes: &[u64], found: &mut [bool]) {
        assert_answers("contains_many_hash", hashes, found);
        self.contains_batches(hashes, found, |hash| Digest::new(*hash));
    }

    fn contains_batches<T>(&self, items: &[T], found: &mut [bool], digest: impl Fn(&T) -> Digest) {
        for (digests, found) in batches(items, found, digest) {
            let tables = self.tables.iter();
            let missing =
                tables.fold(all_missing(found), |missing, table| table.contains_missing(&digests, missing));
            tell_found(missing, found);
        }
    }

    /// `count` of a key whose hash you have.
    pub fn count_hash(&self, hash: u64) -> usize {
        let digest = Digest::new(hash);
        self.tables.iter().map(|table| table.count(digest)).sum()
    }

    /// How many keys there are.
    ///
    /// ```
    /// let bytes = koel::CuckooFilter::from_keys(["ada", "grace"], 0.001)?.to_bytes();
    /// assert_eq!(koel::FilterView::from_bytes(&bytes)?.len(), 2);
    /// # Ok::<(), koel::FilterError>(())
    /// ```
    pub fn len(&self) -> usize {
        self.tables.iter().map(|table| table.len).sum()
    }

    /// Whether there are no keys.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many slots there are.
    pub fn capacity(&self) -> usize {
        self.tables.iter().map(|table| table.shape.slots() as usize).sum()
    }

    /// The expected false-positive rate.
    pub fn false_positive_rate(&self) -> f64 {
        match &*self.tables {
            [table] => table.rate(),
            tables => rate_of_any(tables.iter().map(Table::rate)),
        }
    }
}

struct Contains<'a> {
    words: Bytes<'a>,
    place: Place,
}

impl Task for Contains<'_> {
    type Output = bool;

    #[inline]
    fn run<C: Codec>(self, codec: C) -> bool {
        let Place { first, second, fingerprint, .. } = self.place;
        codec.pair_has(self.words, first, second, fingerprint)
    }
}

struct Count<'a> {
    words: Bytes<'a>,
    place: Place,
}

impl Task for Count<'_> {
    type Output = u32;

    fn run<C: Codec>(self, codec: C) -> u32 {
        let Place { first, second, fingerprint, .. } = self.place;
        let count = |bucket| codec.count(codec.load(self.words, bucket), fingerprint);
        count(first) + count(second)
    }
}

impl<S> fmt::Debug for FilterView<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FilterView")
            .field("tables", &self.tables.len())
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}
