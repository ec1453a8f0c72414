//! [`Adaptive`]: a window, a clock whose hand is on a short leash, and ghosts.
//!
//! ```text
//!                 new                        back from the ghost
//!                  |                                  |
//!                  v          hit in the window       v
//!            [   window   ] ----------------> [      main      ] --.  hit: to the back
//!                  |                              |     ^----------'
//!                  v                              v
//!            rejected: ghost                demoted: ghost
//! ```
//!
//! New items pass through the *window*, first in first out, and reach *main* if they were hit there, or if they come back while
//! the ghost of the *rejected* remembers them. So far this is S3-FIFO (Yang et al., SOSP 2023) and, before it, 2Q (Johnson and
//! Shasha, VLDB 1994). Two things are different:
//!
//! * Main does not give way to everything. A candidate may move main's hand a few steps; if the hand meets only items that were
//!   hit since it last passed, main stays as it is, and they have lost one hit each. So the rate at which items come back is
//!   weighed against the rate at which main is hit: a loop that is larger than the cache keeps what fits, where S3-FIFO
//!   thrashes.
//! * The window's share is not fixed. As in ARC (Megiddo and Modha, FAST 2003), a key that comes back shortly after the window
//!   rejected it indicates that the window is too small, and one that comes back after main demoted it indicates that main is;
//!   the rarer of the two counts for more.
//!
//! Where entries have weights, an entry as heavy as many others is [turned away](Adaptive::turns_away) until the ghost of the
//! rejected says that it is worth them: see `heavy`.

use super::ghost::Ghost;
use super::mark::{self, MAIN, SEEN};
use super::ring::Ring;
use super::{Heat, Locator, Newcomer, Residents, WindowShare, has_room};

/// Steps of main's hand that one candidate may ask for. More steps bring main nearer to LRU, fewer nearer to never changing.
const STEPS: usize = 4;
/// The same for a key that came back late.
const LATE_STEPS: usize = 1;
/// After so many items were spared because they were hit, one is evicted all the same: the lock is held meanwhile.
pub(super) const PATIENCE: usize = 512;
/// After so many more for each item that has been evicted, if one newcomer is as heavy as many: as many hits as a mark counts.
pub(super) const PATIENCE_EACH: usize = 2;
/// With fewer residents, only every other key that comes back late is worth a step. In a loop of twice the capacity, such keys
/// and main's items are asked for equally often; where there are few, chance decides which lose their last hit: with ten
/// entries there were no hits, and now 45%.
pub(super) const FEW: usize = 64;
/// A rejected key that comes back within `residents / EARLY` further rejections has come early.
const EARLY: usize = 4;
/// The window's least and largest share of the capacity; it begins with the least.
const WINDOW_SHARE: (f64, f64) = (0.01, 0.9);
/// A key that came back moves the window's share by the mean item's weight, but by less where that is much: as if
/// there were so many residents more.
const DAMPING: usize = 64;
/// The ghost of the rejected remembers `residents * 7 / 4` keys, and at least 32: the tiniest caches learn from it too.
const REJECTED: Reach = Reach { times: 7, by: 4, least: 32 };
/// The ghost of the demoted remembers half as many keys as there are residents.
const DEMOTED: Reach = Reach { times: 1, by: 2, least: 2 };

/// How many keys a ghost remembers: `residents * times / by`, at least `least`.
#[derive(Clone, Copy)]
struct Reach {
    times: usize,
    by: usize,
    least: usize,
}

impl Reach {
    #[inline(always)]
    fn beside(self, residents: usize) -> usize {
        (residents * self.times / self.by).max(self.least)
    }
}

/// One segment's queues.
///
/// An insertion that evicts the window's front writes the first line and the one that `rejected` begins with, and fetches them
/// from the core that inserted before: what it writes should be in few lines.
#[derive(Debug)]
#[repr(C, align(64))]
pub(super) struct Adaptive {
    pub(super) window: Ring,
    pub(super) capacity: u64,
    /// From this weight on, the window is the queue that gives way: the target rounded up, at least 1.
    pub(super) due: u64,
    pub(super) main: Ring,
    /// How much the window may weigh, of a capacity of at least 1: between the bounds of [`WINDOW_SHARE`].
    target: f64,
    /// Whether a hand has met an item that was hit.
    pub(super) has_met_hits: bool,
    /// Whether a ring has dropped stale entries: an entry that it kept may be another item's.
    has_compacted: bool,
    /// Flips with each rejected key that comes back late: with fewer than [`FEW`] residents, the odd ones are worth no step.
    late_is_odd: bool,
    pub(super) rejected: Option<Ghost>,
    demoted: Option<Ghost>,
}

#[cfg(target_pointer_width = "64")]
const _: () =
    assert!(core::mem::offset_of!(Adaptive, main) == 64 && core::mem::offset_of!(Adaptive, rejected) == 128);

impl Adaptive {
    pub(super) fn new(capacity: u64) -> Self {
        let mut new = Adaptive {
            capacity,
            target: 0.0,
            has_met_hits: false,
            has_compacted: false,
            late_is_odd: false,
            due: 0,
            window: Ring::default(),
            main: Ring::default(),
            rejected: None,
            demoted: None,
        };
        new.set_target(0.0);
        new
    }

    #[inline]
    pub(super) fn capacity(&self) -> u64 {
        self.capacity
    }

    #[inline]
    pub(super) fn weight(&self) -> u64 {
        self.window.weight() + self.main.weight()
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.window.len() + self.main.len()
    }

    /// Starts loading what `admit` will read for a key, and, with `resident`, for the first item that may be evicted for it.
    #[inline]
    pub(super) fn prefetch(&self, newcomer: Newcomer, resident: impl Fn(Locator)) {
        for ghost in [&self.rejected, &self.demoted].into_iter().flatten() {
            ghost.prefetch(newcomer.locator);
        }
        if self.fits(newcomer.weight) {
            return;
        }
        let (ring, ghost) =
            if self.window_is_due() { (&self.window, &self.rejected) } else { (&self.main, &self.demoted) };
        if let Some(next) = ring.peek(0) {
            resident(next);
            if let Some(ghost) = ghost {
                ghost.prefetch(next);
            }
        }
    }

    /// Whether the window, rather than main, gives way now.
    #[inline]
    fn window_is_due(&self) -> bool {
        // The window is not empty then: `due` is at least 1.
        self.main.len() == 0 || self.window.weight() >= self.due
    }

    #[inline(never)]
    pub(super) fn admit<R: Residents>(&mut self, newcomer: Newcomer, residents: &mut R) -> u8 {
        let Newcomer { locator, weight } = newcomer;
        let steps = self.recall(locator);
        // Nothing is evicted for it while there is room for both queues. A heavy newcomer has not been turned away: more than a
        // few items may be evicted.
        let admitted = steps.is_some_and(|steps| {
            self.fits(weight)
                || self.room_in_main(weight, steps, residents)
                || weight > 1 && self.is_heavy(weight)
        });
        let has_room = self.fits(weight);
        // While the cache fills, main does too: a loop finds at least what was there first.
        let filling = has_room && self.fits_main(weight);
        if !has_room {
            self.evict_for(weight, residents);
        }
        let (ring, mark) = if admitted || filling { (&mut self.main, MAIN) } else { (&mut self.window, 0) };
        // Before the push: the table does not have the newcomer yet.
        if ring.compact_if_stale(mark, residents) {
            self.has_compacted = true;
        }
        ring.push(locator, weight);
        mark
    }

    /// Whether nothing has been evicted or turned away yet.
    pub(super) fn has_kept_all(&self) -> bool {
        self.rejected.is_none() && self.demoted.is_none()
    }

    /// Adds an item before all that are there. What the ghosts knew is lost.
    pub(super) fn restore<R: Residents>(&mut self, newcomer: Newcomer, heat: Heat, residents: &mut R) -> u8 {
        let mark = heat.adaptive_mark();
        let ring = self.ring_of(mark);
        let has_compacted = ring.compact_if_stale(mark & MAIN, residents);
        ring.push_front(newcomer.locator, newcomer.weight);
        self.has_compacted |= has_compacted;
        mark
    }

    /// Gives back the memory of entries whose items have left.
    pub(super) fn tidy<R: Residents>(&mut self, residents: &mut R) {
        for (ring, queue) in [(&mut self.window, 0), (&mut self.main, MAIN)] {
            self.has_compacted |= ring.tidy(queue, residents);
        }
    }

    pub(super) fn target(&self) -> f64 {
        self.target.min(self.capacity as f64)
    }

    /// The capacity that window and main share. It counts as at least 1, so that the window keeps its share of an empty
    /// capacity for when there is some again.
    fn shared(&self) -> f64 {
        self.capacity.max(1) as f64
    }

    /// Takes over what another cache learned, unless something has been evicted here: then this cache knows its own requests.
    pub(super) fn learn(&mut self, share: WindowShare) {
        if self.has_kept_all() {
            self.set_target(share.part() * self.shared());
        }
    }

    /// Items to which no entry leads, if the table has just doubled.
    ///
    /// Items whose locators have one place cannot be told apart: one item's entry may have led to another's eviction, or may
    /// mean the other item after the one was removed; it is then the entry that is kept when stale ones are dropped. As many
    /// entries as items have that place then; but not in a table of twice the buckets, where their locators may have two
    /// places.
    pub(super) fn strays<R: Residents>(&self, residents: &mut R) -> Vec<R::Slot> {
        let nobody_has_left = self.has_kept_all() && !self.has_compacted;
        if nobody_has_left && !self.window.may_be_stale() && !self.main.may_be_stale() {
            return Vec::new();
        }
        self.walk(residents).1
    }

    /// The items that entries lead to, main's and then the window's, each from the back of its ring; and the other items.
    fn walk<R: Residents>(&self, residents: &mut R) -> (Vec<R::Slot>, Vec<R::Slot>) {
        let (mut found, mut strays) = (Vec::with_capacity(self.len()), Vec::new());
        // From the back: an item's own entry is the last of those that could mean it.
        self.main.see(MAIN, residents, &mut found);
        self.window.see(0, residents, &mut found);
        for index in 0..residents.slots() {
            let Some(slot) = residents.at(index) else { continue };
            let mark = residents.mark(slot);
            if mark & SEEN == 0 {
                strays.push(slot);
            }
            residents.set_mark(slot, mark & !SEEN);
        }
        (found, strays)
    }

    /// Gives an item that has none an entry: before all others, because it may have lost its own long ago.
    pub(super) fn adopt(&mut self, locator: Locator, mark: u8) {
        self.ring_of(mark).adopt(locator);
    }

    /// All items, first those of the window, from the front of each ring to its back.
    pub(super) fn order<R: Residents>(&self, residents: &mut R) -> Vec<(R::Slot, Heat)> {
        let (mut order, strays) = self.walk(residents);
        // These are the first to go, see `evict_stray`.
        order.extend(strays);
        let with_heat = |slot| (slot, Heat::of_adaptive(residents.mark(slot)));
        order.into_iter().rev().map(with_heat).collect()
    }

    /// Evicts until `weight` more fits.
    #[inline(never)]
    pub(super) fn make_room<R: Residents>(&mut self, weight: u64, residents: &mut R) {
        if !self.fits(weight) {
            self.evict_for(weight, residents);
        }
    }

    /// Evicts an item, and more until `weight` more fits, or none is left.
    #[inline(always)]
    fn evict_for<R: Residents>(&mut self, weight: u64, residents: &mut R) {
        let mut spared = 0;
        while self.len() > 0 {
            let somebody_goes = spared >= PATIENCE;
            spared = if self.window_is_due() || somebody_goes && self.window.len() > 0 {
                self.step_window(spared, residents)
            } else {
                self.step_main(spared, residents)
            };
            if self.fits(weight) {
                break;
            }
        }
    }

    pub(super) fn reweighed(&mut self, mark: u8, old: u64, new: u64) {
        self.ring_of(mark).reweigh(old, new);
    }

    pub(super) fn removed(&mut self, mark: u8, weight: u64) {
        self.ring_of(mark).forget(weight);
    }

    pub(super) fn set_capacity<R: Residents>(&mut self, capacity: u64, residents: &mut R) {
        let (target, shared) = (self.target, self.shared());
        self.capacity = capacity;
        self.set_target(target * (self.shared() / shared));
        self.make_room(0, residents);
    }

    pub(super) fn memory_usage(&self) -> usize {
        let ghosts = [&self.rejected, &self.demoted].into_iter().flatten().map(Ghost::memory_usage);
        self.window.memory_usage() + self.main.memory_usage() + ghosts.sum::<usize>()
    }

    #[inline]
    fn ring_of(&mut self, mark: u8) -> &mut Ring {
        if mark & MAIN == 0 { &mut self.window } else { &mut self.main }
    }

    #[inline]
    pub(super) fn fits(&self, weight: u64) -> bool {
        has_room(self.capacity, self.weight(), weight)
    }

    /// Whether main has room next to the window's share.
    #[inline]
    fn fits_main(&self, weight: u64) -> bool {
        self.fits_main_without(0, weight)
    }

    /// The same, once `freed` has been evicted.
    #[inline]
    fn fits_main_without(&self, freed: u64, weight: u64) -> bool {
        let room = self.capacity.saturating_sub(self.due).max(1);
        (self.main.weight() - freed).saturating_add(weight) <= room
    }

    /// What the ghosts know of a newcomer: how many steps of main's hand it is worth, if any. They forget it.
    #[inline(always)]
    fn recall(&mut self, locator: Locator) -> Option<usize> {
        let known = |ghost: &Option<Ghost>| ghost.as_ref().map_or(0, |ghost| ghost.len()).max(1) as f64;
        if let Some(rejections_ago) = self.rejected.as_mut().and_then(|ghost| ghost.take(locator)) {
            if rejections_ago * EARLY > self.len() {
                self.late_is_odd = !self.late_is_odd;
                return (self.len() >= FEW || !self.late_is_odd).then_some(LATE_STEPS);
            }
            let by = (known(&self.demoted) / known(&self.rejected)).max(1.0);
            self.set_target(self.target + self.step() * by);
            return Some(STEPS);
        }
        // A key that main demoted has to pass through the window again: otherwise a loop's items would replace each other.
        if self.demoted.as_mut().and_then(|ghost| ghost.take(locator)).is_some() {
            let by = (known(&self.rejected) / known(&self.demoted)).max(1.0);
            self.set_target(self.target - self.step() * by);
        }
        None
    }

    /// The amount by which one key that came back moves the window's share: a mean item.
    #[inline]
    fn step(&self) -> f64 {
        self.capacity as f64 / (self.len() + DAMPING) as f64
    }

    /// Sets how much the window may weigh, within its bounds.
    fn set_target(&mut self, target: f64) {
        let capacity = self.shared();
        self.target = target.clamp(WINDOW_SHARE.0 * capacity, WINDOW_SHARE.1 * capacity);
        let whole = self.target as u64;
        // Rounded up: weights are whole numbers.
        self.due = (whole + u64::from((whole as f64) < self.target)).max(1);
    }

    /// Moves or evicts the item at the window's front; evicts it if too many were spared before it. Returns how many have been
    /// spared, less what each eviction makes up for.
    #[inline(always)]
    fn step_window<R: Residents>(&mut self, spared: usize, residents: &mut R) -> usize {
        let Some(locator) = self.window.peek(0) else { return self.evict_stray(residents) };
        let Some(slot) = residents.find(locator, MAIN, 0) else {
            self.window.pop(0);
            return spared;
        };
        let weight = residents.weight(slot);
        let was_hit = mark::hits(residents.mark(slot)) > 0;
        self.has_met_hits |= was_hit;
        // An item that is being replaced is in use, like one that was hit, and moves whether or not there is room.
        if residents.stays(slot)
            || was_hit && spared < PATIENCE && self.room_in_main(weight, STEPS, residents)
        {
            self.window.pop(0);
            self.window.forget(weight);
            if self.main.compact_if_stale(MAIN, residents) {
                self.has_compacted = true;
            }
            residents.set_mark(slot, MAIN);
            self.main.push(locator, weight);
            spared + 1
        } else {
            self.window.pop(0);
            self.window.forget(weight);
            self.reject(locator);
            residents.evict(slot);
            spared.saturating_sub(PATIENCE_EACH)
        }
    }

    /// Makes the ghost of the rejected remember a key.
    #[inline(always)]
    pub(super) fn reject(&mut self, locator: Locator) {
        let len = self.len();
        remember(&mut self.rejected, len, REJECTED, locator);
    }

    /// Takes a hit from the item at main's front and sends it to the back, or evicts it; returns the same as
    /// [`step_window`](Self::step_window).
    fn step_main<R: Residents>(&mut self, spared: usize, residents: &mut R) -> usize {
        let Some((locator, slot)) = self.next_main(0, residents) else { return self.evict_stray(residents) };
        if residents.stays(slot) {
            return self.pass_by(locator, spared, residents);
        }
        if mark::hits(residents.mark(slot)) > 0 && spared < PATIENCE {
            self.spare(0, locator, slot, residents);
            spared + 1
        } else {
            self.demote(0, locator, slot, residents);
            spared.saturating_sub(PATIENCE_EACH)
        }
    }

    /// Sends the item at main's front, which stays, to the back.
    #[cold]
    fn pass_by<R: Residents>(&mut self, locator: Locator, spared: usize, residents: &mut R) -> usize {
        // Another item with its locator is not found as long as it is there.
        if spared > 2 * PATIENCE {
            return self.evict_stray(residents);
        }
        self.requeue(0, locator);
        // If it is alone in main, the window gives way.
        if self.main.len() == 1 { spared.max(PATIENCE) + 1 } else { spared + 1 }
    }

    /// Makes room in main for a candidate in at most `steps` steps of the hand; else main stays as it is.
    fn room_in_main<R: Residents>(&mut self, weight: u64, steps: usize, residents: &mut R) -> bool {
        // The first entries of main that were not hit, to be evicted if there are enough of them.
        let mut victims = [None; STEPS];
        let mut held = 0;
        let mut freed = 0;
        for _ in 0..steps {
            if self.main.len() == held || self.fits_main_without(freed, weight) {
                break;
            }
            let Some((locator, slot)) = self.next_main(held, residents) else { break };
            if residents.stays(slot) {
                self.requeue(held, locator);
                continue;
            }
            // Of two items with one locator, the other may be meant: it is spared this time.
            if mark::hits(residents.mark(slot)) > 0
                || victims.iter().flatten().any(|&(_, other)| other == slot)
            {
                self.spare(held, locator, slot, residents);
            } else {
                freed += residents.weight(slot);
                victims[held] = Some((locator, slot));
                held += 1;
            }
        }
        if self.main.len() > held && !self.fits_main_without(freed, weight) {
            return false;
        }
        for (locator, slot) in victims.into_iter().flatten() {
            self.demote(0, locator, slot, residents);
        }
        true
    }

    /// The entry of main at `index` and its item, after stale entries there have been dropped.
    fn next_main<R: Residents>(&mut self, index: usize, residents: &R) -> Option<(Locator, R::Slot)> {
        loop {
            let locator = self.main.peek(index)?;
            match residents.find(locator, MAIN, MAIN) {
                Some(slot) => return Some((locator, slot)),
                None => self.main.pop(index),
            }
        }
    }

    /// Moves the entry of main at `index` to the back, with one hit less.
    fn spare<R: Residents>(&mut self, index: usize, locator: Locator, slot: R::Slot, residents: &mut R) {
        self.has_met_hits = true;
        residents.set_mark(slot, mark::less(residents.mark(slot)));
        self.requeue(index, locator);
    }

    /// Moves the entry of main at `index` to the back.
    #[inline(always)]
    fn requeue(&mut self, index: usize, locator: Locator) {
        self.main.pop(index);
        self.main.requeue(locator);
    }

    /// Evicts any item. Every item has an entry, unless its `Hash` contradicted itself, or panicked when it was to be
    /// [adopted](Self::adopt): then its entry leads nowhere, and was dropped as stale. Or its entry leads to an item that
    /// stays.
    #[cold]
    #[inline(never)]
    fn evict_stray<R: Residents>(&mut self, residents: &mut R) -> usize {
        let mut taken = (0..residents.slots()).filter_map(|index| residents.at(index));
        let stray = taken.find(|&slot| !residents.stays(slot));
        let slot = stray.expect("what is counted is in the table");
        self.ring_of(residents.mark(slot)).forget(residents.weight(slot));
        residents.evict(slot);
        0
    }

    /// Evicts the item in `slot`, whose entry is the one of main at `index`.
    #[inline(never)]
    fn demote<R: Residents>(&mut self, index: usize, locator: Locator, slot: R::Slot, residents: &mut R) {
        self.main.pop(index);
        self.main.forget(residents.weight(slot));
        let len = self.len();
        remember(&mut self.demoted, len, DEMOTED, locator);
        residents.evict(slot);
    }
}

/// Puts a key into a ghost that is made for `len` residents and one more, the one that is leaving; into a new ghost if there
/// are now far more or fewer than it was made for.
#[inline(always)]
fn remember(ghost: &mut Option<Ghost>, len: usize, reach: Reach, locator: Locator) {
    let reach = reach.beside(len + 1);
    match ghost {
        Some(ghost) if reach <= 2 * ghost.reach() && ghost.reach() <= 4 * reach => ghost.push(locator),
        _ => begin(ghost, reach, locator),
    }
}

/// Puts a key into a new ghost.
#[cold]
fn begin(ghost: &mut Option<Ghost>, reach: usize, locator: Locator) {
    ghost.insert(Ghost::new(reach)).push(locator);
}
