//! What a filter reports about itself.

use core::fmt;

use super::sizing::{Shape, rate_at};

/// What a filter consists of, and how full it is: from `info()`. Displays as a few lines of text.
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
    /// Bytes from the allocator.
    pub memory_usage: usize,
    /// The expected false-positive rate now.
    pub false_positive_rate: f64,
    /// The expected false-positive rate with as many keys as the capacity.
    pub false_positive_rate_when_full: f64,
    /// Fingerprints moved from one of their buckets to the other.
    pub displacements: u64,
}

impl FilterInfo {
    /// Describes a table of this shape, with this many keys, bytes and displacements.
    pub(super) fn new(shape: &Shape, len: usize, memory_usage: usize, displacements: u64) -> Self {
        let table = TableInfo::new(shape, len, memory_usage, displacements);
        FilterInfo {
            capacity_keys: table.capacity_keys,
            slots: table.slots,
            len,
            fingerprint_bits: table.fingerprint_bits,
            bucket_slots: table.bucket_slots,
            semi_sorted: table.semi_sorted,
            segments: shape.geometry.segments as usize,
            segment_buckets: shape.geometry.buckets as usize,
            memory_usage,
            false_positive_rate: table.false_positive_rate,
            false_positive_rate_when_full: shape.rate_when_full(),
            displacements,
        }
    }

    /// Returns the bits of memory for each key that fits.
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
            "false positives: {:.3e} now, {:.3e} with {} keys",
            self.false_positive_rate, self.false_positive_rate_when_full, self.capacity_keys
        )
    }
}

/// One table of a [`ScalableCuckooFilter`](crate::ScalableCuckooFilter), or of a [`FilterView`](crate::FilterView). Displays as
/// a line of text.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct TableInfo {
    /// The number of keys that the table is made for. Those of a [`CuckooFilter`](crate::CuckooFilter) fit for sure; in a
    /// growing filter, keys for which one of its segments has no room go to another table.
    pub capacity_keys: usize,
    /// Slots.
    pub slots: usize,
    /// Occupied slots.
    pub len: usize,
    /// Bits of a fingerprint.
    pub fingerprint_bits: u32,
    /// Slots in a bucket.
    pub bucket_slots: u32,
    /// Whether buckets are [semi-sorted](crate::FilterBuilder::semi_sorted): one bit less for each slot.
    pub semi_sorted: bool,
    /// Bytes: from the allocator; for a view, in the bytes that it looks up in.
    pub memory_usage: usize,
    /// The expected false-positive rate now.
    pub false_positive_rate: f64,
    /// Fingerprints moved from one of their buckets to the other; 0 in a view, as the bytes do not say.
    pub displacements: u64,
}

impl TableInfo {
    /// Describes a table of this shape, with this many keys, bytes and displacements.
    pub(super) fn new(shape: &Shape, len: usize, memory_usage: usize, displacements: u64) -> Self {
        let slots = shape.slots() as usize;
        TableInfo {
            capacity_keys: shape.capacity,
            slots,
            len,
            fingerprint_bits: shape.format.fingerprint_bits,
            bucket_slots: shape.format.bucket_slots,
            semi_sorted: shape.format.semi_sorted,
            memory_usage,
            false_positive_rate: rate_at(shape.format, len as f64, slots as f64),
            displacements,
        }
    }
}

impl fmt::Display for TableInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TableInfo { slots, len, fingerprint_bits, bucket_slots, memory_usage, .. } = self;
        write!(
            f,
            "{len} keys in {slots} slots of {fingerprint_bits} bits, {}buckets of {bucket_slots}, {memory_usage} bytes, {:.3e} \
             false positives now",
            if self.semi_sorted { "semi-sorted " } else { "" },
            self.false_positive_rate
        )
    }
}

/// Writes a line for each table, after the text that was written before.
pub(super) fn write_tables(f: &mut fmt::Formatter<'_>, tables: &[TableInfo]) -> fmt::Result {
    tables.iter().enumerate().try_for_each(|(number, table)| write!(f, "\ntable {number}: {table}"))
}

/// The tables that a [`FilterView`](crate::FilterView) looks up in: from its `info()`. Displays as lines of text.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ViewInfo {
    /// Whether the bytes are those of a [`ScalableCuckooFilter`](crate::ScalableCuckooFilter), or otherwise of a
    /// [`CuckooFilter`](crate::CuckooFilter).
    pub scalable: bool,
    /// Its tables, the oldest first; for a `CuckooFilter`, one.
    pub tables: Vec<TableInfo>,
}

impl fmt::Display for ViewInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tables = self.tables.len();
        let kind = if self.scalable { "growing " } else { "" };
        write!(f, "view of a {kind}cuckoo filter: {tables} table{}", if tables == 1 { "" } else { "s" })?;
        write_tables(f, &self.tables)
    }
}
