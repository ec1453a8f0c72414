//! `Stats::read_retries`: a look-up during which something changed is counted, once, and no other is.
//!
//! This is made deterministic by `Eq`, which readers call with no lock held: a key that is compared changes the map.

mod common;

use std::cell::RefCell;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use bytemuck::{Pod, Zeroable};
use common::hashers::{CONSTANT, Through};
use common::{AnyMap, Config};
use koel::{HashMap, InlineMap};

thread_local!(static NEXT_EQ: RefCell<Option<Box<dyn FnOnce()>>> = const { RefCell::new(None) });

#[derive(Clone, Copy, Debug, Eq, Pod, Zeroable)]
#[repr(transparent)]
struct Key(u64);

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        let meanwhile = NEXT_EQ.with(|next| next.borrow_mut().take());
        meanwhile.into_iter().for_each(|meanwhile| meanwhile());
        self.0 == other.0
    }
}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

/// The retries that are counted while `look_up` does not find a key that has the hash of all `present` ones; in its first
/// comparison `meanwhile` happens.
fn retries<M>(config: Config, present: u64, look_up: fn(&M, Key) -> bool, meanwhile: fn(&M)) -> u64
where
    M: AnyMap<Key = Key, Value = u64, Hasher = Through> + 'static,
{
    let map = Arc::new(M::build(config, CONSTANT));
    (0..present).for_each(|key| assert_eq!(map.insert(Key(key), key), None));
    assert_eq!(map.stats().read_retries, 0);
    let writer = Arc::clone(&map);
    NEXT_EQ.with(|next| *next.borrow_mut() = Some(Box::new(move || meanwhile(&writer))));
    assert!(!look_up(&map, Key(99)), "{} {config:?}", M::NAME);
    assert!(NEXT_EQ.with(|next| next.borrow().is_none()), "no keys were compared");
    let counted = map.stats().read_retries;
    if config.limit().is_none() {
        let doublings = map.stats().doublings;
        (100..190).for_each(|key| assert_eq!(map.insert(Key(key), key), None));
        let stats = map.stats();
        assert!(stats.doublings > doublings);
        assert_eq!(stats.read_retries, counted, "growth hands the count on");
    }
    counted
}

/// Each kind of look-up that compares keys.
fn look_ups<M: AnyMap<Key = Key, Value = u64>>() -> [fn(&M, Key) -> bool; 2] {
    [|map, key| map.get(&key).is_some(), |map, key| map.get_many(&[key])[0].is_some()]
}

fn growth_is_counted_once<M>()
where
    M: AnyMap<Key = Key, Value = u64, Hasher = Through> + 'static,
{
    for look_up in look_ups::<M>() {
        let grow = |map: &M| (1..5).for_each(|key| assert_eq!(map.insert(Key(key), key), None));
        assert_eq!(retries(Config::GROWING, 1, look_up, grow), 1, "{}", M::NAME);
    }
}

fn a_key_that_is_only_compared_is_not_counted<M>()
where
    M: AnyMap<Key = Key, Value = u64, Hasher = Through> + 'static,
{
    for look_up in look_ups::<M>() {
        assert_eq!(retries(Config::GROWING, 4, look_up, |_| ()), 0, "{}", M::NAME);
        // Eight keys are in two buckets, the others in the overflow.
        assert_eq!(retries(Config::fixed(100), 11, look_up, |_| ()), 0, "{}", M::NAME);
    }
}

#[test]
fn look_up_in_a_segment_that_is_replaced_is_counted_once() {
    growth_is_counted_once::<HashMap<Key, u64, Through>>();
    growth_is_counted_once::<InlineMap<Key, u64, Through>>();
}

#[test]
fn look_up_beside_a_key_that_leaves_is_counted_once() {
    // For an entry behind a pointer the slot suffices; no version changes.
    for look_up in look_ups::<InlineMap<Key, u64, Through>>() {
        assert_eq!(retries(Config::GROWING, 2, look_up, |map| assert_eq!(map.remove(&Key(0)), Some(0))), 1);
    }
}

#[test]
fn look_up_of_the_overflow_or_beside_a_key_of_one_hash_is_not_counted() {
    a_key_that_is_only_compared_is_not_counted::<HashMap<Key, u64, Through>>();
    a_key_that_is_only_compared_is_not_counted::<InlineMap<Key, u64, Through>>();
}
