//! A little of everything in both maps, two filters and both caches, on two threads: small enough for Miri, see
//! docs/verification.md.

use koel::{
    Cache, CacheRef, CuckooFilter, HashMap, HashSet, InlineCache, InlineMap, MappedCacheRef, MappedRef, Ref,
};

const KEYS: u64 = if cfg!(miri) { 24 } else { 400 };

#[test]
fn two_threads_agree_on_everything_small() {
    let (map, inline) = (HashMap::<u64, String>::new(), InlineMap::<u64, u64>::new());
    let cache = Cache::<u64, String>::new(KEYS as usize / 2);
    let inline_cache = InlineCache::<u64, [u64; 2]>::new(KEYS as usize / 2);
    // The second has buckets of 32 bits, which are loaded by halves of words.
    let narrow = CuckooFilter::builder().capacity(4 * KEYS as usize).fingerprint_bits(8);
    let filters = [CuckooFilter::new(4 * KEYS as usize, 0.01).unwrap(), narrow.build().unwrap()];
    std::thread::scope(|scope| {
        for thread in 0..2 {
            let (map, inline, cache, filters) = (&map, &inline, &cache, &filters);
            let inline_cache = &inline_cache;
            scope.spawn(move || {
                for key in (0..KEYS).map(|key| 2 * key + thread) {
                    let pin = map.pin();
                    assert_eq!(pin.insert(key, key.to_string()), None);
                    let first = pin.get(&key).unwrap();
                    assert_eq!(pin.insert(key, String::new()).map(String::as_str), Some(first.as_str()));
                    assert_eq!(inline.insert(key, !key), None);
                    assert_eq!(inline.get(&key), Some(!key));
                    assert!(inline.get(&(key ^ 1)).is_none_or(|value| value == !(key ^ 1)));
                    assert_eq!(cache.get_or_insert_with(key, || key.to_string()), key.to_string());
                    assert_eq!(inline_cache.get_or_insert_with(key, || [key; 2]), [key; 2]);
                    assert!(inline_cache.get(&(key ^ 1)).is_none_or(|value| value == [key ^ 1; 2]));
                    inline_cache.insert(key, [key; 2]);
                    filters.iter().for_each(|filter| filter.insert(&key).unwrap());
                    assert!(filters.iter().all(|filter| filter.contains(&key)));
                }
                for key in (0..KEYS).map(|key| 2 * key + thread).filter(|key| key % 3 == 0) {
                    assert!(map.pin().remove(&key).is_some() && inline.remove(&key).is_some());
                    assert!(filters.iter().all(|filter| filter.remove(&key)));
                }
            });
        }
    });
    let left = (0..2 * KEYS).filter(|key| key % 3 != 0).count();
    assert_eq!((map.len(), inline.len()), (left, left));
    assert!(filters.iter().all(|filter| filter.len() == left));
    assert_eq!((map.pin().iter().count(), inline.iter().count()), (left, left));
    assert!(cache.len() <= KEYS as usize / 2 && inline_cache.len() <= KEYS as usize / 2);
    let owned = map.pin_owned();
    std::thread::scope(|scope| {
        scope.spawn(|| assert!(owned.contains_key(&1) && owned.remove(&1).is_some()));
    });
    owned.insert(1, String::new());
    drop(owned);
    map.shrink_to_fit();
    inline.shrink_to_fit();
    assert!((0..2 * KEYS).all(|key| map.pin().contains_key(&key) == (key % 3 != 0)));
}

/// Texts, plain entries, and inline ones.
#[test]
fn a_clone_of_a_map_has_entries_of_its_own_of_which_some_are_removed() {
    let texts: HashMap<u64, String> = (0..KEYS).map(|key| (key, key.to_string())).collect();
    let numbers: HashMap<u64, u64> = (0..KEYS).map(|key| (key, !key)).collect();
    let inline: InlineMap<u64, u64> = (0..KEYS).map(|key| (key, !key)).collect();
    let (copy, of_numbers, of_inline) = (texts.clone(), numbers.clone(), inline.clone());
    assert!(copy == texts && of_numbers == numbers && of_inline == inline);
    std::thread::scope(|scope| {
        scope.spawn(|| drop(texts));
        scope.spawn(|| drop(numbers));
        copy.pin().insert(KEYS, String::new());
    });
    assert!((0..KEYS).all(|key| copy.pin()[&key] == key.to_string() && of_numbers.pin()[&key] == !key));
    let pin = of_numbers.pin();
    let (odd, before) = (|key: &u64| key % 2 == 1, &pin[&2]);
    copy.retain(|key, _| odd(key));
    of_numbers.retain(|key, _| odd(key));
    of_inline.retain(|key, _| odd(key));
    assert_eq!((of_numbers.len(), of_inline.len(), *before), (KEYS as usize / 2, KEYS as usize / 2, !2));
    assert_eq!(copy.into_iter().count(), KEYS as usize / 2);
}

/// The entry is replaced, removed, and looked at by another thread, which ends the view.
#[test]
fn a_part_of_a_value_lives_as_long_as_its_view() {
    let map: HashMap<u64, (String, Vec<u64>)> = (0..4).map(|n| (n, (n.to_string(), vec![n; 3]))).collect();
    let name = Ref::map(map.pin().into_get(&1).unwrap(), |value| value.0.as_str());
    let numbers = Ref::map(map.pin_owned().into_remove(&2).unwrap(), |value| &value.1[1..]);
    let last = Ref::try_map(map.pin_owned().into_get(&3).unwrap(), |value| value.1.last()).unwrap();
    let refused = Ref::try_map(map.pin().into_get(&3).unwrap(), |value| value.1.get(3)).unwrap_err();
    assert_eq!((map.len(), refused.key(), refused.1.len()), (3, &3, 3));
    for n in 0..4 {
        map.pin().insert(n, (String::new(), Vec::new()));
    }
    map.clear();
    map.flush();
    assert_eq!((&*name, &*numbers, *last), ("1", &[2, 2][..], 3));
    std::thread::scope(|scope| {
        scope.spawn(|| assert_eq!(*last, 3));
        scope.spawn(move || {
            let first = MappedRef::map(numbers, |numbers| &numbers[0]);
            assert_eq!((*first, format!("{first:?} {first}")), (2, "MappedRef(2) 2".to_string()));
        });
    });
    assert!(MappedRef::into_pin(name).is_empty());
    assert_eq!(*last, 3);
}

/// Made by one thread, found by the other, or the other way round, and removed by both.
#[test]
fn what_is_found_or_made_lives_as_long_as_its_view() {
    let (map, names) = (HashMap::<u64, String>::new(), HashSet::<String>::new());
    let agree = || {
        for n in 0..KEYS / 4 {
            let by_key = map.pin().into_get_or_insert_with(n, || n.to_string());
            let by_reference = map.pin_owned().into_get_or_insert_with_ref(&n, || n.to_string());
            let name = names.pin().into_get_or_insert_with(by_key.as_str(), str::to_owned);
            map.pin().remove(&n);
            names.remove(&*name);
            assert_eq!((&*by_key, &*by_reference, &*name), (&n.to_string(), &n.to_string(), &n.to_string()));
            assert_eq!((*by_key.key(), *by_reference.key()), (n, n));
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(agree);
        agree();
    });
    assert!(map.is_empty() && names.is_empty());
}

#[test]
fn a_part_of_a_cached_value_lives_as_long_as_its_view() {
    let cache: Cache<u64, (String, Vec<u64>)> = Cache::new(10);
    (0..4).for_each(|n| cache.insert(n, (n.to_string(), vec![n; 3])).unwrap());
    let name = CacheRef::map(cache.pin().into_get(&1).unwrap(), |value| value.0.as_str());
    let numbers = CacheRef::map(cache.pin_owned().into_get(&2).unwrap(), |value| &value.1[1..]);
    let last = CacheRef::try_map(cache.pin_owned().into_get(&3).unwrap(), |value| value.1.last()).unwrap();
    let refused = CacheRef::try_map(cache.pin().into_get(&3).unwrap(), |value| value.1.get(3)).unwrap_err();
    assert_eq!((cache.len(), CacheRef::key(&refused), refused.1.len()), (4, &3, 3));
    cache.insert(1, (String::new(), Vec::new())).unwrap();
    cache.clear();
    cache.flush();
    assert_eq!((&*name, &*numbers, *last), ("1", &[2, 2][..], 3));
    std::thread::scope(|scope| {
        scope.spawn(|| assert_eq!(*last, 3));
        scope.spawn(move || {
            let numbers = MappedCacheRef::try_map(numbers, |numbers| numbers.get(2)).unwrap_err();
            let first = MappedCacheRef::map(numbers, |numbers| &numbers[0]);
            assert_eq!((*first, format!("{first:?} {first}")), (2, "MappedCacheRef(2) 2".to_string()));
        });
    });
    assert!(MappedCacheRef::into_view(name).get_ref(&1).is_none());
    assert_eq!(*last, 3);
}

/// References to values, all at the same time, along with keys; then entries by value.
#[test]
fn a_map_of_one_s_own_is_changed_in_place() {
    let mut map: HashMap<u64, String> = (0..KEYS).map(|n| (n, n.to_string())).collect();
    std::mem::forget(map.pin());
    let mut entries: Vec<(&u64, &mut String)> = map.iter_mut().collect();
    entries.reverse();
    entries.iter_mut().for_each(|(key, value)| value.push_str(&format!(" of {key}")));
    map.get_mut(&1).unwrap().push('!');
    map.values_mut().for_each(|value| value.push('.'));
    let odd = map.extract_if(|key, value| {
        value.insert(0, '~');
        key % 2 == 1
    });
    assert_eq!(
        odd.map(|(key, value)| assert!(value.starts_with(&format!("~{key} of")))).count() as u64,
        KEYS / 2
    );
    assert_eq!((map.take(&1), map.take_entry(&2)), (None, Some((2, "~2 of 2.".to_string()))));
    assert!(map.into_iter().all(|(key, value)| value == format!("~{key} of {key}.")));
}
