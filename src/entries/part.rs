//! [`Part`]: a part of an entry's value, with what keeps it alive.

use core::ptr::NonNull;

/// A part of a value, with the view that keeps the value's entry alive. `Send` and `Sync`, if the view is and the part is
/// `Sync`.
///
/// The guard alone would not do: when that ends on another thread, entries may be dropped there, and only the view tells
/// whether they may.
pub(crate) struct Part<P, U: ?Sized> {
    part: NonNull<U>,
    view: P,
}

// SAFETY: it is a `&U` and a view, both of which go with it: `&U` may be sent if `U` is `Sync`, which the value being so does
// not tell, as the part may be of any type and lie anywhere; and what happens where the view ends is the view's to say.
unsafe impl<P: Send, U: ?Sized + Sync> Send for Part<P, U> {}
// SAFETY: as above. By a `&Part` one comes to the part alone, as `&U`; the view leaves it only by `into_view`, which takes it
// whole.
unsafe impl<P: Sync, U: ?Sized + Sync> Sync for Part<P, U> {}

impl<P, U: ?Sized> Part<P, U> {
    /// # Safety
    ///
    /// The part is as good as a reference for as long as the view lives.
    #[inline]
    pub(crate) unsafe fn new(part: NonNull<U>, view: P) -> Self {
        Part { part, view }
    }

    #[inline]
    pub(crate) fn get(&self) -> &U {
        // SAFETY: `new`'s caller's; the reference does not outlive `self`, and with it the view.
        unsafe { self.part.as_ref() }
    }

    /// A part of the part.
    #[inline]
    pub(crate) fn map<T: ?Sized>(self, part: impl FnOnce(&U) -> &T) -> Part<P, T> {
        let part = NonNull::from(part(self.get()));
        // SAFETY: lent by what is good for as long as the view lives.
        unsafe { Part::new(part, self.view) }
    }

    /// A part of the part; this, if there is none.
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
