//! Both caches under readers: hits against evictions, displacements and replacements, and the bound while quota goes from one
//! segment to another.
//!
//! Not here: writers that borrow at the same time, because loom's `try_lock` waits for the thread that came first (it would
//! report a deadlock that does not exist); and marks, because loom lets a store come between an exchange and what that has
//! read. Those are tested on threads: `tests/cache/bound.rs`, and next to `Buckets::change_mark`.
#![cfg(loom)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use koel::model::{place, prefix};
use koel::{ManualClock, Policy, RandomState};
use loom::thread;
use loom_tests::{Identity, model_with_preemptions};

type Cache = koel::Cache<u64, u64, Identity>;
type InlineCache = koel::InlineCache<u64, [u64; 2], Identity>;
type Builder<S = Identity> = koel::CacheBuilder<u64, u64, S>;

/// Buckets of a cache that is made for one entry, or for three.
const BUCKETS: u32 = 3;

fn builder() -> Builder {
    let builder: Builder<RandomState> = koel::Cache::builder();
    builder.policy(Policy::Clock).hasher(Identity::default())
}

/// The first `n` keys that `wanted` accepts by first bucket, second bucket and tag.
fn keys(n: usize, wanted: impl Fn(u32, u32, u8) -> bool) -> Vec<u64> {
    let fits = |&key: &u64| {
        let (first, second, tag) = place(key, BUCKETS);
        wanted(first, second, tag)
    };
    (0..1_000_000).filter(fits).take(n).collect()
}

/// One segment, for so many entries, in three buckets.
fn one_segment(entries: u64) -> Cache {
    let cache = builder().max_weight(entries).estimated_entries(1).build();
    assert_eq!(cache.capacity(), entries);
    cache
}

/// A reader of key 1, whose value is 10, against `write`; the reference stays valid as long as the view.
fn reader_against(capacity: u64, write: fn(&Cache), allowed: &'static [Option<u64>]) {
    loom::model(move || {
        let cache = Arc::new(one_segment(capacity));
        cache.insert(1, 10).unwrap();
        let reader = {
            let cache = Arc::clone(&cache);
            thread::spawn(move || {
                let view = cache.pin();
                let seen = view.get_ref(&1);
                thread::yield_now();
                assert!(allowed.contains(&seen.copied()), "{seen:?}");
            })
        };
        write(&cache);
        reader.join().unwrap();
    });
}

#[test]
fn hit_never_sees_an_evicted_entry_freed() {
    reader_against(1, |cache| cache.insert(2, 20).unwrap(), &[Some(10), None]);
}

#[test]
fn hit_never_sees_a_replaced_entry_freed() {
    reader_against(1, |cache| cache.insert(1, 11).unwrap(), &[Some(10), Some(11)]);
}

/// A hit marks its slot while the entry is displaced from it.
#[test]
fn hit_never_misses_a_displaced_entry() {
    model_with_preemptions(2, || {
        let cache = Arc::new(one_segment(1));
        // More than the table was made for, and fewer than make it grow.
        cache.set_capacity(10);
        let victim = keys(1, |f, s, _| (f, s) == (0, 2))[0];
        let tag = place(victim, BUCKETS).2;
        cache.insert(victim, 1).unwrap();
        for key in keys(3, |f, _, t| f == 0 && t != tag) {
            cache.insert(key, 0).unwrap();
        }
        for key in keys(4, |f, _, t| f == 1 && t != tag) {
            cache.insert(key, 0).unwrap();
        }
        let newcomer = (1 << 32..).find(|&key| {
            let (f, s, t) = place(key, BUCKETS);
            (f, s) == (0, 1) && t != tag
        });
        let newcomer = newcomer.unwrap();
        let reader = {
            let cache = Arc::clone(&cache);
            thread::spawn(move || assert_eq!(cache.get(&victim), Some(1)))
        };
        cache.insert(newcomer, 2).unwrap();
        reader.join().unwrap();
        assert_eq!((cache.len(), cache.get(&victim), cache.get(&newcomer)), (9, Some(1), Some(2)));
    });
}

/// An entry expires while a write makes its segment's table larger: a reader that finds it expired takes it out of the current
/// table, or leaves it.
#[test]
fn what_has_expired_is_not_taken_out_of_a_table_that_is_replaced() {
    let grows = Arc::new(AtomicBool::new(false));
    let outside = Arc::clone(&grows);
    let mut model = loom::model::Builder::new();
    model.max_branches = 10_000;
    model.check(move || {
        let (clock, life) = (ManualClock::new(), Duration::from_secs(1));
        let builder = builder().max_weight(1).estimated_entries(1).time_to_live(life).clock(clock.clone());
        let cache = Arc::new(builder.build());
        // As many as make it grow, and one more.
        cache.set_capacity(12);
        (1..=11).for_each(|key| cache.insert(key, 0).unwrap());
        let reader = {
            let cache = Arc::clone(&cache);
            thread::spawn(move || {
                clock.advance(life);
                assert_eq!(cache.get(&1), None);
            })
        };
        let memory = cache.memory_usage();
        cache.insert(12, 0).unwrap();
        // It does not if all that was there had expired when it began.
        grows.fetch_or(cache.memory_usage() > memory, Ordering::Relaxed);
        reader.join().unwrap();
        // Frees all that is in the current table, once.
        cache.clear();
    });
    assert!(outside.load(Ordering::Relaxed));
}

/// Two segments of weight 1 each, and keys of both.
fn two_segments() -> (Arc<Cache>, [u64; 2]) {
    let cache = builder().max_weight(2).estimated_entries(2).weigher(|_, weight| *weight).build();
    let key_of = |upper| (1..).find(|&key| (prefix(key) >> 31 == 1) == upper).unwrap();
    (Arc::new(cache), [key_of(false), key_of(true)])
}

/// A reader of the weight against `write`.
fn weight_stays_in_the_bound(first: usize, write: fn(&Cache, [u64; 2])) {
    for swapped in [false, true] {
        loom::model(move || {
            let (cache, mut keys) = two_segments();
            if swapped {
                keys.swap(0, 1);
            }
            cache.insert(keys[0], first as u64).unwrap();
            let reader = {
                let cache = Arc::clone(&cache);
                thread::spawn(move || assert!(cache.weight() <= 2, "{}", cache.weight()))
            };
            write(&cache, keys);
            reader.join().unwrap();
        });
    }
}

/// One segment evicts, then the other gets its quota.
#[test]
fn weight_stays_in_the_bound_while_a_segment_borrows() {
    weight_stays_in_the_bound(1, |cache, keys| cache.insert(keys[1], 2).unwrap());
}

/// What a segment had borrowed goes back, and is used there.
#[test]
fn weight_stays_in_the_bound_while_a_segment_gives_back() {
    weight_stays_in_the_bound(2, |cache, keys| {
        cache.remove(&keys[0]);
        cache.insert(keys[1], 1).unwrap();
        cache.insert(keys[1], 2).unwrap();
    });
}

/// A writer against a reader of a cache with two segments and an entry of weight 1 in each.
fn lowered(read: fn(&Cache)) {
    loom::model(move || {
        let (cache, keys) = two_segments();
        keys.iter().for_each(|key| cache.insert(*key, 1).unwrap());
        let reader = {
            let cache = Arc::clone(&cache);
            thread::spawn(move || read(&cache))
        };
        cache.set_capacity(1);
        reader.join().unwrap();
    });
}

/// A reader that sees the smaller capacity sees what was evicted for it.
#[test]
fn capacity_is_never_seen_below_the_weight() {
    lowered(|cache| {
        let (capacity, weight) = (cache.capacity(), cache.weight());
        assert!(capacity == 2 || weight <= 1, "{weight} of {capacity}");
    });
}

#[test]
fn stats_are_within_a_bound_that_is_lowered() {
    lowered(|cache| {
        let stats = cache.stats();
        assert!(stats.weight <= stats.capacity, "{stats}");
    });
}

/// A reader that compares the capacity before and after would not notice that.
#[test]
fn stats_are_within_a_bound_that_is_raised_and_lowered_again() {
    model_with_preemptions(2, || {
        let (cache, keys) = two_segments();
        cache.set_capacity(1);
        cache.insert(keys[0], 1).unwrap();
        let reader = {
            let cache = Arc::clone(&cache);
            thread::spawn(move || {
                let stats = cache.stats();
                assert!(stats.weight <= stats.capacity, "{stats}");
            })
        };
        cache.set_capacity(2);
        cache.insert(keys[1], 1).unwrap();
        cache.set_capacity(1);
        reader.join().unwrap();
    });
}

/// A reader that looks twice for a key of an inline cache for one entry, with what it may see, against writes to that key and
/// another with the same buckets and the same tag. Values are two words.
fn inline_reader_against(
    preemptions: usize,
    write: fn(&InlineCache, [u64; 2]),
    allowed: fn([Option<u64>; 2]) -> bool,
) {
    model_with_preemptions(preemptions, move || {
        let (first, second, tag) = place(1, BUCKETS);
        let keys: [u64; 2] = keys(2, |f, s, t| (f, s, t) == (first, second, tag)).try_into().unwrap();
        let builder = koel::InlineCache::builder().max_entries(1).policy(Policy::Clock);
        let cache: Arc<InlineCache> = Arc::new(builder.hasher(Identity::default()).build());
        cache.insert(keys[0], [10; 2]);
        let reader = {
            let cache = Arc::clone(&cache);
            thread::spawn(move || {
                let seen = [(); 2].map(|()| cache.get(&keys[0]));
                assert!(seen.iter().flatten().all(|[one, two]| one == two), "torn: {seen:?}");
                assert!(allowed(seen.map(|seen| seen.map(|value| value[0]))), "{seen:?}");
            })
        };
        write(&cache, keys);
        reader.join().unwrap();
    });
}

#[test]
fn inline_hit_never_sees_the_value_of_who_came_into_its_slot() {
    let write = |cache: &InlineCache, keys: [u64; 2]| {
        cache.insert(keys[1], [20; 2]);
        assert_eq!(cache.len(), 1);
    };
    inline_reader_against(2, write, |seen| matches!(seen, [Some(10), Some(10) | None] | [None, None]));
}

#[test]
fn inline_hit_never_sees_what_was_before_an_eviction_again() {
    let write = |cache: &InlineCache, keys: [u64; 2]| {
        cache.insert(keys[1], [20; 2]);
        cache.insert(keys[0], [11; 2]);
    };
    inline_reader_against(1, write, |seen| {
        matches!(seen, [Some(10), Some(10 | 11) | None] | [None | Some(11), None | Some(11)])
            && seen != [Some(11), None]
    });
}

#[test]
fn inline_hit_never_sees_a_torn_value() {
    let write = |cache: &InlineCache, keys: [u64; 2]| {
        cache.insert(keys[0], [11; 2]);
        cache.insert(keys[1], [20; 2]);
    };
    inline_reader_against(1, write, |seen| {
        matches!(seen, [Some(10), Some(10 | 11) | None] | [Some(11), Some(11) | None] | [None, None])
    });
}
