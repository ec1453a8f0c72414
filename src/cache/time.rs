//! Lifetimes: when an entry must not be returned any more, and by which clock.

use core::fmt;
use core::time::Duration;
use std::sync::Arc;
use std::time::Instant;

/// Where a cache gets the time from.
///
/// ```
/// use std::time::Duration;
///
/// let clock = koel::ManualClock::new();
/// let cache: koel::Cache<u32, u32> = koel::Cache::builder()
///     .max_entries(10)
///     .time_to_live(Duration::from_secs(60))
///     .clock(clock.clone())
///     .build();
/// cache.insert(1, 1).unwrap();
/// clock.advance(Duration::from_secs(59));
/// assert_eq!(cache.get(&1), Some(1));
/// clock.advance(Duration::from_secs(1));
/// assert_eq!(cache.get(&1), None);
/// ```
pub trait Clock: Send + Sync {
    /// Returns the time since some moment that is always the same. It must not go backwards; beyond 548 years it counts as
    /// standing still. It is called with each look-up, and by writes with a segment locked: it must not use the cache.
    fn now(&self) -> Duration;
}

/// A clock that others read as well, or that is chosen at run time: an `Arc<dyn Clock>`.
impl<C: ?Sized + Clock> Clock for Arc<C> {
    fn now(&self) -> Duration {
        (**self).now()
    }
}

/// A clock that is borrowed; for a cache, for as long as the program runs: that of a `static`.
///
/// ```
/// use std::sync::LazyLock;
/// use std::time::Duration;
///
/// use koel::{Cache, ManualClock};
///
/// static CLOCK: LazyLock<ManualClock> = LazyLock::new(ManualClock::new);
/// let cache: Cache<u32, u32> =
///     Cache::builder().max_entries(10).time_to_live(Duration::from_secs(60)).clock(&*CLOCK).build();
/// cache.insert(1, 1).unwrap();
/// CLOCK.advance(Duration::from_secs(60));
/// assert_eq!(cache.get(&1), None);
/// ```
impl<C: ?Sized + Clock> Clock for &C {
    fn now(&self) -> Duration {
        (**self).now()
    }
}

/// A clock that is chosen at run time: a `Box<dyn Clock>`.
impl<C: ?Sized + Clock> Clock for Box<C> {
    fn now(&self) -> Duration {
        (**self).now()
    }
}

/// The clock of a cache that is given none: [`Instant`].
#[derive(Debug, Clone, Copy)]
pub(super) struct SystemClock(Instant);

impl SystemClock {
    pub(super) fn new() -> Self {
        SystemClock(Instant::now())
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Duration {
        self.0.elapsed()
    }
}

/// A clock that stands still until it is told to advance, for tests. Clones show the same time.
#[derive(Debug, Clone, Default)]
pub struct ManualClock(Arc<ManualTime>);

#[derive(Debug, Default)]
struct ManualTime {
    nanoseconds: std::sync::Mutex<Duration>,
}

impl ManualClock {
    /// Creates a clock that shows zero.
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets some time pass.
    ///
    /// # Panics
    ///
    /// If the clock would show more than [`Duration::MAX`].
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use koel::Clock;
    ///
    /// let clock = koel::ManualClock::new();
    /// let before = clock.now();
    /// clock.advance(Duration::from_secs(60));
    /// assert_eq!(clock.now() - before, Duration::from_secs(60));
    /// ```
    #[track_caller]
    pub fn advance(&self, by: Duration) {
        let mut time = self.time();
        *time = time.checked_add(by).expect("a `ManualClock` shows no more than `Duration::MAX`");
    }

    fn time(&self) -> std::sync::MutexGuard<'_, Duration> {
        self.0.nanoseconds.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Duration {
        *self.time()
    }
}

/// How long an entry lives, or may be idle: `None` is forever.
pub(super) type Lifetime<K, V> = Box<dyn Fn(&K, &V) -> Option<Duration> + Send + Sync>;

/// What a cache whose entries expire knows of time.
pub(super) struct Time<K, V> {
    pub(super) clock: Box<dyn Clock>,
    /// How long entries live, since they were inserted.
    pub(super) to_live: Option<Duration>,
    /// The same, for each entry.
    pub(super) own_life: Option<Lifetime<K, V>>,
    /// How long before that time ends a value is due to be loaded anew [F8]; 0 is never.
    pub(super) ahead: Nanos,
    /// How long entries may be idle, since they were inserted or hit.
    pub(super) to_idle: Option<Duration>,
    /// The same, for each entry.
    pub(super) own_idle: Option<Lifetime<K, V>>,
}

/// A moment, or a duration, in nanoseconds; 584 years fit.
pub(super) type Nanos = u64;

/// [L3] The moment at which a clock shows 0: an entry of a dump may have been used 36 years before.
const BEGINNING: Nanos = 1 << 60;

/// No moment comes after this one.
pub(super) const NEVER: Nanos = Nanos::MAX;

/// The last bits of a deadline, where values are refreshed: how often that was tried in vain, or all of them where the value is
/// not to be refreshed [F8].
pub(super) const TRIES: Nanos = 15;

/// The last moment that a clock shows: even without these bits, [`NEVER`] comes after it.
const LAST: Nanos = (NEVER & !TRIES) - 1;

impl<K, V> Time<K, V> {
    /// The time now: before [`NEVER`], whatever the clock shows.
    #[inline]
    pub(super) fn now(&self) -> Nanos {
        BEGINNING.saturating_add(nanos(self.clock.now())).min(LAST)
    }

    /// How long an entry is to live, used or not. Calls the user's function.
    pub(super) fn life(&self, key: &K, value: &V) -> Nanos {
        shorter(self.to_live, self.own_life.as_ref(), key, value)
    }

    /// The deadline of an entry that has this much time left, in the form that entries have it.
    pub(super) fn deadline_after(&self, now: Nanos, left: Nanos) -> Nanos {
        self.with_tries(now.saturating_add(left), left > self.ahead)
    }

    /// The deadline, or the end of what an entry has left to live if that is sooner. Its value is refreshed if that of the
    /// deadline is.
    pub(super) fn sooner(&self, deadline: Nanos, now: Nanos, left: Nanos) -> Nanos {
        let refreshes = if deadline == NEVER { left > self.ahead } else { deadline & TRIES != TRIES };
        deadline.min(self.with_tries(now.saturating_add(left), refreshes))
    }

    /// A deadline in the form that entries have it, with its last bits; up to 15 ns before `end`.
    fn with_tries(&self, end: Nanos, refreshes: bool) -> Nanos {
        match (self.ahead, refreshes && end != NEVER) {
            (0, _) => end,
            (_, true) => end & !TRIES,
            (_, false) => end | TRIES,
        }
    }

    /// How long after its last use an entry must go. Calls the user's function.
    pub(super) fn idle(&self, key: &K, value: &V) -> Nanos {
        shorter(self.to_idle, self.own_idle.as_ref(), key, value)
    }
}

/// The shorter of what is set for all entries and what is set for this one.
fn shorter<K, V>(all: Option<Duration>, own: Option<&Lifetime<K, V>>, key: &K, value: &V) -> Nanos {
    let own = own.and_then(|own| own(key, value));
    all.into_iter().chain(own).map(nanos).min().unwrap_or(NEVER)
}

impl<K, V> fmt::Debug for Time<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Time")
            .field("to_live", &self.to_live)
            .field("to_idle", &self.to_idle)
            .finish_non_exhaustive()
    }
}

/// The duration in nanoseconds; forever if it is too long.
pub(super) fn nanos(duration: Duration) -> Nanos {
    Nanos::try_from(duration.as_nanos()).unwrap_or(NEVER)
}
