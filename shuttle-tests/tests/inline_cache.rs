//! The inline cache under threads: its bound at every step, and values that are whole and their key's, while entries are
//! replaced in several words, removed and evicted.
#![cfg(shuttle)]

use koel::{InlineCache, InlineCacheBuilder, Policy, RandomState};
use shuttle::thread;
use shuttle_tests::{Identity, explore};

type Value = [u64; 2];
type Cache = InlineCache<u64, Value, Identity>;

/// How many entries the cache may hold, in one segment: fewer than the writers have keys.
const CAPACITY: usize = 6;
/// The number of a writer's keys.
const MINE: u64 = 5;

fn cache(policy: Policy) -> Cache {
    let builder: InlineCacheBuilder<u64, Value, RandomState> = InlineCache::builder();
    builder.max_entries(CAPACITY).policy(policy).hasher(Identity::default()).build()
}

fn value(key: u64, n: u64) -> Value {
    [key << 32 | n, !(key << 32 | n)]
}

fn check(key: u64, seen: Value) {
    assert!(seen[0] >> 32 == key && seen[1] == !seen[0], "{key}: {seen:x?}");
}

/// A writer knows which values its own keys may have: what it wrote last, or none.
fn write(cache: &Cache, first: u64) {
    for i in 0..2 * MINE {
        let key = first + i % MINE;
        if let Some(old) = cache.insert(key, value(key, i)) {
            assert_eq!(old, value(key, i - MINE), "not what was written last");
        }
        let others = (first + 16) % 48;
        if let Some(seen) = cache.get(&others) {
            check(others, seen);
        }
        if let Some(seen) = cache.get(&key) {
            assert_eq!(seen, value(key, i), "not what was written last");
        }
        if i % 3 == 2 {
            if let Some(old) = cache.remove(&key) {
                assert_eq!(old, value(key, i));
            }
            assert_eq!(cache.get(&key), None, "removed, and nobody else writes it");
            cache.insert(key, value(key, i));
        }
    }
}

fn read(cache: &Cache) {
    for i in 0..3 * MINE {
        let key = i % 3 * 16 + i / 3;
        if let Some(seen) = cache.get(&key) {
            check(key, seen);
        }
    }
    cache.iter().for_each(|(key, seen)| check(key, seen));
}

fn watch(cache: &Cache) {
    for _ in 0..20 {
        let len = cache.len();
        assert!(len <= CAPACITY, "{len}");
    }
}

fn values_are_whole_and_the_bound_holds(policy: Policy) {
    explore(1000, move || {
        let cache = cache(policy);
        thread::scope(|scope| {
            let cache = &cache;
            for first in [0, 16, 32] {
                scope.spawn(move || write(cache, first));
            }
            scope.spawn(|| read(cache));
            scope.spawn(|| watch(cache));
        });
        // Before there are as many entries as allowed, only one that is in the way leaves.
        assert!((2..=CAPACITY).contains(&cache.len()), "{}", cache.len());
        assert_eq!(cache.iter().count(), cache.len());
    });
}

#[test]
fn values_are_whole_and_the_bound_holds_by_default() {
    values_are_whole_and_the_bound_holds(Policy::default());
}

#[test]
fn values_are_whole_and_the_bound_holds_by_a_clock() {
    values_are_whole_and_the_bound_holds(Policy::Clock);
}

#[test]
fn values_are_whole_and_the_bound_holds_among_neighbours() {
    values_are_whole_and_the_bound_holds(Policy::Local);
}
