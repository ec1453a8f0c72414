//! Errors in a request for a filter, or in the bytes of one.

use core::error::Error;
use core::fmt;

use crate::full::Full;

/// The version of the bytes that is known. Version 1, in which buckets were computed differently, was in no release.
pub(super) const VERSION: u32 = 2;

/// The reason why there is no such filter.
#[derive(Debug)]
#[non_exhaustive]
pub enum FilterError {
    /// The false-positive rate must be above 0 and below 1.
    Rate {
        /// The requested rate.
        requested: f64,
    },
    /// Capacity and rate are in their ranges, but no layout of the requested width or buckets gives that rate. If neither was
    /// requested, or if a growing filter guarantees no rate at all with that width, not even fingerprints of 32 bits give it.
    RateTooLow {
        /// The requested rate.
        requested: f64,
        /// The lowest possible rate.
        limit: f64,
    },
    /// The capacity must be at least 1, and there is an upper limit: the fewer bits a fingerprint has and the fewer slots a
    /// bucket has, the fewer keys fit for sure.
    Capacity {
        /// The requested capacity, in keys.
        requested: usize,
        /// The largest capacity that can be requested in this layout, in keys: all up to it are possible. A few more may be
        /// possible.
        limit: usize,
    },
    /// Fingerprints have 2 to 32 bits, in semi-sorted buckets 5 to 32. In a growing filter that is to guarantee a rate, they
    /// have at least as many as that requires: 3, in buckets of four 4, of eight 5, or more.
    FingerprintBits {
        /// The requested number of bits.
        requested: u32,
        /// The smallest number that suffices.
        least: u32,
    },
    /// Buckets have 1, 2, 4 or 8 slots, semi-sorted ones 4.
    BucketSlots {
        /// The requested number of slots.
        requested: u32,
        /// Semi-sorted buckets were requested as well.
        semi_sorted: bool,
    },
    /// The allocator has no memory for it.
    OutOfMemory {
        /// The number of bytes requested.
        bytes: usize,
    },
    /// There was no room for all keys. The filter is full; or a key occurs more often than two buckets have slots; or more than
    /// a few occur more often than one bucket has ([`FilterBuilder::from_keys`](crate::FilterBuilder::from_keys)); or, in a
    /// growing filter, a key occurs more often than [it may](crate::ScalableFilterBuilder::max_duplicates), or another table
    /// was needed and there could be none.
    Full {
        /// How many of the keys that were to be inserted had room. If the filter was built from its keys, these are not
        /// necessarily the first ones, and not all were tried if many had no room.
        inserted: usize,
    },
    /// Two filters differ in size, layout or hash function.
    Mismatch,
    /// The bytes are not a filter's; the value says what is wrong.
    Bytes(BytesError),
    /// Reading or writing failed.
    Io(std::io::Error),
}

/// The reason why bytes are not a valid filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BytesError {
    /// They end early, or go on after the end: all of them, or those of a header, segment or table where these are read one
    /// after the other, as in a growing filter, or from a file.
    Length {
        /// How many there should be, as far as is known.
        expected: u64,
        /// How many of these there are.
        found: u64,
    },
    /// They do not begin as a filter's bytes do.
    Magic,
    /// They are a [`ScalableCuckooFilter`](crate::ScalableCuckooFilter)'s where a [`CuckooFilter`](crate::CuckooFilter)'s are
    /// expected, or the other way round.
    Kind {
        /// They are a growing filter's.
        scalable: bool,
    },
    /// A version that this library does not know.
    Version(u32),
    /// The header's checksum is wrong.
    Header,
    /// The header's checksum is right, but it describes no filter of this library.
    Layout,
    /// The filter was made with another hash function, or with another seed of it.
    Hasher,
    /// The checksum of a segment is wrong.
    Checksum {
        /// The number of the segment in its table.
        segment: u32,
    },
    /// The checksum of a segment is right, but its content is not valid.
    Content {
        /// The number of the segment in its table.
        segment: u32,
    },
    /// Chunks are missing.
    Incomplete {
        /// The chunk that comes next.
        next: u32,
    },
}

impl From<BytesError> for FilterError {
    fn from(error: BytesError) -> Self {
        FilterError::Bytes(error)
    }
}

/// For one key: `inserted` is 0.
impl From<Full> for FilterError {
    fn from(_: Full) -> Self {
        FilterError::Full { inserted: 0 }
    }
}

impl From<std::io::Error> for FilterError {
    fn from(error: std::io::Error) -> Self {
        FilterError::Io(error)
    }
}

impl fmt::Display for BytesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BytesError::Length { expected: 0, found } => {
                write!(f, "a chunk of {found} bytes after the last one")
            }
            BytesError::Length { expected, found } => {
                write!(f, "{found} bytes where {expected} are expected")
            }
            BytesError::Magic => f.write_str("not a koel filter"),
            BytesError::Kind { scalable: true } => {
                f.write_str("a `ScalableCuckooFilter`, where a `CuckooFilter` is asked for")
            }
            BytesError::Kind { scalable: false } => {
                f.write_str("a `CuckooFilter`, where a `ScalableCuckooFilter` is asked for")
            }
            BytesError::Version(version) => write!(f, "version {version} of the format; {VERSION} is known"),
            BytesError::Header => f.write_str("a damaged header"),
            BytesError::Layout => f.write_str("a header that describes no filter"),
            BytesError::Hasher => f.write_str("made with another hash function or another seed"),
            BytesError::Checksum { segment } => write!(f, "segment {segment} is damaged"),
            BytesError::Content { segment } => {
                write!(f, "the content of segment {segment} contradicts itself")
            }
            BytesError::Incomplete { next } => write!(f, "chunks are missing, from number {next} on"),
        }
    }
}

impl Error for BytesError {}

impl fmt::Display for FilterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FilterError::Rate { requested } => {
                write!(
                    f,
                    "a false-positive rate of {requested} was asked for; above 0 and below 1 is possible"
                )
            }
            FilterError::RateTooLow { requested, limit } => {
                write!(
                    f,
                    "a false-positive rate of {requested:e} was asked for; {limit:e} and more is possible"
                )
            }
            FilterError::Capacity { requested: 0, limit } => {
                write!(f, "no capacity was given, or one of 0 keys; 1 to {limit} are possible")
            }
            FilterError::Capacity { requested, limit } => {
                write!(f, "a capacity of {requested} keys was asked for; 1 to {limit} are possible")
            }
            FilterError::FingerprintBits { requested, least } => {
                write!(f, "fingerprints of {requested} bits were asked for; {least} to 32 are possible")
            }
            FilterError::BucketSlots { requested, semi_sorted: false } => {
                write!(f, "buckets of {requested} slots were asked for; 1, 2, 4 or 8 are possible")
            }
            FilterError::BucketSlots { requested, semi_sorted: true } => {
                write!(f, "semi-sorted buckets of {requested} slots were asked for; only 4 are possible")
            }
            FilterError::OutOfMemory { bytes } => {
                write!(f, "no memory for a filter: {bytes} bytes were asked for")
            }
            FilterError::Full { inserted: 0 } => {
                f.write_str("no room: the filter is full, or the key is there as often as it may be")
            }
            FilterError::Full { inserted } => {
                write!(
                    f,
                    "room for {inserted} keys only: the filter is full, or keys occur more often than it has room for \
                     copies of one"
                )
            }
            FilterError::Mismatch => f.write_str(
                "the filters differ in size, layout, hash function or seed: only equal ones can be united, \
                 built alike and with one `seed`",
            ),
            FilterError::Bytes(error) => write!(f, "not the bytes of a filter: {error}"),
            FilterError::Io(error) => write!(f, "reading or writing a filter: {error}"),
        }
    }
}

impl Error for FilterError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            // An error that is already part of the message is not a source.
            FilterError::Io(error) => error.source(),
            _ => None,
        }
    }
}
