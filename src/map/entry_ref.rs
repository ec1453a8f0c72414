//! [`Ref`]: an entry that was found, with the view that keeps it alive; [`MappedRef`]: a part of its value.

use core::fmt;
use core::ops::Deref;
use core::ptr::NonNull;

use ahash::RandomState;

use super::Pinned;
use crate::entries::{Entry, Kept, Part};
use crate::reclaim::LocalGuard;

/// An entry that was found, with the view that keeps it alive: from [`Pinned::into_get`] and its kin. It dereferences to its
/// value.
///
/// The entry stays as it was found, even if it is replaced or removed meanwhile; entries that are removed meanwhile are not
/// dropped before the `Ref` is. `Send` and `Sync`, if the view is.
pub struct Ref<'m, K, V, S = RandomState, G = LocalGuard<'m>>(Kept<Pinned<'m, K, V, S, G>, K, V>);

impl<'m, K, V, S, G> Ref<'m, K, V, S, G> {
    /// # Safety
    ///
    /// The entry was in this map's table at some time since the view was made.
    #[inline]
    pub(crate) unsafe fn new(entry: NonNull<Entry<K, V>>, pin: Pinned<'m, K, V, S, G>) -> Self {
        // SAFETY: the caller's; a view of the map has a guard of its collector from its creation on.
        Ref(unsafe { Kept::new(entry, pin) })
    }

    /// Returns the key, as it is in the map.
    #[inline]
    pub fn key(&self) -> &K {
        &self.0.entry().key
    }

    /// Returns the value.
    #[inline]
    pub fn value(&self) -> &V {
        &self.0.entry().value
    }

    /// Returns key and value.
    #[inline]
    pub fn pair(&self) -> (&K, &V) {
        self.0.entry().pair()
    }

    /// Returns the view, for further operations.
    #[inline]
    pub fn into_pin(self) -> Pinned<'m, K, V, S, G> {
        self.0.into_view()
    }

    /// Returns a part of the value, with the view. It is called as `Ref::map(found, ..)`: a method would hide the value's own.
    /// (The methods that `Ref` has do so: `(*found).key()` is the value's.)
    ///
    /// ```
    /// use std::ops::Deref;
    ///
    /// use koel::{HashMap, Ref};
    ///
    /// struct User {
    ///     name: String,
    /// }
    ///
    /// struct Users(HashMap<u32, User>);
    ///
    /// impl Users {
    ///     fn name(&self, id: u32) -> Option<impl Deref<Target = str>> {
    ///         let user = self.0.pin().into_get(&id)?;
    ///         Some(Ref::map(user, |user| user.name.as_str()))
    ///     }
    /// }
    ///
    /// let users = Users(HashMap::from([(7, User { name: "ada".to_string() })]));
    /// assert_eq!(&*users.name(7).unwrap(), "ada");
    /// ```
    #[inline]
    pub fn map<U: ?Sized>(this: Self, part: impl FnOnce(&V) -> &U) -> MappedRef<'m, U, K, V, S, G> {
        MappedRef(this.0.map(part))
    }

    /// Returns a part of the value, if there is one, with the view.
    ///
    /// # Errors
    ///
    /// If there is none: the entry.
    ///
    /// ```
    /// use koel::{HashMap, Ref};
    ///
    /// let lists = HashMap::from([("primes", vec![2, 3, 5])]);
    /// let first = Ref::try_map(lists.pin().into_get("primes").unwrap(), |list| list.first());
    /// assert_eq!(first.map(|first| *first).ok(), Some(2));
    /// let sixth = Ref::try_map(lists.pin().into_get("primes").unwrap(), |list| list.get(5));
    /// assert_eq!(sixth.unwrap_err().len(), 3);
    /// ```
    #[inline]
    pub fn try_map<U: ?Sized>(
        this: Self,
        part: impl FnOnce(&V) -> Option<&U>,
    ) -> Result<MappedRef<'m, U, K, V, S, G>, Self> {
        this.0.try_map(part).map(MappedRef).map_err(Ref)
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

impl<K, V: fmt::Display, S, G> fmt::Display for Ref<'_, K, V, S, G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value().fmt(f)
    }
}

/// A part of an entry's value, with the view that keeps it alive: from [`Ref::map`] and [`Ref::try_map`]. It dereferences to
/// the part.
///
/// The part stays as it was found, as a [`Ref`] does. `Send` and `Sync`, if the view is and the part is `Sync`.
pub struct MappedRef<'m, U: ?Sized, K, V, S = RandomState, G = LocalGuard<'m>>(
    Part<Pinned<'m, K, V, S, G>, U>,
);

impl<'m, U: ?Sized, K, V, S, G> MappedRef<'m, U, K, V, S, G> {
    /// Returns a part of the part, as [`Ref::map`] does.
    ///
    /// ```
    /// use koel::{HashMap, MappedRef, Ref};
    ///
    /// let map = HashMap::from([(1, (2, [3, 4]))]);
    /// let second = Ref::map(map.pin().into_get(&1).unwrap(), |pair| &pair.1);
    /// let last = MappedRef::map(second, |array| &array[1]);
    /// assert_eq!(*last, 4);
    /// ```
    #[inline]
    pub fn map<T: ?Sized>(this: Self, part: impl FnOnce(&U) -> &T) -> MappedRef<'m, T, K, V, S, G> {
        MappedRef(this.0.map(part))
    }

    /// Returns a part of the part, if there is one, as [`Ref::try_map`] does.
    ///
    /// # Errors
    ///
    /// If there is none: this reference.
    ///
    /// ```
    /// use koel::{HashMap, MappedRef, Ref};
    ///
    /// let map = HashMap::from([(1, ("primes", vec![2, 3, 5]))]);
    /// let list = Ref::map(map.pin().into_get(&1).unwrap(), |pair| &pair.1);
    /// let sixth = MappedRef::try_map(list, |list| list.get(5));
    /// assert_eq!(sixth.unwrap_err().len(), 3);
    /// ```
    #[inline]
    pub fn try_map<T: ?Sized>(
        this: Self,
        part: impl FnOnce(&U) -> Option<&T>,
    ) -> Result<MappedRef<'m, T, K, V, S, G>, Self> {
        this.0.try_map(part).map(MappedRef).map_err(MappedRef)
    }

    /// Returns the view, for further operations.
    #[inline]
    pub fn into_pin(this: Self) -> Pinned<'m, K, V, S, G> {
        this.0.into_view()
    }
}

impl<U: ?Sized, K, V, S, G> Deref for MappedRef<'_, U, K, V, S, G> {
    type Target = U;

    #[inline]
    fn deref(&self) -> &U {
        self.0.get()
    }
}

impl<U: ?Sized + fmt::Debug, K, V, S, G> fmt::Debug for MappedRef<'_, U, K, V, S, G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("MappedRef").field(&&**self).finish()
    }
}

impl<U: ?Sized + fmt::Display, K, V, S, G> fmt::Display for MappedRef<'_, U, K, V, S, G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
