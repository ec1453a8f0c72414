//! Hostile bytes: an error, no panic, and no memory out of proportion.

#[path = "../../fuzz/harness/filter_bytes.rs"]
#[expect(dead_code, reason = "the fuzzer's target uses the rest")]
pub(crate) mod filter_bytes;

use filter_bytes::{all_ways, sign};

use crate::common::{Rng, env_number, seed};
use crate::{builder, layouts};

/// The bytes of a filter with ten keys.
pub(crate) fn sample(layout: (u32, u32, bool)) -> Vec<u8> {
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

/// Flipped bits with right checksums: some results are filters, all are harmless.
#[test]
fn signed_damage_does_no_harm() {
    for layout in SAMPLES {
        let bytes = sample(layout);
        for at in 8..bytes.len() {
            for flip in [1, 0x80, 0xFF] {
                let mut damaged = bytes.clone();
                damaged[at] ^= flip;
                sign(&mut damaged);
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
        sign(&mut bytes);
        all_ways(&bytes);
    }
}

/// A growing filter of one table that has two buckets of one slot: the library makes no table that small, but bytes may contain
/// one.
#[test]
fn growing_filters_of_a_few_slots_do_no_harm() {
    let mut table = sample((6, 1, false));
    table.truncate(64 + 24);
    table[16..24].copy_from_slice(&[1, 0, 0, 0, 2, 0, 0, 0]);
    table[48..56].copy_from_slice(&1_u64.to_le_bytes());
    table[64..].fill(0);
    let mut chain = vec![0; 64];
    chain[..8].copy_from_slice(b"koelsf\r\n");
    chain[8..].iter_mut().step_by(4).zip([2, 1, 8]).for_each(|(byte, number)| *byte = number);
    let mut bytes = [chain, table].concat();
    sign(&mut bytes);
    assert!(all_ways(&bytes));
    let seed = [vec![1], bytes].concat();
    assert!(seed == include_bytes!("../../fuzz/seeds/filter_bytes/few_slots"), "the fuzzer begins with it");
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
