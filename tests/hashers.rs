//! Bad hash functions make a map slow, never wrong: no key is lost, no operation hangs, memory stays bounded.

mod common;

use std::collections::HashSet;
use std::hash::{Hash, Hasher};

use common::hashers::{CONSTANT, IDENTITY, ONE_BIT, RANDOM, TWENTY_COLLIDE, Through, arbitrary};
use common::{AnyMap, Config, Ledger, fixed_configs, growing_configs, laws, on_threads, seeded};
use koel::{HashMap, InlineMap};

/// Inserts, finds, walks over and removes `keys`, which are different; the map may use `bytes_each` bytes for each.
fn holds_up<M>(config: Config, hasher: Through, keys: &[u64], bytes_each: usize)
where
    M: AnyMap<Key = u64, Value = u64, Hasher = Through>,
{
    let map = M::build(config, hasher);
    for &key in keys {
        assert_eq!(map.insert(key, !key), None, "{key}");
    }
    let used = map.memory_usage();
    assert!(
        used <= 4096 + keys.len() * bytes_each,
        "{} {config:?}: {used} bytes for {} keys",
        M::NAME,
        keys.len()
    );
    assert_eq!(map.len(), keys.len());
    for &key in keys {
        assert_eq!(map.get(&key), Some(!key));
    }
    let many = &keys[keys.len().saturating_sub(300)..];
    assert!(map.get_many(many).iter().zip(many).all(|(value, key)| *value == Some(!key)));
    assert!(many.iter().all(|key| map.may_contain(key)));
    let seen: HashSet<u64> = map.entries().into_iter().map(|(key, _)| key).collect();
    assert_eq!(seen.len(), keys.len());
    for &key in keys {
        assert_eq!(map.insert(key, key), Some(!key));
    }
    // From the front: the first entries of the overflow leave first.
    for (i, &key) in keys.iter().enumerate() {
        assert_eq!(map.remove(&key), Some(key), "{key}");
        if i % 1000 == 0 {
            assert_eq!(map.len(), keys.len() - i - 1);
            assert_eq!(map.get(&key), None);
        }
    }
    assert!(map.is_empty() && map.entries().is_empty());
}

fn both_hold_up(config: Config, hasher: Through, keys: &[u64], bytes_each: usize) {
    holds_up::<HashMap<u64, u64, Through>>(config, hasher, keys, bytes_each);
    holds_up::<InlineMap<u64, u64, Through>>(config, hasher, keys, bytes_each);
}

#[test]
fn ten_thousand_keys_with_one_hash_are_all_found() {
    both_hold_up(Config::GROWING, CONSTANT, &(0..10_000).collect::<Vec<_>>(), 64);
}

#[test]
fn colliding_keys_are_found_in_every_shape_of_map() {
    let keys: Vec<u64> = (0..600).collect();
    for config in growing_configs().into_iter().chain(fixed_configs(600)) {
        for hasher in [CONSTANT, ONE_BIT, TWENTY_COLLIDE] {
            // Segments of two buckets are mostly header.
            both_hold_up(config, hasher, &keys, 350);
        }
    }
}

#[test]
fn integers_that_hash_to_themselves_spread_as_if_they_were_hashed() {
    let sequences: [fn(u64) -> u64; 6] =
        [|i| i, |i| i << 12, |i| i << 32, |i| i.wrapping_mul(1 << 48), |i| !i, |i| i.rotate_right(20)];
    for (number, sequence) in sequences.into_iter().enumerate() {
        let keys: HashSet<u64> = (0..20_000).map(sequence).collect();
        let keys: Vec<u64> = keys.into_iter().collect();
        both_hold_up(Config::GROWING, IDENTITY, &keys, 90);
        let map = InlineMap::<u64, u64>::builder().hasher(IDENTITY).build();
        map.extend(keys.iter().map(|key| (*key, 0)));
        let stats = map.stats();
        assert!(stats.overflow * 100 <= keys.len(), "sequence {number}: {} in the overflow", stats.overflow);
        assert!(map.capacity() <= 5 * keys.len() + 64, "sequence {number}: {} slots", map.capacity());
    }
}

fn keeps_others_fast_beside_colliding_keys<M: AnyMap<Key = u64, Value = u64, Hasher = Through>>() {
    let map = M::build(Config::GROWING, TWENTY_COLLIDE);
    (0..30_000).for_each(|key| assert_eq!(map.insert(key, key), None));
    assert!((0..30_000).all(|key| map.get(&key) == Some(key)));
    let stats = map.stats();
    assert!((1..100).contains(&stats.overflow), "{} in the overflow", stats.overflow);
    assert!(map.capacity() < 90_000, "{} slots", map.capacity());
    assert!((0..20).all(|key| map.remove(&key) == Some(key)));
    assert_eq!(map.stats().overflow, 0);
    assert!((20..30_000).all(|key| map.get(&key) == Some(key)));
    assert!((0..20).all(|key| map.get(&key).is_none()));
}

laws! { <u64, u64, Through>
    keeps_others_fast_beside_colliding_keys =>
        colliding_keys_of_a_hash_map_do_not_slow_down_the_others,
        colliding_keys_of_an_inline_map_do_not_slow_down_the_others;
}

fn finds_the_overflow_while_it_changes<M: AnyMap<Key = u64, Value = u64, Hasher = Through>>() {
    let map = M::build(Config::GROWING, CONSTANT);
    const PRESENT: u64 = 60;
    (0..PRESENT).for_each(|key| assert_eq!(map.insert(key, key), None));
    on_threads(3, |thread| {
        for round in 0..300 {
            if thread == 0 {
                (PRESENT..2 * PRESENT).for_each(|key| assert_eq!(map.insert(key, round), None));
                (0..PRESENT).for_each(|key| assert_eq!(map.insert(key, key), Some(key)));
                (PRESENT..2 * PRESENT).for_each(|key| assert_eq!(map.remove(&key), Some(round)));
            } else {
                (0..PRESENT).for_each(|key| assert_eq!(map.get(&key), Some(key)));
                assert!((0..PRESENT).all(|key| map.may_contain(&key)));
                assert_eq!(map.get_many(&[PRESENT - 1, 3 * PRESENT, 0]), [Some(PRESENT - 1), None, Some(0)]);
            }
        }
    });
    assert_eq!(map.len() as u64, PRESENT);
}

laws! { <u64, u64, Through>
    finds_the_overflow_while_it_changes =>
        the_overflow_of_a_hash_map_is_found_by_readers_while_it_changes,
        the_overflow_of_an_inline_map_is_found_by_readers_while_it_changes;
}

fn survives_a_hash_that_changes<M: AnyMap<Key = u64, Value = u64, Hasher = Through>>() {
    for config in growing_configs() {
        let map = M::build(config, RANDOM);
        let mut inserted = 0;
        let mut removed = 0;
        for key in 0..5000 {
            inserted += usize::from(map.insert(key % 1000, key).is_none());
            removed += usize::from(map.remove(&(key / 2)).is_some());
            map.get(&key);
            map.may_contain(&key);
            map.contains_many(&[key, key / 2]);
            map.update(key, |value| value + 1);
        }
        assert_eq!(map.len(), inserted - removed);
        assert_eq!(map.entries().len(), map.len());
        map.retain(|_, value| value % 2 == 0);
        map.shrink_to_fit();
        assert!(map.memory_usage() < 4_000_000, "{} bytes", map.memory_usage());
        map.clear();
        assert_eq!(map.len(), 0);
    }
}

laws! { <u64, u64, Through>
    survives_a_hash_that_changes =>
        a_hash_that_changes_all_the_time_harms_no_memory_of_a_hash_map,
        a_hash_that_changes_all_the_time_harms_no_memory_of_an_inline_map;
}

/// A key that is equal to anything or nothing, at random.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
struct Moody(u64);

// SAFETY: as transparent as its integer.
unsafe impl bytemuck::Zeroable for Moody {}
// SAFETY: as above.
unsafe impl bytemuck::Pod for Moody {}

impl PartialEq for Moody {
    fn eq(&self, _: &Self) -> bool {
        arbitrary() % 2 == 0
    }
}

impl Eq for Moody {}

impl Hash for Moody {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.0 ^ (arbitrary() % 3)).hash(state);
    }
}

fn survives_equality_that_contradicts_itself<M: AnyMap<Key = Moody, Value = u64, Hasher = common::Seeded>>() {
    for config in growing_configs() {
        let map = M::build(config, seeded(1));
        for n in 0..5000 {
            map.insert(Moody(n % 500), n);
            map.remove(&Moody(n % 70));
            map.update_or_insert(Moody(n % 300), |value| value + 1, 0);
            let _ = map.remove_if(&Moody(n % 100), |_, value| value % 2 == 0);
            map.get_many(&[Moody(n), Moody(n / 2)]);
        }
        assert_eq!(map.entries().len(), map.len());
        map.shrink_to_fit();
        let len = map.len();
        assert_eq!(map.drain(usize::MAX).len(), len);
        assert!(map.is_empty());
    }
}

laws! { <Moody, u64, common::Seeded>
    survives_equality_that_contradicts_itself =>
        equality_that_contradicts_itself_harms_no_memory_of_a_hash_map,
        equality_that_contradicts_itself_harms_no_memory_of_an_inline_map;
}

#[test]
fn entries_of_contradictory_keys_are_dropped_once() {
    let ledger = Ledger::new();
    let map = HashMap::<u64, _>::builder().hasher(RANDOM).build();
    for key in 0..5000 {
        let pin = map.pin();
        pin.insert(key % 700, ledger.value(key));
        pin.remove(&(key % 500));
        pin.get_or_insert_with(key % 300, || ledger.value(key));
        pin.update(key % 100, |old| ledger.value(old.n + 1));
    }
    map.pin().retain(|_, value| value.n % 3 == 0);
    assert_eq!(map.pin().iter().count(), map.len());
    drop(map.into_iter().take(10).collect::<Vec<_>>());
    ledger.assert_settled("contradictory keys");
}

/// Without a hash function: koel's mixing is as good as one.
#[test]
fn numbers_in_a_row_are_spread_as_evenly_as_any() {
    const KEYS: u64 = 300_000;
    let sequences: [fn(u64) -> u64; 8] = [
        |n| n,
        |n| n * 8,
        |n| n * 1000,
        |n| n << 12,
        |n| n << 32,
        |n| n << 44,
        |n| !n,
        |n| (n as f64).to_bits(),
    ];
    for (i, sequence) in sequences.into_iter().enumerate() {
        let builder = InlineMap::<u64, u64>::builder().fixed_capacity(KEYS as usize);
        let bounded = builder.hasher(IDENTITY).build();
        (0..KEYS).for_each(|n| assert!(bounded.checked_insert(sequence(n), n).is_ok()));
        assert_eq!(bounded.stats().overflow, 0, "sequence {i}");
        let mut grown = InlineMap::<u64, u64, _>::with_hasher(IDENTITY);
        Extend::extend(&mut grown, (0..KEYS).map(|n| (sequence(n), n)));
        assert!(grown.load_factor() > 0.88, "sequence {i}: {}", grown.load_factor());
    }
}
