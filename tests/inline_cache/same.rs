//! A `Cache` with the same hash function, bound and policy decides the same about the same requests: every answer, every
//! eviction, every count.

use std::hash::BuildHasher;

use koel::{Cache, Compute, InlineCache, Operation, Policy, RandomState};

use crate::POLICIES;
use crate::common::{Rng, seed};

/// Requests of which some keys get more than others; they shift as time passes.
fn key(rng: &mut Rng, keys: u64, step: u64) -> u64 {
    let narrow = 1 + rng.below(keys);
    let base = if rng.one_in(3) { step / 50 } else { 0 };
    (base + rng.below(narrow)) % (2 * keys)
}

fn sorted(entries: impl Iterator<Item = (u64, u64)>) -> Vec<(u64, u64)> {
    let mut entries: Vec<_> = entries.collect();
    entries.sort_unstable();
    entries
}

fn decide(old: Option<u64>, value: u64) -> Operation<u64, u64> {
    match old {
        Some(old) if old % 7 == 0 => Operation::Remove,
        Some(old) if old % 7 == 1 => Operation::Abort(old),
        _ => Operation::Insert(value),
    }
}

fn agree(policy: Policy, capacity: usize, steps: u64, hasher: impl BuildHasher + Clone, seed: u64) {
    let inline: InlineCache<u64, u64, _> =
        InlineCache::builder().max_entries(capacity).policy(policy).hasher(hasher.clone()).build();
    let cache: Cache<u64, u64, _> =
        Cache::builder().max_entries(capacity).policy(policy).hasher(hasher).build();
    let mut rng = Rng::new(seed);
    let keys = capacity as u64 * 2 + 3;
    for step in 0..steps {
        let (key, value) = (key(&mut rng, keys, step), rng.below(1 << 40));
        match rng.below(100) {
            0..80 => {
                let (seen, expected) = (inline.get(&key), cache.get(&key));
                assert_eq!(seen, expected, "step {step}");
                if seen.is_none() {
                    assert_eq!(inline.insert(key, value), None);
                    cache.insert(key, value).unwrap();
                }
            }
            80..85 => {
                let old = cache.peek(&key);
                cache.insert(key, value).unwrap();
                assert_eq!(inline.insert(key, value), old, "step {step}");
            }
            85..90 => assert_eq!(inline.remove(&key), cache.remove(&key), "step {step}"),
            90..92 => {
                let odd = |key: &u64, value: &u64| (key ^ value) % 2 == 1;
                assert_eq!(inline.remove_if(&key, odd), cache.remove_if(&key, odd), "step {step}");
            }
            92..96 => {
                let expected = cache.compute(key, |old| decide(old.copied(), value)).unwrap();
                assert_eq!(inline.compute(key, |old| decide(old, value)), expected, "step {step}");
            }
            96..98 => assert_eq!(inline.peek(&key), cache.peek(&key), "step {step}"),
            98 if rng.one_in(50) => {
                let keep = |key: &u64, value: &u64| (key + value) % 4 != 0;
                inline.retain(keep);
                cache.retain(keep);
            }
            99 if rng.one_in(200) => {
                inline.clear();
                cache.clear();
            }
            _ => assert_eq!(inline.contains_key(&key), cache.contains_key(&key), "step {step}"),
        }
        assert_eq!(inline.len(), cache.len(), "step {step}");
    }
    assert_eq!(sorted(inline.iter()), sorted(cache.iter()));
    let (stats, expected) = (inline.stats(), cache.stats());
    assert_eq!(stats, expected);
    assert!(stats.hits > 0 && (stats.evictions > 0 || capacity == 0), "{stats}");
}

#[test]
fn caches_of_any_size_decide_alike() {
    for policy in POLICIES {
        for capacity in [1, 2, 3, 7, 32, 100, 900] {
            for round in 0..3 {
                agree(policy, capacity, 6000, RandomState::new(), seed() + round);
            }
        }
    }
}

#[test]
fn caches_of_several_segments_decide_alike() {
    for policy in POLICIES {
        agree(policy, 5000, 60_000, RandomState::new(), seed());
    }
}

/// All keys have the same two buckets: tables grow, that does not help, and whoever is in the way has to go.
#[test]
fn caches_of_colliding_keys_decide_alike() {
    #[derive(Clone)]
    struct Few;
    struct Hasher(u64);
    impl BuildHasher for Few {
        type Hasher = Hasher;
        fn build_hasher(&self) -> Hasher {
            Hasher(0)
        }
    }
    impl std::hash::Hasher for Hasher {
        fn write(&mut self, _: &[u8]) {
            unreachable!("keys are numbers");
        }
        fn write_u64(&mut self, n: u64) {
            self.0 = n % 3 * 0x1234_5678_9ABC_DEF1;
        }
        fn finish(&self) -> u64 {
            self.0
        }
    }
    for policy in POLICIES {
        for capacity in [5, 20, 300] {
            agree(policy, capacity, 6000, Few, seed());
        }
    }
}

#[test]
fn compute_says_what_became_of_the_entry() {
    let cache = InlineCache::new(10);
    let answers = [
        cache.compute(1_u64, |old| decide(old, 7)),
        cache.compute(1, |old| decide(old, 8)),
        cache.compute(1, |old| decide(old, 9)),
        cache.compute(1, |old| decide(old, 10)),
        cache.compute(1, |old| decide(old, 8)),
        cache.compute(1, |old| decide(old, 8)),
    ];
    let expected = [
        Compute::Inserted(1, 7),
        Compute::Removed(1, 7),
        Compute::Inserted(1, 9),
        Compute::Updated { old: (1, 9), new: (1, 10) },
        Compute::Updated { old: (1, 10), new: (1, 8) },
        Compute::Aborted(8),
    ];
    assert_eq!(answers, expected);
}
