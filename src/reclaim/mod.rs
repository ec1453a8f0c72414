//! Deferred reclamation: what keeps an entry alive while a reader looks at it [I6].
//!
//! It offers three calls, enter [C1], retire [C2] and flush, and the ordering of a protected load. [`guards`], [`collect`] and
//! [`epochs`] implement them. Under `cfg(loom)` the tables use [`stand_in`] instead, which catches a use after free; the real
//! ones have models of their own. Under `cfg(shuttle)` the tables use the real ones.
//!
//! | file | duty |
//! | --- | --- |
//! | `guards` | entering guards |
//! | `collect` | freeing what was retired |
//! | `epochs` | whether older guards are left: announcing guards, leaving, and advancing the epoch |
//! | `owned` | records of guards that no thread has to itself |
//! | `stamp` | an epoch, and the collector it belongs to |
//! | `bags` | objects that wait to be freed |
//! | `stranded` | waiting objects that found neither room nor memory |
//! | `postponed` | calls to collect that arrive where no destructor may run |
//! | `pace`, `crowd` | how often a barrier is passed; how much may wait for it |
//! | `barrier` | a barrier of two halves, of which readers pass the light one |
//! | `panics` | what becomes of panics in destructors, and of others that are not resumed at once |
//! | `stand_in`, `model` | for models |
//! | `stress`, `shares` | the collector alone, on threads; which thread frees how much |

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
/// A guard needs an Acquire, after its light barrier. But readers without guards, an `InlineMap`'s or `InlineCache`'s, load
/// root and entry with this ordering as well, against store buffering: one thread writes to one segment and reads in another
/// while a second thread does the reverse, and neither may miss what the other wrote. See below the table of atomics in
/// `docs/design.md`. On x86 both orderings are one instruction; under loom, which knows no SeqCst loads, it is an Acquire.
pub(crate) const PROTECTED: Ordering = if cfg!(loom) { Ordering::Acquire } else { Ordering::SeqCst };

/// Something that can be retired.
pub trait Retire {
    /// Drops what `this` holds and frees it.
    ///
    /// # Safety
    ///
    /// `this` was allocated as the implementing type says, nothing refers to it any more, and nobody frees it again.
    unsafe fn free(this: *mut Self);

    /// A word of `this` that only [`Retire::free`] reads: a link to another object may be kept there as long as `this` waits.
    /// Null, if there is no such word. In all objects of one type that one collector has, the word has the same value, which is
    /// the address of none of them.
    ///
    /// # Safety
    ///
    /// `this` is allocated.
    unsafe fn link(_: *mut Self) -> *mut *mut () {
        core::ptr::null_mut()
    }

    /// Marks the object as freed, for a model: reading it from now on fails.
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
