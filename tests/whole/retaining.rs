//! `retain`: which entries go and which stay, wherever they have been moved meanwhile, and if the closure panics.

use std::cell::Cell;
use std::collections::BTreeSet;

use crate::common::hashers::{CONSTANT, Through};
use crate::common::{AnyMap, Config, Words, catch, fixed_configs, growing_configs, laws, seeded};

fn filled<M: Words>(config: Config, keys: u64) -> M {
    let map = M::build(config, seeded(keys));
    (0..keys).for_each(|key| assert!(map.checked_insert(key, !key).is_ok()));
    map
}

fn keys<M: AnyMap<Key = u64>>(map: &M) -> BTreeSet<u64> {
    let keys: BTreeSet<u64> = map.keys().into_iter().collect();
    assert_eq!(keys.len(), map.len(), "{}", M::NAME);
    keys
}

/// The closure is asked about each entry once; with few and with many entries, of which few, many or all go.
fn asks_once_about_each<M: Words>() {
    for config in growing_configs().into_iter().chain(fixed_configs(5000)) {
        for go in [1, 2, 7, 5000] {
            let map: M = filled(config, 5000);
            let mut asked = vec![0; 5000];
            map.retain(|key, value| {
                assert_eq!(*value, !*key);
                asked[*key as usize] += 1;
                key % go != 0
            });
            assert!(asked.iter().all(|times| *times == 1), "{} {config:?}", M::NAME);
            let stay = (0..5000).filter(|key| key % go != 0);
            assert!(keys(&map) == stay.collect(), "{} {config:?}, one in {go}", M::NAME);
            assert!((0..5000).all(|key| map.contains_key(&key) == (key % go != 0)));
            assert!((0..5000).all(|key| map.checked_insert(key, key).is_ok()) && map.len() == 5000);
        }
    }
}

/// Wherever it panics: the entries refused before have gone, and nothing else.
fn has_removed_what_was_to_go_before_a_panic<M: Words>() {
    for calls in [0, 1, 30, 31, 32, 500, 1999] {
        let map: M = filled(Config::GROWING.segments_of(64), 2000);
        let mut gone = BTreeSet::new();
        let message = catch(|| {
            let mut left = calls;
            map.retain(|key, _| {
                assert!(left > 0, "as planned");
                left -= 1;
                if key % 3 > 0 {
                    gone.insert(*key);
                }
                key % 3 == 0
            });
        });
        assert!(message.is_err_and(|message| message.contains("as planned")));
        let stay: BTreeSet<u64> = (0..2000).filter(|key| !gone.contains(key)).collect();
        assert!(keys(&map) == stay && (calls < 31 || !gone.is_empty()), "{}: {calls} calls", M::NAME);
    }
}

/// The closure makes the map grow: refused entries are in other slots and segments by then, and go all the same.
fn removes_what_has_moved_meanwhile<M: Words>() {
    for segment_slots in [8, 64, 4096] {
        let map: M = filled(Config::GROWING.segments_of(segment_slots), 1000);
        let next = Cell::new(10_000);
        map.retain(|key, _| {
            // A hundred new keys for each that is refused: segments split before it is removed.
            for new in next.get()..(next.get() + 100).min(30_000) {
                let _ = map.insert(new, 0);
                next.set(new + 1);
            }
            *key >= 10_000
        });
        assert!(keys(&map) == (10_000..30_000).collect(), "{}", M::NAME);
    }
}

/// It is asked again about an entry that was replaced after it was refused, but not about one that was removed.
fn asks_about_what_has_come_instead<M: Words>() {
    let map: M = filled(Config::GROWING, 300);
    let mut last = None;
    map.retain(|key, value| {
        // The previous entry, which was refused and is still there, or has gone.
        match last.replace(*key) {
            Some(before) if before % 3 == 0 => _ = map.insert(before, 1),
            Some(before) if before % 3 == 1 => _ = map.remove(&before),
            _ => {}
        }
        // The new value is kept.
        *value == 1
    });
    // Except keys that came back after they had gone already, and were not seen again, nothing is there that was not kept.
    assert!(map.values().iter().all(|value| *value == 1) && map.len() <= 100, "{}", M::NAME);
    assert!(map.len() > 50 && keys(&map).iter().all(|key| key % 3 == 0), "{} of {}", map.len(), M::NAME);
}

/// Two refused entries have moved when the closure is asked about the value that has replaced one of them, and panics: the
/// other goes.
fn removes_the_others_where_it_panics_of_one_that_has_moved<M: Words>() {
    for replaced in 0..4 {
        let map: M = filled(Config::GROWING.segments_of(64), 4);
        let message = catch(|| {
            let mut asked = 0;
            map.retain(|_, value| {
                assert_ne!(*value, 7, "as planned");
                asked += 1;
                if asked == 4 {
                    // All have been refused except this one, and none is where it was.
                    (100..400).for_each(|key| _ = map.insert(key, key));
                    let _ = map.insert(replaced, 7);
                }
                *value >= 100 && *value < 400
            });
        });
        assert!(message.is_err_and(|message| message.contains("as planned")));
        let stay = (100..400).chain([replaced]);
        assert!(keys(&map) == stay.collect(), "{}: {:?}", M::NAME, keys(&map));
    }
}

thread_local!(static FUSE: Cell<bool> = const { Cell::new(false) });

/// Numbers hash to themselves; but when the fuse is lit, hashing some numbers panics.
const FUSED: Through = Through(|n| {
    assert!(!FUSE.get() || n % 7 != 3, "as planned, too");
    n.wrapping_mul(0x9E37_79B9_7F4A_7C15)
});

/// Refused entries have moved, and some of them cannot be hashed: the rest goes, and the first panic is passed on.
fn removes_the_others_where_hashes_panic_as_well<M: AnyMap<Key = u64, Value = u64, Hasher = Through>>() {
    let map = M::build(Config::GROWING.segments_of(64), FUSED);
    (0..20).for_each(|key| assert!(map.checked_insert(key, key).is_ok()));
    let mut refused = BTreeSet::new();
    let message = catch(|| {
        map.retain(|key, _| {
            if refused.len() == 15 {
                (100..400).for_each(|key| assert!(map.checked_insert(key, key).is_ok()));
                FUSE.set(true);
                panic!("as planned");
            }
            refused.insert(*key);
            false
        });
    });
    FUSE.set(false);
    assert_eq!(message.unwrap_err(), "as planned");
    let stay = (0..20).filter(|key| !refused.contains(key) || key % 7 == 3).chain(100..400);
    assert!(keys(&map) == stay.collect(), "{}: {:?}", M::NAME, keys(&map));
}

laws! { <u64, u64, Through>
    removes_the_others_where_hashes_panic_as_well =>
        a_hash_map_removes_the_others_where_hashes_panic_as_well,
        an_inline_map_removes_the_others_where_hashes_panic_as_well;
}

laws! {
    removes_the_others_where_it_panics_of_one_that_has_moved =>
        a_hash_map_removes_the_others_where_it_panics_of_one_that_has_moved,
        an_inline_map_removes_the_others_where_it_panics_of_one_that_has_moved;
    asks_once_about_each => a_hash_map_asks_once_about_each, an_inline_map_asks_once_about_each;
    has_removed_what_was_to_go_before_a_panic =>
        a_hash_map_has_removed_what_was_to_go_before_a_panic,
        an_inline_map_has_removed_what_was_to_go_before_a_panic;
    removes_what_has_moved_meanwhile =>
        a_hash_map_removes_what_has_moved_meanwhile,
        an_inline_map_removes_what_has_moved_meanwhile;
    asks_about_what_has_come_instead =>
        a_hash_map_asks_about_what_has_come_instead,
        an_inline_map_asks_about_what_has_come_instead;
}

/// Entries for which no bucket has room go as well.
fn removes_what_collides<M: AnyMap<Key = u64, Value = u64, Hasher = Through>>() {
    let map = M::build(Config::GROWING, CONSTANT);
    (0..100).for_each(|key| assert!(map.checked_insert(key, key).is_ok()));
    map.retain(|key, _| key % 2 == 0);
    assert!(keys(&map) == (0..100).step_by(2).collect(), "{}", M::NAME);
    map.retain(|_, _| false);
    assert!(map.is_empty() && map.stats().overflow == 0, "{}", M::NAME);
}

laws! { <u64, u64, Through>
    removes_what_collides => a_hash_map_removes_what_collides, an_inline_map_removes_what_collides;
}
