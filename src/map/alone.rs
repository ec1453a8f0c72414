//! Filling a map that nobody else uses, as `collect` and `extend` do with exclusive access to it [W7].
//!
//! An empty map is rebuilt for as many pairs as are promised, and pairs are inserted without locks.

use core::hash::{BuildHasher, Hash};

use bytemuck::Pod;

use super::bulk::{Target, in_batches};
use super::{HashMap, InlineMap};
use crate::engine::{Directory, Inline, Payload, Shape};
use crate::entries::{Entry, OwnedEntry, Slots, Table, Within};
use crate::hash::Digest;
use crate::outcome::FULL;

/// The part that nobody else uses.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ours {
    /// The map.
    Map,
    /// The segment of the key.
    #[cfg(feature = "rayon")]
    Segment,
}

/// What filling requires of either map, and of a set.
///
/// # Safety
///
/// Entries are inserted into `directory`.
pub(crate) unsafe trait Fill<K, V> {
    /// What its slots hold.
    type Payload: Payload;

    /// The map's segments.
    fn directory(&self) -> &Directory<Self::Payload>;

    /// The map's segments.
    fn directory_mut(&mut self) -> &mut Directory<Self::Payload>;

    /// The place at which a key belongs.
    fn digest_of(&self, key: &K) -> Digest;

    /// Rebuilds the map, which is empty, in this shape, for this many entries; leaves it as it is if there is no memory.
    fn remake(&mut self, shape: Shape, entries: usize);

    /// Rebuilds an empty map, if it has less room than for this many entries: as far as there is memory. A map that has room
    /// for them is filled without growing.
    fn remake_for(&mut self, entries: usize) {
        if let Some(shape) = self.directory().shape_anew(entries) {
            self.remake(shape, entries);
        } else if entries > 0 && self.directory().is_empty() {
            self.directory_mut().expect_items();
        }
    }

    /// Starts loading the memory that the insertion of a key with this digest reads and writes.
    fn prepare(&self, digest: Digest);

    /// Inserts an entry without the lock of its segment, and returns whether there was room. The implementing type says what
    /// becomes of an entry that is present with the same key.
    ///
    /// # Safety
    ///
    /// Nobody else uses the part that `ours` names, and nobody frees segments or roots that were replaced: nobody else shrinks
    /// the map.
    unsafe fn insert_alone(&self, ours: Ours, digest: Digest, key: K, value: V) -> bool;

    /// The same with the lock.
    #[cfg(feature = "rayon")]
    fn insert_locked(&self, digest: Digest, key: K, value: V) -> bool;
}

/// A map that nobody else uses.
struct Alone<'m, M>(&'m mut M);

impl<K, V, M: Fill<K, V>> Target<K, V> for Alone<'_, M> {
    #[inline]
    fn prepare(&self, digest: Digest) {
        self.0.prepare(digest);
    }

    #[inline]
    fn insert(&mut self, digest: Digest, key: K, value: V) -> bool {
        // SAFETY: borrowed mutably.
        unsafe { self.0.insert_alone(Ours::Map, digest, key, value) }
    }
}

/// Inserts all pairs: of several values of a key the last stays in a map, and the first in a set. Panics if there is no room.
#[track_caller]
pub(crate) fn extend_alone<K, V, M: Fill<K, V>>(map: &mut M, pairs: impl IntoIterator<Item = (K, V)>) {
    let pairs = pairs.into_iter();
    // A hint is no promise.
    map.remake_for(pairs.size_hint().0);
    let digested = |map: &Alone<'_, M>, (key, value): (K, V)| (map.0.digest_of(&key), key, value);
    assert!(in_batches(pairs, digested, Alone(map)), "{FULL}");
}

impl<K: Hash + Eq, V, S: BuildHasher> HashMap<K, V, S> {
    /// Inserts an entry without the lock of its segment, and returns whether there was room. A present entry with its key
    /// stays, if `KEEPS`, and is replaced otherwise.
    ///
    /// # Safety
    ///
    /// As for [`Fill::insert_alone`].
    #[inline]
    pub(crate) unsafe fn put_alone<const KEEPS: bool>(
        &self,
        ours: Ours,
        digest: Digest,
        key: K,
        value: V,
    ) -> bool {
        // SAFETY: `eq` is called with entries of the segment, which nobody takes out of it meanwhile.
        let eq = |entry| unsafe { Entry::<K, V>::deref(entry) }.key == key;
        // SAFETY: the caller's.
        let spot = unsafe { self.table.directory.find_alone(digest, eq) };
        if KEEPS && spot.is_found() {
            return true;
        }
        let Some(mut hole) = spot.hole() else {
            return self.pin().put_locked::<KEEPS>(digest, key, value);
        };
        // Others have their parts of a page of cells, and a thread that takes entries out gives back cells of any page.
        let within = if ours == Ours::Map { Within::PageAlone } else { Within::Page };
        let magazine = &mut hole.keep().free;
        let Ok(new) = OwnedEntry::new(&self.table.slab, magazine, digest, within, key, value) else {
            return false;
        };
        hole.put(new.pointer());
        new.publish();
        true
    }
}

// SAFETY: the map has no other directory.
unsafe impl<K: Hash + Eq, V, S: BuildHasher> Fill<K, V> for HashMap<K, V, S> {
    type Payload = Slots;

    #[inline]
    fn directory(&self) -> &Directory<Slots> {
        &self.table.directory
    }

    fn directory_mut(&mut self) -> &mut Directory<Slots> {
        &mut self.table.directory
    }

    #[inline]
    fn digest_of(&self, key: &K) -> Digest {
        self.digest(key)
    }

    fn remake(&mut self, shape: Shape, entries: usize) {
        if let Ok(table) = Table::for_map(shape, entries) {
            self.table = table;
        }
    }

    #[inline]
    fn prepare(&self, digest: Digest) {
        self.table.directory.prefetch(digest);
        self.table.prefetch_home(digest);
    }

    #[inline]
    unsafe fn insert_alone(&self, ours: Ours, digest: Digest, key: K, value: V) -> bool {
        // SAFETY: the caller's.
        unsafe { self.put_alone::<false>(ours, digest, key, value) }
    }

    #[cfg(feature = "rayon")]
    #[inline]
    fn insert_locked(&self, digest: Digest, key: K, value: V) -> bool {
        self.pin().put_locked::<false>(digest, key, value)
    }
}

// SAFETY: the map has no other directory.
unsafe impl<K: Pod + Hash + Eq, V: Pod, S: BuildHasher> Fill<K, V> for InlineMap<K, V, S> {
    type Payload = Inline<K, V>;

    #[inline]
    fn directory(&self) -> &Directory<Inline<K, V>> {
        &self.slots
    }

    fn directory_mut(&mut self) -> &mut Directory<Inline<K, V>> {
        &mut self.slots
    }

    #[inline]
    fn digest_of(&self, key: &K) -> Digest {
        self.digest(key)
    }

    fn remake(&mut self, shape: Shape, entries: usize) {
        if let Ok(slots) = Directory::new(shape, entries) {
            self.slots = slots;
        }
    }

    #[inline]
    fn prepare(&self, digest: Digest) {
        self.slots.prefetch(digest);
    }

    #[inline]
    unsafe fn insert_alone(&self, _: Ours, digest: Digest, key: K, value: V) -> bool {
        // SAFETY: the caller's.
        let mut spot = unsafe { self.slots.find_alone(digest, |(other, _)| other == key) };
        if spot.replace(|(key, _)| (key, value)) {
            return true;
        }
        match spot.hole() {
            Some(hole) => hole.put((key, value)),
            None => return self.checked_insert_of(digest, key, value).is_ok(),
        }
        true
    }

    #[cfg(feature = "rayon")]
    #[inline]
    fn insert_locked(&self, digest: Digest, key: K, value: V) -> bool {
        self.checked_insert_of(digest, key, value).is_ok()
    }
}
