//! The policies compared with plain ones, and the promises of all policies under every kind of table trouble.

mod adaptive;
mod clock;
mod dump;
mod local;
mod promises;
mod weights;

use std::collections::BTreeMap;

use super::{Evictor, Heat, Locator, Newcomer, Policy, Residents, mark};
use crate::hash::{Digest, Place};

/// A table of any number of slots, searched from one end to the other. An item may be anywhere: four consecutive slots are an
/// item's bucket by chance only.
struct Table {
    slots: Vec<Option<Item>>,
    /// What is noted for buckets, in the upper half of a byte for each slot.
    notes: Vec<u8>,
    /// How many locators there are: few make many keys look alike.
    locators: u32,
    /// Keys evicted since the last look.
    evicted: Vec<u32>,
    /// Whether readers at once hit every item that loses a hit.
    is_busy: bool,
    /// The slot of the item that must not be evicted.
    stays: Option<usize>,
    /// Items are distinguished by their places among so many buckets, not by their locators.
    places_among: Option<u32>,
}

#[derive(Clone, Copy, Debug)]
struct Item {
    key: u32,
    locator: Locator,
    weight: u64,
    mark: u8,
}

fn locator(key: u32) -> Locator {
    Locator::new(Digest::new(u64::from(key)))
}

impl Table {
    fn slot_of(&self, key: u32) -> Option<usize> {
        self.slots.iter().position(|item| item.is_some_and(|item| item.key == key))
    }

    fn put(&mut self, item: Item) {
        match self.slots.iter().position(Option::is_none) {
            Some(slot) => self.slots[slot] = Some(item),
            None => self.slots.push(Some(item)),
        }
    }

    fn item(&self, slot: usize) -> Item {
        self.slots[slot].expect("a slot that is taken")
    }
}

impl Residents for Table {
    type Slot = usize;

    fn find(&self, locator: Locator, mask: u8, value: u8) -> Option<usize> {
        let is_same = |other: Locator| match self.places_among {
            Some(buckets) => {
                let [a, b] = [other, locator].map(|locator| locator.place(buckets));
                (a.first, a.second, a.tag) == (b.first, b.second, b.tag)
            }
            None => other == locator,
        };
        let meant = |item: &Item| is_same(item.locator) && item.mark & mask == value;
        self.slots.iter().position(|item| item.as_ref().is_some_and(meant))
    }

    fn mark(&self, slot: usize) -> u8 {
        self.item(slot).mark
    }

    fn set_mark(&mut self, slot: usize, mark: u8) {
        let mark = if self.is_busy { mark | self.mark(slot) & mark::HITS } else { mark };
        self.slots[slot].as_mut().expect("a slot that is taken").mark = mark;
    }

    fn weight(&self, slot: usize) -> u64 {
        self.item(slot).weight
    }

    fn evict(&mut self, slot: usize) {
        assert!(!self.stays(slot), "who is being replaced is evicted");
        self.evicted.push(self.item(slot).key);
        self.slots[slot] = None;
    }

    fn stays(&self, slot: usize) -> bool {
        self.stays == Some(slot)
    }

    fn buckets(&self) -> u32 {
        self.slots.len().div_ceil(4).max(1) as u32
    }

    fn tags_and_marks(&self, bucket: u32) -> (u32, u32) {
        let lanes = || (0..4).map(|lane| bucket as usize * 4 + lane);
        let item = |slot| self.slots.get(slot).copied().flatten();
        let tag = |slot| item(slot).map_or(0, |item: Item| item.locator.place(self.buckets()).tag);
        let mark = |slot| item(slot).map_or(0, |item| item.mark) | self.notes.get(slot).copied().unwrap_or(0);
        let word = |of: &dyn Fn(usize) -> u8| {
            lanes().rev().fold(0, |word: u32, slot| word << 8 | u32::from(of(slot)))
        };
        (word(&tag), word(&mark))
    }

    fn set_marks(&mut self, bucket: u32, marks: u32) {
        for (lane, mark) in marks.to_le_bytes().into_iter().enumerate() {
            let slot = bucket as usize * 4 + lane;
            self.notes.resize(self.notes.len().max(slot + 1), 0);
            self.notes[slot] = mark & 0xF0;
            if let Some(Some(item)) = self.slots.get_mut(slot) {
                let hits = if self.is_busy { item.mark & mark::HITS } else { 0 };
                item.mark = mark & 0x0F | hits;
            }
        }
    }

    fn in_lane(&self, place: Place, lane: u32) -> usize {
        let (bucket, lane) = place.slot(lane);
        bucket as usize * 4 + lane as usize
    }

    fn slots(&self) -> usize {
        self.slots.len()
    }

    fn at(&self, index: usize) -> Option<usize> {
        self.slots[index].map(|_| index)
    }
}

/// A cache of keys.
struct Cache {
    evictor: Evictor,
    table: Table,
}

impl Cache {
    fn new(policy: Policy, capacity: u64, locators: u32) -> Self {
        let table = Table {
            slots: Vec::new(),
            notes: Vec::new(),
            locators,
            evicted: Vec::new(),
            is_busy: false,
            stays: None,
            places_among: None,
        };
        Cache { evictor: Evictor::new(policy, capacity), table }
    }

    fn locator(&self, key: u32) -> Locator {
        locator(key % self.table.locators)
    }

    /// A look-up that marks what it finds.
    fn get(&mut self, key: u32) -> bool {
        let slot = self.table.slot_of(key);
        if let Some(slot) = slot {
            let mark = self.table.mark(slot);
            self.table.set_mark(slot, mark | mark::hit(mark));
        }
        slot.is_some()
    }

    /// Admits a key that is not there; false if it is too heavy.
    fn insert(&mut self, key: u32, weight: u64) -> bool {
        if weight > self.evictor.capacity() {
            return false;
        }
        let locator = self.locator(key);
        let newcomer = Newcomer { locator, weight };
        let mark = self.evictor.admit(newcomer, &mut self.table);
        self.table.put(Item { key, locator, weight, mark });
        true
    }

    /// Puts a key that is not there before all that are, if there is room.
    fn restore(&mut self, key: u32, weight: u64, heat: Heat) -> bool {
        let has_room = self.evictor.fits(weight);
        if has_room {
            let locator = self.locator(key);
            let mark = self.evictor.restore(Newcomer { locator, weight }, heat, &mut self.table);
            self.table.put(Item { key, locator, weight, mark });
        }
        has_room
    }

    /// Key, weight and heat of all items, each queue from the next to go to the last.
    fn order(&mut self) -> Vec<(u32, u64, Heat)> {
        let order = self.evictor.order(&mut self.table);
        let told = |(slot, heat)| (self.table.item(slot).key, self.table.item(slot).weight, heat);
        order.into_iter().map(told).collect()
    }

    /// Looks up, and inserts with weight 1 after a miss.
    fn read_through(&mut self, key: u32) -> bool {
        let hit = self.get(key);
        if !hit {
            self.insert(key, 1);
        }
        hit
    }

    fn remove(&mut self, key: u32) -> bool {
        let Some(slot) = self.table.slot_of(key) else { return false };
        let item = self.table.item(slot);
        self.table.slots[slot] = None;
        self.evictor.removed(item.mark, item.weight);
        true
    }

    /// Replaces a key's item by one of another weight, as a cache does.
    fn reweigh(&mut self, key: u32, weight: u64) -> bool {
        let Some(slot) = self.table.slot_of(key) else { return false };
        let old = self.table.item(slot).weight;
        self.table.stays = Some(slot);
        self.evictor.make_room(weight.saturating_sub(old), &mut self.table);
        self.table.stays = None;
        let item = self.table.slots[slot].as_mut().expect("just found");
        item.weight = weight;
        self.evictor.reweighed(item.mark, old, weight);
        true
    }

    /// Moves an item to another slot, with its mark, as displacement does.
    fn displace(&mut self, key: u32) {
        if let Some(slot) = self.table.slot_of(key) {
            let item = self.table.slots[slot].take();
            self.table.slots.push(item);
        }
    }

    fn residents(&self) -> BTreeMap<u32, u64> {
        self.table.slots.iter().flatten().map(|item| (item.key, item.weight)).collect()
    }

    fn weight_of_residents(&self) -> u64 {
        self.table.slots.iter().flatten().map(|item| item.weight).sum()
    }
}
