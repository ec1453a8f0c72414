//! Two writers in one segment [W1], [I5]: each sees the other's work or none of it, and nothing is lost.
#![cfg(loom)]

use std::sync::Arc;

use loom::thread;
use loom_tests::{Put, Scene, inline, keys, map};

fn both_inserts_stay<M: Put + Send + Sync + 'static>(new: fn() -> M) {
    loom::model(move || {
        let map = Arc::new(new());
        // Keys of one bucket, and so of one slot, unless one writer sees the other's key there.
        let [mine, theirs] = keys(2, 0, |first, _, _| first == 0)[..] else {
            unreachable!("as many as were asked for")
        };
        let other = {
            let map = Arc::clone(&map);
            thread::spawn(move || map.put(theirs, 10))
        };
        map.put(mine, 20);
        other.join().unwrap();
        assert_eq!((map.look(theirs), map.look(mine)), (Some(10), Some(20)));
    });
}

#[test]
fn both_inserts_stay_in_a_hash_map() {
    both_inserts_stay(map);
}

#[test]
fn both_inserts_stay_in_an_inline_map() {
    both_inserts_stay(inline);
}

#[test]
fn one_key_is_inserted_once() {
    loom::model(|| {
        let map = Arc::new(map());
        let other = {
            let map = Arc::clone(&map);
            thread::spawn(move || map.pin().try_insert(1, 10).is_ok())
        };
        let mine = map.pin().try_insert(1, 20).is_ok();
        let theirs = other.join().unwrap();
        assert!(mine != theirs);
        assert_eq!(map.look(1), Some(if mine { 20 } else { 10 }));
        assert_eq!(map.len(), 1);
    });
}

#[test]
fn no_update_is_lost() {
    loom::model(|| {
        let map = Arc::new(map());
        map.put(1, 0);
        let other = {
            let map = Arc::clone(&map);
            thread::spawn(move || {
                map.pin().update(1, |value| value + 1);
            })
        };
        map.pin().update(1, |value| value + 1);
        other.join().unwrap();
        assert_eq!(map.look(1), Some(2));
    });
}

/// One writer displaces a key while another removes it.
#[test]
fn displacement_and_removal_of_one_key_exclude_each_other() {
    loom::model(|| {
        let map = Arc::new(map());
        let scene = Scene::new(&*map, true);
        let (victim, newcomer) = (scene.victim, scene.newcomer);
        let other = {
            let map = Arc::clone(&map);
            thread::spawn(move || map.take(victim))
        };
        map.put(newcomer, 2);
        other.join().unwrap();
        assert_eq!((map.look(victim), map.look(newcomer)), (None, Some(2)));
        assert_eq!(map.len(), 8);
    });
}
