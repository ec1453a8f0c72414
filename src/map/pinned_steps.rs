//! The steps that the writes of a [`Pinned`] are made of.
//!
//! Every operation locks and finds, then makes its new entry, then commits by one call of the engine, then unlocks, and only
//! then retires the entry that it replaced. No user code runs under the lock except `Eq`, `Hash`, the closure of the operation
//! and the conversion of a reference into a key; and whatever panics, nothing is left half done.

use core::hash::{BuildHasher, Hash};

use equivalent::Equivalent;

use super::{Checked, Full, Pinned};
use crate::engine::{self, Directory, Found, NoRoom};
use crate::entries::{Entry, EntryPointer, OwnedEntry, Slots, Within};
use crate::hash::Digest;
use crate::reclaim::Guard;

pub(super) type Spot<'p> = engine::Spot<'p, Slots>;

impl<K, V, S, G: Guard> Pinned<'_, K, V, S, G> {
    pub(super) fn directory(&self) -> &Directory<Slots> {
        &self.map.table.directory
    }

    /// Unlocks, and frees an entry that has just been taken out of the table when nobody looks at it any more [C2]. It is not
    /// retired under the lock, because that may drop other entries; plain entries wait there for company [C4].
    ///
    /// # Safety
    ///
    /// Taken out under this lock, and retired once.
    // Always, as `swap_found`: otherwise the locked state would be passed through memory.
    #[inline(always)]
    unsafe fn retire(&self, mut spot: Spot<'_>, entry: EntryPointer) {
        if Entry::<K, V>::GATHERS {
            let many = spot.writing.locked.state().keep.old.push(entry);
            drop(spot);
            if let Some(many) = many {
                // SAFETY: our map's guard.
                unsafe { many.retire::<K, V>(&self.guard) };
            }
        } else {
            drop(spot);
            // SAFETY: the caller's: the table does not lead to it any more, and nobody else retires it [I6].
            unsafe { Entry::<K, V>::retire(entry, &self.guard) };
        }
    }

    /// Makes a new entry, in memory that belongs to the locked segment; returns key and value if there is none.
    #[inline]
    pub(super) fn make(&self, spot: &mut Spot<'_>, key: K, value: V) -> Checked<OwnedEntry<K, V>, K, V> {
        let within = if spot.found.is_some() { Within::Home } else { Within::Page };
        let digest = spot.digest;
        let magazine = &mut spot.writing.locked.state().keep.free;
        let new = OwnedEntry::new(&self.map.table.slab, magazine, digest, within, key, value);
        new.map_err(|(key, value)| Full { key, value })
    }

    /// The entry that was found.
    #[inline]
    pub(super) fn entry_at(&self, spot: &Spot<'_>, found: Found) -> &Entry<K, V> {
        // SAFETY: spots are of this map's table; there it is, under the lock.
        unsafe { self.entry_behind(spot.writing.locked.item(found)) }
    }

    /// Empties a slot and gives its entry up.
    pub(super) fn take_out(&self, mut spot: Spot<'_>, found: Found) -> &Entry<K, V> {
        let old = spot.writing.locked.item(found);
        spot.writing.locked.remove(spot.place, found);
        // SAFETY: just removed, under the lock.
        unsafe { self.retire(spot, old) };
        // SAFETY: as above.
        unsafe { self.entry_behind(old) }
    }

    /// Puts a new entry in the place of an old one, which is given up and returned.
    #[inline(always)]
    pub(super) fn swap_found(&self, mut spot: Spot<'_>, found: Found, new: OwnedEntry<K, V>) -> &Entry<K, V> {
        let old = spot.writing.locked.item(found);
        spot.writing.locked.replace(found, new.pointer());
        new.publish();
        // SAFETY: just replaced, under the lock.
        unsafe { self.retire(spot, old) };
        // SAFETY: as above.
        unsafe { self.entry_behind(old) }
    }
}

impl<K: Hash + Eq, V, S: BuildHasher, G: Guard> Pinned<'_, K, V, S, G> {
    /// Hashes a key, locks its segment and finds it.
    #[inline]
    pub(super) fn spot<Q: ?Sized + Hash + Equivalent<K>>(&self, key: &Q) -> Spot<'_> {
        self.spot_of(self.map.digest(key), key)
    }

    /// Locks the segment of a key with this digest, and finds the key.
    #[inline]
    pub(super) fn spot_of<Q: ?Sized + Equivalent<K>>(&self, digest: Digest, key: &Q) -> Spot<'_> {
        // SAFETY: called with entries that are in the table.
        let eq = |entry| key.equivalent(unsafe { &self.entry_behind(entry).key });
        self.map.table.prefetch_home(digest);
        self.directory().lock_and_find(digest, eq)
    }

    /// Puts a new entry where there is none; unlocks, and gives key and value back, if there is no room.
    #[inline]
    pub(super) fn add_at(&self, spot: Spot<'_>, new: OwnedEntry<K, V>) -> Checked<&Entry<K, V>, K, V> {
        let pointer = new.pointer();
        match self.directory().insert(spot, pointer, self.rehash()) {
            Ok(()) => {
                new.publish();
                // SAFETY: just inserted, or removed since.
                Ok(unsafe { self.entry_behind(pointer) })
            }
            Err(NoRoom) => {
                let (key, value) = new.into_pair();
                Err(Full { key, value })
            }
        }
    }

    /// Computes the digest of an entry that is in the table.
    pub(super) fn rehash(&self) -> impl Fn(EntryPointer) -> Digest {
        // SAFETY: called, by growth and shrinking, with entries that are in the table.
        |entry| self.map.digest(unsafe { &self.entry_behind(entry).key })
    }

    /// The same, of a key and a value.
    #[inline]
    pub(super) fn add_pair(&self, mut spot: Spot<'_>, key: K, value: V) -> Checked<&Entry<K, V>, K, V> {
        let new = self.make(&mut spot, key, value)?;
        self.add_at(spot, new)
    }

    /// Replaces an entry; returns the old one and the new one, or key and value, unlocked, if there is no memory.
    #[inline]
    #[expect(clippy::type_complexity, reason = "two entries, or key and value")]
    pub(super) fn replace_found(
        &self,
        mut spot: Spot<'_>,
        found: Found,
        key: K,
        value: V,
    ) -> Checked<(&Entry<K, V>, &Entry<K, V>), K, V> {
        let new = self.make(&mut spot, key, value)?;
        let pointer = new.pointer();
        let old = self.swap_found(spot, found, new);
        // SAFETY: just inserted, or removed since.
        Ok((old, unsafe { self.entry_behind(pointer) }))
    }

    /// Replaces the value that was found by the result of `update`; returns the new value.
    // The key first: if `update` panics it is dropped last, when the lock has been released.
    #[inline]
    pub(super) fn update_found(
        &self,
        key: K,
        spot: Spot<'_>,
        found: Found,
        update: impl FnOnce(&V) -> V,
    ) -> Checked<&V, K, V> {
        let value = update(&self.entry_at(&spot, found).value);
        self.replace_found(spot, found, key, value).map(|(_, new)| &new.value)
    }
}
