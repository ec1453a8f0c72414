//! Read-modify-write is atomic: no update is lost, no closure runs twice, and of several threads only one wins.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use koel::{Compute, Operation};

use crate::common::{Config, Rng, Words, growing_configs, laws, on_threads, seed, seeded};

laws! {
    counters => counters_in_a_hash_map_lose_no_count, counters_in_an_inline_map_lose_no_count;
    once => a_value_of_a_hash_map_is_made_once, a_value_of_an_inline_map_is_made_once;
    one_winner => one_of_many_inserts_into_a_hash_map_wins, one_of_many_inserts_into_an_inline_map_wins;
    transfers => nothing_is_lost_between_two_hash_maps, nothing_is_lost_between_two_inline_maps;
    length => the_length_of_a_hash_map_is_exact_when_quiet, the_length_of_an_inline_map_is_exact_when_quiet;
    bounded => a_full_hash_map_stays_within_its_slots, a_full_inline_map_stays_within_its_slots;
}

const THREADS: usize = 4;

fn counters<M: Words>() {
    for config in growing_configs() {
        let map = M::build(config, seeded(1));
        const ROUNDS: u64 = 3000;
        const KEYS: u64 = 7;
        on_threads(THREADS, |thread| {
            for round in 0..ROUNDS {
                let key = round % KEYS;
                match (round + thread as u64) % 4 {
                    0 => drop(map.update_or_insert(key, |n| n + 1, 1)),
                    1 => drop(map.update_or_insert_with(key, |n| n + 1, || 1)),
                    2 => {
                        map.compute(key, |n| Operation::Insert::<_, ()>(n.unwrap_or(0) + 1));
                    }
                    _ => {
                        map.get_or_insert(key, 0);
                        assert!(map.update(key, |n| n + 1).is_some());
                    }
                }
                // Other keys come and go, so that segments split under the counters.
                map.insert(1000 + round * THREADS as u64 + thread as u64, 0);
            }
        });
        let counted: u64 = (0..KEYS).map(|key| map.get(&key).unwrap()).sum();
        assert_eq!(counted, ROUNDS * THREADS as u64);
    }
}

fn once<M: Words>() {
    for config in growing_configs() {
        let map = M::build(config, seeded(1));
        const KEYS: u64 = 2000;
        let made: Vec<AtomicUsize> = (0..KEYS).map(|_| AtomicUsize::new(0)).collect();
        on_threads(THREADS, |thread| {
            for key in 0..KEYS {
                let value = map.get_or_insert_with(key, || {
                    made[key as usize].fetch_add(1, Ordering::Relaxed);
                    thread as u64
                });
                assert_eq!(
                    map.get_or_insert_with(key, || unreachable!()),
                    value,
                    "all see the one that was made"
                );
            }
        });
        assert!(made.iter().all(|times| times.load(Ordering::Relaxed) == 1));
    }
}

/// For each key, one thread inserts and one removes; the calls of the others report that.
fn one_winner<M: Words>() {
    for config in growing_configs() {
        let map = M::build(config, seeded(1));
        const KEYS: u64 = 2000;
        let wins = on_threads(THREADS, |thread| {
            let won = |key: u64| match key % 3 {
                0 => map.try_insert(key, thread as u64).is_ok(),
                1 => map.insert(key, thread as u64).is_none(),
                _ => matches!(
                    map.compute(key, |old| match old {
                        None => Operation::Insert(thread as u64),
                        Some(_) => Operation::Abort(()),
                    }),
                    Compute::Inserted(..)
                ),
            };
            (0..KEYS).filter(|key| won(*key)).count()
        });
        assert_eq!((wins.iter().sum::<usize>(), map.len()), (KEYS as usize, KEYS as usize));
        let losses = on_threads(THREADS, |_| {
            let removed = |key: u64| match key % 3 {
                0 => map.remove(&key).is_some(),
                1 => matches!(map.remove_if(&key, |_, _| true), Ok(Some(_))),
                _ => map.remove_entry(&key).is_some(),
            };
            (0..KEYS).filter(|key| removed(*key)).count()
        });
        assert_eq!((losses.iter().sum::<usize>(), map.len()), (KEYS as usize, 0));
    }
}

/// Tokens go back and forth; each is in one map or in one hand.
fn transfers<M: Words>() {
    for config in growing_configs() {
        let maps = [M::build(config, seeded(1)), M::build(config, seeded(2))];
        const TOKENS: u64 = 50;
        (0..TOKENS).for_each(|token| assert_eq!(maps[0].insert(token, token * 3), None));
        let seed = seed();
        on_threads(THREADS, |thread| {
            let mut rng = Rng::new(seed + thread as u64);
            for _ in 0..5000 {
                let (token, from) = (rng.below(TOKENS), rng.below(2) as usize);
                if let Some((token, value)) = maps[from].remove_entry(&token) {
                    assert_eq!(value, token * 3);
                    assert_eq!(maps[1 - from].insert(token, value), None, "a token was in two places");
                }
            }
        });
        assert_eq!(maps[0].len() + maps[1].len(), TOKENS as usize);
    }
}

fn length<M: Words>() {
    for config in growing_configs() {
        let map = M::build(config, seeded(1));
        let balance = AtomicU64::new(0);
        let seed = seed();
        on_threads(THREADS, |thread| {
            let mut rng = Rng::new(seed + thread as u64);
            for _ in 0..5000 {
                let key = rng.below(3000);
                if rng.one_in(2) {
                    balance.fetch_add(u64::from(map.insert(key, key).is_none()), Ordering::Relaxed);
                } else {
                    balance.fetch_sub(u64::from(map.remove(&key).is_some()), Ordering::Relaxed);
                }
            }
        });
        assert_eq!(map.len() as u64, balance.load(Ordering::Relaxed));
        assert_eq!(map.entries().len(), map.len());
    }
}

/// Many threads fill one map: entries that fit are there, the others are handed back, and nothing else is there.
fn bounded<M: Words>() {
    for slots in [8, 64, 1 << 20] {
        let map = M::build(Config::fixed(1000).segments_of(slots), seeded(1));
        let kept = on_threads(THREADS, |thread| {
            let key = |i: u64| i * THREADS as u64 + thread as u64;
            let mut kept = Vec::new();
            for i in 0..600 {
                match map.checked_insert(key(i), i) {
                    Ok(old) => {
                        assert_eq!(old, None);
                        kept.push((key(i), i));
                    }
                    Err(full) => assert_eq!((full.key, full.value), (key(i), i)),
                }
            }
            kept
        });
        let kept: Vec<(u64, u64)> = kept.into_iter().flatten().collect();
        assert!(kept.len() >= 1000 - THREADS, "{} fit", kept.len());
        assert!(kept.len() <= map.capacity() + map.stats().overflow);
        assert_eq!(kept.len(), map.len());
        assert!(kept.iter().all(|(key, value)| map.get(key) == Some(*value)));
    }
}
