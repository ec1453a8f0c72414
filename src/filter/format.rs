//! The bytes of a filter, version 2, as `docs/filter-format.md` describes them; `plan` says which tables make a chain.
//!
//! Segments are written under their locks, one after the other. So a filter can be dumped while it is written to: each key that
//! nobody touches meanwhile is in the dump if and only if it is in the filter.

use core::hash::BuildHasher;

use twox_hash::XxHash3_64;

use super::codec::Codec;
use super::error::{BytesError, VERSION};
use super::geometry::{Geometry, MAX_BUCKETS, MAX_SEGMENTS};
use super::hasher::{FilterHasher, hash_bytes};
use super::layout::{Format, Layout, Task};
use super::sizing::Shape;
use super::table::Table;
use super::words::{Bytes, Words};

const MAGIC: [u8; 8] = *b"koelcf\r\n";
/// The magic number of a growing filter.
const CHAIN_MAGIC: [u8; 8] = *b"koelsf\r\n";
/// The largest number of tables of a growing filter: fingerprints have at most 32 bits.
const MAX_TABLES: u32 = 32;
/// Bytes of a header.
pub(crate) const HEADER_LEN: usize = 64;
/// The number of bytes of a segment in addition to its words.
const FRAME: usize = 16;

/// The content of a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) shape: Shape,
    hash_id: u32,
    seed: u64,
    hash_check: u64,
    /// The checksum of the header's bytes.
    checksum: u64,
}

/// The hash of some bytes, by which a hash function is recognized.
fn hash_check<S: BuildHasher>(hasher: &S) -> u64 {
    hash_bytes(hasher, b"koel")
}

/// The hash function with this seed, if it is the one that was checked.
fn from_seed<S: FilterHasher>(seed: u64, check: u64) -> Result<S, BytesError> {
    let hasher = S::from_seed(seed);
    if hash_check(&hasher) == check { Ok(hasher) } else { Err(BytesError::Hasher) }
}

/// Whether two hash functions are the same: by seed, and by the hash of some bytes, as a function may have keys that its seed
/// does not reveal.
pub(crate) fn are_same<S: FilterHasher>(one: &S, other: &S) -> bool {
    (one.seed(), hash_check(one)) == (other.seed(), hash_check(other))
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(*bytes[at..].first_chunk().expect("within a header"))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(*bytes[at..].first_chunk().expect("within a header or a segment"))
}

/// Checks that there are this many bytes.
pub(super) fn check_len(bytes: &[u8], expected: u64) -> Result<(), BytesError> {
    let found = bytes.len() as u64;
    if found == expected { Ok(()) } else { Err(BytesError::Length { expected, found }) }
}

/// Checks that nothing is left: bytes that go on after the end are not a filter's.
pub(super) fn all_read(bytes: &[u8], rest: &[u8]) -> Result<(), BytesError> {
    check_len(bytes, (bytes.len() - rest.len()) as u64)
}

/// Checks what both headers have in common: length, magic, version, checksum.
fn parse_frame(bytes: &[u8], scalable: bool) -> Result<&[u8; HEADER_LEN], BytesError> {
    let Some(bytes) = bytes.first_chunk::<HEADER_LEN>() else {
        return Err(BytesError::Length { expected: HEADER_LEN as u64, found: bytes.len() as u64 });
    };
    let (magic, other) = if scalable { (CHAIN_MAGIC, MAGIC) } else { (MAGIC, CHAIN_MAGIC) };
    if bytes[..8] == other {
        return Err(BytesError::Kind { scalable: !scalable });
    }
    if bytes[..8] != magic {
        return Err(BytesError::Magic);
    }
    if u32_at(bytes, 8) != VERSION {
        return Err(BytesError::Version(u32_at(bytes, 8)));
    }
    if XxHash3_64::oneshot(&bytes[..56]) != u64_at(bytes, 56) {
        return Err(BytesError::Header);
    }
    Ok(bytes)
}

/// The content of a growing filter's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChainHeader {
    /// How many tables follow.
    pub(crate) tables: u32,
    /// How many copies a key may have.
    pub(crate) max_duplicates: usize,
}

impl ChainHeader {
    /// Whether these are the bytes of a growing filter, judging by their beginning.
    pub(crate) fn is_at(bytes: &[u8]) -> bool {
        bytes.starts_with(&CHAIN_MAGIC)
    }

    /// As bytes.
    pub(crate) fn bytes(self) -> [u8; HEADER_LEN] {
        let mut bytes = [0; HEADER_LEN];
        bytes[..8].copy_from_slice(&CHAIN_MAGIC);
        bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.tables.to_le_bytes());
        bytes[16..24].copy_from_slice(&(self.max_duplicates as u64).to_le_bytes());
        let checksum = XxHash3_64::oneshot(&bytes[..56]);
        bytes[56..].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// Reads a header.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, BytesError> {
        let bytes = parse_frame(bytes, true)?;
        let max_duplicates = usize::try_from(u64_at(bytes, 16)).unwrap_or(usize::MAX);
        let tables = u32_at(bytes, 12);
        let valid = (1..=MAX_TABLES).contains(&tables)
            && max_duplicates > 0
            && bytes[24..56].iter().all(|byte| *byte == 0);
        valid.then_some(ChainHeader { tables, max_duplicates }).ok_or(BytesError::Layout)
    }
}

impl Header {
    /// The header of a filter, as bytes.
    pub(crate) fn bytes<S: FilterHasher>(shape: Shape, hasher: &S) -> [u8; HEADER_LEN] {
        let (format, geometry) = (shape.format, shape.geometry);
        let mut bytes = [0; HEADER_LEN];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
        bytes[12] = format.fingerprint_bits as u8;
        bytes[13] = format.bucket_slots as u8;
        bytes[14] = u8::from(format.semi_sorted);
        bytes[15] = geometry.alternate_bits as u8;
        bytes[16..20].copy_from_slice(&geometry.segments.to_le_bytes());
        bytes[20..24].copy_from_slice(&geometry.buckets.to_le_bytes());
        bytes[24..28].copy_from_slice(&S::ID.to_le_bytes());
        bytes[32..40].copy_from_slice(&hasher.seed().to_le_bytes());
        bytes[40..48].copy_from_slice(&hash_check(hasher).to_le_bytes());
        bytes[48..56].copy_from_slice(&(shape.capacity as u64).to_le_bytes());
        let checksum = XxHash3_64::oneshot(&bytes[..56]);
        bytes[56..].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// Reads a header. Every value in it is in its range.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, BytesError> {
        let bytes = parse_frame(bytes, false)?;
        let format = Format {
            fingerprint_bits: u32::from(bytes[12]),
            bucket_slots: u32::from(bytes[13]),
            semi_sorted: bytes[14] == 1,
        };
        let (segments, buckets, upper) = (u32_at(bytes, 16), u32_at(bytes, 20), u32::from(bytes[15]));
        let valid = format.is_valid()
            && bytes[14] <= 1
            && (2..=format.fingerprint_bits).contains(&upper)
            && (1..=MAX_SEGMENTS).contains(&segments)
            && (2..=MAX_BUCKETS).contains(&buckets)
            && buckets % 2 == 0
            && u32_at(bytes, 28) == 0;
        if !valid {
            return Err(BytesError::Layout);
        }
        let geometry = Geometry::new(segments, buckets, format.fingerprint_bits, upper);
        let capacity = usize::try_from(u64_at(bytes, 48)).map_err(|_| BytesError::Layout)?;
        let shape = Shape { format, geometry, capacity };
        if capacity == 0 || capacity as u64 > shape.slots() || usize::try_from(shape.slots()).is_err() {
            return Err(BytesError::Layout);
        }
        let header = Header {
            shape,
            hash_id: u32_at(bytes, 24),
            seed: u64_at(bytes, 32),
            hash_check: u64_at(bytes, 40),
            checksum: u64_at(bytes, 56),
        };
        Ok(header)
    }

    /// The hash function, if it is `S`.
    pub(crate) fn hasher<S: FilterHasher>(&self) -> Result<S, BytesError> {
        if self.hash_id != S::ID {
            return Err(BytesError::Hasher);
        }
        from_seed(self.seed, self.hash_check)
    }

    /// Whether two filters have the same hash function, including its seed.
    pub(crate) fn has_hasher_of(&self, other: &Self) -> bool {
        (self.hash_id, self.seed, self.hash_check) == (other.hash_id, other.seed, other.hash_check)
    }

    /// Segments.
    pub(crate) fn segments(&self) -> u32 {
        self.shape.geometry.segments
    }

    /// Bytes of a segment.
    pub(crate) fn segment_len(&self) -> usize {
        FRAME + 8 * Table::segment_words(self.shape.geometry, self.shape.format.bucket_bits())
    }

    /// Bytes of a filter.
    pub(crate) fn filter_len(&self) -> u64 {
        HEADER_LEN as u64 + u64::from(self.segments()) * self.segment_len() as u64
    }

    fn segment_checksum(&self, segment: u32, bytes: &[u8]) -> u64 {
        XxHash3_64::oneshot_with_seed(self.checksum.wrapping_add(u64::from(segment)), bytes)
    }

    /// A segment's bytes without their checksum: to be [sealed](Self::seal) when its lock is free again.
    pub(crate) fn segment_bytes(&self, len: usize, words: impl Iterator<Item = u64>) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.segment_len());
        bytes.extend_from_slice(&(len as u64).to_le_bytes());
        words.for_each(|word| bytes.extend_from_slice(&word.to_le_bytes()));
        bytes
    }

    /// Appends the checksum of a segment's bytes.
    pub(crate) fn seal(&self, segment: u32, bytes: &mut Vec<u8>) {
        let checksum = self.segment_checksum(segment, bytes);
        bytes.extend_from_slice(&checksum.to_le_bytes());
    }

    /// Checks all of a segment's bytes.
    pub(crate) fn read_segment<'a>(
        &self,
        segment: u32,
        bytes: &'a [u8],
    ) -> Result<SegmentBytes<'a>, BytesError> {
        check_len(bytes, self.segment_len() as u64)?;
        let (content, checksum) = bytes.split_at(bytes.len() - 8);
        if self.segment_checksum(segment, content) != u64_at(checksum, 0) {
            return Err(BytesError::Checksum { segment });
        }
        let (len, words) = (u64_at(content, 0), SegmentBytes::words_at(bytes, 0));
        let layout = Layout::new(self.shape.format);
        if layout.run(Occupied { words, buckets: self.shape.geometry.buckets }) != Some(len) {
            return Err(BytesError::Content { segment });
        }
        Ok(SegmentBytes { len: len as usize, words })
    }
}

/// A segment as bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SegmentBytes<'a> {
    /// Fingerprints.
    pub(crate) len: usize,
    /// Followed by the checksum.
    pub(crate) words: Bytes<'a>,
}

impl<'a> SegmentBytes<'a> {
    /// The segment in bytes that have been checked.
    #[inline]
    pub(crate) fn of_checked(bytes: &'a [u8]) -> Self {
        SegmentBytes { len: u64_at(bytes, 0) as usize, words: Self::words_at(bytes, 0) }
    }

    /// The words of the segment that begins there, and any bytes that come after them.
    #[inline(always)]
    pub(crate) fn words_at(bytes: &'a [u8], begin: usize) -> Bytes<'a> {
        Bytes(&bytes[begin + 8..])
    }

    /// Its words.
    pub(crate) fn all_words(self) -> impl Iterator<Item = u64> + 'a {
        (0..self.words.0.len() / 8 - 1).map(move |index| self.words.word(index))
    }
}

/// Counts the occupied slots of a segment; `None` if a bucket's bits are invalid, or there is something beyond the last.
struct Occupied<'a> {
    words: Bytes<'a>,
    buckets: u32,
}

impl Task for Occupied<'_> {
    type Output = Option<u64>;

    fn run<C: Codec>(self, codec: C) -> Option<u64> {
        let occupied = codec.occupied(self.words, self.buckets)?;
        let end = u64::from(self.buckets) * u64::from(codec.bucket_bits());
        let rest = if end % 64 == 0 { 0 } else { self.words.word((end / 64) as usize) >> (end % 64) };
        (rest == 0).then_some(occupied)
    }
}
