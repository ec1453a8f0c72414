//! [`HashSet`]: its answers are those of the standard library's, also on several threads; its traits; each value is dropped
//! once.

#[path = "../common/mod.rs"]
mod common;
mod equal_values;
#[cfg(feature = "rayon")]
mod rayon;
#[cfg(feature = "serde")]
mod serde;

use std::collections::HashSet as Model;
use std::sync::atomic::{AtomicBool, Ordering};

use common::{
    AnyMap, Counted, Ledger, Noted, Seeded, SetAtEnd, env_number, fixed_configs, growing_configs, on_threads,
    seed, seeded,
};
use koel::{HashMap, HashSet};
use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};

type Set = HashSet<Noted, Seeded>;

const VALUES: u64 = 60;

/// Performs one operation on both; `note` is new.
fn apply(set: &Set, model: &mut Model<Noted>, what: u8, value: u64, note: u64) {
    let new = Noted { key: value, note };
    let pin = set.pin();
    let note_of = |noted: Option<Noted>| noted.map(|noted| noted.note);
    match what {
        0 | 1 => assert_eq!(set.insert(new), model.insert(new)),
        2 => assert_eq!(pin.insert(new), model.insert(new)),
        3 => assert_eq!(note_of(set.replace(new).map(|old| *old)), note_of(model.replace(new))),
        4 => assert_eq!(note_of(pin.replace(new).copied()), note_of(model.replace(new))),
        5 => assert_eq!(set.remove(&value), model.remove(&new)),
        6 => assert_eq!(note_of(set.take(&value).map(|old| *old)), note_of(model.take(&new))),
        7 => assert_eq!(note_of(pin.take(&value).copied()), note_of(model.take(&new))),
        8 => assert_eq!(set.checked_insert(new).ok(), Some(model.insert(new))),
        9 => assert_eq!(pin.checked_insert(new).ok(), Some(model.insert(new))),
        10 => {
            let expected = model.get(&new).copied().unwrap_or(new);
            let is_new = model.insert(new);
            let got = if note % 4 == 0 {
                pin.get_or_insert(new)
            } else {
                pin.get_or_insert_with(&value, |&key| {
                    assert!(is_new && key == value);
                    new
                })
            };
            assert_eq!(got.note, expected.note);
        }
        11 => {
            let keep = |noted: &Noted| noted.key % 3 != value % 3;
            if note % 4 == 0 {
                set.retain(keep)
            } else {
                pin.retain(keep)
            }
            model.retain(keep);
        }
        12 if note % 8 == 0 || note % 8 == 2 => empty(set, model, note),
        13 => remove_if(set, model, value, note),
        12 | 14 => {
            // Of equal values the first stays.
            let all = [new, Noted { key: value / 2, note: note + 1 }];
            set.extend(all);
            model.extend(all);
        }
        _ => unreachable!("an operation that is not known"),
    }
}

/// Removes all values, by the set, by a pin, or by a walk over them.
fn empty(set: &Set, model: &mut Model<Noted>, note: u64) {
    match note % 16 {
        2 => set.clear(),
        10 => set.pin().clear(),
        _ => {
            let pin = set.pin();
            let drained: Model<Noted> = pin.drain().copied().collect();
            assert_eq!(drained, *model);
        }
    }
    model.clear();
}

/// Removes a value, if its note says so, by the set or by a pin.
fn remove_if(set: &Set, model: &mut Model<Noted>, value: u64, note: u64) {
    let there = model.get(&Noted { key: value, note }).copied();
    let goes = there.is_some_and(|noted| noted.note % 3 != 0);
    let condition = |noted: &Noted| {
        assert_eq!(Some(noted.note), there.map(|there| there.note));
        noted.note % 3 != 0
    };
    let gone =
        if note % 4 == 0 { set.remove_if(&value, condition) } else { set.pin().remove_if(&value, condition) };
    assert_eq!(gone, goes);
    model.retain(|noted| noted.key != value || !goes);
}

fn agree(set: &Set, model: &Model<Noted>) {
    let pin = set.pin();
    assert_eq!(
        (set.len(), pin.len(), set.is_empty(), pin.is_empty()),
        (model.len(), model.len(), model.is_empty(), model.is_empty())
    );
    let mut present = [false; VALUES as usize];
    let values: Vec<u64> = (0..VALUES).collect();
    pin.contains_many(&values, &mut present);
    let mut by_reference = present.map(|present| !present);
    pin.contains_many_ref(&values.iter().collect::<Vec<_>>(), &mut by_reference);
    assert_eq!(by_reference, present);
    for (value, present) in (0..).zip(present) {
        let there = model.get(&Noted { key: value, note: 0 }).map(|noted| noted.note);
        assert_eq!(present, there.is_some());
        assert_eq!((set.contains(&value), pin.contains(&value)), (present, present));
        assert_eq!(set.get(&value).map(|noted| noted.note), there);
        assert_eq!(pin.get(&value).map(|noted| noted.note), there);
    }
    assert_eq!(pin.iter().copied().collect::<Model<_>>(), *model);
    assert_eq!(set.pin().into_iter_cloned().collect::<Model<_>>(), *model);
    let mut notes: Vec<u64> = set.pin().into_iter_with(|noted| noted.note).collect();
    let mut expected: Vec<u64> = model.iter().map(|noted| noted.note).collect();
    notes.sort_unstable();
    expected.sort_unstable();
    assert_eq!(notes, expected);
}

/// Extracts one even value, if there is any, and then all multiples of three.
fn extract(set: &mut Set, model: &mut Model<Noted>) {
    let all = set.len();
    let mut walk = set.extract_if(|noted| noted.key % 2 == 0);
    assert_eq!(walk.size_hint(), (0, Some(all)));
    let first = walk.next();
    assert_eq!(first.is_some(), model.iter().any(|noted| noted.key % 2 == 0));
    if let Some(even) = first {
        assert!(even.key % 2 == 0 && model.take(&even).is_some_and(|taken| taken.note == even.note));
    }
    let thirds: Model<Noted> = set.extract_if(|noted| noted.key % 3 == 0).collect();
    assert_eq!(thirds, model.iter().filter(|noted| noted.key % 3 == 0).copied().collect());
    model.retain(|noted| noted.key % 3 != 0);
}

#[test]
fn a_set_agrees_with_the_model() {
    let seed = seed();
    let config = ProptestConfig {
        cases: u32::try_from(env_number("KOEL_CASES", 500)).expect("fewer than 2^32 cases"),
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &bytes));
    let configs = [growing_configs(), fixed_configs(VALUES as usize)].concat();
    let operation = (0..15_u8, 0..VALUES);
    let input = (prop::sample::select(configs), any::<u64>(), prop::collection::vec(operation, 0..200));
    let result = runner.run(&input, |(config, hasher, operations)| {
        let map: HashMap<Noted, (), Seeded> = AnyMap::build(config, seeded(hasher));
        let (mut set, mut model) = (HashSet::from(map), Model::new());
        for (note, (what, value)) in (0..).zip(operations) {
            apply(&set, &mut model, what, value, 2 * note);
        }
        agree(&set, &model);
        let copy = set.clone();
        assert!(copy == set && copy.into_iter().collect::<Model<_>>() == model);
        extract(&mut set, &mut model);
        agree(&set, &model);
        Ok(())
    });
    if let Err(error) = result {
        panic!("with KOEL_SEED={seed}: {error}");
    }
}

/// Of two or four threads that insert a value at the same moment, or remove it.
#[test]
fn one_is_told_that_a_value_is_new_and_one_that_it_is_gone() {
    for threads in [2, 4] {
        let set: HashSet<u64> = HashSet::new();
        let counts = on_threads(threads, |_| {
            let new = (0..10_000).filter(|n| set.insert(*n)).count();
            let known = (0..10_000).filter(|n| set.contains(n)).count();
            (new, known)
        });
        assert_eq!(counts.iter().map(|(new, _)| new).sum::<usize>(), 10_000);
        assert!(counts.iter().all(|(_, known)| *known == 10_000) && set.len() == 10_000);
        let gone = on_threads(threads, |_| (0..10_000).filter(|n| set.remove(n)).count());
        assert_eq!((gone.iter().sum::<usize>(), set.len()), (10_000, 0));
    }
}

/// All threads get the same one of the values that they have made.
#[test]
fn an_interner_has_one_of_each() {
    let names: HashSet<std::sync::Arc<str>> = HashSet::new();
    let of_threads = on_threads(3, |_| {
        let pin = names.pin();
        let mut intern = |n: u64| std::sync::Arc::clone(pin.get_or_insert(n.to_string().into()));
        (0..2000).map(&mut intern).collect::<Vec<_>>()
    });
    for (n, name) in of_threads[0].iter().enumerate() {
        assert_eq!(**name, *n.to_string());
        assert!(of_threads.iter().all(|names| std::sync::Arc::ptr_eq(&names[n], name)));
    }
}

/// Also if another thread removes each value as soon as it is there.
#[test]
fn who_interns_has_what_was_there_or_made_with_its_view() {
    let names: HashSet<String> = HashSet::new();
    let done = AtomicBool::new(false);
    on_threads(2, |thread| {
        if thread == 0 {
            while !done.load(Ordering::Relaxed) {
                names.retain(|_| false);
            }
            return;
        }
        let _end = SetAtEnd(&done);
        for n in 0..10_000 {
            let text = (n % 5).to_string();
            let name = names.pin().into_get_or_insert_with(text.as_str(), str::to_owned);
            assert_eq!(*name, text);
        }
    });
    names.clear();
    let ada = names.pin_owned().into_get_or_insert_with("ada", str::to_owned);
    std::thread::scope(|scope| {
        let again = names.pin_owned().into_get_or_insert_with("ada", |_| unreachable!());
        assert!(core::ptr::eq(&*ada, &*again), "another one");
        let names = &names;
        scope.spawn(move || assert!(names.remove("ada") && *again == "ada"));
    });
    assert!(*ada == "ada" && ada.into_pin().is_empty());
}

/// A value is made once from the key by which it was requested, and has to be equal to it.
#[test]
fn who_makes_another_value_than_was_asked_for_is_told_and_the_set_is_as_it_was() {
    let names: HashSet<String> = HashSet::from(["ada".to_string()]);
    let pin = names.pin();
    let made = |name: &'static str, own: fn(&str) -> String| {
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| pin.get_or_insert_with(name, own).clone()))
    };
    let wrong = made("bob", |_| "eve".to_string()).unwrap_err();
    assert_eq!(wrong.downcast_ref(), Some(&"what was made for a value is not equal to it"));
    assert_eq!(made("bob", |_| panic!("no")).unwrap_err().downcast_ref(), Some(&"no"));
    assert!(names.len() == 1 && !names.contains("eve") && !names.contains("bob"));
    assert_eq!(made("ada", |_| panic!("it is there")).unwrap(), "ada");
    assert_eq!((made("bob", str::to_owned).unwrap(), names.len()), ("bob".to_string(), 2));
}

#[test]
fn each_value_is_dropped_once_and_not_before_its_view_ends() {
    let ledger = Ledger::new();
    let set: HashSet<Counted> = (0..200).map(|n| ledger.value(n)).collect();
    assert!(!set.insert(ledger.value(7)) && ledger.alive() == 200);
    let replaced = set.replace(ledger.value(7)).unwrap();
    let taken = set.take(&ledger.value(8)).unwrap();
    let found = set.pin_owned().into_get(&ledger.value(9)).unwrap();
    assert!(set.replace(ledger.value(1000)).is_none() && set.take(&ledger.value(2000)).is_none());
    drop(set.pin().drain());
    set.flush();
    assert_eq!((replaced.n, taken.n, found.n, set.len()), (7, 8, 9, 0));
    std::thread::scope(|scope| {
        scope.spawn(move || assert_eq!(format!("{found:?}"), format!("{:?}", *found)));
    });
    assert!(ledger.alive() > 0 && replaced.into_pin().is_empty());
    drop(taken);
    set.flush();
    assert_eq!(ledger.alive(), 0);
    set.extend((0..100).map(|n| ledger.value(n)));
    let mut values = set.into_iter();
    assert_eq!((values.len(), values.by_ref().take(10).count(), values.len()), (100, 10, 90));
    drop(values);
    ledger.assert_settled("a set");
}

#[test]
fn sets_are_collected_extended_compared_and_shown_as_sets_are() {
    let mut set: HashSet<u64> = [1, 2, 2].into_iter().collect();
    assert!(
        set == HashSet::from([2, 1]) && set != HashSet::from([1]) && HashSet::<u64>::default().is_empty()
    );
    Extend::extend(&mut set, [3]);
    Extend::extend(&mut set, &[4]);
    Extend::extend(&mut &set, [5]);
    Extend::extend(&mut &set, &[6, 6]);
    assert_eq!((set.len(), (1..=6).all(|n| set.contains(&n))), (6, true));
    let mut sum = 0;
    for n in &set.pin() {
        sum += n;
    }
    assert_eq!(sum, 21);
    let one = HashSet::from(["one"]);
    let debug = format!("{one:?} {:?} {:?} {}", one.pin(), one.get("one").unwrap(), one.get("one").unwrap());
    assert_eq!(debug, r#"{"one"} {"one"} "one" one"#);
    let sized = HashSet::<u64, _>::with_capacity_and_hasher(1000, std::hash::RandomState::new());
    let slots = sized.capacity();
    sized.extend(0..1000);
    assert_eq!(sized.capacity(), slots);
    sized.retain(|n| *n < 10);
    sized.shrink_to_fit();
    assert!(sized.capacity() < slots / 2 && sized.len() == 10);
    sized.reserve(5000);
    assert!(sized.capacity() > 5000 && sized.try_reserve(usize::MAX).is_err());
    let map = sized.into_map();
    assert!(map.len() == 10 && HashSet::from(map).contains(&3));
    let bounded = HashSet::from(HashMap::builder().fixed_capacity(10).build());
    assert!(
        common::catch(|| (0..100).for_each(|n| assert!(bounded.insert(n)))).unwrap_err().contains("full")
    );
}

#[test]
fn what_a_full_set_has_no_room_for_is_handed_back_and_what_is_there_stays() {
    for config in fixed_configs(20) {
        let ledger = Ledger::new();
        let map: HashMap<Counted, (), Seeded> = AnyMap::build(config, seeded(seed()));
        let set = HashSet::from(map);
        let taken = (0..100).take_while(|n| set.checked_insert(ledger.value(*n)) == Ok(true)).count() as u64;
        assert!((20..100).contains(&taken) && set.len() as u64 == taken, "{taken}");
        let full = set.checked_insert(ledger.value(taken)).unwrap_err();
        assert_eq!(full.key.n, taken);
        let again = set.pin().checked_insert(ledger.value(taken));
        assert_eq!(again.map_err(|full| full.key.n), Err(taken));
        let there = set.get(&ledger.value(0)).unwrap();
        assert_eq!(
            (set.checked_insert(ledger.value(0)), set.pin().checked_insert(ledger.value(1))),
            (Ok(false), Ok(false))
        );
        assert!(core::ptr::eq(&*there, &*set.get(&ledger.value(0)).unwrap()), "it was replaced");
        assert!((1..20).all(|n| set.remove(&ledger.value(n))));
        assert_eq!(set.checked_insert(full.key), Ok(true));
        drop(there);
        drop(set);
        ledger.assert_settled("a full set");
    }
}

#[test]
fn too_large_a_set_is_an_error_that_names_the_request() {
    assert_eq!(HashSet::<u64>::try_with_capacity(usize::MAX).unwrap_err().requested, usize::MAX);
    assert!(HashSet::<u64, _>::try_with_capacity_and_hasher(usize::MAX, seeded(1)).is_err());
    assert!(HashSet::<u64>::try_with_capacity(1000).unwrap().capacity() >= 1000);
    assert!(HashSet::<u64, _>::try_with_capacity_and_hasher(1000, seeded(1)).unwrap().capacity() >= 1000);
}
