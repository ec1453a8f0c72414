//! Of equal values the first stays, however they are inserted.

use std::hash::BuildHasher;

use koel::{HashMap, HashSet};

use crate::common::hashers::{CONSTANT, TWENTY_COLLIDE};
use crate::common::{AnyMap, Ledger, Noted, fixed_configs, growing_configs, seed, seeded};

/// Values each of which is equal to three others: its note is its position.
pub(crate) fn repeated(values: u64) -> impl Iterator<Item = Noted> {
    (0..4 * values).map(move |n| Noted { key: n % values, note: n })
}

/// Whether the first of each group of equal values is there.
pub(crate) fn has_the_first<S: BuildHasher>(set: &HashSet<Noted, S>, values: u64) -> bool {
    let pin = set.pin();
    pin.len() as u64 == values && pin.iter().all(|noted| noted.note == noted.key && noted.key < values)
}

/// Into sets that have some of them, or none.
fn keeps_the_first<S: BuildHasher + Clone + Send + Sync>(hasher: S) {
    // One value, a batch, and more than a segment has.
    for values in [1, 20, 300] {
        for config in growing_configs().into_iter().chain(fixed_configs(values as usize)) {
            let new = || HashSet::from(HashMap::<Noted, (), S>::build(config, hasher.clone()));
            let (shared, mut own) = (new(), new());
            shared.extend(repeated(values));
            Extend::extend(&mut &shared, repeated(values).skip(1));
            Extend::extend(&mut own, repeated(values).take(values.div_ceil(2) as usize));
            Extend::extend(&mut own, &repeated(values).collect::<Vec<_>>());
            assert!(has_the_first(&shared, values), "{values} {config:?}");
            assert!(has_the_first(&own, values), "{values} {config:?}, without locks");
        }
    }
}

#[test]
fn of_equal_values_the_first_stays() {
    keeps_the_first(seeded(seed()));
    keeps_the_first(TWENTY_COLLIDE);
    keeps_the_first(CONSTANT);
    assert!(has_the_first(&repeated(20_000).collect::<HashSet<_>>(), 20_000));
    assert!(has_the_first(&HashSet::from([0, 1, 2].map(|note| Noted { key: 0, note })), 1));
}

/// It does not wait for a view to end, as a replaced value would.
#[test]
fn what_comes_when_an_equal_value_is_there_is_dropped_at_once() {
    let ledger = Ledger::new();
    let mut set: HashSet<_> = (0..1000).map(|n| ledger.value(n % 100)).collect();
    assert_eq!((set.len(), ledger.alive()), (100, 100));
    set.extend((0..1000).map(|n| ledger.value(n % 200)));
    assert_eq!((set.len(), ledger.alive()), (200, 200));
    Extend::extend(&mut set, (0..1000).map(|n| ledger.value(n % 300)));
    assert_eq!((set.len(), ledger.alive()), (300, 300));
    drop(set);
    ledger.assert_settled("equal values");
}
