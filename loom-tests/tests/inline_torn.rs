//! Replacement of an inline value of several words against readers: never torn, and never older than what was seen
//! before.
#![cfg(loom)]

use std::sync::Arc;

use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::thread;
use loom_tests::{Put, Scene, inline, model_with_preemptions};

#[test]
fn reader_never_sees_a_torn_value() {
    loom::model(|| {
        let map = Arc::new(inline());
        map.put(1, 0);
        let reader = {
            let map = Arc::clone(&map);
            thread::spawn(move || {
                let first = map.look(1).expect("present throughout");
                let then = map.look(1).expect("present throughout");
                assert!(first <= then && then <= 1, "{first}, then {then}");
            })
        };
        map.put(1, 1);
        reader.join().unwrap();
    });
}

#[test]
fn reader_never_sees_a_torn_value_between_two_replacements() {
    model_with_preemptions(1, || {
        let map = Arc::new(inline());
        map.put(1, 0);
        let reader = {
            let map = Arc::clone(&map);
            thread::spawn(move || assert!(map.look(1).expect("present throughout") <= 2))
        };
        map.put(1, 1);
        map.put(1, 2);
        reader.join().unwrap();
    });
}

#[test]
fn reader_never_sees_a_torn_value_when_two_keys_are_replaced() {
    model_with_preemptions(1, || {
        let map = Arc::new(inline());
        map.put(1, 0);
        map.put(2, 0);
        let reader = {
            let map = Arc::clone(&map);
            thread::spawn(move || assert!(map.look(1).expect("present throughout") <= 1))
        };
        map.put(1, 1);
        map.put(2, 1);
        reader.join().unwrap();
    });
}

/// A reader that began while the version was odd for a displacement may meet the copy that a replacement makes next.
#[test]
fn reader_never_sees_a_copy_half_made_after_a_displacement() {
    model_with_preemptions(1, || {
        let map = Arc::new(inline());
        let scene = Scene::new(&*map, true);
        let reader = {
            let map = Arc::clone(&map);
            thread::spawn(move || {
                let seen = map.look(scene.victim);
                assert!(matches!(seen, Some(1 | 5)), "{seen:?}");
            })
        };
        map.put(scene.newcomer, 2);
        map.put(scene.victim, 5);
        reader.join().unwrap();
    });
}

/// A reader that sees a replaced value of one word sees what its writer did before, to the map and elsewhere.
#[test]
fn replacement_of_one_word_publishes_what_came_before() {
    loom::model(|| {
        let map: Arc<koel::InlineMap<u64, u64, loom_tests::Identity>> =
            Arc::new(koel::InlineMap::builder().fixed_capacity(3).hasher(Default::default()).build());
        map.insert(1, 10);
        map.insert(2, 20);
        let elsewhere = Arc::new(AtomicUsize::new(0));
        let reader = {
            let (map, elsewhere) = (Arc::clone(&map), Arc::clone(&elsewhere));
            thread::spawn(move || {
                if map.get(&2) == Some(21) {
                    assert_eq!(map.get(&1), Some(11));
                    assert_eq!(elsewhere.load(Ordering::Relaxed), 1);
                }
            })
        };
        elsewhere.store(1, Ordering::Relaxed);
        map.insert(1, 11);
        map.insert(2, 21);
        reader.join().unwrap();
    });
}

/// A value of one word is replaced by one store, without a version.
#[test]
fn reader_sees_values_of_one_word_old_or_new() {
    loom::model(|| {
        let map: Arc<koel::InlineMap<u64, u64, loom_tests::Identity>> =
            Arc::new(koel::InlineMap::builder().fixed_capacity(3).hasher(Default::default()).build());
        map.insert(1, 10);
        let reader = {
            let map = Arc::clone(&map);
            thread::spawn(move || {
                let (first, then) = (map.get(&1).unwrap(), map.get(&1).unwrap());
                assert!(first <= then && [10, 11].contains(&first), "{first}, then {then}");
            })
        };
        map.insert(1, 11);
        reader.join().unwrap();
    });
}
