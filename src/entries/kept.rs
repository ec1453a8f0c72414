//! [`Kept`]: an entry that was found, with what keeps it alive.

use core::ptr::NonNull;

use super::{Entry, Part};

/// An entry that was found, with the view that keeps it alive. `Send` and `Sync`, if the view is, and keys and values are.
pub(crate) struct Kept<P, K, V> {
    entry: NonNull<Entry<K, V>>,
    view: P,
}

// SAFETY: it shares an entry, and drops none; the view, which keeps it, goes with it, and may be sent.
unsafe impl<P: Send, K: Send + Sync, V: Send + Sync> Send for Kept<P, K, V> {}
// SAFETY: as above; sharing it gives access only to the entry and the view, each of which may be shared.
unsafe impl<P: Sync, K: Send + Sync, V: Send + Sync> Sync for Kept<P, K, V> {}

impl<P, K, V> Kept<P, K, V> {
    /// # Safety
    ///
    /// The view has a guard of the entry's collector, and the entry was in the table at some time since the guard was entered.
    #[inline]
    pub(crate) unsafe fn new(entry: NonNull<Entry<K, V>>, view: P) -> Self {
        Kept { entry, view }
    }

    #[inline]
    pub(crate) fn entry(&self) -> &Entry<K, V> {
        // SAFETY: `new`'s caller's: if the entry has left the table, it did so after the guard was entered; and the reference
        // does not outlive `self`, and with it the view.
        unsafe { Entry::deref(self.entry.cast()) }
    }

    /// Narrows to a part of the value.
    #[inline]
    pub(crate) fn map<U: ?Sized>(self, part: impl FnOnce(&V) -> &U) -> Part<P, U> {
        let part = NonNull::from(part(&self.entry().value));
        // SAFETY: lent by the entry, for as long as any view like this one would have it.
        unsafe { Part::new(part, self.view) }
    }

    /// Narrows to a part of the value; returns `self` if there is none.
    #[inline]
    pub(crate) fn try_map<U: ?Sized>(self, part: impl FnOnce(&V) -> Option<&U>) -> Result<Part<P, U>, Self> {
        match part(&self.entry().value).map(NonNull::from) {
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
