//! [`Clock`]: MemC3's policy, a hand that sweeps the slots.

use super::hand::Hand;
use super::{Heat, Newcomer, Residents, has_room, mark};

/// One bit of the mark says that there was a hit since the hand came by. The hand clears it, and takes the first item
/// it finds without (Fan, Andersen and Kaminsky, NSDI 2013, section 3.4; after Corbato, 1968).
#[derive(Debug)]
pub(super) struct Clock {
    capacity: u64,
    weight: u64,
    hand: Hand,
}

impl Clock {
    pub(super) fn new(capacity: u64) -> Self {
        Clock { capacity, weight: 0, hand: Hand::default() }
    }

    pub(super) fn capacity(&self) -> u64 {
        self.capacity
    }

    pub(super) fn weight(&self) -> u64 {
        self.weight
    }

    /// New items enter without the bit, as in the paper's memcached, or one scan would turn the hand all the way round.
    pub(super) fn admit<R: Residents>(&mut self, newcomer: Newcomer, residents: &mut R) -> u8 {
        self.make_room(newcomer.weight, residents);
        self.weight += newcomer.weight;
        mark::CLOCK
    }

    /// Where it is among the slots, the table decides: of a clock's order only the bits last.
    pub(super) fn restore<R: Residents>(&mut self, newcomer: Newcomer, heat: Heat, _: &mut R) -> u8 {
        self.weight += newcomer.weight;
        heat.clock_mark()
    }

    /// All items, as the hand will meet them.
    pub(super) fn order<R: Residents>(&self, residents: &R) -> Vec<(R::Slot, Heat)> {
        let with_heat = |slot| (slot, Heat::of_clock(residents.mark(slot)));
        self.hand.round(residents).map(with_heat).collect()
    }

    pub(super) fn make_room<R: Residents>(&mut self, weight: u64, residents: &mut R) {
        while self.weight > 0 && !has_room(self.capacity, self.weight, weight) {
            self.step(residents);
        }
    }

    pub(super) fn reweighed(&mut self, _mark: u8, old: u64, new: u64) {
        self.weight = self.weight - old + new;
    }

    pub(super) fn removed(&mut self, _mark: u8, weight: u64) {
        self.weight -= weight;
    }

    pub(super) fn set_capacity<R: Residents>(&mut self, capacity: u64, residents: &mut R) {
        self.capacity = capacity;
        self.make_room(0, residents);
    }

    /// Looks at one slot.
    fn step<R: Residents>(&mut self, residents: &mut R) {
        let Some(slot) = self.hand.step(residents) else { return };
        if mark::hit(residents.mark(slot)) == 0 {
            residents.set_mark(slot, mark::CLOCK);
        } else {
            self.weight -= residents.weight(slot);
            residents.evict(slot);
        }
    }
}
