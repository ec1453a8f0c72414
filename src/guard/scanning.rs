//! For which guard this thread scans: a listener that is called on it must not wait for the scan.

use core::cell::Cell;
use core::marker::PhantomData;

use crate::sync::{per_thread, with_mine};

// The address of what the guard's threads share; 0 if this thread scans for no guard.
per_thread! {
    static SCANS_FOR: Cell<usize> = Cell::new(0);
}

/// While this lives, the current thread scans. Not `Send`: it belongs to its thread.
pub(super) struct Scanning(PhantomData<*mut ()>);

/// Notes that this thread, which is made for that, scans for the guard from now on.
pub(super) fn begin<T>(shared: &T) -> Scanning {
    with_mine(&SCANS_FOR, |scans_for| scans_for.set(core::ptr::from_ref(shared).addr()));
    Scanning(PhantomData)
}

/// Whether this thread scans for the guard.
pub(super) fn is_here<T>(shared: &T) -> bool {
    with_mine(&SCANS_FOR, |scans_for| scans_for.get() == core::ptr::from_ref(shared).addr())
}

impl Drop for Scanning {
    fn drop(&mut self) {
        with_mine(&SCANS_FOR, |scans_for| scans_for.set(0));
    }
}
