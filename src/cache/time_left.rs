//! How long an entry has left: reading and setting it.

use core::hash::{BuildHasher, Hash};
use core::time::Duration;

use equivalent::Equivalent;

use super::Cache;
use super::time::nanos;

/// The message for a caller that sets a time where entries have none.
const NO_TIME: &str =
    "entries of this cache never expire, as it was built without `CacheBuilder::expiry` and the like";

impl<K: Hash + Eq, V, S: BuildHasher> Cache<K, V, S> {
    /// Returns how long the entry of a key has left to live, if it is not used meanwhile: until its deadline, or until it has
    /// been idle for too long, whichever comes first; [`Duration::MAX`] if it lives forever, and `None` if there is no entry.
    /// Leaves no trace, like [`Cache::peek`].
    ///
    /// Hits within a millisecond of one another, or within a 64th of the time that an entry may be idle if that is less, may
    /// count as one: the result may be too small by that much. It says nothing about evictions.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let clock = koel::ManualClock::new();
    /// let cache: koel::Cache<&str, u32> = koel::Cache::builder()
    ///     .max_entries(10)
    ///     .time_to_live(Duration::from_secs(60))
    ///     .clock(clock.clone())
    ///     .build();
    /// cache.insert("price", 7).unwrap();
    /// clock.advance(Duration::from_secs(50));
    /// assert_eq!(cache.time_left("price"), Some(Duration::from_secs(10))); // time to renew it?
    /// clock.advance(Duration::from_secs(10));
    /// assert_eq!(cache.time_left("price"), None);
    /// ```
    #[doc(alias = "get_ttl")]
    pub fn time_left<Q: ?Sized + Hash + Equivalent<K>>(&self, key: &Q) -> Option<Duration> {
        let guard = self.enter();
        let (entry, now) = self.find_alive(self.digest(key), key, &guard)?;
        Some(self.meta(entry).left(now).map_or(Duration::MAX, Duration::from_nanos))
    }

    /// Gives the entry of a key this much time from now on, more or less than it had; returns whether there is an entry.
    /// [`Duration::MAX`] is forever. The value stays as it is, and no listener, policy or count is told. Where entries have a
    /// time to idle, it counts as a use.
    ///
    /// A value that is given no more time than that by which values are [refreshed ahead](crate::CacheBuilder::refresh_ahead)
    /// is not refreshed, like one whose whole life is so short. The exception is a refresh that is under way: what it loads is
    /// kept, with a life of its own. A value that is given more time is refreshed when that is due, and what a refresh that is
    /// under way loads is not kept.
    ///
    /// # Panics
    ///
    /// If entries of this cache have no time: it was built without [`time_to_live`](crate::CacheBuilder::time_to_live),
    /// [`expiry`](crate::CacheBuilder::expiry), which may return `None` for each entry, and the like. In a closure that runs
    /// [under this cache's lock](Cache#under-a-lock).
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let clock = koel::ManualClock::new();
    /// let half_an_hour = Duration::from_secs(1800);
    /// let sessions: koel::Cache<&str, u32> =
    ///     koel::Cache::builder().max_entries(10).time_to_live(half_an_hour).clock(clock.clone()).build();
    /// sessions.insert("ada", 7).unwrap();
    /// clock.advance(Duration::from_secs(1799));
    /// assert!(sessions.set_time_left("ada", half_an_hour)); // she is still there
    /// clock.advance(Duration::from_secs(60));
    /// assert_eq!(sessions.get("ada"), Some(7));
    /// assert!(!sessions.set_time_left("bob", half_an_hour));
    /// ```
    #[doc(alias = "touch")]
    #[doc(alias = "setExpiresAfter")]
    #[track_caller]
    pub fn set_time_left<Q: ?Sized + Hash + Equivalent<K>>(&self, key: &Q, left: Duration) -> bool {
        let Some(time) = &self.time else { panic!("{NO_TIME}") };
        // Before the lock: the directory is used under a guard [G5].
        let _guard = self.enter();
        let at = self.at(self.digest(key), key);
        let now = self.now();
        let Some(entry) = at.found.map(|found| at.writing.locked.item(found)) else { return false };
        if self.has_expired(entry, now) {
            return false;
        }
        let meta = self.meta(entry);
        meta.set_deadline(time.deadline_after(now, nanos(left)));
        meta.note_use(now);
        true
    }
}
