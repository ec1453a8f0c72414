//! [`InlineCache`], the writing half. An operation tells the flights (once more when a closure has decided [F5]), locks, finds,
//! makes room [B1], and commits by one call of the engine. Whatever panics in `Hash`, `Eq` or a closure, nothing is half done.

use core::hash::{BuildHasher, Hash};

use bytemuck::Pod;

use super::InlineCache;
use super::cache::InlineSlots;
use crate::cache::counters::Here;
use crate::cache::policy::{Locator, Newcomer, Policy};
use crate::cache::residents::{Entries, Evict};
use crate::cache::room::{self, Insertion};
use crate::engine::{self, Found, Locked, Spot};
use crate::hash::Digest;
use crate::outcome::{Compute, NOTHING_TO_REMOVE, Occupied, Operation};
use crate::plain;

pub(super) type At<'c, K, V> = Spot<'c, InlineSlots<K, V>>;

/// Counts the entries that are evicted.
struct Evictions<'c>(Here<'c>);

impl<K: Pod, V: Pod> Evict<InlineSlots<K, V>> for Evictions<'_> {
    #[inline]
    fn weight(&self, _: &engine::Residents<'_, InlineSlots<K, V>>, _: Found) -> u64 {
        1
    }

    #[inline]
    fn evict(&mut self, residents: &mut engine::Residents<'_, InlineSlots<K, V>>, slot: Found) {
        residents.remove(slot);
        self.0.evicted();
    }
}

/// Takes an entry out of its slot other than at the policy's request.
fn take_out<K: Pod, V: Pod>(locked: &mut Locked<'_, InlineSlots<K, V>>, found: Found) {
    let mark = locked.residents().mark(found);
    locked.residents().remove(found);
    locked.state().keep.evictor.removed(mark, 1);
}

/// An entry that is being inserted.
struct Inserting<'c, K: Pod, V: Pod, S> {
    cache: &'c InlineCache<K, V, S>,
    counts: Here<'c>,
}

impl<K: Pod + Hash + Eq, V: Pod, S: BuildHasher> Insertion<InlineSlots<K, V>> for Inserting<'_, K, V, S> {
    #[inline]
    fn admit(&mut self, locked: &mut Locked<'_, InlineSlots<K, V>>, newcomer: Newcomer) -> u8 {
        let (residents, state) = locked.parts();
        let mut entries = Entries { residents, victims: Evictions(self.counts) };
        state.keep.evictor.admit(newcomer, &mut entries)
    }

    fn withdraw(&mut self, locked: &mut Locked<'_, InlineSlots<K, V>>, newcomer: Newcomer, mark: u8) {
        locked.state().keep.evictor.removed(mark, newcomer.weight);
    }

    fn take_out(&mut self, locked: &mut Locked<'_, InlineSlots<K, V>>, found: Found) {
        take_out(locked, found);
        self.counts.evicted();
    }

    fn rehash(&self, (key, _): (K, V)) -> Digest {
        self.cache.digest(&key)
    }
}

impl<K: Pod, V: Pod, S> InlineCache<K, V, S> {
    /// Removes all entries, one segment after the other.
    ///
    /// # Panics
    ///
    /// In a closure that runs [under this cache's lock](InlineCache#under-a-lock).
    ///
    /// ```
    /// let cache: koel::InlineCache<u64, u64> = koel::InlineCache::new(10);
    /// cache.insert(1, 10);
    /// cache.clear();
    /// assert!(cache.is_empty());
    /// ```
    pub fn clear(&self) {
        self.flights.invalidate_all();
        self.directory.each_segment(|mut writing| {
            writing.locked.clear();
            writing.locked.state().keep.evictor.clear();
        });
    }

    /// Has the values of all loads and refreshes that are under way discarded: they only go to the callers that wait for them,
    /// and later callers load anew, as after [`InlineCache::clear`]. Entries that are there stay.
    ///
    /// Where many keys' values have changed in their source, [`retain`](Self::retain) takes out those that are there, but does
    /// not see those that are being loaded. First call this, then `retain`: a value that is loaded by then is seen, and one
    /// that is not is not kept.
    ///
    /// ```
    /// let cache: koel::InlineCache<[u32; 2], u32> = koel::InlineCache::new(10);
    /// let old = cache.get_or_insert_with([5, 7], || {
    ///     // Meanwhile, on another thread: all of this user's rights have changed.
    ///     cache.forget_loads();
    ///     cache.retain(|[user, _], _| *user != 5);
    ///     1
    /// });
    /// assert_eq!((old, cache.get(&[5, 7])), (1, None));
    /// ```
    #[doc(alias = "invalidate")]
    pub fn forget_loads(&self) {
        self.flights.invalidate_all();
    }
}

impl<K: Pod + Hash + Eq, V: Pod, S: BuildHasher> InlineCache<K, V, S> {
    /// Locks the segment of a key with this digest, and finds the key.
    #[inline]
    pub(super) fn at(&self, digest: Digest, key: &K) -> At<'_, K, V> {
        self.directory.lock_and_find(digest, |(other, _)| other == *key)
    }

    /// Inserts a value, and returns the one that the key had; the key that is there stays. Replacing an entry counts as a use:
    /// it is kept as one that was hit. If the cache is full, another entry leaves, or a few do. The new entry may be the next
    /// to leave, unless it is asked for before: new entries have to prove themselves. Where new entries matter most, use
    /// [`Policy::Clock`](crate::Policy::Clock).
    ///
    /// # Panics
    ///
    /// In a closure that runs [under this cache's lock](InlineCache#under-a-lock).
    ///
    /// ```
    /// let cache = koel::InlineCache::new(10);
    /// assert_eq!(cache.insert(1_u32, 10_u32), None);
    /// assert_eq!(cache.insert(1, 11), Some(10));
    /// assert_eq!(cache.get(&1), Some(11));
    /// ```
    pub fn insert(&self, key: K, value: V) -> Option<V> {
        let digest = self.digest(&key);
        self.flights.invalidate(digest, &key);
        // Where it is built: passed on by value, it would be written in parts and copied as a whole.
        let mut at = self.at(digest, &key);
        self.put_at(&mut at, key, value)
    }

    /// Inserts a value unless the key is there. Being found here does not count as a use of the entry. Does not wait for a
    /// loader: if the key is being loaded, the value that is inserted here is the one that stays. A cache of capacity 0 keeps
    /// nothing.
    ///
    /// # Errors
    ///
    /// [`Occupied`] if the key is there, with its value and the one that was not inserted.
    ///
    /// # Panics
    ///
    /// As [`InlineCache::insert`].
    ///
    /// ```
    /// let sessions = koel::InlineCache::new(10);
    /// assert_eq!(sessions.try_insert(7_u32, 1_u32), Ok(()));
    /// let occupied = sessions.try_insert(7, 2).unwrap_err();
    /// assert_eq!((occupied.current, occupied.not_inserted), (1, 2));
    /// ```
    #[doc(alias = "insert_if_absent")]
    pub fn try_insert(&self, key: K, value: V) -> Result<(), Occupied<V, V>> {
        // As in a `Cache`.
        let digest = self.digest(&key);
        if let Some(current) = self.peek_of(digest, &key) {
            return Err(Occupied { current, not_inserted: value });
        }
        self.flights.invalidate(digest, &key);
        let mut at = self.at(digest, &key);
        if let Some(found) = at.found {
            let (_, current) = at.writing.locked.item(found);
            return Err(Occupied { current, not_inserted: value });
        }
        self.put_at(&mut at, key, value);
        Ok(())
    }

    /// Puts an entry where its key is or should be, in a segment that stays locked; returns the value that was there.
    #[inline]
    pub(super) fn put_at<'c>(&'c self, at: &mut At<'c, K, V>, key: K, value: V) -> Option<V> {
        let counts = self.counters.here();
        let locked = &mut at.writing.locked;
        let old = match at.found {
            Some(found) => {
                let old = locked.item(found);
                locked.replace(found, (old.0, value));
                // Counts as a use, like a hit.
                let residents = locked.residents();
                residents.set_mark(found, Policy::touch(residents.mark(found)));
                Some(old.1)
            }
            None if locked.state_ref().keep.evictor.capacity() == 0 => return None,
            None => {
                let newcomer = Newcomer { locator: Locator::new(at.digest), weight: 1 };
                room::prefetch(locked, newcomer);
                let mut insertion = Inserting { cache: self, counts };
                room::add(&self.directory, at, (key, value), newcomer, &mut insertion);
                None
            }
        };
        counts.inserted();
        old
    }

    /// Decides what becomes of a key's entry: `decide` sees its value, if there is one, and says whether to insert, remove or
    /// leave it.
    ///
    /// `decide` runs exactly once, under the lock of the key's segment, so that nobody else writes to the entry meanwhile. It
    /// may write to the source of values itself: what others load meanwhile is not kept. The answer is what was decided, even
    /// in a cache of capacity 0, which keeps nothing. Replacing an entry counts as a use; looking at it here does not.
    ///
    /// # Panics
    ///
    /// If `decide` panics, writes to this cache, or says `Remove` where there is nothing: the cache is as it was. And in a
    /// closure that runs [under this cache's lock](InlineCache#under-a-lock).
    ///
    /// ```
    /// use koel::{InlineCache, Operation};
    ///
    /// let hits = InlineCache::new(10);
    /// for _ in 0..3 {
    ///     hits.compute(7_u64, |n: Option<u32>| Operation::<_, ()>::Insert(n.map_or(1, |n| n + 1)));
    /// }
    /// assert_eq!(hits.get(&7), Some(3));
    /// ```
    #[track_caller]
    pub fn compute<T>(&self, key: K, decide: impl FnOnce(Option<V>) -> Operation<V, T>) -> Compute<K, V, T> {
        let digest = self.digest(&key);
        // Before the lock: it is dropped after that is released.
        let decided;
        let mut at = self.at(digest, &key);
        let current = at.found.map(|found| (found, at.writing.locked.item(found)));
        let deciding = self.flights.deciding(digest, &key);
        decided = decide(current.map(|(_, (_, value))| value));
        deciding.done();
        match (decided, current) {
            (Operation::Abort(answer), _) => Compute::Aborted(answer),
            (Operation::Insert(value), None) => {
                self.put_at(&mut at, key, value);
                Compute::Inserted(key, value)
            }
            (Operation::Insert(value), Some((_, old))) => {
                self.put_at(&mut at, key, value);
                Compute::Updated { old, new: (old.0, value) }
            }
            (Operation::Remove, Some((found, (key, value)))) => {
                take_out(&mut at.writing.locked, found);
                Compute::Removed(key, value)
            }
            (Operation::Remove, None) => {
                // A panic hook is the user's code: it must not run under the lock.
                drop(at);
                panic!("{NOTHING_TO_REMOVE}")
            }
        }
    }

    /// Replaces the value of a key with what `update` makes of it, and returns the new one; returns `None` if there is no
    /// value.
    ///
    /// `update` runs at most once, under the lock of the key's segment, as in [`InlineCache::compute`].
    ///
    /// # Panics
    ///
    /// As [`InlineCache::compute`].
    ///
    /// ```
    /// let cache = koel::InlineCache::new(10);
    /// cache.insert(7_u32, 1_u32);
    /// assert_eq!((cache.update(7, |n| n + 1), cache.update(8, |n| n + 1)), (Some(2), None));
    /// ```
    #[doc(alias = "alter")]
    #[doc(alias = "get_mut")]
    #[track_caller]
    pub fn update(&self, key: K, update: impl FnOnce(V) -> V) -> Option<V> {
        // Kept to the end, if it does not run: what it owns is the user's, and is not dropped under the lock.
        let mut update = Some(update);
        let decide = |old: Option<V>| match old.zip(update.take_if(|_| old.is_some())) {
            Some((old, update)) => Operation::Insert(update(old)),
            None => Operation::Abort(()),
        };
        self.compute(key, decide).into_new()
    }

    /// Replaces the value of a key with what `update` makes of it, or inserts `value`; returns the new value.
    ///
    /// # Panics
    ///
    /// As [`InlineCache::compute`].
    ///
    /// ```
    /// // How often each of the last thousand or so addresses was refused.
    /// let refused = koel::InlineCache::new(1000);
    /// for address in [[10, 0, 0, 1_u8], [10, 0, 0, 2], [10, 0, 0, 1]] {
    ///     refused.update_or_insert(address, |n| n + 1, 1_u32);
    /// }
    /// assert_eq!(refused.get(&[10, 0, 0, 1]), Some(2));
    /// ```
    #[doc(alias = "and_modify")]
    #[track_caller]
    pub fn update_or_insert(&self, key: K, update: impl FnOnce(V) -> V, value: V) -> V {
        self.update_or_insert_with(key, update, || value)
    }

    /// Replaces the value of a key with what `update` makes of it, or inserts what `make` returns; returns the new value. One
    /// of the two closures runs, once, under the lock of the key's segment, as in [`InlineCache::compute`].
    ///
    /// Nobody waits for `make`, and `make` does not wait for a loader: for slow work, use [`InlineCache::get_or_insert_with`].
    ///
    /// # Panics
    ///
    /// As [`InlineCache::compute`].
    ///
    /// ```
    /// let counts = koel::InlineCache::new(10);
    /// for byte in *b"cuckoo" {
    ///     counts.update_or_insert_with(byte, |n| n + 1, || 1_u64);
    /// }
    /// assert_eq!(counts.get(&b'c'), Some(2));
    /// ```
    #[doc(alias = "and_upsert_with")]
    #[track_caller]
    pub fn update_or_insert_with(&self, key: K, update: impl FnOnce(V) -> V, make: impl FnOnce() -> V) -> V {
        // Kept to the end, as one of them does not run: what it owns is the user's, and is not dropped under the lock.
        let (mut update, mut make) = (Some(update), Some(make));
        let decide = |old: Option<V>| {
            let new = match old {
                Some(old) => update.take().map(|update| update(old)),
                None => make.take().map(|make| make()),
            };
            new.map_or(Operation::Abort(()), Operation::Insert)
        };
        self.compute(key, decide).into_new().expect("it was inserted or replaced")
    }

    /// Removes the entry of a key, and returns its value.
    ///
    /// # Panics
    ///
    /// In a closure that runs [under this cache's lock](InlineCache#under-a-lock).
    ///
    /// ```
    /// let cache = koel::InlineCache::new(10);
    /// cache.insert(1_u32, 10_u32);
    /// assert_eq!(cache.remove(&1), Some(10));
    /// assert_eq!(cache.remove(&1), None);
    /// ```
    pub fn remove(&self, key: &K) -> Option<V> {
        self.remove_with(key, None::<fn(&K, &V) -> bool>)
    }

    /// Removes the entry of a key if `condition` holds for it, and returns its value. `condition` runs under the lock of the
    /// key's segment, at most once. Whatever comes of it, a value that is being loaded for the key meanwhile is not kept.
    ///
    /// # Panics
    ///
    /// If `condition` panics or writes to this cache, which then is as it was. And in a closure that runs
    /// [under this cache's lock](InlineCache#under-a-lock).
    ///
    /// ```
    /// let cache = koel::InlineCache::new(10);
    /// cache.insert(1_u32, 10_u32);
    /// assert_eq!(cache.remove_if(&1, |_, value| *value > 10), None);
    /// assert_eq!(cache.remove_if(&1, |_, value| *value < 11), Some(10));
    /// ```
    pub fn remove_if(&self, key: &K, condition: impl FnOnce(&K, &V) -> bool) -> Option<V> {
        self.remove_with(key, Some(condition))
    }

    // The condition is kept to the end, if it is not called: what it owns is the user's, and is not dropped under the lock.
    fn remove_with(&self, key: &K, mut condition: Option<impl FnOnce(&K, &V) -> bool>) -> Option<V> {
        let digest = self.digest(key);
        let mut at = self.at(digest, key);
        let item = at.found.map(|found| (found, at.writing.locked.item(found)));
        // As in a `Cache`: whatever a condition says, and even if there is no entry [F5].
        let deciding = self.flights.deciding(digest, key);
        let leaving =
            item.filter(|(_, (key, value))| condition.take().is_none_or(|condition| condition(key, value)));
        deciding.done();
        let (found, (_, value)) = leaving?;
        take_out(&mut at.writing.locked, found);
        Some(value)
    }

    /// Keeps the entries for which `keep` holds and removes the others.
    ///
    /// Sees each entry that is present throughout, with no lock held. If an entry is replaced between `keep`'s verdict and its
    /// removal, `keep` is called again for the new one: if another value is there then, or an equal key of other bytes. It does
    /// not see a value that is being loaded for a key that is not there; such a value is inserted all the same, however old it
    /// is. [`InlineCache::forget_loads`], called before, and, for its key, [`InlineCache::remove`] keep it out.
    ///
    /// # Panics
    ///
    /// If `keep` panics: the entries that it has refused before are out. In a closure that runs [under this cache's
    /// lock](InlineCache#under-a-lock).
    ///
    /// ```
    /// let cache = koel::InlineCache::new(100);
    /// for i in 0..10_u32 {
    ///     cache.insert(i, i);
    /// }
    /// cache.retain(|_, value| value % 2 == 0);
    /// assert_eq!(cache.len(), 5);
    /// ```
    pub fn retain(&self, mut keep: impl FnMut(&K, &V) -> bool) {
        for mut entry in self.iter() {
            // `keep` is asked anew about an entry that has replaced it since.
            while !keep(&entry.0, &entry.1) {
                let remove_if = |key: &K, condition: &mut dyn FnMut(&K, &V) -> bool| {
                    let _ = self.remove_if(key, condition);
                };
                let Some(current) = plain::remove_or_current(entry, remove_if) else { break };
                entry = current;
            }
        }
    }
}
