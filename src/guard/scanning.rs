//! Whose scan this thread is: who is told of its progress there must not wait for it.

use core::cell::Cell;
use core::marker::PhantomData;

use crate::sync::{per_thread, with_mine};

// The address of what the guard's threads share; 0 if this one scans for nobody.
per_thread! {
    static SCANS_FOR: Cell<usize> = Cell::new(0);
}

/// While it lives, this thread scans. Not `Send`: it is about this thread.
pub(super) struct Scanning(PhantomData<*mut ()>);

/// This thread, which is made for that, scans for the guard from now on.
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
