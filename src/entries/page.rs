//! Pages of entries' memory, and what they begin with.

use core::ptr::NonNull;

use crate::sync::SmallAtomicPtr;

/// Pieces of one page; a page is where a piece's slab is found.
pub(super) const PAGE: usize = 4096;

/// What pages begin with: the address of their slab. It stays what it once was.
pub(super) type Begin = SmallAtomicPtr<()>;

/// The begin of the page that a piece is in.
///
/// # Safety
///
/// It is in one, that begins so.
pub(super) unsafe fn begin_of<'a>(piece: NonNull<u8>) -> &'a Begin {
    // SAFETY: the caller's: pages are aligned to what they are long.
    unsafe { &*piece.as_ptr().map_addr(|addr| addr & !(PAGE - 1)).cast() }
}
