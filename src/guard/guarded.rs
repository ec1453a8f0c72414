//! [`Guarded`]: writes, scans, and what it tells. Look-ups are in `lookup`.

use core::fmt;
use core::panic::{RefUnwindSafe, UnwindSafe};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::builder::Builder;
use super::error::{Error, SnapshotError};
use super::rebuild::Progress;
use super::scanning;
use super::section::Section;
use super::shared::Shared;
use super::stats::{Event, Stats};
use super::store::Store;
use super::verify::Verification;
use crate::sync::thread::{self, JoinHandle};
use crate::sync::{Mutex, Ordering, has_ended};

/// A store with a filter, and a cache, before it. See [the module](super).
///
/// Every method takes `&self`; share it by reference or [`Arc`]. Dropping it ends its scan, as soon as the store
/// has yielded one more key; [`Guarded::into_store`] gives the store back.
pub struct Guarded<S: Store> {
    pub(super) shared: Arc<Shared<S, S::Error>>,
    /// Threads of scans: the last one's, and those that have not come back from telling how theirs ended. None panics.
    workers: Mutex<Vec<JoinHandle<()>>>,
}

/// A panic of the store leaves the guard whole.
impl<S: Store + RefUnwindSafe> RefUnwindSafe for Guarded<S> {}
/// A panic of the store leaves the guard whole.
impl<S: Store + RefUnwindSafe> UnwindSafe for Guarded<S> {}

impl<S: Store> Guarded<S> {
    /// Stands a guard with a cuckoo filter before a store. Serves at once: the filter is built from the store's keys in the
    /// background.
    ///
    /// # Errors
    ///
    /// [`Error::Thread`], and [`Error::Filter`] if there is no memory. The store is dropped then: [`Builder::try_open`] hands
    /// it back.
    pub fn open(store: S) -> Result<Self, Error<S::Error>> {
        Self::builder(store).open()
    }

    /// The options.
    pub fn builder(store: S) -> Builder<S> {
        Builder::new(store)
    }

    pub(super) fn with_shared(shared: Shared<S, S::Error>) -> Self {
        Guarded { shared: Arc::new(shared), workers: Mutex::default() }
    }

    /// Gives a key a value. Whether the key was there before.
    ///
    /// # Errors
    ///
    /// The store's. Whether the pair was put is then as the store leaves it; the guard is right either way.
    ///
    /// ```
    /// use koel::guard::{Guarded, HashMapStore};
    ///
    /// let guarded = Guarded::open(HashMapStore::new())?;
    /// assert!(!guarded.put(b"ada", b"1815")?); // it was not there
    /// assert!(guarded.put(b"ada", b"1852")?);
    /// # Ok::<(), koel::guard::Error<std::convert::Infallible>>(())
    /// ```
    pub fn put(&self, key: &[u8], value: &[u8]) -> Result<bool, Error<S::Error>> {
        self.put_in(Section::begin(&self.shared, self.shared.plan.hash(key), key), key, value)
    }

    /// The same, in a section of the key's.
    pub(super) fn put_in(
        &self,
        mut section: Section<'_>,
        key: &[u8],
        value: &[u8],
    ) -> Result<bool, Error<S::Error>> {
        let shared = &*self.shared;
        section.announce();
        let existed = match shared.store.put(key, value) {
            Ok(existed) => existed,
            Err(error) => {
                // Ends before an error of the user's type is dropped, also if the store panics.
                let section = section;
                // First: the store may panic.
                shared.counters.mine().count(Event::Failed);
                // Only the store knows what became of it; if it cannot say, the fingerprint stays.
                let now = shared.store.get(key);
                if let Ok(None) = now {
                    section.revoke();
                } else {
                    drop(section);
                }
                return Err(Error::Store(error));
            }
        };
        let known = if existed {
            section.stayed()
        } else {
            section.came();
            true
        };
        shared.counters.mine().count(Event::Put);
        self.look_after(known);
        Ok(existed)
    }

    /// Takes a key out. Whether it was there.
    ///
    /// # Errors
    ///
    /// The store's. Whether the key was taken out is then as the store leaves it; the guard is right either way.
    ///
    /// ```
    /// use koel::guard::{Guarded, HashMapStore};
    ///
    /// let guarded = Guarded::open(HashMapStore::new())?;
    /// guarded.put(b"ada", b"1815")?;
    /// assert!(guarded.delete(b"ada")?, "it was there");
    /// assert!(!guarded.delete(b"ada")?);
    /// # Ok::<(), koel::guard::Error<std::convert::Infallible>>(())
    /// ```
    pub fn delete(&self, key: &[u8]) -> Result<bool, Error<S::Error>> {
        self.delete_in(Section::begin(&self.shared, self.shared.plan.hash(key), key), key)
    }

    /// The same, in a section of the key's.
    pub(super) fn delete_in(&self, section: Section<'_>, key: &[u8]) -> Result<bool, Error<S::Error>> {
        let shared = &*self.shared;
        let existed = shared.store.delete(key).map_err(|error| {
            shared.counters.mine().count(Event::Failed);
            Error::Store(error)
        })?;
        let known = if existed {
            section.left()
        } else {
            drop(section);
            true
        };
        shared.counters.mine().count(Event::Delete);
        self.look_after(known);
        Ok(existed)
    }

    /// Takes the filter away and scans the store for a new one, in the background; look-ups pass meanwhile. A scan that is
    /// running is followed by another. What was cached of the store, values and keys that were not there, is forgotten when
    /// the scan begins: wait for it with [`Guarded::wait_until_ready`], if such values were replaced.
    ///
    /// Needed only if somebody has written around the guard, and then [`Guarded::verify`] may say so: it samples
    /// keys, and looks at no cached value. A snapshot from before, which is as wrong as the filter was, does not fit the store
    /// any more, as the scan begins by moving it on to another generation ([`Store::renew_generation`]): write another
    /// snapshot.
    ///
    /// # Errors
    ///
    /// [`Error::Thread`]: the filter has been taken away all the same.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use koel::guard::{Guarded, HashMapStore, Store};
    ///
    /// let store = Arc::new(HashMapStore::new());
    /// let guarded = Guarded::open(Arc::clone(&store))?;
    /// guarded.wait_until_ready()?;
    /// store.put(b"ada", b"1815").unwrap(); // around the guard, which must not be
    /// guarded.rebuild()?;
    /// guarded.wait_until_ready()?;
    /// assert!(guarded.get(b"ada")?.is_some());
    /// # Ok::<(), koel::guard::Error<std::convert::Infallible>>(())
    /// ```
    pub fn rebuild(&self) -> Result<(), Error<S::Error>> {
        self.shared.distrust();
        self.start_scan()
    }

    /// Begins to scan the store for a new filter, unless a scan is running.
    pub(super) fn start_scan(&self) -> Result<(), Error<S::Error>> {
        // Until the thread is there: whoever comes meanwhile begins one, if there is none after all.
        let _again = self.shared.again.lock();
        // Relaxed, both: the lock orders them with the end of a scan.
        if self.shared.rebuilding.load(Ordering::Relaxed) {
            return Ok(());
        }
        self.shared.rebuilding.store(true, Ordering::Relaxed);
        let shared = Arc::clone(&self.shared);
        let thread = thread::Builder::new().name("koel-guard".to_owned());
        match thread.spawn(move || shared.rebuild()) {
            Ok(worker) => {
                let mut workers = self.workers.lock();
                workers.retain(|worker| !has_ended(worker));
                workers.push(worker);
                Ok(())
            }
            Err(error) => {
                self.shared.end_before_it_began();
                Err(Error::Thread(error))
            }
        }
    }

    /// After a write: builds a filter anew that has not known a key of the store, or is worn.
    pub(super) fn look_after(&self, known: bool) {
        // No thread: with a worn filter, or none, the guard is slow, and right; writes try again.
        if !known {
            let _ = self.rebuild();
        } else if self.shared.wants_rebuild() {
            let _ = self.start_scan();
        }
    }

    /// Waits until no scan is running. Who is told of its progress may still be in his last call, which this may wait for or
    /// not: so he must not wait for who waits here.
    ///
    /// # Errors
    ///
    /// Why the last scan has failed, told once: the next call returns `Ok`, with a filter or without. [`Guarded::rebuild`]
    /// tries again; so do writes, after as many as the scan had seen keys, and 4,096 at least: also when no thread could be
    /// started for a scan that nobody had asked for.
    ///
    /// # Panics
    ///
    /// On the thread of a scan that is running, as in [`Builder::on_progress`].
    ///
    /// ```
    /// use koel::guard::{Guarded, HashMapStore, Phase};
    ///
    /// let guarded = Guarded::open(HashMapStore::new())?; // look-ups pass meanwhile
    /// guarded.wait_until_ready()?;
    /// assert_eq!(guarded.progress().phase, Phase::Ready);
    /// # Ok::<(), koel::guard::Error<std::convert::Infallible>>(())
    /// ```
    pub fn wait_until_ready(&self) -> Result<(), Error<S::Error>> {
        // Relaxed: the lock of `failure`, taken after it here and before it where a scan ends, shows all that was done.
        while self.shared.rebuilding.load(Ordering::Relaxed) {
            assert!(!scanning::is_here(&*self.shared), "who is told of a scan's progress waits for the scan");
            let worker = self.workers.lock().pop();
            match worker {
                Some(worker) if !is_this_thread(&worker) => drop(worker.join()),
                // Others wait for the one that runs.
                worker => {
                    self.workers.lock().extend(worker);
                    thread::sleep(Duration::from_millis(1));
                }
            }
        }
        self.shared.failure.lock().take().map_or(Ok(()), Err)
    }

    /// How far the scan is.
    ///
    /// ```
    /// use koel::guard::{Guarded, HashMapStore, Phase, Store};
    ///
    /// let store = HashMapStore::new();
    /// store.put(b"ada", b"1815").unwrap(); // before there is a guard
    /// let guarded = Guarded::open(store)?;
    /// guarded.wait_until_ready()?;
    /// let progress = guarded.progress();
    /// assert_eq!((progress.phase, progress.scanned), (Phase::Ready, 1));
    /// # Ok::<(), koel::guard::Error<std::convert::Infallible>>(())
    /// ```
    pub fn progress(&self) -> Progress {
        self.shared.progress()
    }

    /// What the guard has done since it was opened.
    ///
    /// ```
    /// use koel::guard::{Guarded, HashMapStore};
    ///
    /// let guarded = Guarded::open(HashMapStore::new())?;
    /// guarded.wait_until_ready()?;
    /// guarded.get(b"bob")?;
    /// assert_eq!(guarded.stats().lookups(), 1);
    /// println!("{}", guarded.stats());
    /// # Ok::<(), koel::guard::Error<std::convert::Infallible>>(())
    /// ```
    pub fn stats(&self) -> Stats {
        let mut stats = Stats::of_counters(&self.shared.counters);
        stats.cache_bytes = self.shared.hot.weight();
        if let Some(active) = self.shared.active.pin() {
            stats.expected_false_positive_rate = active.false_positive_rate();
            stats.filter_keys = active.len();
            stats.filter_bytes = active.memory_usage();
            stats.crowded_stripes = active.crowded_stripes();
        }
        stats
    }

    /// Writes the filter to a file, from which [`Builder::snapshot`] opens a guard without a scan, as long as nothing has been
    /// written to the store since. The file appears whole or not at all: it is written under the name with `.new-` and 16
    /// random digits at its end, and takes the place of the old one; if the name is a link, where that leads. If it cannot be
    /// written, or take that place, nothing of it is left, unless the process is killed: then it goes when another snapshot is
    /// written there, an hour later or more. If only syncing the folder fails, that is an error as well, and it is there. It
    /// has the permissions of the old one, if there is one.
    ///
    /// Writers wait while the filter is copied in memory, a millisecond or so a megabyte; readers do not.
    ///
    /// # Errors
    ///
    /// [`Error::Snapshot`]: there is no filter yet, or it was taken away before the file had its name; or there is no memory
    /// for the copy, or the file cannot be written, or one is there that is neither empty nor begins as a snapshot does:
    /// somebody else's, perhaps the database. [`Error::Store`].
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use koel::guard::{Guarded, HashMapStore, Phase};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// let (store, file) = (Arc::new(HashMapStore::new()), folder.path().join("filter"));
    /// let guarded = Guarded::open(Arc::clone(&store))?;
    /// guarded.put(b"ada", b"1815")?;
    /// guarded.wait_until_ready()?;
    /// guarded.snapshot(&file)?;
    /// drop(guarded);
    ///
    /// let guarded = Guarded::builder(store).snapshot(&file).open()?;
    /// assert_eq!(guarded.progress().phase, Phase::Ready, "at once");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn snapshot(&self, file: impl AsRef<Path>) -> Result<(), Error<S::Error>> {
        self.shared.write_snapshot(file.as_ref())
    }

    /// Why the snapshot that the guard was to be opened from was not used; `None` if it was, or there was to be none.
    ///
    /// ```
    /// use koel::guard::{Guarded, HashMapStore, SnapshotError};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// let file = folder.path().join("none");
    /// let guarded = Guarded::builder(HashMapStore::new()).snapshot(file).open()?; // scans the store
    /// assert!(matches!(guarded.rejected_snapshot(), Some(SnapshotError::Io(_))));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn rejected_snapshot(&self) -> Option<&SnapshotError> {
        self.shared.rejected.as_ref()
    }

    /// Looks for keys of the store that the filter takes for absent, among about `samples` of them, spread over as many as the
    /// filter has, or the store says it has if that is less, and those after them. There is none, unless somebody has
    /// written around the guard; if there is, the filter is built anew at once, as by [`rebuild`](Self::rebuild). Which keys
    /// are looked at differs from call to call. Without a filter, or before it has been built, it says that none was checked.
    ///
    /// Scans the store's keys. May run while others read and write.
    ///
    /// # Errors
    ///
    /// The store's. If a key that the filter takes for absent was found before, the filter is built anew all the same.
    ///
    /// ```
    /// use koel::guard::{Guarded, HashMapStore};
    ///
    /// let guarded = Guarded::open(HashMapStore::new())?;
    /// guarded.put(b"ada", b"1815")?;
    /// guarded.wait_until_ready()?;
    /// let verification = guarded.verify(1000)?;
    /// assert_eq!((verification.checked, verification.false_negatives), (1, 0));
    /// # Ok::<(), koel::guard::Error<std::convert::Infallible>>(())
    /// ```
    pub fn verify(&self, samples: usize) -> Result<Verification, Error<S::Error>> {
        let mut verification = Verification::default();
        let verified = self.shared.verify(samples, &mut verification);
        if verification.false_negatives > 0 {
            // As in `look_after`.
            let _ = self.rebuild();
        }
        verified.map(|()| verification)
    }

    /// The store. Write to it through the guard only.
    pub fn store(&self) -> &S {
        &self.shared.store
    }

    /// Ends the guard's scan, as soon as the store has yielded one more key and [`Builder::on_progress`] has returned, and
    /// gives the store back. To have a filter at once when the store is guarded again, take a [`snapshot`](Self::snapshot)
    /// first.
    ///
    /// # Panics
    ///
    /// On the thread of the scan: in [`Builder::on_progress`], and in code of the store that the scan runs. The store is
    /// dropped when that scan has ended.
    ///
    /// ```
    /// use koel::guard::{Guarded, HashMapStore, Store};
    ///
    /// let guarded = Guarded::open(HashMapStore::new())?;
    /// guarded.put(b"ada", b"1815")?;
    /// let store = guarded.into_store();
    /// assert!(store.get(b"ada").unwrap().is_some());
    /// # Ok::<(), koel::guard::Error<std::convert::Infallible>>(())
    /// ```
    pub fn into_store(self) -> S {
        let shared = Arc::clone(&self.shared);
        // All other references are those of scans' threads, which have ended then, unless this is one of them.
        drop(self);
        Arc::into_inner(shared).expect("a scan that asks for the store has it itself").store
    }
}

fn is_this_thread(thread: &JoinHandle<()>) -> bool {
    thread.thread().id() == thread::current().id()
}

impl<S: Store> Drop for Guarded<S> {
    fn drop(&mut self) {
        // Relaxed: soon enough.
        self.shared.stop.store(true, Ordering::Relaxed);
        let workers = core::mem::take(&mut *self.workers.lock());
        for worker in workers {
            // It may be the worker itself that drops this, in `on_progress`: it ends soon.
            if !is_this_thread(&worker) {
                drop(worker.join());
            }
        }
    }
}

impl<S: Store> fmt::Debug for Guarded<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.shared.fmt(f)
    }
}
