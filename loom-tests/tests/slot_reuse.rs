//! A slot that is emptied and filled again under a reader's eyes [W3], [I7]: no key is seen before it is inserted, and
//! none with another's value.
#![cfg(loom)]

use std::sync::Arc;

use loom::thread;
use loom_tests::{Put, Scene, inline, long_model, map, model_with_preemptions};

/// Removes a key and inserts it anew; a reader that has seen the new value sees it from then on.
fn insert_is_seen_at_once_or_not_yet<M: Put + Send + Sync + 'static>(new: fn() -> M, preemptions: usize) {
    model_with_preemptions(preemptions, move || {
        let map = Arc::new(new());
        map.put(1, 10);
        let reader = {
            let map = Arc::clone(&map);
            thread::spawn(move || {
                let age = |seen| match seen {
                    Some(10) => 0,
                    None => 1,
                    Some(11) => 2,
                    other => panic!("{other:?}"),
                };
                let (first, then) = (age(map.look(1)), age(map.look(1)));
                assert!(first <= then, "seen in state {first}, then in {then}");
            })
        };
        map.take(1);
        map.put(1, 11);
        reader.join().unwrap();
    });
}

/// Removes a key and inserts one with the same buckets and tag, which takes its slot.
fn keys_never_mix<M: Put + Send + Sync + 'static>(new: fn() -> M) {
    loom::model(move || {
        let map = Arc::new(new());
        let scene = Scene::new(&*map, true);
        let (old, new) = (scene.victim, scene.absent);
        let reader = {
            let map = Arc::clone(&map);
            thread::spawn(move || {
                assert!(matches!(map.look(new), None | Some(7)));
                assert!(matches!(map.look(old), None | Some(1)));
            })
        };
        map.take(old);
        map.put(new, 7);
        reader.join().unwrap();
    });
}

#[test]
fn hash_map_insert_is_seen_at_once_or_not_yet() {
    // The third preemption is for the order of [I7]: pins synchronize with one another, and with two preemptions hide it.
    insert_is_seen_at_once_or_not_yet(map, 3);
}

#[test]
fn inline_map_insert_is_seen_at_once_or_not_yet() {
    insert_is_seen_at_once_or_not_yet(inline, 2);
}

#[test]
fn hash_map_keys_of_one_slot_never_mix() {
    keys_never_mix(map);
}

#[test]
fn inline_map_keys_of_one_slot_never_mix() {
    keys_never_mix(inline);
}

/// The slot of a removed key is taken by a displaced one.
#[test]
fn inline_map_target_of_a_displacement_is_never_read_torn() {
    long_model(|| {
        let map = Arc::new(inline());
        let scene = Scene::new(&*map, true);
        // In C, lane 0, where the victim will go, with the victim's tag or another's.
        let tag = koel::model::place(scene.victim, loom_tests::BUCKETS).2;
        let tenant = loom_tests::keys(1, 1 << 35, |f, s, t| (f, s, t) == (2, 0, tag))[0];
        map.put(tenant, 9);
        let reader = {
            let map = Arc::clone(&map);
            thread::spawn(move || {
                assert!(matches!(map.look(tenant), None | Some(9)));
                assert_eq!(map.look(scene.victim), Some(1));
            })
        };
        map.take(tenant);
        map.put(scene.newcomer, 2);
        reader.join().unwrap();
    });
}
