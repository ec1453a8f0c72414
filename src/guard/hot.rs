//! Between the guard and a cache of values: the only file that knows what the cache is.
//!
//! Whoever calls these keeps the coherence rules [D5]: `put` only inside of `Stripes::if_unchanged`, `remove` only by a
//! writer that holds the key's stripe, before its commit.

use super::store::Value;

/// The hot keys' values. For now nothing is kept.
#[derive(Debug)]
pub(super) struct Hot {}

impl Hot {
    /// A cache of so many bytes of keys and values; of none, if 0.
    pub(super) fn new(_bytes: u64) -> Self {
        Hot {}
    }

    /// Whether anything is ever kept: if not, nobody needs to offer it.
    #[inline]
    pub(super) fn is_on(&self) -> bool {
        false
    }

    #[inline]
    pub(super) fn get(&self, _key: &[u8]) -> Option<Value> {
        None
    }

    pub(super) fn put(&self, _key: &[u8], _value: &Value) {}

    pub(super) fn remove(&self, _key: &[u8]) {}

    /// Bytes of keys and values.
    pub(super) fn weight(&self) -> u64 {
        0
    }
}
