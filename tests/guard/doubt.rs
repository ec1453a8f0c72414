//! A delete that finds nothing is as durable as any other write, even if the previous write has failed, or has not reached the
//! disk: then the database as it is seen need not be the database as it is opened again.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use koel::guard::{FjallStore, Guarded, RedbStore, Store, Write};
use koel::redb::{Builder, Database, StorageBackend};

/// A disk, which keeps what was written before its last sync, and fails on request.
#[derive(Clone, Debug, Default)]
struct Disk(Arc<Platter>);

#[derive(Debug, Default)]
struct Platter {
    written: Mutex<Vec<u8>>,
    synced: Mutex<Vec<u8>>,
    /// How many syncs are left until one fails; 0: none will.
    fails_at: AtomicU32,
    /// Whether the sync that fails has done its work all the same.
    is_done: AtomicBool,
}

impl Disk {
    /// The disk as it is after a power failure.
    fn after_a_power_failure(&self) -> Disk {
        let synced = self.0.synced.lock().unwrap().clone();
        let platter = Platter { written: synced.clone().into(), synced: synced.into(), ..Platter::default() };
        Disk(Arc::new(platter))
    }

    fn database(&self) -> Database {
        Builder::new().create_with_backend(self.clone()).unwrap()
    }

    fn store(&self) -> RedbStore {
        RedbStore::with_database(self.database()).unwrap()
    }
}

impl StorageBackend for Disk {
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.written.lock().unwrap().len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let from = offset as usize;
        out.copy_from_slice(&self.0.written.lock().unwrap()[from..from + out.len()]);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.written.lock().unwrap().resize(len as usize, 0);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let left = self.0.fails_at.load(Ordering::Relaxed);
        self.0.fails_at.store(left.saturating_sub(1), Ordering::Relaxed);
        if left != 1 || self.0.is_done.load(Ordering::Relaxed) {
            self.0.synced.lock().unwrap().clone_from(&self.0.written.lock().unwrap());
        }
        if left == 1 { Err(io::Error::other("as planned")) } else { Ok(()) }
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let from = offset as usize;
        self.0.written.lock().unwrap()[from..from + data.len()].copy_from_slice(data);
        Ok(())
    }
}

/// Deletes a key; returns whether the delete was reported as done.
type Delete = fn(&Guarded<RedbStore>) -> bool;

/// By itself, and in a batch.
const DELETES: [Delete; 2] = [
    |guarded| guarded.delete(b"ada").is_ok(),
    |guarded| guarded.write_many(&[Write::Delete(b"ada"), Write::Delete(b"bob")]).is_ok(),
];

#[test]
fn what_was_deleted_after_a_put_that_failed_does_not_come_back() {
    let mut failed = 0;
    for (at, is_done, delete) in (1..4).flat_map(|at| {
        [false, true].into_iter().flat_map(move |is_done| DELETES.map(|delete| (at, is_done, delete)))
    }) {
        let disk = Disk::default();
        let guarded = Guarded::open(disk.store()).unwrap();
        guarded.wait_until_ready().unwrap();
        guarded.put(b"grace", b"1906").unwrap();
        disk.0.is_done.store(is_done, Ordering::Relaxed);
        disk.0.fails_at.store(at, Ordering::Relaxed);
        failed += u32::from(guarded.put(b"ada", b"1815").is_err());
        disk.0.fails_at.store(0, Ordering::Relaxed);
        let is_deleted = delete(&guarded);
        let again = disk.after_a_power_failure().store();
        assert!(again.contains_key(b"grace").unwrap());
        assert!(!is_deleted || !again.contains_key(b"ada").unwrap(), "sync {at}, done: {is_done}");
    }
    assert!(failed >= 4, "{failed} puts failed");
}

#[test]
fn what_was_deleted_durably_does_not_come_back_though_it_was_gone_already() {
    for delete in DELETES {
        let disk = Disk::default();
        let store = disk.store();
        assert!(!store.put(b"ada", b"1815").unwrap());
        let store = store.durable(false);
        assert!(store.delete(b"ada").unwrap());
        assert!(disk.after_a_power_failure().store().contains_key(b"ada").unwrap(), "not durable");
        let guarded = Guarded::open(store.durable(true)).unwrap();
        assert!(delete(&guarded));
        assert!(!disk.after_a_power_failure().store().contains_key(b"ada").unwrap());
    }
}

/// A delete that changes nothing makes a generation if and only if the state is in doubt.
fn doubts<S: Store>(store: S, durable: fn(S, bool) -> S) {
    let makes_one = |store: &S| {
        let before = store.generation().unwrap();
        assert!(!store.delete(b"nobody").unwrap());
        store.generation().unwrap() != before
    };
    let mut store = store;
    for yes in [true, false, true] {
        store = durable(store, yes);
        // Nothing has been written since its durability has changed.
        assert!(makes_one(&store) && !makes_one(&store));
        store.put(b"somebody", b"").unwrap();
        assert!(!makes_one(&store));
    }
}

#[test]
fn a_delete_of_a_key_that_is_not_there_is_spared_where_nothing_is_in_doubt() {
    let folder = tempfile::tempdir().unwrap();
    let redb = RedbStore::open(folder.path().join("redb")).unwrap();
    doubts(redb, RedbStore::durable);
    doubts(FjallStore::open(folder.path().join("fjall")).unwrap(), FjallStore::durable);
}
