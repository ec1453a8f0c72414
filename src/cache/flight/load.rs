//! Loading a value: the steps from a miss to a value, for threads and for tasks.

use core::future::{Future, poll_fn};
use core::mem;
use core::ops::ControlFlow;
use core::pin::{Pin, pin};

use super::error::LoadError;
use super::flights::{Flights, Join};
use super::leader::{Flight, Landing};
use super::terms::Terms;
use super::wait::Waited;
use crate::hash::Digest;
use crate::to_key::ToKey;

/// What loading needs of the cache. None is called under a lock of the flights.
pub(crate) trait Table<K, V> {
    fn digest_of(&self, key: &K) -> Digest;

    /// The value of a key, if the cache has it: the leader's second look, and his followers' if he finds it [F2]; and the last
    /// of who has no time left to wait. Not a miss to be counted.
    fn look_up(&self, digest: Digest, key: &K) -> Option<V>;

    /// The same, if it is not due: the second look of a leader who refreshes it [F8].
    fn look_up_fresh(&self, digest: Digest, key: &K) -> Option<V> {
        self.look_up(digest, key)
    }

    /// Notes that a value that is due could not be refreshed: it is not due again for a while [F8].
    fn put_off(&self, _: Digest, _: &K) {}

    /// Puts a loaded value into the cache with its key, lands the flight with it, unlocked, and returns it, or a clone, and
    /// whether it has put it (from where it may have left); [`Flights::invalidate`] says when it must not put it, and under
    /// which lock it asks. Code of the user's that runs after the flight has landed may ask for the key. If the flight
    /// [replaces](Landing::replaces) a value, that goes for which `is_stale` holds, of which this asks without a lock, and no
    /// other.
    fn keep(
        &self,
        digest: Digest,
        key: K,
        value: V,
        landing: Landing<'_, K, V>,
        is_stale: impl FnMut(&V) -> bool,
    ) -> (V, bool);
}

/// A key that is to be loaded.
pub(crate) struct ToLoad<'f, K, V> {
    pub(crate) digest: Digest,
    /// What this caller leads by now. If the key was not missed, its value is due, and this is the flight in which it is loaded
    /// anew [F8].
    pub(crate) refreshing: Option<Flight<'f, K, V>>,
}

impl<K, V> ToLoad<'_, K, V> {
    /// A key, made of the reference. What that runs does not wait for this flight [F6].
    pub(crate) fn own<Q: ?Sized + ToKey<K>>(&self, key: &Q) -> K {
        match &self.refreshing {
            Some(flight) => flight.run(|| key.to_key()),
            None => key.to_key(),
        }
    }
}

/// To who takes whatever is there [F9].
pub(crate) fn nothing_is_stale<V>(_: &V) -> bool {
    false
}

impl<K: Eq + Clone, V: Clone> Flights<K, V> {
    /// The value of a key that the cache did not have, or only one that is due or stale to this caller: from `load`, or from
    /// another caller's, for whom this thread waits.
    pub(crate) fn load<E>(
        &self,
        table: &impl Table<K, V>,
        (ToLoad { digest, refreshing: mut lead }, key): (ToLoad<'_, K, V>, K),
        terms: Terms<E>,
        mut is_stale: impl FnMut(&V) -> bool,
        load: impl FnOnce() -> Result<V, E>,
    ) -> Result<V, LoadError<E>> {
        let (mut is_first, mut until) = (true, None);
        let flight = loop {
            if let Some(flight) = lead {
                break flight;
            }
            let waited = match self.join(digest, &key) {
                Join::Leader(flight) => break flight,
                Join::Recursion => return Err(LoadError::Recursion),
                Join::Follower(wait) => {
                    let until = *until.get_or_insert_with(|| terms.until());
                    match wait.block(until) {
                        Some(waited) => waited,
                        None => {
                            // Somebody else may have put one meanwhile, who did not load it.
                            let there = look_up_if(table, digest, &key, &mut is_stale);
                            // Before there is an answer, as below.
                            drop((key, load));
                            return there.ok_or(LoadError::TimedOut);
                        }
                    }
                }
            };
            if mem::take(&mut is_first) && is_of_a_stale_value(&waited, &mut is_stale) {
                continue;
            }
            match follow(waited, &terms, || look_up_if(table, digest, &key, &mut is_stale)) {
                ControlFlow::Break(answer) => {
                    // Before there is an answer: one that is returned leaks if a drop panics.
                    drop((key, load));
                    return answer;
                }
                ControlFlow::Continue(left_to_us) => lead = left_to_us,
            }
        };
        load_led(table, key, flight, &terms, is_stale, load)
    }

    /// The same for tasks, of any runtime. Dropping the future is always well: if it was loading, another one that waits
    /// does it instead. One that loads and is neither polled nor dropped holds up who waits for its key; once the key is
    /// removed, those who come from then on load, and those who waited before wait on.
    // A reference to what is to be loaded: a future has room for each argument, for as long as there is the future.
    pub(crate) async fn load_async<'f, E>(
        &'f self,
        table: &impl Table<K, V>,
        (to_load, key): (&mut ToLoad<'f, K, V>, &K),
        terms: Terms<E>,
        mut is_stale: impl FnMut(&V) -> bool,
        load: impl Future<Output = Result<V, E>>,
    ) -> Result<V, LoadError<E>> {
        // Before the flight, so that it is dropped after it: what the loader's `Drop` does finds nobody loading.
        let load = pin!(load);
        let (digest, mut is_first) = (to_load.digest, true);
        let flight = loop {
            if let Some(flight) = to_load.refreshing.take() {
                break flight;
            }
            let waited = match self.join(digest, key) {
                Join::Leader(flight) => break flight,
                Join::Recursion => return Err(LoadError::Recursion),
                Join::Follower(wait) => wait.await,
            };
            if mem::take(&mut is_first) && is_of_a_stale_value(&waited, &mut is_stale) {
                continue;
            }
            match follow(waited, &terms, || look_up_if(table, digest, key, &mut is_stale)) {
                ControlFlow::Break(answer) => return answer,
                ControlFlow::Continue(left_to_us) => to_load.refreshing = left_to_us,
            }
        };
        load_led_async(table, key, flight, &terms, is_stale, load).await
    }
}

pub(super) type Answer<V, E> = Result<V, LoadError<E>>;

/// The value of a key whose flight this thread leads: from `load`, if the cache does not have it by now.
// In line: a load would hand all of this on once more.
#[inline(always)]
fn load_led<K: Eq + Clone, V: Clone, E>(
    table: &impl Table<K, V>,
    key: K,
    flight: Flight<'_, K, V>,
    terms: &Terms<E>,
    mut is_stale: impl FnMut(&V) -> bool,
    load: impl FnOnce() -> Result<V, E>,
) -> Answer<V, E> {
    let (digest, refreshes) = (flight.digest(), flight.refreshes());
    let mut landing = Landing::new(flight);
    if let Some(value) = look_again(table, digest, &key, refreshes) {
        if !is_stale(&value) {
            landing.call_off();
            // Before there is an answer: one that is returned leaks if a drop panics.
            drop((key, load));
            return Ok(value);
        }
        landing.replace();
    }
    match load() {
        Ok(value) => Ok(table.keep(digest, key, value, landing, is_stale).0),
        Err(error) => {
            put_off(table, digest, &key, &landing);
            let refreshes = landing.refreshes();
            let error = fail(landing, terms, error);
            let answer =
                old_or(error, || refreshes.then(|| look_up_if(table, digest, &key, is_stale)).flatten());
            // As above.
            drop(key);
            answer
        }
    }
}

/// The same for tasks. The loader is the caller's, so that it is dropped after the flight.
async fn load_led_async<K: Eq + Clone, V: Clone, E>(
    table: &impl Table<K, V>,
    key: &K,
    mut flight: Flight<'_, K, V>,
    terms: &Terms<E>,
    mut is_stale: impl FnMut(&V) -> bool,
    mut load: Pin<&mut impl Future<Output = Result<V, E>>>,
) -> Answer<V, E> {
    let (digest, refreshes) = (flight.digest(), flight.refreshes());
    let found = {
        let _running = flight.running();
        look_again(table, digest, key, refreshes).map(|value| (!is_stale(&value)).then_some(value))
    };
    match found {
        Some(Some(value)) => {
            flight.call_off();
            return Ok(value);
        }
        Some(None) => flight.replace(),
        None => {}
    }
    let loaded = poll_fn(|context| {
        let _running = flight.running();
        load.as_mut().poll(context)
    });
    match loaded.await {
        Ok(value) => {
            // Before `Clone`, which is the user's [F6].
            let landing = Landing::new(flight);
            // A clone: a future that hands its key on by value has room for it twice.
            let own_key = key.clone();
            Ok(table.keep(digest, own_key, value, landing, is_stale).0)
        }
        Err(error) => {
            let landing = Landing::new(flight);
            put_off(table, digest, key, &landing);
            let refreshes = landing.refreshes();
            let error = fail(landing, terms, error);
            old_or(error, || refreshes.then(|| look_up_if(table, digest, key, is_stale)).flatten())
        }
    }
}

/// Notes that the value could not be refreshed, if it was to be [F8]. Not if the key was written to meanwhile: then it is
/// another, or another refreshes it.
pub(crate) fn put_off<K, V>(table: &impl Table<K, V>, digest: Digest, key: &K, landing: &Landing<'_, K, V>) {
    if landing.refreshes() && !landing.is_stale() {
        table.put_off(digest, key);
    }
}

/// The leader's second look [F2], [F8].
pub(super) fn look_again<K, V>(
    table: &impl Table<K, V>,
    digest: Digest,
    key: &K,
    refreshes: bool,
) -> Option<V> {
    if refreshes { table.look_up_fresh(digest, key) } else { table.look_up(digest, key) }
}

/// The value of a key, if it is there and not stale to this caller.
fn look_up_if<K, V>(
    table: &impl Table<K, V>,
    digest: Digest,
    key: &K,
    mut is_stale: impl FnMut(&V) -> bool,
) -> Option<V> {
    table.look_up(digest, key).filter(|value| !is_stale(value))
}

/// Whether a wait has ended with a value that is stale to this caller. That does not do if it is his first wait: the load may
/// have begun before he came. The next one begins later [F9].
fn is_of_a_stale_value<K, V>(waited: &Waited<'_, K, V>, is_stale: &mut impl FnMut(&V) -> bool) -> bool {
    matches!(waited, Waited::Value(value) if is_stale(value))
}

/// What a failed load comes to: the old value, if there was one to refresh and it is still there [F8].
fn old_or<V, E>(error: LoadError<E>, old: impl FnOnce() -> Option<V>) -> Answer<V, E> {
    match old() {
        Some(old) => {
            // Before there is an answer, as above.
            drop(error);
            Ok(old)
        }
        None => Err(error),
    }
}

/// What a wait has come to: an answer, or the lead; or neither, and its caller joins anew.
pub(super) fn follow<'a, K, V, E>(
    waited: Waited<'a, K, V>,
    terms: &Terms<E>,
    look_up: impl FnOnce() -> Option<V>,
) -> ControlFlow<Answer<V, E>, Option<Flight<'a, K, V>>> {
    let failure = match waited {
        Waited::Lead(flight) => return ControlFlow::Continue(Some(flight)),
        Waited::Value(value) => return ControlFlow::Break(Ok(value)),
        Waited::Failed(failure) => Some(failure),
        Waited::Over => None,
    };
    // Also instead of an error: of one who could not refresh a value, say, which is still there.
    if let Some(value) = look_up() {
        // Before there is an answer: one that is returned leaks if a drop panics.
        drop(failure);
        return ControlFlow::Break(Ok(value));
    }
    // An error for which it has no use is as none [F4].
    match failure.and_then(terms.hear) {
        Some(error) => ControlFlow::Break(Err(LoadError::Loader(error))),
        None => ControlFlow::Continue(None),
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
