//! Entries on their way out: why they leave, who is told, when they are freed.

use core::fmt;

use super::counters::Here;
use super::gone::Gone;
use super::meta::Fields;
use crate::entries::{Entry, EntryPointer, OwnedEntry};
use crate::reclaim::{Collector, FirstPanic, LocalGuard};

/// Why an entry has left a cache.
#[doc(alias = "RemovalCause")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Cause {
    /// Its time was over, whoever took it out then. If its time ran out while the closure of `remove_if` or `compute` decided
    /// to remove the entry, the cause is `Explicit` instead.
    Expired,
    /// `remove`, `remove_if`, `retain`, `clear` or `compute` took it out.
    Explicit,
    /// Another value was put in its place.
    Replaced,
    /// The cache was full, or made smaller; or it was full of entries that are worth more than this heavy newcomer, which was
    /// turned away: see [`Cache::insert`](crate::Cache::insert). Or, though seldom where hashes are spread well, all slots that
    /// another entry could have were taken: then one of those entries has to go, even in a cache that has room elsewhere.
    Size,
}

impl Cause {
    /// Returns whether the cache took the entry out by itself, because its time was over or there was no room, and not because
    /// a caller asked.
    #[doc(alias = "was_evicted")]
    pub fn is_eviction(self) -> bool {
        matches!(self, Cause::Expired | Cause::Size)
    }

    /// The name of the cause, in lower case.
    pub(super) fn name(self) -> &'static str {
        match self {
            Cause::Expired => "expired",
            Cause::Explicit => "explicit",
            Cause::Replaced => "replaced",
            Cause::Size => "size",
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The function that is told of entries that leave.
pub(super) type Listener<K, V> = Box<dyn Fn(&K, &V, Cause) + Send + Sync>;

/// Whether entries that leave a cache may wait for company, to be retired many at a time: not if a listener is told of each by
/// itself.
#[inline]
pub(super) fn is_gathered<K, V>(listener: Option<&Listener<K, V>>) -> bool {
    listener.is_none()
}

/// Entries that have left a cache in one operation. Make this before anything is locked. When it is dropped, with all locks
/// released, the listener is told of each entry, and then they are retired; whatever panics [B5].
pub(super) struct Departures<'c, K, V> {
    collector: &'c Collector,
    /// Entered before anything is locked; `None` while the listener is told.
    guard: Option<LocalGuard<'c>>,
    listener: Option<&'c Listener<K, V>>,
    /// An entry that is being inserted, as long as the table does not have it: if the user's code panics, it is dropped with
    /// these, when nothing is locked.
    pub(super) coming: Option<EntryPointer>,
    pub(super) gone: Gone<'c>,
}

impl<'c, K, V> Departures<'c, K, V> {
    /// Creates the list, with nothing in it. The guard is of this collector, which is the cache's.
    ///
    /// # Safety
    ///
    /// The entries that leave are of a cache of such keys and values, whose entries have these fields behind them.
    pub(super) unsafe fn new(
        collector: &'c Collector,
        guard: LocalGuard<'c>,
        counts: Here<'c>,
        fields: &'c Fields,
        listener: Option<&'c Listener<K, V>>,
    ) -> Self {
        let gathers = Entry::<K, V>::GATHERS && is_gathered(listener);
        // SAFETY: the caller's.
        let gone = unsafe { Gone::new(counts, fields, gathers) };
        Departures { collector, guard: Some(guard), listener, coming: None, gone }
    }

    /// Tells the listener of each entry, even if it panics. No guard is held, as the listener may take its time: what others
    /// have retired does not wait for it.
    fn tell(&mut self) -> FirstPanic {
        let mut panic = FirstPanic::default();
        if let Some(listener) = self.listener.filter(|_| !self.gone.told().is_empty()) {
            self.guard = None;
            for &(entry, cause) in self.gone.told() {
                // SAFETY: it has left the table, or was turned away, and is ours to retire, which is done after this.
                let (key, value) = unsafe { Entry::<K, V>::deref(entry) }.pair();
                panic.call(|| listener(key, value, cause));
            }
        }
        panic
    }

    /// Does now what happens at the drop: before there is an answer, which would leak if the listener panicked. In place,
    /// without being moved.
    #[inline]
    pub(super) fn end(&mut self) {
        if !(self.gone.is_empty() && self.coming.is_none()) {
            self.tell_and_retire();
        }
    }

    /// Tells the listener of all entries, and retires them.
    #[inline(never)]
    fn tell_and_retire(&mut self) {
        // SAFETY: not in the table, and nobody else has it (`coming`).
        let _coming = self.coming.take().map(|entry| unsafe { OwnedEntry::<K, V>::from_raw(entry) });
        let told = self.tell();
        let guard = self.guard.get_or_insert_with(|| self.collector.enter());
        let (told_of, many) = self.gone.take();
        for (entry, _) in told_of {
            // SAFETY: taken out of the table, once, under its segment's lock (`Gone::add`) [I6].
            unsafe { Entry::<K, V>::retire(entry, guard) };
        }
        for many in many {
            // SAFETY: our cache's guard.
            unsafe { many.retire::<K, V>(guard) };
        }
        told.go_on();
    }
}

impl<K, V> Drop for Departures<'_, K, V> {
    #[inline]
    fn drop(&mut self) {
        self.end();
    }
}
