//! The errors of a guard.

use core::convert::Infallible;
use core::fmt;
use std::io;

use crate::filter::FilterError;

/// Why an operation of a guard failed. Look-ups and writes fail only with [`Error::Store`].
#[derive(Debug)]
#[non_exhaustive]
pub enum Error<E> {
    /// The store's own error.
    Store(E),
    /// No such filter can be made: the rate or the number of keys is out of range, or there is no memory for it.
    Filter(FilterError),
    /// The snapshot could not be written.
    Snapshot(SnapshotError),
    /// No thread could be started for the scan of the store.
    Thread(io::Error),
    /// The scan of the store, or the function that is told of its progress, panicked: the guard goes on with the filter that it
    /// had, or without one.
    ScanPanicked,
}

impl<E> Error<E> {
    /// Returns the store's own error, if it is one: look-ups and writes fail with no other.
    ///
    /// ```
    /// use koel::guard::{Guarded, RedbError, RedbStore};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// let guarded = Guarded::open(RedbStore::open(folder.path().join("people.redb"))?)?;
    /// let error = guarded.put(&[0; 70_000], b"").unwrap_err();
    /// assert!(matches!(error.into_store(), Some(RedbError::KeyTooLong { .. })));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn into_store(self) -> Option<E> {
        match self {
            Error::Store(error) => Some(error),
            Error::Filter(_) | Error::Snapshot(_) | Error::Thread(_) | Error::ScanPanicked => None,
        }
    }

    /// Returns the store's own error, or what `other` makes of an error of the guard. For functions that return the store's
    /// error, or a type that can be made from it.
    ///
    /// ```
    /// use koel::guard::{Error, Guarded, Store};
    ///
    /// /// The length of a value. A look-up fails with no error but the store's.
    /// fn len<S: Store>(guarded: &Guarded<S>, key: &[u8]) -> Result<Option<usize>, S::Error> {
    ///     let value = guarded.get(key);
    ///     let value = value.map_err(|error| error.into_store_or(|other| unreachable!("{other}")))?;
    ///     Ok(value.map(|value| value.len()))
    /// }
    ///
    /// let guarded = Guarded::open(koel::guard::HashMapStore::new())?;
    /// guarded.put(b"ada", b"1815")?;
    /// assert_eq!(len(&guarded, b"ada"), Ok(Some(4)));
    /// # Ok::<(), Error<std::convert::Infallible>>(())
    /// ```
    pub fn into_store_or(self, other: impl FnOnce(Error<Infallible>) -> E) -> E {
        match self {
            Error::Store(error) => error,
            Error::Filter(error) => other(Error::Filter(error)),
            Error::Snapshot(error) => other(Error::Snapshot(error)),
            Error::Thread(error) => other(Error::Thread(error)),
            Error::ScanPanicked => other(Error::ScanPanicked),
        }
    }
}

impl<E> From<FilterError> for Error<E> {
    fn from(error: FilterError) -> Self {
        Error::Filter(error)
    }
}

/// For functions that open a store and put a guard before it.
macro_rules! from_stores {
    ($($(#[$feature:meta])? $error:ty),*) => {
        $($(#[$feature])?
        impl From<$error> for Error<$error> {
            fn from(error: $error) -> Self {
                Error::Store(error)
            }
        })*
    };
}

from_stores!(
    #[cfg(feature = "redb")]
    super::RedbError,
    #[cfg(feature = "fjall")]
    super::FjallError,
    super::DynStoreError
);

impl<E: fmt::Display> fmt::Display for Error<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Store(error) => write!(f, "the store: {error}"),
            Error::Filter(error) => write!(f, "the filter: {error}"),
            Error::Snapshot(error) => write!(f, "the snapshot: {error}"),
            Error::Thread(error) => write!(f, "no thread to scan the store with: {error}"),
            Error::ScanPanicked => {
                f.write_str("the scan of the store panicked, or who is told of its progress")
            }
        }
    }
}

impl<E: core::error::Error + 'static> core::error::Error for Error<E> {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        // An error that is displayed above is not repeated as a source.
        match self {
            Error::Store(error) => error.source(),
            Error::Filter(error) => error.source(),
            Error::Snapshot(error) => error.source(),
            Error::Thread(error) => error.source(),
            Error::ScanPanicked => None,
        }
    }
}

/// Why there is no snapshot, or why one was not used. A guard that opens without it scans the store instead.
#[derive(Debug)]
#[non_exhaustive]
pub enum SnapshotError {
    /// The guard has no filter, or is still building it.
    NoFilter,
    /// The file could not be read or written, or there was no memory for what is in it.
    Io(io::Error),
    /// The file is not a snapshot, or is damaged.
    Damaged(&'static str),
    /// It belongs to another store, or to another state of this one.
    OtherGeneration,
    /// It has a filter of another kind or of another false-positive rate.
    OtherFilter,
}

impl From<io::Error> for SnapshotError {
    fn from(error: io::Error) -> Self {
        SnapshotError::Io(error)
    }
}

impl fmt::Display for SnapshotError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SnapshotError::NoFilter => f.write_str("there is no filter, or it is still being built"),
            SnapshotError::Io(error) => error.fmt(f),
            SnapshotError::Damaged(what) => write!(f, "damaged: {what}"),
            SnapshotError::OtherGeneration => {
                f.write_str("of another store, or of another moment of this one")
            }
            SnapshotError::OtherFilter => f.write_str("of another kind of filter, or of another rate"),
        }
    }
}

impl core::error::Error for SnapshotError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            // An error that is displayed above is not repeated as a source.
            SnapshotError::Io(error) => error.source(),
            _ => None,
        }
    }
}
