//! Bytes and back.

use std::io::{BufWriter, Write};

use koel::{BytesError, ChunkLoader, CuckooFilter, FilterError, FilterView, ScalableCuckooFilter};

use crate::common::{on_threads, seed};
use crate::{builder, layouts};

#[test]
fn every_layout_comes_back_from_its_bytes() {
    for layout in layouts() {
        let n = if layout.0 < 5 || layout.1 == 1 { 50 } else { 500 };
        let filter = builder(layout).capacity(n).seed(seed()).build().unwrap();
        let keys: Vec<u64> = (0..n as u64).collect();
        let inserted = filter.insert_many(&keys);
        assert_eq!(inserted, n, "{layout:?}");
        let bytes = filter.to_bytes();
        let copy = CuckooFilter::from_bytes(&bytes).unwrap();
        let view = FilterView::from_bytes(&bytes).unwrap();
        let read = CuckooFilter::read_from(&bytes[..]).unwrap();
        assert_eq!((copy.len(), view.len(), read.len()), (n, n, n));
        for key in 0..2000_u64 {
            let answer = filter.contains(&key);
            assert!(answer || key >= n as u64, "{layout:?}");
            assert_eq!(copy.contains(&key), answer, "{layout:?}");
            assert_eq!(view.contains(&key), answer, "{layout:?}");
            assert_eq!(view.count(&key), filter.count(&key), "{layout:?}");
        }
        assert_eq!(copy.to_bytes(), bytes);
        assert_eq!(read.to_bytes(), bytes);
        assert_eq!(filter.clone().to_bytes(), bytes);
        let mut written = Vec::new();
        filter.write_to(&mut written).unwrap();
        assert_eq!(written, bytes);
        assert_eq!(
            (view.capacity(), view.false_positive_rate()),
            (copy.capacity(), copy.false_positive_rate())
        );
        // The copy is alive.
        keys.iter().for_each(|key| assert!(copy.remove(key)));
        assert!(copy.is_empty());
    }
}

/// A writer that has no room for a byte.
struct Full;

impl Write for Full {
    fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
        Err(std::io::ErrorKind::StorageFull.into())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// All bytes are in the buffer when the last one has been written, and an error when the buffer is dropped would not be
/// noticed.
#[test]
fn error_of_a_writer_that_keeps_bytes_back_is_told() {
    let buffered = || BufWriter::with_capacity(1 << 20, Full);
    let filter = CuckooFilter::from_keys(0..100, 0.01).unwrap();
    assert!(filter.write_to(buffered()).is_err());
    let growing = ScalableCuckooFilter::from_keys(0..100, 0.01).unwrap();
    assert!(growing.write_to(buffered()).is_err());
}

#[test]
fn what_follows_a_filter_is_not_read() {
    let filter = CuckooFilter::from_keys(0..1000, 0.01).unwrap();
    let mut bytes = filter.to_bytes();
    bytes.extend_from_slice(b"and so on");
    let mut reader = &bytes[..];
    assert_eq!(CuckooFilter::read_from(&mut reader).unwrap().len(), 1000);
    assert_eq!(reader, b"and so on");
    assert!(CuckooFilter::from_bytes(&bytes).is_err(), "whole bytes are a filter and nothing else");
}

/// 300,000 keys take two segments.
#[test]
fn a_transfer_is_resumed_where_it_broke_off() {
    let filter = CuckooFilter::from_keys(0..300_000, 0.01).unwrap();
    assert!(filter.chunks().len() > 2);
    let whole: Vec<u8> = filter.chunks().flatten().collect();
    assert_eq!(whole, filter.to_bytes());
    let mut loader = ChunkLoader::new();
    while let Some(len) = loader.next_len() {
        let chunk = filter.chunks_from(loader.next()).next().unwrap();
        assert_eq!(chunk.len(), len);
        assert!(loader.load(&chunk[..len - 1]).is_err(), "half a chunk");
        let mut damaged = chunk.clone();
        damaged[len / 2] ^= 1;
        assert!(loader.load(&damaged).is_err(), "a damaged chunk");
        let later = filter.chunks_from(loader.next() + 1).next();
        assert!(later.is_none_or(|later| loader.load(&later).is_err()), "one that is not the next");
        loader.load(&chunk).unwrap();
    }
    for too_many in [&[][..], &[0; 64]] {
        let text = loader.load(too_many).unwrap_err().to_string();
        assert!(text.ends_with(&format!("a chunk of {} bytes after the last one", too_many.len())), "{text}");
    }
    let copy = loader.finish().unwrap();
    assert_eq!(copy.to_bytes(), whole);
    assert!(matches!(ChunkLoader::new().finish(), Err(FilterError::Bytes(_))), "too few");
}

#[test]
fn a_loader_that_cannot_finish_is_handed_back_and_goes_on() {
    let filter = CuckooFilter::from_keys(0..300_000, 0.01).unwrap();
    let mut loader = ChunkLoader::new();
    for (number, chunk) in (0..).zip(filter.chunks()) {
        assert!(!loader.is_complete());
        let (same, error) = loader.try_finish().unwrap_err();
        let missing =
            |error| matches!(error, FilterError::Bytes(BytesError::Incomplete { next }) if next == number);
        assert!(missing(error) && same.next() == number);
        let (same, error) = same.try_finish_scalable().unwrap_err();
        assert!(missing(error) && same.next() == number);
        loader = same;
        loader.load(&chunk).unwrap();
    }
    assert!(loader.is_complete() && loader.next_len().is_none());
    let (loader, error) = loader.try_finish_scalable().unwrap_err();
    assert!(matches!(error, FilterError::Bytes(BytesError::Kind { scalable: false })), "{error}");
    assert!(loader.is_complete());
    assert_eq!(loader.try_finish().unwrap().to_bytes(), filter.to_bytes());
}

#[test]
fn a_file_of_another_seed_is_read_rightly() {
    for seed in [0, 1, u64::MAX] {
        let filter = CuckooFilter::builder().capacity(100).fingerprint_bits(32).seed(seed).build().unwrap();
        filter.insert("ada").unwrap();
        let copy = CuckooFilter::from_bytes(&filter.to_bytes()).unwrap();
        assert_eq!(copy.hasher().seed(), seed);
        assert!(copy.contains("ada") && !copy.contains("grace"));
    }
}

/// The bytes of version 2 do not change: neither layout nor hash.
#[test]
fn version_2_is_what_it_was() {
    let filter = CuckooFilter::builder().capacity(2).fingerprint_bits(16).seed(1).build().unwrap();
    filter.insert_bytes(b"ada").unwrap();
    filter.insert(&7_u64).unwrap();
    let text: String = filter.to_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(text, include_str!("version_2.hex").trim());
}

#[test]
fn a_dump_has_every_key_that_nobody_touches() {
    let n = 40_000_u64;
    for semi_sorted in [false, true] {
        let filter = builder((13, 4, semi_sorted)).capacity(2 * n as usize).seed(seed()).build().unwrap();
        let kept: Vec<u64> = (0..n).collect();
        assert_eq!(filter.insert_many(&kept), n as usize);
        on_threads(2, |thread| {
            if thread == 0 {
                for round in 0..3 {
                    (0..n).for_each(|key| filter.insert(&(n + key + round)).unwrap());
                    (0..n).for_each(|key| assert!(filter.remove(&(n + key + round))));
                }
            } else {
                for _ in 0..10 {
                    let bytes = filter.to_bytes();
                    let view = FilterView::from_bytes(&bytes).unwrap();
                    assert!(kept.iter().all(|key| view.contains(key)), "a dump misses a key");
                    let copy = CuckooFilter::read_from(&bytes[..]).unwrap();
                    assert_eq!(copy.len(), view.len());
                }
            }
        });
    }
}

#[cfg(feature = "serde")]
#[test]
fn filters_pass_through_serde() {
    let filter = CuckooFilter::from_keys(0..100, 0.01).unwrap();
    let json = serde_json::to_string(&filter).unwrap();
    let copy: CuckooFilter = serde_json::from_str(&json).unwrap();
    assert_eq!(copy.to_bytes(), filter.to_bytes());
    assert!(serde_json::from_str::<CuckooFilter>("[1,2,3]").is_err());
    assert!(serde_json::from_str::<CuckooFilter>("7").is_err());
}
