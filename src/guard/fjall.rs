//! [`FjallStore`]: partitions of a fjall keyspace.

use core::fmt;
use std::fs::{File, OpenOptions};
use std::path::Path;
use std::sync::Arc;

use fjall::{Config, Keyspace, PartitionCreateOptions, PartitionHandle, PersistMode};

use super::beside::sync_names_beside;
use super::store::{Generation, Scanned, Store, Value, Write};
use crate::sync::Mutex;

/// The partition of keys and values, where nobody says which.
const DATA: &str = "koel.data";
/// The partition of the generations of all stores of a keyspace.
const GENERATIONS: &str = "koel.generation";
/// The key of the generation of `koel.data` there; those of other partitions begin with it, and a dot.
const GENERATION: &str = "generation";
/// What is shorter fjall writes to its journal with what comes after it.
const KEPT_BACK: usize = 4 << 10;
/// Room that fjall may take at the same moment: of a table in memory that it writes down.
const SPARE: u64 = 16 << 20;

/// A fjall keyspace, a folder of log-structured merge trees.
///
/// Keys and values are in the partition `koel.data`, or [in one of yours](FjallStore::with_partition), the [`Generation`] in
/// `koel.generation`. A write is an atomic batch, and is on disk when it returns, unless [`FjallStore::durable`] says
/// otherwise. fjall's trees have Bloom filters of their own; what the guard spares there is less than with other stores. fjall
/// takes no empty key: that is an error here, and only here.
///
/// fjall does not know how many keys there are: what it says ([`Store::len_hint`]) counts those that were overwritten or
/// deleted as well, until it compacts its trees. Where most have been, a guard begins with a filter that is far too large, and
/// scans the store a second time for a smaller one.
///
/// fjall 2 does not notice when the disk has no room for its journal in the midst of a key or a value of some kilobytes: such a
/// write seems to be done, but it and what follows it, or some of that, are gone when the keyspace is opened again; and a
/// snapshot of the guard's filter may fit then though it does not know all keys. So a write of 4 KiB and more is refused
/// ([`StorageFull`](std::io::ErrorKind::StorageFull)) unless the disk has 16 MiB more room than it needs. Quotas, disks that
/// fail, and file systems that do not say how large they are, are not noticed: where these are to be feared, take `RedbStore`.
///
/// ```
/// use koel::guard::{FjallStore, Guarded};
///
/// # let folder = tempfile::tempdir()?;
/// let guarded = Guarded::open(FjallStore::open(folder.path().join("people"))?)?;
/// guarded.put(b"ada", b"1815")?;
/// assert_eq!(guarded.get(b"ada")?.as_deref(), Some(&b"1815"[..]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct FjallStore {
    keyspace: Keyspace,
    data: PartitionHandle,
    generations: PartitionHandle,
    /// The key of this store's generation there.
    row: Box<str>,
    lineage: u128,
    /// Held over a write: whether a key is there and the generation are read before.
    writing: Mutex<()>,
    durable: bool,
    /// How much room the disk with a folder has: [`available`], but for tests.
    available: fn(&Path) -> std::io::Result<u64>,
    /// fjall lets several processes open one keyspace, which destroys it. The system gives the lock back.
    _lock: Option<File>,
}

impl FjallStore {
    /// The longest key that fjall takes.
    pub const MAX_KEY_LEN: usize = u16::MAX as usize;
    /// The longest value that this store takes: 1 GiB. fjall 2 takes four times as much, but counts bytes in 32 bits, and may
    /// not read again what comes near to that.
    pub const MAX_VALUE_LEN: usize = 1 << 30;

    /// The keyspace in a folder; a new one, if there is none. A new one is made in `koel.new`, a folder within,
    /// and moved in when it is whole: if a process is killed meanwhile, the next one begins anew, or goes on, unless somebody
    /// has made another one there by then.
    ///
    /// # Errors
    ///
    /// If it is no keyspace, is damaged, cannot be read, or is open elsewhere.
    pub fn open(folder: impl AsRef<Path>) -> Result<Self, FjallError> {
        let folder = folder.as_ref();
        if !exists(&folder.join(LOCK))? {
            create_folder(folder).map_err(fjall::Error::Io)?;
        }
        let lock = lock(folder)?;
        create_whole(folder)?;
        let mut store = Self::with_keyspace(Config::new(folder).open()?)?;
        store._lock = Some(lock);
        Ok(store)
    }

    /// A keyspace that you have opened, with settings of your own: of the version of `fjall` that this library is built with,
    /// which is `koel::fjall`, if your program does not depend on it or has another. See to it that nobody else opens it: fjall
    /// does not. Keys and values are in its partition `koel.data`.
    ///
    /// # Errors
    ///
    /// If it cannot be read or written.
    ///
    /// ```
    /// use koel::guard::FjallStore;
    ///
    /// # let folder = tempfile::tempdir()?;
    /// let keyspace = koel::fjall::Config::new(folder.path()).cache_size(16 << 20).open()?;
    /// let store = FjallStore::with_keyspace(keyspace)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn with_keyspace(keyspace: Keyspace) -> Result<Self, FjallError> {
        let data = keyspace.open_partition(DATA, PartitionCreateOptions::default())?;
        Self::with_partition(keyspace, data)
    }

    /// A partition of yours, of a keyspace that may have others, with settings of its own.
    ///
    /// Each partition has a store, and a guard, of its own. See to it that nobody else opens the keyspace. The [`Generation`]
    /// of a partition `NAME` is in the partition `koel.generation`, under the key `generation.NAME`. Two stores of one
    /// partition at a time do not know of each other's writes.
    ///
    /// What you write to other partitions is your own; what you write to this one a guard does not know of:
    /// [`Guarded::rebuild`](super::Guarded::rebuild), and no snapshot from before.
    ///
    /// # Errors
    ///
    /// If the keyspace cannot be read or written.
    ///
    /// ```
    /// use koel::fjall::PartitionCreateOptions;
    /// use koel::guard::{FjallStore, Guarded};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// let keyspace = koel::fjall::Config::new(folder.path()).open()?;
    /// let users = keyspace.open_partition("users", PartitionCreateOptions::default())?;
    /// // What the program has written before there was a guard.
    /// users.insert("ada", "1815")?;
    ///
    /// let users = Guarded::open(FjallStore::with_partition(keyspace.clone(), users)?)?;
    /// assert_eq!(users.get(b"ada")?.as_deref(), Some(&b"1815"[..]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn with_partition(keyspace: Keyspace, partition: PartitionHandle) -> Result<Self, FjallError> {
        let generations = keyspace.open_partition(GENERATIONS, PartitionCreateOptions::default())?;
        let row = match &*partition.name {
            DATA => GENERATION.into(),
            named => format!("{GENERATION}.{named}").into(),
        };
        let store = FjallStore {
            keyspace,
            data: partition,
            generations,
            row,
            lineage: Generation::new_lineage(),
            writing: Mutex::new(()),
            durable: true,
            available,
            _lock: None,
        };
        if store.generations.get(&*store.row)?.is_none() {
            store.commit(|_| ())?;
        }
        Ok(store)
    }

    /// Whether a write is on disk when it returns: yes, unless this says no. Otherwise a crash of the system may take the
    /// last writes back, all of them from some moment on; the guard is right nevertheless.
    ///
    /// ```
    /// use koel::guard::{FjallStore, Guarded};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// let store = FjallStore::open(folder.path().join("people"))?.durable(false);
    /// let guarded = Guarded::open(store)?;
    /// guarded.put(b"ada", b"1815")?; // does not wait for the disk
    /// assert_eq!(guarded.get(b"ada")?.as_deref(), Some(&b"1815"[..]));
    /// guarded.store().sync()?; // once a second, perhaps
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn durable(mut self, yes: bool) -> Self {
        self.durable = yes;
        self
    }

    /// Waits until all is on disk that was written before, by stores that are not [durable](FjallStore::durable), too.
    ///
    /// # Errors
    ///
    /// If the keyspace cannot be written.
    pub fn sync(&self) -> Result<(), FjallError> {
        Ok(self.keyspace.persist(PersistMode::SyncAll)?)
    }

    /// Puts many pairs in one batch, which is much faster. All are collected first.
    ///
    /// For filling a store *before* a guard is opened on it: a guard that is open would not know of the keys.
    ///
    /// # Errors
    ///
    /// As [`Store::put`]; nothing was put then.
    ///
    /// ```
    /// use koel::guard::{FjallStore, Guarded};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// let store = FjallStore::open(folder.path())?;
    /// store.load([("ada", "1815"), ("grace", "1906")])?;
    /// let guarded = Guarded::open(store)?;
    /// assert_eq!(guarded.get(b"grace")?.as_deref(), Some(&b"1906"[..]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn load<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        pairs: impl IntoIterator<Item = (K, V)>,
    ) -> Result<(), FjallError> {
        let pairs: Vec<(K, V)> = pairs.into_iter().collect();
        for (key, value) in &pairs {
            check(key.as_ref())?;
            check_value(value.as_ref())?;
        }
        let _writing = self.writing.lock();
        let bytes = pairs.iter().map(|(key, value)| key.as_ref().len() + value.as_ref().len());
        self.check_room(bytes.fold(0, usize::saturating_add))?;
        self.commit(|batch| {
            for (key, value) in &pairs {
                batch.insert(&self.data, key.as_ref(), value.as_ref());
            }
        })
    }

    /// What [`Store::write_many`] does, and what you add to the same batch, for other partitions: both or nothing. Of each
    /// write whether its key was there.
    ///
    /// For [`Guarded::write_many_with`](super::Guarded::write_many_with): a guard that is open would not know of the keys
    /// otherwise. Whether the disk has room is asked for the store's own keys and values only. `also` must not write to this
    /// store: that would wait for itself.
    ///
    /// # Errors
    ///
    /// As [`Store::put`]; nothing was written then.
    ///
    /// ```
    /// use koel::fjall::PartitionCreateOptions;
    /// use koel::guard::{FjallStore, Guarded, Write};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// let keyspace = koel::fjall::Config::new(folder.path()).open()?;
    /// let events = keyspace.open_partition("events", PartitionCreateOptions::default())?;
    /// let users = Guarded::open(FjallStore::with_keyspace(keyspace)?)?;
    /// // Both or none.
    /// users.write_many_with(&[Write::Put(b"ada", b"1815")], |store, writes| {
    ///     store.write_many_and(writes, |batch| batch.insert(&events, "1", "ada has come"))
    /// })?;
    /// assert_eq!(events.get("1")?.as_deref(), Some(&b"ada has come"[..]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn write_many_and(
        &self,
        writes: &[Write<'_>],
        also: impl FnOnce(&mut fjall::Batch),
    ) -> Result<Vec<bool>, FjallError> {
        self.write_each(writes, Some(also))
    }

    /// Several writes by one batch, unless they change nothing and there is nothing else.
    fn write_each(
        &self,
        writes: &[Write<'_>],
        also: Option<impl FnOnce(&mut fjall::Batch)>,
    ) -> Result<Vec<bool>, FjallError> {
        let mut bytes = 0_usize;
        for write in writes {
            bytes = bytes.saturating_add(write.key().len());
            if let Write::Put(key, value) = write {
                check(key)?;
                check_value(value)?;
                bytes = bytes.saturating_add(value.len());
            }
        }
        let _writing = self.writing.lock();
        let is_there = |write: &Write<'_>| self.contains_key(write.key());
        let existed: Vec<bool> = writes.iter().map(is_there).collect::<Result<_, _>>()?;
        if also.is_none() && changes_nothing(writes, &existed) {
            return Ok(existed);
        }
        self.check_room(bytes)?;
        self.commit(|batch| {
            for (write, existed) in writes.iter().zip(&existed) {
                match *write {
                    Write::Put(key, value) => batch.insert(&self.data, key, value),
                    Write::Delete(key) if *existed => batch.remove(&self.data, key),
                    Write::Delete(_) => {}
                }
            }
            if let Some(also) = also {
                also(batch);
            }
        })?;
        Ok(existed)
    }

    /// Whether a batch with a key and a value of so many bytes has room on the disk. The others need not be asked for: fjall
    /// keeps them back in memory until it syncs them, and notices when that fails.
    fn check_room(&self, bytes: usize) -> Result<(), FjallError> {
        if bytes < KEPT_BACK {
            return Ok(());
        }
        let available = (self.available)(self.data.path()).map_err(fjall::Error::Io)?;
        if available < (bytes as u64).saturating_add(SPARE) {
            return Err(fjall::Error::Io(std::io::ErrorKind::StorageFull.into()).into());
        }
        Ok(())
    }

    /// One batch, with the generation that it makes. `writing` is held, or nobody else knows the store.
    fn commit(&self, change: impl FnOnce(&mut fjall::Batch)) -> Result<(), FjallError> {
        let count = self.read_generation()?.count + 1;
        // Not `None`: fjall would keep the last writes in the process's memory, and its end would lose them.
        let mode = if self.durable { PersistMode::SyncAll } else { PersistMode::Buffer };
        let mut batch = self.keyspace.batch().durability(Some(mode));
        change(&mut batch);
        let row = [&self.lineage.to_le_bytes()[..], &count.to_le_bytes()].concat();
        batch.insert(&self.generations, &*self.row, row);
        Ok(batch.commit()?)
    }

    fn read_generation(&self) -> Result<Generation, FjallError> {
        let none = Generation { lineage: 0, count: 0 };
        let Some(row) = self.generations.get(&*self.row)? else { return Ok(none) };
        let (Some(lineage), Some(count)) = (row.first_chunk(), row.last_chunk()) else {
            return Err(FjallError::Generation);
        };
        Ok(Generation { lineage: u128::from_le_bytes(*lineage), count: u64::from_le_bytes(*count) })
    }
}

/// Room on the disk with this folder, as far as the system says.
fn available(folder: &Path) -> std::io::Result<u64> {
    // A file system that does not say how large it is does not say either that it is full.
    if fs4::total_space(folder).unwrap_or(0) == 0 {
        return Ok(u64::MAX);
    }
    fs4::available_space(folder)
}

/// What a keyspace consists of. It is one for fjall when the last of these is there.
const PARTS: [&str; 3] = ["journals", "partitions", "version"];

/// Makes a keyspace, unless there is one, or something in its place, and moves it in when it is whole: a process that is
/// killed while fjall makes one may leave what fjall cannot open. The caller has locked the folder.
fn create_whole(folder: &Path) -> Result<(), FjallError> {
    let [new, whole] = ["koel.new", "koel.whole"].map(|name| folder.join(name));
    if is_in_the_way(folder, &whole)? {
        return Ok(std::fs::remove_dir_all(whole).map_err(fjall::Error::Io)?);
    }
    if !exists(&whole)? {
        for part in PARTS {
            if exists(&folder.join(part))? {
                return Ok(());
            }
        }
        if exists(&new)? {
            std::fs::remove_dir_all(&new).map_err(fjall::Error::Io)?;
        }
        drop(FjallStore::with_keyspace(Config::new(&new).open()?)?);
        std::fs::rename(&new, &whole).map_err(fjall::Error::Io)?;
        sync_names_beside(&whole).map_err(fjall::Error::Io)?;
    }
    // Or another process has begun to.
    for part in PARTS {
        if exists(&whole.join(part))? {
            std::fs::rename(whole.join(part), folder.join(part)).map_err(fjall::Error::Io)?;
        }
    }
    // Or what is written to them might come back as `koel.new`, or not at all, after a power failure.
    sync_names_beside(&whole).map_err(fjall::Error::Io)?;
    Ok(std::fs::remove_dir(whole).map_err(fjall::Error::Io)?)
}

/// Whether a keyspace that was not moved in to the end, and so never used, has met another one, which somebody has made without
/// this library: a part of it is there twice.
fn is_in_the_way(folder: &Path, whole: &Path) -> Result<bool, FjallError> {
    let mut is_twice = false;
    for part in PARTS {
        if !exists(&folder.join(part))? {
            return Ok(false);
        }
        is_twice |= exists(&whole.join(part))?;
    }
    Ok(is_twice)
}

/// The file that a process locks which has opened a keyspace: the first in its folder.
const LOCK: &str = "koel.lock";

/// Makes a folder, and those that it is in, whose names are on the disk when it returns, also those that a process that was
/// killed has made: else a keyspace could be gone after a power failure, with all that was put into it durably.
fn create_folder(folder: &Path) -> std::io::Result<()> {
    let parent = folder.parent().filter(|parent| !parent.as_os_str().is_empty());
    if let Some(parent) = parent.filter(|_| !folder.exists()) {
        create_folder(parent)?;
    }
    std::fs::create_dir_all(folder)?;
    sync_names_beside(folder)
}

fn exists(path: &Path) -> Result<bool, FjallError> {
    Ok(path.try_exists().map_err(fjall::Error::Io)?)
}

/// Locks a folder for this process.
fn lock(folder: &Path) -> Result<File, FjallError> {
    let mut options = OpenOptions::new();
    let options = options.read(true).write(true).create(true).truncate(false);
    let file = options.open(folder.join(LOCK)).map_err(fjall::Error::Io)?;
    match fs4::FileExt::try_lock(&file) {
        Ok(()) => Ok(file),
        Err(fs4::TryLockError::WouldBlock) => Err(FjallError::Locked),
        Err(fs4::TryLockError::Error(error)) => Err(fjall::Error::Io(error).into()),
    }
}

/// Whether all of them are deletes of keys that are not there.
fn changes_nothing(writes: &[Write<'_>], existed: &[bool]) -> bool {
    let mut each = writes.iter().zip(existed);
    each.all(|(write, existed)| matches!(write, Write::Delete(_)) && !existed)
}

/// fjall panics for other keys.
fn check(key: &[u8]) -> Result<(), FjallError> {
    match key.len() {
        0 => Err(FjallError::KeyEmpty),
        len if len > FjallStore::MAX_KEY_LEN => Err(FjallError::KeyTooLong { len }),
        _ => Ok(()),
    }
}

/// fjall would panic for some longer values, and lose others.
fn check_value(value: &[u8]) -> Result<(), FjallError> {
    match value.len() {
        len if len > FjallStore::MAX_VALUE_LEN => Err(FjallError::ValueTooLong { len }),
        _ => Ok(()),
    }
}

impl Store for FjallStore {
    type Error = FjallError;

    fn get(&self, key: &[u8]) -> Result<Option<Value>, FjallError> {
        if check(key).is_err() {
            return Ok(None);
        }
        Ok(self.data.get(key)?.map(|value| Arc::from(&*value)))
    }

    fn contains_key(&self, key: &[u8]) -> Result<bool, FjallError> {
        Ok(check(key).is_ok() && self.data.contains_key(key)?)
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<bool, FjallError> {
        check(key)?;
        check_value(value)?;
        let _writing = self.writing.lock();
        self.check_room(key.len().saturating_add(value.len()))?;
        let existed = self.data.contains_key(key)?;
        self.commit(|batch| batch.insert(&self.data, key, value))?;
        Ok(existed)
    }

    fn delete(&self, key: &[u8]) -> Result<bool, FjallError> {
        let _writing = self.writing.lock();
        if !self.contains_key(key)? {
            return Ok(false);
        }
        self.check_room(key.len())?;
        self.commit(|batch| batch.remove(&self.data, key))?;
        Ok(true)
    }

    fn write_many(&self, writes: &[Write<'_>]) -> Result<Vec<bool>, FjallError> {
        self.write_each(writes, None::<fn(&mut fjall::Batch)>)
    }

    fn scan_keys(&self) -> Result<impl Iterator<Item = Scanned<FjallError>>, FjallError> {
        let snapshot = self.data.snapshot();
        Ok(snapshot.keys().map(|key| Ok((&*key.map_err(fjall::Error::from)?).into())))
    }

    fn generation(&self) -> Result<Generation, FjallError> {
        self.read_generation()
    }

    fn len_hint(&self) -> Option<u64> {
        Some(self.data.approximate_len() as u64)
    }
}

impl fmt::Debug for FjallStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FjallStore").field("durable", &self.durable).finish_non_exhaustive()
    }
}

/// What can go wrong at a [`FjallStore`].
#[derive(Debug)]
#[non_exhaustive]
pub enum FjallError {
    /// fjall has no empty keys.
    KeyEmpty,
    /// A key is longer than [`FjallStore::MAX_KEY_LEN`].
    KeyTooLong {
        /// Its length, in bytes.
        len: usize,
    },
    /// A value is longer than [`FjallStore::MAX_VALUE_LEN`].
    ValueTooLong {
        /// Its length, in bytes.
        len: usize,
    },
    /// The folder is open elsewhere.
    Locked,
    /// The row of the generation is not as it should be.
    Generation,
    /// fjall's own error.
    Fjall(Box<fjall::Error>),
}

impl From<fjall::Error> for FjallError {
    fn from(error: fjall::Error) -> Self {
        FjallError::Fjall(Box::new(error))
    }
}

impl fmt::Display for FjallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FjallError::KeyEmpty => f.write_str("an empty key, which fjall does not take"),
            FjallError::KeyTooLong { len } => {
                write!(f, "a key of {len} bytes; {} are the most", FjallStore::MAX_KEY_LEN)
            }
            FjallError::ValueTooLong { len } => {
                write!(f, "a value of {len} bytes; {} are the most", FjallStore::MAX_VALUE_LEN)
            }
            FjallError::Locked => f.write_str("the folder is open elsewhere"),
            FjallError::Generation => f.write_str("the row of the generation is damaged"),
            FjallError::Fjall(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for FjallError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            // What is told already is no source.
            FjallError::Fjall(error) => error.source(),
            _ => None,
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_room_is_refused_before_it_is_written() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = FjallStore::open(folder.path()).expect("a keyspace");
        #[cfg(target_pointer_width = "64")]
        store.check_room(usize::MAX >> 1).expect_err("there is no such disk");
        store.check_room(KEPT_BACK - 1).expect("fjall notices");
        store.check_room(KEPT_BACK).expect("a disk with some room");
    }

    /// By each of the ways to write, the generation included; what is small still goes.
    #[test]
    fn a_disk_without_room_takes_no_large_write() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut store = FjallStore::open(folder.path()).expect("a keyspace");
        let (long, large) = (vec![b'k'; KEPT_BACK], vec![0; KEPT_BACK]);
        store.put(&long, b"").expect("a disk with some room");
        store.available = |_| Ok(SPARE);
        let before = store.generation().expect("a row");
        let is_full = |result: Result<(), FjallError>| {
            let Err(FjallError::Fjall(error)) = result else { return false };
            matches!(*error, fjall::Error::Io(error) if error.kind() == std::io::ErrorKind::StorageFull)
        };
        assert!(is_full(store.put(b"a", &large).map(drop)));
        assert!(is_full(store.delete(&long).map(drop)));
        assert!(is_full(store.load([(b"a", &large)])));
        assert!(is_full(store.write_many(&[Write::Put(b"b", b""), Write::Put(b"a", &large)]).map(drop)));
        assert_eq!(store.generation().expect("a row"), before);
        assert!(store.contains_key(&long).expect("a look") && !store.contains_key(b"b").expect("a look"));
        store.put(b"b", b"1").expect("it is small");
        assert_ne!(store.generation().expect("a row"), before);
    }

    #[test]
    fn a_value_beyond_1_gib_is_an_error() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = FjallStore::open(folder.path()).expect("a keyspace");
        // Nobody writes to it or reads it: it takes no memory.
        let huge = vec![0; FjallStore::MAX_VALUE_LEN + 1];
        let is_refused = |result: Result<(), FjallError>| {
            matches!(result, Err(FjallError::ValueTooLong { len: 0x4000_0001 }))
        };
        assert!(is_refused(store.put(b"a", &huge).map(drop)));
        assert!(is_refused(store.load([(b"a", &huge)])));
        assert!(is_refused(store.write_many(&[Write::Put(b"a", &huge)]).map(drop)));
        assert_eq!(store.len_hint(), Some(0));
    }

    /// Its count would begin again otherwise.
    #[test]
    fn a_row_of_the_generation_that_is_damaged_is_an_error() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = FjallStore::open(folder.path()).expect("a keyspace");
        store.generations.insert(GENERATION, [0; 10]).expect("a write");
        assert!(matches!(store.generation(), Err(FjallError::Generation)));
        assert!(matches!(store.put(b"a", b""), Err(FjallError::Generation)));
        assert!(!store.contains_key(b"a").expect("a look"));
    }
}
