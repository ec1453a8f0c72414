//! Pins that are held for long, and threads that come and go: memory is bounded by what was retired meanwhile.
//!
//! `KOEL_PIN_SECONDS=60` holds them for a minute; `--nocapture` shows the memory, second by second.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use koel::{Cache, HashMap};

use crate::common::{AnyMap, Config, Seeded, SetAtEnd, env_number, on_threads, seeded};

const KEYS: u64 = 1000;
/// An entry of two words.
const ENTRY: usize = 16;

fn filled() -> HashMap<u64, u64, Seeded> {
    let map = HashMap::build(Config::GROWING, seeded(1));
    (0..KEYS).for_each(|key| assert_eq!(map.insert(key, key), None));
    map
}

/// Replaces every key once.
fn turn_over(map: &HashMap<u64, u64, Seeded>, value: u64) {
    (0..KEYS).for_each(|key| assert!(map.pin().insert(key, value).is_some()));
}

/// Replaces all keys again and again for this many seconds, at such a pace that a minute's garbage is some hundred megabytes;
/// `look` is called a few times a second with the number of replaced entries.
fn churn(map: &HashMap<u64, u64, Seeded>, seconds: usize, mut look: impl FnMut(usize)) {
    let end = Instant::now() + Duration::from_secs(seconds as u64);
    for round in 1.. {
        turn_over(map, round as u64);
        if round % 20 == 0 {
            look(round * KEYS as usize);
            if Instant::now() >= end {
                return;
            }
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn memory_under_held_pins_is_what_was_retired_and_is_told_and_used_again() {
    let map = filled();
    (0..20).for_each(|_| turn_over(&map, 7));
    let before = map.memory_usage();
    let (retired, done) = (AtomicUsize::new(0), AtomicBool::new(false));
    let check = |replaced: usize| {
        let (used, waits) = (map.memory_usage(), replaced * ENTRY);
        println!("{replaced} replaced under pins: {used} bytes, {before} before");
        // Pages have a header; the last lists of entries are still under the segments' locks.
        assert!(used + (1 << 16) >= before + waits, "{used} bytes do not tell of {waits} that wait");
        assert!(
            used <= before + waits + waits / 50 + (1 << 18),
            "{used} bytes for {waits} that were retired"
        );
    };
    let begun = std::sync::Barrier::new(3);
    let hold = |map: &HashMap<u64, u64, Seeded>, owned: bool| {
        let (pin, owned) = (map.pin(), owned.then(|| map.pin_owned()));
        let get = |key| owned.as_ref().map_or_else(|| pin.get(&key), |owned| owned.get(&key)).unwrap();
        let seen: Vec<&u64> = (0..KEYS).map(get).collect();
        begun.wait();
        while !done.load(Ordering::Relaxed) {
            assert!(seen.iter().all(|value| **value == 7), "changed under the pin");
            assert!((0..KEYS).all(|key| pin.contains_key(&key)));
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    let seconds = env_number("KOEL_PIN_SECONDS", 1);
    on_threads(3, |thread| match thread {
        0 => {
            let _end = SetAtEnd(&done);
            begun.wait();
            churn(&map, seconds, |replaced| {
                check(replaced);
                retired.store(replaced, Ordering::Relaxed);
            });
        }
        thread => hold(&map, thread == 2),
    });
    let retired = retired.into_inner();
    // Free now, and the memory of the lists that waited is counted: as many entries again find their memory there.
    map.pin().flush();
    let held = map.memory_usage();
    (0..2 * retired as u64 / KEYS).for_each(|round| turn_over(&map, round));
    let again = map.memory_usage();
    assert!(again <= held + (1 << 16), "{again} bytes after {held}");
    map.pin().flush();
    map.shrink_to_fit();
    map.pin().flush();
    map.shrink_to_fit();
    let at_last = map.memory_usage();
    println!(
        "{held} bytes were held, {again} after as much again, {at_last} after shrinking; {before} before"
    );
    assert!(at_last <= before + retired * ENTRY / 4, "{at_last} bytes stay of {held}: there were {before}");
}

/// Where the map's memory usage does not show it.
#[test]
fn what_waits_for_a_pin_is_told_where_entries_own_memory() {
    let map: HashMap<u64, String> = (0..KEYS).map(|key| (key, key.to_string())).collect();
    assert_eq!(map.stats().waiting, 0);
    let pin = map.pin_owned();
    for round in 1..=20 {
        (0..KEYS).for_each(|key| assert!(map.pin().insert(key, "new".to_string()).is_some()));
        // Bags that are not full take no more than their content.
        map.flush();
        assert_eq!(map.stats().waiting, round * KEYS as usize);
    }
    let stats = map.stats();
    assert!(stats.to_string().contains("20000 waiting to be dropped"), "{stats}");
    drop(pin);
    map.flush();
    assert_eq!((map.stats().waiting, map.len()), (0, KEYS as usize));
}

#[test]
fn a_cache_view_that_is_held_holds_up_what_was_evicted_and_no_more() {
    let cache = Cache::<u64, u64>::builder().max_entries(KEYS as usize).hasher(seeded(1)).build();
    (0..KEYS).for_each(|key| cache.insert(key, key).unwrap());
    let (view, before) = (cache.pin(), cache.memory_usage());
    let writes = 100 * KEYS;
    (0..writes).for_each(|key| cache.insert(key, key).unwrap());
    let held = cache.memory_usage() - before;
    println!("{writes} writes under a view: {held} bytes");
    let least = writes as usize * ENTRY;
    assert!(held >= least * 9 / 10, "{held} bytes do not tell of {least} that wait");
    assert!(held <= writes as usize * 64 + (1 << 20), "{held} bytes for {writes} writes");
    drop(view);
    // The memory of the lists that waited is counted then.
    cache.flush();
    let most = cache.memory_usage();
    (0..writes).for_each(|key| cache.insert(key, key).unwrap());
    println!("as many again: {} bytes, {most} before", cache.memory_usage());
    assert!(cache.memory_usage() <= most + (1 << 18), "{} bytes after {most}", cache.memory_usage());
}

/// A thousand threads, ten at a time, that all read, write and pin.
#[test]
fn a_thousand_threads_leave_no_memory_behind() {
    let map = filled();
    let cache = Cache::<u64, u64>::builder().max_entries(KEYS as usize).hasher(seeded(1)).build();
    let (mut early, mut late) = (0, 0);
    for round in 0..100 {
        on_threads(10, |thread| {
            for key in (0..KEYS).skip(thread).step_by(10) {
                map.pin().insert(key, round);
                assert_eq!(map.pin_owned().remove(&key), Some(&round));
                map.pin().insert(key, round);
                assert_eq!(map.pin().get(&key), Some(&round));
                cache.insert(key, round).unwrap();
                assert!(cache.get(&key).is_none_or(|value| value == round));
            }
        });
        let used = map.memory_usage() + cache.memory_usage();
        let most = if round < 50 { &mut early } else { &mut late };
        *most = used.max(*most);
    }
    println!("at most {early} bytes up to the 500th thread, {late} from there on");
    // If each thread left its last batch behind, of a hundred entries and more, that would be two megabytes.
    assert!(late <= 1 << 20, "{late} bytes after 500 threads, {early} before");
    assert_eq!(map.len(), KEYS as usize);
}
