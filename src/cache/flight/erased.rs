//! A key or a value whose type only the code that made it knows, so that flights are compiled once for all caches.

use core::cell::UnsafeCell;
use core::mem::{ManuallyDrop, MaybeUninit};

/// Room for a value in place, such as a text; a larger one has a box.
type Place = [usize; 3];

/// As much as an `Erased` is aligned to.
const ALIGN: usize = 16;

/// Owns a value.
#[repr(C, align(16))]
pub(super) struct Erased {
    /// The value, or the address of its box. At the beginning, so that it is aligned as well. In a cell, because a value that
    /// is shared may change itself.
    place: UnsafeCell<MaybeUninit<Place>>,
    /// Drops what is in the place.
    drop: unsafe fn(*mut ()),
}

// SAFETY: all `Erased` are in a `Flights<K, V>` and what borrows it, and leave `cache/flight` only in handles that have an
// `Of<K, V>`. Those are `Send` and `Sync` only where keys may be sent, and values sent and shared; `Flights` argues for itself.
unsafe impl Send for Erased {}
// SAFETY: as above.
unsafe impl Sync for Erased {}

/// Whether values of this type lie in place.
const fn fits<T>() -> bool {
    size_of::<T>() <= size_of::<Place>() && align_of::<T>() <= ALIGN
}

impl Erased {
    /// Takes a value over. Allocates if it does not fit.
    #[inline]
    pub(super) fn new<T>(value: T) -> Self {
        // Not dropped before there is a value in it.
        let new =
            ManuallyDrop::new(Erased { place: UnsafeCell::new(MaybeUninit::uninit()), drop: drop_in::<T> });
        let place = new.place.get();
        // SAFETY: the value, or an address, fits, and nobody else has the place.
        unsafe {
            if fits::<T>() {
                place.cast::<T>().write(value);
            } else {
                place.cast::<*mut T>().write(Box::into_raw(Box::new(value)));
            }
        }
        ManuallyDrop::into_inner(new)
    }

    /// The value.
    ///
    /// # Safety
    ///
    /// It was made of a `T`, which is `Sync` if several threads may call this at a time.
    #[inline]
    pub(super) unsafe fn get<T>(&self) -> &T {
        // SAFETY: the caller's; `new` has written one or the other, and nobody has a mutable reference to it.
        unsafe {
            if fits::<T>() { &*self.place.get().cast::<T>() } else { &**self.place.get().cast::<*mut T>() }
        }
    }
}

impl Drop for Erased {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the function for the type that `new` has written, which is called once.
        unsafe { (self.drop)(self.place.get().cast()) };
    }
}

/// Drops a value in its place, or with its box.
///
/// # Safety
///
/// `Erased::new` has written it for this type; it is not used any more.
unsafe fn drop_in<T>(place: *mut ()) {
    // SAFETY: the caller's.
    unsafe {
        if fits::<T>() {
            place.cast::<T>().drop_in_place();
        } else {
            drop(Box::from_raw(place.cast::<*mut T>().read()));
        }
    }
}

const _: () = assert!(align_of::<Erased>() == ALIGN && core::mem::offset_of!(Erased, place) == 0);

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use core::cell::Cell;
    use std::rc::Rc;

    use super::*;

    /// Counts its drops.
    struct Counts<T>(T, Rc<Cell<usize>>);

    impl<T> Drop for Counts<T> {
        fn drop(&mut self) {
            self.1.set(self.1.get() + 1);
        }
    }

    fn is_kept_and_dropped_once<T: Clone + PartialEq>(value: T, in_place: bool) {
        let drops = Rc::new(Cell::new(0));
        let counts = Counts(value.clone(), Rc::clone(&drops));
        assert_eq!(fits::<Counts<T>>(), in_place);
        let moved = [Some(Erased::new(counts)), None];
        // SAFETY: of this type.
        assert!(moved.iter().flatten().all(|erased| unsafe { erased.get::<Counts<T>>() }.0 == value));
        assert_eq!(drops.get(), 0);
        drop(moved);
        assert_eq!(drops.get(), 1);
    }

    #[test]
    fn values_of_all_sizes_are_kept_and_dropped_once() {
        #[derive(Clone, PartialEq)]
        #[repr(align(64))]
        struct Aligned(u8);

        is_kept_and_dropped_once((), true);
        is_kept_and_dropped_once([7_usize; 2], true);
        is_kept_and_dropped_once([7_usize; 3], false);
        is_kept_and_dropped_once(String::from("a text"), false);
        is_kept_and_dropped_once(Aligned(1), false);
        assert!(fits::<String>() && !fits::<Aligned>());
        // SAFETY: of this type.
        assert_eq!(unsafe { *Erased::new(1_u128 << 100).get::<u128>() }, 1 << 100);
    }

    /// As a value may do that counts how often it was cloned.
    #[test]
    fn a_shared_value_may_change_itself() {
        let erased = Erased::new(Cell::new(1));
        // SAFETY: of this type.
        unsafe { erased.get::<Cell<i32>>() }.set(2);
        // SAFETY: of this type.
        assert_eq!(unsafe { erased.get::<Cell<i32>>() }.get(), 2);
    }
}
