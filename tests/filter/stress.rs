//! Threads: keys that are held throughout are never missed, whatever moves.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::builder;
use crate::common::{Rng, SetAtEnd, env_number, on_threads, seed};

/// Buckets of one word and of two, semi-sorted ones in one word and in several, and the widest.
const LAYOUTS: [(u32, u32, bool); 8] = [
    (8, 4, false),
    (12, 4, false),
    (16, 4, false),
    (9, 4, true),
    (13, 4, true),
    (24, 4, true),
    (8, 8, false),
    (20, 8, false),
];

/// Keys `0..held` stay; others come and go at the brim, where every insert displaces.
#[test]
fn reader_never_misses_a_key_that_is_held_while_others_churn() {
    let rounds = env_number("KOEL_FILTER_LOOKUPS", 200_000);
    for layout in LAYOUTS {
        let filter = builder(layout).capacity(3000).seed(seed()).build().unwrap();
        let held = 1000_u64;
        (0..held).for_each(|key| filter.insert(&key).unwrap());
        let done = AtomicBool::new(false);
        on_threads(3, |thread| {
            let mut rng = Rng::new(seed() + thread as u64);
            let _end = SetAtEnd(&done);
            if thread == 0 {
                let mut present: Vec<u64> = Vec::new();
                let mut new = 1 << 32;
                while !done.load(Ordering::Relaxed) {
                    if filter.insert(&new).is_ok() {
                        present.push(new);
                    } else {
                        for _ in 0..2 {
                            let gone = present.swap_remove(rng.below(present.len() as u64) as usize);
                            assert!(filter.remove(&gone), "{layout:?}: a key that was inserted is gone");
                        }
                    }
                    new += 1;
                }
                assert!(present.iter().all(|key| filter.contains(key)), "{layout:?}");
            } else {
                // Otherwise all keys might be looked up before the other thread has its first turn.
                while !done.load(Ordering::Relaxed) && filter.info().displacements <= 100 {
                    std::thread::yield_now();
                }
                let keys: Vec<u64> = (0..64).map(|_| rng.below(held)).collect();
                let mut found = vec![false; keys.len()];
                for round in 0..rounds {
                    let key = rng.below(held);
                    assert!(filter.contains(&key), "{layout:?}: missed {key}");
                    if round % 64 == 0 {
                        filter.contains_many(&keys, &mut found);
                        assert!(found.iter().all(|found| *found), "{layout:?}");
                        assert!(filter.count(&key) >= 1, "{layout:?}");
                    }
                }
            }
        });
        assert!(filter.info().displacements > 100, "{layout:?}: {}", filter.info());
    }
}

/// A second copy comes and goes, so that sometimes the one and sometimes the other bucket has the only copy.
#[test]
fn reader_never_misses_a_key_whose_copies_come_and_go() {
    for layout in LAYOUTS {
        let filter = builder(layout).capacity(8).seed(seed()).build().unwrap();
        filter.insert(&1).unwrap();
        let rounds = env_number("KOEL_FILTER_LOOKUPS", 200_000) / 2;
        let done = AtomicBool::new(false);
        on_threads(2, |thread| {
            if thread == 0 {
                while !done.load(Ordering::Relaxed) {
                    // Fill the first bucket, so that a copy goes to the second, and back.
                    let copies = (0..layout.1).take_while(|_| filter.insert(&1).is_ok()).count();
                    (0..copies).for_each(|_| assert!(filter.remove(&1)));
                }
            } else {
                let _end = SetAtEnd(&done);
                (0..rounds).for_each(|_| assert!(filter.contains(&1), "{layout:?}"));
            }
        });
        assert_eq!(filter.count(&1), 1);
    }
}

/// All threads write, and then stop: everything is there, and nothing else.
#[test]
fn writers_on_all_threads_lose_nothing() {
    for layout in LAYOUTS {
        let n = 20_000_u64;
        let filter = builder(layout).capacity(2 * n as usize).seed(seed()).build().unwrap();
        on_threads(2, |thread| {
            let mine = |key| 2 * key + thread as u64;
            (0..n).for_each(|key| filter.insert(&mine(key)).unwrap());
            (0..n).for_each(|key| assert!(filter.contains(&mine(key)), "{layout:?}"));
            (0..n).step_by(2).for_each(|key| assert!(filter.remove(&mine(key)), "{layout:?}"));
        });
        assert_eq!(filter.len() as u64, n);
        assert!(
            (0..n)
                .skip(1)
                .step_by(2)
                .all(|key| filter.contains(&(2 * key)) && filter.contains(&(2 * key + 1)))
        );
    }
}
