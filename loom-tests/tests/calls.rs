//! For which collector a call to collect is [C5].
#![cfg(loom)]

use std::rc::Rc;

use koel::model::{Reclaimer, Watched, stall};
use loom::sync::mpsc::{Receiver, channel};
use loom::thread;

/// A collector, and an object that it is to free.
struct Side {
    reclaimer: Reclaimer,
    object: Watched,
}

impl Side {
    fn new() -> Rc<Self> {
        Rc::new(Side { reclaimer: Reclaimer::new(), object: Watched::default() })
    }

    /// Retires the object, and flushes; meanwhile performs `actions`, one at each seam, from the seam on at which it has found
    /// a guard and has not called for it yet.
    fn flush(&self, actions: Vec<Action>) {
        // SAFETY: nothing leads to it; once.
        unsafe { self.reclaimer.retire(std::ptr::from_ref(&self.object).cast_mut()) };
        // The first seam is that of the advance before.
        at_seams(1, actions);
        self.reclaimer.flush();
    }
}

type Action = Box<dyn FnOnce()>;

/// Performs the actions at one seam after the other, from the `n`-th on.
fn at_seams(n: usize, mut actions: Vec<Action>) {
    if !actions.is_empty() {
        let first = actions.remove(0);
        stall::after(n, move || {
            first();
            at_seams(0, actions);
        });
    }
}

/// An action that waits for a message.
fn wait(from: &Rc<Receiver<()>>) -> Action {
    let from = Rc::clone(from);
    Box::new(move || from.recv().unwrap())
}

/// A reader's record has a guard of the one collector, then of the other one, and then of the first again, of the same epoch:
/// the reader has not learned of a later one. The thread that flushes the first collector, and has seen its guard, calls too
/// late for that guard, but in time for the second guard to answer; when it looks again, it finds the third guard, and a call.
/// That call is another thread's, which has seen the second guard; it comes when the third guard has left without a call.
#[test]
fn what_was_flushed_is_freed_though_a_call_for_another_collector_stands() {
    let mut model = loom::model::Builder::new();
    // Nobody is interrupted: each thread waits where the next is to go on. The reader waits only for the thread that flushes
    // the other collector, so that it sees as little as possible of what the one that flushes the first has done.
    model.preemption_bound = Some(0);
    // Two flushes, which advance three times each, look at more records than loom's thousand branches allow.
    model.max_branches = 2000;
    model.check(|| {
        let (one, other) = (Side::new(), Side::new());
        let (to_one, one_waits) = channel();
        let (to_other, other_waits) = channel();
        let (to_reader, reader_waits) = channel();
        let reader = {
            let (one, other, to_one) = (Rc::clone(&one), Rc::clone(&other), to_one.clone());
            thread::spawn(move || {
                let first = one.reclaimer.enter();
                to_one.send(()).unwrap();
                to_other.send(()).unwrap();
                // Until the one has seen it.
                reader_waits.recv().unwrap();
                drop(first);
                let second = other.reclaimer.enter();
                to_other.send(()).unwrap();
                // Until the other has seen it, and the one has called.
                reader_waits.recv().unwrap();
                drop(second);
                let third = one.reclaimer.enter();
                to_one.send(()).unwrap();
                to_other.send(()).unwrap();
                // Until the one has seen it.
                reader_waits.recv().unwrap();
                drop(third);
                to_other.send(()).unwrap();
            })
        };
        let flusher = {
            let other = Rc::clone(&other);
            thread::spawn(move || {
                let other_waits = Rc::new(other_waits);
                other_waits.recv().unwrap();
                to_reader.send(()).unwrap();
                other_waits.recv().unwrap();
                let (told, tells) = (to_one.clone(), to_reader.clone());
                let has_seen = move || {
                    told.send(()).unwrap();
                    tells.send(()).unwrap();
                    other_waits.recv().unwrap();
                    tells.send(()).unwrap();
                    other_waits.recv().unwrap();
                };
                let has_called = move || to_one.send(()).unwrap();
                other.flush(vec![Box::new(has_seen), Box::new(has_called)]);
            })
        };
        let one_waits = Rc::new(one_waits);
        one_waits.recv().unwrap();
        // Before the call; before the barrier; between the look at the guard and that at the call.
        one.flush(vec![wait(&one_waits), wait(&one_waits), wait(&one_waits)]);
        reader.join().unwrap();
        flusher.join().unwrap();
        assert!(one.object.is_freed() && other.object.is_freed(), "nobody has freed it");
    });
}
