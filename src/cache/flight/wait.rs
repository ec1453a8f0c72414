//! A wait for a key that another caller loads: a future, also for threads.

use core::fmt;
use core::future::Future;
use core::marker::PhantomData;
use core::pin::Pin;
use core::task::{Context, Poll};
use std::sync::Arc;
use std::task::Waker;
use std::time::Instant;

use super::entry::Outcome;
use super::flights::Of;
use super::leader::{Flight, Lead, wake};
use super::shard::{At, FlightId};
use super::signal::Signal;
use super::terms::Failure;
use super::waits::Edge;

/// How a wait ends.
#[derive(Debug)]
pub(super) enum Waited<'a, K, V> {
    /// With the value that the leader loaded.
    Value(V),
    /// The leader's loader failed, with this error.
    Failed(Failure),
    /// The leader failed: it is this caller's turn to load.
    Lead(Flight<'a, K, V>),
    /// The leader called the flight off, for instance because the key has a value; or had closed it before this caller came; or
    /// failed, and the key was written to while it loaded: look again, or join.
    Over,
}

/// Follows a flight. If it is dropped early, it leaves no trace, and wakes the next follower if it was to take over [F4].
pub(super) struct Follower<'a> {
    at: At<'a>,
    ticket: u64,
    /// Present until the wait has ended.
    outcome: Option<Arc<Outcome>>,
    /// What other loads wait for through this wait.
    edge: Option<Edge>,
    /// Whether it has ended, and is no longer among the followers.
    over: bool,
}

/// How it ends, before the value is cloned.
enum End<'a> {
    Lead(Lead<'a>),
    /// Where the leader has put the outcome, if there is any.
    Outcome(Option<Arc<Outcome>>),
}

impl<'a> Follower<'a> {
    /// Follower number `ticket`; it must have been counted.
    pub(super) fn new(at: At<'a>, ticket: u64, outcome: Arc<Outcome>) -> Self {
        Follower { at, ticket, outcome: Some(outcome), edge: None, over: false }
    }

    /// The flight it waits for.
    pub(super) fn id(&self) -> FlightId {
        self.at.id()
    }

    /// Keeps `edge` for as long as it waits.
    pub(super) fn keep(&mut self, edge: Edge) {
        self.edge = Some(edge);
    }

    /// Takes the lead if the leader has failed and nobody has taken over yet [F4]; else waits as before.
    fn try_lead(mut self) -> Result<Lead<'a>, Self> {
        let at = self.at;
        let taken =
            at.with(|entry| entry.filter(|entry| !entry.led).map(|entry| entry.take_over(self.ticket)));
        let Some(old_waker) = taken else { return Err(self) };
        self.end();
        let lead = Lead::new(at);
        // Not under the lock. If it panics, the lead is passed on.
        drop(old_waker);
        Ok(lead)
    }

    fn end(&mut self) {
        self.over = true;
        self.edge = None;
    }

    /// The end of the wait, if it has come; else the waker is woken when it may have.
    fn poll(&mut self, waker: &Waker) -> Poll<End<'a>> {
        // Dropped when the lock is not held any more.
        let mut old_waker = None;
        let (at, ticket) = (self.at, self.ticket);
        let ended = at.with(|entry| {
            let Some(entry) = entry else { return Some(false) };
            if !entry.led {
                old_waker = entry.take_over(ticket);
                return Some(true);
            }
            // A leader that leaves the lead, or lands, takes the waker under the same lock: it is not missed [F4].
            old_waker = entry.sleep(ticket, waker);
            None
        });
        let lead = ended.map(|leads| {
            self.end();
            leads.then(|| Lead::new(at))
        });
        // If it panics, the lead is passed on.
        drop(old_waker);
        match lead {
            None => Poll::Pending,
            Some(Some(lead)) => Poll::Ready(End::Lead(lead)),
            Some(None) => Poll::Ready(End::Outcome(self.outcome.take())),
        }
    }

    /// Blocks this thread until the wait ends, or returns `None` at the time `until`.
    fn block(mut self, until: Option<Instant>) -> Option<End<'a>> {
        let signal = Arc::new(Signal::default());
        let waker = Waker::from(Arc::clone(&signal));
        loop {
            if let Poll::Ready(end) = self.poll(&waker) {
                return Some(end);
            }
            if !signal.wait(until) {
                // A result that came at the last moment counts; otherwise the drop of `self` passes on what comes later.
                return match self.poll(&waker) {
                    Poll::Ready(end) => Some(end),
                    Poll::Pending => None,
                };
            }
        }
    }
}

impl Drop for Follower<'_> {
    fn drop(&mut self) {
        if self.over {
            return;
        }
        let mut wakers = (None, None);
        let ended = self.at.end_if(|entry| {
            wakers.0 = entry.leave(self.ticket);
            if entry.led {
                return false;
            }
            // This follower may have been woken to take over: the next one is woken now. If it was not, the next wakes for
            // nothing.
            wakers.1 = entry.first_sleeper();
            entry.followers() == 0
        });
        drop(ended);
        wake(wakers.1);
    }
}

/// Follows a flight of a cache with these keys and values: a future.
pub(super) struct Wait<'a, K, V> {
    follower: Follower<'a>,
    of: Of<'a, K, V>,
}

impl<'a, K, V> Wait<'a, K, V> {
    /// Says which types a follower is about.
    ///
    /// # Safety
    ///
    /// It is of a `Flights<K, V>`.
    pub(super) unsafe fn new(follower: Follower<'a>) -> Self {
        Wait { follower, of: PhantomData }
    }

    /// [`Follower::try_lead`].
    pub(super) fn try_lead(self) -> Result<Flight<'a, K, V>, Self> {
        match self.follower.try_lead() {
            // SAFETY: of the same flight.
            Ok(lead) => Ok(unsafe { Flight::new(lead) }),
            Err(follower) => Err(Wait { follower, of: PhantomData }),
        }
    }
}

impl<'a, K, V: Clone> Wait<'a, K, V> {
    /// The result of the wait, if it has ended.
    pub(super) fn ended(mut self) -> Option<Waited<'a, K, V>> {
        match self.follower.poll(Waker::noop()) {
            Poll::Ready(end) => Some(waited(end, self.of)),
            Poll::Pending => None,
        }
    }

    /// [`Follower::block`].
    pub(super) fn block(self, until: Option<Instant>) -> Option<Waited<'a, K, V>> {
        self.follower.block(until).map(|end| waited(end, self.of))
    }
}

impl<'a, K, V: Clone> Future for Wait<'a, K, V> {
    type Output = Waited<'a, K, V>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let of = self.of;
        self.follower.poll(cx.waker()).map(|end| waited(end, of))
    }
}

/// The result of a wait that has ended, and was one of a `Wait<K, V>`.
fn waited<'a, K, V: Clone>(end: End<'a>, _: Of<'a, K, V>) -> Waited<'a, K, V> {
    let outcome = match end {
        // SAFETY: of the same flight.
        End::Lead(lead) => return Waited::Lead(unsafe { Flight::new(lead) }),
        End::Outcome(outcome) => outcome,
    };
    let waited = match outcome.as_ref().and_then(|outcome| outcome.get()) {
        // SAFETY: put there by `Landing::land` of the same flight, for these types; a follower on another thread has borrowed
        // the flights from there, which takes a `V` that is `Sync`.
        Some(Ok(value)) => Waited::Value(unsafe { value.get::<V>() }.clone()),
        Some(Err(failure)) => Waited::Failed(failure.clone()),
        None => Waited::Over,
    };
    // Before the value is returned: it would leak then if the last waiting caller dropped the loader's value and that panicked.
    drop(outcome);
    waited
}

impl<K, V> fmt::Debug for Wait<'_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Follower { at, ticket, .. } = &self.follower;
        f.debug_struct("Wait").field("at", at).field("ticket", ticket).finish_non_exhaustive()
    }
}
