//! Many look-ups at once, and look-ups of tags alone, against a displacement [R2]..[R4], [W5].
#![cfg(loom)]

use std::sync::Arc;

use loom::thread;
use loom_tests::{Map, Put, Scene, inline, long_model, map};

fn batch_misses_nothing<M: Put + Send + Sync + 'static>(new: fn() -> M, forward: bool) {
    long_model(move || {
        let map = Arc::new(new());
        let scene = Scene::new(&*map, forward);
        let reader = {
            let map = Arc::clone(&map);
            thread::spawn(move || {
                assert_eq!(map.look_at_many(&[scene.victim, scene.absent]), [Some(1), None]);
            })
        };
        map.put(scene.newcomer, 2);
        assert_eq!(map.displacements(), 1);
        reader.join().unwrap();
    });
}

/// Another key of the same tag is put into a slot before the key's: its tag is there before its item is.
fn batch_looks_behind_a_tag<M: Put + Send + Sync + 'static>(new: fn() -> M) {
    loom::model(move || {
        let map = Arc::new(new());
        let scene = Scene::new(&*map, true);
        let (held, other) = (scene.absent, scene.victim);
        map.put(held, 3);
        map.take(other);
        let reader = {
            let map = Arc::clone(&map);
            thread::spawn(move || assert_eq!(map.look_at_many(&[held]), [Some(3)]))
        };
        map.put(other, 1);
        reader.join().unwrap();
    });
}

fn tags_never_deny_a_key<M: Put + Send + Sync + 'static>(new: fn() -> M, forward: bool) {
    loom::model(move || {
        let map = Arc::new(new());
        let scene = Scene::new(&*map, forward);
        let reader = {
            let map = Arc::clone(&map);
            thread::spawn(move || assert!(map.may_have(scene.victim)))
        };
        map.put(scene.newcomer, 2);
        assert_eq!(map.displacements(), 1);
        reader.join().unwrap();
    });
}

#[test]
fn hash_map_batch_never_misses_a_displaced_key() {
    batch_misses_nothing(map, true);
    batch_misses_nothing(map, false);
}

#[test]
fn inline_map_batch_never_misses_a_displaced_key() {
    batch_misses_nothing(inline, true);
    batch_misses_nothing(inline, false);
}

#[test]
fn batch_never_misses_a_key_behind_one_of_its_tag() {
    batch_looks_behind_a_tag(map);
    batch_looks_behind_a_tag(inline);
}

/// A key leaves its slot, and one with the same buckets and tag takes it, between the look at the tags and that at the slot.
#[test]
fn inline_map_batch_never_mixes_keys_of_one_slot() {
    loom::model(|| {
        let map = Arc::new(inline());
        let Scene { victim: old, absent: new, .. } = Scene::new(&*map, true);
        let reader = {
            let map = Arc::clone(&map);
            thread::spawn(move || {
                let seen = map.look_at_many(&[new, old]);
                assert!(matches!(seen[..], [None | Some(7), None | Some(1)]), "{seen:?}");
            })
        };
        map.take(old);
        map.put(new, 7);
        reader.join().unwrap();
    });
}

/// A key moves to the new half of its segment.
#[test]
fn hash_map_batch_never_misses_a_key_in_a_split() {
    loom::model(|| {
        let map: Map = koel::HashMap::builder().segment_slots(4).hasher(Default::default()).build();
        let map = Arc::new(map);
        let keys =
            |upper, n| (0..).filter(move |&key| (koel::model::prefix(key) >> 31 == 1) == upper).take(n);
        let (held, more) = (keys(true, 1).next().unwrap(), keys(true, 2).last().unwrap());
        keys(false, 3).chain([held]).for_each(|key| map.put(key, 1));
        let reader = {
            let map = Arc::clone(&map);
            thread::spawn(move || assert_eq!(map.look_at_many(&[held]), [Some(1)]))
        };
        map.put(more, 2);
        assert_eq!(map.stats().splits, 1);
        reader.join().unwrap();
    });
}

#[test]
fn tags_of_a_hash_map_never_deny_a_displaced_key() {
    tags_never_deny_a_key(map, true);
    tags_never_deny_a_key(map, false);
}

#[test]
fn tags_of_an_inline_map_never_deny_a_displaced_key() {
    tags_never_deny_a_key(inline, true);
    tags_never_deny_a_key(inline, false);
}
