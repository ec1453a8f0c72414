//! Somebody has written around the guard, and it is told, or finds out: from then on it is right again.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use koel::guard::{DynStore, Error, Filter, FjallStore, Guarded, Phase, RedbStore, SnapshotError, Store};
use koel::redb::TableDefinition;

use crate::common::{finds, key, ready};
use crate::scripted::{Act, Gate, Op, ScriptedStore, filled, sure};

const KNOWN: u64 = 100;
const AROUND: u64 = 20;

/// A guard that is ready, and does not know of its store's last keys.
fn unaware() -> (Arc<ScriptedStore>, Guarded<Arc<ScriptedStore>>) {
    unaware_with(Filter::Cuckoo)
}

fn unaware_with(filter: Filter) -> (Arc<ScriptedStore>, Guarded<Arc<ScriptedStore>>) {
    let store = filled(KNOWN);
    let guarded = Guarded::builder(Arc::clone(&store)).filter(filter).open().unwrap();
    guarded.wait_until_ready().unwrap();
    (KNOWN..KNOWN + AROUND).for_each(|number| assert!(!sure(store.inner.put(&key(number), b""))));
    (store, guarded)
}

fn finds_all(guarded: &Guarded<Arc<ScriptedStore>>) -> bool {
    (0..KNOWN + AROUND).all(|number| finds(guarded, &key(number)))
}

/// The requested scan is under way, or has failed: keys that were put before are found.
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

/// The discarded filter was made for more keys than the store reports.
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

/// It was put through the guard as well: the writer finds it.
#[test]
fn a_put_of_a_key_that_the_filter_does_not_know_shows_that_it_is_wrong() {
    let all = |filter| (KNOWN..KNOWN + AROUND).map(move |number| (filter, number));
    for (filter, number) in all(Filter::Cuckoo).chain(all(Filter::Bloom)) {
        let (_, guarded) = unaware_with(filter);
        let denied = !finds(&guarded, &key(number));
        assert!(guarded.put(&key(number), b"2").unwrap(), "it was there");
        assert_eq!(guarded.get(&key(number)).unwrap().as_deref(), Some(&b"2"[..]));
        assert!(!denied || finds_all(&guarded));
        guarded.wait_until_ready().unwrap();
        assert!(!denied || finds_all(&guarded) && guarded.stats().filter_keys == KNOWN + AROUND);
    }
}

#[test]
fn a_delete_of_a_key_that_the_filter_does_not_know_shows_that_it_is_wrong() {
    let all = |filter| (KNOWN..KNOWN + AROUND).map(move |number| (filter, number));
    for (filter, number) in all(Filter::Cuckoo).chain(all(Filter::Bloom)) {
        let (store, guarded) = unaware_with(filter);
        let denied = !finds(&guarded, &key(number));
        assert!(guarded.delete(&key(number)).unwrap(), "it was there");
        guarded.wait_until_ready().unwrap();
        assert!(!denied || guarded.stats().filter_keys == KNOWN + AROUND - 1);
        assert_eq!(store.scans() > 1, denied);
    }
}

#[test]
fn writes_of_keys_that_the_filter_knows_leave_it_alone() {
    for filter in [Filter::Cuckoo, Filter::Bloom] {
        let store = filled(2000);
        let guarded = Guarded::builder(Arc::clone(&store)).filter(filter).open().unwrap();
        guarded.wait_until_ready().unwrap();
        (0..2000).for_each(|number| assert!(guarded.put(&key(number), b"2").unwrap()));
        (0..200).for_each(|number| assert!(guarded.delete(&key(number)).unwrap()));
        guarded.wait_until_ready().unwrap();
        assert_eq!((store.scans(), guarded.stats().filter_keys), (1, 1800));
    }
}

/// They were put after the scan had begun, which does not find them: that is noticed when it is over.
#[test]
fn a_delete_during_a_scan_of_a_key_that_it_does_not_bring_shows_that_the_filter_is_wrong() {
    let (store, gate) = (filled(KNOWN), Gate::new());
    store.next(Op::Scan, [Act::Stall(gate.clone())]);
    let guarded = Guarded::open(Arc::clone(&store)).unwrap();
    let scanning = gate.wait();
    (KNOWN..KNOWN + AROUND).for_each(|number| assert!(!sure(store.inner.put(&key(number), b""))));
    // One key may be taken for another.
    (0..3).for_each(|number| assert!(guarded.delete(&key(KNOWN + number)).unwrap()));
    scanning.open();
    guarded.wait_until_ready().unwrap();
    assert!((0..KNOWN).chain(KNOWN + 3..KNOWN + AROUND).all(|number| finds(&guarded, &key(number))));
    assert_eq!((guarded.stats().filter_keys, store.scans()), (KNOWN + AROUND - 3, 2));
}

/// As above.
#[test]
fn a_put_during_a_scan_of_a_key_that_it_does_not_bring_shows_that_the_filter_is_wrong() {
    for filter in [Filter::Cuckoo, Filter::Bloom] {
        let (store, gate) = (filled(KNOWN), Gate::new());
        store.next(Op::Scan, [Act::Stall(gate.clone())]);
        let guarded = Guarded::builder(Arc::clone(&store)).filter(filter).open().unwrap();
        let scanning = gate.wait();
        (KNOWN..KNOWN + AROUND).for_each(|number| assert!(!sure(store.inner.put(&key(number), b""))));
        // One key may be taken for another; and keys that the scan does find may be put as often as one likes.
        (KNOWN..KNOWN + 3).chain(0..10).for_each(|number| assert!(guarded.put(&key(number), b"").unwrap()));
        scanning.open();
        guarded.wait_until_ready().unwrap();
        assert!(finds_all(&guarded));
        assert_eq!((guarded.stats().filter_keys, store.scans()), (KNOWN + AROUND, 2));
    }
}

#[test]
fn writes_during_a_scan_of_keys_that_it_brings_leave_its_filter_alone() {
    for filter in [Filter::Cuckoo, Filter::Bloom] {
        let (store, gate) = (filled(KNOWN), Gate::new());
        store.next(Op::Scan, [Act::Stall(gate.clone())]);
        let guarded = Guarded::builder(Arc::clone(&store)).filter(filter).open().unwrap();
        let scanning = gate.wait();
        let put = |number: u64| guarded.put(&key(number), b"").unwrap();
        let delete = |number: u64| guarded.delete(&key(number)).unwrap();
        assert!((0..30).all(put) && (0..10).all(delete) && !(0..5).any(put) && (0..5).all(put));
        assert!(!(KNOWN..KNOWN + 10).any(put) && (KNOWN..KNOWN + 10).all(put));
        assert!((KNOWN..KNOWN + 10).all(delete));
        scanning.open();
        guarded.wait_until_ready().unwrap();
        assert_eq!((guarded.stats().filter_keys, store.scans()), (KNOWN - 5, 1));
        assert!((0..5).chain(10..KNOWN).all(|number| finds(&guarded, &key(number))));
    }
}

/// The scan finds each key once, and each was deleted twice: somebody has put it back in between.
#[test]
fn two_deletes_during_a_scan_of_a_key_that_it_brings_once_show_that_the_filter_is_wrong() {
    let (store, gate) = (filled(KNOWN), Gate::new());
    store.next(Op::Scan, [Act::Stall(gate.clone())]);
    let guarded = Guarded::open(Arc::clone(&store)).unwrap();
    let scanning = gate.wait();
    for number in 0..3 {
        assert!(guarded.delete(&key(number)).unwrap());
        assert!(!sure(store.inner.put(&key(number), b"")));
        assert!(guarded.delete(&key(number)).unwrap());
    }
    scanning.open();
    guarded.wait_until_ready().unwrap();
    assert!((3..KNOWN).all(|number| finds(&guarded, &key(number))));
    assert_eq!((guarded.stats().filter_keys, store.scans()), (KNOWN - 3, 2));
}

/// The store has deleted it when the scan is over, and the guard learns of that before the filter is published.
#[test]
fn a_delete_that_outlasts_a_scan_of_a_key_that_it_did_not_bring_shows_that_the_filter_is_wrong() {
    let (store, scan, delete) = (filled(KNOWN), Gate::new(), Gate::new());
    store.next(Op::Scan, [Act::Stall(scan.clone())]);
    // With fingerprints so wide that the key is not taken for another.
    let guarded = Guarded::builder(Arc::clone(&store)).false_positive_rate(4e-9).open().unwrap();
    let scanning = scan.wait();
    (KNOWN..KNOWN + AROUND).for_each(|number| assert!(!sure(store.inner.put(&key(number), b""))));
    std::thread::scope(|scope| {
        store.next(Op::Delete, [Act::DoAndStall(delete.clone())]);
        let deleting = scope.spawn(|| guarded.delete(&key(KNOWN)).unwrap());
        let at_delete = delete.wait();
        scanning.open();
        while guarded.progress().scanned < KNOWN {
            std::thread::yield_now();
        }
        // Long enough for the deleted keys to be removed; were it not, the test would fail as well.
        std::thread::sleep(std::time::Duration::from_millis(50));
        at_delete.open();
        assert!(deleting.join().unwrap(), "it was there");
    });
    guarded.wait_until_ready().unwrap();
    assert!((0..KNOWN).chain(KNOWN + 1..KNOWN + AROUND).all(|number| finds(&guarded, &key(number))));
    assert_eq!((guarded.stats().filter_keys, store.scans()), (KNOWN + AROUND - 1, 2));
}

/// Such a store scans in the order of its keys: appended keys come after as many keys as the filter has.
#[test]
fn verify_sees_keys_that_come_after_all_that_the_filter_knows() {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(RedbStore::open(folder.path().join("db")).unwrap());
    let pairs = |numbers: std::ops::Range<u32>| numbers.map(|number| (number.to_be_bytes(), b""));
    store.load(pairs(0..10_000)).unwrap();
    let guarded = ready(Arc::clone(&store));
    store.load(pairs(10_000..11_000)).unwrap();
    let verification = guarded.verify(1000).unwrap();
    assert!((1000..1200).contains(&verification.checked), "{verification:?}");
    assert!(verification.false_negatives > 50, "{verification:?}");
}

/// fjall also counts replaced keys.
#[test]
fn verify_samples_enough_keys_of_a_store_that_takes_itself_for_larger() {
    let folder = tempfile::tempdir().unwrap();
    let store = FjallStore::open(folder.path()).unwrap().durable(false);
    for number in (0..50).flat_map(|_| 0..100) {
        store.put(&key(number), b"").unwrap();
    }
    assert!(store.len_hint() > Some(1000));
    let verification = ready(store).verify(100).unwrap();
    assert_eq!((verification.checked, verification.false_negatives), (100, 0));
}

/// Each call checks one key in twenty, different ones each time.
#[test]
fn verify_comes_to_every_key_if_it_is_asked_often() {
    for _ in 0..5 {
        let store = Arc::new(ScriptedStore::default());
        (0..2000).for_each(|number| assert!(!sure(store.inner.put(&key(number), b""))));
        let guarded = ready(Arc::clone(&store));
        assert!(!sure(store.inner.put(&key(2000), b"")));
        let found = (0..2000).find(|_| guarded.verify(100).unwrap().false_negatives > 0);
        assert!(found.is_some());
    }
}

/// It asks for no more keys than would be wrong if all samples were, even if it is not known how many keys there are.
#[test]
fn verify_of_a_store_that_hides_its_length_ends_when_it_has_seen_enough() {
    let store = Arc::new(ScriptedStore::default());
    store.hides_its_length();
    let guarded = ready(Arc::clone(&store));
    (0..10_000).for_each(|number| assert!(!sure(store.inner.put(&key(number), b""))));
    let verification = guarded.verify(100).unwrap();
    assert_eq!((verification.checked, verification.false_negatives), (100, 100));
}

#[test]
fn verify_fails_when_the_scan_does_at_whichever_key() {
    let guarded = ready(filled(40));
    for at in 0..40 {
        guarded.store().next(Op::Scan, (0..at).map(|_| Act::Do).chain([Act::Fail]));
        assert!(matches!(guarded.verify(4), Err(Error::Store(_))), "{at}");
    }
}

/// The store fails after some of these keys have been checked, or before.
#[test]
fn a_filter_that_verify_has_found_wrong_is_built_anew_though_the_store_fails() {
    let keys = (KNOWN + AROUND) as usize;
    let scan_fails = (Op::Scan, keys - 1);
    for (op, well) in [(Op::Get, 1), scan_fails] {
        let (store, guarded) = unaware();
        assert!(!finds_all(&guarded));
        store.next(op, std::iter::repeat_n(Act::Do, well).chain([Act::Fail]));
        assert!(matches!(guarded.verify(usize::MAX), Err(Error::Store(_))));
        assert!(finds_all(&guarded), "{op:?}");
        guarded.wait_until_ready().unwrap();
        assert!(finds_all(&guarded) && guarded.stats().filter_keys == KNOWN + AROUND);
    }
}

/// A store with a snapshot that was written after somebody had written around the guard: it fits, and is wrong.
fn snapshot_that_lacks_a_key<S: Store>(file: &Path, store: S, write_around: impl FnOnce(&S)) -> Guarded<S> {
    let guarded = ready(store);
    write_around(guarded.store());
    guarded.snapshot(file).unwrap();
    let guarded = Guarded::builder(guarded.into_store()).snapshot(file).open().unwrap();
    assert!(guarded.rejected_snapshot().is_none());
    assert!(!finds(&guarded, b"ada"), "it says that the key is absent");
    guarded
}

/// Neither if the guard is told of such a write, nor if it finds it.
fn does_not_fit_after_a_repair<S: Store>(open: impl Fn() -> S, write_around: impl Fn(&S)) {
    let repairs: [fn(&Guarded<S>); 2] = [
        |guarded| guarded.rebuild().unwrap(),
        |guarded| assert_eq!(guarded.verify(usize::MAX).unwrap().false_negatives, 1),
    ];
    for repair in repairs {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("filter");
        let guarded = snapshot_that_lacks_a_key(&file, open(), &write_around);
        repair(&guarded);
        guarded.wait_until_ready().unwrap();
        assert!(finds(&guarded, b"ada"));
        let guarded = Guarded::builder(guarded.into_store()).snapshot(&file).open().unwrap();
        assert!(matches!(guarded.rejected_snapshot(), Some(SnapshotError::OtherGeneration)));
        guarded.wait_until_ready().unwrap();
        assert!(finds(&guarded, b"ada"));
    }
}

#[test]
fn a_snapshot_from_before_a_repair_fits_no_more() {
    let folder = tempfile::tempdir().unwrap();
    let number = AtomicU32::new(0);
    let file = || folder.path().join(number.fetch_add(1, Ordering::Relaxed).to_string());
    let write_to_redb = |store: &RedbStore| {
        let data = TableDefinition::<&[u8], &[u8]>::new("koel.data");
        let transaction = store.database().begin_write().unwrap();
        transaction.open_table(data).unwrap().insert(&b"ada"[..], &b"1815"[..]).unwrap();
        transaction.commit().unwrap();
    };
    does_not_fit_after_a_repair(|| RedbStore::open(file()).unwrap(), write_to_redb);
    does_not_fit_after_a_repair(
        || FjallStore::open(file()).unwrap(),
        |store| store.keyspace().insert("ada", "1815").unwrap(),
    );
    // A pointer to a store forwards the call.
    let shared = Arc::new(RedbStore::open(file()).unwrap());
    let redb = Arc::clone(&shared);
    does_not_fit_after_a_repair(
        || {
            redb.delete(b"ada").unwrap();
            DynStore::new(Arc::clone(&redb))
        },
        |_| write_to_redb(&redb),
    );
}

/// A store that cannot move on to another generation is not scanned either; the next attempt asks it again.
#[test]
fn a_store_moves_on_to_another_generation_once_for_each_repair() {
    let (store, guarded) = unaware();
    store.next(Op::Renewal, [Act::Fail]);
    guarded.rebuild().unwrap();
    assert!(matches!(guarded.wait_until_ready(), Err(Error::Store(_))));
    assert_eq!((store.renewals(), store.scans()), (0, 1));
    // As many writes as are needed.
    while guarded.progress().phase != Phase::Ready {
        guarded.put(&key(0), b"").unwrap();
    }
    guarded.wait_until_ready().unwrap();
    assert!(finds_all(&guarded) && store.renewals() == 1);
    guarded.rebuild().unwrap();
    guarded.wait_until_ready().unwrap();
    assert_eq!(store.renewals(), 2);
}
