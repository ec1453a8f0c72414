//! Home cells [M5]: a cell is one thread's at a time, its page tells whose it is, and a region closes when none is in use.
#![cfg(loom)]

use std::ptr::NonNull;
use std::sync::Arc;

use koel::model::HomeCells;
use loom::cell::UnsafeCell;
use loom::thread;

/// A page whose cells are in use but for at most one, and what that one holds.
struct Page {
    homes: HomeCells,
    content: UnsafeCell<u32>,
}

impl Page {
    /// All but one are in use; that one is free, or the caller's.
    #[expect(clippy::arc_with_non_send_sync, reason = "loom runs its threads on one thread of the system")]
    fn new(is_free: bool) -> (Arc<Self>, NonNull<u8>) {
        let homes = HomeCells::new();
        let cells: Vec<_> = (0..HomeCells::CELLS).map(|_| homes.take(1).expect("so many")).collect();
        if is_free {
            // SAFETY: just taken.
            unsafe { homes.give(cells[0]) };
        }
        (Arc::new(Page { homes, content: UnsafeCell::new(0) }), cells[0])
    }

    /// What whoever has the cell does with it: loom tells if two do at a time.
    fn write(&self) {
        // SAFETY: the cell is ours, or the model fails.
        self.content.with_mut(|content| unsafe { *content += 1 });
    }
}

#[test]
fn what_was_in_a_cell_is_done_with_when_the_next_has_it() {
    loom::model(|| {
        let (page, cell) = Page::new(false);
        let next = {
            let page = Arc::clone(&page);
            thread::spawn(move || {
                if page.homes.take(1).is_some() {
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
            thread::spawn(move || page.homes.take(1).inspect(|_| page.write()).is_some())
        };
        let mine = page.homes.take(1).inspect(|_| page.write()).is_some();
        assert!(mine != other.join().unwrap());
    });
}

#[test]
fn a_page_tells_whose_it_is_to_all_who_have_a_cell() {
    loom::model(|| {
        let homes = Arc::new(HomeCells::new());
        let other = {
            let homes = Arc::clone(&homes);
            thread::spawn(move || assert!(homes.take(1).is_some()))
        };
        assert!(homes.take(1).is_some());
        other.join().unwrap();
    });
}

#[test]
fn a_region_that_closes_is_done_with() {
    loom::model(|| {
        #[expect(
            clippy::arc_with_non_send_sync,
            reason = "loom runs its threads on one thread of the system"
        )]
        let page = Arc::new(Page { homes: HomeCells::new(), content: UnsafeCell::new(0) });
        let other = {
            let page = Arc::clone(&page);
            thread::spawn(move || {
                if let Some(cell) = page.homes.take(1) {
                    page.write();
                    // SAFETY: just taken.
                    unsafe { page.homes.give(cell) };
                }
            })
        };
        if page.homes.close() {
            page.write();
            assert!(page.homes.take(1).is_none());
        }
        other.join().unwrap();
    });
}

/// Who closes finds a cell in use after it has closed some of the others: none of them is lost.
#[test]
fn a_region_that_does_not_close_is_as_it_was() {
    loom::model(|| {
        let homes = Arc::new(HomeCells::new());
        let other = {
            let homes = Arc::clone(&homes);
            thread::spawn(move || homes.take(1).is_some())
        };
        let closed = homes.close();
        let taken = other.join().unwrap();
        let left = (0..).take_while(|_| homes.take(1).is_some()).count();
        assert_eq!(left, if closed { 0 } else { HomeCells::CELLS - usize::from(taken) });
    });
}
