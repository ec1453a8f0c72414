//! A barrier of two halves, of which readers pass the light one.
//!
//! A light barrier of one thread and a heavy one of another are ordered as two SeqCst fences would be: either what comes before
//! the light one is seen after the heavy one, or what comes before the heavy one is seen after the light.
//!
//! On Linux the light half is only a compiler fence, and the heavy half asks the kernel to interrupt every processor that runs
//! one of this process's threads (`membarrier`, private expedited). Elsewhere both are fences; also under shuttle, for which
//! everything is in one order.

#[cfg(not(loom))]
use crate::sync::{Ordering, compiler_fence, fence};

#[cfg(all(target_os = "linux", not(any(miri, loom, shuttle))))]
mod kernel {
    use std::sync::OnceLock;

    use rustix::thread::{MembarrierCommand, membarrier};

    /// Whether the kernel does the heavy half. Asks the kernel, once.
    pub(super) fn helps() -> bool {
        static HELPS: OnceLock<bool> = OnceLock::new();
        *HELPS.get_or_init(|| !super::is_left_alone() && registers() && passes())
    }

    /// A process that was checkpointed and restored may have to register anew.
    pub(super) fn barrier() -> bool {
        passes() || registers() && passes()
    }

    fn registers() -> bool {
        membarrier(MembarrierCommand::RegisterPrivateExpedited).is_ok()
    }

    fn passes() -> bool {
        membarrier(MembarrierCommand::PrivateExpedited).is_ok()
    }
}

#[cfg(not(any(all(target_os = "linux", not(any(miri, shuttle))), loom)))]
mod kernel {
    pub(super) fn helps() -> bool {
        false
    }

    pub(super) fn barrier() -> bool {
        unreachable!("it does not help")
    }
}

/// Whether a test wants the whole process to do without the kernel's help.
#[cfg(all(target_os = "linux", not(any(miri, loom, shuttle))))]
fn is_left_alone() -> bool {
    cfg!(test) && std::env::var_os("KOEL_WITHOUT_MEMBARRIER").is_some()
}

/// Both halves, as this system implements them. All barriers of one process are the same.
#[cfg(not(loom))]
#[derive(Clone, Copy, Debug)]
pub(super) struct Barrier {
    /// Whether the kernel does the heavy half.
    helped: bool,
}

#[cfg(not(loom))]
impl Barrier {
    /// True if no kernel of such systems helps.
    const FENCES: bool = !cfg!(all(target_os = "linux", not(any(miri, shuttle))));

    pub(super) fn new() -> Self {
        Barrier { helped: kernel::helps() }
    }

    /// The readers' half; if [`Barrier::is_to_be_completed`], [`Barrier::complete_light`] must follow.
    #[inline(always)]
    pub(super) fn light() {
        if Self::FENCES {
            // SeqCst: pairs with the fence in `heavy`.
            fence(Ordering::SeqCst);
        }
        compiler_fence(Ordering::SeqCst);
    }

    /// Whether this kernel does not help, though others of this system do.
    pub(super) fn is_to_be_completed(self) -> bool {
        !Self::FENCES && !self.helped
    }

    /// The missing part of the readers' half, if there is one.
    pub(super) fn complete_light(self) {
        if self.is_to_be_completed() {
            // SeqCst: pairs with the fence in `heavy`.
            fence(Ordering::SeqCst);
            compiler_fence(Ordering::SeqCst);
        }
    }

    /// The other half. Returns false if the kernel has refused; then there was no barrier.
    #[must_use]
    pub(super) fn heavy(self) -> bool {
        // SeqCst: pairs with the one in `light`; and keeps the compiler from moving what comes before past the call.
        fence(Ordering::SeqCst);
        let passed = !self.helped || kernel::barrier();
        // This keeps what comes after from moving before the call.
        compiler_fence(Ordering::SeqCst);
        passed
    }
}

/// The barrier for models: what the kernel promises, and no more.
///
/// Each half makes itself known to the other and then looks at it. These are exchanges, which read the newest value, so one of
/// two halves sees the other; and it has seen what came before that. Two light ones are not ordered, and neither is a fence.
#[cfg(loom)]
mod model {
    use crate::sync::{AtomicUsize, Ordering, fence, global};

    global! {
        /// Changed by light halves with Release, and read by heavy ones with Acquire.
        static LIGHT: AtomicUsize = AtomicUsize::new(0);
    }

    global! {
        /// The reverse.
        static HEAVY: AtomicUsize = AtomicUsize::new(0);
    }

    #[derive(Clone, Copy, Debug)]
    pub(in super::super) struct Barrier;

    impl Barrier {
        pub(in super::super) fn new() -> Self {
            Barrier
        }

        pub(in super::super) fn light() {
            // Release, Acquire: pair with the other half's, in reverse.
            LIGHT.fetch_add(1, Ordering::Release);
            HEAVY.fetch_add(1, Ordering::Acquire);
        }

        pub(in super::super) fn is_to_be_completed(self) -> bool {
            false
        }

        pub(in super::super) fn complete_light(self) {}

        pub(in super::super) fn heavy(self) -> bool {
            // SeqCst: as in production, before the kernel is asked.
            fence(Ordering::SeqCst);
            // Release, Acquire: pair with the light half's, in reverse.
            HEAVY.fetch_add(1, Ordering::Release);
            LIGHT.fetch_add(1, Ordering::Acquire);
            true
        }
    }
}
#[cfg(loom)]
pub(super) use model::Barrier;
