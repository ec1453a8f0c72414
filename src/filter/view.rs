//! [`FilterView`]: a filter in bytes, without a copy of them.

use core::fmt;
use core::hash::Hash;
use core::marker::PhantomData;

use super::batch::{all_missing, assert_answers, batches, ones, tell_found};
use super::codec::Codec;
use super::collect::with_room;
use super::error::{BytesError, FilterError};
use super::format::{ChainHeader, HEADER_LEN, Header, SegmentBytes, all_read};
use super::geometry::{Place, ToPlace, WholeDigest};
use super::hasher::{FilterHasher, Xxh3, hash_bytes};
use super::info::{TableInfo, ViewInfo};
use super::layout::{Layout, Task};
use super::plan::Lineage;
use super::sizing::{Shape, rate_at, rate_of_any};
use super::words::Bytes;
use crate::engine::BATCH;
use crate::hash::Digest;
use crate::prefetch::prefetch;

/// A filter of either kind that is looked up in its bytes, without a copy: in a file that is mapped into memory, or in a part
/// of a larger one. The bytes may be at any address: nothing needs to be aligned. The view borrows the bytes; a view that is
/// kept with them, in a struct or an `Arc`, is a [`FilterViewOwned`](crate::FilterViewOwned).
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
    pub(super) tables: Tables<&'a [u8]>,
    pub(super) hasher: S,
}

/// The tables of a filter.
#[derive(Clone)]
pub(super) enum Tables<B> {
    /// Of a filter of fixed capacity: alternates are selected by whole fingerprints.
    One(Table<B>),
    /// Of a growing filter, the newest first.
    Chain(Vec<Table<B>>),
}

impl<B> Tables<B> {
    /// All of them.
    pub(super) fn as_slice(&self) -> &[Table<B>] {
        match self {
            Tables::One(table) => core::slice::from_ref(table),
            Tables::Chain(tables) => tables,
        }
    }

    /// Returns whether one of them has a key; `bytes` returns the bytes of a table's segments.
    #[inline(always)]
    pub(super) fn contains<'b>(&self, digest: Digest, bytes: impl Fn(&B) -> &'b [u8] + Copy) -> bool {
        match self {
            Tables::One(table) => table.contains(WholeDigest(digest), bytes),
            Tables::Chain(tables) => any_contains(tables, digest, bytes),
        }
    }

    /// Keys.
    pub(super) fn len(&self) -> usize {
        self.as_slice().iter().map(|table| table.form.len).fold(0, usize::saturating_add)
    }

    /// Describes them all.
    pub(super) fn info(&self) -> ViewInfo {
        let scalable = matches!(self, Tables::Chain(_));
        ViewInfo { scalable, tables: self.as_slice().iter().rev().map(|table| table.form.info()).collect() }
    }
}

/// One table: its segments are bytes, or the range in which they are.
#[derive(Clone)]
pub(super) struct Table<B> {
    pub(super) form: Form,
    pub(super) segments: B,
}

/// A table without its bytes.
#[derive(Clone, Copy)]
pub(super) struct Form {
    shape: Shape,
    layout: Layout,
    segment_len: usize,
    len: usize,
}

impl<B> Table<B> {
    /// Returns whether it has a fingerprint where it belongs; `bytes` returns the bytes of its segments.
    #[inline(always)]
    fn contains<'b>(&self, at: impl ToPlace, bytes: impl Fn(&B) -> &'b [u8]) -> bool {
        self.form.layout.run(Contains { table: self, at, bytes })
    }
}

impl<'a> Table<&'a [u8]> {
    /// Returns the table that these bytes begin with, and the bytes after it.
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
        Ok((Table { form: Form { shape, layout, segment_len, len }, segments }, rest))
    }

    /// Looks up those of a batch that are `missing`, a bit for each; returns those that still are.
    fn contains_missing<S: ToPlace + From<Digest>>(&self, digests: &[Digest; BATCH], missing: u32) -> u32 {
        self.form.layout.run(ContainsMissing { table: self, digests, missing, at: PhantomData::<S> })
    }

    fn count(&self, at: impl ToPlace) -> usize {
        self.form.layout.run(Count { table: self, at }) as usize
    }

    fn rate(&self) -> f64 {
        rate_at(self.form.shape.format, self.form.len as f64, self.form.shape.slots() as f64)
    }
}

impl Form {
    /// Describes the table.
    fn info(&self) -> TableInfo {
        TableInfo::new(&self.shape, self.len, self.shape.geometry.segments as usize * self.segment_len, 0)
    }

    /// Returns a place in this table, and the words of its segment among these.
    #[inline(always)]
    fn locate<'a, C: Codec>(&self, _: C, segments: &'a [u8], at: impl ToPlace) -> (Place, Bytes<'a>) {
        let place = at.place(&self.shape.geometry, C::FINGERPRINT_BITS);
        (place, SegmentBytes::words_at(segments, place.segment as usize * self.segment_len))
    }
}

impl<'a> FilterView<'a> {
    /// The filter in these bytes: the result of [`CuckooFilter::to_bytes`](crate::CuckooFilter::to_bytes) or
    /// [`ScalableCuckooFilter::to_bytes`](crate::ScalableCuckooFilter::to_bytes). Reads all of them once. With a hash function
    /// other than the default, use [`from_bytes_as`](Self::from_bytes_as).
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
    /// As [`from_bytes`](FilterView::from_bytes), for a filter with this hash function.
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
        Ok(FilterView { tables: Tables::One(table), hasher })
    }

    /// Reads all tables of a growing filter.
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
        Ok(FilterView { tables: Tables::Chain(tables), hasher })
    }

    /// Returns the hash of a key, for the `_hash` forms.
    #[inline]
    pub fn hash<Q: Hash + ?Sized>(&self, key: &Q) -> u64 {
        self.hasher.hash_one(key)
    }

    /// Returns the hash of bytes, for the `_hash` forms.
    #[inline]
    pub fn hash_bytes(&self, key: &[u8]) -> u64 {
        hash_bytes(&self.hasher, key)
    }

    /// Returns whether a key is present: `false` is certain; `true` is wrong at the false-positive rate.
    #[inline]
    pub fn contains<Q: Hash + ?Sized>(&self, key: &Q) -> bool {
        self.contains_hash(self.hash(key))
    }

    /// Returns whether the bytes of a key are present.
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

    /// Looks many keys up: `found[i]` becomes the result of `contains(&keys[i])`. Their waits for memory overlap, but not those
    /// for a file that is mapped.
    ///
    /// # Panics
    ///
    /// If the slices differ in length.
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

    /// As [`FilterView::contains_many`], for the bytes of keys.
    ///
    /// # Panics
    ///
    /// If the slices differ in length.
    #[track_caller]
    pub fn contains_many_bytes<Q: AsRef<[u8]>>(&self, keys: &[Q], found: &mut [bool]) {
        assert_answers("contains_many_bytes", keys, found);
        self.contains_batches(keys, found, |key| Digest::new(self.hash_bytes(key.as_ref())));
    }

    /// Returns how often a key was inserted and not removed.
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

    /// Returns how often the bytes of a key were inserted and not removed.
    pub fn count_bytes(&self, key: &[u8]) -> usize {
        self.count_hash(self.hash_bytes(key))
    }
}

impl<'a, S> FilterView<'a, S> {
    /// As `contains`, for a key whose hash you have.
    #[inline]
    pub fn contains_hash(&self, hash: u64) -> bool {
        self.tables.contains(Digest::new(hash), |segments| segments)
    }

    /// As `contains_many`, for keys whose hashes you have.
    ///
    /// # Panics
    ///
    /// If the slices differ in length.
    #[track_caller]
    pub fn contains_many_hash(&self, hashes: &[u64], found: &mut [bool]) {
        assert_answers("contains_many_hash", hashes, found);
        self.contains_batches(hashes, found, |hash| Digest::new(*hash));
    }

    fn contains_batches<T>(&self, items: &[T], found: &mut [bool], digest: impl Fn(&T) -> Digest) {
        for (digests, found) in batches(items, found, digest) {
            let all = all_missing(found);
            let missing = match &self.tables {
                Tables::One(table) => table.contains_missing::<WholeDigest>(&digests, all),
                Tables::Chain(tables) => tables
                    .iter()
                    .fold(all, |missing, table| table.contains_missing::<Digest>(&digests, missing)),
            };
            tell_found(missing, found);
        }
    }

    /// As `count`, for a key whose hash you have.
    pub fn count_hash(&self, hash: u64) -> usize {
        let digest = Digest::new(hash);
        self.tables.as_slice().iter().map(|table| table.count(digest)).sum()
    }

    /// Returns the number of keys.
    ///
    /// ```
    /// let bytes = koel::CuckooFilter::from_keys(["ada", "grace"], 0.001)?.to_bytes();
    /// assert_eq!(koel::FilterView::from_bytes(&bytes)?.len(), 2);
    /// # Ok::<(), koel::FilterError>(())
    /// ```
    pub fn len(&self) -> usize {
        self.tables.len()
    }

    /// Returns whether there are no keys.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of slots.
    pub fn capacity(&self) -> usize {
        let slots = self.tables.as_slice().iter().map(|table| table.form.shape.slots() as usize);
        slots.fold(0, usize::saturating_add)
    }

    /// Returns the hash function.
    pub fn hasher(&self) -> &S {
        &self.hasher
    }

    /// Describes the tables that are looked up. Reads none of the bytes.
    ///
    /// ```
    /// let filter = koel::CuckooFilter::from_keys(0..1000, 0.001)?;
    /// let bytes = filter.to_bytes();
    /// let info = koel::FilterView::from_bytes(&bytes)?.info();
    /// let (table, of_filter) = (&info.tables[0], filter.info());
    /// assert_eq!((info.scalable, table.len, table.slots), (false, 1000, of_filter.slots));
    /// println!("{info}");
    /// # Ok::<(), koel::FilterError>(())
    /// ```
    pub fn info(&self) -> ViewInfo {
        self.tables.info()
    }

    /// Returns the expected false-positive rate.
    pub fn false_positive_rate(&self) -> f64 {
        match self.tables.as_slice() {
            [table] => table.rate(),
            tables => rate_of_any(tables.iter().map(Table::rate)),
        }
    }
}

/// A function of its own, as is that of most layouts, so that a filter of one table saves no registers for it.
#[inline(never)]
fn any_contains<'b, B>(tables: &[Table<B>], digest: Digest, bytes: impl Fn(&B) -> &'b [u8] + Copy) -> bool {
    tables.iter().any(|table| table.contains(digest, bytes))
}

/// `bytes` is called by the task, not before it, so that the task of a view, whose tables have their bytes, is just a table and
/// what is looked for: if it were more, it would be passed in memory.
struct Contains<'a, B, S, F> {
    table: &'a Table<B>,
    at: S,
    bytes: F,
}

impl<'b, B, S: ToPlace, F: Fn(&B) -> &'b [u8]> Task for Contains<'_, B, S, F> {
    type Output = bool;

    #[inline(always)]
    fn run<C: Codec>(self, codec: C) -> bool {
        let Table { form, segments } = self.table;
        let (place, words) = form.locate(codec, (self.bytes)(segments), self.at);
        codec.pair_has(words, place.first, place.second, place.fingerprint)
    }
}

struct ContainsMissing<'a, S> {
    table: &'a Table<&'a [u8]>,
    digests: &'a [Digest; BATCH],
    missing: u32,
    at: PhantomData<S>,
}

impl<S: ToPlace + From<Digest>> Task for ContainsMissing<'_, S> {
    type Output = u32;

    fn run<C: Codec>(self, codec: C) -> u32 {
        let Table { form, segments } = self.table;
        let mut located = [(Place::default(), Bytes(&[])); BATCH];
        for i in ones(self.missing) {
            located[i] = form.locate(codec, segments, S::from(self.digests[i]));
            let (place, words) = located[i];
            for bucket in [place.first, place.second] {
                prefetch(words.address(u64::from(bucket) * u64::from(codec.bucket_bits())));
            }
        }
        ones(self.missing).fold(self.missing, |missing, i| {
            let (place, words) = located[i];
            let is_here = codec.pair_has(words, place.first, place.second, place.fingerprint);
            missing & !(u32::from(is_here) << i)
        })
    }
}

struct Count<'a, S> {
    table: &'a Table<&'a [u8]>,
    at: S,
}

impl<S: ToPlace> Task for Count<'_, S> {
    type Output = u32;

    fn run<C: Codec>(self, codec: C) -> u32 {
        let (place, words) = self.table.form.locate(codec, self.table.segments, self.at);
        let count = |bucket| codec.count(codec.load(words, bucket), place.fingerprint);
        count(place.first) + count(place.second)
    }
}

impl<S> fmt::Debug for FilterView<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FilterView")
            .field("tables", &self.tables.as_slice().len())
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}
