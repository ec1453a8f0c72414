//! Closures that panic, and closures that use a map: the same one, and others.

use koel::{Compute, HashMap, InlineMap, Operation};

use super::injected::Subject;
use crate::common::fuse::{Fused, Key, Site, arm, disarm, tick};
use crate::common::{Config, catch, ignore, laws};
use crate::{assert_same, assert_works};

fn filled<M: Subject>(config: Config) -> M {
    let map = M::build(config, Fused::new());
    (0..50).for_each(|n| assert_eq!(map.insert(Key(n), n), None));
    map
}

/// Name, and what it does to a map with a closure.
type WithClosure<M> = (&'static str, fn(&M, &dyn Fn()));

/// Every operation that calls a closure under the lock, with `body` in the closure.
fn operations<M: Subject>() -> Vec<WithClosure<M>> {
    vec![
        ("get_or_insert_with", |map, body| {
            map.get_or_insert_with(Key(100), || {
                body();
                1
            });
        }),
        ("try_insert_with", |map, body| {
            let _ = map.try_insert_with(Key(100), || {
                body();
                1
            });
        }),
        ("update", |map, body| {
            map.update(Key(7), |value| {
                body();
                value
            });
        }),
        ("update_or_insert_with, update", |map, body| {
            map.update_or_insert_with(
                Key(7),
                |value| {
                    body();
                    value
                },
                || unreachable!(),
            );
        }),
        ("update_or_insert_with, make", |map, body| {
            map.update_or_insert_with(
                Key(100),
                |_| unreachable!(),
                || {
                    body();
                    1
                },
            );
        }),
        ("compute, present", |map, body| {
            map.compute(Key(7), |value| {
                body();
                Operation::Insert::<_, ()>(value.unwrap())
            });
        }),
        ("compute, absent", |map, body| {
            map.compute(Key(100), |_| {
                body();
                Operation::Insert::<_, ()>(1)
            });
        }),
        ("remove_if", |map, body| {
            let _ = map.remove_if(&Key(7), |_, _| {
                body();
                false
            });
        }),
    ]
}

fn panicking<M: Subject>() {
    for config in [Config::GROWING, Config::GROWING.segments_of(8), Config::fixed(60)] {
        for (what, operation) in operations::<M>() {
            let map = filled::<M>(config);
            let before = map.entries();
            let message = catch(|| operation(&map, &|| panic!("from {what}"))).unwrap_err();
            assert_eq!(message, format!("from {what}"));
            assert_same(what, &map, &before);
            assert_works(&map);
        }
    }
}

/// Name, and what it does to a map.
type Write<M> = (&'static str, fn(&M));

/// Operations that would lock the same map again, and so wait for themselves.
fn writes<M: Subject>() -> Vec<Write<M>> {
    vec![
        ("insert", |map| ignore(map.insert(Key(200), 1))),
        ("insert over", |map| ignore(map.insert(Key(7), 1))),
        ("remove", |map| ignore(map.remove(&Key(8)))),
        ("remove, absent", |map| ignore(map.remove(&Key(208)))),
        ("try_insert", |map| ignore(map.try_insert(Key(200), 1))),
        ("update", |map| ignore(map.update(Key(9), |value| value))),
        ("compute", |map| ignore(map.compute(Key(9), |_| Operation::Abort(())))),
        ("get_or_insert_with, absent", |map| ignore(map.get_or_insert_with(Key(200), || 1))),
        ("iterate", |map| drop(map.entries())),
        ("retain", |map| map.retain(|_, _| true)),
        ("clear", |map| map.clear()),
        ("drain, dropped at once", |map| drop(map.drain(0))),
        ("reserve", |map| map.reserve(10_000)),
        ("shrink_to_fit", |map| map.shrink_to_fit()),
        ("stats", |map| ignore(map.stats())),
        ("clone", |map| drop(map.duplicate())),
    ]
}

fn writing_to_the_same_map<M: Subject>() {
    [Config::GROWING.segments_of(16), Config::fixed(60)].into_iter().for_each(writing_to_one_of::<M>);
}

fn writing_to_one_of<M: Subject>(config: Config) {
    for (what, operation) in operations::<M>() {
        for (inner, write) in writes::<M>() {
            let map = filled::<M>(config);
            let before = map.entries();
            let message = catch(|| operation(&map, &|| write(&map))).unwrap_err();
            assert!(message.contains("same map"), "{inner} in {what}: {message}");
            assert_same(what, &map, &before);
            assert_works(&map);
            // A closure that catches the panic goes on.
            operation(&map, &|| assert!(catch(|| write(&map)).is_err()));
            assert_works(&map);
        }
    }
}

/// The drain is dropped in the unwind, and must not panic again.
fn draining_the_same_map<M: Subject>() {
    for (what, operation) in operations::<M>() {
        let map = filled::<M>(Config::GROWING);
        let before = map.entries();
        let message = catch(|| operation(&map, &|| drop(map.drain(1)))).unwrap_err();
        assert!(message.contains("same map"), "{message}");
        assert_same(what, &map, &before);
        assert_works(&map);
    }
}

fn reading_the_same_map<M: Subject>() {
    for (_, operation) in operations::<M>() {
        let map = filled::<M>(Config::GROWING.segments_of(16));
        operation(&map, &|| {
            for n in 0..50 {
                assert_eq!(map.get(&Key(n)), Some(n));
                assert!(map.contains_key(&Key(n)) && map.may_contain(&Key(n)));
            }
            assert_eq!(map.get_many(&[Key(1), Key(1000)]), [Some(1), None]);
            assert_eq!(map.get_or_insert_with(Key(3), || unreachable!("it is there")), 3);
            assert_eq!(map.len(), 50);
            assert!(map.memory_usage() > 0 && map.capacity() > 0);
        });
        assert_works(&map);
    }
}

fn writing_to_another_map<M: Subject>() {
    for (what, operation) in operations::<M>() {
        let (map, other, third) = (
            filled::<M>(Config::GROWING),
            filled::<M>(Config::GROWING),
            M::build(Config::GROWING, Fused::new()),
        );
        operation(&map, &|| {
            other.insert(Key(200), 1);
            operation(&other, &|| {
                third.insert(Key(1), 2);
                let message = catch(|| map.insert(Key(300), 1)).unwrap_err();
                assert!(message.contains("same map"), "{what}: {message}");
                assert_eq!(map.get(&Key(1)), Some(1));
            });
            other.clear();
        });
        assert!(other.is_empty() && third.len() == 1);
        [map, other, third].iter().for_each(assert_works);
    }
}

/// Closures within closures, each under the lock of a map of its own.
fn nesting<M: Subject>() {
    fn nest<M: Subject>(maps: &[M]) -> u64 {
        let Some((first, rest)) = maps.split_first() else { return 0 };
        match first.compute(Key(1), |_| Operation::Insert::<_, ()>(1 + nest(rest))) {
            Compute::Inserted(_, depth) => depth,
            other => panic!("{other:?}"),
        }
    }
    let maps: Vec<M> = (0..16).map(|_| M::build(Config::GROWING, Fused::new())).collect();
    assert_eq!(nest(&maps), 16);
    maps.iter().for_each(assert_works);
    let maps: Vec<M> = (0..17).map(|_| M::build(Config::GROWING, Fused::new())).collect();
    let message = catch(|| nest(&maps)).unwrap_err();
    assert!(message.contains("16"), "{message}");
    assert!(maps.iter().all(M::is_empty));
    maps.iter().for_each(assert_works);
}

/// Operations that call closures without a lock: their closures may write.
fn unlocked<M: Subject>() {
    let map = filled::<M>(Config::GROWING);
    map.retain(|key, value| {
        if key.0 < 50 {
            map.insert(Key(key.0 + 100), *value);
        }
        key.0 % 2 == 0
    });
    assert!((0..50).all(|n| map.contains_key(&Key(n)) == (n % 2 == 0)));
    map.walk(usize::MAX, |key, _| ignore(map.remove(&key)));
    assert!(map.is_empty());
    for n in 0.. {
        let map = filled::<M>(Config::GROWING);
        arm(Site::Closure, n);
        let result = catch(|| {
            map.retain(|key, _| {
                tick(Site::Closure);
                key.0 % 2 == 0
            });
        });
        disarm();
        if result.is_ok() {
            assert_eq!((n, map.len()), (50, 25));
            break;
        }
        assert!((0..50).step_by(2).all(|n| map.contains_key(&Key(n))));
        assert!(map.len() >= 50 - n, "{} left after {n} verdicts", map.len());
        assert_works(&map);
    }
}

laws! { <Key, u64, Fused>
    panicking => a_closure_that_panics_leaves_a_hash_map_as_it_was, a_closure_that_panics_leaves_an_inline_map_as_it_was;
    writing_to_the_same_map => a_closure_that_writes_to_its_hash_map_panics, a_closure_that_writes_to_its_inline_map_panics;
    draining_the_same_map => a_closure_that_drains_its_hash_map_panics, a_closure_that_drains_its_inline_map_panics;
    reading_the_same_map => a_closure_may_read_its_hash_map, a_closure_may_read_its_inline_map;
    writing_to_another_map => a_closure_may_write_to_another_hash_map, a_closure_may_write_to_another_inline_map;
    nesting => sixteen_hash_maps_may_be_locked_within_one_another, sixteen_inline_maps_may_be_locked_within_one_another;
    unlocked => retain_of_a_hash_map_may_write_and_panic, retain_of_an_inline_map_may_write_and_panic;
}

/// During unwinding, if no further lock may be taken to drain the rest.
#[test]
fn a_drain_that_is_dropped_under_sixteen_locks_does_not_panic_again() {
    fn nest<D>(maps: &[HashMap<u32, u32>], drain: D) {
        let Some((first, rest)) = maps.split_first() else {
            let _drain = drain;
            panic!("in the middle of it");
        };
        let mut drain = Some(drain);
        first.pin().get_or_insert_with(1, || {
            nest(rest, drain.take().expect("it runs once"));
            0
        });
    }
    let maps: Vec<HashMap<u32, u32>> = (0..16).map(|_| HashMap::new()).collect();
    let (map, inline) = (HashMap::from([(1, 1)]), InlineMap::from([(1, 1)]));
    let pin = map.pin();
    let messages = [catch(|| nest(&maps, pin.drain())), catch(|| nest(&maps, inline.drain()))];
    assert!(messages.iter().all(|message| message == &Err("in the middle of it".to_owned())), "{messages:?}");
    assert!(maps.iter().all(HashMap::is_empty) && (map.len(), inline.len()) == (1, 1));
}
