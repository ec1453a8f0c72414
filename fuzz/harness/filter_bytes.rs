//! Bytes that may be a filter's, through every way in; and right checksums for wrong bytes.

use koel::{ChunkLoader, CuckooFilter, FilterView, FilterViewOwned, ScalableCuckooFilter};

/// Bytes of a header.
pub(crate) const HEADER: usize = 64;

/// The bytes after the first, which says whether their checksums are corrected.
pub(crate) fn signed(data: &[u8]) -> Vec<u8> {
    let Some((mode, bytes)) = data.split_first() else { return Vec::new() };
    let mut bytes = bytes.to_vec();
    if mode % 2 == 1 {
        sign(&mut bytes);
    }
    bytes
}

/// Reads the bytes in all ways. Returns whether they are a filter, on which all ways agree.
pub(crate) fn all_ways(bytes: &[u8]) -> bool {
    let (whole, grown) = (CuckooFilter::from_bytes(bytes), ScalableCuckooFilter::from_bytes(bytes));
    assert!(whole.is_err() || grown.is_err(), "of one kind only");
    let view = FilterView::from_bytes(bytes);
    assert_eq!(whole.is_ok() || grown.is_ok(), view.is_ok());
    assert_eq!(FilterViewOwned::from_bytes(bytes).is_ok(), view.is_ok());
    let (read, read_grown) = (CuckooFilter::read_from(bytes), ScalableCuckooFilter::read_from(bytes));
    assert!(read.is_ok() || whole.is_err());
    assert!(read_grown.is_ok() || grown.is_err());
    let loader = loaded(bytes);
    if loader.is_scalable() {
        assert_eq!(loader.finish_scalable().is_ok(), read_grown.is_ok());
    } else {
        assert_eq!(loader.finish().is_ok(), read.is_ok());
    }
    let Ok(view) = view else { return false };
    match (whole, grown) {
        (Ok(filter), _) => use_whole(&filter, &view, bytes),
        (_, Ok(filter)) => use_grown(&filter, &view, bytes),
        _ => unreachable!("the view agrees with one of them"),
    }
    true
}

/// Loads the bytes by chunks, as far as they are accepted.
fn loaded(bytes: &[u8]) -> ChunkLoader {
    let mut loader = ChunkLoader::new();
    let mut rest = bytes;
    while let Some(len) = loader.next_len() {
        let (chunk, after) = rest.split_at(len.min(rest.len()));
        rest = after;
        if loader.load(chunk).is_err() {
            break;
        }
    }
    loader
}

fn use_whole(filter: &CuckooFilter, view: &FilterView<'_>, bytes: &[u8]) {
    assert_eq!((filter.to_bytes().as_slice(), filter.len()), (bytes, view.len()));
    for key in 0..100_u64 {
        assert_eq!((filter.contains(&key), filter.count(&key)), (view.contains(&key), view.count(&key)));
    }
    for key in 0..100_u64 {
        let _ = (filter.insert(&key), filter.remove(&key));
    }
    let _ = filter.info().to_string();
}

/// Uses a growing filter. One of few slots grows a little: any other might grow to any size, and take that memory.
fn use_grown(filter: &ScalableCuckooFilter, view: &FilterView<'_>, bytes: &[u8]) {
    assert_eq!((filter.to_bytes().as_slice(), filter.len()), (bytes, view.len()));
    for key in 0..100_u64 {
        assert_eq!((filter.contains(&key), filter.count(&key)), (view.contains(&key), view.count(&key)));
    }
    (0..100_u64).for_each(|key| assert!(!filter.remove(&key) || view.contains(&key)));
    filter.compact();
    if filter.capacity() < 1000 {
        let inserted = (0..20_u64).filter(|key| filter.insert(key).is_ok()).collect::<Vec<_>>();
        let copy = ScalableCuckooFilter::from_bytes(&filter.to_bytes()).expect("its own bytes");
        assert!(inserted.iter().all(|key| copy.contains(key)) && copy.len() == filter.clone().len());
    }
    let _ = filter.info().to_string();
}

/// The library's checksum.
pub(crate) fn hash(seed: u64, bytes: &[u8]) -> u64 {
    use std::hash::{BuildHasher, Hasher};
    let mut hasher = koel::Xxh3::with_seed(seed).build_hasher();
    hasher.write(bytes);
    hasher.finish()
}

/// Writes right checksums, of a filter or of all tables of a growing one, as far as their bytes go.
pub(crate) fn sign(bytes: &mut [u8]) {
    let mut rest = bytes;
    if rest.starts_with(b"koelsf") && rest.len() >= HEADER {
        let checksum = hash(0, &rest[..HEADER - 8]);
        rest[HEADER - 8..HEADER].copy_from_slice(&checksum.to_le_bytes());
        rest = &mut rest[HEADER..];
    }
    while rest.len() >= HEADER {
        let len = sign_table(rest).clamp(HEADER, rest.len());
        rest = &mut rest[len..];
    }
}

/// Writes the right checksums of one filter. Returns where it ends according to its header.
fn sign_table(bytes: &mut [u8]) -> usize {
    let checksum = hash(0, &bytes[..HEADER - 8]);
    bytes[HEADER - 8..HEADER].copy_from_slice(&checksum.to_le_bytes());
    let number = |at: usize| u64::from(u32::from_le_bytes([0, 1, 2, 3].map(|i| bytes[at + i])));
    let (segments, buckets) = (number(16), number(20));
    let bits = u64::from(bytes[12]) * u64::from(bytes[13]);
    let bits = if bytes[14] == 1 { bits.saturating_sub(4) } else { bits };
    // With 32 bits, a header may claim more than there is room for.
    let len = 16 + 8 * buckets.saturating_mul(bits).div_ceil(64);
    let len = usize::try_from(len).unwrap_or(usize::MAX);
    for (segment, frame) in (0..segments).zip(bytes[HEADER..].chunks_exact_mut(len)) {
        let sum = hash(checksum.wrapping_add(segment), &frame[..len - 8]);
        frame[len - 8..].copy_from_slice(&sum.to_le_bytes());
    }
    HEADER.saturating_add(len.saturating_mul(segments as usize))
}
