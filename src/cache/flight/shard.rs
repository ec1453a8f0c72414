//! Some of the flights.
//!
//! A shard's lock guards its flights; it is a leaf: of others' code, only the keys' `Eq`, which may look keys up and write
//! nothing [E3], and the cloning of wakers run under it.
//!
//! A shard does not know the type of its keys: its callers pass a function that says which one is meant.

use core::fmt;

use hashbrown::HashTable;

use super::entry::Entry;
use super::erased::Erased;
use crate::hash::Digest;
use crate::reentry::Comparing;
use crate::sync::{AtomicU64, AtomicUsize, Mutex, Ordering, global};

/// An empty table that has room for more than this gives its memory back.
const KEPT_CAPACITY: usize = 64;

global! {
    /// How many shards have been made.
    static SHARD_NUMBERS: AtomicU64 = AtomicU64::new(0);
}

/// Some of the flights.
pub(super) struct Shard {
    /// No other shard of the process has or had this number.
    number: u64,
    /// As many flights as `table` has; stored under its lock.
    loads: AtomicUsize,
    /// How often flights of this shard were to be marked as stale; stored under the table's lock.
    marks: AtomicU64,
    pub(super) table: Mutex<ShardTable>,
}

/// Flights by their keys.
pub(super) struct ShardTable {
    /// One of the flights. Mostly it is the only one, and need not be searched for.
    first: Option<Entry>,
    /// The other flights.
    more: HashTable<Entry>,
    next_number: u64,
}

/// Whether a key is the one that is meant, by the user's `Eq`.
pub(super) type IsKey<'k> = &'k dyn Fn(&Erased) -> bool;

/// A flight's identity, which no flight before had: a forgotten wait for it cannot be taken for a wait for another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FlightId {
    /// Its shard's number.
    shard: u64,
    number: u64,
}

/// Where to find a flight.
#[derive(Clone, Copy)]
pub(super) struct At<'a> {
    pub(super) shard: &'a Shard,
    pub(super) digest: Digest,
    pub(super) number: u64,
    /// The shard's count of marks, when the flight was not stale.
    marks: u64,
}

impl Shard {
    /// A shard without flights.
    pub(super) fn new() -> Self {
        // Relaxed: each shard gets a different number.
        let number = SHARD_NUMBERS.fetch_add(1, Ordering::Relaxed);
        let table = ShardTable { first: None, more: HashTable::new(), next_number: 0 };
        Shard { number, loads: AtomicUsize::new(0), marks: AtomicU64::new(0), table: Mutex::new(table) }
    }

    /// How many flights there are.
    pub(super) fn len(&self) -> usize {
        // Relaxed: a number to look at.
        self.loads.load(Ordering::Relaxed)
    }

    /// Whether none of its keys is being loaded.
    #[inline]
    pub(super) fn is_idle(&self) -> bool {
        // Relaxed: ordered by the fences of `flights::start` and `invalidate`.
        self.loads.load(Ordering::Relaxed) == 0
    }

    /// What [`Flights::invalidate`](super::flights::Flights::invalidate) does if a key is being loaded.
    #[cold]
    pub(super) fn invalidate(&self, digest: Digest, is_key: IsKey<'_>) {
        let mut table = self.table.lock();
        let entry = table.find_current(digest, is_key);
        self.mark(entry);
    }

    /// The same for all keys of a digest; calls no user code.
    #[cold]
    pub(super) fn invalidate_digest(&self, digest: Digest) {
        let mut table = self.table.lock();
        self.mark(table.iter_mut().filter(|entry| entry.digest == digest));
    }

    /// The same for all keys.
    pub(super) fn invalidate_all(&self) {
        self.mark(self.table.lock().iter_mut());
    }

    /// Marks these as stale, under the lock.
    fn mark<'e>(&self, entries: impl IntoIterator<Item = &'e mut Entry>) {
        entries.into_iter().for_each(Entry::mark_stale);
        // Relaxed, both: this lock orders them, and, for a leader that asks, that of the cache's table [F5].
        self.marks.store(self.marks().wrapping_add(1), Ordering::Relaxed);
    }

    /// How often flights were to be marked as stale.
    #[inline]
    fn marks(&self) -> u64 {
        self.marks.load(Ordering::Relaxed)
    }

    /// Whether this key is being loaded, and has not been written to since.
    pub(super) fn is_led(&self, digest: Digest, is_key: IsKey<'_>) -> bool {
        !self.is_idle() && self.table.lock().is_led(digest, is_key)
    }

    /// The same; true if that cannot be determined at once. Waits for nobody: it may be called by the user's `Eq`, which runs
    /// under the lock.
    pub(super) fn may_be_led(&self, digest: Digest, is_key: IsKey<'_>) -> bool {
        !self.is_idle() && self.table.try_lock().is_none_or(|mut table| table.is_led(digest, is_key))
    }

    pub(super) fn id(&self, number: u64) -> FlightId {
        FlightId { shard: self.number, number }
    }

    /// Starts a flight in this shard's table; returns its number.
    #[inline]
    pub(super) fn start(&self, table: &mut ShardTable, digest: Digest, key: Erased) -> u64 {
        let number = table.insert(digest, key);
        // Relaxed: ordered by the fence of `flights::start`.
        self.loads.store(table.len(), Ordering::Relaxed);
        number
    }
}

impl ShardTable {
    fn is_led(&mut self, digest: Digest, is_key: IsKey<'_>) -> bool {
        self.find_current(digest, is_key).is_some_and(|entry| entry.led)
    }

    pub(super) fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.more.len()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Entry> {
        self.first.iter_mut().chain(self.more.iter_mut())
    }

    /// The flight of a key that can be joined.
    pub(super) fn find_current(&mut self, digest: Digest, is_key: IsKey<'_>) -> Option<&mut Entry> {
        self.find_equal(digest, |entry| !entry.stale, is_key)
    }

    /// One of the flights that `is_it` accepts, by the user's `Eq`: look-ups that it makes run no destructor and no listener,
    /// because these would run under this table's lock.
    pub(super) fn find_equal(
        &mut self,
        digest: Digest,
        is_it: impl Fn(&Entry) -> bool,
        is_key: IsKey<'_>,
    ) -> Option<&mut Entry> {
        self.find(digest, |entry| {
            let _comparing = Comparing::new();
            is_it(entry) && is_key(&entry.key)
        })
    }

    /// The flight of this digest that `is_it` accepts.
    #[inline]
    fn find(&mut self, digest: Digest, is_it: impl Fn(&Entry) -> bool) -> Option<&mut Entry> {
        match &mut self.first {
            Some(first) if first.digest == digest && is_it(first) => Some(first),
            _ if self.more.is_empty() => None,
            _ => self.more.find_mut(digest.bits(), |entry| entry.digest == digest && is_it(entry)),
        }
    }

    /// The flight of this number, unless it has ended.
    #[inline]
    pub(super) fn find_numbered(&mut self, digest: Digest, number: u64) -> Option<&mut Entry> {
        self.find(digest, |entry| entry.number == number)
    }

    /// Takes out the flight of this number, if there is one.
    #[inline]
    fn take(&mut self, digest: Digest, number: u64) -> Option<Entry> {
        match &self.first {
            Some(first) if first.number == number => self.first.take(),
            _ => self.take_more(digest, number),
        }
    }

    /// The same, if the flight is not the first.
    #[cold]
    fn take_more(&mut self, digest: Digest, number: u64) -> Option<Entry> {
        let is_it = |entry: &Entry| entry.digest == digest && entry.number == number;
        let (taken, _) = self.more.find_entry(digest.bits(), is_it).ok()?.remove();
        if self.more.is_empty() && self.more.capacity() > KEPT_CAPACITY {
            self.more = HashTable::new();
        }
        Some(taken)
    }

    /// Adds a new flight, with a leader; returns its number.
    #[inline]
    fn insert(&mut self, digest: Digest, key: Erased) -> u64 {
        let number = self.next_number;
        self.next_number += 1;
        let entry = Entry::new(digest, key, number);
        if self.first.is_none() {
            self.first = Some(entry);
        } else {
            self.more.insert_unique(digest.bits(), entry, |entry| entry.digest.bits());
        }
        number
    }
}

impl<'a> At<'a> {
    /// A flight that is not stale: to be called under the lock under which that was seen.
    #[inline]
    pub(super) fn new(shard: &'a Shard, digest: Digest, number: u64) -> Self {
        At { shard, digest, number, marks: shard.marks() }
    }

    /// Whether this flight, or another one of its shard, may have been marked as stale since.
    #[inline]
    pub(super) fn may_be_marked(&self) -> bool {
        self.shard.marks() != self.marks
    }

    /// The flight's identity.
    pub(super) fn id(&self) -> FlightId {
        self.shard.id(self.number)
    }

    /// Calls `f` with the flight, or with `None` if it has ended, under the lock.
    pub(super) fn with<T>(&self, f: impl FnOnce(Option<&mut Entry>) -> T) -> T {
        f(self.shard.table.lock().find_numbered(self.digest, self.number))
    }

    /// Changes the flight under the lock, and ends it if `f` says so: the caller gets what is left of it, to drop and to wake
    /// outside of the lock.
    pub(super) fn end_if(&self, f: impl FnOnce(&mut Entry) -> bool) -> Option<Entry> {
        let mut table = self.shard.table.lock();
        let ends = table.find_numbered(self.digest, self.number).is_some_and(f);
        let ended = if ends { table.take(self.digest, self.number) } else { None };
        // Relaxed: a thread that reads it is to learn nothing else from it.
        self.shard.loads.store(table.len(), Ordering::Relaxed);
        ended
    }
}

impl fmt::Debug for At<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.id().fmt(f)
    }
}
