//! [`Adaptive`], where entries have weights: which newcomers are turned away because they are as heavy as many others.

use super::adaptive::Adaptive;
use super::mark::{self, MAIN};
use super::{Newcomer, Residents};

/// A newcomer is heavy if more residents than this, of their mean weight, would have to be evicted for it, and has to be worth
/// them.
pub(super) const MANY: u64 = 8;
/// How often a heavy newcomer has to be turned away before it may push out items that were hit.
const RETURNS: usize = 4;
/// The most entries of main that are looked at before a heavy newcomer is let in.
pub(super) const LOOKS: usize = 512;

impl Adaptive {
    /// Whether a newcomer is turned away: a heavy one that was not rejected lately, or for which an item of main that was hit
    /// would have to be evicted. That item loses a hit, lest the cache be full of what was asked for long ago; and a newcomer
    /// that has been turned away as often, for its weight, as others have left is let in.
    ///
    /// As long as no hand has met an item that was hit, nothing is known about which items are worth more.
    pub(super) fn turns_away<R: Residents>(&mut self, newcomer: Newcomer, residents: &mut R) -> bool {
        let Newcomer { locator, weight } = newcomer;
        if self.fits(weight) {
            return false;
        }
        let (times, among) = self.rejected.as_ref().map_or((0, 0), |ghost| ghost.times(locator));
        let is_turned_away = match times {
            0 if self.has_met_hits && self.is_heavy(weight) => true,
            RETURNS.. if self.is_worth(weight, times, among) => false,
            _ => self.is_hot(weight, residents),
        };
        if is_turned_away {
            self.reject(locator);
        }
        is_turned_away
    }

    /// Whether a newcomer that came `times` times among so many rejections is asked for at least as often, in proportion to the
    /// missing weight, as one rejection in all, in proportion to the weight of all residents.
    fn is_worth(&self, weight: u64, times: usize, among: usize) -> bool {
        times as u128 * u128::from(self.weight()) >= among as u128 * u128::from(self.missing(weight))
    }

    /// Whether more than [`MANY`] residents of their mean weight would have to be evicted for a newcomer.
    pub(super) fn is_heavy(&self, weight: u64) -> bool {
        is_of_many(self.missing(weight), self.len(), self.weight())
    }

    /// The weight that is missing for a newcomer that does not fit.
    fn missing(&self, weight: u64) -> u64 {
        weight.saturating_sub(self.capacity - self.weight())
    }

    /// Whether more than [`MANY`] items of main would have to be evicted, and one of them was hit: that one loses a hit.
    fn is_hot<R: Residents>(&self, weight: u64, residents: &mut R) -> bool {
        let of_window = self.window.weight().saturating_sub(self.due);
        let of_main = self.missing(weight).saturating_sub(of_window);
        is_of_many(of_main, self.main.len(), self.main.weight()) && self.takes_hit_before(of_main, residents)
    }

    /// Takes a hit from the first item of main that has one, if the items before it weigh less than `weight` and are not too
    /// many to look at.
    fn takes_hit_before<R: Residents>(&self, weight: u64, residents: &mut R) -> bool {
        let mut before: u64 = 0;
        for index in 0..LOOKS {
            let Some(locator) = self.main.peek(index).filter(|_| before < weight) else { return false };
            // Otherwise the entry is stale.
            if let Some(slot) = residents.find(locator, MAIN, MAIN) {
                let mark = residents.mark(slot);
                if mark::hits(mark) > 0 {
                    residents.set_mark(slot, mark::less(mark));
                    return true;
                }
                // A stale entry may mean an item that has another entry: sums may exceed the largest number.
                before = before.saturating_add(residents.weight(slot));
            }
        }
        false
    }
}

/// Whether `weight` is more than that of [`MANY`] items, of which `len` weigh `of` together.
pub(super) fn is_of_many(weight: u64, len: usize, of: u64) -> bool {
    u128::from(weight) * len as u128 > u128::from(MANY) * u128::from(of)
}
