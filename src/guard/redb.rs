//! [`RedbStore`]: tables of a redb database.

use core::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::sync::Arc;

use redb::{
    Database, Durability, ReadableDatabase, ReadableTable, ReadableTableMetadata, Table, TableDefinition,
    WriteTransaction,
};

use super::store::{Generation, Scanned, Store, Value, Write};
use crate::file::{behind_links, own_beside, sync_names_beside};
use crate::sync::Mutex;

/// The default table of keys and values.
const DATA: &str = "koel.data";
/// The table of its generation; those of other tables have this name, a dot and the table's name.
const GENERATION: &str = "koel.generation";

/// Keys and values.
type Data<'a> = TableDefinition<'a, &'static [u8], &'static [u8]>;
type DataTable<'a> = Table<'a, &'static [u8], &'static [u8]>;
/// Lineage and count of the generation, in one row.
type Row<'a> = TableDefinition<'a, (), (u128, u64)>;

/// A redb database in a file: the embedded store that the guard is made for.
///
/// Keys and values are in the table `koel.data`, or [in one of yours](RedbStore::with_table); the [`Generation`] is in a table
/// of its own. A write is a transaction, and is on disk when it returns, unless [`RedbStore::durable`] says otherwise.
///
/// ```
/// use koel::guard::{Guarded, RedbStore};
///
/// # let folder = tempfile::tempdir()?;
/// let file = folder.path().join("people.redb");
/// let guarded = Guarded::open(RedbStore::open(&file)?)?;
/// guarded.put(b"ada", b"1815")?;
/// assert_eq!(guarded.get(b"ada")?.as_deref(), Some(&b"1815"[..]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct RedbStore {
    database: Arc<Database>,
    /// The name of the table of keys and values.
    data: Box<str>,
    /// The name of the table of its generation.
    generation: Box<str>,
    lineage: u128,
    counts: Mutex<Counts>,
    durability: Durability,
}

/// The counts of generations that a store has given to its writes.
#[derive(Debug)]
struct Counts {
    /// The highest count, whatever became of its write: a savepoint that is restored takes the row back, and no generation may
    /// occur twice.
    highest: u64,
    /// The last count in doubt: the database as it is seen now need not be the database as it is opened again. A failed commit
    /// may be on the disk; and what was committed before this store was opened, or before it was set to be as durable as it is
    /// now, may not. A later commit that succeeds settles the doubt.
    doubt: Option<u64>,
}

impl Counts {
    fn new() -> Self {
        Counts { highest: 0, doubt: Some(0) }
    }

    /// Puts all counts in doubt: earlier commits may be less durable than the store is to be.
    fn doubt_all(&mut self) {
        self.doubt = Some(self.highest);
    }

    /// Notes that a write with this count was committed.
    fn settle(&mut self, count: u64) {
        self.doubt = self.doubt.filter(|doubt| *doubt > count);
    }
}

/// A write whose commit is under way.
struct Committing<'s> {
    counts: &'s Mutex<Counts>,
    count: u64,
}

impl Committing<'_> {
    /// The commit has succeeded.
    fn done(self) {
        self.counts.lock().settle(self.count);
        core::mem::forget(self);
    }
}

/// The commit has failed.
impl Drop for Committing<'_> {
    fn drop(&mut self) {
        let mut counts = self.counts.lock();
        counts.doubt = counts.doubt.max(Some(self.count));
    }
}

impl RedbStore {
    /// The longest key, the same as in every store here. (redb itself would take gigabytes, and a page holds few such keys.)
    pub const MAX_KEY_LEN: usize = u16::MAX as usize;

    /// Opens the database in a file, or creates it if there is no such file. A new file appears whole: it is made in the same
    /// folder, under the name followed by `.new-` and 16 random digits. A process that is killed meanwhile leaves that file,
    /// which is never used again.
    ///
    /// # Errors
    ///
    /// If the file is not a redb database, has a format from before redb 3, is damaged, cannot be read, or is open elsewhere.
    pub fn open(file: impl AsRef<Path>) -> Result<Self, RedbError> {
        let file = file.as_ref();
        if !file.try_exists()? {
            create_whole(file)?;
        }
        // redb panics if certain bytes of a file are damaged.
        catch_unwind(|| Self::with_database(Database::create(file)?)).unwrap_or_else(|_| {
            let why = "redb panicked when it was opened".to_owned();
            Err(RedbError::Redb(Box::new(redb::Error::Corrupted(why))))
        })
    }

    /// Uses a database that you have opened, with settings of your own. It must be of the version of `redb` that this library
    /// is built with; that is `koel::redb`, for programs that do not depend on it or have another version. Keys and values are
    /// in its table `koel.data`.
    ///
    /// # Errors
    ///
    /// If it cannot be read or written.
    ///
    /// ```
    /// use koel::guard::RedbStore;
    ///
    /// # let folder = tempfile::tempdir()?;
    /// let file = folder.path().join("people.redb");
    /// let database = koel::redb::Database::builder().set_cache_size(16 << 20).create(file)?;
    /// let store = RedbStore::with_database(database)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn with_database(database: Database) -> Result<Self, RedbError> {
        Self::with_table(database, DATA)
    }

    /// Uses a table of yours, in a database that may have others. It maps bytes to bytes, as `TableDefinition<&[u8], &[u8]>`
    /// does, and is created if it is not there. Convert keys and values of other types to bytes, as by `str::as_bytes` and
    /// `u64::to_be_bytes`.
    ///
    /// Each table has a store, and a guard, of its own; they share the database, as an `Arc`. The [`Generation`] of a table
    /// `NAME` is in another, `koel.generation.NAME`. Two stores that are open on one table do not know of each other's writes.
    ///
    /// Your transactions may write to other tables as they like. A guard does not know of what they write to this one: call
    /// [`Guarded::rebuild`](super::Guarded::rebuild), and use no earlier snapshot. The generation goes by the table's name: if
    /// a table is renamed, or deleted and created again, delete `koel.generation.NAME`, or a snapshot of the other table may be
    /// used. Writes wait while a transaction of yours writes: a thread that holds one and writes through the guard waits for
    /// itself. So does a thread that takes a snapshot then, opens a guard, waits until one is ready, or ends one that scans the
    /// store: a writer that waits for the transaction may hold the locks that these wait for, and a scan that was asked for
    /// begins with a write.
    ///
    /// # Errors
    ///
    /// If the name is empty, or begins with `koel.generation`; if the table has other types; if the database cannot be read or
    /// written.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use koel::guard::{Guarded, RedbStore};
    /// use koel::redb::{Database, TableDefinition};
    ///
    /// const USERS: TableDefinition<&[u8], &[u8]> = TableDefinition::new("users");
    /// const VISITS: TableDefinition<&str, u64> = TableDefinition::new("visits");
    ///
    /// # let folder = tempfile::tempdir()?;
    /// let database = Arc::new(Database::create(folder.path().join("site.redb"))?);
    /// // What the program had written to two tables before there was a guard.
    /// let writing = database.begin_write()?;
    /// writing.open_table(USERS)?.insert(&b"ada"[..], &b"1815"[..])?;
    /// writing.open_table(VISITS)?.insert("ada", 1)?;
    /// writing.commit()?;
    ///
    /// let users = Guarded::open(RedbStore::with_table(database.clone(), "users")?)?;
    /// assert_eq!(users.get(b"ada")?.as_deref(), Some(&b"1815"[..]));
    /// let sessions = Guarded::open(RedbStore::with_table(database.clone(), "sessions")?)?;
    /// assert!(!sessions.put(b"ada", b"0x17")?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn with_table(database: impl Into<Arc<Database>>, table: &str) -> Result<Self, RedbError> {
        // redb panics for an empty name.
        if table.is_empty() || table.starts_with(GENERATION) {
            return Err(RedbError::TableName { name: table.into() });
        }
        let generation = match table {
            DATA => GENERATION.into(),
            named => format!("{GENERATION}.{named}").into(),
        };
        let store = RedbStore {
            database: database.into(),
            data: table.into(),
            generation,
            lineage: Generation::new_lineage(),
            counts: Mutex::new(Counts::new()),
            durability: Durability::Immediate,
        };
        let transaction = store.database.begin_write()?;
        let known = {
            transaction.open_table(store.data())?;
            let table = transaction.open_table(store.row())?;
            table.get(())?.is_some()
        };
        if known {
            transaction.abort()?;
        } else {
            store.commit(transaction)?;
        }
        Ok(store)
    }

    fn data(&self) -> Data<'_> {
        TableDefinition::new(&self.data)
    }

    fn row(&self) -> Row<'_> {
        TableDefinition::new(&self.generation)
    }

    /// Returns the database, for operations that a store does not have: iteration over a range of keys, savepoints, other
    /// tables. A guard does not know of what is written to it around the guard: call
    /// [`Guarded::rebuild`](super::Guarded::rebuild). That applies to restoring a savepoint, too; snapshots of the guard's
    /// filter from that time fit the store again, until it is rebuilt.
    ///
    /// ```
    /// use koel::guard::{Guarded, RedbStore};
    /// use koel::redb::{ReadableDatabase, ReadableTable, TableDefinition};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// let guarded = Guarded::open(RedbStore::open(folder.path().join("people.redb"))?)?;
    /// guarded.put(b"ada", b"1815")?;
    /// guarded.put(b"grace", b"1906")?;
    /// // Its table of keys and values.
    /// let data: TableDefinition<&[u8], &[u8]> = TableDefinition::new("koel.data");
    /// let reading = guarded.store().database().begin_read()?;
    /// let first = reading.open_table(data)?.range(&b"a"[..]..&b"b"[..])?.next().unwrap()?;
    /// assert_eq!(first.0.value(), b"ada");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn database(&self) -> &Database {
        &self.database
    }

    /// Sets whether a write is on disk when it returns, which is the default. Otherwise it is visible to all when it returns,
    /// and on disk after [`RedbStore::sync`], or when the database has been dropped, with the last `Arc` of it. If the process
    /// is killed, the system crashes or the disk is full, writes since then are lost, all of them from some moment on; the
    /// guard is right nevertheless. redb needs memory for what is not on disk.
    ///
    /// For pairs that are known before a guard is opened, use [`RedbStore::load`].
    ///
    /// ```
    /// use koel::guard::{Guarded, RedbStore};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// let store = RedbStore::open(folder.path().join("people.redb"))?.durable(false);
    /// let guarded = Guarded::open(store)?;
    /// guarded.put(b"ada", b"1815")?; // does not wait for the disk
    /// assert_eq!(guarded.get(b"ada")?.as_deref(), Some(&b"1815"[..]));
    /// guarded.store().sync()?; // once a second, perhaps
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn durable(mut self, yes: bool) -> Self {
        self.durability = if yes { Durability::Immediate } else { Durability::None };
        self.counts.lock().doubt_all();
        self
    }

    /// Waits until all earlier writes are on disk, also those of stores that are not [durable](RedbStore::durable). A durable
    /// transaction of yours in the same database has the same effect.
    ///
    /// # Errors
    ///
    /// If the database cannot be written.
    pub fn sync(&self) -> Result<(), RedbError> {
        Ok(self.database.begin_write()?.commit()?)
    }

    /// Puts many pairs in one transaction, which is much faster. Returns how many keys were new.
    ///
    /// It is for filling a store *before* a guard is opened on it: an open guard would not know of the keys.
    ///
    /// # Errors
    ///
    /// As [`Store::put`]; then nothing was put.
    ///
    /// ```
    /// use koel::guard::{Guarded, RedbStore};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// let store = RedbStore::open(folder.path().join("people.redb"))?;
    /// assert_eq!(store.load([("ada", "1815"), ("grace", "1906")])?, 2);
    /// let guarded = Guarded::open(store)?;
    /// assert_eq!(guarded.get(b"grace")?.as_deref(), Some(&b"1906"[..]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn load<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        pairs: impl IntoIterator<Item = (K, V)>,
    ) -> Result<u64, RedbError> {
        self.write(|table| {
            let mut new = 0;
            for (key, value) in pairs {
                new += u64::from(!insert(table, key.as_ref(), value.as_ref())?);
            }
            Ok(new)
        })
    }

    /// Does what [`Store::write_many`] does, and what `also` does to other tables, in one transaction: both or neither.
    /// Returns, for each write, whether its key was there.
    ///
    /// It is for use in [`Guarded::write_many_with`](super::Guarded::write_many_with), which has an example; otherwise an open
    /// guard would not know of the keys. `also` runs after the writes and before the commit. It cannot open this store's table.
    /// It must not write to a table that has another guard, nor through any guard before this database, nor begin a write
    /// transaction, because it would wait for itself.
    ///
    /// # Errors
    ///
    /// As [`Store::put`], and whatever `also` returns: [`RedbError::other`], if it is not redb's. Then nothing was written.
    pub fn write_many_and(
        &self,
        writes: &[Write<'_>],
        also: impl FnOnce(&WriteTransaction) -> Result<(), RedbError>,
    ) -> Result<Vec<bool>, RedbError> {
        self.write_and(|table| write_each(table, writes), also)
    }

    /// Writes in one transaction, with the generation that it makes.
    fn write<T>(
        &self,
        change: impl FnOnce(&mut DataTable<'_>) -> Result<T, RedbError>,
    ) -> Result<T, RedbError> {
        self.write_and(change, |_| Ok(()))
    }

    /// The same, with more in it.
    fn write_and<T>(
        &self,
        change: impl FnOnce(&mut DataTable<'_>) -> Result<T, RedbError>,
        also: impl FnOnce(&WriteTransaction) -> Result<(), RedbError>,
    ) -> Result<T, RedbError> {
        let mut transaction = self.database.begin_write()?;
        transaction.set_durability(self.durability)?;
        let changed = catch_unwind(AssertUnwindSafe(|| {
            let mut table = transaction.open_table(self.data())?;
            let result = change(&mut table)?;
            // The table is still open, so that `also` cannot write to it.
            also(&transaction)?;
            Ok::<T, RedbError>(result)
        }));
        let result = match changed {
            Ok(result) => result?,
            Err(payload) => {
                // Dropped before the panic goes on: otherwise it would keep its pages, which nobody would use again.
                drop(transaction);
                resume_unwind(payload)
            }
        };
        self.commit(transaction)?;
        Ok(result)
    }

    /// Commits a transaction, with the generation that it makes.
    fn commit(&self, transaction: WriteTransaction) -> Result<(), RedbError> {
        let committing = Committing { counts: &self.counts, count: self.bump(&transaction)? };
        transaction.commit()?;
        committing.done();
        Ok(())
    }

    /// Whether it is certain that none of these keys is there.
    fn has_none_of(&self, writes: &[Write<'_>]) -> Result<bool, RedbError> {
        if self.counts.lock().doubt.is_some() {
            return Ok(false);
        }
        let table = self.database.begin_read()?.open_table(self.data())?;
        for write in writes {
            if table.get(write.key())?.is_some() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The count of the generation that the transaction makes.
    fn bump(&self, transaction: &WriteTransaction) -> Result<u64, RedbError> {
        let mut table = transaction.open_table(self.row())?;
        let count = table.get(())?.map_or(0, |row| row.value().1);
        let highest = {
            let mut counts = self.counts.lock();
            counts.highest = count.max(counts.highest) + 1;
            counts.highest
        };
        table.insert((), (self.lineage, highest))?;
        Ok(highest)
    }
}

/// Creates an empty database, and gives it its name when it is complete: a process that is killed while redb creates one leaves
/// a file that redb cannot open.
fn create_whole(file: &Path) -> Result<(), RedbError> {
    let file = behind_links(file)?;
    let new = own_beside(&file);
    let made = Database::create(&new).map_err(RedbError::from).and_then(|database| {
        drop(database);
        give_name(&new, &file)
    });
    // Regardless of whether it has another name by now, or was created at all.
    let _ = std::fs::remove_file(&new);
    made?;
    // Otherwise what is written to it might be found under the other name after a power failure.
    Ok(sync_names_beside(&file)?)
}

/// Renames a file, unless another file has the new name already.
fn give_name(new: &Path, file: &Path) -> Result<(), RedbError> {
    // Unlike a rename, a link does not replace a file that somebody else has created meanwhile. Not all file systems have
    // links.
    match std::fs::hard_link(new, file) {
        Ok(()) => {}
        Err(_) if file.try_exists()? => {}
        Err(_) => std::fs::rename(new, file)?,
    }
    Ok(())
}

/// For each write, whether its key was there.
fn write_each(table: &mut DataTable<'_>, writes: &[Write<'_>]) -> Result<Vec<bool>, RedbError> {
    let each = writes.iter().map(|write| match *write {
        Write::Put(key, value) => insert(table, key, value),
        Write::Delete(key) => Ok(table.remove(key)?.is_some()),
    });
    each.collect()
}

/// Whether the key was there.
fn insert(table: &mut DataTable<'_>, key: &[u8], value: &[u8]) -> Result<bool, RedbError> {
    if key.len() > RedbStore::MAX_KEY_LEN {
        return Err(RedbError::KeyTooLong { len: key.len() });
    }
    Ok(table.insert(key, value)?.is_some())
}

impl Store for RedbStore {
    type Error = RedbError;

    fn get(&self, key: &[u8]) -> Result<Option<Value>, RedbError> {
        let table = self.database.begin_read()?.open_table(self.data())?;
        Ok(table.get(key)?.map(|value| Arc::from(value.value())))
    }

    fn get_many(&self, keys: &[&[u8]]) -> Result<Vec<Option<Value>>, RedbError> {
        let table = self.database.begin_read()?.open_table(self.data())?;
        keys.iter().map(|key| Ok(table.get(*key)?.map(|value| Arc::from(value.value())))).collect()
    }

    fn contains_key(&self, key: &[u8]) -> Result<bool, RedbError> {
        // Its value is not copied.
        let table = self.database.begin_read()?.open_table(self.data())?;
        Ok(table.get(key)?.is_some())
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<bool, RedbError> {
        self.write(|table| insert(table, key, value))
    }

    fn delete(&self, key: &[u8]) -> Result<bool, RedbError> {
        // One look, without the disk, spares a commit that would change nothing.
        if self.has_none_of(&[Write::Delete(key)])? {
            return Ok(false);
        }
        self.write(|table| Ok(table.remove(key)?.is_some()))
    }

    fn write_many(&self, writes: &[Write<'_>]) -> Result<Vec<bool>, RedbError> {
        let deletes = writes.iter().all(|write| matches!(write, Write::Delete(_)));
        if deletes && self.has_none_of(writes)? {
            return Ok(vec![false; writes.len()]);
        }
        self.write(|table| write_each(table, writes))
    }

    fn scan_keys(&self) -> Result<impl Iterator<Item = Scanned<RedbError>>, RedbError> {
        let table = self.database.begin_read()?.open_table(self.data())?;
        let all = table.range::<&[u8]>(..)?;
        Ok(all.map(|row| Ok(row?.0.value().into())))
    }

    fn generation(&self) -> Result<Generation, RedbError> {
        let table = self.database.begin_read()?.open_table(self.row())?;
        let row = table.get(())?;
        let (lineage, count) = row.map_or((0, 0), |row| row.value());
        Ok(Generation { lineage, count })
    }

    fn renew_generation(&self) -> Result<(), RedbError> {
        // On disk, whether or not other writes are: if this were lost, the old generation would be valid again, with what was
        // written around the guard.
        self.commit(self.database.begin_write()?)
    }

    fn len_hint(&self) -> Option<u64> {
        self.database.begin_read().ok()?.open_table(self.data()).ok()?.len().ok()
    }
}

/// The errors of a [`RedbStore`].
///
/// ```
/// use koel::guard::{Error, Guarded, RedbError, RedbStore};
///
/// # let folder = tempfile::tempdir()?;
/// let guarded = Guarded::open(RedbStore::open(folder.path().join("people.redb"))?)?;
/// let long = [0; RedbStore::MAX_KEY_LEN + 1];
/// let error = guarded.put(&long, b"").unwrap_err();
/// assert!(matches!(error, Error::Store(RedbError::KeyTooLong { len: 65_536 })));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum RedbError {
    /// A table of keys and values cannot have this name.
    TableName {
        /// The name: it is empty, or reserved for generations.
        name: Box<str>,
    },
    /// A key is longer than [`RedbStore::MAX_KEY_LEN`].
    KeyTooLong {
        /// Its length, in bytes.
        len: usize,
    },
    /// redb's own error.
    Redb(Box<redb::Error>),
    /// The error that the function of [`RedbStore::write_many_and`] returned: of your type, as `downcast_ref` shows.
    Other(Box<dyn core::error::Error + Send + Sync>),
}

impl RedbError {
    /// Wraps an error of yours, or a text, for the function of [`RedbStore::write_many_and`] to return.
    pub fn other(error: impl Into<Box<dyn core::error::Error + Send + Sync>>) -> Self {
        RedbError::Other(error.into())
    }
}

impl From<redb::Error> for RedbError {
    fn from(error: redb::Error) -> Self {
        RedbError::Redb(Box::new(error))
    }
}

impl From<std::io::Error> for RedbError {
    fn from(error: std::io::Error) -> Self {
        RedbError::Redb(Box::new(redb::Error::Io(error)))
    }
}

/// redb has an error type for each step of a transaction, and one for all of them.
macro_rules! from_errors {
    ($($error:ident),*) => {
        $(impl From<redb::$error> for RedbError {
            fn from(error: redb::$error) -> Self {
                RedbError::Redb(Box::new(error.into()))
            }
        })*
    };
}

from_errors!(DatabaseError, TransactionError, TableError, StorageError, CommitError, SetDurabilityError);

impl fmt::Display for RedbError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RedbError::TableName { name } => {
                write!(
                    f,
                    "a table named {name:?}; it needs a name, and not one that begins with `{GENERATION}`"
                )
            }
            RedbError::KeyTooLong { len } => {
                write!(f, "a key of {len} bytes; {} are the most", RedbStore::MAX_KEY_LEN)
            }
            RedbError::Redb(error) => error.fmt(f),
            RedbError::Other(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for RedbError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            RedbError::TableName { .. } | RedbError::KeyTooLong { .. } => None,
            // An error that is displayed above is not repeated as a source.
            RedbError::Redb(error) => error.source(),
            RedbError::Other(error) => error.source(),
        }
    }
}
