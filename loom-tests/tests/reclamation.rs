//! Replace and remove against read, with reclamation [I6], [W2]: nobody reads an entry that was freed, and what is read was
//! completely written.
#![cfg(loom)]

use std::sync::Arc;

use loom::thread;
use loom_tests::{Map, map};

/// Values that loom watches: reading one that is being freed, or was not published, fails the model.
fn reader_against(write: fn(&Map), allowed: &'static [Option<u64>]) {
    loom::model(move || {
        let map = Arc::new(map());
        map.pin().insert(1, 10);
        let reader = {
            let map = Arc::clone(&map);
            thread::spawn(move || {
                let pin = map.pin();
                let seen = pin.get(&1);
                // The reference is valid as long as the pin.
                thread::yield_now();
                assert!(allowed.contains(&seen.copied()), "{seen:?}");
            })
        };
        write(&map);
        reader.join().unwrap();
    });
}

#[test]
fn reader_never_sees_a_replaced_entry_freed() {
    reader_against(
        |map| {
            map.pin().insert(1, 11);
        },
        &[Some(10), Some(11)],
    );
}

#[test]
fn reader_never_sees_a_removed_entry_freed() {
    reader_against(
        |map| {
            map.pin().remove(&1);
        },
        &[Some(10), None],
    );
}

#[test]
fn reader_never_sees_a_drained_entry_freed() {
    reader_against(|map| map.clear(), &[Some(10), None]);
}

#[test]
fn reader_never_sees_an_entry_half_made() {
    loom::model(|| {
        let map = Arc::new(map());
        let reader = {
            let map = Arc::clone(&map);
            thread::spawn(move || assert!(matches!(map.pin().get(&1), None | Some(&10))))
        };
        map.pin().insert(1, 10);
        reader.join().unwrap();
    });
}
