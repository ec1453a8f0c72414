//! Deferred reclamation: what keeps an entry alive while a reader looks at it [I6].
//!
//! Three calls, enter [C1], retire [C2] and flush, and the ordering of a protected load. [`guards`], [`collect`] and
//! [`epochs`] do it. Under `cfg(loom)` the tables have [`stand_in`] in their place, which catches a use after free; they
//! have models of their own. Under `cfg(shuttle)` the tables have them.
//!
//! | file | duty |
//! | --- | --- |
//! | `guards` | entering them |
//! | `collect` | what was retired is freed |
//! | `epochs` | whether older guards are left: they are announced, and leave, and the epoch advances |
//! | `owned` | records of guards that no thread has to itself |
//! | `stamp` | whose epoch it is, and which |
//! | `bags` | what waits for that |
//! | `stranded` | what waits and found neither room nor memory |
//! | `postponed` | calls to collect that come where no destructor may run |
//! | `pace`, `crowd` | how often a barrier is passed; how much may wait for that |
//! | `barrier` | a barrier of two halves, of which readers have the light one |
//! | `panics` | what becomes of those in destructors, and of others that go no further at once |
//! | `stand_in`, `model` | for models |
//! | `stress`, `shares` | the collector alone, on threads; who frees how much |

mod bags;
mod barrier;
mod collect;
mod crowd;
mod epochs;
mod guards;
#[cfg(any(loom, shuttle))]
pub(crate) mod model;
mod owned;
mod pace;
mod panics;
#[cfg_attr(loom, allow(dead_code, reason = "loom's threads are never kept from collecting"))]
mod postponed;
mod stamp;
#[cfg(loom)]
mod stand_in;
mod stranded;
#[cfg(all(test, not(any(loom, shuttle))))]
mod shares;
#[cfg(all(test, not(any(loom, shuttle))))]
mod stress;

use crate::sync::Ordering;

/// The ordering of a load whose result a guard protects, and of a reader's first load of anything that another thread
/// may just have stored.
///
/// The guard needs an Acquire, after its light barrier. But readers without guards, an `InlineMap`'s or `InlineCache`'s, load
/// root and entry with it as well, against store buffering: one thread writes to one segment and reads in another while a
/// second thread does the reverse, and neither may miss what the other wrote. See below the table of atomics in
/// `docs/design.md`. On x86 both are one instruction; under loom, which knows no such loads, it is an Acquire.
pub(crate) const PROTECTED: Ordering = if cfg!(loom) { Ordering::Acquire } else { Ordering::SeqCst };

/// Something that can be retired.
pub trait Retire {
    /// Drops what `this` holds and frees it.
    ///
    /// # Safety
    ///
    /// `this` was allocated as the implementing type says, nothing refers to it any more, and nobody frees it again.
    unsafe fn free(this: *mut Self);

    /// A word of `this` that nobody reads but [`Retire::free`]: where a link to another may be kept as long as it waits. Null,
    /// if there is none. Of all of one type that one collector has, the word is the same, and the address of none of them.
    ///
    /// # Safety
    ///
    /// `this` is allocated.
    unsafe fn link(_: *mut Self) -> *mut *mut () {
        core::ptr::null_mut()
    }

    /// Marks what holds it as freed, for a model: whoever reads it from now on fails.
    #[cfg(loom)]
    fn condemn(&self);
}

/// What a pinned view of a map holds: while it lives, everything the view has returned stays allocated.
///
/// Implemented by [`LocalGuard`] and [`OwnedGuard`]; sealed. Not to be confused with what stands before a store, in
/// [`guard`](crate::guard).
pub trait Guard: sealed::Sealed {
    /// Frees `this` when no guard older than now lives.
    ///
    /// # Safety
    ///
    /// Guards entered from now on cannot reach `this`; [`Retire::free`]'s contract holds once the others are gone.
    #[doc(hidden)]
    unsafe fn retire<T: Retire>(&self, this: *mut T);
}

mod sealed {
    pub trait Sealed {}
}

#[cfg(loom)]
pub(crate) use crowd::Room;
#[cfg(not(loom))]
pub(crate) use epochs::Collector;
#[cfg(not(loom))]
pub use guards::{LocalGuard, OwnedGuard};
pub(crate) use panics::{FirstPanic, discard};
#[cfg(loom)]
pub(crate) use stand_in::Collector;
#[cfg(loom)]
pub use stand_in::{LocalGuard, OwnedGuard};
