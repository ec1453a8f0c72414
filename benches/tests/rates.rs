//! A rate is the number of operations in the time that they took: a contestant that takes a millisecond for each does no more
//! than a thousand a second on each thread.

use std::cell::Cell;
use std::thread;
use std::time::Duration;

use clap::ValueEnum;
use koel_bench::caches::{Cache, QuickCache};
use koel_bench::contestants::{Contestant, RwLockHashbrown, TextContestant, TextView, View};
use koel_bench::dist::Dist;
use koel_bench::entrant::{
    CacheEntrant, CacheRunner, Entrant, FilterEntrant, FilterRunner, Runner, TextEntrant, TextRunner,
};
use koel_bench::filters::{Expected, Filter, Full, KoelCuckoo, Shared, Size};
use koel_bench::plan::{self, CacheLoad};
use koel_bench::whole::Whole;
use koel_bench::workload::{Preset, Workload};

/// How long an operation takes, and thus the highest rate of a thread.
const TAKES: Duration = Duration::from_millis(1);
const MOST: f64 = 1e-3;

const KEYS: u64 = 40;
const OPS: usize = 60;

thread_local! {
    /// Maps that this thread has made.
    static MADE: Cell<usize> = const { Cell::new(0) };
}

#[track_caller]
fn is_slow(mops: f64, threads: usize) {
    assert!(mops > 0.0 && mops <= MOST * threads as f64, "{mops} a microsecond on {threads} threads");
}

struct Slow<T>(T);

impl Contestant for Slow<RwLockHashbrown<u64, u64>> {
    const NAME: &'static str = "slow";
    type View<'m> = &'m Self;

    fn with_capacity(capacity: usize) -> Self {
        MADE.set(MADE.get() + 1);
        Slow(Contestant::with_capacity(capacity))
    }

    fn view(&self) -> &Self {
        self
    }

    fn entries(&self) -> usize {
        self.0.entries()
    }

    fn sum(&self) -> u64 {
        thread::sleep(TAKES * self.0.entries() as u32);
        self.0.sum()
    }

    fn duplicate(&self) -> Self {
        thread::sleep(TAKES * self.0.entries() as u32);
        Slow(self.0.duplicate())
    }

    fn retain(&self, keep: impl Fn(u64) -> bool) {
        thread::sleep(TAKES * self.0.entries() as u32);
        self.0.retain(keep);
    }

    fn clear(&self) {
        thread::sleep(TAKES * self.0.entries() as u32);
        self.0.clear();
    }
}

impl View for &Slow<RwLockHashbrown<u64, u64>> {
    fn get(&self, key: u64) -> Option<u64> {
        thread::sleep(TAKES);
        (&self.0).get(key)
    }

    fn insert(&self, key: u64, value: u64) -> Option<u64> {
        thread::sleep(TAKES);
        (&self.0).insert(key, value)
    }

    fn remove(&self, key: u64) -> Option<u64> {
        thread::sleep(TAKES);
        (&self.0).remove(key)
    }

    fn update(&self, key: u64) -> Option<u64> {
        thread::sleep(TAKES);
        (&self.0).update(key)
    }
}

impl TextContestant for Slow<RwLockHashbrown<String, String>> {
    const NAME: &'static str = "slow";
    type View<'m> = &'m Self;

    fn with_capacity(capacity: usize) -> Self {
        Slow(TextContestant::with_capacity(capacity))
    }

    fn insert_text(&self, key: String, value: String) -> bool {
        self.0.insert_text(key, value)
    }

    fn view(&self) -> &Self {
        self
    }
}

impl TextView for &Slow<RwLockHashbrown<String, String>> {
    fn read<R>(&self, key: &str, read: impl FnOnce(&str) -> R) -> Option<R> {
        thread::sleep(TAKES);
        (&self.0).read(key, read)
    }
}

impl Cache for Slow<QuickCache> {
    const NAME: &'static str = "slow";
    type Weighted = Self;

    fn of_entries(entries: usize) -> Self {
        Slow(Cache::of_entries(entries))
    }

    fn of_bytes(_: u64, _: usize) -> Option<Self> {
        None
    }

    fn get(&self, key: u64) -> Option<u64> {
        thread::sleep(TAKES);
        self.0.get(key)
    }

    fn insert(&self, key: u64, value: u64) {
        self.0.insert(key, value);
    }

    fn held(&self) -> u64 {
        self.0.held()
    }
}

impl Filter for Slow<KoelCuckoo> {
    const NAME: &'static str = "slow";
    type Shared = Self;

    fn empty(size: Size) -> Result<Self, String> {
        Filter::empty(size).map(Slow)
    }

    fn insert(&mut self, key: u64) -> Result<(), Full> {
        Filter::insert(&mut self.0, key)
    }

    fn remove(&mut self, key: u64) -> bool {
        Filter::remove(&mut self.0, key)
    }

    fn contains(&self, key: u64) -> bool {
        thread::sleep(TAKES);
        Filter::contains(&self.0, key)
    }

    fn entries(&self) -> Option<u64> {
        self.0.entries()
    }

    fn load(&self) -> Option<f64> {
        self.0.load()
    }

    fn expected(&self, keys: u64) -> Expected {
        self.0.expected(keys)
    }

    fn share(self) -> Self {
        self
    }
}

/// Writers are slow, too, as there may be many of them.
impl Shared for Slow<KoelCuckoo> {
    type Filter = Self;

    fn insert(&self, key: u64) -> Result<(), Full> {
        thread::sleep(TAKES);
        Shared::insert(&self.0, key)
    }

    fn remove(&self, key: u64) -> bool {
        thread::sleep(TAKES);
        Shared::remove(&self.0, key)
    }

    fn contains(&self, key: u64) -> bool {
        thread::sleep(TAKES);
        Shared::contains(&self.0, key)
    }

    fn into_inner(self) -> Self {
        self
    }
}

#[test]
fn of_maps() {
    let mut map = Runner::<Slow<RwLockHashbrown<u64, u64>>>::new();
    for threads in [1, 2] {
        let reads = plan::reads(KEYS, Dist::Uniform, threads, OPS, true).unwrap();
        for batched in [false, true] {
            is_slow(map.read(&reads, batched, 0.0).unwrap(), threads);
        }
        // One preset that brings the map back to its initial state, and one that does not: both take several passes.
        for preset in [Preset::YcsbA, Preset::Exchange] {
            let workload = preset.workload();
            let mix = plan::mixed(&workload, KEYS, Dist::Uniform, threads, OPS, None).unwrap();
            is_slow(map.mix(&mix, 0.1).unwrap(), threads);
        }
    }
    is_slow(map.fill(0, KEYS, 0.0).unwrap(), 1);
    is_slow(map.extend_from_empty(KEYS, 0.0).unwrap(), 1);
    // Entries are counted as operations are.
    for &what in Whole::value_variants() {
        is_slow(map.whole(what, KEYS, 0.1).unwrap(), 1);
    }
    let texts = plan::texts(KEYS, Dist::Uniform, 2, OPS).unwrap();
    let mut map = TextRunner::<Slow<RwLockHashbrown<String, String>>>::new();
    is_slow(map.read(&texts, 0.0).unwrap(), 2);
}

#[test]
fn of_mixes_that_change_the_map_as_long_as_is_asked_for() {
    let workload = Workload::churning("inserts", "0/100/0/0".parse().unwrap());
    let ops = workload.ops(KEYS, 1, OPS);
    let mix = plan::mixed(&workload, KEYS, Dist::Uniform, 1, ops, None).unwrap();
    let mut map = Runner::<Slow<RwLockHashbrown<u64, u64>>>::new();
    MADE.set(0);
    is_slow(map.mix(&mix, 0.1).unwrap(), 1);
    // Ten keys per pass, which take hundredths of a second: the map is made again for each pass.
    assert!(MADE.get() > 1);
}

#[test]
fn of_caches() {
    let mut cache = CacheRunner::<Slow<QuickCache>>::new();
    let requests = |round, threads| {
        CacheLoad { entries: KEYS as usize, keys: KEYS, dist: Dist::Uniform }.plan(round, threads, OPS)
    };
    cache.fill(&requests(0, 1)).unwrap();
    for threads in [1, 2] {
        for loads in [false, true] {
            is_slow(cache.read_through(&requests(threads, threads), loads).unwrap().mops, threads);
        }
    }
    let resident = plan::resident(2, Dist::Uniform, 2, OPS);
    for batched in [false, true] {
        is_slow(cache.hits(200, &resident, batched, 0.0).unwrap(), 2);
    }
}

#[test]
fn of_filters() {
    let mut filter = FilterRunner::<Slow<KoelCuckoo>>::new();
    filter.fill(KEYS, 8, 1, 0.0).unwrap();
    let threads = plan::present(KEYS, 2, OPS);
    is_slow(filter.read(&threads, true, false, 0.0).unwrap(), 2);
    let churn = plan::churn(KEYS, 2, OPS);
    is_slow(filter.churn(&churn, 0.0).unwrap(), 2);
}
