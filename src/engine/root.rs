//! The directory's array of segment pointers, in one allocation with its [`RootHeader`].
//!
//! Anybody may read it, at any time; entries are stored to with the pool locked. A root stays allocated when it has been
//! replaced: see `pool`.

use core::alloc::Layout;
use core::marker::PhantomData;
use core::ops::Deref;
use core::ptr::NonNull;

use super::memory::Meter;
use super::payload::Payload;
use super::segment::Segment;
use crate::sync::{AtomicPtr, Watch, init_zeroed};

/// The header that the pointers follow.
#[derive(Debug)]
#[repr(C, align(8))]
pub(crate) struct RootHeader {
    pub(super) len: u32,
    /// `len` is the first root's length shifted left by this.
    pub(super) level: u32,
    layout: Layout,
    pub(super) watch: Watch,
}

/// A root: header and entries in one allocation, so that a look-up has no pointer to the array to wait for. It is not a
/// reference to the header, because that might not reach the entries.
pub(crate) struct Root<'d, P: Payload> {
    header: NonNull<RootHeader>,
    entries: PhantomData<&'d AtomicPtr<Segment<P>>>,
}

impl<P: Payload> Clone for Root<'_, P> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<P: Payload> Copy for Root<'_, P> {}

impl<P: Payload> Deref for Root<'_, P> {
    type Target = RootHeader;

    #[inline(always)]
    fn deref(&self) -> &RootHeader {
        // SAFETY: allocated as long as this lives (`new`); never written to.
        unsafe { self.header.as_ref() }
    }
}

impl<'d, P: Payload> Root<'d, P> {
    /// A root whose entries are null; `None` if there is no memory.
    pub(super) fn allocate(len: u32, level: u32, meter: &Meter) -> Option<NonNull<RootHeader>> {
        let entries = Layout::array::<AtomicPtr<Segment<P>>>(len as usize).ok()?;
        let (layout, entries_at) = Layout::new::<RootHeader>().extend(entries).ok()?;
        // That is where `entry` looks.
        assert_eq!(entries_at, size_of::<RootHeader>());
        let layout = layout.pad_to_align();
        let header = meter.allocate(layout)?.cast::<RootHeader>();
        // SAFETY: zeroed memory of this layout, ours alone; the entries follow the header.
        unsafe {
            init_zeroed(header.add(1).cast::<AtomicPtr<Segment<P>>>().as_ptr(), len as usize);
            header.write(RootHeader { len, level, layout, watch: Watch::default() });
        }
        Some(header)
    }

    /// The root of this header.
    ///
    /// # Safety
    ///
    /// `header` came from [`Root::allocate`] of the same type, and is not freed as long as this lives.
    #[inline(always)]
    pub(super) unsafe fn new(header: NonNull<RootHeader>) -> Self {
        Root { header, entries: PhantomData }
    }

    /// The entry at `index`.
    #[inline(always)]
    pub(super) fn entry(self, index: u32) -> &'d AtomicPtr<Segment<P>> {
        debug_assert!(index < self.len);
        // SAFETY: within the array that was allocated with this header, right after it: callers count up to `len`, or scale to
        // it.
        unsafe { self.header.add(1).cast::<AtomicPtr<Segment<P>>>().add(index as usize).as_ref() }
    }

    /// Whether both are the same root.
    #[inline]
    pub(super) fn is(self, other: Root<'_, P>) -> bool {
        self.header == other.header
    }
}

/// Frees a root, but not the segments it leads to.
///
/// # Safety
///
/// `root` came from [`Root::allocate`] with this meter, and nobody uses it any more.
pub(super) unsafe fn free_root(root: NonNull<RootHeader>, meter: &Meter) {
    // SAFETY: the caller's.
    unsafe {
        let layout = root.as_ref().layout;
        meter.free(root.cast(), layout);
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::super::payload::Pointer;
    use super::*;
    use crate::sync::Ordering;

    #[test]
    fn entries_are_null_and_fill_what_follows_the_header() {
        let meter = Meter::new();
        let header = Root::<Pointer<u64, ()>>::allocate(5, 2, &meter).expect("memory");
        // SAFETY: just allocated, and freed below.
        let root = unsafe { Root::<Pointer<u64, ()>>::new(header) };
        assert_eq!((root.len, root.level), (5, 2));
        // Up to the last byte that was asked for.
        let end = core::ptr::from_ref(root.entry(4)).addr() + size_of::<usize>();
        assert_eq!(end - header.addr().get(), meter.bytes());
        // Relaxed: one thread.
        assert!((0..5).all(|i| root.entry(i).load(Ordering::Relaxed).is_null()));
        // SAFETY: nobody uses it any more.
        unsafe { free_root(header, &meter) };
        assert_eq!(meter.bytes(), 0);
    }
}
