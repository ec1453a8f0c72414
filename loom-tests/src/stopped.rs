//! A writer that is stopped in the middle of its write.

use std::sync::Arc;

use koel::model::stall;
use loom::sync::atomic::{AtomicBool, Ordering};
use loom::thread;

/// Runs `write`, and stops it at its `seam`-th seam until `read`, in a thread of its own, is done. Notes in `reached` whether
/// it got that far.
pub fn stopped(
    seam: usize,
    reached: &Arc<std::sync::atomic::AtomicBool>,
    read: impl FnOnce() + 'static,
    write: impl FnOnce(),
) {
    let done = Arc::new(AtomicBool::new(false));
    let reader = {
        let done = Arc::clone(&done);
        thread::spawn(move || {
            read();
            done.store(true, Ordering::Release);
        })
    };
    let reached = Arc::clone(reached);
    stall::after(seam, move || {
        reached.store(true, std::sync::atomic::Ordering::Relaxed);
        while !done.load(Ordering::Acquire) {
            thread::yield_now();
        }
    });
    write();
    // Code after the write has other seams.
    stall::after(usize::MAX, || ());
    reader.join().unwrap();
}
