//! Memory for entries while it is given back [M4]: a piece is one entry's at a time, and unused memory is freed.
#![cfg(shuttle)]

use std::alloc::{GlobalAlloc, Layout, System};

use koel::HashMap;
use shuttle::thread;
use shuttle_tests::{Identity, explore};

/// Overwrites freed memory, so that any further use of it is noticed.
struct Spoiling;

// SAFETY: the system's allocator does the work.
unsafe impl GlobalAlloc for Spoiling {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, base: *mut u8, layout: Layout) {
        // SAFETY: the caller's: that many bytes, which nobody uses any more.
        unsafe {
            // Stacks of threads are large, and nobody looks there.
            if layout.size() <= 1 << 15 {
                base.write_bytes(0xA5, layout.size());
            }
            System.dealloc(base, layout);
        }
    }
}

#[global_allocator]
static ALLOCATOR: Spoiling = Spoiling;

/// So large that a page has room for eight entries.
type Value = [u64; 59];
type Map = HashMap<u64, Value, Identity>;

fn put(map: &Map, key: u64) {
    map.pin().insert(key, [!key; 59]);
}

fn check(map: &Map, key: u64) {
    let pin = map.pin();
    let value = pin.get(&key).expect("it was put");
    assert!(value.iter().all(|word| *word == !key), "another's, or freed");
}

/// Puts some keys, looks at them while others are put, and takes out every other one.
fn come_and_go(map: &Map, first: u64) {
    for key in first..first + KEYS {
        put(map, key);
        check(map, first + (key - first) / 2);
    }
    (first..first + KEYS).for_each(|key| check(map, key));
    (first..first + KEYS).step_by(2).for_each(|key| assert!(map.pin().remove(&key).is_some()));
}

/// The number of each writer's keys.
const KEYS: u64 = 24;
/// The number of keys that were there before: the first page of entries, and two chunks of four.
const BEFORE: u64 = 72;
/// The keys among them that stay: one of the first page, and one of the last chunk.
const STAY: [u64; 2] = [3, 50];

/// A map of which few entries are left, and what it takes when it is empty.
fn sparse(stay: &[u64]) -> (Map, usize) {
    let map: Map =
        HashMap::builder().fixed_capacity(200).hasher(Identity::default()).home_cells(false).build();
    let empty = map.memory_usage();
    (0..BEFORE).for_each(|key| put(&map, key));
    let go = (0..BEFORE).filter(|key| !stay.contains(key));
    go.for_each(|key| assert!(map.pin().remove(&key).is_some()));
    map.flush();
    (map, empty)
}

/// Nothing is left when all entries have gone.
fn end(map: &Map, empty: usize) {
    map.clear();
    map.flush();
    map.shrink_to_fit();
    map.shrink_to_fit();
    // A chunk that has not been cut to its end, and lists.
    let left = map.memory_usage() - empty;
    assert!(left < 5 * 4096, "{left} bytes are left");
}

#[test]
fn a_piece_is_one_entry_s_while_chunks_are_given_back() {
    explore(1000, || {
        let (map, empty) = sparse(&STAY);
        thread::scope(|scope| {
            let map = &map;
            for thread in 1..3 {
                scope.spawn(move || come_and_go(map, thread * 1000));
            }
            for _ in 0..3 {
                scope.spawn(|| map.shrink_to_fit());
            }
        });
        STAY.into_iter().for_each(|key| check(&map, key));
        end(&map, empty);
    });
}

/// The keys that stay where chunks are emptied: one of the first page, half of the first chunk, and two of the other.
const SPREAD: [u64; 19] = [1, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30, 32, 34, 36, 38, 50, 51];
/// Those that are replaced: the page can go, but the second chunk cannot.
const HOT: [u64; 4] = [1, 50, 8, 10];
/// The second chunk's other key.
const COLD: u64 = 51;

#[test]
fn a_piece_is_one_entry_s_while_chunks_are_emptied() {
    explore(1000, || {
        let (map, empty) = sparse(&SPREAD);
        map.shrink_to_fit();
        thread::scope(|scope| {
            let map = &map;
            scope.spawn(move || {
                for key in HOT.into_iter().cycle().take(60) {
                    put(map, key);
                    map.flush();
                    check(map, key);
                    check(map, COLD);
                }
            });
            scope.spawn(move || {
                for key in 1000..1010 {
                    put(map, key);
                    check(map, key);
                    assert!(map.pin().remove(&key).is_some());
                }
                map.flush();
            });
            scope.spawn(|| map.shrink_to_fit());
        });
        SPREAD.into_iter().for_each(|key| check(&map, key));
        end(&map, empty);
    });
}
