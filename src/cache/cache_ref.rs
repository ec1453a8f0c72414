//! [`CacheRef`]: an entry that was found, with the view that keeps it alive.

use core::fmt;
use core::ops::Deref;
use core::ptr::NonNull;

use ahash::RandomState;

use super::CacheView;
use crate::entries::Entry;
use crate::reclaim::LocalGuard;

/// An entry that was found, with the view that keeps it alive: from [`CacheView::into_get`]. It is used as its value is.
///
/// It stays as it was found, also if it is replaced, evicted or expires meanwhile; what has left the cache waits for its end.
/// `Send` and `Sync`, if the view is.
pub struct CacheRef<'c, K, V, S = RandomState, G = LocalGuard<'c>> {
    entry: NonNull<Entry<K, V>>,
    /// Keeps it alive.
    view: CacheView<'c, K, V, S, G>,
}

// SAFETY: it shares an entry, and drops none; the view, which keeps it, goes with it, and may be sent.
unsafe impl<'c, K: Send + Sync, V: Send + Sync, S, G> Send for CacheRef<'c, K, V, S, G> where
    CacheView<'c, K, V, S, G>: Send
{
}
// SAFETY: as above; who shares it has no more of it than the entry and the view, each of which may be shared.
unsafe impl<'c, K: Send + Sync, V: Send + Sync, S, G> Sync for CacheRef<'c, K, V, S, G> where
    CacheView<'c, K, V, S, G>: Sync
{
}

impl<'c, K, V, S, G> CacheRef<'c, K, V, S, G> {
    /// # Safety
    ///
    /// The entry was in this cache's table at some time since the view was made.
    pub(super) unsafe fn new(entry: NonNull<Entry<K, V>>, view: CacheView<'c, K, V, S, G>) -> Self {
        CacheRef { entry, view }
    }

    fn entry(&self) -> &Entry<K, V> {
        // SAFETY: `new`'s caller's: if it has left the table, after `view` was made; and the reference does not outlive `self`.
        unsafe { Entry::deref(self.entry) }
    }

    /// The key, as it is in the cache. It is called as `CacheRef::key(&found)`, so that it hides no method of the value.
    pub fn key(this: &Self) -> &K {
        this.entry().pair().0
    }

    /// The view, with which to go on.
    pub fn into_view(this: Self) -> CacheView<'c, K, V, S, G> {
        this.view
    }
}

impl<K, V, S, G> Deref for CacheRef<'_, K, V, S, G> {
    type Target = V;

    #[inline]
    fn deref(&self) -> &V {
        self.entry().pair().1
    }
}

impl<K: fmt::Debug, V: fmt::Debug, S, G> fmt::Debug for CacheRef<'_, K, V, S, G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CacheRef").field(Self::key(self)).field(&**self).finish()
    }
}

impl<K, V: fmt::Display, S, G> fmt::Display for CacheRef<'_, K, V, S, G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
