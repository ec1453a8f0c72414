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

/// What loading needs of the cache. No method is called under a lock of the flights.
pub(crate) trait Table<K, V> {
    fn digest_of(&self, key: &K) -> Digest;

    /// The value of a key, if the cache has it: the leader's second look, and its followers' if the leader finds it [F2]; and
    /// the last look of a caller that has no time left to wait. Not to be counted as a miss.
    fn look_up(&self, digest: Digest, key: &K) -> Option<V>;

    /// The same, if the value is not due: the second look of a leader that refreshes it [F8].
    fn look_up_fresh(&self, digest: Digest, key: &K) -> Option<V> {
        self.look_up(digest, key)
    }

    /// Notes that a value that is due could not be refreshed: it is not due again for a while [F8].
    fn put_off(&self, _: Digest, _: &K) {}

    /// Puts a loaded value into the cache with its key, lands the flight with it, unlocked, and returns the value, or a clone,
    /// and whether it has put it (it may have left the cache again). [`Flights::invalidate`] says when it must not put the
    /// value, and under which lock it asks. User code that runs after the flight has landed may ask for the key. If the flight
    /// [replaces](Landing::replaces) a value, only one for which `is_stale` holds is replaced; this calls `is_stale` without a
    /// lock.
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
    /// The flight that this caller already leads. If the key was not missed, its value is due, and this is the flight in which
    /// it is loaded anew [F8].
    pub(crate) refreshing: Option<Flight<'f, K, V>>,
}

impl<K, V> ToLoad<'_, K, V> {
    /// A key, made from the reference. Code that runs for that must not wait for this flight [F6].
    pub(crate) fn own<Q: ?Sized + ToKey<K>>(&self, key: &Q) -> K {
        match &self.refreshing {
            Some(flight) => flight.run(|| key.to_key()),
            None => key.to_key(),
        }
    }
}

/// The `is_stale` of a caller that takes whatever is there [F9].
pub(crate) fn nothing_is_stale<V>(_: &V) -> bool {
    false
}

impl<K: Eq + Clone, V: Clone> Flights<K, V> {
    /// The value of a key for which the cache had none, or only one that is due or stale to this caller: from `load`, or from
    /// the loader of another caller, for which this thread waits.
    // Inlined into the one function of a type of cache that calls it.
    #[inline(always)]
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
                            // Another thread may have put a value meanwhile without loading it.
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

    /// The same for tasks, of any runtime. Dropping the future is always safe: if it was loading, another task that waits does
    /// so instead. A future that loads and is neither polled nor dropped holds up callers that wait for its key; once the key
    /// is removed, callers that come from then on load, and those that waited before keep waiting.
    // A reference to what is to be loaded: a future reserves room for each argument as long as the future exists.
    pub(crate) async fn load_async<'f, E>(
        &'f self,
        table: &impl Table<K, V>,
        (to_load, key): (&mut ToLoad<'f, K, V>, &K),
        terms: Terms<E>,
        mut is_stale: impl FnMut(&V) -> bool,
        load: impl Future<Output = Result<V, E>>,
    ) -> Result<V, LoadError<E>> {
        // Declared before the flight, so that it is dropped after it: whatever the loader's `Drop` does finds nobody loading.
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
// Inlined: a load would otherwise pass all of this on once more.
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

/// The same for tasks. The loader belongs to the caller, so that it is dropped after the flight.
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
            // A clone: a future that passes its key on by value would reserve room for it twice.
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

/// Notes that the value could not be refreshed, if it was to be [F8]. Not if the key was written to meanwhile: then the value
/// is another one, or another caller refreshes it.
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

/// Whether a wait has ended with a value that is stale to this caller. That is not acceptable if it is the caller's first wait:
/// the load may have begun before the caller came. The next one begins later [F9].
fn is_of_a_stale_value<K, V>(waited: &Waited<'_, K, V>, is_stale: &mut impl FnMut(&V) -> bool) -> bool {
    matches!(waited, Waited::Value(value) if is_stale(value))
}

/// The answer after a failed load: the old value, if there was one to refresh and it is still there [F8].
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

/// The result of a wait: an answer, or the lead; or neither, and the caller joins anew.
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
    // Also instead of an error: a leader may have failed to refresh a value which is still there, for example.
    if let Some(value) = look_up() {
        // Before there is an answer: one that is returned leaks if a drop panics.
        drop(failure);
        return ControlFlow::Break(Ok(value));
    }
    // An error for which this caller has no use counts as none [F4].
    match failure.and_then(terms.hear) {
        Some(error) => ControlFlow::Break(Err(LoadError::Loader(error))),
        None => ControlFlow::Continue(None),
    }
}

/// Ends a flight whose loader failed: the followers get the error if it is shared; else one of them leads next [F4].
fn fail<K, V, E>(landing: Landing<'_, K, V>, terms: &Terms<E>, error: E) -> LoadError<E> {
    match (terms.tell)(&error) {
        Some(failure) => landing.fail(failure),
        None => drop(landing),
    }
    LoadError::Loader(error)
}
