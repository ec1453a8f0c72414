//! [`Cache`], the writing half.
//!
//! Every operation first prepares whatever calls the user's code, then locks, finds, makes room, commits by one call of the
//! engine and unlocks. Only then is the listener told which entries have left, and memory given up ([`Departures`]). The only
//! code of the user's that runs under the lock is `Eq`, `Hash`, the clock, the closures of `compute`, `update` and `remove_if`,
//! and, for the first two of these closures, `Clone`, the weigher and the closures that say when an entry expires. Whatever
//! panics, nothing is half done.

use core::hash::{BuildHasher, Hash};

use equivalent::Equivalent;

use super::Cache;
use super::cache::CacheSlots;
use super::gone::Gone;
use super::meta::Facts;
use super::policy::{Evictor, Heat, Locator, Newcomer, Policy};
use super::refused::{Refused, Why};
use super::removal::{Cause, Departures};
use super::residents::{self, Evict};
use super::room::{self, Insertion};
use super::share::Share;
use super::time::{NEVER, Nanos};
use crate::engine::{self, Found, Locked, Spot, Writing};
use crate::entries::{Entry, EntryPointer, OwnedEntry, Reserve, Within};
use crate::hash::Digest;
use crate::outcome::Occupied;
use crate::reclaim::LocalGuard;

pub(super) type At<'c> = Spot<'c, CacheSlots>;

/// A new entry: what is known of it before anything is locked, and when its life [began](Cache::begin).
pub(super) struct NewEntry {
    pub(super) facts: Facts,
    pub(super) now: Nanos,
    /// How long it is to live, used or not.
    life: Nanos,
    /// The heat of an entry that comes from a dump.
    pub(super) heat: Option<Heat>,
    /// Whether it has been found not to be worth the entries that would have to leave for it.
    pub(super) is_turned_away: bool,
}

impl NewEntry {
    fn newcomer(&self, digest: Digest) -> Newcomer {
        Newcomer { locator: Locator::new(digest), weight: self.facts.weight }
    }
}

impl<K, V, S> Cache<K, V, S> {
    /// Begins the life of an entry. Called with its segment locked, as waiting for that lock may have taken longer than the
    /// entry is to live; and again if the segment was unlocked meanwhile. The life of an entry that comes from a dump has begun
    /// long before.
    #[inline(always)]
    pub(super) fn begin(&self, new_entry: &mut NewEntry) {
        let Some(time) = &self.time else { return };
        new_entry.now = time.now();
        if new_entry.heat.is_none() {
            new_entry.facts.deadline = time.deadline_after(new_entry.now, new_entry.life);
            new_entry.facts.last_use = new_entry.now;
        }
    }

    /// Collects what leaves from here on, under this guard.
    pub(super) fn departures<'c>(&'c self, guard: LocalGuard<'c>) -> Departures<'c, K, V> {
        let Cache { table, counters, fields, listener, .. } = self;
        // SAFETY: it is for what leaves this cache.
        unsafe { Departures::new(&table.collector, guard, counters.here(), fields, listener.as_ref()) }
    }

    /// Takes an entry out of its slot other than at the policy's request.
    pub(super) fn take_out(
        &self,
        locked: &mut Locked<'_, CacheSlots>,
        found: Found,
        cause: Cause,
        out: &mut Departures<'_, K, V>,
    ) {
        let (mark, entry) = (locked.residents().mark(found), locked.item(found));
        locked.residents().remove(found);
        let share = &mut locked.state().keep;
        share.evictor.removed(mark, self.weight_of(entry));
        // SAFETY: just taken out, under the lock.
        unsafe { out.gone.departed(entry, cause, &mut share.reserve) };
        self.publish_used(locked);
    }

    /// Takes out an entry that the user has asked to remove, whether or not its time is over.
    pub(super) fn take_out_asked(
        &self,
        locked: &mut Locked<'_, CacheSlots>,
        found: Found,
        now: Nanos,
        out: &mut Departures<'_, K, V>,
    ) {
        let cause = out.gone.cause_now(locked.item(found), now, Cause::Explicit);
        self.take_out(locked, found, cause, out);
    }

    /// Takes out all entries of a segment, because the user has asked for that.
    pub(super) fn take_out_all(
        &self,
        locked: &mut Locked<'_, CacheSlots>,
        now: Nanos,
        out: &mut Departures<'_, K, V>,
    ) {
        let (mut left, entries) = (0, locked.len());
        let (residents, state) = locked.parts();
        for found in (0..residents.buckets()).flat_map(|bucket| residents.occupied(bucket)) {
            let entry = residents.item(found);
            let cause = out.gone.cause_now(entry, now, Cause::Explicit);
            // SAFETY: once, under the lock, under which its slot is emptied below before any code of the user's runs; it is
            // retired when `out` ends, with nothing locked.
            unsafe { out.gone.departed(entry, cause, &mut state.keep.reserve) };
            left += 1;
        }
        // A cache has no overflow; otherwise that would have to be emptied as well.
        debug_assert_eq!(left, entries);
        locked.clear();
        locked.state().keep.evictor.clear();
        self.publish_used(locked);
    }

    /// Publishes a segment's use to readers of `weight` and `len`.
    fn publish_used(&self, locked: &mut Locked<'_, CacheSlots>) {
        let state = locked.state();
        self.bound.set_used(state.index, state.keep.evictor.weight());
    }

    /// Lets the policy decide something for which it may have to evict. No user code runs in it.
    #[inline]
    pub(super) fn decide<T>(
        &self,
        locked: &mut Locked<'_, CacheSlots>,
        now: Nanos,
        out: &mut Departures<'_, K, V>,
        decision: impl FnOnce(&mut Evictor, &mut Entries<'_, '_>) -> T,
    ) -> T {
        let (residents, state) = locked.parts();
        let Share { evictor, reserve, .. } = &mut state.keep;
        let victims = Victims { reserve, now, gone: &mut out.gone };
        let answer = decision(evictor, &mut Entries { residents, victims });
        self.publish_used(locked);
        answer
    }

    /// Evicts others until an entry may weigh this much more. The entry stays in its slot meanwhile: look-ups must not miss an
    /// entry that is only being replaced.
    fn make_room_beside(
        &self,
        locked: &mut Locked<'_, CacheSlots>,
        stays: Found,
        more: u64,
        now: Nanos,
        out: &mut Departures<'_, K, V>,
    ) {
        let (residents, state) = locked.parts();
        let Share { evictor, reserve, .. } = &mut state.keep;
        let victims = Others { victims: Victims { reserve, now, gone: &mut out.gone }, stays };
        evictor.make_room(more, &mut residents::Entries { residents, victims });
    }

    /// Whether a new entry is not worth the entries that would have to leave for it, in a segment that has got room for a part
    /// of it. Where all entries weigh the same, none is turned away.
    pub(super) fn turns_away(
        &self,
        locked: &mut Locked<'_, CacheSlots>,
        new_entry: &NewEntry,
        part: u64,
        digest: Digest,
        out: &mut Departures<'_, K, V>,
    ) -> bool {
        if self.weigher.is_none() || new_entry.heat.is_some() {
            return false;
        }
        let weight = new_entry.facts.weight.saturating_sub(part);
        if self.time.is_some() && locked.state_ref().keep.evictor.is_heavy(weight, locked.len()) {
            self.sweep_for(locked, weight, new_entry.now, out);
        }
        self.decide(locked, new_entry.now, out, |evictor, entries| {
            evictor.turns_away(Newcomer { weight, ..new_entry.newcomer(digest) }, entries)
        })
    }
}

/// A locked segment's entries, for the policy.
pub(super) type Entries<'e, 'c> = residents::Entries<'e, CacheSlots, Victims<'e, 'c>>;

/// What is done with the entries of a locked segment that are evicted.
pub(super) struct Victims<'e, 'c> {
    reserve: &'e mut Reserve,
    now: Nanos,
    gone: &'e mut Gone<'c>,
}

impl Evict<CacheSlots> for Victims<'_, '_> {
    #[inline]
    fn weight(&self, residents: &engine::Residents<'_, CacheSlots>, slot: Found) -> u64 {
        self.gone.weight_of(|| residents.item(slot))
    }

    // Inlined where the policy evicts: one of its calls serves most insertions, and the others are not inlined.
    #[inline(always)]
    fn evict(&mut self, residents: &mut engine::Residents<'_, CacheSlots>, slot: Found) {
        let entry = residents.item(slot);
        let cause = self.gone.cause_now(entry, self.now, Cause::Size);
        residents.remove(slot);
        // SAFETY: just taken out, under the lock.
        unsafe { self.gone.departed(entry, cause, self.reserve) };
    }
}

/// The same for all entries but one, for whose new value they make room.
struct Others<'e, 'c> {
    victims: Victims<'e, 'c>,
    stays: Found,
}

impl Evict<CacheSlots> for Others<'_, '_> {
    fn weight(&self, residents: &engine::Residents<'_, CacheSlots>, slot: Found) -> u64 {
        self.victims.weight(residents, slot)
    }

    fn evict(&mut self, residents: &mut engine::Residents<'_, CacheSlots>, slot: Found) {
        debug_assert!(!self.stays(slot));
        self.victims.evict(residents, slot);
    }

    fn stays(&self, slot: Found) -> bool {
        slot == self.stays
    }
}

/// An entry that is being inserted.
struct Inserting<'e, 'd, K, V, S> {
    cache: &'e Cache<K, V, S>,
    new_entry: &'e NewEntry,
    out: &'e mut Departures<'d, K, V>,
}

impl<K: Hash + Eq, V, S: BuildHasher> Insertion<CacheSlots> for Inserting<'_, '_, K, V, S> {
    #[inline]
    fn admit(&mut self, locked: &mut Locked<'_, CacheSlots>, newcomer: Newcomer) -> u8 {
        self.cache.decide(locked, self.new_entry.now, self.out, |evictor, entries| {
            match self.new_entry.heat {
                None => evictor.admit(newcomer, entries),
                Some(heat) => evictor.restore(newcomer, heat, entries),
            }
        })
    }

    fn withdraw(&mut self, locked: &mut Locked<'_, CacheSlots>, newcomer: Newcomer, mark: u8) {
        locked.state().keep.evictor.removed(mark, newcomer.weight);
        self.cache.publish_used(locked);
    }

    fn take_out(&mut self, locked: &mut Locked<'_, CacheSlots>, found: Found) {
        let cause = self.out.gone.cause_now(locked.item(found), self.new_entry.now, Cause::Size);
        self.cache.take_out(locked, found, cause, self.out);
    }

    fn rehash(&self, entry: EntryPointer) -> Digest {
        self.cache.rehash(entry)
    }
}

impl<K: Hash + Eq, V, S: BuildHasher> Cache<K, V, S> {
    /// Locks the segment of a key with this digest, and finds the key.
    pub(super) fn at<Q: ?Sized + Hash + Equivalent<K>>(&self, digest: Digest, key: &Q) -> At<'_> {
        // SAFETY: in the table, under the segment's lock.
        let eq = |entry| key.equivalent(unsafe { Entry::<K, V>::deref(entry) }.pair().0);
        self.table.directory.lock_and_find(digest, eq)
    }

    /// The same, in a segment that is locked already.
    fn at_in<'c>(&self, writing: Writing<'c, CacheSlots>, digest: Digest, key: &K) -> At<'c> {
        // SAFETY: as above.
        writing.find(digest, |entry| key.equivalent(unsafe { Entry::<K, V>::deref(entry) }.pair().0))
    }

    /// Calls the user's functions for the facts about an entry.
    pub(super) fn new_entry(&self, key: &K, value: &V) -> NewEntry {
        let weight = self.weigher.as_ref().map_or(1, |weigher| weigher(key, value).max(1));
        let time = self.time.as_ref();
        let (life, idle) = time.map_or((NEVER, NEVER), |time| (time.life(key, value), time.idle(key, value)));
        let facts = Facts { weight, deadline: NEVER, last_use: 0, idle };
        NewEntry { facts, now: 0, life, heat: None, is_turned_away: false }
    }

    /// Makes an entry, in memory that belongs to the locked segment.
    fn make(
        &self,
        at: &mut At<'_>,
        new_entry: &NewEntry,
        key: K,
        value: V,
    ) -> Result<OwnedEntry<K, V>, (K, V)> {
        let digest = at.digest;
        let magazine = &mut at.writing.locked.state().keep.reserve.free;
        // A cache has no home cells.
        let new = OwnedEntry::new(&self.table.slab, magazine, digest, Within::Nowhere, key, value)?;
        // SAFETY: the table was told how long these tails are, and this entry is ours.
        unsafe { self.fields.write(Entry::<K, V>::tail(new.pointer()), &new_entry.facts) };
        Ok(new)
    }

    /// Locks a key's segment once that has quota for an entry, or needs none because the entry is turned away or is not to be
    /// put; the latter is asked before other segments are. Returns `None` if the whole cache lacks the quota. The entry's life
    /// has begun on return.
    pub(super) fn at_with_quota<'c>(
        &'c self,
        digest: Digest,
        key: &K,
        new_entry: &mut NewEntry,
        may_put: impl FnOnce(&At<'c>, Nanos) -> bool,
        out: &mut Departures<'_, K, V>,
    ) -> Option<At<'c>> {
        let at = self.at(digest, key);
        self.begin(new_entry);
        if self.has_quota_at_once(&at, new_entry) || !may_put(&at, new_entry.now) {
            Some(at)
        } else {
            self.at_when_it_has_quota(at, key, new_entry, out)
        }
    }

    /// Whether a segment has quota for an entry, without asking other segments: where entries are counted, callers hardly ever
    /// have to go further.
    #[inline]
    pub(super) fn has_quota_at_once(&self, at: &At<'_>, new_entry: &NewEntry) -> bool {
        debug_assert!(!new_entry.is_turned_away);
        let locked = &at.writing.locked;
        self.asks_nobody(locked.len()) && locked.state_ref().keep.evictor.capacity() >= new_entry.facts.weight
    }

    /// [`Cache::at_with_quota`], where the segment may have to settle, or to ask other segments.
    #[inline(never)]
    pub(super) fn at_when_it_has_quota<'c>(
        &'c self,
        mut at: At<'c>,
        key: &K,
        new_entry: &mut NewEntry,
        out: &mut Departures<'_, K, V>,
    ) -> Option<At<'c>> {
        let (digest, mut has_asked) = (at.digest, false);
        loop {
            let locked = &mut at.writing.locked;
            let expired = at.found.filter(|&found| self.has_expired(locked.item(found), new_entry.now));
            if let Some(found) = expired {
                // The entry that takes its place is new.
                self.take_out(locked, found, Cause::Expired, out);
                at.found = None;
            }
            new_entry.is_turned_away &= at.found.is_none();
            let has_quota = new_entry.is_turned_away || self.has_quota(locked, new_entry.facts.weight, out);
            let asks = !has_asked && self.should_ask(locked, at.found, new_entry);
            if has_quota && !asks {
                return Some(at);
            }
            let before = at.found.map(|found| self.weight_of(locked.item(found)));
            drop(at);
            at = self.at_in(self.gather(digest, new_entry, before, out)?, digest, key);
            self.begin(new_entry);
            has_asked = true;
        }
    }

    /// Inserts or replaces an entry, with its key; replacing an entry counts as a use, like a hit. If the cache is full, others
    /// leave. The new entry may be the next to leave, unless it is asked for before: new entries have to prove themselves.
    /// Where new entries matter most, use [`Policy::Clock`](crate::Policy::Clock).
    ///
    /// # Heavy entries
    ///
    /// In a full cache with a weigher, once entries have been hit, [`Policy::Adaptive`](crate::Policy::Adaptive) turns a new
    /// entry away if it is heavier than eight others on average, and
    ///
    /// * it has not been inserted lately,
    /// * or one of those that would leave for it was hit, and it has not been inserted often.
    ///
    /// Then the entry leaves at once, for the cause [`Cause::Size`], and what is returned is `Ok`. Insert it again when it is
    /// asked for again. [`CacheStats::turned_away`](crate::CacheStats::turned_away) counts such entries.
    ///
    /// # Errors
    ///
    /// If the entry is heavier than all that the cache may hold, as every entry is for a cache that is switched off by a
    /// capacity of 0, or if there is no memory. [`Refused`] hands the entry back, and the cache keeps an older value of the
    /// key: [`Cache::remove`] that if it is wrong now.
    ///
    /// # Panics
    ///
    /// In a closure that runs [under this cache's lock](Cache#under-a-lock), and if the removal listener panics: then the entry
    /// has been inserted all the same, or, if it does not fit, has been dropped.
    ///
    /// ```
    /// let cache: koel::Cache<u32, &str> = koel::Cache::new(10);
    /// cache.insert(1, "one")?;
    /// cache.insert(1, "uno")?;
    /// assert_eq!(cache.get(&1), Some("uno"));
    /// # Ok::<(), koel::Refused<u32, &str>>(())
    /// ```
    #[doc(alias = "put_sync")]
    #[doc(alias = "put")]
    #[doc(alias = "push")]
    pub fn insert(&self, key: K, value: V) -> Result<(), Refused<K, V>> {
        let mut new_entry = self.new_entry(&key, &value);
        let digest = self.digest(&key);
        self.flights.invalidate(digest, &key);
        let mut out = self.departures(self.enter_to_write());
        let mut at = self.at(digest, &key);
        self.begin(&mut new_entry);
        if !self.has_quota_at_once(&at, &new_entry) {
            match self.at_when_it_has_quota(at, &key, &mut new_entry, &mut out) {
                Some(with_quota) => at = with_quota,
                None => {
                    let why = Why::TooHeavy { weight: new_entry.facts.weight, capacity: self.capacity() };
                    out.end();
                    return Err(Refused { key, value, why });
                }
            }
        }
        // By reference: passed on by value, it would be written in parts and copied as a whole.
        let put = self.put_at(&mut at, &new_entry, key, value, &mut out);
        drop(at);
        // Before there is an answer: a finished answer leaks if the listener panics.
        out.end();
        put.map(|_| ())
    }

    /// Inserts an entry unless the key is there: then it returns an error with a clone of the value that is there, and the
    /// value that was not inserted. Being found here does not count as a use.
    ///
    /// Does not wait for a loader: if the key is being loaded, the value that is inserted here is the one that stays. Like
    /// every new entry, it may be [turned away](Cache::insert) at once. If another thread inserts the key at the same moment,
    /// other segments may have been asked for room in vain, and a value that refreshes the key is not kept.
    ///
    /// # Errors
    ///
    /// [`Refused`] if the entry does not fit, as for [`Cache::insert`].
    ///
    /// # Panics
    ///
    /// As [`Cache::insert`]; in a closure under the lock, only if the key is not there.
    ///
    /// ```
    /// let sessions: koel::Cache<&str, u32> = koel::Cache::new(10);
    /// assert_eq!(sessions.try_insert("ada", 1)?, Ok(()));
    /// let occupied = sessions.try_insert("ada", 2)?.unwrap_err();
    /// assert_eq!((occupied.current, occupied.not_inserted), (1, 2));
    /// # Ok::<(), koel::Refused<&str, u32>>(())
    /// ```
    #[doc(alias = "insert_if_absent")]
    pub fn try_insert(&self, key: K, value: V) -> Result<Result<(), Occupied<V, V>>, Refused<K, V>>
    where
        V: Clone,
    {
        // Usually the key is there, if several threads do the same; then nothing is locked, and no load is disturbed.
        let digest = self.digest(&key);
        let there = {
            let guard = self.enter();
            self.peek_entry(digest, &key, &guard).map(|entry| entry.pair().1.clone())
        };
        if let Some(current) = there {
            // Before there is an answer: a finished answer leaks if a drop panics.
            drop(key);
            return Ok(Err(Occupied { current, not_inserted: value }));
        }
        let mut new_entry = self.new_entry(&key, &value);
        self.flights.invalidate(digest, &key);
        let mut out = self.departures(self.enter_to_write());
        let mut at = self.at(digest, &key);
        self.begin(&mut new_entry);
        let mut current = self.alive_at(&mut at, new_entry.now, &mut out);
        if current.is_none() && !self.has_quota_at_once(&at, &new_entry) {
            match self.at_when_it_has_quota(at, &key, &mut new_entry, &mut out) {
                Some(with_quota) => {
                    at = with_quota;
                    // The key may have been inserted while other segments were asked.
                    current = self.alive_at(&mut at, new_entry.now, &mut out);
                }
                None => {
                    let why = Why::TooHeavy { weight: new_entry.facts.weight, capacity: self.capacity() };
                    out.end();
                    return Err(Refused { key, value, why });
                }
            }
        }
        let done = match current {
            Some(entry) => {
                drop(at);
                // SAFETY: in the table, under the lock, after the guard of `out` was entered, which has not ended.
                let current = unsafe { Entry::<K, V>::deref(entry) }.pair().1.clone();
                // As above.
                drop(key);
                Ok(Err(Occupied { current, not_inserted: value }))
            }
            None => {
                let put = self.put_at(&mut at, &new_entry, key, value, &mut out);
                drop(at);
                put.map(|_| Ok(()))
            }
        };
        // Before there is an answer: a finished answer leaks if the listener panics.
        out.end();
        done
    }

    /// The entry of a key that was looked for, if it may be returned; an expired entry is taken out.
    fn alive_at(&self, at: &mut At<'_>, now: Nanos, out: &mut Departures<'_, K, V>) -> Option<EntryPointer> {
        let found = at.found?;
        let entry = at.writing.locked.item(found);
        if !self.has_expired(entry, now) {
            return Some(entry);
        }
        self.take_out(&mut at.writing.locked, found, Cause::Expired, out);
        at.found = None;
        None
    }

    /// Puts an entry where a key is or should be, in a segment that has quota for it and stays locked.
    #[inline]
    pub(super) fn put_at<'c>(
        &'c self,
        at: &mut At<'c>,
        new_entry: &NewEntry,
        key: K,
        value: V,
        out: &mut Departures<'_, K, V>,
    ) -> Result<EntryPointer, Refused<K, V>> {
        if at.found.is_none() {
            // The prefetch is on its way while the entry is made.
            room::prefetch(&at.writing.locked, new_entry.newcomer(at.digest));
        }
        let entry = match self.make(at, new_entry, key, value) {
            Ok(new) => new.into_raw(),
            Err((key, value)) => return Err(Refused { key, value, why: Why::OutOfMemory }),
        };
        // If the user's `Hash` panics, the entry is dropped unlocked.
        out.coming = Some(entry);
        let locked = &mut at.writing.locked;
        self.sweep_a_little(locked, new_entry.now, out);
        // An entry that was let in once, and grows, is not asked again what it is worth.
        let is_done = match at.found.take() {
            Some(found) => self.replace_found(locked, found, entry, new_entry, out),
            // A new entry may be turned away only where entries differ in weight.
            None => self.weigher.is_some() && self.turn_away(locked, at.digest, entry, new_entry, out),
        };
        if !is_done {
            let newcomer = new_entry.newcomer(at.digest);
            let mut insertion = Inserting { cache: self, new_entry, out };
            room::add(&self.table.directory, at, entry, newcomer, &mut insertion);
        }
        out.coming = None;
        self.settle(&mut at.writing.locked, out);
        out.gone.counts.inserted();
        Ok(entry)
    }

    /// Turns a new entry away, if it is not worth the entries that would have to leave for it: as if it had been evicted at
    /// once.
    #[inline(never)]
    fn turn_away(
        &self,
        locked: &mut Locked<'_, CacheSlots>,
        digest: Digest,
        entry: EntryPointer,
        new_entry: &NewEntry,
        out: &mut Departures<'_, K, V>,
    ) -> bool {
        let goes = new_entry.is_turned_away || self.turns_away(locked, new_entry, 0, digest, out);
        if goes {
            let cause = out.gone.cause_now(entry, new_entry.now, Cause::Size);
            if cause == Cause::Size {
                out.gone.counts.turned_away();
            }
            let reserve = &mut locked.state().keep.reserve;
            // SAFETY: under the lock, and nobody else has it.
            unsafe { out.gone.departed(entry, cause, reserve) };
        }
        goes
    }

    /// Puts a new entry in the place of an old one, after others have made room for the difference in weight. Returns false if
    /// the old one had expired and is gone.
    fn replace_found(
        &self,
        locked: &mut Locked<'_, CacheSlots>,
        found: Found,
        new: EntryPointer,
        new_entry: &NewEntry,
        out: &mut Departures<'_, K, V>,
    ) -> bool {
        let Some(old) = locked.residents().item_if_taken(found) else { return false };
        // Counts as a use, like a hit: noted before the victims are chosen.
        let mark = locked.residents().mark(found);
        locked.residents().set_mark(found, Policy::touch(mark));
        let (before, after) = (self.weight_of(old), new_entry.facts.weight);
        if after > before {
            self.make_room_beside(locked, found, after - before, new_entry.now, out);
        }
        let mark = locked.residents().mark(found);
        locked.replace(found, new);
        let cause = out.gone.cause_now(old, new_entry.now, Cause::Replaced);
        out.gone.counts.departed(cause, before);
        let share = &mut locked.state().keep;
        share.evictor.reweighed(mark, before, after);
        // SAFETY: just replaced, under the lock.
        unsafe { out.gone.add(&mut share.reserve, old, cause) };
        self.publish_used(locked);
        true
    }
}
