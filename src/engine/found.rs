//! [`Found`]: which slot of a locked segment an item is in.

use core::ptr::NonNull;

/// An occupied slot, in a bucket or in the overflow. True as long as the lock is held and nothing is put or removed.
/// Afterwards it is a hint: see `Locked::remove_if_there`.
///
/// One word, so that it is passed in a register: a value that is written to the stack in parts and read back as a whole has to
/// wait until the parts have reached the cache. Bucket and lane follow from the address, for the few callers that need them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Found(NonNull<()>);

impl Found {
    /// The slot whose words begin here.
    ///
    /// # Safety
    ///
    /// Not null.
    #[inline(always)]
    pub(super) unsafe fn at<W>(slot: *const W) -> Self {
        // SAFETY: the caller's.
        Found(unsafe { NonNull::new_unchecked(slot.cast_mut().cast()) })
    }

    /// Where its words begin.
    #[inline(always)]
    pub(super) fn slot<W>(self) -> *const W {
        self.0.as_ptr().cast_const().cast()
    }
}
