//! Loading a value: the steps from a miss to a value, for threads and for tasks.

use core::future::{Future, poll_fn};
use core::pin::pin;

use super::error::LoadError;
use super::flights::{Flights, Join};
use super::leader::Landing;
use super::terms::Terms;
use super::wait::Waited;
use crate::hash::Digest;

/// What loading needs of the cache. Neither is called under a lock of the flights.
pub(crate) trait Table<K, V> {
    /// The value of a key, if the cache has it: the leader's second look, and his followers' if he finds it [F2]. Not a miss to
    /// be counted.
    fn look_up(&self, digest: Digest, key: &K) -> Option<V>;

    /// Puts a loaded value into the cache, lands the flight with it, unlocked, and returns it, or a clone;
    /// [`Flights::invalidate`] says when it must not put it, and under which lock it asks. Code of the user's that runs after
    /// the flight has landed may ask for the key.
    fn keep(&self, digest: Digest, key: &K, value: V, landing: Landing<'_, K, V>) -> V;
}

impl<K: Eq + Clone, V: Clone> Flights<K, V> {
    /// The value of a key that the cache did not have: from `load`, or from another caller's, for whom this thread waits.
    pub(crate) fn load<E>(
        &self,
        table: &impl Table<K, V>,
        digest: Digest,
        key: &K,
        terms: Terms<E>,
        load: impl FnOnce() -> Result<V, E>,
    ) -> Result<V, LoadError<E>> {
        let flight = loop {
            match self.join(digest, key) {
                Join::Leader(flight) => break flight,
                Join::Recursion => return Err(LoadError::Recursion),
                Join::Follower(wait) => match wait.block(terms.until).ok_or(LoadError::TimedOut)? {
                    Waited::Value(value) => return Ok(value),
                    Waited::Lead(flight) => break flight,
                    Waited::Failed(failure) => {
                        if let Some(error) = (terms.hear)(failure) {
                            return Err(LoadError::Loader(error));
                        }
                    }
                    Waited::Over => {}
                },
            }
            if let Some(value) = table.look_up(digest, key) {
                return Ok(value);
            }
        };
        let landing = Landing::new(flight);
        match table.look_up(digest, key) {
            Some(value) => {
                landing.call_off();
                Ok(value)
            }
            None => match load() {
                Ok(value) => Ok(table.keep(digest, key, value, landing)),
                Err(error) => Err(fail(landing, &terms, error)),
            },
        }
    }

    /// The same for tasks, of any runtime. Dropping the future is always well: if it was loading, another one that waits
    /// does it instead. One that loads and is neither polled nor dropped holds up who waits for its key, until the key
    /// is removed: then the next to come loads.
    pub(crate) async fn load_async<E>(
        &self,
        table: &impl Table<K, V>,
        digest: Digest,
        key: &K,
        terms: Terms<E>,
        load: impl Future<Output = Result<V, E>>,
    ) -> Result<V, LoadError<E>> {
        // Before the flight, so that it is dropped after it: what the loader's `Drop` does finds nobody loading.
        let mut load = pin!(load);
        let flight = loop {
            match self.join(digest, key) {
                Join::Leader(flight) => break flight,
                Join::Recursion => return Err(LoadError::Recursion),
                Join::Follower(wait) => match wait.await {
                    Waited::Value(value) => return Ok(value),
                    Waited::Lead(flight) => break flight,
                    Waited::Failed(failure) => {
                        if let Some(error) = (terms.hear)(failure) {
                            return Err(LoadError::Loader(error));
                        }
                    }
                    Waited::Over => {}
                },
            }
            if let Some(value) = table.look_up(digest, key) {
                return Ok(value);
            }
        };
        let found = {
            let _running = flight.running();
            table.look_up(digest, key)
        };
        if let Some(value) = found {
            flight.call_off();
            return Ok(value);
        }
        let loaded = poll_fn(|context| {
            let _running = flight.running();
            load.as_mut().poll(context)
        });
        match loaded.await {
            Ok(value) => Ok(table.keep(digest, key, value, Landing::new(flight))),
            Err(error) => Err(fail(Landing::new(flight), &terms, error)),
        }
    }
}

/// Ends a flight whose loader failed: its followers get the error if it is shared; else one of them leads next [F4].
fn fail<K, V, E>(landing: Landing<'_, K, V>, terms: &Terms<E>, error: E) -> LoadError<E> {
    match (terms.tell)(&error) {
        Some(failure) => landing.fail(failure),
        None => drop(landing),
    }
    LoadError::Loader(error)
}
