//! Walks: an entry that is present throughout is seen exactly once, whatever happens to the map meanwhile; others are seen at
//! most once.

mod common;

use std::collections::{HashMap as Model, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use common::{
    Config, Noted, Rng, SetAtEnd, Words, catch, fixed_configs, growing_configs, ignore, laws, on_threads,
    seed, seeded,
};
use koel::{HashMap, InlineCache, InlineMap};

laws! {
    in_growth => a_walk_over_a_growing_hash_map_sees_all_once, a_walk_over_a_growing_inline_map_sees_all_once;
    in_churn => a_walk_over_a_hash_map_in_churn_sees_all_once, a_walk_over_an_inline_map_in_churn_sees_all_once;
    in_shrinking => a_walk_over_a_shrinking_hash_map_sees_all_once, a_walk_over_a_shrinking_inline_map_sees_all_once;
    while_writing => a_walk_may_write_to_its_hash_map, a_walk_may_write_to_its_inline_map;
    step_by_step => every_step_of_a_walk_may_meet_a_split_of_a_hash_map, every_step_of_a_walk_may_meet_a_split_of_an_inline_map;
    retain_beside_writers => retain_of_a_hash_map_removes_only_what_it_was_asked_about,
        retain_of_an_inline_map_removes_only_what_it_was_asked_about;
    drain_beside_writers => drained_entries_of_a_hash_map_are_nobody_else_s, drained_entries_of_an_inline_map_are_nobody_else_s;
    owning => an_owning_walk_over_a_hash_map_yields_all_once, an_owning_walk_over_an_inline_map_yields_all_once;
    dropped_half_way => a_drain_dropped_half_way_empties_a_hash_map, a_drain_dropped_half_way_empties_an_inline_map;
    empty => a_walk_over_an_empty_hash_map_ends, a_walk_over_an_empty_inline_map_ends;
}

/// Keys below this are present throughout.
const PRESENT: u64 = 3000;

/// Walks this many times and checks what is seen, while another thread runs `disturb(round)` until the walks are done.
fn walks_see_all_once<M: Words>(map: &M, walks: usize, disturb: impl Fn(u64) + Sync) {
    (0..PRESENT).for_each(|key| assert!(map.insert(key, key).is_none()));
    let done = AtomicBool::new(false);
    on_threads(2, |thread| {
        if thread == 0 {
            let mut round = 0;
            while !done.load(Ordering::Relaxed) {
                disturb(round);
                round += 1;
            }
            return;
        }
        let _end = SetAtEnd(&done);
        for _ in 0..walks {
            let mut seen = HashSet::new();
            map.walk(usize::MAX, |key, value| {
                assert_eq!(key, value);
                assert!(seen.insert(key), "{key} was seen twice");
            });
            let missed = (0..PRESENT).find(|key| !seen.contains(key));
            assert_eq!(missed, None, "{} entries seen, not {missed:?}", seen.len());
            assert_eq!(map.keys().into_iter().filter(|key| *key < PRESENT).count() as u64, PRESENT);
            assert_eq!(map.values().into_iter().filter(|value| *value < PRESENT).count() as u64, PRESENT);
        }
    });
}

fn in_growth<M: Words>() {
    for config in growing_configs() {
        for history in 0..3 {
            let map = M::build(config, seeded(history));
            walks_see_all_once(&map, 2, |round| {
                // Not forever: a map that is only grown takes ever longer to walk over.
                if round < 200 {
                    (0..200).for_each(|i| {
                        assert!(map.insert(PRESENT + round * 200 + i, PRESENT + round * 200 + i).is_none())
                    });
                }
            });
        }
    }
}

fn in_churn<M: Words>() {
    let entries = PRESENT as usize + 200;
    for config in growing_configs().into_iter().chain(fixed_configs(entries)) {
        let map = M::build(config, seeded(1));
        walks_see_all_once(&map, 10, |round| {
            let (out, new) = (PRESENT + round % 100, PRESENT + (round + 50) % 100);
            map.remove(&out);
            map.insert(new, new);
            let key = round * 7 % PRESENT;
            assert_eq!(map.insert(key, key), Some(key), "replacing is no removal");
        });
    }
}

fn in_shrinking<M: Words>() {
    for config in growing_configs() {
        let map = M::build(config, seeded(1));
        walks_see_all_once(&map, 10, |round| {
            (0..2000).for_each(|i| assert!(map.insert(PRESENT + i, PRESENT + i).is_none()));
            map.retain(|key, _| *key < PRESENT);
            if round % 2 == 0 {
                map.shrink_to_fit();
            }
        });
    }
}

fn while_writing<M: Words>() {
    for config in growing_configs() {
        let map = M::build(config, seeded(1));
        (0..PRESENT).for_each(|key| assert!(map.insert(key, key).is_none()));
        let mut seen = Model::new();
        map.walk(usize::MAX, |key, value| {
            *seen.entry(key).or_insert(0) += 1;
            // Replaces this entry, removes another, adds others.
            if key < PRESENT {
                assert!(map.insert(key, value + 1).is_some());
                map.remove(&(PRESENT + key * 2));
                map.insert(PRESENT + key * 3 + 1, 0);
                map.insert(PRESENT + key * 5 + 2, 0);
            }
        });
        assert!((0..PRESENT).all(|key| seen.get(&key) == Some(&1)));
        assert!(seen.values().all(|times| *times == 1), "seen twice");
        assert!((0..PRESENT).all(|key| map.get(&key) == Some(key + 1)));
        // Removing each entry that is seen empties the map.
        map.walk(usize::MAX, |key, _| assert!(map.remove(&key).is_some()));
        assert!(map.is_empty());
    }
}

/// A split between any two steps of a walk, on one thread, and so deterministically.
fn step_by_step<M: Words>() {
    for pause in 0..60 {
        let map = M::build(Config::GROWING.segments_of(8), seeded(pause));
        (0..60).for_each(|key| assert!(map.insert(key, key).is_none()));
        let mut seen = Vec::new();
        map.walk(usize::MAX, |key, _| {
            seen.push(key);
            if seen.len() as u64 == pause {
                (1000..1500).for_each(|key| assert!(map.insert(key, key).is_none()));
            }
        });
        let unique: HashSet<u64> = seen.iter().copied().collect();
        assert_eq!(unique.len(), seen.len(), "seen twice");
        assert!((0..60).all(|key| unique.contains(&key)), "after {pause} steps");
    }
}

fn retain_beside_writers<M: Words>() {
    for config in growing_configs() {
        let map = M::build(config, seeded(1));
        on_threads(2, |thread| {
            for round in 0..30 {
                if thread == 0 {
                    // Odd values are to go.
                    map.retain(|_, value| value % 2 == 0);
                } else {
                    let even = round * 2;
                    (0..500).for_each(|key| ignore(map.insert(key, even)));
                    assert!((0..500).all(|key| map.get(&key) == Some(even)), "retain removed an even value");
                    (0..500).for_each(|key| ignore(map.insert(key, even + 1)));
                    // Made even again, before or after `retain` visits the key: then it is never lost.
                    for key in 0..500 {
                        let value = map.update_or_insert(key, |_| even, even);
                        assert_eq!(value, even);
                    }
                    assert_eq!(
                        (0..500).find(|key| map.get(key) != Some(even)),
                        None,
                        "retain removed a replaced value"
                    );
                }
            }
        });
    }
}

/// Two threads insert tickets, two others drain: each ticket is drained once.
fn drain_beside_writers<M: Words>() {
    for config in growing_configs() {
        let map = M::build(config, seeded(1));
        const TICKETS: u64 = 3000;
        let drained = on_threads(4, |thread| {
            let mut mine = Vec::new();
            if thread < 2 {
                (0..TICKETS).for_each(|i| assert!(map.insert(i * 2 + thread as u64, i).is_none()));
            } else {
                (0..30).for_each(|_| mine.extend(map.drain(usize::MAX)));
            }
            mine
        });
        let mut seen = HashSet::new();
        for (key, _) in drained.into_iter().flatten() {
            assert!(seen.insert(key), "{key} was drained twice");
        }
        for (key, _) in map.into_entries() {
            assert!(seen.insert(key), "{key} was drained and is still there");
        }
        assert_eq!(seen.len() as u64, 2 * TICKETS, "neither drained nor there");
    }
}

fn owning<M: Words>() {
    let mut rng = Rng::new(seed());
    for config in growing_configs().into_iter().chain(fixed_configs(5000)) {
        let map = M::build(config, seeded(1));
        let keys: HashSet<u64> = (0..5000).map(|_| rng.next()).collect();
        keys.iter().for_each(|key| assert!(map.insert(*key, !key).is_none()));
        let entries = map.into_entries();
        assert_eq!(entries.len(), keys.len());
        assert!(entries.iter().all(|(key, value)| keys.contains(key) && *value == !key));
        assert_eq!(entries.into_iter().map(|(key, _)| key).collect::<HashSet<_>>(), keys);
    }
}

fn dropped_half_way<M: Words>() {
    for config in growing_configs() {
        for taken in [0, 1, 100, 999, 1000, 2000] {
            let map = M::build(config, seeded(1));
            (0..1000).for_each(|key| assert!(map.insert(key, key).is_none()));
            let drained = map.drain(taken);
            assert_eq!((drained.len(), map.len()), (taken.min(1000), 0));
            assert!((0..1000).all(|key| !map.contains_key(&key)));
            assert!(drained.iter().all(|(key, value)| key == value));
            assert!(map.insert(1, 2).is_none());
        }
    }
}

fn empty<M: Words>() {
    for config in growing_configs().into_iter().chain(fixed_configs(0)).chain(fixed_configs(100)) {
        let map = M::build(config, seeded(1));
        assert!(map.entries().is_empty() && map.drain(usize::MAX).is_empty());
        assert!(map.keys().is_empty() && map.values().is_empty());
        map.retain(|_, _| unreachable!());
        map.clear();
        assert!(map.into_entries().is_empty());
    }
}

#[test]
fn iterators_end_once_and_for_all() {
    let map: HashMap<u64, u64> = (0..10).map(|n| (n, n)).collect();
    let pin = map.pin();
    let mut walk = pin.iter();
    assert_eq!(walk.by_ref().count(), 10);
    pin.insert(100, 100);
    assert_eq!((walk.next(), walk.next()), (None, None));
    drop(pin);
    let mut entries = map.into_iter();
    assert_eq!((entries.len(), entries.size_hint()), (11, (11, Some(11))));
    assert_eq!(entries.by_ref().count(), 11);
    assert_eq!((entries.next(), entries.len()), (None, 0));
    let map: InlineMap<u64, u64> = (0..10).map(|n| (n, n)).collect();
    let mut walk = map.iter();
    assert_eq!(walk.by_ref().count(), 10);
    map.insert(100, 100);
    assert_eq!((walk.next(), walk.next()), (None, None));
}

/// A walk holds entries, not locks: a thread that stops in the middle of one blocks nobody.
#[test]
fn a_walk_that_pauses_holds_no_lock() {
    let map: HashMap<u64, u64> = (0..PRESENT).map(|n| (n, n)).collect();
    let pin = map.pin();
    let mut walk = pin.iter();
    let first = walk.next();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            map.pin().extend((PRESENT..3 * PRESENT).map(|n| (n, n)));
            map.clear();
            map.shrink_to_fit();
        });
    });
    // Entries that were copied before the map was cleared are still alive.
    assert!(first.is_some() && walk.all(|(key, value)| key == value && *key < 3 * PRESENT));
}

/// A walk over clones owns its view: in a map that splits and is emptied meanwhile, it sees once each entry that was there
/// throughout.
#[test]
fn a_walk_that_has_its_view_with_it_may_be_returned_and_sent() {
    fn all(map: &HashMap<u64, String>) -> impl Iterator<Item = (u64, String)> + Send {
        map.pin_owned().into_iter_cloned()
    }
    let map: HashMap<u64, String> = HashMap::builder().segment_slots(64).build();
    assert_eq!(all(&map).next(), None);
    map.extend((0..PRESENT).map(|n| (n, n.to_string())));
    let (mut sent, mut late) = (all(&map), map.pin().into_iter_cloned());
    let first = (sent.next().unwrap(), late.next().unwrap());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            map.extend((PRESENT..3 * PRESENT).map(|n| (n, n.to_string())));
            let seen: Vec<(u64, String)> = sent.chain([first.0]).collect();
            let entries = seen.len();
            let seen: Model<u64, String> = seen.into_iter().collect();
            assert_eq!(seen.len(), entries, "seen twice");
            assert!((0..PRESENT).all(|n| seen.get(&n).is_some_and(|text| *text == n.to_string())));
            map.clear();
            map.flush();
        });
    });
    // Entries that were copied before the map was cleared are still alive.
    let rest = late.by_ref().chain([first.1]).inspect(|(n, text)| assert_eq!(n.to_string(), *text)).count();
    assert!(rest < PRESENT as usize && late.next().is_none(), "{rest}");
}

/// With values that are not `Clone`. For an entry at which the closure panics it yields nothing, and goes on.
#[test]
fn a_walk_that_has_its_view_with_it_yields_what_is_made_of_each_entry() {
    let map: HashMap<u64, AtomicU64> = HashMap::builder().segment_slots(64).build();
    map.extend((0..PRESENT).map(|n| (n, AtomicU64::new(!n))));
    let mut walk = map.pin_owned().into_iter_with(|key, value| {
        assert!(key % 7 != 0, "as planned");
        (*key, value.load(Ordering::Relaxed))
    });
    let next = || catch(|| walk.next()).transpose();
    let (seen, panics): (Vec<_>, Vec<_>) = core::iter::from_fn(next).partition(Result::is_ok);
    assert!(panics.len() as u64 == PRESENT.div_ceil(7) && panics.contains(&Err("as planned".to_string())));
    let seen: Vec<(u64, u64)> = seen.into_iter().map(Result::unwrap).collect();
    let expected: Model<u64, u64> = (0..PRESENT).filter(|n| n % 7 != 0).map(|n| (n, !n)).collect();
    assert!(seen.len() == expected.len() && seen.into_iter().collect::<Model<_, _>>() == expected);
}

/// Drops it, or lets unwinding drop it.
fn ends<T>(dropped: T, unwinds: bool) -> u64 {
    assert!(!unwinds, "as planned");
    drop(dropped);
    0
}

/// A drop that waited for the lock would wait for itself, and one that panicked during unwinding would abort the process.
#[test]
fn a_drain_that_ends_in_a_closure_under_its_map_s_lock_panics_unless_that_unwinds() {
    let map: HashMap<u64, u64> = (0..100).map(|key| (key, key)).collect();
    let inline: InlineMap<u64, u64> = (0..100).map(|key| (key, key)).collect();
    for unwinds in [false, true] {
        let messages = [
            catch(|| {
                let pin = map.pin();
                let drain = pin.drain();
                pin.update(7, |_| ends(drain, unwinds));
            }),
            catch(|| {
                let drain = inline.drain();
                inline.update(7, |_| ends(drain, unwinds));
            }),
        ];
        let expected = if unwinds { "as planned" } else { "same map" };
        assert!(
            messages.iter().all(|message| message.as_ref().unwrap_err().contains(expected)),
            "{messages:?}"
        );
        assert_eq!((map.len(), map.pin().get(&7)), (100, Some(&7)));
        assert_eq!((inline.len(), inline.get(&7)), (100, Some(7)));
    }
}

/// Keys that are equal need not have the same bytes.
#[test]
fn retain_asks_about_a_key_that_took_the_place_of_an_equal_one() {
    let old = Noted { key: 1, note: 0 };
    let new = Noted { note: 1, ..old };
    let mut asked = Vec::new();
    let map = InlineMap::from([(old, 5)]);
    map.retain(|key, _| {
        asked.push(key.note);
        if key.note == 0 {
            assert!(map.remove(key).is_some() && map.insert(new, 5).is_none());
        }
        key.note == 1
    });
    assert_eq!((&asked[..], map.len()), (&[0, 1][..], 1));
    let cache = InlineCache::new(100);
    cache.insert(old, 5);
    cache.retain(|key, _| {
        asked.push(key.note);
        if key.note == 0 {
            assert!(cache.remove(key).is_some() && cache.insert(new, 5).is_none());
        }
        key.note == 1
    });
    assert_eq!((&asked[2..], cache.len()), (&[0, 1][..], 1));
}

#[test]
fn retain_asks_about_an_entry_that_took_the_place_of_one_that_was_not_to_be_kept() {
    let mut asked = Vec::new();
    let map = HashMap::from([(1, 0)]);
    map.pin().retain(|key, value| {
        asked.push(*value);
        if *value == 0 {
            map.pin().insert(*key, 1);
        }
        *value == 1
    });
    assert_eq!((&asked[..], map.pin().get(&1)), (&[0, 1][..], Some(&1)));
}
