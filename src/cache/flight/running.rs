//! The loads whose loaders are running on this thread: each was asked for by the one before it.
//!
//! A thread's own, so nothing is shared. A loader that is a future runs while it is polled.

use core::cell::RefCell;
use core::marker::PhantomData;

use super::shard::FlightId;
use crate::sync::per_thread;

per_thread! {
    static RUNNING: RefCell<Vec<FlightId>> = RefCell::new(Vec::new());
}

/// While it lives, a loader runs on this thread. Not `Send`: it is about this thread.
#[derive(Debug)]
pub(super) struct Running(FlightId, PhantomData<*mut ()>);

/// The same of several loads, until all of them are over.
#[derive(Debug)]
pub(super) struct RunningAll(usize, PhantomData<*mut ()>);

/// Notes that the flight's loader runs from now on.
pub(super) fn enter(id: FlightId) -> Running {
    push(id);
    Running(id, PhantomData)
}

fn push(id: FlightId) {
    // A thread that is being taken down has no list any more, and notices no recursion.
    let _ = RUNNING.try_with(|running| running.borrow_mut().push(id));
}

/// All that run on this thread, outermost first.
pub(super) fn stack() -> Vec<FlightId> {
    RUNNING.try_with(|running| running.borrow().clone()).unwrap_or_default()
}

impl RunningAll {
    /// None yet.
    pub(super) fn new() -> Self {
        RunningAll(0, PhantomData)
    }

    /// Notes that this one runs as well.
    pub(super) fn add(&mut self, id: FlightId) {
        push(id);
        self.0 += 1;
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = RUNNING.try_with(|running| {
            let mut running = running.borrow_mut();
            if running.last() == Some(&self.0) {
                running.pop();
            } else if let Some(place) = running.iter().rposition(|id| *id == self.0) {
                // Of many that are loaded at once.
                running.remove(place);
            }
        });
    }
}

impl Drop for RunningAll {
    fn drop(&mut self) {
        let _ = RUNNING.try_with(|running| {
            let mut running = running.borrow_mut();
            // They are the last: what has begun since is over.
            let others = running.len().saturating_sub(self.0);
            running.truncate(others);
        });
    }
}
