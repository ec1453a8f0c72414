//! The bytes are what `docs/filter-format.md` says; they are read according to it and not by the library: every layout, and
//! tables of growing filters.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hasher};

use koel::{ScalableCuckooFilter, Xxh3};

use crate::{builder, layouts};

/// Segment, both buckets in ascending order, fingerprint; and how often it is there.
type Contents = BTreeMap<(u64, u64, u64, u64), u64>;

/// A table's header, as far as places depend on it.
#[derive(Clone, Copy, Debug)]
struct Table {
    bits: u64,
    slots: u64,
    semi_sorted: bool,
    upper_bits: u64,
    segments: u64,
    buckets: u64,
}

fn number(bytes: &[u8], at: usize, len: usize) -> u64 {
    bytes[at..at + len].iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// Bits `at..at + len` of words, the lowest first.
fn bits(words: &[u8], at: u64, len: u64) -> u64 {
    (at..at + len).rev().fold(0, |all, i| all << 1 | u64::from(words[i as usize / 8] >> (i % 8) & 1))
}

fn xxh3(seed: u64, bytes: &[u8]) -> u64 {
    let mut hasher = Xxh3::with_seed(seed).build_hasher();
    hasher.write(bytes);
    hasher.finish()
}

/// The four nibbles of every code.
fn nibbles() -> Vec<[u64; 4]> {
    let choose = |n: u64, k: u64| (0..k).fold(1, |all, i| all * n.saturating_sub(i) / (i + 1));
    let mut codes = vec![[0; 4]; choose(19, 4) as usize];
    for all in 0..1 << 16 {
        let [a, b, c, d] = [0, 4, 8, 12].map(|shift| all >> shift & 15);
        if a <= b && b <= c && c <= d {
            let code = choose(a, 1) + choose(b + 1, 2) + choose(c + 2, 3) + choose(d + 3, 4);
            codes[code as usize] = [a, b, c, d];
        }
    }
    codes
}

impl Table {
    fn of(header: &[u8]) -> Self {
        assert_eq!((&header[..8], number(header, 8, 4)), (&b"koelcf\r\n"[..], 2));
        assert_eq!(number(header, 56, 8), xxh3(0, &header[..56]));
        Table {
            bits: number(header, 12, 1),
            slots: number(header, 13, 1),
            semi_sorted: number(header, 14, 1) == 1,
            upper_bits: number(header, 15, 1),
            segments: number(header, 16, 4),
            buckets: number(header, 20, 4),
        }
    }

    /// The other bucket of a fingerprint.
    fn other(&self, bucket: u64, fingerprint: u64) -> u64 {
        let upper = (fingerprint >> (self.bits - self.upper_bits)).max(1);
        let product = upper.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let mixed = ((product >> 32) ^ product) & 0xFFFF_FFFF;
        let sum = (mixed * self.buckets) >> 32 | 1;
        (sum + self.buckets - bucket) % self.buckets
    }

    fn note(&self, contents: &mut Contents, segment: u64, bucket: u64, fingerprint: u64) {
        let other = self.other(bucket, fingerprint);
        *contents.entry((segment, bucket.min(other), bucket.max(other), fingerprint)).or_default() += 1;
    }

    /// The contents of a table that has all keys of these hashes.
    fn contents_of(&self, hashes: &[u64]) -> Contents {
        let mut contents = Contents::new();
        for hash in hashes {
            let product = u128::from(*hash) * 0x243F_6A88_85A3_08D3;
            let digest = product as u64 ^ (product >> 64) as u64;
            let segment = (u128::from(digest) * u128::from(self.segments)) >> 64;
            let product = u128::from(digest.swap_bytes()) * u128::from(self.buckets);
            let fingerprint = (product as u64 >> (64 - self.bits)).max(1);
            self.note(&mut contents, segment as u64, (product >> 64) as u64, fingerprint);
        }
        contents
    }

    /// The fingerprints of a bucket, with 0 for empty slots.
    fn bucket(&self, words: &[u8], bucket: u64, codes: &[[u64; 4]]) -> Vec<u64> {
        let at = bucket * self.bucket_bits();
        if !self.semi_sorted {
            return (0..self.slots).map(|slot| bits(words, at + slot * self.bits, self.bits)).collect();
        }
        let lows = codes[bits(words, at, 12) as usize];
        let high_bits = self.bits - 4;
        let highs = (0..4).map(|slot| bits(words, at + 12 + slot * high_bits, high_bits));
        highs.zip(lows).map(|(high, low)| high << 4 | low).collect()
    }

    fn bucket_bits(&self) -> u64 {
        if self.semi_sorted { 12 + 4 * (self.bits - 4) } else { self.bits * self.slots }
    }

    /// The contents of the table with which the bytes begin, and the bytes after it.
    fn read<'b>(&self, bytes: &'b [u8], codes: &[[u64; 4]]) -> (Contents, &'b [u8]) {
        let (header, mut rest) = bytes.split_at(64);
        let mut contents = Contents::new();
        for segment in 0..self.segments {
            let words = 8 * (self.buckets * self.bucket_bits()).div_ceil(64) as usize;
            let (frame, after) = rest.split_at(16 + words);
            rest = after;
            let seed = number(header, 56, 8).wrapping_add(segment);
            assert_eq!(number(frame, 8 + words, 8), xxh3(seed, &frame[..8 + words]));
            let mut len = 0;
            for bucket in 0..self.buckets {
                for fingerprint in self.bucket(&frame[8..], bucket, codes).into_iter().filter(|f| *f != 0) {
                    self.note(&mut contents, segment, bucket, fingerprint);
                    len += 1;
                }
            }
            assert_eq!(number(frame, 0, 8), len);
        }
        (contents, rest)
    }
}

#[test]
fn bytes_of_every_layout_are_what_the_document_says() {
    let codes = nibbles();
    for layout in layouts() {
        let filter = builder(layout).capacity(40).seed(1).build().unwrap();
        // With copies; and so many that some are displaced.
        let hashes: Vec<u64> = (0..filter.capacity() as u64).map(|n| n / 2).collect();
        let hashes = &hashes[..filter.insert_many_hash(&hashes)];
        let bytes = filter.to_bytes();
        let table = Table::of(&bytes);
        assert_eq!((table.bits, table.slots), (u64::from(layout.0), u64::from(layout.1)));
        let (contents, rest) = table.read(&bytes, &codes);
        assert!(contents == table.contents_of(hashes) && rest.is_empty(), "{layout:?}");
    }
}

/// With more than one segment, and not a power of two of them.
#[test]
fn bytes_of_segments_are_what_the_document_says() {
    let filter = builder((11, 2, false)).capacity(250_000).seed(1).build().unwrap();
    let hashes: Vec<u64> = (0..250_000).collect();
    assert_eq!(filter.insert_many_hash(&hashes), hashes.len());
    let bytes = filter.to_bytes();
    let table = Table::of(&bytes);
    assert_eq!(table.segments, 3);
    assert!(table.read(&bytes, &nibbles()).0 == table.contents_of(&hashes));
}

/// The contents of newer tables, converted to the form of the oldest: together, all keys.
#[test]
fn bytes_of_growing_filters_are_what_the_document_says() {
    let codes = nibbles();
    for (bits, slots, semi_sorted) in [(6, 4, false), (9, 4, true), (12, 2, false), (14, 8, false)] {
        let builder = ScalableCuckooFilter::builder().capacity(1).fingerprint_bits(bits).bucket_slots(slots);
        let filter = builder.semi_sorted(semi_sorted).max_duplicates(20).seed(1).build().unwrap();
        let hashes: Vec<u64> = (0..30_000).collect();
        assert_eq!(filter.insert_many_hash(&hashes), hashes.len());
        let bytes = filter.to_bytes();
        assert_eq!((&bytes[..8], number(&bytes, 8, 4)), (&b"koelsf\r\n"[..], 2));
        assert_eq!((number(&bytes, 16, 8), number(&bytes, 56, 8)), (20, xxh3(0, &bytes[..56])));
        let (mut rest, mut all) = (&bytes[64..], Contents::new());
        let tables = number(&bytes, 12, 4);
        assert!(tables >= 3, "{}", filter.info());
        let mut oldest = None;
        for table in 0..tables {
            let (newer, contents);
            newer = Table::of(rest);
            (contents, rest) = newer.read(rest, &codes);
            let wider = newer.bits - newer.upper_bits;
            assert_eq!((wider, newer.upper_bits), (tables - 1 - table, u64::from(bits)));
            for ((segment, first, second, fingerprint), count) in contents {
                let place = (segment >> wider, first, second, (fingerprint >> wider).max(1));
                *all.entry(place).or_default() += count;
            }
            oldest = Some(newer);
        }
        assert!(rest.is_empty() && oldest.is_some_and(|oldest| oldest.contents_of(&hashes) == all));
    }
}

/// Each write's hash is the seed of the next.
#[test]
fn hashes_of_keys_are_what_the_document_says() {
    let filter = builder((16, 4, false)).capacity(1).seed(7).build().unwrap();
    let chained = |writes: &[&[u8]]| writes.iter().fold(7, |seed, bytes| xxh3(seed, bytes));
    assert_eq!(filter.hash(&7_u32), chained(&[&[7, 0, 0, 0]]));
    assert_eq!(filter.hash(&(1_u16, -2_i64)), chained(&[&[1, 0], &(-2_i64).to_le_bytes()]));
    assert_eq!(filter.hash(&3_usize), chained(&[&3_u64.to_le_bytes()]));
    assert_eq!(filter.hash("ada"), chained(&[b"ada", &[0xFF]]));
    assert_eq!(filter.hash_bytes(b"ada"), chained(&[b"ada"]));
    assert_eq!(filter.hash_bytes(&[]), xxh3(7, &[]));
}
