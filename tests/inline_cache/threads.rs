//! Threads that do everything at once: a value belongs to its key and is not torn, and there are never more entries than
//! allowed.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use bytemuck::Pod;
use koel::{InlineCache, Operation, Policy};

use crate::POLICIES;
use crate::common::{Rng, env_number, on_threads, seed};

/// Several words, each of which identifies the key and the value.
fn value<const N: usize>(key: u64, n: u64) -> [u64; N] {
    core::array::from_fn(|i| key << 32 | n << 8 | i as u64)
}

fn check<const N: usize>(key: u64, seen: [u64; N]) {
    assert_eq!(seen, value(key, seen[0] >> 8 & 0xFF_FFFF), "torn, or another key's");
}

fn act<const N: usize>(cache: &InlineCache<u64, [u64; N]>, keys: u64, rng: &mut Rng)
where
    [u64; N]: Pod,
{
    let (key, n) = (rng.below(keys), rng.below(1 << 24));
    match rng.below(100) {
        0..45 => cache.get(&key).into_iter().for_each(|seen| check(key, seen)),
        45..80 => cache.insert(key, value(key, n)).into_iter().for_each(|old| check(key, old)),
        80..86 => cache.remove(&key).into_iter().for_each(|old| check(key, old)),
        86..92 => {
            cache.compute(key, |old| {
                old.into_iter().for_each(|old| check(key, old));
                match old {
                    Some(old) if old[0] >> 8 & 7 == 0 => Operation::Remove,
                    Some(old) if old[0] >> 8 & 7 == 1 => Operation::Abort(()),
                    _ => Operation::Insert(value(key, n)),
                }
            });
        }
        92..96 => check(key, cache.get_or_insert_with(key, || value(key, n))),
        96 if rng.one_in(20) => cache.iter().for_each(|(key, seen)| check(key, seen)),
        97 if rng.one_in(100) => cache.retain(|key, seen| {
            check(*key, *seen);
            seen[0] >> 8 & 3 != 0
        }),
        98 if rng.one_in(400) => cache.clear(),
        _ => cache.peek(&key).into_iter().for_each(|seen| check(key, seen)),
    }
}

fn values_are_whole_and_the_bound_holds<const N: usize>(policy: Policy, capacity: usize, keys: u64)
where
    [u64; N]: Pod,
{
    let cache: InlineCache<u64, [u64; N]> =
        InlineCache::builder().max_entries(capacity).policy(policy).build();
    let (steps, seed) = (env_number("KOEL_INLINE_CACHE_STEPS", 20_000), seed());
    on_threads(3, |thread| {
        let mut rng = Rng::new(seed ^ (thread as u64) << 40);
        for _ in 0..steps {
            act(&cache, keys, &mut rng);
            let len = cache.len();
            assert!(len <= capacity, "{len} of {capacity}");
        }
    });
    assert_eq!(cache.iter().count(), cache.len());
    let stats = cache.stats();
    assert!(stats.evictions > 0 && stats.hits > 0 && stats.misses > 0, "{stats}");
    // All remaining entries can be listed, found and removed; then there is room again.
    let left: Vec<_> = cache.iter().collect();
    for (key, seen) in left {
        check(key, seen);
        assert_eq!(cache.remove(&key), Some(seen));
    }
    assert!(cache.is_empty());
    (0..capacity as u64).for_each(|key| {
        cache.insert(key, value(key, 1));
    });
    assert!(cache.len() * 10 >= capacity * 9, "{} of {capacity}", cache.len());
}

#[test]
fn values_of_one_word_are_their_key_s() {
    for policy in POLICIES {
        values_are_whole_and_the_bound_holds::<1>(policy, 6, 40);
        values_are_whole_and_the_bound_holds::<1>(policy, 300, 1000);
    }
}

#[test]
fn values_of_several_words_are_whole() {
    for policy in POLICIES {
        values_are_whole_and_the_bound_holds::<4>(policy, 6, 40);
        values_are_whole_and_the_bound_holds::<4>(policy, 300, 1000);
    }
}

#[test]
fn caches_of_several_segments_keep_their_bound() {
    for policy in POLICIES {
        values_are_whole_and_the_bound_holds::<2>(policy, 5000, 20_000);
    }
}

/// A writer replaces a key's value by ever larger ones while other keys come and go: except for misses, readers never see a
/// smaller value after a larger one.
#[test]
fn what_was_replaced_is_not_seen_again() {
    for policy in POLICIES {
        let cache: InlineCache<u64, [u64; 3]> = InlineCache::builder().max_entries(8).policy(policy).build();
        let (done, newest) = (AtomicBool::new(false), AtomicU64::new(0));
        let steps = env_number("KOEL_INLINE_CACHE_STEPS", 20_000) as u64;
        on_threads(3, |thread| match thread {
            0 => {
                for n in 1..steps {
                    cache.insert(1, [n; 3]);
                    newest.store(n, Ordering::Release);
                    cache.insert(2 + n % 20, [0; 3]);
                }
                done.store(true, Ordering::Release);
            }
            _ => {
                let mut last = 0;
                while !done.load(Ordering::Acquire) {
                    let least = newest.load(Ordering::Acquire).max(last);
                    if let Some(seen) = cache.get(&1) {
                        assert!(seen == [seen[0]; 3] && seen[0] >= least, "{seen:?} after {least}");
                        last = seen[0];
                    }
                }
            }
        });
    }
}

#[test]
fn no_update_of_many_threads_is_lost() {
    let steps = env_number("KOEL_INLINE_CACHE_STEPS", 20_000) as u64;
    for policy in POLICIES {
        let cache = InlineCache::builder().max_entries(100).policy(policy).build();
        on_threads(3, |_| {
            for n in 0..steps {
                cache.update_or_insert(n % 4, |n| n + 1, 1_u64);
            }
        });
        assert_eq!(cache.iter().map(|(_, n)| n).sum::<u64>(), 3 * steps);
    }
}
