//! Heavy entries that fit are there, however they were inserted and whatever was there before them.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

use koel::{Cache, ManualClock, Operation};

use crate::common::{Seeded, seed, seeded};
use crate::{POLICIES, SEVERAL_SEGMENTS, weighing_values};

type Hashed = Cache<u64, u64, Seeded>;

/// A cache of four segments, with a different hash function each time.
fn of_four(max_weight: u64, round: u64) -> Hashed {
    weighing_values(max_weight).hasher(seeded(seed() + round)).build()
}

/// Replacing an entry counts as a use, and an entry that was admitted once is not judged again.
#[test]
fn an_entry_that_grows_is_not_turned_away() {
    for after in [1001, 1010, 1500] {
        let builder = Cache::builder().max_weight(2000).estimated_entries(10);
        let cache = builder.weigher(|_, weight: &u64| *weight).build();
        cache.insert(7000, 1000).unwrap();
        (0..1000).for_each(|key| cache.insert(key, 1).unwrap());
        (0..1000).for_each(|key| assert_eq!(cache.get(&key), Some(1)));
        cache.insert(7000, after).unwrap();
        assert_eq!(cache.get(&7000), Some(after));
        assert_eq!(cache.stats().turned_away, 0);
    }
}

#[test]
fn a_cache_made_a_little_smaller_keeps_what_fits() {
    for round in 0..5 {
        let cache = of_four(1000, round);
        cache.insert(1, 900).unwrap();
        for capacity in [999, 950, 900] {
            cache.set_capacity(capacity);
            assert_eq!((cache.get(&1), cache.capacity()), (Some(900), capacity));
        }
        cache.set_capacity(899);
        assert_eq!((cache.get(&1), cache.weight()), (None, 0));
        // All of it can be used.
        cache.insert(2, 899).unwrap();
        let cache = of_four(1000, round);
        (0..20).for_each(|key| cache.insert(key, 45).unwrap());
        cache.set_capacity(900);
        assert_eq!(cache.len(), 20);
        cache.set_capacity(890);
        assert!(cache.len() < 20 && cache.weight() <= 890);
    }
}

/// Even if each is heavier than a segment's share of the remaining capacity.
#[test]
fn a_cache_made_much_smaller_keeps_as_many_heavy_entries_as_fit() {
    for policy in POLICIES {
        for round in 0..5 {
            let builder = Cache::builder().max_weight(64_000_000).policy(policy);
            let cache = builder.weigher(|_, weight: &u64| *weight).hasher(seeded(seed() + round)).build();
            (0..400_u64).for_each(|key| cache.insert(key, 200_000).unwrap());
            for capacity in [1_050_000, 450_000, 200_000, 199_999] {
                cache.set_capacity(capacity);
                assert_eq!(cache.len() as u64, capacity / 200_000, "{policy} at {capacity}");
            }
            cache.insert(1, 199_999).unwrap();
        }
    }
}

/// Even if segments have many entries, one of them more than its share, and the remaining capacity is not spare but theirs.
#[test]
fn a_cache_of_many_entries_made_a_little_smaller_keeps_what_fits() {
    for round in 0..5 {
        let cache = of_four(1 << 20, round);
        (0..2000).for_each(|key| cache.insert(key, 400).unwrap());
        cache.insert(1 << 32, 200_000).unwrap();
        (0..200).for_each(|key| assert!(cache.remove(&key).is_some()));
        assert_eq!((cache.len(), cache.weight()), (1801, 920_000));
        for capacity in [1_040_000, 1_000_000, 920_000] {
            cache.set_capacity(capacity);
            assert_eq!((cache.len(), cache.stats().evictions), (1801, 0), "at {capacity}");
        }
    }
}

/// Five fit, and there are four segments.
#[test]
fn entries_that_fit_all_together_are_there_however_they_come() {
    const HEAVY: u64 = 200_000;
    type Insert = fn(&Hashed, u64);
    let inserts: [(&str, Insert); 4] = [
        ("insert", |cache, key| cache.insert(key, HEAVY).unwrap()),
        ("replace", |cache, key| {
            cache.insert(key, 1).unwrap();
            cache.insert(key, HEAVY).unwrap();
        }),
        ("compute", |cache, key| {
            assert!(cache.compute(key, |_| Operation::<_, ()>::Insert(HEAVY)).is_ok());
        }),
        ("compute anew", |cache, key| {
            cache.insert(key, 1).unwrap();
            assert!(cache.compute(key, |_| Operation::<_, ()>::Insert(HEAVY)).is_ok());
        }),
    ];
    for (name, insert) in inserts {
        for round in 0..5 {
            let cache = of_four(1 << 20, round);
            (0..5).for_each(|key| insert(&cache, key));
            assert_eq!(cache.len(), 5, "{name}");
        }
    }
    // All are inserted first, and then each grows.
    for round in 0..5 {
        let cache = of_four(1 << 20, round);
        (0..5).for_each(|key| cache.insert(key, 1).unwrap());
        (0..5).for_each(|key| cache.insert(key, HEAVY).unwrap());
        assert_eq!((cache.len(), cache.weight()), (5, 5 * HEAVY));
    }
}

/// Even if the loaded entries were there before, in other segments.
#[test]
fn a_dump_of_few_entries_that_fit_comes_back() {
    for policy in POLICIES {
        for (entries, weight) in [(5, 200_000), (20, 50_000), (200, 5200)] {
            for round in 0..5 {
                let build =
                    |round| weighing_values(1 << 20).policy(policy).hasher(seeded(seed() + round)).build();
                let cache = build(round);
                (0..entries).for_each(|key| cache.insert(key, weight).unwrap());
                let (len, dump) = (cache.len(), cache.dump());
                let other = build(round + 100);
                assert!(other.load(dump.clone()).is_empty());
                cache.clear();
                assert!(cache.load(dump).is_empty());
                assert_eq!((cache.len(), other.len(), other.stats().evictions), (len, len, 0));
            }
        }
    }
}

/// An entry that would have to evict many that are hit, or many at all, takes idle room elsewhere instead.
#[test]
fn a_heavy_entry_is_not_turned_away_while_other_segments_have_room() {
    for rounds in [1, 2] {
        for (light, weight) in [(900, 600), (4000, 130)] {
            for (key, heavy) in [(1 << 32, 200_000), (2 << 32, 260_000), (3 << 32, 300_000)] {
                let cache = of_four(1 << 20, rounds);
                for _ in 0..rounds {
                    (0..light).for_each(|key| assert_eq!(cache.get_or_insert_with(key, || weight), weight));
                }
                if heavy < 300_000 {
                    cache.insert(key, heavy).unwrap();
                } else {
                    cache.compute(key, |_| Operation::<_, ()>::Insert(heavy)).unwrap();
                }
                assert_eq!((cache.len() as u64, cache.peek(&key)), (light + 1, Some(heavy)));
            }
        }
    }
}

/// Nor are expired entries in its way.
#[test]
fn expired_entries_do_not_keep_heavy_ones_out() {
    for weight in [500_000, 900_000] {
        let clock = ManualClock::new();
        let builder = Cache::builder().max_weight(1_000_000).estimated_entries(1000).clock(clock.clone());
        let builder = builder.weigher(|_, weight: &u64| *weight).time_to_live(Duration::from_secs(60));
        let cache = builder.build();
        (0..1000).for_each(|key| cache.insert(key, 1000).unwrap());
        // So that clock hands meet hits.
        (0..2).for_each(|_| (0..1000).for_each(|key| assert_eq!(cache.get(&key), Some(1000))));
        (1000..1100).for_each(|key| cache.insert(key, 1000).unwrap());
        clock.advance(Duration::from_secs(61));
        cache.insert(7000, weight).unwrap();
        assert_eq!(cache.get(&7000), Some(weight));
        assert_eq!(cache.stats().turned_away, 0);
    }
}

/// The key is written to while it is loaded; the value is heavier than a segment's share, and other entries would have to leave
/// for it.
#[test]
fn nobody_leaves_for_what_is_loaded_and_not_kept() {
    type Write = fn(&Hashed);
    let writes: [(Write, Option<u64>); 2] =
        [(|cache| _ = cache.remove(&5000), None), (|cache| cache.insert(5000, 1).unwrap(), Some(1))];
    for (write, kept) in writes {
        let cache = of_four(40_000, 0);
        (0..1000).for_each(|key| cache.insert(key, 30).unwrap());
        let load = || {
            write(&cache);
            39_000
        };
        assert_eq!(cache.get_or_insert_with(5000, load), 39_000);
        assert_eq!((cache.peek(&5000), cache.stats().evictions), (kept, 0));
        assert!((0..1000).all(|key| cache.contains_key(&key)));
    }
}

/// A key that is copied with a hook.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Key(u64);

thread_local! {
    /// The hook to run on this thread when it copies a key.
    static HOOK: RefCell<Option<Box<dyn FnOnce()>>> = const { RefCell::new(None) };
}

impl Clone for Key {
    fn clone(&self) -> Self {
        if let Some(hook) = HOOK.take() {
            hook();
        }
        Key(self.0)
    }
}

/// Other entries fill the room that it was to have, and one of them has its key.
#[test]
fn nobody_leaves_for_what_is_loaded_from_a_dump_too_late() {
    let build = || {
        let builder = Cache::builder().max_weight(40_000).estimated_entries(SEVERAL_SEGMENTS);
        builder.weigher(|_: &Key, weight: &u64| *weight).hasher(seeded(seed())).build()
    };
    let (old, cache) = (build(), Arc::new(build()));
    old.insert(Key(5000), 39_000).unwrap();
    let dump = old.dump();
    let filling = Arc::clone(&cache);
    HOOK.set(Some(Box::new(move || {
        // On another thread, as this one is inserting an entry.
        let fill = move || {
            filling.insert(Key(5000), 1).unwrap();
            (0..1000).for_each(|key| filling.insert(Key(key), 30).unwrap());
        };
        std::thread::spawn(fill).join().unwrap();
    })));
    assert_eq!(cache.load(dump).len(), 1);
    assert_eq!((cache.peek(&Key(5000)), cache.stats().evictions), (Some(1), 0));
}
