//! The overflow: keys that fit neither of their buckets, put there and removed under a reader's eyes [R4], [W6], [I7].
#![cfg(loom)]

use std::sync::Arc;

use koel::model::place;
use loom::thread;
use loom_tests::{BUCKETS, Put, inline, keys, map};

/// Fills a bucket with keys for which it is both buckets, so that no path leads out of it; returns further such keys, of one
/// tag.
fn crowd(map: &impl Put) -> Vec<u64> {
    let own = |f, s| (f, s) == (0, 0);
    let tag = place(keys(1, 0, |f, s, _| own(f, s))[0], BUCKETS).2;
    for key in keys(4, 0, |f, s, t| own(f, s) && t != tag) {
        map.put(key, 0);
    }
    assert_eq!(map.overflow(), 0);
    keys(2, 0, |f, s, t| own(f, s) && t == tag)
}

/// A reader that has found a key in the overflow finds it from then on; keys that were there before are never missed.
fn put_is_seen_at_once_or_not_yet<M: Put + Send + Sync + 'static>(new: fn() -> M, present: usize) {
    loom::model(move || {
        let map = Arc::new(new());
        let further = crowd(&*map);
        let (held, newcomer) = (further[..present].to_vec(), further[present]);
        held.iter().for_each(|&key| map.put(key, key));
        assert_eq!(map.overflow(), present);
        let reader = {
            let map = Arc::clone(&map);
            thread::spawn(move || {
                assert!(held.iter().all(|&key| map.look(key) == Some(key)));
                let first = map.look(newcomer);
                let then = map.look(newcomer);
                assert!(first.is_none() || first == Some(7) && then == first, "{first:?}, then {then:?}");
            })
        };
        map.put(newcomer, 7);
        reader.join().unwrap();
        assert_eq!((map.overflow(), map.look(newcomer)), (present + 1, Some(7)));
    });
}

/// The overflow becomes empty, and another key is put there: a reader that has found that key finds it from then on. The reader
/// may have seen the mark from the key before.
fn put_anew_is_seen_at_once_or_not_yet<M: Put + Send + Sync + 'static>(new: fn() -> M) {
    loom::model(move || {
        let map = Arc::new(new());
        let further = crowd(&*map);
        let (old, new) = (further[0], further[1]);
        map.put(old, 1);
        let reader = {
            let map = Arc::clone(&map);
            thread::spawn(move || {
                let first = map.look(new);
                let then = map.look(new);
                assert!(first.is_none() || first == Some(2) && then == first, "{first:?}, then {then:?}");
            })
        };
        map.take(old);
        map.put(new, 2);
        reader.join().unwrap();
        assert_eq!((map.overflow(), map.look(old), map.look(new)), (1, None, Some(2)));
    });
}

/// A reader that no longer finds the last key of an overflow sees what came before the key's removal.
fn last_key_leaves_after_what_came_before<M: Put + Send + Sync + 'static>(new: fn() -> M) {
    loom::model(move || {
        let map = Arc::new(new());
        let further = crowd(&*map);
        let (last, before) = (further[0], keys(1, 0, |f, s, _| f != 0 && s != 0)[0]);
        map.put(last, 1);
        let reader = {
            let map = Arc::clone(&map);
            thread::spawn(move || assert!(map.look(last) == Some(1) || map.look(before) == Some(2)))
        };
        map.put(before, 2);
        map.take(last);
        reader.join().unwrap();
        assert_eq!((map.overflow(), map.look(last)), (0, None));
    });
}

/// One of two keys is removed: the other is never missed.
fn key_that_stays_is_never_missed<M: Put + Send + Sync + 'static>(new: fn() -> M) {
    loom::model(move || {
        let map = Arc::new(new());
        let further = crowd(&*map);
        let (leaves, stays) = (further[0], further[1]);
        map.put(leaves, 1);
        map.put(stays, 2);
        let reader = {
            let map = Arc::clone(&map);
            thread::spawn(move || assert_eq!(map.look(stays), Some(2)))
        };
        map.take(leaves);
        reader.join().unwrap();
        assert_eq!(map.overflow(), 1);
    });
}

/// A key is removed, and another of its tag takes its slot: neither is seen with the other's value.
fn keys_never_mix<M: Put + Send + Sync + 'static>(new: fn() -> M) {
    loom::model(move || {
        let map = Arc::new(new());
        let further = crowd(&*map);
        let (old, new) = (further[0], further[1]);
        map.put(old, 1);
        let reader = {
            let map = Arc::clone(&map);
            thread::spawn(move || {
                assert!(matches!(map.look(new), None | Some(2)));
                assert!(matches!(map.look(old), None | Some(1)));
            })
        };
        map.take(old);
        map.put(new, 2);
        reader.join().unwrap();
        assert_eq!(map.overflow(), 1);
    });
}

/// A value of several words is replaced where it is.
#[test]
fn inline_map_reader_never_sees_a_torn_value_in_an_overflow() {
    loom::model(|| {
        let map = Arc::new(inline());
        let held = crowd(&*map)[0];
        map.put(held, 1);
        let reader = {
            let map = Arc::clone(&map);
            thread::spawn(move || {
                let first = map.look(held).expect("present throughout");
                let then = map.look(held).expect("present throughout");
                assert!(1 <= first && first <= then && then <= 2, "{first}, then {then}");
            })
        };
        map.put(held, 2);
        reader.join().unwrap();
        assert_eq!(map.overflow(), 1);
    });
}

#[test]
fn hash_map_reader_sees_the_first_key_of_an_overflow_at_once_or_not_yet() {
    put_is_seen_at_once_or_not_yet(map, 0);
}

#[test]
fn inline_map_reader_sees_the_first_key_of_an_overflow_at_once_or_not_yet() {
    put_is_seen_at_once_or_not_yet(inline, 0);
}

#[test]
fn hash_map_reader_sees_a_further_key_of_an_overflow_at_once_or_not_yet() {
    put_is_seen_at_once_or_not_yet(map, 1);
}

#[test]
fn inline_map_reader_sees_a_further_key_of_an_overflow_at_once_or_not_yet() {
    put_is_seen_at_once_or_not_yet(inline, 1);
}

#[test]
fn hash_map_keys_of_one_slot_of_an_overflow_never_mix() {
    keys_never_mix(map);
}

#[test]
fn inline_map_keys_of_one_slot_of_an_overflow_never_mix() {
    keys_never_mix(inline);
}

#[test]
fn hash_map_reader_sees_a_key_of_an_overflow_that_was_empty_at_once_or_not_yet() {
    put_anew_is_seen_at_once_or_not_yet(map);
}

#[test]
fn inline_map_reader_sees_a_key_of_an_overflow_that_was_empty_at_once_or_not_yet() {
    put_anew_is_seen_at_once_or_not_yet(inline);
}

#[test]
fn hash_map_reader_that_misses_the_last_key_of_an_overflow_sees_what_came_before() {
    last_key_leaves_after_what_came_before(map);
}

#[test]
fn inline_map_reader_that_misses_the_last_key_of_an_overflow_sees_what_came_before() {
    last_key_leaves_after_what_came_before(inline);
}

#[test]
fn hash_map_reader_never_misses_a_key_that_stays_in_an_overflow() {
    key_that_stays_is_never_missed(map);
}

#[test]
fn inline_map_reader_never_misses_a_key_that_stays_in_an_overflow() {
    key_that_stays_is_never_missed(inline);
}
