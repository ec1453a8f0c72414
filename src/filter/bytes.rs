//! Filters of fixed capacity to bytes and back.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::path::Path;

use super::chunks::{Chunks, Held};
use super::cuckoo::CuckooFilter;
use super::error::{BytesError, FilterError};
use super::format::{HEADER_LEN, Header, check_len};
use super::hasher::FilterHasher;
use super::inner::Inner;
use super::loader::ChunkLoader;
use super::locked::Locked;
use crate::file;

impl CuckooFilter {
    /// Restores the filter that was made into these bytes, including its seed. With a hash function other than the default, use
    /// [`from_bytes_as`](Self::from_bytes_as).
    ///
    /// # Errors
    ///
    /// [`FilterError::Bytes`] if the bytes are not a filter's, whole and undamaged, with this hash function. Damage is found by
    /// checksums, and bytes that have been made to deceive them do no harm either: memory is requested in proportion to the
    /// bytes, and nothing in them can cause a panic. [`FilterError::OutOfMemory`] if there is no memory for the filter.
    ///
    /// ```
    /// use koel::{BytesError, CuckooFilter, FilterError};
    ///
    /// let mut bytes = CuckooFilter::from_keys(["ada", "grace"], 0.001)?.to_bytes();
    /// *bytes.last_mut().unwrap() ^= 1;
    /// let error = CuckooFilter::from_bytes(&bytes).unwrap_err();
    /// assert!(matches!(error, FilterError::Bytes(BytesError::Checksum { segment: 0 })));
    /// # Ok::<(), koel::FilterError>(())
    /// ```
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, FilterError> {
        Self::from_bytes_as(bytes)
    }

    /// Reads a filter that [`CuckooFilter::write_to`] wrote, and not a byte more. With a hash function other than the default,
    /// use [`read_from_as`](Self::read_from_as).
    ///
    /// # Errors
    ///
    /// As [`CuckooFilter::from_bytes`]; [`FilterError::Io`] with the reader's error. Memory is requested as bytes arrive.
    ///
    /// ```
    /// use koel::CuckooFilter;
    ///
    /// // Two filters in one stream.
    /// let mut stream = Vec::new();
    /// CuckooFilter::from_keys(["ada"], 0.001)?.write_to(&mut stream)?;
    /// CuckooFilter::from_keys(["grace"], 0.001)?.write_to(&mut stream)?;
    /// let mut reader = &stream[..];
    /// assert!(CuckooFilter::read_from(&mut reader)?.contains("ada"));
    /// assert!(CuckooFilter::read_from(&mut reader)?.contains("grace"));
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
    /// As [`CuckooFilter::from_bytes`]; [`FilterError::Io`], which names the file, if it does not exist or cannot be read.
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// let path = folder.path().join("names.filter");
    /// koel::CuckooFilter::from_keys(["ada", "grace"], 0.001)?.save(&path)?;
    /// let filter = koel::CuckooFilter::open(&path)?;
    /// assert!(filter.contains("ada"));
    /// # Ok::<(), koel::FilterError>(())
    /// ```
    pub fn open(path: impl AsRef<Path>) -> Result<Self, FilterError> {
        Self::open_as(path)
    }
}

impl<S: FilterHasher> CuckooFilter<S> {
    /// Returns the filter as bytes; [`CuckooFilter::from_bytes`] makes a filter from them again.
    ///
    /// The format is the same on every platform, and later versions of this library will read it: `docs/filter-format.md`
    /// describes it byte by byte. Others may write to the filter meanwhile: a key that nobody touches is in the bytes if it is
    /// in the filter. Each segment is locked while it is copied.
    ///
    /// Where there is no memory for all bytes at once, the process ends, as with any `Vec`; `write_to` and `chunks` need memory
    /// for only one segment.
    ///
    /// ```
    /// use koel::CuckooFilter;
    ///
    /// let filter = CuckooFilter::from_keys(["ada", "grace"], 0.001)?;
    /// let copy = CuckooFilter::from_bytes(&filter.to_bytes())?;
    /// assert!(copy.contains("ada") && copy.len() == 2);
    /// # Ok::<(), koel::FilterError>(())
    /// ```
    #[doc(alias = "export")]
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        self.chunks().into_bytes()
    }

    /// Writes the result of [`CuckooFilter::to_bytes`], a segment at a time, and flushes the writer: so if it is one that
    /// buffers bytes, as a `BufWriter` does, its error is not lost when it is dropped. To write to a file that is complete at
    /// any time, use [`save`](Self::save).
    ///
    /// # Errors
    ///
    /// The writer's error.
    ///
    /// ```
    /// let mut stream = Vec::new();
    /// koel::CuckooFilter::from_keys(["ada", "grace"], 0.001)?.write_to(&mut stream)?;
    /// let filter = koel::CuckooFilter::read_from(&stream[..])?;
    /// assert!(filter.contains("ada"));
    /// # Ok::<(), koel::FilterError>(())
    /// ```
    pub fn write_to(&self, mut writer: impl Write) -> io::Result<()> {
        self.chunks().write_to(&mut writer)
    }

    /// Writes the filter to a new file in the same directory as the file at `path`, or as the target of `path` if it is a link,
    /// and renames it to that name when all is on the disk. A process that opens the file meanwhile, or after a power failure,
    /// finds the old file or the new one, complete, and a process that has mapped the old file keeps it. The new file has the
    /// permissions of the old one, if there is one.
    ///
    /// The contents are those that [`write_to`](Self::write_to) writes; [`open`](CuckooFilter::open) reads them. If the process
    /// is killed, a file with `.new-` and sixteen digits at the end of its name may be left, until another filter is saved an
    /// hour later.
    ///
    /// # Errors
    ///
    /// The file system's error, with the file's name; [`io::ErrorKind::InvalidInput`] if there is something at `path` that is
    /// not a file. The previous file stays, unless only the folder could not be synced: then the new file is there.
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// let path = folder.path().join("names.filter");
    /// let filter = koel::CuckooFilter::from_keys(["ada", "grace"], 0.001)?;
    /// filter.save(&path)?;
    /// filter.remove("ada");
    /// filter.save(&path)?; // replaces the other
    /// assert_eq!(koel::CuckooFilter::open(&path)?.len(), 1);
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
        let header = Header::parse(bytes)?;
        check_len(bytes, header.filter_len())?;
        if !header.shape.geometry.is_whole() {
            return Err(BytesError::Layout.into());
        }
        let hasher = header.hasher()?;
        let inner = Inner::new(header.shape, None)?;
        for (segment, bytes) in (0..).zip(bytes[HEADER_LEN..].chunks_exact(header.segment_len())) {
            let bytes = header.read_segment(segment, bytes)?;
            Locked::lock(&inner.table, segment).set_words(bytes.all_words(), bytes.len);
        }
        Ok(CuckooFilter { inner, hasher })
    }

    /// As [`read_from`](Self::read_from), for a filter with this hash function.
    ///
    /// # Errors
    ///
    /// As [`CuckooFilter::read_from`](crate::CuckooFilter::read_from).
    pub fn read_from_as(mut reader: impl Read) -> Result<Self, FilterError> {
        ChunkLoader::read(&mut reader, false)?.finish()
    }

    /// As [`open`](Self::open), for a filter with this hash function.
    ///
    /// # Errors
    ///
    /// As [`CuckooFilter::open`](crate::CuckooFilter::open).
    pub fn open_as(path: impl AsRef<Path>) -> Result<Self, FilterError> {
        read_file(path.as_ref(), |file| Self::read_from_as(file))
    }

    /// Returns the filter in chunks of at most some megabytes, for a transfer that may have to be resumed; a [`ChunkLoader`]
    /// takes them. One after another they are the result of [`CuckooFilter::to_bytes`].
    ///
    /// Chunk 0 is the header, and chunk `i` is segment `i - 1`, as it is when the iterator reaches it.
    ///
    /// ```
    /// let filter = koel::CuckooFilter::from_keys(0..1_000_000, 0.01)?;
    /// assert!(filter.chunks().len() > 2, "a header, and more than one segment");
    /// assert_eq!(filter.chunks().flatten().collect::<Vec<u8>>(), filter.to_bytes());
    /// # Ok::<(), koel::FilterError>(())
    /// ```
    pub fn chunks(&self) -> Chunks<'_, S> {
        self.chunks_from(0)
    }

    /// Returns the chunks from number `next` on, which is what [`ChunkLoader::next`] reports as missing.
    pub fn chunks_from(&self, next: u32) -> Chunks<'_, S> {
        Chunks::new(None, [Held::Borrowed(&self.inner)], &self.hasher, next)
    }
}

/// Returns what is read from a file, if there is nothing else in it. Errors in reading name the file.
pub(super) fn read_file<F>(
    path: &Path,
    read: impl FnOnce(&mut File) -> Result<F, FilterError>,
) -> Result<F, FilterError> {
    let read = || {
        let mut file = file::open(path)?;
        let filter = read(&mut file)?;
        let (expected, found) = (file.stream_position()?, file.metadata()?.len());
        if expected == found { Ok(filter) } else { Err(BytesError::Length { expected, found }.into()) }
    };
    read().map_err(|error| match error {
        FilterError::Io(error) => file::naming(path, &error).into(),
        error => error,
    })
}

impl<S: FilterHasher> ChunkLoader<S> {
    /// Returns the filter.
    ///
    /// # Errors
    ///
    /// [`FilterError::Bytes`] if chunks are missing, or are those of a growing filter; [`FilterError::OutOfMemory`]. The loaded
    /// chunks are then lost: [`try_finish`](Self::try_finish) hands them back.
    pub fn finish(self) -> Result<CuckooFilter<S>, FilterError> {
        self.try_finish().map_err(|(_, error)| error)
    }

    /// Returns the filter; or the loader as it was, and the reason why there is none: the missing chunks may still come, and so
    /// may memory.
    ///
    /// # Errors
    ///
    /// As [`finish`](Self::finish).
    ///
    /// ```
    /// let filter = koel::CuckooFilter::from_keys(0..1000, 0.001)?;
    /// let mut loader = koel::ChunkLoader::new();
    /// loader.load(&filter.chunks().next().unwrap())?;
    /// let (mut loader, error) = loader.try_finish().unwrap_err();
    /// assert!(error.to_string().contains("chunks are missing, from number 1 on"));
    /// for chunk in filter.chunks_from(loader.next()) {
    ///     loader.load(&chunk)?;
    /// }
    /// assert!(loader.finish()?.contains(&7));
    /// # Ok::<(), koel::FilterError>(())
    /// ```
    pub fn try_finish(mut self) -> Result<CuckooFilter<S>, (Self, FilterError)> {
        match self.take_parts(false) {
            Ok((tables, hasher, _)) => {
                let inner = tables.into_iter().next().expect("a complete filter has its table");
                Ok(CuckooFilter { inner, hasher })
            }
            Err(error) => Err((self, error)),
        }
    }
}

/// Copies the filter segment by segment: each as it is when the copy reaches it, and locked meanwhile. Panics if there is no
/// memory for it.
///
/// ```
/// use std::hash::RandomState;
///
/// // Keyed: nobody knows which keys it mistakes for others.
/// let filter = koel::CuckooFilter::builder().capacity(100).hasher(RandomState::new()).build()?;
/// filter.insert("ada").unwrap();
/// let copy = filter.clone();
/// filter.remove("ada");
/// assert!(copy.contains("ada"));
/// # Ok::<(), koel::FilterError>(())
/// ```
impl<S: Clone> Clone for CuckooFilter<S> {
    #[track_caller]
    fn clone(&self) -> Self {
        CuckooFilter { inner: copied(&self.inner), hasher: self.hasher.clone() }
    }
}

/// Returns a copy of a table; panics if there is no memory for it.
#[track_caller]
pub(super) fn copied(inner: &Inner) -> Inner {
    match inner.copy() {
        Ok(copy) => copy,
        Err(error) => panic!("{error}"),
    }
}
