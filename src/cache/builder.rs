//! The options of a cache.

use core::fmt;
use core::hash::{BuildHasher, Hash};
use core::time::Duration;

use ahash::RandomState;

use super::Cache;
use super::bound::Bound;
use super::cache::{CacheSlots, Weigher};
use super::counters::Counters;
use super::error::CacheError;
use super::flight::Flights;
use super::meta::Fields;
use super::options::{Given, Options};
use super::policy::{Evictor, Policy};
use super::removal::{Cause, Listener, is_gathered};
use super::share::Share;
use super::time::{Clock, Lifetime, SystemClock, Time, nanos};
use crate::engine::Directory;
use crate::entries::{Entry, Table};

/// The options of a [`Cache`], from [`Cache::builder`].
///
/// Either [`max_entries`](Self::max_entries) or [`max_weight`](Self::max_weight) must be set. Where closures look into keys and
/// values, name the types of these first: in `Cache::<K, V>::builder()`, or in the closures' arguments.
///
/// ```
/// use std::time::Duration;
///
/// let cache = koel::Cache::<String, Vec<u8>>::builder()
///     .max_weight(64 << 20)
///     .weigher(|key, value| (key.len() + value.len()) as u64)
///     .time_to_live(Duration::from_secs(3600))
///     .on_removal(|key, _, cause| println!("{key}: {cause}"))
///     .build();
/// assert_eq!(cache.capacity(), 64 << 20);
/// ```
#[must_use = "a builder does nothing until `build`"]
pub struct CacheBuilder<K, V, S = RandomState> {
    options: Options,
    weigher: Option<Weigher<K, V>>,
    own_life: Option<Lifetime<K, V>>,
    own_idle: Option<Lifetime<K, V>>,
    clock: Option<Box<dyn Clock>>,
    listener: Option<Listener<K, V>>,
    hasher: S,
}

impl<K, V> CacheBuilder<K, V> {
    pub(super) fn new() -> Self {
        CacheBuilder {
            options: Options::default(),
            weigher: None,
            own_life: None,
            own_idle: None,
            clock: None,
            listener: None,
            hasher: RandomState::new(),
        }
    }
}

impl<K, V, S> CacheBuilder<K, V, S> {
    /// Bounds the number of entries. With 0 nothing is kept, and [`Cache::insert`] hands back what it is given.
    ///
    /// A cache of more than a few thousand entries is divided into segments, and each segment evicts when its own share is
    /// full. So the cache may end up slightly below the bound: of 10,000 keys, a cache for as many keeps about 9,900. A segment
    /// has room for about 2^25 entries at most, and the number of segments depends on the processors:
    /// [`CacheBuilder::try_build`] names the limit.
    ///
    /// The tables are made for all entries at once, with about 12 bytes each. Where the bound is hardly ever reached, use
    /// [`max_weight`](Self::max_weight) without a weigher, which grows as it fills.
    ///
    /// ```
    /// let off: koel::Cache<u32, u32> = koel::Cache::builder().max_entries(0).build();
    /// assert!(off.insert(1, 10).is_err());
    /// assert_eq!(off.get_or_insert_with(1, || 10), 10); // loaded anew each time
    /// assert!(off.is_empty());
    /// ```
    #[doc(alias = "max_capacity")]
    pub fn max_entries(mut self, entries: usize) -> Self {
        self.options.max_entries = Some(entries);
        self
    }

    /// Bounds the weight of all entries together, in the weigher's unit. Without a weigher each entry weighs 1, so `u64::MAX`
    /// is no bound, for a cache whose entries only expire. The cache is made small and grows, unless
    /// [`estimated_entries`](Self::estimated_entries) is set.
    ///
    /// ```
    /// let cache = koel::Cache::builder()
    ///     .max_weight(1 << 20)
    ///     .weigher(|_: &u32, page: &String| page.len() as u64)
    ///     .build();
    /// cache.insert(1, "x".repeat(1000)).unwrap();
    /// assert_eq!(cache.weight(), 1000);
    /// ```
    #[doc(alias = "max_capacity")]
    pub fn max_weight(mut self, weight: u64) -> Self {
        self.options.max_weight = Some(weight);
        self
    }

    /// Sets the function for the weight of an entry; 0 counts as 1. It is called once, before the entry is inserted, and with
    /// no lock held, except by `compute` and `update`, whose entries are made under a lock. A value that changes in place,
    /// behind a `Mutex`, keeps its weight: [`update`](Cache::update) by `Arc::clone` weighs it again.
    ///
    /// The weight is best given in bytes: entries that have left are freed soon if they weigh an eighth of the bound, but not
    /// before that is 65,536.
    ///
    /// ```
    /// let cache: koel::Cache<u32, String> = koel::Cache::builder()
    ///     .max_weight(100)
    ///     .weigher(|_, text: &String| text.len() as u64)
    ///     .build();
    /// cache.insert(1, "x".repeat(60)).unwrap();
    /// cache.insert(2, "y".repeat(40)).unwrap();
    /// assert_eq!((cache.len(), cache.weight()), (2, 100));
    /// assert!(cache.insert(3, "z".repeat(101)).is_err()); // heavier than the whole cache may be
    /// ```
    #[doc(alias = "with_weighter")]
    pub fn weigher(mut self, weigher: impl Fn(&K, &V) -> u64 + Send + Sync + 'static) -> Self {
        self.weigher = Some(Box::new(weigher));
        self
    }

    /// Sets roughly how many entries a cache by weight will have: it is made for that many, and divided into segments for that
    /// many. Without this option the cache is made small and grows as it fills, and has one segment for each 64 Ki of weight,
    /// but at most four to eight per core. Set it where entries are heavier than a few thousandths of the cache: where few
    /// entries are spread over many segments, the wrong ones are evicted, and hits may be a quarter fewer. A cache by entries
    /// is made for all of them and ignores this option.
    ///
    /// ```
    /// // A gigabyte of pictures of about a megabyte.
    /// let pictures: koel::Cache<&str, Vec<u8>> = koel::Cache::builder()
    ///     .max_weight(1 << 30)
    ///     .weigher(|_, picture: &Vec<u8>| picture.len() as u64)
    ///     .estimated_entries(1000)
    ///     .build();
    /// assert!(pictures.insert("koel", vec![0; 1 << 20]).is_ok());
    /// ```
    #[doc(alias = "initial_capacity")]
    pub fn estimated_entries(mut self, entries: usize) -> Self {
        self.options.estimated_entries = Some(entries);
        self
    }

    /// Sets the policy of eviction; [`Policy::Adaptive`] without this.
    ///
    /// ```
    /// use koel::{Cache, Policy};
    ///
    /// let cache: Cache<u32, u32> = Cache::builder().max_entries(100).policy(Policy::Clock).build();
    /// assert_eq!(cache.policy(), Policy::Clock);
    /// ```
    #[doc(alias = "eviction_policy")]
    pub fn policy(mut self, policy: Policy) -> Self {
        self.options.policy = policy;
        self
    }

    /// Sets the time after which an entry is not returned any more, counted from its insertion. Expired entries leave the
    /// cache, and the [removal listener](Self::on_removal) is told, some time later: by a look-up that finds one, by
    /// insertions, or by [`Cache::purge`].
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let clock = koel::ManualClock::new();
    /// let cache: koel::Cache<u32, u32> =
    ///     koel::Cache::builder().max_entries(9).time_to_live(Duration::from_secs(60)).clock(clock.clone()).build();
    /// cache.insert(1, 1).unwrap();
    /// clock.advance(Duration::from_secs(59));
    /// assert_eq!(cache.get(&1), Some(1));
    /// clock.advance(Duration::from_secs(1));
    /// assert_eq!(cache.get(&1), None);
    /// ```
    pub fn time_to_live(mut self, duration: Duration) -> Self {
        self.options.to_live = Some(duration);
        self
    }

    /// Sets the time after which an entry is not returned any more, counted from its insertion or last hit. Hits within a
    /// millisecond (for a duration below 64 ms: within a 64th of it) may count as the first of them.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let clock = koel::ManualClock::new();
    /// let cache: koel::Cache<u32, u32> =
    ///     koel::Cache::builder().max_entries(10).time_to_idle(Duration::from_secs(60)).clock(clock.clone()).build();
    /// cache.insert(1, 1).unwrap();
    /// for _ in 0..3 {
    ///     clock.advance(Duration::from_secs(59));
    ///     assert_eq!(cache.get(&1), Some(1)); // and has another minute
    /// }
    /// clock.advance(Duration::from_secs(60));
    /// assert_eq!(cache.get(&1), None);
    /// ```
    pub fn time_to_idle(mut self, duration: Duration) -> Self {
        self.options.to_idle = Some(duration);
        self
    }

    /// Sets a function for how long a single entry may be returned; `None` means as the other options say. It is called when
    /// the weigher is. Where several options limit an entry's time, the one that ends first counts.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let cache: koel::Cache<&str, u64> = koel::Cache::builder()
    ///     .max_entries(100)
    ///     .expiry(|_, seconds: &u64| Some(Duration::from_secs(*seconds)))
    ///     .build();
    /// cache.insert("gone at once", 0).unwrap();
    /// cache.insert("stays", 3600).unwrap();
    /// assert!(!cache.contains_key("gone at once") && cache.contains_key("stays"));
    /// ```
    #[doc(alias = "expire_after")]
    pub fn expiry(mut self, lifetime: impl Fn(&K, &V) -> Option<Duration> + Send + Sync + 'static) -> Self {
        self.own_life = Some(Box::new(lifetime));
        self
    }

    /// Sets a function for how long a single entry may be returned after its insertion or last hit, as
    /// [`time_to_idle`](Self::time_to_idle) does for all entries; `None` means as the other options say. It is called when the
    /// weigher is, and not when the entry is hit. Where both options are set, the shorter time counts.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// struct Session {
    ///     stays_logged_in: bool,
    /// }
    ///
    /// let clock = koel::ManualClock::new();
    /// let sessions = koel::Cache::builder()
    ///     .max_entries(1000)
    ///     .idle_expiry(|_: &u32, session: &Session| {
    ///         Some(Duration::from_secs(if session.stays_logged_in { 30 * 86_400 } else { 1800 }))
    ///     })
    ///     .clock(clock.clone())
    ///     .build();
    /// sessions.insert(1, Session { stays_logged_in: true }).unwrap();
    /// sessions.insert(2, Session { stays_logged_in: false }).unwrap();
    /// clock.advance(Duration::from_secs(1799));
    /// assert!(sessions.pin().get_ref(&2).is_some()); // and has another half hour
    /// clock.advance(Duration::from_secs(1800));
    /// assert!(sessions.contains_key(&1) && !sessions.contains_key(&2));
    /// ```
    #[doc(alias = "expire_after_read")]
    pub fn idle_expiry(mut self, idle: impl Fn(&K, &V) -> Option<Duration> + Send + Sync + 'static) -> Self {
        self.own_idle = Some(Box::new(idle));
        self
    }

    /// Has values loaded anew before they expire, while other callers still get the old ones. Each method that loads missing
    /// values, such as [`get_or_insert_with`](Cache::get_or_insert_with), also loads when it finds an entry that has no more
    /// than this time left until its deadline, unless another caller is loading it. The loader runs with no lock held, and what
    /// it returns takes the entry's place. All others that find the entry meanwhile get the old value and do not wait; callers
    /// that arrive after it has expired wait, as for any load.
    ///
    /// No thread is started: the caller waits for its own loader. Where no caller is to wait, let a task or thread make the
    /// call as soon as [`Cache::needs_refresh`] says so. Where calls have a time limit, put the limit around the work of the
    /// loader, not around the call: otherwise the old value is lost with the call. Methods that load nothing, such as
    /// [`get`](Cache::get), never refresh; nor do those that [reserve](Cache::get_or_reserve), nor calls under the cache's
    /// lock.
    ///
    /// If the loader fails, or the value it returns is too heavy, the old value stays. It is due again when half of the time is
    /// left, then a quarter, and so on, fifteen times in all, and never soon after a failure: so a source that fails is not
    /// asked all the time. The loader's caller gets the old value if that has not expired or been taken out by then, else the
    /// error. A panic goes to the loader's own caller, and a call whose future is dropped has done nothing: the next caller
    /// loads. A value that is written to the key meanwhile is not replaced, as in any load.
    ///
    /// The deadline is that of [`time_to_live`](Self::time_to_live) and [`expiry`](Self::expiry). An entry whose whole life is
    /// no longer than `ahead` is never refreshed; so a failure that is kept as a value for a short time is not loaded again
    /// before it expires. The time to idle is not a deadline: an entry that nobody asks for is not refreshed, and expires.
    /// Deadlines are up to 15 ns early.
    ///
    /// With this option, a hit of a method that loads reads the clock once more, and takes a lock for a moment while the value
    /// is being loaded anew. Without it, and with 0, nothing is refreshed. It must be less than the time to live.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let clock = koel::ManualClock::new();
    /// let prices: koel::Cache<&str, u32> = koel::Cache::builder()
    ///     .max_entries(100)
    ///     .time_to_live(Duration::from_secs(60))
    ///     .refresh_ahead(Duration::from_secs(10))
    ///     .clock(clock.clone())
    ///     .build();
    /// assert_eq!(prices.get_or_insert_with("koel", || 7), 7);
    ///
    /// clock.advance(Duration::from_secs(50));
    /// let new = prices.get_or_insert_with("koel", || {
    ///     assert_eq!(prices.get_or_insert_with("koel", || unreachable!()), 7); // another thread, for example
    ///     8
    /// });
    /// assert_eq!(new, 8);
    ///
    /// clock.advance(Duration::from_secs(50));
    /// let old = prices.try_get_or_insert_with("koel", || Err("the market is closed"));
    /// assert_eq!(old, Ok(8)); // for ten more seconds; tried again when five are left
    /// assert_eq!(prices.get_or_insert_with("koel", || unreachable!()), 8);
    /// ```
    #[doc(alias = "refreshAfterWrite")]
    pub fn refresh_ahead(mut self, ahead: Duration) -> Self {
        self.options.ahead = Some(ahead).filter(|ahead| !ahead.is_zero());
        self
    }

    /// Sets the clock that entries expire by; without this, the system's monotonic one. [`CoarseClock`](crate::CoarseClock)
    /// makes hits cheaper.
    ///
    /// On Linux both clocks stand still while the machine is suspended, so that entries live longer by that time; on some other
    /// systems they go on. Where a value ends at a time of day, as a token does, pass a clock that reads `CLOCK_BOOTTIME`. The
    /// time of day itself will not do, because it may be set back.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// // In a test no time needs to pass.
    /// let clock = koel::ManualClock::new();
    /// let cache: koel::Cache<&str, u32> =
    ///     koel::Cache::builder().max_entries(10).time_to_live(Duration::from_secs(3600)).clock(clock.clone()).build();
    /// cache.insert("session", 7).unwrap();
    /// clock.advance(Duration::from_secs(3600));
    /// assert_eq!(cache.get("session"), None);
    /// ```
    pub fn clock(mut self, clock: impl Clock + 'static) -> Self {
        self.clock = Some(Box::new(clock));
        self
    }

    /// Sets a listener that is told of each entry that has left the cache: once, with the cause, after the entry cannot be
    /// found any more, by the thread that took it out, with none of the cache's locks held. Entries that are in the cache when
    /// it is dropped have not left it: call [`Cache::clear`] before, if the listener is to be told of all. If the listener
    /// panics, it is still told of the other entries that left with this one, and then the panic goes on in the operation that
    /// took them out.
    ///
    /// The listener gets references, because others may be reading the entry. A resource that a value owns, such as a buffer
    /// that goes back to a pool, is given back by the value's `Drop`, when nobody reads the value any more, or a little later:
    /// see [`Cache::flush`].
    ///
    /// As no lock is held, other threads may insert the key again before the listener is told; and where two threads take out
    /// two values of one key, it may be told of the later one first. So a listener that maintains an index next to the cache
    /// takes out of the index the value that has left, and not whatever the index has for the key by then.
    ///
    /// An expired entry leaves some time after its deadline: by a look-up that finds it, by insertions, or by [`Cache::purge`],
    /// which a thread or task of yours may call now and then.
    ///
    /// The caller that sent the entry away waits for the listener, and so does whoever waits for that caller, as for other keys
    /// of a batch load. So the listener must not ask for a lock that the caller holds: `cache.insert(key,
    /// files.write().unwrap().create())` holds one until `insert` ends. While the listener is told of an expired entry by the
    /// look-up that found it, or by a caller that has a view or is in [`Cache::retain`], no entry that has left the cache
    /// meanwhile is freed: so send slow work, such as writing to a disk, through a channel that does not block.
    ///
    /// The listener may use the cache. But inserting into a full cache evicts, the listener is told of that in turn, and so on:
    /// a listener that inserts at each call ends the process, because the stack overflows.
    ///
    /// ```
    /// use std::sync::mpsc;
    ///
    /// use koel::{Cache, Cause};
    ///
    /// let (sender, gone) = mpsc::channel();
    /// // The receiver may be gone: a panic here would be the panic of the caller that sends the entry away.
    /// let tell = move |key: &u32, value: &u32, cause| drop(sender.send((*key, *value, cause)));
    /// let cache = Cache::builder().max_entries(10).on_removal(tell).build();
    /// cache.insert(1, 10).unwrap();
    /// cache.insert(1, 11).unwrap();
    /// cache.remove(&1);
    /// assert_eq!(gone.try_iter().collect::<Vec<_>>(), [(1, 10, Cause::Replaced), (1, 11, Cause::Explicit)]);
    /// ```
    #[doc(alias = "on_evict")]
    #[doc(alias = "eviction_listener")]
    pub fn on_removal(mut self, listener: impl Fn(&K, &V, Cause) + Send + Sync + 'static) -> Self {
        self.listener = Some(Box::new(listener));
        self
    }

    /// Sets the hash function; ahash without this. It must be seeded with a secret where users choose the cache's keys. Of keys
    /// that share all 64 bits of the hash, the cache keeps eight at most, because they have eight slots.
    ///
    /// ```
    /// use koel::Cache;
    /// use std::hash::RandomState;
    ///
    /// let cache: Cache<u32, u32, _> = Cache::builder().max_entries(9).hasher(RandomState::new()).build();
    /// cache.insert(1, 1).unwrap();
    /// ```
    #[doc(alias = "build_with_hasher")]
    pub fn hasher<S2>(self, hasher: S2) -> CacheBuilder<K, V, S2> {
        CacheBuilder {
            options: self.options,
            weigher: self.weigher,
            own_life: self.own_life,
            own_idle: self.own_idle,
            clock: self.clock,
            listener: self.listener,
            hasher,
        }
    }

    /// Builds the cache. It has one bound: of entries or of weight.
    ///
    /// # Panics
    ///
    /// If [`CacheBuilder::try_build`] would return an error, with its message.
    #[track_caller]
    pub fn build(self) -> Cache<K, V, S>
    where
        K: Hash + Eq,
        S: BuildHasher,
    {
        match self.try_build() {
            Ok(cache) => cache,
            Err(error) => panic!("{error}"),
        }
    }

    /// Builds the cache.
    ///
    /// # Errors
    ///
    /// If there is no bound, or two; if there is a weigher, though the bound is on entries; a clock, though entries do not
    /// expire; values that are refreshed ahead of a deadline, though entries have none, or would be due as soon as they are
    /// inserted; or if the capacity is beyond the limit or the available memory.
    ///
    /// ```
    /// use koel::{Cache, CacheError};
    ///
    /// let error = Cache::<u32, u32>::builder().try_build().unwrap_err();
    /// assert_eq!(error, CacheError::NoBound);
    /// ```
    pub fn try_build(self) -> Result<Cache<K, V, S>, CacheError>
    where
        K: Hash + Eq,
        S: BuildHasher,
    {
        let plan = self.options.plan(Given {
            weigher: self.weigher.is_some(),
            own_life: self.own_life.is_some(),
            own_idle: self.own_idle.is_some(),
            clock: self.clock.is_some(),
        })?;
        let fields = Fields::new(Entry::<K, V>::TAIL_AT, self.weigher.is_some(), plan.limits);
        let gathered = is_gathered(self.listener.as_ref());
        let table = Table::<K, V, Share>::new(plan.shape, plan.entries, fields.bytes(), gathered);
        let table = table.map_err(|error| self.options.refused(error))?;
        let bound = Bound::new(plan.capacity, plan.segments);
        share_out(&table.directory, &bound, self.options.policy);
        let (flights, counters) = (Flights::new(), Counters::new());
        let CacheBuilder { options, weigher, own_life, own_idle, clock, listener, hasher } = self;
        let time = plan.limits.map(|_| Time {
            clock: clock.unwrap_or_else(|| Box::new(SystemClock::new())),
            to_live: options.to_live,
            to_idle: options.to_idle,
            own_life,
            ahead: options.ahead.map_or(0, nanos),
            own_idle,
        });
        let policy = options.policy;
        Ok(Cache { table, hasher, bound, policy, weigher, time, listener, fields, flights, counters })
    }
}

/// Gives each segment its part of the capacity.
fn share_out(directory: &Directory<CacheSlots>, bound: &Bound, policy: Policy) {
    directory.each_segment(|mut writing| {
        let quota = bound.share(writing.locked.state_ref().index);
        let share = &mut writing.locked.state().keep;
        (share.fair, share.evictor) = (quota, Evictor::new(policy, quota));
    });
}

impl<K, V, S> fmt::Debug for CacheBuilder<K, V, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CacheBuilder")
            .field("max_entries", &self.options.max_entries)
            .field("max_weight", &self.options.max_weight)
            .field("weigher", &self.weigher.is_some())
            .field("estimated_entries", &self.options.estimated_entries)
            .field("policy", &self.options.policy)
            .field("time_to_live", &self.options.to_live)
            .field("time_to_idle", &self.options.to_idle)
            .field("expiry", &self.own_life.is_some())
            .field("idle_expiry", &self.own_idle.is_some())
            .field("refresh_ahead", &self.options.ahead)
            .field("clock", &self.clock.is_some())
            .field("on_removal", &self.listener.is_some())
            .finish_non_exhaustive()
    }
}
