//! [`CacheRef`]: an entry that was found, with the view that keeps it alive; [`MappedCacheRef`]: a part of its value.

use core::fmt;
use core::ops::Deref;

use ahash::RandomState;

use super::CacheView;
use crate::entries::{Kept, Part};
use crate::reclaim::LocalGuard;

/// An entry that was found, together with the view that keeps it alive: from [`CacheView::into_get`]. It dereferences to its
/// value.
///
/// It stays as it was found, even if the entry is replaced, evicted or expires meanwhile; entries that have left the cache wait
/// for its end to be freed. `Send` and `Sync`, if the view is.
pub struct CacheRef<'c, K, V, S = RandomState, G = LocalGuard<'c>>(
    pub(super) Kept<CacheView<'c, K, V, S, G>, K, V>,
);

impl<'c, K, V, S, G> CacheRef<'c, K, V, S, G> {
    /// Returns the key, as it is in the cache. It is called as `CacheRef::key(&found)`, so that it hides no method of the
    /// value.
    pub fn key(this: &Self) -> &K {
        this.0.entry().pair().0
    }

    /// Returns the view, to go on with.
    pub fn into_view(this: Self) -> CacheView<'c, K, V, S, G> {
        this.0.into_view()
    }

    /// Returns a part of the value, with the view. It is called as `CacheRef::map(found, ..)`, like [`CacheRef::key`].
    ///
    /// ```
    /// use std::ops::Deref;
    ///
    /// use koel::{Cache, CacheRef};
    ///
    /// #[derive(Debug)]
    /// struct Page {
    ///     title: String,
    /// }
    ///
    /// struct Pages(Cache<u32, Page>);
    ///
    /// impl Pages {
    ///     fn title(&self, id: u32) -> Option<impl Deref<Target = str>> {
    ///         let page = self.0.pin().into_get(&id)?;
    ///         Some(CacheRef::map(page, |page| page.title.as_str()))
    ///     }
    /// }
    ///
    /// let pages = Pages(Cache::new(10));
    /// pages.0.insert(7, Page { title: "koel".to_string() }).unwrap();
    /// assert_eq!(&*pages.title(7).unwrap(), "koel");
    /// ```
    #[inline]
    pub fn map<U: ?Sized>(this: Self, part: impl FnOnce(&V) -> &U) -> MappedCacheRef<'c, U, K, V, S, G> {
        MappedCacheRef(this.0.map(part))
    }

    /// Returns a part of the value, if there is such a part, with the view.
    ///
    /// # Errors
    ///
    /// The entry, if there is no such part.
    ///
    /// ```
    /// use koel::{Cache, CacheRef};
    ///
    /// let lists = Cache::new(10);
    /// lists.insert("primes", vec![2, 3, 5])?;
    /// let first = CacheRef::try_map(lists.pin().into_get("primes").unwrap(), |list| list.first());
    /// assert_eq!(first.map(|first| *first).ok(), Some(2));
    /// let sixth = CacheRef::try_map(lists.pin().into_get("primes").unwrap(), |list| list.get(5));
    /// assert_eq!(sixth.unwrap_err().len(), 3);
    /// # Ok::<(), koel::Refused<&str, Vec<i32>>>(())
    /// ```
    #[inline]
    pub fn try_map<U: ?Sized>(
        this: Self,
        part: impl FnOnce(&V) -> Option<&U>,
    ) -> Result<MappedCacheRef<'c, U, K, V, S, G>, Self> {
        this.0.try_map(part).map(MappedCacheRef).map_err(CacheRef)
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

/// A part of an entry's value, together with the view that keeps it alive: from [`CacheRef::map`] and [`CacheRef::try_map`]. It
/// dereferences to the part.
///
/// It stays as it was found, like a [`CacheRef`]. `Send` and `Sync`, if the view is and the part is `Sync`.
pub struct MappedCacheRef<'c, U: ?Sized, K, V, S = RandomState, G = LocalGuard<'c>>(
    Part<CacheView<'c, K, V, S, G>, U>,
);

impl<'c, U: ?Sized, K, V, S, G> MappedCacheRef<'c, U, K, V, S, G> {
    /// Returns a part of the part, like [`CacheRef::map`].
    ///
    /// ```
    /// use koel::{Cache, CacheRef, MappedCacheRef};
    ///
    /// let cache = Cache::new(10);
    /// cache.insert(1, (2, [3, 4]))?;
    /// let second = CacheRef::map(cache.pin().into_get(&1).unwrap(), |pair| &pair.1);
    /// let last = MappedCacheRef::map(second, |array| &array[1]);
    /// assert_eq!(*last, 4);
    /// # Ok::<(), koel::Refused<i32, (i32, [i32; 2])>>(())
    /// ```
    #[inline]
    pub fn map<T: ?Sized>(this: Self, part: impl FnOnce(&U) -> &T) -> MappedCacheRef<'c, T, K, V, S, G> {
        MappedCacheRef(this.0.map(part))
    }

    /// Returns a part of the part, if there is one, like [`CacheRef::try_map`].
    ///
    /// # Errors
    ///
    /// This, if there is no such part.
    ///
    /// ```
    /// use koel::{Cache, CacheRef, MappedCacheRef};
    ///
    /// let cache = Cache::new(10);
    /// cache.insert(1, ("primes", vec![2, 3, 5]))?;
    /// let list = CacheRef::map(cache.pin().into_get(&1).unwrap(), |pair| &pair.1);
    /// let sixth = MappedCacheRef::try_map(list, |list| list.get(5));
    /// assert_eq!(sixth.unwrap_err().len(), 3);
    /// # Ok::<(), koel::Refused<i32, (&str, Vec<i32>)>>(())
    /// ```
    #[inline]
    pub fn try_map<T: ?Sized>(
        this: Self,
        part: impl FnOnce(&U) -> Option<&T>,
    ) -> Result<MappedCacheRef<'c, T, K, V, S, G>, Self> {
        this.0.try_map(part).map(MappedCacheRef).map_err(MappedCacheRef)
    }

    /// Returns the view, to go on with.
    #[inline]
    pub fn into_view(this: Self) -> CacheView<'c, K, V, S, G> {
        this.0.into_view()
    }
}

impl<U: ?Sized, K, V, S, G> Deref for MappedCacheRef<'_, U, K, V, S, G> {
    type Target = U;

    #[inline]
    fn deref(&self) -> &U {
        self.0.get()
    }
}

impl<U: ?Sized + fmt::Debug, K, V, S, G> fmt::Debug for MappedCacheRef<'_, U, K, V, S, G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("MappedCacheRef").field(&&**self).finish()
    }
}

impl<U: ?Sized + fmt::Display, K, V, S, G> fmt::Display for MappedCacheRef<'_, U, K, V, S, G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
