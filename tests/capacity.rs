//! Capacity: the requested number of entries fits, in little more memory than that takes; entries that do not fit are handed
//! back; an impossible capacity is an error that says so.

mod common;

use common::{
    AnyMap, Config, Rng, Seeded, Words, catch, fixed_configs, ignore, laws, on_threads, seed, seeded,
};
use koel::{Compute, Full, HashMap, InlineMap, Operation};

type Hashed = HashMap<u64, u64, Seeded>;
type Inlined = InlineMap<u64, u64, Seeded>;

#[test]
fn too_large_a_capacity_is_an_error_that_names_request_and_limit() {
    let errors = [
        HashMap::<u64, u64>::try_with_capacity(usize::MAX).unwrap_err(),
        InlineMap::<u64, u64>::try_with_capacity(usize::MAX).unwrap_err(),
        HashMap::<u64, u64, _>::try_with_capacity_and_hasher(usize::MAX, seeded(1)).unwrap_err(),
        InlineMap::<u64, u64, _>::try_with_capacity_and_hasher(usize::MAX, seeded(1)).unwrap_err(),
        HashMap::<u64, u64>::builder().fixed_capacity(usize::MAX).try_build().unwrap_err(),
        InlineMap::<u64, u64>::builder()
            .fixed_capacity(usize::MAX)
            .segment_slots(usize::MAX)
            .try_build()
            .unwrap_err(),
    ];
    for error in errors {
        assert_eq!(error.requested, usize::MAX);
        assert!(error.limit >= 1 << 26 && error.limit < usize::MAX && !error.out_of_memory);
        let text = error.to_string();
        assert!(text.contains(&usize::MAX.to_string()) && text.contains(&error.limit.to_string()), "{text}");
    }
    let just_too_many = errors[0].limit + 1;
    let error = HashMap::<u64, u64>::try_with_capacity(just_too_many).unwrap_err();
    assert_eq!((error.requested, error.limit), (just_too_many, errors[0].limit));
}

#[test]
fn too_large_a_capacity_panics_with_request_and_limit() {
    let limit = HashMap::<u64, u64>::try_with_capacity(usize::MAX).unwrap_err().limit;
    let messages = [
        catch(|| HashMap::<u64, u64>::with_capacity(usize::MAX)).map(|_| ()),
        catch(|| InlineMap::<u64, u64>::with_capacity(usize::MAX)).map(|_| ()),
        catch(|| HashMap::<u64, u64, _>::with_capacity_and_hasher(usize::MAX, seeded(1))).map(|_| ()),
        catch(|| InlineMap::<u64, u64>::builder().fixed_capacity(usize::MAX).build()).map(|_| ()),
    ];
    for message in messages {
        let message = message.unwrap_err();
        assert!(
            message.contains(&usize::MAX.to_string()) && message.contains(&limit.to_string()),
            "{message}"
        );
    }
}

/// With 32 bits no capacity within the limit makes so many segments.
#[test]
#[cfg(target_pointer_width = "64")]
fn a_capacity_that_makes_too_many_segments_is_an_error_and_no_panic() {
    let result =
        catch(|| HashMap::<u64, u64>::builder().capacity(1 << 34).segment_slots(4).try_build().map(|_| ()));
    assert!(result.expect("an error, not a panic").is_err());
}

fn refuses_to_reserve_more_than_the_limit<M: Words>() {
    let map = M::build(Config::GROWING, seeded(1));
    map.insert(1, 2);
    let before = map.memory_usage();
    let error = map.try_reserve(usize::MAX).unwrap_err();
    assert_eq!((error.requested, error.out_of_memory), (usize::MAX, false));
    assert!(catch(|| map.reserve(usize::MAX)).unwrap_err().contains(&error.to_string()));
    assert!(map.memory_usage() < before + 100_000);
    assert_eq!(map.get(&1), Some(2));
    assert_eq!(map.insert(3, 4), None);
}

laws! {
    refuses_to_reserve_more_than_the_limit =>
        a_hash_map_that_reserves_more_than_the_limit_panics_before_it_takes_memory,
        an_inline_map_that_reserves_more_than_the_limit_panics_before_it_takes_memory;
}

fn grows_little_with_room<M: Words>() {
    let mut rng = Rng::new(seed());
    for entries in [0, 1, 3, 4, 5, 100, 1000, 5000, 60_000, 300_000] {
        let map = M::build(Config::room_for(entries), seeded(entries as u64));
        let before = map.capacity();
        assert!(before >= entries && before <= entries * 5 / 4 + 8, "{before} slots for {entries}");
        (0..entries).for_each(|_| ignore(map.insert(rng.next(), 0)));
        let (after, stats) = (map.capacity(), map.stats());
        assert!(after <= before + before / 20 + 8, "{before} slots became {after} for {entries} entries");
        assert!((stats.splits + stats.doublings) * 20 <= stats.segments as u64 + 20, "{stats:?}");
    }
}

laws! {
    grows_little_with_room =>
        a_hash_map_with_room_does_not_grow_much,
        an_inline_map_with_room_does_not_grow_much;
}

/// However much is reserved, segments are no larger, and a map that outgrows its reservation takes no more memory than others.
#[test]
fn reserved_room_is_of_segments_as_any() {
    for slots in [64, 1024, 4096] {
        let memory = |reserved: usize| {
            let map: InlineMap<u64, u64> = InlineMap::builder().segment_slots(slots).build();
            map.reserve(reserved);
            let stats = map.stats();
            assert!(map.capacity() <= stats.segments * slots, "{stats:?} of {slots} slots");
            (0..400_000).for_each(|n| assert!(map.insert(n, n).is_none()));
            map.memory_usage()
        };
        let (grown, reserved) = (memory(0), memory(100_000));
        assert!(reserved < grown + grown / 4, "{reserved} bytes, {grown} without");
    }
}

fn grows_little_with_reserved_room<M: Words>() {
    for (present, additional) in [(0, 1000), (1000, 10), (3000, 680), (1000, 100_000), (50_000, 50_000)] {
        let map = M::build(Config::GROWING, seeded(7));
        (0..present).for_each(|key| ignore(map.insert(key, key)));
        map.reserve(additional as usize);
        let before = map.capacity();
        assert!(before as u64 >= present + additional);
        (present..present + additional).for_each(|key| ignore(map.insert(key, key)));
        let after = map.capacity();
        assert!(after <= before + before / 20 + 8, "{before} slots became {after}");
        assert!((0..present + additional).all(|key| map.get(&key) == Some(key)));
    }
}

laws! {
    grows_little_with_reserved_room =>
        reserved_room_of_a_hash_map_does_not_grow_either,
        reserved_room_of_an_inline_map_does_not_grow_either;
}

/// By doubling, and then as far as paths lead: so nine tenths of its slots may be taken, and not only 7/8.
#[test]
fn reserved_room_is_filled_to_nine_tenths() {
    let map = InlineMap::<u64, u64>::builder().hasher(seeded(7)).build();
    map.reserve(3680);
    (0..3680).for_each(|n| assert!(map.insert(n, n).is_none()));
    assert!(map.capacity() == 4096 && map.load_factor() > 0.89);
}

/// After it is emptied, it has grown far enough: but its segments do not know yet how many entries are to come.
fn does_not_grow_for_what_is_promised<M: Words>() {
    let mut map = M::build(Config::GROWING, seeded(7));
    (0..3680).for_each(|key| ignore(map.insert(key, key)));
    map.clear();
    let before = map.capacity();
    map.extend_alone((0..before as u64 * 9 / 10).map(|key| (key, key)));
    assert_eq!(map.capacity(), before);
}

laws! {
    does_not_grow_for_what_is_promised =>
        room_of_a_hash_map_that_an_iterator_promises_to_fill_does_not_grow_either,
        room_of_an_inline_map_that_an_iterator_promises_to_fill_does_not_grow_either;
}

/// Inserts this many random keys in a map that holds no more, and returns its slots divided by its entries.
fn all_fit<M: Words>(config: Config, entries: usize, seed: u64) -> f64 {
    let map = M::build(config, seeded(seed));
    let mut rng = Rng::new(seed);
    for i in 0..entries {
        let key = rng.next();
        assert!(map.checked_insert(key, !key).is_ok(), "{i} of {entries} fit, seed {seed}, {config:?}");
    }
    assert_eq!(map.len(), entries);
    let mut rng = Rng::new(seed);
    for _ in 0..entries {
        let key = rng.next();
        assert_eq!(map.get(&key), Some(!key), "seed {seed}, {config:?}");
    }
    map.capacity() as f64 / entries as f64
}

#[test]
fn a_million_keys_fit_a_map_made_for_a_million() {
    let seed = seed();
    let config = Config::fixed(1_000_000);
    for ratio in [all_fit::<Hashed>(config, 1_000_000, seed), all_fit::<Inlined>(config, 1_000_000, seed + 1)]
    {
        assert!(ratio <= 1.08, "{ratio} slots for each entry");
    }
}

#[test]
fn many_keys_fit_whatever_the_seed() {
    let seed = seed();
    for i in 0..12 {
        for entries in [5000, 65_000, 140_000] {
            assert!(all_fit::<Inlined>(Config::fixed(entries), entries, seed + i) <= 1.08);
        }
        assert!(all_fit::<Hashed>(Config::fixed(20_000), 20_000, seed + i) <= 1.08);
    }
    for config in fixed_configs(3000) {
        (0..10).for_each(|i| ignore(all_fit::<Inlined>(config, 3000, seed + i)));
        (0..10).for_each(|i| ignore(all_fit::<Hashed>(config, 3000, seed + i)));
    }
}

#[test]
fn few_keys_fit_whatever_the_seed() {
    let seed = seed();
    for entries in 0..=200 {
        for i in 0..20 {
            for config in [Config::fixed(entries), Config::fixed(entries).segments_of(8)] {
                all_fit::<Inlined>(config, entries, seed + i);
            }
        }
        all_fit::<Hashed>(Config::fixed(entries), entries, seed);
    }
}

/// As the builder's documentation says.
#[test]
fn a_map_of_fixed_capacity_accepts_more_the_smaller_its_segments_are() {
    for (slots, told) in [(4, 1180..=1300), (64, 1060..=1180), (1 << 16, 1030..=1080)] {
        let map = Inlined::build(Config::fixed(1000).segments_of(slots), seeded(seed()));
        let accepted = (0..20_000).filter(|key| map.checked_insert(*key, 0).is_ok()).count();
        assert!(told.contains(&accepted), "{accepted} in segments of {slots}");
    }
}

/// Up to the last slot and beyond: searches meet every limit there is.
fn hands_back_what_does_not_fit<M: Words>() {
    let seed = seed();
    for (i, entries) in
        [0, 1, 2, 7, 10, 50, 100, 200, 500, 1000, 3000].into_iter().cycle().take(220).enumerate()
    {
        let map = M::build(Config::fixed(entries), seeded(seed + i as u64));
        let mut present = Vec::new();
        let mut refused = 0;
        for key in 0.. {
            match map.checked_insert(key, key + 1) {
                Ok(old) => {
                    assert_eq!(old, None);
                    present.push(key);
                }
                Err(Full { key: back, value }) => {
                    assert_eq!((back, value), (key, key + 1));
                    assert!(present.len() >= entries, "only {} of {entries} fit", present.len());
                    assert!(!map.contains_key(&key));
                    refused += 1;
                }
            }
            if refused == 100 {
                break;
            }
        }
        assert_eq!(map.len(), present.len());
        assert!(present.iter().all(|key| map.get(key) == Some(key + 1)), "{entries}");
        assert!(map.entries().len() == present.len());
        // When one key is removed, there is room for it again.
        for key in present.iter().take(20) {
            assert_eq!(map.insert(*key, 0), Some(key + 1), "replacing needs no room");
        }
        let copy = map.duplicate();
        assert!(
            copy.len() == map.len() && present.iter().all(|key| copy.get(key) == map.get(key)),
            "a full copy"
        );
    }
}

laws! {
    hands_back_what_does_not_fit =>
        what_does_not_fit_a_hash_map_is_handed_back_and_the_map_is_as_it_was,
        what_does_not_fit_an_inline_map_is_handed_back_and_the_map_is_as_it_was;
}

/// With every call that writes; a present key needs no room.
fn hands_back_what_was_made<M: Words>() {
    type Verb<M> = fn(&M, u64) -> Result<u64, Full<u64, u64>>;
    let verbs: [Verb<M>; 5] = [
        |map, key| Ok(map.checked_insert(key, 7)?.map_or(7, |_| 7)),
        |map, key| Ok(map.checked_try_insert(key, 7)?.unwrap_or_else(|occupied| occupied.current)),
        |map, key| map.checked_get_or_insert_with(key, || 7),
        |map, key| map.checked_update_or_insert(key, |value| value + 1, 7),
        |map, key| match map.checked_compute(key, |value| Operation::Insert::<_, ()>(value.unwrap_or(7)))? {
            Compute::Inserted(_, value) | Compute::Updated { new: (_, value), .. } => Ok(value),
            other => panic!("{other:?}"),
        },
    ];
    for (verb, present) in verbs.into_iter().zip([7, 1, 1, 2, 1]) {
        let map = M::build(Config::fixed(100), seeded(5));
        let full = (0..).find(|key| map.checked_insert(*key, 1).is_err()).unwrap();
        let len = map.len();
        assert_eq!(verb(&map, full), Err(Full { key: full, value: 7 }));
        assert_eq!((map.len(), map.get(&full)), (len, None));
        // The lock is free, for every thread.
        on_threads(2, |thread| {
            (thread as u64..80).step_by(2).for_each(|key| assert_eq!(verb(&map, key), Ok(present)));
        });
        (0..80).for_each(|key| assert_eq!(map.get(&key), Some(present)));
        (0..20).for_each(|key| assert_eq!(map.remove(&key), Some(present)));
        assert_eq!((verb(&map, full), map.get(&full)), (Ok(7), Some(7)));
    }
}

laws! {
    hands_back_what_was_made =>
        what_was_made_for_a_full_hash_map_is_handed_back,
        what_was_made_for_a_full_inline_map_is_handed_back;
}

fn says_that_it_is_full_and_goes_on<M: Words>() {
    let map = M::build(Config::fixed(100), seeded(5));
    let full = (0..).find(|key| map.checked_insert(*key, 0).is_err()).unwrap();
    let len = map.len();
    type Verb<M> = fn(&M, u64);
    let verbs: [Verb<M>; 7] = [
        |map, key| ignore(map.insert(key, 1)),
        |map, key| ignore(map.try_insert(key, 1)),
        |map, key| assert_eq!(map.get_or_insert(key, 1), 0),
        |map, key| assert_eq!(map.get_or_insert_with(key, || 1), 0),
        |map, key| assert_eq!(map.update_or_insert(key, |_| 1, 1), 0),
        |map, key| ignore(map.compute(key, |_| Operation::Insert::<_, ()>(1))),
        |map, key| map.extend(vec![(key, 1)]),
    ];
    for verb in verbs {
        let message = catch(|| verb(&map, full)).unwrap_err();
        assert!(message.contains("full") && message.contains("checked_insert"), "{message}");
        assert_eq!((map.len(), map.contains_key(&full)), (len, false));
        // The lock is free, for every thread.
        on_threads(2, |thread| {
            (thread as u64..80).step_by(2).for_each(|key| assert_eq!(map.insert(key, 0), Some(0)));
        });
    }
    (0..20).for_each(|key| assert_eq!(map.remove(&key), Some(0)));
    assert_eq!(map.checked_insert(full, 3), Ok(None));
    assert_eq!(map.get(&full), Some(3));
}

laws! {
    says_that_it_is_full_and_goes_on =>
        a_full_hash_map_says_so_and_goes_on_working,
        a_full_inline_map_says_so_and_goes_on_working;
}

fn keeps_its_slots<M: Words>() {
    for config in fixed_configs(500) {
        let map = M::build(config, seeded(5));
        let slots = map.capacity();
        (0..500).for_each(|key| assert_eq!(map.insert(key, 0), None));
        map.reserve(10_000);
        map.shrink_to_fit();
        map.retain(|key, _| *key < 10);
        map.shrink_to_fit();
        map.clear();
        assert_eq!(
            (map.capacity(), map.stats().segments),
            (slots, M::build(config, seeded(5)).stats().segments)
        );
    }
}

laws! {
    keeps_its_slots =>
        a_fixed_hash_map_never_changes_its_slots,
        a_fixed_inline_map_never_changes_its_slots;
}

fn shrinks_and_loses_nothing<M: Words>() {
    for config in common::growing_configs() {
        let map = M::build(config, seeded(5));
        (0..20_000).for_each(|key| assert_eq!(map.insert(key, key), None));
        map.retain(|key, _| *key % 50 == 0);
        let before = map.capacity();
        map.shrink_to_fit();
        // Segments are never merged, and have at least one bucket.
        let most = (before / 3).max(map.stats().segments * 4);
        assert!(map.capacity() <= most, "{before} slots became {} {config:?}", map.capacity());
        assert!((0..20_000).all(|key| map.get(&key).is_some() == (key % 50 == 0)));
        (0..20_000).for_each(|key| ignore(map.insert(key, key)));
        assert!((0..20_000).all(|key| map.get(&key) == Some(key)) && map.len() == 20_000);
    }
}

laws! {
    shrinks_and_loses_nothing =>
        shrinking_a_hash_map_makes_slots_fewer_and_loses_nothing,
        shrinking_an_inline_map_makes_slots_fewer_and_loses_nothing;
}
