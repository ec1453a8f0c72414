//! [`Pinned`]: writes by a reference to a key. An entry that they make has a key that is made from the reference, or a clone of
//! the stored key.

use core::convert::Infallible;
use core::hash::{BuildHasher, Hash};
use core::ptr::NonNull;

use equivalent::Equivalent;

use super::pinned_checked::FoundOrAdded;
use super::{Full, Pinned, Ref};
use crate::outcome::{Compute, Operation, expect_room};
use crate::reclaim::Guard;
use crate::to_key::ToKey;

impl<'m, K: Hash + Eq, V, S: BuildHasher, G: Guard> Pinned<'m, K, V, S, G> {
    /// As [`Pinned::get_or_insert_with`], by a reference, from which a key is made ([`ToKey`]) if the key is absent.
    ///
    /// # Panics
    ///
    /// As [`Pinned::get_or_insert_with`].
    ///
    /// ```
    /// let map: koel::HashMap<String, u32> = koel::HashMap::new();
    /// assert_eq!(*map.pin().get_or_insert_with_ref("key", || 7), 7);
    /// assert_eq!(*map.pin().get_or_insert_with_ref("key", || unreachable!()), 7);
    /// ```
    #[doc(alias = "or_insert_with_key")]
    #[track_caller]
    pub fn get_or_insert_with_ref<Q>(&self, key: &Q, make: impl FnOnce() -> V) -> &V
    where
        Q: ?Sized + Hash + Equivalent<K> + ToKey<K>,
    {
        expect_room(self.checked_get_or_insert_with_ref(key, make))
    }

    /// As [`Pinned::into_get_or_insert_with`], by a reference, from which a key is made ([`ToKey`]) if the key is absent.
    ///
    /// # Panics
    ///
    /// As [`Pinned::get_or_insert_with`].
    ///
    /// ```
    /// let map: koel::HashMap<String, u32> = koel::HashMap::new();
    /// let found = map.pin().into_get_or_insert_with_ref("key", || 7);
    /// map.pin().remove("key");
    /// assert_eq!((found.key().as_str(), *found, map.len()), ("key", 7, 0));
    /// ```
    #[track_caller]
    pub fn into_get_or_insert_with_ref<Q>(self, key: &Q, make: impl FnOnce() -> V) -> Ref<'m, K, V, S, G>
    where
        Q: ?Sized + Hash + Equivalent<K> + ToKey<K>,
    {
        let Ok((entry, _)) = expect_room(self.try_find_or_add_ref(key, || Ok::<V, Infallible>(make())));
        let entry = NonNull::from(entry);
        // SAFETY: found or inserted by this view.
        unsafe { Ref::new(entry, self) }
    }

    /// As [`Pinned::try_get_or_insert_with`], by a reference, from which a key is made ([`ToKey`]) if the key is absent.
    ///
    /// # Errors
    ///
    /// The error of `make`; the map is as it was.
    ///
    /// # Panics
    ///
    /// As [`Pinned::get_or_insert_with`].
    ///
    /// ```
    /// let map: koel::HashMap<String, u32> = koel::HashMap::new();
    /// assert!(map.pin().try_get_or_insert_with_ref("key", || "seven".parse()).is_err());
    /// assert_eq!(map.pin().try_get_or_insert_with_ref("key", || "7".parse()), Ok(&7));
    /// ```
    #[track_caller]
    pub fn try_get_or_insert_with_ref<Q, E>(
        &self,
        key: &Q,
        make: impl FnOnce() -> Result<V, E>,
    ) -> Result<&V, E>
    where
        Q: ?Sized + Hash + Equivalent<K> + ToKey<K>,
    {
        expect_room(self.try_find_or_add_ref(key, make)).map(|(entry, _)| &entry.value)
    }

    /// As [`Pinned::update`], by a reference: the new entry has a clone of the stored key.
    ///
    /// # Panics
    ///
    /// As [`Pinned::update`].
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// let map: koel::HashMap<Arc<str>, u32> = koel::HashMap::from([("key".into(), 1)]);
    /// assert_eq!(map.pin().update_ref("key", |value| value + 1), Some(&2));
    /// assert_eq!(map.pin().update_ref("other", |value| value + 1), None);
    /// ```
    #[doc(alias = "alter")]
    #[doc(alias = "get_mut")]
    #[track_caller]
    pub fn update_ref<Q>(&self, key: &Q, update: impl FnOnce(&V) -> V) -> Option<&V>
    where
        Q: ?Sized + Hash + Equivalent<K>,
        K: Clone,
    {
        let spot = self.spot(key);
        let found = spot.found?;
        let own_key = self.entry_at(&spot, found).key.clone();
        Some(expect_room(self.update_found(own_key, spot, found, update)))
    }

    /// As [`Pinned::update_or_insert`], by a reference, from which a key is made ([`ToKey`]) if the key is absent; otherwise
    /// the new entry has a clone of the stored key.
    ///
    /// # Panics
    ///
    /// As [`Pinned::update_or_insert`].
    ///
    /// ```
    /// let map: koel::HashMap<String, u32> = koel::HashMap::new();
    /// for word in "to be or not to be".split(' ') {
    ///     map.pin().update_or_insert_ref(word, |count| count + 1, 1);
    /// }
    /// assert_eq!((map.pin()["be"], map.pin()["or"]), (2, 1));
    /// ```
    #[doc(alias = "and_modify")]
    #[track_caller]
    pub fn update_or_insert_ref<Q>(&self, key: &Q, update: impl FnOnce(&V) -> V, value: V) -> &V
    where
        Q: ?Sized + Hash + Equivalent<K> + ToKey<K>,
        K: Clone,
    {
        self.update_or_insert_with_ref(key, update, || value)
    }

    /// As [`Pinned::update_or_insert_with`], by a reference: see [`Pinned::update_or_insert_ref`]. If both closures would have
    /// to own the same thing, use a single closure: [`Pinned::compute_ref`].
    ///
    /// # Panics
    ///
    /// As [`Pinned::update_or_insert_with`].
    ///
    /// ```
    /// let lines: koel::HashMap<String, Vec<u32>> = koel::HashMap::new();
    /// for (word, line) in [("koel", 1), ("cuckoo", 1), ("koel", 7)] {
    ///     lines.pin().update_or_insert_with_ref(word, |lines| [&lines[..], &[line]].concat(), || vec![line]);
    /// }
    /// assert_eq!(lines.pin()["koel"], [1, 7]);
    /// ```
    #[track_caller]
    pub fn update_or_insert_with_ref<Q>(
        &self,
        key: &Q,
        update: impl FnOnce(&V) -> V,
        make: impl FnOnce() -> V,
    ) -> &V
    where
        Q: ?Sized + Hash + Equivalent<K> + ToKey<K>,
        K: Clone,
    {
        expect_room(self.checked_update_or_insert_with_ref(key, update, make))
    }

    /// As [`Pinned::compute`], by a reference: if an entry is inserted, its key is made from the reference ([`ToKey`]); an
    /// entry that replaces another has a clone of the stored key. If `f` removes the entry or leaves everything as it is, no
    /// key is made.
    ///
    /// # Panics
    ///
    /// As [`Pinned::compute`].
    ///
    /// ```
    /// use koel::{Compute, HashMap, Operation};
    ///
    /// let stock: HashMap<String, u32> = HashMap::from([("koel".to_string(), 1)]);
    /// let take_one = |entry: Option<(&String, &u32)>| match entry {
    ///     None => Operation::Abort("not on sale"),
    ///     Some((_, 1)) => Operation::Remove,
    ///     Some((_, n)) => Operation::Insert(n - 1),
    /// };
    /// let pin = stock.pin();
    /// assert_eq!(pin.compute_ref("koel", take_one), Compute::Removed(&"koel".to_string(), &1));
    /// assert_eq!(pin.compute_ref("koel", take_one), Compute::Aborted("not on sale"));
    /// ```
    #[doc(alias = "compute_if_present")]
    #[doc(alias = "entry_ref")]
    #[track_caller]
    pub fn compute_ref<'p, Q, T, F>(&'p self, key: &Q, f: F) -> Compute<&'p K, &'p V, T>
    where
        Q: ?Sized + Hash + Equivalent<K> + ToKey<K>,
        K: Clone,
        F: FnOnce(Option<(&'p K, &'p V)>) -> Operation<V, T>,
    {
        expect_room(self.checked_compute_ref(key, f))
    }

    /// As [`Pinned::checked_get_or_insert_with`], by a reference, from which a key is made ([`ToKey`]) if the key is absent.
    ///
    /// # Errors
    ///
    /// [`Full`], with the key and the result of `make`.
    ///
    /// # Panics
    ///
    /// As [`Pinned::checked_get_or_insert_with`].
    ///
    /// ```
    /// let map: koel::HashMap<String, usize> = koel::HashMap::builder().fixed_capacity(1).build();
    /// let pin = map.pin();
    /// let count = |word: &str| pin.checked_get_or_insert_with_ref(word, || word.len());
    /// let words = ["to", "be", "or", "not", "that", "is", "the", "question", "whether", "it"];
    /// let full = words.into_iter().find_map(|word| count(word).err()).unwrap();
    /// assert_eq!((count("to").ok(), full.value), (Some(&2), full.key.len()));
    /// ```
    pub fn checked_get_or_insert_with_ref<Q>(
        &self,
        key: &Q,
        make: impl FnOnce() -> V,
    ) -> Result<&V, Full<K, V>>
    where
        Q: ?Sized + Hash + Equivalent<K> + ToKey<K>,
    {
        let Ok((entry, _)) = self.try_find_or_add_ref(key, || Ok::<V, Infallible>(make()))?;
        Ok(&entry.value)
    }

    /// As [`Pinned::checked_update_or_insert_with`], by a reference: see [`Pinned::update_or_insert_ref`].
    ///
    /// # Errors
    ///
    /// As [`Pinned::checked_update_or_insert_with`], with the key that was made.
    ///
    /// # Panics
    ///
    /// As [`Pinned::checked_update_or_insert_with`].
    ///
    /// ```
    /// let map: koel::HashMap<String, u32> = koel::HashMap::builder().fixed_capacity(1).build();
    /// let pin = map.pin();
    /// let count = |word: &str| pin.checked_update_or_insert_with_ref(word, |count| count + 1, || 1);
    /// let words = ["to", "be", "or", "not", "that", "is", "the", "question", "whether", "it"];
    /// let full = words.into_iter().find_map(|word| count(word).err()).unwrap();
    /// assert_eq!((count("to"), full.value), (Ok(&2), 1)); // a key that is present needs no room
    /// ```
    #[inline(always)]
    pub fn checked_update_or_insert_with_ref<Q>(
        &self,
        key: &Q,
        update: impl FnOnce(&V) -> V,
        make: impl FnOnce() -> V,
    ) -> Result<&V, Full<K, V>>
    where
        Q: ?Sized + Hash + Equivalent<K> + ToKey<K>,
        K: Clone,
    {
        // Before the lock: dropped after it, if `make` panics.
        let own_key;
        let spot = self.spot(key);
        // The closure that does not run is dropped before there is a result, as in `checked_update_or_insert_with`.
        match spot.found {
            Some(found) => {
                own_key = self.entry_at(&spot, found).key.clone();
                let updated = self.update_found(own_key, spot, found, update);
                drop(make);
                updated
            }
            None => {
                own_key = key.to_key();
                let value = make();
                let added = self.add_pair(spot, own_key, value);
                drop(update);
                added.map(|new| &new.value)
            }
        }
    }

    /// As [`Pinned::checked_compute`], by a reference: see [`Pinned::compute_ref`].
    ///
    /// # Errors
    ///
    /// As [`Pinned::checked_compute`], with the key that was made.
    ///
    /// # Panics
    ///
    /// As [`Pinned::checked_compute`].
    ///
    /// ```
    /// use koel::{Compute, HashMap, Operation};
    ///
    /// let stock: HashMap<String, u32> = HashMap::builder().fixed_capacity(1).build();
    /// let pin = stock.pin();
    /// let deliver = |item: &str, n: u32| {
    ///     pin.checked_compute_ref(item, |entry| Operation::<_, ()>::Insert(entry.map_or(0, |(_, n)| *n) + n))
    /// };
    /// let items = ["nuts", "oats", "rye", "salt", "tea", "bran", "corn", "dill", "figs"];
    /// let full = items.into_iter().find_map(|item| deliver(item, 50).err()).unwrap();
    /// assert!(full.value == 50 && !pin.contains_key(&full.key));
    /// assert!(matches!(deliver("nuts", 1), Ok(Compute::Updated { new: (_, 51), .. })));
    /// ```
    #[track_caller]
    #[inline(always)]
    pub fn checked_compute_ref<'p, Q, T, F>(
        &'p self,
        key: &Q,
        f: F,
    ) -> Result<Compute<&'p K, &'p V, T>, Full<K, V>>
    where
        Q: ?Sized + Hash + Equivalent<K> + ToKey<K>,
        K: Clone,
        F: FnOnce(Option<(&'p K, &'p V)>) -> Operation<V, T>,
    {
        // Before the lock: dropped after it, if no key can be made.
        let (new_value, own_key);
        let spot = self.spot(key);
        let current = spot.found.map(|found| self.entry_at(&spot, found).pair());
        let operation = match f(current) {
            Operation::Insert(value) => {
                new_value = value;
                own_key = current.map_or_else(|| key.to_key(), |(key, _)| key.clone());
                Operation::Insert((own_key, new_value))
            }
            Operation::Remove => Operation::Remove,
            Operation::Abort(result) => Operation::Abort(result),
        };
        self.carry_out(spot, operation)
    }

    /// Finds the entry of a key, after inserting the result of `make` if the key was absent, and says whether it was; unless
    /// `make` returns an error. Only the reference is hashed, not the key as well.
    #[inline(always)]
    fn try_find_or_add_ref<Q, E>(
        &self,
        key: &Q,
        make: impl FnOnce() -> Result<V, E>,
    ) -> FoundOrAdded<'_, K, V, E>
    where
        Q: ?Sized + Hash + Equivalent<K> + ToKey<K>,
    {
        let digest = self.map.digest(key);
        match self.find_entry_of(digest, key) {
            Some(entry) => Ok(Ok((entry, false))),
            None => self.try_find_or_add_of(digest, key.to_key(), make),
        }
    }
}
