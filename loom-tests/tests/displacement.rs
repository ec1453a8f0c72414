//! Reading against displacement, in both directions [R2]..[R4], [W5]: a present key is never missed, an absent one
//! never found.
#![cfg(loom)]

use std::sync::Arc;

use loom::thread;
use loom_tests::{Put, Scene, inline, map, model_with_preemptions};

fn present_key_is_never_missed<M: Put + Send + Sync + 'static>(new: fn() -> M, forward: bool) {
    loom::model(move || {
        let map = Arc::new(new());
        let scene = Scene::new(&*map, forward);
        let reader = {
            let map = Arc::clone(&map);
            thread::spawn(move || assert_eq!(map.look(scene.victim), Some(1)))
        };
        map.put(scene.newcomer, 2);
        assert_eq!(map.displacements(), 1);
        assert_eq!(map.look(scene.victim), Some(1));
        reader.join().unwrap();
    });
}

fn absent_key_is_never_found<M: Put + Send + Sync + 'static>(new: fn() -> M, forward: bool) {
    loom::model(move || {
        let map = Arc::new(new());
        let scene = Scene::new(&*map, forward);
        let reader = {
            let map = Arc::clone(&map);
            thread::spawn(move || assert_eq!(map.look(scene.absent), None))
        };
        map.put(scene.newcomer, 2);
        assert_eq!(map.look(scene.newcomer), Some(2));
        reader.join().unwrap();
    });
}

#[test]
fn hash_map_reader_never_misses_a_key_displaced_forward() {
    present_key_is_never_missed(map, true);
}

#[test]
fn hash_map_reader_never_misses_a_key_displaced_backward() {
    present_key_is_never_missed(map, false);
}

#[test]
fn inline_map_reader_never_misses_a_key_displaced_forward() {
    present_key_is_never_missed(inline, true);
}

#[test]
fn inline_map_reader_never_misses_a_key_displaced_backward() {
    present_key_is_never_missed(inline, false);
}

#[test]
fn hash_map_reader_never_finds_an_absent_key_beside_a_displacement() {
    absent_key_is_never_found(map, true);
    absent_key_is_never_found(map, false);
}

#[test]
fn inline_map_reader_never_finds_an_absent_key_beside_a_displacement() {
    absent_key_is_never_found(inline, true);
    absent_key_is_never_found(inline, false);
}

/// Displaced twice: the victim goes to C, and back to A when the first newcomer has left.
#[test]
fn hash_map_reader_never_misses_a_key_displaced_there_and_back() {
    there_and_back(map, 2);
}

/// Displaced twice, inline.
#[test]
fn inline_map_reader_never_misses_a_key_displaced_there_and_back() {
    there_and_back(inline, 1);
}

fn there_and_back<M: Put + Send + Sync + 'static>(new: fn() -> M, preemptions: usize) {
    model_with_preemptions(preemptions, move || {
        let map = Arc::new(new());
        let scene = Scene::new(&*map, true);
        // C is full except for the place where the victim will go; A, where it came from, will have the only hole when a second
        // newcomer comes to C and B.
        let tag = koel::model::place(scene.victim, loom_tests::BUCKETS).2;
        for filler in loom_tests::keys(3, 1 << 33, |f, s, t| (f, s) == (2, 1) && t != tag) {
            map.put(filler, 0);
        }
        let second = loom_tests::keys(1, 1 << 34, |f, s, t| (f, s) == (2, 1) && t != tag)[0];
        let reader = {
            let map = Arc::clone(&map);
            thread::spawn(move || assert_eq!(map.look(scene.victim), Some(1)))
        };
        map.put(scene.newcomer, 2);
        map.take(scene.newcomer);
        map.put(second, 3);
        assert_eq!(map.displacements(), 2);
        reader.join().unwrap();
    });
}
