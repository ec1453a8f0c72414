//! What a growing filter reports about itself.

use core::fmt;

use super::super::info::{TableInfo, write_tables};

/// What a [`ScalableCuckooFilter`](crate::ScalableCuckooFilter) consists of, and how full it is: from `info()`. Displays as
/// lines of text.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ScalableInfo {
    /// Its tables, the oldest first.
    pub tables: Vec<TableInfo>,
    /// The number of keys for which there is room in all tables that it can have:
    /// [`max_keys`](crate::ScalableCuckooFilter::max_keys).
    pub max_keys: usize,
    /// How often a key may be present: [`max_duplicates`](crate::ScalableCuckooFilter::max_duplicates).
    pub max_duplicates: usize,
}

impl fmt::Display for ScalableInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ScalableInfo { tables, max_keys, .. } = self;
        let several = if tables.len() == 1 { "" } else { "s" };
        write!(f, "growing cuckoo filter: {} table{several}", tables.len())?;
        write_tables(f, tables)?;
        write!(f, "\nroom for {max_keys} keys in all tables that there can be")
    }
}
