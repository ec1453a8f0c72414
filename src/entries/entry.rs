//! Entries: key and value in a piece or a home cell of a slab, or in a box of their own.
//!
//! The rule for entries: each is in the table, or was taken out and is listed to be retired, or is retired, or is owned: by an
//! [`OwnedEntry`] or by an owned walk. So it is freed exactly once.

use core::ptr::NonNull;

use super::entry_slab::EntrySlab;
use super::homes::Within;
use super::magazine::Magazine;
use super::old::RETIRED_AS_ONE;
use crate::hash::Digest;
use crate::reclaim::{Guard, Retire};
use crate::sync::{AtomicU64, Watch};

/// What a slot points to, whatever keys and values are: so the engine is compiled once for all maps of a program, and once for
/// all caches. No more aligned than any entry, and as aligned as split bits require addresses to be [G8].
#[derive(Debug)]
pub(crate) struct ErasedEntry {
    _aligned: [usize; 0],
}

/// The address of an [`Entry`], from a table, which knows its type.
pub(crate) type EntryPointer = NonNull<ErasedEntry>;

/// Key and value, in memory of the table's slab: a piece, a home cell or a box.
#[derive(Debug)]
pub(crate) struct Entry<K, V> {
    pub(crate) key: K,
    pub(crate) value: V,
    watch: Watch,
    /// See [`ErasedEntry`].
    _aligned: [usize; 0],
}

impl<K, V> Entry<K, V> {
    /// Whether entries of this type are [gathered](super::old): those that have no box, which need no drop either.
    pub(crate) const GATHERS: bool = !EntrySlab::<K, V>::BOXED;
    /// The distance from its address to that of its [tail](Entry::tail).
    pub(crate) const TAIL_AT: usize = EntrySlab::<K, V>::TAIL_AT;
    /// How many entries are retired as one; those that a cache's listener is told of are retired one by one, however.
    pub(crate) const IN_ONE: usize = if Self::GATHERS { RETIRED_AS_ONE } else { 1 };

    /// The entry behind a pointer out of the table.
    ///
    /// # Safety
    ///
    /// The pointer is from a table of such keys and values: it was there at some moment since a guard was entered that outlives
    /// `'g`; or the table is exclusively the caller's; or the entry has left the table, and it is up to the caller to retire
    /// it, which is done after `'g`.
    #[inline(always)]
    pub(crate) unsafe fn deref<'g>(this: EntryPointer) -> &'g Self {
        // SAFETY: the caller's; [I6] keeps it alive, and nobody writes to an entry once it is published, except a caller that
        // has the table to itself [W8].
        let entry = unsafe { this.cast::<Self>().as_ref() };
        entry.watch.read();
        entry
    }

    /// The entry behind a pointer out of the table, for its value to be changed in place.
    ///
    /// # Safety
    ///
    /// The entry is in a table of such keys and values, which is exclusively the caller's as long as `'m`, and nobody has
    /// another reference to it.
    #[inline]
    pub(crate) unsafe fn deref_mut<'m>(this: EntryPointer) -> &'m mut Self {
        // SAFETY: the caller's [W8].
        let entry = unsafe { this.cast::<Self>().as_mut() };
        entry.watch.read();
        entry
    }

    /// The tail of an entry: see [`EntrySlab::tail`].
    ///
    /// # Safety
    ///
    /// The entry is of a table of such keys and values, and not freed.
    #[inline(always)]
    pub(crate) unsafe fn tail(this: EntryPointer) -> NonNull<AtomicU64> {
        // SAFETY: the caller's.
        unsafe { EntrySlab::tail(this.cast::<Self>()) }
    }

    /// Retires an entry: [`Guard::retire`].
    ///
    /// # Safety
    ///
    /// As required there; and the entry is of a table of such keys and values.
    #[inline]
    pub(crate) unsafe fn retire(this: EntryPointer, guard: &impl Guard) {
        // SAFETY: the caller's.
        unsafe { guard.retire(this.cast::<Self>().as_ptr()) };
    }

    /// Key and value.
    #[inline(always)]
    pub(crate) fn pair(&self) -> (&K, &V) {
        (&self.key, &self.value)
    }
}

impl<K, V> Retire for Entry<K, V> {
    unsafe fn free(this: *mut Self) {
        // SAFETY: never null: it was in the table. And the caller's: nobody else will reach it.
        let this = unsafe { NonNull::new_unchecked(this) };
        drop(OwnedEntry(this));
    }

    unsafe fn link(this: *mut Self) -> *mut *mut () {
        // SAFETY: the caller's; never null.
        unsafe { EntrySlab::link(NonNull::new_unchecked(this)) }
    }

    #[cfg(loom)]
    fn condemn(&self) {
        self.watch.free();
    }
}

/// An entry that is not in the table: not yet, or not any more.
#[derive(Debug)]
pub(crate) struct OwnedEntry<K, V>(NonNull<Entry<K, V>>);

impl<K, V> OwnedEntry<K, V> {
    /// An entry at its home or `within` that distance of it, or in a piece from the magazine of the digest's segment [M1].
    /// Hands key and value back if there is no memory.
    #[inline]
    pub(crate) fn new(
        slab: &EntrySlab<K, V>,
        magazine: &mut Magazine,
        digest: Digest,
        within: Within,
        key: K,
        value: V,
    ) -> Result<Self, (K, V)> {
        let Some(piece) = slab.allocate(magazine, digest, within) else { return Err((key, value)) };
        // SAFETY: memory for an entry, ours.
        unsafe { piece.write(Entry { key, value, watch: Watch::default(), _aligned: [] }) };
        Ok(OwnedEntry(piece))
    }

    /// Takes over an entry.
    ///
    /// # Safety
    ///
    /// It is of a table of such keys and values; nobody else will reach or free it, and its slab outlives it.
    pub(crate) unsafe fn from_raw(entry: EntryPointer) -> Self {
        OwnedEntry(entry.cast())
    }

    /// The entry, for the caller to take care of from now on.
    #[inline]
    pub(crate) fn into_raw(self) -> EntryPointer {
        let entry = self.pointer();
        core::mem::forget(self);
        entry
    }

    /// What goes into a slot. The table owns it once [`OwnedEntry::publish`] is called.
    #[inline]
    pub(crate) fn pointer(&self) -> EntryPointer {
        self.0.cast()
    }

    /// Hands the entry to the table, which owns it from now on.
    #[inline]
    pub(crate) fn publish(self) {
        core::mem::forget(self);
    }

    /// Takes key and value out of the entry.
    pub(crate) fn into_pair(self) -> (K, V) {
        // SAFETY: ours: moved out, and then only the memory is given back.
        let entry = unsafe { self.0.read() };
        drop(Piece(self.0));
        core::mem::forget(self);
        (entry.key, entry.value)
    }

    /// The same, if the slab is freed next: a piece is not given back, which would take longer than everything else, but is
    /// freed with the slab.
    pub(crate) fn into_last_pair(self) -> (K, V) {
        if EntrySlab::<K, V>::BOXED {
            return self.into_pair();
        }
        // SAFETY: ours: moved out, and never looked at again.
        let entry = unsafe { self.0.read() };
        core::mem::forget(self);
        (entry.key, entry.value)
    }
}

impl<K, V> Drop for OwnedEntry<K, V> {
    fn drop(&mut self) {
        // Given back even if the user's drop panics.
        let _piece = Piece(self.0);
        // SAFETY: ours, and initialized.
        unsafe { self.0.drop_in_place() };
    }
}

/// The memory of an entry whose content has gone.
struct Piece<K, V>(NonNull<Entry<K, V>>);

impl<K, V> Drop for Piece<K, V> {
    fn drop(&mut self) {
        // SAFETY: from the slab of the entry's map, which lives as long as there are entries.
        unsafe { EntrySlab::free(self.0) };
    }
}
