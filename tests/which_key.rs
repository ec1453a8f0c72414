//! Which of two keys that are equal, but can be told apart, a map has afterwards. And which of several values stays.

use koel::{Compute, HashMap, InlineMap, Operation};

mod common;

use common::{Noted, catch};

const OLD: Noted = Noted { key: 1, note: 0 };
const NEW: Noted = Noted { key: 1, note: 1 };

/// An operation that replaces an entry of a `HashMap` brings its key along; one that only looks does not, nor one that has the
/// key by reference.
#[test]
fn of_a_hash_map() {
    type Write = fn(&mut HashMap<Noted, u64>);
    let is_replaced: [Write; 8] = [
        |map| _ = map.pin().insert(NEW, 2).copied(),
        |map| _ = map.pin().update(NEW, |n| n + 1).copied(),
        |map| _ = *map.pin().update_or_insert(NEW, |n| n + 1, 1),
        |map| _ = *map.pin().update_or_insert_with(NEW, |n| n + 1, || 1),
        |map| {
            let pin = map.pin();
            assert!(matches!(pin.compute(NEW, |_| Operation::Insert::<_, ()>(2)), Compute::Updated { .. }));
        },
        |map| map.extend([(NEW, 3)]),
        |map| Extend::extend(map, [(NEW, 3)]),
        |map| *map = [(OLD, 1), (NEW, 2)].into_iter().collect(),
    ];
    let stays: [Write; 9] = [
        |map| assert!(map.pin().try_insert(NEW, 2).is_err()),
        |map| _ = *map.pin().get_or_insert(NEW, 2),
        |map| _ = *map.pin().get_or_insert_with(NEW, || 2),
        |map| assert!(matches!(map.pin().compute(NEW, |_| Operation::Abort(())), Compute::Aborted(()))),
        |map| _ = map.pin().update_ref(&NEW, |n| n + 1).copied(),
        |map| _ = *map.pin().update_or_insert_ref(&NEW, |n| n + 1, 1),
        |map| _ = *map.pin().update_or_insert_with_ref(&NEW, |n| n + 1, || 1),
        |map| {
            let pin = map.pin();
            assert!(matches!(
                pin.compute_ref(&NEW, |_| Operation::Insert::<_, ()>(2)),
                Compute::Updated { .. }
            ));
        },
        |map| {
            let panics = || map.pin().update(NEW, |_| panic!("while it is updated")).copied();
            assert!(catch(panics).is_err());
        },
    ];
    for (writes, note) in [(&is_replaced[..], 1), (&stays, 0)] {
        for (which, write) in writes.iter().enumerate() {
            let mut map = HashMap::from([(OLD, 1)]);
            write(&mut map);
            assert_eq!(map.pin().get_key_value(&NEW).unwrap().0.note, note, "write {which}");
            assert_eq!(map.len(), 1);
        }
    }
}

/// An `InlineMap` keeps the present key for as long as it is there.
#[test]
fn of_an_inline_map() {
    let mut map = InlineMap::from([(OLD, 1_u64)]);
    map.insert(NEW, 2);
    map.update(NEW, |n| n);
    map.update_or_insert(NEW, |n| n, 0);
    map.extend([(NEW, 3)]);
    Extend::extend(&mut map, [(NEW, 4)]);
    assert_eq!(map.get_key_value(&NEW).unwrap().0.note, 0);
    let computed = map.compute(NEW, |_| Operation::Insert::<_, ()>(5));
    assert!(matches!(computed, Compute::Updated { new: (key, 5), .. } if key.note == 0), "{computed:?}");
    assert_eq!(map.remove_entry(&NEW).unwrap().0.note, 0);
    map.insert(NEW, 6);
    assert_eq!(map.get_key_value(&OLD).unwrap().0.note, 1);
}

/// Until it has seen the value that stays.
#[test]
fn who_is_asked_what_stays_is_asked_again_about_what_has_come_meanwhile() {
    for stays in [false, true] {
        let map = HashMap::from([(1, 10)]);
        let mut asked = Vec::new();
        map.retain(|_, value| {
            asked.push(*value);
            if *value < 12 {
                map.pin().insert(1, value + 1);
            }
            stays && *value == 12
        });
        assert_eq!((asked, map.pin().get(&1).copied()), (vec![10, 11, 12], stays.then_some(12)));
    }
}

#[cfg(feature = "rayon")]
#[test]
fn of_several_values_the_last_stays_when_many_threads_insert() {
    use rayon::prelude::*;

    let pairs = || (0..80_000_u64).into_par_iter().map(|n| (n % 1000, n));
    let pool = rayon::ThreadPoolBuilder::new().num_threads(8).build().unwrap();
    pool.install(|| {
        let (map, inline) = (HashMap::new(), InlineMap::new());
        (&map).par_extend(pairs());
        (&inline).par_extend(pairs());
        for key in 0..1000 {
            assert_eq!((map.pin().get(&key), inline.get(&key)), (Some(&(79_000 + key)), Some(79_000 + key)));
        }
    });
}
