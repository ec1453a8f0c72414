//! Bytes that may be a filter's, by every way in; and right checksums for wrong bytes.

use koel::{ChunkLoader, CuckooFilter, FilterView, ScalableCuckooFilter};

/// Bytes of a header.
const HEADER: usize = 64;

/// The bytes after the first, which says whether their checksums are put right.
pub(crate) fn signed(data: &[u8]) -> Vec<u8> {
    let Some((mode, bytes)) = data.split_first() else { return Vec::new() };
    let mut bytes = bytes.to_vec();
    if mode % 2 == 1 {
        sign(&mut bytes);
    }
    bytes
}

/// All ways in. Whether the bytes are a filter: all agree.
pub(crate) fn all_ways(bytes: &[u8]) -> bool {
    grown(bytes);
    let whole = <CuckooFilter>::from_bytes(bytes);
    let view = <FilterView>::from_bytes(bytes);
    let read = <CuckooFilter>::read_from(bytes);
    let mut loader: ChunkLoader = ChunkLoader::new();
    let mut rest = bytes;
    while let Some(len) = loader.next_len() {
        let (chunk, after) = rest.split_at(len.min(rest.len()));
        rest = after;
        if loader.load(chunk).is_err() {
            break;
        }
    }
    let loaded = loader.finish();
    assert_eq!(whole.is_ok(), view.is_ok());
    assert_eq!(read.is_ok(), loaded.is_ok());
    if let (Ok(whole), Ok(view)) = (&whole, &view) {
        assert_eq!(whole.to_bytes(), bytes);
        (0..100_u64).for_each(|key| assert_eq!(whole.contains(&key), view.contains(&key)));
        for key in 0..100_u64 {
            let _ = (whole.insert(&key), whole.remove(&key), whole.count(&key));
        }
        let _ = whole.info().to_string();
    }
    whole.is_ok()
}

/// As a growing filter.
fn grown(bytes: &[u8]) {
    let whole = <ScalableCuckooFilter>::from_bytes(bytes);
    let read = <ScalableCuckooFilter>::read_from(bytes);
    assert!(read.is_ok() || whole.is_err());
    if let Ok(filter) = whole {
        assert_eq!(filter.to_bytes(), bytes);
        for key in 0..100_u64 {
            let _ = (filter.contains(&key), filter.remove(&key), filter.count(&key));
        }
        let _ = filter.info().to_string();
    }
}

/// The library's checksum.
fn hash(seed: u64, bytes: &[u8]) -> u64 {
    use std::hash::{BuildHasher, Hasher};
    let mut hasher = koel::Xxh3::with_seed(seed).build_hasher();
    hasher.write(bytes);
    hasher.finish()
}

/// Right checksums, of a filter or of all tables of a growing one, as far as their bytes go.
pub(crate) fn sign(bytes: &mut [u8]) {
    let mut rest = bytes;
    if rest.starts_with(b"koelsf") && rest.len() >= 32 {
        let checksum = hash(0, &rest[..24]);
        rest[24..32].copy_from_slice(&checksum.to_le_bytes());
        rest = &mut rest[32..];
    }
    while rest.len() >= HEADER {
        let len = sign_table(rest).clamp(HEADER, rest.len());
        rest = &mut rest[len..];
    }
}

/// Right checksums of one filter; where it ends, by its header.
fn sign_table(bytes: &mut [u8]) -> usize {
    let checksum = hash(0, &bytes[..HEADER - 8]);
    bytes[HEADER - 8..HEADER].copy_from_slice(&checksum.to_le_bytes());
    let number = |at: usize| u64::from(u32::from_le_bytes([0, 1, 2, 3].map(|i| bytes[at + i])));
    let (segments, buckets) = (number(16), number(20));
    let bits = u64::from(bytes[12]) * u64::from(bytes[13]);
    let bits = if bytes[14] == 1 { bits.saturating_sub(4) } else { bits };
    let len = 16 + 8 * buckets.saturating_mul(bits).div_ceil(64) as usize;
    for (segment, frame) in (0..segments).zip(bytes[HEADER..].chunks_exact_mut(len)) {
        let sum = hash(checksum.wrapping_add(segment), &frame[..len - 8]);
        frame[len - 8..].copy_from_slice(&sum.to_le_bytes());
    }
    HEADER.saturating_add(len.saturating_mul(segments as usize))
}
