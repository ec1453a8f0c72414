//! The growing filter: look-ups, writes, clearing, dumps and clones while a table is emptied into an older one [I3].
#![cfg(loom)]

use std::sync::Arc;

use koel::ScalableCuckooFilter;
use loom::thread;
use loom_tests::model_with_preemptions;

/// A key, which the filter hashes, so that its places differ in all tables.
const KEY: u64 = 1;
const OTHER: u64 = 2;

/// Bytes of a filter of two tables, the oldest of two buckets and empty, the newer with `KEY` in it.
fn key_in_the_newer_table() -> Vec<u8> {
    let made = Arc::new(std::sync::Mutex::new(None));
    let inside = Arc::clone(&made);
    let mut builder = loom::model::Builder::new();
    builder.max_branches = 1 << 16;
    builder.check(move || {
        let filter = ScalableCuckooFilter::builder().capacity(1).false_positive_rate(0.01).seed(1);
        let filter = filter.max_duplicates(2).build().unwrap();
        (10..18).for_each(|hash| filter.insert_hash(hash).unwrap());
        filter.insert_hash(KEY).unwrap();
        (10..18).for_each(|hash| assert!(filter.remove_hash(hash)));
        let tables: Vec<_> = filter.info().tables.iter().map(|table| (table.slots, table.len)).collect();
        assert_eq!(tables, [(8, 0), (16, 1)]);
        assert!(!filter.contains_hash(OTHER));
        *inside.lock().unwrap() = Some(filter.to_bytes());
    });
    made.lock().unwrap().take().unwrap()
}

/// Compacts such a filter while another thread runs `other`.
fn compact_against(other: fn(&ScalableCuckooFilter), check: fn(&ScalableCuckooFilter)) {
    let bytes = key_in_the_newer_table();
    model_with_preemptions(2, move || {
        let filter = Arc::new(ScalableCuckooFilter::from_bytes(&bytes).unwrap());
        let thread = {
            let filter = Arc::clone(&filter);
            thread::spawn(move || other(&filter))
        };
        assert_eq!(filter.compact(), 1);
        thread.join().unwrap();
        check(&filter);
    });
}

#[test]
fn reader_never_misses_a_key_that_moves_to_an_older_table() {
    compact_against(
        |filter| assert!(filter.contains_hash(KEY)),
        |filter| assert!(filter.contains_hash(KEY) && filter.len() == 1),
    );
}

#[test]
fn batch_never_misses_a_key_that_moves_to_an_older_table() {
    compact_against(
        |filter| {
            let mut found = [false; 2];
            filter.contains_many_hash(&[OTHER, KEY], &mut found);
            assert_eq!(found, [false, true]);
        },
        |filter| assert_eq!(filter.len(), 1),
    );
}

#[test]
fn insertion_into_a_table_that_is_emptied_is_not_lost() {
    compact_against(
        |filter| {
            filter.insert_hash(OTHER).unwrap();
            assert!(filter.contains_hash(OTHER) && filter.contains_hash(KEY));
        },
        |filter| assert!(filter.contains_hash(OTHER) && filter.contains_hash(KEY) && filter.len() == 2),
    );
}

#[test]
fn removal_finds_a_key_that_moves_to_an_older_table() {
    compact_against(
        |filter| assert!(filter.remove_hash(KEY)),
        |filter| assert!(filter.is_empty() && !filter.contains_hash(KEY)),
    );
}

/// Two copies are allowed: one that is moved does not count as two.
#[test]
fn copy_that_moves_to_an_older_table_is_counted_once() {
    compact_against(
        |filter| filter.insert_hash(KEY).unwrap(),
        |filter| assert!(filter.count_hash(KEY) == 2 && filter.insert_hash(KEY).is_err()),
    );
}

/// A key that is there all the time is not put once more.
#[test]
fn key_that_moves_to_an_older_table_is_not_inserted_again() {
    compact_against(
        |filter| assert_eq!(filter.insert_unique_hash(KEY), Ok(false)),
        |filter| assert_eq!(filter.len(), 1),
    );
}

/// A key that moves goes to a table that clearing has yet to reach.
#[test]
fn key_that_moves_to_an_older_table_is_cleared() {
    compact_against(ScalableCuckooFilter::clear, |filter| {
        assert!(filter.is_empty() && !filter.contains_hash(KEY))
    });
}

/// A key does not move from a table that a dump, or a clone, has yet to reach to one that it has already passed.
#[test]
fn dump_has_a_key_that_moves_to_an_older_table() {
    compact_against(
        |filter| {
            let copy = ScalableCuckooFilter::from_bytes(&filter.to_bytes()).unwrap();
            assert!(copy.contains_hash(KEY) && copy.len() == 1);
        },
        |filter| assert!(filter.contains_hash(KEY)),
    );
}

#[test]
fn clone_has_a_key_that_moves_to_an_older_table() {
    compact_against(
        |filter| {
            let clone = filter.clone();
            assert!(clone.contains_hash(KEY) && clone.len() == 1);
        },
        |filter| assert!(filter.contains_hash(KEY)),
    );
}
