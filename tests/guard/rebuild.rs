//! Building the filter while reads and writes go on.

use std::sync::{Arc, Mutex};

use koel::guard::{Error, Filter, Guarded, Phase, Progress, Store};

use crate::common::{Rng, finds, key, seed};
use crate::scripted::{Act, Gate, Op, ScriptedStore, filled, sure, unscanned};

#[test]
fn a_guard_serves_while_its_filter_is_being_built() {
    let (store, gate) = (filled(1000), Gate::new());
    store.next(Op::Scan, [Act::Stall(gate.clone())]);
    let guarded = Guarded::open(Arc::clone(&store)).unwrap();
    let waiting = gate.wait();
    assert_eq!(guarded.progress().phase, Phase::Rebuilding);
    assert!((0..1000).all(|number| finds(&guarded, &key(number))));
    assert!(!finds(&guarded, b"nobody"));
    assert_eq!((guarded.stats().unfiltered, store.reads()), (1001, 1001));
    waiting.open();
    guarded.wait_until_ready().unwrap();
    assert_eq!(guarded.progress().phase, Phase::Ready);
    assert_eq!(guarded.stats().filter_keys, 1000);
}

/// The scan is held up before its first, a middle or its last key; meanwhile keys are put, deleted, deleted and put again, put
/// and deleted again, also several times.
#[test]
fn writes_during_a_scan_are_in_the_new_filter_and_nothing_else_is() {
    for at in [0, 250, 499] {
        let (store, gate) = (filled(500), Gate::new());
        store.next(Op::Scan, (0..at).map(|_| Act::Do).chain([Act::Stall(gate.clone())]));
        let guarded = Guarded::open(Arc::clone(&store)).unwrap();
        let waiting = gate.wait();
        let mut rng = Rng::new(seed() + at);
        for _ in 0..20_000 {
            let key = key(rng.below(1000));
            if rng.below(2) == 0 {
                guarded.put(&key, b"").unwrap();
            } else {
                guarded.delete(&key).unwrap();
            }
        }
        waiting.open();
        guarded.wait_until_ready().unwrap();
        let there = store.inner.len_hint().unwrap();
        assert_eq!(guarded.stats().filter_keys, there, "each key once");
        for number in 0..1000 {
            assert_eq!(finds(&guarded, &key(number)), sure(store.inner.get(&key(number))).is_some());
        }
        // And all of them can be removed: no key relies on the fingerprint of another.
        for number in (0..1000).rev() {
            guarded.delete(&key(number)).unwrap();
            assert_eq!(guarded.verify(10_000).unwrap().false_negatives, 0);
        }
        assert_eq!(guarded.stats().filter_keys, 0);
    }
}

#[test]
fn writes_that_fail_during_a_scan_leave_no_false_absent() {
    for act in [Act::Fail, Act::DoAndFail] {
        for unsure in [false, true] {
            let (store, gate) = (filled(10), Gate::new());
            store.next(Op::Scan, [Act::Do, Act::Stall(gate.clone())]);
            let guarded = Guarded::open(Arc::clone(&store)).unwrap();
            let waiting = gate.wait();
            for number in 0..20 {
                if unsure {
                    store.next(Op::Get, [Act::Fail]);
                }
                store.next(Op::Put, [act.clone()]);
                assert!(guarded.put(&key(number), b"").is_err());
                store.next(Op::Delete, [act.clone()]);
                assert!(number % 3 != 0 || guarded.delete(&key(number)).is_err());
            }
            waiting.open();
            guarded.wait_until_ready().unwrap();
            for number in 0..20 {
                assert_eq!(finds(&guarded, &key(number)), sure(store.inner.get(&key(number))).is_some());
            }
        }
    }
}

/// Deleted, put again, and put a third time with an unknown outcome.
#[test]
fn a_key_that_came_back_during_a_scan_is_counted_no_more() {
    let (store, gate) = (filled(10), Gate::new());
    store.next(Op::Scan, [Act::Do, Act::Stall(gate.clone())]);
    let guarded = Guarded::open(Arc::clone(&store)).unwrap();
    let waiting = gate.wait();
    for number in 0..10 {
        assert!(guarded.delete(&key(number)).unwrap() && !guarded.put(&key(number), b"").unwrap());
        store.next(Op::Put, [Act::Fail]);
        assert!(guarded.put(&key(number), b"").is_err());
    }
    waiting.open();
    guarded.wait_until_ready().unwrap();
    assert!((0..10).all(|number| finds(&guarded, &key(number))));
    assert_eq!(guarded.stats().filter_keys, 20, "one more than needed of each");
}

/// The scan waits for a write that is under way when it begins.
#[test]
fn a_scan_begins_between_writes() {
    let store = filled(10);
    let guarded = Guarded::open(Arc::clone(&store)).unwrap();
    guarded.wait_until_ready().unwrap();
    let gate = Gate::new();
    store.next(Op::Put, [Act::Stall(gate.clone())]);
    std::thread::scope(|scope| {
        scope.spawn(|| guarded.put(b"late", b"").unwrap());
        let waiting = gate.wait();
        guarded.rebuild().unwrap();
        // Until it has begun, the reported progress is that of the last scan.
        while guarded.progress().scanned > 0 {
            std::thread::yield_now();
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
        assert_eq!(guarded.progress().phase, Phase::Rebuilding);
        assert_eq!(guarded.progress().scanned, 0, "it waits");
        // Readers do not.
        assert!(finds(&guarded, &key(1)) && !finds(&guarded, b"nobody"));
        waiting.open();
    });
    guarded.wait_until_ready().unwrap();
    assert!(finds(&guarded, b"late"));
    assert_eq!(guarded.stats().filter_keys, 11);
}

#[test]
fn a_scan_that_fails_or_panics_leaves_a_guard_that_passes_everything() {
    for act in [Act::Fail, Act::Panic] {
        let store = filled(100);
        store.next(Op::Scan, (0..50).map(|_| Act::Do).chain([act.clone()]));
        let guarded = Guarded::open(Arc::clone(&store)).unwrap();
        let error = guarded.wait_until_ready().unwrap_err();
        assert_eq!(matches!(error, Error::Store(_)), matches!(act, Act::Fail), "{error}");
        assert_eq!(guarded.progress().phase, Phase::Unfiltered);
        guarded.put(b"late", b"").unwrap();
        assert!((0..100).all(|number| finds(&guarded, &key(number))) && finds(&guarded, b"late"));
        // The next one does not fail.
        guarded.rebuild().unwrap();
        guarded.wait_until_ready().unwrap();
        assert!((0..100).all(|number| finds(&guarded, &key(number))) && finds(&guarded, b"late"));
        assert_eq!(guarded.stats().filter_keys, 101);
    }
}

/// Nobody has asked for the result of the first scan; the second one succeeded, and that is what counts.
#[test]
fn a_scan_that_succeeds_makes_good_one_that_failed() {
    let store = Arc::new(ScriptedStore::default());
    store.next(Op::Scan, [Act::Fail]);
    sure(store.inner.put(&key(0), b""));
    let guarded = Guarded::open(Arc::clone(&store)).unwrap();
    while guarded.progress().phase == Phase::Rebuilding {
        std::thread::yield_now();
    }
    assert_eq!(guarded.progress().phase, Phase::Unfiltered);
    guarded.rebuild().unwrap();
    guarded.wait_until_ready().unwrap();
    assert_eq!(guarded.progress().scanned, 1);
    // Many more than a filter for a single key has room for: it wears, and is rebuilt without being asked for.
    (0..100_000).for_each(|number| assert_eq!(guarded.put(&key(number), b"").unwrap(), number == 0));
    guarded.wait_until_ready().unwrap();
    assert!(guarded.progress().scanned > 1, "{:?}", guarded.progress());
    assert_eq!(guarded.stats().filter_keys, 100_000);
}

/// A temporary failure costs the filter for some writes, not forever: a failure of the first scan, or of one for a worn
/// filter.
#[test]
fn a_scan_that_has_failed_is_tried_again_after_some_writes() {
    let (store, guarded) = unscanned();
    for number in 0..4095 {
        guarded.put(&key(number), b"").unwrap();
    }
    assert_eq!((guarded.progress().phase, store.reads()), (Phase::Unfiltered, 0));
    guarded.put(&key(0), b"").unwrap();
    guarded.wait_until_ready().unwrap();
    assert_eq!((guarded.progress().phase, guarded.stats().filter_keys), (Phase::Ready, 4095));
}

/// For a worn filter as well, also if somebody has asked why the scan failed.
#[test]
fn a_scan_for_a_worn_filter_that_has_failed_is_tried_again_after_some_writes() {
    for asks in [false, true] {
        let store = filled(1);
        let guarded = Guarded::open(Arc::clone(&store)).unwrap();
        guarded.wait_until_ready().unwrap();
        store.next(Op::Scan, [Act::Fail, Act::Fail]);
        let mut keys = 0;
        let put_until_scanned = |keys: &mut u64| {
            let before = store.scans();
            while store.scans() == before && guarded.progress().phase == Phase::Ready {
                guarded.put(&key(*keys), b"").unwrap();
                *keys += 1;
            }
            while guarded.progress().phase == Phase::Rebuilding {
                std::thread::yield_now();
            }
        };
        put_until_scanned(&mut keys);
        if asks {
            guarded.wait_until_ready().unwrap_err();
        }
        let before = keys;
        put_until_scanned(&mut keys);
        assert!(keys - before >= 4096, "tried again after {} writes", keys - before);
        put_until_scanned(&mut keys);
        assert_eq!(guarded.stats().filter_keys, keys, "built anew though it had failed");
        assert!(guarded.progress().scanned > 2 * 4096 && !finds(&guarded, b"nobody"));
    }
}

/// Somebody has written around the guard and reports it just before the scan fails or panics: the request is not lost.
#[test]
fn a_scan_that_is_asked_for_follows_one_that_fails() {
    for end in [Act::Fail, Act::Panic] {
        let (store, gate) = (filled(100), Gate::new());
        let acts = (0..50).map(|_| Act::Do).chain([Act::Stall(gate.clone()), end]);
        store.next(Op::Scan, acts);
        let guarded = Guarded::open(Arc::clone(&store)).unwrap();
        let waiting = gate.wait();
        sure(store.inner.put(b"around", b""));
        guarded.rebuild().unwrap();
        waiting.open();
        guarded.wait_until_ready().unwrap();
        assert_eq!((guarded.progress().phase, guarded.stats().filter_keys), (Phase::Ready, 101));
        assert!(finds(&guarded, b"around"));
    }
}

#[test]
fn progress_is_told_from_the_beginning_to_the_end() {
    let told = Arc::new(Mutex::new(Vec::<Progress>::new()));
    let listener = Arc::clone(&told);
    let listen = move |progress| listener.lock().unwrap().push(progress);
    let guarded = Guarded::builder(filled(10_000)).on_progress(listen).open().unwrap();
    guarded.wait_until_ready().unwrap();
    drop(guarded);
    let told = told.lock().unwrap();
    assert!(told.len() >= 4, "{told:?}");
    assert!(told.windows(2).all(|two| two[0].scanned <= two[1].scanned), "{told:?}");
    assert!(told.iter().all(|progress| progress.expected == 10_000));
    let last = told[told.len() - 1];
    assert_eq!((last.scanned, last.phase), (10_000, Phase::Ready));
}

/// As many as were expected, if the store does not know; and also after a scan that panics.
#[test]
fn progress_is_told_of_stores_that_do_not_know_their_length_and_of_scans_that_panic() {
    let told = Arc::new(Mutex::new(Vec::<Progress>::new()));
    let listener = Arc::clone(&told);
    let listen = move |progress| listener.lock().unwrap().push(progress);
    let store = filled(100);
    store.hides_its_length();
    store.next(Op::Scan, [Act::Do, Act::Panic]);
    let guarded = Guarded::builder(Arc::clone(&store)).expected_keys(200).on_progress(listen).open().unwrap();
    assert!(matches!(guarded.wait_until_ready(), Err(Error::ScanPanicked)));
    drop(guarded);
    let told = told.lock().unwrap();
    assert!(told.iter().all(|progress| progress.expected == 200), "{told:?}");
    let last = told[told.len() - 1];
    assert_eq!((last.scanned, last.phase), (1, Phase::Unfiltered));
}

/// The filter that is discarded meanwhile has more keys than the store, because of failed puts.
#[test]
fn progress_is_that_of_the_scan_that_is_running_when_another_is_asked_for() {
    let (store, gate) = (filled(1000), Gate::new());
    let guarded = Guarded::builder(Arc::clone(&store)).filter(Filter::Bloom).open().unwrap();
    guarded.wait_until_ready().unwrap();
    store.next(Op::Put, vec![Act::Fail; 300]);
    store.next(Op::Get, vec![Act::Fail; 300]);
    (2000..2300).for_each(|number| assert!(guarded.put(&key(number), b"").is_err()));
    store.next(Op::Scan, [Act::Stall(gate.clone())]);
    (0..400).for_each(|number| assert!(guarded.delete(&key(number)).unwrap()));
    let scanning = gate.wait();
    let before = guarded.progress();
    guarded.rebuild().unwrap();
    assert_eq!(guarded.progress(), before);
    assert!((600..700).contains(&before.expected), "{before:?}");
    scanning.open();
    guarded.wait_until_ready().unwrap();
    assert_eq!(guarded.progress().expected, 600);
}

/// A scan for a worn filter, which began before a write around the guard, does not end the distrust.
#[test]
fn a_filter_that_is_distrusted_during_a_scan_is_scanned_for_again() {
    let store = filled(1000);
    let guarded = Guarded::builder(Arc::clone(&store)).filter(Filter::Bloom).open().unwrap();
    guarded.wait_until_ready().unwrap();
    let gate = Gate::new();
    store.next(Op::Scan, [Act::Stall(gate.clone())]);
    (0..400).for_each(|number| assert!(guarded.delete(&key(number)).unwrap()));
    let waiting = gate.wait();
    (2000..2020).for_each(|number| assert!(!sure(store.inner.put(&key(number), b""))));
    assert!(guarded.verify(usize::MAX).unwrap().false_negatives > 0);
    assert!((2000..2020).all(|number| finds(&guarded, &key(number))), "they pass");
    waiting.open();
    guarded.wait_until_ready().unwrap();
    assert!((2000..2020).all(|number| finds(&guarded, &key(number))) && guarded.stats().filter_keys == 620);
}

/// Nor does the filter of that scan answer until the next scan ends.
#[test]
fn a_filter_that_is_distrusted_during_its_scan_is_not_published() {
    let (store, first, second) = (filled(100), Gate::new(), Gate::new());
    let scan = [Act::Stall(first.clone())].into_iter().chain((1..100).map(|_| Act::Do));
    store.next(Op::Scan, scan.chain([Act::Stall(second.clone())]));
    let guarded = Guarded::open(Arc::clone(&store)).unwrap();
    let scanning = first.wait();
    (100..120).for_each(|number| assert!(!sure(store.inner.put(&key(number), b""))));
    guarded.rebuild().unwrap();
    scanning.open();
    let again = second.wait();
    assert!((0..120).all(|number| finds(&guarded, &key(number))), "they pass");
    again.open();
    guarded.wait_until_ready().unwrap();
    assert!((0..120).all(|number| finds(&guarded, &key(number))) && guarded.stats().filter_keys == 120);
}

/// The scan waits at its end for a write that is under way: its key is found from its commit on.
#[test]
fn a_filter_is_published_between_writes() {
    let store = filled(10);
    let guarded = Guarded::open(Arc::clone(&store)).unwrap();
    guarded.wait_until_ready().unwrap();
    let (scan, put) = (Gate::new(), Gate::new());
    store.next(Op::Scan, [Act::Stall(scan.clone())]);
    guarded.rebuild().unwrap();
    let scanning = scan.wait();
    store.next(Op::Put, [Act::DoAndStall(put.clone())]);
    std::thread::scope(|scope| {
        scope.spawn(|| guarded.put(b"late", b"").unwrap());
        let putting = put.wait();
        scanning.open();
        let start = std::time::Instant::now();
        let mut found = true;
        while start.elapsed() < std::time::Duration::from_millis(50) {
            found &= finds(&guarded, b"late");
        }
        putting.open();
        assert!(found, "it is committed");
    });
    guarded.wait_until_ready().unwrap();
    assert!(finds(&guarded, b"late") && guarded.stats().filter_keys == 11);
}

/// Keys that were remembered as absent, and cached values, of a store that somebody writes to around the guard.
#[test]
fn what_was_learned_is_forgotten_when_a_filter_is_asked_for() {
    let store = filled(100);
    let builder = Guarded::builder(Arc::clone(&store)).false_positive_rate(0.5).cache_bytes(100_000);
    let guarded = builder.open().unwrap();
    guarded.wait_until_ready().unwrap();
    let absent: Vec<_> = (1000..11_000).map(key).collect();
    for _ in 0..3 {
        assert!(absent.iter().all(|key| !finds(&guarded, key)));
    }
    assert!(guarded.stats().remembered_absent > 0);
    assert_eq!(guarded.get(&key(1)).unwrap().as_deref(), Some(&b""[..]));
    for key in absent.iter().chain([&key(1)]) {
        sure(store.inner.put(key, b"around"));
    }
    let blocked = absent.iter().filter(|key| !finds(&guarded, key)).count() as u64;
    assert!(blocked > 0);
    assert_eq!(guarded.verify(20_000).unwrap().false_negatives, blocked);
    guarded.rebuild().unwrap();
    guarded.wait_until_ready().unwrap();
    assert_eq!(guarded.verify(20_000).unwrap().false_negatives, 0);
    assert!(
        absent.iter().chain([&key(1)]).all(|key| guarded.get(key).unwrap().as_deref() == Some(b"around"))
    );
}
