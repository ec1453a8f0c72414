//! The replay is right: exact policies have the misses that were computed by hand and those that were published. The checks
//! fail on broken caches, each with a fault of its own, and pass on sound ones.

use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;

use clap::ValueEnum;
use koel_bench::caches::{Cache, Id};
use koel_bench::dist::Dist;
use koel_bench::entrant::{CacheEntrant, CacheRunner, ReadThrough, cache_entrant};
use koel_bench::error::CheckError;
use koel_bench::plan::{self, CacheLoad, CachePlan};
use koel_bench::reference::{Exact, hits};
use koel_bench::replay::{Bound, Replayed, replay};
use koel_bench::stopwatch::Stopwatch;
use koel_bench::trace::{self, Trace};
use koel_bench::{keys, requests};
use parking_lot::Mutex;

const SOUND: u8 = 0;
const WRONG_VALUES: u8 = 1;
const HOLDS_TOO_MUCH: u8 = 2;
const FORGETS: u8 = 3;
/// As [`WRONG_VALUES`], but only once it is full and has answered requests.
const WRONG_LATER: u8 = 4;

/// First in, first out; right except for one fault.
struct Fifo<const FAULT: u8>(Mutex<State>);

#[derive(Default)]
struct State {
    values: HashMap<u64, u64>,
    queue: VecDeque<u64>,
    capacity: u64,
    used: u64,
    by_bytes: bool,
    asked: u64,
}

impl State {
    fn size(&self, value: u64) -> u64 {
        if self.by_bytes { u64::from(value as u32) } else { 1 }
    }
}

impl<const FAULT: u8> Fifo<FAULT> {
    fn bounded(capacity: u64, by_bytes: bool) -> Self {
        Fifo(Mutex::new(State { capacity, by_bytes, ..State::default() }))
    }
}

impl<const FAULT: u8> Cache for Fifo<FAULT> {
    const NAME: &'static str = "faulty";
    const STRICT: bool = true;
    type Weighted = Self;

    fn of_entries(entries: usize) -> Self {
        Fifo::bounded(entries as u64, false)
    }

    fn of_bytes(bytes: u64, _: usize) -> Option<Self> {
        Some(Fifo::bounded(bytes, true))
    }

    fn get(&self, key: u64) -> Option<u64> {
        let mut state = self.0.lock();
        state.asked += 1;
        let value = state.values.get(&key).copied()?;
        match FAULT {
            WRONG_LATER if state.asked > OPS as u64 => Some(value ^ 1 << 40),
            WRONG_VALUES if key % 100 < 5 => Some(value ^ 1 << 40),
            // Not while it is being filled: then each key is looked up once to see whether it is there.
            FORGETS if state.asked > 2_000 && key % 100 < 5 => None,
            _ => Some(value),
        }
    }

    fn insert(&self, key: u64, value: u64) {
        let mut state = self.0.lock();
        let (size, most) = (state.size(value), state.capacity);
        if size > most || state.values.contains_key(&key) {
            return;
        }
        while state.used + size > most + u64::from(FAULT == HOLDS_TOO_MUCH) {
            let oldest = state.queue.pop_front().expect("what is used is in the queue");
            let value = state.values.remove(&oldest).expect("what is in the queue has a value");
            state.used -= state.size(value);
        }
        state.used += size;
        state.queue.push_back(key);
        state.values.insert(key, value);
    }

    fn held(&self) -> u64 {
        self.0.lock().used
    }
}

/// Requests of `trace` that `policy` misses.
fn misses(policy: Exact, trace: &Trace, bound: Bound) -> u64 {
    trace.requests.len() as u64 - hits(policy, trace, bound)
}

/// Entries of 4, 4, 3 and 6 bytes, and one of 11.
const SMALL: &str = "key,size\n1,4\n2,4\n1,9\n3,3\n1,4\n2,4\n4,6\n1,4\n2,4\n1,4\n3,3\n1,4\n3,3\n1,4\n2,4\n1,4\n5,11\n5,11\n1,4\n";

/// In 10 bytes. The table shows the keys in the cache after each request, in the order in which they are evicted, with `'` for
/// a set bit:
///
/// | request | FIFO | LRU | CLOCK |
/// | --- | --- | --- | --- |
/// | 1 2 | 1 2 | 1 2 | 1 2 |
/// | 1 | hit | hit: 2 1 | hit: 1' 2 |
/// | 3 | 2 3 | 1 3 | 1 3 |
/// | 1 | 3 1 | hit: 3 1 | hit: 1' 3 |
/// | 2 | 1 2 | 1 2 | 1 2 |
/// | 4 | 2 4 | 2 4 | 2 4 |
/// | 1 | 4 1 | 4 1 | 4 1 |
/// | 2 | 1 2 | 1 2 | 1 2 |
/// | 1 | hit | hit: 2 1 | hit: 1' 2 |
/// | 3 | 2 3 | 1 3 | 1 3 |
/// | 1 | 3 1 | hit: 3 1 | hit: 1' 3 |
/// | 3 | hit | hit: 1 3 | hit: 1' 3' |
/// | 1 | hit | hit: 3 1 | hit |
/// | 2 | 1 2 | 1 2 | 3 2 |
/// | 1 | hit | hit: 2 1 | 2 1 |
/// | 5 5 | does not fit | does not fit | does not fit |
/// | 1 | hit | hit | hit: 2 1' |
#[test]
fn exact_policies_miss_what_was_computed_by_hand() {
    let trace = trace::parse(SMALL.as_bytes(), "small").unwrap();
    let misses = |policy| misses(policy, &trace, Bound::Bytes(10));
    assert_eq!((misses(Exact::Fifo), misses(Exact::Lru), misses(Exact::Clock)), (13, 11, 12));
    // Including the 11 bytes of the largest entry.
    assert_eq!(trace.bytes(), 28);
    assert_eq!(hits(Exact::Lru, &trace, Bound::Bytes(28)), 14);
    assert_eq!(hits(Exact::Lru, &trace, Bound::Entries(5)), 14);
    assert_eq!(hits(Exact::Lru, &trace, Bound::Entries(1)), 1);
}

#[test]
fn a_cache_is_replayed_as_the_simulation_is() {
    let small = trace::parse(SMALL.as_bytes(), "small").unwrap();
    assert_eq!(replay::<Fifo<SOUND>>(&small, Bound::Bytes(10)), Ok(Some(Replayed { hits: 6, held: 8 })));
    for requests in requests::generated(20_000) {
        for entries in [1, 20, 200] {
            let bound = Bound::Entries(entries);
            let replayed = replay::<Fifo<SOUND>>(&requests.trace, bound).unwrap().unwrap();
            assert_eq!(replayed.hits, hits(Exact::Fifo, &requests.trace, bound), "{}", requests.name);
            assert_eq!(replayed.held, entries, "{}", requests.name);
        }
    }
}

/// `cloudphysics.csv` in the folder that the environment names, else next to this repository.
fn cloudphysics() -> Option<Trace> {
    let folder = std::env::var_os("KOEL_TRACES").map(PathBuf::from);
    let folder =
        folder.unwrap_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared/traces"));
    let file = folder.join("cloudphysics.csv");
    if !file.exists() {
        // Bypasses the capture of the test's output: a test that does not run says so.
        use std::io::Write;
        let _ = writeln!(std::io::stderr(), "NOT RUN: there is no {} (KOEL_TRACES=FOLDER)", file.display());
        return None;
    }
    Some(trace::read(&file).expect("a trace that can be read"))
}

/// Misses from 128 to 1,024 MiB, in steps of 128, as libCacheSim's own tests expect them for this trace.
const PUBLISHED: [(Exact, [u64; 8]); 3] = [
    (Exact::Fifo, [93_403, 89_386, 84_387, 84_025, 72_498, 72_228, 72_182, 72_140]),
    (Exact::Lru, [93_374, 89_783, 83_572, 81_722, 72_494, 72_104, 71_972, 71_704]),
    (Exact::Clock, [93_313, 89_775, 83_411, 81_328, 74_815, 72_283, 71_927, 64_456]),
];

#[test]
fn exact_policies_miss_what_was_published_of_a_real_trace() {
    let Some(trace) = cloudphysics() else { return };
    assert_eq!((trace.requests.len(), trace.keys.len()), (113_872, 48_974));
    for (policy, published) in PUBLISHED {
        for (step, expected) in (1..).zip(published) {
            let bound = Bound::Bytes(step * (128 << 20));
            assert_eq!(misses(policy, &trace, bound), expected, "{policy:?} in {} MiB", 128 * step);
            if policy == Exact::Fifo {
                let replayed = replay::<Fifo<SOUND>>(&trace, bound).unwrap().unwrap();
                assert_eq!(trace.requests.len() as u64 - replayed.hits, expected, "{step}");
            }
        }
    }
}

#[test]
fn every_cache_keeps_what_fits_and_knows_nothing_it_was_not_told() {
    let again = Trace::of((0..10_000).map(|i| keys::key(i % 100)));
    let once = Trace::of((0..10_000).map(keys::key));
    let mut sized = again.clone();
    sized.sizes = (1..=100).collect();
    for &id in Id::value_variants() {
        let replay = |trace, bound| cache_entrant(id).replay(trace, bound).unwrap();
        let name = id.name();
        assert_eq!(replay(&again, Bound::Entries(1000)), Some(Replayed { hits: 9_900, held: 100 }), "{name}");
        assert_eq!(replay(&once, Bound::Entries(1000)).unwrap().hits, 0, "{name}");
        let by_bytes = replay(&sized, Bound::Bytes(1 << 20));
        let expected = Replayed { hits: 9_900, held: 5_050 };
        let has_bytes = !matches!(id, Id::KoelInline | Id::KoelInlineLocal | Id::SccHashCache);
        assert_eq!(by_bytes, has_bytes.then_some(expected), "{name}");
        // Room for far more entries than there are: no cache makes a table for so many.
        assert_eq!(replay(&sized, Bound::Bytes(1 << 60)), has_bytes.then_some(expected), "{name}");
        // 50 of the 5,050 bytes: no cache can have more hits than by holding the most requested keys in them.
        if let Some(replayed) = replay(&sized, Bound::Bytes(50)) {
            assert!(replayed.held <= 50 && replayed.hits < 1_000, "{name}: {replayed:?}");
        }
    }
}

const ENTRIES: usize = 1_000;
const KEYS: u64 = 10_000;
const OPS: usize = 5_000;

fn requests_of(round: usize, threads: usize) -> CachePlan {
    CacheLoad { entries: ENTRIES, keys: KEYS, dist: Dist::Zipf(0.99) }.plan(round, threads, OPS)
}

/// Fills a cache, and puts other requests to it.
fn read_through(
    entrant: &mut dyn CacheEntrant,
    threads: usize,
    loads: bool,
) -> Result<ReadThrough, CheckError> {
    entrant.fill(&requests_of(0, 1))?;
    entrant.read_through(&requests_of(1, threads), loads)
}

#[test]
fn every_round_and_thread_asks_for_other_keys() {
    let (first, second) = (requests_of(1, 2), requests_of(2, 2));
    let all = [&first.threads[0], &first.threads[1], &second.threads[0], &second.threads[1], &first.warm[0]];
    for (i, one) in all.iter().enumerate() {
        assert_eq!(one.len(), OPS);
        assert!(all[..i].iter().all(|other| other != one), "{i}");
    }
    assert_eq!(first.threads, requests_of(1, 2).threads);
}

#[test]
fn every_cache_passes_every_workload() {
    let stopwatch = Stopwatch::calibrated();
    for &id in Id::value_variants() {
        let mut entrant = cache_entrant(id);
        let run = |entrant: &mut dyn CacheEntrant| -> Result<(), CheckError> {
            for threads in [1, 2] {
                for loads in [false, true] {
                    let read = read_through(entrant, threads, loads)?;
                    assert!(
                        read.mops > 0.0 && (0.4..0.9).contains(&read.hit_ratio),
                        "{}: {read:?}",
                        id.name()
                    );
                }
                let resident = plan::resident(ENTRIES as u64 / 2, Dist::Zipf(0.99), threads, OPS);
                for batched in [false, true] {
                    assert!(entrant.hits(ENTRIES, &resident, batched, 0.0)? > 0.0);
                }
            }
            let histogram = entrant.inserts(OPS, &stopwatch)?;
            assert_eq!(histogram.len(), OPS as u64);
            let (_, held) = entrant.footprint(&requests_of(0, 1))?;
            assert!((ENTRIES as u64 / 2..=1024).contains(&held), "{}: {held}", id.name());
            Ok(())
        };
        run(entrant.as_mut()).unwrap_or_else(|failure| panic!("{failure}"));
    }
}

#[track_caller]
fn fails<T: std::fmt::Debug>(outcome: Result<T, CheckError>, needle: &str) {
    let failure = outcome.expect_err("the check should have failed").during("a test").to_string();
    assert!(failure.starts_with("check failed: faulty in a test: "), "{failure}");
    assert!(failure.contains(needle), "`{needle}` is missing in: {failure}");
}

#[test]
fn a_sound_cache_passes() {
    let mut runner = CacheRunner::<Fifo<SOUND>>::new();
    let resident = plan::resident(ENTRIES as u64 / 2, Dist::Uniform, 2, OPS);
    assert!(runner.hits(ENTRIES, &resident, false, 0.0).unwrap() > 0.0);
    for loads in [false, true] {
        assert!(read_through(&mut runner, 2, loads).unwrap().hit_ratio > 0.4);
    }
    assert_eq!(runner.footprint(&requests_of(0, 1)).unwrap().1, ENTRIES as u64);
}

#[test]
fn wrong_values_fail_every_run() {
    let resident = plan::resident(ENTRIES as u64 / 2, Dist::Uniform, 2, OPS);
    let runner = CacheRunner::<Fifo<WRONG_VALUES>>::new;
    fails(
        runner().replay(&Trace::of((0..500).map(|i| keys::key(i % 100))), Bound::Entries(200)),
        "in place of",
    );
    fails(runner().hits(ENTRIES, &resident, false, 0.0), "not their key's");
    fails(runner().hits(ENTRIES, &resident, true, 0.0), "not their key's");
    fails(runner().fill(&requests_of(0, 1)), "not their key's");
    fails(runner().footprint(&requests_of(0, 1)), "not their key's");
    fails(runner().read_through(&requests_of(1, 2), false), "there is no full cache");
    let later = || {
        let mut runner = CacheRunner::<Fifo<WRONG_LATER>>::new();
        runner.fill(&requests_of(0, 1)).unwrap();
        runner
    };
    fails(later().read_through(&requests_of(1, 2), false), "not their key's");
    fails(later().read_through(&requests_of(1, 2), true), "not their key's");
    fails(later().inserts(OPS, &Stopwatch::calibrated()), "not their key's");
}

#[test]
fn a_bound_that_is_promised_and_not_kept_fails() {
    let runner = CacheRunner::<Fifo<HOLDS_TOO_MUCH>>::new;
    let trace = Trace::of((0..500).map(keys::key));
    fails(runner().replay(&trace, Bound::Entries(100)), "it holds 101, and is to hold 100 at most");
    fails(runner().fill(&requests_of(0, 1)), "it holds 1001");
}

#[test]
fn a_miss_fails_pure_hits() {
    let resident = plan::resident(ENTRIES as u64 / 2, Dist::Uniform, 2, OPS);
    for batched in [false, true] {
        let mut runner = CacheRunner::<Fifo<FORGETS>>::new();
        fails(runner.hits(ENTRIES, &resident, batched, 0.0), "missed entries that it held");
    }
}
