//! Every operation on a single key hashes it once: with long keys, hashing is most of an operation's cost.

use std::time::Duration;

mod common;

use common::hashers::{Hashing, hashed};
use koel::{Cache, Compute, HashMap, HashSet, InlineCache, InlineMap, Operation};

/// Does something, which must hash one key.
#[track_caller]
fn once<R>(done: impl FnOnce() -> R) -> R {
    let before = hashed();
    let result = done();
    assert_eq!(hashed() - before, 1, "hashed so often");
    result
}

/// Enough room that no segment splits, which would hash all its keys again.
const ROOM: usize = 1000;

#[test]
fn a_map_hashes_a_key_once_whether_it_is_there_or_not() {
    let map: HashMap<String, usize, Hashing> = HashMap::with_capacity_and_hasher(ROOM, Hashing::default());
    let pin = map.pin();
    let owned = |key: &str| key.to_owned();
    for _ in 0..2 {
        // Absent, and then there.
        once(|| pin.get("a"));
        once(|| pin.contains_key("a"));
        once(|| pin.insert(owned("a"), 1));
        once(|| pin.try_insert(owned("b"), 2).is_ok());
        once(|| pin.try_insert_with(owned("c"), || 3).is_ok());
        once(|| *pin.get_or_insert(owned("d"), 4));
        once(|| *pin.get_or_insert_with(owned("e"), || 5));
        once(|| *pin.get_or_insert_with_ref("f", || 6));
        once(|| *pin.get_or_insert_default(owned("g")));
        once(|| pin.try_get_or_insert_with(owned("h"), || Ok::<_, ()>(8)).is_ok());
        once(|| pin.try_get_or_insert_with_ref("i", || Ok::<_, ()>(9)).is_ok());
        once(|| pin.checked_insert(owned("j"), 10).is_ok());
        once(|| pin.checked_try_insert(owned("k"), 11).is_ok());
        once(|| pin.checked_get_or_insert_with(owned("l"), || 12).is_ok());
        once(|| pin.checked_get_or_insert_with_ref("m", || 13).is_ok());
        once(|| *pin.update_or_insert(owned("n"), |n| n + 1, 14));
        once(|| *pin.update_or_insert_with(owned("o"), |n| n + 1, || 15));
        once(|| {
            matches!(pin.compute(owned("p"), |_| Operation::<usize, ()>::Insert(16)), Compute::Inserted(..))
        });
    }
    for _ in 0..2 {
        once(|| *pin.update_or_insert_ref("q", |n| n + 1, 17));
        once(|| *pin.update_or_insert_with_ref("r", |n| n + 1, || 18));
        once(|| {
            matches!(pin.compute_ref("s", |_| Operation::<usize, ()>::Insert(19)), Compute::Inserted(..))
        });
    }
    assert_eq!(map.len(), 19);
    once(|| pin.update(owned("a"), |n| n + 1));
    once(|| pin.update_ref("a", |n| n + 1));
    once(|| pin.remove_if("a", |_, _| false).is_err());
    once(|| pin.remove_entry("a"));
    for key in ["b", "absent"] {
        once(|| pin.remove(key));
    }
}

#[test]
fn an_inline_map_hashes_a_key_once_whether_it_is_there_or_not() {
    let map: InlineMap<u64, u64, Hashing> = InlineMap::with_capacity_and_hasher(ROOM, Hashing::default());
    for _ in 0..2 {
        once(|| map.get(&1));
        once(|| map.insert(1, 1));
        once(|| map.try_insert(2, 2).is_ok());
        once(|| map.try_insert_with(3, || 3).is_ok());
        once(|| map.get_or_insert(4, 4));
        once(|| map.get_or_insert_with(5, || 5));
        once(|| map.try_get_or_insert_with(6, || Ok::<_, ()>(6)).is_ok());
        once(|| map.checked_insert(7, 7).is_ok());
        once(|| map.checked_get_or_insert_with(8, || 8).is_ok());
        once(|| map.update_or_insert(9, |n| n + 1, 9));
    }
    assert_eq!(map.len(), 9);
    once(|| map.update(1, |n| n + 1));
    for key in [1, 1000] {
        once(|| map.remove(&key));
    }
}

#[test]
fn a_set_hashes_a_value_once_whether_it_is_there_or_not() {
    let set: HashSet<String, Hashing> = HashSet::with_capacity_and_hasher(ROOM, Hashing::default());
    let pin = set.pin();
    for _ in 0..2 {
        once(|| set.insert("a".to_owned()));
        once(|| set.contains("a"));
        once(|| set.checked_insert("b".to_owned()).is_ok());
        once(|| pin.get_or_insert("c".to_owned()).len());
        once(|| pin.get_or_insert_with("d", str::to_owned).len());
        once(|| pin.replace("e".to_owned()).is_some());
    }
    once(|| set.remove_if("a", |_| true));
    once(|| set.remove("b"));
    once(|| set.take("c").is_some());
    assert_eq!(set.len(), 2);
}

#[test]
fn a_cache_hashes_a_key_once_whether_it_is_there_or_not() {
    let cache: Cache<String, u64, Hashing> =
        Cache::builder().max_entries(ROOM).hasher(Hashing::default()).build();
    for _ in 0..2 {
        once(|| cache.get("a").is_some());
        once(|| cache.insert("a".to_owned(), 1).is_ok());
        once(|| cache.try_insert("g".to_owned(), 7).is_ok());
        once(|| cache.get_or_insert_with("b".to_owned(), || 2));
        once(|| cache.get_or_insert_with_ref("c", || 3));
        once(|| cache.try_get_or_insert_with("d".to_owned(), || Ok::<_, ()>(4)).is_ok());
        once(|| cache.try_get_or_insert_with_ref("e", || Ok::<_, ()>(5)).is_ok());
        let time = Duration::from_secs(60);
        once(|| cache.try_get_or_insert_with_timeout("f".to_owned(), time, || Ok::<_, ()>(6)).is_ok());
    }
    for _ in 0..2 {
        once(|| cache.get_or_reserve("m".to_owned()).unwrap_or_else(|reservation| reservation.insert(13)));
        once(|| cache.get_or_reserve_ref("n").unwrap_or_else(|reservation| reservation.insert(14)));
        once(|| cache.update_or_insert_ref("h", |n| n + 1, 8).is_ok());
        once(|| cache.update_or_insert_with_ref("i", |n| n + 1, || 9).is_ok());
        once(|| cache.compute_ref("j", |_| Operation::<u64, ()>::Insert(10)).is_ok());
        once(|| cache.update_or_insert("k".to_owned(), |n| n + 1, 11).is_ok());
        once(|| cache.compute("l".to_owned(), |_| Operation::<u64, ()>::Insert(12)).is_ok());
    }
    assert_eq!(cache.len(), 14);
    once(|| cache.update("a".to_owned(), |n| n + 1).is_ok());
    once(|| cache.update_ref("a", |n| n + 1).is_ok());
    once(|| cache.update_ref("absent", |n| n + 1).is_ok());
    once(|| cache.remove("a").is_some());
    let inline: InlineCache<u64, u64, Hashing> =
        InlineCache::builder().max_entries(ROOM).hasher(Hashing::default()).build();
    for _ in 0..2 {
        once(|| inline.get(&1));
        once(|| inline.insert(1, 1));
        once(|| inline.try_insert(4, 4).is_ok());
        once(|| inline.get_or_insert_with(2, || 2));
        once(|| inline.try_get_or_insert_with(3, || Ok::<_, ()>(3)).is_ok());
    }
    assert_eq!(inline.len(), 4);
    once(|| inline.remove(&1));
}
