//! Walks over an [`InlineMap`](super::InlineMap): a segment is copied under its lock, and yielded without it.

use core::fmt;
use core::iter::FusedIterator;
use core::marker::PhantomData;

use bytemuck::Pod;

use super::inline_map::Slots;
use super::{InlineMap, forward_iterator};
use crate::engine::Walk;

/// Iterator over copies of a map's entries: from [`InlineMap::iter`](super::InlineMap::iter).
#[must_use = "iterators are lazy and do nothing unless consumed"]
pub struct InlineIter<'m, K: Pod, V: Pod> {
    slots: &'m Slots<K, V>,
    walk: Walk<(K, V)>,
    /// `Send` and `Sync` as a reference to the map is: a thread that shares this can get another one by `clone`, and with that
    /// entries of its own.
    of: PhantomData<&'m InlineMap<K, V, ()>>,
}

impl<'m, K: Pod, V: Pod> InlineIter<'m, K, V> {
    pub(super) fn new(slots: &'m Slots<K, V>) -> Self {
        InlineIter { slots, walk: Walk::new(), of: PhantomData }
    }
}

/// Continues from the same place; copies the rest of one segment.
impl<K: Pod, V: Pod> Clone for InlineIter<'_, K, V> {
    fn clone(&self) -> Self {
        InlineIter { slots: self.slots, walk: self.walk.clone(), of: PhantomData }
    }
}

impl<K: Pod, V: Pod> Iterator for InlineIter<'_, K, V> {
    type Item = (K, V);

    #[inline]
    fn next(&mut self) -> Option<(K, V)> {
        self.walk.next(|cursor, out| self.slots.snapshot(cursor, out))
    }

    /// The number of entries left of the current segment, and maybe more.
    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.walk.items.len(), None)
    }
}

/// Iterator over a map's keys: from [`InlineMap::keys`](super::InlineMap::keys).
#[must_use = "iterators are lazy and do nothing unless consumed"]
pub struct InlineKeys<'m, K: Pod, V: Pod>(pub(super) InlineIter<'m, K, V>);

/// As [`InlineIter`]'s.
impl<K: Pod, V: Pod> Clone for InlineKeys<'_, K, V> {
    fn clone(&self) -> Self {
        InlineKeys(self.0.clone())
    }
}

forward_iterator!(impl['m, K: Pod, V: Pod] InlineKeys['m, K, V] yields K: |(key, _)| key);

/// Iterator over a map's values: from [`InlineMap::values`](super::InlineMap::values).
#[must_use = "iterators are lazy and do nothing unless consumed"]
pub struct InlineValues<'m, K: Pod, V: Pod>(pub(super) InlineIter<'m, K, V>);

/// As [`InlineIter`]'s.
impl<K: Pod, V: Pod> Clone for InlineValues<'_, K, V> {
    fn clone(&self) -> Self {
        InlineValues(self.0.clone())
    }
}

forward_iterator!(impl['m, K: Pod, V: Pod] InlineValues['m, K, V] yields V: |(_, value)| value);

/// Iterator over copies of the entries that it removes: from [`InlineMap::drain`](super::InlineMap::drain).
pub struct InlineDrain<'m, K: Pod, V: Pod>(InlineIter<'m, K, V>);

impl<'m, K: Pod, V: Pod> InlineDrain<'m, K, V> {
    pub(super) fn new(slots: &'m Slots<K, V>) -> Self {
        slots.assert_not_writing();
        InlineDrain(InlineIter::new(slots))
    }
}

impl<K: Pod, V: Pod> Iterator for InlineDrain<'_, K, V> {
    type Item = (K, V);

    #[inline]
    fn next(&mut self) -> Option<(K, V)> {
        let InlineDrain(InlineIter { slots, walk, .. }) = self;
        walk.next(|cursor, out| slots.take(cursor, out))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl<K: Pod, V: Pod> Drop for InlineDrain<'_, K, V> {
    fn drop(&mut self) {
        // In a closure under this map's lock, or too many others', this panics; but not during unwinding, which may be that of
        // this panic.
        if !(std::thread::panicking() && self.0.slots.may_not_write()) {
            self.for_each(drop);
        }
    }
}

impl<K: Pod, V: Pod> FusedIterator for InlineIter<'_, K, V> {}
impl<K: Pod, V: Pod> FusedIterator for InlineDrain<'_, K, V> {}

impl<K: Pod, V: Pod> fmt::Debug for InlineIter<'_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InlineIter").finish_non_exhaustive()
    }
}

impl<K: Pod, V: Pod> fmt::Debug for InlineDrain<'_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InlineDrain").finish_non_exhaustive()
    }
}
