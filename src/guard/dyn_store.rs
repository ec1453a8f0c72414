//! [`DynStore`]: a store whose type is chosen at run time.

use core::error::Error;
use core::fmt;

use super::store::{Generation, Scanned, Store, Value, Write};

/// A [`Store`] of any type, for programs that choose it at run time, by a setting for instance: guards of all stores have one
/// type.
///
/// Each operation costs a call through a pointer; a scan allocates its iterator, and makes such a call for each key. Where the
/// type is known at compile time, use the store itself.
///
/// ```
/// use koel::guard::{DynStore, FjallStore, Guarded, HashMapStore, RedbStore};
///
/// fn open(setting: &str, path: &std::path::Path) -> Result<Guarded<DynStore>, Box<dyn std::error::Error>> {
///     let store = match setting {
///         "redb" => DynStore::new(RedbStore::open(path)?),
///         "fjall" => DynStore::new(FjallStore::open(path)?),
///         _ => DynStore::new(HashMapStore::new()),
///     };
///     Ok(Guarded::open(store)?)
/// }
///
/// # let folder = tempfile::tempdir()?;
/// for setting in ["redb", "fjall", "none"] {
///     let guarded = open(setting, &folder.path().join(setting))?;
///     guarded.put(b"ada", b"1815")?;
///     assert_eq!(guarded.get(b"ada")?.as_deref(), Some(&b"1815"[..]));
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct DynStore(Box<dyn Erased>);

impl DynStore {
    /// Wraps a store. To keep access to it, pass an `Arc` of it.
    pub fn new(store: impl Store) -> Self {
        DynStore(Box::new(store))
    }
}

impl fmt::Debug for DynStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DynStore").finish_non_exhaustive()
    }
}

/// The error of the store in a [`DynStore`]: displays as the store's own error, and can be downcast to it.
///
/// ```
/// use koel::guard::{DynStore, Guarded, RedbError, RedbStore};
///
/// # let folder = tempfile::tempdir()?;
/// let store = DynStore::new(RedbStore::open(folder.path().join("people.redb"))?);
/// let error = Guarded::open(store)?.put(&[0; 70_000], b"").unwrap_err().into_store().unwrap();
/// assert!(matches!(error.0.downcast_ref(), Some(RedbError::KeyTooLong { .. })));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct DynStoreError(pub Box<dyn Error + Send + Sync>);

impl DynStoreError {
    fn new(error: impl Error + Send + Sync + 'static) -> Self {
        DynStoreError(Box::new(error))
    }
}

impl fmt::Debug for DynStoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for DynStoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl Error for DynStoreError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        // An error that is displayed above is not repeated as a source.
        self.0.source()
    }
}

type Result<T> = core::result::Result<T, DynStoreError>;

/// A [`Store`] in a form that is dyn-compatible.
trait Erased: Send + Sync {
    fn get(&self, key: &[u8]) -> Result<Option<Value>>;
    fn get_many(&self, keys: &[&[u8]]) -> Result<Vec<Option<Value>>>;
    fn contains_key(&self, key: &[u8]) -> Result<bool>;
    fn put(&self, key: &[u8], value: &[u8]) -> Result<bool>;
    fn delete(&self, key: &[u8]) -> Result<bool>;
    fn write_many(&self, writes: &[Write<'_>]) -> Result<Vec<bool>>;
    fn scan_keys(&self) -> Result<Box<dyn Iterator<Item = Scanned<DynStoreError>> + '_>>;
    fn generation(&self) -> Result<Generation>;
    fn renew_generation(&self) -> Result<()>;
    fn len_hint(&self) -> Option<u64>;
}

impl<S: Store> Erased for S {
    fn get(&self, key: &[u8]) -> Result<Option<Value>> {
        Store::get(self, key).map_err(DynStoreError::new)
    }

    fn get_many(&self, keys: &[&[u8]]) -> Result<Vec<Option<Value>>> {
        Store::get_many(self, keys).map_err(DynStoreError::new)
    }

    fn contains_key(&self, key: &[u8]) -> Result<bool> {
        Store::contains_key(self, key).map_err(DynStoreError::new)
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<bool> {
        Store::put(self, key, value).map_err(DynStoreError::new)
    }

    fn delete(&self, key: &[u8]) -> Result<bool> {
        Store::delete(self, key).map_err(DynStoreError::new)
    }

    fn write_many(&self, writes: &[Write<'_>]) -> Result<Vec<bool>> {
        Store::write_many(self, writes).map_err(DynStoreError::new)
    }

    fn scan_keys(&self) -> Result<Box<dyn Iterator<Item = Scanned<DynStoreError>> + '_>> {
        let keys = Store::scan_keys(self).map_err(DynStoreError::new)?;
        Ok(Box::new(keys.map(|key| key.map_err(DynStoreError::new))))
    }

    fn generation(&self) -> Result<Generation> {
        Store::generation(self).map_err(DynStoreError::new)
    }

    fn renew_generation(&self) -> Result<()> {
        Store::renew_generation(self).map_err(DynStoreError::new)
    }

    fn len_hint(&self) -> Option<u64> {
        Store::len_hint(self)
    }
}

impl Store for DynStore {
    type Error = DynStoreError;

    fn get(&self, key: &[u8]) -> Result<Option<Value>> {
        Erased::get(&*self.0, key)
    }

    fn get_many(&self, keys: &[&[u8]]) -> Result<Vec<Option<Value>>> {
        Erased::get_many(&*self.0, keys)
    }

    fn contains_key(&self, key: &[u8]) -> Result<bool> {
        Erased::contains_key(&*self.0, key)
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<bool> {
        Erased::put(&*self.0, key, value)
    }

    fn delete(&self, key: &[u8]) -> Result<bool> {
        Erased::delete(&*self.0, key)
    }

    fn write_many(&self, writes: &[Write<'_>]) -> Result<Vec<bool>> {
        Erased::write_many(&*self.0, writes)
    }

    fn scan_keys(&self) -> Result<impl Iterator<Item = Scanned<DynStoreError>>> {
        Erased::scan_keys(&*self.0)
    }

    fn generation(&self) -> Result<Generation> {
        Erased::generation(&*self.0)
    }

    fn renew_generation(&self) -> Result<()> {
        Erased::renew_generation(&*self.0)
    }

    fn len_hint(&self) -> Option<u64> {
        Erased::len_hint(&*self.0)
    }
}
