//! `flush` drops removed entries: at once if no pin lives, and otherwise when the last older pin ends.

mod common;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, mpsc};

use common::{AnyMap, Config, Counted, Ledger, Seeded, catch, seeded};
use koel::HashMap;

type Map = HashMap<u64, Counted, Seeded>;

const ENTRIES: u64 = 100;

fn filled(ledger: &Arc<Ledger>) -> Map {
    let map = Map::build(Config::GROWING, seeded(1));
    (0..ENTRIES).for_each(|key| assert!(map.pin().insert(key, ledger.value(key)).is_none()));
    map
}

/// Removes one key, then two more, and so on; after each flush as many values are alive as there are entries.
fn removals_are_dropped_by_flush(what: &str, ledger: &Ledger, map: &Map) {
    let mut keys = 0..ENTRIES;
    for many in [1, 2, 3, 31, 32, 31] {
        for key in keys.by_ref().take(many) {
            assert!(map.pin().remove(&key).is_some());
        }
        map.flush();
        assert_eq!(ledger.alive(), map.len(), "{what}: after {many} removals");
    }
    assert!(map.is_empty());
}

#[test]
fn removed_values_are_dropped_by_a_flush() {
    let ledger = Ledger::new();
    removals_are_dropped_by_flush("never an owned pin", &ledger, &filled(&ledger));
}

/// Otherwise other values' destructors would run there.
#[test]
fn a_flush_under_the_map_s_lock_panics_and_drops_nothing() {
    for config in [Config::GROWING, Config::fixed(ENTRIES as usize)] {
        let ledger = Ledger::new();
        let map = Map::build(config, seeded(1));
        (0..ENTRIES).for_each(|key| assert!(map.pin().insert(key, ledger.value(key)).is_none()));
        map.pin().remove(&0);
        let flushes: [fn(&Map); 4] =
            [Map::flush, Map::shrink_to_fit, |map| map.pin().flush(), |map| map.pin().shrink_to_fit()];
        for flush in flushes {
            let under_the_lock = || {
                map.pin().update(1, |_| {
                    flush(&map);
                    unreachable!("it panics")
                });
            };
            let message = catch(under_the_lock).unwrap_err();
            assert!(message.contains("same map"), "{message}");
            assert_eq!(ledger.alive() as u64, ENTRIES);
        }
        map.flush();
        assert_eq!(ledger.alive() as u64, ENTRIES - 1);
    }
}

#[test]
fn an_owned_pin_in_the_past_does_not_hinder_a_flush() {
    let ledger = Ledger::new();
    let map = filled(&ledger);
    drop(map.pin_owned());
    removals_are_dropped_by_flush("an owned pin in the past", &ledger, &map);
}

#[test]
fn values_that_an_owned_pin_has_removed_are_dropped_by_its_flush_and_its_end() {
    let ledger = Ledger::new();
    let map = filled(&ledger);
    let pin = map.pin_owned();
    for key in 0..ENTRIES {
        pin.remove(&key);
    }
    pin.flush();
    assert_eq!(ledger.alive() as u64, ENTRIES, "dropped under a pin");
    drop(pin);
    assert_eq!(ledger.alive(), 0);
}

#[test]
fn a_pins_flush_drops_when_the_pin_ends() {
    for owned_before in [false, true] {
        let ledger = Ledger::new();
        let map = filled(&ledger);
        if owned_before {
            drop(map.pin_owned());
        }
        let pin = map.pin();
        let value = pin.remove(&1).unwrap();
        pin.flush();
        assert_eq!((value.n, ledger.alive() as u64), (1, ENTRIES));
        drop(pin);
        assert_eq!(ledger.alive() as u64, ENTRIES - 1);
    }
}

/// One removed entry, and more pins than that: a batch is passed on all the same.
#[test]
fn what_pins_of_other_threads_hold_up_is_dropped_when_they_end() {
    for owned_before in [false, true] {
        let ledger = Ledger::new();
        let map = filled(&ledger);
        if owned_before {
            drop(map.pin_owned());
        }
        let owned: Vec<_> = (0..5).map(|_| map.pin_owned()).filter(|_| owned_before).collect();
        let (entered, wait_entered) = mpsc::channel();
        std::thread::scope(|scope| {
            let others: Vec<_> = (0..5)
                .map(|_| {
                    let (leave, wait) = mpsc::channel::<()>();
                    let (map, entered) = (&map, entered.clone());
                    let thread = scope.spawn(move || {
                        let _pin = map.pin();
                        entered.send(()).unwrap();
                        wait.recv().unwrap_err();
                    });
                    (leave, thread)
                })
                .collect();
            others.iter().for_each(|_| wait_entered.recv().unwrap());
            map.pin().remove(&1);
            map.flush();
            assert_eq!(ledger.alive() as u64, ENTRIES, "dropped under a pin");
            for (leave, thread) in others {
                drop(leave);
                thread.join().unwrap();
            }
        });
        if owned_before {
            assert_eq!(ledger.alive() as u64, ENTRIES, "dropped under an owned pin");
        }
        drop(owned);
        assert_eq!(ledger.alive() as u64, ENTRIES - 1);
    }
}

#[test]
fn entries_that_need_no_drop_give_their_memory_back_by_a_flush() {
    for owned_before in [false, true] {
        let map = HashMap::<u64, [u64; 7], Seeded>::build(Config::GROWING, seeded(1));
        let fill = || (0..2000).for_each(|key| assert!(map.pin().insert(key, [key; 7]).is_none()));
        let empty = || (0..2000).for_each(|key| assert!(map.pin().remove(&key).is_some()));
        fill();
        if owned_before {
            drop(map.pin_owned());
        }
        // Plus a few words for each list of free pieces.
        let full = map.memory_usage() * 101 / 100;
        for _ in 0..20 {
            empty();
            map.flush();
            fill();
            assert!(map.memory_usage() <= full, "{owned_before}");
        }
    }
}

#[test]
fn a_removed_sender_is_closed_by_a_flush() {
    let map = HashMap::new();
    let (sender, receiver) = mpsc::channel::<()>();
    map.pin().insert("sender", sender);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            map.pin().remove("sender");
            map.flush();
        });
    });
    assert_eq!(receiver.try_recv(), Err(mpsc::TryRecvError::Disconnected));
}

/// A thread that only reads a map in a closure under another's lock runs none of its destructors there; the thread's next pin
/// of that map does, of either kind, wherever it was made.
#[test]
fn no_value_is_dropped_under_the_lock_of_another_map() {
    postponed_until("a pin", |map| drop(map.pin()));
    postponed_until("an owned pin", |map| drop(map.pin_owned()));
    postponed_until("an owned pin of another thread", |map| {
        drop(std::thread::scope(|scope| scope.spawn(|| map.pin_owned()).join().unwrap()));
    });
}

/// If the last pin of a flush ends in a closure under another map's lock, its destructors run not there, but in `next`.
fn postponed_until(what: &str, next: fn(&Map)) {
    let ledger = Ledger::new();
    let map = filled(&ledger);
    let other = HashMap::from([(1, 1)]);
    let n = ledger.alive();
    other.pin().compute(1, |_| {
        let pin = map.pin();
        std::thread::scope(|scope| {
            let removal = scope.spawn(|| {
                map.pin().remove(&1);
                map.flush();
            });
            removal.join().unwrap();
        });
        drop(pin);
        assert_eq!(ledger.alive(), n, "dropped under the lock");
        koel::Operation::<_, ()>::Insert(2)
    });
    // Not by the next of another map.
    (0..20).for_each(|_| drop(other.pin()));
    assert_eq!(ledger.alive(), n);
    next(&map);
    assert_eq!(ledger.alive(), n - 1, "{what}: the flush was forgotten");
}

/// By [C2] only entries whose wait is over when a bag is sealed are dropped there.
#[test]
fn what_is_replaced_under_the_lock_of_another_map_does_not_pile_up() {
    let ledger = Ledger::new();
    let map = filled(&ledger);
    let other = HashMap::from([(1, 1)]);
    other.pin().update(1, |_| {
        for n in 0..200_000 {
            map.pin().insert(n % ENTRIES, ledger.value(n));
            assert!(ledger.alive() < 5000, "{} are alive after {n}", ledger.alive());
        }
        2
    });
}

/// Each value's end removes the next and flushes: deeper in destructors than any thread goes, and than its stack is.
#[test]
fn a_flush_deep_in_destructors_is_followed_further_out() {
    const LINKS: u64 = 20_000;
    static MAP: LazyLock<HashMap<u64, Link>> = LazyLock::new(HashMap::new);
    struct Link {
        key: u64,
        dropped: Arc<AtomicU64>,
    }
    impl Drop for Link {
        fn drop(&mut self) {
            self.dropped.fetch_add(1, Ordering::Relaxed);
            MAP.pin().remove(&(self.key + 1));
            MAP.flush();
        }
    }
    let dropped = Arc::new(AtomicU64::new(0));
    (0..LINKS).for_each(|key| {
        MAP.pin().insert(key, Link { key, dropped: Arc::clone(&dropped) });
    });
    MAP.pin().remove(&0);
    MAP.flush();
    assert_eq!((dropped.load(Ordering::Relaxed), MAP.len()), (LINKS, 0));
}

/// A pin is taken before the last one ends, and there are more than a thread has records for: each is older than the removals
/// after it, and none is older than all of them.
#[test]
fn pins_that_take_turns_hold_up_only_what_they_see() {
    for others in [1, 6, 7, 20] {
        let ledger = Ledger::new();
        let (map, kept) = (filled(&ledger), Map::build(Config::GROWING, seeded(2)));
        let _kept: Vec<_> = (0..others).map(|_| kept.pin()).collect();
        let mut pin = map.pin();
        for n in 0..20_000 {
            pin.insert(n % ENTRIES, ledger.value(n));
            let next = map.pin();
            drop(std::mem::replace(&mut pin, next));
        }
        assert!(ledger.alive() < 10_000, "beside {others}: {} are alive", ledger.alive());
        drop(pin);
        map.flush();
        assert_eq!(ledger.alive(), map.len());
    }
}
