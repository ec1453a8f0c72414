//! The memory of a `HashMap`'s entries: intact, disjoint and aligned whatever their size. It is reused when entries have gone,
//! and not before no reader can see them: not under a leaked pin, nor an owned one, nor in a drop that uses the map.

mod common;

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use common::{Counted, Ledger, Rng, Seeded, on_threads, seed, seeded};
use koel::HashMap;

type Counting = HashMap<u64, Counted, Seeded>;

fn counting() -> Counting {
    HashMap::with_hasher(seeded(1))
}

/// A value of some size and alignment.
trait Block: Send + Sync {
    fn of(n: u64) -> Self;
    fn is_of(&self, n: u64) -> bool;
}

impl<const N: usize> Block for [u8; N] {
    fn of(n: u64) -> Self {
        core::array::from_fn(|i| (n as usize * 31 + i) as u8)
    }

    fn is_of(&self, n: u64) -> bool {
        self.iter().enumerate().all(|(i, byte)| *byte == (n as usize * 31 + i) as u8)
    }
}

macro_rules! aligned {
    ($($name:ident: $align:literal;)*) => {$(
        #[repr(align($align))]
        struct $name<T>(T);

        impl<T: Block> Block for $name<T> {
            fn of(n: u64) -> Self {
                $name(T::of(n))
            }

            fn is_of(&self, n: u64) -> bool {
                self.0.is_of(n)
            }
        }
    )*};
}

aligned! { To16: 16; To32: 32; To64: 64; To128: 128; To4096: 4096; }

/// Fills, empties and fills a map again; entries never overlap.
fn entries_are_whole_and_apart<T: Block>() {
    entries_of_a_map_are_whole_and_apart::<T>(HashMap::new());
    // Some in home cells, some more than there are cells for.
    entries_of_a_map_are_whole_and_apart::<T>(HashMap::builder().capacity(300).home_cells(true).build());
}

fn entries_of_a_map_are_whole_and_apart<T: Block>(map: HashMap<u64, T>) {
    for round in 0..3 {
        for key in 0..700 {
            map.pin().insert(key, T::of(key + round));
        }
        let pin = map.pin();
        let mut places: Vec<(usize, usize)> = Vec::new();
        for key in 0..700 {
            let (key, value) = pin.get_key_value(&key).unwrap();
            assert!(value.is_of(key + round), "{key} of size {}", size_of::<T>());
            let place = core::ptr::from_ref(value).addr();
            assert_eq!(place % align_of::<T>(), 0, "misaligned");
            assert_eq!(core::ptr::from_ref(key).addr() % align_of::<u64>(), 0, "misaligned");
            places.push((core::ptr::from_ref(key).addr(), size_of::<u64>()));
            places.push((place, size_of::<T>()));
        }
        places.sort_unstable();
        for pair in places.windows(2) {
            assert!(pair[0].0 + pair[0].1 <= pair[1].0 || pair[1].1 == 0, "entries overlap: {pair:?}");
        }
        drop(pin);
        map.pin().retain(|key, _| (key + round) % 3 == 0);
        if round == 1 {
            map.shrink_to_fit();
        }
        assert!(map.pin().iter().all(|(key, value)| value.is_of(key + round)));
    }
}

macro_rules! sizes {
    ($($size:literal)*) => {$(entries_are_whole_and_apart::<[u8; $size]>();)*};
}

#[test]
fn entries_of_every_size_are_whole_and_apart() {
    sizes! { 0 1 7 8 9 16 24 63 64 65 120 248 495 496 503 504 505 511 512 513 1000 4087 4088 4096 5000 };
}

#[test]
fn entries_of_every_alignment_are_whole_and_apart() {
    entries_are_whole_and_apart::<To16<[u8; 1]>>();
    entries_are_whole_and_apart::<To16<[u8; 100]>>();
    entries_are_whole_and_apart::<To32<[u8; 40]>>();
    entries_are_whole_and_apart::<To64<[u8; 1]>>();
    entries_are_whole_and_apart::<To64<[u8; 400]>>();
    entries_are_whole_and_apart::<To64<[u8; 0]>>();
    entries_are_whole_and_apart::<To128<[u8; 1]>>();
    entries_are_whole_and_apart::<To128<[u8; 1000]>>();
    entries_are_whole_and_apart::<To4096<[u8; 1]>>();
}

#[test]
fn memory_of_removed_entries_is_used_again() {
    let map: HashMap<u64, [u64; 4]> = HashMap::with_capacity(20_000);
    (0..20_000).for_each(|key| assert!(map.pin().insert(key, [key; 4]).is_none()));
    let full = map.memory_usage();
    for round in 0..50 {
        for key in 0..20_000 {
            assert_eq!(
                map.pin().insert(key, [round; 4]).map(|old| old[0]),
                Some(if round == 0 { key } else { round - 1 })
            );
        }
    }
    assert!(map.memory_usage() <= full + full / 4, "{full} bytes became {}", map.memory_usage());
}

/// Entries that one thread inserts and another removes: memory does not accumulate with either.
#[test]
fn memory_goes_from_thread_to_thread() {
    let map: HashMap<u64, [u64; 4]> = HashMap::new();
    const AT_A_TIME: u64 = 500;
    let removed = AtomicUsize::new(0);
    on_threads(2, |thread| {
        for key in 0..60_000 {
            if thread == 0 {
                while key >= removed.load(Ordering::Acquire) as u64 + AT_A_TIME {
                    std::thread::yield_now();
                }
                map.pin().insert(key, [key; 4]);
            } else {
                while map.pin().remove(&key).is_none() {
                    std::thread::yield_now();
                }
                removed.fetch_add(1, Ordering::Release);
            }
        }
    });
    assert!(map.memory_usage() < 500_000, "{} bytes", map.memory_usage());
}

/// When it is dropped, it removes its successor.
#[derive(Debug)]
struct Domino {
    n: u64,
    map: Weak<HashMap<u64, Domino>>,
    fallen: Arc<AtomicUsize>,
}

impl Drop for Domino {
    fn drop(&mut self) {
        self.fallen.fetch_add(1, Ordering::SeqCst);
        if let Some(map) = self.map.upgrade() {
            let pin = map.pin();
            assert!(pin.get(&self.n).is_none_or(|entry| entry.n == self.n));
            pin.remove(&(self.n + 1));
            pin.get(&(self.n + 2));
        }
    }
}

#[test]
fn the_drop_of_an_entry_may_use_its_map() {
    let map: Arc<HashMap<u64, Domino>> = Arc::new(HashMap::new());
    let fallen = Arc::new(AtomicUsize::new(0));
    const DOMINOES: u64 = 5000;
    for n in 0..DOMINOES {
        map.pin().insert(n, Domino { n, map: Arc::downgrade(&map), fallen: Arc::clone(&fallen) });
    }
    on_threads(2, |thread| {
        for n in (thread as u64..DOMINOES).step_by(40) {
            map.pin().remove(&n);
            let domino = Domino { n, map: Weak::new(), fallen: Arc::clone(&fallen) };
            map.pin().insert(n, domino);
        }
    });
    let made = DOMINOES as usize + DOMINOES.div_ceil(40) as usize * 2 - usize::from(DOMINOES % 40 == 1);
    map.clear();
    assert!(map.is_empty() || map.len() < DOMINOES as usize);
    drop(map);
    let fallen = fallen.load(Ordering::SeqCst);
    assert!(fallen >= DOMINOES as usize && fallen <= made, "{fallen} fell, {made} were made at most");
}

/// A map within a map's entry, with pins of both held.
#[test]
fn entries_may_be_maps() {
    let ledger = Ledger::new();
    let outer: HashMap<u64, Counting> = HashMap::new();
    for n in 0..20 {
        outer.pin().insert(n, counting());
        let pin = outer.pin();
        let inner = pin.get(&n).unwrap();
        (0..100).for_each(|key| assert!(inner.pin().insert(key, ledger.value(key)).is_none()));
        let inner_pin = inner.pin();
        let value = inner_pin.get(&7).unwrap();
        outer.pin().remove(&n);
        inner.pin().remove(&7);
        assert_eq!(value.n, 7);
    }
    drop(outer);
    ledger.assert_settled("maps in a map");
}

#[test]
fn a_leaked_pin_keeps_entries_alive_and_harms_nothing() {
    for owned in [false, true] {
        let ledger = Ledger::new();
        let map = counting();
        (0..100).for_each(|key| assert!(map.pin().insert(key, ledger.value(key)).is_none()));
        let leaked: &Counted = if owned {
            let pin = core::mem::ManuallyDrop::new(map.pin_owned());
            core::mem::forget(map.pin_owned());
            // SAFETY: the pin is never dropped: its borrow lasts as long as the map is used below.
            unsafe { &*core::ptr::from_ref(pin.get(&5).unwrap()) }
        } else {
            let pin = core::mem::ManuallyDrop::new(map.pin());
            core::mem::forget(map.pin());
            // SAFETY: as above.
            unsafe { &*core::ptr::from_ref(pin.get(&5).unwrap()) }
        };
        on_threads(3, |thread| {
            for round in 0..20 {
                for key in 0..100 {
                    drop(map.pin_owned());
                    map.pin().insert(key, ledger.value(round + thread as u64));
                }
            }
        });
        assert_eq!(leaked.n, 5);
        map.clear();
        map.shrink_to_fit();
        assert_eq!(leaked.n, 5);
        drop(map);
        // Entries that a leaked pin protects may leak with it.
        ledger.assert_none_dropped_twice("leaked pins");
    }
}

/// Pins of both kinds, held across one another's ends, while other threads remove the entries that they look at.
#[test]
fn owned_and_local_pins_protect_what_they_see() {
    let ledger = Ledger::new();
    let map = counting();
    let seed = seed();
    on_threads(4, |thread| {
        let mut rng = Rng::new(seed + thread as u64);
        for _ in 0..300 {
            if thread < 2 {
                for _ in 0..20 {
                    let key = rng.below(50);
                    match rng.below(3) {
                        0 => drop(map.pin_owned().remove(&key).is_some()),
                        1 => drop(map.pin().remove(&key).is_some()),
                        _ => drop(map.pin().insert(key, ledger.value(key)).is_some()),
                    }
                }
                continue;
            }
            let first = rng.one_in(2).then(|| map.pin());
            let owned = map.pin_owned();
            let local = map.pin();
            let seen: HashSet<u64> = (0..10).map(|_| rng.below(50)).collect();
            let by_owned: Vec<_> = seen.iter().map(|key| (key, owned.get(key))).collect();
            let by_local: Vec<_> = seen.iter().map(|key| (key, local.get(key))).collect();
            drop(first);
            std::thread::yield_now();
            assert!(by_local.iter().all(|(key, value)| value.is_none_or(|value| value.n == **key)));
            drop(local);
            std::thread::yield_now();
            assert!(by_owned.iter().all(|(key, value)| value.is_none_or(|value| value.n == **key)));
        }
    });
    drop(map);
    ledger.assert_settled("owned and local pins");
}

/// A walk that begins in one thread and continues in another, over a view of either kind, while its entries are replaced.
#[test]
fn a_walk_goes_on_in_another_thread() {
    let ledger = Ledger::new();
    let map = counting();
    const KEYS: u64 = 20_000;
    (0..KEYS).for_each(|key| assert!(map.pin().insert(key, ledger.value(key)).is_none()));
    assert!(map.stats().segments > 3, "walks go from one to the next");
    for round in 0..10 {
        let (owned, local) = (map.pin_owned(), map.pin());
        let mut walks = [owned.iter(), local.iter()];
        let begun: usize = walks.iter_mut().map(|walk| walk.by_ref().take(round).count()).sum();
        std::thread::scope(|scope| {
            let threads = walks.map(|walk| {
                scope.spawn(move || walk.filter(|(key, value)| value.n % 100_000 == **key).count())
            });
            (0..KEYS).for_each(|key| {
                assert!(map.pin().insert(key, ledger.value(100_000 * round as u64 + key)).is_some());
            });
            let seen: usize = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
            assert_eq!((begun + seen) as u64, 2 * KEYS);
        });
    }
    // A drain that continues in another thread than it began in: each entry is yielded once, and dropped once.
    let pin = map.pin_owned();
    let mut drain = pin.drain();
    let begun = drain.by_ref().take(10).count();
    let rest = std::thread::scope(|scope| scope.spawn(move || drain.count()).join().unwrap());
    assert_eq!(((begun + rest) as u64, map.len()), (KEYS, 0));
    drop(pin);
    drop(map);
    ledger.assert_settled("walks in other threads");
}

/// Owned pins that appear for the first time while entries are being retired.
#[test]
fn the_first_owned_pin_protects_what_it_sees() {
    for round in 0..200 {
        let ledger = Ledger::new();
        let map = counting();
        (0..64).for_each(|key| assert!(map.pin().insert(key, ledger.value(key)).is_none()));
        on_threads(2, |thread| {
            if thread == 0 {
                (0..64).for_each(|key| assert!(map.pin().insert(key, ledger.value(key + 1000)).is_some()));
                (0..64).for_each(|key| assert!(map.pin().remove(&key).is_some()));
            } else {
                (0..round % 50).for_each(|_| core::hint::spin_loop());
                let pin = map.pin_owned();
                let seen: Vec<_> = (0..64).map(|key| pin.get(&key)).collect();
                std::thread::yield_now();
                assert!((0..).zip(seen).all(|(key, value)| value.is_none_or(|value| value.n % 1000 == key)));
            }
        });
        drop(map);
        ledger.assert_settled("the first owned pin");
    }
}

/// Chunks are given back while threads take memory from them; home cells are given back as soon as none is in use, which
/// happens once.
#[test]
fn shrinking_takes_no_memory_that_others_use() {
    shrink_while_others_take(60, counting());
    for _ in 0..30 {
        let builder = HashMap::builder().hasher(seeded(1)).capacity(1000).segment_slots(64);
        shrink_while_others_take(3, builder.home_cells(true).build());
    }
}

fn shrink_while_others_take(rounds: usize, map: Counting) {
    let ledger = Ledger::new();
    let seed = seed();
    on_threads(3, |thread| {
        let mut rng = Rng::new(seed + thread as u64);
        for _ in 0..rounds {
            let base = thread as u64 * 10_000;
            let keys = 1 + rng.below(600);
            (base..base + keys).for_each(|key| assert!(map.pin().insert(key, ledger.value(key)).is_none()));
            if rng.one_in(3) {
                map.shrink_to_fit();
            }
            let pin = map.pin();
            assert!((base..base + keys).all(|key| pin.get(&key).is_some_and(|value| value.n == key)));
            for key in base..base + keys {
                assert_eq!(pin.remove(&key).map(|value| value.n), Some(key));
            }
            drop(pin);
            map.shrink_to_fit();
        }
    });
    assert!(map.is_empty());
    drop(map);
    ledger.assert_settled("shrinking");
}
