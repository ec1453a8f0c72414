//! [`Swept`]: policies without queues. A hand sweeps the slots; the rest is defined by their [`Rule`].

use core::marker::PhantomData;

use super::{Heat, Newcomer, Residents, has_room};

/// Rounds in which the hand takes all hits from all items, and so finds one that has none, unless readers are faster.
const ROUNDS: usize = 2;

/// How a policy interprets marks.
pub(super) trait Rule: Sized {
    /// The mark that the hand leaves behind when it passes this one; `None` if that item is to be evicted.
    fn spare(mark: u8) -> Option<u8>;

    /// The mark of an item with this heat.
    fn mark(heat: Heat) -> u8;

    /// The heat of an item with this mark.
    fn heat(mark: u8) -> Heat;

    /// The mark of a newcomer. It may evict before the hand does.
    fn admit<R: Residents>(swept: &mut Swept<Self>, newcomer: Newcomer, residents: &mut R) -> u8;
}

/// How much residents may weigh, how much they weigh, and the number of the slot that is looked at next. The table may shrink
/// or grow under the hand.
#[derive(Debug)]
pub(super) struct Swept<P> {
    capacity: u64,
    weight: u64,
    hand: usize,
    rule: PhantomData<P>,
}

impl<P: Rule> Swept<P> {
    pub(super) fn new(capacity: u64) -> Self {
        Swept { capacity, weight: 0, hand: 0, rule: PhantomData }
    }

    pub(super) fn capacity(&self) -> u64 {
        self.capacity
    }

    pub(super) fn weight(&self) -> u64 {
        self.weight
    }

    #[inline]
    pub(super) fn fits(&self, weight: u64) -> bool {
        has_room(self.capacity, self.weight, weight)
    }

    #[inline(never)]
    pub(super) fn admit<R: Residents>(&mut self, newcomer: Newcomer, residents: &mut R) -> u8 {
        let mark = P::admit(self, newcomer, residents);
        // Checked here as well: if the rule has made room, nothing is called.
        if !self.fits(newcomer.weight) {
            self.make_room(newcomer.weight, residents);
        }
        self.weight += newcomer.weight;
        mark
    }

    /// The table decides where the item is among the slots: of the order, only the marks are preserved.
    pub(super) fn restore<R: Residents>(&mut self, newcomer: Newcomer, heat: Heat, _: &mut R) -> u8 {
        self.weight += newcomer.weight;
        P::mark(heat)
    }

    /// All items, in the order in which the hand will meet them.
    pub(super) fn order<R: Residents>(&self, residents: &R) -> Vec<(R::Slot, Heat)> {
        let slots = residents.slots();
        let next = self.hand.min(slots);
        let round = (next..slots).chain(0..next).filter_map(|index| residents.at(index));
        round.map(|slot| (slot, P::heat(residents.mark(slot)))).collect()
    }

    #[inline]
    pub(super) fn make_room<R: Residents>(&mut self, weight: u64, residents: &mut R) {
        let mut looked_at = 0;
        while self.weight > 0 && !self.fits(weight) {
            let is_over = looked_at >= ROUNDS * residents.slots();
            looked_at = if self.step(is_over, residents) { 0 } else { looked_at + 1 };
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

    /// Makes the hand look at one slot, and evicts the item there, in any case or if it has no hits to spare it. Returns
    /// whether it did.
    fn step<R: Residents>(&mut self, in_any_case: bool, residents: &mut R) -> bool {
        let index = if self.hand < residents.slots() { self.hand } else { 0 };
        self.hand = index + 1;
        let Some(slot) = residents.at(index).filter(|&slot| !residents.stays(slot)) else { return false };
        match P::spare(residents.mark(slot)) {
            Some(mark) if !in_any_case => {
                residents.set_mark(slot, mark);
                false
            }
            _ => {
                self.evict(slot, residents);
                true
            }
        }
    }

    #[inline]
    pub(super) fn evict<R: Residents>(&mut self, slot: R::Slot, residents: &mut R) {
        self.weight -= residents.weight(slot);
        residents.evict(slot);
    }
}
