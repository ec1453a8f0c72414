//! A map with exclusive access: values are changed in place, and entries are removed by value and gone at once; no forgotten
//! view is in the way.

mod common;

use std::collections::BTreeSet;
use std::hash::BuildHasher;
use std::sync::Arc;

use common::hashers::{CONSTANT, TWENTY_COLLIDE};
use common::{AnyMap, Config, Counted, Ledger, fixed_configs, growing_configs, on_threads, seeded};
use koel::HashMap;

const ENTRIES: u64 = 300;

fn all_configs() -> impl Iterator<Item = Config> {
    growing_configs().into_iter().chain(fixed_configs(ENTRIES as usize))
}

/// Changes and removes the entries, one by one, without affecting any other.
fn changes_and_takes<V, S>(config: Config, hasher: S, value: fn(u64) -> V)
where
    V: Clone + PartialEq + core::fmt::Debug + Send + Sync,
    S: BuildHasher + Clone + Send + Sync,
{
    let mut map = HashMap::<u64, V, S>::build(config, hasher);
    (0..ENTRIES).for_each(|n| assert!(map.pin().insert(n, value(n)).is_none()));
    for n in 0..ENTRIES {
        *map.get_mut(&n).expect("it is there") = value(n + 1000);
    }
    assert!(map.get_mut(&ENTRIES).is_none() && map.take(&ENTRIES).is_none());
    // As all other threads see them.
    on_threads(2, |_| {
        (0..ENTRIES).for_each(|n| assert_eq!(map.pin().get(&n), Some(&value(n + 1000))));
    });
    for n in (0..ENTRIES).step_by(2) {
        assert_eq!(map.take(&n), Some(value(n + 1000)));
        assert_eq!((map.take(&n), map.pin().get(&n)), (None, None));
    }
    assert_eq!(map.len() as u64, ENTRIES / 2);
    (1..ENTRIES).step_by(2).for_each(|n| assert_eq!(map.take_entry(&n), Some((n, value(n + 1000)))));
    assert!(map.is_empty() && map.pin().iter().next().is_none());
    // And there is room for them again.
    (0..ENTRIES).for_each(|n| assert!(map.pin().insert(n, value(n)).is_none()));
    assert!((0..ENTRIES).all(|n| map.pin().get(&n) == Some(&value(n))) && map.len() as u64 == ENTRIES);
}

#[test]
fn what_is_changed_is_seen_by_all_and_what_is_taken_by_nobody() {
    for config in all_configs() {
        changes_and_takes(config, seeded(7), |n| n);
        changes_and_takes(config, seeded(7), |n| n.to_string());
        changes_and_takes(config, seeded(7), |n| [n; 100]);
        changes_and_takes(config, TWENTY_COLLIDE, |n| n);
        changes_and_takes(config, CONSTANT, |n| n.to_string());
    }
}

#[test]
fn a_walk_over_values_to_be_changed_yields_each_once_and_knows_how_many_are_left() {
    for config in all_configs() {
        let mut map = HashMap::<u64, u64, _>::build(config, seeded(7));
        assert_eq!(map.values_mut().len(), 0);
        (0..ENTRIES).for_each(|n| assert!(map.pin().insert(n, n).is_none()));
        let mut walk = map.values_mut();
        let mut seen = BTreeSet::new();
        for left in (0..ENTRIES as usize).rev() {
            let value = walk.next().expect("one more");
            assert!(seen.insert(*value) && walk.len() == left);
            *value += 1000;
        }
        assert!(walk.next().is_none() && walk.next().is_none());
        assert!((0..ENTRIES).all(|n| map.pin().get(&n) == Some(&(n + 1000))));
        // All at the same time.
        let mut values: Vec<&mut u64> = map.values_mut().collect();
        values.iter_mut().for_each(|value| **value += 1000);
        assert!((0..ENTRIES).all(|n| map.pin().get(&n) == Some(&(n + 2000))));
        // Each with its key.
        assert_eq!(map.iter_mut().len() as u64, ENTRIES);
        for (key, value) in &mut map {
            assert_eq!(*value, key + 2000);
            *value = key * key;
        }
        assert!((0..ENTRIES).all(|n| map.pin().get(&n) == Some(&(n * n))));
    }
}

/// Extracts every third entry, in two walks; the first one also changes values of entries that stay.
fn extracts<S: BuildHasher + Clone + Send + Sync>(config: Config, hasher: S) {
    let mut map = HashMap::<u64, String, S>::build(config, hasher);
    assert_eq!(map.extract_if(|_, _| true).size_hint(), (0, Some(0)));
    (0..ENTRIES).for_each(|n| assert!(map.pin().insert(n, n.to_string()).is_none()));
    let mut seen = BTreeSet::new();
    let mut walk = map.extract_if(|&n, value| {
        assert!(seen.insert(n) && *value == n.to_string());
        value.push('!');
        n % 3 == 0
    });
    let mut taken: Vec<(u64, String)> = walk.by_ref().take(20).collect();
    assert_eq!(walk.size_hint(), (0, Some(ENTRIES as usize - 20)));
    drop(walk);
    let is_right = |n: u64, value: &str| value.strip_suffix('!').unwrap_or(value) == n.to_string();
    let is_changed = |value: &str| value.ends_with('!');
    assert!(taken.iter().all(|(n, value)| n % 3 == 0 && is_right(*n, value) && is_changed(value)));
    assert_eq!(map.len() as u64, ENTRIES - 20);
    let as_left = |n: u64, value: &str| is_right(n, value) && is_changed(value) == seen.contains(&n);
    assert!(map.pin().iter().all(|(&n, value)| as_left(n, value)));
    taken.extend(map.extract_if(|n, _| n % 3 == 0));
    let thirds: Vec<u64> = (0..ENTRIES).step_by(3).collect();
    assert_eq!(taken.len(), thirds.len());
    assert!(taken.iter().map(|(n, _)| *n).collect::<BTreeSet<u64>>().into_iter().eq(thirds));
    (0..ENTRIES).for_each(|n| assert_eq!(map.pin().contains_key(&n), n % 3 != 0, "{n}"));
    assert_eq!(map.extract_if(|_, _| true).count(), ENTRIES as usize - taken.len());
    assert!(map.is_empty() && map.pin().insert(1, String::new()).is_none());
}

#[test]
fn what_is_extracted_is_had_at_once_and_all_else_stays() {
    for config in all_configs() {
        extracts(config, seeded(7));
        extracts(config, TWENTY_COLLIDE);
        extracts(config, CONSTANT);
    }
}

fn filled(ledger: &Arc<Ledger>, config: Config) -> HashMap<Counted, Counted, common::Seeded> {
    let map = HashMap::build(config, seeded(7));
    (0..ENTRIES).for_each(|n| assert!(map.pin().insert(ledger.value(n), ledger.value(n)).is_none()));
    map
}

/// Even if views were forgotten, for which entries that are removed in other ways would wait.
#[test]
fn what_is_taken_is_the_caller_s_and_waits_for_no_view() {
    for (config, forgets) in all_configs().flat_map(|config| [(config, false), (config, true)]) {
        let ledger = Ledger::new();
        let mut map = filled(&ledger, config);
        if forgets {
            let key = ledger.value(1);
            let pin = map.pin();
            assert_eq!(pin.get(&key).map(|value| value.n), Some(1));
            core::mem::forget(pin);
            core::mem::forget(map.pin_owned().into_get(&key));
            let mut walk = map.pin_owned().into_iter_cloned();
            drop(walk.next());
            core::mem::forget(walk);
        }
        let before = ledger.alive();
        let keys: Vec<Counted> = (0..ENTRIES).map(|n| ledger.value(n)).collect();
        let taken: Vec<Counted> = keys.iter().map(|key| map.take(key).expect("it is there")).collect();
        assert_eq!(ledger.alive(), before - ENTRIES as usize + keys.len(), "keys that wait");
        assert!(map.is_empty() && taken.iter().zip(0..).all(|(value, n)| value.n == n));
        drop(taken);
        assert_eq!(ledger.alive(), before - 2 * ENTRIES as usize + keys.len(), "values that wait");
        assert!(keys.iter().all(|key| map.get_mut(key).is_none()));
        drop(keys);
        assert_eq!(ledger.alive(), before - 2 * ENTRIES as usize);
        (0..ENTRIES).for_each(|n| assert!(map.pin().insert(ledger.value(n), ledger.value(n)).is_none()));
        assert_eq!(map.extract_if(|key, _| key.n % 2 == 0).count() as u64, ENTRIES / 2);
        assert_eq!(ledger.alive(), before - ENTRIES as usize, "what is extracted waits");
    }
}

/// A value that was replaced in place belongs to the caller as well.
#[test]
fn a_value_that_is_replaced_in_place_is_dropped_there() {
    let ledger = Ledger::new();
    let mut map = filled(&ledger, Config::GROWING);
    let before = ledger.alive();
    map.values_mut().for_each(|value| *value = ledger.value(value.n + 1000));
    assert_eq!(ledger.alive(), before);
    let seven = ledger.value(7);
    *map.get_mut(&seven).expect("it is there") = ledger.value(1);
    assert_eq!((ledger.alive(), map.pin()[&seven].n), (before + 1, 1));
    drop(seven);
    drop(map);
    ledger.assert_settled("replaced in place");
}
