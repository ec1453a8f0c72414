//! Reserving a key: the steps from a miss to the lead of its flight, with which the caller then loads it himself [F10].

use core::convert::Infallible;
use core::ops::ControlFlow;

use super::error::LoadError;
use super::flights::{Flights, Join};
use super::leader::{Flight, Landing};
use super::load::{Table, follow};
use super::running::Running;
use super::shard::FlightId;
use super::terms::Terms;
use super::wait::{Wait, Waited};
use super::waits;
use crate::hash::Digest;

/// While it lives, this thread has a flight: as if its loader ran there [F6].
pub(crate) struct Held {
    _running: Running,
    id: FlightId,
}

impl Held {
    pub(crate) fn new<K, V>(flight: &Flight<'_, K, V>) -> Self {
        Held { _running: flight.running(), id: flight.id() }
    }
}

/// From now on it may be anybody's.
impl Drop for Held {
    fn drop(&mut self) {
        waits::forget(self.id);
    }
}

/// The value of a key, or the lead of its flight.
type Reserved<'f, K, V> = Result<V, Flight<'f, K, V>>;

/// What comes next for who asks for a key.
enum Next<'f, K, V> {
    /// Another leads.
    Wait(Wait<'f, K, V>),
    Done(Result<Reserved<'f, K, V>, LoadError<Infallible>>),
}

impl<K: Eq + Clone, V: Clone> Flights<K, V> {
    /// The value of a key that the cache did not have, if another caller loads it, for whom this thread waits, or has loaded
    /// it; else the lead of its flight.
    pub(crate) fn reserve(
        &self,
        table: &impl Table<K, V>,
        digest: Digest,
        key: &K,
        terms: Terms<Infallible>,
    ) -> Result<Reserved<'_, K, V>, LoadError<Infallible>> {
        let (mut waited, mut until) = (None, None);
        loop {
            let wait = match self.next(table, digest, key, waited) {
                Next::Wait(wait) => wait,
                Next::Done(reserved) => return reserved,
            };
            waited = wait.block(*until.get_or_insert_with(|| terms.until()));
            if waited.is_none() {
                // Somebody else may have put one meanwhile, who did not load it.
                return table.look_up(digest, key).map(Ok).ok_or(LoadError::TimedOut);
            }
        }
    }

    /// The same for tasks, as [`Flights::load_async`].
    pub(crate) async fn reserve_async(
        &self,
        table: &impl Table<K, V>,
        digest: Digest,
        key: &K,
    ) -> Result<Reserved<'_, K, V>, LoadError<Infallible>> {
        let mut waited = None;
        loop {
            match self.next(table, digest, key, waited) {
                Next::Wait(wait) => waited = Some(wait.await),
                Next::Done(reserved) => return reserved,
            }
        }
    }

    /// Goes on from what a wait has come to, if there was one, as far as can be gone without another.
    fn next<'f>(
        &'f self,
        table: &impl Table<K, V>,
        digest: Digest,
        key: &K,
        waited: Option<Waited<'f, K, V>>,
    ) -> Next<'f, K, V> {
        let left_to_us = match waited {
            None => None,
            Some(waited) => {
                match follow(waited, &Terms::<Infallible>::alone(), || table.look_up(digest, key)) {
                    ControlFlow::Break(answer) => return Next::Done(answer.map(Ok)),
                    ControlFlow::Continue(left_to_us) => left_to_us,
                }
            }
        };
        let flight = match left_to_us {
            Some(flight) => flight,
            None => match self.join(digest, key) {
                Join::Leader(flight) => flight,
                Join::Follower(wait) => return Next::Wait(wait),
                Join::Recursion => return Next::Done(Err(LoadError::Recursion)),
            },
        };
        let landing = Landing::new(flight);
        Next::Done(Ok(match table.look_up(digest, key) {
            Some(value) => {
                landing.call_off();
                Ok(value)
            }
            None => Err(landing.pause()),
        }))
    }
}
