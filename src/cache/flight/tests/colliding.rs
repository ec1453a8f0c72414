//! Keys of one digest: each is loaded on its own.

use core::hash::{Hash, Hasher};

use crate::cache::flight::LoadError;
use crate::cache::flight::toy::LoadOnce;

#[derive(Clone, Debug, PartialEq, Eq)]
struct Alike(u32);

impl Hash for Alike {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

type Cache = LoadOnce<Alike, u32>;

/// Asks for a key that this thread is loading.
fn is_told(cache: &Cache, key: u32) {
    let asked: Result<u32, LoadError<()>> = cache.try_get_or_insert_with(&Alike(key), || unreachable!());
    assert_eq!(asked, Err(LoadError::Recursion), "{key}");
}

/// Loads the first of these keys; the loader of each asks for the next one.
fn load_within(cache: &Cache, keys: &[u32], loading: &mut Vec<u32>) -> u32 {
    let Some((&key, inner)) = keys.split_first() else { return 0 };
    let value = cache.get_or_insert_with(&Alike(key), || {
        loading.push(key);
        loading.iter().for_each(|&key| is_told(cache, key));
        load_within(cache, inner, loading);
        // The inner ones have ended, and these go on.
        loading.iter().for_each(|&key| is_told(cache, key));
        key * 10
    });
    loading.pop();
    value
}

#[test]
fn a_loader_may_ask_for_another_and_only_who_is_being_loaded_is_told() {
    let cache = Cache::new();
    assert_eq!(load_within(&cache, &[1, 2, 3, 4], &mut Vec::new()), 10);
    assert!((1..=4).all(|key| cache.get(&Alike(key)) == Some(key * 10)));
    assert_eq!(cache.loads(), 0);
}

#[test]
fn a_write_to_one_does_not_keep_another_s_value_out() {
    for written in 1..=3 {
        let cache = Cache::new();
        cache.get_or_insert_with(&Alike(1), || {
            cache.get_or_insert_with(&Alike(2), || {
                cache.get_or_insert_with(&Alike(3), || {
                    cache.insert(Alike(written), 7);
                    cache.remove(&Alike(written));
                    30
                });
                20
            });
            10
        });
        for key in 1..=3 {
            assert_eq!(cache.get(&Alike(key)), Some(key * 10).filter(|_| key != written), "{written}");
        }
        assert_eq!(cache.loads(), 0);
    }
}

#[test]
fn one_is_loaded_anew_while_another_is_loaded() {
    let cache = Cache::new();
    cache.insert(Alike(2), 7);
    cache.make_due(&Alike(2));
    cache.get_or_insert_with(&Alike(1), || {
        assert_eq!(cache.get_or_insert_with(&Alike(2), || 20), 20);
        10
    });
    assert_eq!((cache.get(&Alike(1)), cache.get(&Alike(2)), cache.loads()), (Some(10), Some(20), 0));
}
