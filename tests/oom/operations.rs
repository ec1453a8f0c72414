//! What is done without memory.

use koel::{
    Cache, CacheError, CuckooFilter, FilterError, HashMap, InlineMap, Policy, ScalableCuckooFilter, Why,
};

use crate::allocator::refusing;
use crate::common::{AnyMap, Config, Seeded, catch, seeded};

/// Does it with the n-th allocation refused; false if there were fewer.
type Operation = fn(usize) -> bool;
type Pointers = HashMap<u64, u64, Seeded>;
type Inline = InlineMap<u64, u64, Seeded>;

pub(crate) const ALL: &[(&str, Operation)] = &[
    ("HashMap::try_build", build::<Pointers>),
    ("InlineMap::try_build", build::<Inline>),
    ("HashMap::checked_insert", checked_insert::<Pointers>),
    ("InlineMap::checked_insert", checked_insert::<Inline>),
    ("HashMap::insert", insert::<Pointers>),
    ("InlineMap::insert", insert::<Inline>),
    ("HashMap::update_or_insert", update::<Pointers>),
    ("InlineMap::update_or_insert", update::<Inline>),
    ("HashMap::reserve", reserve::<Pointers>),
    ("InlineMap::reserve", reserve::<Inline>),
    ("HashMap::shrink_to_fit", shrink::<Pointers>),
    ("InlineMap::shrink_to_fit", shrink::<Inline>),
    ("HashMap of boxes", boxes),
    ("Cache::try_build", cache_build),
    ("Cache::insert", cache_insert),
    ("Cache::get_or_insert_with", cache_load),
    ("Cache::set_capacity", cache_capacity),
    ("CuckooFilter::build", filter_build),
    ("ScalableCuckooFilter::insert", scalable_insert),
];

trait Words: AnyMap<Key = u64, Value = u64, Hasher = Seeded> {}
impl<M: AnyMap<Key = u64, Value = u64, Hasher = Seeded>> Words for M {}

/// The map has exactly `0..len`, each as it was put.
fn assert_whole<M: Words>(map: &M, len: u64) {
    assert!((0..len).all(|key| map.get(&key) == Some(!key)), "a key is lost");
    assert_eq!((map.len() as u64, map.entries().len() as u64), (len, len));
    assert_eq!(map.get(&len), None);
}

fn build<M: Words>(mut n: usize) -> bool {
    for config in
        [Config::GROWING, Config::room_for(5000), Config::fixed(5000), Config::fixed(5000).huge_pages()]
    {
        match refusing(&mut n, || M::try_build(config, seeded(1))) {
            Ok(map) => assert!(map.checked_insert(0, !0).is_ok() && map.get(&0) == Some(!0)),
            Err(error) => assert!(error.out_of_memory && n == 0, "{error}"),
        }
        M::build(config, seeded(1)).insert(1, 1);
    }
    n == 0
}

/// Many small segments, so that they split and the directory doubles.
const SPLITTING: Config = Config { segment_slots: Some(64), ..Config::GROWING };

fn checked_insert<M: Words>(mut n: usize) -> bool {
    let map = M::build(SPLITTING, seeded(1));
    for key in 0..600 {
        if let Err(full) = refusing(&mut n, || map.checked_insert(key, !key)) {
            assert_eq!((full.key, full.value, n), (key, !key, 0));
            assert_whole(&map, key);
            assert!(map.checked_insert(key, !key).is_ok(), "there is memory again");
        }
    }
    assert_whole(&map, 600);
    n == 0
}

fn insert<M: Words>(mut n: usize) -> bool {
    let map = M::build(Config::GROWING, seeded(1));
    for key in 0..300 {
        if let Err(message) = catch(|| refusing(&mut n, || map.insert(key, !key))) {
            assert!(message.contains("no memory") && n == 0, "{message}");
            assert_whole(&map, key);
            map.insert(key, !key);
        }
    }
    assert_whole(&map, 300);
    n == 0
}

fn update<M: Words>(mut n: usize) -> bool {
    let map = M::build(Config::GROWING, seeded(1));
    for round in 0..3 {
        for key in 0..100 {
            let mut go = || catch(|| refusing(&mut n, || map.update_or_insert(key, |value| value + 1, 0)));
            let before = map.get(&key);
            if go().is_err() {
                assert_eq!(map.get(&key), before);
                assert!(go().is_ok(), "there is memory again");
            }
            assert_eq!(map.get(&key), Some(round));
        }
    }
    assert_eq!(map.len(), 100);
    n == 0
}

fn filled<M: Words>(config: Config, len: u64) -> M {
    let map = M::build(config, seeded(1));
    (0..len).for_each(|key| assert_eq!(map.insert(key, !key), None));
    map
}

fn reserve<M: Words>(mut n: usize) -> bool {
    let map = filled::<M>(SPLITTING, 100);
    if let Err(message) = catch(|| refusing(&mut n, || map.reserve(1000))) {
        assert!(message.starts_with("no memory") && n == 0, "{message}");
        assert_whole(&map, 100);
        map.reserve(1000);
    }
    assert_whole(&map, 100);
    n == 0
}

fn shrink<M: Words>(mut n: usize) -> bool {
    let map = filled::<M>(SPLITTING, 2000);
    map.retain(|key, _| *key < 50);
    // It is a favour: no error, no panic.
    refusing(&mut n, || map.shrink_to_fit());
    assert_whole(&map, 50);
    map.shrink_to_fit();
    assert_whole(&map, 50);
    n == 0
}

/// Entries with boxes of their own.
fn boxes(mut n: usize) -> bool {
    let map = HashMap::<u64, [u64; 1000]>::new();
    for key in 0..20 {
        let failed = refusing(&mut n, || map.pin().checked_insert(key, [key; 1000]).map(drop).err());
        if let Some(full) = failed {
            assert_eq!((full.key, full.value[999], n), (key, key, 0));
            assert!(map.pin().checked_insert(key, [key; 1000]).is_ok(), "there is memory again");
        }
    }
    assert!((0..20).all(|key| map.pin().get(&key) == Some(&[key; 1000])) && map.len() == 20);
    n == 0
}

fn cache_build(mut n: usize) -> bool {
    for policy in [Policy::Adaptive, Policy::Clock] {
        let new = || Cache::<u64, u64>::builder().max_entries(5000).policy(policy).try_build();
        match refusing(&mut n, new) {
            Ok(cache) => assert!(cache.insert(1, 2).is_ok() && cache.get(&1) == Some(2)),
            Err(error) => assert!(
                matches!(error, CacheError::Capacity(error) if error.out_of_memory) && n == 0,
                "{error}"
            ),
        }
        assert!(new().is_ok());
    }
    n == 0
}

fn cache_insert(mut n: usize) -> bool {
    let cache = Cache::<u64, u64>::builder().max_entries(100).build();
    for key in 0..300 {
        if let Err(refused) = refusing(&mut n, || cache.insert(key, !key)) {
            assert_eq!((refused.key, refused.value, refused.why, n), (key, !key, Why::OutOfMemory, 0));
            assert!(!cache.contains_key(&key));
            assert_eq!(cache.insert(key, !key), Ok(()));
        }
        assert_eq!(cache.peek(&key), Some(!key));
        assert!(cache.len() <= 100);
    }
    n == 0
}

fn cache_load(mut n: usize) -> bool {
    let cache = Cache::<u64, u64>::builder().max_entries(100).build();
    for key in 0..300 {
        // Whether the cache could keep it or not.
        assert_eq!(refusing(&mut n, || cache.get_or_insert_with(key, || !key)), !key);
        assert_eq!(cache.get_or_insert_with(key, || !key), !key);
        assert!(cache.len() <= 100 && cache.peek(&key) == Some(!key));
    }
    n == 0
}

fn cache_capacity(mut n: usize) -> bool {
    let cache = Cache::<u64, u64>::builder().max_entries(100).build();
    (0..100).for_each(|key| assert_eq!(cache.insert(key, !key), Ok(())));
    refusing(&mut n, || cache.set_capacity(2000));
    for key in 100..1500 {
        if refusing(&mut n, || cache.insert(key, !key)).is_err() {
            assert_eq!((n, cache.insert(key, !key)), (0, Ok(())));
        }
    }
    assert_eq!(cache.len(), 1500, "a larger table was not tried for again");
    refusing(&mut n, || cache.set_capacity(10));
    assert!(cache.len() <= 10 && cache.iter().all(|(key, value)| value == !key));
    n == 0
}

fn filter_build(mut n: usize) -> bool {
    let new = || CuckooFilter::builder().capacity(10_000).seed(1).build();
    match refusing(&mut n, new) {
        Ok(filter) => assert!(filter.insert(&1).is_ok() && filter.contains(&1)),
        Err(error) => assert!(matches!(error, FilterError::OutOfMemory { .. }) && n == 0, "{error}"),
    }
    assert!(new().is_ok());
    n == 0
}

fn scalable_insert(mut n: usize) -> bool {
    let filter =
        ScalableCuckooFilter::builder().capacity(100).false_positive_rate(0.01).seed(1).build().unwrap();
    for key in 0..2000_u64 {
        if refusing(&mut n, || filter.insert(&key)).is_err() {
            assert_eq!((n, filter.len()), (0, key as usize));
            assert!((0..key).all(|key| filter.contains(&key)), "a key is lost");
            assert!(filter.insert(&key).is_ok(), "there is memory again");
        }
    }
    assert!((0..2000_u64).all(|key| filter.contains(&key)) && filter.len() == 2000);
    n == 0
}
