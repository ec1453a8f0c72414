//! Keys and values of every shape in both maps and both caches: of size zero, with drops, with unusual alignments, of types
//! without values. Miri runs this in some minutes: `KOEL_MIRI_TEST=shapes tests/miri`.

use core::cell::Cell;
use core::fmt::Debug;
use core::hash::Hash;
use std::collections::HashMap as Model;
use std::time::Duration;

use bytemuck::{Pod, Zeroable};
use koel::{Cache, HashMap, InlineCache, InlineMap, Policy};

const KEYS: u64 = if cfg!(miri) { 12 } else { 100 };
const ROUNDS: u64 = if cfg!(miri) { 3 } else { 20 };
const POLICIES: &[Policy] =
    if cfg!(miri) { &[Policy::Adaptive] } else { &[Policy::Adaptive, Policy::Clock, Policy::Local] };

thread_local! {
    /// How many of the values that this thread has made are alive.
    static ALIVE: Cell<isize> = const { Cell::new(0) };
}

/// Any value, whose drop is counted.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Dropped<T>(T);

impl<T> Dropped<T> {
    fn new(value: T) -> Self {
        ALIVE.with(|alive| alive.set(alive.get() + 1));
        Dropped(value)
    }
}

impl<T: Clone> Clone for Dropped<T> {
    fn clone(&self) -> Self {
        Dropped::new(self.0.clone())
    }
}

impl<T> Drop for Dropped<T> {
    fn drop(&mut self) {
        ALIVE.with(|alive| alive.set(alive.get() - 1));
    }
}

macro_rules! aligned {
    ($($name:ident: $align:literal, $plain:ident: $words:literal;)*) => {$(
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        #[repr(align($align))]
        struct $name<T>(T);

        impl<T: Shape> Shape for $name<T> {
            fn of(n: u64) -> Self {
                $name(T::of(n))
            }
        }

        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Pod, Zeroable)]
        #[repr(C, align($align))]
        struct $plain([u64; $words]);

        impl Shape for $plain {
            fn of(n: u64) -> Self {
                $plain([n; $words])
            }
        }
    )*};
}

aligned! { To64: 64, Plain64: 0; To128: 128, Plain128: 16; To4096: 4096, Plain4096: 512; }

/// A type's values, as many as it has.
trait Shape: Clone + Debug + Eq + Hash + 'static {
    fn of(n: u64) -> Self;
}

impl Shape for () {
    fn of(_: u64) {}
}

impl Shape for u8 {
    fn of(n: u64) -> u8 {
        n as u8
    }
}

impl<const N: usize> Shape for [u64; N] {
    fn of(n: u64) -> Self {
        [n; N]
    }
}

impl<T: Shape> Shape for Dropped<T> {
    fn of(n: u64) -> Self {
        Dropped::new(T::of(n))
    }
}

fn is_aligned<T>(at: &T) -> bool {
    core::ptr::from_ref(at).addr() % align_of::<T>() == 0
}

/// The steps for a map, a cache, and the model: (round, key), and whether the key is removed.
fn steps() -> impl Iterator<Item = (u64, u64, bool)> {
    let step = |n: u64| (n, n.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40, n % 3 == 2);
    (0..KEYS * ROUNDS).map(step).map(|(n, key, removed)| (n, key % KEYS, removed))
}

fn in_a_map<K: Shape, V: Shape>(map: HashMap<K, V>) {
    let mut model = Model::new();
    for (n, key, removed) in steps() {
        let pin = map.pin();
        if removed {
            assert_eq!(pin.remove(&K::of(key)).cloned(), model.remove(&K::of(key)));
        } else {
            assert_eq!(pin.insert(K::of(key), V::of(n)).cloned(), model.insert(K::of(key), V::of(n)));
        }
        let entry = pin.get_key_value(&K::of(key));
        assert!(entry.is_none_or(|(key, value)| is_aligned(key) && is_aligned(value)));
        assert_eq!(entry, model.get_key_value(&K::of(key)));
    }
    assert_eq!(map.len(), model.len());
    map.shrink_to_fit();
    assert!(map.pin().iter().all(|(key, value)| model.get(key) == Some(value)));
    assert!(map.clone() == map);
    let copy = map.clone();
    assert!(copy.into_iter().all(|(key, value)| model.remove(&key) == Some(value)) && model.is_empty());
}

fn in_a_cache<K: Shape, V: Shape>(cache: Cache<K, V>) {
    let mut model = Model::new();
    for (n, key, removed) in steps() {
        if removed {
            assert!(cache.remove(&K::of(key)).is_none_or(|old| model.remove(&K::of(key)) == Some(old)));
        } else {
            cache.insert(K::of(key), V::of(n)).unwrap();
            model.insert(K::of(key), V::of(n));
        }
        let view = cache.pin();
        let entry = view.get_key_value(&K::of(key));
        assert!(entry.is_none_or(|(key, value)| is_aligned(key) && is_aligned(value)));
        assert!(entry.is_none() || entry == model.get_key_value(&K::of(key)));
        assert!(cache.len() as u64 <= cache.capacity() && cache.weight() == cache.len() as u64);
    }
    let dump = cache.dump();
    cache.clear();
    assert!(cache.load(dump).is_empty());
    let key = || K::of(KEYS / 2);
    let loaded = cache.get_or_insert_with(key(), || V::of(1));
    assert_eq!(cache.get_or_insert_with(key(), || unreachable!()), loaded);
    cache.purge();
    assert!(cache.iter().all(|(key, value)| key == K::of(KEYS / 2) || model.get(&key) == Some(&value)));
}

fn shapes<K: Shape, V: Shape>() {
    in_a_map::<K, V>(HashMap::new());
    in_a_map::<K, V>(HashMap::builder().capacity(10).home_cells(true).segment_slots(8).build());
    in_a_map::<K, V>(HashMap::builder().fixed_capacity(KEYS as usize).build());
    for policy in POLICIES {
        let builder = || Cache::builder().max_entries(KEYS as usize / 2).policy(*policy);
        in_a_cache::<K, V>(builder().build());
        in_a_cache::<K, V>(
            builder().on_removal(|key, value, _| assert!(is_aligned(key) && is_aligned(value))).build(),
        );
        // With additional words after each entry.
        in_a_cache::<K, V>(builder().time_to_idle(Duration::from_secs(1000)).build());
    }
    assert_eq!(ALIVE.get(), 0, "{}, {}", core::any::type_name::<K>(), core::any::type_name::<V>());
}

fn plain_shapes<K: Shape + Pod, V: Shape + Pod>() {
    let maps = [InlineMap::<K, V>::new(), InlineMap::builder().fixed_capacity(KEYS as usize).build()];
    let cache = InlineCache::<K, V>::new(KEYS as usize);
    let mut model = Model::new();
    for (n, key, removed) in steps() {
        let key = K::of(key);
        let expected = if removed { model.remove(&key) } else { model.insert(key, V::of(n)) };
        let insert = |map: &InlineMap<K, V>| map.insert(key, V::of(n));
        let done = maps.each_ref().map(|map| if removed { map.remove(&key) } else { insert(map) });
        assert_eq!(done, [expected; 2]);
        let done = if removed { cache.remove(&key) } else { cache.insert(key, V::of(n)) };
        assert_eq!(done, expected);
        let now = model.get(&key).copied();
        assert_eq!((maps.each_ref().map(|map| map.get(&key)), cache.get(&key)), ([now; 2], now));
    }
    for map in &maps {
        map.shrink_to_fit();
        assert!(map.len() == model.len() && map.iter().all(|(key, value)| model.get(&key) == Some(&value)));
    }
    assert!(cache.len() == model.len() && cache.iter().all(|(key, value)| model.get(&key) == Some(&value)));
}

#[test]
fn entries_of_no_size() {
    shapes::<Dropped<()>, To128<Dropped<()>>>();
    shapes::<[u64; 1], To64<()>>();
    plain_shapes::<(), ()>();
    plain_shapes::<[u64; 1], Plain64>();
}

#[test]
fn entries_of_every_alignment() {
    shapes::<u8, To64<[u64; 40]>>();
    shapes::<To4096<u8>, Dropped<u8>>();
    plain_shapes::<Plain128, u8>();
    plain_shapes::<u8, Plain4096>();
}

/// Huge pages come from the system; Miri does not know them.
#[test]
fn tables_that_ask_for_huge_pages() {
    let map: InlineMap<u64, [u64; 16]> = InlineMap::builder().capacity(40_000).huge_pages(true).build();
    assert!(map.memory_usage() > 4 << 20 && map.insert(1, [2; 16]).is_none() && map.get(&1) == Some([2; 16]));
}

/// A type without values.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Never {}

/// Equal to none of them.
#[derive(Hash)]
struct Nobody;

impl koel::Equivalent<Never> for Nobody {
    fn equivalent(&self, key: &Never) -> bool {
        match *key {}
    }
}

#[test]
fn types_without_values() {
    let map: HashMap<Never, String> = HashMap::builder().capacity(10).home_cells(true).build();
    assert_eq!(
        (map.pin().get(&Nobody), map.pin().remove(&Nobody), map.pin().iter().next()),
        (None, None, None)
    );
    map.shrink_to_fit();
    assert!(map.clone() == map && map.into_iter().next().is_none());
    let map: HashMap<u8, (u64, Never)> = HashMap::builder().capacity(10).home_cells(true).build();
    assert_eq!(map.pin().try_get_or_insert_with(1, || Err("none")), Err("none"));
    assert_eq!((map.pin().get(&1), map.pin().update(1, |old| old.clone())), (None, None));
    map.pin().retain(|_, _| unreachable!());
    assert!(map.is_empty() && map.memory_usage() > 0 && map.clone() == map);
    let cache: Cache<Never, u8> = Cache::new(10);
    assert_eq!((cache.get(&Nobody), cache.len(), cache.dump().len()), (None, 0, 0));
    for builder in [Cache::builder(), Cache::builder().time_to_live(Duration::from_secs(1))] {
        let cache: Cache<u8, Never> =
            builder.max_entries(10).on_removal(|_, never, _| match *never {}).build();
        assert_eq!(cache.try_get_or_insert_with(1, || Err("none")).unwrap_err().into_loader(), Some("none"));
        assert_eq!((cache.get(&1), cache.remove(&1), cache.iter().next().is_none()), (None, None, true));
        cache.purge();
    }
}
