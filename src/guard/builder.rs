//! The options of a guard.

use core::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use super::error::{Error, SnapshotError};
use super::filter::{Active, Filter, Plan, with_spare};
use super::guarded::Guarded;
use super::hot::Hot;
use super::rebuild::{EXPECTED_KEYS, Progress};
use super::shared::{OnProgress, Shared};
use super::snapshot;
use super::stats::Counters;
use super::store::Store;
use super::stripes::Stripes;
use crate::filter::Xxh3;
use crate::swapped::Swapped;
use crate::sync::{AtomicBool, AtomicU64, Mutex};

/// The options of a [`Guarded`], from [`Guarded::builder`].
///
/// ```
/// use koel::guard::{Filter, Guarded, HashMapStore};
///
/// let guarded = Guarded::builder(HashMapStore::new())
///     .filter(Filter::Cuckoo)
///     .false_positive_rate(0.001)
///     .expected_keys(100_000)
///     .on_progress(|progress| println!("{} of {}", progress.scanned, progress.expected))
///     .open()?;
/// # Ok::<(), koel::guard::Error<std::convert::Infallible>>(())
/// ```
#[must_use = "a builder does nothing until `open`"]
pub struct Builder<S> {
    store: S,
    filter: Filter,
    rate: f64,
    expected_keys: Option<u64>,
    cache_bytes: u64,
    snapshot: Option<PathBuf>,
    on_progress: Option<OnProgress>,
}

impl<S: Store> Builder<S> {
    pub(super) fn new(store: S) -> Self {
        Builder {
            store,
            filter: Filter::default(),
            rate: 0.01,
            expected_keys: None,
            cache_bytes: 0,
            snapshot: None,
            on_progress: None,
        }
    }

    /// Sets the kind of filter: [`Filter::Cuckoo`] by default.
    ///
    /// ```
    /// use koel::guard::{Filter, Guarded, HashMapStore};
    ///
    /// // No filter, a cache only: look-ups of absent keys reach the store.
    /// let guarded = Guarded::builder(HashMapStore::new()).filter(Filter::None).cache_bytes(1 << 20).open()?;
    /// assert_eq!(guarded.get(b"ada")?, None);
    /// assert_eq!(guarded.stats().unfiltered, 1);
    /// # Ok::<(), koel::guard::Error<std::convert::Infallible>>(())
    /// ```
    pub fn filter(mut self, filter: Filter) -> Self {
        self.filter = filter;
        self
    }

    /// Sets how often the filter may take an absent key for present: above 0 and below 1, and for a cuckoo filter at least
    /// 4e-9; 0.01 by default.
    pub fn false_positive_rate(mut self, rate: f64) -> Self {
        self.rate = rate;
        self
    }

    /// Sets how many keys there will be: 1,000 by default. The filter has room for a quarter more than these, or than the store
    /// holds when it is scanned, whichever is more; beyond that a cuckoo filter grows, and a Bloom filter is rebuilt.
    ///
    /// ```
    /// use koel::guard::{Guarded, HashMapStore};
    ///
    /// let bytes_for = |keys| {
    ///     let guarded = Guarded::builder(HashMapStore::new()).expected_keys(keys).open()?;
    ///     guarded.wait_until_ready()?;
    ///     Ok::<_, koel::guard::Error<_>>(guarded.stats().filter_bytes)
    /// };
    /// assert!(bytes_for(1_000_000)? > 10 * bytes_for(10_000)?);
    /// # Ok::<(), koel::guard::Error<std::convert::Infallible>>(())
    /// ```
    pub fn expected_keys(mut self, keys: u64) -> Self {
        self.expected_keys = Some(keys);
        self
    }

    /// Sets how many bytes the cache may hold: keys, values, and 80 for each entry. The default is 0: no cache. With what the
    /// allocator and the table add, entries of some hundred bytes take a fifth to a third more, and entries of a few bytes up
    /// to half as much again. In addition, a table of keys that were asked for once takes a thirtieth to a sixteenth of this,
    /// 64 MiB at most, from the beginning.
    ///
    /// ```
    /// use koel::guard::{Guarded, HashMapStore};
    ///
    /// let guarded = Guarded::builder(HashMapStore::new()).cache_bytes(1 << 20).open()?;
    /// guarded.wait_until_ready()?;
    /// guarded.put(b"ada", b"1815")?;
    /// guarded.get(b"ada")?; // from the store
    /// guarded.get(b"ada")?; // from the cache
    /// assert_eq!(guarded.stats().cache_hits, 1);
    /// # Ok::<(), koel::guard::Error<std::convert::Infallible>>(())
    /// ```
    pub fn cache_bytes(mut self, bytes: u64) -> Self {
        self.cache_bytes = bytes;
        self
    }

    /// Sets a file that [`Guarded::snapshot`] has written. If it fits the store, the filter is loaded from it; if it does not
    /// fit, is damaged or is missing, the store is scanned, and [`Guarded::rejected_snapshot`] returns the reason.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use koel::guard::{Guarded, HashMapStore, Phase};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// let (store, file) = (Arc::new(HashMapStore::new()), folder.path().join("filter"));
    /// // There is no such file yet: the store is scanned.
    /// let guarded = Guarded::builder(Arc::clone(&store)).snapshot(&file).open()?;
    /// assert!(guarded.rejected_snapshot().is_some());
    /// guarded.wait_until_ready()?;
    /// guarded.snapshot(&file)?;
    /// drop(guarded);
    ///
    /// let guarded = Guarded::builder(store).snapshot(&file).open()?;
    /// assert!(guarded.rejected_snapshot().is_none());
    /// assert_eq!(guarded.progress().phase, Phase::Ready);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn snapshot(mut self, file: impl Into<PathBuf>) -> Self {
        self.snapshot = Some(file.into());
        self
    }

    /// Sets a function that is called with the scan's progress: when the scan begins, each time it has seen a few thousand
    /// keys, and when it is over, successful or not. [`Guarded::wait_until_ready`] then returns whether it has failed; an
    /// earlier filter stays in place, so that even then the phase may be [`Phase::Ready`](super::Phase::Ready). The function
    /// runs on the scan's thread. It must not wait for the scan, as a write or a snapshot does if the store's scans hold up
    /// writes. If it panics while the scan runs, the scan has failed.
    pub fn on_progress(mut self, f: impl Fn(Progress) + Send + Sync + 'static) -> Self {
        self.on_progress = Some(Box::new(f));
        self
    }

    /// Opens the guard. It serves at once; without a snapshot, the filter is built in the background.
    ///
    /// # Errors
    ///
    /// [`Error::Filter`] for a false-positive rate or a number of keys that is out of range, or for which there is no memory,
    /// unless there is to be no filter; [`Error::Store`]; [`Error::Thread`]. The store is dropped then, and so is the function
    /// given to [`Builder::on_progress`]: [`Builder::try_open`] hands the store back.
    ///
    /// ```
    /// use koel::guard::{Error, Guarded, HashMapStore};
    ///
    /// let store = HashMapStore::new();
    /// let error = Guarded::builder(store).false_positive_rate(2.0).open().unwrap_err();
    /// assert!(matches!(error, Error::Filter(_)));
    ///
    /// let guarded = Guarded::builder(HashMapStore::new()).open()?;
    /// guarded.put(b"ada", b"1815")?; // at once
    /// guarded.wait_until_ready()?; // the filter is there
    /// assert!(guarded.get(b"ada")?.is_some());
    /// # Ok::<(), koel::guard::Error<std::convert::Infallible>>(())
    /// ```
    pub fn open(self) -> Result<Guarded<S>, Error<S::Error>> {
        self.try_open().map_err(|(_, error)| error)
    }

    /// Opens the guard, as [`Builder::open`], but hands the store back if that fails: so it need not be opened again, and a
    /// store in memory is not lost.
    ///
    /// # Errors
    ///
    /// As [`Builder::open`], together with the store.
    ///
    /// ```
    /// use koel::guard::{Guarded, HashMapStore, Store};
    ///
    /// let store = HashMapStore::new();
    /// store.put(b"ada", b"1815").unwrap();
    /// let (store, error) = Guarded::builder(store).false_positive_rate(2.0).try_open().unwrap_err();
    /// println!("{error}; with the default rate, then");
    /// assert!(Guarded::open(store)?.get(b"ada")?.is_some());
    /// # Ok::<(), koel::guard::Error<std::convert::Infallible>>(())
    /// ```
    pub fn try_open(self) -> Result<Guarded<S>, (S, Error<S::Error>)> {
        let Begun { plan, active, rejected } = match self.begin() {
            Ok(begun) => begun,
            Err(error) => return Err((self.store, error)),
        };
        let scan = active.is_none() && self.filter != Filter::None;
        let guarded = Guarded::with_shared(Shared {
            store: self.store,
            plan,
            expected_keys: self.expected_keys,
            stripes: Stripes::new(),
            active: Swapped::new(active),
            next: Mutex::new(None),
            hot: Hot::new(self.cache_bytes),
            counters: Counters::new(),
            rebuilding: AtomicBool::new(false),
            again: Mutex::default(),
            stop: AtomicBool::new(false),
            scanned: AtomicU64::new(0),
            to_scan: AtomicU64::new(0),
            known_keys: AtomicU64::new(0),
            failure: Mutex::new(None),
            patience: AtomicU64::new(0),
            crowded_patience: AtomicU64::new(0),
            on_progress: self.on_progress,
            rejected,
            snapshot: Mutex::new(()),
            naming: Mutex::new(()),
        });
        match if scan { guarded.start_scan() } else { Ok(()) } {
            Ok(()) => Ok(guarded),
            Err(error) => Err((guarded.into_store(), error)),
        }
    }

    /// The steps that can fail before there is a guard.
    fn begin(&self) -> Result<Begun, Error<S::Error>> {
        let mut plan = Plan { filter: self.filter, rate: self.rate, hasher: Xxh3::default() };
        // To report at once an error that the scan would report later.
        plan.build(with_spare(self.expected_keys.unwrap_or(EXPECTED_KEYS)))?;
        let (mut active, mut rejected) = (None, None);
        if let (Some(file), false) = (&self.snapshot, self.filter == Filter::None) {
            let generation = self.store.generation().map_err(Error::Store)?;
            match snapshot::read(file, plan, generation) {
                Ok((filter, hasher)) => {
                    active = Some(Arc::new(filter));
                    plan.hasher = hasher;
                }
                Err(error) => rejected = Some(error),
            }
        }
        Ok(Begun { plan, active, rejected })
    }
}

/// What a guard begins with: a filter, if there was a snapshot.
struct Begun {
    plan: Plan,
    active: Option<Arc<Active>>,
    rejected: Option<SnapshotError>,
}

impl<S> fmt::Debug for Builder<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("filter", &self.filter)
            .field("false_positive_rate", &self.rate)
            .field("expected_keys", &self.expected_keys)
            .field("cache_bytes", &self.cache_bytes)
            .field("snapshot", &self.snapshot)
            .finish_non_exhaustive()
    }
}
