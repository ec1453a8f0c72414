//! The state of a flight, guarded by its shard's lock.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::task::Waker;

use super::erased::Erased;
use super::terms::Failure;
use crate::hash::Digest;

/// The outcome that followers get: the value, or an error that the leader shares.
pub(super) type Outcome = OnceLock<Result<Erased, Failure>>;

/// One flight. Of the flights of one key, at most one is not stale [F1].
pub(super) struct Entry {
    pub(super) digest: Digest,
    pub(super) key: Erased,
    pub(super) number: u64,
    /// Whether the flight has a leader; otherwise the leader has failed and its followers are about to take over [F4].
    pub(super) led: bool,
    /// Whether the key was written to since the load began: nobody joins any more [F5].
    pub(super) stale: bool,
    /// Whether its value has been put into the cache, or is about to expire: a caller that joins looks the key up when the
    /// flight has ended [F3].
    pub(super) closed: bool,
    /// Present from the first follower on.
    followers: Option<Box<Followers>>,
}

/// The followers of a flight; most flights have none.
struct Followers {
    /// How many `Wait`s there are.
    count: usize,
    next_ticket: u64,
    /// The sleeping followers, by the numbers of their waits: in the order in which they joined.
    sleepers: BTreeMap<u64, Waker>,
    /// Where the outcome is put for them; not for followers that joined when the flight was closed.
    outcome: Option<Arc<Outcome>>,
}

impl Entry {
    /// A flight with a leader.
    pub(super) fn new(digest: Digest, key: Erased, number: u64) -> Self {
        Entry { digest, key, number, led: true, stale: false, closed: false, followers: None }
    }

    /// Marks the flight as stale if its key is being loaded. If it has no leader, its load has yet to begin, after what is
    /// written now.
    pub(super) fn mark_stale(&mut self) {
        self.stale |= self.led;
    }

    /// How many `Wait`s there are.
    pub(super) fn followers(&self) -> usize {
        self.followers.as_ref().map_or(0, |followers| followers.count)
    }

    /// Where the outcome is put for the followers, if there ever were any.
    pub(super) fn outcome(&self) -> Option<Arc<Outcome>> {
        self.followers.as_ref()?.outcome.clone()
    }

    /// Adds a follower. Returns the number of its wait, and where the outcome is put for it.
    pub(super) fn follow(&mut self) -> (u64, Arc<Outcome>) {
        let followers = self.followers.get_or_insert_with(|| {
            Box::new(Followers { count: 0, next_ticket: 0, sleepers: BTreeMap::new(), outcome: None })
        });
        let ticket = followers.next_ticket;
        followers.next_ticket += 1;
        followers.count += 1;
        // An outcome that nobody sets.
        let outcome =
            if self.closed { Arc::default() } else { Arc::clone(followers.outcome.get_or_insert_default()) };
        (ticket, outcome)
    }

    /// Makes the follower with this ticket the leader. Returns its waker, to be dropped when the lock is not held any more.
    pub(super) fn take_over(&mut self, ticket: u64) -> Option<Waker> {
        self.led = true;
        self.leave(ticket)
    }

    /// Removes the follower with this ticket. Returns its waker, as above.
    pub(super) fn leave(&mut self, ticket: u64) -> Option<Waker> {
        let followers = self.followers.as_mut()?;
        followers.count -= 1;
        followers.sleepers.remove(&ticket)
    }

    /// Notes that the follower with this ticket sleeps until this waker is woken. Returns the waker it had before, as above.
    pub(super) fn sleep(&mut self, ticket: u64, waker: &Waker) -> Option<Waker> {
        let sleepers = &mut self.followers.as_mut()?.sleepers;
        if sleepers.get(&ticket).is_some_and(|old| old.will_wake(waker)) {
            return None;
        }
        sleepers.insert(ticket, waker.clone())
    }

    /// Takes the waker of the sleeping follower that joined first: it is to be woken.
    pub(super) fn first_sleeper(&mut self) -> Option<Waker> {
        self.followers.as_mut()?.sleepers.pop_first().map(|(_, waker)| waker)
    }

    /// Takes the wakers of all sleeping followers, in the order in which they joined.
    pub(super) fn take_sleepers(&mut self) -> impl Iterator<Item = Waker> + use<> {
        let sleepers = self.followers.as_mut().map(|followers| core::mem::take(&mut followers.sleepers));
        sleepers.unwrap_or_default().into_values()
    }

    /// Whether any follower sleeps.
    pub(super) fn has_sleepers(&self) -> bool {
        self.followers.as_ref().is_some_and(|followers| !followers.sleepers.is_empty())
    }
}
