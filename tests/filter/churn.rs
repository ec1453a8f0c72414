//! The filter that grows and is compacted while keys come and go.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use koel::ScalableCuckooFilter;

use crate::common::{SetAtEnd, on_threads, seed};
use crate::scalable::new;

/// How many bits wider the fingerprints of the newest table are than those of the oldest.
fn newest_index(filter: &ScalableCuckooFilter) -> u32 {
    let tables = filter.info().tables;
    tables[tables.len() - 1].fingerprint_bits - tables[0].fingerprint_bits
}

/// More keys are inserted than the first table has room for, and removed again: one more table suffices forever.
#[test]
fn filter_of_as_many_keys_as_ever_does_not_grow_however_often_it_is_compacted() {
    // One burst is more than there are slots for.
    let (held, burst) = (28_000_u64, 4000);
    let filter = new(30_000, 0.01);
    (0..held).for_each(|key| filter.insert(&key).unwrap());
    let (done, compactions) = (AtomicBool::new(false), AtomicU64::new(0));
    on_threads(3, |thread| {
        if thread == 0 {
            while !done.load(Ordering::Relaxed) {
                compactions.fetch_add(filter.compact() as u64, Ordering::Relaxed);
                std::thread::yield_now();
            }
            return;
        }
        let _end = SetAtEnd(&done);
        for round in 0..50 {
            let batch = (round << 32 | (thread as u64) << 24..).take(burst);
            for key in batch.clone() {
                filter.insert(&key).unwrap();
                assert!(key % 64 != 0 || newest_index(&filter) <= 1, "{}", filter.info());
            }
            batch.for_each(|key| assert!(filter.remove(&key)));
        }
    });
    // Unless no thread had time for it.
    let compactions = compactions.into_inner() + filter.compact() as u64;
    assert!(compactions > 0, "{}", filter.info());
    assert_eq!(filter.len() as u64, held);
}

/// A filter of many keys in two tables, which can have no third: fingerprints of 32 bits are the widest.
fn of_two_tables_for_ever() -> (ScalableCuckooFilter, Vec<u64>) {
    let filter = ScalableCuckooFilter::builder().fingerprint_bits(31).seed(seed()).build().unwrap();
    let mut keys = Vec::new();
    while filter.info().tables.len() < 2 || filter.load_factor() < 0.96 {
        keys.push(keys.len() as u64);
        filter.insert(&keys[keys.len() - 1]).unwrap();
    }
    (filter, keys)
}

/// If all buckets of a key are full, other fingerprints are displaced in old tables, too.
#[test]
fn what_is_displaced_in_an_old_table_makes_room_in_a_filter_that_cannot_grow() {
    let (filter, mut keys) = of_two_tables_for_ever();
    // Full as it can be.
    let mut refused = 0;
    while refused < 1000 {
        match filter.insert(&(keys.len() as u64 + (refused << 40))) {
            Ok(()) => keys.push(keys.len() as u64 + (refused << 40)),
            Err(_) => refused += 1,
        }
    }
    // A twentieth of the old table is free, and most pairs of its buckets are full.
    let old = filter.info().tables[0].clone();
    let gone = old.slots / 20;
    assert!(keys.drain(..gone).all(|key| filter.remove(&key)));
    assert_eq!(filter.info().tables[0].len, old.len - gone, "the first keys came when there was one table");
    let mut tried = 0;
    while filter.info().tables[0].len < old.slots * 97 / 100 {
        let key = (1 << 60) + tried;
        tried += 1;
        filter.insert(&key).unwrap_or_else(|full| panic!("{full}: {}", filter.info()));
        keys.push(key);
    }
    assert!(keys.iter().all(|key| filter.remove(key)) && filter.is_empty());
}

/// While the newest table is being emptied, it takes nothing, and there can be no newer one.
#[test]
fn filter_that_cannot_grow_is_not_full_while_it_is_compacted() {
    let (filter, mut keys) = of_two_tables_for_ever();
    // As many keys stay as the old table has room for, and others come and go.
    keys.drain(3700..).for_each(|key| assert!(filter.remove(&key)));
    let done = AtomicBool::new(false);
    on_threads(2, |thread| {
        if thread == 0 {
            while !done.load(Ordering::Relaxed) {
                filter.compact();
            }
            return;
        }
        let _end = SetAtEnd(&done);
        for round in 1..200_u64 {
            let batch = round << 32..(round << 32) + 1000;
            batch.clone().for_each(|key| {
                filter.insert(&key).unwrap_or_else(|full| panic!("{full}: {}", filter.info()));
            });
            batch.for_each(|key| assert!(filter.remove(&key)));
        }
    });
    assert_eq!(filter.len(), keys.len());
}

#[test]
fn clone_has_no_key_twice_while_tables_are_emptied() {
    for _ in 0..20 {
        let filter = new(30_000, 1e-6);
        (0..60_000_u64).for_each(|key| filter.insert(&key).unwrap());
        // The second table's keys have room in the first.
        (0..34_000_u64).for_each(|key| assert!(filter.remove(&key)));
        let done = AtomicBool::new(false);
        on_threads(2, |thread| {
            if thread == 0 {
                let _end = SetAtEnd(&done);
                assert_eq!(filter.compact(), 1, "{}", filter.info());
                return;
            }
            while !done.load(Ordering::Relaxed) {
                let copy = filter.clone();
                assert_eq!(copy.len(), 26_000, "{}", copy.info());
            }
        });
    }
}
