//! A `Cache` with the same hash function, bound and policy decides the same about the same requests: every answer, every
//! eviction, every count.

use std::hash::BuildHasher;

use koel::{Compute, InlineCache, Policy};

use crate::POLICIES;
use crate::common::hashers::Through;
use crate::common::{Rng, seed, seeded};
use crate::pair::{Pair, Request, decide};

/// Keys of requests, some of which are requested more than others; the popular ones shift as time passes.
fn key(rng: &mut Rng, keys: u64, step: u64) -> u64 {
    let narrow = 1 + rng.below(keys);
    let base = if rng.one_in(3) { step / 50 } else { 0 };
    (base + rng.below(narrow)) % (2 * keys)
}

/// Mostly requests that load on a miss.
fn request(rng: &mut Rng) -> Request {
    match rng.below(100) {
        0..70 => Request::ReadThrough,
        70..76 => Request::Load,
        76..80 => Request::GetMany,
        80..85 => Request::Insert,
        85..90 => Request::Remove,
        90..92 => Request::RemoveIf,
        92..96 => Request::Compute,
        96..98 => Request::Peek,
        98 if rng.one_in(50) => Request::Retain,
        99 if rng.one_in(200) => Request::Clear,
        _ => Request::Contains,
    }
}

fn agree(policy: Policy, capacity: usize, steps: u64, hasher: impl BuildHasher + Clone, seed: u64) {
    let pair = Pair::new(policy, capacity, hasher);
    let mut rng = Rng::new(seed);
    let keys = capacity as u64 * 2 + 3;
    for step in 0..steps {
        let (key, value) = (key(&mut rng, keys, step), rng.below(1 << 40));
        pair.both(request(&mut rng), key, value);
    }
    let stats = pair.end();
    assert!(stats.hits > 0 && (stats.evictions > 0 || capacity == 0), "{stats}");
}

#[test]
fn caches_of_any_size_decide_alike() {
    for policy in POLICIES {
        for capacity in [1, 2, 3, 7, 32, 100, 900] {
            for round in 0..3 {
                let seed = seed() + round;
                agree(policy, capacity, 6000, seeded(seed), seed);
            }
        }
    }
}

#[test]
fn caches_of_several_segments_decide_alike() {
    for policy in POLICIES {
        agree(policy, 5000, 60_000, seeded(seed()), seed());
    }
}

/// All keys have the same two buckets: tables grow, which does not help, and an entry that is in the way is evicted.
#[test]
fn caches_of_colliding_keys_decide_alike() {
    let few = Through(|n| n % 3 * 0x1234_5678_9ABC_DEF1);
    for policy in POLICIES {
        for capacity in [5, 20, 300] {
            agree(policy, capacity, 6000, few, seed());
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

#[test]
fn an_update_is_of_what_is_there() {
    let cache = InlineCache::new(10);
    assert_eq!(cache.update(1_u64, |_| unreachable!("there is none")), None);
    assert_eq!(cache.update_or_insert(1, |_| unreachable!("there is none"), 10_u64), 10);
    assert_eq!(cache.update_or_insert_with(1, |n| n + 1, || unreachable!("it is there")), 11);
    assert_eq!(cache.update(1, |n| n + 1), Some(12));
    assert_eq!(cache.update_or_insert_with(2, |_| unreachable!("there is none"), || 20), 20);
    assert_eq!((cache.get(&1), cache.get(&2), cache.len()), (Some(12), Some(20), 2));
    let off = InlineCache::new(0);
    assert_eq!(
        (off.update_or_insert(1_u32, |n| n + 1, 1_u32), off.update(1, |n| n + 1), off.len()),
        (1, None, 0)
    );
}
