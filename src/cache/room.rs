//! A new entry's way into a segment's table, which has more slots than the segment may hold entries: when the table is made
//! larger, and which entry has to go where that does not help.

use core::cell::Cell;

use super::policy::{Evictor, Locator, Newcomer, mark};
use super::residents::{Entries, NoEviction};
use crate::engine::{Directory, Found, Keep, Locked, Payload, Residents, Spot};
use crate::hash::{Digest, Place};

/// The load at which a segment gets a larger table, 22 of 25 slots. A cache by entries whose bound is not raised does not reach
/// it.
const FULL: (usize, usize) = (22, 25);
/// A table with fewer slots is made larger if there is no path, however few slots are taken: among so few buckets keys share
/// theirs by chance, and one would have to go before the cache is full.
const SMALL: usize = 256;

/// What a cache keeps under the lock of each segment, including a policy.
pub(super) trait Kept: Keep {
    fn evictor(&self) -> &Evictor;

    fn evictor_mut(&mut self) -> &mut Evictor;

    /// How many insertions ask for a larger table in vain before it is tried again, after the keys could not be spread over
    /// more buckets.
    fn patience(&mut self) -> &mut usize;
}

/// What the insertion of an entry into a cache does under the lock of its segment.
pub(super) trait Insertion<P: Payload> {
    /// Lets the policy admit the newcomer, for which it may have to evict; returns the newcomer's mark.
    fn admit(&mut self, locked: &mut Locked<'_, P>, newcomer: Newcomer) -> u8;

    /// Tells the policy that the newcomer, which had this mark, was not stored.
    fn withdraw(&mut self, locked: &mut Locked<'_, P>, newcomer: Newcomer, mark: u8);

    /// Takes an entry out other than at the policy's request.
    fn take_out(&mut self, locked: &mut Locked<'_, P>, found: Found);

    /// The digest of an entry's key. Calls the user's `Hash`.
    fn rehash(&self, item: P::Item) -> Digest;
}

/// Starts loading what is read when a newcomer is admitted.
#[inline]
pub(super) fn prefetch<P: Payload<Keep: Kept>>(locked: &Locked<'_, P>, newcomer: Newcomer) {
    let residents = locked.residents();
    let resident = |locator: Locator| residents.prefetch(locator.place(residents.buckets()));
    locked.state_ref().keep.evictor().prefetch(newcomer, resident);
}

/// Puts a new entry into a segment that has quota for it. Makes the table larger if it is full or there is no path; if that
/// does not help, an entry that is in the way has to go.
#[inline]
pub(super) fn add<'c, P: Payload<Keep: Kept>>(
    directory: &'c Directory<P>,
    spot: &mut Spot<'c, P>,
    item: P::Item,
    newcomer: Newcomer,
    insertion: &mut impl Insertion<P>,
) {
    debug_assert!(spot.found.is_none(), "a slot would not be the key's any more");
    if is_short(&spot.writing.locked) {
        // This calls the user's `Hash`, so it comes before anything is changed. If it fails, others go.
        double(directory, spot, &|item| insertion.rehash(item));
    }
    loop {
        let place = spot.place;
        let locked = &mut spot.writing.locked;
        let mark = insertion.admit(locked, newcomer);
        if locked.put(place, item, mark, directory.budget()) {
            return;
        }
        // Its admission is undone first, because what follows calls the user's `Hash`.
        insertion.withdraw(locked, newcomer, mark);
        if !(may_help(locked, newcomer.weight) && double(directory, spot, &|item| insertion.rehash(item))) {
            let locked = &mut spot.writing.locked;
            let found = victim_in_the_way(&locked.residents(), spot.place);
            insertion.take_out(locked, found);
        }
    }
}

/// Whether so many slots are taken that paths become long.
#[inline]
fn is_short<P: Payload>(locked: &Locked<'_, P>) -> bool {
    locked.len() * FULL.1 >= locked.slots() * FULL.0
}

/// Whether a larger table may have room for an entry that found no path and has this weight. Where few of many slots are taken
/// the keys are colliding, and no table is large enough. And a segment that is full has as many slots as it was made for.
fn may_help<P: Payload<Keep: Kept>>(locked: &Locked<'_, P>, weight: u64) -> bool {
    let evictor = locked.state_ref().keep.evictor();
    let is_full = evictor.capacity() - evictor.weight() <= weight;
    locked.slots() < SMALL || !is_full && locked.len() * 2 >= locked.slots()
}

/// Makes a segment's table twice as large, if that can be done. If its keys cannot be spread over that, it is tried again after
/// as many insertions that ask for it as there are slots: so each pays for one entry that is hashed in vain. If there is no
/// memory, that is known at once, and it is tried again the next time.
#[inline(never)]
fn double<'c, P: Payload<Keep: Kept>>(
    directory: &'c Directory<P>,
    spot: &mut Spot<'c, P>,
    rehash: &dyn Fn(P::Item) -> Digest,
) -> bool {
    let Spot { writing, digest, place, .. } = spot;
    let patience = writing.locked.state().keep.patience();
    if *patience > 0 {
        *patience -= 1;
        return false;
    }
    let was_hashed = Cell::new(false);
    let rehash = |item: P::Item| {
        was_hashed.set(true);
        rehash(item)
    };
    let grown = directory.double(writing, *digest, &rehash).is_ok();
    if grown {
        *place = Place::new(*digest, writing.locked.segment().buckets().len());
        adopt_strays(&mut writing.locked, rehash);
    }
    if !grown && was_hashed.get() {
        let slots = writing.locked.slots();
        *writing.locked.state().keep.patience() = slots;
    }
    grown
}

/// Has the policy find again the entries that it lost when the table doubled. If the user's `Hash` panics, the policy does not
/// find them before it has to search for an entry.
fn adopt_strays<P: Payload<Keep: Kept>>(locked: &mut Locked<'_, P>, rehash: impl Fn(P::Item) -> Digest) {
    let (residents, state) = locked.parts();
    let mut entries = Entries { residents, victims: NoEviction };
    let evictor = state.keep.evictor_mut();
    for slot in evictor.strays(&mut entries) {
        let digest = rehash(entries.residents.item(slot));
        evictor.adopt(Locator::new(digest), entries.residents.mark(slot));
    }
}

/// The least hit entry of a place whose buckets are full, and from which no path leads.
#[cold]
fn victim_in_the_way<P: Payload>(residents: &Residents<'_, P>, place: Place) -> Found {
    let slots = [place.first, place.second].into_iter().flat_map(|bucket| residents.occupied(bucket));
    let least = slots.min_by_key(|&slot| mark::hits(residents.mark(slot)));
    least.expect("no path, though a bucket is empty")
}
