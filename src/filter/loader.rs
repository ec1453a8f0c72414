//! Putting a filter's tables together from its chunks.

use core::fmt;
use core::marker::PhantomData;
use core::mem::take;
use std::io::Read;

use super::collect::{push, reserve, with_room};
use super::error::{BytesError, FilterError};
use super::format::{ChainHeader, HEADER_LEN, Header, SegmentBytes, check_len};
use super::hasher::{FilterHasher, Xxh3};
use super::inner::Inner;
use super::locked::Locked;
use super::plan::Lineage;

/// The number of bytes that are requested before any has come.
const FIRST_READ: usize = 4096;

/// Puts a filter of either kind together from its chunks, in order. A refused chunk changes nothing: the right chunk may still
/// come.
///
/// A transfer is resumed from the filter with which it began. Chunks of another filter that was built alike, with the same
/// seed, cannot be told from its own, and a filter that is put together from both misses keys of both. Chunks of a filter with
/// another seed are refused, as damaged or as made with another seed: if a chunk that is sent once more is refused again, start
/// over with a new loader.
///
/// ```
/// use koel::{ChunkLoader, CuckooFilter, ScalableCuckooFilter};
///
/// let filter = CuckooFilter::from_keys(0..1000, 0.001)?;
/// let mut loader = ChunkLoader::new();
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
///
/// let growing = ScalableCuckooFilter::from_keys(0..1000, 0.001)?;
/// let mut loader = ChunkLoader::new();
/// for chunk in growing.chunks() {
///     loader.load(&chunk)?;
/// }
/// let copy = loader.finish_scalable()?;
/// assert!((0..1000).all(|key| copy.contains(&key)));
/// # Ok::<(), koel::FilterError>(())
/// ```
pub struct ChunkLoader<S = Xxh3> {
    chain: Option<ChainHeader>,
    lineage: Lineage,
    /// Newest first; all but the last are complete.
    tables: Vec<Loaded>,
    taken: u32,
    /// Made from the seed in each header: a loader that is returned in an error should be small.
    hasher: PhantomData<S>,
}

/// The part of a table that has come: its header and checked bytes of segments.
struct Loaded {
    header: Header,
    segments: Vec<Vec<u8>>,
    /// The table that was made from all segments, which are then gone; there may have been no memory for the next table.
    made: Option<Inner>,
}

impl Loaded {
    fn is_complete(&self) -> bool {
        self.made.is_some() || self.segments.len() == self.header.segments() as usize
    }

    /// Makes the table from its segments, all of which are present; if there is no memory for it, they stay.
    fn make(&mut self) -> Result<(), FilterError> {
        if self.made.is_none() {
            let inner = Inner::new(self.header.shape, None)?;
            for (segment, bytes) in (0..).zip(take(&mut self.segments)) {
                let bytes = SegmentBytes::of_checked(&bytes);
                Locked::lock(&inner.table, segment).set_words(bytes.all_words(), bytes.len);
            }
            self.made = Some(inner);
        }
        Ok(())
    }
}

impl<S> Default for ChunkLoader<S> {
    fn default() -> Self {
        ChunkLoader {
            chain: None,
            lineage: Lineage::default(),
            tables: Vec::new(),
            taken: 0,
            hasher: PhantomData,
        }
    }
}

impl ChunkLoader {
    /// Makes a loader that has loaded nothing yet. For a filter with a hash function other than the default, use
    /// `ChunkLoader::default`.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

impl<S: FilterHasher> ChunkLoader<S> {
    /// Reads all chunks of a filter of this kind, and not a byte more.
    pub(crate) fn read(reader: &mut impl Read, growing: bool) -> Result<Self, FilterError> {
        let mut loader = Self::default();
        let mut chunk = Vec::new();
        while let Some(len) = loader.next_len() {
            chunk.clear();
            read_up_to(reader, len, &mut chunk)?;
            loader.load(&chunk)?;
            if loader.is_scalable() != growing {
                return Err(BytesError::Kind { scalable: !growing }.into());
            }
        }
        Ok(loader)
    }

    /// Returns the number of the chunk that comes next.
    #[must_use]
    pub fn next(&self) -> u32 {
        self.taken
    }

    /// Returns the number of bytes of the chunk that comes next; `None` if there is none.
    ///
    /// ```
    /// use std::io::Read;
    ///
    /// use koel::{ChunkLoader, CuckooFilter};
    ///
    /// // From a stream that does not say where a chunk ends.
    /// let bytes = CuckooFilter::from_keys(["ada", "grace"], 0.001)?.to_bytes();
    /// let (mut reader, mut loader) = (&bytes[..], ChunkLoader::new());
    /// while let Some(len) = loader.next_len() {
    ///     let mut chunk = vec![0; len];
    ///     reader.read_exact(&mut chunk)?;
    ///     loader.load(&chunk)?;
    /// }
    /// let copy = loader.finish()?;
    /// assert!(copy.contains("ada"));
    /// # Ok::<(), koel::FilterError>(())
    /// ```
    #[must_use]
    pub fn next_len(&self) -> Option<usize> {
        match self.tables.last() {
            Some(table) if !table.is_complete() => Some(table.header.segment_len()),
            _ if self.tables.len() < self.chain.map_or(1, |chain| chain.tables) as usize => Some(HEADER_LEN),
            _ => None,
        }
    }

    /// Returns whether all chunks were taken, as [`finish`](Self::finish) requires.
    ///
    /// ```
    /// let filter = koel::CuckooFilter::from_keys(["ada"], 0.001)?;
    /// let (mut loader, mut chunks) = (koel::ChunkLoader::new(), filter.chunks());
    /// while !loader.is_complete() {
    ///     loader.load(&chunks.next().unwrap())?;
    /// }
    /// assert!(loader.finish()?.contains("ada"));
    /// # Ok::<(), koel::FilterError>(())
    /// ```
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.next_len().is_none()
    }

    /// Returns whether the chunks are those of a [`ScalableCuckooFilter`](crate::ScalableCuckooFilter), as far as is known.
    ///
    /// ```
    /// use koel::{ChunkLoader, ScalableCuckooFilter};
    ///
    /// let filter = ScalableCuckooFilter::new(0.01)?;
    /// let mut loader = ChunkLoader::new();
    /// assert!(!loader.is_scalable(), "nothing is known yet");
    /// loader.load(&filter.chunks().next().unwrap())?; // the header says it
    /// assert!(loader.is_scalable());
    /// # Ok::<(), koel::FilterError>(())
    /// ```
    #[must_use]
    pub fn is_scalable(&self) -> bool {
        self.chain.is_some()
    }

    /// Takes the next chunk.
    ///
    /// # Errors
    ///
    /// [`FilterError::Bytes`] if the chunk is damaged, or not the next one, or there is none to come;
    /// [`FilterError::OutOfMemory`]. The chunk was not taken.
    ///
    /// ```
    /// let filter = koel::CuckooFilter::from_keys(["ada"], 0.001)?;
    /// let mut loader = koel::ChunkLoader::new();
    /// for chunk in filter.chunks() {
    ///     loader.load(&chunk)?;
    /// }
    /// assert!(loader.finish()?.contains("ada"));
    /// # Ok::<(), koel::FilterError>(())
    /// ```
    pub fn load(&mut self, chunk: &[u8]) -> Result<(), FilterError> {
        let Some(expected) = self.next_len() else {
            return Err(BytesError::Length { expected: 0, found: chunk.len() as u64 }.into());
        };
        check_len(chunk, expected as u64)?;
        match self.tables.last_mut() {
            Some(table) if !table.is_complete() => {
                table.header.read_segment(table.segments.len() as u32, chunk)?;
                let mut copy = with_room(chunk.len())?;
                copy.extend_from_slice(chunk);
                push(&mut table.segments, copy)?;
            }
            _ if self.taken == 0 && ChainHeader::is_at(chunk) => {
                self.chain = Some(ChainHeader::parse(chunk)?);
            }
            _ => self.load_header(chunk)?,
        }
        self.taken += 1;
        Ok(())
    }

    fn load_header(&mut self, chunk: &[u8]) -> Result<(), FilterError> {
        let header = Header::parse(chunk)?;
        if self.tables.first().is_some_and(|first| !first.header.has_hasher_of(&header)) {
            return Err(BytesError::Hasher.into());
        }
        header.hasher::<S>()?;
        let mut lineage = self.lineage;
        if let Some(chain) = self.chain {
            lineage.meet(&header.shape, chain.tables as usize - self.tables.len() - 1)?;
        } else if !header.shape.geometry.is_whole() {
            return Err(BytesError::Layout.into());
        }
        reserve(&mut self.tables, 1)?;
        self.lineage = lineage;
        self.tables.push(Loaded { header, segments: Vec::new(), made: None });
        Ok(())
    }

    /// Takes out the loaded parts, if they are complete, and a growing filter's if that is requested: tables, the hash
    /// function, and how often a key may be in a growing filter. If the result is an error, nothing has been taken.
    pub(crate) fn take_parts(&mut self, growing: bool) -> Result<(Vec<Inner>, S, usize), FilterError> {
        if !self.is_complete() {
            return Err(BytesError::Incomplete { next: self.taken }.into());
        }
        if self.is_scalable() != growing {
            return Err(BytesError::Kind { scalable: !growing }.into());
        }
        let first = self.tables.first().ok_or(BytesError::Incomplete { next: self.taken })?;
        let hasher = first.header.hasher()?;
        let mut tables = with_room(self.tables.len())?;
        self.tables.iter_mut().try_for_each(Loaded::make)?;
        tables.extend(self.tables.drain(..).filter_map(|table| table.made));
        Ok((tables, hasher, self.chain.map_or(0, |chain| chain.max_duplicates)))
    }
}

/// Reads this many bytes, or as many as come. Memory is requested as they arrive, because foreign bytes have said how many
/// there are.
fn read_up_to(reader: &mut impl Read, len: usize, bytes: &mut Vec<u8>) -> Result<(), FilterError> {
    while bytes.len() < len {
        let more = bytes.len().max(FIRST_READ).min(len - bytes.len());
        // All of it: the standard library's reading to an end may end the process for lack of a few bytes.
        reserve(bytes, more)?;
        if reader.by_ref().take(more as u64).read_to_end(bytes)? < more {
            break;
        }
    }
    Ok(())
}

impl<S> fmt::Debug for ChunkLoader<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChunkLoader").field("next", &self.taken).finish_non_exhaustive()
    }
}

// In an error that has less than 128 bytes, to which clippy does not object.
const _: () = assert!(size_of::<ChunkLoader>() + size_of::<FilterError>() < 128);
