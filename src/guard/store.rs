//! The trait of stores, between the guard and a database.

use std::sync::Arc;

use crate::draw::draw;

/// A value. It is shared, so that the cache hands it out without copying.
pub type Value = Arc<[u8]>;

/// A key from a scan, or an error.
pub type Scanned<E> = Result<Box<[u8]>, E>;

/// A write of [`Guarded::write_many`](super::Guarded::write_many).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Write<'a> {
    /// Puts a value under a key.
    Put(&'a [u8], &'a [u8]),
    /// Deletes a key.
    Delete(&'a [u8]),
}

impl<'a> Write<'a> {
    /// Returns the key that is written.
    #[must_use]
    pub fn key(self) -> &'a [u8] {
        match self {
            Write::Put(key, _) | Write::Delete(key) => key,
        }
    }
}

/// A key-value store that [`Guarded`](super::Guarded) can guard: bytes to bytes.
///
/// Every operation, except `get_many` and `write_many`, is one transaction: visible to all as a whole or not at all, and
/// visible to all when it returns. Several threads may call any of them at the same time. The guard never lets two writes of
/// one key run at once.
///
/// # What the guard relies on
///
/// * `put`, `delete` and `write_many` report correctly whether the key was there before. If they return an error, the write may
///   or may not have happened: after a `put` the guard then asks `get`, and believes nothing else; after a `delete` it keeps
///   the fingerprint.
/// * `scan_keys` yields the keys as they were at the moment of the call, each once, whatever is written meanwhile. If a scan
///   leaves out keys that the guard has deleted meanwhile, that is taken for a sign of writes around the guard, and another
///   scan follows: endlessly, if keys are deleted all the time.
/// * `generation` changes with each write that changes anything, in the same transaction, and never has the same value twice:
///   see [`Generation`]. Only snapshots ask for it: if a store takes a new lineage each time it is opened, and counts its
///   writes in memory, its snapshots are refused, and it is scanned instead.
/// * No operation writes through the guard that has called it, nor asks that guard for a snapshot, to verify, or to wait until
///   it is ready. Unrelated keys share a lock, which is held during the call, so that such an operation would wait for itself.
///   Operations may look keys up through the guard.
///
/// ```
/// use core::convert::Infallible;
/// use std::collections::BTreeMap;
/// use std::sync::{Arc, Mutex};
///
/// use koel::guard::{Generation, Guarded, Scanned, Store, Value};
///
/// /// A tree and the number of writes to it, behind one lock: each operation is a transaction.
/// struct Tree {
///     state: Mutex<(BTreeMap<Box<[u8]>, Value>, u64)>,
///     lineage: u128,
/// }
///
/// impl Store for Tree {
///     type Error = Infallible;
///
///     fn get(&self, key: &[u8]) -> Result<Option<Value>, Infallible> {
///         Ok(self.state.lock().unwrap().0.get(key).cloned())
///     }
///
///     fn put(&self, key: &[u8], value: &[u8]) -> Result<bool, Infallible> {
///         let (tree, writes) = &mut *self.state.lock().unwrap();
///         *writes += 1;
///         Ok(tree.insert(key.into(), value.into()).is_some())
///     }
///
///     fn delete(&self, key: &[u8]) -> Result<bool, Infallible> {
///         let (tree, writes) = &mut *self.state.lock().unwrap();
///         *writes += 1;
///         Ok(tree.remove(key).is_some())
///     }
///
///     fn scan_keys(&self) -> Result<impl Iterator<Item = Scanned<Infallible>>, Infallible> {
///         let keys: Vec<_> = self.state.lock().unwrap().0.keys().cloned().collect();
///         Ok(keys.into_iter().map(Ok))
///     }
///
///     fn generation(&self) -> Result<Generation, Infallible> {
///         Ok(Generation { lineage: self.lineage, count: self.state.lock().unwrap().1 })
///     }
/// }
///
/// let tree = Tree { state: Mutex::default(), lineage: Generation::new_lineage() };
/// let guarded = Guarded::builder(tree).open().unwrap();
/// guarded.put(b"ada", b"1815").unwrap();
/// assert_eq!(guarded.get(b"ada").unwrap().as_deref(), Some(&b"1815"[..]));
/// assert_eq!(guarded.get(b"bob").unwrap(), None);
/// ```
pub trait Store: Send + Sync + 'static {
    /// The store's error. The guard passes it on.
    type Error: core::error::Error + Send + Sync + 'static;

    /// Returns the value of a key.
    ///
    /// # Errors
    ///
    /// The store's error.
    fn get(&self, key: &[u8]) -> Result<Option<Value>, Self::Error>;

    /// Returns the values of many keys, in their order. By default it looks them up one after the other.
    ///
    /// # Errors
    ///
    /// The store's error.
    fn get_many(&self, keys: &[&[u8]]) -> Result<Vec<Option<Value>>, Self::Error> {
        keys.iter().map(|key| self.get(key)).collect()
    }

    /// Returns whether a key is there, as [`Store::get`] would say at the same moment. By default it reads the value.
    ///
    /// # Errors
    ///
    /// The store's error.
    fn contains_key(&self, key: &[u8]) -> Result<bool, Self::Error> {
        Ok(self.get(key)?.is_some())
    }

    /// Puts a value under a key. Returns whether the key was there before.
    ///
    /// # Errors
    ///
    /// The store's error, also for a key or a value that is longer than it accepts.
    fn put(&self, key: &[u8], value: &[u8]) -> Result<bool, Self::Error>;

    /// Deletes a key. Returns whether it was there. Its absence must be as durable as a write: a store that skips the write of
    /// an absent key must not skip it if the key's last write has failed, and may come back.
    ///
    /// # Errors
    ///
    /// The store's error.
    fn delete(&self, key: &[u8]) -> Result<bool, Self::Error>;

    /// Does several writes, each of another key. Returns, for each, whether its key was there before.
    ///
    /// By default they are done one after the other, each in a transaction of its own; one transaction for all is mostly much
    /// faster. After an error the guard asks `get_many`, as any of them may have happened.
    ///
    /// # Errors
    ///
    /// The store's error, from any of them.
    fn write_many(&self, writes: &[Write<'_>]) -> Result<Vec<bool>, Self::Error> {
        let each = writes.iter().map(|write| match *write {
            Write::Put(key, value) => self.put(key, value),
            Write::Delete(key) => self.delete(key),
        });
        each.collect()
    }

    /// Returns all keys at the moment of this call, in any order. The iterator may hold up writes as long as it lives:
    /// meanwhile the guard waits for no write.
    ///
    /// # Errors
    ///
    /// The store's error, from the call or from any step of the iterator.
    fn scan_keys(&self) -> Result<impl Iterator<Item = Scanned<Self::Error>>, Self::Error>;

    /// Returns which state of which history the store is in.
    ///
    /// # Errors
    ///
    /// The store's error.
    fn generation(&self) -> Result<Generation, Self::Error>;

    /// Moves on to another generation, and changes nothing else. The guard calls this when somebody has written around it
    /// ([`Guarded::rebuild`](super::Guarded::rebuild), [`Guarded::verify`](super::Guarded::verify)): then no earlier snapshot
    /// of its filter fits any more.
    ///
    /// The default does nothing: then such snapshots still fit, and lack the keys that were written.
    ///
    /// # Errors
    ///
    /// The store's error.
    fn renew_generation(&self) -> Result<(), Self::Error> {
        Ok(())
    }

    /// Returns about how many keys there are, if that is known at once. The number determines the progress that is reported
    /// and, where no filter has all keys, the filter's size: when a guard is opened, and after
    /// [`Guarded::rebuild`](super::Guarded::rebuild).
    ///
    /// It may be too low: a filter grows, or is rebuilt. And it may be far too high, as in a store that counts deleted keys
    /// until it compacts. Then the first filter has room for too many keys, and takes memory for them; if there can be no such
    /// filter, it is made as if the store had said nothing. If its scan finds less than a quarter of these keys (and of
    /// [`Builder::expected_keys`](super::Builder::expected_keys)), and another filter would be smaller by 256 KiB or more, the
    /// store is scanned once more for that one, while the first one answers.
    fn len_hint(&self) -> Option<u64> {
        None
    }
}

/// A pointer to a store is a store.
macro_rules! forwarded {
    ($(#[$docs:meta])* $pointer:ident) => {
        $(#[$docs])*
        impl<S: Store> Store for $pointer<S> {
            type Error = S::Error;

            fn get(&self, key: &[u8]) -> Result<Option<Value>, S::Error> {
                (**self).get(key)
            }

            fn get_many(&self, keys: &[&[u8]]) -> Result<Vec<Option<Value>>, S::Error> {
                (**self).get_many(keys)
            }

            fn contains_key(&self, key: &[u8]) -> Result<bool, S::Error> {
                (**self).contains_key(key)
            }

            fn put(&self, key: &[u8], value: &[u8]) -> Result<bool, S::Error> {
                (**self).put(key, value)
            }

            fn delete(&self, key: &[u8]) -> Result<bool, S::Error> {
                (**self).delete(key)
            }

            fn write_many(&self, writes: &[Write<'_>]) -> Result<Vec<bool>, S::Error> {
                (**self).write_many(writes)
            }

            fn scan_keys(&self) -> Result<impl Iterator<Item = Scanned<S::Error>>, S::Error> {
                (**self).scan_keys()
            }

            fn generation(&self) -> Result<Generation, S::Error> {
                (**self).generation()
            }

            fn renew_generation(&self) -> Result<(), S::Error> {
                (**self).renew_generation()
            }

            fn len_hint(&self) -> Option<u64> {
                (**self).len_hint()
            }
        }
    };
}

forwarded! {
    /// A shared store is a store.
    Arc
}
forwarded! {
    /// A large store that is moved as a pointer. For a store that is chosen at run time, see [`DynStore`](super::DynStore).
    Box
}

/// A state in a store's history, written in the transaction that makes it. Two states are equal only if they are the
/// same one: a snapshot of the filter belongs to a store if and only if their generations are equal.
///
/// The count alone would not suffice: a store that is restored from a backup and written to again has the counts of the history
/// it has lost. So a lineage is drawn at random whenever a store is opened, and it is written with each count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Generation {
    /// Drawn at random when the store was opened for the writes that led here: [`Generation::new_lineage`]. A store in memory
    /// must have another lineage in the child of a fork: parent and child both count on from one state.
    pub lineage: u128,
    /// How many writes led here.
    pub count: u64,
}

impl Generation {
    /// Draws a new lineage: 128 random bits.
    #[must_use]
    pub fn new_lineage() -> u128 {
        // Never that of a store that has none.
        draw().max(1)
    }
}
