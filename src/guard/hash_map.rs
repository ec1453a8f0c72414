//! [`HashMapStore`]: a store in memory, for tests.

use core::convert::Infallible;
use core::panic::{RefUnwindSafe, UnwindSafe};
use std::collections::HashMap;
use std::sync::Arc;

use super::store::{Generation, Scanned, Store, Value, Write};
use crate::sync::{AtomicU64, Mutex, MutexGuard, Ordering, SCHEDULED};

/// Number of shards: threads of a stress test should not queue up.
const SHARDS: usize = if SCHEDULED { 2 } else { 64 };

type Shard = HashMap<Box<[u8]>, Value, ahash::RandomState>;

/// A store in memory, for tests: nothing is kept when it is dropped. Share it by [`Arc`] to look behind the guard.
///
/// ```
/// use std::sync::Arc;
///
/// use koel::guard::{Guarded, HashMapStore, Store};
///
/// let store = Arc::new(HashMapStore::new());
/// let guarded = Guarded::open(Arc::clone(&store))?;
/// guarded.put(b"ada", b"1815")?;
/// assert_eq!(store.len_hint(), Some(1));
/// # Ok::<(), koel::guard::Error<std::convert::Infallible>>(())
/// ```
pub struct HashMapStore {
    shards: Vec<Mutex<Shard>>,
    picker: ahash::RandomState,
    lineage: u128,
    writes: AtomicU64,
}

/// No user code runs in it. (Its locks are never poisoned, and so do not implement this themselves.)
impl RefUnwindSafe for HashMapStore {}
/// As above.
impl UnwindSafe for HashMapStore {}

impl HashMapStore {
    /// Creates an empty store.
    #[must_use]
    pub fn new() -> Self {
        HashMapStore {
            shards: (0..SHARDS).map(|_| Mutex::new(Shard::default())).collect(),
            picker: ahash::RandomState::new(),
            lineage: Generation::new_lineage(),
            writes: AtomicU64::new(0),
        }
    }

    fn shard_of(&self, key: &[u8]) -> usize {
        self.picker.hash_one(key) as usize % SHARDS
    }

    fn shard(&self, key: &[u8]) -> MutexGuard<'_, Shard> {
        self.shards[self.shard_of(key)].lock()
    }

    /// Counts a write, under its shard's lock: a thread that sees the write sees the count.
    fn count(&self) {
        // Relaxed: the shards' locks order it for a thread that holds them all.
        self.writes.fetch_add(1, Ordering::Relaxed);
    }

    fn all(&self) -> Vec<MutexGuard<'_, Shard>> {
        self.shards.iter().map(|shard| shard.lock()).collect()
    }
}

/// A store's lineage in a process: the child of a fork continues from its parent's state with other writes.
fn lineage_in(process: u32, own: u128) -> u128 {
    own ^ u128::from(process)
}

impl Default for HashMapStore {
    fn default() -> Self {
        HashMapStore::new()
    }
}

impl core::fmt::Debug for HashMapStore {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("HashMapStore").field("len", &self.len_hint()).finish_non_exhaustive()
    }
}

impl Store for HashMapStore {
    type Error = Infallible;

    fn get(&self, key: &[u8]) -> Result<Option<Value>, Infallible> {
        Ok(self.shard(key).get(key).map(Arc::clone))
    }

    fn contains_key(&self, key: &[u8]) -> Result<bool, Infallible> {
        Ok(self.shard(key).contains_key(key))
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<bool, Infallible> {
        let mut shard = self.shard(key);
        self.count();
        Ok(shard.insert(key.into(), value.into()).is_some())
    }

    fn delete(&self, key: &[u8]) -> Result<bool, Infallible> {
        let mut shard = self.shard(key);
        self.count();
        Ok(shard.remove(key).is_some())
    }

    fn write_many(&self, writes: &[Write<'_>]) -> Result<Vec<bool>, Infallible> {
        let mut shards = self.all();
        let each = writes.iter().map(|write| {
            self.count();
            let shard = &mut shards[self.shard_of(write.key())];
            match *write {
                Write::Put(key, value) => shard.insert(key.into(), value.into()).is_some(),
                Write::Delete(key) => shard.remove(key).is_some(),
            }
        });
        Ok(each.collect())
    }

    fn scan_keys(&self) -> Result<impl Iterator<Item = Scanned<Infallible>>, Infallible> {
        let keys: Vec<_> = self.all().iter().flat_map(|shard| shard.keys().cloned()).collect();
        Ok(keys.into_iter().map(Ok))
    }

    fn generation(&self) -> Result<Generation, Infallible> {
        let _all = self.all();
        let lineage = lineage_in(std::process::id(), self.lineage);
        Ok(Generation { lineage, count: self.writes.load(Ordering::Relaxed) })
    }

    fn renew_generation(&self) -> Result<(), Infallible> {
        let _all = self.all();
        self.count();
        Ok(())
    }

    fn len_hint(&self) -> Option<u64> {
        Some(self.shards.iter().map(|shard| shard.lock().len() as u64).sum())
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn a_child_of_a_fork_has_a_lineage_of_its_own() {
        let store = HashMapStore::new();
        let told = store.generation().expect("it never fails").lineage;
        assert_eq!(told, lineage_in(std::process::id(), store.lineage));
        assert_ne!(told, lineage_in(std::process::id() + 1, store.lineage));
    }
}
