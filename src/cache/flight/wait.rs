//! A wait for a key that another caller loads: a future, also for threads.

use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};
use std::sync::Arc;
use std::task::Waker;
use std::time::Instant;

use super::entry::Outcome;
use super::leader::{Flight, wake};
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
pub(super) struct Wait<'a, K, V> {
    at: At<'a, K, V>,
    ticket: u64,
    /// Present until the wait has ended.
    outcome: Option<Arc<Outcome<V>>>,
    /// What other loads wait for through this wait.
    edge: Option<Edge>,
    /// Whether it has ended, and is no longer among the followers.
    over: bool,
}

impl<'a, K, V> Wait<'a, K, V> {
    /// Follower number `ticket`; it must have been counted.
    pub(super) fn new(at: At<'a, K, V>, ticket: u64, outcome: Arc<Outcome<V>>) -> Self {
        Wait { at, ticket, outcome: Some(outcome), edge: None, over: false }
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
    pub(super) fn try_lead(mut self) -> Result<Flight<'a, K, V>, Self> {
        let at = self.at;
        let taken =
            at.with(|entry| entry.filter(|entry| !entry.led).map(|entry| entry.take_over(self.ticket)));
        let Some(old_waker) = taken else { return Err(self) };
        self.end();
        let flight = Flight::new(at);
        // Not under the lock. If it panics, the lead is passed on.
        drop(old_waker);
        Ok(flight)
    }

    fn end(&mut self) {
        self.over = true;
        self.edge = None;
    }
}

impl<'a, K, V: Clone> Wait<'a, K, V> {
    /// The result of the wait, if it has ended.
    pub(super) fn ended(mut self) -> Option<Waited<'a, K, V>> {
        match Pin::new(&mut self).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(waited) => Some(waited),
            Poll::Pending => None,
        }
    }

    /// Blocks this thread until the wait ends, or returns `None` at the time `until`.
    pub(super) fn block(mut self, until: Option<Instant>) -> Option<Waited<'a, K, V>> {
        let signal = Arc::new(Signal::default());
        let waker = Waker::from(Arc::clone(&signal));
        let mut context = Context::from_waker(&waker);
        loop {
            if let Poll::Ready(waited) = Pin::new(&mut self).poll(&mut context) {
                return Some(waited);
            }
            if !signal.wait(until) {
                // A result that came at the last moment counts; otherwise the drop of `self` passes on what comes later.
                return match Pin::new(&mut self).poll(&mut context) {
                    Poll::Ready(waited) => Some(waited),
                    Poll::Pending => None,
                };
            }
        }
    }
}

impl<'a, K, V: Clone> Future for Wait<'a, K, V> {
    type Output = Waited<'a, K, V>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        // Dropped when the lock is not held any more.
        let mut old_waker = None;
        let (at, ticket) = (this.at, this.ticket);
        let ended = at.with(|entry| {
            let Some(entry) = entry else { return Some(false) };
            if !entry.led {
                old_waker = entry.take_over(ticket);
                return Some(true);
            }
            // A leader that leaves the lead, or lands, takes the waker under the same lock: it is not missed [F4].
            old_waker = entry.sleep(ticket, cx.waker());
            None
        });
        let lead = ended.map(|leads| {
            this.end();
            leads.then(|| Waited::Lead(Flight::new(at)))
        });
        // If it panics, the lead is passed on.
        drop(old_waker);
        match lead {
            None => return Poll::Pending,
            Some(Some(lead)) => return Poll::Ready(lead),
            Some(None) => {}
        }
        let outcome = this.outcome.take();
        let waited = match outcome.as_ref().and_then(|outcome| outcome.get()).cloned() {
            Some(Ok(value)) => Waited::Value(value),
            Some(Err(failure)) => Waited::Failed(failure),
            None => Waited::Over,
        };
        // Before the value is returned: it would leak then if the last waiting caller dropped the loader's value and that
        // panicked.
        drop(outcome);
        Poll::Ready(waited)
    }
}

impl<K, V> Drop for Wait<'_, K, V> {
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

impl<K, V> fmt::Debug for Wait<'_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wait").field("at", &self.at).field("ticket", &self.ticket).finish_non_exhaustive()
    }
}
