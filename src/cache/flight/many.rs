//! Loading many values: a caller loads all those that it leads by one call.
//!
//! The caller joins the flights of all keys first, then loads those that it leads, and only then waits for those that others
//! load: a caller that waits leads nothing, so that of two callers that ask for the same keys in different orders neither waits
//! for the other [F7].

use core::future::{Future, poll_fn};
use core::ops::ControlFlow;
use core::pin::{Pin, pin};
use std::time::Instant;
use std::vec;

use hashbrown::HashTable;

use super::error::LoadError;
use super::flights::{Flights, Join};
use super::leader::{Flight, Landing};
use super::load::{self, Table, follow};
use super::running;
use super::terms::Terms;
use super::wait::{Wait, Waited};
use crate::hash::Digest;

/// A key that was missed.
pub(crate) struct Missed<'k, K, V> {
    pub(crate) digest: Digest,
    pub(crate) key: &'k K,
    /// The value it got; at first its old value, if it was not missed, but due [F8].
    pub(crate) value: Option<V>,
}

/// A key that this caller is to load.
type Led<'f, 'm, 'k, K, V> = (Flight<'f, K, V>, &'m mut Missed<'k, K, V>);

/// A key that another caller loads.
type Followed<'f, 'm, 'k, K, V> = (Wait<'f, K, V>, &'m mut Missed<'k, K, V>);

/// A key that is being loaded, or put into the cache, on this thread.
type Landed<'f, 'm, 'k, K, V> = (Landing<'f, K, V>, &'m mut Missed<'k, K, V>);

impl<K: Eq + Clone, V: Clone> Flights<K, V> {
    /// The values of keys that the cache did not have, each of which occurs once: from `load`, or from the loaders of other
    /// callers, for which this thread waits. No value for keys for which a loader has none.
    pub(crate) fn load_many<E, P: IntoIterator<Item = (K, V)>>(
        &self,
        table: &impl Table<K, V>,
        missed: &mut [Missed<'_, K, V>],
        terms: &Terms<E>,
        mut load: impl FnMut(Vec<K>) -> Result<P, E>,
    ) -> Result<(), LoadError<E>> {
        let until = terms.until();
        let mut pending: Vec<_> = missed.iter_mut().collect();
        while !pending.is_empty() {
            let (led, followed) = self.join_all(pending).ok_or(LoadError::Recursion)?;
            let mut followed = followed.into_iter();
            let ended = load_led(table, led, terms, &mut load)
                .and_then(|()| load_followed(table, &mut followed, (terms, until), &mut load));
            pending = ended.inspect_err(|_| take_what_has_come(table, followed, terms))?;
        }
        Ok(())
    }

    /// The same for tasks, as [`Flights::load_async`]. What `load` returns next to a future is passed to `end` with the
    /// future's output: a future around both would reserve room for it twice.
    pub(crate) async fn load_many_async<E, P: IntoIterator<Item = (K, V)>, F: Future, B>(
        &self,
        table: &impl Table<K, V>,
        missed: &mut [Missed<'_, K, V>],
        terms: &Terms<E>,
        mut load: impl FnMut(Vec<K>) -> (F, B),
        mut end: impl FnMut(B, F::Output) -> Result<P, E>,
    ) -> Result<(), LoadError<E>> {
        // Declared before the flights, so that it is dropped after them: whatever the loader's `Drop` does finds nobody
        // loading.
        let mut loader = pin!(None);
        let mut pending: Vec<_> = missed.iter_mut().collect();
        while !pending.is_empty() {
            let (led, followed) = self.join_all(pending).ok_or(LoadError::Recursion)?;
            let mut followed = followed.into_iter();
            // In place: a future of its own for the work of `load_followed` would make this one larger.
            let round = async {
                load_led_async(table, led, terms, (&mut load, &mut end), loader.as_mut()).await?;
                let mut again = Vec::new();
                while let Some((wait, missed)) = followed.next() {
                    match take(table, wait.await, missed, terms)? {
                        None => {}
                        Some((Some(flight), missed)) => {
                            let led = lead_more((flight, missed), &mut followed);
                            load_led_async(table, led, terms, (&mut load, &mut end), loader.as_mut()).await?;
                        }
                        Some((None, missed)) => again.push(missed),
                    }
                }
                Ok(again)
            };
            let ended = round.await;
            pending = ended.inspect_err(|_| take_what_has_come(table, followed, terms))?;
        }
        Ok(())
    }

    /// Joins the flights of all keys; `None` if one of them waits for this caller.
    #[expect(clippy::type_complexity, reason = "two lists of pairs")]
    fn join_all<'f, 'm, 'k>(
        &'f self,
        missed: Vec<&'m mut Missed<'k, K, V>>,
    ) -> Option<(Vec<Led<'f, 'm, 'k, K, V>>, Vec<Followed<'f, 'm, 'k, K, V>>)> {
        // Flights that are led from here on do not wait for those that are followed.
        let stack = running::stack();
        let (mut led, mut followed) = (Vec::with_capacity(missed.len()), Vec::new());
        // `Clone`, which is the user's, must not wait for flights that are led already.
        let mut running = Vec::new();
        for missed in missed {
            if missed.value.is_some() {
                // Nobody waits for others that refresh it.
                if let Some(flight) = self.refresh(missed.digest, missed.key) {
                    running.push(flight.running());
                    led.push((flight, missed));
                }
                continue;
            }
            match self.join_from(&stack, missed.digest, missed.key) {
                Join::Leader(flight) => {
                    running.push(flight.running());
                    led.push((flight, missed));
                }
                Join::Follower(wait) => followed.push((wait, missed)),
                Join::Recursion => return None,
            }
        }
        Some((led, followed))
    }
}

/// What is left to do with a key when the wait for it is over: nothing; or to go on with the lead, or with neither value nor
/// lead.
type ToDo<'f, 'm, 'k, K, V> = Option<(Option<Flight<'f, K, V>>, &'m mut Missed<'k, K, V>)>;

/// Takes the result of a wait, if that is a value.
fn take<'f, 'm, 'k, K, V, E>(
    table: &impl Table<K, V>,
    waited: Waited<'f, K, V>,
    missed: &'m mut Missed<'k, K, V>,
    terms: &Terms<E>,
) -> Result<ToDo<'f, 'm, 'k, K, V>, LoadError<E>> {
    let look_up = || table.look_up(missed.digest, missed.key);
    match follow(waited, terms, look_up) {
        ControlFlow::Break(answer) => {
            missed.value = Some(answer?);
            Ok(None)
        }
        ControlFlow::Continue(flight) => Ok(Some((flight, missed))),
    }
}

/// Takes the values that have come of those waits that are given up.
fn take_what_has_come<K, V: Clone, E>(
    table: &impl Table<K, V>,
    followed: vec::IntoIter<Followed<'_, '_, '_, K, V>>,
    terms: &Terms<E>,
) {
    for (wait, missed) in followed {
        if let Some(waited) = wait.ended() {
            // A caller that has an error of its own has no use for leads that were left to it, or for others' errors.
            let _ = take(table, waited, missed, terms);
        }
    }
}

/// The flights that this caller now leads: `first`, which was left to it, and all of those it follows that nobody leads. It
/// waits for none of them, so that it may lead several.
fn lead_more<'f, 'm, 'k, K, V>(
    first: Led<'f, 'm, 'k, K, V>,
    followed: &mut vec::IntoIter<Followed<'f, 'm, 'k, K, V>>,
) -> Vec<Led<'f, 'm, 'k, K, V>> {
    let (mut led, mut others) = (vec![first], Vec::with_capacity(followed.len()));
    for (wait, missed) in followed.by_ref() {
        match wait.try_lead() {
            Ok(flight) => led.push((flight, missed)),
            Err(wait) => others.push((wait, missed)),
        }
    }
    *followed = others.into_iter();
    led
}

/// Loads the keys that this caller leads.
fn load_led<K: Eq + Clone, V: Clone, E, P: IntoIterator<Item = (K, V)>>(
    table: &impl Table<K, V>,
    led: Vec<Led<'_, '_, '_, K, V>>,
    terms: &Terms<E>,
    load: impl FnOnce(Vec<K>) -> Result<P, E>,
) -> Result<(), LoadError<E>> {
    let led = look_again(table, land(led));
    if led.is_empty() {
        return Ok(());
    }
    finish(table, load(keys(&led)), led, terms)
}

/// The same for tasks.
async fn load_led_async<K: Eq + Clone, V: Clone, E, P: IntoIterator<Item = (K, V)>, F: Future, B>(
    table: &impl Table<K, V>,
    led: Vec<Led<'_, '_, '_, K, V>>,
    terms: &Terms<E>,
    (load, end): (impl FnOnce(Vec<K>) -> (F, B), impl FnOnce(B, F::Output) -> Result<P, E>),
    mut loader: Pin<&mut Option<F>>,
) -> Result<(), LoadError<E>> {
    let (led, begun) = {
        let led = look_again(table, land(led));
        if led.is_empty() {
            return Ok(());
        }
        let (loading, begun) = load(keys(&led));
        loader.set(Some(loading));
        let led: Vec<_> = led.into_iter().map(|(landing, missed)| (landing.pause(), missed)).collect();
        (led, begun)
    };
    let loaded = poll_fn(|context| {
        let _running: Vec<_> = led.iter().map(|(flight, _)| flight.running()).collect();
        loader.as_mut().as_pin_mut().expect("set above").poll(context)
    });
    let loaded = loaded.await;
    let led = land(led);
    let answer = finish(table, end(begun, loaded), led, terms);
    // Dropped before others are waited for, and after the flights, as at the end.
    loader.set(None);
    answer
}

/// Waits for the keys that others load, and loads those whose lead is left to this caller. Returns the keys for which the wait
/// brought neither, to be joined once more.
fn load_followed<'m, 'k, K: Eq + Clone, V: Clone, E, P: IntoIterator<Item = (K, V)>>(
    table: &impl Table<K, V>,
    followed: &mut vec::IntoIter<Followed<'_, 'm, 'k, K, V>>,
    (terms, until): (&Terms<E>, Option<Instant>),
    mut load: impl FnMut(Vec<K>) -> Result<P, E>,
) -> Result<Vec<&'m mut Missed<'k, K, V>>, LoadError<E>> {
    let mut again = Vec::new();
    while let Some((wait, missed)) = followed.next() {
        let Some(waited) = wait.block(until) else {
            // Another thread may have put a value meanwhile without loading it.
            let there = table.look_up(missed.digest, missed.key);
            missed.value = Some(there.ok_or(LoadError::TimedOut)?);
            continue;
        };
        match take(table, waited, missed, terms)? {
            None => {}
            Some((Some(flight), missed)) => {
                load_led(table, lead_more((flight, missed), followed), terms, &mut load)?;
            }
            Some((None, missed)) => again.push(missed),
        }
    }
    Ok(again)
}

/// Keeps what was loaded, or leaves it to others.
fn finish<K: Eq, V, E, P: IntoIterator<Item = (K, V)>>(
    table: &impl Table<K, V>,
    loaded: Result<P, E>,
    mut led: Vec<Landed<'_, '_, '_, K, V>>,
    terms: &Terms<E>,
) -> Result<(), LoadError<E>> {
    match loaded {
        Ok(pairs) => {
            keep(table, led, pairs);
            Ok(())
        }
        Err(error) => {
            let mut all_have_old = true;
            for led in &mut led {
                all_have_old &= keep_old(table, led);
            }
            // Before there is an answer: an error that is returned leaks if a waker panics.
            match (terms.tell)(&error) {
                Some(failure) => led.into_iter().for_each(|(landing, _)| landing.fail(failure.clone())),
                None => leave(led),
            }
            if all_have_old { Ok(()) } else { Err(LoadError::Loader(error)) }
        }
    }
}

/// For a key that could not be refreshed, keeps the old value if it is still there [F8]. Returns whether the key has a value.
fn keep_old<K, V>(table: &impl Table<K, V>, (landing, missed): &mut Landed<'_, '_, '_, K, V>) -> bool {
    if missed.value.is_some() {
        load::put_off(table, missed.digest, missed.key, landing);
        missed.value = table.look_up(missed.digest, missed.key);
    }
    missed.value.is_some()
}

/// Notes that these are loaded on this thread from now on.
fn land<'f, 'm, 'k, K, V>(led: Vec<Led<'f, 'm, 'k, K, V>>) -> Vec<Landed<'f, 'm, 'k, K, V>> {
    // The first one last, because it is mostly the first to come back, and the load that has begun last is found soonest.
    let mut landed: Vec<_> =
        led.into_iter().rev().map(|(flight, missed)| (Landing::new(flight), missed)).collect();
    landed.reverse();
    landed
}

/// The keys that are still not there [F2].
fn look_again<'f, 'm, 'k, K, V>(
    table: &impl Table<K, V>,
    led: Vec<Landed<'f, 'm, 'k, K, V>>,
) -> Vec<Landed<'f, 'm, 'k, K, V>> {
    let mut lacking = Vec::with_capacity(led.len());
    for (landing, missed) in led {
        match load::look_again(table, missed.digest, missed.key, missed.value.is_some()) {
            Some(value) => {
                missed.value = Some(value);
                landing.call_off();
            }
            None => lacking.push((landing, missed)),
        }
    }
    lacking
}

/// The keys of these flights.
fn keys<K: Clone, V>(led: &[Landed<'_, '_, '_, K, V>]) -> Vec<K> {
    led.iter().map(|(_, missed)| missed.key.clone()).collect()
}

/// Lands those of `led` that were loaded. The others have failed.
fn keep<K: Eq, V>(
    table: &impl Table<K, V>,
    led: Vec<Landed<'_, '_, '_, K, V>>,
    pairs: impl IntoIterator<Item = (K, V)>,
) {
    let mut awaited = Awaited { led: led.into_iter().map(Some).collect(), next: 0, by_key: HashTable::new() };
    for (key, value) in pairs {
        // Otherwise it was not asked for, or has come before.
        if let Some((landing, missed)) = awaited.take(table, &key) {
            missed.value = Some(table.keep(missed.digest, key, value, landing, load::nothing_is_stale).0);
        }
    }
    for led in awaited.led.iter_mut().flatten() {
        keep_old(table, led);
    }
    leave(awaited.led);
}

/// Leaves them to others, the first one last: a caller that follows all of them in this order sleeps for the first, and finds
/// that the others were left.
fn leave<T>(mut led: Vec<T>) {
    while led.pop().is_some() {}
}

/// The keys that are led, until their values have come.
struct Awaited<'f, 'm, 'k, K, V> {
    led: Vec<Option<Landed<'f, 'm, 'k, K, V>>>,
    /// The first that was not passed over. Many loaders keep the order of their keys.
    next: usize,
    /// All of them, once one is not the next in order.
    by_key: HashTable<usize>,
}

impl<'f, 'm, 'k, K: Eq, V> Awaited<'f, 'm, 'k, K, V> {
    /// Takes the flight with this key.
    fn take(&mut self, table: &impl Table<K, V>, key: &K) -> Option<Landed<'f, 'm, 'k, K, V>> {
        let is_it = |led: &Option<Landed<'f, 'm, 'k, K, V>>| {
            led.as_ref().is_some_and(|(_, missed)| missed.key == key)
        };
        if self.led.get(self.next).is_some_and(is_it) {
            self.next += 1;
            return self.led[self.next - 1].take();
        }
        if self.by_key.is_empty() {
            let digest =
                |&place: &usize| self.led[place].as_ref().map_or(0, |(_, missed)| missed.digest.bits());
            for place in self.next..self.led.len() {
                self.by_key.insert_unique(digest(&place), place, digest);
            }
        }
        let digest = table.digest_of(key);
        let &place = self.by_key.find(digest.bits(), |&place| is_it(&self.led[place]))?;
        self.next = place + 1;
        self.led[place].take()
    }
}
