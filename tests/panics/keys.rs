//! A key that was passed to an operation whose closure panics is dropped with nothing locked: its drop may use the map.

use std::hash::{Hash, Hasher};
use std::rc::Rc;

use koel::{HashMap, Operation};

use crate::common::catch;

type Map = HashMap<Key, u64>;
type Write<'a> = &'a dyn Fn(&Map, Key);

/// A key that, if it has a map, writes to it when it is dropped.
struct Key(u64, Option<Rc<Map>>);

impl Key {
    fn new(n: u64) -> Self {
        Key(n, None)
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl Eq for Key {}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl Drop for Key {
    fn drop(&mut self) {
        if let Some(map) = self.1.take() {
            map.pin().update_or_insert(Key::new(99), |drops| drops + 1, 1);
        }
    }
}

#[test]
fn a_key_may_use_the_map_when_it_is_dropped_by_a_panic() {
    fn stop<T>() -> T {
        std::panic::panic_any(())
    }
    let other = |key: &Key| Key(2, key.1.clone());
    let operations: [Write<'_>; 7] = [
        &|map, key| _ = map.pin().update(key, |_| stop()),
        &|map, key| _ = map.pin().update_or_insert(key, |_| stop(), 0),
        &|map, key| _ = map.pin().update_or_insert_with(key, |_| stop(), || 0),
        &|map, key| _ = map.pin().compute(key, |_| stop::<Operation<u64, ()>>()),
        &|map, key| _ = map.pin().update_or_insert_with(other(&key), |_| 0, stop),
        &|map, key| _ = map.pin().get_or_insert_with(other(&key), stop),
        &|map, key| _ = map.pin().compute(other(&key), |_| stop::<Operation<u64, ()>>()),
    ];
    for (number, operation) in operations.into_iter().enumerate() {
        let map = Rc::new(Map::new());
        map.pin().insert(Key::new(1), 10);
        let key = Key(1, Some(Rc::clone(&map)));
        catch(|| operation(&map, key)).expect_err("the closure's");
        let drops = if number < 4 { 1 } else { 2 };
        assert_eq!(map.pin().get(&Key::new(99)), Some(&drops), "operation {number}");
        assert_eq!((map.pin().get(&Key::new(1)), map.len()), (Some(&10), 2));
    }
}
