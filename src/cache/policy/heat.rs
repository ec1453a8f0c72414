//! What a dump keeps of a policy. [`Heat`]: an item's standing with the policy, apart from its place in the queue.
//! [`WindowShare`]: what the policy has learned.

use super::mark::{self, MAIN};

/// [L1] An item's hits, and, among items with equally many, whether it is in main: the larger, the longer it stays. The same
/// for all policies, so that one can go on from another's dump: items of the other policies count as those of main, a clock's
/// as hit once or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::cache) struct Heat {
    hits: u8,
    in_main: bool,
}

impl Heat {
    pub(super) fn new(hits: u8, in_main: bool) -> Self {
        debug_assert!(hits <= 2);
        Heat { hits, in_main }
    }

    pub(super) fn of_adaptive(mark: u8) -> Self {
        Heat::new(mark::hits(mark) as u8, mark & MAIN != 0)
    }

    /// The item's mark in [`Local`](super::local::Local): its hits.
    pub(super) fn local_mark(self) -> u8 {
        (0..self.hits).fold(0, |mark, _| mark | mark::hit(mark))
    }

    /// The item's mark in [`Adaptive`](super::adaptive::Adaptive).
    pub(super) fn adaptive_mark(self) -> u8 {
        let queue = if self.in_main { MAIN } else { 0 };
        queue | self.local_mark()
    }

    pub(super) fn hits(self) -> u8 {
        self.hits
    }

    /// Whether the item is in main.
    pub(in crate::cache) fn in_main(self) -> bool {
        self.in_main
    }

    /// One number for it, part of the format of dumps: hits, 0 to 2, and 4 in main.
    #[cfg(feature = "serde")]
    pub(in crate::cache) fn number(self) -> u8 {
        self.hits | u8::from(self.in_main) << 2
    }

    /// The inverse of [`number`](Self::number); `None` if that never returns this number.
    #[cfg(feature = "serde")]
    pub(in crate::cache) fn from_number(number: u8) -> Option<Self> {
        let (hits, queue) = (number & 3, number >> 2);
        (hits <= 2 && queue <= 1).then(|| Heat::new(hits, queue == 1))
    }
}

/// [L5] The part of the capacity that [`Adaptive`](super::adaptive::Adaptive)'s window may have, in millionths: finer than one
/// item in all but the largest segments, and decimal, so that its initial value, a hundredth, is exact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cache) struct WindowShare(u32);

impl WindowShare {
    const WHOLE: u32 = 1_000_000;

    /// The value nearest to `share`, 0 to 1.
    pub(in crate::cache) fn of(share: f64) -> Self {
        debug_assert!((0.0..=1.0).contains(&share));
        WindowShare((share * f64::from(Self::WHOLE)).round() as u32)
    }

    /// The share as a fraction.
    pub(super) fn part(self) -> f64 {
        f64::from(self.0) / f64::from(Self::WHOLE)
    }

    /// One number for it, part of the format of dumps.
    #[cfg(feature = "serde")]
    pub(in crate::cache) fn number(self) -> u32 {
        self.0
    }

    /// The inverse of [`number`](Self::number); `None` if it is more than the whole.
    #[cfg(feature = "serde")]
    pub(in crate::cache) fn from_number(number: u32) -> Option<Self> {
        (number <= Self::WHOLE).then_some(WindowShare(number))
    }
}
