//! [`PinnedSet`]: a view of a set, which returns references.

use core::convert::Infallible;
use core::fmt;
use core::hash::{BuildHasher, Hash};
use core::ptr::NonNull;

use ahash::RandomState;
use equivalent::Equivalent;

use super::{SetDrain, SetIterWith, SetRef};
use crate::entries::Entry;
use crate::full::Full;
use crate::map::{IterWith, Keys, Pinned, Ref};
use crate::outcome::expect_room;
use crate::reclaim::{Guard, LocalGuard, OwnedGuard};

/// A view of a [`HashSet`](crate::HashSet) that keeps what it returns alive: from [`HashSet::pin`](crate::HashSet::pin).
///
/// A view is not `Send`, though walks over it are, except draining ones. Any number of views may exist at a time. A
/// [`PinnedSetOwned`] may move between threads.
///
/// ```compile_fail
/// let set = koel::HashSet::from([1]);
/// let one = set.pin().get(&1); // the view ends here, and so does the reference
/// println!("{one:?}");
/// ```
pub struct PinnedSet<'s, T, S = RandomState, G = LocalGuard<'s>>(pub(super) Pinned<'s, T, (), S, G>);

/// A [`PinnedSet`] that is `Send` and `Sync`, if the set is: from [`HashSet::pin_owned`](crate::HashSet::pin_owned).
pub type PinnedSetOwned<'s, T, S = RandomState> = PinnedSet<'s, T, S, OwnedGuard<'s>>;

impl<'s, T, S, G: Guard> PinnedSet<'s, T, S, G> {
    /// Returns the view of the map that the set consists of, for all other operations on a map.
    ///
    /// ```
    /// let set = koel::HashSet::from([1]);
    /// assert!(set.pin().as_map().may_contain(&1));
    /// ```
    pub fn as_map(&self) -> &Pinned<'s, T, (), S, G> {
        &self.0
    }

    /// Returns the number of values, as [`HashSet::len`](crate::HashSet::len) does.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether there are no values: never `true` if a value is present throughout.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Walks over all values, in no particular order, as [`Pinned::iter`] does: each that is present throughout is seen exactly
    /// once, and no lock is held while you look at it.
    ///
    /// # Panics
    ///
    /// When the walk goes on in a closure that runs under the set's lock: see [`HashMap`](crate::HashMap#under-a-lock).
    ///
    /// ```
    /// let set = koel::HashSet::from([1, 2]);
    /// let pin = set.pin();
    /// assert_eq!(pin.iter().sum::<i32>(), 3);
    /// for n in &pin {
    ///     pin.remove(n);
    /// }
    /// assert!(set.is_empty());
    /// ```
    pub fn iter(&self) -> Keys<'_, T, ()> {
        self.0.keys()
    }

    /// Walks over clones of all values, as [`PinnedSet::iter`] does, and owns the view, as [`Pinned::into_iter_cloned`] does:
    /// for an iterator that is kept, or returned from the function that has made the pin.
    ///
    /// # Panics
    ///
    /// As [`Pinned::into_iter_cloned`].
    ///
    /// ```
    /// struct Tags(koel::HashSet<String>);
    ///
    /// impl Tags {
    ///     fn beginning(&self, with: char) -> impl Iterator<Item = String> {
    ///         self.0.pin().into_iter_cloned().filter(move |tag| tag.starts_with(with))
    ///     }
    /// }
    ///
    /// let tags = Tags(koel::HashSet::from(["red".to_string(), "blue".to_string()]));
    /// assert_eq!(tags.beginning('b').collect::<Vec<_>>(), ["blue"]);
    /// ```
    pub fn into_iter_cloned(self) -> SetIterWith<'s, T, fn(&T) -> T, S, G>
    where
        T: Clone,
    {
        self.into_iter_with(T::clone)
    }

    /// Walks over the results of `f` for each value, as [`PinnedSet::iter`] does, and owns the view, as
    /// [`Pinned::into_iter_with`] does: for values that cannot be cloned, or of which only a part is needed.
    ///
    /// # Panics
    ///
    /// As [`Pinned::into_iter_with`].
    ///
    /// ```
    /// struct Tags(koel::HashSet<String>);
    ///
    /// impl Tags {
    ///     fn lengths(&self) -> impl Iterator<Item = usize> {
    ///         self.0.pin().into_iter_with(|tag| tag.len())
    ///     }
    /// }
    ///
    /// let tags = Tags(koel::HashSet::from(["red".to_string(), "blue".to_string()]));
    /// assert_eq!(tags.lengths().sum::<usize>(), 7);
    /// ```
    pub fn into_iter_with<U, F: FnMut(&T) -> U>(self, f: F) -> SetIterWith<'s, T, F, S, G> {
        SetIterWith(IterWith::new(self.0, f))
    }

    /// Removes all values, and walks over the removed ones, as [`Pinned::drain`] does. A segment is emptied when the walk
    /// reaches it, or when the iterator is dropped.
    ///
    /// # Panics
    ///
    /// As [`Pinned::drain`].
    ///
    /// ```
    /// let set = koel::HashSet::from([1]);
    /// assert_eq!(set.pin().drain().collect::<Vec<_>>(), [&1]);
    /// assert!(set.is_empty());
    /// ```
    pub fn drain(&self) -> SetDrain<'_, T, G> {
        SetDrain(self.0.drain())
    }

    /// Removes all values, one segment after the other.
    ///
    /// # Panics
    ///
    /// In a closure that runs under the set's lock: see [`HashMap`](crate::HashMap#under-a-lock).
    ///
    /// ```
    /// let set = koel::HashSet::from([1, 2]);
    /// let pin = set.pin();
    /// let one = pin.get(&1);
    /// pin.clear();
    /// assert_eq!((pin.len(), one), (0, Some(&1))); // what was read stays readable
    /// ```
    pub fn clear(&self) {
        self.0.clear();
    }
}

impl<'s, T, S: BuildHasher, G: Guard> PinnedSet<'s, T, S, G> {
    /// Returns whether the value, or an equal one, is present.
    ///
    /// ```
    /// let names = koel::HashSet::from(["ada".to_string()]);
    /// let pin = names.pin(); // once for both
    /// assert!(pin.contains("ada") && !pin.contains("bob"));
    /// ```
    #[inline]
    pub fn contains<Q: ?Sized + Hash + Equivalent<T>>(&self, value: &Q) -> bool {
        self.0.contains_key(value)
    }

    /// Returns the value that is equal to this one.
    ///
    /// ```
    /// let names = koel::HashSet::from(["ada".to_string()]);
    /// assert_eq!(names.pin().get("ada").map(String::as_str), Some("ada"));
    /// ```
    #[inline]
    pub fn get<Q: ?Sized + Hash + Equivalent<T>>(&self, value: &Q) -> Option<&T> {
        self.0.get_key_value(value).map(|(there, ())| there)
    }

    /// Returns the value that is equal to this one, with the view: to be kept or to be returned from the function that has made
    /// the pin. From a [`pin_owned`](crate::HashSet::pin_owned) it is `Send`.
    ///
    /// ```
    /// let names = koel::HashSet::from(["ada".to_string()]);
    /// let ada = names.pin_owned().into_get("ada").unwrap();
    /// std::thread::scope(|scope| {
    ///     scope.spawn(move || assert_eq!(*ada, "ada"));
    /// });
    /// ```
    #[inline]
    pub fn into_get<Q: ?Sized + Hash + Equivalent<T>>(self, value: &Q) -> Option<SetRef<'s, T, S, G>> {
        self.0.into_get(value).map(SetRef)
    }

    /// Looks up whether many values are present: `out[i]` becomes the result of `contains(&values[i])`. Their waits for memory
    /// overlap, as in [`Pinned::contains_many`].
    ///
    /// # Panics
    ///
    /// If the slices differ in length.
    ///
    /// ```
    /// let set = koel::HashSet::from([1, 2]);
    /// let mut present = [false; 3];
    /// set.pin().contains_many(&[2, 3, 1], &mut present);
    /// assert_eq!(present, [true, false, true]);
    /// ```
    #[inline]
    #[track_caller]
    pub fn contains_many<Q: Hash + Equivalent<T>>(&self, values: &[Q], out: &mut [bool]) {
        self.0.contains_many(values, out);
    }

    /// Looks up whether many values, given by reference, are present, as [`PinnedSet::contains_many`] does.
    ///
    /// # Panics
    ///
    /// If the slices differ in length.
    ///
    /// ```
    /// let names = koel::HashSet::from(["ada".to_string()]);
    /// let mut present = [false; 2];
    /// names.pin().contains_many_ref(&["ada", "bob"], &mut present);
    /// assert_eq!(present, [true, false]);
    /// ```
    #[inline]
    #[track_caller]
    pub fn contains_many_ref<Q: ?Sized + Hash + Equivalent<T>>(&self, values: &[&Q], out: &mut [bool]) {
        self.0.contains_many_ref(values, out);
    }
}

impl<'s, T: Hash + Eq, S: BuildHasher, G: Guard> PinnedSet<'s, T, S, G> {
    /// Adds a value, and returns whether it is new. If an equal one is present, that one stays: see
    /// [`HashSet::insert`](crate::HashSet::insert).
    ///
    /// # Panics
    ///
    /// As [`Pinned::insert`].
    ///
    /// ```
    /// let set = koel::HashSet::new();
    /// let pin = set.pin();
    /// assert!(pin.insert(1) && !pin.insert(1));
    /// ```
    #[inline]
    #[track_caller]
    pub fn insert(&self, value: T) -> bool {
        expect_room(self.checked_insert(value))
    }

    /// Adds a value, as [`PinnedSet::insert`] does, or hands it back if there is no room.
    ///
    /// # Errors
    ///
    /// [`Full`], as [`HashSet::checked_insert`](crate::HashSet::checked_insert).
    ///
    /// # Panics
    ///
    /// In a closure that runs under the set's lock: see [`HashMap`](crate::HashMap#under-a-lock).
    ///
    /// ```
    /// use koel::{HashMap, HashSet};
    ///
    /// let set = HashSet::from(HashMap::builder().fixed_capacity(2).build());
    /// let pin = set.pin();
    /// let full = (0..9).find_map(|n| pin.checked_insert(n).err()).unwrap();
    /// assert!(pin.checked_insert(0) == Ok(false) && !pin.contains(&full.key));
    /// ```
    #[inline]
    pub fn checked_insert(&self, value: T) -> Result<bool, Full<T>> {
        self.0.find_or_add(value, || ()).map(|(_, is_new)| is_new)
    }

    /// Returns the value in the set that is equal to this one: the one that was present, or else this one, which has then been
    /// added. If there was one, the call costs no more than [`PinnedSet::get`].
    ///
    /// # Panics
    ///
    /// As [`Pinned::insert`].
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// let names: koel::HashSet<Arc<str>> = koel::HashSet::new();
    /// let pin = names.pin();
    /// let (first, second) = (pin.get_or_insert(Arc::from("ada")), pin.get_or_insert(Arc::from("ada")));
    /// assert!(Arc::ptr_eq(first, second));
    /// ```
    #[track_caller]
    pub fn get_or_insert(&self, value: T) -> &T {
        let (entry, _) = expect_room(self.0.find_or_add(value, || ()));
        &entry.key
    }

    /// Returns the value in the set that is equal to this one: the one that was present, or else the result of `own` for this
    /// one, which has then been added. If there was one, the call costs no more than [`PinnedSet::get`]; the value is hashed
    /// once in any case.
    ///
    /// `own` runs at most once, under no lock: if several threads do so at the same moment, the values of some are dropped.
    ///
    /// # Panics
    ///
    /// If `own` panics, or returns a value that is not equal to the one that it was given: the set is as it was. And as
    /// [`Pinned::insert`].
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// let names: koel::HashSet<Arc<str>> = koel::HashSet::new();
    /// let pin = names.pin();
    /// let ada = pin.get_or_insert_with("ada", Arc::from);
    /// assert!(Arc::ptr_eq(ada, pin.get_or_insert_with("ada", |_| unreachable!())));
    /// ```
    #[track_caller]
    pub fn get_or_insert_with<'q, Q: ?Sized + Hash + Equivalent<T>>(
        &self,
        value: &'q Q,
        own: impl FnOnce(&'q Q) -> T,
    ) -> &T {
        &self.find_or_own(value, own).key
    }

    /// Returns the value in the set that is equal to this one, as [`PinnedSet::get_or_insert_with`] does, with the view: to be
    /// kept or to be returned from the function that has made the pin. From a [`pin_owned`](crate::HashSet::pin_owned) it is
    /// `Send`.
    ///
    /// # Panics
    ///
    /// As [`PinnedSet::get_or_insert_with`].
    ///
    /// ```
    /// use std::ops::Deref;
    ///
    /// struct Names(koel::HashSet<String>);
    ///
    /// impl Names {
    ///     fn intern(&self, name: &str) -> impl Deref<Target = String> {
    ///         self.0.pin().into_get_or_insert_with(name, str::to_owned)
    ///     }
    /// }
    ///
    /// let names = Names(koel::HashSet::new());
    /// let (first, second) = (names.intern("ada"), names.intern("ada"));
    /// assert!(std::ptr::eq(&*first, &*second) && *first == "ada");
    /// ```
    #[track_caller]
    pub fn into_get_or_insert_with<'q, Q: ?Sized + Hash + Equivalent<T>>(
        self,
        value: &'q Q,
        own: impl FnOnce(&'q Q) -> T,
    ) -> SetRef<'s, T, S, G> {
        let entry = NonNull::from(self.find_or_own(value, own));
        // SAFETY: found or inserted by this view.
        SetRef(unsafe { Ref::new(entry, self.0) })
    }

    /// Finds the entry of the value that is equal to this one, after inserting the result of `own` for it if there was none.
    #[inline(always)]
    #[track_caller]
    fn find_or_own<'q, Q: ?Sized + Hash + Equivalent<T>>(
        &self,
        value: &'q Q,
        own: impl FnOnce(&'q Q) -> T,
    ) -> &Entry<T, ()> {
        let digest = self.0.digest(value);
        if let Some(entry) = self.0.find_entry_of(digest, value) {
            return entry;
        }
        let own = own(value);
        assert!(value.equivalent(&own), "what was made for a value is not equal to it");
        let Ok((entry, _)) = expect_room(self.0.try_find_or_add_of(digest, own, || Ok::<(), Infallible>(())));
        entry
    }

    /// Replaces the value that is equal to this one, if there is one, and returns the replaced value.
    ///
    /// # Panics
    ///
    /// As [`Pinned::insert`].
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// let (first, second) = (Arc::new(7), Arc::new(7));
    /// let set = koel::HashSet::from([Arc::clone(&first)]);
    /// let pin = set.pin();
    /// assert!(pin.replace(Arc::clone(&second)).is_some_and(|old| Arc::ptr_eq(old, &first)));
    /// assert!(Arc::ptr_eq(pin.get(&7).unwrap(), &second));
    /// ```
    #[track_caller]
    pub fn replace(&self, value: T) -> Option<&T> {
        self.0.insert_entry(value, ()).map(|old| old.pair().0)
    }

    /// Removes a value, and returns whether it was present.
    ///
    /// # Panics
    ///
    /// In a closure that runs under the set's lock: see [`HashMap`](crate::HashMap#under-a-lock).
    ///
    /// ```
    /// let set = koel::HashSet::from([1]);
    /// let pin = set.pin();
    /// assert!(pin.remove(&1) && !pin.remove(&1));
    /// ```
    #[inline]
    pub fn remove<Q: ?Sized + Hash + Equivalent<T>>(&self, value: &Q) -> bool {
        self.0.remove(value).is_some()
    }

    /// Removes a value, and returns the one that was present. It is dropped when nobody can look at it any more.
    ///
    /// # Panics
    ///
    /// In a closure that runs under the set's lock: see [`HashMap`](crate::HashMap#under-a-lock).
    ///
    /// ```
    /// let names = koel::HashSet::from(["ada".to_string()]);
    /// let pin = names.pin();
    /// assert_eq!((pin.take("ada"), pin.take("ada")), (Some(&"ada".to_string()), None));
    /// ```
    pub fn take<Q: ?Sized + Hash + Equivalent<T>>(&self, value: &Q) -> Option<&T> {
        self.0.remove_entry(value).map(|(value, ())| value)
    }

    /// Removes a value if `condition` holds for the present one, and returns whether it did: see
    /// [`HashSet::remove_if`](crate::HashSet::remove_if).
    ///
    /// # Panics
    ///
    /// If `condition` panics or writes to the same set, which is then as it was; and in a closure that runs under the set's
    /// lock.
    ///
    /// ```
    /// let set = koel::HashSet::from([1]);
    /// let pin = set.pin();
    /// assert!(!pin.remove_if(&1, |n| *n > 1) && pin.remove_if(&1, |n| *n == 1));
    /// ```
    pub fn remove_if<Q: ?Sized + Hash + Equivalent<T>>(
        &self,
        value: &Q,
        condition: impl FnOnce(&T) -> bool,
    ) -> bool {
        matches!(self.0.remove_if(value, |value, ()| condition(value)), Ok(Some(_)))
    }

    /// Keeps the values for which `keep` holds, as [`HashSet::retain`](crate::HashSet::retain) does.
    ///
    /// # Panics
    ///
    /// In a closure that runs under the set's lock: see [`HashMap`](crate::HashMap#under-a-lock).
    ///
    /// ```
    /// let set: koel::HashSet<u32> = (0..10).collect();
    /// set.pin().retain(|n| n % 2 == 0);
    /// assert_eq!(set.len(), 5);
    /// ```
    pub fn retain(&self, mut keep: impl FnMut(&T) -> bool) {
        self.0.retain(|value, ()| keep(value));
    }
}

/// Walks over the set. Panics in a closure that runs under its lock, as [`PinnedSet::iter`].
impl<T: fmt::Debug, S, G: Guard> fmt::Debug for PinnedSet<'_, T, S, G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

impl<'p, T, S, G: Guard> IntoIterator for &'p PinnedSet<'_, T, S, G> {
    type Item = &'p T;
    type IntoIter = Keys<'p, T, ()>;

    fn into_iter(self) -> Keys<'p, T, ()> {
        self.iter()
    }
}
