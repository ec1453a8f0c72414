//! Parallel walks see what the others see, and parallel collections lose nothing.

use std::collections::HashSet;

use koel::{Cache, HashMap, InlineMap, LoadError, Operation};
use rayon::prelude::*;

use crate::common::{AnyMap, Config, catch, growing_configs, seeded};

#[test]
fn a_parallel_walk_sees_every_entry_once() {
    for config in growing_configs().into_iter().chain([Config::fixed(30_000)]) {
        for entries in [0, 1, 100, 30_000] {
            let map: HashMap<u64, u64, _> = AnyMap::build(config, seeded(1));
            let inline: InlineMap<u64, u64, _> = AnyMap::build(config, seeded(2));
            map.pin().extend((0..entries).map(|n| (n, !n)));
            inline.extend((0..entries).map(|n| (n, !n)));
            let seen: Vec<u64> = map.pin().par_iter().map(|(key, value)| *key & !(*value ^ !*key)).collect();
            assert_eq!(
                (seen.len() as u64, seen.into_iter().collect::<HashSet<_>>().len() as u64),
                (entries, entries)
            );
            let seen: Vec<u64> = inline.par_iter().map(|(key, value)| key & !(value ^ !key)).collect();
            assert_eq!(
                (seen.len() as u64, seen.into_iter().collect::<HashSet<_>>().len() as u64),
                (entries, entries)
            );
        }
    }
}

/// By rayon's traits, as used by code that takes any collection.
#[test]
fn maps_and_views_are_parallel_iterators_to_be() {
    fn keys<I: IntoParallelIterator<Item = (K, V)>, K: Send + std::hash::Hash + Eq, V: Send>(
        all: I,
    ) -> HashSet<K> {
        all.into_par_iter().map(|(key, _)| key).collect()
    }
    let map: HashMap<u64, String> = (0..20_000).map(|n| (n, n.to_string())).collect();
    let inline: InlineMap<u64, u64> = (0..20_000).map(|n| (n, n)).collect();
    let all: HashSet<u64> = (0..20_000).collect();
    assert!(keys(&map.pin()).into_iter().copied().collect::<HashSet<_>>() == all);
    assert!(keys(&map.pin_owned()).into_iter().copied().collect::<HashSet<_>>() == all);
    assert!(keys(&inline) == all && inline.len() == 20_000);
    assert!(format!("{:?} {:?}", map.pin().par_iter(), inline.par_iter()).contains("ParIter"));
    assert!(map.into_par_iter().all(|(key, text)| text == key.to_string()));
    assert!(keys(inline) == all && keys(HashMap::<u64, u64>::new()).is_empty());
}

#[test]
fn a_parallel_walk_sees_what_is_present_throughout_in_growth() {
    for round in 0..10 {
        let map: HashMap<u64, u64> = (0..2000).map(|n| (n, n)).collect();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for n in 0..20_000 {
                    map.pin().insert(10_000 + n, n);
                }
                if round % 2 == 0 {
                    map.pin().retain(|key, _| *key < 2000);
                    map.shrink_to_fit();
                }
            });
            for _ in 0..3 {
                let pin = map.pin_owned();
                let seen: Vec<u64> = pin.par_iter().map(|(key, _)| *key).filter(|key| *key < 2000).collect();
                assert_eq!((seen.len(), seen.into_iter().collect::<HashSet<_>>().len()), (2000, 2000));
            }
        });
    }
}

#[test]
fn parallel_collections_lose_nothing() {
    let map: HashMap<u64, String> = (0..50_000_u64).into_par_iter().map(|n| (n, n.to_string())).collect();
    assert!(map.len() == 50_000 && (0..50_000).all(|n| map.pin()[&n] == n.to_string()));
    let mut inline: InlineMap<u64, u64> = (0..50_000_u64).into_par_iter().map(|n| (n, n)).collect();
    inline.par_extend((25_000..75_000_u64).into_par_iter().map(|n| (n, n + 1)));
    (&inline).par_extend((75_000..80_000_u64).into_par_iter().map(|n| (n, n + 1)));
    assert_eq!(inline.len(), 80_000);
    assert!((0..80_000).all(|n| inline.get(&n) == Some(if n < 25_000 { n } else { n + 1 })));
    let mut other: HashMap<u64, u64> = HashMap::new();
    other.par_extend((0..1000_u64).into_par_iter().map(|n| (n % 10, n)));
    (&other).par_extend([(100, 100)]);
    assert_eq!(other.len(), 11);
}

/// Many segments to a part, and few; with parts that share segments and home pages; and maps that have grown before.
#[test]
fn parallel_collections_into_a_map_of_one_s_own_lose_nothing() {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(8).build().unwrap();
    for (segment_slots, entries) in [(8, 30_000), (64, 60_000), (4096, 500_000)] {
        for room in [0, 1000, entries as usize] {
            let mut map: HashMap<u64, u64> =
                HashMap::builder().capacity(room).segment_slots(segment_slots).home_cells(true).build();
            let mut inline: InlineMap<u64, u64> =
                InlineMap::builder().capacity(room).segment_slots(segment_slots).build();
            // A third of them are there already, and each key occurs twice.
            (0..entries / 3)
                .for_each(|n| assert!(map.pin().insert(n, 0).is_none() && inline.insert(n, 0).is_none()));
            pool.install(|| {
                let pairs = || (0..2 * entries).into_par_iter().map(|n| (n % entries, n));
                map.par_extend(pairs());
                inline.par_extend(pairs());
            });
            let pin = map.pin();
            assert_eq!((map.len() as u64, inline.len() as u64), (entries, entries));
            assert!(
                (0..entries)
                    .all(|n| pin.get(&n) == Some(&(n + entries)) && inline.get(&n) == Some(n + entries))
            );
            assert_eq!((pin.iter().count() as u64, inline.iter().count() as u64), (entries, entries));
        }
    }
}

/// Cells of entries that some threads remove are free again for others, which take home cells: in the end all are free, and
/// their memory is given back. A cell that seems to be in use would keep it.
#[test]
fn home_cells_of_what_is_replaced_in_parallel_are_given_back() {
    const KEYS: u64 = 100_000;
    const CELLS: usize = KEYS as usize * 5 / 4 * 16;
    let left = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let mut map: HashMap<u64, u64> =
            HashMap::builder().capacity(KEYS as usize).segment_slots(64).home_cells(true).build();
        // Otherwise it would be rebuilt for all pairs.
        map.pin().insert(0, 0);
        // Each is new once, and then replaced.
        pool.install(|| map.par_extend((0..8 * KEYS).into_par_iter().map(|n| (n / 8, n))));
        assert_eq!(map.len() as u64, KEYS);
        map.clear();
        map.flush();
        map.shrink_to_fit();
        map.memory_usage()
    };
    for round in 0..10 {
        let (of_one, of_four) = (left(1), left(4));
        assert!(of_four < of_one + CELLS / 2, "{of_four} bytes instead of {of_one}, round {round}");
    }
}

#[test]
fn a_parallel_extend_inserts_nothing_if_its_iterator_or_a_hash_panics() {
    let pairs = |last: u64| {
        (0..10_000_u64).into_par_iter().map(move |n| {
            if n == last {
                // Without the hook's message on a thread of the pool.
                std::panic::resume_unwind(Box::new("no more"));
            }
            (n, n)
        })
    };
    for last in [0, 5000, 9999] {
        let mut map: HashMap<u64, u64> = HashMap::from([(20_000, 1)]);
        let mut inline: InlineMap<u64, u64> = InlineMap::from([(20_000, 1)]);
        assert!(catch(|| (&map).par_extend(pairs(last))).is_err());
        assert!(catch(|| map.par_extend(pairs(last))).is_err());
        assert!(catch(|| (&inline).par_extend(pairs(last))).is_err());
        assert!(catch(|| inline.par_extend(pairs(last))).is_err());
        assert_eq!((map, inline), (HashMap::from([(20_000, 1)]), InlineMap::from([(20_000, 1)])));
    }
    /// A number; hashing one of them panics.
    #[derive(PartialEq, Eq)]
    struct Number(u64);
    impl std::hash::Hash for Number {
        fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
            if self.0 == 5000 {
                std::panic::resume_unwind(Box::new("none"));
            }
            state.write_u64(self.0);
        }
    }
    let mut map: HashMap<Number, u64> = HashMap::from([(Number(20_000), 1)]);
    let pairs = || (0..10_000_u64).into_par_iter().map(|n| (Number(n), n));
    assert!(catch(|| (&map).par_extend(pairs())).is_err());
    assert!(catch(|| map.par_extend(pairs())).is_err());
    assert_eq!(map.len(), 1);
}

#[test]
fn an_empty_map_is_made_anew_for_what_is_collected_in_parallel() {
    let made: InlineMap<u64, u64> = InlineMap::with_capacity(100_000);
    let collected: InlineMap<u64, u64> = (0..100_000_u64).into_par_iter().map(|n| (n, n)).collect();
    assert_eq!(collected.capacity(), made.capacity());
}

/// Entries found in a parallel walk live as long as the pin.
#[test]
fn what_a_parallel_walk_yields_outlives_its_removal() {
    let map: HashMap<u64, String> = (0..5000).map(|n| (n, n.to_string())).collect();
    let pin = map.pin();
    let entries: Vec<(&u64, &String)> = pin.par_iter().collect();
    map.clear();
    (0..5).for_each(|_| map.pin().extend((0..1000).map(|n| (n, String::new()))));
    assert!(entries.len() == 5000 && entries.iter().all(|(key, value)| **value == key.to_string()));
}

/// Where a key occurs more than once, its last value stays, as in a sequential collection.
#[test]
fn the_last_value_of_a_key_stays() {
    let pairs = || (0..300_000_u64).into_par_iter().map(|n| (n % 7001, n));
    let last = |key: u64| (0..300_000).rev().find(|n| n % 7001 == key).unwrap();
    let map: HashMap<u64, u64> = pairs().collect();
    let mut inline: InlineMap<u64, u64> = (0..7001_u64).into_par_iter().map(|n| (n, 0)).collect();
    inline.par_extend(pairs());
    assert_eq!((map.len(), inline.len()), (7001, 7001));
    for key in 0..7001 {
        assert_eq!((map.pin()[&key], inline.get(&key)), (last(key), Some(last(key))), "{key}");
    }
}

#[test]
fn a_full_map_panics_in_parallel_as_well() {
    let map: HashMap<u64, u64> = HashMap::builder().fixed_capacity(100).build();
    let all = || (&map).par_extend((0..1000_u64).into_par_iter().map(|n| (n, n)));
    assert!(catch(all).unwrap_err().contains("full"));
    assert!(map.len() >= 100 && map.pin().iter().all(|(key, value)| key == value));
    let inline: InlineMap<u64, u64> = InlineMap::builder().fixed_capacity(100).build();
    let all = || (&inline).par_extend((0..1000_u64).into_par_iter().map(|n| (n, n)));
    assert!(catch(all).unwrap_err().contains("full"));
    assert!(inline.len() >= 100 && inline.iter().all(|(key, value)| key == value));
}

/// In a thread of its own, as one that waits for itself would wait forever.
fn panics_in_time(body: impl FnOnce() + Send + 'static) {
    let (told, tell) = std::sync::mpsc::channel();
    std::thread::spawn(move || told.send(catch(body).is_err()).expect("somebody listens"));
    let panicked = tell.recv_timeout(std::time::Duration::from_secs(60));
    assert_eq!(panicked, Ok(true), "what other threads do to a map under its own lock");
}

#[test]
fn a_parallel_extend_under_the_maps_own_lock_panics() {
    let many = || (0..10_000_u64).into_par_iter().map(|n| (n, n));
    panics_in_time(move || {
        let map = HashMap::from([(0_u64, 0_u64)]);
        let _ = map.pin().compute(0, |_| {
            (&map).par_extend(many());
            Operation::<u64, ()>::Abort(())
        });
    });
    panics_in_time(move || {
        let map = InlineMap::from([(0_u64, 0_u64)]);
        let _ = map.compute(0, |_| {
            // An iterator of unknown length.
            (&map).par_extend(many().filter(|_| true));
            Operation::<u64, ()>::Abort(())
        });
    });
}

#[test]
fn a_parallel_walk_that_begins_under_the_maps_own_lock_panics() {
    // With many segments: with one, the thread that holds the lock would itself be the one to walk.
    let pairs = || (0..100_000_u64).map(|n| (n, n));
    panics_in_time(move || {
        let map: HashMap<u64, u64> = pairs().collect();
        let pin = map.pin();
        let walk = pin.par_iter();
        let _ = pin.compute(0, |_| Operation::Abort(walk.count()));
    });
    panics_in_time(move || {
        let map: InlineMap<u64, u64> = pairs().collect();
        let walk = map.par_iter();
        let _ = map.compute(0, |_| Operation::Abort(walk.count()));
    });
}

/// The walk may then begin on another thread.
#[test]
fn a_parallel_walk_that_is_made_under_the_maps_own_lock_panics() {
    let pairs = || (0..100_000_u64).map(|n| (n, n));
    panics_in_time(move || {
        let map: HashMap<u64, u64> = pairs().collect();
        let pin = map.pin();
        let others = rayon::iter::once((&0, &0));
        let _ = pin.compute(0, |_| Operation::Abort(others.chain(pin.par_iter()).count()));
    });
    panics_in_time(move || {
        let map: InlineMap<u64, u64> = pairs().collect();
        let others = rayon::iter::once((0, 0));
        let _ = map.compute(0, |_| Operation::Abort(others.chain(map.par_iter()).count()));
    });
}

/// Runs another task in a pool of one thread while a task of it waits.
fn in_a_task_that_waits<T: Send>(other: impl FnOnce() -> T + Send) -> T {
    let mut answer = None;
    rayon::scope(|scope| scope.spawn(|_| answer = Some(other())));
    answer.expect("it has been run")
}

/// The inner task gets an error, because it would wait for a task below it on the stack.
#[test]
fn a_task_that_a_loader_or_a_closure_is_made_to_run_does_not_wait_for_it() {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    let (cache, map, inline) = (Cache::new(10), HashMap::new(), InlineMap::new());
    pool.install(|| {
        let ask = || cache.try_get_or_insert_with(1, || Ok::<_, ()>(0));
        let loaded = cache.get_or_insert_with(1, || {
            assert_eq!(in_a_task_that_waits(ask), Err(LoadError::Recursion));
            7
        });
        assert_eq!((loaded, ask()), (7, Ok(7)));
        let write = || map.pin().insert(2, 2).copied();
        map.pin().get_or_insert_with(1, || in_a_task_that_waits(|| u64::from(catch(write).is_err())));
        let write = || inline.insert(2_u64, 2);
        inline.get_or_insert_with(1, || in_a_task_that_waits(|| u64::from(catch(write).is_err())));
    });
    assert_eq!((map.len(), map.pin().get(&1), inline.len(), inline.get(&1)), (1, Some(&1), 1, Some(1)));
}
