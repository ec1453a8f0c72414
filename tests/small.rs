//! A little of all in both maps, two filters and both caches, on two threads: small enough for Miri, see docs/verification.md.

use koel::{Cache, CuckooFilter, HashMap, InlineCache, InlineMap};

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
