//! [`CacheRef`]: an entry that was found, with the view that keeps it alive.

use core::fmt;
use core::ops::Deref;

use ahash::RandomState;

use super::CacheView;
use crate::entries::Kept;
use crate::reclaim::LocalGuard;

/// An entry that was found, with the view that keeps it alive: from [`CacheView::into_get`]. It is used as its value is.
///
/// It stays as it was found, also if it is replaced, evicted or expires meanwhile; what has left the cache waits for its end.
/// `Send` and `Sync`, if the view is.
pub struct CacheRef<'c, K, V, S = RandomState, G = LocalGuard<'c>>(
    pub(super) Kept<CacheView<'c, K, V, S, G>, K, V>,
);

impl<'c, K, V, S, G> CacheRef<'c, K, V, S, G> {
    /// The key, as it is in the cache. It is called as `CacheRef::key(&found)`, so that it hides no method of the value.
    pub fn key(this: &Self) -> &K {
        this.0.entry().pair().0
    }

    /// The view, with which to go on.
    pub fn into_view(this: Self) -> CacheView<'c, K, V, S, G> {
        this.0.into_view()
    }
}

impl<K, V, S, G> Deref for CacheRef<'_, K, V, S, G> {
    type Target = V;

    #[inline]
    fn deref(&self) -> &V {
        self.0.entry().pair().1
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
