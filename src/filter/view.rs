//! [`FilterView`]: a filter in bytes that stay where they are.

use core::fmt;
use core::hash::{Hash, Hasher};

use super::codec::Codec;
use super::error::{BytesError, FilterError};
use super::format::{HEADER_LEN, Header, SegmentBytes};
use super::geometry::Place;
use super::hasher::{FilterHasher, Xxh3};
use super::layout::{Layout, Task};
use super::sizing::rate_at;
use super::words::Bytes;
use crate::hash::Digest;

/// A filter that is looked up in its bytes, without a copy: of a file that is mapped into memory, or a part of a larger
/// one. At any address: nothing needs to be aligned.
///
/// ```
/// use koel::{CuckooFilter, FilterView};
///
/// let bytes = CuckooFilter::from_keys(["ada", "grace"], 0.001)?.to_bytes();
/// let view = <FilterView>::from_bytes(&bytes)?;
/// assert!(view.contains("ada") && !view.contains("mary"));
/// assert_eq!(view.len(), 2);
/// # Ok::<(), koel::FilterError>(())
/// ```
#[derive(Clone, Copy)]
pub struct FilterView<'a, S = Xxh3> {
    header: Header,
    layout: Layout,
    segments: &'a [u8],
    len: usize,
    hasher: S,
}

impl<'a, S: FilterHasher> FilterView<'a, S> {
    /// The filter in these bytes. Reads all of them once.
    ///
    /// # Errors
    ///
    /// As [`CuckooFilter::from_bytes`](crate::CuckooFilter::from_bytes).
    pub fn from_bytes(bytes: &'a [u8]) -> Result<Self, FilterError> {
        let header = Header::parse(bytes)?;
        let (expected, found) = (header.filter_len(), bytes.len() as u64);
        if expected != found {
            return Err(BytesError::Length { expected, found }.into());
        }
        if header.shape.geometry.alternate_bits != header.shape.geometry.fingerprint_bits {
            return Err(BytesError::Layout.into());
        }
        let hasher = header.hasher()?;
        let segments = &bytes[HEADER_LEN..];
        let mut len = 0;
        for (segment, bytes) in (0..).zip(segments.chunks_exact(header.segment_len())) {
            len += header.read_segment(segment, bytes)?.len;
        }
        Ok(FilterView { header, layout: Layout::new(header.shape.format), segments, len, hasher })
    }

    /// The hash of a key, for the `_hash` forms.
    #[inline]
    pub fn hash<Q: Hash + ?Sized>(&self, key: &Q) -> u64 {
        self.hasher.hash_one(key)
    }

    /// The hash of bytes, for the `_hash` forms.
    #[inline]
    pub fn hash_bytes(&self, key: &[u8]) -> u64 {
        let mut hasher = self.hasher.build_hasher();
        hasher.write(key);
        hasher.finish()
    }

    /// Whether a key is there: false is certain; true is wrong at the false-positive rate.
    #[inline]
    pub fn contains<Q: Hash + ?Sized>(&self, key: &Q) -> bool {
        self.contains_hash(self.hash(key))
    }

    /// Whether the bytes of a key are there.
    #[inline]
    pub fn contains_bytes(&self, key: &[u8]) -> bool {
        self.contains_hash(self.hash_bytes(key))
    }

    /// How often a key was inserted and not removed.
    pub fn count<Q: Hash + ?Sized>(&self, key: &Q) -> usize {
        self.count_hash(self.hash(key))
    }
}

impl<'a, S> FilterView<'a, S> {
    /// `contains` of a key whose hash you have.
    #[inline]
    pub fn contains_hash(&self, hash: u64) -> bool {
        let (place, words) = self.locate(hash);
        self.layout.run(Contains { words, place })
    }

    /// `count` of a key whose hash you have.
    pub fn count_hash(&self, hash: u64) -> usize {
        let (place, words) = self.locate(hash);
        self.layout.run(Count { words, place }) as usize
    }

    /// How many keys there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no keys.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// How many slots there are.
    pub fn capacity(&self) -> usize {
        self.header.shape.slots() as usize
    }

    /// The expected false-positive rate.
    pub fn false_positive_rate(&self) -> f64 {
        rate_at(self.header.shape.format, self.len as f64 / self.capacity() as f64)
    }

    #[inline]
    fn locate(&self, hash: u64) -> (Place, Bytes<'a>) {
        let place = self.header.shape.geometry.place(Digest::new(hash));
        let len = self.header.segment_len();
        let at = place.segment as usize * len;
        (place, SegmentBytes::of_checked(&self.segments[at..at + len]).words)
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
        codec.either_has(codec.load(self.words, first), codec.load(self.words, second), fingerprint)
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
            .field("header", &self.header)
            .field("len", &self.len)
            .finish_non_exhaustive()
    }
}
