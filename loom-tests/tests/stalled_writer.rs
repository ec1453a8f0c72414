//! Readers never wait: a writer is stopped at every seam of its write, forever as far as the reader can see, and the reader
//! still answers, and correctly.
#![cfg(loom)]

use std::sync::Arc;

use koel::model::place;
use loom_tests::{BUCKETS, Inline, Put, Scene, inline, keys, map, model_with_preemptions, stopped};

/// Runs `write` and stops it at its `seam`-th seam until `read`, in a thread of its own, is done. Returns whether it got that
/// far.
fn read_against_stopped_write<M: Put + Send + Sync + 'static>(
    new: fn() -> M,
    forward: bool,
    seam: usize,
    write: fn(&M, &Scene),
    read: fn(&M, &Scene),
) -> bool {
    let reached = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let outside = Arc::clone(&reached);
    // Stopping the writer is no preemption.
    model_with_preemptions(1, move || {
        let map = Arc::new(new());
        let scene = Arc::new(Scene::new(&*map, forward));
        let (its_map, its_scene) = (Arc::clone(&map), Arc::clone(&scene));
        stopped(seam, &reached, move || read(&its_map, &its_scene), || write(&map, &scene));
    });
    outside.load(std::sync::atomic::Ordering::Relaxed)
}

/// Does so at every seam in turn, until the write has no more.
fn at_every_seam<M: Put + Send + Sync + 'static>(
    new: fn() -> M,
    forward: bool,
    write: fn(&M, &Scene),
    read: fn(&M, &Scene),
) {
    let seams = (0..).take_while(|&seam| read_against_stopped_write(new, forward, seam, write, read)).count();
    assert!(seams >= 4, "only {seams} seams: the write was not stopped where it matters");
}

fn displace<M: Put>(map: &M, scene: &Scene) {
    map.put(scene.newcomer, 2);
}

fn read_victim<M: Put>(map: &M, scene: &Scene) {
    assert_eq!(map.look(scene.victim), Some(1));
    assert_eq!(map.look(scene.absent), None);
}

#[test]
fn hash_map_reader_needs_no_end_of_a_displacement() {
    at_every_seam(map, true, displace, read_victim);
    at_every_seam(map, false, displace, read_victim);
}

#[test]
fn inline_map_reader_needs_no_end_of_a_displacement() {
    at_every_seam(inline, true, displace, read_victim);
    at_every_seam(inline, false, displace, read_victim);
}

#[test]
fn look_up_of_tags_needs_no_end_of_a_displacement() {
    fn read<M: Put>(map: &M, scene: &Scene) {
        assert!(map.may_have(scene.victim));
        // A key with these buckets, and with a tag that no key in them has.
        let (first, second, tag) = place(scene.victim, BUCKETS);
        let mut others = keys(8, 1 << 33, |f, s, t| (f, s) == (first, second) && t != tag).into_iter();
        assert!(others.any(|key| !map.may_have(key)));
    }
    at_every_seam(map, false, displace, read);
    at_every_seam(inline, false, displace, read);
}

#[test]
fn inline_map_reader_needs_no_end_of_a_replacement_of_several_words() {
    at_every_seam(
        inline,
        true,
        |map: &Inline, scene| map.put(scene.victim, 5),
        |map, scene| {
            let first = map.look(scene.victim);
            let then = map.look(scene.victim);
            assert!(first == Some(1) || first == Some(5) && then == Some(5), "{first:?}, then {then:?}");
            assert_eq!(map.look(scene.absent), None);
        },
    );
}

#[test]
fn reader_needs_no_end_of_a_removal_or_an_insert() {
    fn remove_and_insert<M: Put>(map: &M, scene: &Scene) {
        map.take(scene.victim);
        map.put(scene.absent, 3);
    }
    fn read<M: Put>(map: &M, scene: &Scene) {
        // The first key is removed, then the second inserted: a reader that finds the second misses the first from then on.
        if map.look(scene.absent).is_some() {
            assert_eq!(map.look(scene.victim), None);
        } else {
            assert!(matches!(map.look(scene.victim), None | Some(1)));
        }
    }
    at_every_seam(map, true, remove_and_insert, read);
    at_every_seam(inline, true, remove_and_insert, read);
}
