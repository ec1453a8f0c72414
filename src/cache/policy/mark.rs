//! The mark: half of the byte that goes with a slot's tag; it holds an item's hits, and which queue it is in.
//!
//! ```text
//!   3: seen, while a ring is walked         1, 0: a hit sets the lowest of the two that is clear
//!   2: in main, else in the window
//! ```
//!
//! Four bits move with the item; the upper half of the byte stays with the bucket, see [`Local`](super::local::Local).
//!
//! A hit must *or* its bit into the byte and not store the byte: a store could undo a change of queue that a writer made in
//! between, and an item that is in neither queue is never evicted. The bit may land on another item, if the slot was taken over
//! in between; then that item looks more popular than it is, once.

/// The bits that hits set.
pub(super) const HITS: u8 = 0b0011;
/// The queue: set for main, clear for the window.
pub(super) const MAIN: u8 = 0b0100;
/// Set while a ring is compacted or listed in order, on items whose entry has been found.
pub(super) const SEEN: u8 = 0b1000;
/// A clock's items have this bit, so that one hit sets all bits that hits can set.
pub(super) const CLOCK: u8 = 0b0010;

/// The bits that a hit must *or* into the mark; 0 says that there is nothing to write. The same for all policies.
#[inline]
pub(in crate::cache) fn hit(mark: u8) -> u8 {
    let clear = !mark & HITS;
    clear & clear.wrapping_neg()
}

/// Hits since the mark was made, 0 to 2.
#[inline]
pub(in crate::cache) fn hits(mark: u8) -> u32 {
    // Both orders of bits occur: a hit may have decided on the second bit before a hand cleared the first.
    (mark & HITS).count_ones()
}

/// The mark with one hit less.
#[inline]
pub(super) fn less(mark: u8) -> u8 {
    if mark & HITS == HITS { mark & !0b10 } else { mark & !HITS }
}
