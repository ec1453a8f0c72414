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
    /// The filter that was made into these bytes. The seed comes with them. With another hash function than the
    /// default one take [`from_bytes_as`](Self::from_bytes_as).
    ///
    /// # Errors
    ///
    /// [`FilterError::Bytes`] if they are not a filter's, whole and undamaged, with this hash function. Damage is
    /// found by checksums, and what has been made to deceive them does no harm either: memory is asked for in proportion
    /// to the bytes, and nothing in them can cause a panic. [`FilterError::OutOfMemory`] if there is none for the filter.
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

    /// Reads what [`CuckooFilter::write_to`] wrote, and not a byte more. With another hash function than the
    /// default one take [`read_from_as`](Self::read_from_as).
    ///
    /// # Errors
    ///
    /// As [`CuckooFilter::from_bytes`]; [`FilterError::Io`] with the reader's error. Memory is asked for as bytes arrive.
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

    /// The filter that [`save`](Self::save) has written to a file, or [`write_to`](Self::write_to). With another hash function
    /// than the default one take [`open_as`](Self::open_as).
    ///
    /// # Errors
    ///
    /// As [`CuckooFilter::from_bytes`]; [`FilterError::Io`], which names the file, if there is none or it cannot be read.
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
    /// The filter as bytes; [`CuckooFilter::from_bytes`] makes a filter of them again.
    ///
    /// The format is the same on every platform, and later versions of this library will read it:
    /// `docs/filter-format.md` has it byte by byte. Others may write to the filter meanwhile: a key that nobody touches
    /// is in the bytes if it is in the filter. Each segment is locked while it is copied.
    ///
    /// Where there is no memory for all bytes at once the process ends, as with any `Vec`: `write_to` and `chunks` make do
    /// with that of one segment.
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

    /// Writes what [`CuckooFilter::to_bytes`] gives, a segment at a time, and flushes the writer: so the error of one that
    /// keeps bytes back, as a `BufWriter` does, is not lost when it is dropped.
    /// To a file, [`save`](Self::save) writes it so that it is whole at any time.
    ///
    /// # Errors
    ///
    /// The writer's.
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

    /// Writes the filter to a file that is made anew beside that at `path`, or beside what that leads to if it is a link, and
    /// gives it its name when all is on the disk: whoever opens it meanwhile, or after a power failure, finds the old file or
    /// the new one, whole, and who has mapped the old one keeps it. It has the permissions of the old one, if there is one.
    ///
    /// What [`write_to`](Self::write_to) writes; [`open`](CuckooFilter::open) reads it. Where the process is killed, a file
    /// with `.new-` and sixteen digits at the end of its name may be left, until another is saved an hour later.
    ///
    /// # Errors
    ///
    /// The file system's, with the file's name; [`io::ErrorKind::InvalidInput`] if there is something at `path` that is not a
    /// file. What was there stays, unless only the folder could not be synced: then the new one is there.
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// let path = folder.path().join("names.filter");
    /// let filter = koel::CuckooFilter::from_keys(["ada", "grace"], 0.001)?;
    /// filter.save(&path)?;
    /// filter.remove("ada");
    /// filter.save(&path)?; // in the place of the other
    /// assert_eq!(koel::CuckooFilter::open(&path)?.len(), 1);
    /// # Ok::<(), koel::FilterError>(())
    /// ```
    pub fn save(&self, path: impl AsRef<Path>) -> io::Result<()> {
        file::replace(path.as_ref(), |file| self.write_to(file))
    }

    /// [`from_bytes`](Self::from_bytes), of a filter with this hash function.
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

    /// [`read_from`](Self::read_from), of a filter with this hash function.
    ///
    /// # Errors
    ///
    /// As [`CuckooFilter::read_from`](crate::CuckooFilter::read_from).
    pub fn read_from_as(mut reader: impl Read) -> Result<Self, FilterError> {
        ChunkLoader::read(&mut reader, false)?.finish()
    }

    /// [`open`](Self::open), of a filter with this hash function.
    ///
    /// # Errors
    ///
    /// As [`CuckooFilter::open`](crate::CuckooFilter::open).
    pub fn open_as(path: impl AsRef<Path>) -> Result<Self, FilterError> {
        read_file(path.as_ref(), |file| Self::read_from_as(file))
    }

    /// The filter in chunks of at most some megabytes, for a transfer that may have to be resumed; a [`ChunkLoader`]
    /// takes them. One after another they are what [`CuckooFilter::to_bytes`] gives.
    ///
    /// Chunk 0 is the header, and chunk `i` segment `i - 1`, as it is when the iterator comes to it.
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

    /// The chunks from number `next` on: what [`ChunkLoader::next`] says it is missing.
    pub fn chunks_from(&self, next: u32) -> Chunks<'_, S> {
        Chunks::new(None, [Held::Borrowed(&self.inner)], &self.hasher, next)
    }
}

/// What is read of a file, if it is all that is in it. Errors in reading name the file.
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
    /// The filter.
    ///
    /// # Errors
    ///
    /// [`FilterError::Bytes`] if chunks are missing, or are those of a growing filter; [`FilterError::OutOfMemory`]. What was
    /// loaded is gone then: [`try_finish`](Self::try_finish) hands it back.
    pub fn finish(self) -> Result<CuckooFilter<S>, FilterError> {
        self.try_finish().map_err(|(_, error)| error)
    }

    /// The filter; or the loader as it was, and why there is none: the chunks that are missing may still come, and so may
    /// memory.
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

/// Copies the filter segment by segment: each as it is when the copy comes to it, and locked meanwhile. Panics if there is no
/// memory for it.
///
/// ```
/// use std::hash::RandomState;
///
/// // Keyed: nobody knows which keys it takes for others.
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

/// A copy of a table; panics if there is no memory for it.
#[track_caller]
pub(super) fn copied(inner: &Inner) -> Inner {
    match inner.copy() {
        Ok(copy) => copy,
        Err(error) => panic!("{error}"),
    }
}
