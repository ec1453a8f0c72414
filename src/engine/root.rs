//! The directory's array of segment pointers, in one allocation.
//!
//! Anybody may read it, at any time; entries are stored to with the pool locked. It stays allocated when it has been
//! replaced: see `pool`.

use core::alloc::Layout;
use core::ptr::NonNull;

use super::memory::Meter;
use super::payload::Payload;
use super::segment::Segment;
use crate::sync::{AtomicPtr, init_zeroed};

/// One array of segment pointers, which follows it.
pub(crate) struct Root<P: Payload> {
    /// Where that is, for whoever has no more than a reference.
    entries: *const AtomicPtr<Segment<P>>,
    pub(super) len: u32,
    /// `len` is the first root's length shifted left by this.
    pub(super) level: u32,
    pub(super) layout: Layout,
}

impl<P: Payload> Root<P> {
    /// A root whose entries are null; `None` if there is no memory.
    pub(super) fn allocate(len: u32, level: u32, meter: &Meter) -> Option<NonNull<Self>> {
        let entries = Layout::array::<AtomicPtr<Segment<P>>>(len as usize).ok()?;
        let (layout, entries_at) = Layout::new::<Self>().extend(entries).ok()?;
        let layout = layout.pad_to_align();
        let base = meter.allocate(layout)?;
        let this = base.cast::<Self>();
        // SAFETY: zeroed memory of this layout, ours alone.
        unsafe {
            let entries = base.as_ptr().add(entries_at).cast::<AtomicPtr<Segment<P>>>();
            init_zeroed(entries, len as usize);
            this.write(Root { entries, len, level, layout });
        }
        Some(this)
    }

    /// The entry at `index`.
    #[inline(always)]
    pub(super) fn entry(&self, index: u32) -> &AtomicPtr<Segment<P>> {
        debug_assert!(index < self.len);
        // SAFETY: within the array that was allocated with this root.
        unsafe { &*self.entries.add(index as usize) }
    }
}

/// Frees a root, but not the segments it leads to.
///
/// # Safety
///
/// `root` came from [`Root::allocate`] with this meter, and nobody uses it any more.
pub(super) unsafe fn free_root<P: Payload>(root: NonNull<Root<P>>, meter: &Meter) {
    // SAFETY: the caller's.
    unsafe {
        let layout = root.as_ref().layout;
        meter.free(root.cast(), layout);
    }
}
