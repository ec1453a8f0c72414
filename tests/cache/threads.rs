//! Threads that do everything at once: each key and each value is dropped exactly once, the listener is told of each entry
//! once, and values that are found are those that were put there.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use koel::{Cache, ManualClock, Operation, Policy};

use crate::common::{Counted, Ledger, Rng, env_number, on_threads, seed};
use crate::{POLICIES, SEVERAL_SEGMENTS};

const KEYS: u64 = 64;

type Counting = Cache<Counted, Counted>;

/// Checks that a value belongs to its key.
fn check(key: u64, value: &Counted) {
    assert_eq!(value.n % KEYS, key, "another key's value");
}

/// Performs one operation; returns how many entries it has inserted.
fn act(cache: &Counting, ledger: &std::sync::Arc<Ledger>, clock: &ManualClock, rng: &mut Rng) -> u64 {
    let (key, kind) = (rng.below(KEYS), rng.below(100));
    let value = || ledger.value(key + KEYS * rng.clone().below(50));
    match kind {
        0..30 => return u64::from(cache.insert(ledger.value(key), value()).is_ok()),
        30..40 => cache.get(&ledger.value(key)).iter().for_each(|value| check(key, value)),
        40..50 => {
            let (view, key_of) = (cache.pin(), ledger.value(key));
            let seen = view.get_ref(&key_of);
            cache.remove(&key_of);
            seen.iter().for_each(|value| check(key, value));
        }
        50..60 => drop(cache.remove(&ledger.value(key))),
        60..65 => drop(cache.remove_if(&ledger.value(key), |key, value| (key.n + value.n) % 3 == 0)),
        65..85 => {
            let answer = cache.compute(ledger.value(key), |old| match old {
                Some(old) if old.n % 5 == 0 => Operation::Remove,
                Some(old) if old.n % 5 == 1 => Operation::Abort(()),
                _ => Operation::Insert(value()),
            });
            return match answer {
                Ok(koel::Compute::Inserted(..) | koel::Compute::Updated { .. }) => 1,
                _ => 0,
            };
        }
        85..90 => clock.advance(Duration::from_millis(20)),
        90..93 => cache.pin().iter().for_each(|(key, value)| check(key.n, value)),
        93 => cache.iter().for_each(|(key, value)| check(key.n, &value)),
        94 => cache.retain(|key, value| (key.n ^ value.n) % 4 != 0),
        95 => cache.set_capacity(rng.below(600)),
        96 => cache.purge(),
        97 if rng.one_in(10) => cache.clear(),
        _ => drop(cache.peek(&ledger.value(key))),
    }
    0
}

fn every_key_and_value_is_dropped_once(policy: Policy, expires: bool, listens: bool, segments: bool) {
    let (ledger, clock) = (Ledger::new(), ManualClock::new());
    let told = std::sync::Arc::new(AtomicU64::new(0));
    let mut builder = Cache::builder().max_weight(500).policy(policy);
    builder = builder.weigher(|_: &Counted, value: &Counted| value.n / KEYS);
    if segments {
        builder = builder.estimated_entries(SEVERAL_SEGMENTS);
    }
    if expires {
        builder = builder.time_to_idle(Duration::from_secs(1)).clock(clock.clone());
    }
    if listens {
        let told = std::sync::Arc::clone(&told);
        builder = builder.on_removal(move |key, value, _| {
            check(key.n, value);
            told.fetch_add(1, Ordering::SeqCst);
        });
    }
    let cache: Counting = builder.build();
    let (seed, steps) = (seed(), env_number("KOEL_CACHE_WRITES", 6000) / 3);
    let inserted: u64 = on_threads(3, |thread| {
        let mut rng = Rng::new(seed ^ (thread as u64) << 32);
        (0..steps).map(|_| act(&cache, &ledger, &clock, &mut rng)).sum::<u64>()
    })
    .into_iter()
    .sum();
    let len = cache.len();
    assert_eq!(cache.stats().insertions, inserted);
    if listens {
        assert_eq!(inserted, len as u64 + told.load(Ordering::SeqCst), "inserted = present + told");
    }
    assert!(expires || cache.iter().count() == len);
    drop(cache);
    ledger.assert_settled("a cache that was dropped");
    assert!(ledger.made() > steps);
}

#[test]
fn every_key_and_value_is_dropped_exactly_once() {
    for policy in POLICIES {
        for kind in 0..8 {
            every_key_and_value_is_dropped_once(policy, kind & 1 == 1, kind & 2 == 2, kind & 4 == 4);
        }
    }
}

/// The same with plain data, which is gathered before it is retired, and in boxes, which have a tail of their own.
fn what_is_found_is_whole<V: From<u64> + Copy + Into<u64> + Send + Sync>() {
    let cache: Cache<u64, V> = Cache::builder()
        .max_weight(200)
        .estimated_entries(SEVERAL_SEGMENTS)
        .weigher(|key, _| key % 7)
        .build();
    let (seed, steps) = (seed(), env_number("KOEL_CACHE_WRITES", 6000));
    on_threads(3, |thread| {
        let mut rng = Rng::new(seed ^ (thread as u64) << 32);
        for step in 0..steps as u64 {
            let key = rng.below(100);
            let view = cache.pin();
            let seen = view.get_ref(&key);
            match rng.below(8) {
                0..5 => cache.insert(key, V::from(key + 100 * step)).unwrap(),
                5 => drop(cache.remove(&key)),
                6 if rng.one_in(100) => cache.purge(),
                _ => {}
            }
            assert!(seen.is_none_or(|&value| value.into() % 100 == key));
        }
    });
}

/// A value that is too large for a slab, and shows when it is torn or overwritten.
#[derive(Clone, Copy)]
struct Large([u64; 80]);

impl From<u64> for Large {
    fn from(n: u64) -> Self {
        Large([n; 80])
    }
}

impl From<Large> for u64 {
    fn from(Large(words): Large) -> u64 {
        assert!(words.iter().all(|word| *word == words[0]), "torn");
        words[0]
    }
}

#[test]
fn plain_values_are_whole() {
    what_is_found_is_whole::<u64>();
}

#[test]
fn large_values_are_whole() {
    what_is_found_is_whole::<Large>();
}
