//! Somebody has written around the guard, and it is told: from then on it knows better.

use std::sync::Arc;

use koel::guard::{Error, Guarded, Phase, SnapshotError, Store};

use crate::common::{finds, key, ready};
use crate::scripted::{Act, Gate, Op, ScriptedStore, filled, sure};

const KNOWN: u64 = 100;
const AROUND: u64 = 20;

/// A guard that is ready, and does not know of its store's last keys.
fn unaware() -> (Arc<ScriptedStore>, Guarded<Arc<ScriptedStore>>) {
    let store = filled(KNOWN);
    let guarded = ready(Arc::clone(&store));
    (KNOWN..KNOWN + AROUND).for_each(|number| assert!(!sure(store.inner.put(&key(number), b""))));
    (store, guarded)
}

fn finds_all(guarded: &Guarded<Arc<ScriptedStore>>) -> bool {
    (0..KNOWN + AROUND).all(|number| finds(guarded, &key(number)))
}

/// The scan that was asked for is under way, or has failed: keys that were put before are found.
#[test]
fn a_filter_that_is_known_to_be_wrong_answers_nothing_more() {
    let (store, guarded) = unaware();
    let gate = Gate::new();
    store.next(Op::Scan, [Act::Stall(gate.clone()), Act::Fail]);
    guarded.rebuild().unwrap();
    let scanning = gate.wait();
    assert!(finds_all(&guarded));
    scanning.open();
    guarded.wait_until_ready().unwrap_err();
    assert_eq!(guarded.progress().phase, Phase::Unfiltered);
    assert!(finds_all(&guarded));
}

#[test]
fn a_filter_that_is_known_to_be_wrong_goes_into_no_snapshot() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("filter");
    let (store, guarded) = unaware();
    let gate = Gate::new();
    store.next(Op::Scan, [Act::Stall(gate.clone()), Act::Fail]);
    guarded.rebuild().unwrap();
    let has_none = |guarded: &Guarded<_>| {
        let error = guarded.snapshot(&file).unwrap_err();
        assert!(matches!(error, Error::Snapshot(SnapshotError::NoFilter)), "{error}");
    };
    let scanning = gate.wait();
    has_none(&guarded);
    scanning.open();
    guarded.wait_until_ready().unwrap_err();
    has_none(&guarded);
    guarded.rebuild().unwrap();
    guarded.wait_until_ready().unwrap();
    guarded.snapshot(&file).unwrap();
    drop(guarded);
    let guarded = Guarded::builder(store).snapshot(&file).open().unwrap();
    assert!(guarded.rejected_snapshot().is_none() && finds_all(&guarded));
}

#[test]
fn a_scan_that_was_asked_for_and_has_failed_is_tried_again_after_some_writes() {
    for act in [Act::Fail, Act::Panic] {
        let (store, guarded) = unaware();
        store.next(Op::Scan, [act]);
        guarded.rebuild().unwrap();
        guarded.wait_until_ready().unwrap_err();
        (0..4096).for_each(|_| assert!(guarded.put(&key(0), b"").unwrap()));
        guarded.wait_until_ready().unwrap();
        assert_eq!((guarded.progress().phase, guarded.stats().filter_keys), (Phase::Ready, KNOWN + AROUND));
        assert!(finds_all(&guarded));
    }
}

/// The filter that was taken away was made for more keys than the store says that it has.
#[test]
fn a_filter_in_place_of_one_that_was_wrong_has_room_for_as_many_keys() {
    let store = filled(10_000);
    store.hides_its_length();
    let guarded = Guarded::builder(Arc::clone(&store)).expected_keys(10_000).open().unwrap();
    guarded.wait_until_ready().unwrap();
    (10_000..13_000).for_each(|number| assert!(!guarded.put(&key(number), b"").unwrap()));
    guarded.rebuild().unwrap();
    guarded.wait_until_ready().unwrap();
    assert_eq!((guarded.progress().expected, store.scans()), (13_000, 2));
}
