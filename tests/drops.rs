//! Every entry is dropped exactly once, whichever way it leaves the map: nothing leaks, nothing is freed twice.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use common::{AnyMap, Config, Counted, Ledger, Seeded, fixed_configs, growing_configs, on_threads, seeded};
use koel::{Full, HashMap, Occupied, Operation, Ref};

type Map = HashMap<Counted, Counted, Seeded>;

const ENTRIES: u64 = 200;

/// Runs `body` on maps of all shapes with `ENTRIES` entries; when the map is gone, everything is dropped, and not earlier than
/// `left` entries are.
fn all_is_dropped_once(what: &str, left: Option<usize>, body: impl Fn(&Arc<Ledger>, &Map)) {
    for config in growing_configs().into_iter().chain(fixed_configs(ENTRIES as usize)) {
        let ledger = Ledger::new();
        let map = filled(&ledger, config);
        body(&ledger, &map);
        if let Some(left) = left {
            assert_eq!(map.len(), left, "{what}");
        }
        assert!(ledger.alive() >= 2 * map.len(), "{what}: entries of the map were dropped");
        drop(map);
        ledger.assert_settled(what);
    }
}

fn filled(ledger: &Arc<Ledger>, config: Config) -> Map {
    let map = Map::build(config, seeded(1));
    for n in 0..ENTRIES {
        map.pin().insert(ledger.value(n), ledger.value(n));
    }
    map
}

#[test]
fn entries_left_in_a_map_are_dropped_with_it() {
    all_is_dropped_once("map drop", Some(200), |_, _| ());
}

#[test]
fn replaced_entries_are_dropped() {
    all_is_dropped_once("insert over", Some(200), |ledger, map| {
        for n in 0..ENTRIES {
            assert_eq!(map.pin().insert(ledger.value(n), ledger.value(n + 1)).map(|old| old.n), Some(n));
            assert_eq!(map.pin().checked_insert(ledger.value(n), ledger.value(n)).unwrap().unwrap().n, n + 1);
        }
    });
    all_is_dropped_once("update", Some(200), |ledger, map| {
        let pin = map.pin();
        for n in 0..ENTRIES {
            assert_eq!(pin.update(ledger.value(n), |old| ledger.value(old.n + 7)).unwrap().n, n + 7);
            assert!(pin.update(ledger.value(n + ENTRIES), |_| unreachable!()).is_none());
            assert_eq!(pin.update_or_insert(ledger.value(n), |old| old.clone(), ledger.value(0)).n, n + 7);
            let updated = pin.update_or_insert_with(ledger.value(n), |_| ledger.value(5), || ledger.value(6));
            assert_eq!(updated.n, 5);
        }
    });
}

#[test]
fn removed_entries_are_dropped() {
    all_is_dropped_once("remove", Some(0), |ledger, map| {
        for n in 0..ENTRIES {
            let key = ledger.value(n);
            let pin = map.pin();
            match n % 3 {
                0 => assert_eq!(pin.remove(&key).unwrap().n, n),
                1 => assert_eq!(pin.remove_entry(&key).unwrap().0.n, n),
                _ => {
                    assert!(pin.remove_if(&key, |_, value| value.n != n).is_err());
                    assert!(pin.remove_if(&key, |_, value| value.n == n).unwrap().is_some());
                }
            }
            assert!(pin.remove(&key).is_none());
        }
    });
}

#[test]
fn what_compute_replaces_removes_and_gives_up_is_dropped() {
    all_is_dropped_once("compute", Some(100), |ledger, map| {
        let pin = map.pin();
        for n in 0..ENTRIES {
            pin.compute(ledger.value(n), |old| {
                Operation::Insert::<_, ()>(ledger.value(old.unwrap().1.n + 1))
            });
            pin.compute(ledger.value(n), |_| Operation::Abort(ledger.value(3)));
            pin.compute(ledger.value(n + ENTRIES), |_| Operation::Abort(()));
            if n % 2 == 0 {
                pin.compute(ledger.value(n), |_| Operation::Remove::<_, ()>);
            }
        }
    });
}

#[test]
fn what_is_not_inserted_is_handed_back_and_dropped_by_its_owner() {
    all_is_dropped_once("occupied", Some(200), |ledger, map| {
        let pin = map.pin();
        for n in 0..ENTRIES {
            let Err(Occupied { current, not_inserted }) =
                pin.try_insert(ledger.value(n), ledger.value(n + 1))
            else {
                panic!("{n} is there");
            };
            assert_eq!((current.n, not_inserted.n), (n, n + 1));
            assert_eq!(pin.get_or_insert(ledger.value(n), ledger.value(n + 1)).n, n);
            assert_eq!(pin.get_or_insert_with(ledger.value(n), || unreachable!()).n, n);
        }
    });
    for config in fixed_configs(ENTRIES as usize) {
        let ledger = Ledger::new();
        let map = filled(&ledger, config);
        let mut refused = Vec::new();
        for n in ENTRIES..3 * ENTRIES {
            if let Err(Full { key, value }) = map.pin().checked_insert(ledger.value(n), ledger.value(n)) {
                assert_eq!((key.n, value.n), (n, n));
                refused.push((key, value));
                let pin = map.pin();
                let key = || ledger.value(n);
                let by_others = [
                    pin.checked_try_insert(key(), key()).map(drop).err(),
                    pin.checked_get_or_insert_with(key(), key).map(drop).err(),
                    pin.checked_update_or_insert(key(), |_| unreachable!(), key()).map(drop).err(),
                    pin.checked_compute(key(), |_| Operation::Insert::<_, ()>(key())).map(drop).err(),
                ];
                for Full { key, value } in by_others.into_iter().map(|full| full.expect("there is no room")) {
                    assert_eq!((key.n, value.n), (n, n));
                    refused.push((key, value));
                }
            }
        }
        assert!(!refused.is_empty());
        assert_eq!(ledger.alive(), 2 * (map.len() + refused.len()));
        drop(map);
        assert_eq!(ledger.alive(), 2 * refused.len());
        drop(refused);
        ledger.assert_settled("full");
    }
}

#[test]
fn what_bulk_operations_remove_is_dropped() {
    all_is_dropped_once("retain", Some(50), |_, map| map.pin().retain(|key, _| key.n % 4 == 0));
    all_is_dropped_once("clear", Some(0), |_, map| map.clear());
    all_is_dropped_once("drain", Some(0), |_, map| assert_eq!(map.pin().drain().count(), 200));
    all_is_dropped_once("drain, dropped half way", Some(0), |_, map| {
        assert_eq!(map.pin().drain().take(77).count(), 77);
    });
    all_is_dropped_once("clear and fill again", Some(200), |ledger, map| {
        for _ in 0..5 {
            map.clear();
            map.pin().extend((0..ENTRIES).map(|n| (ledger.value(n), ledger.value(n))));
        }
    });
    all_is_dropped_once("clone", Some(200), |_, map| {
        let copy = map.clone();
        assert_eq!(copy.len(), 200);
    });
    all_is_dropped_once("shrink and grow", None, |ledger, map| {
        for _ in 0..3 {
            map.pin().retain(|key, _| key.n % 4 == 0);
            map.shrink_to_fit();
            map.pin().extend((0..ENTRIES).map(|n| (ledger.value(n), ledger.value(n))));
        }
    });
}

#[test]
fn an_owning_iterator_drops_what_it_does_not_yield() {
    for config in growing_configs().into_iter().chain(fixed_configs(ENTRIES as usize)) {
        for taken in [0, 1, 77, 200, 300] {
            let ledger = Ledger::new();
            let mut entries = filled(&ledger, config).into_iter();
            assert_eq!(entries.len(), 200);
            let kept: Vec<_> = entries.by_ref().take(taken).collect();
            assert_eq!(entries.len(), 200 - kept.len());
            assert_eq!(ledger.alive(), 400);
            drop(entries);
            assert_eq!(ledger.alive(), 2 * kept.len());
            drop(kept);
            ledger.assert_settled("into_iter");
        }
    }
}

#[test]
fn removed_entries_live_as_long_as_a_pin_that_may_see_them() {
    let ledger = Ledger::new();
    let map = filled(&ledger, Config::GROWING);
    let pin = map.pin();
    let seen: Vec<&Counted> = (0..ENTRIES).map(|n| pin.get(&ledger.value(n)).unwrap()).collect();
    on_threads(2, |thread| {
        for n in (thread as u64..ENTRIES).step_by(2) {
            map.pin().remove(&ledger.value(n));
        }
    });
    assert!(map.is_empty());
    assert!(seen.iter().zip(0..).all(|(value, n)| value.n == n));
    assert!(ledger.alive() >= 400, "dropped under a reader's eyes");
    drop(pin);
    drop(map);
    ledger.assert_settled("held pin");
}

#[test]
fn threads_that_race_for_the_same_keys_drop_every_entry_once() {
    let ledger = Ledger::new();
    let map = Map::build(Config::GROWING.segments_of(64), seeded(1));
    on_threads(4, |thread| {
        let mut rng = common::Rng::new(thread as u64);
        for _ in 0..4000 {
            let pin = map.pin();
            let key = ledger.value(rng.below(100));
            match rng.below(8) {
                0..3 => drop(pin.insert(key, ledger.value(1)).map(|old| assert!(old.n < 1000))),
                3 | 4 => drop(pin.remove(&key).map(|old| assert!(old.n < 1000))),
                5 => drop(pin.update(key, |old| ledger.value(old.n % 999 + 1))),
                6 => drop(pin.get(&key).map(|value| assert!(value.n < 1000))),
                _ if rng.one_in(50) => map.clear(),
                _ => drop(pin.get_or_insert_with(key, || ledger.value(2))),
            }
        }
    });
    drop(map);
    ledger.assert_settled("race");
}

/// A thread may end while others still look at what it removed.
#[test]
fn entries_removed_by_threads_that_ended_are_dropped() {
    let ledger = Ledger::new();
    let map = filled(&ledger, Config::GROWING);
    for n in 0..ENTRIES {
        let (ledger, map) = (&ledger, &map);
        std::thread::scope(|scope| {
            scope.spawn(move || map.pin().insert(ledger.value(n), ledger.value(0)).map(|_| ()));
        });
    }
    drop(map);
    ledger.assert_settled("short-lived threads");
}

static ZERO_SIZED: AtomicUsize = AtomicUsize::new(0);

/// A type of size zero whose drop is counted.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Nothing;

impl Nothing {
    fn new() -> Self {
        ZERO_SIZED.fetch_add(1, Ordering::SeqCst);
        Nothing
    }
}

impl Drop for Nothing {
    fn drop(&mut self) {
        ZERO_SIZED.fetch_sub(1, Ordering::SeqCst);
    }
}

#[test]
fn zero_sized_keys_and_values_are_dropped_too() {
    let map = HashMap::new();
    for _ in 0..10 {
        map.pin().insert(Nothing::new(), Nothing::new());
    }
    assert_eq!(map.len(), 1);
    drop(map);
    assert_eq!(ZERO_SIZED.load(Ordering::SeqCst), 0);
    let unit: HashMap<(), ()> = HashMap::new();
    assert_eq!(unit.pin().insert((), ()), None);
    assert_eq!(unit.pin().insert((), ()), Some(&()));
    assert_eq!(unit.pin().get(&()), Some(&()));
    assert_eq!(unit.into_iter().collect::<Vec<_>>(), [((), ())]);
}

/// Larger than a page, and with an unusual alignment.
#[derive(Clone, Debug)]
#[repr(align(128))]
struct Large {
    bytes: [u8; 4096],
    counted: Counted,
}

#[test]
fn large_and_aligned_values_are_whole_and_dropped() {
    let ledger = Ledger::new();
    let value = |n: u64| Large { bytes: [n as u8; 4096], counted: ledger.value(n) };
    let map = HashMap::<u64, Large>::new();
    for n in 0..500 {
        map.pin().insert(n, value(n));
    }
    let pin = map.pin();
    for n in 0..500 {
        let large = &pin[&n];
        assert_eq!((large as *const Large).addr() % 128, 0, "misaligned");
        assert!(large.bytes.iter().all(|byte| *byte == n as u8) && large.counted.n == n);
        if n % 2 == 0 {
            pin.remove(&n);
        }
    }
    assert!(map.memory_usage() > 250 * 4096);
    drop(pin);
    drop(map.clone());
    drop(map);
    ledger.assert_settled("large values");
}

/// A value that was found is alive exactly as long as the view that goes with it.
#[test]
fn an_entry_that_has_its_view_with_it_may_be_returned_and_sent() {
    all_is_dropped_once("into_get", Some(0), |ledger, map| {
        assert!(map.pin().into_get(&ledger.value(ENTRIES)).is_none());
        let here = map.pin().into_get(&ledger.value(3)).unwrap();
        let sent = map.pin_owned().into_get(&ledger.value(7)).unwrap();
        map.clear();
        map.flush();
        assert!(ledger.alive() >= 4);
        std::thread::scope(|scope| {
            scope.spawn(move || {
                assert_eq!((sent.key().n, sent.n, sent.pair().1.n), (7, 7, 7));
                assert!(sent.into_pin().get(&ledger.value(7)).is_none());
            });
        });
        assert_eq!((here.key().n, here.value().n), (3, 3));
        assert_eq!(format!("{here:?}"), format!("Ref({:?}, {:?})", here.key(), here.value()));
        drop(here);
        map.flush();
        assert_eq!(ledger.alive(), 0);
    });
}

/// The same for a removed entry with its view, and for a part of a value.
#[test]
fn what_was_removed_or_is_a_part_lives_as_long_as_its_view() {
    all_is_dropped_once("into_remove", Some(0), |ledger, map| {
        assert!(map.pin().into_remove(&ledger.value(ENTRIES)).is_none());
        let removed = map.pin().into_remove(&ledger.value(3)).unwrap();
        assert!(map.pin().get(&ledger.value(3)).is_none());
        let part = Ref::map(map.pin_owned().into_get(&ledger.value(7)).unwrap(), |value| &value.n);
        map.clear();
        map.flush();
        assert!(ledger.alive() >= 4);
        assert_eq!((removed.key().n, removed.n, *part), (3, 3, 7));
        drop(removed);
        map.flush();
        assert!(ledger.alive() >= 2 && *part == 7);
        std::thread::scope(|scope| {
            scope.spawn(move || drop(part));
        });
        map.flush();
        assert_eq!(ledger.alive(), 0);
    });
}

/// A thread that has cleared a map where nothing may be dropped, and then ends, leaves the dropping to the next thread that
/// removes something.
#[test]
fn what_was_cleared_under_another_maps_lock_goes_as_others_remove() {
    let map: HashMap<u64, String> = (0..200_000).map(|key| (key, key.to_string())).collect();
    let other: HashMap<u64, u64> = HashMap::new();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            other.pin().get_or_insert_with(1, || {
                map.clear();
                2
            });
        });
    });
    let before = map.stats().waiting;
    assert!(before > map.capacity() / 8, "{before} wait");
    for key in 0..before as u64 {
        map.pin().insert(key, String::new());
        map.pin().remove(&key);
    }
    let after = map.stats().waiting;
    assert!(after <= map.capacity() / 8 + 1000, "{after} wait of {before}, in {} slots", map.capacity());
}
