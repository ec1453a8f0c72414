//! Pins that are held for long, and threads that come and go: memory is bounded by what was retired meanwhile.

use koel::{Cache, HashMap};

use crate::common::{AnyMap, Config, Seeded, on_threads, seeded};

const KEYS: u64 = 1000;

/// Each key is replaced so many times.
fn churn(map: &HashMap<u64, u64, Seeded>, rounds: u64) {
    on_threads(2, |thread| {
        for round in 0..rounds {
            for key in (thread as u64..KEYS).step_by(2) {
                assert!(map.pin().insert(key, round).is_some());
            }
        }
    });
}

fn filled() -> HashMap<u64, u64, Seeded> {
    let map = HashMap::build(Config::GROWING, seeded(1));
    (0..KEYS).for_each(|key| assert_eq!(map.insert(key, key), None));
    map
}

#[test]
fn memory_under_a_held_pin_is_what_was_retired_and_is_told_and_used_again() {
    let map = filled();
    churn(&map, 20);
    let before = map.memory_usage();
    let pin = map.pin();
    let seen: Vec<&u64> = (0..KEYS).map(|key| pin.get(&key).unwrap()).collect();
    churn(&map, 200);
    assert!(seen.iter().all(|value| **value == 19), "changed under the pin");
    let held = map.memory_usage();
    // An entry of two words, a page's header, pieces on their way from thread to thread.
    let retired = 200 * KEYS as usize * 16;
    assert!(held >= before + retired * 9 / 10, "{held} bytes do not tell of {retired} that wait");
    assert!(held <= before + retired * 5 / 4 + (1 << 20), "{held} bytes for {retired} that were retired");
    drop(pin);
    map.pin().flush();
    // Free now: as much churn again, a hundred times over, finds its memory there.
    churn(&map, 400);
    assert!(map.memory_usage() <= held + (1 << 18), "{} bytes after {held}", map.memory_usage());
    map.pin().flush();
    map.shrink_to_fit();
    map.pin().flush();
    let at_last = map.memory_usage();
    assert!(at_last <= before + retired / 4, "{at_last} bytes stay of {held}: there were {before} before");
}

#[test]
fn a_cache_view_that_is_held_holds_up_what_was_evicted_and_no_more() {
    let cache = Cache::<u64, u64>::new(KEYS as usize);
    (0..KEYS).for_each(|key| cache.insert(key, key).unwrap());
    let (view, before) = (cache.pin(), cache.memory_usage());
    let writes = 100 * KEYS;
    (0..writes).for_each(|key| cache.insert(key, key).unwrap());
    let held = cache.memory_usage() - before;
    // Key, value, and what the cache keeps with them; in pages of which the last chunk is larger.
    assert!(held <= writes as usize * 64 + (1 << 20), "{held} bytes for {writes} writes");
    drop(view);
    let most = cache.memory_usage();
    (0..writes).for_each(|key| cache.insert(key, key).unwrap());
    assert!(cache.memory_usage() <= most + (1 << 18), "{} bytes after {most}", cache.memory_usage());
}

/// A thousand threads, one after the other, that all read, write and pin.
#[test]
fn a_thousand_threads_leave_no_memory_behind() {
    let map = filled();
    let cache = Cache::<u64, u64>::new(KEYS as usize);
    let mut most = 0;
    for number in 0..1000 {
        std::thread::scope(|scope| {
            let work = || {
                for key in 0..100 {
                    map.pin().insert(key, number);
                    map.pin_owned().remove(&key);
                    map.pin().insert(key, number);
                    cache.insert(key, number).unwrap();
                    assert!(cache.get(&key).is_some() && map.pin().contains_key(&key));
                }
            };
            scope.spawn(work);
        });
        let used = map.memory_usage() + cache.memory_usage();
        if number == 200 {
            most = used;
        }
        assert!(
            number <= 200 || used <= most + most / 4 + (1 << 16),
            "{used} bytes after {number} threads, {most} after 200"
        );
    }
    assert_eq!(map.len(), KEYS as usize);
}
