//! Walks over a [`HashMap`] with exclusive access to it: [W8].

use core::fmt;
use core::hash::{BuildHasher, Hash};
use core::iter::FusedIterator;
use core::marker::PhantomData;

use ahash::RandomState;

use super::{HashMap, forward_iterator};
use crate::engine::Walk;
use crate::entries::{Entry, EntryPointer, Table};

/// Iterator over a map's entries, whose values may be changed in place: from [`HashMap::iter_mut`].
#[must_use = "iterators are lazy and do nothing unless consumed"]
pub struct IterMut<'m, K, V> {
    table: &'m Table<K, V>,
    walk: Walk<EntryPointer>,
    left: usize,
    /// The map is ours alone.
    values: PhantomData<&'m mut V>,
}

// SAFETY: it is equivalent to a `&mut` of the map, which may be sent if keys and values may; and the keys that it yields are
// shared with nobody else.
unsafe impl<K: Send, V: Send> Send for IterMut<'_, K, V> {}
// SAFETY: a shared iterator gives access to nothing.
unsafe impl<K: Sync, V: Sync> Sync for IterMut<'_, K, V> {}

impl<'m, K, V> IterMut<'m, K, V> {
    /// The table belongs to a map that is ours alone as long as `'m`.
    pub(super) fn new(table: &'m Table<K, V>) -> Self {
        IterMut { left: table.directory.len(), table, walk: Walk::new(), values: PhantomData }
    }
}

impl<'m, K, V> Iterator for IterMut<'m, K, V> {
    type Item = (&'m K, &'m mut V);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let entry = self.walk.next(|cursor, out| self.table.directory.snapshot(cursor, out))?;
        self.left -= 1;
        // SAFETY: in the table, which is ours alone for `'m` [W8]; and as the table stays as it is, no entry is yielded twice.
        let Entry { key, value, .. } = unsafe { Entry::<K, V>::deref_mut(entry) };
        Some((key, value))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl<K, V> ExactSizeIterator for IterMut<'_, K, V> {}
impl<K, V> FusedIterator for IterMut<'_, K, V> {}

impl<K, V> fmt::Debug for IterMut<'_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IterMut").finish_non_exhaustive()
    }
}

/// Iterator over a map's values, which may be changed in place: from [`HashMap::values_mut`].
#[must_use = "iterators are lazy and do nothing unless consumed"]
pub struct ValuesMut<'m, K, V>(pub(super) IterMut<'m, K, V>);

forward_iterator!(impl['m, K, V] ValuesMut['m, K, V] yields &'m mut V: |(_, value)| value);

impl<K, V> ExactSizeIterator for ValuesMut<'_, K, V> {}

impl<'m, K, V, S> IntoIterator for &'m mut HashMap<K, V, S> {
    type Item = (&'m K, &'m mut V);
    type IntoIter = IterMut<'m, K, V>;

    fn into_iter(self) -> IterMut<'m, K, V> {
        self.iter_mut()
    }
}

/// Iterator that takes out entries by value: from [`HashMap::extract_if`].
#[must_use = "iterators are lazy and do nothing unless consumed; `retain` removes without returning"]
pub struct ExtractIf<'m, K, V, F, S = RandomState> {
    map: &'m mut HashMap<K, V, S>,
    walk: Walk<EntryPointer>,
    condition: F,
}

// SAFETY: it is equivalent to a `&mut` of the map, with the condition.
unsafe impl<'m, K, V, F: Send, S> Send for ExtractIf<'m, K, V, F, S> where &'m mut HashMap<K, V, S>: Send {}
// SAFETY: a shared iterator gives access to nothing.
unsafe impl<'m, K, V, F: Sync, S> Sync for ExtractIf<'m, K, V, F, S> where &'m mut HashMap<K, V, S>: Sync {}

impl<'m, K, V, F, S> ExtractIf<'m, K, V, F, S> {
    pub(crate) fn new(map: &'m mut HashMap<K, V, S>, condition: F) -> Self {
        ExtractIf { map, walk: Walk::new(), condition }
    }

    /// The number of entries that may be yielded: at most all that are left of the map.
    pub(crate) fn bounds(&self) -> (usize, Option<usize>) {
        (0, Some(self.map.len()))
    }
}

impl<K: Hash, V, F, S: BuildHasher> ExtractIf<'_, K, V, F, S> {
    /// The next entry to be taken out: `is_wanted` asks the condition, whatever its form.
    pub(crate) fn next_if(
        &mut self,
        mut is_wanted: impl FnMut(&mut F, &K, &mut V) -> bool,
    ) -> Option<(K, V)> {
        loop {
            let directory = &self.map.table.directory;
            let entry = self.walk.next(|cursor, out| directory.snapshot(cursor, out))?;
            // SAFETY: in the table, which is ours alone [W8]: entries leave it only here, and only those that the walk has
            // passed.
            let Entry { key, value, .. } = unsafe { Entry::<K, V>::deref_mut(entry) };
            let taken =
                if is_wanted(&mut self.condition, key, value) { self.map.extract_entry(entry) } else { None };
            if taken.is_some() {
                return taken;
            }
        }
    }
}

impl<K: Hash, V, F: FnMut(&K, &mut V) -> bool, S: BuildHasher> Iterator for ExtractIf<'_, K, V, F, S> {
    type Item = (K, V);

    fn next(&mut self) -> Option<(K, V)> {
        self.next_if(|condition, key, value| condition(key, value))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.bounds()
    }
}

impl<K: Hash, V, F: FnMut(&K, &mut V) -> bool, S: BuildHasher> FusedIterator for ExtractIf<'_, K, V, F, S> {}

impl<K, V, F, S> fmt::Debug for ExtractIf<'_, K, V, F, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExtractIf").finish_non_exhaustive()
    }
}
