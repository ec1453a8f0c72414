//! The answer of a table of fixed capacity that has no room.

use core::error::Error;
use core::fmt;

/// A map or filter of fixed capacity had no room for a new key, and is as it was.
///
/// From a map's `checked_insert` it has key and value, handed back; see
/// [`Builder::fixed_capacity`](crate::Builder::fixed_capacity). A map that is being written to by several threads may say
/// so a few entries early: what they insert and remove while the entries are counted may count twice. From a filter,
/// which takes its keys by reference, it is `Full` without parameters.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Full<K = (), V = ()> {
    /// The key that was not inserted.
    pub key: K,
    /// The value that was not inserted.
    pub value: V,
}

impl Full {
    /// With nothing to hand back.
    pub(crate) const NOTHING: Self = Full { key: (), value: () };
}

impl<K, V> fmt::Debug for Full<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Full").finish_non_exhaustive()
    }
}

impl<K, V> fmt::Display for Full<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the table has a fixed capacity and is full; nothing was changed")
    }
}

impl<K, V> Error for Full<K, V> {}
