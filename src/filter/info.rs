//! What a filter says of itself.

use core::fmt;

/// What a filter is made of, and how full it is: from `info()`. Displays as a few lines of text.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct FilterInfo {
    /// Keys that fit for sure.
    pub capacity_keys: usize,
    /// Slots.
    pub slots: usize,
    /// Occupied slots: keys that were inserted and not removed.
    pub len: usize,
    /// Bits of a fingerprint.
    pub fingerprint_bits: u32,
    /// Slots in a bucket.
    pub bucket_slots: u32,
    /// Whether buckets are [semi-sorted](crate::FilterBuilder::semi_sorted): one bit less for each slot.
    pub semi_sorted: bool,
    /// Segments: each has a writer lock.
    pub segments: usize,
    /// Buckets in each.
    pub segment_buckets: usize,
    /// Bytes.
    pub memory_usage: usize,
    /// The expected false-positive rate now.
    pub false_positive_rate: f64,
    /// The expected false-positive rate with as many keys as the capacity.
    pub false_positive_rate_when_full: f64,
    /// Fingerprints moved from one of their buckets to the other.
    pub displacements: u64,
}

impl FilterInfo {
    /// Bits of memory for each key that fits.
    #[must_use]
    pub fn bits_per_key(&self) -> f64 {
        self.memory_usage as f64 * 8.0 / self.capacity_keys as f64
    }
}

impl fmt::Display for FilterInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.semi_sorted { "semi-sorted buckets" } else { "buckets" };
        writeln!(
            f,
            "cuckoo filter: {}-bit fingerprints, {kind} of {}, {} segment{} of {} buckets",
            self.fingerprint_bits,
            self.bucket_slots,
            self.segments,
            if self.segments == 1 { "" } else { "s" },
            self.segment_buckets
        )?;
        writeln!(
            f,
            "keys: {} of {} (in {} slots, {:.1}% full)",
            self.len,
            self.capacity_keys,
            self.slots,
            100.0 * self.len as f64 / self.slots as f64
        )?;
        writeln!(
            f,
            "memory: {} bytes, {:.2} bits for each key that fits",
            self.memory_usage,
            self.bits_per_key()
        )?;
        write!(
            f,
            "false positives: {:.3e} now, {:.3e} when full",
            self.false_positive_rate, self.false_positive_rate_when_full
        )
    }
}
