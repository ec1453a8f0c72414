//! Keys that are in the map throughout are looked up, in every way, while all other entries are replaced: not one look-up
//! misses, and no value is another key's.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::common::{Config, Rng, Words, fixed_configs, growing_configs, laws, on_threads, seed, seeded};

laws! {
    at_95_percent => reader_never_misses_a_displaced_key_of_a_hash_map, reader_never_misses_a_displaced_key_of_an_inline_map;
    while_growing => reader_never_misses_a_key_of_a_growing_hash_map, reader_never_misses_a_key_of_a_growing_inline_map;
    while_breathing => reader_never_misses_a_key_of_a_shrinking_hash_map, reader_never_misses_a_key_of_a_shrinking_inline_map;
    while_reused => reader_is_not_fooled_by_tables_of_a_hash_map_that_are_used_again,
        reader_is_not_fooled_by_tables_of_an_inline_map_that_are_used_again;
    while_others_go => reader_never_misses_what_retain_keeps_in_a_hash_map, reader_never_misses_what_retain_keeps_in_an_inline_map;
    while_replaced => reader_sees_some_value_of_a_key_that_is_replaced_in_a_hash_map,
        reader_sees_some_value_of_a_key_that_is_replaced_in_an_inline_map;
    while_cleared => reader_sees_all_or_nothing_of_a_hash_map_that_is_cleared,
        reader_sees_all_or_nothing_of_an_inline_map_that_is_cleared;
}

/// Values identify their keys.
const MARK: u64 = 0x5555_5555;

/// Looks up keys 0..held, `rounds` times, but at most until `writers` are done, and at least once.
fn look_up<M: Words>(map: &M, held: u64, rounds: usize, writers: &AtomicUsize, seed: u64) {
    let mut rng = Rng::new(seed);
    for round in 0..rounds {
        if round > 0 && writers.load(Ordering::Relaxed) == 0 {
            return;
        }
        for _ in 0..held / 4 {
            let key = rng.below(held);
            assert_eq!(map.get(&key), Some(key ^ MARK), "get missed {key}");
            let key = rng.below(held);
            assert!(map.may_contain(&key), "may_contain missed {key}");
            assert!(map.contains_key(&key), "contains_key missed {key}");
        }
        let keys: Vec<u64> = (0..1 + rng.below(100)).map(|_| rng.below(held)).collect();
        let values = map.get_many(&keys);
        assert!(
            keys.iter().zip(&values).all(|(key, value)| *value == Some(key ^ MARK)),
            "get_many: {keys:?} {values:?}"
        );
        assert!(
            map.contains_many(&keys).into_iter().all(|found| found),
            "contains_many missed one of {keys:?}"
        );
    }
}

/// One thread disturbs `map` while another looks up what is held throughout.
fn misses_nothing<M: Words>(map: &M, held: u64, rounds: usize, disturb: impl Fn(&mut Rng) + Sync) {
    for key in 0..held {
        assert_eq!(map.insert(key, key ^ MARK), None);
    }
    let (seed, writers) = (seed(), AtomicUsize::new(1));
    on_threads(3, |thread| {
        if thread == 0 {
            disturb(&mut Rng::new(seed));
            writers.store(0, Ordering::Relaxed);
        } else {
            look_up(map, held, rounds, &writers, seed + thread as u64);
        }
    });
    look_up(map, held, 2, &AtomicUsize::new(1), seed);
}

const ENTRIES: usize = 2000;

fn at_95_percent<M: Words>() {
    for config in fixed_configs(ENTRIES) {
        let map = M::build(config, seeded(1));
        let held = ENTRIES as u64 / 2;
        misses_nothing(&map, held, 10_000, |rng| {
            // Filled to the brim, which is beyond the capacity; then one key is removed, and one inserted, in turn.
            let mut present: Vec<u64> =
                (held..).take_while(|key| map.checked_insert(*key, key ^ MARK).is_ok()).collect();
            for new in 1_000_000..1_000_000 + 15_000_u64 {
                let at = rng.below(present.len() as u64) as usize;
                assert_eq!(map.remove(&present[at]), Some(present[at] ^ MARK));
                match map.checked_insert(new, new ^ MARK) {
                    Ok(old) => {
                        assert_eq!(old, None);
                        present[at] = new;
                    }
                    // Its buckets are full, and no path leads to the hole: the old key is put back, if that is possible.
                    Err(full) => {
                        assert_eq!(full.key, new);
                        if map.checked_insert(present[at], present[at] ^ MARK).is_err() {
                            present.swap_remove(at);
                        }
                    }
                }
            }
        });
        let stats = map.stats();
        assert!(config.segment_slots == Some(8) || stats.displacements > 1000, "{config:?}: {stats:?}");
    }
}

fn while_growing<M: Words>() {
    for config in growing_configs() {
        for history in 0..4 {
            let map = M::build(config, seeded(history));
            misses_nothing(&map, 100, 10_000, |_| {
                (0..20_000).for_each(|i| assert_eq!(map.insert(1000 + i, (1000 + i) ^ MARK), None));
            });
        }
    }
}

fn while_breathing<M: Words>() {
    for config in growing_configs() {
        let map = M::build(config, seeded(2));
        misses_nothing(&map, 50, 10_000, |rng| {
            for _ in 0..40 {
                (0..rng.below(2000)).for_each(|i| assert_eq!(map.insert(1000 + i, i), None));
                map.retain(|key, _| *key < 50);
                map.shrink_to_fit();
            }
        });
    }
}

/// The same few tables take turns, faster than a reader that is interrupted may notice.
fn while_reused<M: Words>() {
    for config in [Config::GROWING, Config::GROWING.segments_of(8)] {
        let map = M::build(config, seeded(2));
        misses_nothing(&map, 8, 100_000, |_| {
            for _ in 0..10_000 {
                (1000..1012).for_each(|key| assert_eq!(map.insert(key, key), None));
                (1000..1012).for_each(|key| assert_eq!(map.remove(&key), Some(key)));
                map.shrink_to_fit();
            }
        });
    }
}

fn while_others_go<M: Words>() {
    for config in growing_configs() {
        let map = M::build(config, seeded(2));
        misses_nothing(&map, 300, 10_000, |rng| {
            for _ in 0..60 {
                map.extend((1000..1000 + rng.below(1000)).map(|key| (key, key ^ MARK)).collect());
                map.retain(|key, _| *key < 300 || key % 2 == 0);
                map.retain(|key, _| *key < 300);
                map.reserve(rng.below(100) as usize);
            }
        });
        assert_eq!(map.len(), 300);
    }
}

/// The value changes all the time, but it always belongs to the key.
fn while_replaced<M: Words>() {
    for config in growing_configs() {
        let map = M::build(config, seeded(2));
        const KEYS: u64 = 64;
        (0..KEYS).for_each(|key| assert_eq!(map.insert(key, key), None));
        on_threads(3, |thread| {
            let mut last = vec![0; KEYS as usize];
            for round in 1..2000 {
                for key in (0..KEYS).step_by(5) {
                    match thread {
                        // One writer: values only grow.
                        0 if round % 2 == 0 => assert!(map.insert(key, key + round * KEYS).is_some()),
                        0 => assert!(map.update(key, |old| old + KEYS).is_some()),
                        _ => {
                            let value = map.get(&key).expect("replacing is no removal");
                            assert_eq!(value % KEYS, key, "another key's value");
                            assert!(value >= last[key as usize], "back in time");
                            last[key as usize] = value;
                        }
                    }
                }
            }
        });
    }
}

/// One segment is cleared at once: readers see an entry's own value, or none.
fn while_cleared<M: Words>() {
    for config in growing_configs() {
        let map = M::build(config, seeded(2));
        on_threads(3, |thread| {
            for round in 0..150 {
                if thread == 0 {
                    (0..200).for_each(|key| assert_eq!(map.insert(key, key ^ MARK), None));
                    if round % 2 == 0 {
                        map.clear()
                    } else {
                        drop(map.drain(usize::MAX))
                    }
                    assert!(map.is_empty());
                } else {
                    (0..200).for_each(|key| assert!(map.get(&key).is_none_or(|value| value == key ^ MARK)));
                    let keys: Vec<u64> = (0..200).collect();
                    let values = map.get_many(&keys);
                    assert!(
                        (0..).zip(values).all(|(key, value)| value.is_none_or(|value| value == key ^ MARK))
                    );
                }
            }
        });
    }
}
