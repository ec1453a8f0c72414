//! Look-ups while writers displace, insert, remove and replace in a table that is full [R2]..[R4], [W5], [I6]: a key that is
//! present throughout is never missed, an absent one never found, and what was read is whole, the key's, and not freed.
#![cfg(shuttle)]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use koel::model::place;
use shuttle::thread;
use shuttle_tests::{Inline, Map, Owned, Plain, Shape, explore};

/// Buckets of a map for 11 entries: 12 slots.
const BUCKETS: u32 = 3;
const FULL: Shape = Shape::Fixed(11);
const ROUNDS: u64 = 4;

/// The keys of a test.
struct Keys {
    /// Present throughout: two buckets are full of them, and most of them could be in the third bucket as well.
    held: Vec<u64>,
    /// Absent throughout, each with the buckets and the tag of a held key.
    absent: Vec<u64>,
    /// Two keys for each of two writers, one of which is present at a time.
    newcomers: [[u64; 2]; 2],
}

impl Keys {
    fn choose() -> Self {
        let key_of = |from: u64, first, second| {
            (from..).find(|key| {
                let (a, b, _) = place(*key, BUCKETS);
                (a, b) == (first, second)
            })
        };
        let mut next = 0;
        let mut key = |first, second| {
            let key = key_of(next, first, second).expect("a key of each pair");
            next = key + 1;
            key
        };
        let full = [(0, 2), (0, 2), (0, 1), (0, 2), (1, 2), (1, 2), (1, 0), (1, 2)];
        let mut held = full.map(|(first, second)| key(first, second)).to_vec();
        held.push(key(2, 0));
        let newcomers = [[key(0, 1), key(1, 2)], [key(1, 0), key(2, 0)]];
        let twin = |key: &u64| (1 << 40..).find(|other| place(*other, BUCKETS) == place(*key, BUCKETS));
        let absent = held.iter().step_by(3).filter_map(twin).collect();
        Keys { held, absent, newcomers }
    }
}

/// A writer that has only one of its keys in the table at a time.
fn come_and_go(map: &impl Map, mine: [u64; 2]) {
    for round in 0..ROUNDS {
        let key = mine[round as usize % 2];
        map.put(key, round);
        assert_eq!(map.look(key), Some(round), "a thread sees what it has put");
        if round + 1 < ROUNDS {
            assert!(map.take(key));
            assert_eq!(map.look(key), None, "and what it has taken");
        }
    }
}

/// A writer of new versions.
fn replace(map: &impl Map, keys: &[u64]) {
    for version in 1..=ROUNDS {
        keys.iter().for_each(|key| map.put(*key, version));
    }
}

/// A reader, which sees no version older than one before.
fn read(map: &impl Map, keys: &Keys, many: bool) {
    let mut seen = vec![0; keys.held.len()];
    for _ in 0..3 {
        let now = match many {
            true => map.look_at_many(&keys.held),
            false => keys.held.iter().map(|key| map.look(*key)).collect(),
        };
        for ((key, old), new) in keys.held.iter().zip(&mut seen).zip(now) {
            let new = new.unwrap_or_else(|| panic!("missed {key}"));
            assert!(new >= *old, "version {new} after {old}");
            *old = new;
        }
        keys.absent.iter().for_each(|key| assert_eq!(map.look(*key), None));
    }
}

fn present_keys_are_never_missed<M: Map>() {
    let displaced = Arc::new(AtomicU64::new(0));
    let keys = Keys::choose();
    let sum = Arc::clone(&displaced);
    explore(300, move || {
        let map = M::new(FULL);
        keys.held.iter().for_each(|key| map.put(*key, 0));
        thread::scope(|scope| {
            let (map, keys) = (&map, &keys);
            for mine in keys.newcomers {
                scope.spawn(move || come_and_go(map, mine));
            }
            scope.spawn(|| replace(map, &keys.held[..2]));
            scope.spawn(|| read(map, keys, false));
            scope.spawn(|| read(map, keys, true));
        });
        let oracle: BTreeMap<u64, u64> = (keys.held.iter().enumerate())
            .map(|(i, key)| (*key, if i < 2 { ROUNDS } else { 0 }))
            .chain(keys.newcomers.map(|[_, last]| (last, ROUNDS - 1)))
            .collect();
        let entries = map.entries();
        assert_eq!(entries.len(), oracle.len(), "each once");
        assert_eq!(entries.into_iter().collect::<BTreeMap<_, _>>(), oracle);
        sum.fetch_add(map.stats().displacements, Ordering::Relaxed);
        map.end();
    });
    assert!(displaced.load(Ordering::Relaxed) > 0, "nothing was displaced");
}

#[test]
fn hash_map_reader_never_misses_a_key_in_a_full_table() {
    present_keys_are_never_missed::<Plain>();
}

#[test]
fn hash_map_reader_never_sees_a_value_dropped_in_a_full_table() {
    present_keys_are_never_missed::<Owned>();
}

#[test]
fn inline_map_reader_never_misses_a_key_in_a_full_table() {
    present_keys_are_never_missed::<Inline>();
}
