//! Walks over a [`HashMap`](super::HashMap): a segment's pointers are copied under its lock, and yielded without it.

use core::fmt;
use core::iter::FusedIterator;
use core::marker::PhantomData;
use core::panic::{RefUnwindSafe, UnwindSafe};

use ahash::RandomState;

use super::{Pinned, forward_iterator};
use crate::engine::Walk;
use crate::entries::{self, Entry, EntryPointer, OwnedEntry, Table, drop_each};
use crate::reclaim::{Guard, LocalGuard};

/// Iterator over a map's entries: from [`Pinned::iter`](super::Pinned::iter). `Send` and `Sync`, if
/// the map is `Sync`.
#[must_use = "iterators are lazy and do nothing unless consumed"]
pub struct Iter<'p, K, V> {
    table: &'p Table<K, V>,
    walk: Walk<EntryPointer>,
}

// SAFETY: it shares entries, and drops none. The view that `'p` borrows stays where it is, and its guard was entered before
// anything that another thread does that has got this iterator from there.
unsafe impl<K: Send + Sync, V: Send + Sync> Send for Iter<'_, K, V> {}
// SAFETY: a thread that shares it can `clone` it to another iterator, which may be sent, and can reach nothing else.
unsafe impl<K: Send + Sync, V: Send + Sync> Sync for Iter<'_, K, V> {}

impl<'p, K, V> Iter<'p, K, V> {
    /// The pinned view that `'p` borrows keeps the entries alive.
    pub(super) fn new(table: &'p Table<K, V>) -> Self {
        Iter { table, walk: Walk::new() }
    }
}

/// Continues from the same place, over the same entries; copies the pointers to the rest of one segment.
impl<K, V> Clone for Iter<'_, K, V> {
    fn clone(&self) -> Self {
        Iter { table: self.table, walk: self.walk.clone() }
    }
}

impl<'p, K, V> Iterator for Iter<'p, K, V> {
    type Item = (&'p K, &'p V);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let entry = self.walk.next(|cursor, out| self.table.directory.snapshot(cursor, out))?;
        // SAFETY: it was in the table when its segment was copied, after the view that `'p` borrows was pinned.
        Some(unsafe { Entry::<K, V>::deref(entry) }.pair())
    }

    /// The number of entries left of the current segment, and maybe more.
    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.walk.items.len(), None)
    }
}

impl<K, V> FusedIterator for Iter<'_, K, V> {}

impl<K, V> fmt::Debug for Iter<'_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Iter").finish_non_exhaustive()
    }
}

/// A walk that owns its view. `Send` and `Sync`, if the view is.
struct WalkWithView<'m, K, V, S, G> {
    walk: Walk<EntryPointer>,
    /// Keeps the entries alive that the walk has copied.
    pin: Pinned<'m, K, V, S, G>,
}

// SAFETY: as `Iter`'s: it shares entries, and drops none; the view, which keeps them, goes with it, and may be sent.
unsafe impl<'m, K: Send + Sync, V: Send + Sync, S, G> Send for WalkWithView<'m, K, V, S, G> where
    Pinned<'m, K, V, S, G>: Send
{
}
// SAFETY: as above; a thread that shares it can reach nothing inside it.
unsafe impl<'m, K: Send + Sync, V: Send + Sync, S, G> Sync for WalkWithView<'m, K, V, S, G> where
    Pinned<'m, K, V, S, G>: Sync
{
}

impl<'m, K, V, S, G> WalkWithView<'m, K, V, S, G> {
    fn new(pin: Pinned<'m, K, V, S, G>) -> Self {
        WalkWithView { walk: Walk::new(), pin }
    }

    #[inline]
    fn next(&mut self) -> Option<(&K, &V)> {
        let directory = &self.pin.map.table.directory;
        let entry = self.walk.next(|cursor, out| directory.snapshot(cursor, out))?;
        // SAFETY: it was in the table when its segment was copied, after our view was pinned; and the references do not outlive
        // the borrow of `self`, and with it the view.
        Some(unsafe { Entry::<K, V>::deref(entry) }.pair())
    }

    /// The number of entries left of the current segment, and maybe more.
    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.walk.items.len(), None)
    }
}

/// Iterator over clones of a map's entries, which owns its view: from
/// [`Pinned::into_iter_cloned`](super::Pinned::into_iter_cloned). `Send` and `Sync`, if the view is.
#[must_use = "iterators are lazy and do nothing unless consumed"]
pub struct ClonedIter<'m, K, V, S = RandomState, G = LocalGuard<'m>>(WalkWithView<'m, K, V, S, G>);

impl<'m, K, V, S, G> ClonedIter<'m, K, V, S, G> {
    pub(super) fn new(pin: Pinned<'m, K, V, S, G>) -> Self {
        ClonedIter(WalkWithView::new(pin))
    }
}

impl<K: Clone, V: Clone, S, G> Iterator for ClonedIter<'_, K, V, S, G> {
    type Item = (K, V);

    #[inline]
    fn next(&mut self) -> Option<(K, V)> {
        self.0.next().map(|(key, value)| (key.clone(), value.clone()))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl<K: Clone, V: Clone, S, G> FusedIterator for ClonedIter<'_, K, V, S, G> {}

impl<K, V, S, G> fmt::Debug for ClonedIter<'_, K, V, S, G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClonedIter").finish_non_exhaustive()
    }
}

/// Iterator over the results of a closure for a map's entries, which owns its view: from
/// [`Pinned::into_iter_with`](super::Pinned::into_iter_with). `Send` and `Sync`, if view and closure are.
#[must_use = "iterators are lazy and do nothing unless consumed"]
pub struct IterWith<'m, K, V, F, S = RandomState, G = LocalGuard<'m>> {
    walk: WalkWithView<'m, K, V, S, G>,
    make: F,
}

impl<'m, K, V, F, S, G> IterWith<'m, K, V, F, S, G> {
    pub(crate) fn new(pin: Pinned<'m, K, V, S, G>, make: F) -> Self {
        IterWith { walk: WalkWithView::new(pin), make }
    }

    /// The result of `ask` for the closure and the next entry.
    #[inline]
    pub(crate) fn next_by<T>(&mut self, ask: impl FnOnce(&mut F, &K, &V) -> T) -> Option<T> {
        self.walk.next().map(|(key, value)| ask(&mut self.make, key, value))
    }

    pub(crate) fn bounds(&self) -> (usize, Option<usize>) {
        self.walk.size_hint()
    }
}

impl<K, V, T, F: FnMut(&K, &V) -> T, S, G> Iterator for IterWith<'_, K, V, F, S, G> {
    type Item = T;

    #[inline]
    fn next(&mut self) -> Option<T> {
        self.next_by(|make, key, value| make(key, value))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.bounds()
    }
}

impl<K, V, T, F: FnMut(&K, &V) -> T, S, G> FusedIterator for IterWith<'_, K, V, F, S, G> {}

impl<K, V, F, S, G> fmt::Debug for IterWith<'_, K, V, F, S, G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IterWith").finish_non_exhaustive()
    }
}

/// Iterator over a map's keys: from [`Pinned::keys`](super::Pinned::keys).
#[must_use = "iterators are lazy and do nothing unless consumed"]
pub struct Keys<'p, K, V>(pub(super) Iter<'p, K, V>);

/// As [`Iter`]'s.
impl<K, V> Clone for Keys<'_, K, V> {
    fn clone(&self) -> Self {
        Keys(self.0.clone())
    }
}

forward_iterator!(impl['p, K, V] Keys['p, K, V] yields &'p K: |(key, _)| key);

/// Iterator over a map's values: from [`Pinned::values`](super::Pinned::values).
#[must_use = "iterators are lazy and do nothing unless consumed"]
pub struct Values<'p, K, V>(pub(super) Iter<'p, K, V>);

/// As [`Iter`]'s.
impl<K, V> Clone for Values<'_, K, V> {
    fn clone(&self) -> Self {
        Values(self.0.clone())
    }
}

forward_iterator!(impl['p, K, V] Values['p, K, V] yields &'p V: |(_, value)| value);

/// Iterator over the entries that it removes: from [`Pinned::drain`](super::Pinned::drain). `Send` and `Sync`,
/// if the view is `Sync`.
pub struct Drain<'p, K, V, G: Guard = LocalGuard<'p>> {
    table: &'p Table<K, V>,
    guard: &'p G,
    walk: Walk<EntryPointer>,
    entries: PhantomData<&'p Entry<K, V>>,
}

// SAFETY: it shares entries, as `Iter` does. It retires them by a guard that any thread may use, and then may drop older ones
// of the map here, so key and value have to be `Send`.
unsafe impl<K: Send + Sync, V: Send + Sync, G: Guard + Sync> Send for Drain<'_, K, V, G> {}
// SAFETY: a thread that shares it can reach nothing inside it.
unsafe impl<K: Send + Sync, V: Send + Sync, G: Guard + Sync> Sync for Drain<'_, K, V, G> {}

impl<'p, K, V, G: Guard> Drain<'p, K, V, G> {
    pub(super) fn new(table: &'p Table<K, V>, guard: &'p G) -> Self {
        table.directory.assert_not_writing();
        Drain { table, guard, walk: Walk::new(), entries: PhantomData }
    }
}

impl<'p, K, V, G: Guard> Iterator for Drain<'p, K, V, G> {
    type Item = (&'p K, &'p V);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let entry = self.walk.next(|cursor, out| {
            let next = self.table.directory.take(cursor, out)?;
            // SAFETY: just taken out of the table, by us; our own guard keeps them alive for the caller [I6].
            unsafe { entries::retire_all::<K, V>(out.iter().copied(), self.guard) };
            Some(next)
        })?;
        // SAFETY: retired after the view that `'p` borrows was pinned.
        Some(unsafe { Entry::<K, V>::deref(entry) }.pair())
    }

    /// The number of entries left of the current segment, and maybe more.
    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.walk.items.len(), None)
    }
}

impl<K, V, G: Guard> FusedIterator for Drain<'_, K, V, G> {}

impl<K, V, G: Guard> Drop for Drain<'_, K, V, G> {
    fn drop(&mut self) {
        // In a closure under this map's lock, or too many others', this panics; but not during unwinding, which may be that of
        // this panic.
        if !(std::thread::panicking() && self.table.directory.may_not_write()) {
            self.for_each(drop);
        }
    }
}

impl<K, V, G: Guard> fmt::Debug for Drain<'_, K, V, G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Drain").finish_non_exhaustive()
    }
}

/// Iterator over the entries of a map that it consumes: from `HashMap::into_iter`.
///
/// ```
/// let map = koel::HashMap::from([(1, "one".to_string())]);
/// let names: Vec<String> = map.into_iter().map(|(_, name)| name).collect(); // moved, not cloned
/// assert_eq!(names, ["one"]);
/// ```
pub struct IntoIter<K, V> {
    walk: Walk<EntryPointer>,
    table: Table<K, V>,
}

impl<K, V> IntoIter<K, V> {
    pub(super) fn new(table: Table<K, V>) -> Self {
        IntoIter { walk: Walk::new(), table }
    }
}

impl<K, V> Iterator for IntoIter<K, V> {
    type Item = (K, V);

    #[inline]
    fn next(&mut self) -> Option<(K, V)> {
        let entry = self.walk.next(|cursor, out| self.table.directory.take(cursor, out))?;
        // SAFETY: the table is ours alone, and the entry was taken out of it.
        Some(unsafe { OwnedEntry::<K, V>::from_raw(entry) }.into_last_pair())
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let len = self.walk.items.len() + self.table.directory.len();
        (len, Some(len))
    }
}

impl<K, V> ExactSizeIterator for IntoIter<K, V> {}
impl<K, V> FusedIterator for IntoIter<K, V> {}

/// As the map was.
impl<K: RefUnwindSafe, V: RefUnwindSafe> UnwindSafe for IntoIter<K, V> {}

// SAFETY: it owns the entries it has taken, like the table it took them from.
unsafe impl<K: Send, V: Send> Send for IntoIter<K, V> {}
// SAFETY: a shared iterator gives access to nothing.
unsafe impl<K: Sync, V: Sync> Sync for IntoIter<K, V> {}

impl<K, V> Drop for IntoIter<K, V> {
    fn drop(&mut self) {
        // Entries that are still in the table are dropped with it.
        drop_each(|drop_one| {
            // SAFETY: as in `next`.
            self.walk
                .items
                .drain(..)
                .for_each(|entry| drop_one(unsafe { OwnedEntry::<K, V>::from_raw(entry) }));
        });
    }
}

impl<K, V> fmt::Debug for IntoIter<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IntoIter").finish_non_exhaustive()
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::super::HashMap;

    #[test]
    fn pieces_of_a_map_that_goes_are_not_given_back_one_by_one() {
        let map: HashMap<u64, u64> = (0..10_000).map(|n| (n, !n)).collect();
        let mut pairs = map.into_iter();
        let before = pairs.table.slab.memory_usage(0);
        assert!(pairs.by_ref().all(|(n, value)| value == !n) && pairs.len() == 0);
        assert_eq!(pairs.table.slab.memory_usage(0), before, "lists of free pieces");
    }
}
