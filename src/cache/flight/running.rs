//! The loads whose loaders are running on this thread: each was asked for by the one before it.
//!
//! The list is the thread's own, so nothing is shared. A loader that is a future runs while it is polled.

use core::cell::{Cell, RefCell};
use core::marker::PhantomData;
use core::mem::ManuallyDrop;

use super::shard::FlightId;
use crate::sync::{per_thread, with_mine};

/// Places are counted from the outermost on. If a load is over before another that began later, its place remains, empty. The
/// last place is never empty.
struct Mine {
    /// How many places there are.
    places: Cell<usize>,
    /// The load in the first place, which mostly is the only one.
    first: Cell<Option<FlightId>>,
    /// The other places. Owns memory only while there are any, because nobody drops it.
    others: RefCell<Vec<Option<FlightId>>>,
}

// Without a destructor, so that destructors of other variables, which may run loads, find it.
per_thread! {
    static RUNNING: ManuallyDrop<Mine> = ManuallyDrop::new(Mine::new());
}

/// While this lives, a loader runs on this thread; holds its place among the loads. Not `Send`: it is about this thread.
#[derive(Debug)]
pub(super) struct Running(usize, PhantomData<*mut OfOneThreadUnlessDetached>);

/// A name that the compiler shows to a user that sends a [`Reservation`](crate::Reservation), or holds one across an `.await`.
enum OfOneThreadUnlessDetached {}

/// Notes that the flight's loader runs from now on.
pub(super) fn enter(id: FlightId) -> Running {
    Running(push(id), PhantomData)
}

/// Adds a load and returns its place.
#[inline]
fn push(id: FlightId) -> usize {
    with_mine(&RUNNING, |running| running.push(id))
}

/// All loads that run on this thread, outermost first.
#[inline]
pub(super) fn stack() -> Vec<FlightId> {
    with_mine(&RUNNING, |running| if running.places.get() == 0 { Vec::new() } else { running.stack() })
}

impl Mine {
    const fn new() -> Self {
        Mine { places: Cell::new(0), first: Cell::new(None), others: RefCell::new(Vec::new()) }
    }

    #[inline]
    fn push(&self, id: FlightId) -> usize {
        let place = self.places.replace(self.places.get() + 1);
        if place == 0 {
            self.first.set(Some(id));
        } else {
            self.others.borrow_mut().push(Some(id));
        }
        place
    }

    fn stack(&self) -> Vec<FlightId> {
        self.first.get().into_iter().chain(self.others.borrow().iter().flatten().copied()).collect()
    }

    /// Notes that the load at this place is over.
    #[inline]
    fn end(&self, place: usize) {
        if place == 0 {
            self.first.set(None);
        }
        if self.places.get() == 1 {
            self.places.set(0);
        } else {
            self.end_of_several(place);
        }
    }

    #[cold]
    fn end_of_several(&self, place: usize) {
        let mut others = self.others.borrow_mut();
        if let Some(other) = place.checked_sub(1).and_then(|at| others.get_mut(at)) {
            *other = None;
        }
        // No empty places at the end.
        while others.last().is_some_and(Option::is_none) {
            others.pop();
        }
        let is_first_there = !others.is_empty() || self.first.get().is_some();
        self.places.set(others.len() + usize::from(is_first_there));
        if others.is_empty() {
            *others = Vec::new();
        }
    }
}

impl Drop for Running {
    #[inline]
    fn drop(&mut self) {
        with_mine(&RUNNING, |running| running.end(self.0));
    }
}
