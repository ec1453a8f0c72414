//! Collisions of hash functions.

use std::collections::HashSet;
use std::hash::{BuildHasher, Hasher};
use std::io::Cursor;

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use twox_hash::{XxHash3_64, XxHash64};

use super::Scale;
use crate::error::CheckError;
use crate::report::{PaperTable, Value, grouped};

const STRINGS: u64 = 1_000_000;
const IDS: u64 = 40_000;
const NAMES: u64 = 45_402;

const SEED: u64 = 0x6B6F_656C;

type Function = fn(&[u8]) -> u32;

/// The functions by name; of hashes with more than 32 bits, the lowest are taken.
const FUNCTIONS: [(&str, Function); 11] = [
    ("xxh3", |bytes| XxHash3_64::oneshot(bytes) as u32),
    ("xxh64", |bytes| XxHash64::oneshot(0, bytes) as u32),
    ("murmur3, 32 bits", murmur3_32),
    ("murmur3, 128 bits", murmur3_128),
    ("fnv-1a, 64 bits", |bytes| finish(fnv::FnvHasher::default(), bytes)),
    ("fnv-1a, high half", |bytes| high(fnv::FnvHasher::default(), bytes)),
    ("siphash-1-3", |bytes| finish(siphasher::sip::SipHasher13::new(), bytes)),
    ("siphash-2-4", |bytes| finish(siphasher::sip::SipHasher24::new(), bytes)),
    ("ahash", |bytes| finish(ahash::RandomState::with_seeds(1, 2, 3, 4).build_hasher(), bytes)),
    ("djb2", djb2),
    ("sdbm", sdbm),
];

pub(super) fn table(scale: &Scale) -> Result<PaperTable, CheckError> {
    let sets = [
        ("random strings", strings(STRINGS.min(scale.keys))),
        ("numeric ids", ids(IDS)),
        ("account names", names(NAMES)),
    ];
    let expected = sets.each_ref().map(|(_, set)| (set.len() as f64).powi(2) / 2_f64.powi(33));
    let mut rows = vec![expected_row(expected)];
    for (name, function) in FUNCTIONS {
        let mut row = vec![Value::text(name)];
        row.extend(sets.each_ref().map(|(_, set)| Value::whole(collisions(set, function))));
        rows.push(row);
    }
    let mut headings = vec!["32 bits of".to_owned()];
    headings.extend(sets.each_ref().map(|(name, set)| format!("{} {name}", grouped(set.len() as u64))));
    Ok(PaperTable {
        title: "Collisions of hash functions".into(),
        source: "Keys less different 32-bit hashes, beside what a random function is expected to have: n^2 / 2^33. Strings \
                 of 8 to 32 letters and digits; ids of 1 to 9 digits; account names of 2 to 28 characters; all different, \
                 made with a fixed seed."
            .into(),
        headings,
        rows,
        notes: vec![
            "djb2 multiplies by 33 alone: one character can make up for its neighbour's difference, which account names \
             show."
                .into(),
        ],
        charts: Vec::new(),
    })
}

fn expected_row(expected: [f64; 3]) -> Vec<Value> {
    let mut row = vec![Value::text("a random function: n^2 / 2^33")];
    row.extend(expected.map(|collisions| Value::decimals(collisions, 2)));
    row
}

/// The number of keys minus the number of different hashes.
fn collisions(set: &[String], function: Function) -> u64 {
    let mut hashes: Vec<u32> = set.iter().map(|key| function(key.as_bytes())).collect();
    hashes.sort_unstable();
    hashes.dedup();
    (set.len() - hashes.len()) as u64
}

fn finish(mut hasher: impl Hasher, bytes: &[u8]) -> u32 {
    hasher.write(bytes);
    hasher.finish() as u32
}

fn high(mut hasher: impl Hasher, bytes: &[u8]) -> u32 {
    hasher.write(bytes);
    (hasher.finish() >> 32) as u32
}

fn murmur3_32(bytes: &[u8]) -> u32 {
    murmur3::murmur3_32(&mut Cursor::new(bytes), 0).expect("reading from memory does not fail")
}

fn murmur3_128(bytes: &[u8]) -> u32 {
    murmur3::murmur3_x64_128(&mut Cursor::new(bytes), 0).expect("reading from memory does not fail") as u32
}

/// D. J. Bernstein's, with 33 and 5381.
fn djb2(bytes: &[u8]) -> u32 {
    bytes.iter().fold(5381, |hash: u32, byte| hash.wrapping_mul(33).wrapping_add(u32::from(*byte)))
}

/// That of the sdbm database library, with 65599.
fn sdbm(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0, |hash: u32, byte| hash.wrapping_mul(65599).wrapping_add(u32::from(*byte)))
}

/// This many different texts made by `make`.
fn different(count: u64, mut make: impl FnMut(&mut SmallRng) -> String) -> Vec<String> {
    let mut rng = SmallRng::seed_from_u64(SEED);
    let mut seen = HashSet::with_capacity(count as usize);
    let mut texts = Vec::with_capacity(count as usize);
    while (texts.len() as u64) < count {
        let text = make(&mut rng);
        if seen.insert(text.clone()) {
            texts.push(text);
        }
    }
    texts
}

fn strings(count: u64) -> Vec<String> {
    const ALPHABET: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    different(count, |rng| {
        let length = rng.random_range(8..=32);
        (0..length).map(|_| char::from(ALPHABET[rng.random_range(0..ALPHABET.len())])).collect()
    })
}

fn ids(count: u64) -> Vec<String> {
    different(count, |rng| {
        let digits = rng.random_range(1..=9);
        rng.random_range(0..10_u64.pow(digits)).to_string()
    })
}

/// Syllables, sometimes with a separator between, often with digits at the end.
fn names(count: u64) -> Vec<String> {
    const HEADS: [&str; 20] = [
        "b", "ch", "d", "f", "g", "h", "j", "k", "l", "m", "n", "p", "r", "s", "t", "v", "w", "z", "st", "br",
    ];
    const TAILS: [&str; 14] = ["a", "e", "i", "o", "u", "y", "an", "er", "in", "on", "ul", "ea", "oo", "ie"];
    const SEPARATORS: [&str; 3] = ["_", ".", "-"];
    different(count, |rng| {
        let mut name = String::new();
        for _ in 0..rng.random_range(1..=6) {
            name.push_str(HEADS[rng.random_range(0..HEADS.len())]);
            name.push_str(TAILS[rng.random_range(0..TAILS.len())]);
            if rng.random_range(0..8) == 0 {
                name.push_str(SEPARATORS[rng.random_range(0..SEPARATORS.len())]);
            }
        }
        if rng.random_range(0..3) > 0 {
            let digits = rng.random_range(1..=4);
            name.push_str(&rng.random_range(0..10_u32.pow(digits)).to_string());
        }
        name.truncate(28);
        name
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_give_their_known_values() {
        let of = |name: &str, text: &str| {
            let (_, function) = FUNCTIONS.iter().find(|(known, _)| *known == name).expect("a known function");
            function(text.as_bytes())
        };
        assert_eq!(of("djb2", "a"), 5381 * 33 + 97);
        assert_eq!(of("sdbm", "ab"), 97 * 65599 + 98);
        assert_eq!(of("xxh3", ""), 0x38d3_94c2);
        assert_eq!(of("xxh64", ""), 0x51d8_e999);
        assert_eq!(of("murmur3, 32 bits", "hello"), 0x248b_fa47);
        assert_eq!(of("fnv-1a, 64 bits", "a"), 0x8601_ec8c);
    }

    #[test]
    fn sets_are_what_they_are_said_to_be() {
        let (ids, names) = (ids(IDS), names(NAMES));
        assert_eq!((ids.len() as u64, names.len() as u64), (IDS, NAMES));
        assert!(ids.iter().all(|id| (1..=9).contains(&id.len()) && id.bytes().all(|b| b.is_ascii_digit())));
        assert!(names.iter().all(|name| (2..=28).contains(&name.len())));
        assert!(names.iter().any(|name| name.len() == 2) && names.iter().any(|name| name.len() > 20));
        assert_eq!(collisions(&["a".into(), "b".into(), "c".into()], |_| 1), 2);
    }
}
