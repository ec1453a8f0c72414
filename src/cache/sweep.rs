//! Removal of expired entries: those that writes come upon, and those that readers find.

use core::hash::{BuildHasher, Hash};

use super::Cache;
use super::cache::CacheSlots;
use super::removal::{Cause, Departures};
use super::time::Nanos;
use super::write::At;
use crate::engine::Locked;
use crate::entries::{Entry, EntryPointer};
use crate::hash::Digest;
use crate::reentry;

/// Buckets that are looked through at a time for a heavy entry. This many contain an expired entry where a fiftieth of all have
/// expired.
const SWEPT_FOR_HEAVY: u32 = 32;
/// Buckets that an insertion looks through, if it does: half as many insertions as there are buckets look through all of a
/// segment.
const SWEPT_BUCKETS: u32 = 2;
/// After this many insertions that came upon no expired entry, only one of [`SELDOM`] looks. Where a fiftieth of all have
/// expired, this many insertions meet some.
const IN_VAIN: u32 = 16;
/// See [`IN_VAIN`].
const SELDOM: u32 = 8;

impl<K, V, S> Cache<K, V, S> {
    /// Takes out expired entries, until this weight fits, or until a few buckets in a row have none: no entry is turned away
    /// for entries that cannot be returned. Looks at each of the segment's buckets once at most.
    #[cold]
    pub(super) fn sweep_for(
        &self,
        locked: &mut Locked<'_, CacheSlots>,
        weight: u64,
        now: Nanos,
        out: &mut Departures<'_, K, V>,
    ) {
        for _ in 0..locked.segment().buckets().len().div_ceil(SWEPT_FOR_HEAVY) {
            let before = locked.len();
            self.sweep(locked, SWEPT_FOR_HEAVY, now, out);
            if locked.len() == before || locked.state_ref().keep.evictor.fits(weight) {
                break;
            }
        }
    }

    /// Takes out the expired entries of the next few buckets, with an insertion: each insertion looks while there is something
    /// to be found, then one of several. So where nothing has expired, as is usual, it costs little, and expired entries cannot
    /// become many; but one entry may stay until there were as many insertions as there are slots.
    #[inline]
    pub(super) fn sweep_a_little(
        &self,
        locked: &mut Locked<'_, CacheSlots>,
        now: Nanos,
        out: &mut Departures<'_, K, V>,
    ) {
        if self.time.is_none() {
            return;
        }
        let in_vain = locked.state_ref().keep.in_vain;
        locked.state().keep.in_vain = in_vain.wrapping_add(1);
        if in_vain < IN_VAIN || in_vain % SELDOM == 0 {
            let before = locked.len();
            self.sweep_next(locked, SWEPT_BUCKETS, now, out);
            if locked.len() < before {
                locked.state().keep.in_vain = 0;
            }
        }
    }

    /// Takes out the expired entries of the next few buckets.
    #[inline]
    pub(super) fn sweep(
        &self,
        locked: &mut Locked<'_, CacheSlots>,
        buckets: u32,
        now: Nanos,
        out: &mut Departures<'_, K, V>,
    ) {
        if self.time.is_some() {
            self.sweep_next(locked, buckets, now, out);
        }
    }

    /// The same, where entries expire. In a function of its own, so that other caches have nothing to prepare for it.
    #[inline(never)]
    fn sweep_next(
        &self,
        locked: &mut Locked<'_, CacheSlots>,
        buckets: u32,
        now: Nanos,
        out: &mut Departures<'_, K, V>,
    ) {
        let len = locked.segment().buckets().len();
        for _ in 0..buckets.min(len) {
            let bucket = locked.state_ref().keep.next_bucket % len;
            locked.state().keep.next_bucket = bucket + 1;
            for found in locked.residents().occupied(bucket) {
                if self.has_expired(locked.item(found), now) {
                    self.take_out(locked, found, Cause::Expired, out);
                }
            }
        }
    }
}

impl<K: Hash + Eq, V, S: BuildHasher> Cache<K, V, S> {
    /// Looks once more for the key of an entry that was found, and that had expired when the clock was read after that: it may
    /// have been replaced in time. What is found now was there then, or has come since; so if that has expired as well, or
    /// nothing is there, the key is absent. Only for the holder of the guard under which the entry was found.
    #[cold]
    pub(super) fn find_again(&self, digest: Digest, before: EntryPointer) -> Option<EntryPointer> {
        // SAFETY: found after the guard was entered, both.
        let key = |entry| unsafe { Entry::<K, V>::deref(entry) }.pair().0;
        self.table.directory.find(digest, || (), |entry| entry == before || key(entry) == key(before))
    }

    /// The entry that has taken the place of one that was found expired. If it is the same, or has expired as well, it is taken
    /// out instead, unless that would mean waiting.
    #[cold]
    #[inline(never)]
    pub(super) fn renewed(&self, digest: Digest, before: EntryPointer, now: Nanos) -> Option<EntryPointer> {
        let entry = self.find_again(digest, before)?;
        if self.has_expired(entry, now) {
            self.take_out_expired(digest, entry, now);
            return None;
        }
        Some(entry)
    }

    /// Takes out an entry that a reader has found expired, if it is still there. That is left to others where the reader would
    /// have to wait; and in a closure or `Eq` under any lock, because the listener would be told there.
    #[cold]
    fn take_out_expired(&self, digest: Digest, entry: EntryPointer, now: Nanos) {
        if reentry::holds_a_lock() {
            return;
        }
        self.flush_if_heavy();
        let mut out = self.departures(self.enter());
        let Some(At { mut writing, found, .. }) =
            self.table.directory.try_lock_and_find(digest, |other| other == entry)
        else {
            return;
        };
        if let Some(found) = found {
            if self.has_expired(entry, now) {
                self.take_out(&mut writing.locked, found, Cause::Expired, &mut out);
                self.settle(&mut writing.locked, &mut out);
            }
        }
    }
}
