//! [`FjallStore`]: keyspaces of a fjall database.

use core::fmt;
use std::fs::{File, OpenOptions, TryLockError};
use std::path::Path;
use std::sync::Arc;

use fjall::{Database, Keyspace, KeyspaceCreateOptions, OwnedWriteBatch, PersistMode};

use super::store::{Generation, Scanned, Store, Value, Write};
use crate::file::sync_names_beside;
use crate::sync::Mutex;

/// The default keyspace of keys and values.
const DATA: &str = "koel.data";
/// The keyspace of the generations of all stores of a database.
const GENERATIONS: &str = "koel.generation";
/// The key of the generation of `koel.data` there; those of other keyspaces have this key, a dot and the keyspace's name.
const GENERATION: &str = "generation";

/// A fjall database, a folder of log-structured merge trees.
///
/// Keys and values are in the keyspace `koel.data`, or [in one of yours](FjallStore::with_keyspace); the [`Generation`] is in
/// `koel.generation`. A write is an atomic batch, and is on disk when it returns, unless [`FjallStore::durable`] says
/// otherwise. fjall's trees have Bloom filters of their own, so that the guard saves less than with other stores. fjall does
/// not take the empty key: that is an error here, and only here.
///
/// fjall does not know how many keys there are: its estimate ([`Store::len_hint`]) also counts keys that were overwritten or
/// deleted, until it compacts its trees. If most of them were, a guard begins with a filter that is far too large, and scans
/// the store a second time for a smaller one.
///
/// When fjall cannot write, as on a full disk, it accepts no more writes until it is opened again, and reports that
/// ([`fjall::Error::Poisoned`]); earlier writes stay.
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
    database: Database,
    data: Keyspace,
    generations: Keyspace,
    /// The key of this store's generation there.
    row: Box<str>,
    lineage: u128,
    /// Held during a write, which first reads whether the key is there, and the generation.
    writing: Mutex<Writing>,
    durable: bool,
}

/// What a writer knows about the last write.
#[derive(Debug, Default)]
struct Writing {
    /// It was committed, as durably as the store is set to now. Otherwise the database as it is seen now need not be the
    /// database as it is opened again: a failed batch may be on the disk, and one that is not durable may not.
    is_settled: bool,
}

impl FjallStore {
    /// The longest key that fjall takes.
    pub const MAX_KEY_LEN: usize = u16::MAX as usize;
    /// The longest value that this store takes: 1 GiB. fjall takes four times as much, but counts bytes in 32 bits, and may be
    /// unable to read a value that comes near to that.
    pub const MAX_VALUE_LEN: usize = 1 << 30;

    /// Opens the database in a folder, or creates it if there is none. A new one is made in `koel.new`, a folder within that
    /// folder, and moved out of it when it is complete: if a process is killed meanwhile, the next one begins again, or
    /// continues, unless somebody has created another database there by then.
    ///
    /// # Errors
    ///
    /// If it is not a database, is of a fjall before version 3, is damaged, cannot be read, or is open elsewhere.
    pub fn open(folder: impl AsRef<Path>) -> Result<Self, FjallError> {
        let folder = folder.as_ref();
        if !folder.join(VERSION).try_exists()? {
            create_folder(folder)?;
        }
        {
            let _lock = lock(folder)?;
            create_whole(folder)?;
        }
        Self::with_database(Database::builder(folder).open()?)
    }

    /// Uses a database that you have opened, with settings of your own. It must be of the version of `fjall` that this library
    /// is built with; that is `koel::fjall`, for programs that do not depend on it or have another version. Keys and values are
    /// in its keyspace `koel.data`.
    ///
    /// # Errors
    ///
    /// If it cannot be read or written.
    ///
    /// ```
    /// use koel::guard::FjallStore;
    ///
    /// # let folder = tempfile::tempdir()?;
    /// let database = koel::fjall::Database::builder(folder.path()).cache_size(16 << 20).open()?;
    /// let store = FjallStore::with_database(database)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn with_database(database: Database) -> Result<Self, FjallError> {
        let data = database.keyspace(DATA, KeyspaceCreateOptions::default)?;
        Self::with_keyspace(database, data)
    }

    /// Uses a keyspace of yours, with settings of its own, in a database that may have others.
    ///
    /// Each keyspace has a store, and a guard, of its own. The [`Generation`] of a keyspace `NAME` is in the keyspace
    /// `koel.generation`, under the key `generation.NAME`. Two stores that are open on one keyspace do not know of each other's
    /// writes.
    ///
    /// You may write to other keyspaces as you like. A guard does not know of what you write to this one: call
    /// [`Guarded::rebuild`](super::Guarded::rebuild), and use no earlier snapshot. The generation goes by the keyspace's name:
    /// if a keyspace is deleted and created again, delete that key while no store is open, or a snapshot of the other keyspace
    /// may be used.
    ///
    /// # Errors
    ///
    /// If the keyspace is of another database, or is `koel.generation`; if the database cannot be read or written.
    ///
    /// ```
    /// use koel::fjall::{Database, KeyspaceCreateOptions};
    /// use koel::guard::{FjallStore, Guarded};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// let database = Database::builder(folder.path()).open()?;
    /// let users = database.keyspace("users", KeyspaceCreateOptions::default)?;
    /// // What the program had written before there was a guard.
    /// users.insert("ada", "1815")?;
    ///
    /// let users = Guarded::open(FjallStore::with_keyspace(database.clone(), users)?)?;
    /// assert_eq!(users.get(b"ada")?.as_deref(), Some(&b"1815"[..]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn with_keyspace(database: Database, keyspace: Keyspace) -> Result<Self, FjallError> {
        let generations = database.keyspace(GENERATIONS, KeyspaceCreateOptions::default)?;
        let name = &**keyspace.name();
        let is_its_own = database.keyspace_exists(name)
            && database.keyspace(name, KeyspaceCreateOptions::default)?.path() == keyspace.path();
        if name == GENERATIONS || !is_its_own {
            return Err(FjallError::Keyspace { name: name.into() });
        }
        let row = match name {
            DATA => GENERATION.into(),
            named => format!("{GENERATION}.{named}").into(),
        };
        let store = FjallStore {
            database,
            data: keyspace,
            generations,
            row,
            lineage: Generation::new_lineage(),
            writing: Mutex::default(),
            durable: true,
        };
        if store.generations.get(&*store.row)?.is_none() {
            store.commit(&mut store.writing.lock(), |_| Ok(()))?;
        }
        Ok(store)
    }

    /// Returns the database, for operations that a store does not have.
    pub fn database(&self) -> &Database {
        &self.database
    }

    /// Returns the keyspace of keys and values, for iteration over a range of keys, for instance. A guard does not know of what
    /// is written to it around the guard: call [`Guarded::rebuild`](super::Guarded::rebuild).
    pub fn keyspace(&self) -> &Keyspace {
        &self.data
    }

    /// Sets whether a write is on disk when it returns, which is the default. Otherwise a crash of the system may lose the last
    /// writes, all of them from some moment on; the guard is right nevertheless.
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
        self.writing.lock().is_settled = false;
        self
    }

    /// Waits until all earlier writes are on disk, also those of stores that are not [durable](FjallStore::durable).
    ///
    /// # Errors
    ///
    /// If the database cannot be written.
    pub fn sync(&self) -> Result<(), FjallError> {
        Ok(self.database.persist(PersistMode::SyncAll)?)
    }

    /// Puts many pairs in one batch, which is much faster. All are collected first.
    ///
    /// It is for filling a store *before* a guard is opened on it: an open guard would not know of the keys.
    ///
    /// # Errors
    ///
    /// As [`Store::put`]; then nothing was put.
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
        self.commit(&mut self.writing.lock(), |batch| {
            for (key, value) in &pairs {
                batch.insert(&self.data, key.as_ref(), value.as_ref());
            }
            Ok(())
        })
    }

    /// Does what [`Store::write_many`] does, and what `also` adds for other keyspaces, in one batch: both or neither. Returns,
    /// for each write, whether its key was there.
    ///
    /// It is for use in [`Guarded::write_many_with`](super::Guarded::write_many_with); otherwise an open guard would not know
    /// of the keys. `also` must add nothing for this keyspace, nor for one that has another guard, nor write to this store: it
    /// would wait for itself. If this batch writes what one of fjall's transactions has read, fjall sees no conflict.
    ///
    /// # Errors
    ///
    /// As [`Store::put`], and whatever `also` returns: [`FjallError::other`], if it is not fjall's. Then nothing was written.
    ///
    /// # Panics
    ///
    /// fjall panics for an empty key, or one beyond 65,535 bytes, in the batch. Then nothing was written.
    ///
    /// ```
    /// use koel::fjall::{Database, KeyspaceCreateOptions};
    /// use koel::guard::{FjallStore, Guarded, Write};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// let database = Database::builder(folder.path()).open()?;
    /// let events = database.keyspace("events", KeyspaceCreateOptions::default)?;
    /// let users = Guarded::open(FjallStore::with_database(database)?)?;
    /// // Both or neither.
    /// users.write_many_with(&[Write::Put(b"ada", b"1815")], |store, writes| {
    ///     store.write_many_and(writes, |batch| {
    ///         batch.insert(&events, "1", "ada has come");
    ///         Ok(())
    ///     })
    /// })?;
    /// assert_eq!(events.get("1")?.as_deref(), Some(&b"ada has come"[..]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn write_many_and(
        &self,
        writes: &[Write<'_>],
        also: impl FnOnce(&mut OwnedWriteBatch) -> Result<(), FjallError>,
    ) -> Result<Vec<bool>, FjallError> {
        self.write_each(writes, Some(also))
    }

    /// Does several writes in one batch, unless they change nothing and there is nothing else.
    fn write_each(
        &self,
        writes: &[Write<'_>],
        also: Option<impl FnOnce(&mut OwnedWriteBatch) -> Result<(), FjallError>>,
    ) -> Result<Vec<bool>, FjallError> {
        for write in writes {
            if let Write::Put(key, value) = write {
                check(key)?;
                check_value(value)?;
            }
        }
        let mut writing = self.writing.lock();
        let is_there = |write: &Write<'_>| self.contains_key(write.key());
        let existed: Vec<bool> = writes.iter().map(is_there).collect::<Result<_, _>>()?;
        let is_settled = writing.is_settled;
        if is_settled && also.is_none() && changes_nothing(writes, &existed) {
            return Ok(existed);
        }
        self.commit(&mut writing, |batch| {
            for (write, existed) in writes.iter().zip(&existed) {
                match *write {
                    Write::Put(key, value) => batch.insert(&self.data, key, value),
                    // fjall takes no other keys.
                    Write::Delete(key) if *existed || !is_settled && check(key).is_ok() => {
                        batch.remove(&self.data, key);
                    }
                    Write::Delete(_) => {}
                }
            }
            also.map_or(Ok(()), |also| also(batch))
        })?;
        Ok(existed)
    }

    /// Commits one batch, with the generation that it makes, as durably as the store is set to.
    fn commit(
        &self,
        writing: &mut Writing,
        change: impl FnOnce(&mut OwnedWriteBatch) -> Result<(), FjallError>,
    ) -> Result<(), FjallError> {
        self.commit_as(self.durable, writing, change)
    }

    fn commit_as(
        &self,
        durable: bool,
        writing: &mut Writing,
        change: impl FnOnce(&mut OwnedWriteBatch) -> Result<(), FjallError>,
    ) -> Result<(), FjallError> {
        let count = self.read_generation()?.count + 1;
        // Not `None`: fjall would keep the last writes in the process's memory, and they would be lost when it ends.
        let mode = if durable { PersistMode::SyncAll } else { PersistMode::Buffer };
        let mut batch = self.database.batch().durability(Some(mode));
        change(&mut batch)?;
        let row = [&self.lineage.to_le_bytes()[..], &count.to_le_bytes()].concat();
        batch.insert(&self.generations, &*self.row, row);
        writing.is_settled = false;
        batch.commit()?;
        writing.is_settled = true;
        Ok(())
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

/// The parts of a database, in the order in which they are moved: fjall takes a folder for a database when the last of these is
/// there, and creates none where the first is.
const PARTS: [&str; 4] = ["0.jnl", "keyspaces", "lock", VERSION];
const VERSION: &str = "version";

/// Creates a database, unless there is one, or something in its place, and moves it into place when it is complete: a process
/// that is killed while fjall creates one may leave a folder that fjall cannot open. The caller has locked the folder.
fn create_whole(folder: &Path) -> Result<(), FjallError> {
    let [new, whole] = ["koel.new", "koel.whole"].map(|name| folder.join(name));
    let is_one = folder.join(VERSION).try_exists()?;
    if !whole.try_exists()? {
        // Something else may be there: fjall reports it, or leaves it alone.
        for part in PARTS {
            if folder.join(part).try_exists()? {
                return Ok(());
            }
        }
        if new.try_exists()? {
            std::fs::remove_dir_all(&new)?;
        }
        drop(FjallStore::with_database(Database::builder(&new).open()?)?);
        std::fs::rename(&new, &whole)?;
        sync_names_beside(&whole)?;
    }
    // A database that was only partly moved, and so never used, gives way to one that somebody has created without this
    // library. Or another process has begun to move it.
    for part in PARTS.iter().filter(|_| !is_one) {
        // fjall may have created this file here already, when it was asked to create a database and failed.
        let is_here = *part == "lock" && folder.join(part).try_exists()?;
        if !is_here && whole.join(part).try_exists()? {
            std::fs::rename(whole.join(part), folder.join(part))?;
        }
    }
    // Otherwise what is written to them might be in `koel.new` again, or nowhere, after a power failure.
    sync_names_beside(&whole)?;
    Ok(std::fs::remove_dir_all(whole)?)
}

/// The file that a process locks while it opens a database: fjall locks one of its own for as long as the database is open.
const LOCK: &str = "koel.lock";

/// Creates a folder and its parents. Their names are on disk when it returns, also the names of those that a killed process had
/// created: else a database could be gone after a power failure, with all that was put into it durably.
fn create_folder(folder: &Path) -> std::io::Result<()> {
    let parent = folder.parent().filter(|parent| !parent.as_os_str().is_empty());
    if let Some(parent) = parent.filter(|_| !folder.exists()) {
        create_folder(parent)?;
    }
    std::fs::create_dir_all(folder)?;
    sync_names_beside(folder)
}

/// Locks a folder for this process.
#[expect(clippy::incompatible_msrv, reason = "fjall itself needs Rust 1.90")]
fn lock(folder: &Path) -> Result<File, FjallError> {
    let mut options = OpenOptions::new();
    let options = options.read(true).write(true).create(true).truncate(false);
    let file = options.open(folder.join(LOCK))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(FjallError::Locked),
        Err(TryLockError::Error(error)) => Err(error.into()),
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

/// fjall would panic for some values that are longer, and lose others.
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
        let mut writing = self.writing.lock();
        let existed = self.data.contains_key(key)?;
        self.commit(&mut writing, |batch| {
            batch.insert(&self.data, key, value);
            Ok(())
        })?;
        Ok(existed)
    }

    fn delete(&self, key: &[u8]) -> Result<bool, FjallError> {
        let existed = self.write_many(&[Write::Delete(key)])?;
        Ok(existed == [true])
    }

    fn write_many(&self, writes: &[Write<'_>]) -> Result<Vec<bool>, FjallError> {
        self.write_each(writes, None::<fn(&mut OwnedWriteBatch) -> Result<(), FjallError>>)
    }

    fn scan_keys(&self) -> Result<impl Iterator<Item = Scanned<FjallError>>, FjallError> {
        Ok(self.data.iter().map(|row| Ok((&*row.key()?).into())))
    }

    fn generation(&self) -> Result<Generation, FjallError> {
        self.read_generation()
    }

    fn renew_generation(&self) -> Result<(), FjallError> {
        // On disk, whether or not other writes are: if this were lost, the old generation would be valid again, with what was
        // written around the guard.
        self.commit_as(true, &mut self.writing.lock(), |_| Ok(()))
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

/// The errors of a [`FjallStore`].
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
    /// The keyspace cannot hold keys and values: it is that of the generations, or is of another database.
    Keyspace {
        /// Its name.
        name: Box<str>,
    },
    /// The folder is open elsewhere.
    Locked,
    /// The row of the generation is malformed.
    Generation,
    /// fjall's own error.
    Fjall(Box<fjall::Error>),
    /// The error that the function of [`FjallStore::write_many_and`] returned: of your type, as `downcast_ref` shows.
    Other(Box<dyn core::error::Error + Send + Sync>),
}

impl FjallError {
    /// Wraps an error of yours, or a text, for the function of [`FjallStore::write_many_and`] to return.
    pub fn other(error: impl Into<Box<dyn core::error::Error + Send + Sync>>) -> Self {
        FjallError::Other(error.into())
    }
}

impl From<std::io::Error> for FjallError {
    fn from(error: std::io::Error) -> Self {
        fjall::Error::Io(error).into()
    }
}

impl From<fjall::Error> for FjallError {
    fn from(error: fjall::Error) -> Self {
        match error {
            fjall::Error::Locked => FjallError::Locked,
            error => FjallError::Fjall(Box::new(error)),
        }
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
            FjallError::Keyspace { name } => {
                write!(f, "{name:?} is no keyspace of this database for keys and values")
            }
            FjallError::Locked => f.write_str("the folder is open elsewhere"),
            FjallError::Generation => f.write_str("the row of the generation is damaged"),
            FjallError::Fjall(error) => error.fmt(f),
            FjallError::Other(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for FjallError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            // An error that is displayed above is not repeated as a source.
            FjallError::Fjall(error) => error.source(),
            FjallError::Other(error) => error.source(),
            _ => None,
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn a_value_beyond_1_gib_is_an_error() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = FjallStore::open(folder.path()).expect("a keyspace");
        // It is never written to or read, and so takes no memory.
        let huge = vec![0; FjallStore::MAX_VALUE_LEN + 1];
        let is_refused = |result: Result<(), FjallError>| {
            matches!(result, Err(FjallError::ValueTooLong { len: 0x4000_0001 }))
        };
        assert!(is_refused(store.put(b"a", &huge).map(drop)));
        assert!(is_refused(store.load([(b"a", &huge)])));
        assert!(is_refused(store.write_many(&[Write::Put(b"a", &huge)]).map(drop)));
        assert_eq!(store.len_hint(), Some(0));
    }

    /// Otherwise the count would begin again.
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
