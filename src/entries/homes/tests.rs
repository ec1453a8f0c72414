//! Cells that are taken and given back, and where they lie.

use std::collections::HashSet;

use super::*;

/// Sizes of entries: whole words, up to the largest that has no box.
const PIECES: [usize; 11] = [8, 16, 24, 32, 40, 48, 64, 72, 136, 256, 512];
const SLAB: NonNull<()> = NonNull::dangling();

/// The digest of a key, as from a good hasher.
fn digest(key: u64) -> Digest {
    let mixed = (key ^ key >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    Digest::new((mixed ^ mixed >> 32).wrapping_mul(0x9E37_79B9_7F4A_7C15))
}

/// Frees the region, whose cells nobody uses, before the meter is checked for bytes that were not given back.
struct Region {
    homes: Homes,
    meter: Meter,
}

impl Region {
    fn new(entries: usize, piece: usize) -> Self {
        let meter = Meter::new();
        Region { homes: Homes::new(entries, piece, Some(true), false, &meter), meter }
    }

    /// Cells that the first `n` keys get.
    fn take(&self, n: u64) -> Vec<NonNull<u8>> {
        let cell = |key| {
            let cell = self.homes.take(digest(key), Within::Page, SLAB)?;
            // SAFETY: of a page.
            let begin = unsafe { begin_of(cell) }.load(Ordering::Relaxed);
            assert_eq!(begin, SLAB.as_ptr(), "from the first on");
            Some(cell)
        };
        (0..n).filter_map(cell).collect()
    }

    fn give(&self, cells: &[NonNull<u8>]) {
        // SAFETY: taken by the caller.
        cells.iter().for_each(|&cell| unsafe { self.homes.give(cell) });
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: nobody has a cell in use.
        unsafe { self.homes.free(&self.meter) };
        assert_eq!(self.meter.bytes(), 0);
    }
}

#[test]
fn every_cell_is_given_once_and_lies_in_a_page_of_the_slab() {
    for piece in PIECES {
        let region = Region::new(5000, piece);
        let cells = region.take(50_000);
        // SAFETY: where the region ends.
        let end = unsafe { region.homes.base.add(region.homes.pages as usize * PAGE) };
        assert!(!region.homes.has(end), "what follows is another's");
        assert!(cells.len() as f64 >= 5000.0 * CELLS_PER_ENTRY, "{} cells of {piece} bytes", cells.len());
        assert!(region.meter.bytes() < cells.len() * piece * 6 / 5 + cells.len() / 4 + 2 * PAGE);
        let mut starts: Vec<usize> = cells.iter().map(|cell| cell.addr().get()).collect();
        starts.sort_unstable();
        assert!(starts.windows(2).all(|pair| pair[1] - pair[0] >= piece), "cells of {piece} bytes overlap");
        for &cell in &cells {
            let at = cell.addr().get() % PAGE;
            assert!(at >= size_of::<Begin>() && at + piece <= PAGE && at % piece == 0);
            // SAFETY: of a page.
            assert_eq!(unsafe { begin_of(cell) }.load(Ordering::Relaxed), SLAB.as_ptr());
            assert!(region.homes.has(cell));
            // SAFETY: ours, so long.
            unsafe { cell.write_bytes(0xA5, piece) };
        }
        assert!(region.take(100).is_empty(), "more cells than there are");
        region.give(&cells);
        let again: HashSet<_> = region.take(50_000).into_iter().collect();
        assert_eq!(again, cells.iter().copied().collect());
        region.give(&cells);
    }
}

/// Where a digest's home cell begins.
fn home_cell(homes: &Homes, digest: Digest) -> usize {
    let (page, cell) = homes.home(digest);
    homes.base.addr().get() + page as usize * PAGE + (cell * homes.piece) as usize
}

/// The line of a digest's home cell.
fn home_line(homes: &Homes, digest: Digest) -> usize {
    home_cell(homes, digest) / LINE
}

#[test]
fn what_is_fetched_is_of_the_home_cell_and_all_cells_are_homes() {
    for piece in PIECES {
        let region = Region::new(3000, piece);
        let lines = region.homes.lines();
        let mut homes = HashSet::new();
        for key in 0..100_000 {
            let cell = home_cell(&region.homes, digest(key));
            let fetched = lines.home(digest(key)).expect("there are homes").addr();
            assert!((cell..cell + piece).contains(&fetched), "{piece}");
            homes.insert(cell);
        }
        assert_eq!(homes.len(), (region.homes.pages * region.homes.cells) as usize, "{piece}");
    }
}

#[test]
fn nearly_all_are_at_home_while_there_is_room_and_most_when_each_has_been_replaced() {
    for (piece, first, later) in [(8, 0.92, 0.88), (16, 0.86, 0.77), (32, 0.75, 0.59), (64, 0.57, 0.36)] {
        let region = Region::new(20_000, piece);
        let at_home = |cells: &[Option<NonNull<u8>>]| {
            let is_home = |&(key, cell): &(u64, &Option<NonNull<u8>>)| {
                cell.is_some_and(|cell| cell.addr().get() / LINE == home_line(&region.homes, digest(key)))
            };
            (0..).zip(cells).filter(is_home).count() as f64 / cells.len() as f64
        };
        let take = |key, within| region.homes.take(digest(key), within, SLAB);
        let mut cells: Vec<_> = (0..20_000).map(|key| take(key, Within::Page)).collect();
        assert!(at_home(&cells) > first, "{} of {piece} bytes", at_home(&cells));
        for n in 0..60_000 {
            let key = digest(n).bits() % 20_000;
            // The order in which entries are replaced: the old one is freed last.
            let old = core::mem::replace(&mut cells[key as usize], take(key, Within::Home));
            old.iter().for_each(|&old| region.give(&[old]));
        }
        assert!(at_home(&cells) > later, "{} of {piece} bytes, replaced", at_home(&cells));
        cells.into_iter().flatten().for_each(|cell| region.give(&[cell]));
    }
}

#[test]
fn a_line_with_the_most_free_cells_is_found() {
    let mut bits = 0x9E37_79B9_7F4A_7C15_u64;
    for (piece, side_by_side) in [(8, 8), (16, 4), (24, 2), (32, 2), (40, 1), (512, 1)] {
        let region = Region::new(1, piece);
        assert_eq!(region.homes.side_by_side, side_by_side);
        for round in 0..1000 {
            bits = bits.rotate_left(23).wrapping_mul(0xBF58_476D_1CE4_E5B9) ^ bits >> 31;
            let few = bits & bits.rotate_left(7) & bits.rotate_left(11);
            let free = [bits, few, bits | bits.rotate_left(9), 0, !0][round % 5];
            let lines = (0..64)
                .step_by(side_by_side as usize)
                .map(|first| free & ((1_u64 << side_by_side) - 1) << first);
            // The first of the lines with the most.
            let expected = lines.rev().max_by_key(|line| line.count_ones()).expect("there are some");
            assert_eq!(region.homes.roomiest_line(free), expected, "{free:064b}");
        }
    }
}

#[test]
fn a_region_closes_when_no_cell_is_in_use_and_stays_closed() {
    let region = Region::new(1000, 24);
    let cells = region.take(700);
    assert!(!region.homes.close());
    region.give(&cells[1..]);
    assert!(!region.homes.close(), "one is in use");
    let one = region.homes.take(Digest::new(0), Within::Page, SLAB).expect("not closed");
    region.give(&cells[..1]);
    assert!(!region.homes.close(), "one is in use still");
    region.give(&[one]);
    assert!(region.homes.close(), "none is in use");
    assert!(!region.homes.close() && region.take(1000).is_empty() && !region.homes.has(one));
}

#[test]
fn few_entries_have_none_unless_they_are_wanted() {
    let meter = Meter::new();
    let new = |entries, wanted| Homes::new(entries, 16, wanted, false, &meter);
    let large = Homes::new(1 << 20, 24, None, false, &meter);
    for (entries, wanted) in [(0, Some(true)), (1 << 20, Some(false)), (400_000, None), (usize::MAX, None)] {
        assert!(large.take(Digest::new(7), Within::Page, SLAB).is_none(), "two in a line");
        let none = new(entries, wanted);
        assert_eq!(none.lines().home(Digest::new(7)), None);
        assert!(
            none.take(Digest::new(7), Within::Page, SLAB).is_none()
                && !none.has(NonNull::dangling())
                && !none.close()
        );
        assert_eq!(meter.bytes(), 0);
    }
    for (entries, wanted) in [(1, Some(true)), (440_000, None)] {
        let some = new(entries, wanted);
        let lines = some.lines();
        assert!(lines.home(Digest::new(7)).is_some());
        lines.withdraw();
        assert_eq!(lines.home(Digest::new(7)), None);
        assert!(some.take(Digest::new(7), Within::Page, SLAB).is_some() && meter.bytes() > 0);
        // SAFETY: nobody uses the cell.
        unsafe { some.free(&meter) };
        assert_eq!(meter.bytes(), 0);
    }
}

/// Threads that take and give cells of two pages, and one that closes them as soon as none is in use.
#[test]
fn a_cell_is_one_thread_s_at_a_time() {
    (0..if cfg!(miri) { 3 } else { 300 }).for_each(|_| take_and_give_on_threads());
}

fn take_and_give_on_threads() {
    let region = Region::new(300, 16);
    let rounds = 50;
    std::thread::scope(|scope| {
        for thread in 1..4_u64 {
            let region = &region;
            scope.spawn(move || {
                for round in 0..rounds {
                    let key = thread * rounds + round;
                    let mine: Vec<_> = (key..key + round % 90)
                        .filter_map(|key| region.homes.take(Digest::new(key), Within::Page, SLAB))
                        .map(NonNull::cast::<u64>)
                        .collect();
                    // SAFETY: ours.
                    mine.iter().for_each(|cell| unsafe { cell.write(key) });
                    // SAFETY: ours.
                    assert!(mine.iter().all(|cell| unsafe { cell.read() } == key), "another's cell");
                    mine.iter().for_each(|&cell| region.give(&[cell.cast()]));
                }
            });
        }
        scope.spawn(|| while !region.homes.close() {});
    });
    assert!(region.take(100).is_empty());
}
