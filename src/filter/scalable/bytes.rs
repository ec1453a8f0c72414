//! Growing filters to bytes and back: see `format`.

use std::io::{self, Read, Write};
use std::path::Path;

use super::super::bytes::{copied, read_file};
use super::super::chunks::{Chunks, Held};
use super::super::error::{BytesError, FilterError};
use super::super::format::{ChainHeader, all_read};
use super::super::hasher::FilterHasher;
use super::super::loader::ChunkLoader;
use super::super::plan::Plan;
use super::chain::{Chain, Level};
use super::filter::ScalableCuckooFilter;
use super::turns::Turns;
use crate::file;

impl ScalableCuckooFilter {
    /// Restores the filter that was made into these bytes, including its seed. With a hash function other than the default, use
    /// [`from_bytes_as`](Self::from_bytes_as).
    ///
    /// # Errors
    ///
    /// As [`CuckooFilter::from_bytes`](crate::CuckooFilter::from_bytes).
    ///
    /// ```
    /// let filter = koel::ScalableCuckooFilter::from_keys_bytes(["ada"], 0.001)?;
    /// let copy = koel::ScalableCuckooFilter::from_bytes(&filter.to_bytes())?;
    /// assert!(copy.contains_bytes(b"ada"));
    /// # Ok::<(), koel::FilterError>(())
    /// ```
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, FilterError> {
        Self::from_bytes_as(bytes)
    }

    /// Reads a filter that [`ScalableCuckooFilter::write_to`] wrote, and not a byte more. With a hash function other than the
    /// default, use [`read_from_as`](Self::read_from_as).
    ///
    /// # Errors
    ///
    /// As [`CuckooFilter::read_from`](crate::CuckooFilter::read_from).
    ///
    /// ```
    /// use koel::ScalableCuckooFilter;
    ///
    /// // Two filters in one stream.
    /// let mut stream = Vec::new();
    /// ScalableCuckooFilter::from_keys(["ada"], 0.001)?.write_to(&mut stream)?;
    /// ScalableCuckooFilter::from_keys(["grace"], 0.001)?.write_to(&mut stream)?;
    /// let mut reader = &stream[..];
    /// assert!(ScalableCuckooFilter::read_from(&mut reader)?.contains("ada"));
    /// assert!(ScalableCuckooFilter::read_from(&mut reader)?.contains("grace"));
    /// # Ok::<(), koel::FilterError>(())
    /// ```
    pub fn read_from(reader: impl Read) -> Result<Self, FilterError> {
        Self::read_from_as(reader)
    }

    /// Reads the filter that [`save`](Self::save) or [`write_to`](Self::write_to) has written to a file. With a hash function
    /// other than the default, use [`open_as`](Self::open_as).
    ///
    /// # Errors
    ///
    /// As [`CuckooFilter::open`](crate::CuckooFilter::open).
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// let path = folder.path().join("names.filter");
    /// koel::ScalableCuckooFilter::from_keys(["ada", "grace"], 0.001)?.save(&path)?;
    /// let filter = koel::ScalableCuckooFilter::open(&path)?;
    /// assert!(filter.contains("ada"));
    /// # Ok::<(), koel::FilterError>(())
    /// ```
    pub fn open(path: impl AsRef<Path>) -> Result<Self, FilterError> {
        Self::open_as(path)
    }
}

impl<S: FilterHasher> ScalableCuckooFilter<S> {
    /// Returns the filter as bytes; [`ScalableCuckooFilter::from_bytes`] makes a filter from them again, and
    /// [`FilterView`](crate::FilterView) looks up in them.
    ///
    /// As [`CuckooFilter::to_bytes`](crate::CuckooFilter::to_bytes): others may write to the filter meanwhile. A compaction
    /// has to wait.
    ///
    /// ```
    /// use koel::ScalableCuckooFilter;
    ///
    /// let filter = ScalableCuckooFilter::from_keys(["ada", "grace"], 0.001)?;
    /// let copy = ScalableCuckooFilter::from_bytes(&filter.to_bytes())?;
    /// copy.insert("mary").unwrap(); // it goes on growing
    /// assert!(copy.contains("ada") && copy.len() == 3);
    /// # Ok::<(), koel::FilterError>(())
    /// ```
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let _moving = self.moving.lock();
        self.chunks().into_bytes()
    }

    /// Writes the result of [`ScalableCuckooFilter::to_bytes`], a segment at a time, and flushes the writer. To write it to a
    /// file that is complete at any time, use [`save`](Self::save).
    ///
    /// Compactions, clones, and other threads that write the filter out have to wait, however slow the writer is; look-ups,
    /// insertions, removals and [`clear`](ScalableCuckooFilter::clear) go on. A writer that compacts, copies or writes the
    /// filter that it is writing waits for itself, forever.
    ///
    /// # Errors
    ///
    /// The writer's error.
    ///
    /// ```
    /// use koel::ScalableCuckooFilter;
    ///
    /// let mut stream = Vec::new();
    /// ScalableCuckooFilter::from_keys(["ada", "grace"], 0.001)?.write_to(&mut stream)?;
    /// let filter = ScalableCuckooFilter::read_from(&stream[..])?;
    /// assert!(filter.contains("ada"));
    /// # Ok::<(), koel::FilterError>(())
    /// ```
    pub fn write_to(&self, mut writer: impl Write) -> io::Result<()> {
        let _moving = self.moving.lock();
        self.chunks().write_to(&mut writer)
    }

    /// Writes the filter to a file, which is complete at any time, as [`CuckooFilter::save`](crate::CuckooFilter::save) does.
    /// [`write_to`](Self::write_to) says which operations have to wait meanwhile.
    ///
    /// # Errors
    ///
    /// As [`CuckooFilter::save`](crate::CuckooFilter::save).
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// let path = folder.path().join("names.filter");
    /// let filter = koel::ScalableCuckooFilter::from_keys(["ada", "grace"], 0.001)?;
    /// filter.save(&path)?;
    /// filter.remove("ada");
    /// filter.save(&path)?; // replaces the other
    /// assert_eq!(koel::ScalableCuckooFilter::open(&path)?.len(), 1);
    /// # Ok::<(), koel::FilterError>(())
    /// ```
    pub fn save(&self, path: impl AsRef<Path>) -> io::Result<()> {
        file::replace(path.as_ref(), |file| self.write_to(file))
    }

    /// As [`from_bytes`](Self::from_bytes), for a filter with this hash function.
    ///
    /// # Errors
    ///
    /// As [`CuckooFilter::from_bytes`](crate::CuckooFilter::from_bytes).
    pub fn from_bytes_as(bytes: &[u8]) -> Result<Self, FilterError> {
        let mut rest = bytes;
        let filter = Self::read_from_as(&mut rest)?;
        all_read(bytes, rest)?;
        Ok(filter)
    }

    /// As [`read_from`](Self::read_from), for a filter with this hash function.
    ///
    /// # Errors
    ///
    /// As [`CuckooFilter::read_from`](crate::CuckooFilter::read_from).
    pub fn read_from_as(mut reader: impl Read) -> Result<Self, FilterError> {
        ChunkLoader::read(&mut reader, true)?.finish_scalable()
    }

    /// As [`open`](Self::open), for a filter with this hash function.
    ///
    /// # Errors
    ///
    /// As [`CuckooFilter::open`](crate::CuckooFilter::open).
    pub fn open_as(path: impl AsRef<Path>) -> Result<Self, FilterError> {
        read_file(path.as_ref(), |file| Self::read_from_as(file))
    }

    /// Returns the filter in chunks, as [`CuckooFilter::chunks`](crate::CuckooFilter::chunks) does: chunk 0 is the header; then
    /// comes each table, the newest first, as a header and its segments.
    ///
    /// The chunks are those of the current tables. A key that nobody touches is in them, even if the filter grows or is
    /// compacted meanwhile; a key that a compaction moves after its chunk was made may be in them twice.
    pub fn chunks(&self) -> Chunks<'_, S> {
        self.chunks_from(0)
    }

    /// Returns the chunks from number `next` on, which is what [`ChunkLoader::next`] reports as missing.
    ///
    /// If a table was added or given back since the first chunk was made, the transfer may have to start over: the loader
    /// refuses a chunk, or never gets all that it needs.
    pub fn chunks_from(&self, next: u32) -> Chunks<'_, S> {
        let levels = self.chain.levels().to_vec();
        let chain = ChainHeader { tables: levels.len() as u32, max_duplicates: self.max_duplicates };
        let tables = levels.into_iter().map(|level| Held::Shared(level.inner));
        Chunks::new(Some(chain), tables, &self.hasher, next)
    }
}

impl<S: FilterHasher> ChunkLoader<S> {
    /// Returns the growing filter.
    ///
    /// # Errors
    ///
    /// [`FilterError::Bytes`] if chunks are missing, or are those of a filter of fixed capacity; [`FilterError::OutOfMemory`].
    /// The loaded chunks are then lost: [`try_finish_scalable`](Self::try_finish_scalable) hands them back.
    pub fn finish_scalable(self) -> Result<ScalableCuckooFilter<S>, FilterError> {
        self.try_finish_scalable().map_err(|(_, error)| error)
    }

    /// Returns the growing filter; or the loader as it was, and the reason why there is none, as
    /// [`try_finish`](Self::try_finish) does.
    ///
    /// # Errors
    ///
    /// As [`finish_scalable`](Self::finish_scalable).
    ///
    /// ```
    /// let filter = koel::ScalableCuckooFilter::from_keys(0..1000, 0.001)?;
    /// let mut loader = koel::ChunkLoader::new();
    /// for chunk in filter.chunks() {
    ///     loader.load(&chunk)?;
    /// }
    /// // Nobody has asked of which kind it is.
    /// let (loader, error) = loader.try_finish().unwrap_err();
    /// assert!(error.to_string().contains("a `ScalableCuckooFilter`"));
    /// assert!(loader.finish_scalable()?.contains(&7));
    /// # Ok::<(), koel::FilterError>(())
    /// ```
    pub fn try_finish_scalable(mut self) -> Result<ScalableCuckooFilter<S>, (Self, FilterError)> {
        let made = self.make_scalable();
        made.map_err(|error| (self, error))
    }

    /// The loaded tables are taken last: `load` has checked that they are a chain's.
    fn make_scalable(&mut self) -> Result<ScalableCuckooFilter<S>, FilterError> {
        let turns = Turns::new()?;
        let (tables, hasher, max_duplicates) = self.take_parts(true)?;
        let mut common = None;
        let mut levels = Vec::new();
        for inner in tables {
            let (plan, index) = Plan::of(&inner.shape()).ok_or(BytesError::Layout)?;
            common = Some(plan);
            levels.push(Level::new(inner, index));
        }
        let plan = common.ok_or(BytesError::Layout)?;
        Ok(ScalableCuckooFilter::with_chain(turns, plan, Chain::new(levels), max_duplicates, hasher))
    }
}

/// Copies the filter segment by segment: each as it is when the copy reaches it, and locked meanwhile. A compaction has to
/// wait. Panics where the clone of a [`CuckooFilter`](crate::CuckooFilter) does.
impl<S: Clone> Clone for ScalableCuckooFilter<S> {
    #[track_caller]
    fn clone(&self) -> Self {
        // User code: before anything is locked.
        let hasher = self.hasher.clone();
        let _moving = self.moving.lock();
        let mut copies = Vec::new();
        for level in self.chain.levels().to_vec() {
            copies.push(Level::new(copied(&level.inner), level.index));
        }
        let turns = Turns::new().unwrap_or_else(|error| panic!("{error}"));
        let copy = Self::with_chain(turns, self.plan, Chain::new(copies), self.max_duplicates, hasher);
        copy.set_max_memory(self.max_memory());
        copy
    }
}
