//! Atomics, fences, locks, threads and related items: from the standard library, or from the tool that schedules a test's
//! threads: loom under `cfg(loom)`, shuttle under `cfg(shuttle)`.
//!
//! This is the only file from which protocols take these, so that the models in `loom-tests` and the schedules of
//! `shuttle-tests` run the production code. Under `cfg(koel_steps)` every protocol step may yield the processor, which makes
//! real threads meet between any two steps; otherwise [`step`] is nothing.

#[cfg(not(any(loom, shuttle)))]
pub(crate) use condvar::Condvar;
#[cfg(not(loom))]
pub(crate) use core::sync::atomic::compiler_fence;
#[cfg(not(any(loom, shuttle)))]
pub(crate) use core::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
};
#[cfg(not(any(loom, shuttle)))]
pub(crate) use parking_lot::{Mutex, MutexGuard};
#[cfg(not(any(loom, shuttle)))]
pub(crate) use std::thread;

#[cfg(loom)]
pub(crate) use loom as scheduler;
#[cfg(shuttle)]
pub(crate) use shuttle as scheduler;

#[cfg(any(loom, shuttle))]
pub(crate) use scheduled_mutex::{Condvar, Mutex, MutexGuard};
#[cfg(any(loom, shuttle))]
pub(crate) use scheduler::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
};

/// What a mutex guards, while nobody else has access to it. Under loom and shuttle the mutex is locked.
#[cfg(not(any(loom, shuttle)))]
pub(crate) type Exclusive<'a, T> = &'a mut T;
#[cfg(any(loom, shuttle))]
pub(crate) type Exclusive<'a, T> = MutexGuard<'a, T>;

/// What a mutex guards, without locking it.
///
/// # Safety
///
/// As long as this lives, nobody else accesses what the mutex guards: a thread that locks it all the same lets go without
/// looking.
#[inline(always)]
pub(crate) unsafe fn exclusively<T>(mutex: &Mutex<T>) -> Exclusive<'_, T> {
    #[cfg(not(any(loom, shuttle)))]
    // SAFETY: the caller's.
    unsafe {
        &mut *mutex.data_ptr()
    }
    #[cfg(any(loom, shuttle))]
    mutex.lock()
}

/// A pointer in memory that is laid out to the byte: shuttle's atomics are objects.
#[cfg(not(loom))]
pub(crate) type SmallAtomicPtr<T> = core::sync::atomic::AtomicPtr<T>;
#[cfg(loom)]
pub(crate) type SmallAtomicPtr<T> = AtomicPtr<T>;

/// Whether loom or shuttle runs the threads. Tables are small then: going through many of anything would be in vain.
pub(crate) const SCHEDULED: bool = cfg!(any(loom, shuttle));

/// Declares a static; under loom and shuttle, one for each execution of a test.
#[cfg(not(any(loom, shuttle)))]
macro_rules! global {
    ($(#[$doc:meta])* static $name:ident: $of:ty = $new:expr;) => {
        $(#[$doc])* static $name: $of = $new;
    };
}
#[cfg(any(loom, shuttle))]
macro_rules! global {
    ($(#[$doc:meta])* static $name:ident: $of:ty = $new:expr;) => {
        $crate::sync::scheduler::lazy_static! { $(#[$doc])* static ref $name: $of = $new; }
    };
}
pub(crate) use global;

/// Declares a variable of which each thread has one.
#[cfg(not(any(loom, shuttle)))]
macro_rules! per_thread {
    (static $name:ident: $of:ty = $new:expr;) => {
        std::thread_local! { static $name: $of = const { $new } }
    };
}
#[cfg(any(loom, shuttle))]
macro_rules! per_thread {
    (static $name:ident: $of:ty = $new:expr;) => {
        $crate::sync::scheduler::thread_local! { static $name: $of = $new; }
    };
}
pub(crate) use per_thread;

#[cfg(any(loom, shuttle))]
use scheduler::thread::LocalKey;
#[cfg(not(any(loom, shuttle)))]
use std::thread::LocalKey;

/// What `f` makes of this thread's [`per_thread`] variable. The standard library's `with` is not marked to be inlined, and now
/// and then compiles to a call through a pointer and another call; `try_with` is marked.
#[inline(always)]
pub(crate) fn with_mine<T, R>(variable: &'static LocalKey<T>, f: impl FnOnce(&T) -> R) -> R {
    match variable.try_with(f) {
        Ok(result) => result,
        Err(_) => unreachable!("it has no destructor; who has lost it gets a new one"),
    }
}

/// An atomic that a table is made of; by default it is zero, or null.
pub(crate) trait Word: Default {}

impl Word for AtomicU32 {}
impl Word for AtomicU64 {}
impl<T> Word for AtomicPtr<T> {}

/// Makes `n` zero words at `at`.
///
/// In freshly zeroed memory this has nothing to do: the standard atomics have the representation of the
/// integers and pointers they hold, so zeroed memory is zero words already, and pages nobody uses stay
/// untouched. loom's atomics, and shuttle's, are objects and must be constructed.
///
/// # Safety
///
/// `at` points to zeroed memory that is valid and aligned for `n` words and that nothing else refers to yet.
pub(crate) unsafe fn init_zeroed<W: Word>(at: *mut W, n: usize) {
    if SCHEDULED {
        for i in 0..n {
            // SAFETY: i < n words that the caller vouches for.
            unsafe { at.add(i).write(W::default()) };
        }
    }
}

/// Loads half of a word: the half with number `index` of an array of words, where the lower half of each word comes first.
/// Acquire.
///
/// # Safety
///
/// The array has that many halves, and lives meanwhile.
#[inline(always)]
pub(crate) unsafe fn load_half(words: *const AtomicU64, index: usize) -> u64 {
    // In Rust, a load of half a word and one of the whole word may not both be atomic operations. Every processor of this kind
    // does the former as if it had loaded the whole word, and such loads are Acquire; this saves 8 instructions for a pair of
    // buckets.
    #[cfg(all(target_arch = "x86_64", target_pointer_width = "64", not(any(loom, shuttle, miri))))]
    {
        // The upper half of the register is cleared.
        let half: u64;
        // SAFETY: reads 4 bytes of a word of the array. The result is what a load of that word would have returned, shifted. It
        // is declared neither `nomem` nor `pure`, so that the compiler moves no access to memory across it.
        unsafe {
            core::arch::asm!(
                "mov {half:e}, dword ptr [{words} + 4 * {index}]",
                half = lateout(reg) half,
                words = in(reg) words,
                index = in(reg) index,
                options(nostack, preserves_flags),
            );
        }
        half
    }
    #[cfg(not(all(target_arch = "x86_64", target_pointer_width = "64", not(any(loom, shuttle, miri)))))]
    {
        // SAFETY: a word of the array.
        let word = unsafe { &*words.add(index / 2) };
        // Acquire: pairs with the stores of the thread that wrote the word; a reader that finds something sees what was done
        // before.
        word.load(Ordering::Acquire) >> (32 * (index % 2)) & 0xFFFF_FFFF
    }
}

/// A seam between two protocol steps. shuttle has one before each atomic operation anyway.
#[cfg(not(any(koel_steps, loom)))]
#[inline(always)]
pub(crate) fn step() {}

/// A seam between two protocol steps: now and then yields the processor to another thread.
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

/// Tells the processor, or the model, that a retry loop is waiting.
#[inline]
pub(crate) fn spin_loop() {
    #[cfg(not(any(loom, shuttle)))]
    core::hint::spin_loop();
    #[cfg(any(loom, shuttle))]
    scheduler::thread::yield_now();
}

/// Whether a thread has ended, if that is known: loom and shuttle do not know.
pub(crate) fn has_ended(thread: &thread::JoinHandle<()>) -> bool {
    #[cfg(not(any(loom, shuttle)))]
    return thread.is_finished();
    #[cfg(any(loom, shuttle))]
    {
        let _ = thread;
        false
    }
}

/// loom's or shuttle's threads.
#[cfg(any(loom, shuttle))]
pub(crate) mod thread {
    pub(crate) use super::scheduler::thread::{Builder, JoinHandle, current};

    /// There is no time here: lets other threads go first, which the tools' own `sleep`, if they have one, does not.
    pub(crate) fn sleep(_: core::time::Duration) {
        super::scheduler::thread::yield_now();
    }
}

/// Lets loom see reads and the freeing of an object that is otherwise read through plain references.
///
/// Does nothing in ordinary builds. Under loom, a read after the freeing, or not ordered before it, fails the model; under
/// shuttle, a read after it.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    #[cfg(loom)]
    cell: loom::cell::UnsafeCell<()>,
    #[cfg(any(loom, shuttle))]
    freed: core::sync::atomic::AtomicBool,
}

impl Watch {
    /// Notes that the watched memory is read.
    #[inline(always)]
    pub(crate) fn read(&self) {
        #[cfg(any(loom, shuttle))]
        assert!(!self.is_freed(), "read after free");
        #[cfg(loom)]
        self.cell.with(|_| ());
    }

    /// Whether the watched memory was freed.
    #[cfg(any(loom, shuttle))]
    pub(crate) fn is_freed(&self) -> bool {
        // SeqCst, in both: outside of what a model explores.
        self.freed.load(core::sync::atomic::Ordering::SeqCst)
    }

    /// Notes that the watched memory is freed.
    #[cfg(any(loom, shuttle))]
    pub(crate) fn free(&self) {
        // SeqCst: as in `is_freed`.
        assert!(!self.freed.swap(true, core::sync::atomic::Ordering::SeqCst), "freed twice");
        #[cfg(loom)]
        self.cell.with_mut(|_| ());
    }
}

/// parking_lot's condition variable with an interface that loom's and shuttle's can have as well.
#[cfg(not(any(loom, shuttle)))]
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

/// loom's or shuttle's mutex and condition variable with parking_lot's interface: no poisoning.
#[cfg(any(loom, shuttle))]
mod scheduled_mutex {
    use std::sync::TryLockError;
    use std::time::Instant;

    use super::scheduler::sync;

    pub(crate) type MutexGuard<'a, T> = sync::MutexGuard<'a, T>;

    #[derive(Debug)]
    pub(crate) struct Mutex<T>(sync::Mutex<T>);

    impl<T: Default> Default for Mutex<T> {
        fn default() -> Self {
            Mutex::new(T::default())
        }
    }

    impl<T> Mutex<T> {
        pub(crate) fn new(value: T) -> Self {
            Mutex(sync::Mutex::new(value))
        }

        pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
            match self.0.try_lock() {
                Ok(guard) => Some(guard),
                Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
                Err(TryLockError::WouldBlock) => None,
            }
        }

        pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
            self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
        }
    }

    #[derive(Debug, Default)]
    pub(crate) struct Condvar(sync::Condvar);

    impl Condvar {
        pub(crate) fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
            self.0.wait(guard).unwrap_or_else(|poisoned| poisoned.into_inner())
        }

        /// There is no time here: waits for as long as it takes.
        pub(crate) fn wait_until<'a, T>(&self, guard: MutexGuard<'a, T>, _: Instant) -> MutexGuard<'a, T> {
            self.wait(guard)
        }

        pub(crate) fn notify_one(&self) {
            self.0.notify_one();
        }
    }
}
