//! All flights: joining one, and marking flights whose values are stale.
//!
//! Any thread may call anything at any time.

use core::fmt;
use core::marker::PhantomData;
use std::sync::Arc;

use crossbeam_utils::CachePadded;
use equivalent::Equivalent;

use super::entry::Entry;
use super::erased::Erased;
use super::leader::{Flight, Landing, Lead};
use super::running;
use super::shard::{At, FlightId, IsKey, Shard, ShardTable};
use super::wait::{Follower, Wait};
use super::waits;
use crate::hash::Digest;
use crate::sync::{MutexGuard, Ordering, SCHEDULED, fence};
use crate::to_key::ToKey;

/// A shard is locked for some dozens of nanoseconds, two or three times per load: 32 shards are enough for any machine.
const SHARDS: usize = if SCHEDULED { 1 } else { 32 };
const _: () = assert!(SHARDS.is_power_of_two());

/// The keys that are being loaded. What is below this, the shards and the roles, does not know their type, and is compiled once
/// for all caches.
pub(crate) struct Flights<K, V> {
    shards: Shards,
    /// It may be sent and shared, and must be outlived, as if it had keys and values in it. Boxed: it may be moved if these may
    /// not.
    types: PhantomData<Box<Contents<K, V>>>,
}

/// As what is in the shards: keys under a lock, and values that are shared.
type Contents<K, V> = std::sync::Mutex<(K, Arc<V>)>;

type Shards = Box<[CachePadded<Shard>; SHARDS]>;

/// What belongs to one flight of a cache: as a reference to all of them.
pub(super) type Of<'a, K, V> = PhantomData<&'a Flights<K, V>>;

// SAFETY: it is sent while nobody borrows it: an outcome's `Arc` is shared only with a `Wait`, which borrows, or which was
// forgotten and does not look any more. Without this, values would have to be `Sync`.
unsafe impl<K: Send, V: Send> Send for Flights<K, V> {}

/// What [`Flights::join`] makes of its caller.
pub(super) enum Join<'a, K, V> {
    /// The caller loads the key.
    Leader(Flight<'a, K, V>),
    /// Another caller loads it.
    Follower(Wait<'a, K, V>),
    /// Another caller loads it, and waits for this one.
    Recursion,
}

impl<K, V> Flights<K, V> {
    /// No flights yet.
    pub(crate) fn new() -> Self {
        Flights { shards: new_shards(), types: PhantomData }
    }

    /// How many flights there are: exact while nobody joins or leaves.
    pub(crate) fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.len()).sum()
    }

    /// How many callers follow the flight of a key that can still be joined.
    #[cfg(any(test, loom))]
    pub(super) fn followers(&self, digest: Digest, key: &K) -> usize
    where
        K: Eq,
    {
        let mut table = self.shard(digest).table.lock();
        table.find_current(digest, &self.is_key(key)).map_or(0, |entry| entry.followers())
    }

    /// The shard of this digest. hashbrown uses the lowest and the highest bits.
    #[inline]
    fn shard(&self, digest: Digest) -> &Shard {
        &self.shards[digest.prefix() as usize & (SHARDS - 1)]
    }

    /// Whether a key of these flights is this one.
    fn is_key<Q: ?Sized + Equivalent<K>>(&self, key: &Q) -> impl Fn(&Erased) -> bool {
        // SAFETY: all keys in these shards come from the methods of this type, which make them of a `K`; and they are looked at
        // under a shard's lock.
        move |own| key.equivalent(unsafe { own.get::<K>() })
    }
}

fn new_shards() -> Shards {
    Box::new(core::array::from_fn(|_| CachePadded::new(Shard::new())))
}

impl<K: Eq + Clone, V> Flights<K, V> {
    /// Joins the flight of a key, or starts one.
    pub(super) fn join(&self, digest: Digest, key: &K) -> Join<'_, K, V> {
        self.join_from(&running::stack(), digest, key)
    }

    /// The same, on behalf of the loaders of these flights.
    pub(super) fn join_from(&self, stack: &[FlightId], digest: Digest, key: &K) -> Join<'_, K, V> {
        // For a new flight, which is nearly always needed. Not under the lock, because `Clone` is the user's.
        let own_key = Erased::new(key.clone());
        match join(self.shard(digest), stack, digest, own_key, &self.is_key(key)) {
            // SAFETY: of these flights.
            Joined::Leader(lead) => Join::Leader(unsafe { Flight::new(lead) }),
            // SAFETY: of these flights.
            Joined::Follower(follower) => Join::Follower(unsafe { Wait::new(follower) }),
            Joined::Recursion => Join::Recursion,
        }
    }

    /// Leads the flight of a key, unless the key is being loaded: then nobody loads it before the flight is called off, and
    /// callers that join meanwhile look it up after that.
    pub(crate) fn lead(&self, digest: Digest, key: &K) -> Option<Landing<'_, K, V>> {
        let own_key = Erased::new(key.clone());
        let lead = lead(self.shard(digest), digest, own_key, &self.is_key(key))?;
        // SAFETY: of these flights.
        Some(Landing::new(unsafe { Flight::new(lead) }))
    }

    /// Leads the flight of a key whose value is due, unless another caller leads it [F8].
    pub(crate) fn refresh<Q>(&self, digest: Digest, key: &Q) -> Option<Flight<'_, K, V>>
    where
        Q: ?Sized + Equivalent<K> + ToKey<K>,
    {
        let (shard, is_key) = (self.shard(digest), self.is_key(key));
        // Before a key is made: until its new value has come, all callers that ask for the key come here.
        if shard.is_led(digest, &is_key) {
            return None;
        }
        let own_key = Erased::new(key.to_key());
        let lead = lead(shard, digest, own_key, &is_key)?;
        // SAFETY: of these flights.
        Some(unsafe { Flight::new(lead) }.refreshing())
    }
}

/// What [`join`] makes of its caller.
enum Joined<'a> {
    Leader(Lead<'a>),
    Follower(Follower<'a>),
    Recursion,
}

/// Joins the flight of a key, or starts one, on behalf of the loaders of these flights.
// Inlined, because most loads begin here.
#[inline(always)]
fn join<'a>(
    shard: &'a Shard,
    stack: &[FlightId],
    digest: Digest,
    own_key: Erased,
    is_key: IsKey<'_>,
) -> Joined<'a> {
    let table = shard.table.lock();
    if table.len() == 0 {
        return Joined::Leader(start(shard, digest, own_key, table));
    }
    join_one_of(shard, stack, (digest, own_key, is_key), table)
}

/// The same where there are flights.
fn join_one_of<'a>(
    shard: &'a Shard,
    stack: &[FlightId],
    (digest, own_key, is_key): (Digest, Erased, IsKey<'_>),
    mut table: MutexGuard<'a, ShardTable>,
) -> Joined<'a> {
    let is_running = |entry: &Entry| stack.contains(&shard.id(entry.number));
    if !stack.is_empty() && table.find_equal(digest, is_running, is_key).is_some() {
        return Joined::Recursion;
    }
    match lead_in(shard, digest, own_key, is_key, table) {
        Ok(lead) => Joined::Leader(lead),
        Err(LedByOther { mut table, at, own_key }) => {
            let entry = table.find_numbered(digest, at.number);
            let (ticket, outcome) = entry.expect("found under this lock").follow();
            drop(table);
            let follower = Follower::new(at, ticket, outcome);
            // Before there is an answer: one that is returned leaks if a drop panics.
            drop(own_key);
            follow_without_deadlock(follower, stack)
        }
    }
}

/// Leads the flight of a key, unless another caller leads it.
fn lead<'a>(shard: &'a Shard, digest: Digest, own_key: Erased, is_key: IsKey<'_>) -> Option<Lead<'a>> {
    lead_in(shard, digest, own_key, is_key, shard.table.lock()).ok()
}

/// Leads the flight of a key: a new one, or one that has no leader. If `Eq` panics, the key is dropped unlocked, because it is
/// declared before the table.
fn lead_in<'a>(
    shard: &'a Shard,
    digest: Digest,
    own_key: Erased,
    is_key: IsKey<'_>,
    mut table: MutexGuard<'a, ShardTable>,
) -> Result<Lead<'a>, LedByOther<'a>> {
    let Some(entry) = table.find_current(digest, is_key) else {
        return Ok(start(shard, digest, own_key, table));
    };
    let (number, is_led) = (entry.number, entry.led);
    // By that other caller, or from now on by this one.
    entry.led = true;
    let at = At::new(shard, digest, number);
    if is_led {
        return Err(LedByOther { table, at, own_key });
    }
    let lead = Lead::new(at);
    drop(table);
    // Before there is an answer, as above.
    lead.run(|| drop(own_key));
    Ok(lead)
}

/// Starts the flight of a key that has none that can be joined.
#[inline(always)]
fn start<'a>(
    shard: &'a Shard,
    digest: Digest,
    own_key: Erased,
    mut table: MutexGuard<'a, ShardTable>,
) -> Lead<'a> {
    let number = shard.start(&mut table, digest, own_key);
    let at = At::new(shard, digest, number);
    drop(table);
    // Pairs with `invalidate`'s: either that call sees the flight, or the loader sees what came before the call [F5].
    fence(Ordering::SeqCst);
    Lead::new(at)
}

/// A flight that has a leader.
struct LedByOther<'a> {
    /// Dropped first, because the key's drop is the user's.
    table: MutexGuard<'a, ShardTable>,
    at: At<'a>,
    own_key: Erased,
}

/// If the loads that run may wait for this flight, waits for it.
fn follow_without_deadlock<'a>(mut follower: Follower<'a>, running: &[FlightId]) -> Joined<'a> {
    if running.is_empty() {
        return Joined::Follower(follower);
    }
    match waits::for_flight(running.to_vec(), follower.id()) {
        Some(edge) => {
            follower.keep(edge);
            Joined::Follower(follower)
        }
        None => Joined::Recursion,
    }
}

impl<K, V> Flights<K, V> {
    /// Whether this key is being loaded and has not been written to since; also true if that cannot be determined without
    /// waiting.
    pub(crate) fn may_be_led<Q: ?Sized + Equivalent<K>>(&self, digest: Digest, key: &Q) -> bool {
        self.shard(digest).may_be_led(digest, &self.is_key(key))
    }

    /// Notes that the key is about to be written to, or removed, other than by its loader.
    ///
    /// What [F5] asks of the cache: every such write calls this before it changes the cache's table, which it does under the
    /// lock under which leaders ask [`Landing::may_put`] and put their values if there is none that stays. A removal takes that
    /// lock even if it finds nothing to remove. Evictions and expiry need not call.
    ///
    /// Costs a fence and a load while nothing is loaded in this shard.
    #[inline]
    pub(crate) fn invalidate<Q: ?Sized + Equivalent<K>>(&self, digest: Digest, key: &Q) {
        // Pairs with `start`'s, before the loader runs: either that flight's count is seen here, or the loader sees what came
        // before this.
        fence(Ordering::SeqCst);
        let shard = self.shard(digest);
        if !shard.is_idle() {
            shard.invalidate(digest, &self.is_key(key));
        }
    }

    /// Begins an operation that decides about a key under the lock of the cache's table, and may write to the source of values
    /// itself. When it has decided, [`Deciding::done`], called under that lock, does what [`Self::invalidate`] does, and so
    /// does the drop if the operation panics.
    pub(crate) fn deciding<'a, Q: ?Sized>(&'a self, digest: Digest, key: &'a Q) -> Deciding<'a, K, V, Q> {
        Deciding { flights: self, digest, key }
    }

    /// [`Self::invalidate`] for all keys.
    pub(crate) fn invalidate_all(&self) {
        // Pairs with `start`'s, as that of `invalidate` does [F5].
        fence(Ordering::SeqCst);
        for shard in self.shards.iter().filter(|shard| !shard.is_idle()) {
            shard.invalidate_all();
        }
    }
}

/// An operation that is deciding about a key.
#[must_use = "marks the key's flight as stale when it is dropped"]
pub(crate) struct Deciding<'a, K, V, Q: ?Sized> {
    flights: &'a Flights<K, V>,
    digest: Digest,
    key: &'a Q,
}

impl<K, V, Q: ?Sized + Equivalent<K>> Deciding<'_, K, V, Q> {
    /// Notes that it has decided: the loader that runs may have read what was there before.
    #[inline]
    pub(crate) fn done(self) {
        self.flights.invalidate(self.digest, self.key);
        core::mem::forget(self);
    }
}

/// On a panic: marks all flights of the digest, because comparing keys may panic a second time.
impl<K, V, Q: ?Sized> Drop for Deciding<'_, K, V, Q> {
    fn drop(&mut self) {
        // As in `invalidate`: pairs with `start`'s.
        fence(Ordering::SeqCst);
        self.flights.shard(self.digest).invalidate_digest(self.digest);
    }
}

/// Shows how many, not which: any `K` and `V` will do.
impl<K, V> fmt::Debug for Flights<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Flights").field("len", &self.len()).finish_non_exhaustive()
    }
}
