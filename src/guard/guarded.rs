//! [`Guarded`]: writes, scans, and what it reports. Look-ups are in `lookup`.

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

/// A store with a filter, and optionally a cache, before it. See [the module](super).
///
/// Every method takes `&self`; share it by reference or [`Arc`]. Dropping it ends its scan, as soon as the store
/// has yielded one more key; [`Guarded::into_store`] gives the store back.
pub struct Guarded<S: Store> {
    pub(super) shared: Arc<Shared<S, S::Error>>,
    /// Threads of scans: that of the last scan, and those that are still reporting how theirs ended. None panics.
    workers: Mutex<Vec<JoinHandle<()>>>,
}

/// A panic of the store leaves the guard intact.
impl<S: Store + RefUnwindSafe> RefUnwindSafe for Guarded<S> {}
/// A panic of the store leaves the guard intact.
impl<S: Store + RefUnwindSafe> UnwindSafe for Guarded<S> {}

impl<S: Store> Guarded<S> {
    /// Puts a guard with a cuckoo filter before a store. The guard serves at once: the filter is built from the store's keys in
    /// the background.
    ///
    /// # Errors
    ///
    /// [`Error::Thread`], and [`Error::Filter`] if there is no memory. The store is dropped then: [`Builder::try_open`] hands
    /// it back.
    pub fn open(store: S) -> Result<Self, Error<S::Error>> {
        Self::builder(store).open()
    }

    /// Returns a builder, which sets options and opens a guard.
    pub fn builder(store: S) -> Builder<S> {
        Builder::new(store)
    }

    pub(super) fn with_shared(shared: Shared<S, S::Error>) -> Self {
        Guarded { shared: Arc::new(shared), workers: Mutex::default() }
    }

    /// Puts a value under a key. Returns whether the key was there before.
    ///
    /// # Errors
    ///
    /// The store's error. It depends on the store whether the pair was then put; the guard is right either way.
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

    /// The same, in a section of this key.
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
                // It ends before an error of the user's type is dropped, also if the store panics.
                let section = section;
                // First: the store may panic.
                shared.counters.mine().count(Event::Failed);
                // Only the store knows the outcome; if it cannot say, the fingerprint stays.
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

    /// Deletes a key. Returns whether it was there.
    ///
    /// # Errors
    ///
    /// The store's error. It depends on the store whether the key was then deleted; the guard is right either way.
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

    /// The same, in a section of this key.
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

    /// Discards the filter and scans the store for a new one, in the background; look-ups pass meanwhile. A scan that is
    /// running is followed by another. What was remembered of the store, cached values and absent keys, is forgotten when the
    /// scan begins: if such values were replaced, wait for it with [`Guarded::wait_until_ready`].
    ///
    /// This is needed only if somebody has written around the guard. [`Guarded::verify`] may detect that: it samples keys, and
    /// looks at no cached value. An earlier snapshot, which is as wrong as the filter was, no longer fits the store, because
    /// the scan begins by moving the store on to another generation ([`Store::renew_generation`]): write another snapshot.
    ///
    /// # Errors
    ///
    /// [`Error::Thread`]: the filter has been discarded all the same.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use koel::guard::{Guarded, HashMapStore, Store};
    ///
    /// let store = Arc::new(HashMapStore::new());
    /// let guarded = Guarded::open(Arc::clone(&store))?;
    /// guarded.wait_until_ready()?;
    /// store.put(b"ada", b"1815").unwrap(); // around the guard, which is not allowed
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
        // Held until the thread is there: callers that come meanwhile begin a scan themselves if there is none after all.
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

    /// After a write: rebuilds a filter that lacked a key of the store, or is worn.
    pub(super) fn look_after(&self, known: bool) {
        // If there was no thread: with a worn filter, or none, the guard is slow, but right; writes try again.
        if !known {
            let _ = self.rebuild();
        } else if self.shared.wants_rebuild() {
            let _ = self.start_scan();
        }
    }

    /// Waits until no scan is running. The function that is told of the scan's progress may still be in its last call, for
    /// which this may or may not wait: so that function must not wait for a caller that waits here.
    ///
    /// # Errors
    ///
    /// Why the last scan failed. This is reported once: the next call returns `Ok`, with or without a filter.
    /// [`Guarded::rebuild`] tries again; so do writes, after as many as the scan had seen keys, and at least 4,096, even if no
    /// thread could be started for a scan that nobody had asked for.
    ///
    /// # Panics
    ///
    /// If called on the thread of a scan that is running, as in [`Builder::on_progress`].
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
        // Relaxed: the lock of `failure`, taken after this here and before it where a scan ends, makes all that was done
        // visible.
        while self.shared.rebuilding.load(Ordering::Relaxed) {
            assert!(!scanning::is_here(&*self.shared), "who is told of a scan's progress waits for the scan");
            let worker = self.workers.lock().pop();
            match worker {
                Some(worker) if !is_this_thread(&worker) => drop(worker.join()),
                // Other callers wait for the one that runs.
                worker => {
                    self.workers.lock().extend(worker);
                    thread::sleep(Duration::from_millis(1));
                }
            }
        }
        self.shared.failure.lock().take().map_or(Ok(()), Err)
    }

    /// Returns how far the scan is.
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

    /// Returns what the guard has done since it was opened.
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
    /// written to the store since. The file appears whole or not at all: it is written under the same name followed by `.new-`
    /// and 16 random digits, and then replaces the old one; if the name is a link, it replaces the link's target. If it cannot
    /// be written, or cannot replace the old one, nothing of it is left, unless the process is killed: then the new file is
    /// removed when another snapshot is written there, an hour later or more. If only syncing the folder fails, that is an
    /// error as well, though the snapshot is there. The file has the permissions of the old one, if there is one.
    ///
    /// Writers wait while the filter is copied in memory, about a millisecond per megabyte; readers do not.
    ///
    /// # Errors
    ///
    /// [`Error::Snapshot`]: if there is no filter yet, or it was discarded before the file had its name; if there is no memory
    /// for the copy; if the file cannot be written; or if there is a file that is neither empty nor begins as a snapshot does,
    /// and so is somebody else's, perhaps the database. [`Error::Store`].
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

    /// Returns why the snapshot that the guard was to be opened from was not used; `None` if it was used, or none was given.
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

    /// Looks for keys of the store that the filter takes for absent. It checks about `samples` keys, spread over as many as the
    /// filter has, or over as many as the store says it has if that is less, and over those after them. There is no such key
    /// unless somebody has written around the guard; if there is one, the filter is rebuilt at once, as by
    /// [`rebuild`](Self::rebuild). Each call checks other keys. Without a filter, or before it has been built, no key is
    /// checked.
    ///
    /// Scans the store's keys. May run while others read and write.
    ///
    /// # Errors
    ///
    /// The store's error. If a key that the filter takes for absent was found before the error, the filter is rebuilt all the
    /// same.
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

    /// Returns the store. Write to it only through the guard.
    pub fn store(&self) -> &S {
        &self.shared.store
    }

    /// Ends the guard and returns the store. A scan ends as soon as the store has yielded one more key and
    /// [`Builder::on_progress`] has returned. To have a filter at once when the store is guarded again, take a
    /// [`snapshot`](Self::snapshot) first.
    ///
    /// # Panics
    ///
    /// If called on the thread of the scan: in [`Builder::on_progress`], or in code of the store that the scan runs. The store
    /// is dropped when that scan has ended.
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
        // All other references belong to scan threads, which have ended then, unless this is one of them.
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
            // The worker itself may drop this, in `on_progress`: it ends soon.
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
