//! The answer of a cache that cannot take an entry.

use core::error::Error;
use core::fmt;

/// The cache did not take an entry, and hands it back. If it had an entry for the key, it still has that. It still has all
/// others too, except where there was no memory: some may have made room.
///
/// ```
/// let cache: koel::Cache<&str, String> =
///     koel::Cache::builder().max_weight(10).weigher(|_, value: &String| value.len() as u64).build();
/// let refused = cache.insert("key", "eleven bytes".to_string()).unwrap_err();
/// assert_eq!(refused.why, koel::Why::TooHeavy { weight: 12, capacity: 10 });
/// assert_eq!(refused.value, "eleven bytes");
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Refused<K, V> {
    /// The key that was not inserted.
    pub key: K,
    /// The value that was not inserted.
    pub value: V,
    /// What was wrong.
    pub why: Why,
}

/// Why a cache did not take an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Why {
    /// It is heavier than all that the cache may hold.
    TooHeavy {
        /// The weight of the entry: 1 if the cache has no weigher.
        weight: u64,
        /// How much the cache may hold.
        capacity: u64,
    },
    /// The allocator had no memory for it. See [without memory](crate#when-allocation-fails).
    OutOfMemory,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Why::TooHeavy { weight, capacity } => {
                write!(f, "an entry of weight {weight} does not fit a cache that may hold {capacity}")
            }
            Why::OutOfMemory => f.write_str("no memory for another entry"),
        }
    }
}

/// Says what happened, and not for which key, so that any `K` and `V` will do.
impl<K, V> fmt::Debug for Refused<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Refused({})", self.why)
    }
}

impl<K, V> fmt::Display for Refused<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.why.fmt(f)
    }
}

impl<K, V> Error for Refused<K, V> {}
