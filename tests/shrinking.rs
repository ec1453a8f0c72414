//! Shrinking: a second call finds nothing to do, and maps count and fill as before.

mod common;

use std::cell::Cell;

use common::hashers::Through;
use common::{AnyMap, Config, Words, laws, seeded};

thread_local!(static HASHED: Cell<u64> = const { Cell::new(0) });

/// Integers hash to themselves, and hashes are counted on this thread.
const COUNTING: Through = Through(|n| {
    HASHED.set(HASHED.get() + 1);
    n
});

/// Groups of nine keys have one hash.
const NINE_COLLIDE: Through = Through(|n| (n / 9).wrapping_mul(0x9E37_79B9_7F4A_7C15));

/// If segments are small, shrinking puts items into the overflow, whose first block is larger than the segments.
fn finds_nothing_to_do_again<M: AnyMap<Key = u64, Value = u64, Hasher = Through>>() {
    let shrink_twice = |map: &M| {
        map.shrink_to_fit();
        let (hashed, bytes) = (HASHED.get(), map.memory_usage());
        map.shrink_to_fit();
        assert_eq!(HASHED.get(), hashed, "{}: of {} keys", M::NAME, map.len());
        assert!(map.memory_usage() <= bytes);
    };
    let map = M::build(Config::GROWING.segments_of(16), COUNTING);
    (0..40_000).for_each(|key| assert_eq!(map.insert(key, key), None));
    map.retain(|key, _| key % 4 == 0);
    shrink_twice(&map);
    assert!(map.stats().overflow > 0, "it proves nothing");
    let mut in_overflow = 0;
    for first in (0..500_000).step_by(1000) {
        let map = M::build(Config::room_for(200), COUNTING);
        (first..first + 7).for_each(|key| assert_eq!(map.insert(key, key), None));
        shrink_twice(&map);
        in_overflow += map.stats().overflow;
    }
    assert!(in_overflow > 0, "it proves nothing");
}

fn counts_no_search_in_vain<M: AnyMap<Key = u64, Value = u64, Hasher = Through>>() {
    let map = M::build(Config::GROWING, NINE_COLLIDE);
    (0..9 * 200).for_each(|key| assert_eq!(map.insert(key, key), None));
    map.retain(|key, _| *key < 9 * 60);
    let (before, slots) = (map.stats().failed_searches, map.capacity());
    map.shrink_to_fit();
    assert!(map.capacity() < slots && map.stats().overflow > 0);
    assert_eq!(map.stats().failed_searches, before);
}

laws! {
    <u64, u64, Through>
    finds_nothing_to_do_again =>
        shrinking_a_hash_map_again_does_nothing,
        shrinking_an_inline_map_again_does_nothing;
    counts_no_search_in_vain =>
        a_copy_s_searches_in_vain_are_not_counted_of_a_hash_map,
        a_copy_s_searches_in_vain_are_not_counted_of_an_inline_map;
}

/// In the end 1,830 of 2,048 slots are taken, more than 7/8.
fn fills_what_was_shrunk<M: Words>() {
    let map = M::build(Config::GROWING, seeded(1));
    (0..3000).for_each(|key| assert_eq!(map.insert(key, key), None));
    map.retain(|key, _| *key < 1700);
    map.shrink_to_fit();
    assert_eq!(map.capacity(), 2048);
    (10_000..10_130).for_each(|key| assert_eq!(map.insert(key, key), None));
    assert_eq!(map.capacity(), 2048);
}

laws! {
    fills_what_was_shrunk =>
        a_hash_map_that_was_shrunk_is_filled_as_far_as_paths_lead,
        an_inline_map_that_was_shrunk_is_filled_as_far_as_paths_lead;
}
