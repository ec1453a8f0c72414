//! Growing filters to bytes and back.
//!
//! | offset | bytes | what |
//! | --- | --- | --- |
//! | 0 | 8 | `koelsf` and CR LF |
//! | 8 | 4 | version: 1 |
//! | 12 | 4 | tables, 1..=32 |
//! | 16 | 8 | copies that a key may have |
//! | 24 | 8 | XXH3-64 of bytes 0..24 |
//!
//! Then the tables, newest first, each as the bytes of a filter (`format`). All have one hash function and one seed, equally many
//! buckets in a segment and equally many bits that select the alternate: the bits of a fingerprint of table 0. A table
//! with `k` bits more has `2^k` times the segments of table 0.

use std::io::{Read, Write};
use std::sync::Arc;

use twox_hash::XxHash3_64;

use super::super::bytes::{filter_bytes, read_inner};
use super::super::error::{BytesError, FilterError};
use super::super::hasher::FilterHasher;
use super::super::inner::Inner;
use super::chain::{Chain, Level, Plan};
use super::filter::ScalableCuckooFilter;

const MAGIC: [u8; 8] = *b"koelsf\r\n";
const VERSION: u32 = 1;
const HEADER_LEN: usize = 32;
/// Most tables: fingerprints have 32 bits at the most.
const MAX_TABLES: u32 = 32;

impl<S: FilterHasher> ScalableCuckooFilter<S> {
    /// The filter as bytes; [`ScalableCuckooFilter::from_bytes`] makes a filter of them again.
    ///
    /// As [`CuckooFilter::to_bytes`](crate::CuckooFilter::to_bytes): others may write to the filter meanwhile.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.write_to(&mut bytes).expect("writing to memory does not fail");
        bytes
    }

    /// The filter that was made into these bytes. The seed comes with them.
    ///
    /// # Errors
    ///
    /// As [`CuckooFilter::from_bytes`](crate::CuckooFilter::from_bytes).
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, FilterError> {
        let mut rest = bytes;
        let filter = Self::read_from(&mut rest)?;
        if !rest.is_empty() {
            let (expected, found) = ((bytes.len() - rest.len()) as u64, bytes.len() as u64);
            return Err(BytesError::Length { expected, found }.into());
        }
        Ok(filter)
    }

    /// Writes what [`ScalableCuckooFilter::to_bytes`] gives, a segment at a time. A compaction has to wait for it.
    ///
    /// # Errors
    ///
    /// The writer's.
    pub fn write_to(&self, mut writer: impl Write) -> std::io::Result<()> {
        let _moving = self.moving.lock();
        let levels = self.chain.pin().levels.clone();
        let mut header = [0; HEADER_LEN];
        header[..8].copy_from_slice(&MAGIC);
        header[8..12].copy_from_slice(&VERSION.to_le_bytes());
        header[12..16].copy_from_slice(&(levels.len() as u32).to_le_bytes());
        header[16..24].copy_from_slice(&(self.max_duplicates as u64).to_le_bytes());
        let checksum = XxHash3_64::oneshot(&header[..24]);
        header[24..].copy_from_slice(&checksum.to_le_bytes());
        writer.write_all(&header)?;
        for level in levels {
            for chunk in filter_bytes(&level.inner, &self.hasher) {
                writer.write_all(&chunk)?;
            }
        }
        Ok(())
    }

    /// Reads what [`ScalableCuckooFilter::write_to`] wrote, and not a byte more.
    ///
    /// # Errors
    ///
    /// As [`CuckooFilter::read_from`](crate::CuckooFilter::read_from).
    pub fn read_from(mut reader: impl Read) -> Result<Self, FilterError> {
        let (tables, max_duplicates) = read_header(&mut reader)?;
        let mut inners: Vec<Inner> = Vec::new();
        let mut hasher: Option<S> = None;
        for _ in 0..tables {
            let (inner, its_hasher) = read_inner::<S>(&mut reader)?;
            if hasher.as_ref().is_some_and(|hasher| hasher.seed() != its_hasher.seed()) {
                return Err(BytesError::Hasher.into());
            }
            hasher = Some(its_hasher);
            inners.push(inner);
        }
        let (Some(hasher), Some((plan, levels))) = (hasher, chain_of(inners)) else {
            return Err(BytesError::Layout.into());
        };
        Ok(Self::with_chain(plan, Chain::new(levels), max_duplicates, hasher))
    }
}

/// How many tables follow, and how many copies a key may have.
fn read_header(reader: &mut impl Read) -> Result<(u32, usize), FilterError> {
    let mut header = Vec::new();
    reader.take(HEADER_LEN as u64).read_to_end(&mut header)?;
    let Ok(header) = <[u8; HEADER_LEN]>::try_from(header.as_slice()) else {
        return Err(BytesError::Length { expected: HEADER_LEN as u64, found: header.len() as u64 }.into());
    };
    if header[..8] != MAGIC {
        return Err(BytesError::Magic.into());
    }
    let word = |at: usize| u64::from_le_bytes(*header[at..].first_chunk().expect("within the header"));
    let version = word(8) as u32;
    if version != VERSION {
        return Err(BytesError::Version(version).into());
    }
    if XxHash3_64::oneshot(&header[..24]) != word(24) {
        return Err(BytesError::Header.into());
    }
    let (tables, copies) = ((word(8) >> 32) as u32, usize::try_from(word(16)).unwrap_or(usize::MAX));
    if !(1..=MAX_TABLES).contains(&tables) || copies == 0 {
        return Err(BytesError::Layout.into());
    }
    Ok((tables, copies))
}

/// The plan that these tables follow, newest first, and the tables; `None` if there is none.
fn chain_of(inners: Vec<Inner>) -> Option<(Plan, Vec<Arc<Level>>)> {
    let geometry = *inners.first()?.table.geometry();
    let doublings = geometry.fingerprint_bits - geometry.alternate_bits;
    let segments = geometry.segments >> doublings.min(31);
    if segments == 0 {
        return None;
    }
    let plan = Plan { segments, buckets: geometry.buckets, bits: geometry.alternate_bits };
    let mut levels: Vec<Arc<Level>> = Vec::new();
    for inner in inners {
        let index = inner.table.geometry().fingerprint_bits.checked_sub(plan.bits)?;
        let (shape, planned) = (inner.shape(), plan.shape(index)?);
        let newer = levels.last().is_none_or(|newer| newer.index > index);
        if shape.format != planned.format || shape.geometry != planned.geometry || !newer {
            return None;
        }
        levels.push(Arc::new(Level { inner, index }));
    }
    Some((plan, levels))
}
