//! What is left to threads whose guards leave [C5]: they free it, none of it early, and all in the end.
#![cfg(loom)]

use std::sync::Arc;

use koel::model::{Reclaimer, Watched};
use loom::sync::Notify;
use loom::thread;
use loom_tests::{Cell, scene};

/// A collector, and the objects that it is to free.
struct Heap<const N: usize> {
    reclaimer: Reclaimer,
    objects: [Watched; N],
}

impl<const N: usize> Heap<N> {
    #[expect(clippy::arc_with_non_send_sync, reason = "loom runs its threads on one thread of the system")]
    fn new() -> Arc<Self> {
        Arc::new(Heap { reclaimer: Reclaimer::new(), objects: core::array::from_fn(|_| Watched::default()) })
    }

    /// Retires one object, in a bag of its own.
    fn retire(&self, index: usize) {
        // SAFETY: nothing leads to it; once.
        unsafe { self.reclaimer.retire(std::ptr::from_ref(&self.objects[index]).cast_mut()) };
        self.reclaimer.seal();
    }

    fn freed(&self) -> usize {
        self.objects.iter().filter(|object| object.is_freed()).count()
    }

    /// Enters and leaves as many guards as there are objects.
    fn leave_often(&self) {
        (0..N).for_each(|_| drop(self.reclaimer.enter()));
        assert_eq!(self.freed(), N, "some are left for good");
    }
}

/// A thread that frees what another has left knows as little about the guards as that one, which has seen the current epoch,
/// and nothing else of the threads that advanced it.
#[test]
fn what_is_left_to_others_is_not_freed_early() {
    scene(1, || {
        let cell = Cell::new();
        let is_unlinked = Arc::new(Notify::new());
        let leaver = {
            let is_unlinked = Arc::clone(&is_unlinked);
            cell.spawn(move |cell| {
                cell.unlink();
                cell.reclaimer.seal();
                is_unlinked.notify();
                // Neither waits for another thread, which would show it something: they run when the others wait.
                thread::yield_now();
                cell.reclaimer.leave_to_others();
            })
        };
        let payer = cell.spawn(|cell| {
            thread::yield_now();
            cell.reclaimer.free_what_is_left();
        });
        let reader = cell.reclaimer.enter();
        cell.read();
        is_unlinked.wait();
        drop(reader);
        (0..3).for_each(|_| _ = cell.reclaimer.advance());
        leaver.join().unwrap();
        payer.join().unwrap();
        cell.reclaimer.flush();
        assert!(cell.objects[0].is_freed());
    });
}

/// Two threads take what is left at the same time, and one leaves more meanwhile.
#[test]
fn what_is_left_to_others_is_freed_whoever_else_leaves_something() {
    loom::model(|| {
        let heap = Heap::<4>::new();
        (0..3).for_each(|index| heap.retire(index));
        heap.reclaimer.free_a_share();
        assert_eq!(heap.freed(), 1);
        let payer = {
            let heap = Arc::clone(&heap);
            thread::spawn(move || heap.reclaimer.free_what_is_left())
        };
        // As above.
        thread::yield_now();
        heap.retire(3);
        heap.reclaimer.free_a_share();
        payer.join().unwrap();
        heap.leave_often();
    });
}

/// There is a guard that may be in the way; it is more than a share.
#[test]
fn all_that_was_flushed_is_freed() {
    loom::model(|| {
        let heap = Heap::<2>::new();
        let reader = {
            let heap = Arc::clone(&heap);
            thread::spawn(move || drop(heap.reclaimer.enter()))
        };
        (0..2).for_each(|index| heap.retire(index));
        heap.reclaimer.flush();
        reader.join().unwrap();
        assert_eq!(heap.freed(), 2);
    });
}
