//! Walks over a cache: a segment's pointers are copied under its lock, and yielded without it.

use core::fmt;
use core::iter::FusedIterator;

use ahash::RandomState;

use super::Cache;
use crate::engine::Walk;
use crate::entries::{Entry, EntryPointer};
use crate::reclaim::LocalGuard;

/// A walk over pointers to entries.
pub(super) type Entries = Walk<EntryPointer>;

/// The next entry that has not expired.
fn next<K, V, S>(walk: &mut Entries, cache: &Cache<K, V, S>) -> Option<EntryPointer> {
    loop {
        let entry = walk.next(|cursor, out| cache.table.directory.snapshot(cursor, out))?;
        if cache.is_alive(entry) {
            return Some(entry);
        }
    }
}

/// An iterator over references to a cache's entries, from [`CacheView::iter`](super::CacheView::iter). `Send` and `Sync`, if
/// the cache is `Sync`.
#[must_use = "iterators are lazy and do nothing unless consumed"]
pub struct ViewIter<'v, K, V, S = RandomState> {
    cache: &'v Cache<K, V, S>,
    walk: Entries,
}

// SAFETY: it shares entries, and drops none. The view that `'v` borrows stays where it is, and its guard was entered before
// anything that another thread does after it has received this.
unsafe impl<K: Send + Sync, V: Send + Sync, S: Sync> Send for ViewIter<'_, K, V, S> {}
// SAFETY: a thread that shares it can get another one by `clone`, which may be sent, and nothing else.
unsafe impl<K: Send + Sync, V: Send + Sync, S: Sync> Sync for ViewIter<'_, K, V, S> {}

impl<'v, K, V, S> ViewIter<'v, K, V, S> {
    /// The view that `'v` borrows keeps the entries alive.
    pub(super) fn new(cache: &'v Cache<K, V, S>) -> Self {
        ViewIter { cache, walk: Walk::new() }
    }
}

/// The clone goes on from the same place, over the same entries; this copies the pointers to what is left of one segment.
impl<K, V, S> Clone for ViewIter<'_, K, V, S> {
    fn clone(&self) -> Self {
        ViewIter { cache: self.cache, walk: self.walk.clone() }
    }
}

impl<'v, K, V, S> Iterator for ViewIter<'v, K, V, S> {
    type Item = (&'v K, &'v V);

    fn next(&mut self) -> Option<Self::Item> {
        let entry = next(&mut self.walk, self.cache)?;
        // SAFETY: it was in the table when its segment was copied, after the view that `'v` borrows was pinned.
        Some(unsafe { Entry::<K, V>::deref(entry) }.pair())
    }
}

/// An iterator over clones of a cache's entries, from [`Cache::iter`].
#[must_use = "iterators are lazy and do nothing unless consumed"]
pub struct CacheIter<'c, K, V, S = RandomState> {
    cache: &'c Cache<K, V, S>,
    walk: Entries,
    #[expect(dead_code, reason = "keeps what the walk has copied alive")]
    guard: LocalGuard<'c>,
}

impl<'c, K, V, S> CacheIter<'c, K, V, S> {
    pub(super) fn new(cache: &'c Cache<K, V, S>) -> Self {
        CacheIter { guard: cache.enter(), cache, walk: Walk::new() }
    }
}

impl<K: Clone, V: Clone, S> Iterator for CacheIter<'_, K, V, S> {
    type Item = (K, V);

    fn next(&mut self) -> Option<Self::Item> {
        let entry = next(&mut self.walk, self.cache)?;
        // SAFETY: it was in the table when its segment was copied, after the guard was entered.
        let (key, value) = unsafe { Entry::<K, V>::deref(entry) }.pair();
        Some((key.clone(), value.clone()))
    }
}

impl<'c, K: Clone, V: Clone, S> IntoIterator for &'c Cache<K, V, S> {
    type Item = (K, V);
    type IntoIter = CacheIter<'c, K, V, S>;

    fn into_iter(self) -> CacheIter<'c, K, V, S> {
        self.iter()
    }
}

impl<K, V, S> FusedIterator for ViewIter<'_, K, V, S> {}
impl<K: Clone, V: Clone, S> FusedIterator for CacheIter<'_, K, V, S> {}

impl<K, V, S> fmt::Debug for ViewIter<'_, K, V, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ViewIter").finish_non_exhaustive()
    }
}

impl<K, V, S> fmt::Debug for CacheIter<'_, K, V, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CacheIter").finish_non_exhaustive()
    }
}
