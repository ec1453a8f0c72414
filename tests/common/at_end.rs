//! An end that threads tell one another.

use std::sync::atomic::{AtomicBool, Ordering};

/// Sets it when it is dropped: whoever goes on until it is set ends as well if this thread panics.
pub(crate) struct SetAtEnd<'a>(pub(crate) &'a AtomicBool);

impl Drop for SetAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
