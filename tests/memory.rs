//! `memory_usage()` agrees with the allocator, no more is kept than is needed, and all memory is given back.

mod common;

use core::cell::Cell;
use std::alloc::{GlobalAlloc, Layout};

use common::counting::{Counting, allocated, peak_of};
use common::{AnyMap, Config, Rng, Words, growing_configs, ignore, laws, seed, seeded};
use koel::{HashMap, InlineCache, InlineMap, ScalableCuckooFilter};

/// Refuses large requests beyond a thread's budget.
struct Budgeted;

thread_local!(static BUDGET: Cell<isize> = const { Cell::new(isize::MAX) });

/// Requests of this many bytes and more are refused when the budget is used up. Smaller ones may come from code that expects no
/// refusal.
const LARGE: usize = 8192;

/// Whether the thread's budget suffices.
fn affords(layout: Layout) -> bool {
    let within = |budget: isize| layout.size() as isize <= budget.saturating_sub(allocated());
    layout.size() < LARGE || BUDGET.try_with(|budget| within(budget.get())).unwrap_or(true)
}

// SAFETY: another allocator does the work.
unsafe impl GlobalAlloc for Budgeted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's.
        if affords(layout) { unsafe { Counting.alloc(layout) } } else { core::ptr::null_mut() }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's.
        if affords(layout) { unsafe { Counting.alloc_zeroed(layout) } } else { core::ptr::null_mut() }
    }

    unsafe fn dealloc(&self, base: *mut u8, layout: Layout) {
        // SAFETY: the caller's.
        unsafe { Counting.dealloc(base, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Budgeted = Budgeted;

/// The memory that a thread's first use of a collector, and removed entries that wait for more, may take.
const SLACK: isize = 40_000;

const ENTRIES: u64 = 80_000;

/// Checks that `memory_usage` is what was allocated since `before`, to within 2%.
fn assert_agrees<M: AnyMap>(what: &str, map: &M, before: isize) {
    map.flush();
    let (claimed, real) = (map.memory_usage() as isize, allocated() - before);
    let error = (claimed - real).abs();
    assert!(
        error <= real / 50 + SLACK / 2,
        "{} {what}: memory_usage is {claimed}, allocated are {real}",
        M::NAME
    );
}

fn configs() -> Vec<(&'static str, Config)> {
    let entries = ENTRIES as usize;
    let mut configs = vec![
        ("with room", Config::room_for(entries)),
        ("fixed", Config::fixed(entries)),
        ("home cells", Config::room_for(entries).home_cells()),
        ("fixed, huge pages, home cells", Config::fixed(entries).huge_pages().home_cells()),
        ("huge pages, grown", Config::room_for(entries / 4).huge_pages()),
        ("fixed, one segment", Config::fixed(entries).segments_of(1 << 20)),
    ];
    configs.extend(growing_configs().map(|config| ("grown", config)));
    configs
}

fn in_all_stages<M: Words>() {
    for (what, config) in configs() {
        let before = allocated();
        let map = M::build(config, seeded(3));
        assert_agrees(&format!("{what}, empty"), &map, before);
        (0..ENTRIES).for_each(|key| assert!(map.insert(key, key).is_none()));
        assert_agrees(&format!("{what}, full"), &map, before);
        (0..ENTRIES).for_each(|key| assert!(map.insert(key, key).is_some()));
        assert_agrees(&format!("{what}, all replaced"), &map, before);
        map.retain(|key, _| *key % 10 == 0);
        assert_agrees(&format!("{what}, nine tenths removed"), &map, before);
        map.shrink_to_fit();
        assert_agrees(&format!("{what}, shrunk"), &map, before);
        map.clear();
        assert_agrees(&format!("{what}, cleared"), &map, before);
        drop(map);
        let left = allocated() - before;
        assert!(left <= SLACK, "{} {what}: {left} bytes are left", M::NAME);
    }
}

laws! {
    in_all_stages =>
        a_hash_map_tells_its_memory_and_gives_it_back,
        an_inline_map_tells_its_memory_and_gives_it_back;
}

#[test]
fn a_hash_map_of_large_values_tells_its_memory() {
    let before = allocated();
    let map: HashMap<u32, [u64; 50]> = (0..5000).map(|key| (key, [0; 50])).collect();
    assert_agrees("large values", &map, before);
    drop(map.into_iter().take(100).collect::<Vec<_>>());
    assert!(allocated() - before <= SLACK);
}

#[test]
fn shrinking_a_hash_map_frees_its_tables() {
    let before = allocated();
    let map: HashMap<u64, u64> = (0..ENTRIES).map(|key| (key, key)).collect();
    let full = map.memory_usage();
    map.pin().retain(|key, _| *key < 10);
    map.shrink_to_fit();
    // Each of the ten may keep a chunk of 16 KiB.
    assert!(map.memory_usage() < full / 6, "{full} bytes became {}", map.memory_usage());
    assert!(allocated() - before < full as isize / 6 + SLACK);
    assert!((0..10).all(|key| map.pin().get(&key) == Some(&key)));
}

#[test]
fn compacting_a_filter_frees_the_tables_that_became_empty() {
    let before = allocated();
    let filter = ScalableCuckooFilter::builder().capacity(1000).seed(seed()).build().unwrap();
    (0..ENTRIES).for_each(|key| filter.insert(&key).unwrap());
    let grown = filter.memory_usage();
    (10..ENTRIES).for_each(|key| assert!(filter.remove(&key)));
    assert!(filter.compact() > 0);
    let real = allocated() - before;
    assert!(filter.memory_usage() < grown / 10, "{grown} bytes became {}", filter.memory_usage());
    let told = filter.memory_usage();
    assert!(real < told as isize + SLACK, "{told} are told, {real} allocated");
}

#[test]
fn a_pin_keeps_the_tables_that_its_thread_may_be_reading() {
    let map: HashMap<u64, u64> = (0..ENTRIES).map(|key| (key, key)).collect();
    let pin = map.pin();
    let value = pin.get(&77).unwrap();
    pin.retain(|key, _| *key < 10);
    pin.shrink_to_fit();
    assert_eq!((*value, pin.get(&77), pin.len()), (77, None, 10));
}

#[test]
fn releasing_an_inline_map_s_unused_tables_frees_them() {
    let before = allocated();
    let mut map: InlineMap<u64, u64> = InlineMap::new();
    (0..ENTRIES).for_each(|key| assert_eq!(map.insert(key, key), None));
    let grown = map.memory_usage();
    map.release_unused();
    assert_agrees("released", &map, before);
    assert!(map.memory_usage() <= grown);
    assert!((0..ENTRIES).all(|key| map.get(&key) == Some(key)));
    map.retain(|key, _| *key < 10);
    map.shrink_to_fit();
    map.release_unused();
    assert_agrees("shrunk and released", &map, before);
    assert!(map.memory_usage() < grown / 10, "{grown} bytes became {}", map.memory_usage());
    assert!((0..10).all(|key| map.get(&key) == Some(key)) && map.len() == 10);
    (0..ENTRIES).for_each(|key| ignore(map.insert(key, key)));
    assert_agrees("grown again", &map, before);
}

/// A map that is used for a long time holds no more memory than a new one.
fn steady<M: Words>() {
    let before = allocated();
    let map = M::build(Config::GROWING, seeded(4));
    const PRESENT: u64 = 5000;
    (0..PRESENT).for_each(|key| assert_eq!(map.insert(key, key), None));
    let mut most = 0;
    for round in 0..100 {
        for key in round * PRESENT..(round + 1) * PRESENT {
            assert_eq!(map.remove(&key), Some(key));
            assert_eq!(map.insert(key + PRESENT, key + PRESENT), None);
        }
        if round == 20 {
            most = (allocated() - before).max(0);
        }
    }
    let now = allocated() - before;
    assert!(now <= most + most / 10 + SLACK, "{}: {most} bytes after 20 rounds, {now} after 100", M::NAME);
}

laws! {
    steady =>
        churn_does_not_use_up_a_hash_map_s_memory,
        churn_does_not_use_up_an_inline_map_s_memory;
}

/// Growing and shrinking, over and over, to different sizes.
fn breathing<M: Words>() {
    let before = allocated();
    let map = M::build(Config::GROWING, seeded(4));
    let mut rng = Rng::new(seed());
    let mut most = 0;
    for round in 0..100 {
        (0..8000).for_each(|key| ignore(map.insert(key, key)));
        let keep = rng.below(8000);
        map.retain(|key, _| *key < keep);
        map.shrink_to_fit();
        if round == 5 {
            most = allocated() - before;
        }
    }
    let now = allocated() - before;
    assert!(now <= 4 * most + SLACK, "{}: {most} bytes after 5 rounds, {now} after 100", M::NAME);
}

laws! {
    breathing =>
        growing_and_shrinking_does_not_use_up_a_hash_map_s_memory,
        growing_and_shrinking_does_not_use_up_an_inline_map_s_memory;
}

/// Runs `body` while this thread can allocate this many more bytes.
fn with_budget<T>(bytes: isize, body: impl FnOnce() -> T) -> T {
    struct Lift;

    impl Drop for Lift {
        fn drop(&mut self) {
            BUDGET.with(|budget| budget.set(isize::MAX));
        }
    }

    let _lift = Lift;
    BUDGET.with(|budget| budget.set(allocated() + bytes));
    body()
}

/// Refused at once if the whole is too much, or at the segment for which no memory is left; and nothing stays behind.
fn refused<M: Words>() {
    let requests = [
        // More than the limit of 32 bits.
        #[cfg(target_pointer_width = "64")]
        (1 << 33, 1 << 30),
        #[cfg(target_pointer_width = "64")]
        (1 << 28, 1 << 30),
        (4_000_000, 20 << 20),
        (1_000_000, 3 << 20),
    ];
    for (entries, budget) in requests {
        let fixed = Config::fixed(entries);
        for config in [Config::room_for(entries), fixed, fixed.huge_pages()] {
            let before = allocated();
            let (result, most) = peak_of(|| with_budget(budget, || M::try_build(config, seeded(3))));
            let Err(error) = result else { panic!("{} {config:?} in {budget} bytes", M::NAME) };
            assert!(error.out_of_memory && error.requested == entries, "{} {config:?}: {error:?}", M::NAME);
            assert!(error.limit >= entries && error.to_string().contains("no memory"), "{error}");
            assert!(allocated() - before < 1000, "{} {config:?}: something is left", M::NAME);
            assert!(entries < 1 << 28 || most < 10_000, "{} {config:?}: took {most} bytes first", M::NAME);
        }
    }
}

/// Likewise for room that is asked for later: not only after the map has grown for it piece by piece, until all memory is used
/// up.
fn reserves_nothing_of_too_much<M: Words>() {
    let map = M::build(Config::GROWING, seeded(3));
    map.insert(1, 2);
    let (before, used) = (allocated(), map.memory_usage());
    let (result, most) = peak_of(|| with_budget(100 << 20, || map.try_reserve(1 << 25)));
    let error = result.expect_err("five bytes an entry at least");
    assert!(error.out_of_memory && error.requested == (1 << 25) + 1, "{error:?}");
    assert!(allocated() - before < 1000 && most < 10_000, "took {most} bytes first");
    assert_eq!((map.memory_usage(), map.get(&1)), (used, Some(2)));
}

laws! {
    refused =>
        a_capacity_that_the_memory_does_not_have_is_an_error_of_a_hash_map_that_says_so,
        a_capacity_that_the_memory_does_not_have_is_an_error_of_an_inline_map_that_says_so;
    reserves_nothing_of_too_much =>
        room_that_the_memory_does_not_have_is_not_reserved_in_part_by_a_hash_map,
        room_that_the_memory_does_not_have_is_not_reserved_in_part_by_an_inline_map;
}

/// However many owned pins there are at a time: a thread that takes another one, and one that frees memory, looks at all of
/// their records.
#[test]
fn many_owned_pins_have_few_records() {
    let map = HashMap::<u64, u64>::new();
    let mut pins = Vec::with_capacity(2000);
    let before = allocated();
    (0..2000).for_each(|_| pins.push(map.pin_owned()));
    assert!(allocated() - before < 10_000, "{} bytes", allocated() - before);
}

/// Entries that do not fit are handed back, and the map goes on with what it has.
fn starved<M: Words>() {
    // With segments of a size that is refused.
    for config in [Config::GROWING, Config::GROWING.segments_of(1 << 20)] {
        let map = M::build(config, seeded(3));
        let fill = || (0..).find(|key| map.checked_insert(*key, !key).is_err()).expect("it ends");
        let full = with_budget(1 << 20, fill);
        assert!(full > 1000 && full == map.len() as u64, "{full} entries in a MiB");
        assert!((0..full).all(|key| map.get(&key) == Some(!key)) && !map.contains_key(&full));
        with_budget(0, || {
            assert!((0..full / 2).all(|key| map.remove(&key) == Some(!key)));
            map.shrink_to_fit();
        });
        assert!((full / 2..full).all(|key| map.get(&key) == Some(!key)));
        assert!((0..2 * full).all(|key| map.checked_insert(key, key).is_ok()), "there is memory again");
        assert_eq!(map.len() as u64, 2 * full);
    }
}

laws! {
    starved =>
        a_hash_map_that_gets_no_more_memory_hands_back_what_does_not_fit,
        an_inline_map_that_gets_no_more_memory_hands_back_what_does_not_fit;
}

/// As the README and `memory_usage` say about small maps, where pointers have 64 bits; they take less with 32.
#[test]
#[cfg(target_pointer_width = "64")]
fn a_small_map_takes_what_is_told() {
    let measured = |what: &str, before: isize, told: core::ops::RangeInclusive<isize>| {
        let bytes = allocated() - before;
        eprintln!("{what}: {bytes}");
        assert!(told.contains(&bytes), "{what}: {bytes} bytes");
    };
    // Memory that a process and a thread allocate once.
    drop(HashMap::from([(1_u64, 1_u64)]).pin_owned());
    let own = size_of::<HashMap<u64, u64>>() as isize;
    let before = allocated();
    let map = HashMap::<u64, u64>::new();
    measured("made", before - own, 4300..=4750);
    // The record by which a thread pins serves all maps.
    drop(map.pin());
    measured("an empty HashMap", before - own, 4300..=4750);
    let counted = map.memory_usage() as isize;
    measured("what it does not count", before + counted, 0..=300);
    let before = allocated();
    drop(map.pin_owned());
    measured("its first owned pin", before, 256..=256);
    let before = allocated();
    drop(map.pin_owned());
    measured("its second", before, 0..=0);
    let before = allocated();
    map.pin().insert(1, 1);
    measured("its first entry, with a page for others", before, 4000..=4300);
    let before = allocated();
    let inline = InlineMap::<u64, u64>::new();
    measured("an empty InlineMap", before - size_of_val(&inline) as isize, 790..=890);
}

/// Except for the counters of threads, and memory for loads.
#[test]
fn an_inline_cache_says_what_it_has_and_gives_it_back() {
    InlineCache::<u64, u64>::new(1).insert(1, 1); // The thread's seat stays.
    for entries in [10, 20_000] {
        let before = allocated();
        let cache = InlineCache::<u64, [u64; 2]>::new(entries);
        (0..4 * entries as u64).for_each(|key| assert_eq!(cache.insert(key, [key; 2]), None));
        let told = (cache.memory_usage() - size_of_val(&cache)) as isize;
        assert!((0..20_000).contains(&(allocated() - before - told)), "{entries}: {told}");
        drop(cache);
        assert_eq!(allocated(), before);
    }
}
