//! Striped optimistic version counters (MemC3, section 3.3): how a reader notices that an item moved.
//!
//! A bucket *pair* maps to one stripe, so that one counter covers both places an item can be in. Only the holder
//! of the segment's lock writes a stripe [I5]; it is odd exactly while an item of one of its pairs is being
//! written in more than one step [I4]. 64 bits never wrap under a descheduled reader.

use crate::reclaim::PROTECTED;
use crate::sync::{AtomicU64, Ordering, fence, step};

/// A version as a reader saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Version(u64);

impl Version {
    /// A write to one of the stripe's pairs was under way.
    #[inline(always)]
    pub(crate) fn is_odd(self) -> bool {
        self.0 % 2 == 1
    }
}

/// [R2]: the version before anything else is read.
#[inline(always)]
pub(crate) fn begin(stripe: &AtomicU64) -> Version {
    // Acquire: pairs with the Release of each store to a stripe. `Moving`'s drop [W5]: an even version shows all the
    // moves before it. `Moving::start`: an odd one shows the departures and the undo copy before it. `note_departure`:
    // it shows the tag cleared.
    Version(stripe.load(Ordering::Acquire))
}

/// [R2], if nothing that is [`PROTECTED`] is read before it.
#[inline(always)]
pub(crate) fn begin_first(stripe: &AtomicU64) -> Version {
    // Acquire: as in `begin`. Stronger than that: pairs with whatever this thread has stored last, see below the table of
    // atomics.
    Version(stripe.load(PROTECTED))
}

/// [R4]: whether the version is still the one that was read before.
#[inline(always)]
pub(crate) fn unchanged(stripe: &AtomicU64, version: Version) -> bool {
    // Acquire fence: pairs with the Release fence in `Moving::start` and `publish_departures`: having read
    // anything a writer stored after its fence, the load below sees its version.
    fence(Ordering::Acquire);
    stripe.load(Ordering::Relaxed) == version.0
}

/// [R4]: whether the version is still the one that was read before, and even. One comparison.
#[inline(always)]
pub(crate) fn settled(stripe: &AtomicU64, version: Version) -> bool {
    // Acquire fence: as in `unchanged`. Redundant today: filters, which alone call this, have loaded words with Acquire.
    fence(Ordering::Acquire);
    // An odd version minus one was current before it, and never will be again.
    stripe.load(Ordering::Relaxed) == version.0 & !1
}

/// Makes readers of a stripe read again: an item has left a slot that others will reuse.
///
/// A reader that matched the departed item's tag may still read the slot's words. Any item with this tag in this bucket has
/// this pair and this stripe, so the reader validates against the counter that is bumped here.
#[inline]
pub(crate) fn note_departure(stripe: &AtomicU64) {
    // Relaxed: only the lock's holder stores [I5].
    let version = stripe.load(Ordering::Relaxed);
    debug_assert!(version % 2 == 0, "a departure during another write [I4]");
    // Release: pairs with the Acquire in `begin`: a reader that starts at this version sees the tag cleared.
    // `publish_departures` takes care that a reader that started before notices.
    stripe.store(version + 2, Ordering::Release);
}

/// Orders all changes of versions so far before the words that are about to be written: a reader that reads one of these under
/// an older version fails [R4]. The name is that of its first use; there are four:
///
/// * a slot is filled: a reader whose item had left it learns that from the bump of its departure [W3];
/// * a single word is replaced, with no version of its own [W2]: a reader of it sees what came before this write;
/// * the undo copy is made: a reader in an older odd version must not take it for its own;
/// * the undo copy is withdrawn: a reader that finds it gone sees the version even.
#[inline]
pub(crate) fn publish_departures() {
    // Release: pairs with the Acquire fence in `unchanged`: a reader of a new word sees the old item's departure.
    fence(Ordering::Release);
}

/// Keeps its stripe odd while it lives; a panic cannot leave it odd.
#[derive(Debug)]
pub(crate) struct Moving<'a> {
    stripe: &'a AtomicU64,
}

impl<'a> Moving<'a> {
    /// Makes the stripe odd. Call only with the segment's lock held [I5].
    #[inline]
    pub(crate) fn start(stripe: &'a AtomicU64) -> Self {
        // Relaxed: only the lock's holder stores [I5].
        let version = stripe.load(Ordering::Relaxed);
        debug_assert!(version % 2 == 0, "two writes in flight in one stripe [I4]");
        // Release: pairs with the Acquire in `begin`: a reader that starts at this version sees what was done before, including
        // departures from the slot that is about to be overwritten and the undo copy.
        stripe.store(version + 1, Ordering::Release);
        // Release: pairs with the Acquire fence in `unchanged`: a reader of any part of this write sees the stripe odd.
        fence(Ordering::Release);
        step();
        Moving { stripe }
    }
}

impl Drop for Moving<'_> {
    #[inline]
    fn drop(&mut self) {
        step();
        // Relaxed: only the lock's holder stores [I5].
        let version = self.stripe.load(Ordering::Relaxed);
        // Release: pairs with the Acquire in `begin`: a reader that starts at this version sees the whole write.
        self.stripe.store(version + 1, Ordering::Release);
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn a_version_holds_until_a_write_begins_and_an_odd_one_settles_nothing() {
        let stripe = AtomicU64::new(6);
        let before = begin(&stripe);
        assert!(!before.is_odd() && unchanged(&stripe, before) && settled(&stripe, before));
        let moving = Moving::start(&stripe);
        assert!(!unchanged(&stripe, before) && !settled(&stripe, before));
        let during = begin(&stripe);
        assert!(during.is_odd() && unchanged(&stripe, during) && !settled(&stripe, during));
        drop(moving);
        assert!(!unchanged(&stripe, during) && !settled(&stripe, during) && !settled(&stripe, before));
        let after = begin(&stripe);
        assert!(!after.is_odd() && settled(&stripe, after));
        note_departure(&stripe);
        assert!(!unchanged(&stripe, after) && !settled(&stripe, after) && !begin(&stripe).is_odd());
    }
}
