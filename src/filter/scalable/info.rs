//! What a growing filter says of itself.

use core::fmt;

/// What a [`ScalableCuckooFilter`](crate::ScalableCuckooFilter) is made of, and how full it is: from `info()`. Displays as
/// lines of text.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ScalableInfo {
    /// Its tables, the oldest first.
    pub tables: Vec<TableInfo>,
}

/// One table of a [`ScalableCuckooFilter`](crate::ScalableCuckooFilter).
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct TableInfo {
    /// Slots.
    pub slots: usize,
    /// Occupied slots.
    pub len: usize,
    /// Bits of a fingerprint.
    pub fingerprint_bits: u32,
    /// Bytes.
    pub memory_usage: usize,
    /// The expected false-positive rate now.
    pub false_positive_rate: f64,
}

impl fmt::Display for ScalableInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tables = self.tables.len();
        write!(f, "growing cuckoo filter: {tables} table{}", if tables == 1 { "" } else { "s" })?;
        for (number, table) in self.tables.iter().enumerate() {
            let TableInfo { slots, len, fingerprint_bits, memory_usage, false_positive_rate } = table;
            write!(
                f,
                "\ntable {number}: {len} keys in {slots} slots of {fingerprint_bits} bits, {memory_usage} bytes, \
                 {false_positive_rate:.3e} false positives now"
            )?;
        }
        Ok(())
    }
}
