//! Clones of maps: maps that are mostly full are copied as they are, without hashing, whatever is written meanwhile.

use std::collections::BTreeMap;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};

use koel::{HashMap, HashSet, InlineMap};

use crate::common::hashers::{CONSTANT, Hashing, TWENTY_COLLIDE, Through, hashed};
use crate::common::{AnyMap, Config, SetAtEnd, Words, fixed_configs, growing_configs, laws, seeded};

/// Clones, and returns how often that hashed.
fn cloned<M: Clone>(map: &M) -> (M, usize) {
    let before = hashed();
    let copy = map.clone();
    (copy, hashed() - before)
}

#[test]
fn a_map_is_copied_without_hashing_and_has_as_many_slots() {
    for keys in [10, 1000, 30_000_u64] {
        for made_for in [0, keys as usize] {
            let map = InlineMap::<u64, u64, _>::with_capacity_and_hasher(made_for, Hashing::default());
            (0..keys).for_each(|key| _ = map.insert(key, !key));
            let (copy, hashed) = cloned(&map);
            assert_eq!((hashed, copy.capacity()), (0, map.capacity()), "{keys} keys, made for {made_for}");
            assert!(copy == map);

            let map = HashMap::<u64, String, _>::with_capacity_and_hasher(made_for, Hashing::default());
            (0..keys).for_each(|key| _ = map.pin().insert(key, key.to_string()));
            let (copy, hashed) = cloned(&map);
            assert_eq!((hashed, copy.capacity()), (0, map.capacity()), "{keys} keys, made for {made_for}");
            assert!(copy == map);
            // Each has its own.
            let text = |map: &HashMap<u64, String, Hashing>| map.pin()[&7].as_ptr();
            assert_ne!(text(&copy), text(&map));
        }
    }
    let set: HashSet<u64, Hashing> = (0..1000).collect();
    let (copy, hashed) = cloned(&set);
    assert!(hashed == 0 && copy == set);
}

/// A key's hash determines its home cell: each key is hashed once.
#[test]
fn a_copy_has_home_cells_where_its_original_has() {
    let builder = HashMap::<u64, u64>::builder().capacity(5000).home_cells(true).hasher(Hashing::default());
    let map = builder.build();
    (0..5000).for_each(|key| _ = map.pin().insert(key, !key));
    let (copy, hashed) = cloned(&map);
    assert!(hashed == 5000 && copy == map);
    assert!(copy.memory_usage() <= map.memory_usage(), "{}", copy.memory_usage());
    let without = HashMap::<u64, u64>::builder().capacity(5000).home_cells(false).hasher(Hashing::default());
    let map = without.build();
    (0..5000).for_each(|key| _ = map.pin().insert(key, !key));
    let (copy, hashed) = cloned(&map);
    assert!(hashed == 0 && copy == map);
}

/// A map that has grown was made without a capacity: it has neither home cells nor chunks of megabytes.
#[test]
fn a_copy_takes_no_more_memory_than_its_original() {
    for keys in [1000, 300_000, 470_000] {
        let (map, inline) = (HashMap::<u64, u64>::new(), InlineMap::<u64, u64>::new());
        (0..keys).for_each(|key| _ = map.pin().insert(key, key));
        (0..keys).for_each(|key| _ = inline.insert(key, key));
        let (copy, of_inline) = (map.clone(), inline.clone());
        assert_eq!((copy.capacity(), of_inline.capacity()), (map.capacity(), inline.capacity()));
        let (most, most_inline) = (map.memory_usage(), inline.memory_usage());
        assert!(copy.memory_usage() <= most, "{} for {most} of {keys}", copy.memory_usage());
        assert!(of_inline.memory_usage() <= most_inline, "{} for {most_inline}", of_inline.memory_usage());
    }
}

#[test]
fn of_a_mostly_empty_map_a_clone_is_made_for_what_is_there() {
    let map: InlineMap<u64, u64> = (0..30_000).map(|key| (key, key)).collect();
    map.retain(|key, _| key % 3 == 0);
    let copy = map.clone();
    assert!(copy == map && copy.capacity() < map.capacity() / 2, "{} slots", copy.capacity());
    let map: HashMap<u64, u64> = (0..30_000).map(|key| (key, key)).collect();
    map.pin().retain(|key, _| key % 3 == 0);
    let copy = map.clone();
    assert!(copy == map && copy.capacity() < map.capacity() / 2, "{} slots", copy.capacity());
}

/// Entries of a copy can be found, replaced and removed as in the original, and the copy grows.
fn goes_on_as_its_original<M: Words>() {
    for config in growing_configs().into_iter().chain(fixed_configs(4000)) {
        let map = M::build(config, seeded(1));
        (0..3000).for_each(|key| assert!(map.checked_insert(key, !key).is_ok()));
        let copy = map.duplicate();
        for key in (0..3000).step_by(2) {
            assert_eq!(copy.remove(&key), Some(!key));
        }
        for key in 2500..3900 {
            assert!(copy.checked_insert(key, key).is_ok(), "{} {config:?}", M::NAME);
        }
        if config.limit().is_none() {
            (10_000..30_000).for_each(|key| assert!(copy.checked_insert(key, key).is_ok()));
        }
        let kept = (0..2500).filter(|key| key % 2 == 1).map(|key| (key, !key));
        let new = (2500..3900).chain(10_000..if config.limit().is_none() { 30_000 } else { 10_000 });
        let expected: BTreeMap<u64, u64> = kept.chain(new.map(|key| (key, key))).collect();
        assert!(
            copy.len() == expected.len()
                && copy.entries().into_iter().collect::<BTreeMap<_, _>>() == expected
        );
        assert!(expected.iter().all(|(key, value)| copy.get(key) == Some(*value)), "{} {config:?}", M::NAME);
        assert!(map.len() == 3000 && (0..3000).all(|key| map.get(&key) == Some(!key)), "the original");
    }
}

/// Entries for which no bucket has room are in the copy as well.
fn has_what_collides<M: AnyMap<Key = u64, Value = u64, Hasher = Through>>() {
    for (hasher, keys) in [(CONSTANT, 40), (TWENTY_COLLIDE, 2000)] {
        let map = M::build(Config::GROWING, hasher);
        (0..keys).for_each(|key| assert!(map.checked_insert(key, !key).is_ok()));
        let copy = map.duplicate();
        assert_eq!(copy.len(), keys as usize, "{}", M::NAME);
        assert!((0..keys).all(|key| copy.get(&key) == Some(!key)) && copy.get(&keys).is_none());
        assert!((0..keys).all(|key| copy.remove(&key) == Some(!key)) && copy.is_empty());
    }
}

/// A thread inserts and removes, and the map grows, while it is cloned: entries that are there throughout are in each copy.
fn has_all_that_stays<M: Words>() {
    const STAY: u64 = 2000;
    const BESIDE: u64 = 6000;
    let rounds = if cfg!(miri) { 2 } else { 60 };
    for segment_slots in [8, 64, 4096] {
        let map = M::build(Config::GROWING.segments_of(segment_slots), seeded(2));
        (0..STAY).for_each(|key| assert!(map.checked_insert(key, !key).is_ok()));
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for n in STAY.. {
                    let _ = map.checked_insert(n, !n);
                    if n >= STAY + BESIDE {
                        map.remove(&(n - BESIDE));
                    }
                    if done.load(Ordering::Relaxed) {
                        break;
                    }
                }
            });
            let _done = SetAtEnd(&done);
            for _ in 0..rounds {
                let copy = map.duplicate();
                assert!((0..STAY).all(|key| copy.get(&key) == Some(!key)), "{} lost one", M::NAME);
                let entries = copy.entries();
                assert!(entries.iter().all(|(key, value)| *value == !key), "{}", M::NAME);
                assert!(entries.iter().all(|(key, _)| copy.contains_key(key)), "{}", M::NAME);
                assert_eq!(copy.len(), entries.len(), "{}", M::NAME);
            }
        });
    }
}

laws! {
    goes_on_as_its_original => a_copied_hash_map_goes_on, a_copied_inline_map_goes_on;
    has_all_that_stays =>
        a_hash_map_is_cloned_beside_a_writer,
        an_inline_map_is_cloned_beside_a_writer;
}

laws! { <u64, u64, Through>
    has_what_collides => a_copied_hash_map_has_what_collides, a_copied_inline_map_has_what_collides;
}

/// The first value to be cloned makes the map that is being cloned grow.
struct Grower(u64);

static MAP: LazyLock<HashMap<u64, Grower>> = LazyLock::new(|| HashMap::builder().segment_slots(64).build());
static GROWS: AtomicBool = AtomicBool::new(true);

impl Clone for Grower {
    fn clone(&self) -> Self {
        if GROWS.swap(false, Ordering::Relaxed) {
            MAP.pin().extend((1000..20_000).map(|key| (key, Grower(key))));
        }
        Grower(self.0)
    }
}

#[test]
fn segments_that_have_split_since_the_copy_was_begun_are_copied_as_well() {
    MAP.pin().extend((0..1000).map(|key| (key, Grower(key))));
    let before = MAP.capacity();
    let copy = MAP.clone();
    assert!(MAP.capacity() > 4 * before, "it has not grown");
    let pin = copy.pin();
    assert!((0..1000).all(|key| pin.get(&key).is_some_and(|value| value.0 == key)));
    assert!(pin.iter().all(|(key, value)| *key == value.0 && pin.contains_key(key)));
    assert_eq!(pin.len(), pin.iter().count());
}
