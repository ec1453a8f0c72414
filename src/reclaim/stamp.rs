//! [`Stamp`]: an epoch of one collector, in a word that identifies the collector.

use crate::sync::AtomicU64;
use crate::sync::Ordering::Relaxed;

/// A collector's number and its epoch; 0 is no stamp.
///
/// Both repeat, an epoch after 2^32 advances and a number when as many collectors have been made. A guard holds up the second
/// advance after it was entered, so that its stamp is never that old. It is assumed that no thread is stopped for that long
/// while entering one, and that no thread has guards of two collectors of one number. A debt, or the stamp of a flush, may be
/// that old: it is then taken for a later one, and more is looked for, or freed at once, than need be. The age at which a bag
/// is freed depends on neither.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp(u64);

/// When something was sealed, in advances of its collector.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Epoch(u32);

impl Stamp {
    /// The stamp of no collector.
    pub(super) const NONE: Stamp = Stamp(0);

    /// The first epoch of the collector that is made as number `n`, from 0.
    pub(super) fn first(n: u64) -> Self {
        // Never 0.
        let number = n % u64::from(u32::MAX) + 1;
        Stamp(number << 32 | 1)
    }

    #[inline(always)]
    pub(super) fn from_bits(bits: u64) -> Self {
        Stamp(bits)
    }

    #[inline(always)]
    pub(super) fn bits(self) -> u64 {
        self.0
    }

    /// The collector's number.
    pub(super) fn number(self) -> u32 {
        (self.0 >> 32) as u32
    }

    pub(super) fn epoch(self) -> Epoch {
        Epoch(self.0 as u32)
    }

    /// The same collector's next epoch.
    pub(super) fn next(self) -> Self {
        Stamp(u64::from(self.number()) << 32 | u64::from((self.0 as u32).wrapping_add(1)))
    }

    /// Stores this stamp in `word`, unless a later one of the same collector is there. Relaxed: the word's users say why.
    pub(super) fn raise(self, word: &AtomicU64) {
        let later = |there| {
            let there = Stamp(there);
            let is_later = there == Stamp::NONE || self.epoch().since(there.epoch()) > 0;
            is_later.then_some(self.0)
        };
        let _ = word.fetch_update(Relaxed, Relaxed, later);
    }

    /// Whether a guard with this stamp holds up the advance from `now`: if it is of the same collector and of another epoch.
    pub(super) fn holds_up(self, now: Stamp) -> bool {
        self != now && self.number() == now.number()
    }
}

impl Epoch {
    /// How many epochs later than `earlier` this is.
    pub(super) fn since(self, earlier: Epoch) -> i32 {
        self.0.wrapping_sub(earlier.0) as i32
    }

    /// Which of `of` that take turns is this epoch's; `of` is a power of two.
    pub(super) fn nth(self, of: usize) -> usize {
        self.0 as usize % of
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn epochs_come_again_and_numbers_stay() {
        let first = Stamp::first(6);
        assert_eq!((first.number(), first.next().number()), (7, 7));
        assert_eq!(first.next().next().epoch().since(first.epoch()), 2);
        let last = Stamp(first.0 | u64::from(u32::MAX));
        assert_eq!((last.next().number(), last.next().epoch()), (7, Epoch(0)));
        assert_eq!(last.next().next().next().epoch().since(last.epoch()), 3);
        assert_eq!(last.epoch().since(last.next().epoch()), -1);
    }

    #[test]
    fn no_stamp_is_none() {
        let numbers = [0, 1, u64::from(u32::MAX) - 1, u64::from(u32::MAX), u64::MAX];
        assert!(numbers.into_iter().all(|n| Stamp::first(n).number() != 0));
    }

    #[test]
    fn a_guard_holds_up_the_next_epoch_of_its_own_collector() {
        let (ours, others) = (Stamp::first(0), Stamp::first(1));
        assert!(ours.holds_up(ours.next()) && !ours.holds_up(ours));
        assert!(!others.holds_up(ours.next()) && !Stamp(0).holds_up(ours));
        // The advancing thread has fallen behind.
        assert!(ours.next().holds_up(ours));
    }
}
