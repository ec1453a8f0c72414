//! Debug, Clone, Eq, Default, collecting, extending, indexing, converting.

use std::collections::{BTreeMap, HashSet};
use std::fmt::Debug;
use std::sync::{Arc, Mutex};

use koel::{Cache, Compute, Full, HashMap, InlineCache, InlineMap, Occupied, Operation};

use crate::common::{AnyMap, Config, Seeded, catch, fixed_configs, growing_configs, seeded};

#[test]
fn debug_shows_the_entries() {
    let map = HashMap::from([("one", 1)]);
    assert_eq!(format!("{map:?} {:?}", map.pin()), r#"{"one": 1} {"one": 1}"#);
    assert_eq!(format!("{:#?}", HashMap::from([(1, 2)])), "{\n    1: 2,\n}");
    assert_eq!(format!("{:?}", InlineMap::from([(1, 2)])), "{1: 2}");
    assert_eq!(format!("{:?} {:?}", HashMap::<u8, u8>::new(), InlineMap::<u8, u8>::new()), "{} {}");
    let many: HashMap<u64, u64> = (0..100).map(|n| (n, n)).collect();
    let text = format!("{many:?}");
    assert!((0..100).all(|n| text.contains(&format!("{n}: {n}"))) && text.matches(": ").count() == 100);
}

#[test]
fn outcomes_say_what_happened() {
    let occupied = Occupied { current: "old", not_inserted: "new" };
    assert!(occupied.to_string().contains("\"old\"") && occupied.to_string().contains("\"new\""));
    assert!(Full { key: 1, value: 2 }.to_string().contains("full"));
    assert_eq!(Operation::<u64, ()>::Insert(1), Operation::Insert(1));
    assert_ne!(Compute::<u64, u64, u64>::Inserted(1, 2), Compute::Removed(1, 2));
    let stats = HashMap::<u64, u64>::new().stats();
    assert!(format!("{stats:?}").contains("displacements") && stats.segments == 1);
}

#[test]
fn the_load_factor_is_entries_divided_by_slots() {
    let map: HashMap<u64, u64> = (0..1000).map(|n| (n, n)).collect();
    let inline: InlineMap<u64, u64> = (0..1000).map(|n| (n, n)).collect();
    assert_eq!(map.load_factor(), 1000.0 / map.capacity() as f64);
    assert_eq!(inline.load_factor(), 1000.0 / inline.capacity() as f64);
    let told = |stats: koel::Stats| (stats.len, stats.capacity, stats.memory_usage);
    assert_eq!(told(map.stats()), (1000, map.capacity(), map.memory_usage()));
    assert_eq!(told(inline.stats()), (1000, inline.capacity(), inline.memory_usage()));
}

#[test]
fn equality_is_of_keys_and_values_and_not_of_shape() {
    let pairs = || (0..1000).map(|n| (n, n * 2));
    let maps: Vec<HashMap<u64, u64, _>> = growing_configs()
        .into_iter()
        .chain(fixed_configs(1000))
        .zip(0..)
        .map(|(config, seed)| {
            let map: HashMap<u64, u64, Seeded> = AnyMap::build(config, seeded(seed));
            map.pin().extend(pairs());
            map
        })
        .collect();
    assert!(maps.iter().all(|map| maps.iter().all(|other| map == other)));
    let other: HashMap<u64, u64, _> = AnyMap::build(Config::GROWING, seeded(1));
    other.pin().extend(pairs());
    assert!(other == maps[0]);
    other.pin().insert(5, 0);
    assert!(other != maps[0]);
    assert!(maps[0] != other);
    other.pin().remove(&5);
    assert!(other != maps[0]);
    other.pin().insert(5000, 10);
    assert!(other != maps[0], "as many entries, but others");
    assert!(maps[0] != other, "as many entries, but others");
    let inline = [InlineMap::<u64, u64>::from_iter(pairs()), pairs().collect()];
    assert!(inline[0] == inline[1]);
    inline[1].insert(1000, 0);
    assert!(inline[0] != inline[1], "all of the one, and one more");
    assert!(inline[1] != inline[0], "all of the one, and one more");
    inline[1].remove(&1000);
    inline[0].insert(7, 0);
    assert!(inline[0] != inline[1]);
    // A value that does not equal itself.
    let nan = HashMap::from([(1, f64::NAN)]);
    assert!(nan != nan.clone());
}

#[test]
fn a_copy_is_independent_of_its_original() {
    let map: HashMap<u64, String> = (0..1000).map(|n| (n, n.to_string())).collect();
    let copy = map.clone();
    assert!(copy == map);
    map.pin().insert(1, "other".into());
    map.pin().remove(&2);
    copy.pin().insert(5000, String::new());
    assert_eq!(
        (copy.pin()[&1].as_str(), copy.pin()[&2].as_str(), copy.len(), map.len()),
        ("1", "2", 1001, 999)
    );
    drop(map);
    assert_eq!(copy.pin()[&999], "999");
    let inline: InlineMap<u64, u64> = (0..1000).map(|n| (n, n)).collect();
    let copy = inline.clone();
    inline.clear();
    assert_eq!((copy.len(), inline.len()), (1000, 0));
}

#[test]
fn a_copy_has_its_original_s_bound() {
    for config in fixed_configs(100) {
        let map: InlineMap<u64, u64, _> = AnyMap::build(config, seeded(1));
        map.extend((0..100).map(|n| (n, n)));
        let copy = map.clone();
        assert_eq!((copy.capacity(), copy.stats().segments), (map.capacity(), map.stats().segments));
        assert!((1000..2000).any(|key| copy.checked_insert(key, 0).is_err()));
    }
}

/// Its entries are replaced by as many others when the first is cloned: the copy gets some of both.
#[test]
fn a_copy_of_a_full_map_takes_what_comes_while_it_is_made() {
    /// A task for the thread that clones this first.
    struct Busy(Arc<Mutex<Option<Task>>>);
    type Task = Box<dyn FnOnce() + Send>;
    impl Clone for Busy {
        fn clone(&self) -> Self {
            let task = self.0.lock().unwrap().take();
            task.into_iter().for_each(|task| task());
            Busy(Arc::clone(&self.0))
        }
    }
    let mut with_more = 0;
    for seed in 0..50 {
        let map = HashMap::<u64, Busy>::builder().fixed_capacity(40).segment_slots(16).hasher(seeded(seed));
        let map = Arc::new(map.build());
        let busy = Arc::new(Mutex::new(None));
        let fill = |map: &HashMap<_, _, _>, first: u64, busy: &Arc<_>| {
            map.pin().clear();
            map.extend((first..first + 40).map(|n| (n, Busy(Arc::clone(busy)))));
        };
        fill(&map, 0, &busy);
        let (weak, again) = (Arc::downgrade(&map), Arc::clone(&busy));
        *busy.lock().unwrap() =
            Some(Box::new(move || fill(&weak.upgrade().expect("being cloned"), 100, &again)) as Box<_>);
        let copy = HashMap::clone(&map);
        // From the first segment the original entries, from the others the new ones.
        let len = copy.len();
        let pin = copy.pin();
        assert!(pin.keys().all(|n| (0..40).contains(n) || (100..140).contains(n)));
        assert!(pin.iter().count() == len && pin.keys().all(|n| pin.contains_key(n)));
        with_more += usize::from(len > 40);
        // And no more entries than there are slots.
        (5000..5100).for_each(|n| _ = pin.checked_insert(n, Busy(Arc::clone(&busy))));
        assert!(pin.len() <= len.max(copy.capacity()) + 8, "{len} and {} more", pin.len() - len);
    }
    assert!(with_more > 0);
}

#[test]
fn collecting_and_extending_keep_the_last_of_equal_keys() {
    let pairs = [(1, "a"), (2, "b"), (1, "c")];
    let mut map: HashMap<u64, &str> = pairs.into_iter().collect();
    assert_eq!((map.len(), map.pin()[&1]), (2, "c"));
    assert!(map == HashMap::from(pairs));
    Extend::extend(&mut map, [(2, "d"), (3, "e")]);
    Extend::extend(&mut &map, [(3, "f")]);
    assert_eq!((map.len(), map.pin()[&2], map.pin()[&3]), (3, "d", "f"));
    let mut map: InlineMap<u64, u64> = [(1, 1), (2, 2), (1, 3)].into_iter().collect();
    assert!(map == InlineMap::from([(1, 3), (2, 2)]));
    Extend::extend(&mut map, [(2, 4)]);
    Extend::extend(&mut &map, [(3, 5)]);
    assert_eq!((map.len(), map.get(&2), map.get(&3)), (3, Some(4), Some(5)));
    // An iterator that promises more than there is memory for.
    let map = HashMap::new();
    let lying = (0..10).chain((0..usize::MAX - 10).take_while(|_| false)).map(|n| (n, n));
    map.pin().extend(lying);
    assert_eq!(map.len(), 10);
}

#[test]
fn an_iterator_that_lies_about_its_length_costs_nothing() {
    /// An iterator that claims to yield forever, and yields one item.
    struct Liar(bool);
    impl Iterator for Liar {
        type Item = (u64, u64);
        fn next(&mut self) -> Option<(u64, u64)> {
            core::mem::replace(&mut self.0, false).then_some((1, 2))
        }
        fn size_hint(&self) -> (usize, Option<usize>) {
            (usize::MAX, None)
        }
    }
    let map: HashMap<u64, u64> = Liar(true).collect();
    let inline: InlineMap<u64, u64> = Liar(true).collect();
    assert_eq!((map.len(), inline.len()), (1, 1));
    assert!(map.memory_usage() < 100_000 && inline.memory_usage() < 100_000);
}

#[test]
fn defaults_are_empty() {
    assert!(HashMap::<u64, u64>::default().is_empty() && InlineMap::<u64, u64>::default().is_empty());
    let map: HashMap<u64, u64, std::hash::RandomState> = HashMap::default();
    assert_eq!((map.len(), map.pin().len(), map.load_factor()), (0, 0, 0.0));
    assert!(HashMap::<u64, u64>::new() == HashMap::with_capacity(100));
    assert!(InlineMap::<u64, u64>::new() == InlineMap::with_hasher(ahash::RandomState::new()));
}

#[test]
fn indexing_finds_or_panics() {
    let map = HashMap::from([(String::from("here"), 1)]);
    assert_eq!(map.pin()["here"], 1);
    let message = catch(|| map.pin()["there"]).unwrap_err();
    assert!(message.contains("no entry"), "{message}");
    assert_eq!(map.pin()["here"], 1);
}

#[test]
fn loops_go_over_pins_and_maps() {
    let map: HashMap<u64, u64> = (0..100).map(|n| (n, n + 1)).collect();
    let mut sum = 0;
    let pin = map.pin();
    for (key, value) in &pin {
        sum += value - key;
    }
    assert_eq!(sum, 100);
    let keys: HashSet<u64> = pin.keys().copied().collect();
    let values: HashSet<u64> = pin.values().copied().collect();
    drop(pin);
    assert!(keys == (0..100).collect() && values == (1..101).collect());
    let owned: BTreeMap<u64, u64> = map.into_iter().collect();
    assert!(owned.iter().all(|(key, value)| key + 1 == *value) && owned.len() == 100);
    let inline: InlineMap<u64, u64> = owned.clone().into_iter().collect();
    let mut sum = 0;
    for (key, value) in &inline {
        sum += value - key;
    }
    assert_eq!((sum, inline.keys().count(), inline.values().max()), (100, 100, Some(100)));
    assert_eq!(inline.into_iter().collect::<BTreeMap<_, _>>(), owned);
}

/// Clones a walk at each of its positions: the clone yields what the walk itself would have yielded.
fn forks_anywhere<I: Iterator<Item: PartialEq + Debug> + Clone>(mut walk: I, len: usize) {
    for left in (0..=len).rev() {
        assert_eq!(walk.clone().count(), left);
        assert!(walk.clone().eq(walk.clone()));
        assert_eq!(walk.clone().next(), walk.next());
    }
}

#[test]
fn a_walk_that_is_cloned_goes_on_from_its_place() {
    let map = HashMap::builder().segment_slots(16).build();
    map.extend((0..100_u64).map(|n| (n, n.to_string())));
    let pin = map.pin();
    forks_anywhere(pin.iter(), 100);
    forks_anywhere(pin.keys(), 100);
    forks_anywhere(pin.values(), 100);
    let inline = InlineMap::builder().segment_slots(16).build();
    inline.extend((0..100_u64).map(|n| (n, n)));
    forks_anywhere(inline.iter(), 100);
    forks_anywhere(inline.keys(), 100);
    forks_anywhere(inline.values(), 100);
    let cache: Cache<u64, u64> = Cache::new(100);
    (0..100).for_each(|n| cache.insert(n, n).unwrap());
    forks_anywhere(cache.pin().iter(), 100);
    forks_anywhere(cache.dump().iter(), 100);
    let cache = InlineCache::new(100);
    (0..100_u64).for_each(|n| assert_eq!(cache.insert(n, n), None));
    forks_anywhere(cache.iter(), 100);
}

/// The lower bound of a walk's size hint is no more than the number of items, also once it has begun.
fn promises_what_it_has<I: Iterator>(mut walk: I, len: usize) {
    let mut promised = 0;
    for left in (0..=len).rev() {
        let (least, most) = walk.size_hint();
        assert!(least <= left && most.is_none_or(|most| left <= most), "{least} to {most:?}, not {left}");
        promised = promised.max(least);
        assert_eq!(walk.next().is_some(), left > 0);
    }
    assert!(promised >= 4, "{promised} of a segment of sixteen slots");
}

#[test]
fn a_walk_promises_what_it_has_copied() {
    let map: HashMap<u64, u64> = HashMap::builder().segment_slots(16).build();
    let inline: InlineMap<u64, u64> = InlineMap::builder().segment_slots(16).build();
    let set = koel::HashSet::from(HashMap::builder().segment_slots(16).build());
    map.extend((0..100).map(|n| (n, n)));
    inline.extend((0..100).map(|n| (n, n)));
    set.extend(0..100_u64);
    let pin = map.pin();
    promises_what_it_has(pin.iter(), 100);
    promises_what_it_has(pin.keys(), 100);
    promises_what_it_has(pin.values(), 100);
    promises_what_it_has(map.pin().into_iter_cloned(), 100);
    promises_what_it_has(map.pin().into_iter_with(|key, _| *key), 100);
    promises_what_it_has(set.pin().into_iter_with(|value| *value), 100);
    promises_what_it_has(pin.drain(), 100);
    promises_what_it_has(inline.iter(), 100);
    promises_what_it_has(inline.keys(), 100);
    promises_what_it_has(inline.values(), 100);
    promises_what_it_has(inline.drain(), 100);
    promises_what_it_has(set.pin().iter(), 100);
    promises_what_it_has(set.pin().drain(), 100);
}

#[test]
fn maps_are_extended_by_references_to_pairs() {
    let pairs = BTreeMap::from([(1_u64, 10_u64), (2, 20)]);
    let (mut map, mut inline) = (HashMap::<u64, u64>::new(), InlineMap::<u64, u64>::new());
    Extend::extend(&mut map, &pairs);
    Extend::extend(&mut inline, &pairs);
    let more = HashMap::from([(2, 21), (3, 30)]);
    Extend::extend(&mut &map, &more.pin());
    Extend::extend(&mut &inline, &more.pin());
    let expected = BTreeMap::from([(1, 10), (2, 21), (3, 30)]);
    assert_eq!(map.into_iter().collect::<BTreeMap<_, _>>(), expected);
    assert_eq!(inline.into_iter().collect::<BTreeMap<_, _>>(), expected);
}

/// Neither sees again what the walk has seen; each sees once what is there throughout; and removed entries live on.
#[test]
fn a_clone_of_a_walk_outlives_it_while_the_map_grows() {
    let map: HashMap<u64, String> = HashMap::builder().segment_slots(16).build();
    map.extend((0..100).map(|n| (n, n.to_string())));
    let pin = map.pin();
    let mut walk = pin.iter();
    let seen: Vec<_> = walk.by_ref().take(50).map(|(key, _)| *key).collect();
    let (first, second) = (walk.clone(), walk.clone());
    drop(walk);
    for walk in [first, second] {
        let last = map.len() as u64;
        map.extend((last..last + 1000).map(|n| (n, n.to_string())));
        let mut keys = seen.clone();
        for (key, text) in walk {
            map.pin().insert(*key, key.to_string());
            assert_eq!(*text, key.to_string());
            keys.push(*key);
        }
        keys.sort_unstable();
        assert!(keys.windows(2).all(|pair| pair[0] < pair[1]), "none twice");
        assert!(keys.iter().take(100).copied().eq(0..100));
    }
}

/// With every method, a value is made once, and one that cannot be made is not there.
#[test]
fn what_is_absent_is_made_once_or_not_at_all() {
    let map: HashMap<String, u64> = HashMap::new();
    let pin = map.pin();
    assert_eq!(pin.try_get_or_insert_with("a".to_string(), || Err("none")), Err("none"));
    assert!(map.is_empty());
    assert_eq!(pin.try_get_or_insert_with("a".to_string(), || Ok::<_, ()>(1)), Ok(&1));
    assert_eq!(pin.try_get_or_insert_with("a".to_string(), || Err("none")), Ok(&1));
    assert_eq!(*pin.get_or_insert_with_ref("a", || unreachable!()), 1);
    assert_eq!(*pin.get_or_insert_with_ref("b", || 2), 2);
    assert_eq!((map.len(), pin.get("b")), (2, Some(&2)));
    assert_eq!(pin.try_get_or_insert_with_ref("d", || Err("none")), Err("none"));
    assert_eq!((map.len(), pin.try_get_or_insert_with_ref("d", || Ok::<_, ()>(4))), (2, Ok(&4)));
    assert_eq!((map.len(), pin.try_get_or_insert_with_ref("d", || Err("none"))), (3, Ok(&4)));
    assert_eq!((pin.get_or_insert_default("c".to_string()), pin.get("c")), (&0, Some(&0)));
    assert_eq!(*pin.get_or_insert_default("b".to_string()), 2);
    let inline: InlineMap<u64, u64> = InlineMap::new();
    assert_eq!(inline.try_get_or_insert_with(1, || Err("none")), Err("none"));
    assert!(inline.is_empty());
    assert_eq!(inline.try_get_or_insert_with(1, || Ok::<_, ()>(10)), Ok(10));
    assert_eq!(inline.try_get_or_insert_with(1, || Err("none")), Ok(10));
    assert_eq!(
        (inline.get_or_insert_default(2), inline.get(&2), inline.get_or_insert_default(1)),
        (0, Some(0), 10)
    );
}

#[test]
fn views_of_a_map_agree() {
    let map: HashMap<u64, u64> = (0..100).map(|n| (n, n)).collect();
    let (pin, owned) = (map.pin(), map.pin_owned());
    assert!(std::ptr::eq(pin.map(), owned.map()));
    assert_eq!((pin.len(), owned.len(), pin.is_empty()), (100, 100, false));
    assert_eq!((pin.capacity(), pin.memory_usage()), (map.capacity(), map.memory_usage()));
    assert_eq!((pin.stats(), pin.load_factor()), (map.stats(), map.load_factor()));
    assert!((0.1..=1.0).contains(&map.load_factor()));
    let mut short = [None; 2];
    assert!(catch(|| pin.get_many(&[1, 2, 3], &mut short)).is_err(), "slices of two lengths");
    assert!(catch(|| pin.contains_many(&[1], &mut [false; 2])).is_err(), "slices of two lengths");
    map.retain(|key, value| key == value && key % 3 == 0);
    owned.retain(|key, _| *key < 50);
    assert_eq!((map.len(), pin.keys().copied().max()), (17, Some(48)));
}

/// Public keys, for instance: of a length that is not a power of two, and one beyond those that `bytemuck` itself supports.
#[test]
fn arrays_of_any_length_are_plain_data() {
    let keys: InlineMap<[u8; 33], [u16; 77]> = (0..200).map(|n| ([n; 33], [u16::from(n); 77])).collect();
    assert_eq!((keys.get(&[7; 33]), keys.get(&[200; 33]), keys.len()), (Some([7; 77]), None, 200));
    let cache: InlineCache<[u8; 33], [u16; 77]> = InlineCache::new(10);
    assert_eq!(cache.get_or_insert_with([1; 33], || [2; 77]), [2; 77]);
}
