//! An object that is retired while others look at it, for models of the reclaimer.

use std::sync::Arc;

use koel::model::{Reclaimer, Watched};
use loom::sync::atomic::{AtomicPtr, Ordering};
use loom::thread;

/// A cell that leads to one of two objects, the first of which is going to be retired.
#[derive(Debug)]
pub struct Cell {
    /// The collector of the objects.
    pub reclaimer: Reclaimer,
    /// A collector that has nothing to do with them.
    pub other: Reclaimer,
    /// The link to one of the objects.
    pub link: AtomicPtr<Watched>,
    /// The first is retired.
    pub objects: [Watched; 2],
}

impl Cell {
    /// A cell that leads to the first object.
    #[expect(clippy::arc_with_non_send_sync, reason = "loom runs its threads on one thread of the system")]
    pub fn new() -> Arc<Self> {
        let cell = Arc::new(Cell {
            reclaimer: Reclaimer::new(),
            other: Reclaimer::new(),
            link: AtomicPtr::new(std::ptr::null_mut()),
            objects: Default::default(),
        });
        cell.link.store(cell.object(0), Ordering::Relaxed);
        cell
    }

    fn object(&self, index: usize) -> *mut Watched {
        std::ptr::from_ref(&self.objects[index]).cast_mut()
    }

    /// Reads the object, as a reader does under its guard.
    pub fn read(&self) {
        // SAFETY: one of ours.
        unsafe { &*self.link.load(Ordering::Acquire) }.read();
    }

    /// Reads under two guards, and again under the one that ends last.
    pub fn read_until_both_end<G>(&self, first: G, second: G, first_ends_first: bool) {
        self.read();
        let (ends, last) = if first_ends_first { (first, second) } else { (second, first) };
        drop(ends);
        self.read();
        drop(last);
    }

    /// Unlinks the first object.
    pub fn unlink(&self) {
        self.link.store(self.object(1), Ordering::Release);
        // SAFETY: unlinked just now, once.
        unsafe { self.reclaimer.retire(self.object(0)) };
    }

    /// Unlinks the first object, and frees it as soon as possible.
    pub fn replace(&self) {
        self.unlink();
        self.reclaimer.flush();
    }

    /// Runs `f` in another thread.
    pub fn spawn(self: &Arc<Self>, f: impl FnOnce(&Arc<Self>) + 'static) -> thread::JoinHandle<()> {
        let cell = Arc::clone(self);
        thread::spawn(move || f(&cell))
    }
}

/// A model whose threads meet where they wait for each other: loom runs the first of those that can run, or of those that have
/// yielded if all have. It varies what they see, and little else.
pub fn scene(preemptions: usize, f: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    // More preemptions take long, but soon find what there is to find: for mutants.
    let more = std::env::var("KOEL_SCENE_PREEMPTIONS").ok().and_then(|more| more.parse().ok());
    model.preemption_bound = Some(more.unwrap_or(preemptions));
    model.check(f);
}
