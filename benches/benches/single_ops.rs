//! Single operations of every map, measured by criterion: `cargo bench -p koel-bench`.
//!
//! One thread, u64 to u64, a map that was built for its keys and holds them all. For several threads, mixes and
//! interleaved rounds see the `koel-bench` program.
#![allow(missing_docs, reason = "criterion's macros make undocumented functions")]

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use koel_bench::contestants::{
    BATCH, Contestant, Dashmap, Koel, KoelHeld, KoelInline, Papaya, PapayaHeld, RwLockHashbrown,
    SccHashIndex, SccHashMap, View,
};
use koel_bench::dist::Dist;
use koel_bench::keys::{self, FIRST_ABSENT};
use koel_bench::plan;

/// One size inside the processor's caches, and one around their size.
const SIZES: [u64; 2] = [60_000, 950_000];

/// How many keys are asked for in turn; a power of two.
const DRAWN: usize = 1 << 20;

type Group<'a> = BenchmarkGroup<'a, WallTime>;

/// Keys drawn beforehand, repeated endlessly.
struct Circle {
    keys: Vec<u64>,
    next: usize,
}

impl Circle {
    fn new(size: u64, present: bool) -> Self {
        let keys = plan::reads(size, Dist::Uniform, 1, DRAWN, present)
            .expect("nobody stops it")
            .threads
            .swap_remove(0);
        Circle { keys, next: 0 }
    }

    #[inline]
    fn next(&mut self) -> u64 {
        let key = self.keys[self.next % DRAWN];
        self.next += 1;
        key
    }

    #[inline]
    fn next_batch(&mut self) -> &[u64] {
        let first = self.next % DRAWN;
        self.next += BATCH;
        &self.keys[first..first + BATCH]
    }
}

fn filled<C: Contestant>(size: u64) -> C {
    let map = C::with_capacity(size as usize);
    for key in (0..size).map(keys::key) {
        map.view().insert(key, keys::value(key, 0));
    }
    map
}

fn get<C: Contestant>(group: &mut Group<'_>, size: u64, present: bool) {
    let (map, mut circle) = (filled::<C>(size), Circle::new(size, present));
    group.bench_function(BenchmarkId::new(C::NAME, size), |b| {
        let view = map.view();
        b.iter(|| view.get(circle.next()));
    });
}

fn get_many<C: Contestant>(group: &mut Group<'_>, size: u64) {
    let (map, mut circle) = (filled::<C>(size), Circle::new(size, true));
    group.bench_function(BenchmarkId::new(C::NAME, size), |b| {
        b.iter(|| {
            let mut sum = 0_u64;
            map.view().get_many(circle.next_batch(), |_, value| sum = sum.wrapping_add(value.unwrap_or(0)));
            sum
        });
    });
}

fn replace<C: Contestant>(group: &mut Group<'_>, size: u64) {
    let (map, mut circle) = (filled::<C>(size), Circle::new(size, true));
    group.bench_function(BenchmarkId::new(C::NAME, size), |b| {
        b.iter(|| {
            let key = circle.next();
            map.view().insert(key, keys::value(key, 1))
        });
    });
}

fn update<C: Contestant>(group: &mut Group<'_>, size: u64) {
    let (map, mut circle) = (filled::<C>(size), Circle::new(size, true));
    group.bench_function(BenchmarkId::new(C::NAME, size), |b| b.iter(|| map.view().update(circle.next())));
}

/// An insert of a new key and its removal: the map stays as it is.
fn insert_remove<C: Contestant>(group: &mut Group<'_>, size: u64) {
    let (map, mut fresh) = (filled::<C>(size), FIRST_ABSENT);
    group.bench_function(BenchmarkId::new(C::NAME, size), |b| {
        b.iter(|| {
            let key = keys::key(fresh);
            fresh += 1;
            let view = map.view();
            view.insert(key, keys::value(key, 0));
            view.remove(key)
        });
    });
}

/// Calls a generic function for every contestant; those that hold their pin are named separately, as they make sense only for
/// reads.
macro_rules! for_each_map {
    ($function:ident, $($argument:expr),*) => {
        $function::<Koel<u64, u64>>($($argument),*);
        $function::<KoelInline>($($argument),*);
        $function::<Papaya<u64, u64>>($($argument),*);
        $function::<Dashmap<u64, u64>>($($argument),*);
        $function::<SccHashMap<u64, u64>>($($argument),*);
        $function::<SccHashIndex<u64, u64>>($($argument),*);
        $function::<RwLockHashbrown<u64, u64>>($($argument),*);
    };
}

fn reads(c: &mut Criterion) {
    for (name, present) in [("get hit", true), ("get miss", false)] {
        let mut group = c.benchmark_group(name);
        group.throughput(Throughput::Elements(1));
        for size in SIZES {
            for_each_map!(get, &mut group, size, present);
            get::<KoelHeld<u64, u64>>(&mut group, size, present);
            get::<PapayaHeld<u64, u64>>(&mut group, size, present);
        }
    }
    let mut group = c.benchmark_group("get_many");
    group.throughput(Throughput::Elements(BATCH as u64));
    for size in SIZES {
        for_each_map!(get_many, &mut group, size);
    }
}

fn writes(c: &mut Criterion) {
    let mut group = c.benchmark_group("replace");
    for size in SIZES {
        for_each_map!(replace, &mut group, size);
    }
    group.finish();
    let mut group = c.benchmark_group("update");
    for size in SIZES {
        for_each_map!(update, &mut group, size);
    }
    group.finish();
    let mut group = c.benchmark_group("insert and remove");
    for size in SIZES {
        for_each_map!(insert_remove, &mut group, size);
    }
    group.finish();
}

criterion_group!(single_ops, reads, writes);
criterion_main!(single_ops);
