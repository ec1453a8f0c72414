//! Walks over an [`InlineCache`](super::InlineCache): a segment is copied under its lock, and yielded without it.

use core::fmt;
use core::iter::FusedIterator;
use core::marker::PhantomData;

use bytemuck::Pod;

use super::InlineCache;
use super::cache::InlineSlots;
use crate::engine::{Directory, Walk};

/// An iterator over copies of a cache's entries, from [`InlineCache::iter`](super::InlineCache::iter).
#[must_use = "iterators are lazy and do nothing unless consumed"]
pub struct InlineCacheIter<'c, K: Pod, V: Pod> {
    directory: &'c Directory<InlineSlots<K, V>>,
    walk: Walk<(K, V)>,
    /// `Send` and `Sync` as a reference to the cache is: a thread that shares this can get another one by `clone`, and with
    /// that entries of its own.
    of: PhantomData<&'c InlineCache<K, V, ()>>,
}

impl<'c, K: Pod, V: Pod> InlineCacheIter<'c, K, V> {
    pub(super) fn new(directory: &'c Directory<InlineSlots<K, V>>) -> Self {
        InlineCacheIter { directory, walk: Walk::new(), of: PhantomData }
    }
}

/// The clone goes on from the same place; this copies what is left of one segment.
impl<K: Pod, V: Pod> Clone for InlineCacheIter<'_, K, V> {
    fn clone(&self) -> Self {
        InlineCacheIter { directory: self.directory, walk: self.walk.clone(), of: PhantomData }
    }
}

impl<K: Pod, V: Pod> Iterator for InlineCacheIter<'_, K, V> {
    type Item = (K, V);

    fn next(&mut self) -> Option<(K, V)> {
        self.walk.next(|cursor, out| self.directory.snapshot(cursor, out))
    }

    /// The number of entries left of the current segment, and maybe more.
    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.walk.items.len(), None)
    }
}

impl<K: Pod, V: Pod> FusedIterator for InlineCacheIter<'_, K, V> {}

impl<K: Pod, V: Pod> fmt::Debug for InlineCacheIter<'_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InlineCacheIter").finish_non_exhaustive()
    }
}
