//! Snapshots of a guard's filter for which there is no memory: they are not written, or not used, and the guard serves without
//! them.

use std::io::ErrorKind;
use std::sync::Arc;

use koel::guard::{Error, Filter, Guarded, HashMapStore, SnapshotError, Store};

use crate::allocator::Plan;

const KEYS: u64 = 200_000;

fn is_for_memory(error: &SnapshotError) -> bool {
    matches!(error, SnapshotError::Io(error) if error.kind() == ErrorKind::OutOfMemory)
}

/// Only large requests are refused: a guard is made of some boxes without which the process ends.
#[test]
fn a_snapshot_that_there_is_no_memory_for_is_not_used() {
    let store = Arc::new(HashMapStore::new());
    (0..KEYS).for_each(|key| assert!(!store.put(&key.to_le_bytes(), b"").unwrap()));
    let folder = tempfile::tempdir().unwrap();
    for filter in [Filter::Cuckoo, Filter::Bloom] {
        let builder = || Guarded::builder(Arc::clone(&store)).filter(filter).cache_bytes(0);
        let file = folder.path().join(format!("{filter:?}"));
        let guarded = builder().open().unwrap();
        guarded.wait_until_ready().unwrap();
        guarded.snapshot(&file).unwrap();
        let half = std::fs::metadata(&file).unwrap().len() as usize / 2;
        let opened = (1..).find(|n| {
            let mut plan = Plan::of_large(*n, half);
            let guarded = plan.run(|| builder().snapshot(&file).open()).unwrap();
            let rejected = guarded.rejected_snapshot();
            if !plan.is_over() {
                assert!(rejected.is_none());
                return true;
            }
            assert!(rejected.is_some_and(is_for_memory), "{rejected:?}");
            guarded.wait_until_ready().unwrap();
            assert_eq!(guarded.stats().filter_keys, KEYS);
            false
        });
        assert!(opened > Some(2), "the file, and the filter: {opened:?}");
    }
}

#[test]
fn a_snapshot_that_there_is_no_memory_for_is_not_written() {
    let folder = tempfile::tempdir().unwrap();
    for filter in [Filter::Cuckoo, Filter::Bloom] {
        let builder = Guarded::builder(HashMapStore::new()).filter(filter).expected_keys(KEYS);
        let guarded = builder.open().unwrap();
        guarded.wait_until_ready().unwrap();
        let (file, half) = (folder.path().join(format!("{filter:?}")), guarded.stats().filter_bytes / 2);
        let written = (1..).find(|n| {
            let mut plan = Plan::of_large(*n, half);
            let result = plan.run(|| guarded.snapshot(&file));
            match &result {
                Ok(()) => assert!(!plan.is_over() && file.exists()),
                Err(Error::Snapshot(error)) => assert!(is_for_memory(error) && !file.exists(), "{error}"),
                Err(error) => panic!("{error}"),
            }
            result.is_ok()
        });
        assert!(written > Some(1), "the copy: {written:?}");
        // Nothing is locked.
        assert!(!guarded.put(b"late", b"").unwrap());
    }
}
