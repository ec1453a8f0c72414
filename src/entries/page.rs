//! Pages of entries' memory, and what they begin with.

use core::ptr::NonNull;

use crate::sync::SmallAtomicPtr;

/// The size of a page, through which a piece's slab is found.
pub(super) const PAGE: usize = 4096;

/// What pages begin with: the address of their slab. Once stored, it never changes.
pub(super) type Begin = SmallAtomicPtr<()>;

/// The begin of the page that a piece is in.
///
/// # Safety
///
/// The piece is in such a page.
pub(super) unsafe fn begin_of<'a>(piece: NonNull<u8>) -> &'a Begin {
    // SAFETY: the caller's: pages are aligned to their size.
    unsafe { &*piece.as_ptr().map_addr(|addr| addr & !(PAGE - 1)).cast() }
}
