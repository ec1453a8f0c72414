//! [`Part`]: a part of an entry's value, with what keeps it alive.

use core::ptr::NonNull;

/// A part of a value, with the view that keeps the value's entry alive. `Send` and `Sync`, if the view is and the part is
/// `Sync`.
///
/// The guard alone would not do: when it ends on another thread, entries may be dropped there, and only the view says whether
/// that is permitted.
pub(crate) struct Part<P, U: ?Sized> {
    part: NonNull<U>,
    view: P,
}

// SAFETY: it is a `&U` and a view, both of which go with it: `&U` may be sent if `U` is `Sync`, which does not follow from the
// value being `Sync`, because the part may be of any type and lie anywhere; and what happens where the view ends is determined
// by the view.
unsafe impl<P: Send, U: ?Sized + Sync> Send for Part<P, U> {}
// SAFETY: as above. A `&Part` gives access to the part alone, as `&U`; the view leaves it only by `into_view`, which takes the
// whole `Part`.
unsafe impl<P: Sync, U: ?Sized + Sync> Sync for Part<P, U> {}

impl<P, U: ?Sized> Part<P, U> {
    /// # Safety
    ///
    /// The part may be used as a reference for as long as the view lives.
    #[inline]
    pub(crate) unsafe fn new(part: NonNull<U>, view: P) -> Self {
        Part { part, view }
    }

    #[inline]
    pub(crate) fn get(&self) -> &U {
        // SAFETY: `new`'s caller's; the reference does not outlive `self`, and with it the view.
        unsafe { self.part.as_ref() }
    }

    /// Narrows to a part of the part.
    #[inline]
    pub(crate) fn map<T: ?Sized>(self, part: impl FnOnce(&U) -> &T) -> Part<P, T> {
        let part = NonNull::from(part(self.get()));
        // SAFETY: borrowed from what is valid for as long as the view lives.
        unsafe { Part::new(part, self.view) }
    }

    /// Narrows to a part of the part; returns `self` if there is none.
    #[inline]
    pub(crate) fn try_map<T: ?Sized>(self, part: impl FnOnce(&U) -> Option<&T>) -> Result<Part<P, T>, Self> {
        match part(self.get()).map(NonNull::from) {
            // SAFETY: as in `map`.
            Some(part) => Ok(unsafe { Part::new(part, self.view) }),
            None => Err(self),
        }
    }

    #[inline]
    pub(crate) fn into_view(self) -> P {
        self.view
    }
}
