//! Filling a map with exclusive access, by `extend`, `collect` and `clone`: its contents afterwards, its room, and that it can
//! then be used as any map.

use std::collections::HashMap as Model;

use koel::{HashMap, InlineMap};

use crate::common::hashers::{CONSTANT, Through};
use crate::common::{
    AnyMap, Config, Counted, Ledger, Words, catch, fixed_configs, growing_configs, laws, seeded,
};

fn assert_holds<M: Words>(map: &M, model: &Model<u64, u64>, what: &str) {
    assert_eq!(map.len(), model.len(), "{what}");
    let mut entries = map.entries();
    entries.sort_unstable();
    let mut expected: Vec<_> = model.iter().map(|(key, value)| (*key, *value)).collect();
    expected.sort_unstable();
    assert!(entries == expected, "{what}: other entries");
    assert!(model.iter().all(|(key, value)| map.get(key) == Some(*value)), "{what}: an entry is not found");
    assert!((0..1000).all(|key| map.get(&(u64::MAX - key)).is_none()), "{what}");
}

/// A replaced entry is not put again; an entry in the overflow was not put.
fn assert_put_once<M: Words>(map: &M, what: &str) {
    let stats = map.stats();
    let put = stats.path_lengths.iter().sum::<u64>() + stats.overflow as u64;
    assert_eq!(put, map.len() as u64, "{what}");
}

/// Empty maps and full ones, keys once and many times, fewer than a batch and more than many segments.
fn is_filled_like_a_model<M: Words>() {
    for config in growing_configs().into_iter().chain(fixed_configs(30_000)) {
        for entries in [0, 1, 7, 8, 100, 20_000] {
            let what = format!("{} {config:?} of {entries}", M::NAME);
            let mut map = M::build(config, seeded(entries));
            let mut model = Model::new();
            // New keys, each twice; the same and a quarter more; and others, whose number is not announced.
            let rounds = [(0..entries, 3), (0..entries * 5 / 4, 5), (entries..entries * 3 / 2, 7)];
            for (round, (keys, factor)) in rounds.into_iter().enumerate() {
                let pairs = || keys.clone().flat_map(|key| [(key, 0), (key, key.wrapping_mul(factor))]);
                match round {
                    0 => map.extend_alone(pairs().collect::<Vec<_>>()),
                    1 => map.extend_alone(keys.clone().map(|key| (key, key.wrapping_mul(factor)))),
                    _ => map.extend_alone(pairs().filter(|_| true)),
                }
                model.extend(pairs());
                assert_holds(&map, &model, &what);
                assert_put_once(&map, &what);
            }
            assert_holds(&map.duplicate(), &model, &what);
            others_may_use(&map, entries);
        }
    }
}

/// Threads read entries that stay, and replace, remove and insert others.
fn others_may_use<M: Words>(map: &M, entries: u64) {
    let stays = entries.min(50);
    std::thread::scope(|scope| {
        for thread in 0..2 {
            scope.spawn(move || {
                for n in 0..200 {
                    let key = 1_000_000 + 1000 * thread + n % 40;
                    let _ = map.checked_insert(key, n);
                    assert!((0..stays).all(|key| map.contains_key(&key)), "lost beside writers");
                    map.remove(&key);
                }
            });
        }
    });
}

laws! {
    is_filled_like_a_model =>
        a_hash_map_of_one_s_own_is_filled_like_any,
        an_inline_map_of_one_s_own_is_filled_like_any;
}

#[test]
fn what_promises_nothing_makes_a_map_grow() {
    let pairs = || (0..10_000).filter(|_| true).map(|n| (n, n));
    let (map, inline): (HashMap<u64, u64>, InlineMap<u64, u64>) = (pairs().collect(), pairs().collect());
    assert!(map.stats().splits > 0 && inline.stats().splits > 0);
    assert!((0..10_000).all(|n| map.pin().get(&n) == Some(&n) && inline.get(&n) == Some(n)));
    assert_eq!((map.len(), inline.len()), (10_000, 10_000));
}

/// Each unsuccessful search counts once, though it is made twice.
#[test]
fn a_search_in_vain_is_counted_once() {
    let mut alone: HashMap<u64, u64, Through> = HashMap::with_hasher(CONSTANT);
    Extend::extend(&mut alone, (0..1000).map(|n| (n, n)));
    let stats = alone.stats();
    assert_eq!((stats.overflow, stats.failed_searches), (992, 992), "{stats:?}");
}

/// As by `with_capacity`; and the builder's options stay.
#[test]
fn an_empty_map_is_made_anew_for_what_is_promised() {
    let pairs = || (0..10_000).map(|n| (n, n));
    let made: HashMap<u64, u64> = HashMap::with_capacity(10_000);
    let collected: HashMap<u64, u64> = pairs().collect();
    assert_eq!(collected.capacity(), made.capacity());
    assert_eq!(pairs().collect::<InlineMap<u64, u64>>().capacity(), made.capacity());
    for config in [Config::GROWING.segments_of(64), Config::room_for(100).segments_of(64)] {
        let mut map: HashMap<u64, u64, _> = AnyMap::build(config, seeded(1));
        map.extend_alone(pairs());
        let stats = map.stats();
        // If by chance more keys fall into a segment than it has room for, it splits.
        assert!(stats.segments >= 10_000 / 64 && stats.splits < 100, "{stats:?}");
    }
    let mut roomy: InlineMap<u64, u64> = InlineMap::with_capacity(30_000);
    let room = roomy.capacity();
    Extend::extend(&mut roomy, pairs());
    assert_eq!(roomy.capacity(), room, "what has room enough is left as it is");
    let mut bounded: InlineMap<u64, u64> = InlineMap::builder().fixed_capacity(100).build();
    let room = bounded.capacity();
    Extend::extend(&mut bounded, pairs().take(100));
    assert_eq!((bounded.len(), bounded.capacity()), (100, room));
    let overfill = || Extend::extend(&mut bounded, pairs());
    assert!(catch(overfill).unwrap_err().contains("full"));
    assert!(bounded.len() >= 100 && bounded.iter().all(|(key, value)| key == value));
}

/// In a map made for many entries, these have home cells, and large tables have huge pages: this is checked by the memory they
/// take.
#[test]
fn what_is_collected_takes_as_much_memory_as_what_was_made_for_it() {
    const MANY: u64 = 450_000;
    let made: HashMap<u64, u64> = HashMap::with_capacity(MANY as usize);
    (0..MANY).for_each(|n| assert!(made.pin().insert(n, n).is_none()));
    let collected: HashMap<u64, u64> = (0..MANY).map(|n| (n, n)).collect();
    let ratio = collected.memory_usage() as f64 / made.memory_usage() as f64;
    assert!((0.98..1.02).contains(&ratio), "{ratio}");
}

#[test]
fn every_value_is_dropped_once() {
    let ledger = Ledger::new();
    let pairs = |keys: core::ops::Range<u64>| keys.map(|n| (n, ledger.value(n))).collect::<Vec<_>>();
    let mut map: HashMap<u64, Counted> = pairs(0..500).into_iter().collect();
    // Half of them are replaced.
    Extend::extend(&mut map, pairs(250..750));
    let copy = map.clone();
    assert_eq!((map.len(), copy.len()), (750, 750));
    // Entries removed before go with the table that is replaced.
    map.clear();
    Extend::extend(&mut map, pairs(0..5000));
    assert!(map.len() == 5000 && copy.pin().iter().all(|(key, value)| *key == value.n));
    drop((map, copy));
    ledger.assert_settled("filled alone");
}

/// The overflow that was allowed while the map was filled is not what its copy allows.
fn bounds_its_copy<M: AnyMap<Key = u64, Value = u64, Hasher = Through>>() {
    let map = M::build(Config::fixed(100), CONSTANT);
    let taken = (0..1000).take_while(|key| map.checked_insert(*key, 0).is_ok()).count();
    assert_eq!(taken, 100, "{}", M::NAME);
    let copy = map.duplicate();
    let taken = (1000..9000).filter(|key| copy.checked_insert(*key, 0).is_ok()).count();
    assert_eq!((taken, copy.len()), (0, 100), "{}", M::NAME);
}

#[test]
fn a_copy_of_a_full_map_of_fixed_capacity_is_full() {
    bounds_its_copy::<HashMap<u64, u64, Through>>();
    bounds_its_copy::<InlineMap<u64, u64, Through>>();
}

#[test]
fn of_two_capacities_the_last_counts() {
    let grows = HashMap::<u64, u64>::builder().fixed_capacity(4).capacity(8).build();
    grows.extend((0..1000).map(|n| (n, n)));
    assert_eq!(grows.len(), 1000);
    let fixed = HashMap::<u64, u64>::builder().capacity(1000).fixed_capacity(4).build();
    assert!((0..1000).any(|n| fixed.pin().checked_insert(n, n).is_err()));
}
