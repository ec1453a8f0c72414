//! Deferred reclamation: what keeps an entry alive while a reader looks at it [I6].
//!
//! The only file that names seize (Hyaline-1 with asymmetric barriers). Three calls: enter, retire, and the
//! ordering of a protected load. Under `cfg(loom)` a stand-in made of loom's own primitives takes its place, so
//! that the models run the production table code and catch a use after free.

use core::fmt;

use crate::sync::Ordering;

/// The ordering of a load whose result a guard protects.
///
/// seize asks for `SeqCst` where the platform lacks an asymmetric barrier: the load takes part in one total order
/// with the guard's entry and the retirement. On x86 and under loom that is an Acquire load.
pub(crate) const PROTECTED: Ordering = if cfg!(loom) { Ordering::Acquire } else { Ordering::SeqCst };

/// Something that can be retired.
pub trait Retire {
    /// Drops what `this` holds and frees it.
    ///
    /// # Safety
    ///
    /// `this` was allocated as the implementing type says, nothing refers to it any more, and nobody frees it again.
    unsafe fn free(this: *mut Self);

    /// Marks what holds it as freed, for a model: whoever reads it from now on fails.
    #[cfg(loom)]
    fn condemn(&self);
}

/// What a pinned view of a map holds: while it lives, everything the view has returned stays allocated.
///
/// Implemented by [`LocalGuard`] and [`OwnedGuard`]; sealed.
pub trait Guard {
    /// Frees `this` when no guard older than now lives.
    ///
    /// # Safety
    ///
    /// Guards entered from now on cannot reach `this`; [`Retire::free`]'s contract holds once the others are gone.
    #[doc(hidden)]
    unsafe fn retire<T: Retire>(&self, this: *mut T);
}

impl fmt::Debug for LocalGuard<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LocalGuard")
    }
}

impl fmt::Debug for OwnedGuard<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OwnedGuard")
    }
}

#[cfg(not(loom))]
pub(crate) use with_seize::Collector;
#[cfg(not(loom))]
pub use with_seize::{LocalGuard, OwnedGuard};

#[cfg(not(loom))]
mod with_seize {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use seize::Guard as _;

    use super::{Guard, Retire};

    /// What retired memory belongs to: one for each map.
    #[derive(Debug, Default)]
    pub(crate) struct Collector(seize::Collector);

    impl Collector {
        /// A guard bound to this thread.
        #[inline]
        pub(crate) fn enter(&self) -> LocalGuard<'_> {
            LocalGuard(self.0.enter())
        }

        /// A guard that may move between threads.
        #[inline]
        pub(crate) fn enter_owned(&self) -> OwnedGuard<'_> {
            OwnedGuard(self.0.enter_owned())
        }
    }

    /// A guard bound to its thread: neither `Send` nor `Sync`. Entering again on the same thread costs next to nothing.
    pub struct LocalGuard<'c>(seize::LocalGuard<'c>);

    /// A guard that may be sent and shared.
    pub struct OwnedGuard<'c>(seize::OwnedGuard<'c>);

    impl Guard for LocalGuard<'_> {
        #[inline]
        unsafe fn retire<T: Retire>(&self, this: *mut T) {
            // SAFETY: the caller's.
            unsafe { self.0.defer_retire(this, free::<T>) };
        }
    }

    impl Guard for OwnedGuard<'_> {
        #[inline]
        unsafe fn retire<T: Retire>(&self, this: *mut T) {
            // SAFETY: the caller's.
            unsafe { self.0.defer_retire(this, free::<T>) };
        }
    }

    /// Frees one retired object. A panic in a user's `Drop` ends here: it would otherwise surface in whichever
    /// operation of whichever thread reclaims, and make seize drop the rest of the batch on the floor.
    unsafe fn free<T: Retire>(this: *mut T, _: &seize::Collector) {
        // SAFETY: seize calls this once, when no guard that could reach `this` lives.
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| unsafe { T::free(this) })) {
            // Its destructor may panic as well.
            core::mem::forget(payload);
        }
    }
}

#[cfg(loom)]
pub(crate) use stand_in::Collector;
#[cfg(loom)]
pub use stand_in::{LocalGuard, OwnedGuard};

/// Counts guards under a mutex; what was retired counts as freed when there are none. The memory itself is given
/// back with the collector, so that a reader that comes too late meets a failed assertion and not a crash.
#[cfg(loom)]
mod stand_in {
    use core::marker::PhantomData;

    use super::{Guard, Retire};
    use crate::sync::Mutex;

    #[derive(Debug)]
    struct Retired {
        this: *mut (),
        /// Marks it as freed.
        condemn: unsafe fn(*mut ()),
        /// Frees it.
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

    impl Default for Collector {
        fn default() -> Self {
            Collector(Mutex::new(State::default()))
        }
    }

    impl Collector {
        pub(crate) fn enter(&self) -> LocalGuard<'_> {
            LocalGuard(self.enter_owned(), PhantomData)
        }

        pub(crate) fn enter_owned(&self) -> OwnedGuard<'_> {
            self.0.lock().guards += 1;
            OwnedGuard(self)
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
    pub struct LocalGuard<'c>(OwnedGuard<'c>, PhantomData<*mut ()>);

    /// A guard that may be sent and shared.
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
}
