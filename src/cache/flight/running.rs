//! The loads whose loaders are running on this thread: each was asked for by the one before it.
//!
//! A thread's own, so nothing is shared. A loader that is a future runs while it is polled.

use core::cell::RefCell;
use core::marker::PhantomData;
use core::mem::ManuallyDrop;

use smallvec::SmallVec;

use super::shard::FlightId;
use crate::sync::{per_thread, with_mine};

/// Of one that was over before another that began later, the place is left, and empty. The last place is not.
type List = SmallVec<[Option<FlightId>; 4]>;

// Without a destructor, so that destructors of other variables, in which there may be loads, find it. It owns memory only while
// it has something.
per_thread! {
    static RUNNING: ManuallyDrop<RefCell<List>> = ManuallyDrop::new(RefCell::new(SmallVec::new_const()));
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
    with_mine(&RUNNING, |running| {
        let mut running = running.borrow_mut();
        running.push(Some(id));
        running.len() - 1
    })
}

/// Drops the places at the end of the list that are empty.
fn drop_empty(running: &mut List) {
    while running.last().is_some_and(Option::is_none) {
        running.pop();
    }
    if running.is_empty() && running.spilled() {
        *running = List::new();
    }
}

/// All that run on this thread, outermost first.
#[inline]
pub(super) fn stack() -> Vec<FlightId> {
    with_mine(&RUNNING, |running| {
        let running = running.borrow();
        // As mostly.
        if running.is_empty() { Vec::new() } else { running.iter().flatten().copied().collect() }
    })
}

impl RunningAll {
    /// None yet.
    pub(super) fn new() -> Self {
        RunningAll(with_mine(&RUNNING, |running| running.borrow().len()), PhantomData)
    }

    /// Notes that this one runs as well.
    pub(super) fn add(&mut self, id: FlightId) {
        push(id);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        with_mine(&RUNNING, |running| {
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
        with_mine(&RUNNING, |running| {
            let mut running = running.borrow_mut();
            // They are the last: what has begun since is over.
            running.truncate(self.0);
            drop_empty(&mut running);
        });
    }
}
