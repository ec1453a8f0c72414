//! The reclaimer for models: under loom the tables have a stand-in; under shuttle this detects an object that is freed too
//! early.

use core::cell::UnsafeCell;

use super::epochs::Collector;
use super::guards::{LocalGuard, OwnedGuard};
use super::{Guard, Retire};
use crate::record::Extent;
use crate::sync::Watch;

/// A collector of [`Watched`].
#[derive(Debug)]
pub struct Reclaimer(Collector);

/// Something whose reading and freeing is watched.
#[derive(Debug)]
pub struct Watched(Watch, UnsafeCell<*mut ()>);

impl Default for Watched {
    fn default() -> Self {
        Watched(Watch::default(), UnsafeCell::new(core::ptr::null_mut()))
    }
}

impl Watched {
    /// Reads the object: fails the model if it may be freed.
    pub fn read(&self) {
        self.0.read();
    }

    /// Whether it was freed.
    pub fn is_freed(&self) -> bool {
        self.0.is_freed()
    }
}

impl Retire for Watched {
    unsafe fn free(this: *mut Self) {
        // SAFETY: the model keeps the memory.
        let this = unsafe { &*this };
        this.0.free();
        // SAFETY: nobody else looks at it.
        assert!(unsafe { *this.1.get() }.is_null(), "not as it was");
    }

    unsafe fn link(this: *mut Self) -> *mut *mut () {
        // SAFETY: the model keeps the memory.
        unsafe { &*this }.1.get()
    }

    #[cfg(loom)]
    fn condemn(&self) {}
}

impl Reclaimer {
    /// A collector.
    #[expect(clippy::new_without_default, reason = "the collector has none either")]
    pub fn new() -> Self {
        Reclaimer(Collector::new(true, None))
    }

    /// A collector that has no memory to note what is retired.
    pub fn without_memory() -> Self {
        let this = Self::new();
        this.0.lack_memory();
        this
    }

    /// Enters a guard of this thread.
    pub fn enter(&self) -> LocalGuard<'_> {
        self.0.enter()
    }

    /// Enters an owned guard.
    pub fn enter_owned(&self) -> OwnedGuard<'_> {
        self.0.enter_owned()
    }

    /// Retires `this` under a guard of its own.
    ///
    /// # Safety
    ///
    /// As [`Guard::retire`].
    pub unsafe fn retire(&self, this: *mut Watched) {
        // SAFETY: the caller's.
        unsafe { self.enter().retire(this) };
    }

    /// Frees what it may.
    pub fn flush(&self) {
        self.0.flush();
    }

    /// Frees a bag, as a guard that was in the way does, and leaves the rest to threads whose guards leave.
    pub fn free_a_share(&self) {
        let _ = self.0.follow(Extent::Share);
    }

    /// Leaves everything to threads whose guards leave.
    pub fn leave_to_others(&self) {
        self.0.leave_to_others();
    }

    /// Frees a bag of what was left, as a thread whose guard leaves.
    pub fn free_what_is_left(&self) {
        self.0.pay();
    }

    /// Notes the epoch of what was retired.
    pub fn seal(&self) {
        self.0.seal_all();
    }

    /// Frees what is old enough already.
    pub fn free(&self) {
        self.0.free();
        self.0.free_stranded();
    }

    /// Tries to advance the epoch.
    pub fn advance(&self) -> bool {
        self.0.advance().is_ok()
    }
}
