//! A flag by which threads tell one another that they have ended.

use std::sync::atomic::{AtomicBool, Ordering};

/// Sets the flag when it is dropped: so threads that go on until it is set end also if this thread panics.
pub(crate) struct SetAtEnd<'a>(pub(crate) &'a AtomicBool);

impl Drop for SetAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
