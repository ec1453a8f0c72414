//! [`Hand`]: where a clock's sweep of the slots has come to.

use super::Residents;

/// The number of the slot that is looked at next. The table may shrink or grow under the hand.
#[derive(Debug, Default)]
pub(super) struct Hand(usize);

impl Hand {
    /// Goes on by one slot, and says who is in it.
    pub(super) fn step<R: Residents>(&mut self, residents: &R) -> Option<R::Slot> {
        let index = if self.0 < residents.slots() { self.0 } else { 0 };
        self.0 = index + 1;
        residents.at(index)
    }

    /// All items, as the hand will meet them.
    pub(super) fn round<R: Residents>(&self, residents: &R) -> impl Iterator<Item = R::Slot> {
        let slots = residents.slots();
        let next = self.0.min(slots);
        (next..slots).chain(0..next).filter_map(|index| residents.at(index))
    }
}
