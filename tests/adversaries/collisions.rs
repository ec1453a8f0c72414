//! An enemy that knows the seed, or can query the map, and so has 9, 100, 10,000 keys that share both buckets.

use koel::{Cache, CuckooFilter, HashMap, InlineMap, Policy, ScalableCuckooFilter};

use crate::common::hashers::Through;
use crate::common::{AnyMap, Config, Seeded, seeded};

/// This many keys have one pair of buckets: two buckets of four have room for eight.
const MANY: [usize; 3] = [9, 100, 10_000];
/// Keys of other users are above this.
const INNOCENT: u64 = 1 << 63;

/// Keys with both buckets and the tag of key 0. A map that has only that key reports exactly these as perhaps present: the tag
/// determines which bucket is the other one.
fn accomplices<M: AnyMap<Key = u64, Value = u64, Hasher = Seeded>>(config: Config, many: usize) -> Vec<u64> {
    let map = M::build(config, seeded(1));
    assert_eq!(map.insert(0, 0), None);
    (0..).filter(|key| map.may_contain(key)).take(many).collect()
}

fn chosen_keys_are_held<M: AnyMap<Key = u64, Value = u64, Hasher = Seeded>>() {
    // Few buckets make the enemy's search short; such a map is all the more crowded.
    for (config, most) in
        [(Config::room_for(20), 10_000), (Config::room_for(2000), 100), (Config::fixed(200), 100)]
    {
        for many in MANY.into_iter().filter(|many| *many <= most) {
            let keys = accomplices::<M>(config, many);
            let map = M::build(config, seeded(1));
            let (before, slots) = (map.memory_usage(), map.capacity());
            keys.iter().for_each(|key| assert_eq!(map.insert(*key, !key), None));
            let what = format!("{} {config:?}, {many} keys", M::NAME);
            let (overflow, grown, used) = (map.stats().overflow, map.capacity(), map.memory_usage() - before);
            if config.limit().is_some() || many < 16 + 8 {
                // So they are in an overflow list, which is at most twice too long, at 9 or 17 bytes per item; the lists take
                // half a byte per slot, and each entry takes 16 bytes, in pages. A bucket may be its own alternate: for which
                // keys depends on the hash, and that on the processor and the compiler.
                assert!([many - 8, many - 4].contains(&overflow), "{what}: {overflow} in the overflow");
                assert_eq!(grown, slots, "{what}");
                assert!(used <= 5_000 + slots / 2 + 40 * many, "{what}: {used} bytes");
            } else {
                // When there are many, growth separates them, as other bits of their hashes differ.
                assert!(overflow <= 16.max(grown / 4), "{what}: {overflow} in the overflow");
                assert!(grown <= slots.max(4 * many), "{what}: {grown} slots");
                assert!(used <= 5_000 + slots / 2 + 120 * many, "{what}: {used} bytes");
            }
            let others = (INNOCENT..).take(config.limit().map_or(500, |limit| limit - many));
            others.clone().for_each(|key| assert_eq!(map.insert(key, key), None, "{what}"));
            assert!(map.capacity() <= slots.max(4 * (many + 500)), "{what}: {} slots", map.capacity());
            assert!(others.clone().all(|key| map.get(&key) == Some(key)), "{what}: another's key is lost");
            assert!(keys.iter().all(|key| map.get(key) == Some(!key)), "{what}: a key is lost");
            keys.iter().for_each(|key| assert_eq!(map.remove(key), Some(!key), "{what}"));
            // If they far outnumber the other keys, a table that has just grown is at once full of them.
            let (others, left) = (others.count(), map.stats().overflow);
            assert!(
                left <= if many > 1000 { others / 4 } else { 8 },
                "{what}: {left} others in the overflow"
            );
            assert_eq!(map.len(), others, "{what}");
        }
    }
}

#[test]
fn a_hash_map_holds_keys_that_share_both_buckets() {
    chosen_keys_are_held::<HashMap<u64, u64, Seeded>>();
}

#[test]
fn an_inline_map_holds_keys_that_share_both_buckets() {
    chosen_keys_are_held::<InlineMap<u64, u64, Seeded>>();
}

/// The enemy's keys have one hash; those of the other keys are spread.
const HALF_CONSTANT: Through =
    Through(|n| if n < INNOCENT { 42 } else { n.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_right(29) });

#[test]
fn a_cache_with_keys_of_one_pair_keeps_its_bound_and_the_keys_of_others() {
    for policy in [Policy::Adaptive, Policy::Clock, Policy::Local] {
        for many in MANY.map(|many| many as u64) {
            let cache = Cache::builder().max_entries(2000).policy(policy).hasher(HALF_CONSTANT).build();
            let others = INNOCENT..INNOCENT + 1000;
            others.clone().for_each(|key| cache.insert(key, key).unwrap());
            // Requested again, and so worth keeping.
            assert!(others.clone().all(|key| cache.get(&key) == Some(key)));
            let before = cache.memory_usage();
            for key in 0..many {
                cache.insert(key, !key).unwrap();
                assert!(cache.get(&key).is_none_or(|value| value == !key));
                assert!(cache.len() <= 2000);
            }
            let grown = cache.memory_usage() - before;
            // Evicted entries that wait to be freed: about 2,600, if barriers take long. All of the keys would be 240 KB.
            assert!(grown <= 60_000, "{policy:?}, {many} keys: {grown} bytes");
            let left = others.filter(|key| cache.get(key) == Some(*key)).count();
            // At most as many as the pair has slots.
            assert!(left >= 1000 - 8, "{policy:?}: {many} keys of one pair drove out {} others", 1000 - left);
        }
    }
}

#[test]
fn keys_of_one_pair_make_no_larger_table_of_a_full_cache() {
    for (policy, many) in [Policy::Adaptive, Policy::Clock, Policy::Local]
        .into_iter()
        .flat_map(|policy| MANY.map(|n| (policy, n)))
    {
        let cache = Cache::builder().max_entries(2000).policy(policy).hasher(HALF_CONSTANT).build();
        // So large that each has a box, which counts only as long as it is there.
        let value = |key: u64| [key; 70];
        let others = INNOCENT..INNOCENT + 4000;
        others.for_each(|key| cache.insert(key, value(key)).unwrap());
        assert_eq!(cache.len(), 2000);
        let before = cache.memory_usage();
        (0..many as u64).for_each(|key| cache.insert(key, value(!key)).unwrap());
        let grown = cache.memory_usage().saturating_sub(before);
        // As above. Its table takes 30 KB.
        assert!(grown <= 20_000, "{policy:?}, {many} keys: {grown} bytes");
    }
}

/// Keys with both buckets and the fingerprint of key 0, which a filter takes for it.
fn impostors(filter: &CuckooFilter, many: usize) -> Vec<u64> {
    filter.insert(&0_u64).unwrap();
    let keys = (0_u64..).filter(|key| filter.contains(key)).take(many).collect();
    assert!(filter.remove(&0_u64) && filter.is_empty());
    keys
}

#[test]
fn a_filter_takes_eight_keys_of_one_pair_and_refuses_the_others() {
    let new = || CuckooFilter::builder().fingerprint_bits(5).capacity(100).seed(1).build().unwrap();
    for many in MANY {
        let filter = new();
        let keys = impostors(&filter, many);
        let before = filter.memory_usage();
        let taken = keys.iter().filter(|key| filter.insert(key).is_ok()).count();
        assert_eq!((taken, filter.len(), filter.memory_usage()), (8, 8, before));
        assert!(keys.iter().all(|key| filter.contains(key)));
        // Keys of another fingerprint, or another pair.
        let strangers: Vec<u64> = (INNOCENT..).filter(|key| !filter.contains(key)).take(60).collect();
        strangers.iter().for_each(|key| filter.insert(key).unwrap());
        assert!(strangers.iter().all(|key| filter.contains(key)));
        (0..8).for_each(|_| assert!(filter.remove(&keys[0])));
        strangers.iter().for_each(|key| assert!(filter.remove(key)));
        assert!(filter.is_empty());
    }
}

/// Eight are taken, as for copies of one key, and no further table is made for them. If copies are allowed, further tables take
/// eight each, and there are no more tables than that requires.
#[test]
fn a_growing_filter_is_not_blown_up_by_keys_of_one_pair() {
    let new = || ScalableCuckooFilter::builder().capacity(100).false_positive_rate(0.3).seed(1);
    let filter = new().build().unwrap();
    let before = filter.memory_usage();
    filter.insert(&0_u64).unwrap();
    let keys: Vec<u64> = (0..).filter(|key| filter.contains(key)).take(100).collect();
    assert!(filter.remove(&0_u64));
    let taken = keys.iter().filter(|key| filter.insert(key).is_ok()).count();
    assert_eq!((taken, filter.len(), filter.memory_usage()), (8, 8, before));
    assert!(keys.iter().all(|key| filter.contains(key)));

    let filter = new().max_duplicates(100).build().unwrap();
    keys.iter().for_each(|key| filter.insert(key).unwrap());
    let tables = filter.info().tables.len();
    println!("{tables} tables of {} bytes for 100 keys of one pair; one has {before}", filter.memory_usage());
    assert!(keys.iter().all(|key| filter.contains(key)) && filter.len() == 100);
    // Each table is twice as large, and separates them by one more bit: the logarithm of a hundred eighths, plus one.
    assert!(tables <= 5);
}
