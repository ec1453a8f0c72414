//! [`HashSet`]: the whole set; the methods that return references are on [`PinnedSet`](super::PinnedSet).

use core::fmt;
use core::hash::{BuildHasher, Hash};

use ahash::RandomState;
use equivalent::Equivalent;

use super::{PinnedSet, PinnedSetOwned, SetExtractIf, SetIntoIter, SetRef};
use crate::engine::CapacityError;
use crate::full::Full;
use crate::map::{self, ExtractIf, HashMap};

/// A concurrent hash set: a [`HashMap`] to `()`, with the method names of a set.
///
/// Look-ups take no lock and never wait; writers lock one segment of a few thousand slots. Methods that return yes or no need
/// no pin. References come from a pinned view, [`HashSet::pin`], or own their view, as a [`SetRef`] does. Several calls in a
/// row are cheaper on one view, too, and walks need one: `for value in &set.pin()`.
///
/// ```
/// let seen = koel::HashSet::new();
/// assert!(seen.insert("koel".to_string()) && !seen.insert("koel".to_string()));
/// assert!(seen.contains("koel"));
/// assert!(seen.remove("koel") && seen.is_empty());
/// ```
///
/// The documentation of [`HashMap`] holds for a set as well: its [memory](HashMap#memory), nine bytes for each slot, and the
/// value; [when removed values are dropped](HashMap#when-values-are-dropped); what may run [under a
/// lock](HashMap#under-a-lock); and the effects of [panics](HashMap#panics-in-your-code). The options are those of the map's
/// builder: [`HashSet::from`] makes a set from the map, and [`HashSet::as_map`] gives access to everything else.
///
/// ```
/// use koel::{HashMap, HashSet};
///
/// let bounded = HashSet::from(HashMap::builder().fixed_capacity(1_000).build());
/// assert!(bounded.insert(7_u64));
/// let full = (0..2_000).find_map(|n| bounded.checked_insert(n).err());
/// assert!(full.is_some_and(|full| full.key >= 1_000));
/// println!("{}", bounded.as_map().stats());
/// ```
///
/// # When to pick something else
///
/// A set that one thread uses at a time is better off as a `std::collections::HashSet`. Small plain data is faster and smaller
/// as the keys of an [`InlineMap`](crate::InlineMap) to `()`. Thousands of small sets, such as the neighbours of each node of a
/// graph, would have a table of some kilobytes each: as the values of a [`HashMap`], a `Mutex<std::collections::HashSet<_>>` or
/// a `Vec` is smaller and faster. Where one wrong "yes" in a hundred does no harm, a [`CuckooFilter`](crate::CuckooFilter)
/// takes about ten bits for each value.
#[doc(alias = "DashSet")]
pub struct HashSet<T, S = RandomState> {
    pub(super) map: HashMap<T, (), S>,
}

impl<T> HashSet<T> {
    /// Creates an empty set.
    ///
    /// # Panics
    ///
    /// If there is no memory for it.
    ///
    /// ```
    /// let set = koel::HashSet::new();
    /// assert!(set.insert(1) && set.len() == 1);
    /// ```
    #[must_use]
    #[track_caller]
    pub fn new() -> Self {
        HashMap::new().into()
    }

    /// Creates a set that takes this many values without growing, if their hashes spread evenly.
    ///
    /// # Panics
    ///
    /// Where [`HashSet::try_with_capacity`] returns an error, with its message.
    ///
    /// ```
    /// let set = koel::HashSet::with_capacity(1000);
    /// let slots = set.capacity();
    /// set.extend(0..1000);
    /// assert_eq!(set.capacity(), slots); // it did not have to grow
    /// ```
    #[must_use]
    #[track_caller]
    pub fn with_capacity(values: usize) -> Self {
        HashMap::with_capacity(values).into()
    }

    /// Creates a set that takes this many values without growing, if their hashes spread evenly.
    ///
    /// # Errors
    ///
    /// If this many are beyond the limit, which the error names, or there is no memory for them.
    ///
    /// ```
    /// let error = koel::HashSet::<u64>::try_with_capacity(usize::MAX).unwrap_err();
    /// assert_eq!(error.requested, usize::MAX);
    /// ```
    pub fn try_with_capacity(values: usize) -> Result<Self, CapacityError> {
        HashMap::try_with_capacity(values).map(Self::from)
    }
}

impl<T, S> HashSet<T, S> {
    /// Creates an empty set with this hash function; see [`HashMap::with_hasher`].
    ///
    /// # Panics
    ///
    /// If there is no memory for it.
    ///
    /// ```
    /// use std::hash::RandomState;
    ///
    /// let set: koel::HashSet<&str, RandomState> = koel::HashSet::with_hasher(RandomState::new());
    /// assert!(set.insert("value"));
    /// ```
    #[must_use]
    #[track_caller]
    pub fn with_hasher(hasher: S) -> Self {
        HashMap::with_hasher(hasher).into()
    }

    /// Creates a set with room for this many values, and this hash function.
    ///
    /// # Panics
    ///
    /// As [`HashSet::with_capacity`].
    ///
    /// ```
    /// let set = koel::HashSet::with_capacity_and_hasher(1000, std::hash::RandomState::new());
    /// assert!(set.insert(1) && set.capacity() >= 1000);
    /// ```
    #[must_use]
    #[track_caller]
    pub fn with_capacity_and_hasher(values: usize, hasher: S) -> Self {
        HashMap::with_capacity_and_hasher(values, hasher).into()
    }

    /// Creates a set with room for this many values, and this hash function.
    ///
    /// # Errors
    ///
    /// As [`HashSet::try_with_capacity`].
    ///
    /// ```
    /// let hasher = std::hash::RandomState::new();
    /// let set = koel::HashSet::try_with_capacity_and_hasher(1000, hasher)?;
    /// assert!(set.insert(1) && set.capacity() >= 1000);
    /// # Ok::<(), koel::CapacityError>(())
    /// ```
    pub fn try_with_capacity_and_hasher(values: usize, hasher: S) -> Result<Self, CapacityError> {
        HashMap::try_with_capacity_and_hasher(values, hasher).map(Self::from)
    }

    /// Returns a view of the set for this thread, which returns references and keeps the values behind them alive. It costs
    /// some nanoseconds; it is not `Send`: see [`HashSet::pin_owned`].
    ///
    /// ```
    /// let set = koel::HashSet::from(["one".to_string(), "two".to_string()]);
    /// let pin = set.pin();
    /// let one: &String = pin.get("one").unwrap();
    /// set.clear();
    /// assert_eq!(one, "one"); // the view keeps it
    /// ```
    #[inline]
    pub fn pin(&self) -> PinnedSet<'_, T, S> {
        PinnedSet(self.map.pin())
    }

    /// Returns a view that may move between threads, as [`HashMap::pin_owned`] does.
    ///
    /// ```
    /// let set = koel::HashSet::from([1, 2]);
    /// let pin = set.pin_owned();
    /// std::thread::scope(|scope| {
    ///     scope.spawn(move || assert_eq!(pin.get(&1), Some(&1)));
    /// });
    /// ```
    pub fn pin_owned(&self) -> PinnedSetOwned<'_, T, S> {
        PinnedSet(self.map.pin_owned())
    }

    /// Returns the number of values: exact while nobody writes to or resizes the set, and never less than the number of values
    /// that are present throughout. Looks at every segment.
    pub fn len(&self) -> usize {
        self.map.len()
    }

    /// Returns whether there are no values: never `true` if a value is present throughout.
    pub fn is_empty(&self) -> bool {
        self.map.is_empty()
    }

    /// Returns the number of slots, which is more than the number of values that fit: see [`HashMap::capacity`].
    pub fn capacity(&self) -> usize {
        self.map.capacity()
    }

    /// Returns the hash function.
    pub fn hasher(&self) -> &S {
        self.map.hasher()
    }

    /// Removes all values, one segment after the other.
    ///
    /// # Panics
    ///
    /// In a closure that runs under the set's lock: see [`HashMap`](HashMap#under-a-lock).
    ///
    /// ```
    /// let set = koel::HashSet::from([1, 2]);
    /// set.clear();
    /// assert!(set.is_empty());
    /// ```
    pub fn clear(&self) {
        self.map.clear();
    }

    /// Drops all removed values, as far as no older pin lives, as [`HashMap::flush`] does.
    ///
    /// # Panics
    ///
    /// In a closure that runs under the set's lock: see [`HashMap`](HashMap#under-a-lock).
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// let kept = Arc::new(7);
    /// let set = koel::HashSet::from([Arc::clone(&kept)]);
    /// assert!(set.remove(&7) && Arc::strong_count(&kept) == 2); // not dropped yet
    /// set.flush();
    /// assert_eq!(Arc::strong_count(&kept), 1);
    /// ```
    pub fn flush(&self) {
        self.map.flush();
    }

    /// Returns the map that the set consists of.
    ///
    /// ```
    /// let set: koel::HashSet<u64> = (0..1000).collect();
    /// assert!(set.as_map().memory_usage() > 9_000);
    /// assert_eq!(set.as_map().stats().overflow, 0);
    /// ```
    pub fn as_map(&self) -> &HashMap<T, (), S> {
        &self.map
    }

    /// Returns the map that the set consisted of. [`HashSet::from`] makes a set of it again.
    ///
    /// ```
    /// let map = koel::HashSet::from([1, 2]).into_map();
    /// assert_eq!(map.pin().get(&1), Some(&()));
    /// ```
    pub fn into_map(self) -> HashMap<T, (), S> {
        self.map
    }
}

impl<T, S: BuildHasher> HashSet<T, S> {
    /// Returns whether the value, or an equal one, is present.
    ///
    /// ```
    /// let set = koel::HashSet::from(["one".to_string()]);
    /// assert!(set.contains("one") && !set.contains("two"));
    /// ```
    #[doc(alias = "contains_key")]
    #[inline]
    pub fn contains<Q: ?Sized + Hash + Equivalent<T>>(&self, value: &Q) -> bool {
        self.pin().contains(value)
    }

    /// Returns the value that is equal to this one, with a view that keeps it alive: to be kept or returned from a function.
    ///
    /// ```
    /// let set = koel::HashSet::from(["one".to_string()]);
    /// let one = set.get("one").unwrap();
    /// set.remove("one");
    /// assert_eq!(*one, "one");
    /// ```
    #[inline]
    pub fn get<Q: ?Sized + Hash + Equivalent<T>>(&self, value: &Q) -> Option<SetRef<'_, T, S>> {
        self.pin().into_get(value)
    }
}

impl<T: Hash + Eq, S: BuildHasher> HashSet<T, S> {
    /// Adds a value, and returns whether it is new. If an equal one is present, that one stays, and this one is dropped: the
    /// call then costs no more than [`HashSet::contains`]. Of several threads that insert equal values at the same moment, one
    /// is told that its value is new.
    ///
    /// # Panics
    ///
    /// If the set has a fixed capacity and is full, or cannot grow for lack of memory: see [`HashSet::checked_insert`]. And, if
    /// the value is new, in a closure that runs under the set's lock: see [`HashMap`](HashMap#under-a-lock).
    ///
    /// ```
    /// let set = koel::HashSet::new();
    /// assert!(set.insert(1));
    /// assert!(!set.insert(1));
    /// ```
    #[inline]
    #[track_caller]
    pub fn insert(&self, value: T) -> bool {
        self.pin().insert(value)
    }

    /// Adds a value, as [`HashSet::insert`] does, and returns whether it is new; or hands it back if there is no room. If an
    /// equal one is present, that one stays, which needs no room, and this one is dropped.
    ///
    /// # Errors
    ///
    /// [`Full`], with the value as its key, if no equal one is present and the set has a fixed capacity and is full, or if
    /// there is no memory for the value or to grow. The set is as it was. A set of fixed capacity to which several threads
    /// write may report this a few values early.
    ///
    /// # Panics
    ///
    /// In a closure that runs under the set's lock: see [`HashMap`](HashMap#under-a-lock).
    ///
    /// ```
    /// use koel::{HashMap, HashSet};
    ///
    /// let names = HashSet::from(HashMap::builder().fixed_capacity(2).build());
    /// assert_eq!(names.checked_insert("0".to_string()), Ok(true));
    /// let full = (1..9).find_map(|n| names.checked_insert(n.to_string()).err()).unwrap();
    /// assert!(!names.contains(&full.key));
    /// assert_eq!(names.checked_insert("0".to_string()), Ok(false));
    /// ```
    #[inline]
    pub fn checked_insert(&self, value: T) -> Result<bool, Full<T>> {
        self.pin().checked_insert(value)
    }

    /// Replaces the value that is equal to this one, if there is one, and returns the replaced value, with a view that keeps it
    /// alive.
    ///
    /// # Panics
    ///
    /// As [`HashSet::insert`].
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// let (first, second) = (Arc::new(7), Arc::new(7));
    /// let set = koel::HashSet::from([Arc::clone(&first)]);
    /// let old = set.replace(Arc::clone(&second)).unwrap();
    /// assert!(Arc::ptr_eq(&old, &first) && Arc::ptr_eq(&set.get(&7).unwrap(), &second));
    /// ```
    #[track_caller]
    pub fn replace(&self, value: T) -> Option<SetRef<'_, T, S>> {
        self.map.pin().into_insert(value, ()).map(SetRef)
    }

    /// Removes a value, and returns whether it was present. Of several threads that remove it at the same moment, one is told
    /// that it was.
    ///
    /// # Panics
    ///
    /// In a closure that runs under the set's lock: see [`HashMap`](HashMap#under-a-lock).
    ///
    /// ```
    /// let set = koel::HashSet::from(["one".to_string()]);
    /// assert!(set.remove("one") && !set.remove("one"));
    /// ```
    #[inline]
    pub fn remove<Q: ?Sized + Hash + Equivalent<T>>(&self, value: &Q) -> bool {
        self.pin().remove(value)
    }

    /// Removes a value, and returns the one that was present, with a view that keeps it alive. It is not returned by value, as
    /// others may be looking at it; with exclusive access to the set, [`into_map`](HashSet::into_map) and
    /// [`HashMap::take_entry`](crate::HashMap::take_entry) return it by value.
    ///
    /// # Panics
    ///
    /// As [`HashSet::remove`].
    ///
    /// ```
    /// let set = koel::HashSet::from(["one".to_string()]);
    /// assert_eq!(set.take("one").as_deref(), Some(&"one".to_string()));
    /// assert!(set.take("one").is_none());
    /// ```
    pub fn take<Q: ?Sized + Hash + Equivalent<T>>(&self, value: &Q) -> Option<SetRef<'_, T, S>> {
        self.map.pin().into_remove(value).map(SetRef)
    }

    /// Removes a value if `condition` holds for the present one, and returns whether it did. `condition` runs at most once,
    /// under the writer lock of the value's segment.
    ///
    /// # Panics
    ///
    /// If `condition` panics or writes to the same set, which is then as it was; and in a closure that runs under the set's
    /// lock: see [`HashMap`](HashMap#under-a-lock).
    ///
    /// ```
    /// let names = koel::HashSet::from(["ada".to_string()]);
    /// assert!(!names.remove_if("ada", |name| name.len() > 3) && !names.remove_if("bob", |_| true));
    /// assert!(names.remove_if("ada", |name| name.len() == 3) && names.is_empty());
    /// ```
    pub fn remove_if<Q: ?Sized + Hash + Equivalent<T>>(
        &self,
        value: &Q,
        condition: impl FnOnce(&T) -> bool,
    ) -> bool {
        self.pin().remove_if(value, condition)
    }

    /// Keeps the values for which `keep` holds and removes the others, as [`Pinned::retain`](crate::Pinned::retain) does:
    /// `keep` is called with no lock held.
    ///
    /// # Panics
    ///
    /// In a closure that runs under the set's lock: see [`HashMap`](HashMap#under-a-lock).
    ///
    /// ```
    /// let set: koel::HashSet<u32> = (0..10).collect();
    /// set.retain(|n| n % 2 == 0);
    /// assert_eq!(set.len(), 5);
    /// ```
    pub fn retain(&self, mut keep: impl FnMut(&T) -> bool) {
        self.map.retain(|value, ()| keep(value));
    }

    /// Takes out the values for which `condition` is true, by value, as the iterator reaches them: with exclusive access to the
    /// set, as [`HashMap::extract_if`] does. Values that the iterator has not reached when it is dropped stay. For a shared set
    /// there is [`HashSet::retain`].
    ///
    /// ```
    /// let mut set: koel::HashSet<String> = ["ant", "bee", "asp"].map(String::from).into();
    /// let mut taken: Vec<String> = set.extract_if(|name| name.starts_with('a')).collect();
    /// taken.sort();
    /// assert_eq!(taken, ["ant", "asp"]);
    /// assert_eq!(set.len(), 1);
    /// ```
    pub fn extract_if<F: FnMut(&T) -> bool>(&mut self, condition: F) -> SetExtractIf<'_, T, F, S> {
        SetExtractIf(ExtractIf::new(&mut self.map, condition))
    }

    /// Adds all values, 32 at a time, so that their waits for memory overlap, as [`Pinned::extend`](crate::Pinned::extend)
    /// does. If an equal one is present, that one stays, as with [`HashSet::insert`]; of equal values among them, the first
    /// stays. With exclusive access to the set, `Extend::extend(&mut set, values)` takes no locks.
    ///
    /// # Panics
    ///
    /// As [`HashSet::insert`].
    ///
    /// ```
    /// let set = koel::HashSet::from([1, 2]);
    /// set.extend([2, 3]);
    /// assert_eq!(set.len(), 3);
    /// ```
    #[track_caller]
    pub fn extend(&self, values: impl IntoIterator<Item = T>) {
        map::extend(&self.pin(), pairs(values));
    }

    /// Makes room for `additional` more values, as [`HashMap::reserve`] does.
    ///
    /// # Panics
    ///
    /// If there is no memory for them, and in a closure that runs under the set's lock.
    ///
    /// ```
    /// let set: koel::HashSet<u64> = koel::HashSet::new();
    /// set.reserve(10_000);
    /// assert!(set.capacity() >= 10_000);
    /// ```
    #[track_caller]
    pub fn reserve(&self, additional: usize) {
        self.map.reserve(additional);
    }

    /// As [`HashSet::reserve`], but returns an error if there is no room to be had.
    ///
    /// # Errors
    ///
    /// [`CapacityError`].
    ///
    /// # Panics
    ///
    /// In a closure that runs under the set's lock: see [`HashMap`](HashMap#under-a-lock).
    ///
    /// ```
    /// let set: koel::HashSet<u64> = koel::HashSet::new();
    /// assert!(set.try_reserve(10_000).is_ok() && set.try_reserve(usize::MAX).is_err());
    /// ```
    #[track_caller]
    pub fn try_reserve(&self, additional: usize) -> Result<(), CapacityError> {
        self.map.try_reserve(additional)
    }

    /// Gives back memory, as [`HashMap::shrink_to_fit`] does.
    ///
    /// # Panics
    ///
    /// In a closure that runs under the set's lock: see [`HashMap`](HashMap#under-a-lock).
    ///
    /// ```
    /// let set: koel::HashSet<u64> = (0..100_000).collect();
    /// set.retain(|n| *n < 10);
    /// let before = set.capacity();
    /// set.shrink_to_fit();
    /// assert!(set.capacity() < before / 10);
    /// ```
    pub fn shrink_to_fit(&self) {
        self.map.shrink_to_fit();
    }
}

/// The values as a map stores them.
pub(super) fn pairs<T>(values: impl IntoIterator<Item = T>) -> impl Iterator<Item = (T, ())> {
    values.into_iter().map(|value| (value, ()))
}

/// The set of a map's keys: with the map's options, and without a copy.
impl<T, S> From<HashMap<T, (), S>> for HashSet<T, S> {
    fn from(map: HashMap<T, (), S>) -> Self {
        HashSet { map }
    }
}

impl<T: Hash + Eq, const N: usize> From<[T; N]> for HashSet<T> {
    #[track_caller]
    fn from(values: [T; N]) -> Self {
        values.into_iter().collect()
    }
}

impl<T, S: Default> Default for HashSet<T, S> {
    #[track_caller]
    fn default() -> Self {
        Self::with_hasher(S::default())
    }
}

/// Walks over the set. Panics in a closure that runs under its lock: see [`HashMap`](HashMap#under-a-lock).
impl<T: fmt::Debug, S> fmt::Debug for HashSet<T, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.pin().fmt(f)
    }
}

/// As [`HashMap`]'s: copies every value that is present throughout, into a set with the same options.
impl<T: Clone + Hash + Eq, S: Clone + BuildHasher> Clone for HashSet<T, S> {
    #[track_caller]
    fn clone(&self) -> Self {
        self.map.clone().into()
    }
}

/// Sets are equal if they have the same values; nobody should be writing to either meanwhile. Walks over the first: panics in a
/// closure that runs under its lock.
impl<T: Hash + Eq, S: BuildHasher> PartialEq for HashSet<T, S> {
    fn eq(&self, other: &Self) -> bool {
        self.map == other.map
    }
}

impl<T: Hash + Eq, S: BuildHasher> Eq for HashSet<T, S> {}

/// Collects values into a set made for as many as the iterator promises. Of equal values the first stays. Panics if there is no
/// memory for them.
impl<T: Hash + Eq, S: BuildHasher + Default> FromIterator<T> for HashSet<T, S> {
    #[track_caller]
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> Self {
        let mut set = Self::default();
        map::extend_alone(&mut set, pairs(values));
        set
    }
}

/// Takes no locks, as nobody else uses the set; otherwise as [`HashSet::extend`]: present values stay.
impl<T: Hash + Eq, S: BuildHasher> Extend<T> for HashSet<T, S> {
    #[track_caller]
    fn extend<I: IntoIterator<Item = T>>(&mut self, values: I) {
        map::extend_alone(self, pairs(values));
    }
}

/// Takes no locks, as nobody else uses the set; otherwise as [`HashSet::extend`]: present values stay.
impl<'a, T: Hash + Eq + Copy + 'a, S: BuildHasher> Extend<&'a T> for HashSet<T, S> {
    #[track_caller]
    fn extend<I: IntoIterator<Item = &'a T>>(&mut self, values: I) {
        Extend::extend(self, values.into_iter().copied());
    }
}

impl<T: Hash + Eq, S: BuildHasher> Extend<T> for &HashSet<T, S> {
    #[track_caller]
    fn extend<I: IntoIterator<Item = T>>(&mut self, values: I) {
        HashSet::extend(self, values);
    }
}

impl<'a, T: Hash + Eq + Copy + 'a, S: BuildHasher> Extend<&'a T> for &HashSet<T, S> {
    #[track_caller]
    fn extend<I: IntoIterator<Item = &'a T>>(&mut self, values: I) {
        HashSet::extend(self, values.into_iter().copied());
    }
}

impl<T, S> IntoIterator for HashSet<T, S> {
    type Item = T;
    type IntoIter = SetIntoIter<T>;

    fn into_iter(self) -> SetIntoIter<T> {
        SetIntoIter(self.map.into_iter())
    }
}
