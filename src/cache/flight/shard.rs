//! Some of the flights, and what is to be known of each.
//!
//! A shard's lock guards its flights; it is a leaf: under it run `K`'s `Eq`, which must not use the cache, and clones of
//! wakers, and nothing else of anybody's.

use core::fmt;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::task::Waker;

use equivalent::Equivalent;
use hashbrown::HashTable;

use super::terms::Failure;
use crate::hash::Digest;
use crate::sync::{AtomicU64, AtomicUsize, Mutex, Ordering, global};

/// An empty table that has room for more than this gives it back.
const KEPT_CAPACITY: usize = 64;

global! {
    /// Shards that were made.
    static SHARD_NUMBERS: AtomicU64 = AtomicU64::new(0);
}

/// Some of the flights.
pub(super) struct Shard<K, V> {
    /// No other shard of the process has or had it.
    number: u64,
    /// As many as `table` has; stored under its lock.
    loads: AtomicUsize,
    pub(super) table: Mutex<ShardTable<K, V>>,
}

pub(super) struct ShardTable<K, V> {
    pub(super) entries: HashTable<Entry<K, V>>,
    next_number: u64,
}

/// What followers get: the value, or an error that the leader shares.
pub(super) type Outcome<V> = OnceLock<Result<V, Failure>>;

/// Followers who sleep, by the numbers of their waits.
pub(super) type Sleepers = BTreeMap<u64, Waker>;

/// One flight. Of those of one key, at most one is not stale [F1].
pub(super) struct Entry<K, V> {
    digest: Digest,
    pub(super) key: K,
    pub(super) number: u64,
    /// Someone leads; otherwise the leader has failed and its followers are about to take over [F4].
    pub(super) led: bool,
    /// The key was written to since the load began: nobody joins any more [F5].
    pub(super) stale: bool,
    /// From now on its value is put into the cache, if it is kept: who joins looks the key up, when the flight has ended [F3].
    pub(super) closed: bool,
    /// How many `Wait`s there are.
    pub(super) followers: usize,
    next_ticket: u64,
    /// Those of them who sleep, in the order in which they joined.
    pub(super) sleepers: Sleepers,
    /// Where what comes of it comes to lie for the followers, if there ever were any.
    pub(super) outcome: Option<Arc<Outcome<V>>>,
}

/// A flight's name, which none before had: a wait for it that was forgotten means no other one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FlightId {
    /// Its shard's number.
    shard: u64,
    number: u64,
}

/// Where a flight is to be found.
pub(super) struct At<'a, K, V> {
    pub(super) shard: &'a Shard<K, V>,
    pub(super) digest: Digest,
    pub(super) number: u64,
}

impl<K, V> Shard<K, V> {
    /// Without flights.
    pub(super) fn new() -> Self {
        // Relaxed: each gets another one.
        let number = SHARD_NUMBERS.fetch_add(1, Ordering::Relaxed);
        let table = ShardTable { entries: HashTable::new(), next_number: 0 };
        Shard { number, loads: AtomicUsize::new(0), table: Mutex::new(table) }
    }

    /// How many flights there are.
    pub(super) fn len(&self) -> usize {
        // Relaxed: a number to look at.
        self.loads.load(Ordering::Relaxed)
    }

    /// Nobody loads any of its keys.
    #[inline]
    pub(super) fn is_idle(&self) -> bool {
        // Relaxed: ordered by the fences of `join` and `invalidate`.
        self.loads.load(Ordering::Relaxed) == 0
    }

    /// What [`Flights::invalidate`](super::flights::Flights::invalidate) does where somebody is loading. By itself, so that
    /// who writes has nothing to prepare for it.
    #[cold]
    #[inline(never)]
    pub(super) fn invalidate<Q: ?Sized + Equivalent<K>>(&self, digest: Digest, key: &Q) {
        let mut table = self.table.lock();
        let entry = table.find(digest, |entry| !entry.stale && key.equivalent(&entry.key));
        entry.into_iter().for_each(Entry::mark_stale);
    }

    /// The same for all keys of a digest, which calls nothing of anybody's.
    #[cold]
    pub(super) fn invalidate_digest(&self, digest: Digest) {
        let mut table = self.table.lock();
        let entries = table.entries.iter_mut().filter(|entry| entry.digest == digest);
        entries.for_each(Entry::mark_stale);
    }

    /// Whether somebody loads this key, and nobody has written to it since.
    pub(super) fn is_led<Q: ?Sized + Equivalent<K>>(&self, digest: Digest, key: &Q) -> bool {
        !self.is_idle() && self.table.lock().is_led(digest, key)
    }

    /// The same; yes, if it cannot be told at once. Waits for nobody: it may be asked by the user's `Eq`, which runs under the
    /// lock.
    pub(super) fn may_be_led<Q: ?Sized + Equivalent<K>>(&self, digest: Digest, key: &Q) -> bool {
        !self.is_idle() && self.table.try_lock().is_none_or(|mut table| table.is_led(digest, key))
    }

    pub(super) fn id(&self, number: u64) -> FlightId {
        FlightId { shard: self.number, number }
    }

    /// Starts a flight in this shard's table; its number.
    pub(super) fn start(&self, table: &mut ShardTable<K, V>, digest: Digest, key: K) -> u64 {
        let number = table.insert(digest, key);
        // Relaxed: ordered by `join`'s fence.
        self.loads.store(table.entries.len(), Ordering::Relaxed);
        number
    }
}

impl<K, V> ShardTable<K, V> {
    fn is_led<Q: ?Sized + Equivalent<K>>(&mut self, digest: Digest, key: &Q) -> bool {
        let is_it = |entry: &Entry<K, V>| !entry.stale && key.equivalent(&entry.key);
        self.find(digest, is_it).is_some_and(|entry| entry.led)
    }

    pub(super) fn find(
        &mut self,
        digest: Digest,
        mut is_it: impl FnMut(&Entry<K, V>) -> bool,
    ) -> Option<&mut Entry<K, V>> {
        self.entries.find_mut(digest.bits(), |entry| entry.digest == digest && is_it(entry))
    }

    /// A new flight, with a leader; its number.
    fn insert(&mut self, digest: Digest, key: K) -> u64 {
        let number = self.next_number;
        self.next_number += 1;
        let entry = Entry {
            digest,
            key,
            number,
            led: true,
            stale: false,
            closed: false,
            followers: 0,
            next_ticket: 0,
            sleepers: Sleepers::new(),
            outcome: None,
        };
        self.entries.insert_unique(digest.bits(), entry, |entry| entry.digest.bits());
        number
    }
}

impl<K, V> Entry<K, V> {
    /// Marks it if it is being loaded. The load of one without a leader has yet to begin, after what is written now.
    pub(super) fn mark_stale(&mut self) {
        self.stale |= self.led;
    }

    /// The follower of this ticket leads from now on. Its waker, to be dropped when the lock is not held any more.
    pub(super) fn take_over(&mut self, ticket: u64) -> Option<Waker> {
        self.led = true;
        self.followers -= 1;
        self.sleepers.remove(&ticket)
    }

    /// One more follower: the number of its wait, and where the outcome comes to lie for it.
    pub(super) fn follow(&mut self) -> (u64, Arc<Outcome<V>>) {
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        self.followers += 1;
        // One that nobody sets.
        let outcome =
            if self.closed { Arc::default() } else { Arc::clone(self.outcome.get_or_insert_default()) };
        (ticket, outcome)
    }
}

impl<'a, K, V> At<'a, K, V> {
    /// Its name.
    pub(super) fn id(&self) -> FlightId {
        self.shard.id(self.number)
    }

    /// Looks at the flight, or at nothing if it has ended, under the lock.
    pub(super) fn with<T>(&self, f: impl FnOnce(Option<&mut Entry<K, V>>) -> T) -> T {
        f(self.shard.table.lock().find(self.digest, |entry| entry.number == self.number))
    }

    /// Changes the flight under the lock, and ends it if `f` says so: what is left of it is the caller's, to drop and to
    /// wake outside of the lock.
    pub(super) fn end_if(&self, f: impl FnOnce(&mut Entry<K, V>) -> bool) -> Option<Entry<K, V>> {
        let mut table = self.shard.table.lock();
        let is_it = |entry: &Entry<K, V>| entry.digest == self.digest && entry.number == self.number;
        let mut found = table.entries.find_entry(self.digest.bits(), is_it).ok()?;
        if !f(found.get_mut()) {
            return None;
        }
        let (entry, _) = found.remove();
        // Relaxed: who sees it is not to learn anything from it.
        self.shard.loads.store(table.entries.len(), Ordering::Relaxed);
        if table.entries.is_empty() && table.entries.capacity() > KEPT_CAPACITY {
            table.entries = HashTable::new();
        }
        Some(entry)
    }
}

impl<K, V> Clone for At<'_, K, V> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K, V> Copy for At<'_, K, V> {}

impl<K, V> fmt::Debug for At<'_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.id().fmt(f)
    }
}
