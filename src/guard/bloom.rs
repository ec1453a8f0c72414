//! A Bloom filter (through `fastbloom`) that counts the keys it cannot remove.

use core::alloc::Layout;
use core::f64::consts::LN_2;
use std::io::{self, Write};

use fastbloom::AtomicBloomFilter;

use crate::engine::Meter;
use crate::filter::{FilterError, try_collect};
use crate::sync::{AtomicU64, Ordering, SCHEDULED};

/// When this fraction of the inserted keys has been deleted from the store, the filter is worth rebuilding.
const STALE: f64 = 0.25;
/// So is a filter whose false-positive rate is this many times what it was made for, or that has `CROWDED` times the keys: at a
/// rate of 1% both happen at about the same time; the lower the rate, the faster it rises.
const LOOSE: f64 = 5.0;
const CROWDED: f64 = 1.5;
/// The fewest keys that a filter is made for.
const MIN_KEYS: u64 = if SCHEDULED { 1 } else { 1000 };
/// A filter with this many times the keys that it was made for is not worth loading.
const HOPELESS: u64 = 100;
/// The most hash functions: those of the lowest rate that a number can express.
const MAX_HASHES: u64 = 1100;

/// Hashes, and the words of a filter of three of them with twelve bits each. Which bits these are is up to `fastbloom`, and a
/// snapshot that was written with others would deny its keys.
const PROBES: ([u64; 2], [u64; 3]) = (
    [0x0123_4567_89ab_cdef, 0xfedc_ba98_7654_3210],
    [0x0c01_0070_0000_080d, 0x0002_0020_144c_0000, 0x8000_0020_0023_4000],
);

/// Whether a hash still has the bits that it has in snapshots.
fn maps_as_ever() -> bool {
    let (hashes, words) = PROBES;
    let bits = AtomicBloomFilter::with_num_bits(64 * words.len()).hashes(12);
    for hash in hashes {
        bits.insert_hash(hash);
    }
    bits.iter().eq(words)
}

/// How many times its keys a filter of this rate may hold before it is worth rebuilding. With k = -log2(rate) hash functions
/// and k / ln 2 bits for each key, x times the keys leave a bit unset with the probability 2^-x, and so a rate of (1 - 2^-x)^k
/// (the same section).
fn keys_of_worth(rate: f64) -> f64 {
    let loose = LOOSE * rate;
    if loose >= 1.0 {
        return CROWDED;
    }
    let unset = 1.0 - loose.powf(-1.0 / rate.log2());
    CROWDED.min(-unset.log2())
}

/// Bits for each key, for a false-positive rate above 0 and below 1: -ln(rate) / (ln 2)^2 (Broder and Mitzenmacher 2004,
/// section 2).
fn bits_per_key(rate: f64) -> f64 {
    -rate.ln() / (LN_2 * LN_2)
}

fn most_keys(capacity: u64, rate: f64) -> u64 {
    (capacity as f64 * keys_of_worth(rate)) as u64
}

#[derive(Debug)]
pub(super) struct Bloom {
    bits: AtomicBloomFilter,
    /// Keys that it was made for.
    capacity: u64,
    /// Keys with which it is worth rebuilding.
    most: u64,
    inserted: AtomicU64,
    deleted: AtomicU64,
}

impl Bloom {
    /// Creates an empty filter for this many keys.
    pub(super) fn new(keys: u64, rate: f64) -> Result<Self, FilterError> {
        if !(rate > 0.0 && rate < 1.0) {
            return Err(FilterError::Rate { requested: rate });
        }
        let capacity = keys.max(MIN_KEYS);
        // `fastbloom` aborts the process if there is no memory.
        let words = (capacity as f64 * bits_per_key(rate) / 64.0).ceil() as usize;
        let bytes = words.saturating_mul(size_of::<u64>());
        let Some(bits) = words.checked_mul(64).filter(|_| Layout::array::<u64>(words).is_ok_and(Meter::has))
        else {
            return Err(FilterError::OutOfMemory { bytes });
        };
        let keys = usize::try_from(capacity).unwrap_or(usize::MAX);
        let bits = AtomicBloomFilter::with_num_bits(bits).expected_items(keys);
        let most = most_keys(capacity, rate);
        Ok(Bloom { bits, capacity, most, inserted: AtomicU64::new(0), deleted: AtomicU64::new(0) })
    }

    #[inline]
    pub(super) fn contains(&self, hash: u64) -> bool {
        self.bits.contains_hash(hash)
    }

    /// Inserts a hash. Returns whether all of its bits were set already.
    pub(super) fn insert(&self, hash: u64) -> bool {
        // Relaxed, here and below: information.
        self.inserted.fetch_add(1, Ordering::Relaxed);
        // Its bits are set relaxed: the store's commit, or the publication of the filter, orders them for readers.
        self.bits.insert_hash(hash)
    }

    /// Counts the deletion of a key that was in; its bits stay.
    pub(super) fn delete(&self) {
        self.deleted.fetch_add(1, Ordering::Relaxed);
    }

    /// Takes back the count of an insertion, of a key that was in already.
    pub(super) fn undo(&self) {
        self.inserted.fetch_sub(1, Ordering::Relaxed);
    }

    /// Keys that were inserted and not deleted.
    pub(super) fn len(&self) -> u64 {
        self.inserted().saturating_sub(self.deleted.load(Ordering::Relaxed))
    }

    /// Keys that it was made for.
    pub(super) fn capacity(&self) -> u64 {
        self.capacity
    }

    fn inserted(&self) -> u64 {
        self.inserted.load(Ordering::Relaxed)
    }

    pub(super) fn is_worn(&self) -> bool {
        let (inserted, deleted) = (self.inserted(), self.deleted.load(Ordering::Relaxed));
        deleted as f64 > self.capacity.max(inserted) as f64 * STALE || inserted > self.most
    }

    pub(super) fn false_positive_rate(&self) -> f64 {
        self.bits.expected_false_pos(self.inserted() as usize)
    }

    pub(super) fn memory_usage(&self) -> usize {
        self.bits.num_bits() / 8
    }

    /// Writes four numbers, then the words, all little-endian.
    pub(super) fn write_to(&self, out: &mut impl Write) -> io::Result<()> {
        let deleted = self.deleted.load(Ordering::Relaxed);
        let numbers = [u64::from(self.bits.num_hashes()), self.capacity, self.inserted(), deleted];
        numbers
            .into_iter()
            .chain(self.bits.iter())
            .try_for_each(|number| out.write_all(&number.to_le_bytes()))
    }

    /// The filter of this rate in bytes that a checksum vouches for. Its numbers must be possible all the same, since a filter
    /// that is built after this one has room for as many keys. `None` if they are not, or the bytes are no filter.
    pub(super) fn from_bytes(bytes: &[u8], rate: f64) -> Result<Option<Self>, FilterError> {
        let numbers = bytes.chunks_exact(8);
        let mut numbers =
            numbers.map(|number| u64::from_le_bytes(*number.first_chunk().expect("eight bytes")));
        let [Some(hashes), Some(capacity), Some(inserted), Some(deleted)] =
            core::array::from_fn(|_| numbers.next())
        else {
            return Ok(None);
        };
        let words = numbers;
        // Twice as many, as sizes are rounded both here and there.
        let most = MIN_KEYS.saturating_add((2.0 * 64.0 * words.len() as f64 / bits_per_key(rate)) as u64);
        let is_possible = capacity <= most
            && inserted <= most.saturating_mul(HOPELESS)
            && (1..=MAX_HASHES).contains(&hashes)
            // Otherwise the expected rate could not be computed.
            && usize::try_from(inserted.saturating_mul(hashes)).is_ok_and(|sets| sets < usize::MAX);
        if words.len() == 0 || !is_possible || bytes.len() % 8 != 0 || !maps_as_ever() {
            return Ok(None);
        }
        // `fastbloom` takes over the list, without further memory where a word is aligned as an atomic one.
        let bits = AtomicBloomFilter::from_vec(try_collect(words)?).hashes(hashes as u32);
        let (inserted, deleted) = (AtomicU64::new(inserted), AtomicU64::new(deleted));
        Ok(Some(Bloom { bits, capacity, most: most_keys(capacity, rate), inserted, deleted }))
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn a_filter_is_worth_its_keys_until_five_times_as_many_absent_ones_pass() {
        let hash = |n: u64| n.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (n >> 7);
        for (rate, least) in [(0.5, 1.5), (0.1, 1.5), (0.01, 1.4), (1e-4, 1.1), (1e-8, 1.0)] {
            let filter = Bloom::new(10_000, rate).unwrap();
            assert!((10_000.0 * least) as u64 <= filter.most && filter.most <= 15_000, "{}", filter.most);
            (0..filter.most).for_each(|n| _ = filter.insert(hash(n)));
            assert!(!filter.is_worn());
            let reached = filter.false_positive_rate();
            assert!(reached < 6.0 * rate, "{rate}: {reached}");
            assert!(filter.most == 15_000 || reached > 4.0 * rate, "{rate}: {reached}");
            filter.insert(hash(filter.most));
            assert!(filter.is_worn());
        }
    }

    /// Even if the checksum that vouches for them is right.
    #[test]
    fn bytes_of_impossible_numbers_are_no_filter() {
        let filter = Bloom::new(2000, 0.01).unwrap();
        (0..100).for_each(|hash| _ = filter.insert(hash));
        let mut bytes = Vec::new();
        filter.write_to(&mut bytes).unwrap();
        let read = |bytes: &[u8]| Bloom::from_bytes(bytes, 0.01).unwrap();
        let back = read(&bytes).expect("its own bytes");
        assert!(back.bits.iter().eq(filter.bits.iter()) && back.inserted() == 100 && back.capacity == 2000);
        let with = |number: usize, value: u64| {
            let mut bytes = bytes.clone();
            bytes[8 * number..][..8].copy_from_slice(&value.to_le_bytes());
            read(&bytes)
        };
        // Hash functions, capacity, insertions.
        let cases =
            [(0, 0), (0, MAX_HASHES + 1), (1, 1_000_000), (1, u64::MAX), (2, 1_000_000), (2, u64::MAX)];
        for (number, value) in cases {
            assert!(with(number, value).is_none(), "{value} as number {number}");
        }
        assert!(with(0, MAX_HASHES).is_some() && with(1, 4000).is_some() && with(2, 100_000).is_some());
        for len in (0..=4 * 8).chain([bytes.len() - 1, bytes.len() - 4]) {
            assert!(read(&bytes[..len]).is_none(), "{len} bytes");
        }
    }

    /// If it does not, snapshots need another version; until then guards with a Bloom filter scan at each opening.
    #[test]
    fn a_hash_has_the_bits_that_it_has_in_snapshots() {
        assert!(maps_as_ever());
    }
}
