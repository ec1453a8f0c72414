//! Keys that are loaded outside of any closure: a caller that misses a key is handed the right to load it [F10].

use core::convert::{Infallible, identity};
use core::fmt;
use core::hash::{BuildHasher, Hash};
use core::panic::{RefUnwindSafe, UnwindSafe};
use core::time::Duration;

use ahash::RandomState;
use equivalent::Equivalent;

use super::Cache;
use super::flight::{Flight, Held, Landing, LoadError, Table, Terms, nothing_is_stale, or_panic};
use super::load::Hit;
use super::timer::Timer;
use crate::hash::Digest;
use crate::to_key::ToKey;

/// The right to load a key that was missed, from [`Cache::get_or_reserve`]. One caller has it at a time, until the key is
/// written to: then the next caller that misses the key gets another, whose value is kept.
///
/// Other callers that ask for the key wait for the value that comes by [`insert`](Reservation::insert). If the reservation is
/// dropped instead, with an error, for example, or in a panic, one of them gets the right, or runs its loader; nothing is
/// remembered. So do not keep a reservation for longer than it takes to load the value, and do not forget it
/// ([`std::mem::forget`]): those that wait would wait forever.
///
/// A reservation belongs to its thread, like a loader that runs there. If this thread asks for the same key while it has the
/// reservation, in whatever task or closure, that is [recursion](LoadError::Recursion), even if the key was written to. To load
/// in another thread, or across an `.await`, [`detach`](Reservation::detach) it.
#[doc(alias = "PlaceholderGuard")]
#[must_use = "who waits for the key does so until it has a value, or this is dropped"]
pub struct Reservation<'c, K, V, S = RandomState> {
    /// Dropped first: a caller that is woken as the other field is dropped may ask for the key, also on this thread.
    held: Held,
    detached: DetachedReservation<'c, K, V, S>,
}

/// A [`Reservation`] that belongs to no thread, and is `Send` if key, value and hasher are `Send` and `Sync`: from
/// [`Cache::get_or_reserve_async`] or [`Reservation::detach`].
///
/// The cache does not know who has it. So a holder that asks for its own key waits for itself, forever; so does a caller that
/// waits, by way of whatever others, for a holder that does.
#[must_use = "who waits for the key does so until it has a value, or this is dropped"]
#[doc(alias = "PlaceholderGuard")]
pub struct DetachedReservation<'c, K, V, S = RandomState> {
    timer: Timer<'c>,
    /// Dropped before the key, whose drop is the user's and may ask for the key.
    flight: Flight<'c, K, V>,
    key: K,
    cache: &'c Cache<K, V, S>,
}

/// A key's value, or the right to load it; or neither.
type Reserved<V, R> = Result<Result<V, R>, LoadError<Infallible>>;

impl<K: Hash + Eq + Clone, V: Clone, S: BuildHasher> Cache<K, V, S> {
    /// Returns the value of a key; if it is missed, the right to load it, as an `Err`: for loads that do not fit into the
    /// closure that [`Cache::get_or_insert_with`] takes.
    ///
    /// Of all callers that miss a key at the same time, one gets the right, or runs its loader, and the others wait for its
    /// value. What that method says about writes to the key meanwhile, and about values that are too heavy, holds here too. A
    /// value that is there is returned until it expires, and nothing is [refreshed](crate::CacheBuilder::refresh_ahead). The
    /// time from the reservation to the insertion is counted as a load, and a reservation that is dropped as a load that
    /// failed.
    ///
    /// A caller that waits blocks its thread. In a task, use [`Cache::get_or_reserve_async`]: if the holder of the right is
    /// another task of the same thread, this method panics, or would wait forever.
    ///
    /// # Errors
    ///
    /// The right to load the key, if there is no value.
    ///
    /// # Panics
    ///
    /// If the key is one that this thread has reserved or is loading, or one that is loaded by a caller that waits for one of
    /// these: see [`LoadError::Recursion`], which [`Cache::try_get_or_reserve_timeout`] returns as an error. Also if the key is
    /// missed in a closure that runs [under this cache's lock](Cache#under-a-lock), and if the removal listener panics when it
    /// is told of the key's old value, which had expired.
    ///
    /// ```
    /// use std::io::{self, Read};
    ///
    /// use koel::Cache;
    ///
    /// /// The length of the text that a stream begins with: `?` returns from this function, as it would not from a loader.
    /// fn length(cache: &Cache<u32, usize>, id: u32, stream: &mut impl Read) -> io::Result<usize> {
    ///     let reservation = match cache.get_or_reserve(id) {
    ///         Ok(length) => return Ok(length),
    ///         Err(reservation) => reservation,
    ///     };
    ///     let mut text = String::new();
    ///     stream.read_to_string(&mut text)?;
    ///     Ok(reservation.insert(text.len()))
    /// }
    ///
    /// let cache = Cache::new(100);
    /// assert!(length(&cache, 7, &mut &b"\xff"[..]).is_err()); // the next caller that asks loads it
    /// assert_eq!(length(&cache, 7, &mut &b"seven"[..])?, 5);
    /// assert_eq!(length(&cache, 7, &mut io::empty())?, 5);
    /// # io::Result::Ok(())
    /// ```
    #[doc(alias = "get_value_or_guard")]
    #[track_caller]
    pub fn get_or_reserve(&self, key: K) -> Result<V, Reservation<'_, K, V, S>> {
        or_panic(self.reserve(key, Terms::alone()))
    }

    /// Like [`Cache::get_or_reserve`], but waits for another caller for at most `timeout`.
    ///
    /// # Errors
    ///
    /// [`LoadError::TimedOut`], or [`LoadError::Recursion`] if the call would wait for itself. Within the result is what
    /// [`Cache::get_or_reserve`] returns.
    ///
    /// # Panics
    ///
    /// If the key is missed in a closure that runs [under this cache's lock](Cache#under-a-lock), and if the removal listener
    /// panics when it is told of the key's old value, which had expired.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use koel::{Cache, LoadError};
    ///
    /// fn answer(prices: &Cache<u32, u32>, id: u32) -> String {
    ///     match prices.try_get_or_reserve_timeout(id, Duration::from_millis(5)) {
    ///         Ok(Ok(price)) => format!("200 {price}"),
    ///         Ok(Err(reservation)) => format!("200 {}", reservation.insert(49)), // from wherever it is
    ///         Err(LoadError::TimedOut) => "503 try again".to_string(),
    ///         Err(error) => format!("500 {error}"),
    ///     }
    /// }
    ///
    /// let prices = Cache::new(100);
    /// let reservation = prices.get_or_reserve(7).unwrap_err();
    /// std::thread::scope(|scope| {
    ///     let other = scope.spawn(|| answer(&prices, 7));
    ///     assert_eq!(other.join().unwrap(), "503 try again");
    /// });
    /// assert!(answer(&prices, 7).starts_with("500"));
    /// drop(reservation);
    /// assert_eq!(answer(&prices, 7), "200 49");
    /// ```
    #[doc(alias = "GuardResult")]
    #[expect(clippy::type_complexity, reason = "the inner one is that of `get_or_reserve`")]
    pub fn try_get_or_reserve_timeout(
        &self,
        key: K,
        timeout: Duration,
    ) -> Result<Result<V, Reservation<'_, K, V, S>>, LoadError<Infallible>> {
        self.reserve(key, Terms::alone().within(timeout))
    }

    /// Like [`Cache::get_or_reserve`], for tasks, of any runtime: for loads that do not fit into the future that
    /// [`Cache::get_or_insert_async`] takes.
    ///
    /// Dropping the future is always safe, and so is dropping what it yields: if others wait, one of them loads. A caller that
    /// has the reservation it yields and asks for the key, in the same task, for example, waits for itself, forever: the cache
    /// does not know who has it.
    ///
    /// The future borrows the cache. A task that is spawned, and has the cache in an `Arc`, makes the call itself.
    ///
    /// # Errors
    ///
    /// The right to load the key, if there is no value.
    ///
    /// # Panics
    ///
    /// If a loader of this key awaits this future, or a loader of a key that is loaded by a caller that waits for it, or if the
    /// thread that polls this future has a [`Reservation`] of such a key: see [`LoadError::Recursion`]. Also if the key is
    /// missed in a closure that runs [under this cache's lock](Cache#under-a-lock), and if the removal listener panics when it
    /// is told of the key's old value, which had expired.
    ///
    /// ```
    /// # pollster::block_on(async {
    /// let cache: koel::Cache<u32, u32> = koel::Cache::new(100);
    /// for price in [49, 50] {
    ///     let found = match cache.get_or_reserve_async(7).await {
    ///         Ok(price) => price,
    ///         Err(reservation) => {
    ///             let loaded = std::future::ready(price).await; // any number of waits, with any kinds of errors
    ///             reservation.insert(loaded)
    ///         }
    ///     };
    ///     assert_eq!(found, 49);
    /// }
    /// # });
    /// ```
    #[doc(alias = "get_value_or_guard_async")]
    pub async fn get_or_reserve_async(&self, key: K) -> Result<V, DetachedReservation<'_, K, V, S>> {
        let digest = self.digest(&key);
        match self.hit_of(digest, &key) {
            Some(Hit { value, .. }) => {
                // Before there is an answer: a finished answer leaks if a drop panics.
                drop(key);
                Ok(value)
            }
            None => or_panic(self.reserve_missed_async(digest, key).await),
        }
    }

    /// Like [`Cache::get_or_reserve`], but takes a reference, of which a key is made ([`ToKey`]) if it is missed.
    ///
    /// # Errors
    ///
    /// The right to load the key, if there is no value.
    ///
    /// # Panics
    ///
    /// As [`Cache::get_or_reserve`].
    ///
    /// ```
    /// let cache: koel::Cache<String, usize> = koel::Cache::new(100);
    /// let reservation = cache.get_or_reserve_ref("seven").unwrap_err();
    /// assert_eq!(reservation.key(), "seven");
    /// let length = reservation.key().len();
    /// assert_eq!(reservation.insert(length), 5);
    /// assert_eq!(cache.get_or_reserve_ref("seven").unwrap(), 5);
    /// ```
    #[doc(alias = "get_value_or_guard")]
    #[track_caller]
    pub fn get_or_reserve_ref<Q>(&self, key: &Q) -> Result<V, Reservation<'_, K, V, S>>
    where
        Q: ?Sized + Hash + Equivalent<K> + ToKey<K>,
    {
        or_panic(self.reserve_ref(key, Terms::alone()))
    }

    /// Like [`Cache::try_get_or_reserve_timeout`], but takes a reference, of which a key is made ([`ToKey`]) if it is missed.
    ///
    /// # Errors
    ///
    /// As [`Cache::try_get_or_reserve_timeout`].
    ///
    /// # Panics
    ///
    /// As [`Cache::try_get_or_reserve_timeout`].
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let cache: koel::Cache<String, usize> = koel::Cache::new(100);
    /// let reservation = cache.try_get_or_reserve_timeout_ref("seven", Duration::from_secs(1))?.unwrap_err();
    /// assert_eq!(reservation.insert(7), 7);
    /// # Ok::<(), koel::LoadError<std::convert::Infallible>>(())
    /// ```
    #[expect(clippy::type_complexity, reason = "the inner one is that of `get_or_reserve`")]
    pub fn try_get_or_reserve_timeout_ref<Q>(
        &self,
        key: &Q,
        timeout: Duration,
    ) -> Result<Result<V, Reservation<'_, K, V, S>>, LoadError<Infallible>>
    where
        Q: ?Sized + Hash + Equivalent<K> + ToKey<K>,
    {
        self.reserve_ref(key, Terms::alone().within(timeout))
    }

    /// Like [`Cache::get_or_reserve_async`], but takes a reference, of which a key is made ([`ToKey`]) if it is missed.
    ///
    /// # Errors
    ///
    /// The right to load the key, if there is no value.
    ///
    /// # Panics
    ///
    /// As [`Cache::get_or_reserve_async`].
    ///
    /// ```
    /// # pollster::block_on(async {
    /// let cache: koel::Cache<String, usize> = koel::Cache::new(100);
    /// let reservation = cache.get_or_reserve_async_ref("seven").await.unwrap_err();
    /// assert_eq!(reservation.insert(7), 7);
    /// # });
    /// ```
    #[doc(alias = "get_value_or_guard_async")]
    pub async fn get_or_reserve_async_ref<Q>(&self, key: &Q) -> Result<V, DetachedReservation<'_, K, V, S>>
    where
        Q: ?Sized + Hash + Equivalent<K> + ToKey<K>,
    {
        let digest = self.digest(key);
        match self.hit_of(digest, key) {
            Some(Hit { value, .. }) => Ok(value),
            None => or_panic(self.reserve_missed_async(digest, key.to_key()).await),
        }
    }

    fn reserve(&self, key: K, terms: Terms<Infallible>) -> Reserved<V, Reservation<'_, K, V, S>> {
        let digest = self.digest(&key);
        match self.hit_of(digest, &key) {
            Some(Hit { value, .. }) => {
                // Before there is an answer: a finished answer leaks if a drop panics.
                drop(key);
                Ok(Ok(value))
            }
            None => self.reserve_missed(digest, key, terms),
        }
    }

    fn reserve_ref<Q>(&self, key: &Q, terms: Terms<Infallible>) -> Reserved<V, Reservation<'_, K, V, S>>
    where
        Q: ?Sized + Hash + Equivalent<K> + ToKey<K>,
    {
        let digest = self.digest(key);
        match self.hit_of(digest, key) {
            Some(Hit { value, .. }) => Ok(Ok(value)),
            None => self.reserve_missed(digest, key.to_key(), terms),
        }
    }

    /// The value of a key that was missed, or the right to load it.
    #[inline(never)]
    fn reserve_missed(
        &self,
        digest: Digest,
        key: K,
        terms: Terms<Infallible>,
    ) -> Reserved<V, Reservation<'_, K, V, S>> {
        self.table.directory.assert_not_writing();
        match self.flights.reserve(self, digest, &key, terms)? {
            Ok(value) => {
                // As above.
                drop(key);
                Ok(Ok(value))
            }
            Err(flight) => {
                let held = Held::new(&flight);
                Ok(Err(Reservation { held, detached: DetachedReservation::new(self, flight, key) }))
            }
        }
    }

    /// The same for tasks.
    async fn reserve_missed_async(
        &self,
        digest: Digest,
        key: K,
    ) -> Reserved<V, DetachedReservation<'_, K, V, S>> {
        self.table.directory.assert_not_writing();
        match self.flights.reserve_async(self, digest, &key).await? {
            Ok(value) => {
                // As above.
                drop(key);
                Ok(Ok(value))
            }
            Err(flight) => Ok(Err(DetachedReservation::new(self, flight, key))),
        }
    }
}

impl<'c, K, V, S> Reservation<'c, K, V, S> {
    /// Returns the key.
    pub fn key(&self) -> &K {
        self.detached.key()
    }

    /// Returns the same right, for another thread, or to be kept across an `.await`.
    ///
    /// ```
    /// let cache: koel::Cache<u32, u32> = koel::Cache::new(100);
    /// let reservation = cache.get_or_reserve(7).unwrap_err().detach();
    /// std::thread::scope(|scope| {
    ///     scope.spawn(|| reservation.insert(49));
    ///     assert_eq!(cache.get_or_reserve(7).unwrap(), 49); // waits for it
    /// });
    /// ```
    pub fn detach(self) -> DetachedReservation<'c, K, V, S> {
        let Reservation { held, detached } = self;
        drop(held);
        detached
    }
}

impl<K: Hash + Eq + Clone, V: Clone, S: BuildHasher> Reservation<'_, K, V, S> {
    /// Puts the value into the cache and returns it, as [`Cache::get_or_insert_with`] does with a loaded value, and hands it to
    /// all callers that wait for it. The value is not put into the cache if the key was written to since it was reserved, or if
    /// the value is too heavy.
    ///
    /// # Panics
    ///
    /// If the removal listener panics when it is told of entries that left for the value, which is then in the cache; and if
    /// this is called in a closure that runs [under this cache's lock](Cache#under-a-lock): then it is as if the reservation
    /// were dropped.
    pub fn insert(self, value: V) -> V {
        self.detach().insert(value)
    }

    /// Like [`insert`](Self::insert), but says whether the value was put into the cache, from which it may have been evicted by
    /// then. Callers that wait get it in any case.
    ///
    /// # Errors
    ///
    /// The value, if the key was written to since it was reserved, so that the value may be out of date; or if it is too heavy,
    /// or there is no memory for its entry.
    ///
    /// # Panics
    ///
    /// As [`insert`](Self::insert).
    ///
    /// ```
    /// let settings: koel::Cache<&str, u32> = koel::Cache::new(100);
    /// let reservation = settings.get_or_reserve("limit").unwrap_err();
    /// settings.remove("limit"); // another caller has changed it, after it was read here
    /// assert_eq!(reservation.try_insert(7), Err(7));
    /// assert_eq!(settings.get_or_reserve("limit").unwrap_err().try_insert(8), Ok(8)); // read anew
    /// ```
    pub fn try_insert(self, value: V) -> Result<V, V> {
        self.detach().try_insert(value)
    }
}

impl<'c, K, V, S> DetachedReservation<'c, K, V, S> {
    fn new(cache: &'c Cache<K, V, S>, flight: Flight<'c, K, V>, key: K) -> Self {
        DetachedReservation { timer: Timer::exact(&cache.counters), flight, key, cache }
    }

    /// Returns the key.
    pub fn key(&self) -> &K {
        &self.key
    }
}

impl<K: Hash + Eq + Clone, V: Clone, S: BuildHasher> DetachedReservation<'_, K, V, S> {
    /// Like [`Reservation::insert`].
    ///
    /// # Panics
    ///
    /// As [`Reservation::insert`].
    pub fn insert(self, value: V) -> V {
        self.try_insert(value).unwrap_or_else(identity)
    }

    /// Like [`Reservation::try_insert`].
    ///
    /// # Errors
    ///
    /// As [`Reservation::try_insert`].
    ///
    /// # Panics
    ///
    /// As [`Reservation::insert`].
    pub fn try_insert(self, value: V) -> Result<V, V> {
        let DetachedReservation { timer, flight, key, cache } = self;
        cache.table.directory.assert_not_writing();
        timer.succeed();
        let digest = flight.digest();
        match cache.keep(digest, key, value, Landing::new(flight), nothing_is_stale) {
            (value, true) => Ok(value),
            (value, false) => Err(value),
        }
    }
}

/// A panic in user code leaves the cache whole.
impl<K: RefUnwindSafe, V: RefUnwindSafe, S: RefUnwindSafe> RefUnwindSafe for Reservation<'_, K, V, S> {}
/// A panic in user code leaves the cache whole.
impl<K: RefUnwindSafe, V: RefUnwindSafe, S: RefUnwindSafe> RefUnwindSafe
    for DetachedReservation<'_, K, V, S>
{
}
/// A panic in user code leaves the cache whole.
impl<K: UnwindSafe + RefUnwindSafe, V: RefUnwindSafe, S: RefUnwindSafe> UnwindSafe
    for Reservation<'_, K, V, S>
{
}
/// A panic in user code leaves the cache whole.
impl<K: UnwindSafe + RefUnwindSafe, V: RefUnwindSafe, S: RefUnwindSafe> UnwindSafe
    for DetachedReservation<'_, K, V, S>
{
}

impl<K: fmt::Debug, V, S> fmt::Debug for Reservation<'_, K, V, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reservation").field("key", self.key()).finish_non_exhaustive()
    }
}

impl<K: fmt::Debug, V, S> fmt::Debug for DetachedReservation<'_, K, V, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DetachedReservation").field("key", &self.key).finish_non_exhaustive()
    }
}
