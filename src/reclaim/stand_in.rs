//! The stand-in for the reclaimer under loom, in the models of tables, which would otherwise have to explore its steps as well.
//!
//! Counts guards under a mutex; what was retired counts as freed when there are none. The memory itself is given
//! back with the collector, so that a reader that comes too late meets a failed assertion and not a crash.

use core::marker::PhantomData;

use super::sealed::Sealed;
use super::{Guard, Retire, Room};
use crate::sync::Mutex;

#[derive(Debug)]
struct Retired {
    this: *mut (),
    /// Marks the object as freed.
    condemn: unsafe fn(*mut ()),
    /// Frees the object.
    free: unsafe fn(*mut ()),
}

#[derive(Debug, Default)]
struct State {
    guards: usize,
    retired: Vec<Retired>,
    condemned: Vec<Retired>,
}

#[derive(Debug)]
pub(crate) struct Collector(Mutex<State>);

impl Collector {
    pub(crate) fn new(_soon: bool, _room: Option<Room>) -> Self {
        Collector(Mutex::new(State::default()))
    }

    pub(crate) fn enter(&self) -> LocalGuard<'_> {
        LocalGuard(self.enter_owned(), PhantomData)
    }

    pub(crate) fn enter_owned(&self) -> OwnedGuard<'_> {
        self.0.lock().guards += 1;
        OwnedGuard(self)
    }

    /// How many objects were retired and do not count as freed yet.
    pub(crate) fn waiting(&self) -> usize {
        self.0.lock().retired.len()
    }

    /// Does nothing: there are no batches.
    pub(crate) fn flush(&self) -> bool {
        true
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        let condemned = core::mem::take(&mut state.condemned);
        let retired = core::mem::take(&mut state.retired);
        drop(state);
        for old in condemned.into_iter().chain(retired) {
            // SAFETY: `&mut self`: no guard is left.
            unsafe { (old.free)(old.this) };
        }
    }
}

/// A guard bound to its thread.
#[derive(Debug)]
pub struct LocalGuard<'c>(OwnedGuard<'c>, PhantomData<*mut ()>);

/// A guard that may be sent and shared.
#[derive(Debug)]
pub struct OwnedGuard<'c>(&'c Collector);

impl Guard for LocalGuard<'_> {
    unsafe fn retire<T: Retire>(&self, this: *mut T) {
        // SAFETY: the caller's.
        unsafe { self.0.retire(this) };
    }
}

impl Guard for OwnedGuard<'_> {
    unsafe fn retire<T: Retire>(&self, this: *mut T) {
        unsafe fn condemn<T: Retire>(this: *mut ()) {
            // SAFETY: not freed before the collector's drop.
            unsafe { (*this.cast::<T>()).condemn() };
        }
        unsafe fn free<T: Retire>(this: *mut ()) {
            // SAFETY: `retire`'s caller vouches for it.
            unsafe { T::free(this.cast()) };
        }
        let retired = Retired { this: this.cast(), condemn: condemn::<T>, free: free::<T> };
        self.0.0.lock().retired.push(retired);
    }
}

impl Drop for OwnedGuard<'_> {
    fn drop(&mut self) {
        let mut state = self.0.0.lock();
        state.guards -= 1;
        if state.guards == 0 {
            let retired = core::mem::take(&mut state.retired);
            for old in &retired {
                // SAFETY: still allocated: freed with the collector.
                unsafe { (old.condemn)(old.this) };
            }
            state.condemned.extend(retired);
        }
    }
}

// SAFETY: what is retired may be freed by any thread: the maps ask for `Send` where they share.
unsafe impl Send for State {}

impl Sealed for LocalGuard<'_> {}
impl Sealed for OwnedGuard<'_> {}
