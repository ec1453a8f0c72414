//! Pins that are held, sent and shared; threads that come and go.

use std::sync::atomic::{AtomicBool, Ordering};

use koel::HashMap;

use crate::common::{
    AnyMap, Config, Counted, Ledger, Rng, Seeded, SetAtEnd, Words, laws, on_threads, seed, seeded,
};

laws! {
    short_lived_threads => hundreds_of_threads_use_one_hash_map, hundreds_of_threads_use_one_inline_map;
    many_maps => hundreds_of_hash_maps_are_used_by_one_thread, hundreds_of_inline_maps_are_used_by_one_thread;
}

fn short_lived_threads<M: Words>() {
    let map = M::build(Config::GROWING, seeded(1));
    for round in 0..100 {
        on_threads(4, |thread| {
            let base = round * 400 + thread as u64 * 100;
            (base..base + 100).for_each(|key| assert_eq!(map.insert(key, key), None));
            (base..base + 100).for_each(|key| assert_eq!(map.get(&key), Some(key)));
            (base..base + 90).for_each(|key| assert_eq!(map.remove(&key), Some(key)));
        });
    }
    assert_eq!(map.len(), 100 * 4 * 10);
}

fn many_maps<M: Words>() {
    let maps: Vec<M> = (0..300).map(|n| M::build(Config::GROWING, seeded(n))).collect();
    on_threads(3, |thread| {
        for (map, n) in maps.iter().zip(0..) {
            let _hold = map.hold();
            (0..20).for_each(|key| assert_eq!(map.insert(key * 3 + thread as u64, n), None));
        }
    });
    assert!(maps.iter().all(|map| map.len() == 60));
}

/// References stay valid while all entries of the map are replaced three times.
#[test]
fn what_a_pin_has_returned_stays_alive_while_writers_churn() {
    let ledger = Ledger::new();
    let map = HashMap::<u64, Counted, Seeded>::build(Config::GROWING, seeded(1));
    (0..500).for_each(|key| assert!(map.pin().insert(key, ledger.value(key)).is_none()));
    on_threads(3, |thread| {
        let mut rng = Rng::new(thread as u64);
        if thread == 0 {
            for round in 1..7 {
                for key in 0..500 {
                    map.pin().insert(key, ledger.value(key + round * 1000));
                }
                map.pin().retain(|key, _| key % 2 == 0);
                map.shrink_to_fit();
            }
            return;
        }
        for _ in 0..40 {
            let pin = map.pin();
            let keys: Vec<u64> = (0..50).map(|_| rng.below(500)).collect();
            let mut values = vec![None; keys.len()];
            pin.get_many(&keys, &mut values);
            let noted: Vec<_> = values.iter().map(|value| value.map(|value| value.n)).collect();
            let walked: Vec<(&u64, &Counted)> = pin.iter().take(200).collect();
            std::thread::yield_now();
            for ((key, value), noted) in keys.iter().zip(values).zip(noted) {
                assert_eq!(value.map(|value| value.n), noted, "changed under a reader's eyes");
                assert!(value.is_none_or(|value| value.n % 1000 == *key));
            }
            assert!(walked.iter().all(|(key, value)| value.n % 1000 == **key));
        }
    });
    drop(map);
    ledger.assert_settled("held pins");
}

#[test]
fn an_owned_pin_works_on_whichever_thread_it_is() {
    let ledger = Ledger::new();
    let map = HashMap::<u64, Counted, Seeded>::build(Config::GROWING, seeded(1));
    let mut pin = map.pin_owned();
    for round in 0..50 {
        // A pin moves from thread to thread, with a reference that it keeps alive.
        let map = &map;
        let ledger = &ledger;
        pin = std::thread::scope(|scope| {
            let work = move || {
                pin.insert(round, ledger.value(round));
                for other in 0..=round {
                    assert_eq!(pin.get(&other).unwrap().n, other);
                }
                let first = pin.get(&round).unwrap();
                map.pin().insert(round, ledger.value(round));
                pin.update(round, |value| ledger.value(value.n));
                assert_eq!(first.n, round);
                pin
            };
            scope.spawn(work).join().unwrap()
        });
    }
    drop(pin);
    assert_eq!(map.len(), 50);
    drop(map);
    ledger.assert_settled("owned pins");
}

#[test]
fn threads_may_share_one_owned_pin() {
    let ledger = Ledger::new();
    let map = HashMap::<u64, Counted, Seeded>::build(Config::GROWING.segments_of(64), seeded(1));
    let seed = seed();
    for _ in 0..5 {
        let pin = map.pin_owned();
        on_threads(4, |thread| {
            let mut rng = Rng::new(seed + thread as u64);
            for _ in 0..1000 {
                let key = rng.below(100);
                match rng.below(4) {
                    0 => assert!(pin.get(&key).is_none_or(|value| value.n == key)),
                    1 => assert!(pin.remove(&key).is_none_or(|value| value.n == key)),
                    2 => assert_eq!(pin.get_or_insert_with(key, || ledger.value(key)).n, key),
                    _ => assert!(pin.insert(key, ledger.value(key)).is_none_or(|value| value.n == key)),
                }
            }
        });
    }
    drop(map);
    ledger.assert_settled("shared pins");
}

#[test]
fn what_is_found_or_made_is_there_though_a_thread_removes_it_all_the_time() {
    let ledger = Ledger::new();
    let map = HashMap::<u64, Counted, Seeded>::build(Config::GROWING, seeded(1));
    let done = AtomicBool::new(false);
    on_threads(2, |thread| {
        if thread == 0 {
            while !done.load(Ordering::Relaxed) {
                (0..3).for_each(|key| assert!(map.pin().remove(&key).is_none_or(|value| value.n == key)));
            }
            map.flush();
            return;
        }
        let _end = SetAtEnd(&done);
        for key in (0..3).cycle().take(500_000) {
            let found = map.pin().into_get_or_insert_with(key, || ledger.value(key));
            let again = map.pin_owned().into_get_or_insert_with_ref(&key, || ledger.value(key));
            assert_eq!((found.n, again.n, *found.key(), *again.key()), (key, key, key, key));
        }
    });
    map.flush();
    assert!(map.len() <= 3 && ledger.alive() <= map.len());
    drop(map);
    ledger.assert_settled("found or made");
}

/// A reader that holds its pin for long holds up memory, but not other threads.
#[test]
fn a_pin_that_is_held_blocks_nobody() {
    let ledger = Ledger::new();
    let map = HashMap::<u64, Counted, Seeded>::build(Config::GROWING, seeded(1));
    let pin = map.pin();
    on_threads(2, |thread| {
        for round in 0..200 {
            for key in 0..50 {
                map.pin().insert(key * 2 + thread as u64, ledger.value(round));
            }
        }
        map.shrink_to_fit();
    });
    assert!(ledger.alive() >= 19_000, "entries were freed that the pin may see");
    drop(pin);
    drop(map);
    ledger.assert_settled("a held pin");
}
