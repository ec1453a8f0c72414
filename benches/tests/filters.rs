//! The checks fail on broken filters, each with a fault of its own, and pass on sound ones.

use std::thread;
use std::time::Duration;

use clap::ValueEnum;
use koel_bench::check;
use koel_bench::entrant::{FilterEntrant, FilterRunner, Making, filter_entrant};
use koel_bench::error::CheckError;
use koel_bench::filters::{
    Expected, Filter, Full, Id, KoelCuckoo, KoelFixed, RustCuckooFilter, Shared, Size, slots_by_first_key,
};
use koel_bench::{keys, plan};
use parking_lot::RwLock;

const KEYS: u64 = 5_000;
const OPS: usize = 20_000;
const BITS: u32 = 8;

const SOUND: u8 = 0;
const LOSES_KEYS: u8 = 1;
const INVENTS_KEYS: u8 = 2;
const MISCOUNTS: u8 = 3;
const KEEPS_REMOVED: u8 = 4;
const REFUSES_AGAIN: u8 = 5;
/// As [`LOSES_KEYS`] while it is shared, and admits it.
const MAY_MISS: u8 = 6;
/// Loses one key of the last thousand.
const LOSES_ONE: u8 = 7;
/// Claims never to be wrong.
const PROMISES_TOO_MUCH: u8 = 8;

/// As [`SOUND`], but slow to build.
const BUILDS_SLOWLY: u8 = 9;

/// How long that takes.
const BUILDING: Duration = Duration::from_millis(100);

/// As [`SOUND`], but slow to insert.
const INSERTS_SLOWLY: u8 = 10;

/// How long that takes.
const INSERTING: Duration = Duration::from_millis(100);

/// A filter that is right except for one fault.
struct Faulty<const FAULT: u8> {
    filter: KoelCuckoo,
    removed: bool,
}

impl<const FAULT: u8> Filter for Faulty<FAULT> {
    const NAME: &'static str = "faulty";
    const MAY_MISS: bool = FAULT == MAY_MISS;
    type Shared = SharedFaulty<FAULT>;

    fn empty(size: Size) -> Result<Self, String> {
        if FAULT == BUILDS_SLOWLY {
            thread::sleep(BUILDING);
        }
        Ok(Faulty { filter: Filter::empty(size)?, removed: false })
    }

    fn insert(&mut self, key: u64) -> Result<(), Full> {
        if FAULT == INSERTS_SLOWLY {
            thread::sleep(INSERTING);
        }
        if FAULT == REFUSES_AGAIN && self.removed {
            return Err(Full);
        }
        Filter::insert(&mut self.filter, key)
    }

    fn remove(&mut self, key: u64) -> bool {
        self.removed = true;
        FAULT != KEEPS_REMOVED && Filter::remove(&mut self.filter, key)
    }

    fn contains(&self, key: u64) -> bool {
        match FAULT {
            LOSES_KEYS if key % 1000 < 5 => false,
            LOSES_ONE if key == keys::key(KEYS - 7) => false,
            INVENTS_KEYS if key % 100 < 5 => true,
            _ => Filter::contains(&self.filter, key),
        }
    }

    fn entries(&self) -> Option<u64> {
        self.filter.entries().map(|entries| entries + u64::from(FAULT == MISCOUNTS))
    }

    fn load(&self) -> Option<f64> {
        self.filter.load()
    }

    fn expected(&self, keys: u64) -> Expected {
        if FAULT == PROMISES_TOO_MUCH { Expected::AtMost(1e-6) } else { self.filter.expected(keys) }
    }

    fn share(self) -> SharedFaulty<FAULT> {
        SharedFaulty(RwLock::new(self))
    }
}

struct SharedFaulty<const FAULT: u8>(RwLock<Faulty<FAULT>>);

impl<const FAULT: u8> Shared for SharedFaulty<FAULT> {
    type Filter = Faulty<FAULT>;

    fn insert(&self, key: u64) -> Result<(), Full> {
        Filter::insert(&mut *self.0.write(), key)
    }

    fn remove(&self, key: u64) -> bool {
        Filter::remove(&mut *self.0.write(), key)
    }

    fn contains(&self, key: u64) -> bool {
        !(FAULT == MAY_MISS && key % 1000 < 5) && Filter::contains(&*self.0.read(), key)
    }

    fn into_inner(self) -> Faulty<FAULT> {
        self.0.into_inner()
    }
}

/// A filter that is already filled, on which the loops must fail.
fn filled<const FAULT: u8>() -> FilterRunner<Faulty<FAULT>> {
    let mut runner = FilterRunner::new();
    runner.fill(KEYS, BITS, 1, 0.0).unwrap();
    runner
}

#[track_caller]
fn fails<T: std::fmt::Debug>(outcome: Result<T, CheckError>, needle: &str) {
    let failure = outcome.expect_err("the check should have failed").during("a test").to_string();
    assert!(failure.starts_with("check failed: faulty in a test: "), "{failure}");
    assert!(failure.contains(needle), "`{needle}` is missing in: {failure}");
}

#[test]
fn a_sound_filter_passes_every_workload() {
    let mut runner = filled::<SOUND>();
    for threads in [1, 2] {
        runner.read(&plan::present(KEYS, threads, OPS), true, false, 0.0).unwrap();
        runner.read(&plan::absent(threads, OPS), false, false, 0.0).unwrap();
        runner.churn(&plan::churn(KEYS, threads, OPS), 0.0).unwrap();
    }
    let built = runner.build(KEYS, BITS).unwrap();
    assert!((0.02..0.04).contains(&built.measured), "{built:?}");
    assert!((0.94..0.96).contains(&built.load.unwrap()), "{built:?}");
}

#[test]
fn false_negatives_fail_every_look_up_and_every_filling() {
    fails(FilterRunner::<Faulty<LOSES_KEYS>>::new().fill(KEYS, BITS, 1, 0.0), "false negatives");
    fails(FilterRunner::<Faulty<LOSES_KEYS>>::new().build(KEYS, BITS), "false negatives");
    fails(FilterRunner::<Faulty<LOSES_ONE>>::new().build(KEYS, BITS), "1 false negatives in 5000");
    let mut runner = filled::<MAY_MISS>();
    runner.read(&plan::present(KEYS, 2, OPS), true, false, 0.0).unwrap();
    assert_eq!(runner.take_lost_reads(), 0);
    // For a filter that admits it, lost look-ups are counted, and do not fail.
    runner.churn(&plan::churn(KEYS, 2, OPS), 0.0).unwrap();
    assert!(runner.take_lost_reads() > 0);
    assert_eq!(runner.take_lost_reads(), 0);
}

#[test]
fn too_many_false_positives_fail_misses() {
    fails(filled::<INVENTS_KEYS>().read(&plan::absent(2, OPS), false, false, 0.0), "false positives");
    fails(filled::<INVENTS_KEYS>().build(KEYS, BITS), "false positives");
    fails(filled::<PROMISES_TOO_MUCH>().build(KEYS, BITS), "false positives");
}

#[test]
fn a_filter_that_miscounts_or_does_not_remove_fails() {
    fails(
        FilterRunner::<Faulty<MISCOUNTS>>::new().fill(KEYS, BITS, 1, 0.0),
        "it says it holds 5001 keys of 5000",
    );
    fails(filled::<KEEPS_REMOVED>().churn(&plan::churn(KEYS, 2, OPS), 0.0), "keys not there to be removed");
    fails(filled::<REFUSES_AGAIN>().churn(&plan::churn(KEYS, 2, OPS), 0.0), "inserts without room");
}

#[test]
fn every_filter_passes_every_workload_that_it_takes() {
    for bits in [5, 8, 12, 16, 31] {
        for &id in Id::value_variants().iter().filter(|id| id.takes_bits(bits)) {
            let mut entrant = filter_entrant(id, bits);
            let run = |entrant: &mut dyn FilterEntrant| -> Result<(), CheckError> {
                let built = entrant.build(KEYS, bits)?;
                assert!(built.attempts == 0 || bits < 8, "{}: {built:?}", id.name());
                entrant.read(&plan::present(KEYS, 2, OPS), true, entrant.batches(), 0.0)?;
                entrant.read(&plan::absent(2, OPS), false, false, 0.0)?;
                if !entrant.lookups_only() {
                    entrant.fill(KEYS, bits, 1, 0.0)?;
                }
                if entrant.shares_writes() {
                    entrant.fill(KEYS, bits, 2, 0.0)?;
                }
                if entrant.fixed_slots() {
                    entrant.fill_up(KEYS, bits, 0.0)?;
                }
                if entrant.at_once() && bits >= 8 {
                    let keys: Vec<u64> = (0..KEYS).map(keys::key).collect();
                    for making in [Making::OneByOne, Making::AtOnce, Making::OnThreads(2)] {
                        entrant.make(&keys, bits, making, 0.0)?;
                    }
                }
                if entrant.removes() {
                    entrant.churn(&plan::churn(KEYS, 2, OPS), 0.0)?;
                    assert_eq!(entrant.take_lost_reads(), 0, "{}", id.name());
                }
                Ok(())
            };
            run(entrant.as_mut()).unwrap_or_else(|failure| panic!("{bits} bits: {failure}"));
        }
    }
}

/// Their rates depend on the few bits that happen to be set, and are not what formulas for many keys say.
#[test]
fn bloom_filters_of_few_keys_are_not_blamed_for_chance() {
    for id in [Id::Fastbloom, Id::FastbloomAtomic] {
        for (keys, bits) in (1..60).flat_map(|keys| [5, 6, 8, 9, 12].map(|bits| (keys, bits))) {
            let built = filter_entrant(id, bits).build(keys, bits);
            built.unwrap_or_else(|failure| panic!("{keys} keys, {bits} bits: {failure}"));
        }
    }
}

/// The measured cost of choosing a layout is meaningless unless both sides do the same work.
#[test]
fn the_fixed_layout_answers_as_the_filter_does() {
    fn same<const BITS: u32>(count: u64) {
        let size = Size { keys: count, bits: BITS, attempt: 0 };
        let keys = || (0..count).map(keys::key);
        let filter = KoelCuckoo::filled(size, keys()).unwrap().unwrap();
        let fixed = KoelFixed::<BITS>::filled(size, keys()).unwrap().unwrap();
        assert_eq!(filter.load(), fixed.load());
        let wrong = plan::absent(1, 300_000).concat();
        let found = |contains: &dyn Fn(u64) -> bool| -> Vec<u64> {
            wrong.iter().copied().chain(keys()).filter(|key| contains(*key)).collect()
        };
        let (theirs, mine) =
            (found(&|key| Filter::contains(&filter, key)), found(&|key| fixed.contains(key)));
        assert!(theirs == mine, "{BITS} bits, {count} keys: {} and {} found", theirs.len(), mine.len());
        assert!(theirs.len() as u64 >= count);
    }
    for count in [1, 10, 5_000, 600_000] {
        same::<8>(count);
        same::<12>(count);
        same::<16>(count);
    }
}

/// Otherwise the figures of one thread and of several would be for different work.
#[test]
fn to_build_an_empty_filter_is_in_the_time_of_every_filling() {
    for threads in [1, 2, 3] {
        let per_microsecond = FilterRunner::<Faulty<BUILDS_SLOWLY>>::new().fill(KEYS, BITS, threads, 0.0);
        let filling = KEYS as f64 / per_microsecond.unwrap();
        assert!(filling >= BUILDING.as_micros() as f64, "{threads} threads: {filling} microseconds");
    }
}

/// In a small filter one more insert would matter.
#[test]
fn no_more_inserts_are_counted_than_were_timed() {
    let per_microsecond = FilterRunner::<Faulty<INSERTS_SLOWLY>>::new().fill_up(1, BITS, 0.0).unwrap();
    let one = 1.0 / per_microsecond;
    assert!(one >= INSERTING.as_micros() as f64, "{one} microseconds for an insert");
}

#[test]
fn slots_are_told_by_the_first_key() {
    let size = Size { keys: 1000, bits: 8, attempt: 0 };
    // A power of two of slots.
    let mut filter = RustCuckooFilter::empty(size).unwrap();
    assert_eq!(slots_by_first_key(&mut filter, 7), 1024);
    let mut filter = KoelCuckoo::empty(size).unwrap();
    let slots = slots_by_first_key(&mut filter, 7);
    assert!((1000..1200).contains(&slots), "{slots}");
}

#[test]
fn rates_may_differ_by_chance_and_by_a_quarter() {
    let about = Expected::About(0.01);
    for found in [10_000, 9_000, 12_000] {
        check::false_positives(found, 1_000_000, about).unwrap();
    }
    for found in [0, 6_000, 14_000] {
        check::false_positives(found, 1_000_000, about).unwrap_err();
    }
    check::false_positives(0, 1_000_000, Expected::AtMost(0.01)).unwrap();
    check::false_positives(14_000, 1_000_000, Expected::AtMost(0.01)).unwrap_err();
    check::false_positives(1, 100, Expected::AtMost(1e-9)).unwrap();
    check::no_false_negatives(7, 7).unwrap();
    check::no_false_negatives(6, 7).unwrap_err();
}
