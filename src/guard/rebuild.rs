//! A filter from the store's keys, while the guard serves [D3].

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::error::Error;
use super::filter::{Active, with_spare};
use super::scanning;
use super::shared::Shared;
use super::store::Store;
use super::stripes::stripe_of;
use crate::filter::FilterError;
use crate::reclaim::discard;
use crate::sync::{AtomicU64, Mutex, Ordering};

/// Progress is reported each time this many keys have been scanned.
const STEP: u64 = 4096;
/// The expected number of keys if none was given.
pub(super) const EXPECTED_KEYS: u64 = 1000;
/// A scan that has failed is tried again after as many writes as it had seen keys, and at least this many: each write pays for
/// a key or two.
const FEWEST_WRITES: u64 = 4096;

/// The progress of the scan of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// The state of the guard's filter.
    pub phase: Phase,
    /// Keys that the current or last scan has seen.
    pub scanned: u64,
    /// About how many keys it will see: as many as the store says, unless it has just said far too many; else as many as
    /// [`Builder::expected_keys`](super::Builder::expected_keys) or the previous filter says; 0 if nothing is known.
    pub expected: u64,
}

/// The state of a guard's filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Phase {
    /// The filter is there.
    Ready,
    /// A scan is running. Look-ups pass, or ask an older filter.
    Rebuilding,
    /// There is no filter: none was asked for, or the scan has failed. A failed scan is tried again after as many writes as it
    /// had seen keys, and at least 4,096.
    Unfiltered,
}

/// A filter that is being built: the scan adds the store's keys, and writes add what has changed since the scan began.
#[derive(Debug)]
pub(super) struct Rebuild {
    filter: Arc<Active>,
    /// `None`: the scan is over.
    pending: Mutex<Option<Pending>>,
}

/// Work that is left for the end of the scan.
#[derive(Debug, Default)]
struct Pending {
    /// Hashes of keys that were deleted since the scan began. The scan may still be going to add them, so they are removed
    /// after it.
    deleted: HashSet<u64, ahash::RandomState>,
    /// Hashes of keys that were there when they were put, while no filter could say whether it knew them. The scan must have
    /// added them, also those that were deleted since. At most `MOST_HELD`.
    held: HashSet<u64, ahash::RandomState>,
}

/// What follows a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// Nothing: its filter will do, or the guard is to end.
    Nothing,
    /// Another scan: its filter is not to be trusted, or more keys came than there was room for.
    Another,
    /// Another scan, for as many keys as are known: the store had announced far more, or more than there can be a filter for.
    Smaller,
}

/// The most keys that are looked for when a scan is over, while their writers wait.
const MOST_HELD: usize = 4096;

impl Rebuild {
    fn new(filter: Active) -> Self {
        Rebuild { filter: Arc::new(filter), pending: Mutex::new(Some(Pending::default())) }
    }

    /// Notes that a new key was put. The caller holds its stripe.
    pub(super) fn note_put(&self, hash: u64, stripe: usize) {
        // If so, a fingerprint of this hash is in, or is still to come, and would be removed at the end: it stays instead.
        let was_deleted = self.pending.lock().as_mut().is_some_and(|pending| pending.deleted.remove(&hash));
        if !was_deleted {
            self.filter.add(hash, stripe);
        }
    }

    /// Notes that a key was put that was there already. The caller holds its stripe. Returns false if it is not in the filter,
    /// though the scan is over.
    pub(super) fn note_held(&self, hash: u64, stripe: usize) -> bool {
        let Some(Pending { held, .. }) = &mut *self.pending.lock() else {
            return self.filter.may_contain(hash, stripe);
        };
        if held.len() < MOST_HELD {
            held.insert(hash);
        }
        true
    }

    /// Notes that a key was deleted. The caller holds its stripe. Returns false if it is not in the filter, though the scan is
    /// over; or if it had been deleted before, and somebody else has put it back (or another key has its hash, which costs a
    /// scan).
    pub(super) fn note_delete(&self, hash: u64, stripe: usize) -> bool {
        match &mut *self.pending.lock() {
            Some(pending) => pending.deleted.insert(hash),
            None => self.filter.remove(hash, stripe),
        }
    }

    /// Ends the scan: every key that was there is in the filter, and keys that were deleted meanwhile are removed. Returns
    /// false if not all of these are in, and the filter is not to be trusted.
    fn settle(&self) -> bool {
        let deleted = {
            let mut pending = self.pending.lock();
            // Locked: none of them is deleted meanwhile.
            let Pending { deleted, held } = pending.take().unwrap_or_default();
            if !held.into_iter().all(|hash| self.filter.may_contain(hash, stripe_of(hash))) {
                return false;
            }
            deleted
        };
        deleted.into_iter().all(|hash| self.filter.remove(hash, stripe_of(hash)))
    }
}

impl<S: Store> Shared<S, S::Error> {
    pub(super) fn progress(&self) -> Progress {
        // Relaxed: information.
        let phase = if self.rebuilding.load(Ordering::Relaxed) {
            Phase::Rebuilding
        } else if self.active.pin().is_some() {
            Phase::Ready
        } else {
            Phase::Unfiltered
        };
        let (scanned, expected) =
            (self.scanned.load(Ordering::Relaxed), self.to_scan.load(Ordering::Relaxed));
        Progress { phase, scanned, expected }
    }

    fn tell(&self) {
        if let Some(on_progress) = &self.on_progress {
            on_progress(self.progress());
        }
    }

    /// Scans the store into a new filter and replaces the old one by it. Runs in a thread of its own.
    pub(super) fn rebuild(&self) {
        let scans = scanning::begin(self);
        // Whether the store's number of keys is believed: not again after it was far too high, or higher than there can be a
        // filter for. So at most one scan is wasted on it.
        let mut believes = true;
        // Until a filter is published that is not worn at once, and nobody has asked for another.
        loop {
            let mut failure = match catch_unwind(AssertUnwindSafe(|| self.scan(believes))) {
                Ok(Ok(Next::Another)) => continue,
                Ok(Ok(Next::Smaller)) => {
                    believes = false;
                    continue;
                }
                Ok(Ok(Next::Nothing)) => None,
                Ok(Err(error)) => Some(error),
                Err(payload) => {
                    discard(payload);
                    Some(Error::ScanPanicked)
                }
            };
            let is_over = self.end_unless_asked_again(&mut failure);
            // With nothing locked, and after the end was recorded: an error of the user's type, or the one that it has
            // replaced.
            discard(Box::new(failure));
            if is_over {
                break;
            }
        }
        drop(scans);
        // A panic of the scan is reported as its failure; a panic of the listener in its last call is dropped.
        catch_unwind(AssertUnwindSafe(|| self.tell())).unwrap_or_else(discard);
    }

    /// Discards the filter, since somebody has written around the guard: it says "absent" for keys that are there, or may do
    /// so. It is taken away at once, and a scan that is running is followed by another.
    pub(super) fn distrust(&self) {
        {
            let mut again = self.again.lock();
            again.is_due = true;
            again.is_new_generation_due = true;
            again.asked += 1;
            if let Some(active) = self.active.pin() {
                // Relaxed: a number, for the next filter's size.
                self.known_keys.store(active.len(), Ordering::Relaxed);
            }
            self.active.clear();
        }
        // With nothing locked: it is large.
        self.active.flush();
        // A snapshot of the filter that was about to get its name has it from here on; a later one gets none.
        drop(self.naming.lock());
    }

    /// Forgets what was learned from the store: somebody may have written around the guard, so that none of it is certain.
    fn forget(&self) {
        // First: a caller that has asked the store before cannot put its answer into the cache afterwards, because the versions
        // have changed.
        self.stripes.freeze().forget();
        self.hot.clear();
    }

    /// Moves the store on to another generation, if somebody may have written around the guard: no earlier snapshot is to fit
    /// the store any more. None is written until there is another filter, so that one new generation is enough, however often
    /// another scan was asked for.
    fn renew_generation(&self) -> Result<(), Error<S::Error>> {
        if self.again.lock().is_new_generation_due {
            self.store.renew_generation().map_err(Error::Store)?;
            self.again.lock().is_new_generation_due = false;
        }
        Ok(())
    }

    /// Ends the scan, successful or failed, unless another one must follow. If it ends, the failure of the previous scan is
    /// handed back.
    fn end_unless_asked_again(&self, failure: &mut Option<Error<S::Error>>) -> bool {
        let again = self.again.lock();
        // Relaxed: soon enough.
        if again.is_due && !self.stop.load(Ordering::Relaxed) {
            return false;
        }
        self.end(failure);
        true
    }

    /// Notes that no scan is running, and why the last one failed, if it did.
    fn end(&self, failure: &mut Option<Error<S::Error>>) {
        // Relaxed, both: a number.
        self.patience.store(if failure.is_some() { self.writes_until_next() } else { 0 }, Ordering::Relaxed);
        self.crowded_patience.store(0, Ordering::Relaxed);
        core::mem::swap(&mut *self.failure.lock(), failure);
        // Writers that still report to it do so in vain.
        *self.next.lock() = None;
        // Relaxed: who waits for it locks `failure` after it, as was done here before it.
        self.rebuilding.store(false, Ordering::Relaxed);
    }

    /// Ends a scan for which there was no thread. The caller holds `again`.
    pub(super) fn end_before_it_began(&self) {
        // Relaxed, both: numbers; there is nothing else to be seen.
        self.patience.store(self.writes_until_next(), Ordering::Relaxed);
        self.rebuilding.store(false, Ordering::Relaxed);
    }

    /// How many writes it takes until a scan that has failed is tried again.
    fn writes_until_next(&self) -> u64 {
        // Relaxed: a number.
        self.scanned.load(Ordering::Relaxed).max(FEWEST_WRITES)
    }

    /// Scans once. The filter is made for as many keys as the store says, if `believes`.
    fn scan(&self, believes: bool) -> Result<Next, Error<S::Error>> {
        // Relaxed, here and below: information.
        let before = self.scanned.load(Ordering::Relaxed);
        self.scanned.store(0, Ordering::Relaxed);
        // Before the store is asked: if that panics, nobody has asked for another scan.
        if core::mem::take(&mut self.again.lock().is_due) {
            self.forget();
        }
        self.renew_generation()?;
        let room = self.expect_keys(before, believes);
        let filter = match self.plan.build(room) {
            Ok(Some(filter)) => filter,
            Ok(None) => return Ok(Next::Nothing),
            Err(error) => {
                // The next filter is made with what is known, and the next scan is not tried sooner.
                self.scanned.store(before, Ordering::Relaxed);
                return if believes { Ok(Next::Smaller) } else { Err(error.into()) };
            }
        };
        let rebuild = Arc::new(Rebuild::new(filter));
        let keys = {
            // Each write is either over, and the scan sees it, or begins after this, and reports to the rebuild.
            let _frozen = self.stripes.freeze();
            let keys = self.store.scan_keys().map_err(Error::Store)?;
            *self.next.lock() = Some(Arc::clone(&rebuild));
            keys
        };
        self.tell();
        for (key, number) in keys.zip(1..) {
            let hash = self.plan.hash(&key.map_err(Error::Store)?);
            rebuild.filter.add(hash, stripe_of(hash));
            self.scanned.store(number, Ordering::Relaxed);
            if number % STEP == 0 {
                self.tell();
            }
            // Checked for each key: a store may take long to find one. Relaxed: soon enough.
            if self.stop.load(Ordering::Relaxed) {
                return Ok(Next::Nothing);
            }
        }
        if !rebuild.settle() {
            // Somebody has written around the guard meanwhile, and perhaps put other keys, too.
            self.distrust();
        }
        let published = self.publish(&rebuild);
        // Frees the old filter, with nothing locked: it is large.
        self.active.flush();
        let (filter, scanned) = (&rebuild.filter, self.scanned.load(Ordering::Relaxed));
        if !published? || filter.is_worn(self.fewest_keys()) || filter.is_crowded_out() && scanned > room {
            return Ok(Next::Another);
        }
        // Checked only if the filter was made for more keys than the minimum.
        let is_far_too_large = believes
            && room > with_spare(self.fewest_keys())
            && filter.is_far_too_large(filter.len().max(scanned).max(self.fewest_keys()));
        Ok(if is_far_too_large { Next::Smaller } else { Next::Nothing })
    }

    /// The fewest keys that a filter is made for, before a quarter is added.
    fn fewest_keys(&self) -> u64 {
        self.expected_keys.unwrap_or(EXPECTED_KEYS)
    }

    /// How many keys the filter of a scan is to have room for, after a scan that has seen `before` keys. Also notes about how
    /// many keys the scan will see.
    fn expect_keys(&self, before: u64, believes: bool) -> u64 {
        let hint = self.store.len_hint().filter(|_| believes);
        // A store that does not know how many keys it has should not get a filter that is too small again. Nor need it be asked
        // while there is a filter that has all its keys: it may count keys that were deleted long ago.
        let (known, is_sure) = match self.active.pin() {
            Some(active) if active.crowded_stripes() == 0 => (active.len(), true),
            // Other keys had no room in it.
            Some(active) => (active.len().max(before), false),
            // Relaxed, here and below: information.
            None => (self.known_keys.load(Ordering::Relaxed), false),
        };
        let to_scan = hint.unwrap_or(known.max(self.expected_keys.unwrap_or(0)));
        self.to_scan.store(to_scan, Ordering::Relaxed);
        with_spare(hint.filter(|_| !is_sure).unwrap_or(0).max(known).max(self.fewest_keys()))
    }

    /// Replaces the filter that readers ask by a complete one. If that is not to be trusted, does nothing and returns false.
    fn publish(&self, rebuild: &Rebuild) -> Result<bool, Error<S::Error>> {
        // No write is between looking at the filters and updating them.
        let _frozen = self.stripes.freeze();
        *self.next.lock() = None;
        // Locked: a later request for another scan finds this filter, to take it away, and is not overlooked at the end.
        let again = self.again.lock();
        if !again.is_due {
            let bytes = size_of::<Arc<Active>>();
            let filter = Arc::clone(&rebuild.filter);
            self.active.replace(filter).map_err(|_| Error::Filter(FilterError::OutOfMemory { bytes }))?;
        }
        Ok(!again.is_due)
    }

    /// Whether a scan is to be tried, after a write: if the filter is worn or crowded out, or there is none because a scan has
    /// failed. If the last scan has failed, only after some writes; so too if the filter is crowded out, as it may soon be
    /// worn.
    pub(super) fn wants_rebuild(&self) -> bool {
        let active = self.active.pin();
        let is_worn = active.as_ref().is_some_and(|active| active.is_worn(self.fewest_keys()));
        if active.as_ref().is_some_and(|active| !is_worn && !active.is_crowded_out()) {
            return false;
        }
        let Some(left) = count_down(&self.patience) else {
            // No writes are to be waited for: a worn filter is rebuilt at once; and where there is none, none was asked for, or
            // it is being built.
            return is_worn || active.is_some_and(|active| self.is_crowded_for_long(&active));
        };
        left == 1
    }

    /// After a write: whether there have been as many writes since the filter was seen to be crowded out as it has keys.
    fn is_crowded_for_long(&self, active: &Active) -> bool {
        let left = count_down(&self.crowded_patience);
        if left.is_none() {
            // Relaxed: a number.
            self.crowded_patience.store(active.len().max(FEWEST_WRITES), Ordering::Relaxed);
        }
        left == Some(1)
    }
}

/// Counts down the writes to be waited for. Returns how many there were before, unless none. Of concurrent callers, one finds
/// the last.
fn count_down(patience: &AtomicU64) -> Option<u64> {
    // Relaxed, both: a number.
    patience.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).ok()
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use core::convert::Infallible;
    use std::sync::OnceLock;

    use super::*;
    use crate::guard::{Generation, Guarded, HashMapStore, Scanned, Value};

    /// The filter was taken away, and no thread could be started to scan for another.
    #[test]
    fn writes_try_again_when_there_was_no_thread_for_a_scan() {
        let guarded = Guarded::open(HashMapStore::new()).expect("a thread");
        guarded.wait_until_ready().expect("a store that cannot fail");
        guarded.shared.active.clear();
        guarded.shared.end_before_it_began();
        for write in 1..=FEWEST_WRITES {
            assert_eq!(guarded.progress().phase, Phase::Unfiltered, "before write {write}");
            guarded.put(&write.to_le_bytes(), b"").expect("a store that cannot fail");
        }
        guarded.wait_until_ready().expect("a store that cannot fail");
        assert_eq!(guarded.progress().phase, Phase::Ready);
        assert_eq!(guarded.stats().filter_keys, FEWEST_WRITES);
    }

    /// A store whose scan has no end, and yields its first key when the guard is to end.
    #[derive(Default)]
    struct Endless {
        inner: HashMapStore,
        is_to_end: OnceLock<Box<dyn Fn() -> bool + Send + Sync>>,
        keys: AtomicU64,
    }

    impl Store for Endless {
        type Error = Infallible;

        fn get(&self, key: &[u8]) -> Result<Option<Value>, Infallible> {
            self.inner.get(key)
        }

        fn put(&self, key: &[u8], value: &[u8]) -> Result<bool, Infallible> {
            self.inner.put(key, value)
        }

        fn delete(&self, key: &[u8]) -> Result<bool, Infallible> {
            self.inner.delete(key)
        }

        fn scan_keys(&self) -> Result<impl Iterator<Item = Scanned<Infallible>>, Infallible> {
            Ok(core::iter::from_fn(|| {
                while !self.is_to_end.get().is_some_and(|is_to_end| is_to_end()) {
                    std::thread::yield_now();
                }
                let number = self.keys.fetch_add(1, Ordering::Relaxed);
                Some(Ok(number.to_le_bytes().into()))
            }))
        }

        fn generation(&self) -> Result<Generation, Infallible> {
            self.inner.generation()
        }
    }

    /// A key may take long: the guard asks for no further one.
    #[test]
    fn a_guard_that_is_dropped_or_asked_for_its_store_in_mid_scan_ends_it() {
        let ends: [fn(Guarded<Arc<Endless>>); 2] = [drop, |guarded| drop(guarded.into_store())];
        for end in ends {
            let store = Arc::new(Endless::default());
            let guarded = Guarded::open(Arc::clone(&store)).expect("a thread");
            let shared = Arc::downgrade(&guarded.shared);
            let is_to_end =
                move || shared.upgrade().is_some_and(|shared| shared.stop.load(Ordering::Relaxed));
            assert!(store.is_to_end.set(Box::new(is_to_end)).is_ok());
            end(guarded);
            assert_eq!(store.keys.load(Ordering::Relaxed), 1);
            assert_eq!(Arc::strong_count(&store), 1, "the store is given back");
        }
    }
}
