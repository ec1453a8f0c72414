//! Warm restarts: a cache continues from the dump of another.

mod lifetimes;
mod meanwhile;
mod order;
#[cfg(feature = "serde")]
mod serde;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use koel::{Cache, CacheBuilder, CacheDump, Policy};

use crate::common::{Rng, Seeded, SetAtEnd, on_threads, seed, seeded};
use crate::{POLICIES, SEVERAL_SEGMENTS, Told, listening};

type Hashed = Cache<u64, u64, Seeded>;

/// A cache that records the entries that leave it.
fn told_cache(policy: Policy, entries: usize) -> (Hashed, Told) {
    let builder = Cache::builder().max_entries(entries).policy(policy).hasher(seeded(7));
    let (builder, told) = listening(builder);
    (builder.build(), told)
}

fn contents<S>(cache: &Cache<u64, u64, S>) -> BTreeMap<u64, u64> {
    cache.iter().collect()
}

/// Brings the queues into some disorder: hits, removals, evictions.
fn live<S: std::hash::BuildHasher>(cache: &Cache<u64, u64, S>, requests: u64) {
    let mut rng = Rng::new(seed());
    for _ in 0..requests {
        // The smaller the key, the likelier.
        let bound = rng.below(2 * cache.capacity()) + 1;
        let key = rng.below(bound);
        if cache.get(&key).is_none() {
            cache.insert(key, key + 1).unwrap();
        }
        if rng.one_in(20) {
            cache.remove(&rng.below(bound));
        }
    }
}

/// Loads a dump for all of which there is room.
#[track_caller]
fn load_all<S: std::hash::BuildHasher>(cache: &Cache<u64, u64, S>, dump: &CacheDump<u64, u64>) {
    let rest = cache.load(dump.clone());
    assert_eq!(keys(&rest), [0; 0], "left out of {}", dump.len());
}

fn keys(dump: &CacheDump<u64, u64>) -> Vec<u64> {
    dump.iter().map(|(&key, _)| key).collect()
}

#[test]
fn all_entries_come_back_in_a_cache_with_room() {
    for policy in POLICIES {
        let cache: Cache<u64, u64> = Cache::builder().max_entries(SEVERAL_SEGMENTS).policy(policy).build();
        live(&cache, 20_000);
        let dump = cache.dump();
        assert_eq!(
            dump.iter().map(|(&key, &value)| (key, value)).collect::<BTreeMap<_, _>>(),
            contents(&cache)
        );
        assert_eq!((dump.len(), dump.is_empty()), (cache.len(), false));
        for other in POLICIES {
            let back: Cache<u64, u64> =
                Cache::builder().max_entries(2 * SEVERAL_SEGMENTS).policy(other).build();
            load_all(&back, &dump);
            assert_eq!(contents(&back), contents(&cache), "{policy:?} {other:?}");
        }
    }
}

#[test]
fn a_smaller_cache_keeps_the_hottest() {
    for policy in POLICIES {
        let cache: Cache<u64, u64> = Cache::builder().max_entries(SEVERAL_SEGMENTS).policy(policy).build();
        // Not full: nothing is evicted before its time.
        (0..4000).for_each(|key| cache.insert(key, key).unwrap());
        let hot: Vec<u64> = (0..400).map(|n| n * 10).collect();
        hot.iter().for_each(|key| assert!(cache.get(key).is_some()));
        for policy in POLICIES {
            let builder: CacheBuilder<u64, u64> = Cache::builder();
            let small = builder.max_entries(500).policy(policy).build();
            assert_eq!(small.load(cache.dump()).len(), 3500);
            assert!(hot.iter().all(|key| small.contains_key(key)), "{policy:?}");
            let smaller: Cache<u64, u64> = Cache::builder().max_entries(100).policy(policy).build();
            let rest = smaller.load(cache.dump());
            assert_eq!((smaller.len(), rest.len()), (100, 3900));
            assert!(smaller.iter().all(|(key, _)| key % 10 == 0), "{policy:?}");
            // Entries that were handed back can still be loaded, in the same order.
            let left: Vec<u64> = cache.dump().iter().map(|(&key, _)| key).collect();
            let left: Vec<u64> = left.into_iter().filter(|key| !smaller.contains_key(key)).collect();
            assert_eq!(keys(&rest), left);
            smaller.set_capacity(1000);
            let rest = smaller.load(rest);
            assert_eq!((smaller.len(), rest.len()), (1000, 3000));
            assert!(hot.iter().all(|key| smaller.contains_key(key)), "{policy:?}");
        }
    }
}

/// From a full cache to an equal one, with another hash function: the bound holds, and entries that have no room in their
/// segment are handed back.
#[test]
fn as_large_a_cache_takes_nearly_all_and_hands_back_the_coldest() {
    for policy in POLICIES {
        let make =
            |seed| Cache::builder().max_entries(SEVERAL_SEGMENTS).policy(policy).hasher(seeded(seed)).build();
        let cache: Hashed = make(1);
        (0..4 * SEVERAL_SEGMENTS as u64).for_each(|key| cache.insert(key, key).unwrap());
        assert_eq!(cache.len(), SEVERAL_SEGMENTS);
        let hot: Vec<u64> = cache.iter().map(|(key, _)| key).filter(|key| key % 8 == 0).collect();
        hot.iter().for_each(|key| assert!(cache.get(key).is_some()));
        let dump = cache.dump();
        let back = make(2);
        let rest = back.load(dump.clone());
        assert_eq!(back.len() + rest.len(), SEVERAL_SEGMENTS);
        assert!(rest.len() <= SEVERAL_SEGMENTS / 50, "{} left out", rest.len());
        assert!(hot.iter().all(|key| back.contains_key(key)));
        assert!(rest.iter().all(|(key, _)| !back.contains_key(key)));
        // The same hash function: everything.
        load_all(&make(1), &dump);
    }
}

/// With types that cannot be cloned, as long as the dump itself is not cloned.
#[test]
fn entries_of_a_dump_are_moved_out_in_their_order() {
    let cache: Cache<u64, std::sync::Arc<u64>> = Cache::new(100);
    (0..100).for_each(|key| cache.insert(key, std::sync::Arc::new(key)).unwrap());
    let dump = cache.dump();
    let expected: Vec<_> = dump.iter().map(|(key, value)| (*key, **value)).collect();
    cache.clear();
    cache.flush();
    let mut entries = dump.into_iter();
    assert_eq!((entries.len(), format!("{entries:?}")), (100, "DumpIntoIter { len: 100, .. }".to_string()));
    let last = entries.next_back().map(|(key, value)| (key, *value));
    assert_eq!((last, entries.len()), (expected.last().copied(), 99));
    let moved: Vec<_> = entries.map(|(key, value)| (key, std::sync::Arc::into_inner(value))).collect();
    assert_eq!(moved, expected[..99].iter().map(|&(key, value)| (key, Some(value))).collect::<Vec<_>>());
}

#[test]
fn what_is_retained_of_a_dump_is_loaded_as_if_the_others_had_not_been_there() {
    for policy in POLICIES {
        let cache = told_cache(policy, 100).0;
        live(&cache, 2000);
        let (mut dump, mut seen) = (cache.dump(), Vec::new());
        let expected = keys(&dump);
        dump.retain(|key, value| {
            assert_eq!(*value, key + 1);
            seen.push(*key);
            key % 3 == 0
        });
        assert_eq!(seen, expected, "in the order of the dump");
        let kept: Vec<u64> = expected.into_iter().filter(|key| key % 3 == 0).collect();
        assert_eq!(keys(&dump), kept);
        cache.retain(|key, _| key % 3 == 0);
        let back = told_cache(policy, 100).0;
        load_all(&back, &dump);
        assert_eq!(contents(&back), contents(&cache));
        // The others have no queue.
        assert!(policy != Policy::Adaptive || keys(&back.dump()) == keys(&cache.dump()));
    }
}

#[test]
fn what_is_there_stays_and_counts_as_younger() {
    // With a known hash function: among few buckets, keys that the policy cannot tell apart are likely.
    let [old, new] = [0, 1].map(|_| told_cache(Policy::Adaptive, 10).0);
    (0..10).for_each(|key| old.insert(key, 1).unwrap());
    (5..9).for_each(|key| new.insert(key, 2).unwrap());
    assert_eq!(keys(&new.load(old.dump())), [5, 6, 7, 8]);
    let expected = (0..10).map(|key| (key, if (5..9).contains(&key) { 2 } else { 1 }));
    assert_eq!(contents(&new), expected.collect());
    assert_eq!(new.load(old.dump()).len(), 10);
    let keys = keys(&new.dump());
    assert!(keys[..4].iter().all(|key| !(5..9).contains(key)), "{keys:?}");
}

#[test]
fn the_weigher_is_asked_again() {
    let dump = {
        let cache: Cache<u64, u64> = Cache::new(10);
        (1..=4).for_each(|key| cache.insert(key, key).unwrap());
        cache.dump()
    };
    let cache: Cache<u64, u64> = Cache::builder().max_weight(7).weigher(|_, value| *value).build();
    let kept = 4 - cache.load(dump).len();
    assert_eq!(kept, cache.len());
    assert_eq!(cache.weight(), cache.iter().map(|(_, value)| value).sum::<u64>());
    assert!(kept >= 2 && cache.weight() <= 7);
    // Heavier than the capacity: left out.
    let light: Cache<u64, u64> = Cache::new(1);
    light.insert(8, 8).unwrap();
    assert_eq!(keys(&cache.load(light.dump())), [8]);
}

/// A writer raises its counter before it inserts that value: a dump may have no value whose insertion had not begun when the
/// dump ended, nor one that had been replaced when the dump began.
#[test]
fn what_is_dumped_was_there_meanwhile() {
    const KEYS: u64 = 300;
    let cache: Cache<u64, u64> = Cache::builder().max_entries(SEVERAL_SEGMENTS).build();
    let (begun, done): (Vec<_>, Vec<_>) = (0..KEYS).map(|_| (AtomicU64::new(0), AtomicU64::new(0))).unzip();
    let over = AtomicBool::new(false);
    on_threads(3, |thread| {
        if thread == 0 {
            let _end = SetAtEnd(&over);
            for _ in 0..40 {
                let before: Vec<u64> = done.iter().map(|n| n.load(Ordering::SeqCst)).collect();
                let dump = cache.dump();
                let after: Vec<u64> = begun.iter().map(|n| n.load(Ordering::SeqCst)).collect();
                let mut met = BTreeMap::new();
                for (&key, &value) in dump.iter() {
                    assert!((before[key as usize]..=after[key as usize]).contains(&value), "{key}: {value}");
                    assert_eq!(met.insert(key, value), None, "twice");
                }
                assert!((0..KEYS).all(|key| before[key as usize] == 0 || met.contains_key(&key)));
            }
            return;
        }
        for value in 1.. {
            for key in (0..KEYS).filter(|key| key % 2 == thread as u64 - 1) {
                begun[key as usize].store(value, Ordering::SeqCst);
                cache.insert(key, value).unwrap();
                done[key as usize].store(value, Ordering::SeqCst);
                cache.get(&(key / 2));
            }
            if over.load(Ordering::Relaxed) {
                break;
            }
        }
    });
}

/// Meanwhile other threads take the room that was promised: entries that come too late for it are handed back.
#[test]
fn the_bound_holds_while_others_fill_the_room() {
    const ENTRIES: u64 = 1000;
    for policy in POLICIES {
        let [cache, old] = [0, 1].map(|_| told_cache(policy, ENTRIES as usize).0);
        (0..ENTRIES).for_each(|key| old.insert(key, key).unwrap());
        let (dump, over) = (old.dump(), AtomicBool::new(false));
        let is_loading = || !over.load(Ordering::Relaxed);
        on_threads(3, |thread| match thread {
            0 => {
                let _end = SetAtEnd(&over);
                for _ in 0..50 {
                    cache.clear();
                    let rest = cache.load(dump.clone());
                    assert!(rest.iter().all(|(key, value)| key == value && *key < ENTRIES));
                }
            }
            1 => {
                (ENTRIES..).take_while(|_| is_loading()).for_each(|key| cache.insert(key, key).unwrap());
            }
            _ => {
                while is_loading() {
                    assert!(cache.len() as u64 <= ENTRIES);
                }
            }
        });
        assert!(cache.iter().all(|(key, value)| key == value));
    }
}

/// A load that is under way when a dump's entry is inserted is newer: its value is kept, whichever thread runs its loader.
#[test]
fn what_is_being_loaded_is_newer_than_what_was_dumped() {
    let old: Cache<u64, u64> = Cache::new(10);
    (1..=2).for_each(|key| old.insert(key, 1).unwrap());
    let dump = old.dump();
    let cache: Cache<u64, u64> = Cache::new(10);
    let loaded = cache.get_or_insert_with(1, || {
        assert_eq!(keys(&cache.load(dump.clone())), [1]);
        2
    });
    assert_eq!((loaded, cache.get(&1), cache.get(&2)), (2, Some(2), Some(1)));
    cache.clear();
    let loaded = cache.get_or_insert_with(1, || {
        on_threads(1, |_| assert_eq!(keys(&cache.load(dump.clone())), [1]));
        3
    });
    assert_eq!((loaded, cache.get(&1), cache.get(&2)), (3, Some(3), Some(1)));
    // A load whose key was written to meanwhile keeps nothing, so that there is nothing newer.
    cache.clear();
    let loaded = cache.get_or_insert_with(1, || {
        cache.remove(&1);
        on_threads(1, |_| load_all(&cache, &dump));
        4
    });
    assert_eq!((loaded, cache.get(&1)), (4, Some(1)));
}
