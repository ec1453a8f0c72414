//! What a filter of fixed capacity must answer: a multiset of fingerprints with their two buckets, computed by
//! `docs/filter-format.md` and not by the library.

use std::collections::HashMap;

use koel::FilterInfo;

/// Segment, both buckets in ascending order, fingerprint.
type Place = (u64, u64, u64, u64);

/// The multiset.
#[derive(Clone)]
pub(crate) struct Oracle {
    segments: u64,
    buckets: u64,
    bits: u32,
    counts: HashMap<Place, usize>,
    pub(crate) len: usize,
}

impl Oracle {
    /// The oracle of an empty filter.
    pub(crate) fn new(info: &FilterInfo) -> Self {
        let (segments, buckets) = (info.segments as u64, info.segment_buckets as u64);
        Oracle { segments, buckets, bits: info.fingerprint_bits, counts: HashMap::new(), len: 0 }
    }

    fn place(&self, hash: u64) -> Place {
        let product = u128::from(hash) * 0x243F_6A88_85A3_08D3;
        let digest = product as u64 ^ (product >> 64) as u64;
        let product = u128::from(digest.swap_bytes()) * u128::from(self.buckets);
        let (first, rest) = ((product >> 64) as u64, product as u64);
        let fingerprint = (rest >> (64 - self.bits)).max(1);
        let mixed = fingerprint.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let mixed = (mixed >> 32) ^ (mixed & 0xFFFF_FFFF);
        let sum = (mixed * self.buckets) >> 32 | 1;
        let second = (sum + self.buckets - first) % self.buckets;
        let segment = ((u128::from(digest) * u128::from(self.segments)) >> 64) as u64;
        (segment, first.min(second), first.max(second), fingerprint)
    }

    pub(crate) fn count(&self, hash: u64) -> usize {
        self.counts.get(&self.place(hash)).copied().unwrap_or(0)
    }

    pub(crate) fn insert(&mut self, hash: u64) {
        *self.counts.entry(self.place(hash)).or_default() += 1;
        self.len += 1;
    }

    /// Removes a fingerprint. Returns whether there was one to remove.
    pub(crate) fn remove(&mut self, hash: u64) -> bool {
        let place = self.place(hash);
        let Some(count) = self.counts.get_mut(&place).filter(|count| **count > 0) else { return false };
        *count -= 1;
        self.len -= 1;
        true
    }

    pub(crate) fn clear(&mut self) {
        self.counts.clear();
        self.len = 0;
    }

    /// Adds everything that another multiset has.
    pub(crate) fn unite(&mut self, other: &Self) {
        other.counts.iter().for_each(|(place, count)| *self.counts.entry(*place).or_default() += count);
        self.len += other.len;
    }
}
