//! `retain` of either map: entries are looked at without a lock, and many of those to be removed are removed under one lock.

use core::hash::{BuildHasher, Hash};
use std::panic::{AssertUnwindSafe, catch_unwind};

use bytemuck::Pod;

use super::{InlineMap, Pinned};
use crate::engine::{Directory, InSlot, Inline, Payload};
use crate::entries::{EntryPointer, RETIRED_AS_ONE, Slots, retire_all};
use crate::plain;
use crate::reclaim::{Guard, discard};

/// The number of entries that are removed under one lock: with this many, the lock costs next to nothing for each, and nobody
/// waits for long. As many as are retired as one.
const AT_ONCE: usize = RETIRED_AS_ONE;

/// What `retain` requires of either map.
pub(super) trait Retaining {
    /// What its slots hold.
    type Payload: Payload;

    /// The map's segments.
    fn slots(&self) -> &Directory<Self::Payload>;

    /// Removes these entries of the segment that begins at prefix `cursor`, if each is still where it was found, and returns
    /// how many it removed: these are then the first.
    fn remove_found(&self, cursor: u64, entries: &mut [InSlot<Self::Payload>]) -> usize;

    /// Removes an entry wherever it is now; if another has replaced it, that one stays and is returned.
    fn remove_or_current(&self, entry: Item<Self>) -> Option<Item<Self>>;
}

/// The content of a slot.
pub(super) type Item<M> = <<M as Retaining>::Payload as Payload>::Item;

/// Removes the entries for which `keep` does not hold.
pub(super) fn retain<M: Retaining>(map: &M, mut keep: impl FnMut(Item<M>) -> bool) {
    let (mut entries, mut slots, mut cursor) = (Vec::new(), Vec::new(), 0);
    while let Some(next) = map.slots().snapshot_slots(cursor, &mut entries, &mut slots) {
        let mut refused = Refused { map, cursor, entries: Vec::new(), missed: Vec::new() };
        for (slot, entry) in slots.drain(..).zip(entries.drain(..)) {
            if !keep(entry) {
                refused.entries.push((slot, entry));
                if refused.entries.len() == AT_ONCE {
                    refused.remove(&mut keep);
                }
            }
        }
        refused.remove(&mut keep);
        cursor = next;
    }
}

/// Entries that `keep` has refused, of the segment that begins at prefix `cursor`: removed when they are many, or when this is
/// dropped, as by a panic of `keep`.
struct Refused<'m, M: Retaining> {
    map: &'m M,
    cursor: u64,
    entries: Vec<InSlot<M::Payload>>,
    /// Refused entries that were not in their slots any more.
    missed: Vec<Item<M>>,
}

impl<M: Retaining> Refused<'_, M> {
    /// Whatever panics, fewer are left afterwards.
    fn remove(&mut self, keep: &mut impl FnMut(Item<M>) -> bool) {
        if !self.entries.is_empty() {
            let mut entries = core::mem::take(&mut self.entries);
            let removed = self.map.remove_found(self.cursor, &mut entries);
            self.missed.extend(entries.drain(..).skip(removed).map(|(_, entry)| entry));
            // The memory is used again.
            self.entries = entries;
        }
        while let Some(mut entry) = self.missed.pop() {
            while let Some(current) = self.map.remove_or_current(entry) {
                if keep(current) {
                    break;
                }
                entry = current;
            }
        }
    }
}

impl<M: Retaining> Drop for Refused<'_, M> {
    fn drop(&mut self) {
        // Some are left only if `keep` has panicked, or `Hash` or `Eq`: that panic goes on, and another would end the process.
        // Nobody can say whether an entry that has replaced a refused one is to be kept.
        while !(self.entries.is_empty() && self.missed.is_empty()) {
            if let Err(payload) = catch_unwind(AssertUnwindSafe(|| self.remove(&mut |_| true))) {
                discard(payload);
            }
        }
    }
}

impl<K: Hash + Eq, V, S: BuildHasher, G: Guard> Retaining for Pinned<'_, K, V, S, G> {
    type Payload = Slots;

    fn slots(&self) -> &Directory<Slots> {
        self.directory()
    }

    fn remove_found(&self, cursor: u64, entries: &mut [InSlot<Slots>]) -> usize {
        let removed = self.directory().remove_from_slots(cursor, entries, PartialEq::eq);
        let gone = entries[..removed].iter().map(|&(_, entry)| entry);
        // SAFETY: just taken out of the table, under the lock that was held until now, and nobody else retires them [I6].
        unsafe { retire_all::<K, V>(gone, &self.guard) };
        removed
    }

    fn remove_or_current(&self, entry: EntryPointer) -> Option<EntryPointer> {
        // SAFETY: in the table since this view was made or later.
        let spot = self.spot(unsafe { &self.entry_behind(entry).key });
        let found = spot.found?;
        let current = spot.writing.locked.item(found);
        if current != entry {
            return Some(current);
        }
        self.take_out(spot, found);
        None
    }
}

impl<K: Pod + Hash + Eq, V: Pod, S: BuildHasher> Retaining for InlineMap<K, V, S> {
    type Payload = Inline<K, V>;

    fn slots(&self) -> &Directory<Inline<K, V>> {
        &self.slots
    }

    fn remove_found(&self, cursor: u64, entries: &mut [InSlot<Inline<K, V>>]) -> usize {
        self.slots.remove_from_slots(cursor, entries, plain::are_same)
    }

    fn remove_or_current(&self, entry: (K, V)) -> Option<(K, V)> {
        plain::remove_or_current(entry, |key, condition| _ = self.remove_if(key, condition))
    }
}
