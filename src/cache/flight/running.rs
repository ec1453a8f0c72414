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

/// Notes that the flight's loader runs from now on.
pub(super) fn enter(id: FlightId) -> Running {
    // A thread that is being taken down has no list any more, and notices no recursion.
    let _ = RUNNING.try_with(|running| running.borrow_mut().push(id));
    Running(id, PhantomData)
}

/// All that run on this thread, outermost first.
pub(super) fn stack() -> Vec<FlightId> {
    RUNNING.try_with(|running| running.borrow().clone()).unwrap_or_default()
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
