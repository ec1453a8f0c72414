//! Walks over sets: the map's walks, without the `()`. The walk over a view is the map's [`Keys`](crate::Keys).

use core::fmt;
use core::hash::{BuildHasher, Hash};
use core::iter::FusedIterator;

use ahash::RandomState;

use crate::map::{Drain, ExtractIf, IntoIter, IterWith, forward_iterator};
use crate::reclaim::{Guard, LocalGuard};

/// Iterator over the values that it removes: from [`PinnedSet::drain`](super::PinnedSet::drain). `Send` and `Sync`,
/// if the view is `Sync`.
pub struct SetDrain<'p, T, G: Guard = LocalGuard<'p>>(pub(super) Drain<'p, T, (), G>);

forward_iterator!(impl['p, T, G: Guard] SetDrain['p, T, G] yields &'p T: |(value, ())| value);

/// Iterator over the results of a closure for a set's values, which owns its view: from
/// [`PinnedSet::into_iter_with`](super::PinnedSet::into_iter_with) and
/// [`into_iter_cloned`](super::PinnedSet::into_iter_cloned). `Send` and `Sync`, if view and closure are.
#[must_use = "iterators are lazy and do nothing unless consumed"]
pub struct SetIterWith<'s, T, F, S = RandomState, G = LocalGuard<'s>>(
    pub(super) IterWith<'s, T, (), F, S, G>,
);

impl<T, U, F: FnMut(&T) -> U, S, G> Iterator for SetIterWith<'_, T, F, S, G> {
    type Item = U;

    #[inline]
    fn next(&mut self) -> Option<U> {
        self.0.next_by(|make, value, ()| make(value))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.bounds()
    }
}

impl<T, U, F: FnMut(&T) -> U, S, G> FusedIterator for SetIterWith<'_, T, F, S, G> {}

impl<T, F, S, G> fmt::Debug for SetIterWith<'_, T, F, S, G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SetIterWith").finish_non_exhaustive()
    }
}

/// Iterator over the values of a set that it consumes: from `HashSet::into_iter`.
///
/// ```
/// let set = koel::HashSet::from(["one".to_string()]);
/// let names: Vec<String> = set.into_iter().collect(); // moved, not cloned
/// assert_eq!(names, ["one"]);
/// ```
pub struct SetIntoIter<T>(pub(super) IntoIter<T, ()>);

forward_iterator!(impl[T] SetIntoIter[T] yields T: |(value, ())| value);

impl<T> ExactSizeIterator for SetIntoIter<T> {}

/// Iterator that takes out values: from [`HashSet::extract_if`](super::HashSet::extract_if).
#[must_use = "iterators are lazy and do nothing unless consumed; `retain` removes without returning"]
pub struct SetExtractIf<'s, T, F, S = RandomState>(pub(super) ExtractIf<'s, T, (), F, S>);

impl<T: Hash, F: FnMut(&T) -> bool, S: BuildHasher> Iterator for SetExtractIf<'_, T, F, S> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        self.0.next_if(|condition, value, ()| condition(value)).map(|(value, ())| value)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.bounds()
    }
}

impl<T: Hash, F: FnMut(&T) -> bool, S: BuildHasher> FusedIterator for SetExtractIf<'_, T, F, S> {}

impl<T, F, S> fmt::Debug for SetExtractIf<'_, T, F, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SetExtractIf").finish_non_exhaustive()
    }
}
