//! The checks of operations on a whole map fail on maps that do them wrongly, each with a fault of its own.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use clap::ValueEnum;
use koel_bench::contestants::{Contestant, Id, RwLockHashbrown, View};
use koel_bench::entrant::{Entrant, Runner, entrant};
use koel_bench::error::CheckError;
use koel_bench::keys;
use koel_bench::whole::{Whole, stays};

const KEYS: u64 = 2_000;

const SOUND: u8 = 0;
const WALKS_PAST_ONE: u8 = 1;
const WALKS_OVER_ONE_TWICE: u8 = 2;
const COPIES_ALL_BUT_ONE: u8 = 3;
/// The copy has another entry in place of one.
const COPIES_ANOTHER: u8 = 4;
const COPIES_A_WRONG_VALUE: u8 = 5;
/// Changes to the copy change the map.
const COPIES_ITS_NAME: u8 = 6;
const RETAINS_ONE_MORE: u8 = 7;
const RETAINS_ONE_LESS: u8 = 8;
/// Retains as many entries as it should, but not the same ones.
const RETAINS_ANOTHER: u8 = 9;
const RETAINS_THE_WRONG_HALF: u8 = 10;
const LEAVES_ONE: u8 = 11;
/// Leaves one, and does not count it.
const HIDES_ONE: u8 = 12;
/// As [`SOUND`], but slow to copy.
const COPIES_SLOWLY: u8 = 13;

/// How long copying takes.
const COPYING: Duration = Duration::from_millis(500);

/// A map that is right except for one fault.
struct Faulty<const FAULT: u8>(Arc<RwLockHashbrown<u64, u64>>);

/// The first key with this number or a later one for which `holds` is true.
fn first_from(number: u64, holds: impl Fn(u64) -> bool) -> u64 {
    (number..).map(keys::key).find(|&key| holds(key)).expect("both halves have keys")
}

impl<const FAULT: u8> Contestant for Faulty<FAULT> {
    const NAME: &'static str = "faulty";
    type View<'m> = &'m RwLockHashbrown<u64, u64>;

    fn with_capacity(capacity: usize) -> Self {
        Faulty(Arc::new(Contestant::with_capacity(capacity)))
    }

    fn view(&self) -> Self::View<'_> {
        &self.0
    }

    fn entries(&self) -> usize {
        match self.0.entries() {
            1 if FAULT == HIDES_ONE => 0,
            entries => entries,
        }
    }

    fn sum(&self) -> u64 {
        let key = first_from(0, stays);
        let one = key.wrapping_add(keys::value(key, 0));
        match FAULT {
            WALKS_PAST_ONE => self.0.sum().wrapping_sub(one),
            WALKS_OVER_ONE_TWICE => self.0.sum().wrapping_add(one),
            _ => self.0.sum(),
        }
    }

    fn duplicate(&self) -> Self {
        if FAULT == COPIES_ITS_NAME {
            return Faulty(self.0.clone());
        }
        let copy = self.0.duplicate();
        let key = first_from(0, stays);
        match FAULT {
            COPIES_ALL_BUT_ONE => drop((&copy).remove(key)),
            COPIES_ANOTHER => {
                (&copy).remove(key);
                (&copy).insert(first_from(KEYS, stays), 7);
            }
            COPIES_A_WRONG_VALUE => drop((&copy).update(key)),
            COPIES_SLOWLY => thread::sleep(COPYING),
            _ => {}
        }
        Faulty(Arc::new(copy))
    }

    fn retain(&self, keep: impl Fn(u64) -> bool) {
        let (stays, goes) = (first_from(0, stays), first_from(0, |key| !stays(key)));
        self.0.retain(|key| match FAULT {
            RETAINS_ONE_MORE => keep(key) || key == goes,
            RETAINS_ONE_LESS => keep(key) && key != stays,
            RETAINS_ANOTHER => (keep(key) || key == goes) && key != stays,
            RETAINS_THE_WRONG_HALF => !keep(key),
            _ => keep(key),
        });
    }

    fn clear(&self) {
        if matches!(FAULT, LEAVES_ONE | HIDES_ONE) {
            let key = first_from(0, stays);
            return self.0.retain(|other| other == key);
        }
        self.0.clear();
    }
}

/// Does `what` once to a map of this many keys.
fn once<const FAULT: u8>(what: Whole, keys: u64) -> Result<f64, CheckError> {
    Runner::<Faulty<FAULT>>::new().whole(what, keys, 0.0)
}

/// The operations that are done `wrong` fail with the message `told`, and no others fail.
#[track_caller]
fn fails<const FAULT: u8>(wrong: &[Whole], told: &str) {
    for &what in Whole::value_variants() {
        let outcome = once::<FAULT>(what, KEYS);
        assert_eq!(outcome.is_err(), wrong.contains(&what), "{what:?}: {outcome:?}");
        if let Err(failure) = outcome {
            let failure = failure.during("a test").to_string();
            assert!(failure.starts_with("check failed: faulty in a test: "), "{failure}");
            assert!(failure.contains(told), "{what:?}: {failure}");
        }
    }
}

#[test]
fn a_sound_map_of_any_size_passes() {
    for keys in [1, 2, 3, KEYS] {
        for &what in Whole::value_variants() {
            assert!(once::<SOUND>(what, keys).unwrap() > 0.0);
        }
    }
}

#[test]
fn a_walk_that_does_not_see_each_entry_once_fails() {
    // Nothing is measured for a map whose entries do not add up.
    fails::<WALKS_PAST_ONE>(Whole::value_variants(), "what a walk has seen adds up to");
    fails::<WALKS_OVER_ONE_TWICE>(Whole::value_variants(), "what a walk has seen adds up to");
}

#[test]
fn a_copy_that_is_not_one_fails() {
    let copied = &[Whole::Clone, Whole::Retain, Whole::Clear];
    fails::<COPIES_ALL_BUT_ONE>(copied, "its copy has 1999 entries, expected 2000");
    fails::<COPIES_ANOTHER>(&[Whole::Clone, Whole::Retain], "hits and 1 misses");
    fails::<COPIES_A_WRONG_VALUE>(&[Whole::Clone, Whole::Retain], "values found are not those");
    fails::<COPIES_ITS_NAME>(&[Whole::Clone], "0 hits and 1 misses");
}

#[test]
fn a_map_that_does_not_retain_what_it_should_fails() {
    let retained = &[Whole::Retain];
    fails::<RETAINS_ONE_MORE>(retained, "it has retained");
    fails::<RETAINS_ONE_LESS>(retained, "it has retained");
    fails::<RETAINS_ANOTHER>(retained, "hits and 1 misses");
    fails::<RETAINS_THE_WRONG_HALF>(retained, "it has retained 988 entries, expected 1012");
}

#[test]
fn a_map_that_is_not_cleared_fails() {
    fails::<LEAVES_ONE>(&[Whole::Clear], "cleared, it has 1 entries, expected 0");
    fails::<HIDES_ONE>(&[Whole::Clear], "what a walk has seen adds up to");
}

#[test]
fn to_copy_is_in_the_time_of_a_copy_alone() {
    for &what in Whole::value_variants() {
        let began = Instant::now();
        let taken = KEYS as f64 / once::<COPIES_SLOWLY>(what, KEYS).unwrap();
        // However slow the machine is.
        let copying = COPYING.as_micros() as f64;
        if what == Whole::Clone {
            assert!(taken >= copying, "{taken} microseconds");
        } else {
            let all_but_copying =
                began.elapsed().as_micros() as f64 - if what == Whole::Walk { 0.0 } else { copying };
            assert!(taken <= all_but_copying + 1.0, "{what:?}: {taken} microseconds of {all_but_copying}");
        }
    }
}

#[test]
fn every_contestant_passes_at_every_size() {
    for &id in Id::value_variants() {
        let mut map = entrant(id);
        for keys in [1, 2, 50, KEYS, 30_000] {
            for &what in Whole::value_variants() {
                let outcome = map.whole(what, keys, 0.001);
                assert!(outcome.unwrap_or_else(|failure| panic!("{what:?}, {keys}: {failure:?}")) > 0.0);
            }
        }
    }
}
