//! [`CacheView`]: look-ups that return references.

use core::fmt;
use core::hash::{BuildHasher, Hash};
use core::ptr::NonNull;

use ahash::RandomState;
use equivalent::Equivalent;

use super::Cache;
use super::cache_ref::CacheRef;
use super::iter::ViewIter;
use crate::entries::{Entry, Kept};
use crate::reclaim::{Guard, LocalGuard, OwnedGuard};

/// A view of a [`Cache`] that keeps what it returns alive: from [`Cache::pin`].
///
/// Not `Send`, though walks over it are.
///
/// ```compile_fail
/// let cache: koel::Cache<u32, u32> = koel::Cache::new(1);
/// let one = cache.pin().get_ref(&1); // the view ends here, and with it the reference
/// println!("{one:?}");
/// ```
pub struct CacheView<'c, K, V, S = RandomState, G = LocalGuard<'c>> {
    cache: &'c Cache<K, V, S>,
    guard: G,
}

/// A [`CacheView`] that is `Send` and `Sync`, if the cache is: from [`Cache::pin_owned`].
pub type CacheViewOwned<'c, K, V, S = RandomState> = CacheView<'c, K, V, S, OwnedGuard<'c>>;

impl<'c, K, V, S, G: Guard> CacheView<'c, K, V, S, G> {
    pub(super) fn new(cache: &'c Cache<K, V, S>, guard: G) -> Self {
        CacheView { cache, guard }
    }

    /// Returns the cache.
    pub fn cache(&self) -> &'c Cache<K, V, S> {
        self.cache
    }

    /// The guard that keeps alive what look-ups return.
    pub(super) fn guard(&self) -> &G {
        &self.guard
    }

    /// Returns an iterator over the entries, in no particular order. It leaves no trace: like [`Cache::iter`], but yields
    /// references.
    ///
    /// # Panics
    ///
    /// As [`Cache::iter`].
    ///
    /// ```
    /// let cache: koel::Cache<u32, u32> = koel::Cache::new(10);
    /// cache.insert(1, 2).unwrap();
    /// assert_eq!(cache.pin().iter().collect::<Vec<_>>(), [(&1, &2)]);
    /// ```
    pub fn iter(&self) -> ViewIter<'_, K, V, S> {
        ViewIter::new(self.cache)
    }
}

impl<'c, K: Hash + Eq, V, S: BuildHasher, G: Guard> CacheView<'c, K, V, S, G> {
    /// Returns the value of a key; counts as a hit, like [`Cache::get`].
    ///
    /// # Panics
    ///
    /// If the removal listener panics: an entry that is found to have expired is taken out.
    ///
    /// ```
    /// let cache: koel::Cache<u32, String> = koel::Cache::new(10);
    /// cache.insert(1, "one".to_string()).unwrap();
    /// let view = cache.pin();
    /// assert_eq!(view.get_ref(&1).map(String::as_str), Some("one")); // not cloned
    /// ```
    #[inline]
    pub fn get_ref<Q: ?Sized + Hash + Equivalent<K>>(&self, key: &Q) -> Option<&V> {
        self.cache.hit(self.cache.digest(key), key, &self.guard).map(|entry| entry.pair().1)
    }

    /// Returns the key and the value of an entry; counts as a hit.
    ///
    /// # Panics
    ///
    /// As [`CacheView::get_ref`].
    ///
    /// ```
    /// let cache: koel::Cache<String, u32> = koel::Cache::new(10);
    /// cache.insert("one".to_string(), 1).unwrap();
    /// let view = cache.pin();
    /// assert_eq!(view.get_key_value("one"), Some((&"one".to_string(), &1)));
    /// ```
    pub fn get_key_value<Q: ?Sized + Hash + Equivalent<K>>(&self, key: &Q) -> Option<(&K, &V)> {
        self.cache.hit(self.cache.digest(key), key, &self.guard).map(|entry| entry.pair())
    }

    /// Returns the value of a key together with the view: for functions that return what they have found. Counts as a hit, like
    /// [`Cache::get`].
    ///
    /// # Panics
    ///
    /// As [`CacheView::get_ref`].
    ///
    /// ```
    /// use std::ops::Deref;
    ///
    /// struct Page(String); // not `Clone`
    ///
    /// struct Pages(koel::Cache<String, Page>);
    ///
    /// impl Pages {
    ///     fn page(&self, url: &str) -> Option<impl Deref<Target = Page>> {
    ///         self.0.pin().into_get(url)
    ///     }
    /// }
    ///
    /// let pages = Pages(koel::Cache::new(10));
    /// assert!(pages.0.insert("/".to_string(), Page("home".to_string())).is_ok());
    /// assert_eq!(pages.page("/").unwrap().0, "home");
    /// assert!(pages.page("/about").is_none());
    /// ```
    pub fn into_get<Q: ?Sized + Hash + Equivalent<K>>(self, key: &Q) -> Option<CacheRef<'c, K, V, S, G>> {
        let entry = NonNull::from(self.cache.hit(self.cache.digest(key), key, &self.guard)?);
        // SAFETY: found by this view, which has a guard.
        Some(CacheRef(unsafe { Kept::new(entry, self) }))
    }

    /// Returns the value of a key; without a trace, like [`Cache::peek`].
    ///
    /// ```
    /// let cache: koel::Cache<u32, String> = koel::Cache::new(10);
    /// cache.insert(1, "one".to_string()).unwrap();
    /// assert_eq!(cache.pin().peek_ref(&1).map(String::as_str), Some("one"));
    /// assert_eq!(cache.stats().hits, 0);
    /// ```
    pub fn peek_ref<Q: ?Sized + Hash + Equivalent<K>>(&self, key: &Q) -> Option<&V> {
        self.cache.peek_entry(self.cache.digest(key), key, &self.guard).map(|entry| entry.pair().1)
    }

    /// Removes the entry of a key, like [`Cache::remove`], for values of any type; returns its value, which is dropped when
    /// nobody can look at it any more.
    ///
    /// # Panics
    ///
    /// As [`Cache::remove`].
    ///
    /// ```
    /// struct Connection(u32); // not `Clone`
    ///
    /// let cache: koel::Cache<&str, Connection> = koel::Cache::new(10);
    /// assert!(cache.insert("db", Connection(7)).is_ok());
    /// assert_eq!(cache.pin().remove("db").map(|connection| connection.0), Some(7));
    /// assert!(cache.is_empty());
    /// ```
    pub fn remove<Q: ?Sized + Hash + Equivalent<K>>(&self, key: &Q) -> Option<&V> {
        self.remove_with(key, None::<fn(&K, &V) -> bool>)
    }

    /// Removes the entry of a key if `condition` holds for it, like [`Cache::remove_if`]; returns its value.
    ///
    /// # Panics
    ///
    /// As [`Cache::remove_if`].
    ///
    /// ```
    /// let cache: koel::Cache<&str, Vec<u32>> = koel::Cache::new(10);
    /// cache.insert("scores", vec![1, 2]).unwrap();
    /// let view = cache.pin();
    /// assert_eq!(view.remove_if("scores", |_, scores| scores.is_empty()), None); // the entry stays
    /// assert_eq!(view.remove_if("scores", |_, scores| scores.len() == 2), Some(&vec![1, 2]));
    /// ```
    pub fn remove_if<Q: ?Sized + Hash + Equivalent<K>>(
        &self,
        key: &Q,
        condition: impl FnOnce(&K, &V) -> bool,
    ) -> Option<&V> {
        self.remove_with(key, Some(condition))
    }

    fn remove_with<Q>(&self, key: &Q, condition: Option<impl FnOnce(&K, &V) -> bool>) -> Option<&V>
    where
        Q: ?Sized + Hash + Equivalent<K>,
    {
        // This view holds up entries that leave after it was made, and nothing else.
        let mut out = self.cache.departures(self.cache.enter_to_write());
        let entry = self.cache.take_out_if(key, &mut out, condition)?;
        // SAFETY: it was in the table after the view's guard was entered.
        Some(unsafe { Entry::<K, V>::deref(entry) }.pair().1)
    }
}

impl<'v, K, V, S, G: Guard> IntoIterator for &'v CacheView<'_, K, V, S, G> {
    type Item = (&'v K, &'v V);
    type IntoIter = ViewIter<'v, K, V, S>;

    fn into_iter(self) -> ViewIter<'v, K, V, S> {
        self.iter()
    }
}

impl<K, V, S, G> fmt::Debug for CacheView<'_, K, V, S, G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CacheView").field("cache", self.cache).finish_non_exhaustive()
    }
}
