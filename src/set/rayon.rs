//! Parallel iteration and collection, as the map's. Feature `rayon`.

use core::fmt;
use core::hash::{BuildHasher, Hash};

use rayon::iter::plumbing::UnindexedConsumer;
use rayon::iter::{FromParallelIterator, IntoParallelIterator, ParallelExtend, ParallelIterator};

use super::{HashSet, PinnedSet};
use crate::map::{ParIter, insert_part, par_extend_alone};
use crate::reclaim::Guard;

impl<T: Send + Sync, S, G: Guard> PinnedSet<'_, T, S, G> {
    /// Walks over all values on rayon's threads; sees the values that [`PinnedSet::iter`] would see. Needs the feature `rayon`.
    ///
    /// # Panics
    ///
    /// As [`Pinned::par_iter`](crate::Pinned::par_iter).
    ///
    /// ```
    /// use rayon::prelude::*;
    ///
    /// let set: koel::HashSet<u64> = (0..1000_u64).into_par_iter().collect();
    /// assert_eq!(set.pin().par_iter().sum::<u64>(), 499_500);
    /// ```
    pub fn par_iter(&self) -> SetParIter<'_, T> {
        SetParIter(self.0.par_iter())
    }
}

/// Parallel iterator over a set's values: from [`PinnedSet::par_iter`]. Needs the feature `rayon`.
#[must_use = "iterators are lazy and do nothing unless consumed"]
pub struct SetParIter<'p, T>(ParIter<'p, T, ()>);

impl<'p, T: Send + Sync> ParallelIterator for SetParIter<'p, T> {
    type Item = &'p T;

    fn drive_unindexed<C: UnindexedConsumer<&'p T>>(self, consumer: C) -> C::Result {
        self.0.map(|(value, ())| value).drive_unindexed(consumer)
    }
}

impl<T> fmt::Debug for SetParIter<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SetParIter").finish_non_exhaustive()
    }
}

/// As [`PinnedSet::par_iter`]. Needs the feature `rayon`.
impl<'p, T: Send + Sync, S, G: Guard> IntoParallelIterator for &'p PinnedSet<'_, T, S, G> {
    type Item = &'p T;
    type Iter = SetParIter<'p, T>;

    fn into_par_iter(self) -> SetParIter<'p, T> {
        self.par_iter()
    }
}

/// Moves the values into a `Vec` first. Needs the feature `rayon`.
impl<T: Send, S> IntoParallelIterator for HashSet<T, S> {
    type Item = T;
    type Iter = rayon::vec::IntoIter<T>;

    fn into_par_iter(self) -> Self::Iter {
        self.into_iter().collect::<Vec<_>>().into_par_iter()
    }
}

/// Adds all values on rayon's threads, as a [`HashMap`](crate::HashMap) does. If an equal one is present, that one stays; of
/// equal values among them the first stays, as far as the iterator has an order. Needs the feature `rayon`.
///
/// ```
/// use rayon::prelude::*;
///
/// let set = koel::HashSet::from([1_u64]);
/// (&set).par_extend((0..1000_u64).into_par_iter()); // by reference: others may use it
/// assert_eq!(set.len(), 1000);
/// ```
impl<T: Hash + Eq + Send + Sync, S: BuildHasher + Sync> ParallelExtend<T> for &HashSet<T, S> {
    fn par_extend<I: IntoParallelIterator<Item = T>>(&mut self, values: I) {
        self.map.par_insert(pairs(values), |pin, values| insert_part(values, &PinnedSet(pin)));
    }
}

/// As `&HashSet` does, but mostly without locks, as nobody else uses the set. Needs the feature `rayon`.
impl<T: Hash + Eq + Send + Sync, S: BuildHasher + Sync> ParallelExtend<T> for HashSet<T, S> {
    fn par_extend<I: IntoParallelIterator<Item = T>>(&mut self, values: I) {
        par_extend_alone(self, pairs(values));
    }
}

/// Makes a set for all values and adds them on rayon's threads. Of equal values the first stays. Needs the feature `rayon`.
impl<T, S> FromParallelIterator<T> for HashSet<T, S>
where
    T: Hash + Eq + Send + Sync,
    S: BuildHasher + Default + Sync,
{
    fn from_par_iter<I: IntoParallelIterator<Item = T>>(values: I) -> Self {
        let mut set = Self::default();
        set.par_extend(values);
        set
    }
}

/// The values as a map stores them.
fn pairs<T: Send>(values: impl IntoParallelIterator<Item = T>) -> impl ParallelIterator<Item = (T, ())> {
    values.into_par_iter().map(|value| (value, ()))
}
