//! Bytes of enemies: an error, no panic, and no memory out of proportion.

use koel::{ChunkLoader, CuckooFilter, FilterView};

use crate::common::{Rng, env_number, seed};
use crate::{builder, layouts};

/// All ways in. Whether the bytes are a filter: all agree.
fn all_ways(bytes: &[u8]) -> bool {
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

/// The same checksums as the library's, for bytes that pass them.
fn sign(bytes: &mut [u8]) {
    use std::hash::{BuildHasher, Hasher};
    let hash = |seed, bytes: &[u8]| {
        let mut hasher = koel::Xxh3::with_seed(seed).build_hasher();
        hasher.write(bytes);
        hasher.finish()
    };
    if bytes.len() < 64 {
        return;
    }
    let header = hash(0, &bytes[..56]);
    bytes[56..64].copy_from_slice(&header.to_le_bytes());
    let buckets = u32::from_le_bytes(bytes[20..24].try_into().unwrap());
    let bits = u64::from(bytes[12]) * u64::from(bytes[13]) - if bytes[14] == 1 { 4 } else { 0 };
    let len = 16 + 8 * (u64::from(buckets) * bits).div_ceil(64) as usize;
    for (segment, frame) in (0..).zip(bytes[64..].chunks_mut(len)) {
        if frame.len() == len {
            let checksum = hash(header.wrapping_add(segment), &frame[..len - 8]);
            frame[len - 8..].copy_from_slice(&checksum.to_le_bytes());
        }
    }
}

fn sample(layout: (u32, u32, bool)) -> Vec<u8> {
    let filter = builder(layout).capacity(20).seed(1).build().unwrap();
    (0..10_u64).for_each(|key| filter.insert(&key).unwrap());
    filter.to_bytes()
}

const SAMPLES: [(u32, u32, bool); 6] =
    [(8, 4, false), (12, 4, false), (9, 4, true), (13, 4, true), (32, 8, false), (3, 8, false)];

#[test]
fn no_flipped_byte_goes_unnoticed() {
    for layout in SAMPLES {
        let bytes = sample(layout);
        assert!(all_ways(&bytes));
        for at in 0..bytes.len() {
            for flip in [1, 0x80, 0xFF] {
                let mut damaged = bytes.clone();
                damaged[at] ^= flip;
                assert!(!all_ways(&damaged), "{layout:?}: byte {at} ^ {flip:#x}");
            }
        }
    }
}

#[test]
fn no_truncation_goes_unnoticed() {
    for layout in SAMPLES {
        let bytes = sample(layout);
        for len in 0..bytes.len() {
            assert!(!all_ways(&bytes[..len]), "{layout:?}: {len} of {}", bytes.len());
        }
    }
}

/// Flips behind right checksums: some are filters, all are harmless.
#[test]
fn signed_damage_does_no_harm() {
    for layout in SAMPLES {
        let bytes = sample(layout);
        for at in 8..bytes.len() {
            for flip in [1, 0x80, 0xFF] {
                let mut damaged = bytes.clone();
                damaged[at] ^= flip;
                // A width of 0 has no segments to sign.
                if damaged[12] > 1 && damaged[13] > 0 {
                    sign(&mut damaged);
                }
                all_ways(&damaged);
            }
        }
    }
}

#[test]
fn random_bytes_do_no_harm() {
    let mut rng = Rng::new(seed());
    let samples: Vec<Vec<u8>> = layouts().step_by(11).filter(|l| l.0 > 4).map(sample).collect();
    for round in 0..env_number("KOEL_HOSTILE", 20_000) {
        let mut bytes = samples[round % samples.len()].clone();
        bytes.truncate(rng.below(bytes.len() as u64 + 1) as usize);
        for _ in 0..rng.below(8) {
            if !bytes.is_empty() {
                let most = if rng.one_in(2) { 64 } else { usize::MAX };
                let at = rng.below(bytes.len().min(most) as u64);
                bytes[at as usize] = rng.next() as u8;
            }
        }
        if bytes.len() >= 64 && bytes[12] > 1 && bytes[13] > 0 {
            sign(&mut bytes);
        }
        all_ways(&bytes);
    }
}

/// Headers that ask for terabytes.
#[test]
fn large_claims_are_not_believed() {
    let mut bytes = sample((8, 4, false));
    bytes[12] = 32;
    bytes[13] = 8;
    bytes[15] = 32;
    bytes[16..20].copy_from_slice(&(1_u32 << 16).to_le_bytes());
    bytes[20..24].copy_from_slice(&(1_u32 << 16).to_le_bytes());
    bytes[48..56].copy_from_slice(&(1_u64 << 32).to_le_bytes());
    sign(&mut bytes);
    assert!(!all_ways(&bytes));
}
