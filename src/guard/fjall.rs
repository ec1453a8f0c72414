//! [`FjallStore`]: keyspaces of a fjall database.

use core::fmt;
use std::fs::{File, OpenOptions, TryLockError};
use std::path::Path;
use std::sync::Arc;

use fjall::{Database, Keyspace, KeyspaceCreateOptions, OwnedWriteBatch, PersistMode};

use super::store::{Generation, Scanned, Store, Value, Write};
use crate::file::sync_names_beside;
use crate::sync::Mutex;

/// The keyspace of keys and values, where nobody says which.
const DATA: &str = "koel.data";
/// The keyspace of the generations of all stores of a database.
const GENERATIONS: &str = "koel.generation";
/// The key of the generation of `koel.data` there; those of other keyspaces begin with it, and a dot.
const GENERATION: &str = "generation";

/// A fjall database, a folder of log-structured merge trees.
///
/// Keys and values are in the keyspace `koel.data`, or [in one of yours](FjallStore::with_keyspace), the [`Generation`] in
/// `koel.generation`. A write is an atomic batch, and is on disk when it returns, unless [`FjallStore::durable`] says
/// otherwise. fjall's trees have Bloom filters of their own; what the guard spares there is less than with other stores. fjall
/// takes no empty key: that is an error here, and only here.
///
/// fjall does not know how many keys there are: what it says ([`Store::len_hint`]) counts those that were overwritten or
/// deleted as well, until it compacts its trees. Where most have been, a guard begins with a filter that is far too large, and
/// scans the store a second time for a smaller one.
///
/// When fjall cannot write, as on a full disk, it writes no more until it is opened again, and says so
/// ([`fjall::Error::Poisoned`]); what it has taken before stays.
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
    /// Held over a write: whether a key is there and the generation are read before.
    writing: Mutex<Writing>,
    durable: bool,
}

/// What a writer knows of the last write.
#[derive(Debug, Default)]
struct Writing {
    /// It was committed, as durable as the store is now. Otherwise what is seen of the database need not be what it is when it
    /// is opened again: a batch that has failed may be on the disk, and one that is not durable is not.
    is_settled: bool,
}

impl FjallStore {
    /// The longest key that fjall takes.
    pub const MAX_KEY_LEN: usize = u16::MAX as usize;
    /// The longest value that this store takes: 1 GiB. fjall takes four times as much, but counts bytes in 32 bits, and may not
    /// read again what comes near to that.
    pub const MAX_VALUE_LEN: usize = 1 << 30;

    /// The database in a folder; a new one, if there is none. A new one is made in `koel.new`, a folder within,
    /// and moved in when it is whole: if a process is killed meanwhile, the next one begins anew, or goes on, unless somebody
    /// has made another one there by then.
    ///
    /// # Errors
    ///
    /// If it is no database, or one of fjall before version 3, is damaged, cannot be read, or is open elsewhere.
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

    /// A database that you have opened, with settings of your own: of the version of `fjall` that this library is built with,
    /// which is `koel::fjall`, if your program does not depend on it or has another. Keys and values are in its keyspace
    /// `koel.data`.
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

    /// A keyspace of yours, of a database that may have others, with settings of its own.
    ///
    /// Each keyspace has a store, and a guard, of its own. The [`Generation`] of a keyspace `NAME` is in the keyspace
    /// `koel.generation`, under the key `generation.NAME`. Two stores of one keyspace at a time do not know of each other's
    /// writes.
    ///
    /// What you write to other keyspaces is your own; what you write to this one a guard does not know of:
    /// [`Guarded::rebuild`](super::Guarded::rebuild), and no snapshot from before. The generation goes by the name: with a
    /// keyspace that is deleted and made anew, delete that key while no store is open, or a snapshot of the other may be used.
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
    /// // What the program has written before there was a guard.
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

    /// The database, for what a store has no call for.
    pub fn database(&self) -> &Database {
        &self.database
    }

    /// The keyspace of keys and values, to walk over a part of the keys. What is written to it around a guard the guard does
    /// not know of: [`Guarded::rebuild`](super::Guarded::rebuild).
    pub fn keyspace(&self) -> &Keyspace {
        &self.data
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
        self.writing.lock().is_settled = false;
        self
    }

    /// Waits until all is on disk that was written before, by stores that are not [durable](FjallStore::durable), too.
    ///
    /// # Errors
    ///
    /// If the database cannot be written.
    pub fn sync(&self) -> Result<(), FjallError> {
        Ok(self.database.persist(PersistMode::SyncAll)?)
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
        self.commit(&mut self.writing.lock(), |batch| {
            for (key, value) in &pairs {
                batch.insert(&self.data, key.as_ref(), value.as_ref());
            }
            Ok(())
        })
    }

    /// What [`Store::write_many`] does, and what you add to the same batch, for other keyspaces: both or nothing. Of each write
    /// whether its key was there.
    ///
    /// For [`Guarded::write_many_with`](super::Guarded::write_many_with): a guard that is open would not know of the keys
    /// otherwise. `also` must add nothing for this keyspace, nor for one that has another guard, nor write to this store: that
    /// would wait for itself. What one of fjall's transactions has read and this batch writes is no conflict to fjall.
    ///
    /// # Errors
    ///
    /// As [`Store::put`], and whatever `also` returns: [`FjallError::other`], if it is not fjall's. Nothing was written then.
    ///
    /// # Panics
    ///
    /// fjall does, for an empty key or one beyond 65,535 bytes in the batch. Nothing was written then.
    ///
    /// ```
    /// use koel::fjall::{Database, KeyspaceCreateOptions};
    /// use koel::guard::{FjallStore, Guarded, Write};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// let database = Database::builder(folder.path()).open()?;
    /// let events = database.keyspace("events", KeyspaceCreateOptions::default)?;
    /// let users = Guarded::open(FjallStore::with_database(database)?)?;
    /// // Both or none.
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

    /// Several writes by one batch, unless they change nothing and there is nothing else.
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

    /// One batch, with the generation that it makes, as durable as the store is.
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
        // Not `None`: fjall would keep the last writes in the process's memory, and its end would lose them.
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

/// What a database consists of, in the order in which it is moved: it is one for fjall when the last of these is there, and
/// fjall makes none where the first is.
const PARTS: [&str; 4] = ["0.jnl", "keyspaces", "lock", VERSION];
const VERSION: &str = "version";

/// Makes a database, unless there is one, or something in its place, and moves it in when it is whole: a process that is
/// killed while fjall makes one may leave what fjall cannot open. The caller has locked the folder.
fn create_whole(folder: &Path) -> Result<(), FjallError> {
    let [new, whole] = ["koel.new", "koel.whole"].map(|name| folder.join(name));
    let is_one = folder.join(VERSION).try_exists()?;
    if !whole.try_exists()? {
        // Something else is there, perhaps: fjall says so, or lets it be.
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
    // One that was not moved in to the end, and so never used, gives way to another, which somebody has made without this
    // library. Or another process has begun to move it.
    for part in PARTS.iter().filter(|_| !is_one) {
        // fjall may have made this one here already, when it was asked to make a database and did not.
        let is_here = *part == "lock" && folder.join(part).try_exists()?;
        if !is_here && whole.join(part).try_exists()? {
            std::fs::rename(whole.join(part), folder.join(part))?;
        }
    }
    // Or what is written to them might come back as `koel.new`, or not at all, after a power failure.
    sync_names_beside(&whole)?;
    Ok(std::fs::remove_dir_all(whole)?)
}

/// The file that a process locks which opens a database: fjall locks one of its own for as long as it is open.
const LOCK: &str = "koel.lock";

/// Makes a folder, and those that it is in, whose names are on the disk when it returns, also those that a process that was
/// killed has made: else a database could be gone after a power failure, with all that was put into it durably.
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
        // On the disk, whatever other writes are: what is lost would be the old one again, with what was written around.
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
    /// It is not for keys and values: the one of the generations, or of another database.
    Keyspace {
        /// Its name.
        name: Box<str>,
    },
    /// The folder is open elsewhere.
    Locked,
    /// The row of the generation is not as it should be.
    Generation,
    /// fjall's own error.
    Fjall(Box<fjall::Error>),
    /// What the function of [`FjallStore::write_many_and`] has against it: yours, which `downcast_ref` finds again.
    Other(Box<dyn core::error::Error + Send + Sync>),
}

impl FjallError {
    /// An error of yours, or a text, from the function of [`FjallStore::write_many_and`].
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
            // What is told already is no source.
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
