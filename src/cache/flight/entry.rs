//! What is to be known of a flight, under its shard's lock.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::task::Waker;

use super::terms::Failure;
use crate::hash::Digest;

/// What followers get: the value, or an error that the leader shares.
pub(super) type Outcome<V> = OnceLock<Result<V, Failure>>;

/// One flight. Of those of one key, at most one is not stale [F1].
pub(super) struct Entry<K, V> {
    pub(super) digest: Digest,
    pub(super) key: K,
    pub(super) number: u64,
    /// Someone leads; otherwise the leader has failed and its followers are about to take over [F4].
    pub(super) led: bool,
    /// The key was written to since the load began: nobody joins any more [F5].
    pub(super) stale: bool,
    /// Its value has been put into the cache, or is about to expire: who joins looks the key up, when the flight has ended
    /// [F3].
    pub(super) closed: bool,
    /// From the first one on.
    followers: Option<Box<Followers<V>>>,
}

/// Who follows a flight, of which most have nobody.
struct Followers<V> {
    /// How many `Wait`s there are.
    count: usize,
    next_ticket: u64,
    /// Those of them who sleep, by the numbers of their waits: in the order in which they joined.
    sleepers: BTreeMap<u64, Waker>,
    /// Where what comes of it comes to lie for them; not for those who came when it was closed.
    outcome: Option<Arc<Outcome<V>>>,
}

impl<K, V> Entry<K, V> {
    /// With a leader.
    pub(super) fn new(digest: Digest, key: K, number: u64) -> Self {
        Entry { digest, key, number, led: true, stale: false, closed: false, followers: None }
    }

    /// Marks it if it is being loaded. The load of one without a leader has yet to begin, after what is written now.
    pub(super) fn mark_stale(&mut self) {
        self.stale |= self.led;
    }

    /// How many `Wait`s there are.
    pub(super) fn followers(&self) -> usize {
        self.followers.as_ref().map_or(0, |followers| followers.count)
    }

    /// Where what comes of it comes to lie for its followers, if there ever were any.
    pub(super) fn outcome(&self) -> Option<Arc<Outcome<V>>> {
        self.followers.as_ref()?.outcome.clone()
    }

    /// One more follower: the number of its wait, and where the outcome comes to lie for it.
    pub(super) fn follow(&mut self) -> (u64, Arc<Outcome<V>>) {
        let followers = self.followers.get_or_insert_with(|| {
            Box::new(Followers { count: 0, next_ticket: 0, sleepers: BTreeMap::new(), outcome: None })
        });
        let ticket = followers.next_ticket;
        followers.next_ticket += 1;
        followers.count += 1;
        // One that nobody sets.
        let outcome =
            if self.closed { Arc::default() } else { Arc::clone(followers.outcome.get_or_insert_default()) };
        (ticket, outcome)
    }

    /// The follower of this ticket leads from now on. Its waker, to be dropped when the lock is not held any more.
    pub(super) fn take_over(&mut self, ticket: u64) -> Option<Waker> {
        self.led = true;
        self.leave(ticket)
    }

    /// The follower of this ticket is none any more. Its waker, as above.
    pub(super) fn leave(&mut self, ticket: u64) -> Option<Waker> {
        let followers = self.followers.as_mut()?;
        followers.count -= 1;
        followers.sleepers.remove(&ticket)
    }

    /// The follower of this ticket sleeps until this waker is woken. Another that it had, as above.
    pub(super) fn sleep(&mut self, ticket: u64, waker: &Waker) -> Option<Waker> {
        let sleepers = &mut self.followers.as_mut()?.sleepers;
        if sleepers.get(&ticket).is_some_and(|old| old.will_wake(waker)) {
            return None;
        }
        sleepers.insert(ticket, waker.clone())
    }

    /// The follower who joined first, of those who sleep: it is to be woken.
    pub(super) fn first_sleeper(&mut self) -> Option<Waker> {
        self.followers.as_mut()?.sleepers.pop_first().map(|(_, waker)| waker)
    }

    /// All who sleep, in the order in which they joined.
    pub(super) fn take_sleepers(&mut self) -> impl Iterator<Item = Waker> + use<K, V> {
        let sleepers = self.followers.as_mut().map(|followers| core::mem::take(&mut followers.sleepers));
        sleepers.unwrap_or_default().into_values()
    }

    /// Whether somebody sleeps.
    pub(super) fn has_sleepers(&self) -> bool {
        self.followers.as_ref().is_some_and(|followers| !followers.sleepers.is_empty())
    }
}
