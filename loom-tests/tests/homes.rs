//! Home cells [M5]: a cell is one thread's at a time, its page says which slab it is of, and a region is released when none of
//! its cells is in use.
#![cfg(loom)]

use std::ptr::NonNull;
use std::sync::Arc;

use koel::model::HomeCells;
use loom::cell::UnsafeCell;
use loom::thread;

/// A page of which at most one cell is not in use, and what that cell holds.
struct Page {
    homes: HomeCells,
    content: UnsafeCell<u32>,
}

impl Page {
    /// All cells of the first page except one are in use; that one is free, or the caller's.
    #[expect(clippy::arc_with_non_send_sync, reason = "loom runs its threads on one thread of the system")]
    fn new(is_free: bool) -> (Arc<Self>, NonNull<u8>) {
        let homes = HomeCells::new();
        let cells: Vec<_> = (0..HomeCells::CELLS).map(|_| homes.take(0, 0).expect("so many")).collect();
        if is_free {
            // SAFETY: just taken.
            unsafe { homes.give(cells[0]) };
        }
        (Arc::new(Page { homes, content: UnsafeCell::new(0) }), cells[0])
    }

    /// Writes to the cell, as its holder does: loom fails if two threads do so at a time.
    fn write(&self) {
        // SAFETY: the cell is ours, or the model fails.
        self.content.with_mut(|content| unsafe { *content += 1 });
    }
}

/// Takes a cell and gives it back.
fn come_and_go(homes: &HomeCells, segment: usize, meanwhile: impl FnOnce()) {
    if let Some(cell) = homes.take(segment, 0) {
        meanwhile();
        // SAFETY: just taken.
        unsafe { homes.give(cell) };
    }
}

#[test]
fn what_was_in_a_cell_is_done_with_when_the_next_has_it() {
    loom::model(|| {
        let (page, cell) = Page::new(false);
        let next = {
            let page = Arc::clone(&page);
            thread::spawn(move || {
                if page.homes.take(1, 0).is_some() {
                    page.write();
                }
            })
        };
        page.write();
        // SAFETY: ours.
        unsafe { page.homes.give(cell) };
        next.join().unwrap();
    });
}

#[test]
fn a_cell_is_taken_once() {
    loom::model(|| {
        let (page, _) = Page::new(true);
        let other = {
            let page = Arc::clone(&page);
            thread::spawn(move || page.homes.take(1, 0).inspect(|_| page.write()).is_some())
        };
        let mine = page.homes.take(0, 0).inspect(|_| page.write()).is_some();
        assert!(mine != other.join().unwrap());
    });
}

#[test]
fn a_page_tells_whose_it_is_to_all_who_have_a_cell() {
    loom::model(|| {
        let homes = Arc::new(HomeCells::new());
        let other = {
            let homes = Arc::clone(&homes);
            thread::spawn(move || assert!(homes.take(1, 0).is_some()))
        };
        assert!(homes.take(0, 0).is_some());
        other.join().unwrap();
    });
}

/// The segment's lock orders nothing here except the end: what is in the cell is written after the lock was released.
#[test]
fn a_region_that_is_released_is_done_with() {
    loom::model(|| {
        #[expect(
            clippy::arc_with_non_send_sync,
            reason = "loom runs its threads on one thread of the system"
        )]
        let page = Arc::new(Page { homes: HomeCells::new(), content: UnsafeCell::new(0) });
        let other = {
            let page = Arc::clone(&page);
            thread::spawn(move || come_and_go(&page.homes, 0, || page.write()))
        };
        if page.homes.release() {
            page.write();
            assert!(page.homes.take(1, 0).is_none());
        }
        other.join().unwrap();
    });
}

#[test]
fn of_two_who_release_a_region_one_does() {
    loom::model(|| {
        let homes = Arc::new(HomeCells::new());
        let other = {
            let homes = Arc::clone(&homes);
            thread::spawn(move || homes.release())
        };
        assert!(homes.release() != other.join().unwrap());
    });
}

/// The releasing thread finds a cell of the second page in use after it has taken all of the first page: none of them is lost.
#[test]
fn a_region_that_is_not_released_is_as_it_was() {
    loom::model(|| {
        let homes = Arc::new(HomeCells::new());
        let other = {
            let homes = Arc::clone(&homes);
            thread::spawn(move || homes.take(0, 1).is_some())
        };
        let released = homes.release();
        let taken = other.join().unwrap();
        let left = [0, 1].map(|page| (0..).take_while(|_| homes.take(0, page).is_some()).count());
        let cells = HomeCells::CELLS;
        assert_eq!(left, if released { [0, 0] } else { [cells, cells - usize::from(taken)] });
    });
}

/// The same, while a third thread takes a cell of the first page, which another had begun: the page says which slab it is of.
#[test]
fn a_page_of_a_region_that_is_not_released_tells_whose_it_is() {
    let mut model = loom::model::Builder::new();
    // As many preemptions as it takes.
    model.preemption_bound = Some(3);
    model.check(|| {
        let homes = Arc::new(HomeCells::new());
        let others = [0, 1].map(|segment| {
            let homes = Arc::clone(&homes);
            thread::spawn(move || {
                if segment == 0 {
                    come_and_go(&homes, 0, || ());
                    homes.take(0, 1);
                } else {
                    homes.take(1, 0);
                }
            })
        });
        homes.release();
        others.into_iter().for_each(|other| other.join().unwrap());
    });
}
