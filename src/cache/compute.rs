//! Operations that decide with the entry in hand, under the lock of its segment.

use core::convert::Infallible;
use core::hash::{BuildHasher, Hash};

use super::Cache;
use super::refused::{Refused, Why};
use super::removal::{Cause, Departures};
use super::write::{At, NewEntry};
use crate::engine::Found;
use crate::entries::Entry;
use crate::hash::Digest;
use crate::outcome::{Compute, NOTHING_TO_REMOVE, Operation};

/// What an answer tells of entries. It is cloned under the lock, into a place that is dropped after the lock is released. So if
/// a clone panics, what has been cloned by then is dropped unlocked.
trait Told<K, V>: Default {
    /// Called with the entry that is removed or replaced.
    fn tell_old(&mut self, key: &K, value: &V);
    /// Called with the new entry.
    fn tell_new(&mut self, key: &K, value: &V);
}

/// Keys and values, old and new.
struct Pairs<K, V> {
    old_key: Option<K>,
    old_value: Option<V>,
    new_key: Option<K>,
    new_value: Option<V>,
}

impl<K, V> Default for Pairs<K, V> {
    fn default() -> Self {
        Pairs { old_key: None, old_value: None, new_key: None, new_value: None }
    }
}

impl<K: Clone, V: Clone> Told<K, V> for Pairs<K, V> {
    fn tell_old(&mut self, key: &K, value: &V) {
        self.old_key = Some(key.clone());
        self.old_value = Some(value.clone());
    }

    fn tell_new(&mut self, key: &K, value: &V) {
        self.new_key = Some(key.clone());
        self.new_value = Some(value.clone());
    }
}

/// The new value.
struct NewValue<V>(Option<V>);

impl<V> Default for NewValue<V> {
    fn default() -> Self {
        NewValue(None)
    }
}

impl<K, V: Clone> Told<K, V> for NewValue<V> {
    fn tell_old(&mut self, _: &K, _: &V) {}

    fn tell_new(&mut self, _: &K, value: &V) {
        self.0 = Some(value.clone());
    }
}

/// The result of a decision.
enum Decided<A, T> {
    /// The entry was inserted, replaced or removed.
    Done(A),
    Aborted(T),
}

impl<K: Hash + Eq, V: Clone, S: BuildHasher> Cache<K, V, S> {
    /// Decides what becomes of a key's entry. `decide` sees the entry, if there is one that has not expired, and says whether
    /// to insert, remove or leave it. The answer has clones of values. Replacing an entry counts as a use; looking at it here
    /// does not.
    ///
    /// `decide` runs under the lock of the key's segment, so that nobody else writes to the entry meanwhile. It normally runs
    /// once. It is called again if room for its value had to be taken from other segments *and* meanwhile another thread
    /// changed the entry, or the entry's time ended. The weigher, `expiry` and `idle_expiry` run under the lock, too. `decide`
    /// may write to the source of values itself: what others load meanwhile is not kept.
    ///
    /// An inserted value may be [turned away](Cache::insert) at once.
    ///
    /// # Errors
    ///
    /// [`Refused`] if the value does not fit: the entry is as it was.
    ///
    /// # Panics
    ///
    /// If `decide` panics, writes to this cache, or says `Remove` where there is nothing: the entry is as it was. And if the
    /// removal listener panics: then the decision has been carried out, or the value, if it does not fit, has been dropped.
    ///
    /// ```
    /// use koel::{Cache, Operation};
    ///
    /// let cache: Cache<&str, u32> = Cache::new(10);
    /// for _ in 0..3 {
    ///     cache.compute("hits", |n| Operation::<_, ()>::Insert(n.map_or(1, |n| n + 1)))?;
    /// }
    /// assert_eq!(cache.get("hits"), Some(3));
    /// # Ok::<(), koel::Refused<&str, u32>>(())
    /// ```
    #[doc(alias = "and_compute_with")]
    #[track_caller]
    pub fn compute<T>(
        &self,
        key: K,
        decide: impl FnMut(Option<&V>) -> Operation<V, T>,
    ) -> Result<Compute<K, V, T>, Refused<K, V>>
    where
        K: Clone,
    {
        self.compute_of(self.digest(&key), key, decide)
    }

    /// The same, for a key with this digest.
    #[track_caller]
    pub(super) fn compute_of<T>(
        &self,
        digest: Digest,
        key: K,
        mut decide: impl FnMut(Option<&V>) -> Operation<V, T>,
    ) -> Result<Compute<K, V, T>, Refused<K, V>>
    where
        K: Clone,
    {
        let decided = self.compute_telling::<Pairs<K, V>, T>(digest, key, &mut decide);
        // Before there is an answer: a finished answer leaks if a drop panics.
        drop(decide);
        Ok(match decided? {
            Decided::Aborted(answer) => Compute::Aborted(answer),
            Decided::Done(Pairs { old_key, old_value, new_key, new_value }) => {
                match (old_key.zip(old_value), new_key.zip(new_value)) {
                    (Some(old), Some(new)) => Compute::Updated { old, new },
                    (None, Some((key, value))) => Compute::Inserted(key, value),
                    (Some((key, value)), None) => Compute::Removed(key, value),
                    (None, None) => unreachable!("something was done"),
                }
            }
        })
    }

    /// [`Cache::compute`]; `A` says what the answer tells. What `decide` owns is the caller's to drop. By a pointer: one
    /// function for all closures, each of which has a type of its own.
    #[track_caller]
    fn compute_telling<A: Told<K, V>, T>(
        &self,
        digest: Digest,
        key: K,
        decide: &mut dyn FnMut(Option<&V>) -> Operation<V, T>,
    ) -> Result<Decided<A, T>, Refused<K, V>> {
        let mut out = self.departures(self.enter_to_write());
        loop {
            // Declared before the lock, and so dropped after that is released.
            let (value, decided);
            let at = self.at(digest, &key);
            let found = at.found.map(|found| at.writing.locked.item(found));
            // SAFETY: in the table, under the lock, after the guard was entered.
            let old = found
                .filter(|&entry| self.is_alive(entry))
                .map(|entry| unsafe { Entry::<K, V>::deref(entry) }.pair());
            let deciding = self.flights.deciding(digest, &key);
            decided = decide(old.map(|(_, value)| value));
            deciding.done();
            value = match decided {
                Operation::Insert(value) => value,
                Operation::Remove => {
                    let (Some(found), Some(old)) = (at.found, old) else {
                        // A panic hook is the user's code: it must not run under the lock.
                        drop(at);
                        panic!("{NOTHING_TO_REMOVE}")
                    };
                    let told = self.remove_decided(at, found, old, out);
                    // As in `compute`.
                    drop(key);
                    return Ok(Decided::Done(told));
                }
                Operation::Abort(answer) => {
                    drop(at);
                    // Entries that left to make room for what was decided before. As below.
                    drop(out);
                    // As above.
                    drop(key);
                    return Ok(Decided::Aborted(answer));
                }
            };
            let mut new_entry = self.new_entry(&key, &value);
            self.begin(&mut new_entry);
            if self.has_quota_at_once(&at, &new_entry) {
                return self.insert_decided(at, new_entry, old, (key, value), out).map(Decided::Done);
            }
            let Some(at) = self.at_when_it_has_quota(at, &key, &mut new_entry, &mut out) else {
                let why = Why::TooHeavy { weight: new_entry.facts.weight, capacity: self.capacity() };
                // Before there is an answer: a finished answer leaks if the listener panics.
                drop(out);
                return Err(Refused { key, value, why });
            };
            let is_there = at.found.map(|found| at.writing.locked.item(found));
            // Otherwise another thread wrote while others made room, or the entry's time has ended.
            if is_there == found || is_there.is_none() && old.is_none() {
                return self.insert_decided(at, new_entry, old, (key, value), out).map(Decided::Done);
            }
        }
    }

    /// Replaces the value of a key with what `update` makes of it, and returns a clone of the new value; returns `None` if
    /// there is no value. `update` runs under the segment's lock: once, except in the rare case that [`Cache::compute`]
    /// describes. The entry's time begins anew.
    ///
    /// # Errors
    ///
    /// [`Refused`] if the new value does not fit: the entry is as it was.
    ///
    /// # Panics
    ///
    /// As [`Cache::compute`].
    ///
    /// ```
    /// let cache: koel::Cache<&str, u32> = koel::Cache::new(10);
    /// cache.insert("visits", 1)?;
    /// assert_eq!(cache.update("visits", |n| n + 1)?, Some(2));
    /// assert_eq!(cache.update("other", |n| n + 1)?, None);
    /// # Ok::<(), koel::Refused<&str, u32>>(())
    /// ```
    #[doc(alias = "alter")]
    #[doc(alias = "get_mut")]
    #[track_caller]
    pub fn update(&self, key: K, update: impl FnMut(&V) -> V) -> Result<Option<V>, Refused<K, V>> {
        self.update_of(self.digest(&key), key, update)
    }

    /// The same, for a key with this digest.
    #[track_caller]
    pub(super) fn update_of(
        &self,
        digest: Digest,
        key: K,
        mut update: impl FnMut(&V) -> V,
    ) -> Result<Option<V>, Refused<K, V>> {
        let decided = self.compute_telling(digest, key, &mut |old| match old {
            Some(old) => Operation::Insert(update(old)),
            None => Operation::Abort(()),
        });
        // As in `compute`.
        drop(update);
        Ok(match decided? {
            Decided::Done(NewValue(value)) => value,
            Decided::Aborted(()) => None,
        })
    }

    /// Replaces the value of a key with what `update` makes of it, or inserts `value`; returns a clone of the new value. See
    /// [`Cache::update_or_insert_with`].
    ///
    /// # Errors
    ///
    /// As [`Cache::update_or_insert_with`].
    ///
    /// # Panics
    ///
    /// As [`Cache::compute`].
    ///
    /// ```
    /// let visits: koel::Cache<&str, u32> = koel::Cache::new(1000);
    /// for page in ["/", "/about", "/"] {
    ///     visits.update_or_insert(page, |n| n + 1, 1)?;
    /// }
    /// assert_eq!(visits.get("/"), Some(2));
    /// # Ok::<(), koel::Refused<&str, u32>>(())
    /// ```
    #[doc(alias = "and_modify")]
    #[track_caller]
    pub fn update_or_insert(
        &self,
        key: K,
        update: impl FnMut(&V) -> V,
        value: V,
    ) -> Result<V, Refused<K, V>> {
        let done = self.update_or_insert_with(key, update, || value.clone());
        // As in `compute`.
        drop(value);
        done
    }

    /// Replaces the value of a key with what `update` makes of it, or inserts what `make` returns; returns a clone of the new
    /// value. One of the two closures runs, under the segment's lock: once, except in the rare case that [`Cache::compute`]
    /// describes. The entry's time begins anew; a new entry may be turned away at once, as by [`Cache::insert`].
    ///
    /// Nobody waits for `make`, and `make` does not wait for a loader: for slow work, use [`Cache::get_or_insert_with`].
    ///
    /// # Errors
    ///
    /// [`Refused`] if the new value does not fit: the entry is as it was.
    ///
    /// # Panics
    ///
    /// As [`Cache::compute`].
    ///
    /// ```
    /// let lists: koel::Cache<&str, Vec<u32>> = koel::Cache::new(1000);
    /// for (word, line) in [("koel", 1), ("cuckoo", 1), ("koel", 7)] {
    ///     lists.update_or_insert_with(word, |lines| [&lines[..], &[line]].concat(), || vec![line])?;
    /// }
    /// assert_eq!(lists.get("koel"), Some(vec![1, 7]));
    /// # Ok::<(), koel::Refused<&str, Vec<u32>>>(())
    /// ```
    #[doc(alias = "and_upsert_with")]
    #[track_caller]
    pub fn update_or_insert_with(
        &self,
        key: K,
        update: impl FnMut(&V) -> V,
        make: impl FnMut() -> V,
    ) -> Result<V, Refused<K, V>> {
        self.update_or_insert_of(self.digest(&key), key, update, make)
    }

    /// The same, for a key with this digest.
    #[track_caller]
    pub(super) fn update_or_insert_of(
        &self,
        digest: Digest,
        key: K,
        mut update: impl FnMut(&V) -> V,
        mut make: impl FnMut() -> V,
    ) -> Result<V, Refused<K, V>> {
        let decided = self.compute_telling::<NewValue<V>, Infallible>(digest, key, &mut |old| {
            Operation::Insert(old.map_or_else(&mut make, &mut update))
        });
        // As in `compute`.
        drop((update, make));
        let Decided::Done(NewValue(value)) = decided?;
        Ok(value.expect("it was inserted or replaced"))
    }

    fn remove_decided<A: Told<K, V>>(
        &self,
        at: At<'_>,
        found: Found,
        (key, value): (&K, &V),
        mut out: Departures<'_, K, V>,
    ) -> A {
        // Declared before the lock that `at` holds, and so dropped after it.
        let mut told = A::default();
        let mut at = at;
        told.tell_old(key, value);
        self.take_out(&mut at.writing.locked, found, Cause::Explicit, &mut out);
        self.settle(&mut at.writing.locked, &mut out);
        drop(at);
        // Before there is an answer: a finished answer leaks if the listener panics.
        drop(out);
        told
    }

    fn insert_decided<A: Told<K, V>>(
        &self,
        at: At<'_>,
        new_entry: NewEntry,
        old: Option<(&K, &V)>,
        (key, value): (K, V),
        mut out: Departures<'_, K, V>,
    ) -> Result<A, Refused<K, V>> {
        // As above.
        let mut told = A::default();
        let mut at = at;
        if let Some((key, value)) = old {
            told.tell_old(key, value);
        }
        told.tell_new(&key, &value);
        let put = self.put_at(&mut at, &new_entry, key, value, &mut out);
        drop(at);
        // As above.
        drop(out);
        put?;
        Ok(told)
    }
}
