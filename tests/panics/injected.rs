//! A panic at the n-th call of `Hash`, `Eq` or `BuildHasher`, for every n: both maps are as they were before the operation,
//! also during growth and shrinking.

use koel::{HashMap, InlineMap, Operation};

use crate::common::fuse::{Fused, Key, Site, arm, disarm};
use crate::common::{AnyMap, Config, catch, growing_configs};
use crate::{assert_same, assert_unlocked, assert_works};

/// A map whose key and hash function have fuses.
pub(crate) trait Subject: AnyMap<Key = Key, Value = u64, Hasher = Fused> {}

impl<M: AnyMap<Key = Key, Value = u64, Hasher = Fused>> Subject for M {}

/// Performs `operation` with a fuse at every call of `site`; after each panic the map is as it was.
fn changes_nothing_or_succeeds<M: Subject>(what: &str, site: Site, map: &M, operation: impl Fn(&M)) -> usize {
    let before = map.entries();
    for n in 0.. {
        arm(site, n);
        let result = catch(|| operation(map));
        disarm();
        match result {
            Ok(()) => {
                assert_works(map);
                return n;
            }
            Err(message) => {
                assert_eq!(message, format!("fuse: {site:?}"), "{} {what}", M::NAME);
                assert_same(what, map, &before);
                assert_unlocked(map, n % 16 == 0);
            }
        }
    }
    unreachable!()
}

fn compute<M: Subject>(map: &M, key: Key, operation: Operation<u64, ()>) {
    map.compute(key, |_| operation);
}

type Verb<M> = (&'static str, fn(&M));

/// Operations on a map that has the keys 0..50.
fn verbs<M: Subject>() -> Vec<Verb<M>> {
    vec![
        ("insert", |map| assert_eq!(map.insert(Key(100), 1), None)),
        ("insert over", |map| assert_eq!(map.insert(Key(7), 1), Some(7))),
        ("checked_insert", |map| assert_eq!(map.checked_insert(Key(100), 1), Ok(None))),
        ("checked_try_insert", |map| assert_eq!(map.checked_try_insert(Key(100), 1), Ok(Ok(1)))),
        ("checked_get_or_insert_with", |map| {
            assert_eq!(map.checked_get_or_insert_with(Key(100), || 1), Ok(1));
        }),
        ("checked_update_or_insert", |map| {
            assert_eq!(map.checked_update_or_insert(Key(7), |value| value + 1, 1), Ok(8));
        }),
        ("checked_compute", |map| {
            map.checked_compute(Key(7), |_| Operation::Insert::<_, ()>(1)).map(drop).expect("there is room");
        }),
        ("try_insert", |map| assert_eq!(map.try_insert(Key(100), 1), Ok(1))),
        ("try_insert, occupied", |map| assert!(map.try_insert(Key(7), 1).is_err())),
        ("try_insert_with", |map| assert_eq!(map.try_insert_with(Key(100), || 1), Ok(1))),
        ("try_insert_with, occupied", |map| assert_eq!(map.try_insert_with(Key(7), || 1), Err(7))),
        ("remove", |map| assert_eq!(map.remove(&Key(7)), Some(7))),
        ("remove, absent", |map| assert_eq!(map.remove(&Key(77)), None)),
        ("remove_entry", |map| assert!(map.remove_entry(&Key(7)).is_some())),
        ("remove_if", |map| assert!(map.remove_if(&Key(7), |_, _| true).unwrap().is_some())),
        ("remove_if not", |map| assert!(map.remove_if(&Key(7), |_, _| false).is_err())),
        ("get", |map| assert_eq!(map.get(&Key(7)), Some(7))),
        ("contains_key", |map| assert!(map.contains_key(&Key(7)))),
        ("may_contain", |map| assert!(map.may_contain(&Key(7)))),
        ("get_many", |map| assert_eq!(map.get_many(&[Key(7), Key(77), Key(8)]), [Some(7), None, Some(8)])),
        ("contains_many", |map| assert_eq!(map.contains_many(&[Key(7), Key(77)]), [true, false])),
        ("get_or_insert", |map| assert_eq!(map.get_or_insert(Key(100), 1), 1)),
        ("get_or_insert, present", |map| assert_eq!(map.get_or_insert(Key(7), 1), 7)),
        ("get_or_insert_with", |map| assert_eq!(map.get_or_insert_with(Key(100), || 1), 1)),
        ("update", |map| assert_eq!(map.update(Key(7), |value| value + 1), Some(8))),
        ("update_or_insert", |map| assert_eq!(map.update_or_insert(Key(100), |value| value + 1, 1), 1)),
        ("update_or_insert_with", |map| assert_eq!(map.update_or_insert_with(Key(7), |v| v + 1, || 1), 8)),
        ("compute, insert", |map| compute(map, Key(100), Operation::Insert(1))),
        ("compute, update", |map| compute(map, Key(7), Operation::Insert(1))),
        ("compute, remove", |map| compute(map, Key(7), Operation::Remove)),
        ("compute, abort", |map| compute(map, Key(7), Operation::Abort(()))),
        ("reserve", |map| map.reserve(2000)),
        ("shrink_to_fit", |map| map.shrink_to_fit()),
    ]
}

fn every_verb<M: Subject>() {
    for (what, operation) in verbs::<M>() {
        for site in [Site::Hash, Site::Eq, Site::BuildHasher] {
            for config in [Config::GROWING, Config::GROWING.segments_of(8), Config::fixed(60)] {
                let map = M::build(config, Fused::new());
                (0..50).for_each(|n| assert_eq!(map.insert(Key(n), n), None));
                let panics = changes_nothing_or_succeeds(what, site, &map, operation);
                let hashes = !matches!(what, "shrink_to_fit" | "reserve");
                assert!(site == Site::Eq || !hashes || panics > 0, "{what}: no call of {site:?}");
            }
        }
    }
}

/// Some of the pairs, from the first on, have been inserted, and no other is there even in part.
fn extending_alone<M: Subject>() {
    for config in [Config::GROWING, Config::GROWING.segments_of(8), Config::fixed(200)] {
        for site in [Site::Hash, Site::Eq, Site::BuildHasher] {
            for n in 0.. {
                let mut map = M::build(config, Fused::new());
                (0..50).for_each(|key| assert_eq!(map.insert(Key(key), key), None));
                arm(site, n);
                let result = catch(|| map.extend_alone((25..120).map(|key| (Key(key), key + 1000))));
                disarm();
                let done = (25..120).take_while(|key| map.get(&Key(*key)) == Some(key + 1000)).count() as u64;
                let expected: Vec<_> = (0..map.len() as u64)
                    .map(|key| (Key(key), if (25..25 + done).contains(&key) { key + 1000 } else { key }))
                    .collect();
                assert_eq!(expected.len() as u64, (25 + done).max(50), "{site:?} {n}");
                assert_same("extend alone", &map, &expected);
                assert_works(&map);
                if result.is_ok() {
                    assert!(done == 95 && n >= 25, "{n} panics of {site:?}");
                    break;
                }
            }
        }
    }
}

/// The keys 0..n, where inserting n makes the map grow for the `growths`-th time.
fn about_to_grow<M: Subject>(config: Config, growths: usize) -> (M, u64) {
    let scout = M::build(config, Fused::new());
    let mut capacities = vec![scout.capacity()];
    let mut n = 0;
    while capacities.len() <= growths {
        scout.insert(Key(n), n);
        if capacities.last() != Some(&scout.capacity()) {
            capacities.push(scout.capacity());
        }
        n += 1;
    }
    let map = M::build(config, Fused::new());
    (0..n - 1).for_each(|key| assert_eq!(map.insert(Key(key), key), None));
    (map, n - 1)
}

fn growing<M: Subject>() {
    for config in growing_configs() {
        // As far as those splits of a `HashMap` that hash, which are the fewest, if segments are small.
        let far: &[usize] = if config.segment_slots == Some(8) { &[9, 12, 16, 20] } else { &[] };
        for site in [Site::Hash, Site::BuildHasher] {
            let mut hashing = 0;
            for growths in [1, 2, 4, 5, 6].iter().chain(far) {
                let (map, key) = about_to_grow::<M>(config, *growths);
                let before = map.capacity();
                let panics = changes_nothing_or_succeeds("growth", site, &map, |map| {
                    map.insert(Key(key), key);
                });
                assert!(panics > 0 && map.capacity() > before, "{panics} panics, {before} slots before");
                hashing += usize::from(panics > 2);
            }
            assert!(hashing > far.len() / 2, "{hashing} of {config:?}");
        }
    }
}

/// Panics in growth leave half-built segments behind: they are reused, and do not accumulate.
fn memory_after_many_panics<M: Subject>() {
    let (map, key) = about_to_grow::<M>(Config::GROWING, 7);
    let insert = |map: &M, n: usize| {
        arm(Site::Hash, n);
        let result = catch(|| map.insert(Key(key), key));
        disarm();
        assert!(result.is_err());
    };
    insert(&map, 50);
    let after_one = map.memory_usage();
    (0..200).for_each(|n| insert(&map, 2 + n % 100));
    assert!(
        map.memory_usage() <= after_one + 100,
        "{} bytes, {after_one} after one panic",
        map.memory_usage()
    );
    assert_eq!(map.insert(Key(key), key), None);
    assert!((0..=key).all(|n| map.get(&Key(n)) == Some(n)));
}

#[test]
fn a_hash_map_is_as_it_was_before_a_panic_in_hash_or_eq() {
    every_verb::<HashMap<Key, u64, Fused>>();
}

#[test]
fn an_inline_map_is_as_it_was_before_a_panic_in_hash_or_eq() {
    every_verb::<InlineMap<Key, u64, Fused>>();
}

#[test]
fn a_hash_map_is_as_it_was_before_a_panic_in_growth() {
    growing::<HashMap<Key, u64, Fused>>();
}

#[test]
fn an_inline_map_is_as_it_was_before_a_panic_in_growth() {
    growing::<InlineMap<Key, u64, Fused>>();
}

#[test]
fn a_map_of_one_s_own_has_what_was_inserted_before_a_panic() {
    extending_alone::<HashMap<Key, u64, Fused>>();
    extending_alone::<InlineMap<Key, u64, Fused>>();
}

#[test]
fn panics_in_growth_do_not_pile_up_memory() {
    memory_after_many_panics::<HashMap<Key, u64, Fused>>();
    memory_after_many_panics::<InlineMap<Key, u64, Fused>>();
}
