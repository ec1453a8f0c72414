//! Bytes that `docs/filter-format.md` rules out are refused through every way in, however right their checksums are.

use koel::{BytesError, CuckooFilter, FilterError, ScalableCuckooFilter};

use crate::hostile::filter_bytes::{HEADER, all_ways, sign};
use crate::hostile::sample;

/// The bytes with some replaced from `at` on, and right checksums.
fn with(bytes: &[u8], at: usize, others: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[at..at + others.len()].copy_from_slice(others);
    sign(&mut bytes);
    bytes
}

fn is_layout<T>(result: Result<T, FilterError>) -> bool {
    matches!(result, Err(FilterError::Bytes(BytesError::Layout)))
}

/// `segments * buckets * slots in a bucket`.
fn slots(bytes: &[u8]) -> u64 {
    let number = |at: usize| u64::from(u32::from_le_bytes([0, 1, 2, 3].map(|i| bytes[at + i])));
    number(16) * number(20) * u64::from(bytes[13])
}

#[test]
fn a_header_that_is_out_of_range() {
    let plain = sample((9, 4, false));
    let many = slots(&plain);
    assert!(all_ways(&with(&plain, 48, &many.to_le_bytes())), "as many keys as slots may be");
    let cases: [(usize, &[u8]); 17] = [
        (12, &[1]),
        (12, &[33]),
        (13, &[0]),
        (13, &[3]),
        (13, &[16]),
        (14, &[2]),
        (15, &[0]),
        (15, &[1]),
        (15, &[10]),
        (16, &[0; 4]),
        (16, &[1, 0, 1, 0]),
        (20, &[0; 4]),
        (20, &[3, 0, 0, 0]),
        (20, &[2, 0, 1, 0]),
        (28, &[1]),
        (48, &[0; 8]),
        (48, &(many + 1).to_le_bytes()),
    ];
    for (at, others) in cases {
        let bytes = with(&plain, at, others);
        assert!(!all_ways(&bytes) && is_layout(CuckooFilter::from_bytes(&bytes)), "{others:?} at {at}");
    }
    // Other layouts have no semi-sorted buckets; and only the tables of a growing filter select the alternate by some of the
    // bits.
    for (layout, at, byte) in [((4, 4, false), 14, 1), ((9, 8, false), 14, 1), ((9, 4, false), 15, 8)] {
        let bytes = with(&sample(layout), at, &[byte]);
        assert!(
            !all_ways(&bytes) && is_layout(CuckooFilter::from_bytes(&bytes)),
            "{layout:?}, {byte} at {at}"
        );
    }
    for version in [1_u8, 3] {
        let error = CuckooFilter::from_bytes(&with(&plain, 8, &[version])).unwrap_err();
        assert!(
            matches!(error, FilterError::Bytes(BytesError::Version(other)) if other == u32::from(version)),
            "{error}"
        );
    }
}

#[test]
fn a_segment_that_holds_other_than_it_says() {
    let is_content = |result: Result<CuckooFilter, FilterError>| {
        matches!(result, Err(FilterError::Bytes(BytesError::Content { segment: 0 })))
    };
    for layout in [(9, 4, false), (13, 2, false), (9, 4, true)] {
        let bytes = sample(layout);
        for len in [9, 11] {
            let other = with(&bytes, HEADER, &[len]);
            assert!(!all_ways(&other) && is_content(CuckooFilter::from_bytes(&other)), "{layout:?}, {len}");
        }
    }
    // Three buckets of 36 bits, plus one more, are 144 bits: the last word has 48 bits that belong to no bucket.
    let mut short = sample((9, 4, false));
    short.truncate(HEADER + 8 + 3 * 8 + 8);
    short[16..24].copy_from_slice(&[1, 0, 0, 0, 4, 0, 0, 0]);
    short[48] = 1;
    short[HEADER..].fill(0);
    assert!(all_ways(&with(&short, HEADER, &[0])));
    for bit in 144..192 {
        let other = with(&short, HEADER + 8 + bit / 8, &[1 << (bit % 8)]);
        assert!(!all_ways(&other) && is_content(CuckooFilter::from_bytes(&other)), "bit {bit}");
    }
}

/// A growing filter with a seed, and the bytes of its tables, newest first.
fn grown(seed: u64, capacity: usize, rate: f64) -> (Vec<u8>, Vec<Vec<u8>>) {
    let filter = ScalableCuckooFilter::builder()
        .capacity(capacity)
        .false_positive_rate(rate)
        .seed(seed)
        .build()
        .unwrap();
    let keys = 5 * filter.capacity() as u64;
    (0..keys).for_each(|key| filter.insert(&key).unwrap());
    let mut tables: Vec<Vec<u8>> = Vec::new();
    for chunk in filter.chunks().skip(1) {
        match tables.last_mut() {
            Some(table) if !chunk.starts_with(b"koelcf") => table.extend(chunk),
            _ => tables.push(chunk),
        }
    }
    assert!(tables.len() >= 3);
    (filter.to_bytes()[..HEADER].to_vec(), tables)
}

/// A growing filter of these tables.
fn chain(header: &[u8], tables: &[&Vec<u8>]) -> Vec<u8> {
    let mut bytes = header.to_vec();
    bytes[12] = tables.len() as u8;
    tables.iter().for_each(|table| bytes.extend(*table));
    sign(&mut bytes);
    bytes
}

#[test]
fn a_growing_filter_whose_header_is_out_of_range() {
    let (header, tables) = grown(1, 100, 0.01);
    let bytes = chain(&header, &tables.iter().collect::<Vec<_>>());
    assert!(all_ways(&bytes));
    let reserved = (24..56).map(|at| (at, [1].to_vec()));
    let cases = [(12, vec![0]), (12, vec![33]), (16, vec![0; 8])].into_iter().chain(reserved);
    for (at, others) in cases {
        let bytes = with(&bytes, at, &others);
        assert!(
            !all_ways(&bytes) && is_layout(ScalableCuckooFilter::from_bytes(&bytes)),
            "{others:?} at {at}"
        );
    }
}

#[test]
fn tables_that_are_no_chain() {
    let (header, tables) = grown(1, 100, 0.01);
    let [newest, newer, .., oldest] = &tables[..] else { unreachable!("three at the least") };
    let middle = &tables[1..tables.len() - 1];
    let refused = |which: &str, tables: &[&Vec<u8>]| {
        let bytes = chain(&header, tables);
        assert!(!all_ways(&bytes) && is_layout(ScalableCuckooFilter::from_bytes(&bytes)), "{which}");
    };
    let all: Vec<_> = tables.iter().collect();
    refused("the oldest first", &all.iter().rev().copied().collect::<Vec<_>>());
    refused("one twice", &[&[newest], &all[..]].concat());
    refused("two in each other's place", &[&[newer, newest], &all[2..]].concat());
    refused("without the oldest", &all[..all.len() - 1]);
    refused("the oldest twice", &[&all[..], &[oldest]].concat());
    // A table in the middle may have been given back.
    assert!(all_ways(&chain(&header, &[newest, oldest])));
    assert!(all_ways(&chain(&header, &middle.iter().chain([oldest]).collect::<Vec<_>>())));
    let (_, others) = grown(1, 20_000, 0.01);
    refused("of two plans", &[&others[0], oldest]);
    let (_, wider) = grown(1, 100, 0.0001);
    refused("of two rates", &[&wider[0], oldest]);
}

#[test]
fn tables_of_two_hash_functions() {
    let ((header, tables), (_, others)) = (grown(1, 100, 0.01), grown(2, 100, 0.01));
    let last = tables.len() - 1;
    for at in 0..=last {
        let mut mixed: Vec<_> = tables.iter().collect();
        mixed[at] = &others[at];
        let bytes = chain(&header, &mixed);
        let error = ScalableCuckooFilter::from_bytes(&bytes).unwrap_err();
        assert!(matches!(error, FilterError::Bytes(BytesError::Hasher)), "{error}");
        assert!(!all_ways(&bytes));
    }
    assert!(all_ways(&chain(&header, &others.iter().collect::<Vec<_>>())), "the other's alone");
}
