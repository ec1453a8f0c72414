//! Look-ups, removals and iteration while a map grows and shrinks [R1], [I8]: segments double, split, are put away and used
//! again, the directory doubles. A key that was put is there until it is taken, for every reader, and an iterator returns it
//! once.
#![cfg(shuttle)]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering as Plainly};

use shuttle::sync::atomic::{AtomicU64, Ordering};
use shuttle::thread;
use shuttle_tests::{Inline, Map, Owned, Plain, Shape, explore};

/// The number of keys that are present throughout.
const HELD: u64 = 3;
/// The number of a writer's keys.
const MINE: u64 = 7;
/// Keys are their own hashes: this spreads them over all segments.
const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;

fn key(i: u64) -> u64 {
    i.wrapping_mul(SPREAD)
}

/// A writer, with how many of its keys it has put.
struct Writer {
    first: u64,
    put: AtomicU64,
}

impl Writer {
    fn new(first: u64) -> Self {
        Writer { first, put: AtomicU64::new(0) }
    }

    /// Puts all its keys, and each time one more that it takes out again.
    fn write(&self, map: &impl Map) {
        let guest = key(self.first + MINE);
        for i in 0..MINE {
            map.put(key(self.first + i), i);
            self.put.store(i + 1, Ordering::SeqCst);
            map.put(guest, i);
            assert_eq!(map.look(guest), Some(i));
            assert!(map.take(guest));
        }
    }

    /// Checks that the last key it has put is there.
    fn check(&self, map: &impl Map) {
        if let Some(last) = self.put.load(Ordering::SeqCst).checked_sub(1) {
            assert_eq!(map.look(key(self.first + last)), Some(last), "missed the last of {}", last + 1);
        }
    }
}

fn read(map: &impl Map, writers: &[Writer]) {
    let held: Vec<u64> = (0..HELD).map(key).collect();
    for round in 0..4 {
        held.iter().for_each(|key| assert_eq!(map.look(*key), Some(*key), "missed a held one"));
        writers.iter().for_each(|writer| writer.check(map));
        if round % 2 == 0 {
            let found = map.look_at_many(&held);
            assert!(held.iter().zip(found).all(|(key, found)| found == Some(*key)));
        }
        assert_eq!(map.look(key(1000)), None);
    }
}

fn iterate(map: &impl Map) {
    for _ in 0..2 {
        let mut seen = BTreeMap::new();
        for (key, version) in map.entries() {
            assert_eq!(seen.insert(key, version), None, "given twice");
        }
        assert!((0..HELD).map(key).all(|held| seen.get(&held) == Some(&held)), "not given");
    }
}

/// Runs the test on a map of this shape; some schedule must show that it has grown.
fn grows<M: Map>(shape: Shape, shrinks: bool, has_grown: fn(&koel::Stats) -> bool) {
    let grown = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&grown);
    explore(150, move || {
        let map = M::new(shape);
        (0..HELD).map(key).for_each(|key| map.put(key, key));
        let writers = [Writer::new(100), Writer::new(200)];
        thread::scope(|scope| {
            let (map, writers) = (&map, &writers);
            for writer in writers {
                scope.spawn(move || writer.write(map));
            }
            for _ in 0..2 {
                scope.spawn(|| read(map, writers));
            }
            scope.spawn(|| iterate(map));
            if shrinks {
                scope.spawn(|| {
                    map.reserve(20);
                    map.shrink();
                    map.reserve(9);
                });
            }
        });
        let held = (0..HELD).map(|i| (key(i), key(i)));
        let written = writers.iter().flat_map(|writer| (0..MINE).map(|i| (key(writer.first + i), i)));
        let entries = map.entries();
        assert_eq!(entries.len(), (HELD + 2 * MINE) as usize, "each once");
        assert_eq!(entries.into_iter().collect::<BTreeMap<_, _>>(), held.chain(written).collect());
        count.fetch_add(usize::from(has_grown(&map.stats())), Plainly::Relaxed);
        map.end();
    });
    assert!(grown.load(Plainly::Relaxed) > 0, "it never grew as it should");
}

/// Segments of one bucket: they split, and the directory doubles.
const SPLITTING: Shape = Shape::Growing(4);
/// One segment, which doubles.
const DOUBLING: Shape = Shape::Growing(1 << 12);

#[test]
fn hash_map_loses_nothing_while_it_splits() {
    grows::<Plain>(SPLITTING, false, |stats| stats.splits > 2);
}

#[test]
fn hash_map_loses_nothing_while_it_doubles() {
    grows::<Plain>(DOUBLING, false, |stats| stats.doublings > 1);
}

#[test]
fn hash_map_loses_nothing_while_it_shrinks_and_grows() {
    grows::<Plain>(Shape::Growing(8), true, |stats| stats.splits > 0);
}

#[test]
fn hash_map_drops_each_value_once_while_it_shrinks_and_grows() {
    grows::<Owned>(Shape::Growing(8), true, |stats| stats.splits > 0);
}

#[test]
fn inline_map_loses_nothing_while_it_splits() {
    grows::<Inline>(SPLITTING, false, |stats| stats.splits > 2);
}

#[test]
fn inline_map_loses_nothing_while_it_doubles() {
    grows::<Inline>(DOUBLING, false, |stats| stats.doublings > 1);
}

#[test]
fn inline_map_loses_nothing_while_it_shrinks_and_grows() {
    grows::<Inline>(Shape::Growing(8), true, |stats| stats.splits > 0);
}
