//! [`Ref`]: an entry that was found, with the view that keeps it alive.

use core::fmt;
use core::ops::Deref;
use core::ptr::NonNull;

use ahash::RandomState;

use super::Pinned;
use crate::entries::Entry;
use crate::reclaim::LocalGuard;

/// An entry that was found, with the view that keeps it alive: from [`Pinned::into_get`]. It is used as its value is.
///
/// It stays as it was found, also if it is replaced or removed meanwhile; what is removed waits for its end. `Send` and
/// `Sync`, if the view is.
pub struct Ref<'m, K, V, S = RandomState, G = LocalGuard<'m>> {
    entry: NonNull<Entry<K, V>>,
    /// Keeps it alive.
    pin: Pinned<'m, K, V, S, G>,
}

// SAFETY: it shares an entry, and drops none; the view, which keeps it, goes with it, and may be sent.
unsafe impl<'m, K: Send + Sync, V: Send + Sync, S, G> Send for Ref<'m, K, V, S, G> where
    Pinned<'m, K, V, S, G>: Send
{
}
// SAFETY: as above; who shares it has no more of it than the entry and the view, each of which may be shared.
unsafe impl<'m, K: Send + Sync, V: Send + Sync, S, G> Sync for Ref<'m, K, V, S, G> where
    Pinned<'m, K, V, S, G>: Sync
{
}

impl<'m, K, V, S, G> Ref<'m, K, V, S, G> {
    /// # Safety
    ///
    /// The entry was in this map's table at some time since the view was made.
    #[inline]
    pub(super) unsafe fn new(entry: NonNull<Entry<K, V>>, pin: Pinned<'m, K, V, S, G>) -> Self {
        Ref { entry, pin }
    }

    #[inline]
    fn entry(&self) -> &Entry<K, V> {
        // SAFETY: `new`'s caller's: if it was unlinked, after `pin` was made; and the reference does not outlive `self`.
        unsafe { Entry::deref(self.entry) }
    }

    /// The key, as it is in the map.
    #[inline]
    pub fn key(&self) -> &K {
        &self.entry().key
    }

    /// The value.
    #[inline]
    pub fn value(&self) -> &V {
        &self.entry().value
    }

    /// Key and value.
    #[inline]
    pub fn pair(&self) -> (&K, &V) {
        self.entry().pair()
    }

    /// The view, with which to go on.
    #[inline]
    pub fn into_pin(self) -> Pinned<'m, K, V, S, G> {
        self.pin
    }
}

impl<K, V, S, G> Deref for Ref<'_, K, V, S, G> {
    type Target = V;

    #[inline]
    fn deref(&self) -> &V {
        self.value()
    }
}

impl<K: fmt::Debug, V: fmt::Debug, S, G> fmt::Debug for Ref<'_, K, V, S, G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Ref").field(self.key()).field(self.value()).finish()
    }
}
