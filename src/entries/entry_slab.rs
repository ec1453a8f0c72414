//! Where the entries of a map lie: in pieces of a [`Slab`], or in a box each.
//!
//! Pieces are for plain entries. If key or value own memory, the allocator has just been asked for that, and what it gives next
//! lies next to it, in the same page and often in the next line. So such an entry gets a box, and a look-up that goes on from
//! it to its text waits once, not twice.

use core::alloc::Layout;
use core::marker::PhantomData;
use core::mem::{MaybeUninit, needs_drop};
use core::ptr::NonNull;

use std::sync::Arc;

use super::entry::Entry;
use super::homes::Within;
use super::magazine::{Free, Magazine};
use super::slab::Slab;
use crate::engine::Shape;
use crate::hash::Digest;
use crate::sync::AtomicU64;

/// What tails are aligned to: words.
const TAIL_ALIGN: usize = align_of::<AtomicU64>();
/// Larger entries get a box each.
const LARGEST_PIECE: usize = 512;

/// Memory for entries of these keys and values.
pub(crate) struct EntrySlab<K, V> {
    slab: Arc<Slab>,
    /// It owns no entries: tables do, and callers that have taken them out.
    entries: PhantomData<fn() -> Entry<K, V>>,
}

impl<K, V> EntrySlab<K, V> {
    /// Whether each entry has a box: if it owns memory, in order to lie next to it, or is large, or oddly aligned. Under loom
    /// all have boxes: models want addresses that are not used again.
    pub(crate) const BOXED: bool = cfg!(loom)
        || needs_drop::<Entry<K, V>>()
        || size_of::<Entry<K, V>>() > LARGEST_PIECE
        || align_of::<Entry<K, V>>() > 64;
    /// The layout of what an entry lies in, without its tail.
    const WITHOUT_TAIL: Layout =
        if Self::BOXED { Layout::new::<Boxed<Entry<K, V>>>() } else { Layout::new::<Entry<K, V>>() };
    /// Where the tail begins.
    pub(super) const TAIL_AT: usize = Self::WITHOUT_TAIL.size().next_multiple_of(TAIL_ALIGN);

    /// An empty slab for entries with tails of so many bytes, a few words; `entries` of them are expected.
    pub(crate) fn new(shape: &Shape, entries: usize, tail: usize) -> Self {
        let layout = Self::layout(tail);
        let slab =
            if Self::BOXED { Slab::for_boxes(layout, shape) } else { Slab::new(layout, shape, entries) };
        EntrySlab { slab, entries: PhantomData }
    }

    /// The layout of a piece, or a box: it holds an entry and its tail, and, as a free piece, a link.
    fn layout(tail: usize) -> Layout {
        let size = if tail > 0 { Self::TAIL_AT + tail } else { Self::WITHOUT_TAIL.size() };
        let align = Self::WITHOUT_TAIL.align().max(align_of::<Free>()).max(TAIL_ALIGN);
        let layout = Layout::from_size_align(size.max(size_of::<Free>()), align);
        layout.expect("an entry and a few words").pad_to_align()
    }

    /// The slab, for operations on pieces whatever lies in them.
    pub(super) fn untyped(&self) -> &Slab {
        &self.slab
    }

    /// Whether there are home cells: [`EntrySlab::allocate`] needs digests then.
    pub(crate) fn has_home_cells(&self) -> bool {
        self.slab.has_home_cells()
    }

    /// Bytes of all chunks and home cells and of what records which pieces are free, or of `len` boxes.
    pub(crate) fn memory_usage(&self, len: usize) -> usize {
        if Self::BOXED {
            size_of::<Slab>() + len * self.slab.layout().size()
        } else {
            self.slab.memory_usage()
        }
    }

    /// The tail of an entry, which has as many bytes as the slab was told, possibly none: uninitialized until it is written,
    /// aligned for words.
    ///
    /// # Safety
    ///
    /// `entry` came from `allocate`, and is not freed.
    #[inline(always)]
    pub(super) unsafe fn tail(entry: NonNull<Entry<K, V>>) -> NonNull<AtomicU64> {
        // SAFETY: the caller's: within the piece or the box, or, if there is no tail, right after it at the most: either is as
        // long as an entry that is followed by padding to `TAIL_ALIGN`.
        unsafe { entry.byte_add(Self::TAIL_AT).cast() }
    }

    /// Memory for an entry, uninitialized; `None` if there is none [M1]. Called under the lock of the digest's segment, whose
    /// magazine it is, or when nobody else uses that segment [W7].
    #[inline]
    pub(super) fn allocate(
        &self,
        magazine: &mut Magazine,
        digest: Digest,
        within: Within,
    ) -> Option<NonNull<Entry<K, V>>> {
        if Self::BOXED {
            return self.allocate_box();
        }
        self.slab.allocate(magazine, digest, within).map(NonNull::cast)
    }

    /// Gives an entry's memory back [M3].
    ///
    /// # Safety
    ///
    /// `entry` came from `allocate` of a slab of the same type that still lives; what was in it has been moved out or
    /// dropped; nobody uses it any more.
    #[inline]
    pub(super) unsafe fn free(entry: NonNull<Entry<K, V>>) {
        if !Self::BOXED {
            // SAFETY: the caller's.
            return unsafe { Slab::free(entry.cast()) };
        }
        // SAFETY: the caller's: a box has the address of its slab, and is of the layout that this says (`allocate_box`).
        unsafe {
            let layout = (*entry.cast::<Boxed<Entry<K, V>>>().as_ptr()).slab.as_ref().layout();
            std::alloc::dealloc(entry.as_ptr().cast(), layout);
        }
    }

    /// Where the address of the slab is in an entry's box; null, if the entry has no box. It is read when the entry is freed.
    ///
    /// # Safety
    ///
    /// `entry` came from `allocate`, and is not freed.
    pub(super) unsafe fn link(entry: NonNull<Entry<K, V>>) -> *mut *mut () {
        if !Self::BOXED {
            return core::ptr::null_mut();
        }
        // SAFETY: the caller's: in a box.
        unsafe { (&raw mut (*entry.cast::<Boxed<Entry<K, V>>>().as_ptr()).slab).cast() }
    }

    /// A box, its entry uninitialized; `None` if there is no memory for it.
    fn allocate_box(&self) -> Option<NonNull<Entry<K, V>>> {
        // SAFETY: not of size zero: it has the slab's address.
        let memory = NonNull::new(unsafe { std::alloc::alloc(self.slab.layout()) })?;
        let boxed = memory.cast::<Boxed<Entry<K, V>>>();
        // SAFETY: memory for a box, ours.
        unsafe { boxed.write(Boxed { entry: MaybeUninit::uninit(), slab: NonNull::from(&*self.slab) }) };
        Some(boxed.cast())
    }
}

/// An entry that has no piece; its tail follows.
#[repr(C)]
struct Boxed<T> {
    entry: MaybeUninit<T>,
    slab: NonNull<Slab>,
}
