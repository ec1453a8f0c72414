//! What a guard has done, counted without sharing: each thread has its cache lines.

use core::fmt;

use crossbeam_utils::CachePadded;

use crate::per_thread::{PerThread, add};
use crate::sync::{AtomicU64, Ordering};

/// One of the things that are counted.
#[derive(Clone, Copy, Debug)]
#[repr(usize)]
pub(super) enum Event {
    Blocked,
    PassedFound,
    PassedAbsent,
    /// Beside the event before, of the same look-up.
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

/// A filter that has let so many look-ups of a thread pass, one after the other, all of them rightly, is not asked by the
/// next: see [`Counts::filter_is_idle`]. Schedules count nothing, and always ask.
const IDLE: u64 = 4096;

/// The counts of one thread.
#[derive(Debug, Default)]
pub(super) struct Counts {
    events: [AtomicU64; EVENTS],
    /// How many had passed and been found when the filter was last of use, or may have been.
    found_before: AtomicU64,
}

impl Counts {
    #[inline]
    pub(super) fn count(&self, event: Event) {
        add(&self.events[event as usize], 1);
    }

    /// Whether this thread's last look-ups, `IDLE` of them at the least, were all of keys that the store holds: to ask the
    /// filter would cost what it does and bring nothing. Advice.
    #[inline]
    pub(super) fn filter_is_idle(&self) -> bool {
        // Relaxed, here and below: this thread's.
        let found = self.events[Event::PassedFound as usize].load(Ordering::Relaxed);
        found.wrapping_sub(self.found_before.load(Ordering::Relaxed)) >= IDLE
    }

    /// A key was not there: the filter is, or would have been, of use.
    #[inline]
    pub(super) fn filter_is_of_use(&self) {
        let found = self.events[Event::PassedFound as usize].load(Ordering::Relaxed);
        self.found_before.store(found, Ordering::Relaxed);
    }

    /// It would not have been of use, after all.
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

/// What a guard has done since it was opened, and how it is: from [`Guarded::stats`](super::Guarded::stats). Displays as
/// lines of text.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Stats {
    /// Look-ups that the filter has answered: surely absent.
    pub blocked: u64,
    /// Look-ups that passed the filter and were found in the store; or that did not ask an idle filter and were found, whether
    /// or not there was one just then: they would have passed.
    pub passed_found: u64,
    /// Look-ups that passed the filter and were not found: its false positives that reached the store, and those of the next
    /// count.
    pub passed_absent: u64,
    /// Of these, look-ups beside which a key of the same group, one of 1,024, was being written, or somebody else read one that
    /// is not there, or the filter was copied for a snapshot, or a scan began or ended. It may have been the same key: the
    /// filter knows one that is put before the store does, and one that is deleted for longer. So these are not taken for false
    /// positives.
    pub passed_beside_write: u64,
    /// Look-ups that asked for a filter and reached the store because there was none, or not yet; or that did not ask an idle
    /// one and were not found: of a thread's, the first after some thousands that were all found.
    pub unfiltered: u64,
    /// Look-ups that the cache has answered.
    pub cache_hits: u64,
    /// Look-ups that were known to be false positives: absent, and the store was not asked.
    pub remembered_absent: u64,
    /// Puts that the store has done.
    pub puts: u64,
    /// Deletes that the store has done.
    pub deletes: u64,
    /// Puts and deletes for which the store returned an error.
    pub failed_writes: u64,
    /// How often the filter took an absent key for present, of all absent keys it was asked for, but for those that were
    /// [looked up beside a write](Self::passed_beside_write); 0 if there were none.
    pub observed_false_positive_rate: f64,
    /// How often it is expected to, as full as it is now; 0 without a filter. Keys that are drawn again and again make
    /// the observed rate differ.
    pub expected_false_positive_rate: f64,
    /// Keys in the filter.
    pub filter_keys: u64,
    /// Bytes of the filter.
    pub filter_bytes: usize,
    /// Of 1,024 groups of keys, those for which the filter says "perhaps" since it had no room for one of them, or for one
    /// fingerprint more: a put of a key that is there leaves one behind if it fails.
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
        // More of the second, if one comes while they are added up.
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

    /// Look-ups: those that were answered. One for which the store has failed is in no count; of a `get_many` that failed,
    /// those are that needed no store.
    #[must_use]
    pub fn lookups(&self) -> u64 {
        self.blocked + self.cache_hits + self.remembered_absent + self.store_reads()
    }

    /// Look-ups that reached the store.
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
