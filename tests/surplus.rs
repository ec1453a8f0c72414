//! Memory that was needed once, and is idle, is given back automatically while writes go on.

mod common;

use std::time::{Duration, Instant};

use common::Rng;
use common::counting::{Counting, allocated};
use koel::{Cache, HashMap};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The memory that a thread's first use of a collector, and removed entries that wait for more, may take.
const SLACK: isize = 40_000;

/// Also for a cache. Writers give back memory that nobody has used for a while, automatically.
#[test]
fn what_a_held_pin_has_piled_up_comes_back_while_writes_go_on() {
    const ENTRIES: u64 = 1000;
    let (map, cache) = (HashMap::<u64, [u64; 4]>::new(), Cache::<u64, [u64; 4]>::new(ENTRIES as usize));
    let write = |n: u64| {
        map.pin().insert(n % ENTRIES, [n; 4]);
        cache.insert(n % ENTRIES, [n; 4]).expect("there is room");
    };
    let used = || [map.memory_usage(), cache.memory_usage()];
    (0..ENTRIES).for_each(write);
    let before = used();
    let held = (map.pin(), cache.pin());
    std::thread::scope(|scope| drop(scope.spawn(|| (0..200 * ENTRIES).for_each(write))));
    drop(held);
    assert!(used().iter().zip(before).all(|(peak, before)| *peak > 4 << 20 && *peak > 10 * before));
    let began = Instant::now();
    while used().iter().zip(before).any(|(used, before)| *used > 2 * before + (1 << 20)) {
        assert!(began.elapsed() < Duration::from_secs(300), "{:?} are kept of {before:?}", used());
        (0..10 * ENTRIES).for_each(write);
    }
    (0..ENTRIES).for_each(|key| assert_eq!(map.pin().get(&key).map(|value| value[0] % ENTRIES), Some(key)));
}

/// Also where each chunk has some entries: they do not move, but an entry that is replaced leaves its chunk.
#[test]
fn memory_that_a_few_entries_are_spread_over_comes_back_as_they_are_replaced() {
    const ENTRIES: u64 = 20_000;
    let map = HashMap::<u64, u64>::with_capacity(ENTRIES as usize);
    (0..ENTRIES).for_each(|key| assert!(map.pin().insert(key, 0).is_none()));
    let mut rng = Rng::new(1);
    let mut write = |n: u64| (0..n).for_each(|n| assert!(map.pin().insert(rng.below(ENTRIES), n).is_some()));
    let before = map.memory_usage();
    let held = map.pin();
    std::thread::scope(|scope| drop(scope.spawn(|| write(8 * ENTRIES))));
    drop(held);
    let peak = map.memory_usage();
    assert!(peak > before + (2 << 20), "{peak} bytes after {before}");
    let began = Instant::now();
    while map.memory_usage() > before + (peak - before) / 3 {
        assert!(
            began.elapsed() < Duration::from_secs(300),
            "{} bytes are kept of {peak}",
            map.memory_usage()
        );
        write(ENTRIES);
    }
    assert_eq!(map.len() as u64, ENTRIES);
}

/// Also for a map that is dropped while it is about to give memory back.
#[test]
fn what_is_being_given_back_goes_with_the_map() {
    drop(HashMap::from([(1_u64, [1_u64; 4])])); // Memory that a process and a thread allocate once.
    let before = allocated();
    for _ in 0..3 {
        let map = HashMap::<u64, [u64; 4]>::new();
        let write = |n: u64| {
            map.pin().insert(n % 1000, [n; 4]);
        };
        let held = map.pin();
        (0..400_000).for_each(write);
        drop(held);
        let (peak, began) = (map.memory_usage(), Instant::now());
        while map.memory_usage() > peak - (1 << 20) {
            assert!(began.elapsed() < Duration::from_secs(300), "{peak} bytes are kept");
            (0..500).for_each(write);
        }
        assert!(map.memory_usage() > peak / 2, "all at once");
        drop(map);
        assert!(allocated() - before < SLACK, "{} of {peak} bytes are lost", allocated() - before);
    }
}
