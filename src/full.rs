//! The error of a table of fixed capacity that has no room.

use core::error::Error;
use core::fmt;

/// There was no room for a new key: the map or filter is full, because it is of fixed capacity or at its limit of memory; or
/// the filter has as many copies of the key as it may have; or an allocation failed. Nothing was changed.
///
/// From a map's `checked_insert` and related methods it hands back key and value: those that were to be inserted, or that a
/// closure has made. See [`Builder::fixed_capacity`](crate::Builder::fixed_capacity). A map that several threads write to may
/// report this a few entries early: what they insert and remove while the entries are counted may count twice. From a filter,
/// which takes its keys by reference, it is `Full` without parameters.
///
/// ```
/// let map = koel::InlineMap::builder().fixed_capacity(2).build();
/// let full = (0..9).find_map(|i| map.checked_insert(i, i).err()).unwrap();
/// assert!(full.to_string().starts_with("no room for a new key"));
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Full<K = (), V = ()> {
    /// The key that was not inserted.
    pub key: K,
    /// The value that was not inserted.
    pub value: V,
}

impl Full {
    /// The error with nothing to hand back.
    pub(crate) const NOTHING: Self = Full { key: (), value: () };
}

/// Shows what happened, but not the key: any `K` and `V` will do.
impl<K, V> fmt::Debug for Full<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Full({self})")
    }
}

impl<K, V> fmt::Display for Full<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "no room for a new key: the table has a fixed capacity and is full, or, in a filter, the key is there as often \
             as it may be, or there is no memory for the entry or to grow; nothing was changed",
        )
    }
}

impl<K, V> Error for Full<K, V> {}
