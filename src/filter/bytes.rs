//! Filters to bytes and back, whole or by chunks.

use core::fmt;
use core::marker::PhantomData;
use std::io::{Read, Write};

use super::cuckoo::CuckooFilter;
use super::error::{BytesError, FilterError};
use super::format::{HEADER_LEN, Header, SegmentBytes};
use super::hasher::{FilterHasher, Xxh3};
use super::inner::Inner;
use super::locked::Locked;

/// The chunks of a filter's bytes.
pub(crate) fn filter_bytes<'a, S: FilterHasher>(inner: &'a Inner, hasher: &S) -> Chunks<'a, S> {
    let bytes = Header::bytes(inner.shape(), hasher);
    let header = Header::parse(&bytes).expect("a filter's own header");
    Chunks { inner, bytes, header, next: 0, hasher: PhantomData }
}

/// A filter of what is one: a table of a growing filter is not.
fn whole<S>(inner: Inner, hasher: S) -> Result<CuckooFilter<S>, FilterError> {
    let geometry = inner.table.geometry();
    if geometry.alternate_bits != geometry.fingerprint_bits {
        return Err(BytesError::Layout.into());
    }
    Ok(CuckooFilter { inner, hasher })
}

/// Reads a filter, or a table of a growing one, and not a byte more.
pub(crate) fn read_inner<S: FilterHasher>(reader: &mut impl Read) -> Result<(Inner, S), FilterError> {
    let mut loader = ChunkLoader::<S>::new();
    let mut chunk = Vec::new();
    while let Some(len) = loader.next_len() {
        chunk.clear();
        reader.by_ref().take(len as u64).read_to_end(&mut chunk)?;
        loader.load(&chunk)?;
    }
    loader.inner()
}

impl<S: FilterHasher> CuckooFilter<S> {
    /// The filter as bytes; [`CuckooFilter::from_bytes`] makes a filter of them again.
    ///
    /// The format is the same on every platform, and later versions of this library will read it:
    /// `docs/filter-format.md` has it byte by byte. Others may write to the filter meanwhile: a key that nobody touches
    /// is in the bytes if it is in the filter. Each segment is locked while it is copied.
    ///
    /// ```
    /// use koel::CuckooFilter;
    ///
    /// let filter = CuckooFilter::from_keys(["ada", "grace"], 0.001)?;
    /// let copy = <CuckooFilter>::from_bytes(&filter.to_bytes())?;
    /// assert!(copy.contains("ada") && copy.len() == 2);
    /// # Ok::<(), koel::FilterError>(())
    /// ```
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let chunks = self.chunks();
        let mut bytes = Vec::with_capacity(chunks.header.filter_len() as usize);
        chunks.for_each(|chunk| bytes.extend_from_slice(&chunk));
        bytes
    }

    /// The filter that was made into these bytes. The seed comes with them.
    ///
    /// # Errors
    ///
    /// [`FilterError::Bytes`] if they are not a filter's, whole and undamaged, with this hash function. Damage is
    /// found by checksums, and what has been made to deceive them does no harm either: memory is asked for in proportion
    /// to the bytes, and nothing in them can cause a panic.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, FilterError> {
        let header = Header::parse(bytes)?;
        let (expected, found) = (header.filter_len(), bytes.len() as u64);
        if expected != found {
            return Err(BytesError::Length { expected, found }.into());
        }
        let hasher = header.hasher()?;
        let inner = Inner::new(header.shape, false)?;
        for (segment, bytes) in (0..).zip(bytes[HEADER_LEN..].chunks_exact(header.segment_len())) {
            let bytes = header.read_segment(segment, bytes)?;
            Locked::lock(&inner.table, segment).set_words(bytes.all_words(), bytes.len);
        }
        whole(inner, hasher)
    }

    /// Writes what [`CuckooFilter::to_bytes`] gives, a segment at a time.
    ///
    /// # Errors
    ///
    /// The writer's.
    pub fn write_to(&self, mut writer: impl Write) -> std::io::Result<()> {
        self.chunks().try_for_each(|chunk| writer.write_all(&chunk))
    }

    /// Reads what [`CuckooFilter::write_to`] wrote, and not a byte more.
    ///
    /// # Errors
    ///
    /// As [`CuckooFilter::from_bytes`]; [`FilterError::Io`] with the reader's error. Memory is asked for as bytes arrive.
    pub fn read_from(mut reader: impl Read) -> Result<Self, FilterError> {
        let (inner, hasher) = read_inner(&mut reader)?;
        whole(inner, hasher)
    }

    /// The filter in chunks of at most some megabytes, for a transfer that may have to be resumed; a [`ChunkLoader`]
    /// takes them. One after another they are what [`CuckooFilter::to_bytes`] gives.
    ///
    /// Chunk 0 is the header, and chunk `i` segment `i - 1`, as it is when the iterator comes to it.
    pub fn chunks(&self) -> Chunks<'_, S> {
        self.chunks_from(0)
    }

    /// The chunks from number `next` on: what [`ChunkLoader::next`] says it is missing.
    pub fn chunks_from(&self, next: u32) -> Chunks<'_, S> {
        Chunks { next, ..filter_bytes(&self.inner, &self.hasher) }
    }
}

/// An iterator over the chunks of a filter: see [`CuckooFilter::chunks`].
pub struct Chunks<'a, S = Xxh3> {
    inner: &'a Inner,
    bytes: [u8; HEADER_LEN],
    header: Header,
    next: u32,
    hasher: PhantomData<fn() -> S>,
}

impl<S> Iterator for Chunks<'_, S> {
    type Item = Vec<u8>;

    fn next(&mut self) -> Option<Vec<u8>> {
        if self.next > self.header.segments() {
            return None;
        }
        self.next += 1;
        let Some(segment) = self.next.checked_sub(2) else { return Some(self.bytes.to_vec()) };
        let mut chunk = Vec::new();
        let locked = Locked::lock(&self.inner.table, segment);
        self.header.write_segment(segment, locked.len() as u64, locked.segment().all_words(), &mut chunk);
        Some(chunk)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = (self.header.segments() + 1).saturating_sub(self.next) as usize;
        (left, Some(left))
    }
}

impl<S> ExactSizeIterator for Chunks<'_, S> {}

impl<S> fmt::Debug for Chunks<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Chunks").field("next", &self.next).finish_non_exhaustive()
    }
}

/// Puts a filter together from its chunks, in order. What is refused changes nothing: the right chunk may still come.
///
/// ```
/// use koel::{ChunkLoader, CuckooFilter};
///
/// let filter = CuckooFilter::from_keys(0..1000, 0.001)?;
/// let mut loader: ChunkLoader = ChunkLoader::new();
/// for chunk in filter.chunks().take(1) {
///     loader.load(&chunk)?;
/// }
/// // The transfer broke off, and is resumed.
/// assert!(loader.load(b"noise").is_err());
/// for chunk in filter.chunks_from(loader.next()) {
///     loader.load(&chunk)?;
/// }
/// let copy = loader.finish()?;
/// assert!((0..1000).all(|key| copy.contains(&key)));
/// # Ok::<(), koel::FilterError>(())
/// ```
pub struct ChunkLoader<S = Xxh3> {
    header: Option<(Header, S)>,
    /// Checked bytes.
    segments: Vec<Vec<u8>>,
    hasher: PhantomData<fn() -> S>,
}

impl<S> Default for ChunkLoader<S> {
    fn default() -> Self {
        ChunkLoader { header: None, segments: Vec::new(), hasher: PhantomData }
    }
}

impl<S: FilterHasher> ChunkLoader<S> {
    /// Nothing is loaded yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The number of the chunk that comes next.
    #[must_use]
    pub fn next(&self) -> u32 {
        u32::from(self.header.is_some()) + self.segments.len() as u32
    }

    /// Bytes of the chunk that comes next; `None` if there is none.
    #[must_use]
    pub fn next_len(&self) -> Option<usize> {
        match &self.header {
            None => Some(HEADER_LEN),
            Some((header, _)) if self.segments.len() < header.segments() as usize => {
                Some(header.segment_len())
            }
            Some(_) => None,
        }
    }

    /// Takes the next chunk.
    ///
    /// # Errors
    ///
    /// [`FilterError::Bytes`] if it is damaged, or not the next one, or there is none to come. It was not taken.
    pub fn load(&mut self, chunk: &[u8]) -> Result<(), FilterError> {
        let expected = self.next_len().unwrap_or(0);
        if chunk.len() != expected {
            return Err(BytesError::Length { expected: expected as u64, found: chunk.len() as u64 }.into());
        }
        match &self.header {
            None => {
                let header = Header::parse(chunk)?;
                self.header = Some((header, header.hasher()?));
            }
            Some((header, _)) => {
                header.read_segment(self.segments.len() as u32, chunk)?;
                self.segments.push(chunk.to_vec());
            }
        }
        Ok(())
    }

    /// The filter.
    ///
    /// # Errors
    ///
    /// [`FilterError::Bytes`] if chunks are missing, [`FilterError::OutOfMemory`].
    pub fn finish(self) -> Result<CuckooFilter<S>, FilterError> {
        let (inner, hasher) = self.inner()?;
        whole(inner, hasher)
    }

    /// The filter or the table of a growing one.
    fn inner(self) -> Result<(Inner, S), FilterError> {
        let missing = BytesError::Incomplete { next: self.next() };
        let Some((header, hasher)) = self.header else { return Err(missing.into()) };
        if self.segments.len() < header.segments() as usize {
            return Err(missing.into());
        }
        let inner = Inner::new(header.shape, false)?;
        for (segment, bytes) in (0..).zip(self.segments) {
            let bytes = SegmentBytes::of_checked(&bytes);
            Locked::lock(&inner.table, segment).set_words(bytes.all_words(), bytes.len);
        }
        Ok((inner, hasher))
    }
}

impl<S> fmt::Debug for ChunkLoader<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChunkLoader").field("segments", &self.segments.len()).finish_non_exhaustive()
    }
}
