//! The guard over a store in memory [D1]..[D6]: a key that the store holds is never reported absent, a value is never older
//! than the last write that was over, however puts, deletes, look-ups and scans for new filters interleave.
#![cfg(shuttle)]

use koel::Operation;
use koel::guard::{Filter, Guarded, HashMapStore, Phase, Store, Write};
use shuttle::sync::atomic::{AtomicU64, Ordering};
use shuttle::thread;
use shuttle_tests::{explore, pause};

type Guard = Guarded<HashMapStore>;

/// The number of keys that are present throughout.
const HELD: u64 = 3;
/// The number of a writer's keys.
const MINE: u64 = 4;

fn key(i: u64) -> [u8; 8] {
    i.to_le_bytes()
}

fn number(value: &[u8]) -> u64 {
    u64::from_le_bytes(value.try_into().expect("eight bytes"))
}

/// The guard's answer for a key.
fn get(guard: &Guard, i: u64) -> Option<u64> {
    guard.get(&key(i)).expect("a store that cannot fail").map(|value| number(&value))
}

fn put(guard: &Guard, i: u64, value: u64) -> bool {
    guard.put(&key(i), &key(value)).expect("a store that cannot fail")
}

fn delete(guard: &Guard, i: u64) -> bool {
    guard.delete(&key(i)).expect("a store that cannot fail")
}

/// Puts keys that stay, replaces them, and puts others that it deletes: nobody else writes them.
fn write(guard: &Guard, first: u64) {
    for i in 0..MINE {
        let (stays, goes) = (first + i, first + 50 + i % 2);
        assert!(!put(guard, stays, 0), "a new key");
        assert_eq!(get(guard, stays), Some(0), "a thread sees what it has put");
        assert!(put(guard, stays, 1), "a key that is there");
        assert_eq!(get(guard, stays), Some(1));
        assert!(!put(guard, goes, i));
        assert_eq!(get(guard, goes), Some(i));
        assert!(delete(guard, goes));
        assert_eq!(get(guard, goes), None, "and what it has deleted");
    }
}

/// Replaces the held keys, and says so before and after.
struct Replacer {
    begun: AtomicU64,
    done: AtomicU64,
}

impl Replacer {
    fn new() -> Self {
        Replacer { begun: AtomicU64::new(0), done: AtomicU64::new(0) }
    }

    fn replace(&self, guard: &Guard) {
        for version in 1..=4 {
            self.begun.store(version, Ordering::SeqCst);
            (0..HELD).for_each(|i| assert!(put(guard, i, version)));
            self.done.store(version, Ordering::SeqCst);
        }
    }
}

fn read(guard: &Guard, replacer: &Replacer) {
    let mut last = [0; HELD as usize];
    for round in 0..4 {
        let least = replacer.done.load(Ordering::SeqCst);
        let seen: Vec<Option<u64>> = if round % 2 == 0 {
            (0..HELD).map(|i| get(guard, i)).collect()
        } else {
            let keys: Vec<[u8; 8]> = (0..HELD).map(key).collect();
            let values = guard.get_many(&keys).expect("a store that cannot fail");
            values.into_iter().map(|value| value.map(|value| number(&value))).collect()
        };
        let most = replacer.begun.load(Ordering::SeqCst);
        for (seen, last) in seen.into_iter().zip(&mut last) {
            let seen = seen.expect("a held key that is reported absent");
            assert!(seen >= *last, "{seen} after {last} had been seen");
            *last = seen;
            assert!((least..=most).contains(&seen), "{seen} while {least} was over and {most} had begun");
        }
        // From now on the guard must not deny what the store holds, even if its put is not over.
        for i in (100..100 + MINE).chain(200..200 + MINE) {
            if guard.store().get(&key(i)).expect("a store that cannot fail").is_some() {
                assert!(get(guard, i).is_some(), "the store holds {i}, the guard says absent");
            }
        }
        assert_eq!(get(guard, 1000), None);
    }
}

/// Options of a guard.
#[derive(Clone, Copy)]
struct Options {
    filter: Filter,
    cache_bytes: u64,
    /// How often the filter is taken away to be built anew.
    rebuilds: usize,
}

const PLAIN: Options = Options { filter: Filter::Cuckoo, cache_bytes: 0, rebuilds: 0 };

fn never_denies_what_the_store_holds(options: Options) {
    explore(200, move || {
        let builder = Guarded::builder(HashMapStore::new()).filter(options.filter);
        let builder = builder.expected_keys(4).false_positive_rate(0.01).cache_bytes(options.cache_bytes);
        let guard = builder.open().expect("options in their range");
        if options.rebuilds == 0 {
            guard.wait_until_ready().expect("a store that cannot fail");
        }
        // Otherwise the first scan runs alongside all of this.
        (0..HELD).for_each(|i| assert!(!put(&guard, i, 0)));
        let replacer = Replacer::new();
        thread::scope(|scope| {
            let (guard, replacer) = (&guard, &replacer);
            for first in [100, 200] {
                scope.spawn(move || write(guard, first));
            }
            scope.spawn(|| replacer.replace(guard));
            for _ in 0..2 {
                scope.spawn(|| read(guard, replacer));
            }
            if options.rebuilds > 0 {
                scope.spawn(|| {
                    for _ in 0..options.rebuilds {
                        guard.rebuild().expect("threads");
                        guard.wait_until_ready().expect("a store that cannot fail");
                        pause();
                    }
                });
            }
        });
        guard.wait_until_ready().expect("a store that cannot fail");
        (0..HELD).for_each(|i| assert_eq!(get(&guard, i), Some(4)));
        let written = (100..100 + MINE).chain(200..200 + MINE);
        written.for_each(|i| assert_eq!(get(&guard, i), Some(1)));
        assert_eq!(guard.verify(100).expect("a store that cannot fail").false_negatives, 0);
        if options.filter == Filter::Cuckoo {
            let keys = guard.stats().filter_keys;
            assert_eq!(keys, HELD + 2 * MINE, "as many fingerprints as keys");
        }
    });
}

#[test]
fn guard_never_denies_what_the_store_holds() {
    never_denies_what_the_store_holds(PLAIN);
}

#[test]
fn guard_never_denies_what_the_store_holds_with_a_cache() {
    never_denies_what_the_store_holds(Options { cache_bytes: 2000, ..PLAIN });
}

#[test]
fn guard_never_denies_what_the_store_holds_while_it_scans() {
    never_denies_what_the_store_holds(Options { rebuilds: 3, ..PLAIN });
}

#[test]
fn guard_never_denies_what_the_store_holds_while_it_scans_with_a_cache() {
    never_denies_what_the_store_holds(Options { cache_bytes: 2000, rebuilds: 3, ..PLAIN });
}

#[test]
fn guard_with_a_bloom_filter_never_denies_what_the_store_holds() {
    never_denies_what_the_store_holds(Options { filter: Filter::Bloom, rebuilds: 2, ..PLAIN });
}

/// Some threads add to values, others look, while the filter is built anew: what was added is not lost [D9].
#[test]
fn guard_counts_all_that_is_added_to_a_value() {
    const ADDERS: u64 = 3;
    const TIMES: u64 = 4;
    explore(500, || {
        let builder = Guarded::builder(HashMapStore::new()).expected_keys(4).cache_bytes(2000);
        let guard = builder.open().expect("options in their range");
        thread::scope(|scope| {
            let guard = &guard;
            for _ in 0..ADDERS {
                scope.spawn(move || {
                    for time in 0..TIMES {
                        let more =
                            |old: Option<&[u8]>| Operation::<_, ()>::Insert(key(old.map_or(0, number) + 1));
                        guard.compute(&key(time % 2), more).expect("a store that cannot fail");
                    }
                });
            }
            scope.spawn(|| {
                (0..3).for_each(|i| assert!(get(guard, i % 2).is_none_or(|n| n <= ADDERS * TIMES)))
            });
            scope.spawn(|| guard.rebuild().expect("threads"));
        });
        assert_eq!(get(&guard, 0).zip(get(&guard, 1)).map(|(a, b)| a + b), Some(ADDERS * TIMES));
        guard.wait_until_ready().expect("a store that cannot fail");
        assert_eq!(guard.stats().filter_keys, 2);
    });
}

/// A thread writes around the guard while it scans, and reports that: the guard ends up with a filter from a scan that has seen
/// the write.
#[test]
fn guard_that_is_told_of_a_write_around_it_while_it_scans_scans_again() {
    explore(300, || {
        let guard =
            Guarded::builder(HashMapStore::new()).expected_keys(4).open().expect("options in their range");
        guard.wait_until_ready().expect("a store that cannot fail");
        (0..HELD).for_each(|i| assert!(!put(&guard, i, 0)));
        thread::scope(|scope| {
            let guard = &guard;
            scope.spawn(|| guard.rebuild().expect("threads"));
            scope.spawn(|| {
                let Ok(existed) = guard.store().put(&key(HELD), &key(7));
                assert!(!existed);
                let verification = guard.verify(100).expect("a store that cannot fail");
                if verification.checked == 0 {
                    // There is no filter, and the scan may have begun before.
                    guard.rebuild().expect("threads");
                }
                for _ in 0..3 * verification.false_negatives {
                    assert_eq!(get(guard, HELD), Some(7), "from now on");
                    pause();
                }
            });
        });
        guard.wait_until_ready().expect("a store that cannot fail");
        assert_eq!(guard.progress().phase, Phase::Ready);
        (0..=HELD).for_each(|i| assert!(get(&guard, i).is_some()));
    });
}

/// A thread writes around the guard and asks for a scan, while others write and ask for one: from then on the guard finds the
/// key.
#[test]
fn guard_that_is_asked_for_a_scan_denies_nothing_that_was_there_before() {
    explore(300, || {
        let guard =
            Guarded::builder(HashMapStore::new()).expected_keys(1).open().expect("options in their range");
        guard.wait_until_ready().expect("a store that cannot fail");
        (0..HELD).for_each(|i| assert!(!put(&guard, i, 0)));
        thread::scope(|scope| {
            let guard = &guard;
            scope.spawn(|| write(guard, 100));
            scope.spawn(|| guard.rebuild().expect("threads"));
            scope.spawn(|| {
                for i in [HELD, HELD + 1] {
                    assert_eq!(guard.store().put(&key(i), &key(7)), Ok(false));
                    guard.rebuild().expect("threads");
                    for _ in 0..3 {
                        assert_eq!(get(guard, i), Some(7), "from now on");
                        pause();
                    }
                }
            });
        });
        guard.wait_until_ready().expect("a store that cannot fail");
        assert_eq!(guard.stats().filter_keys, HELD + 2 + MINE);
    });
}

/// A thread replaces values around the guard, and asks for a scan: from the scan's end on nobody gets what was cached before.
#[test]
fn guard_that_is_asked_for_a_scan_forgets_what_it_has_cached() {
    explore(1500, || {
        let builder = Guarded::builder(HashMapStore::new()).expected_keys(4).cache_bytes(2000);
        let guard = builder.open().expect("options in their range");
        (0..HELD).for_each(|i| assert!(!put(&guard, i, 0)));
        let told = AtomicU64::new(0);
        thread::scope(|scope| {
            let (guard, told) = (&guard, &told);
            scope.spawn(|| {
                (0..HELD).for_each(|i| assert_eq!(guard.store().put(&key(i), &key(7)), Ok(true)));
                guard.rebuild().expect("threads");
                guard.wait_until_ready().expect("a store that cannot fail");
                told.store(7, Ordering::SeqCst);
            });
            for _ in 0..2 {
                scope.spawn(|| {
                    for round in 0..4 * HELD {
                        let least = told.load(Ordering::SeqCst);
                        assert!(get(guard, round % HELD) >= Some(least), "cached before it was told");
                    }
                });
            }
        });
        (0..HELD).for_each(|i| assert_eq!(get(&guard, i), Some(7)));
    });
}

/// Two threads write the same keys at once, each in its own order, and put in and take out one key of their own: neither waits
/// for the other forever, what the store holds is not denied, and each time all keys have one writer's value.
fn lets_one_of_two_go_first(scans: bool) {
    explore(300, move || {
        let guard =
            Guarded::builder(HashMapStore::new()).expected_keys(4).open().expect("options in their range");
        guard.wait_until_ready().expect("a store that cannot fail");
        let mut keys = [0, 1, 2].map(key);
        thread::scope(|scope| {
            let guard = &guard;
            for (own, value) in [(key(100), key(1)), (key(200), key(2))] {
                keys.reverse();
                scope.spawn(move || write_several(guard, keys, own, value));
            }
            scope.spawn(|| {
                for i in [0, 1, 2, 0, 1, 2] {
                    let Ok(held) = guard.store().get(&key(i));
                    assert!(held.is_none() || get(guard, i).is_some(), "the store holds {i}");
                    pause();
                }
            });
            if scans {
                scope.spawn(|| guard.rebuild().expect("threads"));
            }
        });
        guard.wait_until_ready().expect("a store that cannot fail");
        let values = [0, 1, 2].map(|i| get(&guard, i));
        assert!(values[0].is_some() && values == [values[0]; 3], "{values:?}");
        assert_eq!(guard.stats().filter_keys, 5);
        assert_eq!(guard.verify(100).expect("a store that cannot fail").false_negatives, 0);
    });
}

fn write_several(guard: &Guard, keys: [[u8; 8]; 3], own: [u8; 8], value: [u8; 8]) {
    let [a, b, c] = keys.each_ref().map(|key| Write::Put(key, &value));
    for is_there in [false, true, false] {
        let last = if is_there { Write::Delete(&own) } else { Write::Put(&own, &value) };
        let existed = guard.write_many(&[a, b, c, last]).expect("a store that cannot fail");
        assert_eq!((existed[3], existed[0]), (is_there, existed[1]));
        let now = guard.get_many(&[own, keys[0]]).expect("a store that cannot fail");
        assert!(now[0].is_none() == is_there && now[1].is_some());
    }
}

#[test]
fn guard_of_two_who_write_several_keys_at_once_lets_one_go_first() {
    lets_one_of_two_go_first(false);
}

#[test]
fn guard_of_two_who_write_several_keys_at_once_lets_one_go_first_while_it_scans() {
    lets_one_of_two_go_first(true);
}
