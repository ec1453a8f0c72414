//! The operations that are done without memory.

use koel::{
    Cache, CacheError, CuckooFilter, FilterError, HashMap, InlineCache, InlineMap, Policy,
    ScalableCuckooFilter, Why,
};

use crate::allocator::Plan;
use crate::alone::{boxes_alone, extend_alone};
use crate::checked::replaced_boxes;
use crate::common::{AnyMap, Config, Seeded, catch, seeded};
use crate::filters;

/// Performs the operation, without the memory that the plan refuses.
type Operation = fn(&mut Plan);
type Pointers = HashMap<u64, u64, Seeded>;
type Inline = InlineMap<u64, u64, Seeded>;

/// An operation, and its allowed outcomes.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) run: Operation,
    /// When it returns an error, or panics, for lack of memory; `None` if it never does.
    pub(crate) fails: Option<Fails>,
    pub(crate) ends: Ends,
}

/// Where a lack of memory may end the process.
#[derive(Clone, Copy)]
pub(crate) enum Ends {
    /// In these modules only.
    In(&'static [&'static str]),
    /// Where this many bytes or fewer are requested.
    Small(usize),
}

/// When an operation fails.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fails {
    /// As soon as one request is refused.
    AtOnce,
    /// Only if alternative requests are refused as well.
    AtLast,
}

/// The process never ends.
const NEVER: Ends = Ends::In(&[]);
/// The seat of a thread that pins any map for the first time.
const PINNING: Ends = Ends::In(&["koel::seats::"]);
/// The same, and the counted boxes that a map is made of.
const MAKING: Ends = Ends::Small(20_000);
/// Lists of keys in the order in which they leave, and of keys that have left; of entries that leave in one call; of loads that
/// are under way; and the counters of a thread.
const LISTS: Ends = Ends::In(&[
    "koel::cache::policy::",
    "koel::cache::gone::",
    "koel::cache::flight::",
    "koel::per_thread::",
    "koel::seats::",
]);

const fn case(name: &'static str, run: Operation, fails: Option<Fails>, ends: Ends) -> Case {
    Case { name, run, fails, ends }
}

pub(crate) const ALL: &[Case] = &[
    case("HashMap::try_build", build::<Pointers>, Some(Fails::AtOnce), MAKING),
    case("InlineMap::try_build", build::<Inline>, Some(Fails::AtOnce), MAKING),
    case("HashMap::checked_insert", checked_insert::<Pointers>, Some(Fails::AtOnce), NEVER),
    case("InlineMap::checked_insert", checked_insert::<Inline>, Some(Fails::AtLast), NEVER),
    case("HashMap::insert", insert::<Pointers>, Some(Fails::AtOnce), NEVER),
    case("InlineMap::insert", insert::<Inline>, Some(Fails::AtLast), NEVER),
    case("HashMap::extend", extend::<Pointers>, Some(Fails::AtOnce), NEVER),
    case("InlineMap::extend", extend::<Inline>, Some(Fails::AtLast), NEVER),
    case("HashMap::extend, alone", extend_alone::<Pointers>, Some(Fails::AtOnce), MAKING),
    case("InlineMap::extend, alone", extend_alone::<Inline>, Some(Fails::AtLast), MAKING),
    case("HashMap::update_or_insert", update::<Pointers>, Some(Fails::AtOnce), NEVER),
    case("InlineMap::update_or_insert", update::<Inline>, Some(Fails::AtLast), NEVER),
    case("HashMap::try_reserve", try_reserve::<Pointers>, Some(Fails::AtOnce), NEVER),
    case("InlineMap::try_reserve", try_reserve::<Inline>, Some(Fails::AtOnce), NEVER),
    case("HashMap::shrink_to_fit", shrink::<Pointers>, None, NEVER),
    case("InlineMap::shrink_to_fit", shrink::<Inline>, None, NEVER),
    case("HashMap of boxes", boxes, Some(Fails::AtOnce), PINNING),
    case("HashMap of boxes, replaced", replaced_boxes, Some(Fails::AtOnce), PINNING),
    case("HashMap of boxes, alone", boxes_alone, Some(Fails::AtOnce), NEVER),
    case("Cache::try_build", cache_build, Some(Fails::AtOnce), MAKING),
    case("Cache::insert", cache_insert, Some(Fails::AtOnce), LISTS),
    case("Cache::get_or_insert_with", cache_load, None, LISTS),
    case("Cache::set_capacity", cache_capacity, None, LISTS),
    case("InlineCache::try_build", inline_cache_build, Some(Fails::AtOnce), MAKING),
    case("InlineCache::insert", inline_cache_insert, None, LISTS),
    case("InlineCache::get_or_insert_with", inline_cache_load, None, LISTS),
    case("CuckooFilter::build", filter_build, Some(Fails::AtOnce), NEVER),
    case("CuckooFilter::from_keys", from_keys, Some(Fails::AtOnce), NEVER),
    case(
        "ScalableCuckooFilter::insert",
        scalable_insert,
        Some(Fails::AtOnce),
        Ends::In(&["koel::filter::scalable::", "koel::seats::"]),
    ),
    case("ScalableCuckooFilter::compact", compact, None, NEVER),
    case("CuckooFilter::read_from", filters::read, Some(Fails::AtOnce), NEVER),
    case("ChunkLoader::load", filters::load, Some(Fails::AtOnce), NEVER),
    case("ChunkLoader::try_finish_scalable", filters::load_growing, Some(Fails::AtOnce), MAKING),
    case("ScalableCuckooFilter::from_bytes", filters::growing_from_bytes, Some(Fails::AtOnce), MAKING),
    case("FilterView::from_bytes", filters::view, Some(Fails::AtOnce), NEVER),
    case("CuckooFilter::try_union", filters::unite, Some(Fails::AtOnce), NEVER),
];

/// Tells the parent that an operation has failed.
pub(crate) fn failed() {
    eprintln!("failed");
}

pub(crate) trait Words: AnyMap<Key = u64, Value = u64, Hasher = Seeded> {}
impl<M: AnyMap<Key = u64, Value = u64, Hasher = Seeded>> Words for M {}

/// The map has exactly the keys `0..len`, each with the value that was put.
pub(crate) fn assert_whole<M: Words>(map: &M, len: u64) {
    assert!((0..len).all(|key| map.get(&key) == Some(!key)), "a key is lost");
    assert_eq!((map.len() as u64, map.entries().len() as u64), (len, len));
    assert_eq!(map.get(&len), None);
}

fn build<M: Words>(plan: &mut Plan) {
    for config in
        [Config::GROWING, Config::room_for(5000), Config::fixed(5000), Config::fixed(5000).huge_pages()]
    {
        match plan.run(|| M::try_build(config, seeded(1))) {
            Ok(map) => assert!(map.checked_insert(0, !0).is_ok() && map.get(&0) == Some(!0)),
            Err(error) => {
                assert!(error.out_of_memory && plan.is_over(), "{error}");
                failed();
            }
        }
        M::build(config, seeded(1)).insert(1, 1);
    }
}

/// Many small segments, so that they split and the directory doubles.
const SPLITTING: Config = Config { segment_slots: Some(64), ..Config::GROWING };

fn checked_insert<M: Words>(plan: &mut Plan) {
    let map = M::build(SPLITTING, seeded(1));
    assert_eq!(map.get(&0), None, "and this thread has pinned it");
    for key in 0..600 {
        if let Err(full) = plan.run(|| map.checked_insert(key, !key)) {
            assert_eq!((full.key, full.value), (key, !key));
            assert!(plan.is_over());
            failed();
            assert_whole(&map, key);
            assert!(map.checked_insert(key, !key).is_ok(), "there is memory again");
        }
    }
    assert_whole(&map, 600);
}

fn insert<M: Words>(plan: &mut Plan) {
    let map = M::build(Config::GROWING, seeded(1));
    assert_eq!(map.get(&0), None, "and this thread has pinned it");
    for key in 0..300 {
        if let Err(message) = catch(|| plan.run(|| map.insert(key, !key))) {
            assert!(message.contains("no memory") && plan.is_over(), "{message}");
            failed();
            assert_whole(&map, key);
            map.insert(key, !key);
        }
    }
    assert_whole(&map, 300);
}

/// In order, up to the first entry that has no room; the same with and without memory for a batch.
fn extend<M: Words>(plan: &mut Plan) {
    let map = M::build(Config::GROWING, seeded(1));
    assert_eq!(map.get(&0), None, "and this thread has pinned it");
    map.insert(0, !0);
    for first in (0..300).step_by(50) {
        let pairs = || (first..first + 50).map(|key| (key, !key)).collect::<Vec<_>>();
        let taken = pairs();
        if let Err(message) = catch(|| plan.run(|| map.extend(taken))) {
            assert!(message.contains("no memory") && plan.is_over(), "{message}");
            failed();
            assert!((first..first + 50).contains(&(map.len() as u64)), "{} of {first} and 50", map.len());
            assert_whole(&map, map.len() as u64);
            map.extend(pairs());
        }
    }
    assert_whole(&map, 300);
}

fn update<M: Words>(plan: &mut Plan) {
    let map = M::build(Config::GROWING, seeded(1));
    for round in 0..3 {
        for key in 0..100 {
            let mut go = || catch(|| plan.run(|| map.update_or_insert(key, |value| value + 1, 0)));
            let before = map.get(&key);
            if go().is_err() {
                assert_eq!(map.get(&key), before);
                failed();
                assert!(go().is_ok(), "there is memory again");
            }
            assert_eq!(map.get(&key), Some(round));
        }
    }
    assert_eq!(map.len(), 100);
}

fn filled<M: Words>(config: Config, len: u64) -> M {
    let map = M::build(config, seeded(1));
    (0..len).for_each(|key| assert_eq!(map.insert(key, !key), None));
    map
}

fn try_reserve<M: Words>(plan: &mut Plan) {
    let map = filled::<M>(SPLITTING, 100);
    if let Err(error) = plan.run(|| map.try_reserve(1000)) {
        assert!(error.out_of_memory && error.requested == 1100 && plan.is_over(), "{error}");
        failed();
        assert_whole(&map, 100);
        map.reserve(1000);
    }
    assert_whole(&map, 100);
}

fn shrink<M: Words>(plan: &mut Plan) {
    let map = filled::<M>(SPLITTING, 150);
    map.retain(|key, _| *key < 50);
    // It is best effort: no error, no panic.
    plan.run(|| map.shrink_to_fit());
    assert_whole(&map, 50);
    map.shrink_to_fit();
    assert_whole(&map, 50);
}

/// Entries with boxes of their own.
fn boxes(plan: &mut Plan) {
    let map = HashMap::<u64, [u64; 1000]>::new();
    for key in 0..20 {
        let lacking = plan.run(|| map.pin().checked_insert(key, [key; 1000]).map(drop).err());
        if let Some(full) = lacking {
            assert_eq!((full.key, full.value[999]), (key, key));
            assert!(plan.is_over());
            failed();
            assert!(map.pin().checked_insert(key, [key; 1000]).is_ok(), "there is memory again");
        }
    }
    assert!((0..20).all(|key| map.pin().get(&key) == Some(&[key; 1000])) && map.len() == 20);
}

fn cache_build(plan: &mut Plan) {
    for policy in [Policy::Adaptive, Policy::Clock, Policy::Local] {
        let new =
            || Cache::<u64, u64>::builder().max_entries(5000).policy(policy).hasher(seeded(1)).try_build();
        match plan.run(new) {
            Ok(cache) => assert!(cache.insert(1, 2).is_ok() && cache.get(&1) == Some(2)),
            Err(error) => {
                assert!(matches!(error, CacheError::Capacity(error) if error.out_of_memory), "{error}");
                assert!(plan.is_over());
                failed();
            }
        }
        assert!(new().is_ok());
    }
}

fn cache_insert(plan: &mut Plan) {
    let cache = Cache::<u64, u64>::builder().max_entries(100).hasher(seeded(1)).build();
    for key in 0..300 {
        if let Err(refused) = plan.run(|| cache.insert(key, !key)) {
            assert_eq!((refused.key, refused.value, refused.why), (key, !key, Why::OutOfMemory));
            assert!(plan.is_over());
            failed();
            assert!(!cache.contains_key(&key));
            assert_eq!(cache.insert(key, !key), Ok(()));
        }
        assert_eq!(cache.peek(&key), Some(!key));
        assert!(cache.len() <= 100);
    }
}

fn cache_load(plan: &mut Plan) {
    let cache = Cache::<u64, u64>::builder().max_entries(100).hasher(seeded(1)).build();
    for key in 0..300 {
        // Whether or not the cache could keep it.
        assert_eq!(plan.run(|| cache.get_or_insert_with(key, || !key)), !key);
        assert_eq!(cache.get_or_insert_with(key, || !key), !key);
        assert!(cache.len() <= 100 && cache.peek(&key) == Some(!key));
    }
}

fn inline_cache_build(plan: &mut Plan) {
    for policy in [Policy::Adaptive, Policy::Clock, Policy::Local] {
        let builder = || InlineCache::<u64, u64>::builder().max_entries(5000).policy(policy);
        let new = || builder().hasher(seeded(1)).try_build();
        match plan.run(new) {
            Ok(cache) => assert!(cache.insert(1, 2).is_none() && cache.get(&1) == Some(2)),
            Err(error) => {
                assert!(matches!(error, CacheError::Capacity(error) if error.out_of_memory), "{error}");
                assert!(plan.is_over());
                failed();
            }
        }
        assert!(new().is_ok());
    }
}

/// If there is no memory for a larger table, other entries leave.
fn inline_cache_insert(plan: &mut Plan) {
    let cache = InlineCache::<u64, u64>::builder().max_entries(100).hasher(seeded(1)).build();
    for key in 0..300 {
        assert_eq!(plan.run(|| cache.insert(key, !key)), None);
        assert_eq!(cache.peek(&key), Some(!key));
        assert!(cache.len() <= 100);
    }
    assert!(cache.len() > 90, "{}", cache.len());
}

fn inline_cache_load(plan: &mut Plan) {
    let cache = InlineCache::<u64, u64>::builder().max_entries(100).hasher(seeded(1)).build();
    for key in 0..300 {
        assert_eq!(plan.run(|| cache.get_or_insert_with(key, || !key)), !key);
        assert!(cache.len() <= 100 && cache.peek(&key) == Some(!key));
    }
}

fn cache_capacity(plan: &mut Plan) {
    let cache = Cache::<u64, u64>::builder().max_entries(100).hasher(seeded(1)).build();
    (0..100).for_each(|key| assert_eq!(cache.insert(key, !key), Ok(())));
    plan.run(|| cache.set_capacity(2000));
    for key in 100..1500 {
        if plan.run(|| cache.insert(key, !key)).is_err() {
            assert!(plan.is_over() && cache.insert(key, !key) == Ok(()));
        }
    }
    assert_eq!(cache.len(), 1500, "a larger table was not tried for again");
    plan.run(|| cache.set_capacity(10));
    assert!(cache.len() <= 10 && cache.iter().all(|(key, value)| value == !key));
}

fn filter_build(plan: &mut Plan) {
    let new = || CuckooFilter::builder().capacity(10_000).seed(1).build();
    match plan.run(new) {
        Ok(filter) => assert!(filter.insert(&1).is_ok() && filter.contains(&1)),
        Err(error) => {
            assert!(matches!(error, FilterError::OutOfMemory { .. }) && plan.is_over(), "{error}");
            failed();
        }
    }
    assert!(new().is_ok());
}

fn from_keys(plan: &mut Plan) {
    // A filter of more than one segment.
    let new = || CuckooFilter::builder().seed(1).from_keys((0..300_000_u64).filter(|key| key % 3 != 0));
    match plan.run(new) {
        Ok(filter) => assert_eq!(filter.len(), 200_000),
        Err(error) => {
            assert!(matches!(error, FilterError::OutOfMemory { .. }) && plan.is_over(), "{error}");
            failed();
        }
    }
}

/// Keys for three tables.
const SCALABLE_KEYS: u64 = 12_000;

fn scalable() -> ScalableCuckooFilter {
    ScalableCuckooFilter::builder().capacity(100).false_positive_rate(0.01).seed(1).build().unwrap()
}

fn scalable_insert(plan: &mut Plan) {
    let filter = scalable();
    for key in 0..SCALABLE_KEYS {
        if plan.run(|| filter.insert(&key)).is_err() {
            assert!(plan.is_over());
            failed();
            assert_eq!(filter.len() as u64, key);
            assert!((0..key).all(|key| filter.contains(&key)), "a key is lost");
            assert!(filter.insert(&key).is_ok(), "there is memory again");
        }
    }
    assert!((0..SCALABLE_KEYS).all(|key| filter.contains(&key)));
    // Without memory for a third table, room was made in the first.
    assert_eq!(filter.len() as u64, SCALABLE_KEYS);
}

fn compact(plan: &mut Plan) {
    let filter = scalable();
    (0..SCALABLE_KEYS).for_each(|key| filter.insert(&key).unwrap());
    (1000..SCALABLE_KEYS).for_each(|key| assert!(filter.remove(&key)));
    // It is best effort: it gives less back, and no fingerprint is lost.
    let given_back = plan.run(|| filter.compact()) + filter.compact();
    assert_eq!((given_back, filter.len()), (2, 1000));
    assert!((0..1000_u64).all(|key| filter.contains(&key)), "a key is lost");
    (1000..SCALABLE_KEYS).for_each(|key| filter.insert(&key).unwrap());
}
