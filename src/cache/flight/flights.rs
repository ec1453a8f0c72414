//! The table of flights: who loads which key, and who waits for it.
//!
//! Any thread may call anything at any time. A shard's lock guards its flights; it is a leaf: under it run `K`'s `Eq`, which
//! must not use the cache, and clones of wakers, and nothing else of anybody's.

use core::fmt;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::task::Waker;

use crossbeam_utils::CachePadded;
use equivalent::Equivalent;
use hashbrown::HashTable;

use super::leader::{Flight, Landing};
use super::running;
use super::wait::Wait;
use super::waits;
use crate::hash::Digest;
use crate::sync::{AtomicU64, AtomicUsize, Mutex, Ordering, SCHEDULED, fence, global};

/// A shard is held for some dozens of nanoseconds, twice a load: 32 are enough for any machine.
const SHARDS: usize = if SCHEDULED { 1 } else { 32 };
const _: () = assert!(SHARDS.is_power_of_two());

/// An empty table that has room for more than this gives it back.
const KEPT_CAPACITY: usize = 64;

global! {
    /// Shards that were made.
    static SHARD_NUMBERS: AtomicU64 = AtomicU64::new(0);
}

/// The keys that are being loaded.
pub(crate) struct Flights<K, V> {
    shards: Box<[CachePadded<Shard<K, V>>]>,
}

// SAFETY: it is sent while nobody borrows it: whoever shares an outcome's `Arc` is a `Wait`, which borrows, or was forgotten
// and does not look any more. Without this, values would have to be `Sync`.
unsafe impl<K: Send, V: Send> Send for Flights<K, V> {}

/// What [`Flights::join`] makes of its caller.
pub(super) enum Join<'a, K, V> {
    /// It loads the key.
    Leader(Flight<'a, K, V>),
    /// Another does.
    Follower(Wait<'a, K, V>),
    /// Another does who waits for this one.
    Recursion,
}

/// Some of the flights.
pub(super) struct Shard<K, V> {
    /// No other shard of the process has or had it.
    number: u64,
    /// As many as `table` has; written under its lock.
    loads: AtomicUsize,
    table: Mutex<ShardTable<K, V>>,
}

struct ShardTable<K, V> {
    entries: HashTable<Entry<K, V>>,
    next_number: u64,
}

/// One flight. Of those of one key, at most one is not stale [F1].
pub(super) struct Entry<K, V> {
    digest: Digest,
    key: K,
    number: u64,
    /// Someone leads; otherwise the leader has failed and its followers are about to take over [F4].
    pub(super) led: bool,
    /// The key was written to since the load began: nobody joins any more [F5].
    pub(super) stale: bool,
    /// How many `Wait`s there are.
    pub(super) followers: usize,
    next_ticket: u64,
    /// Those of them who sleep, longest first.
    pub(super) sleepers: BTreeMap<u64, Waker>,
    /// Where the value comes to lie for the followers, if there ever were any.
    pub(super) outcome: Option<Arc<OnceLock<V>>>,
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
    shard: &'a Shard<K, V>,
    digest: Digest,
    number: u64,
}

impl<K, V> Flights<K, V> {
    /// None yet.
    pub(crate) fn new() -> Self {
        let shard = || {
            // Relaxed: each gets another one.
            let number = SHARD_NUMBERS.fetch_add(1, Ordering::Relaxed);
            let table = ShardTable { entries: HashTable::new(), next_number: 0 };
            CachePadded::new(Shard { number, loads: AtomicUsize::new(0), table: Mutex::new(table) })
        };
        Flights { shards: (0..SHARDS).map(|_| shard()).collect() }
    }

    /// How many there are: exact while nobody joins or leaves.
    pub(crate) fn len(&self) -> usize {
        // Relaxed: a number to look at.
        self.shards.iter().map(|shard| shard.loads.load(Ordering::Relaxed)).sum()
    }

    /// How many follow the flight of a key that one can join.
    #[cfg(any(test, loom))]
    pub(super) fn followers(&self, digest: Digest, key: &K) -> usize
    where
        K: Eq,
    {
        let mut table = self.shard(digest).table.lock();
        table.find(digest, |entry| !entry.stale && entry.key == *key).map_or(0, |entry| entry.followers)
    }

    /// Those with these digests. hashbrown uses the lowest and the highest bits.
    fn shard(&self, digest: Digest) -> &Shard<K, V> {
        &self.shards[digest.prefix() as usize & (self.shards.len() - 1)]
    }
}

impl<K: Eq + Clone, V> Flights<K, V> {
    /// Joins the flight of a key, or starts one.
    ///
    /// The key is cloned for a new flight, not under the lock.
    pub(super) fn join(&self, digest: Digest, key: &K) -> Join<'_, K, V> {
        let shard = self.shard(digest);
        let running = running::stack();
        let mut own_key = None;
        loop {
            let mut table = shard.table.lock();
            let id = |entry: &Entry<K, V>| shard.id(entry.number);
            if !running.is_empty()
                && table.find(digest, |entry| running.contains(&id(entry)) && entry.key == *key).is_some()
            {
                return Join::Recursion;
            }
            if let Some(entry) = table.find(digest, |entry| !entry.stale && entry.key == *key) {
                let at = At { shard, digest, number: entry.number };
                if !entry.led {
                    entry.led = true;
                    return Join::Leader(Flight::new(at));
                }
                let wait = entry.follow(at);
                drop(table);
                return follow_without_deadlock(wait, running);
            }
            if let Some(key) = own_key.take() {
                let number = table.insert(digest, key);
                // Relaxed: ordered by the fence.
                shard.loads.fetch_add(1, Ordering::Relaxed);
                drop(table);
                // Pairs with `invalidate`'s: that call sees the flight, or the loader what came before the call [F5].
                fence(Ordering::SeqCst);
                return Join::Leader(Flight::new(At { shard, digest, number }));
            }
            drop(table);
            own_key = Some(key.clone());
        }
    }
}

impl<K: Eq + Clone, V> Flights<K, V> {
    /// Leads the flight of a key, unless it is being loaded: nobody loads it then before the result is dropped, and who joins
    /// meanwhile looks it up after that.
    pub(crate) fn lead(&self, digest: Digest, key: &K) -> Option<Landing<'_, K, V>> {
        match self.join(digest, key) {
            Join::Leader(flight) => Some(Landing::new(flight)),
            Join::Follower(_) | Join::Recursion => None,
        }
    }
}

/// If the loads running on this thread may wait for this flight, waits for it.
fn follow_without_deadlock<K, V>(mut wait: Wait<'_, K, V>, running: Vec<FlightId>) -> Join<'_, K, V> {
    if running.is_empty() {
        return Join::Follower(wait);
    }
    match waits::for_flight(running, wait.id()) {
        Some(edge) => {
            wait.keep(edge);
            Join::Follower(wait)
        }
        None => Join::Recursion,
    }
}

impl<K, V> Flights<K, V> {
    /// The key is about to be written to, or removed, other than by its loader; `true` if it is being loaded.
    ///
    /// What [F5] asks of the cache: every such write calls this first, and then changes the cache's table under the
    /// lock under which leaders ask [`Flight::is_stale`] and put their values where there is none. If this says
    /// `true`, a removal takes that lock even if it finds nothing to remove. Evictions and expiry need not call.
    ///
    /// Costs a fence and a load while nothing is loaded in this shard.
    pub(crate) fn invalidate<Q: ?Sized + Equivalent<K>>(&self, digest: Digest, key: &Q) -> bool {
        // Pairs with `join`'s, before the loader runs: that flight's count is seen, or it sees what came before this.
        fence(Ordering::SeqCst);
        let shard = self.shard(digest);
        if shard.is_idle() {
            return false;
        }
        let mut table = shard.table.lock();
        table.find(digest, |entry| !entry.stale && key.equivalent(&entry.key)).is_some_and(Entry::mark_stale)
    }

    /// [`Self::invalidate`] for all keys; `true` if any is being loaded.
    pub(crate) fn invalidate_all(&self) -> bool {
        // Pairs with `join`'s, as that of `invalidate` does [F5].
        fence(Ordering::SeqCst);
        let mut any = false;
        for shard in self.shards.iter().filter(|shard| !shard.is_idle()) {
            for entry in shard.table.lock().entries.iter_mut() {
                any |= entry.mark_stale();
            }
        }
        any
    }
}

impl<K, V> Shard<K, V> {
    /// Nobody loads any of its keys.
    fn is_idle(&self) -> bool {
        // Relaxed: ordered by the fences of `join` and `invalidate`.
        self.loads.load(Ordering::Relaxed) == 0
    }

    fn id(&self, number: u64) -> FlightId {
        FlightId { shard: self.number, number }
    }
}

impl<K, V> ShardTable<K, V> {
    fn find(
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
            followers: 0,
            next_ticket: 0,
            sleepers: BTreeMap::new(),
            outcome: None,
        };
        self.entries.insert_unique(digest.bits(), entry, |entry| entry.digest.bits());
        number
    }
}

impl<K, V> Entry<K, V> {
    /// Marks it if it is being loaded. The load of one without a leader has yet to begin, after what is written now.
    fn mark_stale(&mut self) -> bool {
        self.stale |= self.led;
        self.led
    }

    /// One more follower.
    fn follow<'a>(&mut self, at: At<'a, K, V>) -> Wait<'a, K, V> {
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        self.followers += 1;
        Wait::new(at, ticket, Arc::clone(self.outcome.get_or_insert_default()))
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
        self.shard.loads.fetch_sub(1, Ordering::Relaxed);
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

/// How many, not which: any `K` and `V` will do.
impl<K, V> fmt::Debug for Flights<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Flights").field("len", &self.len()).finish_non_exhaustive()
    }
}

impl<K, V> fmt::Debug for At<'_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.id().fmt(f)
    }
}
