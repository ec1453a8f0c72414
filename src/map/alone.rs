//! Filling a map that nobody else uses: what `collect`, `clone` and `extend` of a map of one's own do.
//!
//! An empty map is made anew for as many pairs as are promised, and pairs are inserted without locks.

use core::hash::{BuildHasher, Hash};

use bytemuck::Pod;

use super::bulk::{Target, in_batches};
use super::{HashMap, InlineMap};
use crate::engine::Directory;
use crate::entries::{Entry, OwnedEntry, Table, Within};
use crate::hash::Digest;
use crate::outcome::FULL;

/// A map that nobody else uses.
pub(super) struct Alone<'m, M>(pub(super) &'m mut M);

impl<K, V, S> HashMap<K, V, S> {
    /// Makes an empty map anew, if it has less room than for so many entries: as far as there is memory.
    pub(super) fn renew(&mut self, entries: usize) {
        if entries > self.capacity() && self.is_empty() && self.table.directory.grows() {
            let shape = self.table.directory.shape_for(entries);
            if let Ok(table) = shape.and_then(|shape| Table::new(shape, entries, 0)) {
                self.table = table;
            }
        }
    }

    /// Starts loading what inserting a key with this digest reads and writes.
    #[inline]
    pub(super) fn prepare(&self, digest: Digest) {
        self.table.directory.prefetch(digest);
        self.table.slab.prefetch_home(digest);
    }
}

impl<K: Hash + Eq, V, S: BuildHasher> HashMap<K, V, S> {
    /// Inserts an entry; of one that is there the key is replaced as well. Whether there was room.
    ///
    /// # Safety
    ///
    /// Nobody else uses the segment of the key's digest, nor, if `within` says so, its home page.
    #[inline]
    pub(super) unsafe fn insert_alone(&self, digest: Digest, within: Within, key: K, value: V) -> bool {
        // SAFETY: `eq` is called with entries of the segment, which are retired by nobody meanwhile.
        let eq = |entry| unsafe { Entry::deref(entry) }.key == key;
        // SAFETY: the caller's.
        let spot = unsafe { self.table.directory.find_alone(digest, eq) };
        let Some(mut room) = spot.room() else {
            return self.pin().checked_insert_of(digest, key, value).is_ok();
        };
        let magazine = &mut room.keep().free;
        let Ok(new) = OwnedEntry::new(&self.table.slab, magazine, digest, within, key, value) else {
            return false;
        };
        room.put(new.pointer());
        new.publish();
        true
    }
}

impl<K: Hash + Eq, V, S: BuildHasher> Alone<'_, HashMap<K, V, S>> {
    /// Inserts all pairs; of several values of a key the last stays. Panics if there is no room.
    #[track_caller]
    pub(super) fn extend(self, pairs: impl IntoIterator<Item = (K, V)>) {
        let pairs = pairs.into_iter();
        // A hint is no promise.
        self.0.renew(pairs.size_hint().0);
        let digested = |this: &Self, (key, value): (K, V)| (this.0.digest(&key), key, value);
        assert!(in_batches(pairs, digested, self), "{FULL}");
    }
}

impl<K: Hash + Eq, V, S: BuildHasher> Target<K, V> for Alone<'_, HashMap<K, V, S>> {
    #[inline]
    fn prepare(&self, digest: Digest) {
        self.0.prepare(digest);
    }

    #[inline]
    fn insert(&mut self, digest: Digest, key: K, value: V) -> bool {
        // SAFETY: the map is ours alone.
        unsafe { self.0.insert_alone(digest, Within::PageAlone, key, value) }
    }
}

impl<K: Pod, V: Pod, S> InlineMap<K, V, S> {
    /// Makes an empty map anew, if it has less room than for so many entries: as far as there is memory.
    pub(super) fn renew(&mut self, entries: usize) {
        if entries > self.capacity() && self.is_empty() && self.slots.grows() {
            let shape = self.slots.shape_for(entries);
            if let Ok(slots) = shape.and_then(|shape| Directory::new(shape, entries)) {
                self.slots = slots;
            }
        }
    }
}

impl<K: Pod + Hash + Eq, V: Pod, S: BuildHasher> InlineMap<K, V, S> {
    /// Inserts an entry, or replaces the value of one. Whether there was room.
    ///
    /// # Safety
    ///
    /// Nobody else uses the segment of the key's digest.
    #[inline]
    pub(super) unsafe fn insert_alone(&self, digest: Digest, key: K, value: V) -> bool {
        // SAFETY: the caller's.
        let mut spot = unsafe { self.slots.find_alone(digest, |(other, _)| other == key) };
        if spot.replace(|(key, _)| (key, value)) {
            return true;
        }
        match spot.room() {
            Some(room) => room.put((key, value)),
            None => return self.checked_insert_of(digest, key, value).is_ok(),
        }
        true
    }
}

impl<K: Pod + Hash + Eq, V: Pod, S: BuildHasher> Alone<'_, InlineMap<K, V, S>> {
    /// Inserts all pairs; of several values of a key the last stays. Panics if there is no room.
    #[track_caller]
    pub(super) fn extend(self, pairs: impl IntoIterator<Item = (K, V)>) {
        let pairs = pairs.into_iter();
        // A hint is no promise.
        self.0.renew(pairs.size_hint().0);
        let digested = |this: &Self, (key, value): (K, V)| (this.0.digest(&key), key, value);
        assert!(in_batches(pairs, digested, self), "{FULL}");
    }
}

impl<K: Pod + Hash + Eq, V: Pod, S: BuildHasher> Target<K, V> for Alone<'_, InlineMap<K, V, S>> {
    #[inline]
    fn prepare(&self, digest: Digest) {
        self.0.slots.prefetch(digest);
    }

    #[inline]
    fn insert(&mut self, digest: Digest, key: K, value: V) -> bool {
        // SAFETY: the map is ours alone.
        unsafe { self.0.insert_alone(digest, key, value) }
    }
}
