//! Which item is evicted for which among the slots of one place.

use super::{Cache, Residents, Table, locator, mark};
use crate::cache::Policy;

/// The tests' table puts items into the first free slot: with eight slots there are two buckets, and every place has both.
fn full(hits: [u32; 8]) -> Cache {
    let mut cache = Cache::new(Policy::Local, 8, 1 << 20);
    for (key, hits) in (0..).zip(hits) {
        cache.insert(key, 1);
        (0..hits).for_each(|_| assert!(cache.get(key)));
    }
    cache
}

fn hits_of(cache: &Cache, key: u32) -> u32 {
    mark::hits(cache.table.item(cache.table.slot_of(key).expect("it is there")).mark)
}

/// A key whose place among two buckets is both of them.
fn stranger(table: &Table) -> u32 {
    (100..).find(|&key| is_everywhere(table, key)).expect("half of all are")
}

fn is_everywhere(table: &Table, key: u32) -> bool {
    let place = locator(key % table.locators).place(table.buckets());
    place.first != place.second
}

#[test]
fn the_neighbour_that_was_not_hit_goes() {
    for hits in [[2, 1, 2, 2, 1, 0, 2, 1], [1, 1, 1, 2, 2, 0, 2, 1]] {
        let mut cache = full(hits);
        let stranger = stranger(&cache.table);
        cache.insert(stranger, 1);
        assert_eq!(cache.table.evicted, [5], "{hits:?}");
        for (key, expected) in (0..).zip(hits).filter(|&(key, _)| key != 5) {
            assert_eq!(hits_of(&cache, key), expected, "of {key} in {hits:?}");
        }
    }
}

/// Each of them loses a hit, and those that the hand passes lose another.
#[test]
fn where_all_neighbours_were_hit_a_hand_finds_who_goes() {
    let mut cache = full([2, 2, 2, 2, 2, 1, 2, 2]);
    let stranger = stranger(&cache.table);
    cache.insert(stranger, 1);
    assert_eq!(cache.table.evicted, [5]);
    let left = [0, 1, 2, 3, 4, 6, 7].map(|key| hits_of(&cache, key));
    assert_eq!(left, [0, 0, 0, 0, 0, 1, 1]);
}

/// A hand that goes round takes hits from all. Here it meets another item at once, in a bucket that is not the newcomer's.
#[test]
fn neighbours_that_were_hit_lose_a_hit_though_somebody_else_goes() {
    let mut cache = Cache::new(Policy::Local, 16, 1 << 20);
    (0..16).for_each(|key| assert!(cache.insert(key, 1)));
    let place = |key: u32| locator(key).place(4);
    let is_elsewhere = |key: &u32| place(*key).first.min(place(*key).second) > 0;
    let stranger = (100..).find(|key| is_elsewhere(key) && place(*key).first != place(*key).second);
    let stranger = stranger.expect("a third of all are");
    let neighbours = [place(stranger).first, place(stranger).second].map(|bucket| bucket * 4..bucket * 4 + 4);
    let neighbours = || neighbours.iter().cloned().flatten();
    neighbours().for_each(|key| assert!(cache.get(key) && cache.get(key)));
    cache.insert(stranger, 1);
    assert_eq!(cache.table.evicted, [0]);
    assert!(neighbours().all(|key| hits_of(&cache, key) == 1));
}

#[test]
fn who_comes_back_soon_begins_with_a_hit() {
    let mut cache = full([2, 2, 2, 2, 2, 0, 2, 2]);
    let stranger = stranger(&cache.table);
    cache.insert(stranger, 1);
    assert_eq!((&*cache.table.evicted, hits_of(&cache, stranger)), (&[5][..], 0));
    cache.insert(5, 1);
    assert_eq!((&*cache.table.evicted, hits_of(&cache, 5)), (&[5, stranger][..], 1));
    // Its note was crossed out.
    assert!(cache.remove(5));
    cache.insert(5, 1);
    assert_eq!(hits_of(&cache, 5), 0);
}

#[test]
fn a_hand_makes_room_for_what_weighs_more() {
    let mut cache = full([0; 8]);
    let stranger = stranger(&cache.table);
    assert!(cache.insert(stranger, 5));
    assert_eq!((cache.table.evicted.len(), cache.evictor.weight()), (5, 8));
    assert!(cache.insert(stranger + 1, 8));
    assert_eq!((cache.residents().len(), cache.evictor.weight(), cache.evictor.memory_usage()), (1, 8, 0));
}
