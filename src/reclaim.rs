//! Deferred reclamation: what keeps an entry alive while a reader looks at it [I6].
//!
//! The only file that names seize (Hyaline-1 with asymmetric barriers). Three calls, enter [C1], retire [C2] and flush,
//! and the ordering of a protected load. Under `cfg(loom)` a stand-in made of loom's own primitives takes its place, so
//! that the models run the production table code and catch a use after free.

use core::any::Any;
use core::fmt;
use core::ptr::NonNull;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::sync::Ordering;

/// The ordering of a load whose result a guard protects, and of a reader's first load of anything that another thread
/// may just have stored.
///
/// seize asks for `SeqCst` where the platform lacks an asymmetric barrier: the load takes part in one total order
/// with the guard's entry and the retirement. On x86 that is the same instruction as an Acquire load; under loom it is
/// one.
///
/// Readers without guards, an `InlineMap`'s, load root and entry with it as well, against store buffering: one thread
/// writes to one segment and reads in another while a second thread does the reverse, and neither may miss what the
/// other wrote. See below the table of atomics in `docs/design.md`.
pub(crate) const PROTECTED: Ordering = if cfg!(loom) { Ordering::Acquire } else { Ordering::SeqCst };

/// Drops what a panic threw that goes no further. Its own drop may panic as well: what that throws is forgotten, or there
/// would be no end to it.
pub(crate) fn discard(payload: Box<dyn Any + Send>) {
    if let Err(another) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        core::mem::forget(another);
    }
}

/// Something that can be retired.
pub trait Retire {
    /// Drops what `this` holds and frees it.
    ///
    /// # Safety
    ///
    /// `this` was allocated as the implementing type says, nothing refers to it any more, and nobody frees it again.
    unsafe fn free(this: *mut Self);

    /// The owned pins of the map that `this` belongs to.
    ///
    /// # Safety
    ///
    /// `this` is still allocated.
    unsafe fn owned_pins(this: *mut Self) -> NonNull<OwnedPins>;

    /// Marks what holds it as freed, for a model: whoever reads it from now on fails.
    #[cfg(loom)]
    fn condemn(&self);
}

/// What a pinned view of a map holds: while it lives, everything the view has returned stays allocated.
///
/// Implemented by [`LocalGuard`] and [`OwnedGuard`]; sealed.
pub trait Guard: sealed::Sealed {
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

mod sealed {
    pub trait Sealed {}

    impl Sealed for super::LocalGuard<'_> {}
    impl Sealed for super::OwnedGuard<'_> {}
}

#[cfg(not(loom))]
pub(crate) use with_seize::{Collector, OwnedPins};
#[cfg(not(loom))]
pub use with_seize::{LocalGuard, OwnedGuard};

#[cfg(not(loom))]
mod with_seize {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::ptr::NonNull;
    use std::sync::{Arc, OnceLock};

    use seize::Guard as _;

    use super::{Guard, Retire};
    use crate::sync::{AtomicUsize, Ordering, fence};

    /// What retired memory belongs to: one for each map.
    ///
    /// Two of seize's collectors, one for guards that are bound to a thread and one for those that are not. In one
    /// collector the two kinds share the records of threads, and a thread's guard that was leaked (`mem::forget`) and
    /// then met by an owned guard of the same number would leave the record inactive with guards alive. What is retired
    /// passes the first collector, and then, if the map has ever had an owned guard, the second.
    #[derive(Debug)]
    pub(crate) struct Collector {
        local: seize::Collector,
        owned: Arc<OwnedPins>,
    }

    /// The second stage: guards that are not bound to a thread.
    #[derive(Debug, Default)]
    pub struct OwnedPins {
        /// Made for the first owned guard: a collector is some 17 KB.
        collector: OnceLock<seize::Collector>,
        /// Not zero from the first owned guard on.
        used: AtomicUsize,
    }

    /// How many threads run at a time.
    fn cores() -> usize {
        static CORES: OnceLock<usize> = OnceLock::new();
        *CORES.get_or_init(|| std::thread::available_parallelism().map_or(1, usize::from))
    }

    impl Collector {
        /// A collector that frees after some dozens of retirements of one thread, or `soon` after a few.
        pub(crate) fn new(soon: bool) -> Self {
            let mut local = seize::Collector::new();
            if soon {
                // At least as many as there may be guards at a time: it takes one object for each to pass a batch on.
                local = local.batch_size(cores().max(4));
            }
            Collector { local, owned: Arc::default() }
        }

        /// A guard bound to this thread [C1].
        #[inline]
        pub(crate) fn enter(&self) -> LocalGuard<'_> {
            LocalGuard(self.local.enter())
        }

        /// A guard that may move between threads [C1].
        pub(crate) fn enter_owned(&self) -> OwnedGuard<'_> {
            // SeqCst, with the fence: pairs with seize's heavy barrier (`membarrier`, or a SeqCst fence), which is
            // issued between unlinking and `first_stage` [C2]. Either that sees the map's first owned guard, or the
            // guard's loads see what was unlinked before.
            let second = self.owned.collector.get_or_init(seize::Collector::default);
            self.owned.used.store(1, Ordering::SeqCst);
            fence(Ordering::SeqCst);
            OwnedGuard { guard: second.enter_owned(), collector: self }
        }

        /// The second stage, for what is to be retired.
        pub(crate) fn owned_pins(&self) -> Arc<OwnedPins> {
            Arc::clone(&self.owned)
        }

        /// Starts the reclamation of what this thread has retired, in both stages [C5].
        ///
        /// A batch is passed on when it has an object for each guard that is active now; where it has fewer, the rest
        /// is filled with objects that are nothing. The first of them follows what was retired before it into the
        /// second stage, where it does the same for the batch of whichever thread took it there.
        pub(crate) fn flush(&self) {
            self.owned.flush();
            let guard = self.enter();
            let pins = Arc::as_ptr(&self.owned).cast_mut();
            // SAFETY: nothing is freed; the pins outlive all that is retired: see this type's drop.
            unsafe { guard.0.defer_retire(pins, flush_second_stage) };
            for _ in 1..filling() {
                // SAFETY: nothing is read or freed.
                unsafe { guard.0.defer_retire(pins, nothing) };
            }
        }
    }

    impl OwnedPins {
        /// Starts the reclamation of what has reached the second stage in this thread [C5].
        fn flush(&self) {
            // Relaxed: what this thread has brought here came after `first_stage`'s load of it.
            let used = self.used.load(Ordering::Relaxed) != 0;
            let Some(second) = self.collector.get().filter(|_| used) else { return };
            let pins = core::ptr::from_ref(self).cast_mut();
            for _ in 0..filling() {
                // SAFETY: nothing is read or freed.
                unsafe { second.retire(pins, nothing) };
            }
        }
    }

    /// Objects that make a batch full, whatever was in it: as many as seize's batches have.
    fn filling() -> usize {
        cores().max(32).next_power_of_two()
    }

    /// Ends what is nothing.
    unsafe fn nothing(_: *mut OwnedPins, _: &seize::Collector) {}

    /// What was retired before this, in the same batch, has reached the second stage: it goes on there.
    unsafe fn flush_second_stage(pins: *mut OwnedPins, _: &seize::Collector) {
        // SAFETY: the pins outlive all that is retired: see `Collector`'s drop.
        unsafe { &*pins }.flush();
    }

    impl Drop for Collector {
        fn drop(&mut self) {
            // [C3].
            // SAFETY: `&mut self`: no guard is left. In this order: the first stage may hand over to the second.
            unsafe {
                self.local.reclaim_all();
                if let Some(second) = self.owned.collector.get() {
                    second.reclaim_all();
                }
            }
        }
    }

    /// A guard bound to its thread: neither `Send` nor `Sync`. Entering again on the same thread costs next to nothing.
    pub struct LocalGuard<'c>(seize::LocalGuard<'c>);

    /// A guard that may be sent and shared.
    pub struct OwnedGuard<'c> {
        /// Keeps what was reachable since it was entered.
        #[expect(dead_code, reason = "its drop leaves")]
        guard: seize::OwnedGuard<'c>,
        collector: &'c Collector,
    }

    impl Guard for LocalGuard<'_> {
        #[inline]
        unsafe fn retire<T: Retire>(&self, this: *mut T) {
            // SAFETY: the caller's.
            unsafe { self.0.defer_retire(this, first_stage::<T>) };
        }
    }

    impl Guard for OwnedGuard<'_> {
        #[inline]
        unsafe fn retire<T: Retire>(&self, this: *mut T) {
            // SAFETY: the caller's. The first stage may be over at once; we keep the second from ending.
            unsafe { self.collector.local.retire(this, first_stage::<T>) };
        }
    }

    /// No guard that is bound to a thread leads to `this` any more: frees it, unless there may be others [C2].
    unsafe fn first_stage<T: Retire>(this: *mut T, _: &seize::Collector) {
        // SAFETY: not freed yet; the pins outlive all that is retired: see `Collector`'s drop.
        let pins: NonNull<OwnedPins> = unsafe { T::owned_pins(this) };
        // SAFETY: as above.
        let pins = unsafe { pins.as_ref() };
        // SeqCst: pairs with the store in `enter_owned`. Since `this` was unlinked seize has issued its heavy barrier
        // (in `try_retire`, before it looks for active guards): a guard whose store is not seen here has its fence
        // after that barrier, and cannot reach `this`.
        let used = pins.used.load(Ordering::SeqCst) != 0;
        match pins.collector.get().filter(|_| used) {
            // SAFETY: unlinked long ago; retired there once.
            Some(second) => unsafe { second.retire(this, second_stage::<T>) },
            // SAFETY: no owned guard could have reached it.
            None => unsafe { free(this) },
        }
    }

    /// No guard at all leads to `this` any more [C2].
    unsafe fn second_stage<T: Retire>(this: *mut T, _: &seize::Collector) {
        // SAFETY: seize calls this once, when no guard that could reach `this` lives.
        unsafe { free(this) };
    }

    /// Frees one retired object. A panic in a user's `Drop` ends here: it would otherwise surface in whichever
    /// operation of whichever thread reclaims, and make seize drop the rest of the batch on the floor [C3].
    unsafe fn free<T: Retire>(this: *mut T) {
        // SAFETY: the caller's.
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| unsafe { T::free(this) })) {
            super::discard(payload);
        }
    }
}

#[cfg(loom)]
pub(crate) use stand_in::{Collector, OwnedPins};
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

    /// One kind of guard is enough for models.
    #[derive(Debug)]
    pub struct OwnedPins;

    impl Collector {
        pub(crate) fn new(_soon: bool) -> Self {
            Collector(Mutex::new(State::default()))
        }

        pub(crate) fn enter(&self) -> LocalGuard<'_> {
            LocalGuard(self.enter_owned(), PhantomData)
        }

        pub(crate) fn enter_owned(&self) -> OwnedGuard<'_> {
            self.0.lock().guards += 1;
            OwnedGuard(self)
        }

        pub(crate) fn owned_pins(&self) -> std::sync::Arc<OwnedPins> {
            std::sync::Arc::new(OwnedPins)
        }

        /// There are no batches.
        pub(crate) fn flush(&self) {}
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

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::sync::AtomicUsize;

    #[test]
    fn what_a_panic_threw_is_dropped_once_and_its_own_panic_ends_there() {
        struct Thrown(&'static AtomicUsize);

        impl Drop for Thrown {
            fn drop(&mut self) {
                // Relaxed: one thread.
                self.0.fetch_add(1, Ordering::Relaxed);
                panic!("in the drop of what a panic threw");
            }
        }

        static DROPS: AtomicUsize = AtomicUsize::new(0);
        discard(Box::new(Thrown(&DROPS)));
        assert_eq!(DROPS.load(Ordering::Relaxed), 1);
    }
}
