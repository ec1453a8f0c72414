//! Cuckoo, Bloom, none; filters that are full, worn or wrong; repeated false positives.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use koel::guard::{Filter, Guarded, HashMapStore, Phase, Stats, Store};

use crate::common::{finds, key, ready};
use crate::scripted::{Act, Op, ScriptedStore, filled, sure};

#[test]
fn every_filter_answers_as_the_store_does() {
    for filter in [Filter::Cuckoo, Filter::Bloom, Filter::None] {
        let store = Arc::new(HashMapStore::new());
        for number in 0..500 {
            sure(store.put(&key(number), b"old"));
        }
        let guarded = Guarded::builder(Arc::clone(&store)).filter(filter).open().unwrap();
        for number in 400..900 {
            assert_eq!(guarded.put(&key(number), b"new").unwrap(), number < 500);
        }
        for number in (0..1200).step_by(3) {
            assert_eq!(guarded.delete(&key(number)).unwrap(), number < 900);
        }
        guarded.wait_until_ready().unwrap();
        for number in 0..2000 {
            assert_eq!(guarded.get(&key(number)).unwrap(), sure(store.get(&key(number))), "{number}");
        }
        let (stats, phase) = (guarded.stats(), guarded.progress().phase);
        assert_eq!(phase, if filter == Filter::None { Phase::Unfiltered } else { Phase::Ready });
        assert_eq!(stats.blocked > 1000, filter != Filter::None, "{stats}");
        assert_eq!(guarded.verify(10_000).unwrap().false_negatives, 0);
    }
}

#[test]
fn a_rate_that_cannot_be_is_an_error_at_once() {
    for filter in [Filter::Cuckoo, Filter::Bloom] {
        for rate in [0.0, 1.0, -1.0, f64::NAN] {
            let builder = Guarded::builder(HashMapStore::new()).filter(filter).false_positive_rate(rate);
            assert!(matches!(builder.open(), Err(koel::guard::Error::Filter(_))), "{filter:?} {rate}");
        }
    }
}

/// More keys than there is memory for, or than there are addresses: the process does not abort.
#[test]
fn too_many_keys_are_refused() {
    for filter in [Filter::Cuckoo, Filter::Bloom] {
        for keys in [1 << 50, u64::MAX] {
            let builder = Guarded::builder(HashMapStore::new()).filter(filter).expected_keys(keys);
            assert!(matches!(builder.open(), Err(koel::guard::Error::Filter(_))), "{filter:?} {keys}");
        }
    }
}

/// A scan makes room for a quarter more.
#[test]
fn keys_of_which_there_cannot_be_a_quarter_more_are_refused_at_once() {
    let most = (usize::MAX as u64 / 16).min(1 << 33);
    let error = Guarded::builder(HashMapStore::new()).expected_keys(most).open().unwrap_err();
    assert!(matches!(error, koel::guard::Error::Filter(koel::FilterError::Capacity { .. })), "{error}");
}

#[test]
fn a_filter_grows_far_beyond_what_was_expected() {
    for filter in [Filter::Cuckoo, Filter::Bloom] {
        let builder = Guarded::builder(HashMapStore::new()).filter(filter).expected_keys(1);
        let guarded = builder.open().unwrap();
        guarded.wait_until_ready().unwrap();
        for number in 0..50_000 {
            guarded.put(&key(number), b"").unwrap();
        }
        guarded.wait_until_ready().unwrap();
        assert!((0..50_000).all(|number| finds(&guarded, &key(number))));
        assert!(guarded.progress().scanned > 10_000, "it was built anew");
        let absent = (100_000..110_000).filter(|number| finds(&guarded, &key(*number))).count();
        let stats = guarded.stats();
        assert!(absent == 0 && stats.observed_false_positive_rate < 0.1, "{filter:?}: {stats}");
    }
}

/// Again and again, as a Bloom filter cannot remove keys.
#[test]
fn a_bloom_filter_is_built_anew_after_many_deletes() {
    let builder = Guarded::builder(HashMapStore::new()).filter(Filter::Bloom).expected_keys(10_000);
    let guarded = builder.open().unwrap();
    guarded.wait_until_ready().unwrap();
    for round in 0..20 {
        for number in 0..5000 {
            guarded.put(&key(round * 5000 + number), b"").unwrap();
        }
        for number in 0..5000 {
            assert!(guarded.delete(&key(round * 5000 + number)).unwrap());
        }
    }
    guarded.wait_until_ready().unwrap();
    let stats = guarded.stats();
    assert!(stats.expected_false_positive_rate < 0.02, "{stats}");
    assert!(stats.filter_keys < 10_000, "{stats}");
}

/// The filter is not asked as long as all keys are there, and is asked again as soon as one is not.
#[test]
fn a_filter_that_was_of_no_use_lets_one_absent_key_pass() {
    let absent = 1_000_000..1_010_000;
    let store = Arc::new(ScriptedStore::default());
    let guarded = ready(Arc::clone(&store));
    for number in 0..1000 {
        guarded.put(&key(number), b"").unwrap();
    }
    let reads_of_absent = || {
        let before = store.reads();
        assert!(absent.clone().all(|number| !finds(&guarded, &key(number))));
        store.reads() - before
    };
    let before = reads_of_absent();
    assert!(before < 500, "false positives: {before}");
    for round in 1..=3 {
        for number in 0..5000 {
            assert!(finds(&guarded, &key(number % 1000)));
        }
        // The same keys are false positives, except those that are remembered by now.
        assert!(reads_of_absent() <= before + 1);
        let stats = guarded.stats();
        assert_eq!((stats.unfiltered, stats.passed_found), (round, 5000 * round), "{stats}");
    }
    // Nor is it idle while all keys are there in a batch, or in fewer look-ups.
    for number in 0..4000 {
        assert!(finds(&guarded, &key(number % 1000)));
    }
    assert!(!finds(&guarded, &key(absent.start)));
    let many: Vec<_> = (0..5000).map(|number| key(number % 1000)).chain(absent.clone().map(key)).collect();
    assert_eq!(guarded.get_many(&many).unwrap().iter().flatten().count(), 5000);
    reads_of_absent();
    assert_eq!(guarded.stats().unfiltered, 3, "those of the batch that were not there count, too");
    guarded.get_many(&many[..5000]).unwrap();
    reads_of_absent();
    assert_eq!(guarded.stats().unfiltered, 4, "so do those of a batch that were");
}

#[test]
fn a_filter_that_was_of_no_use_is_asked_when_the_store_fails() {
    let store = Arc::new(ScriptedStore::default());
    let guarded = ready(Arc::clone(&store));
    guarded.put(&key(1), b"").unwrap();
    for act in [Act::Fail, Act::Panic] {
        (0..5000).for_each(|_| assert!(finds(&guarded, &key(1))));
        store.next(Op::Get, vec![act; 10]);
        let absent = |number: u64| std::panic::catch_unwind(AssertUnwindSafe(|| guarded.get(&key(number))));
        let failed = (100..200).filter(|number| !matches!(absent(*number), Ok(Ok(None)))).count();
        assert!((1..=5).contains(&failed), "the first, and false positives: {failed}");
        store.forget_script();
    }
}

/// Rates for which thousands of keys have one bit, or there are a thousand hash functions.
#[test]
fn bloom_filters_of_extreme_rates_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("filter");
    for (rate, keys) in
        [(1.0 - 1e-12, u64::MAX), (1.0 - 1e-6, 1 << 30), (1e-12, 1), (1e-100, 1), (f64::MIN_POSITIVE, 1)]
    {
        let store = Arc::new(HashMapStore::new());
        let builder = || {
            Guarded::builder(Arc::clone(&store))
                .filter(Filter::Bloom)
                .false_positive_rate(rate)
                .expected_keys(keys)
        };
        let guarded = builder().open().unwrap();
        guarded.wait_until_ready().unwrap();
        guarded.put(&key(1), b"").unwrap();
        guarded.snapshot(&file).unwrap();
        let again = builder().snapshot(&file).open().unwrap();
        assert!(again.rejected_snapshot().is_none(), "{rate}: {:?}", again.rejected_snapshot());
        assert!(finds(&again, &key(1)));
        let _ = again.stats().to_string();
    }
}

#[test]
fn false_positives_that_repeat_do_not_reach_the_store() {
    let store = Arc::new(ScriptedStore::default());
    let guarded = ready(Arc::clone(&store));
    for number in 0..1000 {
        guarded.put(&key(number), b"").unwrap();
    }
    let passes = |number: &u64| {
        let before = store.reads();
        assert!(!finds(&guarded, &key(*number)));
        store.reads() > before
    };
    let wrong: Vec<u64> = (1000..200_000).filter(passes).take(50).collect();
    assert!(wrong.len() > 20, "there are false positives");
    let mut remembered = 0;
    for number in &wrong {
        finds(&guarded, &key(*number));
        let before = store.reads();
        (0..10).for_each(|_| assert!(!finds(&guarded, &key(*number))));
        remembered += u64::from(store.reads() == before);
    }
    assert!(remembered > wrong.len() as u64 / 2, "{remembered} of {}", wrong.len());
    assert!(guarded.stats().remembered_absent >= 10 * remembered);
    // A write of the key clears it.
    for number in &wrong {
        guarded.put(&key(*number), b"").unwrap();
        assert!(finds(&guarded, &key(*number)));
    }
}

/// To remember them would take unbounded memory.
#[test]
fn false_positives_of_long_keys_reach_the_store_each_time() {
    for (len, is_remembered) in [(1024, true), (1025, false)] {
        let store = filled(1000);
        let builder = Guarded::builder(Arc::clone(&store)).false_positive_rate(0.5);
        let guarded = builder.open().unwrap();
        guarded.wait_until_ready().unwrap();
        for number in (0..3).flat_map(|_| 0..300_u64) {
            let long = [&number.to_le_bytes()[..], &[b'-'; 2000]].concat();
            assert!(!finds(&guarded, &long[..len]));
        }
        assert_eq!(guarded.stats().remembered_absent > 0, is_remembered, "{len} bytes: {}", guarded.stats());
    }
}

#[test]
fn a_write_around_the_guard_is_noticed_by_verify_and_by_a_delete() {
    for by_verify in [true, false] {
        let store = Arc::new(HashMapStore::new());
        let guarded = ready(Arc::clone(&store));
        for number in 0..100 {
            sure(store.put(&key(number), b""));
        }
        assert!(!finds(&guarded, &key(1)), "the guard does not know of it");
        if by_verify {
            let verification = guarded.verify(1000).unwrap();
            assert!(verification.checked == 100 && verification.false_negatives > 90, "{verification:?}");
        } else {
            assert!(guarded.delete(&key(0)).unwrap());
        }
        assert!((1..100).all(|number| finds(&guarded, &key(number))));
        guarded.wait_until_ready().unwrap();
        assert!((1..100).all(|number| finds(&guarded, &key(number))));
        assert_eq!(guarded.progress().phase, Phase::Ready);
    }
}

#[test]
fn many_keys_at_once_are_answered_as_one_by_one() {
    let store = Arc::new(ScriptedStore::default());
    let guarded = ready(Arc::clone(&store));
    for number in (0..300).step_by(2) {
        guarded.put(&key(number), &key(number)).unwrap();
    }
    let keys: Vec<Vec<u8>> = (0..300).chain([4, 4, 5]).map(key).collect();
    let found = guarded.get_many(&keys).unwrap();
    for (key, found) in keys.iter().zip(&found) {
        assert_eq!(*found, guarded.get(key).unwrap());
    }
    assert_eq!(found.iter().flatten().count(), 152);
    let empty: [&[u8]; 0] = [];
    assert!(guarded.get_many(&empty).unwrap().is_empty());
    assert!(guarded.stats().blocked > 250);
}

/// With fingerprints of 32 bits the filter cannot grow.
#[test]
fn a_filter_that_is_full_and_cannot_grow_says_perhaps() {
    let store = Arc::new(ScriptedStore::default());
    let builder = Guarded::builder(Arc::clone(&store)).false_positive_rate(4e-9).expected_keys(1);
    let guarded = builder.open().unwrap();
    guarded.wait_until_ready().unwrap();
    // Otherwise a new one would take its place.
    store.next(Op::Scan, vec![Act::Fail; 100]);
    for number in 0..20_000 {
        assert!(!guarded.put(&key(number), b"").unwrap());
        assert!(finds(&guarded, &key(number)));
    }
    assert!(guarded.stats().crowded_stripes > 0);
    let is_right = || {
        for number in 0..30_000 {
            let is_there = sure(store.inner.get(&key(number))).is_some();
            assert_eq!(finds(&guarded, &key(number)), is_there, "{number}");
        }
    };
    is_right();
    // Overwriting, deleting and putting go on; no key loses a fingerprint because of another.
    for number in 0..20_000 {
        match number % 3 {
            0 => assert!(guarded.delete(&key(number)).unwrap()),
            1 => assert!(guarded.put(&key(number), b"new").unwrap()),
            _ => assert!(!guarded.put(&key(number + 20_000), b"").unwrap()),
        }
    }
    is_right();
    let _ = guarded.wait_until_ready();
    let progress = guarded.progress();
    assert_eq!((progress.phase, progress.scanned), (Phase::Ready, 0), "nobody noticed that one was missing");
    store.forget_script();
    // A snapshot records the stripes for which nothing is known.
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("filter");
    guarded.snapshot(&file).unwrap();
    let builder = Guarded::builder(Arc::clone(&store)).false_positive_rate(4e-9).snapshot(&file);
    let copy = builder.open().unwrap();
    assert!(copy.rejected_snapshot().is_none());
    assert_eq!(copy.stats().crowded_stripes, guarded.stats().crowded_stripes);
    assert_eq!(copy.verify(usize::MAX).unwrap().false_negatives, 0);
    // A new filter has room for all.
    guarded.rebuild().unwrap();
    guarded.wait_until_ready().unwrap();
    assert_eq!(guarded.stats().crowded_stripes, 0);
    is_right();
}

/// Each of these puts leaves a fingerprint behind, until there are as many as a key may have.
#[test]
fn a_filter_that_failed_puts_have_crowded_is_built_anew_after_some_writes() {
    let store = filled(20_000);
    // A filter that cannot grow: otherwise many copies of a fingerprint may turn one table into four, and it would be worn
    // before.
    let guarded = Guarded::builder(Arc::clone(&store)).false_positive_rate(4e-9).open().unwrap();
    guarded.wait_until_ready().unwrap();
    for number in 0..1000 {
        store.next(Op::Put, vec![Act::Fail; 10]);
        (0..10).for_each(|_| assert!(guarded.put(&key(number), b"").is_err()));
        store.forget_script();
    }
    let crowded = guarded.stats().crowded_stripes;
    assert!(crowded > 500, "of most absent keys it says perhaps: {crowded}");
    (100_000..110_000).for_each(|number| assert!(!finds(&guarded, &key(number))));
    let Stats { observed_false_positive_rate: observed, expected_false_positive_rate: expected, .. } =
        guarded.stats();
    assert!((observed - expected).abs() < 0.05, "{observed} observed, {expected} expected");
    for write in 0..40_000 {
        assert!(store.scans() == 1 || write > 20_000, "scanned again after {write} writes");
        assert!(guarded.put(&key(write % 20_000), b"").unwrap());
    }
    guarded.wait_until_ready().unwrap();
    let stats = guarded.stats();
    assert_eq!((stats.crowded_stripes, stats.filter_keys, store.scans()), (0, 20_000, 2));
}

/// The put for which there is no room turns out to be of a present key: nothing is missing then, and nothing is crowded.
#[test]
fn an_overwrite_that_finds_no_room_leaves_no_mark() {
    let store = filled(10);
    let guarded = ready(Arc::clone(&store));
    let crowded = |guarded: &Guarded<_>| guarded.stats().crowded_stripes;
    let failed = (1..20).take_while(|_| {
        assert!(guarded.put(&key(1), b"").unwrap());
        assert_eq!((crowded(&guarded), finds(&guarded, &key(1))), (0, true));
        store.next(Op::Put, [Act::Fail]);
        assert!(guarded.put(&key(1), b"").is_err());
        crowded(&guarded) == 0
    });
    let failed = failed.count();
    assert!((1..19).contains(&failed), "{failed} found room, and then one did not");
    assert!(finds(&guarded, &key(1)) && guarded.verify(100).unwrap().false_negatives == 0);
}

/// It has four tables long before there have been as many writes as it has keys.
#[test]
fn a_crowded_filter_that_wears_is_built_anew_at_once() {
    let store = filled(20_000);
    let guarded = ready(Arc::clone(&store));
    (20_000..130_000).for_each(|number| assert!(!guarded.put(&key(number), b"").unwrap()));
    for number in 0..100 {
        store.next(Op::Put, vec![Act::Fail; 10]);
        (0..10).for_each(|_| assert!(guarded.put(&key(number), b"").is_err()));
        store.forget_script();
    }
    assert!(guarded.stats().crowded_stripes > 1024 / 16 && store.scans() == 1);
    let is_waiting = || store.scans() == 1 && guarded.progress().phase == Phase::Ready;
    let put = |number: &u64| !guarded.put(&key(*number), b"").unwrap() && is_waiting();
    let writes = (130_000..300_000).take_while(put).count();
    assert!(writes < 90_000, "scanned again after {writes} writes");
    guarded.wait_until_ready().unwrap();
    assert_eq!((guarded.stats().crowded_stripes, store.scans()), (0, 2));
}

/// It cannot grow, and how much room it needs is unknown until the store has been scanned.
#[test]
fn a_filter_that_a_scan_has_crowded_is_built_anew_at_once() {
    let store = filled(20_000);
    store.hides_its_length();
    let guarded = Guarded::builder(Arc::clone(&store)).false_positive_rate(4e-9).open().unwrap();
    guarded.wait_until_ready().unwrap();
    assert_eq!((guarded.stats().crowded_stripes, guarded.stats().filter_keys, store.scans()), (0, 20_000, 2));
}
