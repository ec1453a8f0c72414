//! A panic in `Clone` or `Drop` of keys and values, and of iterators passed to `extend`: nothing is dropped twice, and
//! nothing leaks.

use std::cell::Cell;
use std::sync::Arc;

use koel::{Full, HashMap, Operation};

use crate::common::fuse::{Fragile, Fused, Site, arm, disarm, tick};
use crate::common::{AnyMap, Config, Ledger, catch};

type Map = HashMap<Fragile, Fragile, Fused>;

fn fragile(ledger: &Arc<Ledger>, n: u64) -> Fragile {
    Fragile(ledger.value(n))
}

fn filled(ledger: &Arc<Ledger>, config: Config) -> Map {
    let map = Map::build(config, Fused::new());
    for n in 0..50 {
        map.pin().insert(fragile(ledger, n), fragile(ledger, n));
    }
    map
}

fn assert_holds(map: &Map, keys: impl IntoIterator<Item = u64>) {
    let mut keys: Vec<u64> = keys.into_iter().collect();
    let pin = map.pin();
    let mut found: Vec<u64> = pin.iter().map(|(key, _)| key.0.n).collect();
    keys.sort_unstable();
    found.sort_unstable();
    assert_eq!(found, keys);
    assert_eq!(map.len(), keys.len());
    for n in keys {
        assert!(pin.get(&LookUp(n)).is_some(), "{n}");
    }
}

/// Performs `operation` on a new map for every n, with a fuse in the n-th call of `site`; `check(map, n)` checks the state that
/// a panic left. At the end everything is dropped once.
fn at_every_call(
    site: Site,
    config: Config,
    operation: impl Fn(&Arc<Ledger>, &mut Option<Map>),
    check: impl Fn(&Map, usize),
) -> usize {
    for n in 0.. {
        let ledger = Ledger::new();
        let mut map = Some(filled(&ledger, config));
        arm(site, n);
        let result = catch(|| operation(&ledger, &mut map));
        disarm();
        if let Some(map) = &map {
            if let Err(message) = &result {
                assert_eq!(*message, format!("fuse: {site:?}"));
                check(map, n);
            }
            // The map works.
            map.pin().insert(fragile(&ledger, 900), fragile(&ledger, 900));
            assert!(map.pin().remove(&LookUp(900)).is_some());
        }
        drop(map);
        ledger.assert_settled("after a panic");
        if result.is_ok() {
            return n;
        }
    }
    unreachable!()
}

fn with(map: &Option<Map>) -> &Map {
    map.as_ref().expect("only consuming operations take it")
}

#[test]
fn a_panic_in_clone_harms_neither_map() {
    let clone = |_: &Arc<Ledger>, map: &mut Option<Map>| drop(with(map).clone());
    let panics = at_every_call(Site::Clone, Config::GROWING, clone, |map, _| assert_holds(map, 0..50));
    assert_eq!(panics, 100);
}

#[test]
fn an_iterator_that_panics_in_extend_leaves_what_it_yielded() {
    for config in [Config::GROWING, Config::GROWING.segments_of(8), Config::fixed(200)] {
        let extend = |ledger: &Arc<Ledger>, map: &mut Option<Map>| {
            with(map).pin().extend((50..120).map(|n| {
                tick(Site::Closure);
                (fragile(ledger, n), fragile(ledger, n))
            }));
        };
        let panics = at_every_call(Site::Closure, config, extend, |map, n| {
            assert_holds(map, 0..50 + n as u64);
        });
        assert_eq!(panics, 70);
        let alone = |ledger: &Arc<Ledger>, map: &mut Option<Map>| {
            map.as_mut().expect("it is there").extend_alone((50..120).map(|n| {
                tick(Site::Closure);
                (fragile(ledger, n), fragile(ledger, n))
            }));
        };
        let panics = at_every_call(Site::Closure, config, alone, |map, n| {
            assert_holds(map, 0..50 + n as u64);
        });
        assert_eq!(panics, 70);
    }
}

/// By value: the caller drops it, at once.
#[test]
fn a_panic_in_the_drop_of_what_was_taken_out_leaks_nothing() {
    let take = |_: &Arc<Ledger>, map: &mut Option<Map>| {
        let map = map.as_mut().expect("it is there");
        assert_eq!(map.take(&LookUp(7)).expect("it is there").0.n, 7);
    };
    let without_7 = || (0..50).filter(|n| *n != 7);
    let panics = at_every_call(Site::Drop, Config::GROWING, take, |map, _| assert_holds(map, without_7()));
    assert_eq!(panics, 2);
    let look = |_: &Arc<Ledger>, map: &mut Option<Map>| {
        let map = map.as_mut().expect("it is there");
        assert!(map.get_mut(&LookUp(7)).is_some() && map.take_entry(&LookUp(77)).is_none());
    };
    let panics = at_every_call(Site::Hash, Config::GROWING, look, |map, _| assert_holds(map, 0..50));
    assert_eq!(panics, 0, "of keys, none is hashed");
}

/// Of half of the entries, wherever the walk over them ends.
#[test]
fn a_panic_while_entries_are_extracted_leaves_all_that_the_walk_has_not_taken_out() {
    let extract = |_: &Arc<Ledger>, map: &mut Option<Map>| {
        let map = map.as_mut().expect("it is there");
        let even = |key: &Fragile, _: &mut Fragile| {
            tick(Site::Closure);
            key.0.n % 2 == 0
        };
        assert_eq!(map.extract_if(even).count(), 25);
    };
    for config in [Config::GROWING, Config::GROWING.segments_of(8), Config::fixed(50)] {
        for (site, calls) in [(Site::Closure, 50), (Site::BuildHasher, 25), (Site::Drop, 50)] {
            let panics = at_every_call(site, config, extract, |map, n| {
                let left: Vec<u64> = map.pin().keys().map(|key| key.0.n).collect();
                assert_eq!(left.iter().filter(|key| *key % 2 == 1).count(), 25);
                // The key or value that was being dropped has been removed.
                let taken = match site {
                    Site::Closure => None,
                    Site::BuildHasher => Some(n),
                    _ => Some(n / 2 + 1),
                };
                assert!(taken.is_none_or(|taken| left.len() == 50 - taken), "{} after {n}", left.len());
                assert_holds(map, left);
            });
            assert_eq!(panics, calls);
        }
    }
}

/// Finds a fragile key, and has no drop itself.
#[derive(Hash)]
struct LookUp(u64);

impl equivalent::Equivalent<Fragile> for LookUp {
    fn equivalent(&self, key: &Fragile) -> bool {
        self.0 == key.0.n
    }
}

/// A removed entry is dropped some time later, by any thread: its panic is contained there.
#[test]
fn a_panic_in_the_drop_of_a_removed_entry_surfaces_nowhere() {
    let mut panics = 0;
    for n in 0..100 {
        let ledger = Ledger::new();
        let map = filled(&ledger, Config::GROWING);
        let operations = || {
            arm(Site::Drop, n);
            for key in (0..50).cycle().take(1000) {
                assert!(map.pin().insert(fragile(&ledger, key), fragile(&ledger, key)).is_some());
            }
            for key in 0..50 {
                assert!(map.pin().remove(&LookUp(key)).is_some());
            }
            for key in 0..50 {
                assert!(map.pin().insert(fragile(&ledger, key), fragile(&ledger, key)).is_none());
            }
        };
        catch(operations).unwrap_or_else(|message| panic!("drop number {n} surfaced: {message}"));
        panics += usize::from(disarm());
        assert_holds(&map, 0..50);
        drop(map);
        ledger.assert_settled("a panic in a deferred drop");
    }
    assert!(panics > 50, "only {panics} entries were dropped in time");
}

#[test]
fn a_panic_in_drop_does_not_keep_a_map_from_dropping_the_rest() {
    for config in [Config::GROWING, Config::GROWING.segments_of(8), Config::fixed(60)] {
        let panics = at_every_call(Site::Drop, config, |_, map| drop(map.take()), |_, _| unreachable!());
        assert_eq!(panics, 100);
    }
}

#[test]
fn a_panic_in_drop_does_not_keep_an_owning_iterator_from_dropping_the_rest() {
    for taken in [0, 20, 50] {
        let iterate = |_: &Arc<Ledger>, map: &mut Option<Map>| {
            let mut entries = map.take().unwrap().into_iter();
            let kept: Vec<_> = entries.by_ref().take(taken).collect();
            drop(entries);
            drop(kept);
        };
        let panics =
            at_every_call(Site::Drop, Config::GROWING.segments_of(16), iterate, |_, _| unreachable!());
        assert_eq!(panics, 100);
    }
}

/// A second panic during unwinding would abort the process.
#[test]
fn of_many_panics_in_drops_of_an_owning_iterator_the_first_goes_on() {
    struct Fused<'d>(&'d Cell<u64>);
    impl Drop for Fused<'_> {
        fn drop(&mut self) {
            self.0.set(self.0.get() + 1);
            panic!("drop number {}", self.0.get());
        }
    }
    let drops = Cell::new(0);
    let map = HashMap::<u64, Fused<'_>>::builder().segment_slots(16).build();
    map.extend((0..50).map(|n| (n, Fused(&drops))));
    let mut entries = map.into_iter();
    core::mem::forget(entries.next());
    assert_eq!(catch(|| drop(entries)).unwrap_err(), "drop number 1");
    assert_eq!(drops.get(), 49);
}

/// An argument that is not needed is dropped by the operation: a panic then is passed to the caller.
#[test]
fn a_panic_in_the_drop_of_an_argument_changes_nothing() {
    type Verb = fn(&Arc<Ledger>, &Map);
    let verbs: [Verb; 7] = [
        |ledger, map| drop(map.pin().try_insert(fragile(ledger, 7), fragile(ledger, 8)).unwrap_err()),
        |ledger, map| assert_eq!(map.pin().get_or_insert(fragile(ledger, 7), fragile(ledger, 8)).0.n, 7),
        |ledger, map| assert!(map.pin().update(fragile(ledger, 77), |_| unreachable!()).is_none()),
        |ledger, map| {
            map.pin().compute(fragile(ledger, 7), |_| Operation::Abort(()));
        },
        |ledger, map| assert_eq!(map.pin().get_or_insert_with(fragile(ledger, 7), || unreachable!()).0.n, 7),
        |ledger, map| {
            map.pin().try_get_or_insert_with(fragile(ledger, 77), || Err(())).map(|_| ()).unwrap_err();
        },
        |ledger, map| {
            let refuse =
                |n| map.pin().checked_insert(fragile(ledger, n), fragile(ledger, n)).map(|_| ()).err();
            let full = (50..80).find_map(refuse).expect("80 do not fit");
            (50..80).for_each(|n| assert!(map.pin().remove(&LookUp(n)).is_some() || n >= full.key.0.n));
            let Full { key, value } = full;
            assert_eq!(key, value);
        },
    ];
    for (number, verb) in verbs.into_iter().enumerate() {
        let operation = |ledger: &Arc<Ledger>, map: &mut Option<Map>| verb(ledger, with(map));
        let panics = at_every_call(Site::Drop, Config::fixed(50), operation, |map, _| {
            assert!(map.len() >= 50, "verb {number}");
            (0..50).for_each(|n| assert!(map.pin().get(&LookUp(n)).is_some()));
        });
        assert!(panics > 0, "verb {number}");
    }
}

/// During unwinding a panic of such a drop would abort the process.
#[test]
fn what_has_no_room_is_dropped_before_the_panic_that_says_so() {
    struct Late<'d>(&'d Cell<u64>);
    impl Drop for Late<'_> {
        fn drop(&mut self) {
            self.0.set(self.0.get() + u64::from(std::thread::panicking()));
        }
    }
    let late = Cell::new(0);
    let map = HashMap::builder().fixed_capacity(4).build();
    let full = (0..50).find_map(|n| catch(|| _ = map.pin().insert(n, Late(&late))).err());
    assert!(full.is_some_and(|message| message.contains("is full")));
    assert_eq!(late.get(), 0);
}
