//! [`SetRef`]: a value of a set, with the view that keeps it alive.

use core::fmt;
use core::ops::Deref;

use ahash::RandomState;

use super::PinnedSet;
use crate::map::Ref;
use crate::reclaim::LocalGuard;

/// A value of a set, with the view that keeps it alive: from [`HashSet::get`](crate::HashSet::get) and its kin. It dereferences
/// to the value.
///
/// The value stays as it was found, even if it is removed meanwhile; values that are removed meanwhile are not dropped before
/// the `SetRef` is. `Send` and `Sync`, if the view is.
pub struct SetRef<'s, T, S = RandomState, G = LocalGuard<'s>>(pub(super) Ref<'s, T, (), S, G>);

impl<'s, T, S, G> SetRef<'s, T, S, G> {
    /// Returns the view, for further operations.
    ///
    /// ```
    /// let set = koel::HashSet::from([1, 2]);
    /// let pin = set.get(&1).unwrap().into_pin();
    /// assert!(pin.contains(&2));
    /// ```
    #[inline]
    pub fn into_pin(self) -> PinnedSet<'s, T, S, G> {
        PinnedSet(self.0.into_pin())
    }
}

impl<T, S, G> Deref for SetRef<'_, T, S, G> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        self.0.key()
    }
}

impl<T: fmt::Debug, S, G> fmt::Debug for SetRef<'_, T, S, G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        T::fmt(self, f)
    }
}

impl<T: fmt::Display, S, G> fmt::Display for SetRef<'_, T, S, G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        T::fmt(self, f)
    }
}
