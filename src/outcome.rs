//! What the maps' operations take and return in addition to keys and values.

use core::error::Error;
use core::fmt;

/// The message of the panic that `checked_insert` and related methods avoid.
pub(crate) const FULL: &str = "a koel map of fixed capacity is full, or there is no memory for it to grow: \
                               `checked_insert` and its kin hand back what does not fit";

/// The result of a write that hands back what has no room; panics if it has handed something back.
#[inline(always)]
#[track_caller]
pub(crate) fn expect_room<T, F>(checked: Result<T, F>) -> T {
    match checked {
        Ok(done) => done,
        Err(full) => {
            // The user's drops run before the panic, not during its unwinding.
            drop(full);
            panic!("{FULL}")
        }
    }
}

/// The message of `compute`'s panic if there is nothing to remove.
pub(crate) const NOTHING_TO_REMOVE: &str = "compute: Operation::Remove for a key that is absent";

/// The error of `try_insert` if it found the key: the key's value, and the one that was not inserted.
///
/// `C` is `&V` for a [`HashMap`](crate::HashMap), and so borrows the pin: copy or clone what must live longer before you
/// return it with `?`. It is `V` for an [`InlineMap`](crate::InlineMap) and for caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Occupied<C, V> {
    /// The value that is present.
    pub current: C,
    /// The value that was not inserted.
    pub not_inserted: V,
}

impl<C: fmt::Debug, V: fmt::Debug> fmt::Display for Occupied<C, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the key is there with value {:?}; {:?} was not inserted", self.current, self.not_inserted)
    }
}

impl<C: fmt::Debug, V: fmt::Debug> Error for Occupied<C, V> {}

/// The decision of `compute`'s closure.
///
/// If you never abort, `T` cannot be inferred; specify it:
///
/// ```
/// use koel::{HashMap, Operation};
///
/// let map = HashMap::new();
/// map.pin().compute("key", |entry| Operation::<_, ()>::Insert(entry.map_or(1, |(_, n)| n + 1)));
/// assert_eq!(map.pin().get("key"), Some(&1));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation<V, T> {
    /// Insert this value, or replace the present one by it.
    Insert(V),
    /// Remove the key. Panics if it is absent: return `Abort` then.
    Remove,
    /// Change nothing, and return this.
    Abort(T),
}

/// What `compute` did.
///
/// `K` and `V` are references for a [`HashMap`](crate::HashMap), copies for an [`InlineMap`](crate::InlineMap) and an
/// [`InlineCache`](crate::InlineCache), and clones for a [`Cache`](crate::Cache).
#[doc(alias = "CompResult")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compute<K, V, T> {
    /// The key was absent, and now has this value.
    Inserted(K, V),
    /// The value was replaced.
    Updated {
        /// Key and value before.
        old: (K, V),
        /// Key and value now.
        new: (K, V),
    },
    /// The key was removed; it had this value.
    Removed(K, V),
    /// Nothing has changed.
    Aborted(T),
}

impl<K, V, T> Compute<K, V, T> {
    /// The value that the key was given, if any.
    pub(crate) fn into_new(self) -> Option<V> {
        match self {
            Compute::Inserted(_, value) | Compute::Updated { new: (_, value), .. } => Some(value),
            Compute::Removed(..) | Compute::Aborted(_) => None,
        }
    }
}
