//! Atomics, fences, locks and what goes with them: from the standard library, or from loom under `cfg(loom)`.
//!
//! The only file that names either, so that the models in `loom-tests` run the production code. Under
//! `cfg(koel_steps)` every protocol step may yield the processor, which makes real threads meet between any
//! two steps; otherwise [`step`] is nothing.

#[cfg(not(loom))]
pub(crate) use condvar::Condvar;
#[cfg(not(loom))]
pub(crate) use core::sync::atomic::compiler_fence;
#[cfg(not(loom))]
pub(crate) use core::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
};
#[cfg(not(loom))]
pub(crate) use parking_lot::{Mutex, MutexGuard};

#[cfg(loom)]
pub(crate) use loom::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
};
#[cfg(loom)]
pub(crate) use loom_mutex::{Condvar, Mutex, MutexGuard};

/// A static; under loom, one for each execution of a model.
#[cfg(not(loom))]
macro_rules! global {
    ($(#[$doc:meta])* static $name:ident: $of:ty = $new:expr;) => {
        $(#[$doc])* static $name: $of = $new;
    };
}
#[cfg(loom)]
macro_rules! global {
    ($(#[$doc:meta])* static $name:ident: $of:ty = $new:expr;) => {
        loom::lazy_static! { $(#[$doc])* static ref $name: $of = $new; }
    };
}
pub(crate) use global;

/// One for each thread.
#[cfg(not(loom))]
macro_rules! per_thread {
    (static $name:ident: $of:ty = $new:expr;) => {
        std::thread_local! { static $name: $of = const { $new } }
    };
}
#[cfg(loom)]
macro_rules! per_thread {
    (static $name:ident: $of:ty = $new:expr;) => {
        loom::thread_local! { static $name: $of = $new; }
    };
}
pub(crate) use per_thread;

#[cfg(not(loom))]
use std::thread::LocalKey;

#[cfg(loom)]
use loom::thread::LocalKey;

/// What `f` makes of this thread's [`per_thread`] variable. The standard library's `with` is not marked to be inlined, and now and
/// then is a call through a pointer and another; `try_with` is marked.
#[inline(always)]
pub(crate) fn with_mine<T, R>(variable: &'static LocalKey<T>, f: impl FnOnce(&T) -> R) -> R {
    match variable.try_with(f) {
        Ok(result) => result,
        Err(_) => unreachable!("it has no destructor that may have run"),
    }
}

/// An atomic that a table is made of; it starts out as zero or null.
pub(crate) trait Word: Sized {
    /// Zero, or null.
    fn zero() -> Self;
}

impl Word for AtomicU32 {
    fn zero() -> Self {
        AtomicU32::new(0)
    }
}

impl Word for AtomicU64 {
    fn zero() -> Self {
        AtomicU64::new(0)
    }
}

impl<T> Word for AtomicPtr<T> {
    fn zero() -> Self {
        AtomicPtr::new(core::ptr::null_mut())
    }
}

/// Makes `n` zero words at `at`.
///
/// In freshly zeroed memory this has nothing to do: the standard atomics have the representation of the
/// integers and pointers they hold, so zeroed memory is zero words already, and pages nobody uses stay
/// untouched. loom's atomics are objects and must be constructed.
///
/// # Safety
///
/// `at` points to zeroed memory that is valid and aligned for `n` words and that nothing else refers to yet.
pub(crate) unsafe fn init_zeroed<W: Word>(at: *mut W, n: usize) {
    if cfg!(loom) {
        for i in 0..n {
            // SAFETY: i < n words that the caller vouches for.
            unsafe { at.add(i).write(W::zero()) };
        }
    }
}

/// A seam between two protocol steps.
#[cfg(not(any(koel_steps, loom)))]
#[inline(always)]
pub(crate) fn step() {}

/// A seam between two protocol steps: now and then hands the processor to another thread.
#[cfg(all(koel_steps, not(loom)))]
pub(crate) fn step() {
    std::thread_local!(static STATE: core::cell::Cell<u64> = const { core::cell::Cell::new(0) });
    STATE.with(|state| {
        let mut x = state.get();
        if x == 0 {
            x = core::ptr::from_ref(state) as u64 | 1;
        }
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        state.set(x);
        if x % 8 == 0 {
            std::thread::yield_now();
        }
    });
}

/// A seam between two protocol steps: where a model may stop a thread.
#[cfg(loom)]
pub(crate) fn step() {
    stall::step();
}

/// Lets a model stop a thread in the middle of a protocol.
#[cfg(loom)]
pub mod stall {
    use core::cell::RefCell;

    type Stop = (usize, Box<dyn FnOnce()>);

    loom::thread_local! {
        static STOP: RefCell<Option<Stop>> = RefCell::new(None);
    }

    /// Makes this thread call `f` at its `steps`-th seam from now.
    pub fn after(steps: usize, f: impl FnOnce() + 'static) {
        STOP.with(|stop| *stop.borrow_mut() = Some((steps, Box::new(f))));
    }

    pub(super) fn step() {
        let due = STOP.with(|stop| {
            let mut stop = stop.borrow_mut();
            match &mut *stop {
                Some((0, _)) => stop.take(),
                Some((steps, _)) => {
                    *steps -= 1;
                    None
                }
                None => None,
            }
        });
        if let Some((_, f)) = due {
            f();
        }
    }
}

/// Tells a retry loop's waiting to the processor, or to the model.
#[inline]
pub(crate) fn spin_loop() {
    #[cfg(not(loom))]
    core::hint::spin_loop();
    #[cfg(loom)]
    loom::thread::yield_now();
}

/// Lets loom see reads and the freeing of something that is otherwise read through plain references.
///
/// Nothing in ordinary builds. Under loom, a read after the freeing, or not ordered before it, fails the model.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    #[cfg(loom)]
    cell: loom::cell::UnsafeCell<()>,
    #[cfg(loom)]
    freed: core::sync::atomic::AtomicBool,
}

impl Watch {
    /// Someone reads the watched memory.
    #[inline(always)]
    pub(crate) fn read(&self) {
        #[cfg(loom)]
        {
            assert!(!self.freed.load(core::sync::atomic::Ordering::SeqCst), "read after free");
            self.cell.with(|_| ());
        }
    }

    /// Whether that was so.
    #[cfg(loom)]
    pub(crate) fn is_freed(&self) -> bool {
        self.freed.load(core::sync::atomic::Ordering::SeqCst)
    }

    /// Someone frees the watched memory.
    #[cfg(loom)]
    pub(crate) fn free(&self) {
        assert!(!self.freed.swap(true, core::sync::atomic::Ordering::SeqCst), "freed twice");
        self.cell.with_mut(|_| ());
    }
}

/// parking_lot's condition variable with an interface that loom's can have, too.
#[cfg(not(loom))]
mod condvar {
    use std::time::Instant;

    use super::MutexGuard;

    #[derive(Debug, Default)]
    pub(crate) struct Condvar(parking_lot::Condvar);

    impl Condvar {
        pub(crate) fn wait<'a, T>(&self, mut guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
            self.0.wait(&mut guard);
            guard
        }

        /// Waits until `end` at most.
        pub(crate) fn wait_until<'a, T>(
            &self,
            mut guard: MutexGuard<'a, T>,
            end: Instant,
        ) -> MutexGuard<'a, T> {
            self.0.wait_until(&mut guard, end);
            guard
        }

        pub(crate) fn notify_one(&self) {
            self.0.notify_one();
        }
    }
}

/// loom's mutex and condition variable with parking_lot's interface: no poisoning.
#[cfg(loom)]
mod loom_mutex {
    use std::time::Instant;

    pub(crate) type MutexGuard<'a, T> = loom::sync::MutexGuard<'a, T>;

    #[derive(Debug)]
    pub(crate) struct Mutex<T>(loom::sync::Mutex<T>);

    impl<T> Mutex<T> {
        pub(crate) fn new(value: T) -> Self {
            Mutex(loom::sync::Mutex::new(value))
        }

        pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
            self.0.try_lock().ok()
        }

        pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
            self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
        }
    }

    #[derive(Debug, Default)]
    pub(crate) struct Condvar(loom::sync::Condvar);

    impl Condvar {
        pub(crate) fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
            self.0.wait(guard).unwrap_or_else(|poisoned| poisoned.into_inner())
        }

        /// There is no time in a model: waits for as long as it takes.
        pub(crate) fn wait_until<'a, T>(&self, guard: MutexGuard<'a, T>, _: Instant) -> MutexGuard<'a, T> {
            self.wait(guard)
        }

        pub(crate) fn notify_one(&self) {
            self.0.notify_one();
        }
    }
}
