//! Reading against growth [R1], [I8]: segments are replaced, the directory doubles, replaced segments are used again.
#![cfg(loom)]

use std::sync::Arc;

use koel::model::{place, prefix};
use loom::thread;
use loom_tests::Identity;

type Growing = koel::HashMap<u64, u64, Identity>;
type GrowingInline = koel::InlineMap<u64, [u64; 2], Identity>;

/// Keys in the lower half of all prefixes, or in the upper.
fn keys_of_half(upper: bool, n: usize) -> Vec<u64> {
    (0..).filter(|&key| (prefix(key) >> 31 == 1) == upper).take(n).collect()
}

fn hash_map() -> Growing {
    koel::HashMap::builder().segment_slots(4).hasher(Identity::default()).build()
}

fn inline_map() -> GrowingInline {
    koel::InlineMap::builder().segment_slots(4).hasher(Identity::default()).build()
}

/// A map of one segment, of two buckets.
fn one_segment() -> GrowingInline {
    koel::InlineMap::builder().capacity(6).hasher(Identity::default()).build()
}

/// Replaces the segment of such a map by a smaller one, and that by the first segment again.
fn replace_twice(map: &GrowingInline, additional: usize) {
    let slots = map.capacity();
    map.shrink_to_fit();
    assert!(map.capacity() < slots);
    let memory = map.memory_usage();
    map.reserve(additional);
    assert_eq!(map.capacity(), slots);
    // Except for an entry in a list of the pool.
    assert!(map.memory_usage() < memory + 100, "the old segment is back");
}

#[test]
fn hash_map_reader_never_misses_a_key_in_a_split() {
    loom::model(|| {
        let map = Arc::new(hash_map());
        let (lower, upper) = (keys_of_half(false, 3), keys_of_half(true, 2));
        // One that goes to the new half.
        let (held, absent) = (upper[0], upper[1]);
        for key in [lower[0], lower[1], lower[2], upper[0]] {
            map.pin().insert(key, key);
        }
        let reader = {
            let map = Arc::clone(&map);
            thread::spawn(move || {
                assert_eq!(map.pin().get(&held), Some(&held));
                let first = map.pin().get(&absent).is_some();
                assert!(map.pin().get(&absent).is_some() >= first, "inserted, then gone");
            })
        };
        map.pin().insert(absent, absent);
        assert_eq!(map.stats().splits, 1);
        reader.join().unwrap();
    });
}

/// In models the second split hashes: it stores the pointers of items that stay once more, with other split bits [G8].
#[test]
fn hash_map_reader_never_misses_a_key_in_a_split_that_hashes() {
    loom::model(|| {
        let map = Arc::new(hash_map());
        let keys = |quarter, n| (0..).filter(move |&key| prefix(key) >> 30 == quarter).take(n);
        // The lower half has a full segment to itself when the last of these keys has come.
        let before: Vec<u64> = [keys(0, 2), keys(1, 2), keys(2, 1)].into_iter().flatten().collect();
        for &key in &before {
            map.pin().insert(key, key);
        }
        assert_eq!(map.stats().splits, 1);
        let (stays, goes) = (before[0], before[2]);
        let reader = {
            let map = Arc::clone(&map);
            thread::spawn(move || {
                // A single pin: further pins would synchronize with one another.
                let pin = map.pin();
                assert!(pin.get(&stays).is_some_and(|value| [stays, !stays].contains(value)));
                assert_eq!(pin.get(&goes), Some(&goes));
            })
        };
        map.pin().insert(stays, !stays);
        for key in keys(0, 3) {
            map.pin().get_or_insert_with(key, || key);
        }
        assert_eq!(map.stats().splits, 2);
        reader.join().unwrap();
    });
}

#[test]
fn inline_map_reader_never_misses_a_key_in_a_split() {
    loom::model(|| {
        let map = Arc::new(inline_map());
        let (lower, upper) = (keys_of_half(false, 3), keys_of_half(true, 2));
        // One that goes to the new half.
        let (held, absent) = (upper[0], upper[1]);
        for key in [lower[0], lower[1], lower[2], upper[0]] {
            map.insert(key, [key, !key]);
        }
        let reader = {
            let map = Arc::clone(&map);
            thread::spawn(move || {
                assert_eq!(map.get(&held), Some([held, !held]));
                let first = map.get(&absent).is_some();
                assert!(map.get(&absent).is_some() >= first, "inserted, then gone");
            })
        };
        map.insert(absent, [absent, !absent]);
        assert_eq!(map.stats().splits, 1);
        reader.join().unwrap();
    });
}

/// A key leaves its slot in a split, and a key of the half that stays is put there while a reader is still reading it.
#[test]
fn inline_map_reader_is_not_fooled_by_a_slot_that_a_split_has_emptied() {
    loom::model(|| {
        let map = Arc::new(inline_map());
        let (lower, upper) = (keys_of_half(false, 3), keys_of_half(true, 2));
        let held = upper[0];
        for key in [upper[0], upper[1], lower[0], lower[1]] {
            map.insert(key, [key, !key]);
        }
        let reader = {
            let map = Arc::clone(&map);
            thread::spawn(move || assert_eq!(map.get(&held), Some([held, !held])))
        };
        // Splits the only segment, and takes the first slot of the lower half.
        map.insert(lower[2], [lower[2], !lower[2]]);
        assert_eq!(map.stats().splits, 1);
        reader.join().unwrap();
    });
}

/// A segment that is replaced and then used again at the same entry where it was.
#[test]
fn inline_map_reader_is_not_fooled_by_a_segment_that_comes_back() {
    loom::model(|| {
        let map = Arc::new(one_segment());
        map.insert(1, [1, !1]);
        let reader = {
            let map = Arc::clone(&map);
            thread::spawn(move || assert_eq!(map.get(&1), Some([1, !1])))
        };
        replace_twice(&map, 5);
        reader.join().unwrap();
    });
}

/// The same, and another key then has the slot that the reader's key had.
#[test]
fn inline_map_reader_is_not_fooled_by_a_segment_that_comes_back_with_others_in_its_slots() {
    loom::model(|| {
        let map = Arc::new(one_segment());
        // All in the same one of the segment's two buckets, in this order.
        let keys: Vec<u64> = (0..).filter(|&key| place(key, 2).0 == 0).take(3).collect();
        for key in &keys {
            map.insert(*key, [*key, !*key]);
        }
        let held = keys[1];
        map.remove(&keys[0]);
        let reader = {
            let map = Arc::clone(&map);
            thread::spawn(move || assert_eq!(map.get(&held), Some([held, !held])))
        };
        replace_twice(&map, 4);
        reader.join().unwrap();
    });
}

/// A segment that is replaced, and then used again as the half of another that the reader's key goes to.
#[test]
fn inline_map_reader_is_not_fooled_by_a_segment_that_comes_back_as_a_half() {
    let mut model = loom::model::Builder::new();
    model.max_branches = 10_000;
    // Two preemptions take ten times as long.
    model.preemption_bound = Some(1);
    model.check(|| {
        let map: GrowingInline =
            koel::InlineMap::builder().segment_slots(8).capacity(12).hasher(Identity::default()).build();
        let map = Arc::new(map);
        // Keys in a quarter of all prefixes, and in one of two buckets, or in either.
        let keys = |quarter, buckets| {
            (0..).filter(move |&key| {
                prefix(key) >> 30 == quarter && {
                    let (first, second, _) = place(key, 2);
                    first + second == buckets
                }
            })
        };
        let [dropped, before, held, after] =
            std::array::from_fn(|n| keys(1, 0).nth(n).expect("there are more"));
        let [fourth, fifth] = std::array::from_fn(|n| keys(0, 0).nth(n).expect("there are more"));
        let either = keys(0, 1).next().expect("there is one");
        let insert = |key: u64| assert!(map.insert(key, [key, !key]).is_none());
        [dropped, before, held, after].into_iter().for_each(insert);
        map.remove(&dropped);
        let slots = map.capacity();
        let reader = {
            let map = Arc::clone(&map);
            thread::spawn(move || assert_eq!(map.get(&held), Some([held, !held])))
        };
        // Both halves: the segment of the upper one is in the pool after that of the lower, and leaves it first.
        map.shrink_to_fit();
        assert!(map.capacity() < slots);
        let memory = map.memory_usage();
        [either, fourth, fifth].into_iter().for_each(insert);
        assert_eq!((map.stats().doublings, map.stats().splits), (1, 1));
        // Except for a root.
        assert!(map.memory_usage() < memory + 300, "both segments are back");
        reader.join().unwrap();
    });
}

/// A `HashMap` gives up its pool when it shrinks: readers may be reading the old segment, and it is freed after them.
#[test]
fn hash_map_reader_never_misses_a_key_in_a_shrinking_map() {
    loom::model(|| {
        let map: Growing = koel::HashMap::builder().capacity(6).hasher(Identity::default()).build();
        let map = Arc::new(map);
        map.pin().insert(1, 1);
        let slots = map.capacity();
        let reader = {
            let map = Arc::clone(&map);
            thread::spawn(move || assert_eq!(map.pin().get(&1), Some(&1)))
        };
        map.shrink_to_fit();
        map.reserve(5);
        assert_eq!(map.capacity(), slots);
        reader.join().unwrap();
    });
}

/// Nothing is lost between a split and a write to the half that the writer did not split for.
#[test]
fn writer_follows_the_directory_through_a_split() {
    loom::model(|| {
        let map = Arc::new(hash_map());
        let (lower, upper) = (keys_of_half(false, 3), keys_of_half(true, 3));
        for key in [lower[0], lower[1], upper[0], upper[1]] {
            map.pin().insert(key, 0);
        }
        let (left, right) = (lower[2], upper[2]);
        let other = {
            let map = Arc::clone(&map);
            thread::spawn(move || {
                map.pin().insert(left, 1);
                assert_eq!(map.pin().get(&left), Some(&1));
            })
        };
        map.pin().insert(right, 2);
        assert_eq!(map.pin().get(&right), Some(&2));
        other.join().unwrap();
        assert_eq!(map.pin().get(&left), Some(&1));
        assert_eq!(map.len(), 6);
    });
}

/// Two segments split at once, and only one of the splits doubles the directory: what the other stores there is not lost.
#[test]
fn two_splits_lose_neither_half() {
    let mut model = loom::model::Builder::new();
    model.max_branches = 100_000;
    model.check(|| {
        let map = Arc::new(hash_map());
        // Keys in an eighth of all prefixes.
        let keys = |eighth, n| (0..).filter(move |&key| prefix(key) >> 29 == eighth).take(n);
        // The lower half splits once more, and then has a full segment for its lower half, as the upper one has.
        let before: Vec<u64> =
            [keys(0, 2), keys(1, 2), keys(4, 2), keys(6, 2), keys(2, 1)].into_iter().flatten().collect();
        let insert = |map: &Growing, key| assert!(map.pin().insert(key, key).is_none());
        before.iter().for_each(|&key| insert(&map, key));
        assert_eq!((map.stats().splits, map.stats().segments), (2, 3));
        let [left, right] = [0, 4].map(|eighth| keys(eighth, 3).last().expect("there are more"));
        let other = {
            let map = Arc::clone(&map);
            thread::spawn(move || insert(&map, left))
        };
        insert(&map, right);
        other.join().unwrap();
        assert_eq!(map.stats().splits, 4);
        let missed = before.iter().chain([&left, &right]).filter(|key| map.pin().get(*key).is_none());
        assert_eq!((missed.count(), map.len()), (0, 11));
    });
}

/// All items in the segment leave it.
#[test]
fn items_are_counted_throughout_a_split() {
    loom::model(|| {
        let map = Arc::new(inline_map());
        let (lower, upper) = (keys_of_half(false, 1), keys_of_half(true, 4));
        for key in upper {
            map.insert(key, [key, !key]);
        }
        let other = {
            let map = Arc::clone(&map);
            thread::spawn(move || {
                assert!(!map.is_empty());
                assert!(map.len() >= 4);
            })
        };
        map.insert(lower[0], [0; 2]);
        assert_eq!(map.stats().splits, 1);
        other.join().unwrap();
        assert_eq!(map.len(), 5);
    });
}

/// A segment that is replaced is counted neither while it is emptied nor while it is filled again.
#[test]
fn items_are_counted_while_a_segment_comes_back() {
    loom::model(|| {
        let map = Arc::new(one_segment());
        map.insert(1, [1, !1]);
        let other = {
            let map = Arc::clone(&map);
            thread::spawn(move || assert!(!map.is_empty()))
        };
        replace_twice(&map, 5);
        other.join().unwrap();
    });
}

/// A segment that leaves one entry of the directory and comes back at the next, while both are counted.
#[test]
fn items_are_counted_while_a_segment_comes_back_elsewhere() {
    let mut model = loom::model::Builder::new();
    model.max_branches = 100_000;
    model.check(|| {
        let map: GrowingInline =
            koel::InlineMap::builder().segment_slots(16).capacity(28).hasher(Identity::default()).build();
        let map = Arc::new(map);
        // The lower half's segment has as many buckets as the upper half's is going to have.
        map.shrink_to_fit();
        let (lower, upper) = (keys_of_half(false, 5), keys_of_half(true, 9));
        for key in lower.iter().chain(&upper) {
            map.insert(*key, [*key, !key]);
        }
        for key in lower.iter().chain(&upper[5..]) {
            map.remove(key);
        }
        let other = {
            let map = Arc::clone(&map);
            thread::spawn(move || assert!(!map.is_empty()))
        };
        map.shrink_to_fit();
        other.join().unwrap();
        assert_eq!(map.len(), 5);
    });
}

#[test]
fn items_are_counted_as_soon_as_they_are_seen() {
    loom::model(|| {
        let map = Arc::new(inline_map());
        let other = {
            let map = Arc::clone(&map);
            thread::spawn(move || assert!(map.get(&1).is_none() || !map.is_empty()))
        };
        map.insert(1, [1, !1]);
        other.join().unwrap();
    });
}
