//! The loads whose loaders are running on this thread: each was asked for by the one before it.
//!
//! A thread's own, so nothing is shared. A loader that is a future runs while it is polled.

use core::cell::RefCell;
use core::marker::PhantomData;

use super::shard::FlightId;
use crate::sync::per_thread;

// Of one that was over before another that began later, the place is left, and empty. The last place is not.
per_thread! {
    static RUNNING: RefCell<Vec<Option<FlightId>>> = RefCell::new(Vec::new());
}

/// While it lives, a loader runs on this thread; its place among them. Not `Send`: it is about this thread.
#[derive(Debug)]
pub(super) struct Running(usize, PhantomData<*mut ()>);

/// The same of several loads, until all of them are over: those from this place on.
#[derive(Debug)]
pub(super) struct RunningAll(usize, PhantomData<*mut ()>);

/// Notes that the flight's loader runs from now on.
pub(super) fn enter(id: FlightId) -> Running {
    Running(push(id), PhantomData)
}

/// Its place.
fn push(id: FlightId) -> usize {
    // A thread that is being taken down has no list any more, and notices no recursion.
    let push = RUNNING.try_with(|running| {
        let mut running = running.borrow_mut();
        running.push(Some(id));
        running.len() - 1
    });
    push.unwrap_or(usize::MAX)
}

/// Drops the places at the end of the list that are empty.
fn drop_empty(running: &mut Vec<Option<FlightId>>) {
    while running.last().is_some_and(Option::is_none) {
        running.pop();
    }
}

/// All that run on this thread, outermost first.
#[inline]
pub(super) fn stack() -> Vec<FlightId> {
    let stack = RUNNING.try_with(|running| {
        let running = running.borrow();
        // As mostly.
        if running.is_empty() { Vec::new() } else { running.iter().flatten().copied().collect() }
    });
    stack.unwrap_or_default()
}

impl RunningAll {
    /// None yet.
    pub(super) fn new() -> Self {
        let len = RUNNING.try_with(|running| running.borrow().len());
        RunningAll(len.unwrap_or(usize::MAX), PhantomData)
    }

    /// Notes that this one runs as well.
    pub(super) fn add(&mut self, id: FlightId) {
        push(id);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = RUNNING.try_with(|running| {
            let mut running = running.borrow_mut();
            if let Some(place) = running.get_mut(self.0) {
                *place = None;
                drop_empty(&mut running);
            }
        });
    }
}

impl Drop for RunningAll {
    fn drop(&mut self) {
        let _ = RUNNING.try_with(|running| {
            let mut running = running.borrow_mut();
            // They are the last: what has begun since is over.
            running.truncate(self.0);
            drop_empty(&mut running);
        });
    }
}
