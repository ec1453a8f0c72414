//! [`Undo`]: replacing an item in place by more than one store, so that readers find the old item until it is done [W2].

use core::ptr;

use super::payload::Payload;
use super::stripes::{self, Moving};
use crate::sync::{AtomicPtr, AtomicU64, Ordering};

/// A copy of the one item of a segment that is being replaced in this way: readers return it meanwhile.
pub(super) struct Undo<P: Payload> {
    /// The slot that the item was copied from; null if none is being replaced.
    slot: AtomicPtr<P::Word>,
    words: *const P::Word,
}

impl<P: Payload> Undo<P> {
    /// No item is being replaced.
    ///
    /// # Safety
    ///
    /// If `P::REPLACED_WORDS` is more than one: `words` points to `P::WORDS` words, used by nobody else as long as this is
    /// used.
    pub(super) unsafe fn new(words: *const P::Word) -> Self {
        Undo { slot: AtomicPtr::new(ptr::null_mut()), words }
    }

    /// The item that was in `slot` before the replacement that is under way, if that replacement is in this slot.
    #[cold]
    pub(super) fn of(&self, slot: *const P::Word) -> Option<P::Item> {
        // Relaxed: written before the odd version, which was stored with Release and read with Acquire.
        if !ptr::eq(self.slot.load(Ordering::Relaxed), slot) {
            return None;
        }
        // SAFETY: WORDS words (`new`).
        unsafe { P::load(self.words) }
    }

    /// Replaces the item in a slot.
    ///
    /// Call only with the lock held [I5]. The slot is in the segment's buckets or overflow, and the stripe is the one that
    /// its readers validate against.
    pub(super) fn replace(&self, slot: *const P::Word, stripe: &AtomicU64, item: P::Item) {
        self.copy(slot);
        // The odd version's Release publishes the copy.
        let moving = Moving::start(stripe);
        // SAFETY: a slot of live buckets.
        unsafe { P::store(slot, item, 0) };
        drop(moving);
        // Release: pairs with the Acquire fence in `unchanged`: a reader that finds the copy withdrawn sees the version even.
        stripes::publish_departures();
        self.slot.store(ptr::null_mut(), Ordering::Relaxed);
    }

    /// Copies what is in a slot.
    pub(super) fn copy(&self, slot: *const P::Word) {
        debug_assert!(P::REPLACED_WORDS > 1);
        // SAFETY: a slot of live buckets.
        let old = unsafe { P::load(slot) };
        // Release: pairs with the Acquire fence in `unchanged`: a reader of the new copy in an older odd version sees that the
        // version has changed. Redundant today, because such a fence comes before on every path to here: a stripe was last odd
        // for a displacement, and then `fill` filled the hole, or for a replacement, which ended below.
        stripes::publish_departures();
        self.slot.store(slot.cast_mut(), Ordering::Relaxed);
        if let Some(old) = old {
            // SAFETY: WORDS words (`new`).
            unsafe { P::store(self.words, old, 0) };
        }
    }
}
