//! How large a filter is made, and when it is made smaller.

use std::sync::Arc;

use koel::guard::{Builder, Filter, FjallStore, Guarded, Phase, Store, Write};

use crate::common::{finds, key, ready};
use crate::scripted::{Act, Gate, Op, ScriptedStore, filled};

const KEYS: u64 = 10_000;

fn opened(builder: Builder<Arc<ScriptedStore>>) -> Guarded<Arc<ScriptedStore>> {
    let guarded = builder.open().unwrap();
    guarded.wait_until_ready().unwrap();
    guarded
}

/// A guard before a store that reports this many more keys than it has.
fn exaggerated(filter: Filter, keys: u64) -> (Arc<ScriptedStore>, Guarded<Arc<ScriptedStore>>) {
    let store = filled(KEYS);
    store.exaggerates_by(keys);
    let guarded = opened(Guarded::builder(Arc::clone(&store)).filter(filter));
    (store, guarded)
}

#[test]
fn a_filter_for_far_more_keys_than_there_are_is_made_smaller_by_one_more_scan() {
    for filter in [Filter::Cuckoo, Filter::Bloom] {
        let right = opened(Guarded::builder(filled(KEYS)).filter(filter)).stats().filter_bytes;
        let (store, guarded) = exaggerated(filter, 1_000_000);
        let stats = guarded.stats();
        assert_eq!((store.scans(), stats.filter_keys, stats.filter_bytes), (2, KEYS, right), "{filter:?}");
        assert!((0..KEYS).all(|number| finds(&guarded, &key(number))));
        assert!((KEYS..2 * KEYS).filter(|number| store_was_asked(&store, &guarded, *number)).count() < 500);
        // It stays, whatever is written.
        (0..10_000).for_each(|number| assert!(guarded.put(&key(number % KEYS), b"").unwrap()));
        guarded.wait_until_ready().unwrap();
        assert_eq!(store.scans(), 2, "{filter:?}");
        // The store is asked again if there is no filter that has all keys.
        guarded.rebuild().unwrap();
        guarded.wait_until_ready().unwrap();
        assert_eq!((store.scans(), guarded.stats().filter_bytes), (4, right), "{filter:?}");
    }
}

fn store_was_asked(store: &ScriptedStore, guarded: &Guarded<Arc<ScriptedStore>>, number: u64) -> bool {
    let before = store.reads();
    assert!(!finds(guarded, &key(number)));
    store.reads() > before
}

/// Room for a quarter more than are expected, times four: half a million keys.
#[test]
fn a_filter_that_is_too_large_by_little_or_of_few_bytes_stays() {
    for filter in [Filter::Cuckoo, Filter::Bloom] {
        for (keys, scans) in [(340_000, 1), (420_000, 2)] {
            let store = filled(KEYS);
            store.exaggerates_by(keys);
            let builder = Guarded::builder(Arc::clone(&store)).filter(filter).expected_keys(100_000);
            let guarded = opened(builder);
            assert_eq!(store.scans(), scans, "{filter:?}: {}", guarded.stats());
        }
    }
    // Far too large, and not worth a scan.
    let (store, guarded) = exaggerated(Filter::Cuckoo, 170_000);
    assert!(store.scans() == 1 && guarded.stats().filter_bytes > 300_000, "{}", guarded.stats());
}

#[test]
fn a_filter_that_is_too_large_answers_while_a_smaller_one_is_made() {
    let (store, gate) = (filled(KEYS), Gate::new());
    store.exaggerates_by(1_000_000);
    store.next(Op::Scan, (0..KEYS).map(|_| Act::Do).chain([Act::Stall(gate.clone())]));
    let guarded = Guarded::open(Arc::clone(&store)).unwrap();
    let scanning = gate.wait();
    let progress = guarded.progress();
    assert_eq!((progress.phase, progress.expected), (Phase::Rebuilding, KEYS));
    let large = guarded.stats();
    assert!(large.filter_bytes > 1_000_000 && large.filter_keys == KEYS, "{large}");
    assert!((KEYS..2 * KEYS).filter(|number| store_was_asked(&store, &guarded, *number)).count() < 100);
    // Keys that are written meanwhile are in the smaller one.
    (0..KEYS / 2).for_each(|number| assert!(guarded.delete(&key(number)).unwrap()));
    (KEYS..KEYS + 100).for_each(|number| assert!(!guarded.put(&key(number), b"").unwrap()));
    scanning.open();
    guarded.wait_until_ready().unwrap();
    let small = guarded.stats();
    assert!(small.filter_bytes < 30_000 && small.filter_keys == KEYS / 2 + 100, "{small}");
    assert_eq!(guarded.verify(usize::MAX).unwrap().false_negatives, 0);
}

/// The keys of one stripe have no room, scan after scan: it is unknown whether the filter has all keys.
#[test]
fn a_filter_that_is_crowded_and_too_large_is_scanned_for_once_more_and_not_again() {
    let (store, gate) = (filled(KEYS), Gate::new());
    store.exaggerates_by(1_000_000);
    store.next(Op::Scan, (1..KEYS).map(|_| Act::Do).chain([Act::Stall(gate.clone())]));
    let guarded = Guarded::open(Arc::clone(&store)).unwrap();
    let scanning = gate.wait();
    // Each put leaves a fingerprint in the filter that is being built, until there are as many as a key may have.
    for number in 0..10 {
        store.next(Op::Put, vec![Act::Fail; 10]);
        (0..10).for_each(|_| assert!(guarded.put(&key(number), b"").is_err()));
    }
    scanning.open();
    guarded.wait_until_ready().unwrap();
    assert_eq!((store.scans(), guarded.stats().filter_keys), (2, KEYS));
    assert!(guarded.stats().filter_bytes < 30_000, "{}", guarded.stats());
}

/// The larger filter stays, as it serves, if the next scan fails.
#[test]
fn a_filter_that_is_too_large_stays_if_the_scan_for_a_smaller_one_fails() {
    let store = filled(KEYS);
    store.exaggerates_by(1_000_000);
    store.next(Op::Scan, (0..KEYS).map(|_| Act::Do).chain([Act::Fail]));
    let guarded = Guarded::open(Arc::clone(&store)).unwrap();
    guarded.wait_until_ready().unwrap_err();
    let stats = guarded.stats();
    assert_eq!((guarded.progress().phase, stats.filter_keys, store.scans()), (Phase::Ready, KEYS, 2));
    assert!(stats.filter_bytes > 1_000_000);
}

/// fjall also counts deleted keys.
#[test]
fn a_filter_before_fjall_is_made_for_the_keys_that_are_left() {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(FjallStore::open(folder.path()).unwrap().durable(false));
    store.load((0..300_000).map(|number| (key(number), b""))).unwrap();
    let gone: Vec<Vec<u8>> = (KEYS..300_000).map(key).collect();
    let deletes: Vec<Write<'_>> = gone.iter().map(|key| Write::Delete(key)).collect();
    assert!(store.write_many(&deletes).unwrap().iter().all(|existed| *existed));
    assert!(store.len_hint() > Some(290_000), "{:?}", store.len_hint());
    let guarded = ready(Arc::clone(&store));
    let stats = guarded.stats();
    assert!(stats.filter_keys == KEYS && stats.filter_bytes < 30_000, "{stats}");
}

/// At this rate fingerprints have 28 bits: a filter for this many keys is worth a scan.
const LOW_RATE: f64 = 1e-7;
const MANY: u64 = 99_000;

/// A guard before a store with many keys, at a low rate.
fn with_many() -> (Arc<ScriptedStore>, Guarded<Arc<ScriptedStore>>) {
    let store = filled(MANY);
    let guarded = opened(Guarded::builder(Arc::clone(&store)).false_positive_rate(LOW_RATE));
    (store, guarded)
}

fn delete(guarded: &Guarded<Arc<ScriptedStore>>, numbers: core::ops::Range<u64>) {
    numbers.for_each(|number| assert!(guarded.delete(&key(number)).unwrap()));
    guarded.wait_until_ready().unwrap();
}

/// Deletes keys from this one on until that begins a scan, and no more: keys that are deleted during a scan may make the next
/// filter sparse as well. Returns the first that is left.
fn delete_until_a_scan((store, guarded): (&ScriptedStore, &Guarded<Arc<ScriptedStore>>), first: u64) -> u64 {
    let before = store.scans();
    let begins = |number: &u64| {
        assert!(guarded.delete(&key(*number)).unwrap());
        // Unless it is over by now.
        guarded.progress().phase == Phase::Rebuilding || store.scans() > before
    };
    let last = (first..MANY).find(begins).expect("a scan");
    guarded.wait_until_ready().unwrap();
    last + 1
}

#[test]
fn a_cuckoo_filter_becomes_small_again_when_most_keys_were_deleted() {
    let (store, guarded) = with_many();
    let large = guarded.stats().filter_bytes;
    delete(&guarded, 0..MANY / 2);
    assert_eq!((store.scans(), guarded.stats().filter_bytes), (1, large));
    let left = delete_until_a_scan((&store, &guarded), MANY / 2);
    let small = guarded.stats();
    assert!(store.scans() == 2 && small.filter_keys == MANY - left, "{} scans: {small}", store.scans());
    assert!(small.filter_bytes < large / 3, "{large} bytes before: {small}");
    assert_eq!(guarded.verify(usize::MAX).unwrap().false_negatives, 0);
    assert!((left..MANY).all(|number| finds(&guarded, &key(number))));
    // It grows again, and wears like any other.
    (0..left).for_each(|number| assert!(!guarded.put(&key(number), b"").unwrap()));
    guarded.wait_until_ready().unwrap();
    assert_eq!((guarded.stats().filter_keys, guarded.stats().crowded_stripes), (MANY, 0));
}

/// As fjall does, which also counts deleted keys.
#[test]
fn a_sparse_filter_is_made_for_the_keys_that_are_left_whatever_the_store_says() {
    let (store, guarded) = with_many();
    let large = guarded.stats().filter_bytes;
    store.exaggerates_by(MANY);
    delete_until_a_scan((&store, &guarded), 0);
    assert!(store.scans() == 2 && guarded.stats().filter_bytes < large / 3, "{}", guarded.stats());
}

/// It has room for the keys that are expected.
#[test]
fn a_filter_for_keys_that_are_expected_is_not_sparse_without_them() {
    let store = filled(MANY);
    let builder = Guarded::builder(Arc::clone(&store)).false_positive_rate(LOW_RATE).expected_keys(MANY);
    let guarded = opened(builder);
    delete(&guarded, 0..MANY);
    assert_eq!((store.scans(), guarded.stats().filter_keys), (1, 0));
}

/// The memory that would be saved is not worth a scan.
#[test]
fn a_filter_of_few_bytes_is_never_sparse() {
    let store = filled(MANY);
    // Of 11 bits.
    let guarded = opened(Guarded::builder(Arc::clone(&store)));
    let bytes = guarded.stats().filter_bytes;
    delete(&guarded, 0..MANY);
    assert_eq!((store.scans(), guarded.stats().filter_bytes), (1, bytes));
}

/// Each is counted as removed, and one in sixteen of them makes the guard check: there are as many keys as ever.
#[test]
fn keys_that_come_and_go_do_not_make_a_filter_sparse() {
    let (store, guarded) = with_many();
    let bytes = guarded.stats().filter_bytes;
    for number in 0..3 * MANY {
        assert!(guarded.delete(&key(number)).unwrap());
        assert!(!guarded.put(&key(number + MANY), b"").unwrap());
    }
    guarded.wait_until_ready().unwrap();
    assert_eq!((store.scans(), guarded.stats().filter_bytes), (1, bytes));
    // Nor at a third of what it was made for.
    delete(&guarded, 3 * MANY..3 * MANY + 2 * MANY / 3);
    for number in 3 * MANY + 2 * MANY / 3..5 * MANY {
        assert!(guarded.delete(&key(number)).unwrap());
        assert!(!guarded.put(&key(number + MANY / 3), b"").unwrap());
    }
    guarded.wait_until_ready().unwrap();
    assert_eq!(store.scans(), 1);
}

/// Half of the keys come and go: the filter is sparse, small, worn and large in turn, with never more than one scan for each.
#[test]
fn a_store_that_empties_and_fills_costs_two_scans_each_time() {
    let (store, guarded) = with_many();
    for round in 1..=3 {
        delete(&guarded, 0..MANY);
        (0..MANY).for_each(|number| assert!(!guarded.put(&key(number), b"").unwrap()));
        guarded.wait_until_ready().unwrap();
        assert!(store.scans() <= 1 + 3 * round, "{} scans in {round} rounds", store.scans());
    }
    assert_eq!(guarded.stats().filter_keys, MANY);
}

/// Otherwise such a store would have no filter, and none after the next scan.
#[test]
fn there_is_a_filter_also_if_there_can_be_none_for_as_many_keys_as_the_store_says() {
    for filter in [Filter::Cuckoo, Filter::Bloom] {
        let store = filled(100);
        store.exaggerates_by(1 << 60);
        let guarded = opened(Guarded::builder(Arc::clone(&store)).filter(filter));
        assert_eq!(
            (guarded.progress().phase, guarded.stats().filter_keys),
            (Phase::Ready, 100),
            "{filter:?}"
        );
        assert!(finds(&guarded, &key(7)));
    }
}
