//! A barrier of two halves, of which readers have the light one.
//!
//! Between a light barrier of one thread and a heavy one of another there is the order that two SeqCst fences would
//! give: either what comes before the light one is seen after the heavy one, or what comes before the heavy one is
//! seen after the light.
//!
//! On Linux the light half is nothing but an order to the compiler, and the heavy half asks the kernel to interrupt
//! whatever runs this process's threads (`membarrier`, private expedited). Elsewhere both are fences; under shuttle, to which
//! all is in one order, too.

#[cfg(not(loom))]
use crate::sync::{Ordering, compiler_fence, fence};

#[cfg(all(target_os = "linux", not(any(miri, loom, shuttle))))]
mod kernel {
    use std::sync::OnceLock;

    use rustix::thread::{MembarrierCommand, membarrier};

    /// Whether the kernel does the heavy half. Asks it, once.
    pub(super) fn helps() -> bool {
        static HELPS: OnceLock<bool> = OnceLock::new();
        *HELPS.get_or_init(|| !super::is_left_alone() && registers() && passes())
    }

    /// A process that was taken down and put up again may have to register anew.
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

/// Whether a test wants to do without the kernel's help, for the whole process.
#[cfg(all(target_os = "linux", not(any(miri, loom, shuttle))))]
fn is_left_alone() -> bool {
    cfg!(test) && std::env::var_os("KOEL_WITHOUT_MEMBARRIER").is_some()
}

/// Both halves, as this system has them. All of one process are the same.
#[cfg(not(loom))]
#[derive(Clone, Copy, Debug)]
pub(super) struct Barrier {
    /// The kernel does the heavy half.
    helped: bool,
}

#[cfg(not(loom))]
impl Barrier {
    /// No kernel of such systems helps.
    const FENCES: bool = !cfg!(all(target_os = "linux", not(any(miri, shuttle))));

    pub(super) fn new() -> Self {
        Barrier { helped: kernel::helps() }
    }

    /// The readers' half; where [`Barrier::is_to_be_completed`], with [`Barrier::complete_light`] after it.
    #[inline(always)]
    pub(super) fn light() {
        if Self::FENCES {
            // SeqCst: pairs with the fence in `heavy`.
            fence(Ordering::SeqCst);
        }
        compiler_fence(Ordering::SeqCst);
    }

    /// Whether this is a kernel that does not help, though others do.
    pub(super) fn is_to_be_completed(self) -> bool {
        !Self::FENCES && !self.helped
    }

    /// What is missing of the readers' half, if anything.
    pub(super) fn complete_light(self) {
        if self.is_to_be_completed() {
            // SeqCst: pairs with the fence in `heavy`.
            fence(Ordering::SeqCst);
            compiler_fence(Ordering::SeqCst);
        }
    }

    /// The other half. False: the kernel has refused, and there was no barrier.
    #[must_use]
    pub(super) fn heavy(self) -> bool {
        // SeqCst: pairs with the one in `light`; and keeps the compiler from moving what comes before past the call.
        fence(Ordering::SeqCst);
        let passed = !self.helped || kernel::barrier();
        // And what comes after it.
        compiler_fence(Ordering::SeqCst);
        passed
    }
}

/// The barrier as models have it: what the kernel promises, and no more.
///
/// Each half makes itself known to the other and then looks at it. These are exchanges, which see the newest, so one
/// of two halves sees the other; and it has seen what came before that. Two light ones give no order, and neither is
/// a fence.
#[cfg(loom)]
mod model {
    use crate::sync::{AtomicUsize, Ordering, fence, global};

    global! {
        /// Changed by light halves, Release, and looked at by heavy ones, Acquire.
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
            // Release, Acquire: pair with the other half's, the other way round.
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
            // Release, Acquire: pair with the light half's, the other way round.
            HEAVY.fetch_add(1, Ordering::Release);
            LIGHT.fetch_add(1, Ordering::Acquire);
            true
        }
    }
}
#[cfg(loom)]
pub(super) use model::Barrier;
