//! Reserving a key: the steps from a miss to the lead of its flight, with which the caller then loads the key itself [F10].

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

/// From now on the flight may be led by any thread.
impl Drop for Held {
    fn drop(&mut self) {
        waits::forget(self.id);
    }
}

/// The value of a key, or the lead of its flight.
type Reserved<'f, K, V> = Result<V, Flight<'f, K, V>>;

/// The next step for a caller that asks for a key.
enum Next<'f, K, V> {
    /// Another caller leads.
    Wait(Wait<'f, K, V>),
    Done(Result<Reserved<'f, K, V>, LoadError<Infallible>>),
}

impl<K: Eq + Clone, V: Clone> Flights<K, V> {
    /// The value of a key that the cache did not have, if another caller has loaded it, or is loading it: then this thread
    /// waits. Otherwise the lead of the key's flight.
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
                // Another thread may have put a value meanwhile without loading it.
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

    /// Goes on from the result of a wait, if there was one, as far as possible without another wait.
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
