//! What a guard has done, counted without sharing: each thread has cache lines of its own.

use core::fmt;

use crossbeam_utils::CachePadded;

use crate::per_thread::{PerThread, add};
use crate::sync::{AtomicU64, Ordering};

/// A kind of event that is counted.
#[derive(Clone, Copy, Debug)]
#[repr(usize)]
pub(super) enum Event {
    Blocked,
    PassedFound,
    PassedAbsent,
    /// Counted in addition to the event above, for the same look-up.
    PassedBesideWrite,
    UnfilteredFound,
    UnfilteredAbsent,
    Hit,
    RememberedAbsent,
    Put,
    Delete,
    Failed,
}

const EVENTS: usize = Event::Failed as usize + 1;

/// If a filter has let this many look-ups of a thread pass in a row, all of them rightly, the thread's next look-up does not
/// ask it: see [`Counts::filter_is_idle`]. Schedules count nothing, and always ask.
const IDLE: u64 = 4096;

/// The counts of one thread.
#[derive(Debug, Default)]
pub(super) struct Counts {
    events: [AtomicU64; EVENTS],
    /// How many look-ups had passed and been found when the filter was last of use, or may have been.
    found_before: AtomicU64,
}

impl Counts {
    #[inline]
    pub(super) fn count(&self, event: Event) {
        add(&self.events[event as usize], 1);
    }

    /// Whether this thread's last look-ups, at least `IDLE` of them, were all of keys that the store holds: asking the filter
    /// would cost time and save nothing. Only advice.
    #[inline]
    pub(super) fn filter_is_idle(&self) -> bool {
        // Relaxed, here and below: only this thread writes it.
        let found = self.events[Event::PassedFound as usize].load(Ordering::Relaxed);
        found.wrapping_sub(self.found_before.load(Ordering::Relaxed)) >= IDLE
    }

    /// Notes that a key was not there: the filter is, or would have been, of use.
    #[inline]
    pub(super) fn filter_is_of_use(&self) {
        let found = self.events[Event::PassedFound as usize].load(Ordering::Relaxed);
        self.found_before.store(found, Ordering::Relaxed);
    }

    /// Notes that the filter would not have been of use, after all.
    #[inline]
    pub(super) fn filter_stays_idle(&self) {
        let found = self.events[Event::PassedFound as usize].load(Ordering::Relaxed);
        self.found_before.store(found.wrapping_sub(IDLE), Ordering::Relaxed);
    }
}

#[derive(Debug)]
pub(super) struct Counters(PerThread<CachePadded<Counts>>);

impl Counters {
    pub(super) fn new() -> Self {
        Counters(PerThread::new())
    }

    /// This thread's counts.
    #[inline]
    pub(super) fn mine(&self) -> &Counts {
        self.0.get()
    }

    pub(super) fn sum(&self, event: Event) -> u64 {
        // Relaxed: information.
        self.0.iter().map(|counts| counts.events[event as usize].load(Ordering::Relaxed)).sum()
    }
}

/// What a guard has done since it was opened, and its present state: from [`Guarded::stats`](super::Guarded::stats). Displays
/// as lines of text.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Stats {
    /// Look-ups that the filter answered: the key is certainly absent.
    pub blocked: u64,
    /// Look-ups that passed the filter and were found in the store; or that skipped an idle filter and were found, whether or
    /// not there was a filter just then: they would have passed.
    pub passed_found: u64,
    /// Look-ups that passed the filter and were not found: its false positives that reached the store, and the look-ups of the
    /// next count.
    pub passed_absent: u64,
    /// Of these, look-ups during which a key of the same group, one of 1,024, was being written, or another caller read one
    /// that is not there, or the filter was copied for a snapshot, or a scan began or ended. It may have been the same key: the
    /// filter knows a new key before the store does, and knows a deleted key for longer. So these are not counted as false
    /// positives.
    pub passed_beside_write: u64,
    /// Look-ups that would have asked a filter and reached the store because there was none, or not yet; or that skipped an
    /// idle filter and were not found: the first such look-up of a thread after a few thousand that were all found.
    pub unfiltered: u64,
    /// Look-ups that the cache answered.
    pub cache_hits: u64,
    /// Look-ups of keys that were known to be false positives: absent, without asking the store.
    pub remembered_absent: u64,
    /// Puts that the store has done.
    pub puts: u64,
    /// Deletes that the store has done.
    pub deletes: u64,
    /// Puts and deletes for which the store returned an error.
    pub failed_writes: u64,
    /// How often the filter took an absent key for present, as a fraction of all absent keys it was asked for, except those
    /// that were [looked up during a write](Self::passed_beside_write); 0 if there were none.
    pub observed_false_positive_rate: f64,
    /// How often it is expected to do so, as full as it is now; 0 without a filter. Keys that are looked up again and again
    /// make the observed rate differ.
    pub expected_false_positive_rate: f64,
    /// Keys in the filter.
    pub filter_keys: u64,
    /// Bytes of the filter.
    pub filter_bytes: usize,
    /// Of 1,024 groups of keys, the number for which the filter always says "perhaps", because it had no room for one of their
    /// keys, or for an extra fingerprint: a failed put of a key that is there leaves one behind.
    pub crowded_stripes: usize,
    /// Bytes of the cache: keys, values, and 80 for each entry.
    pub cache_bytes: u64,
}

impl Stats {
    pub(super) fn of_counters(counters: &Counters) -> Self {
        let sum = |event| counters.sum(event);
        let (blocked, passed_absent) = (sum(Event::Blocked), sum(Event::PassedAbsent));
        let remembered_absent = sum(Event::RememberedAbsent);
        let passed_beside_write = sum(Event::PassedBesideWrite);
        // The second may be greater, if an event occurs while they are added up.
        let wrong = (passed_absent.saturating_sub(passed_beside_write) + remembered_absent) as f64;
        Stats {
            blocked,
            passed_found: sum(Event::PassedFound),
            passed_absent,
            passed_beside_write,
            unfiltered: sum(Event::UnfilteredFound) + sum(Event::UnfilteredAbsent),
            cache_hits: sum(Event::Hit),
            remembered_absent,
            puts: sum(Event::Put),
            deletes: sum(Event::Delete),
            failed_writes: sum(Event::Failed),
            observed_false_positive_rate: wrong / (wrong + blocked as f64).max(1.0),
            ..Stats::default()
        }
    }

    /// Returns the number of look-ups that were answered. A look-up for which the store failed is in no count; of a failed
    /// `get_many`, only the keys that did not need the store are counted.
    #[must_use]
    pub fn lookups(&self) -> u64 {
        self.blocked + self.cache_hits + self.remembered_absent + self.store_reads()
    }

    /// Returns the number of look-ups that reached the store.
    ///
    /// ```
    /// use koel::guard::{Guarded, HashMapStore};
    ///
    /// let guarded = Guarded::open(HashMapStore::new())?;
    /// guarded.wait_until_ready()?;
    /// guarded.put(b"ada", b"1815")?;
    /// (guarded.get(b"ada")?, guarded.get(b"grace")?);
    /// let stats = guarded.stats();
    /// assert_eq!((stats.lookups(), stats.store_reads()), (2, 1));
    /// println!("{stats}");
    /// # Ok::<(), koel::guard::Error<std::convert::Infallible>>(())
    /// ```
    #[must_use]
    pub fn store_reads(&self) -> u64 {
        self.passed_found + self.passed_absent + self.unfiltered
    }
}

impl fmt::Display for Stats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Stats { blocked, passed_found, passed_absent, unfiltered, cache_hits, .. } = self;
        writeln!(
            f,
            "look-ups: {}, of which {} reached the store: {passed_found} passed and found, {passed_absent} passed and \
             absent, {unfiltered} without a filter",
            self.lookups(),
            self.store_reads()
        )?;
        writeln!(
            f,
            "spared: {blocked} blocked by the filter, {cache_hits} cache hits, {} remembered as absent",
            self.remembered_absent
        )?;
        writeln!(f, "writes: {} puts, {} deletes, {} failed", self.puts, self.deletes, self.failed_writes)?;
        write!(
            f,
            "filter: {} keys in {} bytes; false positives: {:.3e} observed, {:.3e} expected",
            self.filter_keys,
            self.filter_bytes,
            self.observed_false_positive_rate,
            self.expected_false_positive_rate
        )
    }
}
