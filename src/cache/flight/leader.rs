//! The leader, which loads a key: through it comes the value, or the failure.

use core::fmt;
use core::marker::PhantomData;
use std::sync::Arc;
use std::task::Waker;

use super::entry::{Entry, Outcome};
use super::erased::Erased;
use super::flights::Of;
use super::running::{self, Running};
use super::shard::{At, FlightId};
use super::terms::Failure;
use crate::hash::Digest;
use crate::reclaim::FirstPanic;

/// Leads a flight: one per flight at a time [F1]. If it is dropped without having landed (after an error, a panic, or with the
/// future that held it), it leaves the lead to a follower [F4].
pub(super) struct Lead<'a> {
    at: At<'a>,
    landed: bool,
    old: Old,
}

/// The value that the leader has found for the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Old {
    Nothing,
    /// A value that is due [F8].
    Due,
    /// A value that is stale to the leader [F9].
    Stale,
}

impl<'a> Lead<'a> {
    pub(super) fn new(at: At<'a>) -> Self {
        Lead { at, landed: false, old: Old::Nothing }
    }

    fn id(&self) -> FlightId {
        self.at.id()
    }

    /// Calls `f`; whatever that runs must not wait for this flight [F6].
    pub(super) fn run<T>(&self, f: impl FnOnce() -> T) -> T {
        let _running = self.running();
        f()
    }

    /// Notes that this thread runs the flight's loader while the result lives.
    fn running(&self) -> Running {
        running::enter(self.id())
    }

    /// Whether the key was written to since the load began, so that the cache must not keep what was loaded [F5].
    ///
    /// Must be called under the lock of the cache's table under which the value is then put: see
    /// [`Flights::invalidate`](super::Flights::invalidate). Takes a shard's lock, which is a leaf.
    fn is_stale(&self) -> bool {
        self.at.with(|entry| entry.is_some_and(|entry| entry.stale))
    }

    /// Whether its value may be put into the cache: as [`Lead::is_stale`], mostly without the shard's lock. Sees every writer
    /// that has marked the flight before or while it held the lock under which this is called.
    #[inline]
    fn may_put(&self) -> bool {
        !self.at.may_be_marked() || !self.is_stale()
    }

    /// Closes the flight: a caller that joins from now on does not get its value, but looks it up when the flight has ended.
    fn close(&self) {
        self.at.with(|entry| entry.into_iter().for_each(|entry| entry.closed = true));
    }

    /// The same, and ends the flight if nobody follows it; returns what is left of it then.
    fn close_or_end(&mut self) -> Option<Entry> {
        let ended = self.at.end_if(|entry| {
            entry.closed = true;
            entry.followers() == 0
        });
        self.landed = ended.is_some();
        ended
    }

    /// Ends the flight; returns what is left of it, with the sleeping followers, to be woken.
    fn end(&mut self) -> Option<Entry> {
        let ended = self.at.end_if(|_| true);
        self.landed = true;
        ended
    }

    /// Ends the flight if nobody follows it; else returns where the followers look for the outcome.
    fn end_alone(&mut self) -> Result<Entry, Option<Arc<Outcome>>> {
        let mut outcome = None;
        let alone = self.at.end_if(|entry| {
            outcome = entry.outcome();
            entry.followers() == 0
        });
        self.landed = alone.is_some();
        alone.ok_or(outcome)
    }

    /// Ends the flight with its outcome, which each follower gets [F3]; returns what is left of it, as [`end`](Self::end).
    fn end_with(&mut self, result: impl FnOnce() -> Result<Erased, Failure>) -> Option<Entry> {
        let outcome = match self.end_alone() {
            Ok(ended) => return Some(ended),
            Err(outcome) => outcome,
        };
        // Not under the lock. If it panics, the next leader finds what the cache has kept, or loads.
        if let Some(outcome) = outcome {
            assert!(outcome.set(result()).is_ok(), "a flight ends once");
        }
        // A follower that no longer finds the flight finds the outcome: the lock orders the one before the other.
        self.end()
    }
}

impl Drop for Lead<'_> {
    #[inline]
    fn drop(&mut self) {
        if !self.landed {
            leave(&self.at);
        }
    }
}

/// Leaves the lead of a flight to a follower.
#[cold]
fn leave(at: &At<'_>) {
    let mut next = None;
    let mut ended = at.end_if(|entry| {
        entry.led = false;
        entry.closed = false;
        // Followers of a stale flight cannot take over: the key may have another flight by now. They join that.
        let ends = entry.stale || entry.followers() == 0;
        if !ends {
            next = entry.first_sleeper();
        }
        ends
    });
    wake(next);
    wake_all(&mut ended);
}

/// Leads a flight of a cache with these keys and values.
pub(crate) struct Flight<'a, K, V> {
    lead: Lead<'a>,
    of: Of<'a, K, V>,
}

impl<'a, K, V> Flight<'a, K, V> {
    /// Says which types a lead is about.
    ///
    /// # Safety
    ///
    /// It is of a `Flights<K, V>`.
    pub(super) unsafe fn new(lead: Lead<'a>) -> Self {
        Flight { lead, of: PhantomData }
    }

    /// Makes this a flight that is led because the key's value is due.
    pub(super) fn refreshing(self) -> Self {
        let mut flight = self;
        flight.lead.old = Old::Due;
        flight
    }

    /// Whether it is led because the key's value was due.
    pub(super) fn refreshes(&self) -> bool {
        self.lead.old == Old::Due
    }

    /// Notes that its leader has found a value again, and that it is stale to the leader [F9].
    pub(super) fn replace(&mut self) {
        self.lead.old = Old::Stale;
    }

    /// The key's digest.
    pub(crate) fn digest(&self) -> Digest {
        self.lead.at.digest
    }

    pub(super) fn id(&self) -> FlightId {
        self.lead.id()
    }

    /// [`Lead::run`].
    pub(crate) fn run<T>(&self, f: impl FnOnce() -> T) -> T {
        self.lead.run(f)
    }

    /// [`Lead::running`].
    pub(super) fn running(&self) -> Running {
        self.lead.running()
    }

    /// Ends the flight without a value, because the key has one, or because none was loaded [L6]. Each follower looks the key
    /// up itself: it may have joined after the key's value had left the cache [F2].
    pub(super) fn call_off(mut self) {
        wake_all(&mut self.lead.end());
    }
}

/// A flight that is led on this thread, from before its loader runs until it has landed or failed: code that runs meanwhile,
/// such as the user's weigher, must not wait for it [F6].
pub(crate) struct Landing<'a, K, V> {
    /// Dropped first: a follower that is woken as the flight ends may ask for the key, even at once and on this thread.
    running: Running,
    flight: Flight<'a, K, V>,
    /// Dropped last.
    ended: Ended,
}

/// What is left of a flight that has ended: its key, to be dropped unlocked, and followers, to be woken.
struct Ended(Option<Entry>);

impl Drop for Ended {
    #[inline]
    fn drop(&mut self) {
        wake_all(&mut self.0);
    }
}

impl<'a, K, V> Landing<'a, K, V> {
    pub(crate) fn new(flight: Flight<'a, K, V>) -> Self {
        Landing { running: flight.running(), flight, ended: Ended(None) }
    }

    /// Notes that this thread does something else until the loader is polled again.
    pub(super) fn pause(self) -> Flight<'a, K, V> {
        drop(self.running);
        self.flight
    }

    /// [`Lead::is_stale`].
    pub(crate) fn is_stale(&self) -> bool {
        self.flight.lead.is_stale()
    }

    /// [`Lead::may_put`]: must be called under the lock of the cache's table under which the value is then put.
    pub(crate) fn may_put(&self) -> bool {
        self.flight.lead.may_put()
    }

    /// Notes that the value has been put, and may be taken out when that lock is released: a caller that joins after that must
    /// not get it. Mostly nobody has joined, and the flight ends.
    pub(crate) fn has_put(&mut self) {
        self.ended = Ended(self.flight.lead.close_or_end());
    }

    /// Whether it is led because the key's value was due [F8].
    pub(crate) fn refreshes(&self) -> bool {
        self.flight.refreshes()
    }

    /// [`Flight::replace`].
    pub(super) fn replace(&mut self) {
        self.flight.replace();
    }

    /// Whether the key had a value that was stale to the leader: the loaded value may take its place, if it is still stale
    /// [F9].
    pub(crate) fn replaces(&self) -> bool {
        self.flight.lead.old == Old::Stale
    }

    /// Closes the flight: a caller that joins from now on looks the key up when the flight has ended. For caches whose values
    /// expire, because a value may expire before that.
    pub(crate) fn close(&self) {
        self.flight.lead.close();
    }

    /// [`Flight::call_off`].
    pub(crate) fn call_off(mut self) {
        self.ended = Ended(self.flight.lead.end());
    }

    /// Ends the flight with its loader's error. If the key was written to meanwhile, nobody else gets the error: the key may
    /// have a value by now.
    pub(super) fn fail(mut self, failure: Failure) {
        self.ended = Ended(match self.is_stale() {
            true => self.flight.lead.end(),
            false => self.flight.lead.end_with(|| Err(failure)),
        });
    }
}

impl<K, V: Clone> Landing<'_, K, V> {
    /// Ends the flight with a loaded value, whether the cache has kept it or not: each follower gets a clone [F3]. From then on
    /// this thread may ask for the key.
    pub(crate) fn land(mut self, value: &V) {
        if self.ended.0.is_none() {
            self.ended = Ended(self.flight.lead.end_with(|| Ok(Erased::new(value.clone()))));
        }
    }
}

/// Wakes all sleeping followers, in the order in which they came, even if a waker panics; the first panic is resumed
/// afterwards. Not under a lock.
pub(super) fn wake(sleepers: impl IntoIterator<Item = Waker>) {
    let mut panic = FirstPanic::default();
    for waker in sleepers {
        panic.call(|| waker.wake());
    }
    panic.go_on();
}

/// Wakes all sleeping followers of a flight that has ended, and then drops what is left of it: the key's drop may panic, or
/// that of a value for which nobody waits any more. Not under a lock.
#[inline]
fn wake_all(ended: &mut Option<Entry>) {
    if ended.is_some() {
        wake_and_drop(ended);
    }
}

/// The same where something is left. In place: a flight is a whole line.
fn wake_and_drop(ended: &mut Option<Entry>) {
    if !ended.as_ref().is_some_and(Entry::has_sleepers) && !std::thread::panicking() {
        // This is the usual case: nobody is left asleep if the drop panics, and the panic goes on by itself.
        *ended = None;
        return;
    }
    let mut panic = FirstPanic::default();
    panic.call(|| wake(ended.iter_mut().flat_map(Entry::take_sleepers)));
    panic.call(|| *ended = None);
    panic.go_on();
}

impl<K, V> fmt::Debug for Flight<'_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Flight").field("at", &self.lead.at).finish_non_exhaustive()
    }
}
